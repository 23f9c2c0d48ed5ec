// Program pipe tests ends of pipes that are opened once more through
// /proc/self/fd, splice and vmsplice, and what a pipe answers to calls that are
// not for it.
#include "gt.h"

#include <sys/epoll.h>

static int a[2];

static int again(int fd, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static void ready(const char *what, int fd)
{
	struct pollfd p = {fd, POLLIN | POLLOUT};
	poll(&p, 1, 0);
	say("%s: poll %#x", what, p.revents);
}

static void get(const char *what, int fd)
{
	char text[16];
	ssize_t n = read(fd, text, sizeof text);
	if (n < 0)
		say("%s: %s", what, name_of(errno));
	else
		say("%s: %d bytes \"%.*s\"", what, (int)n, (int)n, text);
}

TEST(reader, "a reader opened again")
{
	alarm(10);
	pipe(a);
	write(a[1], "abc", 3);
	close(a[1]);
	int fd = err("no writer is left", again(a[0], O_RDONLY));
	ready("with text", fd);
	get("text", fd);
	ready("at the end", fd);
	get("end", fd);
	int fd2 = err("at the end, not blocking", again(a[0], O_RDONLY | O_NONBLOCK));
	ready("end", fd2);
	get("end", fd2);
	say("flags %#x", fcntl(fd2, F_GETFL) & ~0100000);
	close(fd), close(fd2);
	fd = err("/dev/fd", ({ dup2(a[0], 0); open("/dev/fd/0", O_RDONLY); }));
	get("end", fd);
	fd = err("a writer of it", again(a[0], O_WRONLY));
	ready("the reader", a[0]);
	num("write", write(fd, "back", 4));
	get("text", a[0]);
	close(fd);
	ready("the reader", a[0]);
}

TEST(writer, "a writer opened again")
{
	alarm(10);
	signal(SIGPIPE, SIG_IGN);
	pipe(a);
	close(a[0]);
	int fd = err("no reader is left", again(a[1], O_WRONLY));
	ready("the writer", fd);
	num("write", write(fd, "x", 1));
	int fd2 = err("not blocking", again(a[1], O_WRONLY | O_NONBLOCK));
	num("write", write(fd2, "x", 1));
	int fd3 = err("both ways", again(a[1], O_RDWR));
	ready("both", fd3);
	num("write", write(fd, "hello", 5));
	get("text", fd3);
	close(fd3);
	fd3 = err("a reader of it", again(a[1], O_RDONLY | O_NONBLOCK));
	ready("the reader", fd3);
	get("nothing", fd3);
	close(a[1]), close(fd), close(fd2);
	ready("the reader alone", fd3);
	get("end", fd3);
}

TEST(flags, "flags of an end opened again")
{
	alarm(10);
	pipe(a);
	err("O_PATH", again(a[0], O_PATH));
	err("O_DIRECTORY", again(a[0], O_RDONLY | O_DIRECTORY));
	err("O_NOFOLLOW", again(a[0], O_RDONLY | O_NOFOLLOW));
	err("O_TRUNC", again(a[1], O_WRONLY | O_TRUNC));
	err("O_CREAT", again(a[1], O_WRONLY | O_CREAT));
	err("O_CREAT and O_EXCL", again(a[1], O_WRONLY | O_CREAT | O_EXCL));
	int fd = err("O_APPEND", again(a[1], O_WRONLY | O_APPEND));
	say("flags %#x", fcntl(fd, F_GETFL) & ~0100000);
	err("O_DIRECT", again(a[1], O_WRONLY | O_DIRECT));
	err("O_DIRECT later", fcntl(fd, F_SETFL, O_DIRECT));
	num("packet", write(fd, "one", 3));
	num("packet", write(fd, "two", 3));
	get("packet", a[0]);
	get("packet", a[0]);
	mkfifo("fifo", 0600);
	err("a fifo, O_DIRECT", open("fifo", O_RDWR | O_DIRECT));
	fd = err("O_CLOEXEC", again(a[0], O_RDONLY | O_CLOEXEC));
	say("close on exec %d", fcntl(fd, F_GETFD));
	struct stat x, y;
	fstat(a[0], &x), fstat(fd, &y);
	say("the same file %d", x.st_ino == y.st_ino && x.st_dev == y.st_dev);
	IN_CHILD("a stranger", {
		setresgid(1234, 1234, 1234), setresuid(1234, 1234, 1234);
		err("open", again(a[0], O_RDONLY));
	});
}

// What a shell does for diff <(echo a) <(echo b).
TEST(substitution, "process substitution")
{
	alarm(20);
	int b[2];
	pipe(a), pipe(b);
	pid_t p1 = FORK(write(a[1], "a\n", 2));
	pid_t p2 = FORK(write(b[1], "b\n", 2));
	close(a[1]), close(b[1]);
	wait_for(p1), wait_for(p2);
	int x = err("first", again(a[0], O_RDONLY)), y = err("second", again(b[0], O_RDONLY));
	get("first", x), get("second", y);
	get("first", x), get("second", y);
}

// A fifo, unlike a pipe, waits for its other side.
TEST(fifo, "a fifo opened again")
{
	alarm(10);
	mkfifo("fifo", 0600);
	int r = err("reader", open("fifo", O_RDONLY | O_NONBLOCK));
	ready("before any writer", r);
	int w = err("writer", open("fifo", O_WRONLY));
	write(w, "abc", 3);
	close(w);
	ready("after it", r);
	int r2 = err("again", again(r, O_RDONLY | O_NONBLOCK));
	ready("again", r2);
	get("text", r2);
	get("end", r2);
	ready("again", r2);
	ready("the first", r);
	pid_t pid = FORK(int fd = err("again, blocking", again(r, O_RDONLY)); get("from the new writer", fd));
	settle(pid);
	say("it waits %d", waitpid(pid, NULL, WNOHANG) == 0);
	w = open("fifo", O_WRONLY);
	write(w, "new", 3);
	close(w);
	wait_for(pid);
	close(r), close(r2);
	err("a writer, no reader", open("fifo", O_WRONLY | O_NONBLOCK));
	int path = open("fifo", O_PATH);
	err("through O_PATH, no reader", again(path, O_WRONLY | O_NONBLOCK));
}

TEST(epolled, "epoll of an end opened again")
{
	alarm(10);
	pipe(a);
	write(a[1], "x", 1);
	close(a[1]);
	int fd = again(a[0], O_RDONLY | O_NONBLOCK);
	int ep = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN | EPOLLET};
	err("add", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	num("wait", epoll_wait(ep, &ev, 1, 0));
	say("events %#x", ev.events);
	get("text", fd);
	get("end", fd);
	num("wait", epoll_wait(ep, &ev, 1, 0));
}

static ssize_t splice_in(int fd, void *from, size_t n, int flags)
{
	struct iovec v = {from, n};
	return syscall(SYS_vmsplice, fd, &v, 1, flags);
}

TEST(vmspliced, "vmsplice")
{
	enum { nonblock = 2 };
	alarm(10);
	signal(SIGPIPE, SIG_IGN);
	char *big = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(big, 'v', 1 << 20);
	pipe(a);
	num("more than fits", splice_in(a[1], big, 200000, 0));
	num("into the full pipe", splice_in(a[1], big, 4096, nonblock));
	fcntl(a[1], F_SETFL, O_NONBLOCK);
	IN_CHILD("O_NONBLOCK does not count", alarm(1); num("into the full pipe", splice_in(a[1], big, 4096, 0)));
	num("read a page", read(a[0], big + 500000, 4096));
	num("what fits now", splice_in(a[1], big, 20000, 0));
	char *to = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	num("out of it", splice_in(a[0], to, 1 << 20, 0));
	say("the bytes %d", to[0] == 'v' && to[65535] == 'v' && to[65536] == 0);
	num("out of the empty pipe", splice_in(a[0], to, 100, nonblock));
	num("nothing", splice_in(a[1], big, 0, 0));
	num("unknown flags", splice_in(a[1], big, 1, 0x100));
	num("not a pipe", splice_in(open("/dev/null", O_WRONLY), big, 1, 0));
	close(a[1]);
	num("the end", splice_in(a[0], to, 100, 0));
	pipe(a);
	close(a[0]);
	num("no reader", splice_in(a[1], big, 100, 0));
}
