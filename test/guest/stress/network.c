// A user takes what the network keeps for connections with another machine, beside a
// program of another user and one of root's that each talk to that machine: none of their
// calls may fail, and the kernel must live on.
//
// It runs as process 1 of a Hardtack guest. Its arguments are three ports of the host: one
// that answers with what it gets, one whose server reads nothing, one that sends all it can.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { offender = 1000, innocent = 1001, workers = 8 };

static int echoes, deaf, loud;
static long during = 4000; // ms that the offenders have

static struct state {
	atomic_long taken, kept;
	atomic_int over, step[2]; // which call is under way, where a program hangs
	atomic_long rounds[2], failed[2], least;
	char what[2][64];
} *st;

static void nap(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static long now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct sockaddr_in host(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	a.sin_addr.s_addr = inet_addr("10.0.2.2");
	return a;
}

static int joined(int port)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = host(port);
	if (s < 0)
		return -1;
	if (connect(s, (void *)&a, sizeof a) < 0) {
		close(s);
		return -1;
	}
	return s;
}

static char page[1 << 16];

// full fills what a connection may send.
static void full(int s)
{
	int most = 64 << 20;
	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
	for (int i = 0; i < 20; i++) { // the other end takes some, a moment later
		ssize_t n, sum = 0;
		while ((n = send(s, page, sizeof page, MSG_DONTWAIT)) > 0)
			sum += n;
		st->kept += sum;
		if (n < 0 && errno != EAGAIN)
			return;
		if (sum == 0)
			break;
		nap(3);
	}
}

// ——— what offenders do ———

static void senders(void)
{
	for (int s; (s = joined(deaf)) >= 0; st->taken++)
		full(s);
}

static void orphans(void)
{
	for (int s; (s = joined(deaf)) >= 0; st->taken++) {
		full(s);
		close(s);
	}
}

// drip fills what a connection may send, a byte at a time.
static void drip(int s)
{
	int most = 64 << 20, one = 1;
	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct iovec byte = {"x", 1};
	static struct mmsghdr many[1024];
	for (int i = 0; i < 1024; i++)
		many[i].msg_hdr = (struct msghdr){.msg_iov = &byte, .msg_iovlen = 1};
	for (int n; (n = sendmmsg(s, many, 1024, MSG_DONTWAIT)) > 0;)
		st->kept += n;
}

static void drips(void)
{
	for (int s; (s = joined(deaf)) >= 0; st->taken++)
		drip(s);
}

// The far end never closes, so that the connection is half closed.
static void halves(void)
{
	for (int s; (s = joined(deaf)) >= 0; st->taken++)
		close(s);
}

static void readers(void)
{
	int most = 64 << 20;
	for (int s; (s = joined(loud)) >= 0; st->taken++)
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
}

static void closers(void)
{
	for (int s; (s = joined(echoes)) >= 0; st->taken++)
		close(s);
}

// Ports within the machine, which no two sockets share.
static void ports(int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	a.sin_addr.s_addr = htonl(INADDR_ANY);
	for (int p = 32768; p < 61000; p++) {
		int s = socket(AF_INET, type, 0);
		if (s < 0)
			return;
		a.sin_port = htons(p);
		if (bind(s, (void *)&a, sizeof a) == 0)
			st->taken++;
		else
			close(s);
	}
}
static void tcpports(void) { ports(SOCK_STREAM); }
static void udpports(void) { ports(SOCK_DGRAM); }

// Connections within the machine that end at once, whose ports rest for a while.
static void turns(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listen(l, 100);
	getsockname(l, (void *)&a, &size);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (;; st->taken++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(s, (void *)&a, sizeof a) < 0)
			nap(1);
		close(s);
		close(accept(l, NULL, NULL));
	}
}

// The same through the packets of the loopback interface; the data is never read.
static void loops(void (*fill)(int))
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	listen(l, 4096);
	getsockname(l, (void *)&a, &size);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (;; st->taken++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
		fcntl(s, F_SETFL, O_NONBLOCK);
		connect(s, (void *)&a, sizeof a);
		nap(1);
		fill(s);
		close(s);
	}
}
static void looped(void) { loops(full); }
static void dripped(void) { loops(drip); }

// Neighbours that do not exist, with a packet that waits for each.
static void neighbours(void)
{
	struct sockaddr_in a = host(9);
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	for (unsigned i = 0;; i++) {
		a.sin_addr.s_addr = inet_addr("10.0.2.0") + htonl(20 + i % 200);
		sendto(s, page, 1400, MSG_DONTWAIT, (void *)&a, sizeof a);
		st->taken++;
	}
}

static const struct {
	const char *name;
	void (*take)(void);
	int processes;
	int times; // as long as the others
} things[] = {
	{"tcpports", tcpports, 1, 1},
	{"udpports", udpports, 1, 1},
	{"turns", turns, 2, 1},
	{"closers", closers, workers, 1},
	{"halves", halves, workers, 1},
	{"senders", senders, workers, 1},
	{"orphans", orphans, workers, 3},
	{"readers", readers, workers, 1},
	{"looped", looped, workers, 3},
	{"drips", drips, workers, 1},
	{"dripped", dripped, workers, 4},
	{"neighbours", neighbours, 4, 1},
};

// ——— who behaves ———

static const char *exchange(void)
{
	int s = joined(echoes);
	if (s < 0)
		return "connect";
	const char *bad = NULL;
	if (send(s, page, 1000, 0) != 1000)
		bad = "send";
	else if (recv(s, page, 1000, MSG_WAITALL) != 1000)
		bad = "recv";
	close(s);
	return bad;
}

static const char *datagram(void)
{
	char buf[100];
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t size = sizeof a;
	int r = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	const char *bad = NULL;
	if (r < 0 || s < 0)
		bad = "socket";
	else if (bind(r, (void *)&a, sizeof a) < 0)
		bad = "bind";
	else if (getsockname(r, (void *)&a, &size) < 0 || sendto(s, "x", 1, 0, (void *)&a, size) != 1)
		bad = "sendto";
	else if (recv(r, buf, sizeof buf, 0) != 1)
		bad = "recv of a datagram";
	if (bad)
		return bad;
	close(r);
	close(s);
	return NULL;
}

static const char *within(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (l < 0 || s < 0)
		return "socket";
	if (bind(l, (void *)&a, sizeof a) < 0)
		return "bind for listen";
	if (listen(l, 1) < 0 || getsockname(l, (void *)&a, &size) < 0)
		return "listen";
	if (connect(s, (void *)&a, sizeof a) < 0)
		return "connect within";
	close(s);
	close(l);
	return NULL;
}

static const char *child(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid ? "fork" : NULL;
}

static void behave(int i)
{
	static const char *(*const steps[])(void) = {exchange, datagram, within, child};
	while (!st->over) {
		for (int k = 0; k < 4; k++) {
			st->step[i] = k;
			errno = 0;
			const char *bad = steps[k]();
			if (bad && st->failed[i]++ == 0)
				snprintf(st->what[i], sizeof st->what[i], "%s: %s", bad, strerror(errno));
		}
		st->rounds[i]++;
		nap(5);
	}
	_exit(0);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(99);
}

static pid_t start(uid_t uid, void (*run)(void), int i)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	struct rlimit rl = {1 << 16, 1 << 16};
	setrlimit(RLIMIT_NOFILE, &rl);
	signal(SIGPIPE, SIG_IGN);
	become(uid);
	if (!run)
		behave(i);
	run();
	while (!st->over)
		nap(50);
	_exit(0);
}

static int lived(pid_t pid)
{
	int status = 0;
	for (int i = 0; i < 1000; i++, nap(10))
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status == 0;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1; // it hung
}

static long unused(void)
{
	struct sysinfo si;
	sysinfo(&si);
	return si.freeram >> 10;
}

static int beside(const char *name, void (*take)(void), int n, int times)
{
	int killed = 0;
	memset(st, 0, sizeof *st);
	st->least = unused();
	pid_t good[2] = {start(innocent, NULL, 0), start(0, NULL, 1)}, bad[workers];
	for (int i = 0; i < n; i++)
		bad[i] = start(offender, take, 0);
	for (long end = now() + during * times; now() < end; nap(20)) {
		long f = unused();
		if (f < st->least)
			st->least = f;
		for (int i = 0; i < n; i++) // whoever was killed for memory comes back
			if (waitpid(bad[i], NULL, WNOHANG) == bad[i]) {
				bad[i] = start(offender, take, 0);
				killed++;
			}
	}
	st->over = 1;
	int a = lived(good[0]), b = lived(good[1]);
	if (a < 0 || b < 0)
		printf("%s: FAIL: hung in step %d of the user, %d of root\n", name, st->step[0], st->step[1]);
	for (int i = 0; i < n; i++)
		kill(bad[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(bad[i], NULL, 0);
	int f = open("/proc/sys/vm/drop_caches", O_WRONLY);
	for (int i = 0; i < 5; i++) { // what is garbage goes
		write(f, "3", 1);
		nap(100);
	}
	close(f);
	int ok = a == 1 && b == 1 && !st->failed[0] && !st->failed[1] && st->rounds[0] + st->rounds[1];
	printf("%s: %s: took %ld, %ld KiB sent, %d killed; user %ld rounds, %ld failed %s (%d); root %ld, %ld %s (%d); least free %ld KiB, now %ld\n", name,
	       ok ? "ok" : "FAIL", (long)st->taken, (long)st->kept >> 10, killed, (long)st->rounds[0], (long)st->failed[0], st->what[0], a,
	       (long)st->rounds[1], (long)st->failed[1], st->what[1], b, (long)st->least, unused());
	return ok;
}

int main(int argc, char **argv)
{
	if (getpid() != 1 || argc < 4) {
		fprintf(stderr, "network: this is not process 1 of a Hardtack guest, or has no ports\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	echoes = atoi(argv[1]);
	deaf = atoi(argv[2]);
	loud = atoi(argv[3]);
	st = mmap(NULL, sizeof *st, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGPIPE, SIG_IGN);
	if (argc > 5)
		during = atol(argv[5]);
	int ok = 1;
	for (size_t i = 0; i < sizeof things / sizeof *things; i++)
		if (argc < 5 || !strcmp(argv[4], things[i].name))
			ok &= beside(things[i].name, things[i].take, things[i].processes, things[i].times);
	printf("network: %s\n", ok ? "ok" : "FAIL");
	return !ok;
}
