/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The functions under MPI's names. Every MPI exports each call twice, as MPI_X and as PMPI_X; Fortran bindings end in one of the two C
 * functions. Each of ours is a jump through one word: to the function that traces the call, or, if the program is not traced, to the
 * MPI's own. So arguments of an MPI for which this was not compiled, with other types, pass through untouched.
 */
#include "trace.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef __x86_64__
#error "the tracer's entries are written for x86-64 alone"
#endif

void *real[CALLS];
#ifdef OPEN_MPI
void *handles[HANDLE_COUNT];
#endif

/* The target of each call's entry: at first the code that looks for the MPI, and then jumps through here again. */
#define CALL(name)                                                      \
	extern void *quell_entry_##name;                                \
	extern int traced_##name();                                     \
	__asm__(".text\n"                                               \
		".globl MPI_" #name ", PMPI_" #name "\n"                \
		".type MPI_" #name ", @function\n"                      \
		".type PMPI_" #name ", @function\n"                     \
		"MPI_" #name ":\n"                                      \
		"PMPI_" #name ":\n"                                     \
		"	jmp *quell_entry_" #name "(%rip)\n"             \
		"quell_first_" #name ":\n"                              \
		"	call quell_first\n"                             \
		"	jmp *quell_entry_" #name "(%rip)\n"             \
		".size MPI_" #name ", .-MPI_" #name "\n"                \
		".size PMPI_" #name ", .-PMPI_" #name "\n"              \
		".data\n"                                               \
		".balign 8\n"                                           \
		".globl quell_entry_" #name "\n"                        \
		".hidden quell_entry_" #name "\n"                       \
		"quell_entry_" #name ": .quad quell_first_" #name "\n"  \
		".text\n");
#define HELPER(name)
#include "calls.h"
#undef CALL
#undef HELPER

/* Looks for the MPI, and preserves all registers that may hold arguments. On entry the stack is aligned, because two addresses are on it. */
__asm__(".text\n"
	"quell_first:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rsp, %rbp\n"
	"	sub $184, %rsp\n"
	"	and $-16, %rsp\n"
	"	mov %rdi, (%rsp)\n"
	"	mov %rsi, 8(%rsp)\n"
	"	mov %rdx, 16(%rsp)\n"
	"	mov %rcx, 24(%rsp)\n"
	"	mov %r8, 32(%rsp)\n"
	"	mov %r9, 40(%rsp)\n"
	"	mov %rax, 48(%rsp)\n"
	"	movups %xmm0, 56(%rsp)\n"
	"	movups %xmm1, 72(%rsp)\n"
	"	movups %xmm2, 88(%rsp)\n"
	"	movups %xmm3, 104(%rsp)\n"
	"	movups %xmm4, 120(%rsp)\n"
	"	movups %xmm5, 136(%rsp)\n"
	"	movups %xmm6, 152(%rsp)\n"
	"	movups %xmm7, 168(%rsp)\n"
	"	call quell_find_mpi\n"
	"	mov (%rsp), %rdi\n"
	"	mov 8(%rsp), %rsi\n"
	"	mov 16(%rsp), %rdx\n"
	"	mov 24(%rsp), %rcx\n"
	"	mov 32(%rsp), %r8\n"
	"	mov 40(%rsp), %r9\n"
	"	mov 48(%rsp), %rax\n"
	"	movups 56(%rsp), %xmm0\n"
	"	movups 72(%rsp), %xmm1\n"
	"	movups 88(%rsp), %xmm2\n"
	"	movups 104(%rsp), %xmm3\n"
	"	movups 120(%rsp), %xmm4\n"
	"	movups 136(%rsp), %xmm5\n"
	"	movups 152(%rsp), %xmm6\n"
	"	movups 168(%rsp), %xmm7\n"
	"	leave\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n");

#define CALL(name) "PMPI_" #name,
#define HELPER(name) "PMPI_" #name,
static const char *const symbols[CALLS] = {
#include "calls.h"
};
#undef CALL
#undef HELPER

#define CALL(name) "MPI_" #name,
#define HELPER(name) "MPI_" #name,
const char *const call_names[CALLS] = {
#include "calls.h"
};
#undef CALL
#undef HELPER

#define CALL(name) { CALL_##name, &quell_entry_##name, (void *)traced_##name },
#define HELPER(name)
static const struct {
	enum call call;
	void **entry;
	void *traced;
} entries[] = {
#include "calls.h"
};
#undef CALL
#undef HELPER

/* What a call returns that the MPI lacks, or if no MPI is found. */
static int missing(void)
{
	return MPI_ERR_OTHER;
}

/* Finds an MPI that an interpreter such as Python loaded with RTLD_LOCAL: it is not behind this library in the linker's search order. */
static int note(struct dl_phdr_info *object, size_t size, void *found)
{
	const char *file = strrchr(object->dlpi_name, '/');
	(void)size;
	if (!file || strncmp(file, "/libmpi", 7))
		return 0;
	snprintf(found, 4096, "%s", object->dlpi_name);
	return 1;
}

static void *own_mpi(void)
{
	char path[4096] = "";
	dl_iterate_phdr(note, path);
	return *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static void *find(void *handle, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	return found || !handle ? found : dlsym(handle, name);
}

/* Data may have been moved into the program itself by a copy relocation, and all other objects then use it there, too. */
static void *find_data(void *handle, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	return found ? found : find(handle, name);
}

/* Whether the program's MPI is the one with whose header this was compiled. */
static bool right_mpi(void *handle)
{
#ifdef OPEN_MPI
	static const char *const names[HANDLE_COUNT] = {
#define HANDLE(name) #name,
		HANDLES(HANDLE)
#undef HANDLE
	};
	for (int i = 0; i < HANDLE_COUNT; i++) {
		handles[i] = find_data(handle, names[i]);
		if (!handles[i])
			return false;
	}
	return true;
#else
	return !find_data(handle, "ompi_mpi_comm_world");
#endif
}

/* The program's first call gets here. If several threads do so at the same time, each writes the same values. */
__attribute__((used)) void quell_find_mpi(void);
__attribute__((used)) void quell_find_mpi(void)
{
	const char *folder = getenv(QUELL_TRACE_FOLDER_VARIABLE);
	void *handle = dlsym(RTLD_NEXT, "PMPI_Init") ? NULL : own_mpi();
	for (int call = 0; call < CALLS; call++) {
		void *found = find(handle, symbols[call]);
		real[call] = found ? found : (void *)missing;
	}
	sites_begin();
	bool wanted = folder && *folder;
	bool right = right_mpi(handle);
	if (wanted && !right)
		log_wrong_mpi();
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		__atomic_store_n(entries[i].entry, wanted && right ? entries[i].traced : real[entries[i].call], __ATOMIC_RELEASE);
}
