// Rows that need one process and its children: system call, page faults,
// process creation, files.
#define _GNU_SOURCE
#include "osbench.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { page = 4096, region = 4 << 20 };

static void getpid_row(long n)
{
	start();
	for (long i = 0; i < n; i++)
		syscall(SYS_getpid);
	stop();
}

static char *map_region(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void touch(char *p, size_t len)
{
	for (size_t i = 0; i < len; i += page)
		((volatile char *)p)[i] = 1;
}

// fault_row counts the faults alone: mapping and unmapping are outside.
static void fault_row(long n)
{
	uint64_t sum = 0;
	for (long i = 0; i < n; i++) {
		char *p = map_region(region);
		madvise(p, region, MADV_NOHUGEPAGE);
		uint64_t t = now();
		touch(p, region);
		sum += now() - t;
		munmap(p, region);
	}
	took(sum);
}

static void mmap_row(long n)
{
	start();
	for (long i = 0; i < n; i++) {
		char *p = map_region(region);
		madvise(p, region, MADV_NOHUGEPAGE);
		touch(p, region);
		munmap(p, region);
	}
	stop();
}

static void reap(pid_t pid)
{
	int status;
	check(pid, "fork");
	check(waitpid(pid, &status, 0), "waitpid");
	if (status != 0) {
		fprintf(stderr, "osbench: a child ended with status %#x\n", status);
		exit(1);
	}
}

// The rows fork and exit by the bare system calls: glibc's write to pages of its
// own in the child, and each would be a copy.
static void fork_row(long n)
{
	start();
	for (long i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_fork);
		if (pid == 0)
			syscall(SYS_exit_group, 0);
		reap(pid);
	}
	stop();
}

// exec_row runs `tiny`, a static program of one system call, which is beside
// this one.
static void exec_row(long n)
{
	static char path[512];
	if (!path[0]) {
		ssize_t len = readlink("/proc/self/exe", path, sizeof path - 8);
		check(len, "readlink /proc/self/exe");
		path[len] = 0;
		strcpy(strrchr(path, '/') + 1, "tiny");
	}
	char *argv[] = {path, NULL}, *env[] = {NULL};
	start();
	for (long i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_fork);
		if (pid == 0) {
			execve(path, argv, env);
			_exit(127);
		}
		reap(pid);
	}
	stop();
}

// yield_row has two processes yield to each other; one unit is a call of ours,
// the switch to the other process, its call and the switch back.
static void yield_row(long n)
{
	pid_t pid = fork();
	check(pid, "fork");
	if (pid == 0)
		for (;;)
			sched_yield();
	sched_yield();
	start();
	for (long i = 0; i < n; i++)
		sched_yield();
	stop();
	kill(pid, 9);
	waitpid(pid, NULL, 0);
}

static char file[] = "/tmp/osbench.file";
static char data[page];

static int open_file(void)
{
	int fd = open(file, O_RDWR | O_CREAT, 0644);
	check(fd, file);
	return fd;
}

static void open_row(long n)
{
	close(open_file());
	start();
	for (long i = 0; i < n; i++)
		close(open(file, O_RDONLY));
	stop();
	unlink(file);
}

static void write_row(long n)
{
	int fd = open_file();
	check(pwrite(fd, data, page, 0), "pwrite");
	start();
	for (long i = 0; i < n; i++)
		if (pwrite(fd, data, page, 0) != page)
			die("pwrite");
	stop();
	close(fd);
	unlink(file);
}

static void read_row(long n)
{
	int fd = open_file();
	check(pwrite(fd, data, page, 0), "pwrite");
	start();
	for (long i = 0; i < n; i++)
		if (pread(fd, data, page, 0) != page)
			die("pread");
	stop();
	close(fd);
	unlink(file);
}

static void create_row(long n)
{
	start();
	for (long i = 0; i < n; i++) {
		int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0644);
		check(fd, file);
		if (write(fd, data, 1024) != 1024)
			die("write");
		close(fd);
		unlink(file);
	}
	stop();
}

const bench micro_benches[] = {
	{"getpid", getpid_row, 1},
	{"fault", fault_row, region / page},
	{"mmap", mmap_row, region / page},
	{"fork", fork_row, 1},
	{"exec", exec_row, 1},
	{"yield", yield_row, 1},
	{"open", open_row, 1},
	{"write", write_row, 1},
	{"read", read_row, 1},
	{"create", create_row, 1},
	{NULL, NULL, 0},
};
