// storage measures the file system on a disk, the same binary on Linux and on
// Hardtack. It mounts the device (ext4) on /mnt first.
//
//	storage count DEVICE N    instructions an operation takes, under QEMU's -icount
//	storage names DEVICE N    the same for a directory of N names
//	storage time DEVICE MS    4 KiB through files: rates
//	storage share DEVICE MS   files made and synced in a second, by one process and by eight
//	storage run DEVICE CMD... mounts, and executes a command in /mnt
//
// How instructions are counted, and how a row prints: bench/os/guest/disk.h.
#define _GNU_SOURCE
#define PROGRAM "storage"
#include "../../os/guest/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define AREA (32L << 20) // bytes of a file that is read or written
#define REPS 5

static int must_open(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		die(name);
	return fd;
}

static const char *name_of(const char *dir, const char *prefix, long i)
{
	static char names[4][128];
	static int turn;
	char *s = names[turn = (turn + 1) % 4];
	snprintf(s, sizeof names[0], "%s/%s%ld", dir, prefix, i);
	return s;
}

// The counted operations. i counts all calls of a row.
static char *block;
static int file; // cached, 1 MiB

static void make(long i, int sync)
{
	int fd = must_open(name_of("a", "f", i), O_CREAT | O_EXCL | O_WRONLY);
	if (write(fd, block, 1024) != 1024)
		die("write");
	if (sync && fsync(fd) < 0)
		die("fsync");
	close(fd);
}

static void createsync(long i) { make(i, 1); }

static void create(long i) { make(1000000 + i, 0); }

static void unlinks(long i)
{
	if (unlink(name_of("a", "f", i)) < 0) // what createsync made
		die("unlink");
}

static void renames(long i)
{
	if (rename(name_of("a", "f", 1000000 + i), name_of("b", "g", i)) < 0) // what create made
		die("rename");
}

static void stats(long i)
{
	struct stat st;
	if (stat("deep/er/and/deeper/file", &st) < 0)
		die("stat");
}

static void cachedread(long i)
{
	if (pread(file, block, BLOCK, i % 256 * BLOCK) != BLOCK)
		die("read");
}

static void cachedwrite(long i)
{
	if (pwrite(file, block, BLOCK, i % 256 * BLOCK) != BLOCK)
		die("write");
}

static void appendsync(long i)
{
	static int fd = -1;
	if (fd < 0)
		fd = must_open("log", O_CREAT | O_WRONLY | O_APPEND);
	if (write(fd, block, 200) != 200 || fdatasync(fd) < 0)
		die("append");
}

static const struct {
	const char *name;
	void (*op)(long i);
	int times; // n is multiplied by it
} rows[] = {
	{"createsync", createsync, 1}, {"unlink", unlinks, 1}, {"appendsync", appendsync, 1}, {"create", create, 4},
	{"rename", renames, 4}, {"stat", stats, 20}, {"cachedread", cachedread, 20}, {"cachedwrite", cachedwrite, 20},
};

static void count(int n)
{
	mkdir("a", 0755), mkdir("b", 0755);
	mkdir("deep", 0755), mkdir("deep/er", 0755), mkdir("deep/er/and", 0755), mkdir("deep/er/and/deeper", 0755);
	close(must_open("deep/er/and/deeper/file", O_CREAT | O_WRONLY));
	file = must_open("cached", O_CREAT | O_RDWR);
	for (int i = 0; i < 256; i++)
		cachedwrite(i);
	sync();
	start_spinner();
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
		double per[REPS];
		long i = 0, times = (long)n * rows[r].times;
		for (int rep = -1; rep < REPS; rep++) { // the first warms up
			double round = calibrate();
			struct mark m = mark();
			for (long end = i + times; i < end; i++)
				rows[r].op(i);
			if (rep >= 0)
				per[rep] = since(m, round) / times;
		}
		count_line(rows[r].name, per, REPS, times * REPS);
		sync();
	}
	stop_spinner();
}

static void names(long n)
{
	mkdir("many", 0755);
	start_spinner();
	double per[4];
	double round = calibrate();
	struct mark m = mark();
	for (long i = 0; i < n; i++)
		close(must_open(name_of("many", "a-file-", i), O_CREAT | O_EXCL | O_WRONLY));
	sync();
	per[0] = since(m, round) / n;
	count_line("namecreate", per, 1, n);
	m = mark();
	struct stat st;
	for (long i = 0; i < n; i++)
		if (stat(name_of("many", "a-file-", (long)(next_random() % (uint64_t)n)), &st) < 0)
			die("stat");
	per[0] = since(m, round) / n;
	count_line("namestat", per, 1, n);
	m = mark();
	DIR *d = opendir("many");
	long found = 0;
	while (readdir(d))
		found++;
	closedir(d);
	if (found != n + 2)
		die("readdir");
	per[0] = since(m, round) / n;
	count_line("namelist", per, 1, n);
	m = mark();
	for (long i = 0; i < n; i++)
		if (unlink(name_of("many", "a-file-", i)) < 0)
			die("unlink");
	sync();
	per[0] = since(m, round) / n;
	count_line("nameunlink", per, 1, n);
	stop_spinner();
}

// whole reads or writes the file once through the cache, 4 KiB at a time: MiB/s.
static void whole(const char *name, int writing)
{
	int fd = must_open("file", O_RDWR | O_CREAT);
	if (!writing) {
		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	uint64_t start = now();
	for (long at = 0; at < AREA; at += BLOCK)
		if ((writing ? pwrite(fd, block, BLOCK, at) : pread(fd, block, BLOCK, at)) != BLOCK)
			die("transfer");
	if (writing && fsync(fd) < 0)
		die("fsync");
	rate_line(name, AREA >> 20, (double)(AREA >> 20) / ((double)(now() - start) / 1e9));
	close(fd);
}

enum { RAND = 1, WRITE = 2, SYNC = 4 };

// What a timed process is told.
struct job {
	int kind, processes;
};

static long transfers(int p, uint64_t end, const void *arg)
{
	const struct job *j = arg;
	int fd = must_open("file", O_RDWR | O_DIRECT);
	seed += (uint64_t)p * 7919;
	long at = AREA / j->processes * p, n = 0;
	while (now() < end) {
		at = j->kind & RAND ? (long)(next_random() % (AREA / BLOCK)) * BLOCK : (at + BLOCK) % AREA;
		if ((j->kind & WRITE ? pwrite(fd, block, BLOCK, at) : pread(fd, block, BLOCK, at)) != BLOCK)
			die("transfer");
		if (j->kind & SYNC && fdatasync(fd) < 0)
			die("fdatasync");
		n++;
	}
	return n;
}

// direct lets some processes transfer blocks past the cache: operations a second.
static void direct(const char *name, int kind, int processes, int ms)
{
	at_once(name, processes, ms, transfers, &(struct job){kind, processes});
}

static void timed(int ms)
{
	whole("layout", 1);
	whole("seqwrite", 1);
	whole("seqread", 0);
	direct("directread1", 0, 1, ms), direct("directread4", 0, 4, ms);
	direct("randread1", RAND, 1, ms), direct("randread4", RAND, 4, ms);
	direct("randwrite1", RAND | WRITE, 1, ms), direct("randwrite4", RAND | WRITE, 4, ms);
	direct("syncwrite1", RAND | WRITE | SYNC, 1, ms);
}

static long files(int p, uint64_t end, const void *arg)
{
	const struct job *j = arg;
	char dir[32];
	snprintf(dir, sizeof dir, "s%d-%d", j->processes, p);
	mkdir(dir, 0755);
	long n = 0;
	while (now() < end) {
		int fd = must_open(name_of(dir, "f", n++), O_CREAT | O_EXCL | O_WRONLY);
		if (write(fd, block, 1024) != 1024 || fsync(fd) < 0)
			die("write");
		close(fd);
	}
	return n;
}

// share makes and syncs files in processes of their own directories.
static void share(int processes, int ms)
{
	char name[32];
	snprintf(name, sizeof name, "share%d", processes);
	at_once(name, processes, ms, files, &(struct job){.processes = processes});
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		puts("usage: storage count|names|time|share DEVICE N | run DEVICE CMD...");
		return 2;
	}
	for (int i = 0; access(argv[2], F_OK) < 0 && i < 200; i++) // Linux finds disks in its own time
		usleep(50000);
	mkdir("/mnt", 0755);
	if (mount(argv[2], "/mnt", "ext4", 0, NULL) < 0 || chdir("/mnt") < 0)
		die("mount");
	block = buffer();
	int n = atoi(argv[3]);
	if (strcmp(argv[1], "count") == 0)
		count(n);
	else if (strcmp(argv[1], "names") == 0)
		names(n);
	else if (strcmp(argv[1], "time") == 0)
		timed(n);
	else if (strcmp(argv[1], "share") == 0)
		share(1, n), share(8, n), share(1, n), share(8, n);
	else {
		pid_t pid = fork();
		if (pid == 0) {
			execv(argv[3], argv + 3);
			die(argv[3]);
		}
		waitpid(pid, NULL, 0);
	}
	fflush(stdout);
	if (chdir("/") < 0 || umount("/mnt") < 0)
		die("umount");
	return 0;
}
