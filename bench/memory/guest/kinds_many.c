// Offenders that take many small things of kinds that have no limit of their own.
#include "memory.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>

// Each page of a mapping is one of its own.
static void splits(void)
{
	size_t size = 1UL << 32;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (size_t at = 0; p != MAP_FAILED && at < size; at += 8192)
		if (mprotect(p + at, 4096, PROT_READ) < 0)
			return;
}

// Pages that are moved to places far apart: a page table for each.
static void remaps(void)
{
	size_t size = 1UL << 45;
	char *to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (size_t at = 0; to != MAP_FAILED && at < size; at += 1UL << 30) {
		char *p = emptyPages(4096);
		if (!p)
			return;
		*p = 1;
		if (mremap(p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to + at) == MAP_FAILED)
			return;
	}
}

// Mappings of a page of one file each, in every other page of it, and dirty.
static void filemaps(void)
{
	int fd = memfd_create("maps", 0);
	ftruncate(fd, 1L << 40);
	for (off_t at = 0;; at += 8192) {
		char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
		if (p == MAP_FAILED)
			return;
		*p = 1;
	}
}

// One segment that is attached over and over.
static void attachments(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	for (char *p; (p = shmat(id, NULL, 0)) != (char *)-1;)
		*p = 1;
}

// Programs with long arguments that start themselves again and again.
static void execs(void)
{
	enum { count = 15, length = 128 << 10 };
	char *text = emptyPages(length), *argv[count + 3] = {"memory", "again"};
	memset(text, 'a', length - 1);
	for (int i = 0; i < count; i++)
		argv[i + 2] = text;
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0) {
			execv("/proc/self/exe", argv);
			_exit(1);
		}
}

static void signalfds(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	moreDescriptors();
	while (signalfd(-1, &set, 0) >= 0)
		;
}

static void pidfds(void)
{
	moreDescriptors();
	while (syscall(SYS_pidfd_open, getpid(), 0) >= 0)
		;
}

// Empty files without a name in any directory, but with long ones of their own.
static void memfdnames(void)
{
	char name[240];
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = 0;
	moreDescriptors();
	while (memfd_create(name, 0) >= 0)
		;
}

// Timers that send signals, which the process does not take.
static void firing(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	struct itimerspec often = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 5000000};
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	ev._sigev_un._tid = syscall(SYS_gettid);
	for (timer_t t; timer_create(CLOCK_MONOTONIC, &ev, &t) == 0;)
		timer_settime(t, 0, &often, NULL);
}

// threadsOf starts threads until it gets no more.
static void threadsOf(void *(*run)(void *))
{
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	while (pthread_create(&t, &a, run, NULL) == 0)
		;
}

static void *waiter(void *arg)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} w[128];
	static uint32_t words[128];
	memset(w, 0, sizeof w);
	for (int i = 0; i < 128; i++) {
		w[i].address = (uint64_t)&words[i];
		w[i].flags = 2;
	}
	for (;;)
		if (syscall(SYS_futex_waitv, w, 128, 0, NULL, 0) < 0)
			pause();
	return arg;
}

static void futexes(void) { threadsOf(waiter); }

static int nothing[2]; // a pipe that stays empty

// Reads that wait with as many pieces as a call may have.
static void *reader(void *arg)
{
	static char c[1024];
	struct iovec v[1024];
	for (int i = 0; i < 1024; i++)
		v[i] = (struct iovec){&c[i], 1};
	for (;;)
		if (readv(nothing[0], v, 1024) < 0)
			pause();
	return arg;
}

static void readvs(void)
{
	if (pipe(nothing) == 0)
		threadsOf(reader);
}

// Sets of as many descriptors as a call may name, none of which becomes ready.
static void *poller(void *arg)
{
	static struct pollfd set[20000];
	for (int i = 0; i < 20000; i++)
		set[i] = (struct pollfd){.fd = nothing[0], .events = POLLIN};
	for (int n = 20000;;)
		if (poll(set, n, -1) < 0 && (n /= 2) == 0)
			pause();
	return arg;
}

static void polls(void)
{
	moreDescriptors();
	if (pipe(nothing) == 0)
		threadsOf(poller);
}

// Semaphores that the end of each process would put back.
static void undos(void)
{
	for (int id; (id = semget(IPC_PRIVATE, 200, IPC_CREAT | 0600)) >= 0;)
		for (int i = 0; i < 200; i++) {
			struct sembuf op = {i, 1, SEM_UNDO};
			if (semop(id, &op, 1) < 0)
				break;
		}
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			undos();
}

// Programs for the kernel, to filter calls with.
static void filters(void)
{
	enum { length = 4000 };
	static struct sock_filter code[length];
	struct sock_fprog prog = {length, code};
	for (int i = 0; i < length; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	while (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		;
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			filters();
}

// Namespaces within namespaces, each with a file system in memory that is filled.
static void namespaces(void)
{
	size_t size = 1 << 20;
	char *buf = emptyPages(size);
	for (int i = 0;; i++) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			break;
		if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0) {
			int fd = open("/tmp/fill", O_CREAT | O_WRONLY, 0600);
			for (ssize_t n; (n = write(fd, buf, size)) > 0;)
				;
			close(fd);
		}
	}
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0) {
			while (unshare(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_FILES | CLONE_FS) == 0 && unshare(CLONE_NEWUSER) == 0)
				;
			for (;;)
				pause();
		}
}

// Memory that a process holds of another by being its tracer, with a stop each.
static void traced(void)
{
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0) {
			syscall(SYS_ptrace, 0, 0, 0, 0);
			for (;;)
				raise(SIGSTOP);
		}
}

const struct kind manyKinds[] = {
	{"splits", splits},
	{"remaps", remaps},
	{"filemaps", filemaps},
	{"attachments", attachments},
	{"execs", execs},
	{"signalfds", signalfds},
	{"pidfds", pidfds},
	{"memfdnames", memfdnames},
	{"firing", firing},
	{"futexes", futexes},
	{"readvs", readvs},
	{"polls", polls},
	{"undos", undos},
	{"filters", filters},
	{"namespaces", namespaces},
	{"traced", traced},
	{NULL, NULL},
};
