// users has one user take as much as it gets of each thing that the machine has little
// of, and then asks whether root and a user who has taken nothing are served still.
//
// It runs as process 1 of a Hardtack guest: Linux serves the other user only in part.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { offender = 1000, innocent = 1001 };

// taken counts what the offender has got; its processes add.
static atomic_long *taken;
static atomic_int *full;

static void nap(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&ts, NULL);
}

static void stay(void)
{
	(*full)++;
	for (;;)
		pause();
}

// in_processes runs a taker in some processes, which stay.
static void in_processes(int n, void (*run)(void))
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			run();
			stay();
		}
		if (pid < 0)
			break;
		while (*full <= i)
			nap(1);
	}
}

static int fill(int fd)
{
	static char buf[1 << 16];
	long n = 0;
	ssize_t k;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((k = write(fd, buf, sizeof buf)) > 0)
		n += k;
	*taken += n;
	return n > 0;
}

// ——— the offender's part, and the question to the others ———

static void take_files(void)
{
	while (open("/dev/null", O_RDONLY) >= 0)
		(*taken)++;
}
static void many_files(void) { in_processes(4, take_files); }
static int ask_files(void)
{
	for (int i = 0; i < 50; i++)
		if (open("/dev/null", O_RDONLY) < 0)
			return errno;
	return 0;
}

static void take_pipes(void)
{
	int p[2];
	while (pipe(p) == 0 && fill(p[1]))
		;
}
static void many_pipes(void) { in_processes(3, take_pipes); }
static int ask_pipe(void)
{
	static char buf[1 << 16];
	int p[2];
	if (pipe(p) < 0)
		return errno;
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	return write(p[1], buf, sizeof buf) == sizeof buf ? 0 : errno ? errno : EAGAIN;
}

static void take_sockets(void)
{
	int s[2];
	for (int i = 0; i < 2000 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0; i++)
		if (!fill(s[0]))
			break;
}
static void many_sockets(void) { in_processes(2, take_sockets); }
static int ask_socket(void)
{
	static char buf[1 << 16];
	int s[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) < 0)
		return errno;
	return write(s[0], buf, 40000) == 40000 ? 0 : errno;
}

static void many_processes(void)
{
	pid_t pid;
	while ((pid = fork()) > 0)
		(*taken)++;
	if (pid == 0)
		for (;;)
			pause();
	// The same again, of processes that have ended.
	while ((pid = fork()) > 0)
		(*taken)++;
	if (pid == 0)
		_exit(0);
}
static int ask_process(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		if (pid < 0)
			return errno;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static void take_tables(void)
{
	// One file, many descriptors: the table pays for 64 of them at once.
	while (*taken < 2000000 && dup2(0, *taken + 64) >= 0)
		*taken += 64;
}
static void many_tables(void)
{
	take_tables();
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			for (;;)
				pause();
}
static int ask_table(void)
{
	if (dup2(0, 1000) < 0)
		return errno;
	return ask_process();
}

static void take_watches(void)
{
	int ep = epoll_create1(0), fd = eventfd(0, 0);
	struct epoll_event ev = {.events = EPOLLIN};
	for (int n; (n = dup(fd)) >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, n, &ev) == 0;)
		(*taken)++;
}
static void many_watches(void) { in_processes(2, take_watches); }
static int ask_watch(void)
{
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	for (int i = 0; i < 20; i++)
		if (epoll_ctl(ep, EPOLL_CTL_ADD, eventfd(0, 0), &ev) < 0)
			return errno;
	return 0;
}

static void take_inotify(void)
{
	while (inotify_init() >= 0)
		(*taken)++;
}
static int ask_inotify(void) { return inotify_init() < 0 ? errno : 0; }

static long send_file(int to)
{
	char control[CMSG_SPACE(200 * sizeof(int))] = {0}, c = 0;
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(200 * sizeof(int));
	return sendmsg(to, &m, MSG_DONTWAIT);
}
static void take_flight(void)
{
	int s[2];
	while (socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0) {
		long n = 0;
		while (send_file(s[0]) == 1)
			n++;
		*taken += n * 200;
		if (n == 0)
			break;
	}
}
static int ask_flight(void)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
		return errno;
	return send_file(s[0]) == 1 ? 0 : errno;
}

static int poll_many(int n, int time)
{
	struct pollfd *p = calloc((size_t)n, sizeof *p);
	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = -1};
	return poll(p, (nfds_t)n, time) < 0 ? errno : 0;
}
static void take_polls(void)
{
	for (int i = 0; i < 64; i++)
		if (fork() == 0) {
			if (poll_many(4000, -1) != 0)
				_exit(0);
		} else {
			*taken += 4000;
		}
	nap(200);
}
static int ask_poll(void) { return poll_many(500, 0); }

static void take_messages(void)
{
	struct {
		long kind;
		char text[4096];
	} m = {.kind = 1};
	for (int id; (id = msgget(IPC_PRIVATE, 0600)) >= 0;) {
		long n = 0;
		for (; msgsnd(id, &m, sizeof m.text, IPC_NOWAIT) == 0; n++)
			;
		*taken += n;
		if (n == 0)
			break;
	}
}
static int ask_message(void)
{
	struct {
		long kind;
		char text[1000];
	} m = {.kind = 1};
	int id = msgget(IPC_PRIVATE, 0600);
	return id < 0 || msgsnd(id, &m, sizeof m.text, IPC_NOWAIT) < 0 ? errno : 0;
}

static void take_segments(void)
{
	while (shmget(IPC_PRIVATE, 4096, 0600) >= 0)
		(*taken)++;
}
static int ask_segment(void) { return shmget(IPC_PRIVATE, 4096, 0600) < 0 ? errno : 0; }

static void take_semaphores(void)
{
	while (semget(IPC_PRIVATE, 1, 0600) >= 0)
		(*taken)++;
}
static int ask_semaphore(void) { return semget(IPC_PRIVATE, 1, 0600) < 0 ? errno : 0; }

static void take_locks(void)
{
	char name[32];
	for (int k = 0;; k++) {
		snprintf(name, sizeof name, "/tmp/lock%d", k);
		int fd = open(name, O_CREAT | O_RDWR, 0600);
		long i = 0;
		for (; i < 500; i++) { // each looks at those before it
			struct flock lk = {.l_type = F_WRLCK, .l_start = i * 2, .l_len = 1};
			if (fcntl(fd, F_SETLK, &lk) < 0)
				return;
			(*taken)++;
		}
	}
}
static int ask_lock(void)
{
	char name[32];
	snprintf(name, sizeof name, "/tmp/own%d", getuid());
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	struct flock lk = {.l_type = F_WRLCK, .l_len = 1};
	return fcntl(fd, F_SETLK, &lk) < 0 ? errno : 0;
}

static void take_space(void)
{
	int fd = open("/home/big", O_CREAT | O_WRONLY, 0600);
	static char buf[1 << 20];
	for (ssize_t n; (n = write(fd, buf, sizeof buf)) > 0;)
		*taken += n >> 12;
}
static int ask_space(void)
{
	char name[32];
	static char buf[1 << 16];
	snprintf(name, sizeof name, "/home/f%d", getuid());
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	return fd < 0 || write(fd, buf, sizeof buf) < 0 ? errno : 0;
}

static void take_names(void)
{
	char name[32];
	for (;; (*taken)++) {
		snprintf(name, sizeof name, "/home/n%ld", (long)*taken);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return;
		close(fd);
	}
}
static int ask_name(void)
{
	char name[32];
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "/home/d%d-%d", getuid(), i);
		if (mkdir(name, 0700) < 0)
			return errno;
	}
	return 0;
}

// One file has up to 128 KiB of attributes.
static void take_attributes(void)
{
	static char value[60000];
	char name[32];
	int k = 0;
	for (size_t size = sizeof value; size > 4; size /= 4)
		for (int room = 1; room; k++) {
			snprintf(name, sizeof name, "/home/x%d", k);
			int fd = open(name, O_CREAT | O_WRONLY, 0600);
			room = fd >= 0 && fsetxattr(fd, "user.one", value, size, 0) == 0;
			if (room && fsetxattr(fd, "user.two", value, size, 0) == 0)
				(*taken)++;
			close(fd);
		}
}
static int ask_attribute(void)
{
	char name[32];
	snprintf(name, sizeof name, "/home/a%d", getuid());
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	return fd < 0 || fsetxattr(fd, "user.one", name, sizeof name, 0) < 0 ? errno : 0;
}

// Events that nobody reads: few files with long names, many instances.
static void take_events(void)
{
	char name[256] = "/home/w/";
	int n = 0;
	mkdir(name, 0700);
	memset(name + 8, 'n', 240);
	while (n < 128) {
		int fd = inotify_init();
		if (fd < 0 || inotify_add_watch(fd, "/home/w", IN_ALL_EVENTS) < 0)
			break;
		n++;
	}
	for (int i = 0; i < 1000; i++) {
		close(open(name, O_CREAT | O_WRONLY, 0600));
		unlink(name);
	}
	*taken = n;
}
static int ask_event(void)
{
	char name[32], buf[4096];
	snprintf(name, sizeof name, "/home/e%d", getuid());
	mkdir(name, 0700);
	int fd = inotify_init();
	inotify_add_watch(fd, name, IN_ALL_EVENTS);
	rmdir(name);
	struct inotify_event *e = (void *)buf;
	return fd >= 0 && read(fd, buf, sizeof buf) > 0 && e->mask & IN_DELETE_SELF ? 0 : EIO;
}

static void take_terminals(void)
{
	while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		(*taken)++;
}
static int ask_terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0 ? errno : 0; }

// Calls of abi/ipc.
enum { call_endpoint = 0x48540000 + 8, call_notification = 0x48540000 + 10 };

static void take_endpoints(void)
{
	int fd[2];
	while (syscall(call_endpoint, fd, 0) == 0)
		(*taken)++;
}
static int ask_endpoint(void)
{
	int fd[2];
	return syscall(call_endpoint, fd, 0) < 0 ? errno : 0;
}

static void take_notifications(void)
{
	while (syscall(call_notification, 0) >= 0)
		(*taken)++;
}
static int ask_notification(void) { return syscall(call_notification, 0) < 0 ? errno : 0; }

// Timers with periods that no machine can follow.
static void ring(int sig) { (void)sig; }
static void take_timers(void)
{
	struct itimerval it = {{0, 1}, {0, 1}};
	for (int i = 0; i < 100; i++)
		if (fork() == 0) {
			signal(SIGALRM, ring);
			setitimer(ITIMER_REAL, &it, NULL);
			for (;;)
				pause();
		}
	signal(SIGUSR1, SIG_IGN);
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec its = {{0, 1}, {0, 1}};
	for (timer_t t; timer_create(CLOCK_MONOTONIC, &ev, &t) == 0;) {
		timer_settime(t, 0, &its, NULL);
		(*taken)++;
	}
}

static const struct {
	const char *name;
	void (*take)(void);
	int (*ask)(void);
} things[] = {
	{"open files", many_files, ask_files},
	{"pages of pipes", many_pipes, ask_pipe},
	{"memory of sockets", many_sockets, ask_socket},
	{"descriptor tables", many_tables, ask_table},
	{"epoll watches", many_watches, ask_watch},
	{"inotify instances", take_inotify, ask_inotify},
	{"files in messages", take_flight, ask_flight},
	{"polls", take_polls, ask_poll},
	{"message queues", take_messages, ask_message},
	{"shared memory segments", take_segments, ask_segment},
	{"semaphores", take_semaphores, ask_semaphore},
	{"record locks", take_locks, ask_lock},
	{"space in memory", take_space, ask_space},
	{"names in memory", take_names, ask_name},
	{"attributes", take_attributes, ask_attribute},
	{"events to be read", take_events, ask_event},
	{"terminals", take_terminals, ask_terminal},
	{"endpoints", take_endpoints, ask_endpoint},
	{"notifications", take_notifications, ask_notification},
	{"timers", take_timers, ask_process},
	{"processes", many_processes, ask_process},
};

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(99);
}

// ready makes a user's process, before anything is taken; it asks when it is told to.
static pid_t ready(uid_t uid, int start, int (*ask)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		char c;
		become(uid);
		if (read(start, &c, 1) != 1)
			_exit(98);
		errno = 0;
		_exit(ask());
	}
	return pid;
}

static int served(pid_t pid, int start, const char *who)
{
	int st = -1;
	if (write(start, "x", 1) != 1) {
		printf("    %s could not be asked: %s\n", who, strerror(errno));
		return 0;
	}
	for (int i = 0; i < 1000; i++) {
		if (waitpid(pid, &st, WNOHANG) == pid) {
			if (st == 0)
				return 1;
			printf("    %s: %s\n", who, WIFEXITED(st) ? strerror(WEXITSTATUS(st)) : "killed");
			return 0;
		}
		nap(10);
	}
	printf("    %s: no answer\n", who);
	return 0;
}

// clean_home removes what was made in /home, which anybody may write to.
static void clean_home(void)
{
	for (int found = 1; found;) {
		found = 0;
		DIR *d = opendir("/home");
		for (struct dirent *e; d && (e = readdir(d));)
			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				found |= unlinkat(dirfd(d), e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0) == 0;
		closedir(d);
	}
}

static void clean(void)
{
	for (int i = 0; i < 200 && kill(-1, SIGKILL) == 0; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nap(5);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	clean_home();
	struct shmid_ds ds;
	struct msqid_ds qs;
	struct seminfo si;
	for (int i = 0, n = shmctl(0, SHM_INFO, &ds); i <= n; i++) {
		int id = shmctl(i, SHM_STAT, &ds);
		if (id >= 0)
			shmctl(id, IPC_RMID, NULL);
	}
	for (int i = 0, n = msgctl(0, MSG_INFO, &qs); i <= n; i++) {
		int id = msgctl(i, MSG_STAT, &qs);
		if (id >= 0)
			msgctl(id, IPC_RMID, NULL);
	}
	for (int i = 0, n = semctl(0, 0, SEM_INFO, &si); i <= n; i++) {
		struct semid_ds ss;
		int id = semctl(i, 0, SEM_STAT, &ss);
		if (id >= 0)
			semctl(id, 0, IPC_RMID);
	}
}

int main(int argc, char **argv)
{
	if (getpid() != 1) {
		fprintf(stderr, "users: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	taken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	full = (atomic_int *)(taken + 1);
	int failed = 0;
	mkdir("/home", 0755);
	chmod("/home", 0777);
	for (size_t i = 0; i < sizeof things / sizeof things[0]; i++) {
		if (argc > 1 && !strstr(things[i].name, argv[1]))
			continue;
		printf("=== RUN   %s\n", things[i].name);
		*taken = 0;
		*full = 0;
		int start[2][2];
		if (pipe(start[0]) < 0 || pipe(start[1]) < 0)
			return 1;
		pid_t other = ready(innocent, start[0][0], things[i].ask), root = ready(0, start[1][0], things[i].ask);
		pid_t pid = fork();
		if (pid == 0) {
			struct rlimit rl = {1 << 20, 1 << 20};
			setrlimit(RLIMIT_NOFILE, &rl);
			signal(SIGPIPE, SIG_IGN);
			signal(SIGCHLD, SIG_DFL);
			become(offender);
			things[i].take();
			*full = 1000;
			for (;;)
				pause();
		}
		for (int k = 0; k < 12000 && *full < 1000 && waitpid(pid, NULL, WNOHANG) == 0; k++)
			nap(10);
		printf("    it has %ld\n", (long)*taken);
		int ok = served(other, start[0][1], "another user");
		ok &= served(root, start[1][1], "root");
		for (int k = 0; k < 4; k++)
			close(start[k / 2][k % 2]);
		clean();
		printf("--- %s: %s\n", ok ? "PASS" : "FAIL", things[i].name);
		failed |= !ok;
	}
	printf("users: %s\n", failed ? "FAIL" : "ok");
	return failed;
}
