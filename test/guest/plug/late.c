// late has processors go off and on while threads compute, talk, sleep and are bound, in a
// machine that counts instructions, and prints how often it did, what was lost, and how
// late the sleepers woke at worst, in microseconds: those that are bound to a processor
// which goes, and the others.
#include "../c/gt.h"
#include <pthread.h>

enum { spinners = 6, sleepers = 4, pairs = 2 };

static _Atomic int over;
static _Atomic long woken[sleepers], worst[sleepers], spun[spinners], passed[pairs], wrong;

static long usec(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void pin(uint64_t mask)
{
	if (syscall(SYS_sched_setaffinity, 0, 8, &mask) && errno != EINVAL)
		wrong++;
}

static void *spins(void *arg)
{
	while (!over) {
		for (int i = 0; i < 3333; i++)
			__asm__ volatile("nop");
		__builtin_ia32_pause(); // a machine that counts instructions goes on with the next processor
		spun[(long)arg]++;
	}
	return 0;
}

// sleeps is for 1 ms again and again; half of them are bound to a processor that goes.
static void *sleeps(void *arg)
{
	long i = (long)arg;
	for (long n = 0; !over; n++) {
		if (i % 2 && n % 50 == 0)
			pin(2);
		long before = usec();
		usleep(1000);
		long late = usec() - before - 1000;
		if (late > worst[i])
			worst[i] = late;
		woken[i]++;
	}
	return 0;
}

static int way[pairs][2][2];
static void *answers(void *arg)
{
	long i = (long)arg, n;
	while (read(way[i][0][0], &n, 8) == 8)
		write(way[i][1][1], &n, 8);
	return 0;
}

static void *asks(void *arg)
{
	long i = (long)arg, back;
	for (long n = 1; !over; n++) {
		if (i)
			usleep(200);
		back = 0;
		__builtin_ia32_pause(); // as above: without it, the processors after this one have no turn
		write(way[i][0][1], &n, 8);
		if (read(way[i][1][0], &back, 8) != 8 || back != n)
			wrong++;
		passed[i] = n;
	}
	close(way[i][0][1]);
	return 0;
}

static int turn(int cpu, const char *on)
{
	char path[100];
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
	int fd = open(path, O_WRONLY), n = write(fd, on, 1);
	close(fd);
	return n;
}

// went reports whether all counters have gone on.
static int went(_Atomic long *at, long *was, int n)
{
	int all = 1;
	for (int i = 0; i < n; i++) {
		all &= until(at[i] > was[i]);
		was[i] = at[i];
	}
	return all;
}

int child_main(int argc, char **argv)
{
	(void)gt_last; // there are no tests
	int rounds = argc > 1 ? atoi(argv[1]) : 30, cpus = sysconf(_SC_NPROCESSORS_CONF), stuck = 0;
	long was[3][8] = {{0}};
	pthread_t t[spinners + sleepers + 2 * pairs];
	int n = 0;
	for (long i = 0; i < spinners; i++)
		pthread_create(&t[n++], 0, spins, (void *)i);
	for (long i = 0; i < sleepers; i++)
		pthread_create(&t[n++], 0, sleeps, (void *)i);
	for (long i = 0; i < pairs; i++) {
		pipe(way[i][0]), pipe(way[i][1]);
		pthread_create(&t[n++], 0, asks, (void *)i);
		pthread_create(&t[n++], 0, answers, (void *)i);
	}
	for (int r = 0; r < rounds; r++) {
		int cpu = 1 + r % (cpus - 1);
		wrong += turn(cpu, "0") != 1;
		if (r % 3 == 0)
			usleep(3000);
		wrong += turn(cpu, "1") != 1;
		if (r % 2 == 0)
			usleep(2000);
		if (r % 10 == 9)
			stuck += !went(spun, was[0], spinners) + !went(woken, was[1], sleepers) + !went(passed, was[2], pairs);
	}
	over = 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("rounds %d wrong %ld stuck %d late %ld bound %ld\n", rounds, (long)wrong, stuck, worst[0] > worst[2] ? worst[0] : worst[2],
	       worst[1] > worst[3] ? worst[1] : worst[3]);
	return 0;
}
