/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

void run_loggp(struct job *job)
{
	(void)job;
	fail("not here yet");
}
