/* Reads definitions and events of an archive into the flat structs of quell_otf2.h. */
#include <stdbool.h>
#include <stdlib.h>

#include <otf2/otf2.h>

#include "numbers.h"
#include "problem.h"
#include "quell_otf2.h"

#define NEXT OTF2_CALLBACK_SUCCESS

typedef struct quell_otf2_event Event;
typedef struct quell_otf2_definition Definition;

struct quell_otf2_reader {
    OTF2_Reader *otf2;
    OTF2_EvtReaderCallbacks *callbacks;
    uint32_t comm, source, tag; /* attributes */
    Event *events;
    size_t count, room;
    bool out_of_memory;
};

/* -- Events -- */

static OTF2_CallbackCode push(struct quell_otf2_reader *reader, const Event *event)
{
    if (reader->count == reader->room) {
        size_t room = reader->room ? 2 * reader->room : 8192;
        Event *events = realloc(reader->events, room * sizeof *events);
        if (!events) {
            reader->out_of_memory = true;
            return OTF2_CALLBACK_INTERRUPT;
        }
        reader->events = events;
        reader->room = room;
    }
    reader->events[reader->count++] = *event;
    return NEXT;
}

/* The first parameters of every event callback. */
#define GIVEN OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *user, OTF2_AttributeList *attributes
#define PUSH(...)                                     \
    do {                                              \
        (void)location, (void)position, (void)attributes; \
        return push(user, &(Event){.time = time, __VA_ARGS__}); \
    } while (0)

/* The integer value of an attribute; undefined if the attribute is absent. */
static uint32_t attribute(const OTF2_AttributeList *attributes, uint32_t which)
{
    OTF2_Type type;
    OTF2_AttributeValue value;
    if (which == OTF2_UNDEFINED_UINT32 || !OTF2_AttributeList_TestAttributeByID(attributes, which) ||
        OTF2_AttributeList_GetAttributeByID(attributes, which, &type, &value) != OTF2_SUCCESS)
        return OTF2_UNDEFINED_UINT32;
    switch (type) {
    case OTF2_TYPE_UINT8: return value.uint8;
    case OTF2_TYPE_UINT16: return value.uint16;
    case OTF2_TYPE_UINT32: return value.uint32;
    case OTF2_TYPE_COMM: return value.commRef;
    case OTF2_TYPE_INT32: return (uint32_t)value.int32;
    case OTF2_TYPE_UINT64:
    case OTF2_TYPE_INT64: return value.uint64 < UINT32_MAX ? (uint32_t)value.uint64 : UINT32_MAX;
    default: return OTF2_UNDEFINED_UINT32;
    }
}

static bool has_attributes(const OTF2_AttributeList *attributes)
{
    return attributes && OTF2_AttributeList_GetNumberOfElements(attributes) > 0;
}

static OTF2_CallbackCode on_enter(GIVEN, OTF2_RegionRef region)
{
    PUSH(.kind = QUELL_OTF2_ENTER, .ref = region);
}

static OTF2_CallbackCode on_leave(GIVEN, OTF2_RegionRef region)
{
    const struct quell_otf2_reader *reader = user;
    if (reader->comm != OTF2_UNDEFINED_UINT32 && has_attributes(attributes) &&
        OTF2_AttributeList_TestAttributeByID(attributes, reader->comm))
        PUSH(.kind = QUELL_OTF2_PROBED, .ref = region, .request = attribute(attributes, reader->comm),
             .peer = attribute(attributes, reader->source), .tag = attribute(attributes, reader->tag));
    PUSH(.kind = QUELL_OTF2_LEAVE, .ref = region);
}

static OTF2_CallbackCode on_send(GIVEN, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes)
{
    PUSH(.kind = QUELL_OTF2_SEND, .ref = comm, .peer = peer, .tag = tag, .sent = bytes);
}

static OTF2_CallbackCode on_isend(GIVEN, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_ISEND, .ref = comm, .peer = peer, .tag = tag, .sent = bytes, .request = request);
}

static OTF2_CallbackCode on_isend_complete(GIVEN, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_ISEND_COMPLETE, .request = request);
}

static OTF2_CallbackCode on_irecv_request(GIVEN, uint64_t request)
{
    Event event = {.time = time, .kind = QUELL_OTF2_IRECV_REQUEST, .request = request,
                   .ref = OTF2_UNDEFINED_COMM, .peer = OTF2_UNDEFINED_UINT32, .tag = OTF2_UNDEFINED_UINT32};
    struct quell_otf2_reader *reader = user;
    (void)location, (void)position;
    if (has_attributes(attributes)) {
        event.ref = attribute(attributes, reader->comm);
        event.peer = attribute(attributes, reader->source);
        event.tag = attribute(attributes, reader->tag);
    }
    return push(reader, &event);
}

static OTF2_CallbackCode on_recv(GIVEN, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes)
{
    PUSH(.kind = QUELL_OTF2_RECV, .ref = comm, .peer = peer, .tag = tag, .received = bytes);
}

static OTF2_CallbackCode on_irecv(GIVEN, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_IRECV, .ref = comm, .peer = peer, .tag = tag, .received = bytes, .request = request);
}

static OTF2_CallbackCode on_request_test(GIVEN, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_REQUEST_TEST, .request = request);
}

static OTF2_CallbackCode on_request_cancelled(GIVEN, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_REQUEST_CANCELLED, .request = request);
}

static OTF2_CallbackCode on_collective_begin(GIVEN)
{
    PUSH(.kind = QUELL_OTF2_COLLECTIVE_BEGIN);
}

static OTF2_CallbackCode on_collective_end(GIVEN, OTF2_CollectiveOp operation, OTF2_CommRef comm, uint32_t root, uint64_t sent,
                                           uint64_t received)
{
    PUSH(.kind = QUELL_OTF2_COLLECTIVE_END, .ref = comm, .peer = root, .tag = operation, .sent = sent, .received = received);
}

static OTF2_CallbackCode on_collective_request(GIVEN, uint64_t request)
{
    const struct quell_otf2_reader *reader = user;
    uint32_t comm = has_attributes(attributes) ? attribute(attributes, reader->comm) : OTF2_UNDEFINED_COMM;
    PUSH(.kind = QUELL_OTF2_COLLECTIVE_REQUEST, .ref = comm, .request = request);
}

static OTF2_CallbackCode on_collective_complete(GIVEN, OTF2_CollectiveOp operation, OTF2_CommRef comm, uint32_t root, uint64_t sent,
                                                uint64_t received, uint64_t request)
{
    PUSH(.kind = QUELL_OTF2_COLLECTIVE_COMPLETE, .ref = comm, .peer = root, .tag = operation, .sent = sent, .received = received,
         .request = request);
}

static OTF2_CallbackCode on_fork(GIVEN, OTF2_Paradigm model, uint32_t threads)
{
    (void)model;
    PUSH(.kind = QUELL_OTF2_FORK, .ref = threads);
}

static OTF2_CallbackCode on_team_begin(GIVEN, OTF2_CommRef team)
{
    PUSH(.kind = QUELL_OTF2_TEAM_BEGIN, .ref = team);
}

static OTF2_CallbackCode on_team_end(GIVEN, OTF2_CommRef team)
{
    PUSH(.kind = QUELL_OTF2_TEAM_END, .ref = team);
}

static OTF2_CallbackCode on_join(GIVEN, OTF2_Paradigm model)
{
    (void)model;
    PUSH(.kind = QUELL_OTF2_JOIN);
}

static OTF2_CallbackCode on_metric(GIVEN, OTF2_MetricRef metric, uint8_t count, const OTF2_Type *types,
                                   const OTF2_MetricValue *values)
{
    (void)location, (void)position, (void)attributes;
    for (uint32_t i = 0; i < count; i++) {
        Event event = {.time = time, .kind = QUELL_OTF2_VALUE, .ref = metric, .peer = i, .tag = types[i],
                       .request = values[i].unsigned_int};
        OTF2_CallbackCode code = push(user, &event);
        if (code != NEXT)
            return code;
    }
    return NEXT;
}

static OTF2_EvtReaderCallbacks *event_callbacks(void)
{
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    if (!callbacks)
        return NULL;
    OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, on_enter);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, on_leave);
    OTF2_EvtReaderCallbacks_SetMpiSendCallback(callbacks, on_send);
    OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks, on_isend);
    OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(callbacks, on_isend_complete);
    OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(callbacks, on_irecv_request);
    OTF2_EvtReaderCallbacks_SetMpiRecvCallback(callbacks, on_recv);
    OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(callbacks, on_irecv);
    OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback(callbacks, on_request_test);
    OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(callbacks, on_request_cancelled);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(callbacks, on_collective_begin);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(callbacks, on_collective_end);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(callbacks, on_collective_request);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(callbacks, on_collective_complete);
    OTF2_EvtReaderCallbacks_SetThreadForkCallback(callbacks, on_fork);
    OTF2_EvtReaderCallbacks_SetThreadTeamBeginCallback(callbacks, on_team_begin);
    OTF2_EvtReaderCallbacks_SetThreadTeamEndCallback(callbacks, on_team_end);
    OTF2_EvtReaderCallbacks_SetThreadJoinCallback(callbacks, on_join);
    OTF2_EvtReaderCallbacks_SetMetricCallback(callbacks, on_metric);
    return callbacks;
}

/* -- The archive -- */

struct quell_otf2_reader *quell_otf2_open(const char *anchor)
{
    problem_listen();
    struct quell_otf2_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->comm = reader->source = reader->tag = OTF2_UNDEFINED_UINT32;
    reader->callbacks = event_callbacks();
    reader->otf2 = OTF2_Reader_Open(anchor);
    if (!reader->callbacks || !reader->otf2 || OTF2_Reader_SetSerialCollectiveCallbacks(reader->otf2) != OTF2_SUCCESS) {
        quell_otf2_close(reader);
        return NULL;
    }
    return reader;
}

void quell_otf2_close(struct quell_otf2_reader *reader)
{
    if (reader->otf2)
        OTF2_Reader_Close(reader->otf2);
    if (reader->callbacks)
        OTF2_EvtReaderCallbacks_Delete(reader->callbacks);
    free(reader->events);
    free(reader);
}

void quell_otf2_chunks(struct quell_otf2_reader *reader, uint64_t *events, uint64_t *definitions)
{
    OTF2_Reader_GetChunkSize(reader->otf2, events, definitions);
}

int quell_otf2_has_property(struct quell_otf2_reader *reader, const char *name)
{
    char *value = NULL;
    bool has = OTF2_Reader_GetProperty(reader->otf2, name, &value) == OTF2_SUCCESS;
    free(value);
    quell_otf2_problem();
    return has;
}

int quell_otf2_select(struct quell_otf2_reader *reader, const uint64_t *locations, const uint64_t *most, uint64_t count, int *failed)
{
    for (uint64_t i = 0; i < count; i++) {
        OTF2_ErrorCode code = OTF2_Reader_SelectLocation(reader->otf2, locations[i]);
        if (code != OTF2_SUCCESS)
            return (int)code;
    }
        /* Local definitions may be missing; references are then not mapped. */
    bool opened = OTF2_Reader_OpenDefFiles(reader->otf2) == OTF2_SUCCESS;
    for (uint64_t i = 0; opened && i < count; i++) {
        if (!most[i])
            continue;
        OTF2_DefReader *definitions = OTF2_Reader_GetDefReader(reader->otf2, locations[i]);
        if (!definitions)
            continue;
        uint64_t read = 0;
        failed[i] = (int)OTF2_Reader_ReadLocalDefinitions(reader->otf2, definitions, most[i] + 1, &read);
        if (read > most[i])
            failed[i] = (int)OTF2_ERROR_INTEGRITY_FAULT;
        OTF2_Reader_CloseDefReader(reader->otf2, definitions);
    }
    if (opened)
        OTF2_Reader_CloseDefFiles(reader->otf2);
    quell_otf2_problem();
    return (int)OTF2_Reader_OpenEvtFiles(reader->otf2);
}

void quell_otf2_attributes(struct quell_otf2_reader *reader, uint32_t comm, uint32_t source, uint32_t tag)
{
    reader->comm = comm;
    reader->source = source;
    reader->tag = tag;
}

struct quell_otf2_stream *quell_otf2_stream(struct quell_otf2_reader *reader, uint64_t location, uint64_t position)
{
    OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader->otf2, location);
    if (!events)
        return NULL;
    if (OTF2_Reader_RegisterEvtCallbacks(reader->otf2, events, reader->callbacks, reader) != OTF2_SUCCESS ||
        (position && OTF2_EvtReader_Seek(events, position + 1) != OTF2_SUCCESS)) {
        OTF2_Reader_CloseEvtReader(reader->otf2, events);
        return NULL;
    }
    return (struct quell_otf2_stream *)events;
}

void quell_otf2_stream_close(struct quell_otf2_reader *reader, struct quell_otf2_stream *stream)
{
    OTF2_Reader_CloseEvtReader(reader->otf2, (OTF2_EvtReader *)stream);
}

int quell_otf2_read(struct quell_otf2_reader *reader, struct quell_otf2_stream *stream, uint64_t most, const Event **events,
                    uint64_t *count, uint64_t *read)
{
    reader->count = 0;
    *read = 0;
    OTF2_ErrorCode code = OTF2_Reader_ReadLocalEvents(reader->otf2, (OTF2_EvtReader *)stream, most, read);
    *events = reader->events;
    *count = reader->count;
    return reader->out_of_memory ? (int)OTF2_ERROR_MEM_FAULT : (int)code;
}

/* -- Definitions -- */

struct taker {
    void (*take)(void *, const Definition *);
    void *user;
};

static OTF2_CallbackCode hand_over(void *user, const Definition *definition)
{
    const struct taker *taker = user;
    taker->take(taker->user, definition);
    return NEXT;
}

#define TAKE(...) return hand_over(user, &(Definition){__VA_ARGS__})

static OTF2_CallbackCode on_clock(void *user, uint64_t resolution, uint64_t offset, uint64_t length, uint64_t began)
{
    TAKE(.kind = QUELL_OTF2_CLOCK, .self = resolution, .parent = offset, .other = length, .number = began);
}

static OTF2_CallbackCode on_string(void *user, OTF2_StringRef self, const char *string)
{
    TAKE(.kind = QUELL_OTF2_STRING, .self = self, .string = string);
}

static OTF2_CallbackCode on_attribute(void *user, OTF2_AttributeRef self, OTF2_StringRef name, OTF2_StringRef text, OTF2_Type type)
{
    TAKE(.kind = QUELL_OTF2_ATTRIBUTE, .self = self, .name = name, .text = text, .type = type);
}

static OTF2_CallbackCode on_node(void *user, OTF2_SystemTreeNodeRef self, OTF2_StringRef name, OTF2_StringRef class,
                                 OTF2_SystemTreeNodeRef parent)
{
    TAKE(.kind = QUELL_OTF2_NODE, .self = self, .name = name, .text = class, .parent = parent);
}

static OTF2_CallbackCode on_location_group(void *user, OTF2_LocationGroupRef self, OTF2_StringRef name, OTF2_LocationGroupType type,
                                           OTF2_SystemTreeNodeRef node, OTF2_LocationGroupRef creator)
{
    (void)creator;
    TAKE(.kind = QUELL_OTF2_LOCATION_GROUP, .self = self, .name = name, .type = type, .parent = node);
}

static OTF2_CallbackCode on_location(void *user, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type, uint64_t events,
                                     OTF2_LocationGroupRef group)
{
    TAKE(.kind = QUELL_OTF2_LOCATION, .self = self, .name = name, .type = type, .number = events, .parent = group);
}

static OTF2_CallbackCode on_region(void *user, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef canonical, OTF2_StringRef text,
                                   OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag flags, OTF2_StringRef file,
                                   uint32_t line, uint32_t end)
{
    (void)canonical, (void)flags, (void)end;
    TAKE(.kind = QUELL_OTF2_REGION, .self = self, .name = name, .text = text, .type = role, .paradigm = paradigm, .file = file,
         .other = line);
}

static OTF2_CallbackCode on_group(void *user, OTF2_GroupRef self, OTF2_StringRef name, OTF2_GroupType type, OTF2_Paradigm paradigm,
                                  OTF2_GroupFlag flags, uint32_t count, const uint64_t *members)
{
    TAKE(.kind = QUELL_OTF2_GROUP, .self = self, .name = name, .type = type, .paradigm = paradigm, .other = flags, .count = count,
         .members = members);
}

static OTF2_CallbackCode on_comm(void *user, OTF2_CommRef self, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef parent,
                                 OTF2_CommFlag flags)
{
    (void)parent, (void)flags;
    TAKE(.kind = QUELL_OTF2_COMM, .self = self, .name = name, .parent = group);
}

static OTF2_CallbackCode on_inter_comm(void *user, OTF2_CommRef self, OTF2_StringRef name, OTF2_GroupRef a, OTF2_GroupRef b,
                                       OTF2_CommRef common, OTF2_CommFlag flags)
{
    (void)common, (void)flags;
    TAKE(.kind = QUELL_OTF2_INTER_COMM, .self = self, .name = name, .parent = a, .other = b);
}

static OTF2_CallbackCode on_member(void *user, OTF2_MetricMemberRef self, OTF2_StringRef name, OTF2_StringRef text,
                                   OTF2_MetricType metric, OTF2_MetricMode mode, OTF2_Type type, OTF2_Base base, int64_t exponent,
                                   OTF2_StringRef unit)
{
    (void)text, (void)metric;
    TAKE(.kind = QUELL_OTF2_MEMBER, .self = self, .name = name, .other = mode, .type = type, .paradigm = base, .exponent = exponent,
         .text = unit);
}

static OTF2_CallbackCode on_class(void *user, OTF2_MetricRef self, uint8_t count, const OTF2_MetricMemberRef *refs,
                                  OTF2_MetricOccurrence occurrence, OTF2_RecorderKind recorder)
{
    (void)occurrence, (void)recorder;
    uint64_t members[UINT8_MAX];
    for (uint32_t i = 0; i < count; i++)
        members[i] = refs[i];
    TAKE(.kind = QUELL_OTF2_CLASS, .self = self, .count = count, .members = members);
}

static OTF2_CallbackCode on_instance(void *user, OTF2_MetricRef self, OTF2_MetricRef class, OTF2_LocationRef recorder,
                                     OTF2_MetricScope kind, uint64_t scope)
{
    (void)recorder;
    TAKE(.kind = QUELL_OTF2_INSTANCE, .self = self, .parent = class, .type = kind, .other = scope);
}

int quell_otf2_definitions(struct quell_otf2_reader *reader, uint64_t most, void (*take)(void *, const Definition *), void *user)
{
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader->otf2);
    if (!definitions)
        return (int)OTF2_ERROR_FILE_CAN_NOT_OPEN;
    OTF2_GlobalDefReaderCallbacks *callbacks = OTF2_GlobalDefReaderCallbacks_New();
    if (!callbacks)
        return (int)OTF2_ERROR_MEM_FAULT;
    OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, on_clock);
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, on_string);
    OTF2_GlobalDefReaderCallbacks_SetAttributeCallback(callbacks, on_attribute);
    OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(callbacks, on_node);
    OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks, on_location_group);
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, on_region);
    OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, on_group);
    OTF2_GlobalDefReaderCallbacks_SetCommCallback(callbacks, on_comm);
    OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(callbacks, on_inter_comm);
    OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(callbacks, on_member);
    OTF2_GlobalDefReaderCallbacks_SetMetricClassCallback(callbacks, on_class);
    OTF2_GlobalDefReaderCallbacks_SetMetricInstanceCallback(callbacks, on_instance);
    struct taker taker = {take, user};
    uint64_t read = 0, declared = 0;
    OTF2_ErrorCode code = OTF2_Reader_RegisterGlobalDefCallbacks(reader->otf2, definitions, callbacks, &taker);
    if (code == OTF2_SUCCESS)
        code = OTF2_Reader_GetNumberOfGlobalDefinitions(reader->otf2, &declared);
    if (code == OTF2_SUCCESS)
        code = OTF2_Reader_ReadGlobalDefinitions(reader->otf2, definitions, declared < most ? declared : most, &read);
    if (code == OTF2_SUCCESS && read < declared)
        code = OTF2_ERROR_INTEGRITY_FAULT;
    OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
    OTF2_Reader_CloseGlobalDefReader(reader->otf2, definitions);
    return (int)code;
}
