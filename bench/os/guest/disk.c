// diskbench measures a disk through its device file, 4 KiB at a time and past
// the cache, the same binary on Linux and on Hardtack.
//
//	diskbench time DEVICE MS    operations a second: reads and writes, in order and
//	                            at random, by one process and by four; writes that
//	                            fdatasync follows; and MiB a second through the cache
//	diskbench count DEVICE N    instructions an operation takes, under QEMU's -icount
//
// How instructions are counted, and how a row prints: disk.h.
#define _GNU_SOURCE
#define PROGRAM "diskbench"
#include "disk.h"

#include <fcntl.h>

#define AREA (64L << 20) // bytes of the disk that are used

enum { SEQ = 0, RAND = 1, READ = 0, WRITE = 2, SYNC = 4 };

static const struct {
	const char *name;
	int kind;
} rows[] = {
	{"seqread", SEQ | READ}, {"randread", RAND | READ}, {"seqwrite", SEQ | WRITE}, {"randwrite", RAND | WRITE},
	{"syncwrite", RAND | WRITE | SYNC},
};

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

// What a timed process is told.
struct job {
	const char *device;
	int row, processes;
};

static long transfers(int p, uint64_t end, const void *arg)
{
	const struct job *j = arg;
	int fd = open_disk(j->device, O_DIRECT);
	char *b = buffer();
	seed += (uint64_t)p * 7919;
	long at = AREA / j->processes * p, n = 0;
	while (now() < end) {
		one(fd, b, rows[j->row].kind, &at);
		n++;
	}
	return n;
}

// rate lets some processes work for ms milliseconds.
static void rate(const char *device, int row, int processes, int ms)
{
	char name[32];
	snprintf(name, sizeof name, "%s%d", rows[row].name, processes);
	at_once(name, processes, ms, transfers, &(struct job){device, row, processes});
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
	rate_line(writing ? "cachedwrite" : "cachedread", AREA >> 20, (double)(AREA >> 20) / ((double)(now() - start) / 1e9));
	close(fd);
}

static void count(const char *device, int n)
{
	enum { REPS = 7 };
	int fd = open_disk(device, O_DIRECT);
	char *b = buffer();
	start_spinner();
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
		double per[REPS];
		long at = 0;
		for (int i = 0; i < 20; i++) // warm up
			one(fd, b, rows[r].kind, &at);
		for (int rep = 0; rep < REPS; rep++) {
			double round = calibrate();
			struct mark m = mark();
			for (int i = 0; i < n; i++)
				one(fd, b, rows[r].kind, &at);
			per[rep] = since(m, round) / n;
		}
		count_line(rows[r].name, per, REPS, (long)n * REPS);
	}
	stop_spinner();
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
