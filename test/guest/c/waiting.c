// Program waiting tests epoll, poll and select and the descriptors that events come
// through: eventfd, timerfd, signalfd, pidfd.
#include "gt.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static struct epoll_event got[16];

static int ctl(int ep, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = {.events = events, .data.u64 = data};
	return epoll_ctl(ep, op, fd, &e);
}

// wait_for_events prints what epoll_wait gives at once.
static void now(const char *what, int ep)
{
	char text[300];
	int n = epoll_wait(ep, got, 16, 0), at = snprintf(text, sizeof text, "%s: %d", what, n);
	for (int i = 0; i < n; i++)
		at += snprintf(text + at, sizeof text - at, " %#x/%d", got[i].events, (int)got[i].data.u64);
	say("%s", text);
}

static void on_signal(int sig) {}

static void handler(int sig, int flags)
{
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = flags};
	sigaction(sig, &a, NULL);
}

TEST(no_events, "epoll with no events asked for")
{
	int p[2], q[2], s[2], ep = epoll_create1(0);
	pipe(p), pipe(q);
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	ctl(ep, EPOLL_CTL_ADD, p[0], 0, 1);
	ctl(ep, EPOLL_CTL_ADD, q[1], 0, 2);
	ctl(ep, EPOLL_CTL_ADD, s[0], 0, 3);
	now("nothing", ep);
	write(p[1], "x", 1), write(s[1], "x", 1);
	now("data", ep);
	close(p[1]);
	now("a hang-up", ep);
	close(q[0]);
	now("an error", ep);
	close(s[1]);
	now("a closed socket", ep);
	ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLET, 1);
	ctl(ep, EPOLL_CTL_DEL, s[0], 0, 0);
	now("edge", ep);
	now("edge again", ep);
	ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLONESHOT, 1);
	ctl(ep, EPOLL_CTL_DEL, q[1], 0, 0);
	now("once", ep);
	now("once again", ep);
	pid_t pid = FORK({ int n = epoll_wait(ep, got, 1, 3000); _exit(n); });
	settle(pid);
	ctl(ep, EPOLL_CTL_MOD, p[0], 0, 1);
	status("a waiter is woken", wait_for(pid));
}

TEST(control, "epoll_ctl")
{
	int p[2], ep = epoll_create1(EPOLL_CLOEXEC), other = epoll_create(1);
	pipe(p);
	num("F_GETFD", fcntl(ep, F_GETFD));
	err("size 0", epoll_create(0));
	err("size -1", epoll_create(-1));
	err("bad flags", epoll_create1(1));
	err("add", ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	err("again", ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	err("change what is not there", ctl(ep, EPOLL_CTL_MOD, p[1], EPOLLIN, 1));
	err("delete what is not there", ctl(ep, EPOLL_CTL_DEL, p[1], EPOLLIN, 1));
	err("delete without event", epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL));
	err("add without event", epoll_ctl(ep, EPOLL_CTL_ADD, p[0], NULL));
	err("bad operation", ctl(ep, 9, p[0], EPOLLIN, 1));
	err("bad operation and event", epoll_ctl(ep, 9, p[0], (void *)8));
	err("itself", ctl(ep, EPOLL_CTL_ADD, ep, EPOLLIN, 1));
	err("no epoll", ctl(p[0], EPOLL_CTL_ADD, p[1], EPOLLIN, 1));
	err("no epoll, no descriptor", ctl(p[0], EPOLL_CTL_ADD, 99, EPOLLIN, 1));
	err("bad descriptor", ctl(ep, EPOLL_CTL_ADD, 99, EPOLLIN, 1));
	err("bad epoll", ctl(99, EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	err("a file", ctl(ep, EPOLL_CTL_ADD, open("f", O_CREAT | O_RDWR, 0644), EPOLLIN, 1));
	err("a directory", ctl(ep, EPOLL_CTL_ADD, open(".", O_RDONLY), EPOLLIN, 1));
	err("O_PATH", ctl(ep, EPOLL_CTL_ADD, open("f", O_PATH), EPOLLIN, 1));
	err("/dev/null", ctl(ep, EPOLL_CTL_ADD, open("/dev/null", O_RDONLY), EPOLLIN, 1));
	err("exclusive", ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE, 1));
	err("changed", ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN, 1));
	err("changed to exclusive", ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLEXCLUSIVE, 1));
	err("deleted", ctl(ep, EPOLL_CTL_DEL, p[0], 0, 0));
	err("exclusive and once", ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 1));
	err("exclusive and edge", ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, 1));
	err("exclusive and RDHUP", ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP, 1));
	err("exclusive and PRI", ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLPRI | EPOLLEXCLUSIVE, 1));
	err("exclusive epoll", ctl(ep, EPOLL_CTL_ADD, other, EPOLLIN | EPOLLEXCLUSIVE, 1));
	err("wakeup", ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLWAKEUP, 1));
	err("nested", ctl(ep, EPOLL_CTL_ADD, other, EPOLLIN, 1));
	err("a loop", ctl(other, EPOLL_CTL_ADD, ep, EPOLLIN, 1));
	int chain = other, depth = 0;
	for (; depth < 10; depth++) {
		int inner = epoll_create1(0);
		if (ctl(chain, EPOLL_CTL_ADD, inner, EPOLLIN, 1) < 0)
			break;
		chain = inner;
	}
	say("depth %d, then %s", depth, name_of(errno));
	char c;
	num("read", read(ep, &c, 1));
	num("write", write(ep, &c, 1));
	num("lseek", lseek(ep, 0, SEEK_SET));
}

TEST(waits, "epoll_wait and its arguments")
{
	int p[2], ep = epoll_create1(0);
	pipe(p);
	write(p[1], "x", 1);
	ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1);
	num("no room", epoll_wait(ep, got, 0, 0));
	num("negative room", epoll_wait(ep, got, -1, 0));
	num("too much room", epoll_wait(ep, got, INT_MAX, 0));
	num("bad descriptor", epoll_wait(99, got, 1, 0));
	num("no epoll", epoll_wait(p[0], got, 1, 0));
	num("bad buffer", epoll_wait(ep, (void *)8, 1, 0));
	num("kernel buffer", epoll_wait(ep, (void *)0xffff800000000000, 1, 0));
	num("it is still there", epoll_wait(ep, got, 1, 0));
	num("negative time", epoll_wait(ep, got, 1, -5));
	struct timespec ts = {0, 1000000000};
	sigset_t mask;
	sigemptyset(&mask);
	num("bad time", syscall(SYS_epoll_pwait2, ep, got, 1, &ts, NULL, 8));
	ts = (struct timespec){-1, 0};
	num("negative time", syscall(SYS_epoll_pwait2, ep, got, 1, &ts, NULL, 8));
	ts = (struct timespec){0, 1000};
	num("a time", syscall(SYS_epoll_pwait2, ep, got, 1, &ts, &mask, 8));
	num("no time", syscall(SYS_epoll_pwait2, ep, got, 1, NULL, &mask, 8));
	num("bad size", syscall(SYS_epoll_pwait2, ep, got, 1, &ts, &mask, 4));
	num("bad time pointer", syscall(SYS_epoll_pwait2, ep, got, 1, (void *)8, &mask, 8));
	num("bad mask", syscall(SYS_epoll_pwait, ep, got, 1, 0, (void *)8, 8));
	num("bad mask size", syscall(SYS_epoll_pwait, ep, got, 1, 0, &mask, 16));
	num("no mask, bad size", syscall(SYS_epoll_pwait, ep, got, 1, 0, NULL, 16));
	char c;
	read(p[0], &c, 1);
	handler(SIGALRM, SA_RESTART);
	ualarm(30000, 0);
	num("a signal, SA_RESTART", epoll_wait(ep, got, 1, 2000));
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	raise(SIGALRM);
	sigemptyset(&mask);
	num("a pending signal that the mask lets in", syscall(SYS_epoll_pwait, ep, got, 1, 1000, &mask, 8));
	raise(SIGALRM);
	num("with no time", syscall(SYS_epoll_pwait, ep, got, 1, 0, &mask, 8));
}

TEST(edges, "edge-triggered and one-shot")
{
	int s[2], ep = epoll_create1(0);
	char c[70000];
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
	ctl(ep, EPOLL_CTL_ADD, s[0], EPOLLIN | EPOLLOUT | EPOLLET, 7);
	now("at first", ep);
	now("again", ep);
	write(s[1], "ab", 2);
	now("data", ep);
	now("again", ep);
	read(s[0], c, 1);
	now("after a part was read", ep);
	write(s[1], "c", 1);
	now("more", ep);
	ctl(ep, EPOLL_CTL_MOD, s[0], EPOLLIN | EPOLLET, 8);
	now("changed", ep);
	ctl(ep, EPOLL_CTL_MOD, s[0], EPOLLIN | EPOLLONESHOT, 9);
	now("once", ep);
	now("again", ep);
	write(s[1], "d", 1);
	now("more data", ep);
	ctl(ep, EPOLL_CTL_MOD, s[0], EPOLLIN | EPOLLONESHOT, 10);
	now("armed", ep);
	close(s[1]);
	now("a hang-up after it fired", ep);
	ctl(ep, EPOLL_CTL_MOD, s[0], EPOLLIN | EPOLLRDHUP, 11);
	now("level", ep);
	int p[2];
	pipe2(p, O_NONBLOCK);
	ctl(ep, EPOLL_CTL_DEL, s[0], 0, 0);
	ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET, 12);
	now("a pipe", ep);
	while (write(p[1], c, sizeof c) > 0)
		;
	now("full", ep);
	read(p[0], c, 100);
	now("a bit read", ep);
	read(p[0], c, 60000);
	now("much read", ep);
	int ev = eventfd(0, EFD_NONBLOCK);
	uint64_t one = 1;
	ctl(ep, EPOLL_CTL_ADD, ev, EPOLLIN | EPOLLET, 13);
	write(ev, &one, 8);
	now("eventfd", ep);
	write(ev, &one, 8);
	now("counted on", ep);
}

TEST(closing, "descriptors that are closed, copies")
{
	int p[2], ep = epoll_create1(0);
	pipe(p);
	write(p[1], "x", 1);
	ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1);
	int d = dup(p[0]);
	err("a copy is another", ctl(ep, EPOLL_CTL_ADD, d, EPOLLIN, 2));
	now("both", ep);
	close(p[0]);
	now("one is closed", ep);
	err("change it", ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN, 1));
	dup2(d, p[0]);
	err("change it after dup2", ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN, 3));
	now("then", ep);
	close(p[0]), close(d);
	now("all are closed", ep);
	int e2 = epoll_create1(0);
	ctl(e2, EPOLL_CTL_ADD, ep, EPOLLIN, 4);
	int q[2];
	pipe(q);
	ctl(ep, EPOLL_CTL_ADD, q[0], EPOLLIN, 5);
	now("outer, nothing", e2);
	write(q[1], "x", 1);
	now("outer", e2);
	now("inner", ep);
	struct pollfd f = {ep, POLLIN | POLLOUT, 0};
	num("poll of an epoll", poll(&f, 1, 0));
	say("%#x", f.revents);
	char c;
	read(q[0], &c, 1);
	now("outer, after the read", e2);
	close(ep);
	now("outer, after the close", e2);
}

TEST(polls, "poll and ppoll")
{
	int p[2];
	pipe(p);
	struct pollfd f[3] = {{p[0], POLLIN, 99}, {-1, POLLIN, 99}, {p[1], POLLOUT, 99}};
	num("poll", poll(f, 3, 0));
	say("%#x %#x %#x", f[0].revents, f[1].revents, f[2].revents);
	f[1].fd = 99;
	num("a bad descriptor", poll(f, 3, 0));
	say("%#x", f[1].revents);
	f[1].events = 0;
	num("it, with no events", poll(f + 1, 1, 0));
	say("%#x", f[1].revents);
	num("none", poll(NULL, 0, 0));
	num("bad array", poll((void *)8, 1, 0));
	num("bad array, none", poll((void *)8, 0, 0));
	struct rlimit r;
	getrlimit(RLIMIT_NOFILE, &r);
	num("too many", syscall(SYS_poll, f, r.rlim_cur + 1, 0));
	num("very many", syscall(SYS_poll, f, 0xffffffff, 0));
	struct rlimit few = {2, r.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	num("more than the limit", poll(f, 3, 0));
	num("as many", poll(f, 2, 0));
	setrlimit(RLIMIT_NOFILE, &r);
	int file = open("f", O_CREAT | O_RDWR, 0644);
	f[0] = (struct pollfd){file, POLLIN | POLLOUT | POLLPRI | POLLRDNORM | POLLWRNORM | POLLRDHUP, 0};
	f[1] = (struct pollfd){open(".", O_RDONLY), POLLIN | POLLOUT | POLLRDNORM, 0};
	f[2] = (struct pollfd){open("/dev/null", O_RDWR), POLLIN | POLLOUT | POLLWRNORM, 0};
	num("files", poll(f, 3, 0));
	say("%#x %#x %#x", f[0].revents, f[1].revents, f[2].revents);
	f[0] = (struct pollfd){open("f", O_PATH), POLLIN, 0};
	num("O_PATH", poll(f, 1, 0));
	say("%#x", f[0].revents);
	struct timespec ts = {0, 1000000000};
	f[0] = (struct pollfd){p[0], POLLIN, 0};
	num("bad time", syscall(SYS_ppoll, f, 1, &ts, NULL, 8));
	ts = (struct timespec){-1, 0};
	num("negative time", syscall(SYS_ppoll, f, 1, &ts, NULL, 8));
	num("bad time pointer", syscall(SYS_ppoll, f, 1, (void *)8, NULL, 8));
	ts = (struct timespec){0, 20000000};
	num("a time passes", syscall(SYS_ppoll, f, 1, &ts, NULL, 8));
	say("left %ld %ld", (long)ts.tv_sec, ts.tv_nsec);
	write(p[1], "x", 1);
	ts = (struct timespec){100, 0};
	num("at once", syscall(SYS_ppoll, f, 1, &ts, NULL, 8));
	say("left %d", ts.tv_sec == 99 && ts.tv_nsec > 0);
	sigset_t mask;
	sigemptyset(&mask);
	num("bad mask size", syscall(SYS_ppoll, f, 1, &ts, &mask, 4));
	char c;
	read(p[0], &c, 1);
	handler(SIGALRM, SA_RESTART);
	ualarm(30000, 0);
	num("a signal", poll(f, 1, 2000));
	ualarm(30000, 0);
	ts = (struct timespec){2, 0};
	num("ppoll, a signal", syscall(SYS_ppoll, f, 1, &ts, NULL, 8));
	say("left %d", ts.tv_sec == 1);
	num("negative milliseconds, ready", (f[0].fd = p[1], f[0].events = POLLOUT, poll(f, 1, -7)));
}

TEST(selects, "select and pselect")
{
	int p[2];
	pipe(p);
	fd_set in, out, ex;
	struct timeval tv = {0, 0};
#define SETS ({ FD_ZERO(&in); FD_ZERO(&out); FD_ZERO(&ex); FD_SET(p[0], &in); FD_SET(p[1], &out); FD_SET(p[0], &ex); })
	SETS;
	num("select", select(10, &in, &out, &ex, &tv));
	say("%d %d %d", FD_ISSET(p[0], &in), FD_ISSET(p[1], &out), FD_ISSET(p[0], &ex));
	SETS;
	num("too few", select(p[1], &in, &out, &ex, &tv));
	num("negative", select(-1, &in, &out, &ex, &tv));
	SETS;
	FD_SET(50, &in);
	num("a bad descriptor", select(51, &in, NULL, NULL, &tv));
	SETS;
	FD_SET(50, &in);
	num("beyond", select(50, &in, NULL, NULL, &tv));
	SETS;
	FD_SET(open(".", O_PATH), &in);
	num("O_PATH", select(40, &in, NULL, NULL, &tv));
	tv = (struct timeval){0, 1000000};
	num("a million microseconds", (SETS, select(10, NULL, &out, NULL, &tv)));
	tv = (struct timeval){-1, 0};
	num("negative time", select(10, NULL, &out, NULL, &tv));
	tv = (struct timeval){0, -1};
	num("negative microseconds", select(10, NULL, &out, NULL, &tv));
	num("bad time", syscall(SYS_select, 10, NULL, &out, NULL, (void *)8));
	tv = (struct timeval){0, 0};
	num("bad set", select(10, (void *)8, NULL, NULL, &tv));
	num("bad set, no descriptors", select(0, (void *)8, NULL, NULL, &tv));
	tv = (struct timeval){0, 20000};
	num("a time passes", select(0, NULL, NULL, NULL, &tv));
	say("left %ld %ld", (long)tv.tv_sec, (long)tv.tv_usec);
	tv = (struct timeval){50, 0};
	num("at once", (SETS, select(10, NULL, &out, NULL, &tv)));
	say("left %d", tv.tv_sec == 49);
	close(p[0]);
	tv = (struct timeval){0, 0};
	FD_ZERO(&ex); FD_SET(p[1], &ex); FD_ZERO(&in); FD_SET(p[1], &in); FD_ZERO(&out); FD_SET(p[1], &out);
	num("nobody reads", select(10, &in, &out, &ex, &tv));
	say("%d %d %d", FD_ISSET(p[1], &in), FD_ISSET(p[1], &out), FD_ISSET(p[1], &ex));
	struct timespec ts = {0, 1000000000};
	struct { sigset_t *m; size_t n; } sig = {NULL, 8};
	num("pselect, bad time", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL));
	ts = (struct timespec){0, 1000};
	num("no mask", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, &sig));
	sigset_t mask;
	sigemptyset(&mask);
	sig.m = &mask, sig.n = 4;
	num("bad size", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, &sig));
	num("bad mask", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, (void *)8));
	handler(SIGALRM, SA_RESTART);
	ualarm(30000, 0);
	tv = (struct timeval){2, 0};
	num("a signal", select(0, NULL, NULL, NULL, &tv));
	say("left %d", tv.tv_sec == 1);
	ualarm(30000, 0);
	ts = (struct timespec){2, 0};
	num("pselect, a signal", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL));
	say("left %d", ts.tv_sec == 1);
}

TEST(counters, "eventfd")
{
	uint64_t v = 0;
	int e = eventfd(5, EFD_NONBLOCK), s = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE);
	err("bad flags", eventfd(0, 2));
	num("read", read(e, &v, 8));
	say("%llu", (unsigned long long)v);
	num("read again", read(e, &v, 8));
	num("short read", read(e, &v, 7));
	num("long read of nothing", read(e, &v, 100));
	num("short write", write(e, &v, 7));
	v = ULLONG_MAX;
	num("write of the greatest", write(e, &v, 8));
	v = ULLONG_MAX - 1;
	num("write of the next", write(e, &v, 8));
	struct pollfd f = {e, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM, 0};
	poll(&f, 1, 0);
	say("full: %#x", f.revents);
	v = 1;
	num("write one more", write(e, &v, 8));
	v = 0;
	num("write zero", write(e, &v, 8));
	num("read", read(e, &v, 8));
	say("%llu", (unsigned long long)v);
	poll(&f, 1, 0);
	say("empty: %#x", f.revents);
	for (int i = 0; i < 3; i++) {
		num("semaphore", read(s, &v, 8));
		say("%llu", (unsigned long long)v);
	}
	num("bad buffer", (v = 3, write(e, &v, 8), read(e, (void *)8, 8)));
	num("is it lost", read(e, &v, 8));
	num("bad buffer of a write", write(e, (void *)8, 8));
	num("lseek", lseek(e, 0, SEEK_SET));
	num("pread", pread(e, &v, 8, 0));
	num("pwrite", pwrite(e, &v, 8, 0));
	uint32_t half[2] = {7, 0};
	struct iovec iov[2] = {{half, 4}, {half + 1, 4}};
	num("writev in parts", writev(e, iov, 2));
	num("readv in parts", readv(e, iov, 2));
	say("%u %u", half[0], half[1]);
}

TEST(timers, "timerfd")
{
	struct itimerspec t = {{0, 0}, {0, 20000000}}, old;
	uint64_t v = 0;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	err("bad clock", timerfd_create(99, 0));
	err("processor time", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
	err("CLOCK_MONOTONIC_RAW", timerfd_create(CLOCK_MONOTONIC_RAW, 0));
	err("CLOCK_BOOTTIME", timerfd_create(CLOCK_BOOTTIME, 0));
	err("bad flags", timerfd_create(CLOCK_MONOTONIC, 1));
	num("read, not armed", read(fd, &v, 8));
	num("write", write(fd, &v, 8));
	num("short read", read(fd, &v, 7));
	err("bad flags", timerfd_settime(fd, 8, &t, NULL));
	err("no timerfd", timerfd_settime(0, 0, &t, NULL));
	err("bad descriptor", timerfd_settime(99, 0, &t, NULL));
	err("bad pointer", timerfd_settime(fd, 0, (void *)8, NULL));
	err("null", timerfd_settime(fd, 0, NULL, NULL));
	t.it_value.tv_nsec = 1000000000;
	err("bad nanoseconds", timerfd_settime(fd, 0, &t, NULL));
	t.it_value = (struct timespec){-1, 0};
	err("negative", timerfd_settime(fd, 0, &t, NULL));
	t = (struct itimerspec){{0, 10000000}, {0, 10000000}};
	err("set", timerfd_settime(fd, 0, &t, &old));
	say("old %ld %ld", old.it_value.tv_nsec, old.it_interval.tv_nsec);
	sleep_ms(55);
	num("read", read(fd, &v, 8));
	say("several %d", v >= 5);
	err("gettime", timerfd_gettime(fd, &old));
	say("interval %ld, left %d", old.it_interval.tv_nsec, old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 10000000);
	struct pollfd f = {fd, POLLIN | POLLOUT, 0};
	poll(&f, 1, 100);
	say("poll %#x", f.revents);
	t = (struct itimerspec){{0, 0}, {0, 0}};
	err("disarm", timerfd_settime(fd, 0, &t, NULL));
	num("read", read(fd, &v, 8));
	err("gettime, bad pointer", timerfd_gettime(fd, (void *)8));
	t = (struct itimerspec){{0, 0}, {0, 1}};
	err("past", timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL));
	sleep_ms(5);
	num("read", read(fd, &v, 8));
	say("%llu", (unsigned long long)v);
	int r = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
	t = (struct itimerspec){{0, 0}, {LLONG_MAX, 0}};
	err("cancel on set", timerfd_settime(r, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &t, NULL));
	num("read", read(r, &v, 8));
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (clock_settime(CLOCK_REALTIME, &now) == 0 || 1) {
		struct pollfd g = {r, POLLIN, 0};
		num("poll after the clock was set", poll(&g, 1, 100));
		num("read", read(r, &v, 8));
		num("read again", read(r, &v, 8));
	}
	err("cancel without ABSTIME", timerfd_settime(r, TFD_TIMER_CANCEL_ON_SET, &t, NULL));
	num("bad buffer", (t = (struct itimerspec){{0, 0}, {0, 1}}, timerfd_settime(fd, 0, &t, NULL), sleep_ms(5), read(fd, (void *)8, 8)));
	num("after that", read(fd, &v, 8));
	num("TFD_IOC_SET_TICKS", (v = 5, ioctl(fd, _IOW('T', 0, uint64_t), &v)));
	num("read", read(fd, &v, 8));
	num("of 0", (v = 0, ioctl(fd, _IOW('T', 0, uint64_t), &v)));
}

TEST(signal_files, "signalfd")
{
	sigset_t m;
	struct signalfd_siginfo i[3];
	sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &m, NULL);
	int fd = signalfd(-1, &m, SFD_NONBLOCK);
	num("read", read(fd, i, sizeof i));
	kill(getpid(), SIGUSR1);
	union sigval v = {.sival_int = 77};
	sigqueue(getpid(), SIGRTMIN, v), sigqueue(getpid(), SIGRTMIN, v);
	struct pollfd f = {fd, POLLIN | POLLOUT, 0};
	poll(&f, 1, 0);
	say("poll %#x", f.revents);
	num("short", read(fd, i, 127));
	num("one", read(fd, i, 130));
	say("signo %d code %d own pid %d uid %d", i[0].ssi_signo, i[0].ssi_code, i[0].ssi_pid == getpid(), i[0].ssi_uid);
	num("two", read(fd, i, sizeof i));
	say("signo %d code %d int %d", i[1].ssi_signo - SIGRTMIN, i[1].ssi_code, i[1].ssi_int);
	num("write", write(fd, i, 128));
	err("bad flags", signalfd(-1, &m, 1));
	err("bad descriptor", signalfd(99, &m, 0));
	err("no signalfd", signalfd(0, &m, 0));
	err("bad size", syscall(SYS_signalfd4, -1, &m, 4, 0));
	err("bad mask", syscall(SYS_signalfd4, -1, (void *)8, 8, 0));
	sigemptyset(&m), sigaddset(&m, SIGUSR2), sigaddset(&m, SIGKILL), sigaddset(&m, SIGSTOP);
	sigprocmask(SIG_BLOCK, &m, NULL);
	num("same descriptor", signalfd(fd, &m, 0) == fd);
	kill(getpid(), SIGUSR1);
	num("the old mask is gone", read(fd, i, sizeof i));
	kill(getpid(), SIGUSR2);
	num("the new one counts", read(fd, i, sizeof i));
	say("signo %d", i[0].ssi_signo);
	pid_t p = FORK(kill(getppid(), SIGUSR2));
	wait_for(p);
	num("from a child", read(fd, i, sizeof i));
	say("pid %d status %d", (pid_t)i[0].ssi_pid == p, i[0].ssi_status);
	sigemptyset(&m), sigaddset(&m, SIGCHLD);
	sigprocmask(SIG_BLOCK, &m, NULL);
	fd = signalfd(-1, &m, SFD_NONBLOCK);
	p = FORK(_exit(9));
	wait_for(p);
	num("SIGCHLD", read(fd, i, sizeof i));
	say("code %d pid %d status %d", i[0].ssi_code, (pid_t)i[0].ssi_pid == p, i[0].ssi_status);
}

static long pidfd_open(pid_t pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }

TEST(pid_files, "pidfd")
{
	siginfo_t si;
	err("pid 0", pidfd_open(0, 0));
	err("pid -1", pidfd_open(-1, 0));
	err("nobody", pidfd_open(9999999, 0));
	err("bad flags", pidfd_open(getpid(), 1));
	pid_t p = FORK(sleep_ms(50), _exit(7));
	int fd = (int)must(pidfd_open(p, 0), "pidfd_open");
	num("F_GETFD", fcntl(fd, F_GETFD));
	struct pollfd f = {fd, POLLIN | POLLOUT | POLLRDNORM, 0};
	num("poll", poll(&f, 1, 0));
	num("poll until it ends", poll(&f, 1, 5000));
	say("%#x", f.revents);
	char c;
	num("read", read(fd, &c, 1));
	num("write", write(fd, &c, 1));
	num("lseek", lseek(fd, 0, SEEK_SET));
	num("signal to a zombie", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	memset(&si, 0, sizeof si);
	num("waitid, not WEXITED", waitid(P_PIDFD, fd, &si, WNOHANG));
	num("waitid", waitid(P_PIDFD, fd, &si, WEXITED));
	say("status %d code %d", si.si_status, si.si_code);
	num("waitid again", waitid(P_PIDFD, fd, &si, WEXITED));
	num("poll", poll(&f, 1, 0));
	num("signal to nobody", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	num("waitid of another descriptor", waitid(P_PIDFD, 0, &si, WEXITED));
	num("waitid of a bad one", waitid(P_PIDFD, 99, &si, WEXITED));
	int own = (int)pidfd_open(getpid(), 0);
	num("waitid of oneself", waitid(P_PIDFD, own, &si, WEXITED | WNOHANG));
	num("send flags", syscall(SYS_pidfd_send_signal, own, 0, NULL, 64));
	num("send a bad signal", syscall(SYS_pidfd_send_signal, own, 65, NULL, 0));
	num("send to no pidfd", syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0));
	si.si_signo = SIGUSR1, si.si_code = SI_QUEUE;
	num("another signal in siginfo", syscall(SYS_pidfd_send_signal, own, SIGUSR2, &si, 0));
	num("getfd", syscall(SYS_pidfd_getfd, own, 1, 0) > 0);
	num("getfd, flags", syscall(SYS_pidfd_getfd, own, 1, 1));
	num("getfd, bad target", syscall(SYS_pidfd_getfd, own, 999, 0));
	num("getfd, negative", syscall(SYS_pidfd_getfd, own, -1, 0));
	num("getfd, no pidfd", syscall(SYS_pidfd_getfd, 0, 1, 0));
	num("getfd of the dead", syscall(SYS_pidfd_getfd, fd, 1, 0));
	int nb = (int)pidfd_open(p = FORK(pause()), O_NONBLOCK);
	num("O_NONBLOCK", !!(fcntl(nb, F_GETFL) & O_NONBLOCK));
	num("waitid", waitid(P_PIDFD, nb, &si, WEXITED));
	num("kill", syscall(SYS_pidfd_send_signal, nb, SIGKILL, NULL, 0));
	wait_for(p);
}

static void own_signal(int sig, siginfo_t *i, void *u)
{
	static const char *names[] = {"io", "rt"};
	say("signal %s code %d band %#lx fd %d", names[sig != SIGIO], i->si_code, i->si_code > 0 && i->si_code < 10 ? i->si_band : 0, i->si_code > 0 && i->si_code < 10 ? i->si_fd > 2 : -1);
}

TEST(asynchronous, "O_ASYNC")
{
	struct sigaction a = {.sa_sigaction = own_signal, .sa_flags = SA_SIGINFO};
	sigaction(SIGIO, &a, NULL), sigaction(SIGRTMIN, &a, NULL);
	int p[2], s[2];
	char c[10];
	pipe2(p, O_NONBLOCK);
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
	fcntl(p[0], F_SETOWN, getpid());
	fcntl(p[0], F_SETFL, O_NONBLOCK | O_ASYNC);
	say("pipe");
	write(p[1], "x", 1);
	sleep_ms(20);
	fcntl(p[0], F_SETSIG, SIGRTMIN);
	num("F_GETSIG", fcntl(p[0], F_GETSIG) - SIGRTMIN);
	write(p[1], "x", 1);
	sleep_ms(20);
	read(p[0], c, 10);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	say("off");
	write(p[1], "x", 1);
	sleep_ms(20);
	fcntl(s[0], F_SETFL, O_NONBLOCK | O_ASYNC);
	fcntl(s[0], F_SETOWN, getpid());
	say("socket");
	write(s[1], "x", 1);
	sleep_ms(20);
	fcntl(s[0], F_SETFL, O_NONBLOCK);
	struct f_owner_ex o = {F_OWNER_TID, gettid()};
	err("F_SETOWN_EX", fcntl(s[0], F_SETOWN_EX, &o));
	o = (struct f_owner_ex){9, 9};
	err("F_GETOWN_EX", fcntl(s[0], F_GETOWN_EX, &o));
	say("type %d own %d", o.type, o.pid == gettid());
	o.type = 7;
	err("bad type", fcntl(s[0], F_SETOWN_EX, &o));
	o = (struct f_owner_ex){F_OWNER_PID, 9999999};
	err("nobody", fcntl(s[0], F_SETOWN_EX, &o));
	o = (struct f_owner_ex){F_OWNER_PGRP, getpgrp()};
	err("a group", fcntl(s[0], F_SETOWN_EX, &o));
	num("F_GETOWN", fcntl(s[0], F_GETOWN) == -getpgrp() || errno);
	err("bad pointer", fcntl(s[0], F_SETOWN_EX, 8));
	err("F_SETSIG 65", fcntl(s[0], F_SETSIG, 65));
	err("F_SETSIG -1", fcntl(s[0], F_SETSIG, -1));
}
