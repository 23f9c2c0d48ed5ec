// share counts what the kernel's own work, and programs that depend on it, get done in so
// many counted milliseconds: alone, beside 64 threads that spin at all priorities below
// real-time, and beside real-time threads that spin. It prints a line for each:
//
//	WHEN fsync ROUNDS WORST net ROUNDS WORST collect ROUNDS WORST heap ROUNDS COLLECTIONS
//
// where the worst round is in microseconds, and the share of one that computes beside
// real-time threads, in thousandths.
#include "../c/gt.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { spinners = 64, workers = 4 };

static struct work {
	long rounds, worst;
	char pad[48];
} *work;
static _Atomic int *stop;

static long usec(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static int file, ends[2];
static char block[4096];

static void writes_back(void)
{
	must(pwrite(file, block, sizeof block, work[0].rounds % 64 * 4096), "pwrite");
	must(fsync(file), "fsync");
}

static void echoes(void)
{
	char c = 1;
	if (write(ends[0], &c, 1) != 1 || read(ends[0], &c, 1) != 1)
		fatal("echo");
}

// collects has the kernel's collector run once.
static void collects(void)
{
	int fd = must(open("/proc/hardtack/heap", O_WRONLY), "heap");
	must(write(fd, "1", 1), "collect");
	close(fd);
}

// allocates takes memory of the kernel's heap, and leaves it to the collector.
static void allocates(void)
{
	int p[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
	close(p[0]), close(p[1]);
}

static long collections(void)
{
	static char b[8192];
	int fd = open("/proc/hardtack/heap", O_RDONLY), n = read(fd, b, sizeof b - 1);
	close(fd);
	b[n > 0 ? n : 0] = 0;
	char *at = strstr(b, "NumGC");
	return at ? atol(at + 5) : -1;
}

static void connect_ends(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int l = must(socket(AF_INET, SOCK_STREAM, 0), "socket"), on = 1;
	must(bind(l, (void *)&a, len), "bind"), must(listen(l, 1), "listen");
	must(getsockname(l, (void *)&a, &len), "getsockname");
	ends[0] = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	must(connect(ends[0], (void *)&a, len), "connect");
	ends[1] = must(accept(l, 0, 0), "accept");
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	FORK({
		char c;
		close(ends[0]);
		while (read(ends[1], &c, 1) == 1)
			write(ends[1], &c, 1);
	});
	close(ends[1]), close(l);
}

static void works(int i, void (*round)(void))
{
	struct sched_param none = {0};
	must(sched_setscheduler(0, SCHED_OTHER, &none), "sched_setscheduler");
	while (!*stop) {
		long before = usec(CLOCK_MONOTONIC);
		round();
		long took = usec(CLOCK_MONOTONIC) - before;
		work[i].rounds++;
		work[i].worst = took > work[i].worst ? took : work[i].worst;
		if (i == 2)
			sleep_ms(10); // the others need the kernel's memory, too
	}
	_exit(0);
}

// compute takes some 10,000 instructions. A machine that counts them runs one processor until
// it pauses, or a timer is due.
static void compute(void)
{
	for (int i = 0; i < 3333; i++)
		__asm__ volatile("nop");
	__builtin_ia32_pause();
}

static void spin_as(int policy, int priority, int nice)
{
	struct sched_param p = {priority};
	must(setpriority(PRIO_PROCESS, 0, nice), "setpriority");
	must(sched_setscheduler(0, policy, &p), "sched_setscheduler");
	while (!*stop)
		compute();
	_exit(0);
}

// spinner is one of 64: half have the nice values from -20 to 19, as SCHED_OTHER and
// SCHED_BATCH, and the others are SCHED_IDLE or have the value 19.
static void spinner(int i)
{
	static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_OTHER};
	spin_as(policies[i % 4], 0, i % 4 < 2 ? i * 39 / spinners - 20 : 19);
}

static void run(const char *when, int ms)
{
	static void (*const rounds[workers])(void) = {writes_back, echoes, collects, allocates};
	memset(work, 0, sizeof *work * workers);
	long had = collections();
	pid_t pid[workers];
	for (int i = 0; i < workers; i++)
		pid[i] = FORK(works(i, rounds[i]));
	sleep_ms(ms);
	printf("%s fsync %ld %ld net %ld %ld collect %ld %ld heap %ld %ld\n", when, work[0].rounds, work[0].worst, work[1].rounds,
	       work[1].worst, work[2].rounds, work[2].worst, work[3].rounds, collections() - had - work[2].rounds);
	fflush(stdout);
	*stop = 1;
	for (int i = 0; i < workers; i++)
		if (wait_for(pid[i]))
			printf("%s worker %d failed\n", when, i);
	fflush(stdout);
	*stop = 0;
}

// beside starts n processes, which end when the run does.
static void beside(const char *when, int ms, int n, void (*begin)(int))
{
	pid_t pid[spinners];
	for (int i = 0; i < n; i++)
		pid[i] = FORK(begin(i));
	run(when, ms);
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL), wait_for(pid[i]);
}

static int cpus;
static void urgent(int i) { spin_as(i % 2 ? SCHED_RR : SCHED_FIFO, i % 2 ? 1 : 50, 0); }

// left_over computes beside real-time threads.
static void left_over(int ms)
{
	long *took = shared(4096);
	pid_t pid[3 * 64];
	int n = 0;
	for (int i = 0; i < 2 * cpus; i++)
		pid[n++] = FORK(urgent(i));
	for (int i = 0; i < cpus; i++)
		pid[n++] = FORK({
			struct sched_param none = {0};
			must(sched_setscheduler(0, SCHED_OTHER, &none), "sched_setscheduler");
			for (;; compute())
				took[i] = usec(CLOCK_PROCESS_CPUTIME_ID);
		});
	long before[64], sum = 0, began = usec(CLOCK_MONOTONIC);
	memcpy(before, took, sizeof before);
	sleep_ms(ms);
	long passed = usec(CLOCK_MONOTONIC) - began;
	for (int i = 0; i < cpus; i++)
		sum += took[i] - before[i];
	printf("left %ld\n", sum * 1000 / passed / cpus);
	fflush(stdout);
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL), wait_for(pid[i]);
}

int child_main(int argc, char **argv)
{
	(void)gt_last; // there are no tests
	if (argc < 2)
		return 1;
	int ms = atoi(argv[1]);
	struct sched_param first = {99};
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	work = shared(4096), stop = shared(4096);
	must(file = open("/share.data", O_RDWR | O_CREAT, 0600), "open");
	connect_ends();
	// Whoever begins and ends the spinners must not wait for them.
	must(sched_setscheduler(0, SCHED_FIFO, &first), "sched_setscheduler");
	run("alone", ms);
	beside("spinners", ms, spinners, spinner);
	beside("urgent", ms, 2 * cpus, urgent);
	left_over(ms);
	puts("end");
	return 0;
}
