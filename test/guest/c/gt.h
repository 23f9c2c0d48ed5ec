// The frame of the guest test programs in C; see test/guest/gt for its twin in
// Go and for the rules. These programs test what a Go program cannot do: fork
// without exec, raw clone, signal frames, registers.
//
// Each test runs in a child of its own, in an empty directory, in a process
// group of its own; a child that dies is a failed test.
#pragma once
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct gt_test {
	const char *name;
	void (*run)(void);
	struct gt_test *next;
} gt_test;

static gt_test *gt_first, **gt_last = &gt_first;

// TEST(symbol, "name") { … } defines and registers a test, in file order.
#define TEST(symbol, title)                                                  \
	static void symbol(void);                                            \
	static gt_test symbol##_test = {title, symbol, NULL};                \
	__attribute__((constructor)) static void symbol##_register(void)     \
	{                                                                    \
		*gt_last = &symbol##_test, gt_last = &symbol##_test.next;    \
	}                                                                    \
	static void symbol(void)

// say prints one line in one write, so that lines of several processes do not
// mix.
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...)
{
	char line[1024] = "    ";
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line + 4, sizeof line - 6, format, ap) + 4;
	va_end(ap);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(1, line, (size_t)n) < 0)
		_exit(99);
}

__attribute__((unused)) static const char *name_of(int error)
{
	const char *name = strerrorname_np(error);
	return error == 0 ? "ok" : error == EWOULDBLOCK ? "EAGAIN" : name ? name : "?";
}

// err prints how a call ended: ok for a result that is not negative.
__attribute__((unused)) static long err(const char *what, long rc)
{
	say("%s: %s", what, rc == -1 ? name_of(errno) : "ok");
	return rc;
}

// num prints a call's result, and its error when that is -1.
__attribute__((unused)) static long num(const char *what, long rc)
{
	if (rc == -1)
		say("%s: -1 %s", what, name_of(errno));
	else
		say("%s: %ld", what, rc);
	return rc;
}

__attribute__((noreturn, unused)) static void fatal(const char *what)
{
	say("fatal: %s: %s", what, name_of(errno));
	_exit(98);
}

__attribute__((unused)) static long must(long rc, const char *what)
{
	if (rc == -1)
		fatal(what);
	return rc;
}

// status prints how a child ended.
__attribute__((unused)) static void status(const char *what, int st)
{
	if (WIFEXITED(st))
		say("%s: exit %d", what, WEXITSTATUS(st));
	else if (WIFSIGNALED(st))
		say("%s: killed by SIG%s", what, sigabbrev_np(WTERMSIG(st)));
	else if (WIFSTOPPED(st))
		say("%s: stopped by SIG%s", what, sigabbrev_np(WSTOPSIG(st)));
	else
		say("%s: continued", what);
}

__attribute__((unused)) static int wait_for(pid_t pid)
{
	int st = -1;
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			fatal("waitpid");
	return st;
}

__attribute__((unused)) static void sleep_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

__attribute__((unused)) static long long now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

// asleep waits until what a /proc/…/stat describes has been blocked for a while.
__attribute__((unused)) static void asleep(const char *path)
{
	char text[256];
	long long end = now_ms() + 10000;
	for (int times = 0; times < 3 && now_ms() < end; times++) {
		sleep_ms(5);
		int fd = open(path, O_RDONLY);
		if (fd < 0)
			return; // it is gone
		ssize_t n = read(fd, text, sizeof text - 1);
		close(fd);
		text[n > 0 ? n : 0] = 0;
		char *name_end = strrchr(text, ')');
		if (!name_end || name_end[1] != ' ' || name_end[2] != 'S')
			times = -1;
	}
}

// settle waits until a process is blocked, settle_threads until all other
// threads of this one are.
__attribute__((unused)) static void settle(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	asleep(path);
}

__attribute__((unused)) static void settle_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		char path[300];
		snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
		if (e->d_name[0] != '.' && atoi(e->d_name) != gettid())
			asleep(path);
	}
	if (d)
		closedir(d);
}

// shared is zeroed memory that children of fork see too.
__attribute__((unused)) static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fatal("mmap");
	return p;
}

// FORK(statement…) runs it in a child, which then exits with 0, and gives the
// child's id.
#define FORK(...)                                 \
	({                                        \
		pid_t gt_pid = fork();            \
		if (gt_pid == 0) {                \
			__VA_ARGS__;              \
			_exit(0);                 \
		}                                 \
		(pid_t) must(gt_pid, "fork");     \
	})

// IN_CHILD(what, statement…) runs it in a child and prints how that ended.
#define IN_CHILD(what, ...) status(what, wait_for(FORK(__VA_ARGS__)))

// until waits for a condition, at most some seconds.
#define until(condition)                                         \
	({                                                       \
		long long gt_end = now_ms() + 10000;             \
		while (!(condition) && now_ms() < gt_end)        \
			sleep_ms(2);                             \
		(condition) != 0;                                \
	})

// What a program does instead of its tests when it is run with arguments that
// begin with "child".
__attribute__((weak)) int child_main(int argc, char **argv);

int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "child", 5) == 0)
		return child_main(argc - 1, argv + 1);
	int failed = 0, number = 0;
	umask(022);
	for (gt_test *t = gt_first; t; t = t->next, number++) {
		if (argc > 1 && !strstr(t->name, argv[1]))
			continue;
		printf("=== RUN   %s\n", t->name);
		fflush(stdout);
		char dir[32];
		snprintf(dir, sizeof dir, "t%d", number);
		mkdir(dir, 0755);
		pid_t pid = fork();
		if (pid == 0) {
			setpgid(0, 0);
			if (chdir(dir) < 0)
				_exit(97);
			t->run();
			exit(0);
		}
		int st = -1;
		if (pid < 0 || waitpid(pid, &st, 0) != pid) {
			printf("--- FAIL: %s: no child\n", t->name);
			return 1;
		}
		kill(-pid, SIGKILL); // what the test left behind
		if (st == 0) {
			printf("--- PASS: %s\n", t->name);
		} else {
			printf("--- FAIL: %s: status %#x\n", t->name, st);
			failed = 1;
		}
		fflush(stdout);
	}
	return failed;
}
