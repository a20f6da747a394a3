/* Keeps the first error message of a call: the library reports the cause first, then once for each of its callers. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

#include <otf2/otf2.h>

#include "quell_otf2.h"

static _Thread_local char first[512];
static _Thread_local char declared[512];

static OTF2_ErrorCode
keep(void *user, const char *file, uint64_t line, const char *function, OTF2_ErrorCode code, const char *format, va_list arguments)
{
    (void)user, (void)file, (void)line, (void)function;
    if (first[0])
        return code;
    int length = snprintf(first, sizeof first, "%s", OTF2_Error_GetDescription(code));
    if (format && format[0] && length > 0 && (size_t)length + 2 < sizeof first) {
        first[length] = ':';
        first[length + 1] = ' ';
        vsnprintf(first + length + 2, sizeof first - (size_t)length - 2, format, arguments);
    }
    return code;
}

void problem_listen(void)
{
    OTF2_Error_RegisterCallback(keep, NULL);
}

const char *quell_otf2_problem(void)
{
    snprintf(declared, sizeof declared, "%s", first);
    first[0] = 0;
    return declared;
}
