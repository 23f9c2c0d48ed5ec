// The same programs on OpenMP tasks.
//
//   omp fib|stress N WORKERS REPS    prints nanoseconds, a line each
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long fib(int n) {
	if (n < 2)
		return n;
	long x, y;
#pragma omp task shared(x)
	x = fib(n - 1);
	y = fib(n - 2);
#pragma omp taskwait
	return x + y;
}

static void stress(int n) {
	if (n == 0)
		return;
#pragma omp task
	stress(n - 1);
	stress(n - 1);
#pragma omp taskwait
}

static long plain(int n) { return n < 2 ? n : plain(n - 1) + plain(n - 2); }

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: omp fib|stress N WORKERS REPS\n");
		return 2;
	}
	int n = atoi(argv[2]), reps = atoi(argv[4]);
	omp_set_dynamic(0);
	omp_set_num_threads(atoi(argv[3]));
#pragma omp parallel
#pragma omp single
	for (int r = 0; r < reps; r++) {
		double t = omp_get_wtime();
		long v = 0;
		if (!strcmp(argv[1], "fib"))
			v = fib(n);
		else
			stress(n);
		t = omp_get_wtime() - t;
		if (!strcmp(argv[1], "fib") && v != plain(n))
			exit(1);
		printf("%.0f\n", t * 1e9);
	}
	return 0;
}
