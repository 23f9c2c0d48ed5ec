// stress uses a machine up, one resource after another: memory, processes,
// threads, files, descriptors, socket and pipe buffers, mappings. After each the
// machine must work as before and have its memory back. Calls may fail and
// processes may be killed; the kernel and the processes that took no part must
// not be harmed.
//
// It runs as process 1 of a Hardtack guest (or under bench/os's init on a
// throw-away Linux) and nowhere else.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096 };

static int meminfo;

static long free_kib(void)
{
	char text[4096];
	ssize_t n = pread(meminfo, text, sizeof text - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = 0;
	char *at = strstr(text, "MemFree:");
	return at ? strtol(at + 8, NULL, 10) : -1;
}

static const char *died(int st)
{
	static char text[64];
	if (WIFSIGNALED(st))
		snprintf(text, sizeof text, "killed by %d", WTERMSIG(st));
	else
		snprintf(text, sizeof text, "exit %d", WEXITSTATUS(st));
	return text;
}

static void nap(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&ts, NULL);
}

// ——— what uses things up; each runs in a child and may be killed ———

static void anonymous_memory(void)
{
	for (;;) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			break;
		for (int i = 0; i < 1 << 20; i += page)
			p[i] = 1;
	}
	nap(100);
}

static void memory_of_many(void)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			anonymous_memory();
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void kernel_copies(void)
{
	// The kernel itself writes to fresh memory until there is none.
	int fd = open("/dev/zero", O_RDONLY);
	for (;;) {
		char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || read(fd, p, 4 << 20) <= 0)
			break;
	}
}

static void tmpfs_space(void)
{
	int fd = open("/tmp/stress/big", O_CREAT | O_RDWR, 0600);
	char *buf = calloc(1, 1 << 16);
	while (write(fd, buf, 1 << 16) > 0)
		;
	int fd2 = open("/tmp/stress/big2", O_CREAT | O_RDWR, 0600);
	if (fallocate(fd2, 0, 0, 1L << 40) == 0)
		_exit(1);
}

static void tmpfs_inodes(void)
{
	char name[64];
	for (int i = 0; i < 200000; i++) {
		snprintf(name, sizeof name, "/tmp/stress/f%d", i);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
}

static void shared_mapping(void)
{
	int fd = open("/tmp/stress/map", O_CREAT | O_RDWR, 0600);
	if (ftruncate(fd, 1L << 36) < 0)
		return;
	char *p = mmap(NULL, 1L << 36, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (long i = 0; p != MAP_FAILED && i < 1L << 36; i += page)
		p[i] = 1;
}

static void fork_bomb(void)
{
	long until = time(NULL) + 3;
	while (time(NULL) < until)
		if (fork() < 0)
			sched_yield();
}

static void sleepers(void)
{
	int n = 0;
	pid_t pid;
	while (n < 30000 && (pid = fork()) >= 0) {
		if (pid == 0)
			for (;;)
				pause();
		n++;
	}
}

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void threads(void)
{
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	pthread_t t;
	for (int i = 0; i < 30000 && pthread_create(&t, &a, sleeper, NULL) == 0; i++)
		;
}

static void pipes(void)
{
	char *buf = calloc(1, 1 << 16);
	int p[2];
	while (pipe2(p, O_NONBLOCK) == 0) {
		fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		while (write(p[1], buf, 1 << 16) > 0)
			;
	}
}

static void sockets(void)
{
	char *buf = calloc(1, 1 << 16);
	int p[2];
	while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0)
		while (write(p[0], buf, 1 << 16) > 0)
			;
}

static void tcp(void)
{
	char *buf = calloc(1, 1 << 16);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (struct sockaddr *)&a, len) < 0 || listen(l, 10000) < 0)
		return;
	getsockname(l, (struct sockaddr *)&a, &len);
	for (int i = 0; i < 3000; i++) {
		int c = socket(AF_INET, SOCK_STREAM, 0);
		if (c < 0 || connect(c, (struct sockaddr *)&a, len) < 0)
			break;
		fcntl(c, F_SETFL, O_NONBLOCK);
		while (write(c, buf, 1 << 16) > 0)
			;
	}
}

static void descriptors(void)
{
	struct rlimit rl = {1 << 20, 1 << 20};
	setrlimit(RLIMIT_NOFILE, &rl);
	int ep = epoll_create1(0);
	for (int i = 0; i < 300000; i++) {
		int fd = eventfd(0, 0);
		struct epoll_event ev = {.events = EPOLLIN};
		if (fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
			break;
	}
}

static void in_flight(void)
{
	// Sockets that carry sockets that carry sockets.
	int a[2], b[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, a) < 0)
		return;
	for (int i = 0; i < 20000; i++) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, b) < 0)
			break;
		char control[CMSG_SPACE(2 * sizeof(int))] = {0}, c = 0;
		struct iovec iov = {&c, 1};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(h), a, sizeof a);
		int sent = sendmsg(b[0], &m, 0) > 0;
		close(a[0]), close(a[1]);
		a[0] = b[0], a[1] = b[1];
		if (!sent)
			break;
	}
}

static void mappings(void)
{
	for (int i = 0; i < 400000; i++)
		if (mmap(NULL, page, i & 1 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			break;
}

static void page_tables(void)
{
	// One page in each 2 MiB: page tables cost as much as the pages.
	char *p = mmap(NULL, 1UL << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long i = 0; p != MAP_FAILED && i < 1L << 40; i += 2 << 20)
		p[i] = 1;
}

static void locks(void)
{
	int fd = open("/tmp/stress/locks", O_CREAT | O_RDWR, 0600);
	for (long i = 0; i < 20000; i++) {
		struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i * 2, .l_len = 1};
		if (fcntl(fd, F_SETLK, &lk) < 0)
			break;
	}
}

static void signals(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 1000000; i++)
		if (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0)
			break;
	for (int i = 0; i < 100000; i++) {
		timer_t t;
		struct sigevent ev = {.sigev_notify = SIGEV_NONE};
		if (timer_create(CLOCK_MONOTONIC, &ev, &t) < 0)
			break;
	}
}

static void deep_directories(void)
{
	char name[201];
	memset(name, 'd', 200), name[200] = 0;
	if (chdir("/tmp/stress") < 0)
		return;
	for (int i = 0; i < 3000; i++)
		if (mkdir(name, 0700) < 0 || chdir(name) < 0)
			break;
}

static void spinners(void)
{
	for (int i = 0; i < 50; i++)
		if (fork() == 0)
			for (;;)
				;
	nap(2000);
}

static void arguments(void)
{
	char *big = malloc(100001), **argv = calloc(30, sizeof *argv);
	memset(big, 'a', 100000), big[100000] = 0;
	for (int i = 0; i < 18; i++)
		argv[i] = big;
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			execv("/proc/self/exe", argv);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

static const struct {
	const char *name;
	void (*run)(void);
} uses[] = {
	{"anonymous memory", anonymous_memory},
	{"memory of many processes", memory_of_many},
	{"memory in the kernel's copies", kernel_copies},
	{"shared file mapping", shared_mapping},
	{"page tables", page_tables},
	{"mappings", mappings},
	{"tmpfs space", tmpfs_space},
	{"tmpfs inodes", tmpfs_inodes},
	{"deep directories", deep_directories},
	{"fork bomb", fork_bomb},
	{"sleeping processes", sleepers},
	{"threads", threads},
	{"spinning processes", spinners},
	{"pipe buffers", pipes},
	{"unix socket buffers", sockets},
	{"TCP buffers", tcp},
	{"descriptors and epoll", descriptors},
	{"descriptors in flight", in_flight},
	{"file locks", locks},
	{"queued signals and timers", signals},
	{"large argument vectors", arguments},
};

// ——— the judge ———

static void remove_all(void)
{
	// A directory's children come up to the top before it goes: paths may be
	// too long for anything else.
	static int number;
	for (int round = 0; round < 200000; round++) {
		if (chdir("/tmp/stress") < 0)
			break;
		DIR *d = opendir(".");
		struct dirent *e;
		int left = 0;
		while (d && (e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			left++;
			if (unlink(e->d_name) == 0 || rmdir(e->d_name) == 0)
				continue;
			char name[600];
			if (chdir(e->d_name) == 0) {
				DIR *in = opendir(".");
				struct dirent *k;
				while (in && (k = readdir(in))) {
					snprintf(name, sizeof name, "/tmp/stress/up%d", number++);
					if (k->d_name[0] != '.' && unlink(k->d_name) < 0 && rename(k->d_name, name) < 0)
						perror("rename");
				}
				if (in)
					closedir(in);
				if (chdir("/tmp/stress") < 0)
					break;
			}
		}
		if (d)
			closedir(d);
		if (left == 0)
			break;
	}
	if (chdir("/") < 0)
		perror("chdir");
}

// clean ends all that is left: every process but us, every file.
static void clean(void)
{
	// A bomb may fork between the signals: again until nobody is left.
	for (int i = 0; i < (getpid() == 1 ? 1000 : 60) && kill(-1, SIGKILL) == 0; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nap(5);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	remove_all();
}

// patient_fork forks, again for some seconds when the machine has no room: right
// after memory ran out a kernel may want to breathe.
static pid_t patient_fork(void)
{
	pid_t pid;
	for (int i = 0; (pid = fork()) < 0 && i < 50; i++)
		nap(100);
	return pid;
}

// patient_write writes a byte to a pipe, again for some seconds when the machine has
// no memory for it.
static int patient_write(int fd, char c)
{
	for (int i = 0; write(fd, &c, 1) != 1; i++) {
		if (errno != ENOMEM || i == 50)
			return 0;
		nap(100);
	}
	return 1;
}

// bystander answers each byte that it reads, whatever happens around it.
static int to_bystander[2], from_bystander[2];
static pid_t bystander;

static void start_bystander(void)
{
	if (pipe(to_bystander) < 0 || pipe(from_bystander) < 0)
		exit(1);
	bystander = patient_fork();
	if (bystander == 0) {
		char c;
		while (read(to_bystander[0], &c, 1) == 1)
			if (!patient_write(from_bystander[1], c))
				_exit(1);
		_exit(0);
	}
	close(from_bystander[1]); // or nobody would hear that it is gone
	from_bystander[1] = -1;
}

// harmed asks the bystander, while all that was used up may still be so.
static int harmed(void)
{
	char c = 'b';
	int st;
	if (patient_write(to_bystander[1], c) && read(from_bystander[0], &c, 1) == 1)
		return 0;
	nap(100);
	if (waitpid(bystander, &st, WNOHANG) == bystander)
		printf("    the bystander: %s\n", died(st));
	return 1;
}

// works tries, with ordinary means, whether the machine does.
static int works(void)
{
	int st;
	char buf[6] = "";
	pid_t pid = patient_fork();
	if (pid == 0) {
		execl("/proc/self/exe", "stress", "exit", NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &st, 0) != pid || st != 42 << 8)
		return 2;
	int fd = open("/tmp/stress/check", O_CREAT | O_RDWR | O_TRUNC, 0600);
	int ok = write(fd, "alive", 5) == 5 && pread(fd, buf, 5, 0) == 5 && strcmp(buf, "alive") == 0;
	close(fd), unlink("/tmp/stress/check");
	return ok ? 0 : 3;
}

static int allowed(void)
{
	struct utsname u;
	char exe[64] = "";
	uname(&u);
	if ((strcasestr(u.version, "hardtack") || strcasestr(u.release, "hardtack")))
		return getpid() == 1;
	return readlink("/proc/1/exe", exe, sizeof exe - 1) > 0 && strcmp(exe, "/bench/init") == 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "exit") == 0)
		return 42;
	if (argc > 10)
		return 0; // our own large argument vector
	if (!allowed()) {
		fprintf(stderr, "stress: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	mkdir("/tmp/stress", 0700);
	int failed = 0;
	for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
		if (argc > 1 && !strstr(uses[i].name, argv[1]))
			continue;
		printf("=== RUN   %s\n", uses[i].name);
		// The first use lets the kernel's heap and caches grow to the size
		// they keep; the second must not need more.
		long before = 0, after = 0;
		int broken = 0, back = 0;
		for (int round = 0; round < 2 && !broken; round++) {
			before = free_kib();
			start_bystander();
			struct timespec t0, t1;
			clock_gettime(CLOCK_MONOTONIC, &t0);
			pid_t pid = patient_fork();
			if (pid == 0) {
				signal(SIGPIPE, SIG_IGN);
				setpgid(0, 0);
				alarm(40);
				uses[i].run();
				_exit(0);
			}
			int st = 0;
			if (pid < 0 || waitpid(pid, &st, 0) != pid)
				broken = 9;
			clock_gettime(CLOCK_MONOTONIC, &t1);
			if (!broken)
				printf("    %s after %.1f s\n", died(st), (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
			if (!broken)
				broken = harmed();
			clean();
			if (!broken)
				broken = works();
			close(to_bystander[0]), close(to_bystander[1]), close(from_bystander[0]), close(from_bystander[1]);
		}
		// The kernel's own heap breathes by some MiB.
		for (int k = 0; k < 50 && !back; k++) {
			after = free_kib();
			back = after >= before - (24 << 10);
			if (!back)
				nap(100);
		}
		printf("    free memory %ld KiB before, %ld after\n", before, after);
		if (broken || !back) {
			printf("--- FAIL: %s: %s %d\n", uses[i].name, broken ? "the machine does not work any more" : "the memory did not come back", broken);
			failed = 1;
		} else {
			printf("--- PASS: %s\n", uses[i].name);
		}
	}
	printf("stress: %s\n", failed ? "FAIL" : "ok");
	return failed;
}
