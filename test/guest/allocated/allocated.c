/*
 * What system calls allocate on the kernel's heap, once they have been used a
 * while: /proc/hardtack/allocated has the bytes of the asking thread's goroutine, exactly. Reading
 * it allocates too; that is measured without a call between and taken off.
 *
 * Prints "NAME BYTES" for each, of CALLS calls together.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* FEW bytes are none: see allocatedNow in allocated_test.go. */
enum { CALLS = 4096, WARM = 256, TRIES = 20, FEW = 1024 };

static void die(const char *what)
{
	printf("allocated: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The count of the kernel's goroutine that runs this thread. */
static long count(void)
{
	static char text[1 << 16];
	int fd = open("/proc/hardtack/allocated", O_RDONLY);
	ssize_t len;
	long bytes;

	if (fd < 0 || (len = read(fd, text, sizeof text - 1)) <= 0)
		die("/proc/hardtack/allocated");
	close(fd);
	text[len] = 0;
	if (sscanf(text, "asking %ld", &bytes) != 1)
		die(text);
	return bytes;
}

static int pipes[2], ping[2], pong[2], unix_[2], files, epolls, events;
static char page[4096];
static uint32_t word;
static char *memory;

static void call_getpid(void) { syscall(SYS_getpid); }
static void call_clock(void) { struct timespec t; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); }
static void call_yield(void) { syscall(SYS_sched_yield); }
static void call_lseek(void) { lseek(files, 0, SEEK_SET); }
static void call_fstat(void) { struct stat s; fstat(files, &s); }
static void call_futex_wake(void) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
static void call_futex_again(void) { syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0); }
static void call_futex_wait(void)
{
	struct timespec t = { 0, 1000 };
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}
static void call_epoll(void)
{
	struct epoll_event e[4];
	if (epoll_wait(epolls, e, 4, 0) != 1)
		die("epoll_wait");
}
static void call_poll(void)
{
	struct pollfd p[2] = { { events, POLLIN, 0 }, { pipes[0], POLLIN, 0 } };
	if (poll(p, 2, 0) != 1)
		die("poll");
}
static void call_eventfd(void)
{
	uint64_t v = 1;
	if (write(events, &v, 8) != 8 || read(events, &v, 8) != 8 || (v = 1, write(events, &v, 8) != 8))
		die("eventfd");
}
static void call_pipe(void)
{
	if (write(pipes[1], page, 5) != 5 || read(pipes[0], page, 5) != 5)
		die("pipe");
}
static void call_pingpong(void)
{
	if (write(ping[1], page, 5) != 5 || read(pong[0], page, 5) != 5)
		die("pipes to the other process");
}
static void call_unix(void)
{
	if (write(unix_[0], page, 5) != 5 || read(unix_[1], page, 5) != 5)
		die("socketpair");
}
static void call_pread(void)
{
	if (pread(files, page, 4096, 0) != 4096)
		die("pread");
}
static void call_pwrite(void)
{
	if (pwrite(files, page, 4096, 0) != 4096)
		die("pwrite");
}
static void call_fault(void)
{
	madvise(memory, 4096, MADV_DONTNEED);
	*(volatile char *)memory = 1;
}
static void call_mask(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigprocmask(SIG_BLOCK, &s, NULL);
}
static void call_stat(void) { struct stat s; if (stat("/tmp/file", &s)) die("stat"); }
static void call_open(void)
{
	int fd = open("/tmp/file", O_RDONLY);
	if (fd < 0)
		die("open");
	close(fd);
}

static void call_nothing(void) {}

static const struct { const char *name; void (*call)(void); } calls[] = {
	{ "getpid", call_getpid }, { "clock_gettime", call_clock }, { "sched_yield", call_yield },
	{ "lseek", call_lseek }, { "fstat", call_fstat }, { "futex-wake", call_futex_wake },
	{ "futex-again", call_futex_again }, { "futex-wait", call_futex_wait }, { "epoll_wait", call_epoll },
	{ "poll", call_poll }, { "eventfd", call_eventfd }, { "pipe", call_pipe }, { "pipe-processes", call_pingpong },
	{ "socketpair", call_unix }, { "pread", call_pread }, { "pwrite", call_pwrite }, { "fault", call_fault },
	{ "sigprocmask", call_mask }, { "stat", call_stat }, { "open-close", call_open },
};

/* What n calls allocate, the reading included. */
static long cost(void (*call)(void), int n)
{
	long before = count();
	for (int i = 0; i < n; i++)
		call();
	return count() - before;
}

int main(void)
{
	struct epoll_event e = { EPOLLIN, { 0 } };
	pid_t echo;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (pipe(pipes) || pipe(ping) || pipe(pong) || socketpair(AF_UNIX, SOCK_STREAM, 0, unix_))
		die("pipes");
	if ((files = open("/tmp/file", O_CREAT | O_RDWR | O_TRUNC, 0644)) < 0 || write(files, page, 4096) != 4096)
		die("/tmp/file");
	if ((events = eventfd(1, 0)) < 0 || (epolls = epoll_create1(0)) < 0 || epoll_ctl(epolls, EPOLL_CTL_ADD, events, &e))
		die("epoll");
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	if ((echo = fork()) == 0) {
		char b[8];
		close(ping[1]);
		while (read(ping[0], b, 5) == 5 && write(pong[1], b, 5) == 5)
			;
		_exit(0);
	}
	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
		long least = -1;
		for (int k = 0; k < WARM; k++)
			calls[i].call();
		/*
		 * The least of some tries: reading takes more at times, and so does a call
		 * whose thread has just come to a CPU where a cache is empty.
		 */
		for (int k = 0; k < TRIES && (least < 0 || least > FEW); k++) {
			long with = cost(calls[i].call, CALLS), without = cost(call_nothing, 0), more = with - without;
			if (least < 0 || more < least)
				least = more < 0 ? 0 : more;
		}
		printf("%s %ld\n", calls[i].name, least);
	}
	close(ping[1]);
	waitpid(echo, NULL, 0);
	printf("allocated: ok\n");
	return 0;
}
