// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The kernel recorder: one object, with a file per kind of source. Hooks: irq_vectors, irq, softirq and nmi tracepoints
// (interrupts.h, steal.h); timer, workqueue, csd, ipi and waking tracepoints (causes.h); sched_switch (switches.h); fork
// and exec (threads.h); page faults (faults.h). Adopting a running process (adopt.h) uses no hook. Programs whose hook this kernel
// lacks are not loaded. All hooks but one are typed tracepoints: many kernels of compute nodes have neither kprobes nor fentry.

#include "interrupts.h"
#include "causes.h"
#include "switches.h"
#include "threads.h"
#include "adopt.h"
#include "faults.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
