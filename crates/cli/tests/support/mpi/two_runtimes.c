/* Two modules, each with an OpenMP runtime of its own, as an interpreter loads them: each does its loop once. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*count[2])(int);

	MPI_Init(&argc, &argv);
	for (int module = 0; module < 2; module++) {
		void *loaded = dlopen(argv[module + 1], RTLD_NOW | RTLD_LOCAL);
		if (!loaded)
			return printf("%s\n", dlerror()), 1;
		count[module] = (int (*)(int))dlsym(loaded, "count");
	}
	for (int turn = 0; turn < 6; turn++) {
		if (count[turn % 2](1000) != 1000)
			return printf("module %d does its loop otherwise\n", turn % 2), 1;
	}
	MPI_Finalize();
	return 0;
}
