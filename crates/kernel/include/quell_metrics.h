/* SPDX-License-Identifier: MIT OR Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * The metric container: how much kernel noise a thread suffered, in memory that the thread reads without a system
 * call (the idea of KTAU's metric container, Nataraj et al. 2007, section 2.1).
 *
 * The container is an array of slots. Only quell's BPF programs write it. Slot 0 is a header. Every thread of a command under
 * `quell record -- CMD` owns one of the other slots from its birth to its end. Under `quell trace`, a process that the command
 * did not start itself gets slots for all its threads when it opens the container.
 */
#ifndef QUELL_METRICS_H
#define QUELL_METRICS_H

/* Generated (layout) by tools/make_contract.py from contract/container.py and kernel.py: change it there. */
#define QUELL_METRICS_MAGIC 0x6c6c657571ULL /* "quell" */
#define QUELL_METRICS_VERSION 1

/* What takes a CPU from a thread; the order in which one interrupts another. */
enum quell_kind {
	QUELL_NMI = 0,
	QUELL_TICK = 1, /* the local timer's interrupt */
	QUELL_IRQ = 2, /* devices' interrupts */
	QUELL_IPI = 3, /* other CPUs' interrupts */
	QUELL_SOFTIRQ = 4,
	QUELL_TASK = 5, /* preemptions: from losing the CPU while runnable to having one again */
	QUELL_FAULT = 6, /* page faults */
	QUELL_STEAL = 7, /* time that the hypervisor gave to others while the thread was on a CPU */
	QUELL_KINDS = 8,
};

/* A kind is only ever written at its own level, and a level never interrupts itself: that is what makes a slot
 * consistent without locks. A writer makes its level's number odd, writes, and makes it even again. */
enum quell_level {
	QUELL_LEVEL_NMI = 0,
	QUELL_LEVEL_HARDIRQ = 1, /* tick, irq, ipi, steal */
	QUELL_LEVEL_SOFTIRQ = 2,
	QUELL_LEVEL_TASK = 3, /* preemptions, faults, everything else in the slot */
	QUELL_LEVELS = 4,
};

struct quell_slot {
	unsigned int level_seq[QUELL_LEVELS]; /* odd while that level writes */
	unsigned int tid; /* as the thread itself sees it (its own PID namespace); 0: the slot is free */
	unsigned int pid_namespace; /* inode number of that namespace, as in /proc/self/ns/pid */
	unsigned int global_tid; /* as the first PID namespace sees it */
	unsigned int global_pid;
	unsigned long long start_ns; /* CLOCK_MONOTONIC, when the thread came under watch */
	unsigned long long on_cpu_ns; /* time on a CPU up to its last switch, interrupts included */
	unsigned long long on_since_ns; /* CLOCK_MONOTONIC, when it came onto its CPU; 0 while it is on none */
	unsigned long long run_delay_ns; /* runnable and waiting since its birth, by the kernel's own account, up to its last switch */
	unsigned long long ns[QUELL_KINDS]; /* cache line 1: net time taken, per kind */
	unsigned long long count[QUELL_KINDS]; /* cache line 2: how often */
	/* cache line 3: the fields for the kernel side only */
	unsigned long long off_since_ns; /* when it lost its CPU while runnable; 0: it did not */
	unsigned long long fault_since_ns; /* when the page fault began that it is in; 0: none */
	unsigned long long fault_base_ns; /* time that everything else had taken until then */
	unsigned int preemptor_pid;
	unsigned int cpu; /* the CPU it was on last */
	char preemptor[16];
	char comm[16];
} __attribute__((aligned(256)));

/* Slot 0, seen as a header. */
struct quell_header {
	unsigned long long magic;
	unsigned int version;
	unsigned int slot_size;
	unsigned int slots; /* with the header */
	unsigned int recorder_pid;
};
/* End of what is generated. */

#endif
