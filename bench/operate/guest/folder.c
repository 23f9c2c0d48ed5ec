// folder measures a file system, the same binary on Linux and on Hardtack: a folder of the
// host, or a disk. It mounts it on /mnt first, and counts the instructions that an operation takes,
// under QEMU's -icount.
//
//	folder TYPE SOURCE OPTIONS N
//
// OPTIONS may be "-". How instructions are counted, and how a row prints:
// bench/os/guest/disk.h.
#define _GNU_SOURCE
#define PROGRAM "folder"
#include "../../os/guest/disk.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define REPS 5
#define LARGE (1 << 20)

static char *data; // LARGE bytes
static int file;   // of LARGE bytes

static const char *name_of(long i)
{
	static char s[64];
	snprintf(s, sizeof s, "d%ld/f%ld", i % 8, i);
	return s;
}

static void create(long i)
{
	int fd = open(name_of(i), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, 1024) != 1024 || close(fd) < 0)
		die("create");
}

static void stats(long i)
{
	struct stat st;
	if (stat(name_of(i), &st) < 0 || st.st_size != 1024)
		die("stat");
}

static void openread(long i)
{
	char b[1024];
	int fd = open(name_of(i), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, b, sizeof b) != sizeof b || close(fd) < 0)
		die("read");
}

static void unlinks(long i)
{
	if (unlink(name_of(i)) < 0)
		die("unlink");
}

static void write4k(long i)
{
	if (pwrite(file, data, BLOCK, i % (LARGE / BLOCK) * BLOCK) != BLOCK)
		die("pwrite");
}

static void read4k(long i)
{
	if (pread(file, data, BLOCK, i % (LARGE / BLOCK) * BLOCK) != BLOCK)
		die("pread");
}

// A MiB goes to the host: fsync, for those that keep it.
static void write1m(long i)
{
	data[0] = (char)i;
	if (pwrite(file, data, LARGE, 0) != LARGE || fsync(file) < 0)
		die("pwrite");
}

static void read1m(long i)
{
	(void)i;
	if (pread(file, data, LARGE, 0) != LARGE)
		die("pread");
}

// git is one `git status` of the repository in r, in a process of its own. The first one
// stores what stat tells of its files.
static void git(long i)
{
	(void)i;
	int status;
	pid_t pid = vfork();
	if (pid == 0) {
		execl("/usr/bin/git", "git", "-C", "/mnt/r", "status", "--porcelain", (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		errno = 0;
		die("git status");
	}
}

// run counts n calls, REPS times.
static void run(const char *name, void (*op)(long), long n)
{
	double per[REPS], round = calibrate();
	for (int r = 0; r < REPS; r++) {
		struct mark m = mark();
		for (long i = 0; i < n; i++)
			op(r * n + i);
		per[r] = since(m, round) / (double)n;
	}
	count_line(name, per, REPS, n);
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		puts("usage: folder TYPE SOURCE OPTIONS N");
		return 2;
	}
	if (argv[2][0] == '/')
		for (int i = 0; access(argv[2], F_OK) < 0 && i < 200; i++) // Linux finds disks in its own time
			usleep(50000);
	mkdir("/mnt", 0755);
	if (mount(argv[2], "/mnt", argv[1], 0, argv[3][0] == '-' ? NULL : argv[3]) < 0 || chdir("/mnt") < 0)
		die("mount");
	long n = atol(argv[4]);
	data = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		die("mmap");
	memset(data, 'x', LARGE);
	for (int i = 0; i < 8; i++) {
		char d[8];
		snprintf(d, sizeof d, "d%d", i);
		if (mkdir(d, 0755) < 0)
			die("mkdir");
	}
	file = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	if (file < 0 || pwrite(file, data, LARGE, 0) != LARGE)
		die("file");
	start_spinner();
	run("create", create, n);
	run("stat", stats, n);
	run("openread", openread, n);
	run("write4k", write4k, n);
	run("read4k", read4k, n);
	run("write1m", write1m, 4);
	run("read1m", read1m, 4);
	run("gitstatus", git, 1);
	run("unlink", unlinks, n);
	stop_spinner();
	return 0;
}
