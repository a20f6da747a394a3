/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * No kernel, no fields.
 */
#define BPF_CORE_READ(from, ...) 0
#define BPF_CORE_READ_STR_INTO(to, ...) (void)0
#define bpf_core_field_exists(...) 0
#define bpf_core_field_offset(...) 0
#define bpf_core_type_size(...) 0
#define bpf_core_enum_value_exists(...) 0
