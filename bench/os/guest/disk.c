// diskbench measures a disk through its device file, 4 KiB at a time and past
// the cache, the same binary on Linux and on Hardtack.
//
//	diskbench time DEVICE MS    operations a second: reads and writes, in order and
//	                            at random, by one process and by four; writes that
//	                            fdatasync follows; and MiB a second through the cache
//	diskbench count DEVICE N    instructions an operation takes, under QEMU's -icount
//
// Instructions. While a program waits for the disk the processor would be idle,
// and QEMU's counting clock would jump. So a second process spins all the time
// and counts its rounds; what the clock shows beyond these rounds is the
// operation's: system call, interrupt, and the switches between the two.
//
// A row prints as `name operations median minimum` (count) or as
// `name operations rate rate` (time).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define AREA (64L << 20) // bytes of the disk that are used

enum { SEQ = 0, RAND = 1, READ = 0, WRITE = 2, SYNC = 4 };

static const struct {
	const char *name;
	int kind;
} rows[] = {
	{"seqread", SEQ | READ}, {"randread", RAND | READ}, {"seqwrite", SEQ | WRITE}, {"randwrite", RAND | WRITE},
	{"syncwrite", RAND | WRITE | SYNC},
};

static _Noreturn void die(const char *what)
{
	printf("diskbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t ticks(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return (uint64_t)hi << 32 | lo;
}

// open_disk waits for the device: Linux finds disks in its own time.
static int open_disk(const char *name, int flags)
{
	for (int i = 0; i < 200; i++) {
		int fd = open(name, O_RDWR | O_CLOEXEC | flags);
		if (fd >= 0)
			return fd;
		usleep(50000);
	}
	die(name);
}

static char *buffer(void)
{
	char *b = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED)
		die("mmap");
	memset(b, 0x5a, BLOCK);
	return b;
}

static uint64_t seed = 88172645463325252ull;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

// one does an operation; at is the place of the one before.
static void one(int fd, char *b, int kind, long *at)
{
	*at = kind & RAND ? (long)(next_random() % (AREA / BLOCK)) * BLOCK : (*at + BLOCK) % AREA;
	ssize_t n = kind & WRITE ? pwrite(fd, b, BLOCK, *at) : pread(fd, b, BLOCK, *at);
	if (n != BLOCK)
		die("transfer");
	if (kind & SYNC && fdatasync(fd) < 0)
		die("fdatasync");
}

// rate lets some processes work for ms milliseconds.
static void rate(const char *device, int row, int processes, int ms)
{
	volatile long *counts = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = now();
	for (int p = 0; p < processes; p++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		int fd = open_disk(device, O_DIRECT);
		char *b = buffer();
		seed += (uint64_t)p * 7919;
		long at = AREA / processes * p, n = 0;
		while (now() - start < (uint64_t)ms * 1000000u) {
			one(fd, b, rows[row].kind, &at);
			n++;
		}
		counts[p * 8] = n;
		_exit(0);
	}
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status;
	double seconds = (double)(now() - start) / 1e9;
	long sum = 0;
	for (int p = 0; p < processes; p++)
		sum += counts[p * 8];
	if (!failed)
		printf("%s%d %ld %.1f %.1f\n", rows[row].name, processes, sum, (double)sum / seconds, (double)sum / seconds);
	fflush(stdout);
	munmap((void *)counts, BLOCK);
}

// cached reads or writes AREA bytes through the cache, 64 KiB at a time.
static void cached(const char *device, int writing)
{
	enum { CHUNK = 64 << 10 };
	static char b[CHUNK];
	memset(b, 0x33, sizeof b);
	int fd = open_disk(device, 0);
	posix_fadvise(fd, 0, AREA, POSIX_FADV_DONTNEED);
	uint64_t start = now();
	for (long at = 0; at < AREA; at += CHUNK)
		if ((writing ? pwrite(fd, b, CHUNK, at) : pread(fd, b, CHUNK, at)) != CHUNK)
			die("transfer");
	if (writing && fsync(fd) < 0)
		die("fsync");
	double rate = (double)(AREA >> 20) / ((double)(now() - start) / 1e9);
	close(fd);
	printf("cached%s %ld %.1f %.1f\n", writing ? "write" : "read", AREA >> 20, rate, rate);
	fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static volatile uint64_t *rounds;

static void sleep_ms(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static void count(const char *device, int n)
{
	enum { REPS = 7 };
	rounds = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open_disk(device, O_DIRECT);
	char *b = buffer();
	pid_t spinner = fork();
	if (spinner == 0) {
		setpriority(PRIO_PROCESS, 0, 19);
		for (;;)
			(*rounds)++;
	}
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
		double per[REPS];
		long at = 0;
		for (int i = 0; i < 20; i++) // warm up
			one(fd, b, rows[r].kind, &at);
		for (int rep = 0; rep < REPS; rep++) {
			uint64_t t = ticks(), c = *rounds;
			sleep_ms(40);
			double round = (double)(ticks() - t) / (double)(*rounds - c);
			t = ticks(), c = *rounds;
			for (int i = 0; i < n; i++)
				one(fd, b, rows[r].kind, &at);
			per[rep] = ((double)(ticks() - t) - (double)(*rounds - c) * round) / n;
		}
		qsort(per, REPS, sizeof per[0], by_value);
		printf("%s %d %.0f %.0f\n", rows[r].name, n * REPS, per[REPS / 2], per[0]);
		fflush(stdout);
	}
	kill(spinner, SIGKILL);
	wait(NULL);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		puts("usage: diskbench time|count DEVICE N");
		return 2;
	}
	close(open_disk(argv[2], 0));
	if (strcmp(argv[1], "count") == 0) {
		count(argv[2], atoi(argv[3]));
		return 0;
	}
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
		for (int processes = 1; processes <= 4; processes += 3)
			rate(argv[2], (int)r, processes, atoi(argv[3]));
	cached(argv[2], 1);
	cached(argv[2], 0);
	return 0;
}
