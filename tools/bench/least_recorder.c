// Loads the object that is its first argument, attaches its programs where this kernel has their hooks, and prints after the number of seconds that the
// second is what they cost by the kernel's own account (bpf_stats).

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int quiet(enum libbpf_print_level level, const char *format, va_list of)
{
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	libbpf_set_print(quiet);
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object)) {
		perror(argv[1]);
		return 1;
	}
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bpf_program *program;
	unsigned long long ns = 0, runs = 0;
	unsigned attached = 0;
	bpf_object__for_each_program(program, object)
		attached += bpf_program__attach(program) != NULL;
	sleep(atoi(argv[2]));
	bpf_object__for_each_program(program, object) {
		struct bpf_prog_info info = {};
		unsigned length = sizeof(info);
		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
			return 1;
		ns += info.run_time_ns;
		runs += info.run_cnt;
	}
	close(stats);
	printf("{\"schema\": \"quell.bench-least-recorder/1\", \"attached\": %u, \"runs\": %llu, \"ns\": %llu}\n", attached, runs, ns);
	return 0;
}
