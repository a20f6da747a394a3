/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * The few kernel types that the programs read. Only names matter: the loader finds each field's place in the running
 * kernel by its BTF (CO-RE), so nothing here has to match a kernel version.
 */
#ifndef QUELL_VMLINUX_H
#define QUELL_VMLINUX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;

enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
};

enum bpf_func_id___new {
	BPF_FUNC_get_current_task_btf___new = 158,
	BPF_FUNC_task_pt_regs___new = 175,
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
};

struct thread_info {
	u32 cpu;
};

struct rq {
	u64 prev_steal_time;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct task_struct {
	struct thread_info thread_info;
	struct sched_entity se;
	unsigned int __state;
	unsigned int cpu;
	int pid;
	int tgid;
	int exit_state;
	struct sched_info sched_info;
	struct pid *thread_pid;
	char comm[16];
};

/* The number of the system call that a task is in; negative if it is in none. */
struct pt_regs {
#ifdef __TARGET_ARCH_arm64
	__s32 syscallno;
#else
	unsigned long orig_ax;
#endif
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct task_struct___old {
	long state;
};

struct irqaction {
	const char *name;
};

struct hrtimer {
	void *function;
};

struct timer_list {
	void *function;
};

struct work_struct {
	void *func;
};

#pragma clang attribute pop

#endif
