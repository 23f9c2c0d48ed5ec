// Calls that move data from one descriptor to another.
#include "files.h"

static int full_pipe(int fd[2], int bytes)
{
	if (pipe2(fd, O_NONBLOCK) < 0)
		return -1;
	if (bytes && write(fd[1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ", bytes) < 0)
		return -1;
	return 0;
}

static long zero, five, minus = -1, far;

void call_splice_in(subject *s)
{
	int p[2];
	full_pipe(p, 10);
	zero = 0, five = 5, minus = -1, far = LONG_MAX;
	CASE("10") result(S(splice, p[0], 0, s->fd, 0, 10, 0));
	CASE("4") result(S(splice, p[0], 0, s->fd, 0, 4, 0));
	CASE("nonblock") result(S(splice, p[0], 0, s->fd, 0, 10, 2));
	CASE("more") result(S(splice, p[0], 0, s->fd, 0, 10, 4));
	CASE("0") result(S(splice, p[0], 0, s->fd, 0, 0, 0));
	CASE("huge") result(S(splice, p[0], 0, s->fd, 0, LONG_MAX, 0));
	CASE("negative") result(S(splice, p[0], 0, s->fd, 0, -1, 0));
	CASE("at5") result(S(splice, p[0], 0, s->fd, P(&five), 10, 0)), note("%ld", five);
	CASE("at-1") result(S(splice, p[0], 0, s->fd, P(&minus), 10, 0));
	CASE("atfar") result(S(splice, p[0], 0, s->fd, P(&far), 10, 0));
	CASE("atbad") result(S(splice, p[0], 0, s->fd, P(bad), 10, 0));
	CASE("inat") result(S(splice, p[0], P(&zero), s->fd, 0, 10, 0));
	CASE("wrongend") result(S(splice, p[1], 0, s->fd, 0, 10, 0));
	CASE("flag16") result(S(splice, p[0], 0, s->fd, 0, 10, 16));
	CASE("flag8") result(S(splice, p[0], 0, s->fd, 0, 10, 8));
	CASE("gone") close(p[1]), result(S(splice, p[0], 0, s->fd, 0, 100, 0));
	CASE("empty")
	{
		int e[2];
		full_pipe(e, 0);
		result(S(splice, e[0], 0, s->fd, 0, 10, 0));
		close(e[1]);
		result(S(splice, e[0], 0, s->fd, 0, 10, 0));
	}
}

void call_splice_out(subject *s)
{
	int p[2];
	full_pipe(p, 0);
	zero = 0, five = 5, minus = -1, far = LONG_MAX;
	CASE("10") result(S(splice, s->fd, 0, p[1], 0, 10, 2));
	CASE("0") result(S(splice, s->fd, 0, p[1], 0, 0, 2));
	CASE("negative") result(S(splice, s->fd, 0, p[1], 0, -1, 2) > 64 ? 99 : -1);
	CASE("at5") result(S(splice, s->fd, P(&five), p[1], 0, 10, 2)), note("%ld", five);
	CASE("at-1") result(S(splice, s->fd, P(&minus), p[1], 0, 10, 2));
	CASE("atfar") result(S(splice, s->fd, P(&far), p[1], 0, 10, 2));
	CASE("atbad") result(S(splice, s->fd, P(bad), p[1], 0, 10, 2));
	CASE("outat") result(S(splice, s->fd, 0, p[1], P(&zero), 10, 2));
	CASE("wrongend") result(S(splice, s->fd, 0, p[0], 0, 10, 2));
	CASE("flag16") result(S(splice, s->fd, 0, p[1], 0, 10, 16));
	CASE("broken") close(p[0]), result(S(splice, s->fd, 0, p[1], 0, 10, 2));
	CASE("tofile") result(S(splice, s->fd, 0, open("other", O_RDWR | O_CREAT, 0666), 0, 10, 2));
	CASE("toappend") result(S(splice, s->fd, 0, open("other", O_RDWR | O_CREAT | O_APPEND, 0666), 0, 10, 2));
	CASE("toself") result(S(splice, s->fd, 0, s->fd, 0, 10, 2));
	CASE("full")
	{
		int f[2];
		full_pipe(f, 0);
		while (write(f[1], buffer, 4096) > 0)
			;
		result(S(splice, s->fd, 0, f[1], 0, 10, 2));
	}
}

void call_tee(subject *s)
{
	int p[2];
	full_pipe(p, 10);
	CASE("to") result(S(tee, p[0], s->fd, 5, 2));
	CASE("from") result(S(tee, s->fd, p[1], 5, 2));
	CASE("to0") result(S(tee, p[0], s->fd, 0, 2));
	CASE("toself") result(S(tee, s->fd, s->fd, 5, 2));
	CASE("flag16") result(S(tee, p[0], s->fd, 5, 16));
	CASE("negative") result(S(tee, p[0], s->fd, -1, 2));
}

void call_vmsplice(subject *s)
{
	struct iovec v = {buffer, 10}, none = {buffer, 0}, wrong = {bad, 10}, negative = {buffer, -1};
	CASE("10") result(S(vmsplice, s->fd, P(&v), 1, 2));
	CASE("0") result(S(vmsplice, s->fd, P(&none), 1, 2));
	CASE("none") result(S(vmsplice, s->fd, P(&v), 0, 2));
	CASE("bad") result(S(vmsplice, s->fd, P(&wrong), 1, 2));
	CASE("badvector") result(S(vmsplice, s->fd, P(bad), 1, 2));
	CASE("negative") result(S(vmsplice, s->fd, P(&negative), 1, 2));
	CASE("1025") result(S(vmsplice, s->fd, P(&v), 1025, 2));
	CASE("gift") result(S(vmsplice, s->fd, P(&v), 1, 2 | 8));
	CASE("flag16") result(S(vmsplice, s->fd, P(&v), 1, 16));
}

static int other_file(int flags)
{
	unlink("other");
	int fd = open("other", O_RDWR | O_CREAT | O_TRUNC, 0666);
	if (write(fd, "abcdefghijklmnopqrstuvwxyz", 26) < 0)
		return -1;
	close(fd);
	return open("other", flags);
}

void call_sendfile_in(subject *s)
{
	int fd = other_file(O_RDWR);
	zero = 0, five = 5, minus = -1, far = LONG_MAX;
	CASE("10") result(S(sendfile, s->fd, fd, 0, 10));
	CASE("0") result(S(sendfile, s->fd, fd, 0, 0));
	CASE("100") result(S(sendfile, s->fd, fd, 0, 100));
	CASE("negative") result(S(sendfile, s->fd, fd, 0, -1));
	CASE("at5") result(S(sendfile, s->fd, fd, P(&five), 10)), note("%ld", five);
	CASE("at-1") result(S(sendfile, s->fd, fd, P(&minus), 10));
	CASE("atfar") result(S(sendfile, s->fd, fd, P(&far), 10));
	CASE("atbad") result(S(sendfile, s->fd, fd, P(bad), 10));
	CASE("badfd") result(S(sendfile, s->fd, -1, 0, 10));
	CASE("pipe")
	{
		int p[2];
		full_pipe(p, 10);
		result(S(sendfile, s->fd, p[0], 0, 10));
	}
}

void call_sendfile_out(subject *s)
{
	int fd = other_file(O_RDWR);
	zero = 0, five = 5, minus = -1, far = LONG_MAX;
	CASE("10") result(S(sendfile, fd, s->fd, 0, 10));
	CASE("0") result(S(sendfile, fd, s->fd, 0, 0));
	CASE("at5") result(S(sendfile, fd, s->fd, P(&five), 10)), note("%ld", five);
	CASE("at-1") result(S(sendfile, fd, s->fd, P(&minus), 10));
	CASE("atfar") result(S(sendfile, fd, s->fd, P(&far), 10));
	CASE("atbad") result(S(sendfile, fd, s->fd, P(bad), 10));
	CASE("append") result(S(sendfile, other_file(O_RDWR | O_APPEND), s->fd, 0, 10));
	CASE("readonly") result(S(sendfile, other_file(O_RDONLY), s->fd, 0, 10));
	CASE("self") result(S(sendfile, s->fd, s->fd, 0, 10));
	CASE("pipe")
	{
		int p[2];
		full_pipe(p, 0);
		result(S(sendfile, p[1], s->fd, 0, 10));
	}
	CASE("socket")
	{
		int p[2];
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p);
		result(S(sendfile, p[1], s->fd, 0, 10));
	}
}

static void copies(subject *s, int in)
{
	int fd = other_file(O_RDWR);
	long a = in ? fd : s->fd, b = in ? s->fd : fd;
	zero = 0, five = 5, minus = -1, far = LONG_MAX;
	CASE("10") result(S(copy_file_range, a, 0, b, 0, 10, 0));
	CASE("0") result(S(copy_file_range, a, 0, b, 0, 0, 0));
	CASE("negative") result(S(copy_file_range, a, 0, b, 0, -1, 0));
	CASE("at5") result(S(copy_file_range, a, P(&five), b, P(&zero), 10, 0)), note("%ld,%ld", five, zero);
	CASE("from-1") result(S(copy_file_range, a, P(&minus), b, 0, 10, 0));
	CASE("to-1") result(S(copy_file_range, a, 0, b, P(&minus), 10, 0));
	CASE("fromfar") result(S(copy_file_range, a, P(&far), b, 0, 10, 0));
	CASE("tofar") result(S(copy_file_range, a, 0, b, P(&far), 10, 0));
	CASE("atbad") result(S(copy_file_range, a, P(bad), b, 0, 10, 0));
	CASE("flag1") result(S(copy_file_range, a, 0, b, 0, 10, 1));
	CASE("self") result(S(copy_file_range, s->fd, 0, s->fd, 0, 10, 0));
	CASE("append") result(S(copy_file_range, in ? other_file(O_RDONLY) : s->fd, 0, in ? s->fd : other_file(O_RDWR | O_APPEND), 0, 10, 0));
	CASE("mode") result(S(copy_file_range, in ? other_file(O_WRONLY) : s->fd, 0, in ? s->fd : other_file(O_RDONLY), 0, 10, 0));
}

void call_copy_in(subject *s) { copies(s, 1); }
void call_copy_out(subject *s) { copies(s, 0); }
