// Offenders that use descriptors: pipes, epoll, timers.
#include "memory.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static void pipesWith(size_t bytes)
{
	char *buf = emptyPages(65536);
	moreDescriptors();
	for (int p[2]; pipe2(p, O_NONBLOCK) == 0;)
		if (bytes > 0)
			write(p[1], buf, bytes);
}

static void pipes0(void) { pipesWith(0); }
static void pipes1(void) { pipesWith(1); }
static void pipesfull(void) { pipesWith(65536); }

static void epolls(void)
{
	moreDescriptors();
	while (epoll_create1(0) >= 0)
		;
}

// Each epoll watches all descriptors.
static void epollitems(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fds[500];
	moreDescriptors();
	for (int i = 0; i < 500; i++)
		if ((fds[i] = eventfd(0, 0)) < 0)
			return;
	for (int e; (e = epoll_create1(0)) >= 0;)
		for (int i = 0; i < 500; i++)
			epoll_ctl(e, EPOLL_CTL_ADD, fds[i], &ev);
}

// Chains of epolls, as deep as may be.
static void epollchains(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int last = -1;
	moreDescriptors();
	for (int e; (e = epoll_create1(0)) >= 0; last = e)
		if (last >= 0 && epoll_ctl(e, EPOLL_CTL_ADD, last, &ev) < 0)
			nap(0);
}

static void eventfds(void)
{
	moreDescriptors();
	while (eventfd(0, 0) >= 0)
		;
}

static void timerfds(void)
{
	struct itimerspec later = {.it_value.tv_sec = 1000};
	moreDescriptors();
	for (int fd; (fd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0;)
		timerfd_settime(fd, 0, &later, NULL);
}

// A file that is opened once: tables of descriptors, which each fork copies.
static void dups(void)
{
	moreDescriptors();
	while (dup(0) >= 0)
		;
	while (fork() >= 0) // the copies fork, too
		nap(1);
}

static void ptys(void)
{
	moreDescriptors();
	while (open("/dev/ptmx", O_RDWR) >= 0)
		;
}

// A file takes all memory that a file may, then epolls.
static void fullepolls(void)
{
	char *buf = emptyPages(1 << 20);
	int fd = open("/tmp/full", O_CREAT | O_WRONLY | O_APPEND, 0600);
	while (write(fd, buf, 1 << 20) > 0)
		;
	close(fd);
	epolls();
}

static void fullsockets(void)
{
	char *buf = emptyPages(1 << 20);
	int fd = open("/tmp/full", O_CREAT | O_WRONLY | O_APPEND, 0600);
	while (write(fd, buf, 1 << 20) > 0)
		;
	close(fd);
	moreDescriptors();
	for (int s[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0;)
		write(s[0], "x", 1);
}

const struct kind descriptorKinds[] = {
	{"pipes", pipes0},
	{"pipebytes", pipes1},
	{"pipesfull", pipesfull},
	{"epolls", epolls},
	{"epollitems", epollitems},
	{"epollchains", epollchains},
	{"eventfds", eventfds},
	{"timerfds", timerfds},
	{"dups", dups},
	{"ptys", ptys},
	{"fullepolls", fullepolls},
	{"fullsockets", fullsockets},
	{NULL, NULL},
};
