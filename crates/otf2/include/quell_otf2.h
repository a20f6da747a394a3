/* The interface between C and Rust for OTF2: flat structs, and a few calls. The Rust side is src/ffi.rs; both sides check sizes and
 * offsets at compile time. Numbers that name definitions are the archive's own references. Calls that return int return 0, or an OTF2
 * error code; quell_otf2_problem() then has the message. */
#ifndef QUELL_OTF2_H
#define QUELL_OTF2_H

#include <stddef.h>
#include <stdint.h>

/* Generated (layout) by tools/make_contract.py from contract/otf2.py: change it there. */
enum quell_otf2_event_kind {
    QUELL_OTF2_ENTER = 0,
    QUELL_OTF2_LEAVE = 1,
    QUELL_OTF2_VALUE = 2,
    QUELL_OTF2_SEND = 3,
    QUELL_OTF2_ISEND = 4,
    QUELL_OTF2_ISEND_COMPLETE = 5,
    QUELL_OTF2_IRECV_REQUEST = 6,
    QUELL_OTF2_RECV = 7,
    QUELL_OTF2_IRECV = 8,
    QUELL_OTF2_PROBED = 9,
    QUELL_OTF2_REQUEST_TEST = 10,
    QUELL_OTF2_REQUEST_CANCELLED = 11,
    QUELL_OTF2_COLLECTIVE_BEGIN = 12,
    QUELL_OTF2_COLLECTIVE_REQUEST = 13,
    QUELL_OTF2_COLLECTIVE_END = 14,
    QUELL_OTF2_COLLECTIVE_COMPLETE = 15,
    QUELL_OTF2_FORK = 16,
    QUELL_OTF2_TEAM_BEGIN = 17,
    QUELL_OTF2_TEAM_END = 18,
    QUELL_OTF2_JOIN = 19,
};

/* An event; of a metric event one for each value. PROBED is a Leave whose attributes describe a message: of the communicator `request`,
 * from `peer`, with `tag`. */
struct quell_otf2_event {
    uint64_t time; /* ticks */
    uint64_t request; /* or a value's bits */
    uint64_t sent; /* bytes, of messages too */
    uint64_t received;
    uint32_t kind;
    uint32_t ref; /* region, communicator or metric; fork: threads asked for */
    uint32_t peer; /* rank, root, or a value's place in its class */
    uint32_t tag; /* or operation, or a value's type */
};

_Static_assert(sizeof(struct quell_otf2_event) == 48, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, time) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, request) == 8, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, sent) == 16, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, received) == 24, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, kind) == 32, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, ref) == 36, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, peer) == 40, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_event, tag) == 44, "contract/ has another layout");

enum quell_otf2_definition_kind {
    QUELL_OTF2_CLOCK = 0,
    QUELL_OTF2_STRING = 1,
    QUELL_OTF2_ATTRIBUTE = 2,
    QUELL_OTF2_NODE = 3,
    QUELL_OTF2_LOCATION_GROUP = 4,
    QUELL_OTF2_LOCATION = 5,
    QUELL_OTF2_REGION = 6,
    QUELL_OTF2_GROUP = 7,
    QUELL_OTF2_COMM = 8,
    QUELL_OTF2_INTER_COMM = 9,
    QUELL_OTF2_MEMBER = 10,
    QUELL_OTF2_CLASS = 11,
    QUELL_OTF2_INSTANCE = 12,
};

/* A definition. Fields that are not listed for a kind are ignored. */
struct quell_otf2_definition {
    uint64_t self; /* clock: ticks a second */
    uint64_t parent; /* clock: first tick; node, location group: node; location: its group; comm: group; instance: class */
    uint64_t other; /* clock: length; region: line; group: flags; inter-comm: its other group; member: mode; instance: scope */
    uint64_t number; /* clock: when it began, ns since 1970; location: events */
    int64_t exponent; /* member */
    const char *string; /* string */
    const uint64_t *members; /* group: ranks or locations; class: members */
    uint64_t count; /* of members */
    uint32_t kind;
    uint32_t name; /* a string's reference, as are text and file */
    uint32_t text; /* node: its class; region: description; member: unit */
    uint32_t file; /* region: source file */
    uint32_t type; /* attribute, member: values; location group, location, group: what it is; region: role; instance: kind of scope */
    uint32_t paradigm; /* region, group; member: base */
};

_Static_assert(sizeof(struct quell_otf2_definition) == 88, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, self) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, parent) == 8, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, other) == 16, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, number) == 24, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, exponent) == 32, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, string) == 40, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, members) == 48, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, count) == 56, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, kind) == 64, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, name) == 68, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, text) == 72, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, file) == 76, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, type) == 80, "contract/ has another layout");
_Static_assert(offsetof(struct quell_otf2_definition, paradigm) == 84, "contract/ has another layout");
/* End of what is generated. */

/* The OTF2 library's first error message in this thread since the last call. Valid until the next call in this thread. */
const char *quell_otf2_problem(void);

/* Reading. */

struct quell_otf2_reader;
struct quell_otf2_stream;

/* Opens an archive; NULL if the anchor file cannot be read. */
struct quell_otf2_reader *quell_otf2_open(const char *anchor);
void quell_otf2_close(struct quell_otf2_reader *reader);
/* Sizes in bytes of a chunk of events, which each open stream occupies, and of a chunk of definitions. */
void quell_otf2_chunks(struct quell_otf2_reader *reader, uint64_t *events, uint64_t *definitions);
/* Whether the archive has this property. */
int quell_otf2_has_property(struct quell_otf2_reader *reader, const char *name);
/* Passes each global definition to `take`, which must not unwind. An error if there are more than `most`, or fewer than the anchor says. */
int quell_otf2_definitions(struct quell_otf2_reader *reader, uint64_t most, void (*take)(void *, const struct quell_otf2_definition *), void *user);
/* Makes these locations readable: reads their clock offsets and mapping tables. Call it once, after the definitions. Of each location at
 * most `most` local definitions are read, none if that is 0; `failed` gets each location's error code. */
int quell_otf2_select(struct quell_otf2_reader *reader, const uint64_t *locations, const uint64_t *most, uint64_t count,
                      int *failed);
/* Sets the attributes that hold a communicator, a source and a tag. */
void quell_otf2_attributes(struct quell_otf2_reader *reader, uint32_t comm, uint32_t source, uint32_t tag);
/* Opens the events of a location after its first `position`. NULL if they cannot be read. */
struct quell_otf2_stream *quell_otf2_stream(struct quell_otf2_reader *reader, uint64_t location, uint64_t position);
void quell_otf2_stream_close(struct quell_otf2_reader *reader, struct quell_otf2_stream *stream);
/* Reads up to `most` events. `events` is valid until the next call with this reader. `read` counts events of all kinds, including those
 * that produce no struct, or several. After an error, the events before it are still delivered. */
int quell_otf2_read(struct quell_otf2_reader *reader, struct quell_otf2_stream *stream, uint64_t most,
                    const struct quell_otf2_event **events, uint64_t *count, uint64_t *read);

/* Writing. */

struct quell_otf2_writer;

/* Creates an archive; NULL if the folder is not writable. */
struct quell_otf2_writer *quell_otf2_create(const char *folder, const char *name);
/* Describes the archive. Any of the texts may be NULL. */
int quell_otf2_describe(struct quell_otf2_writer *writer, const char *creator, const char *machine, const char *description);
int quell_otf2_property(struct quell_otf2_writer *writer, const char *name, const char *value);
/* Opens the location's stream of events for writing. It must be closed before definitions are written. */
struct quell_otf2_stream *quell_otf2_write_to(struct quell_otf2_writer *writer, uint64_t location);
int quell_otf2_written(struct quell_otf2_writer *writer, struct quell_otf2_stream *stream);
/* Writes an event of any kind except VALUE. */
int quell_otf2_write(struct quell_otf2_writer *writer, struct quell_otf2_stream *stream, const struct quell_otf2_event *event);
/* Writes a metric event with all members of a class, as uint64_t. */
int quell_otf2_write_metric(struct quell_otf2_stream *stream, uint64_t time, uint32_t class, const uint64_t *values, uint8_t count);
/* Begins the global definitions. */
int quell_otf2_define_begin(struct quell_otf2_writer *writer);
/* Defines the paradigms MPI and OpenMP, whose names are strings that are defined already. */
int quell_otf2_define_paradigms(struct quell_otf2_writer *writer, uint32_t mpi_name, uint32_t openmp_name);
int quell_otf2_define(struct quell_otf2_writer *writer, const struct quell_otf2_definition *definition);
/* Closes the archive, whether or not writing it succeeded. */
int quell_otf2_finish(struct quell_otf2_writer *writer, const uint64_t *locations, uint64_t count);

#endif
