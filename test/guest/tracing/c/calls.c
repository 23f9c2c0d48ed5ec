// Makes calls of all kinds whose text kernel/trace and strace must agree on.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void files(void)
{
	char b[64];
	struct stat st;
	int fd = open("/tmp/calls", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	write(fd, "hello\n\t\"x\"\\\0011z", 15);
	pwrite(fd, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", 52, 100);
	lseek(fd, 0, SEEK_SET);
	read(fd, b, 5);
	pread(fd, b, 40, 100);
	fstat(fd, &st);
	ftruncate(fd, 10);
	flock(fd, LOCK_EX | LOCK_NB);
	fcntl(fd, F_GETFD);
	dup2(fd, 9);
	close(9);
	struct iovec v[2] = { { "one", 3 }, { "three", 5 } };
	writev(fd, v, 2);
	posix_fadvise(fd, 0, 0, 0);
	fsync(fd);
	close(fd);
	open("/none", O_RDONLY);
	openat(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY | O_PATH);
	close(3);
	access("/tmp/calls", R_OK | W_OK);
	symlink("/tmp/calls", "/tmp/link");
	readlink("/tmp/link", b, 64);
	fstatat(AT_FDCWD, "/tmp/link", &st, AT_SYMLINK_NOFOLLOW);
	rename("/tmp/link", "/tmp/link2");
	unlink("/tmp/link2");
	mkdir("/tmp/dir", 0755);
	chmod("/tmp/dir", 0700);
	rmdir("/tmp/dir");
	mknod("/tmp/fifo", S_IFIFO | 0600, 0);
	unlink("/tmp/fifo");
	unlink("/tmp/calls");
	umask(022);
	getcwd(b, sizeof b);
	chdir("/tmp");
	chdir("/");
}

static void memory(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p, 4096, PROT_READ);
	madvise(p, 8192, MADV_DONTNEED);
	mremap(p, 8192, 4096, MREMAP_MAYMOVE);
	munmap(p, 4096);
	msync(NULL, 4096, MS_SYNC);
	prctl(PR_SET_NAME, "caller");
	struct rlimit r;
	getrlimit(RLIMIT_CORE, &r);
	int fd = memfd_create("name", MFD_CLOEXEC);
	close(fd);
}

static void sockets(void)
{
	int p[2], one = 1;
	char b[16];
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7777), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/tmp/none" };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	bind(s, (struct sockaddr *)&in, sizeof in);
	listen(s, 5);
	socklen_t n = sizeof in;
	getsockname(s, (struct sockaddr *)&in, &n);
	accept4(-1, NULL, NULL, SOCK_NONBLOCK);
	shutdown(s, SHUT_RDWR);
	close(s);
	s = socket(AF_UNIX, SOCK_DGRAM, 0);
	connect(s, (struct sockaddr *)&un, sizeof un);
	close(s);
	socketpair(AF_UNIX, SOCK_STREAM, 0, p);
	send(p[0], "ping", 4, MSG_NOSIGNAL);
	recv(p[1], b, sizeof b, MSG_DONTWAIT);
	recv(p[1], b, sizeof b, MSG_DONTWAIT);
	close(p[0]);
	close(p[1]);
}

static void events(void)
{
	int p[2];
	sigset_t m;
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.u64 = 0 };

	pipe2(p, O_NONBLOCK | O_CLOEXEC);
	struct pollfd f = { p[0], POLLIN, 0 };
	poll(&f, 1, 0);
	write(p[1], "x", 1);
	poll(&f, 1, 1000);
	int ep = epoll_create1(EPOLL_CLOEXEC);
	e.data.u64 = 7;
	epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e);
	epoll_wait(ep, &e, 1, 100);
	close(ep);
	close(p[0]);
	close(p[1]);
	int ev = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
	close(ev);
	int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec it = { { 0, 0 }, { 1, 500 } };
	timerfd_settime(t, 0, &it, NULL);
	close(t);
	int in = inotify_init1(IN_CLOEXEC);
	inotify_add_watch(in, "/tmp", IN_CREATE | IN_DELETE);
	close(in);
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	sigaddset(&m, SIGTERM);
	sigprocmask(SIG_BLOCK, &m, NULL);
	sigprocmask(SIG_SETMASK, &m, &m);
	struct timespec ts = { 0, 1000000 };
	nanosleep(&ts, NULL);
	syscall(SYS_futex, &ts, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	sched_yield();
}

static void caught(int sig) { (void)sig; }

static void processes(void)
{
	int status;

	signal(SIGUSR2, caught);
	kill(getpid(), SIGUSR2);
	pid_t pid = fork();
	if (!pid)
		_exit(3);
	waitpid(pid, &status, 0);
	pid = fork();
	if (!pid) {
		*(volatile int *)8 = 1;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	syscall(400);
}

int main(void)
{
	files();
	memory();
	sockets();
	events();
	processes();
	return 5;
}
