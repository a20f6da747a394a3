"""The part of OTF2 that C and Rust share: flat structs, and the numbers that its format fixes."""

from __future__ import annotations

from contract.rows import Field, Number, Struct

EVENTS = tuple(
    map(
        Number,
        (
            "enter",
            "leave",
            "value",
            "send",
            "isend",
            "isend_complete",
            "irecv_request",
            "recv",
            "irecv",
            "probed",
            "request_test",
            "request_cancelled",
            "collective_begin",
            "collective_request",
            "collective_end",
            "collective_complete",
            "fork",
            "team_begin",
            "team_end",
            "join",
        ),
    )
)

EVENT = Struct(
    "quell_otf2_event",
    (
        Field("time", "u64", note="ticks"),
        Field("request", "u64", note="or a value's bits"),
        Field("sent", "u64", note="bytes, of messages too"),
        Field("received", "u64"),
        Field("kind", "u32"),
        Field("ref", "u32", note="region, communicator or metric; fork: threads asked for", rust="of"),
        Field("peer", "u32", note="rank, root, or a value's place in its class"),
        Field("tag", "u32", note="or operation, or a value's type"),
    ),
    doc="""An event; of a metric event one for each value. PROBED is a Leave whose attributes describe a message: of the communicator `request`,
from `peer`, with `tag`.""",
)

DEFINITIONS = tuple(
    map(
        Number,
        (
            "clock",
            "string",
            "attribute",
            "node",
            "location_group",
            "location",
            "region",
            "group",
            "comm",
            "inter_comm",
            "member",
            "class",
            "instance",
        ),
    )
)

DEFINITION = Struct(
    "quell_otf2_definition",
    (
        Field("self", "u64", note="clock: ticks a second", rust="own"),
        Field(
            "parent",
            "u64",
            note="clock: first tick; node, location group: node; location: its group; comm: group; instance: class",
        ),
        Field(
            "other",
            "u64",
            note="clock: length; region: line; group: flags; inter-comm: its other group; member: mode; instance: scope",
        ),
        Field("number", "u64", note="clock: when it began, ns since 1970; location: events"),
        Field("exponent", "i64", note="member"),
        Field("string", "text*", note="string"),
        Field("members", "u64*", note="group: ranks or locations; class: members"),
        Field("count", "u64", note="of members"),
        Field("kind", "u32"),
        Field("name", "u32", note="a string's reference, as are text and file"),
        Field("text", "u32", note="node: its class; region: description; member: unit"),
        Field("file", "u32", note="region: source file"),
        Field(
            "type",
            "u32",
            note="attribute, member: values; location group, location, group: what it is; region: role; instance: kind of scope",
            rust="class",
        ),
        Field("paradigm", "u32", note="region, group; member: base"),
    ),
    doc="A definition. Fields that are not listed for a kind are ignored.",
)

# Rust's name, OTF2's (OTF2_…), the number, Rust's type.
NUMBERS = (
    ("UNDEFINED", "UNDEFINED_UINT32", 0xFFFFFFFF, "u32"),
    ("PARADIGM_UNKNOWN", "PARADIGM_UNKNOWN", 0, "u32"),
    ("PARADIGM_USER", "PARADIGM_USER", 1, "u32"),
    ("PARADIGM_OPENMP", "PARADIGM_OPENMP", 3, "u32"),
    ("PARADIGM_MPI", "PARADIGM_MPI", 4, "u32"),
    ("GROUP_LOCATIONS", "GROUP_TYPE_LOCATIONS", 1, "u32"),
    ("GROUP_COMM_LOCATIONS", "GROUP_TYPE_COMM_LOCATIONS", 4, "u32"),
    ("GROUP_COMM_GROUP", "GROUP_TYPE_COMM_GROUP", 5, "u32"),
    ("GROUP_COMM_SELF", "GROUP_TYPE_COMM_SELF", 6, "u32"),
    ("GROUP_OF_WORLD_RANKS", "GROUP_FLAG_GLOBAL_MEMBERS", 1, "u64"),
    ("LOCATION_GROUP_PROCESS", "LOCATION_GROUP_TYPE_PROCESS", 1, "u32"),
    ("LOCATION_CPU_THREAD", "LOCATION_TYPE_CPU_THREAD", 1, "u32"),
    ("SCOPE_LOCATION", "SCOPE_LOCATION", 0, "u32"),
    ("TYPE_UINT32", "TYPE_UINT32", 3, "u32"),
    ("TYPE_UINT64", "TYPE_UINT64", 4, "u32"),
    ("TYPE_INT64", "TYPE_INT64", 8, "u32"),
    ("TYPE_DOUBLE", "TYPE_DOUBLE", 10, "u32"),
    ("TYPE_COMM", "TYPE_COMM", 17, "u32"),
    ("BASE_BINARY", "BASE_BINARY", 0, "u32"),
    ("BASE_DECIMAL", "BASE_DECIMAL", 1, "u32"),
    ("ACCUMULATED_START", "METRIC_ACCUMULATED_START", 0, "u64"),
    ("ACCUMULATED_LAST", "METRIC_ACCUMULATED_LAST", 32, "u64"),
    ("MODE_VALUE", "METRIC_VALUE_MASK", 15, "u64"),
    ("MODE_RELATIVE", "METRIC_VALUE_RELATIVE", 2, "u64"),
    ("ROLE_FUNCTION", "REGION_ROLE_FUNCTION", 1, "u32"),
    ("ROLE_CODE", "REGION_ROLE_CODE", 4, "u32"),
    ("ROLE_PARALLEL", "REGION_ROLE_PARALLEL", 5, "u32"),
    ("ROLE_BARRIER", "REGION_ROLE_BARRIER", 15, "u32"),
    ("ROLE_IMPLICIT_BARRIER", "REGION_ROLE_IMPLICIT_BARRIER", 16, "u32"),
    ("ROLE_ONE_TO_ALL", "REGION_ROLE_COLL_ONE2ALL", 23, "u32"),
    ("ROLE_ALL_TO_ONE", "REGION_ROLE_COLL_ALL2ONE", 24, "u32"),
    ("ROLE_ALL_TO_ALL", "REGION_ROLE_COLL_ALL2ALL", 25, "u32"),
    ("ROLE_OTHER_COLLECTIVE", "REGION_ROLE_COLL_OTHER", 26, "u32"),
    ("ROLE_FILE", "REGION_ROLE_FILE_IO", 27, "u32"),
    ("ROLE_POINT_TO_POINT", "REGION_ROLE_POINT2POINT", 28, "u32"),
    ("ROLE_ONE_SIDED", "REGION_ROLE_RMA", 29, "u32"),
)
