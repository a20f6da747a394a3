/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The functions under MPI's names. Every MPI has its calls twice, as MPI_X and as PMPI_X; Fortran's end in the one or the other of C.
 * Both of ours are a jump through one word: to the function that traces the call, or, where nothing is traced, to the MPI's own.
 * So arguments of an MPI that this was not compiled for, whose types are others, pass through untouched.
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

/* Where the entry of each call goes: first to what looks for the MPI, and then through here again. */
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

/* Looks for the MPI, with all registers kept that may hold arguments. On entry the stack is aligned, as two addresses lie on it. */
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

/* What a program gets whose MPI lacks a call or cannot be found. */
static int missing(void)
{
	return MPI_ERR_OTHER;
}

/* A handle to an MPI that an interpreter, as Python, loaded for itself alone: it is not behind this library for the linker. */
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

/* Data may have been moved into the program itself, where all others find it, too. */
static void *find_data(void *handle, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	return found ? found : find(handle, name);
}

/* Whether the program's MPI is the one whose header this was compiled with. */
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

/* Called by the first call of the program; if several threads come at once, each writes the same. */
__attribute__((used)) void quell_find_mpi(void);
__attribute__((used)) void quell_find_mpi(void)
{
	const char *folder = getenv(QUELL_TRACE_FOLDER_VARIABLE);
	void *handle = dlsym(RTLD_NEXT, "PMPI_Init") ? NULL : own_mpi();
	for (int call = 0; call < CALLS; call++) {
		void *found = find(handle, symbols[call]);
		real[call] = found ? found : (void *)missing;
	}
	bool wanted = folder && *folder;
	bool right = right_mpi(handle);
	if (wanted && !right)
		log_wrong_mpi();
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		__atomic_store_n(entries[i].entry, wanted && right ? entries[i].traced : real[entries[i].call], __ATOMIC_RELEASE);
}
