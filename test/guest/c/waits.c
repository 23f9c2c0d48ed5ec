// Waiting for children of every kind with every option, and what clone takes.
#include "gt.h"
#include <linux/sched.h>
#include <pthread.h>

static void on_alarm(int sig) {}

// soon ends a wait that would never end.
static void soon(void)
{
	struct sigaction sa = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &sa, NULL);
	struct itimerval v = {.it_value = {0, 300000}};
	setitimer(ITIMER_REAL, &v, NULL);
}

static pid_t zombie(int exit_signal)
{
	pid_t pid = must(syscall(SYS_clone, exit_signal, 0, 0, 0, 0), "clone");
	if (pid == 0)
		_exit(3);
	char path[40], line[200];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	do {
		int fd = must(open(path, O_RDONLY), path);
		line[read(fd, line, sizeof line - 1)] = 0;
		close(fd);
	} while (!strstr(line, ") Z"));
	return pid;
}

// wait_id prints what waitid says, which fills its structure even where it fails.
static void wait_id(const char *what, int type, int id, int options)
{
	siginfo_t info;
	memset(&info, 0x55, sizeof info);
	soon();
	long rc = syscall(SYS_waitid, type, id, &info, options, NULL);
	say("%s, type %d, options %x: %s, signal %d, code %d, status %d, %s", what, type, options, rc ? name_of(errno) : "ok",
	    info.si_signo, info.si_code, info.si_status, info.si_pid == 0 ? "no process" : info.si_pid == 0x55555555 ? "?" : "a process");
}

static void wait_4(const char *what, pid_t pid, int options)
{
	int st = 0;
	soon();
	long rc = syscall(SYS_wait4, pid, &st, options, NULL);
	say("%s, options %x: %s, status %x", what, options, rc < 0 ? name_of(errno) : rc ? "a child" : "none", st);
}

TEST(zombies, "a zombie that is not asked for is no child to wait for")
{
	static const int options[] = {WSTOPPED, WCONTINUED, WSTOPPED | WCONTINUED, WSTOPPED | WNOHANG, WCONTINUED | WNOHANG,
				      WSTOPPED | WNOWAIT, WEXITED | WNOWAIT, WEXITED | WSTOPPED, WEXITED | WCONTINUED | WNOHANG};
	static const int types[] = {P_ALL, P_PID, P_PGID, P_PIDFD};
	for (int i = 0; i < 9; i++)
		for (int k = 0; k < 4; k++)
			wait_for(FORK({
				setpgid(0, 0);
				pid_t pid = zombie(SIGCHLD);
				int ids[] = {0, pid, getpgrp(), syscall(SYS_pidfd_open, pid, 0)};
				wait_id("zombie", types[k], ids[k], options[i]);
			}));
}

TEST(nobody_there, "no child at all, and arguments that are none")
{
	static const int options[] = {0, WEXITED, WEXITED | 16, WNOHANG, WEXITED | WNOHANG, WNOWAIT, WEXITED | __WNOTHREAD,
				      WEXITED | __WALL, WEXITED | __WCLONE};
	for (int i = 0; i < 9; i++)
		wait_id("none", P_ALL, 0, options[i]);
	static const int ids[] = {0, -1, -5, 12345};
	for (int type = -1; type < 5; type++)
		for (int i = 0; i < 4; i++)
			wait_id("none", type, ids[i], WEXITED);
	for (int i = 0; i < 9; i++)
		wait_4("none", -1, options[i] & ~WEXITED);
	wait_4("the least number", INT_MIN, 0);
}

TEST(kinds, "children with other signals")
{
	static const int signals[] = {0, SIGCHLD, SIGUSR1, 65, 255};
	static const unsigned options[] = {0, __WALL, __WCLONE, __WALL | __WCLONE, __WNOTHREAD, WNOHANG};
	for (int s = 0; s < 5; s++)
		for (int i = 0; i < 6; i++)
			wait_for(FORK({
				signal(SIGUSR1, SIG_IGN);
				zombie(signals[s]);
				char what[40];
				snprintf(what, sizeof what, "signal %d", signals[s]);
				wait_4(what, -1, options[i]);
			}));
}

static pid_t thread_child;
static pthread_barrier_t meet;

static void *child_of_a_thread(void *leaves)
{
	thread_child = zombie(SIGCHLD);
	wait_4("its own", -1, __WNOTHREAD | WNOHANG);
	thread_child = zombie(SIGCHLD);
	pthread_barrier_wait(&meet);
	if (!leaves)
		pthread_barrier_wait(&meet);
	return NULL;
}

TEST(threads, "__WNOTHREAD: children of the calling thread")
{
	pthread_t t;
	pthread_barrier_init(&meet, NULL, 2);
	pthread_create(&t, NULL, child_of_a_thread, NULL);
	pthread_barrier_wait(&meet);
	wait_4("another thread's", thread_child, __WNOTHREAD | WNOHANG);
	wait_id("another thread's", P_PID, thread_child, WEXITED | __WNOTHREAD);
	wait_4("another thread's, of all", thread_child, WNOHANG);
	pthread_barrier_wait(&meet);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, child_of_a_thread, "leaves");
	pthread_barrier_wait(&meet);
	pthread_join(t, NULL);
	char task[] = "/proc/self/task";
	while (1) { // until the kernel is through with the thread, too
		int n = 0;
		DIR *d = opendir(task);
		while (readdir(d))
			n++;
		closedir(d);
		if (n == 3)
			break;
		sleep_ms(1);
	}
	wait_4("a thread's that is gone", thread_child, __WNOTHREAD | WNOHANG);
}

TEST(flags, "clone's flags")
{
	static const struct {
		const char *name;
		unsigned long flags;
	} cases[] = {
		{"none", 0}, {"65", 65}, {"255", 255}, {"SIGHAND", CLONE_SIGHAND}, {"THREAD", CLONE_THREAD}, {"VM, THREAD", CLONE_VM | CLONE_THREAD},
		{"SIGHAND, THREAD", CLONE_SIGHAND | CLONE_THREAD}, {"FS, NEWNS", CLONE_FS | CLONE_NEWNS},
		{"PIDFD, PARENT_SETTID", CLONE_PIDFD | CLONE_PARENT_SETTID}, {"PIDFD, DETACHED", CLONE_PIDFD | CLONE_DETACHED},
		{"DETACHED", CLONE_DETACHED}, {"UNTRACED", CLONE_UNTRACED}, {"PTRACE", CLONE_PTRACE}, {"IO", CLONE_IO},
		{"SYSVSEM", CLONE_SYSVSEM}, {"FILES", CLONE_FILES}, {"FS", CLONE_FS}, {"bit 32", 1UL << 32},
	};
	static int word;
	for (int i = 0; i < sizeof cases / sizeof *cases; i++) {
		long pid = syscall(SYS_clone, cases[i].flags, 0, &word, &word, 0);
		if (pid == 0)
			_exit(0);
		err(cases[i].name, pid);
		while (syscall(SYS_wait4, -1, NULL, __WALL, NULL) > 0)
			;
	}
	long pid = syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, 0, -1L);
	if (pid == 0)
		_exit(0);
	err("a bad thread pointer", pid);
}

// with3 calls clone3 and collects the child.
static long with3(const char *what, struct clone_args *a, size_t size)
{
	long pid = syscall(SYS_clone3, a, size);
	if (pid == 0)
		_exit(0);
	err(what, pid);
	if (pid > 0)
		syscall(SYS_wait4, pid, NULL, __WALL, NULL);
	return pid;
}

TEST(three, "clone3: numbers asked for, groups that are none, sizes")
{
	int tids[2] = {0, 0};
	struct clone_args a = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)tids, .set_tid_size = 1};
	pid_t seen = must(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), "clone");
	if (seen == 0)
		_exit(0);
	wait_for(seen);
	tids[0] = seen;
	say("a free number: %d", with3("a free number", &a, sizeof a) == seen);
	static const int bad[] = {1, 0, -1, 1 << 30};
	for (int i = 0; i < 4; i++) {
		char what[30];
		snprintf(what, sizeof what, "number %d", bad[i]);
		tids[0] = bad[i], with3(what, &a, sizeof a);
	}
	tids[0] = tids[1] = seen;
	a.set_tid_size = 2, with3("two numbers", &a, sizeof a);
	a.set_tid_size = 33, with3("33 numbers", &a, sizeof a);
	a.set_tid_size = 0, with3("no number", &a, sizeof a);
	a.set_tid = 0, a.set_tid_size = 1, with3("no address", &a, sizeof a);
	a.set_tid = 8, with3("a bad address", &a, sizeof a);
	a.set_tid = (uintptr_t)tids;
	status("a user", wait_for(FORK(setuid(1000); with3("a user's number", &a, sizeof a))));
	a = (struct clone_args){.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = must(open("/dev/null", O_RDONLY), "open")};
	with3("into what is no group", &a, sizeof a);
	a.cgroup = 1UL << 40, with3("into a huge number", &a, sizeof a);
	a.cgroup = 0, with3("into a group, old size", &a, 80);
	char room[5000] = {0};
	((struct clone_args *)room)->exit_signal = SIGCHLD;
	static const int sizes[] = {0, 8, 63, 64, 72, 80, 88, 96, 120, 4096, 4097};
	for (int i = 0; i < 11; i++) {
		char what[30];
		snprintf(what, sizeof what, "size %d", sizes[i]);
		with3(what, (void *)room, sizes[i]);
	}
	room[90] = 1, with3("something behind it", (void *)room, 96);
}
