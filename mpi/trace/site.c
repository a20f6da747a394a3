/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Where in the program a call is, in words. */
#include "trace.h"

#include <dlfcn.h>
#include <stdio.h>

/* `symbol (object)`, or `object+0xoffset`. Nothing where the MPI's own Fortran functions or an injector called: they
 * are nobody's place. */
void describe_site(const void *site, char *text, size_t size)
{
	Dl_info facts;
	/* The call itself is before the address that it returns to, which may be in the next function. */
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
