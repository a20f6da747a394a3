/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Describes a call site as text. */
#include "trace.h"

#include <dlfcn.h>
#include <stdio.h>

/* `symbol (object)`, or `object+0xoffset`. Empty if the caller is one of the MPI's own Fortran functions or an injector, which are not
 * call sites of the program. */
void describe_site(const void *site, char *text, size_t size)
{
	Dl_info facts;
	/* The call is before its return address, which may belong to the next function. */
	const char *call = (const char *)site - 1;
	text[0] = 0;
	if (!dladdr(call, &facts) || !facts.dli_fname)
		return;
	const char *slash = strrchr(facts.dli_fname, '/'), *object = slash ? slash + 1 : facts.dli_fname;
	if (!strncmp(object, "libmpi", 6) || !strncmp(object, "quell-", 6))
		return;
	if (facts.dli_sname)
		snprintf(text, size, "%.200s (%.100s)", facts.dli_sname, object);
	else
		snprintf(text, size, "%.200s+0x%zx", object, (size_t)(call - (const char *)facts.dli_fbase));
}
