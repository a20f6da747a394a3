/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * A program takes its arguments as they are.
 */
#define BPF_PROG(name, ...) name(unsigned long long *ctx, __VA_ARGS__)
