/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What libbpf's headers declare, for the programs as a part of an ordinary C program: tests run them without a kernel.
 */
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, of) of *name
#define __array(name, of) of *name[]
#define __always_inline inline __attribute__((always_inline))

static u64 now_ns;
static void *find(void *map, const void *key);

#define bpf_ktime_get_ns() (now_ns)
#define bpf_get_smp_processor_id() 0
#define bpf_get_current_pid_tgid() 0
#define bpf_get_current_task() 0ul
#define bpf_get_current_task_btf() ((struct task_struct *)0)
#define bpf_get_current_comm(to, size) 0
#define bpf_map_lookup_elem(map, key) find(map, key)
#define bpf_map_update_elem(map, key, value, flags) 0
#define bpf_map_delete_elem(map, key) 0
#define bpf_map_push_elem(map, value, flags) 0
#define bpf_map_pop_elem(map, value) 1
#define bpf_ringbuf_reserve(ring, size, flags) ((void *)0)
#define bpf_ringbuf_submit(record, flags) (void)(record)
#define bpf_probe_read_kernel_str(to, size, from) (*(to) = *(from), 0)
#define bpf_task_pt_regs(task) 0l
