// Program pipes tests pipes and fifos at their edges: states of both ends, splice and
// its kin, sizes, owners, reopening.
#include "gt.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#ifndef O_DIRECT
#define O_DIRECT 040000
#endif

static int p[2], q[2];

static void pipes(int flags)
{
	must(pipe2(p, flags), "pipe2");
	must(pipe2(q, flags), "pipe2");
}

static const char *events(int fd)
{
	static char text[4][100];
	static int turn;
	char *s = text[turn++ & 3];
	struct pollfd f = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND};
	poll(&f, 1, 0);
	sprintf(s, "%#x", f.revents);
	return s;
}

static void alarmed(int sig) {}

// timed runs a call that may block and interrupts it after a while.
#define TIMED(what, call) do {                                          \
	struct sigaction gt_a = {.sa_handler = alarmed};                 \
	sigaction(SIGALRM, &gt_a, NULL);                                 \
	ualarm(60000, 60000);                                            \
	num(what, call);                                                 \
	ualarm(0, 0);                                                    \
} while (0)

TEST(states, "both ends in every state")
{
	char c[70000] = {0};
	pipes(O_NONBLOCK);
	say("empty: %s %s", events(p[0]), events(p[1]));
	num("read", read(p[0], c, 1));
	num("read 0", read(p[0], c, 0));
	num("write 0", write(p[1], c, 0));
	num("write to the reading end", write(p[0], c, 1));
	num("read from the writing end", read(p[1], c, 1));
	num("write", write(p[1], c, 10));
	say("10 bytes: %s %s", events(p[0]), events(p[1]));
	num("read", read(p[0], c, 10));
	num("fill", write(p[1], c, 70000));
	say("full: %s %s", events(p[0]), events(p[1]));
	num("one more", write(p[1], c, 1));
	num("read 1", read(p[0], c, 1));
	say("almost full: %s %s", events(p[0]), events(p[1]));
	num("read the rest of the page", read(p[0], c, 4095));
	num("read a page", read(p[0], c, 4096));
	say("a page free: %s %s", events(p[0]), events(p[1]));
	num("an atomic write that does not fit", write(p[1], c, 4096));
	num("a long one", write(p[1], c, 5000));
	close(p[1]);
	say("no writer: %s", events(p[0]));
	while (read(p[0], c, sizeof c) > 0)
		;
	say("no writer, empty: %s", events(p[0]));
	num("read", read(p[0], c, 1));
	close(q[0]);
	say("no reader: %s", events(q[1]));
	signal(SIGPIPE, SIG_IGN);
	num("write", write(q[1], c, 1));
	num("write 0", write(q[1], c, 0));
	IN_CHILD("SIGPIPE", signal(SIGPIPE, SIG_DFL), write(q[1], c, 1));
	num("lseek", lseek(q[1], 0, SEEK_CUR));
	num("pread", pread(p[0], c, 1, 0));
	num("pwrite", pwrite(q[1], c, 1, 0));
	num("fsync", fsync(q[1]));
	num("ftruncate", ftruncate(q[1], 1));
	num("fallocate", fallocate(q[1], 0, 0, 1));
	num("fadvise", posix_fadvise(p[0], 0, 1, POSIX_FADV_NORMAL));
	num("readahead", readahead(p[0], 0, 1));
	num("sync_file_range", sync_file_range(p[0], 0, 1, 0));
	num("bad buffer, empty", read(p[0], (void *)8, 1));
}

TEST(bad_buffers, "bad buffers")
{
	pipes(O_NONBLOCK);
	char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c[100];
	munmap(m + 4096, 4096);
	num("write of nothing mapped", write(p[1], (void *)8, 10));
	num("write that ends in a hole", write(p[1], m + 4090, 10));
	int n = -1;
	ioctl(p[0], FIONREAD, &n);
	say("waits %d", n);
	while (read(p[0], c, 100) > 0)
		;
	write(p[1], "0123456789", 10);
	num("read into nothing", read(p[0], (void *)8, 10));
	num("read that ends in a hole", read(p[0], m + 4092, 10));
	num("read", read(p[0], c, 100));
	struct iovec v[3] = {{"ab", 2}, {(void *)8, 3}, {"cd", 2}};
	num("writev with a bad part", writev(p[1], v, 3));
	num("read", read(p[0], c, 100));
	struct iovec r[2] = {{c, 2}, {(void *)8, 3}};
	write(p[1], "0123456789", 10);
	num("readv with a bad part", readv(p[0], r, 2));
	num("read", read(p[0], c, 100));
	num("FIONREAD to a bad place", ioctl(p[0], FIONREAD, 8));
	num("pipe to a bad place", pipe((void *)8));
	num("pipe2 with bad flags", pipe2(p, O_APPEND));
	num("pipe2 with O_CREAT", pipe2(p, O_CREAT));
}

TEST(sizes, "F_SETPIPE_SZ")
{
	static const long sizes[] = {0, 1, 4095, 4096, 4097, 65536, 65537, 100000, 1 << 20, -1};
	pipes(O_NONBLOCK);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char what[40];
		snprintf(what, sizeof what, "set %ld", sizes[i]);
		num(what, fcntl(p[0], F_SETPIPE_SZ, sizes[i]));
		num("size", fcntl(p[1], F_GETPIPE_SZ));
	}
	fcntl(p[0], F_SETPIPE_SZ, 4096 * 16);
	char c[20000] = {0};
	num("write", write(p[1], c, 20000));
	num("too small", fcntl(p[0], F_SETPIPE_SZ, 4096));
	num("as small as can be", fcntl(p[0], F_SETPIPE_SZ, 20000));
	int n = 0;
	num("FIONREAD", ioctl(p[1], FIONREAD, &n));
	say("%d", n);
	num("on a file", fcntl(open("/dev/null", O_RDWR), F_SETPIPE_SZ, 4096));
	num("get on a file", fcntl(open("/dev/null", O_RDWR), F_GETPIPE_SZ));
	IN_CHILD("unprivileged", {
		setuid(1000);
		num("1 MiB", fcntl(q[0], F_SETPIPE_SZ, 1 << 20));
		num("more", fcntl(q[0], F_SETPIPE_SZ, (1 << 20) + 1));
		num("less", fcntl(q[0], F_SETPIPE_SZ, 1 << 16));
	});
}

TEST(packets, "packet mode")
{
	char c[10000] = {0};
	pipes(O_NONBLOCK | O_DIRECT);
	num("F_GETFL", fcntl(p[1], F_GETFL));
	write(p[1], "one", 3), write(p[1], "three", 5);
	int n;
	ioctl(p[0], FIONREAD, &n);
	say("waits %d", n);
	num("read", read(p[0], c, 100));
	num("a part is the whole", read(p[0], c, 2));
	num("read", read(p[0], c, 2));
	num("a long write", write(p[1], c, 10000));
	num("read", read(p[0], c, 10000));
	num("read", read(p[0], c, 10000));
	num("read", read(p[0], c, 10000));
	num("off", fcntl(p[1], F_SETFL, O_NONBLOCK));
	write(p[1], "one", 3), write(p[1], "three", 5);
	num("read", read(p[0], c, 100));
	num("on", fcntl(p[1], F_SETFL, O_NONBLOCK | O_DIRECT));
	write(p[1], "one", 3), write(p[1], "three", 5);
	num("read", read(p[0], c, 100));
	for (n = 0; write(p[1], "x", 1) == 1; n++)
		;
	say("full of %d, then %s; %s", n, name_of(errno), events(p[1]));
}

TEST(splicing, "splice")
{
	char c[70000] = {0};
	loff_t off, off2;
	pipes(O_NONBLOCK);
	int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644), append = open("app", O_RDWR | O_CREAT | O_APPEND, 0644);
	write(file, "0123456789", 10);
	num("no length", splice(p[0], NULL, q[1], NULL, 0, 0));
	num("no length, bad descriptors", splice(-1, NULL, -1, NULL, 0, 0));
	num("bad flags", splice(p[0], NULL, q[1], NULL, 1, 0x1000));
	num("bad input", splice(-1, NULL, q[1], NULL, 1, 0));
	num("bad output", splice(p[0], NULL, -1, NULL, 1, 0));
	num("no pipe", splice(file, NULL, append, NULL, 1, 0));
	num("wrong end", splice(p[1], NULL, q[1], NULL, 1, 0));
	num("wrong other end", splice(p[0], NULL, q[0], NULL, 1, 0));
	num("the same pipe", splice(p[0], NULL, p[1], NULL, 1, 0));
	num("empty", splice(p[0], NULL, q[1], NULL, 1, 0));
	off = 0;
	num("offset for a pipe", splice(p[0], &off, q[1], NULL, 1, 0));
	num("offset for the other", splice(p[0], NULL, q[1], &off, 1, 0));
	num("offset for a pipe, to a file", splice(p[0], &off, file, NULL, 1, 0));
	num("bad offset", splice(file, (void *)8, q[1], NULL, 1, 0));
	off = -1;
	num("negative offset", splice(file, &off, q[1], NULL, 1, 0));
	off = LLONG_MAX;
	num("greatest offset", splice(file, &off, q[1], NULL, 1, 0));
	off = LLONG_MAX - 3;
	num("sum beyond the end", splice(file, &off, q[1], NULL, 100, 0));
	off = 20;
	num("beyond the file", splice(file, &off, q[1], NULL, 100, 0));
	off = 3;
	num("from an offset", splice(file, &off, q[1], NULL, 100, 0));
	say("offset %lld position %lld", (long long)off, (long long)lseek(file, 0, SEEK_CUR));
	lseek(file, 2, SEEK_SET);
	num("from the position", splice(file, NULL, q[1], NULL, 3, 0));
	say("position %lld", (long long)lseek(file, 0, SEEK_CUR));
	num("to O_APPEND", splice(q[0], NULL, append, NULL, 3, 0));
	off = 5;
	num("to an offset", splice(q[0], NULL, file, &off, 3, 0));
	say("offset %lld", (long long)off);
	off = -1;
	num("to a negative offset", splice(q[0], NULL, file, &off, 3, 0));
	off = LLONG_MAX;
	num("to the greatest offset", splice(q[0], NULL, file, &off, 3, 0));
	off = LLONG_MAX - 1;
	num("to nearly that", splice(q[0], NULL, file, &off, 3, 0));
	int ro = open("file", O_RDONLY);
	num("to a read-only file", splice(q[0], NULL, ro, NULL, 3, 0));
	num("to a directory", splice(q[0], NULL, open(".", O_RDONLY), NULL, 3, 0));
	num("from a directory", splice(open(".", O_RDONLY), NULL, q[1], NULL, 3, 0));
	num("from O_PATH", splice(open("file", O_PATH), NULL, q[1], NULL, 3, 0));
	num("huge length", splice(q[0], NULL, p[1], NULL, (size_t)-1, 0) > 0);
	num("and back", splice(p[0], NULL, q[1], NULL, 4, SPLICE_F_MOVE | SPLICE_F_MORE | SPLICE_F_GIFT));
	close(q[1]);
	num("to a file, the end", splice(q[0], NULL, file, NULL, 100, 0));
	num("at the end", splice(q[0], NULL, file, NULL, 100, 0));
	signal(SIGPIPE, SIG_IGN);
	close(p[0]);
	num("nobody reads", splice(file, NULL, p[1], NULL, 1, 0));
}

TEST(splice_targets, "splice to and from what is no file")
{
	pipes(0);
	int ev = eventfd(3, EFD_NONBLOCK), s[2], ep = epoll_create1(0), tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	char c[100];
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	uint64_t one = 1;
	write(p[1], &one, 8);
	num("to an eventfd", splice(p[0], NULL, ev, NULL, 8, 0));
	num("to an epoll", splice(p[0], NULL, ep, NULL, 8, SPLICE_F_NONBLOCK));
	num("to a timerfd", splice(p[0], NULL, tfd, NULL, 8, SPLICE_F_NONBLOCK));
	num("from an epoll", splice(ep, NULL, q[1], NULL, 8, SPLICE_F_NONBLOCK));
	num("from a timerfd", splice(tfd, NULL, q[1], NULL, 8, SPLICE_F_NONBLOCK));
	num("to /dev/null", splice(p[0], NULL, open("/dev/null", O_RDWR), NULL, 8, SPLICE_F_NONBLOCK));
	num("to /dev/zero", splice(p[0], NULL, open("/dev/zero", O_RDWR), NULL, 8, SPLICE_F_NONBLOCK));
	write(p[1], "hello", 5);
	num("to a socket", splice(p[0], NULL, s[0], NULL, 100, SPLICE_F_NONBLOCK));
	num("from a socket", splice(s[1], NULL, q[1], NULL, 100, SPLICE_F_NONBLOCK));
	num("from an empty socket", splice(s[1], NULL, q[1], NULL, 100, SPLICE_F_NONBLOCK));
	loff_t off = 0;
	num("from a socket at an offset", splice(s[1], &off, q[1], NULL, 100, SPLICE_F_NONBLOCK));
	write(p[1], "hello", 5);
	num("to a socket at an offset", splice(p[0], NULL, s[0], &off, 100, SPLICE_F_NONBLOCK));
	close(s[1]);
	signal(SIGPIPE, SIG_IGN);
	num("to a closed socket", splice(p[0], NULL, s[0], NULL, 100, 0));
	num("what is left", read(p[0], c, 100));
	TIMED("wait for data", splice(p[0], NULL, s[0], NULL, 1, 0));
	TIMED("from an empty socket that blocks", ({ int t[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, t); splice(t[0], NULL, q[1], NULL, 1, 0); }));
	close(p[1]);
	num("the end, to an epoll", splice(p[0], NULL, ep, NULL, 8, 0));
}

TEST(tees, "tee and vmsplice")
{
	char c[70000] = {0};
	pipes(O_NONBLOCK);
	int file = open("/dev/null", O_RDWR);
	num("no length", tee(p[0], q[1], 0, 0));
	num("bad flags", tee(p[0], q[1], 1, 0x100));
	num("empty", tee(p[0], q[1], 1, 0));
	write(p[1], "hello", 5);
	num("the same pipe", tee(p[0], p[1], 1, 0));
	num("no pipe", tee(p[0], file, 1, 0));
	num("wrong end", tee(p[1], q[1], 1, 0));
	num("tee", tee(p[0], q[1], 100, 0));
	num("again", tee(p[0], q[1], 2, 0));
	num("what arrived", read(q[0], c, 100));
	num("what stayed", read(p[0], c, 100));
	struct iovec v[2] = {{"abc", 3}, {"de", 2}};
	num("vmsplice", vmsplice(p[1], v, 2, 0));
	num("read", read(p[0], c, 100));
	num("none", vmsplice(p[1], v, 0, 0));
	num("bad flags", vmsplice(p[1], v, 1, 0x100));
	num("no pipe", vmsplice(file, v, 1, 0));
	num("no descriptor", vmsplice(-1, v, 1, 0));
	num("bad array", vmsplice(p[1], (void *)8, 1, 0));
	num("too many", vmsplice(p[1], v, 1025, 0));
	v[0].iov_base = (void *)8;
	num("bad buffer", vmsplice(p[1], v, 1, 0));
	v[0] = (struct iovec){c, 70000};
	num("more than fits", vmsplice(p[1], v, 1, SPLICE_F_NONBLOCK) > 60000);
	num("full", vmsplice(p[1], v, 1, SPLICE_F_NONBLOCK));
	v[0].iov_len = 10;
	num("out of a pipe", vmsplice(p[0], v, 1, 0));
	while (read(p[0], c, sizeof c) > 0)
		;
	num("out of an empty one", vmsplice(p[0], v, 1, SPLICE_F_NONBLOCK));
	signal(SIGPIPE, SIG_IGN);
	close(p[0]);
	num("nobody reads", vmsplice(p[1], v, 1, 0));
}

TEST(sendfiles, "sendfile")
{
	char c[100];
	pipes(O_NONBLOCK);
	off_t off = 0;
	int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644), out = open("out", O_RDWR | O_CREAT, 0644), app = open("app", O_RDWR | O_CREAT | O_APPEND, 0644);
	write(file, "0123456789", 10);
	lseek(file, 0, SEEK_SET);
	num("to a file", sendfile(out, file, NULL, 4));
	say("positions %ld %ld", (long)lseek(file, 0, SEEK_CUR), (long)lseek(out, 0, SEEK_CUR));
	off = 5;
	num("at an offset", sendfile(out, file, &off, 100));
	say("offset %ld position %ld", (long)off, (long)lseek(file, 0, SEEK_CUR));
	num("at the end", sendfile(out, file, &off, 100));
	num("nothing", sendfile(out, file, &off, 0));
	off = -1;
	num("negative offset", sendfile(out, file, &off, 1));
	off = LLONG_MAX;
	num("greatest offset", sendfile(out, file, &off, 1));
	off = LLONG_MAX - 5;
	num("sum beyond", sendfile(out, file, &off, 100));
	off = LLONG_MAX - 200;
	num("sum within", sendfile(out, file, &off, 100));
	num("bad offset", sendfile(out, file, (void *)8, 1));
	off = 0;
	num("negative count", sendfile(out, file, &off, -1));
	off = 0;
	num("greatest count", sendfile(out, file, &off, LLONG_MAX));
	off = 0;
	num("to O_APPEND", sendfile(app, file, &off, 1));
	num("from a pipe", sendfile(out, p[0], NULL, 1));
	num("from a pipe at an offset", sendfile(out, p[0], &off, 1));
	num("to a pipe", sendfile(p[1], file, &off, 5));
	num("to a pipe's reading end", sendfile(p[0], file, &off, 5));
	num("from a write-only file", sendfile(out, open("out", O_WRONLY), NULL, 1));
	num("to a read-only file", sendfile(open("file", O_RDONLY), file, NULL, 1));
	num("from a directory", sendfile(out, open(".", O_RDONLY), NULL, 1));
	num("bad in", sendfile(out, -1, NULL, 1));
	num("bad out", sendfile(-1, file, NULL, 1));
	num("O_PATH", sendfile(out, open("file", O_PATH), NULL, 1));
	num("to itself", sendfile(file, file, &off, 2));
	int ev = eventfd(3, EFD_NONBLOCK), s[2];
	num("from an eventfd", sendfile(out, ev, NULL, 8));
	num("to an eventfd", (off = 0, sendfile(ev, file, &off, 8)));
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
	num("from a socket", sendfile(out, s[0], NULL, 8));
	num("to a socket", (off = 0, sendfile(s[0], file, &off, 8)));
	num("from /proc", sendfile(out, open("/proc/self/comm", O_RDONLY), NULL, 100));
	num("to /dev/null", (off = 0, sendfile(open("/dev/null", O_WRONLY), file, &off, 8)));
}

TEST(fifos, "fifos")
{
	char c[10];
	mkfifo("f", 0644);
	num("write-only, nobody reads", open("f", O_WRONLY | O_NONBLOCK));
	int r = (int)must(open("f", O_RDONLY | O_NONBLOCK), "open");
	say("reader alone: %s", events(r));
	num("read", read(r, c, 1));
	int w = (int)must(open("f", O_WRONLY | O_NONBLOCK), "open");
	num("read with a writer", read(r, c, 1));
	say("%s %s", events(r), events(w));
	close(w);
	say("reader after its writer: %s", events(r));
	int rw = (int)must(open("f", O_RDWR), "open");
	say("with O_RDWR: %s %s", events(r), events(rw));
	write(rw, "abc", 3);
	num("read own", read(rw, c, 2));
	num("by the other", read(r, c, 2));
	close(rw), close(r);
	rw = open("f", O_RDWR | O_NONBLOCK);
	num("nothing is kept", read(rw, c, 1));
	close(rw);
	num("O_TRUNC", err("open", r = open("f", O_RDWR | O_TRUNC)) < 0);
	num("lseek", lseek(r, 0, SEEK_SET));
	struct stat st;
	fstat(r, &st);
	say("mode %o size %ld", st.st_mode, (long)st.st_size);
	num("truncate", truncate("f", 0));
	num("F_SETPIPE_SZ", fcntl(r, F_SETPIPE_SZ, 8192));
	close(r);
	TIMED("open waits", open("f", O_RDONLY));
	TIMED("open waits", open("f", O_WRONLY));
	num("O_DIRECTORY", open("f", O_RDONLY | O_DIRECTORY));
	num("O_PATH", open("f", O_PATH) > 0);
	pid_t pid = FORK(sleep_ms(30), close(open("f", O_WRONLY)));
	num("meets", (r = open("f", O_RDONLY)) > 0);
	num("read", read(r, c, 1));
	wait_for(pid);
	chmod("f", 0400);
	IN_CHILD("unprivileged", {
		chmod(".", 0755);
		setuid(1000);
		num("open", open("f", O_RDONLY | O_NONBLOCK));
	});
}

TEST(reopen, "a pipe opened again")
{
	char path[64], c[10];
	pipes(0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", p[0]);
	int r = (int)must(open(path, O_RDONLY), "reading"), w = (int)must(open(path, O_WRONLY), "writing"), b = (int)must(open(path, O_RDWR | O_NONBLOCK), "both");
	write(w, "a", 1), write(p[1], "b", 1);
	num("read", read(r, c, 10));
	close(p[1]), close(w);
	say("O_RDWR holds it: %s", events(r));
	num("nothing", read(b, c, 1));
	close(b);
	say("no writer: %s", events(r));
	num("the end", read(r, c, 1));
	w = open(path, O_WRONLY);
	say("a writer again: %s", events(r));
	num("write", write(w, "x", 1));
	close(p[0]);
	num("F_SETFL", fcntl(r, F_SETFL, O_NONBLOCK));
	num("read", read(r, c, 10));
	num("read", read(r, c, 10));
	close(w);
	num("read", read(r, c, 10));
	pipes(0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", p[1]);
	r = open(path, O_RDONLY);
	struct stat a, d;
	fstat(r, &a), fstat(p[0], &d);
	say("same %d", a.st_ino == d.st_ino && a.st_dev == d.st_dev);
	char link[64] = {0};
	readlink(path, link, 60);
	say("link begins %.6s", link);
	fchmod(p[0], 0400);
	IN_CHILD("unprivileged", {
		setuid(1000);
		num("open", open(path, O_RDONLY));
	});
}

TEST(waiting, "splice and vmsplice that wait")
{
	char c[70000] = {0};
	pipes(0);
	fcntl(q[1], F_SETFL, O_NONBLOCK);
	int n = 0, file = open("file", O_RDWR | O_CREAT, 0644);
	while (write(q[1], c, 4096) > 0)
		;
	fcntl(q[1], F_SETFL, 0);
	TIMED("full and empty", splice(p[0], NULL, q[1], NULL, 1, 0));
	write(p[1], "abc", 3);
	TIMED("full", splice(p[0], NULL, q[1], NULL, 1, 0));
	num("full, no wait", splice(p[0], NULL, q[1], NULL, 1, SPLICE_F_NONBLOCK));
	num("tee, no wait", tee(p[0], q[1], 1, SPLICE_F_NONBLOCK));
	TIMED("tee", tee(p[0], q[1], 1, 0));
	write(file, "x", 1), lseek(file, 0, SEEK_SET);
	TIMED("from a file", splice(file, NULL, q[1], NULL, 1, 0));
	num("from a file, no wait", splice(file, NULL, q[1], NULL, 1, SPLICE_F_NONBLOCK));
	struct iovec v = {c, 70000};
	TIMED("vmsplice", vmsplice(q[1], &v, 1, 0));
	while (ioctl(q[0], FIONREAD, &n) == 0 && n > 0)
		read(q[0], c, sizeof c);
	TIMED("vmsplice of more than fits", vmsplice(q[1], &v, 1, 0) > 0);
	read(p[0], c, 100);
	TIMED("read", read(p[0], c, 1));
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	num("read, toggled", read(p[0], c, 1));
}

TEST(locks, "locks and owners on pipes and sockets")
{
	int s[2];
	pipes(0);
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	int fds[] = {p[0], p[1], s[0], eventfd(0, 0)};
	for (int i = 0; i < 4; i++) {
		struct flock l = {.l_type = F_WRLCK}, r = {.l_type = F_RDLCK};
		int fd = fds[i], v = 1;
		say("descriptor %d", i);
		err("flock", flock(fd, LOCK_EX));
		err("unlock", flock(fd, LOCK_UN));
		err("F_SETLK for writing", fcntl(fd, F_SETLK, &l));
		err("F_SETLK for reading", fcntl(fd, F_SETLK, &r));
		l.l_type = F_WRLCK;
		err("F_GETLK", fcntl(fd, F_GETLK, &l));
		say("type %d", l.l_type);
		l = (struct flock){.l_type = F_WRLCK};
		err("F_OFD_SETLK", fcntl(fd, F_OFD_SETLK, &l));
		err("F_SETLEASE", fcntl(fd, F_SETLEASE, F_RDLCK));
		err("F_GETLEASE", fcntl(fd, F_GETLEASE));
		err("FIOASYNC", ioctl(fd, FIOASYNC, &v));
		num("O_ASYNC", !!(fcntl(fd, F_GETFL) & O_ASYNC));
		err("O_ASYNC off", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC));
		err("O_ASYNC on", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
		num("O_ASYNC", !!(fcntl(fd, F_GETFL) & O_ASYNC));
		err("F_SETOWN", fcntl(fd, F_SETOWN, getpid()));
		say("F_GETOWN %d", fcntl(fd, F_GETOWN) == getpid());
		v = getpid();
		err("FIOSETOWN", ioctl(fd, 0x8901, &v));
		v = 0;
		err("FIOGETOWN", ioctl(fd, 0x8903, &v));
		say("owner %d", v == getpid());
		v = -getpgrp();
		err("SIOCSPGRP", ioctl(fd, 0x8902, &v));
		v = 0;
		err("SIOCGPGRP", ioctl(fd, 0x8904, &v));
		say("owner %d, F_GETOWN %d", v == -getpgrp(), fcntl(fd, F_GETOWN) == -getpgrp());
		v = 9999999;
		err("FIOSETOWN of nobody", ioctl(fd, 0x8901, &v));
		v = 1;
		err("FIONBIO", ioctl(fd, FIONBIO, &v));
		num("O_NONBLOCK", !!(fcntl(fd, F_GETFL) & O_NONBLOCK));
		err("FIONREAD", ioctl(fd, FIONREAD, &v));
		err("TIOCOUTQ", ioctl(fd, TIOCOUTQ, &v));
		err("TCGETS", ioctl(fd, TCGETS, shared(4096)));
		err("FIOQSIZE", ioctl(fd, 0x5460, &v));
		err("FIGETBSZ", ioctl(fd, 2, &v));
		err("O_DIRECT", fcntl(fd, F_SETFL, O_DIRECT));
		err("O_APPEND", fcntl(fd, F_SETFL, O_APPEND));
		num("F_GETFL", fcntl(fd, F_GETFL) & ~O_ACCMODE);
	}
}
