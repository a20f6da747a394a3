/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Conjugate gradients on the 7-point Laplacian of a box, cut into slabs: a halo exchange and two all-reduces in each iteration.
 *
 *     cg ITERATIONS EDGE
 *
 * EDGE x EDGE x EDGE points on each rank. Prints what the iterations took, in ns, and the squared residual, on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int edge, below, above;
static size_t layer, inner;

/* The points of a vector, with a layer of a neighbour's before and one behind. */
static double *vector(void)
{
	double *all = calloc(inner + 2 * layer, sizeof(*all));

	if (!all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return all + layer;
}

static double dot(const double *a, const double *b)
{
	double mine = 0, all;

	for (size_t at = 0; at < inner; at++)
		mine += a[at] * b[at];
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

static void exchange(double *x)
{
	MPI_Sendrecv(x, (int)layer, MPI_DOUBLE, below, 1, x + inner, (int)layer, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(x + inner - layer, (int)layer, MPI_DOUBLE, above, 2, x - layer, (int)layer, MPI_DOUBLE, below, 2,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* y = A x */
static void apply(double *x, double *y)
{
	exchange(x);
	for (int k = 0; k < edge; k++)
		for (int j = 0; j < edge; j++)
			for (int i = 0; i < edge; i++) {
				size_t at = (size_t)k * layer + (size_t)j * (size_t)edge + (size_t)i;
				double sides = *(x + at - layer) + x[at + layer];

				sides += (i > 0 ? x[at - 1] : 0) + (i + 1 < edge ? x[at + 1] : 0);
				sides += (j > 0 ? *(x + at - edge) : 0) + (j + 1 < edge ? x[at + (size_t)edge] : 0);
				y[at] = 6.01 * x[at] - sides;
			}
}

int main(int argc, char **argv)
{
	int rank, ranks, iterations;
	double begin, rho;

	MPI_Init(&argc, &argv);
	if (argc != 3)
		MPI_Abort(MPI_COMM_WORLD, 2);
	iterations = atoi(argv[1]);
	edge = atoi(argv[2]);
	layer = (size_t)edge * (size_t)edge;
	inner = layer * (size_t)edge;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	double *x = vector(), *r = vector(), *p = vector(), *q = vector();
	for (size_t at = 0; at < inner; at++)
		p[at] = r[at] = 1;
	rho = dot(r, r);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int iteration = 0; iteration < iterations; iteration++) {
		apply(p, q);
		double step = rho / (dot(p, q) + 1e-300), last = rho;
		for (size_t at = 0; at < inner; at++) {
			x[at] += step * p[at];
			r[at] -= step * q[at];
		}
		rho = dot(r, r);
		for (size_t at = 0; at < inner; at++)
			p[at] = r[at] + rho / (last + 1e-300) * p[at];
	}
	if (rank == 0)
		printf("%.0f %g\n", 1e9 * (MPI_Wtime() - begin), rho);
	MPI_Finalize();
	return 0;
}
