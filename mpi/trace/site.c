/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Call sites: where they are, and as text.
 *
 * A call in Fortran returns into the MPI's own function for that language, which is no call site of the program. The program's is the
 * return address of that function. How far up the stack it is does not change from call to call, so it is looked up once by unwinding.
 */
#include "trace.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>
#include <unwind.h>

struct addresses mpi_objects;

/* Where the program's return address is, above the frame of the tracer's function that the MPI's function calls at `caller`. */
struct behind {
	const void *caller;
	ptrdiff_t offset; /* 0: unknown, because no address of a return is there */
};

#define BEHIND_MOST 64
static __thread struct behind behind[BEHIND_MOST] __attribute__((tls_model("initial-exec")));

/* The name of the file of an object, without its folder. */
static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_mpi(const char *file)
{
	return !strncmp(file, "libmpi", 6);
}

struct ends {
	uintptr_t from, to;
};

/* Whether an object is neither the MPI's nor one of quell's. */
static bool is_programs(const char *file)
{
	return !is_mpi(file) && strncmp(file, "quell-", 6);
}

static int note_object(struct dl_phdr_info *object, size_t size, void *ends)
{
	struct ends *mpi = ends;
	(void)size;
	if (!is_mpi(file_of(object->dlpi_name)))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + part->p_vaddr;
		if (part->p_type != PT_LOAD)
			continue;
		if (from < mpi->from)
			mpi->from = from;
		if (from + part->p_memsz > mpi->to)
			mpi->to = from + part->p_memsz;
	}
	return 0;
}

void sites_begin(void)
{
	struct ends mpi = { UINTPTR_MAX, 0 };
	dl_iterate_phdr(note_object, &mpi);
	if (mpi.to)
		mpi_objects = (struct addresses){ mpi.from, mpi.to - mpi.from };
}

/* The first frame that belongs neither to the tracer nor to the MPI. */
struct programs_frame {
	const void *site;
	const char *above; /* the address above that of its return address */
};

static _Unwind_Reason_Code look_at(struct _Unwind_Context *context, void *found)
{
	struct programs_frame *program = found;
	const void *site = (const void *)_Unwind_GetIP(context);
	Dl_info facts;
	/* The call is before its return address, which may belong to the next function. */
	if (dladdr((const char *)site - 1, &facts) && facts.dli_fname && !is_programs(file_of(facts.dli_fname)))
		return _URC_NO_REASON;
	*program = (struct programs_frame){ site, (const char *)_Unwind_GetCFA(context) };
	return _URC_END_OF_STACK;
}

static struct programs_frame programs_frame(void)
{
	struct programs_frame found = { NULL, NULL };
	_Unwind_Backtrace(look_at, &found);
	return found;
}

const void *site_behind(const void *caller, const char *frame)
{
	uintptr_t hash = (uintptr_t)caller * 0x9e3779b97f4a7c15u >> 32;
	struct behind *known;
	for (unsigned tried = 0;; tried++) {
		known = &behind[(hash + tried) % BEHIND_MOST];
		if (known->caller == caller)
			break;
		if (tried == BEHIND_MOST)
			return NULL;
		if (!known->caller) {
			struct programs_frame program = programs_frame();
			known->caller = caller;
			known->offset = program.above ? program.above - frame - (ptrdiff_t)sizeof(void *) : 0;
			break;
		}
	}
	mine.behind = known;
	return known->offset ? *(const void *const *)(frame + known->offset) : NULL;
}

bool site_is_right(const void *site)
{
	if (!mine.behind || programs_frame().site == site)
		return true;
	/* The function's frame is not always as large, or functions of the MPI call it from several places. */
	mine.behind->offset = 0;
	return false;
}

/* `symbol (object)` or `object+0xoffset`, a zero, and `0xaddress path`, which readers look up in the object's own symbols. Both are empty if the
 * caller is an injector, or unknown. Returns the number of bytes, with the last zero. */
size_t describe_site(const void *site, char *text, size_t size)
{
	Dl_info facts;
	struct link_map *map;
	const char *call = (const char *)site - 1;
	memset(text, 0, 2);
	if (!site || !dladdr1(call, &facts, (void **)&map, RTLD_DL_LINKMAP) || !facts.dli_fname)
		return 2;
	const char *object = file_of(facts.dli_fname);
	int length;
	if (!is_programs(object))
		return 2;
	if (facts.dli_sname)
		length = snprintf(text, size, "%.200s (%.100s)", facts.dli_sname, object);
	else
		length = snprintf(text, size, "%.200s+0x%zx", object, (size_t)(call - (const char *)facts.dli_fbase));
	text += ++length;
	size -= (size_t)length;
	/* The program itself has no name among the objects. A path that is too long is left out. */
	char program[PATH_MAX] = "";
	const char *path = map->l_name;
	int more = -1;
	if (!*path && readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
		path = program;
	if (*path == '/')
		more = snprintf(text, size, "0x%zx %s", (size_t)((uintptr_t)call - map->l_addr), path);
	if (more < 0 || (size_t)more >= size)
		*text = more = 0;
	return (size_t)(length + more + 1);
}
