/* Writes archives from the flat structs of quell_otf2.h. */
#include <stdbool.h>
#include <stdlib.h>

#include <otf2/otf2.h>

#include "problem.h"
#include "quell_otf2.h"

typedef struct quell_otf2_event Event;
typedef struct quell_otf2_definition Definition;

enum { COMM, SOURCE, TAG }; /* our attributes, in the order in which they are defined */

struct quell_otf2_writer {
    OTF2_Archive *archive;
    OTF2_AttributeList *attributes;
    OTF2_GlobalDefWriter *definitions;
};

/* -- Memory: one chunk per stream of events, flushed when it is full -- */

struct chunk {
    struct chunk *next;
    max_align_t data[];
};

static void *chunk_new(void *user, OTF2_FileType type, OTF2_LocationRef location, void **buffer, uint64_t size)
{
    (void)user, (void)location;
    if (type == OTF2_FILETYPE_EVENTS && *buffer)
        return NULL;
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->next = *buffer;
    *buffer = chunk;
    return chunk->data;
}

static void chunk_free_all(void *user, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    (void)user, (void)type, (void)location, (void)final;
    while (*buffer) {
        struct chunk *chunk = *buffer;
        *buffer = chunk->next;
        free(chunk);
    }
}

static OTF2_FlushType do_flush(void *user, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)user, (void)type, (void)location, (void)caller, (void)final;
    return OTF2_FLUSH;
}

/* -- The archive -- */

struct quell_otf2_writer *quell_otf2_create(const char *folder, const char *name)
{
    static const OTF2_MemoryCallbacks memory = {chunk_new, chunk_free_all};
    static const OTF2_FlushCallbacks flush = {do_flush, NULL};
    problem_listen();
    struct quell_otf2_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->attributes = OTF2_AttributeList_New();
        /* Chunks of the smallest size, because a reader keeps one in memory for each location. */
    writer->archive = OTF2_Archive_Open(folder, name, OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_MIN, OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT,
                                        OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!writer->attributes || !writer->archive || OTF2_Archive_SetFlushCallbacks(writer->archive, &flush, NULL) != OTF2_SUCCESS ||
        OTF2_Archive_SetMemoryCallbacks(writer->archive, &memory, NULL) != OTF2_SUCCESS ||
        OTF2_Archive_SetSerialCollectiveCallbacks(writer->archive) != OTF2_SUCCESS ||
        OTF2_Archive_OpenEvtFiles(writer->archive) != OTF2_SUCCESS) {
        if (writer->archive)
            OTF2_Archive_Close(writer->archive);
        if (writer->attributes)
            OTF2_AttributeList_Delete(writer->attributes);
        free(writer);
        return NULL;
    }
    return writer;
}

int quell_otf2_describe(struct quell_otf2_writer *writer, const char *creator, const char *machine, const char *description)
{
    OTF2_ErrorCode code = OTF2_SUCCESS;
    if (creator)
        code = OTF2_Archive_SetCreator(writer->archive, creator);
    if (code == OTF2_SUCCESS && machine)
        code = OTF2_Archive_SetMachineName(writer->archive, machine);
    if (code == OTF2_SUCCESS && description)
        code = OTF2_Archive_SetDescription(writer->archive, description);
    return (int)code;
}

int quell_otf2_property(struct quell_otf2_writer *writer, const char *name, const char *value)
{
    return (int)OTF2_Archive_SetProperty(writer->archive, name, value, true);
}

struct quell_otf2_stream *quell_otf2_write_to(struct quell_otf2_writer *writer, uint64_t location)
{
    return (struct quell_otf2_stream *)OTF2_Archive_GetEvtWriter(writer->archive, location);
}

int quell_otf2_written(struct quell_otf2_writer *writer, struct quell_otf2_stream *stream)
{
    return (int)OTF2_Archive_CloseEvtWriter(writer->archive, (OTF2_EvtWriter *)stream);
}

/* -- Events -- */

/* The attribute list, with those of the three that are known. Writing an event empties the list. */
static OTF2_AttributeList *attributes(struct quell_otf2_writer *writer, uint32_t comm, uint32_t source, uint32_t tag)
{
    OTF2_AttributeList *list = writer->attributes;
    OTF2_AttributeList_RemoveAllAttributes(list);
    OTF2_AttributeList_AddAttribute(list, COMM, OTF2_TYPE_COMM, (OTF2_AttributeValue){.commRef = comm});
    if (source != OTF2_UNDEFINED_UINT32)
        OTF2_AttributeList_AddUint32(list, SOURCE, source);
    if (tag != OTF2_UNDEFINED_UINT32)
        OTF2_AttributeList_AddUint32(list, TAG, tag);
    return list;
}

int quell_otf2_write(struct quell_otf2_writer *writer, struct quell_otf2_stream *stream, const Event *e)
{
    OTF2_EvtWriter *to = (OTF2_EvtWriter *)stream;
    uint64_t t = e->time;
    switch ((enum quell_otf2_event_kind)e->kind) {
    case QUELL_OTF2_ENTER: return (int)OTF2_EvtWriter_Enter(to, NULL, t, e->ref);
    case QUELL_OTF2_LEAVE: return (int)OTF2_EvtWriter_Leave(to, NULL, t, e->ref);
    case QUELL_OTF2_PROBED:
        return (int)OTF2_EvtWriter_Leave(to, attributes(writer, (uint32_t)e->request, e->peer, e->tag), t, e->ref);
    case QUELL_OTF2_SEND: return (int)OTF2_EvtWriter_MpiSend(to, NULL, t, e->peer, e->ref, e->tag, e->sent);
    case QUELL_OTF2_ISEND: return (int)OTF2_EvtWriter_MpiIsend(to, NULL, t, e->peer, e->ref, e->tag, e->sent, e->request);
    case QUELL_OTF2_ISEND_COMPLETE: return (int)OTF2_EvtWriter_MpiIsendComplete(to, NULL, t, e->request);
    case QUELL_OTF2_IRECV_REQUEST:
        return (int)OTF2_EvtWriter_MpiIrecvRequest(to, attributes(writer, e->ref, e->peer, e->tag), t, e->request);
    case QUELL_OTF2_RECV: return (int)OTF2_EvtWriter_MpiRecv(to, NULL, t, e->peer, e->ref, e->tag, e->received);
    case QUELL_OTF2_IRECV: return (int)OTF2_EvtWriter_MpiIrecv(to, NULL, t, e->peer, e->ref, e->tag, e->received, e->request);
    case QUELL_OTF2_REQUEST_TEST: return (int)OTF2_EvtWriter_MpiRequestTest(to, NULL, t, e->request);
    case QUELL_OTF2_REQUEST_CANCELLED: return (int)OTF2_EvtWriter_MpiRequestCancelled(to, NULL, t, e->request);
    case QUELL_OTF2_COLLECTIVE_BEGIN: return (int)OTF2_EvtWriter_MpiCollectiveBegin(to, NULL, t);
    case QUELL_OTF2_COLLECTIVE_REQUEST:
        return (int)OTF2_EvtWriter_NonBlockingCollectiveRequest(
            to, attributes(writer, e->ref, OTF2_UNDEFINED_UINT32, OTF2_UNDEFINED_UINT32), t, e->request);
    case QUELL_OTF2_COLLECTIVE_END:
        return (int)OTF2_EvtWriter_MpiCollectiveEnd(to, NULL, t, (OTF2_CollectiveOp)e->tag, e->ref, e->peer, e->sent, e->received);
    case QUELL_OTF2_COLLECTIVE_COMPLETE:
        return (int)OTF2_EvtWriter_NonBlockingCollectiveComplete(to, NULL, t, (OTF2_CollectiveOp)e->tag, e->ref, e->peer, e->sent,
                                                                 e->received, e->request);
    case QUELL_OTF2_FORK: return (int)OTF2_EvtWriter_ThreadFork(to, NULL, t, OTF2_PARADIGM_OPENMP, e->ref);
    case QUELL_OTF2_TEAM_BEGIN: return (int)OTF2_EvtWriter_ThreadTeamBegin(to, NULL, t, e->ref);
    case QUELL_OTF2_TEAM_END: return (int)OTF2_EvtWriter_ThreadTeamEnd(to, NULL, t, e->ref);
    case QUELL_OTF2_JOIN: return (int)OTF2_EvtWriter_ThreadJoin(to, NULL, t, OTF2_PARADIGM_OPENMP);
    case QUELL_OTF2_VALUE: break;
    }
    return (int)OTF2_ERROR_INVALID_ARGUMENT;
}

int quell_otf2_write_metric(struct quell_otf2_stream *stream, uint64_t time, uint32_t class, const uint64_t *values, uint8_t count)
{
    OTF2_Type types[UINT8_MAX];
    OTF2_MetricValue out[UINT8_MAX];
    for (uint32_t i = 0; i < count; i++) {
        types[i] = OTF2_TYPE_UINT64;
        out[i].unsigned_int = values[i];
    }
    return (int)OTF2_EvtWriter_Metric((OTF2_EvtWriter *)stream, NULL, time, class, count, types, out);
}

/* -- Definitions -- */

int quell_otf2_define_begin(struct quell_otf2_writer *writer)
{
    writer->definitions = OTF2_Archive_GetGlobalDefWriter(writer->archive);
    return (int)(writer->definitions ? OTF2_SUCCESS : OTF2_ERROR_MEM_FAULT);
}

int quell_otf2_define_paradigms(struct quell_otf2_writer *writer, uint32_t mpi_name, uint32_t openmp_name)
{
    OTF2_ErrorCode code =
        OTF2_GlobalDefWriter_WriteParadigm(writer->definitions, OTF2_PARADIGM_MPI, mpi_name, OTF2_PARADIGM_CLASS_PROCESS);
    if (code == OTF2_SUCCESS)
        code = OTF2_GlobalDefWriter_WriteParadigm(writer->definitions, OTF2_PARADIGM_OPENMP, openmp_name,
                                                  OTF2_PARADIGM_CLASS_THREAD_FORK_JOIN);
    return (int)code;
}

static int define_class(OTF2_GlobalDefWriter *to, const Definition *d)
{
    OTF2_MetricMemberRef members[UINT8_MAX];
    if (d->count > UINT8_MAX)
        return (int)OTF2_ERROR_INVALID_SIZE_GIVEN;
    for (uint64_t i = 0; i < d->count; i++)
        members[i] = (OTF2_MetricMemberRef)d->members[i];
    return (int)OTF2_GlobalDefWriter_WriteMetricClass(to, (OTF2_MetricRef)d->self, (uint8_t)d->count, members,
                                                      OTF2_METRIC_SYNCHRONOUS, OTF2_RECORDER_KIND_CPU);
}

int quell_otf2_define(struct quell_otf2_writer *writer, const Definition *d)
{
    OTF2_GlobalDefWriter *to = writer->definitions;
    uint32_t self = (uint32_t)d->self, parent = (uint32_t)d->parent;
    switch ((enum quell_otf2_definition_kind)d->kind) {
    case QUELL_OTF2_CLOCK: return (int)OTF2_GlobalDefWriter_WriteClockProperties(to, d->self, d->parent, d->other, d->number);
    case QUELL_OTF2_STRING: return (int)OTF2_GlobalDefWriter_WriteString(to, self, d->string);
    case QUELL_OTF2_ATTRIBUTE: return (int)OTF2_GlobalDefWriter_WriteAttribute(to, self, d->name, d->text, (OTF2_Type)d->type);
    case QUELL_OTF2_NODE: return (int)OTF2_GlobalDefWriter_WriteSystemTreeNode(to, self, d->name, d->text, parent);
    case QUELL_OTF2_LOCATION_GROUP:
        return (int)OTF2_GlobalDefWriter_WriteLocationGroup(to, self, d->name, (OTF2_LocationGroupType)d->type, parent,
                                                            OTF2_UNDEFINED_LOCATION_GROUP);
    case QUELL_OTF2_LOCATION:
        return (int)OTF2_GlobalDefWriter_WriteLocation(to, d->self, d->name, (OTF2_LocationType)d->type, d->number, parent);
    case QUELL_OTF2_REGION:
        return (int)OTF2_GlobalDefWriter_WriteRegion(to, self, d->name, d->name, d->text, (OTF2_RegionRole)d->type,
                                                     (OTF2_Paradigm)d->paradigm, OTF2_REGION_FLAG_NONE, d->file, (uint32_t)d->other, 0);
    case QUELL_OTF2_GROUP:
        return (int)OTF2_GlobalDefWriter_WriteGroup(to, self, d->name, (OTF2_GroupType)d->type, (OTF2_Paradigm)d->paradigm,
                                                    OTF2_GROUP_FLAG_NONE, (uint32_t)d->count, d->members);
    case QUELL_OTF2_COMM:
        return (int)OTF2_GlobalDefWriter_WriteComm(to, self, d->name, parent, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
    case QUELL_OTF2_INTER_COMM:
        return (int)OTF2_GlobalDefWriter_WriteInterComm(to, self, d->name, parent, (OTF2_GroupRef)d->other, OTF2_UNDEFINED_COMM,
                                                        OTF2_COMM_FLAG_NONE);
    case QUELL_OTF2_MEMBER:
        return (int)OTF2_GlobalDefWriter_WriteMetricMember(to, self, d->name, d->name, OTF2_METRIC_TYPE_OTHER, (OTF2_MetricMode)d->other,
                                                           (OTF2_Type)d->type, (OTF2_Base)d->paradigm, d->exponent, d->text);
    case QUELL_OTF2_CLASS: return define_class(to, d);
    case QUELL_OTF2_INSTANCE: break;
    }
    return (int)OTF2_ERROR_INVALID_ARGUMENT;
}

int quell_otf2_finish(struct quell_otf2_writer *writer, const uint64_t *locations, uint64_t count)
{
    OTF2_ErrorCode code = OTF2_Archive_CloseEvtFiles(writer->archive), next;
    if (code == OTF2_SUCCESS)
        code = OTF2_Archive_OpenDefFiles(writer->archive);
        /* Readers expect a file of local definitions for each location, even if it is empty. */
    for (uint64_t i = 0; code == OTF2_SUCCESS && i < count; i++) {
        OTF2_DefWriter *local = OTF2_Archive_GetDefWriter(writer->archive, locations[i]);
        code = local ? OTF2_Archive_CloseDefWriter(writer->archive, local) : OTF2_ERROR_MEM_FAULT;
    }
    next = OTF2_Archive_CloseDefFiles(writer->archive);
    code = code == OTF2_SUCCESS ? next : code;
    if (writer->definitions) {
        next = OTF2_Archive_CloseGlobalDefWriter(writer->archive, writer->definitions);
        code = code == OTF2_SUCCESS ? next : code;
    }
    next = OTF2_Archive_Close(writer->archive);
    OTF2_AttributeList_Delete(writer->attributes);
    free(writer);
    return (int)(code == OTF2_SUCCESS ? next : code);
}
