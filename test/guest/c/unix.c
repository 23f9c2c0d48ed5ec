// Program unix tests local sockets: messages with credentials and descriptors,
// names, connections and their ends, options.
#include "gt.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/epoll.h>
#include <linux/sockios.h>

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
static const char *type_name(int t) { return t == SOCK_STREAM ? "stream" : t == SOCK_DGRAM ? "dgram" : "seqpacket"; }

#define EACH_TYPE(t) for (int gt_i = 0, t; gt_i < 3 && (t = types[gt_i], 1); gt_i++)

static void pair(int type, int fd[2]) { must(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, fd), "socketpair"); }

static void set(int fd, int option, int value)
{
	must(setsockopt(fd, SOL_SOCKET, option, &value, sizeof value), "setsockopt");
}

static int get(int fd, int option)
{
	int v = -99;
	socklen_t n = sizeof v;
	return getsockopt(fd, SOL_SOCKET, option, &v, &n) < 0 ? -errno : v;
}

// send_with sends bytes with descriptors, and with credentials if cred is set.
static long send_with(int s, const void *data, size_t size, const int *fds, int nfds, struct ucred *cred, int flags)
{
	char control[CMSG_SPACE(sizeof(int) * 300) + CMSG_SPACE(sizeof *cred)];
	memset(control, 0, sizeof control);
	struct iovec iov = {(void *)data, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	size_t used = 0;
	if (nfds) {
		h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(h), fds, sizeof(int) * nfds);
		used += CMSG_SPACE(sizeof(int) * nfds);
		h = (void *)(control + used);
	}
	if (cred) {
		h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_CREDENTIALS, h->cmsg_len = CMSG_LEN(sizeof *cred);
		memcpy(CMSG_DATA(h), cred, sizeof *cred);
		used += CMSG_SPACE(sizeof *cred);
	}
	m.msg_controllen = used;
	return sendmsg(s, &m, flags | MSG_NOSIGNAL);
}

static pid_t tester;

// receive takes up to size bytes with room for control, and prints all of it. It closes
// the descriptors that came.
static void receive_room(const char *what, int s, size_t size, size_t room, int flags)
{
	char data[70000], control[4096], text[600];
	struct sockaddr_un from;
	memset(control, 0, sizeof control);
	struct iovec iov = {data, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room,
			   .msg_name = &from, .msg_namelen = sizeof from};
	ssize_t n = recvmsg(s, &m, flags);
	if (n < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	int at = snprintf(text, sizeof text, "%s: %zd \"%.*s\"", what, n, (int)(n < 20 && n <= (ssize_t)size ? n : 0), data);
	at += snprintf(text + at, sizeof text - at, " flags %#x control %zu name %u", m.msg_flags, m.msg_controllen, m.msg_namelen);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		int count = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		if (h->cmsg_type == SCM_RIGHTS) {
			at += snprintf(text + at, sizeof text - at, " files %d len %zu", count, h->cmsg_len);
			for (int i = 0; i < count; i++)
				close(((int *)CMSG_DATA(h))[i]);
		} else if (h->cmsg_type == SCM_CREDENTIALS) {
			struct ucred *u = (void *)CMSG_DATA(h);
			at += snprintf(text + at, sizeof text - at, " cred len %zu pid %s uid %d gid %d", h->cmsg_len,
				       u->pid == getpid() ? "own" : u->pid == 0 ? "0" : u->pid == tester ? "parent" : "other", (int)u->uid, (int)u->gid);
		} else {
			at += snprintf(text + at, sizeof text - at, " type %d len %zu", h->cmsg_type, h->cmsg_len);
		}
	}
	say("%s", text);
}

static void receive(const char *what, int s, size_t size, int flags) { receive_room(what, s, size, 1024, flags); }

static struct sockaddr_un address(const char *name, socklen_t *len)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	memcpy(a.sun_path, name, n);
	if (name[0] == '@')
		a.sun_path[0] = 0;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] != '@'));
	return a;
}

static long bind_to(int s, const char *name)
{
	socklen_t n;
	struct sockaddr_un a = address(name, &n);
	return bind(s, (void *)&a, n);
}

static long connect_to(int s, const char *name)
{
	socklen_t n;
	struct sockaddr_un a = address(name, &n);
	return connect(s, (void *)&a, n);
}

static int bound(int type, const char *name)
{
	int s = (int)must(socket(AF_UNIX, type | SOCK_NONBLOCK, 0), "socket");
	must(bind_to(s, name), "bind");
	return s;
}

static int listening(int type, const char *name, int backlog)
{
	int s = bound(type, name);
	must(listen(s, backlog), "listen");
	return s;
}

static int connected(int type, const char *name)
{
	int s = (int)must(socket(AF_UNIX, type | SOCK_NONBLOCK, 0), "socket");
	must(connect_to(s, name), "connect");
	return s;
}

static const char *events(int fd)
{
	static char text[4][100];
	static int turn;
	char *p = text[turn++ & 3];
	struct pollfd f = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND | POLLMSG};
	poll(&f, 1, 0);
	static const struct { int bit; const char *name; } names[] = {
		{POLLIN, "in"}, {POLLPRI, "pri"}, {POLLOUT, "out"}, {POLLERR, "err"}, {POLLHUP, "hup"}, {POLLNVAL, "nval"},
		{POLLRDNORM, "rdnorm"}, {POLLRDBAND, "rdband"}, {POLLWRNORM, "wrnorm"}, {POLLWRBAND, "wrband"}, {POLLRDHUP, "rdhup"}};
	*p = 0;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (f.revents & names[i].bit)
			strcat(strcat(p, " "), names[i].name);
	return *p ? p : " none";
}

static void show_name(const char *what, int s, int (*get)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_un a;
	memset(&a, 'x', sizeof a);
	socklen_t n = sizeof a;
	if (get(s, (void *)&a, &n) < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	int len = (int)n - 2;
	if (len > 0 && a.sun_path[0] == 0)
		a.sun_path[0] = '@';
	say("%s: length %u \"%.*s\"", what, n, len > 0 ? len > 100 ? 3 : (int)strnlen(a.sun_path, len) : 0, a.sun_path);
}

TEST(records, "what ends a receive")
{
	EACH_TYPE(type) {
		int s[2], z = open("/dev/null", O_RDONLY);
		say("%s", type_name(type));
		pair(type, s);
		send(s[0], "one", 3, 0);
		send(s[0], "two", 3, MSG_EOR);
		receive("first", s[1], 100, 0);
		receive("second", s[1], 100, 0);
		send(s[0], "abcdef", 6, 0);
		receive("peek a part", s[1], 3, MSG_PEEK);
		receive("peek with the whole length", s[1], 3, MSG_PEEK | MSG_TRUNC);
		receive("a part", s[1], 3, 0);
		receive("behind it", s[1], 3, 0);
		send_with(s[0], "fd", 2, &z, 1, NULL, 0);
		send(s[0], "plain", 5, 0);
		receive("descriptor, then bytes", s[1], 100, 0);
		receive("then", s[1], 100, 0);
		send(s[0], "plain", 5, 0);
		send_with(s[0], "fd", 2, &z, 1, NULL, 0);
		send_with(s[0], "df", 2, &z, 1, NULL, 0);
		receive("bytes, then descriptor", s[1], 100, 0);
		receive("then", s[1], 100, 0);
		receive("then", s[1], 100, 0);
		send_with(s[0], "fdfd", 4, &z, 1, NULL, 0);
		receive("peek at a descriptor", s[1], 2, MSG_PEEK);
		receive("half of it", s[1], 2, 0);
		receive("other half", s[1], 2, 0);
		num("only a descriptor", send_with(s[0], "", 0, &z, 1, NULL, 0));
		receive("only a descriptor", s[1], 10, 0);
		send_with(s[0], "xy", 2, &z, 1, NULL, 0);
		receive("no room for data", s[1], 0, 0);
		receive("after that", s[1], 10, 0);
		receive("nothing left", s[1], 10, 0);
		send_with(s[0], "xy", 2, &z, 1, NULL, 0);
		char c[4];
		num("recv with a descriptor there", recv(s[1], c, 1, 0));
		receive("after recv", s[1], 10, 0);
		send_with(s[0], "xy", 2, &z, 1, NULL, 0);
		num("read with a descriptor there", read(s[1], c, 1));
		receive("after read", s[1], 10, 0);
	}
}

TEST(credentials, "credentials")
{
	EACH_TYPE(type) {
		int s[2], z = open("/dev/null", O_RDONLY);
		struct ucred me = {getpid(), getuid(), getgid()};
		say("%s", type_name(type));
		pair(type, s);
		send(s[0], "before", 6, 0);
		set(s[1], SO_PASSCRED, 1);
		receive("asked for after the send", s[1], 100, 0);
		send(s[0], "after", 5, 0);
		receive("asked for before", s[1], 100, 0);
		send(s[0], "one", 3, 0);
		send(s[0], "two", 3, 0);
		receive("two sends of one sender", s[1], 100, 0);
		receive("then", s[1], 100, 0);
		set(s[1], SO_PASSCRED, 0);
		send(s[0], "none", 4, 0);
		set(s[1], SO_PASSCRED, 1);
		send(s[0], "with", 4, 0);
		receive("without, then with", s[1], 100, 0);
		receive("then", s[1], 100, 0);
		set(s[1], SO_PASSCRED, 0);
		num("given, not asked for", send_with(s[0], "given", 5, NULL, 0, &me, 0));
		receive("given, not asked for", s[1], 100, 0);
		send_with(s[0], "given", 5, NULL, 0, &me, 0);
		set(s[1], SO_PASSCRED, 1);
		receive("given, asked for later", s[1], 100, 0);
		set(s[1], SO_PASSCRED, 0);
		set(s[0], SO_PASSCRED, 1);
		send(s[0], "sender", 6, 0);
		receive("the sender asks", s[1], 100, 0);
		set(s[0], SO_PASSCRED, 0);
		struct ucred other = {1, 5, 6};
		num("another's, as root", send_with(s[0], "forged", 6, NULL, 0, &other, 0));
		set(s[1], SO_PASSCRED, 1);
		receive("another's", s[1], 100, 0);
		other.pid = 9999999;
		num("of no process", send_with(s[0], "forged", 6, NULL, 0, &other, 0));
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive_room("both, no room for the second", s[1], 10, CMSG_SPACE(sizeof me), 0);
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive_room("both, a bit of room", s[1], 10, CMSG_SPACE(sizeof me) + 4, 0);
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive_room("room for half of the credentials", s[1], 10, 20, 0);
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive_room("no room", s[1], 10, 0, 0);
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive_room("room for a header only", s[1], 10, 16, 0);
		send_with(s[0], "a", 1, &z, 1, &me, 0);
		receive("both", s[1], 10, 0);
		send(s[0], "ab", 2, 0);
		pid_t p = FORK(send(s[0], "cd", 2, 0));
		wait_for(p);
		receive("another process sends behind this one", s[1], 10, 0);
		receive("its part", s[1], 10, 0);
		receive("nothing", s[1], 10, 0);
		IN_CHILD("unprivileged", {
			must(setresuid(7, 8, 9), "setresuid");
			struct ucred u = {getpid(), 7, 0};
			num("the real id", send_with(s[0], "r", 1, NULL, 0, &u, 0));
			u.uid = 8;
			num("the effective id", send_with(s[0], "e", 1, NULL, 0, &u, 0));
			u.uid = 9;
			num("the saved id", send_with(s[0], "s", 1, NULL, 0, &u, 0));
			u.uid = 10;
			num("another id", send_with(s[0], "x", 1, NULL, 0, &u, 0));
			u.uid = 7, u.pid = getppid();
			num("another process", send_with(s[0], "x", 1, NULL, 0, &u, 0));
			u.pid = getpid(), u.gid = 77;
			num("another group", send_with(s[0], "x", 1, NULL, 0, &u, 0));
			u.uid = -1;
			num("no id", send_with(s[0], "x", 1, NULL, 0, &u, 0));
			num("none given", send(s[0], "n", 1, 0));
		});
		for (int i = 0; i < 4; i++)
			receive("from it", s[1], 1, 0);
	}
}

TEST(rights, "descriptors")
{
	EACH_TYPE(type) {
		int s[2], fds[300];
		say("%s", type_name(type));
		pair(type, s);
		for (int i = 0; i < 300; i++)
			fds[i] = s[0];
		fds[0] = open("/dev/null", O_RDONLY);
		for (int i = 1; i < 300; i++)
			fds[i] = fds[0];
		num("253 of them", send_with(s[0], "a", 1, fds, 253, NULL, 0));
		receive_room("253 of them", s[1], 10, 4000, 0);
		num("254 of them", send_with(s[0], "a", 1, fds, 254, NULL, 0));
		fds[1] = 999;
		num("one is bad", send_with(s[0], "a", 1, fds, 2, NULL, 0));
		fds[1] = open("/", O_PATH);
		num("O_PATH", send_with(s[0], "a", 1, fds, 2, NULL, 0));
		receive("O_PATH", s[1], 10, 0);
		fds[1] = fds[0];
		static const size_t rooms[] = {0, 8, 15, 16, 17, 19, 20, 21, 23, 24, 25, 28, 32, 40};
		for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
			char what[40];
			snprintf(what, sizeof what, "3 with room %zu", rooms[i]);
			send_with(s[0], "a", 1, fds, 3, NULL, 0);
			receive_room(what, s[1], 10, rooms[i], 0);
		}
		struct rlimit old, few;
		getrlimit(RLIMIT_NOFILE, &old);
		int top = dup(0);
		close(top);
		few = old, few.rlim_cur = top + 1;
		send_with(s[0], "a", 1, fds, 3, NULL, 0);
		setrlimit(RLIMIT_NOFILE, &few);
		receive("room for one descriptor", s[1], 10, 0);
		setrlimit(RLIMIT_NOFILE, &old);
		char control[CMSG_SPACE(4)] = {0}, c;
		struct iovec iov = {&c, 1};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		send_with(s[0], "a", 1, fds, 1, NULL, 0);
		num("MSG_CMSG_CLOEXEC", recvmsg(s[1], &m, MSG_CMSG_CLOEXEC));
		say("flags %#x", m.msg_flags);
		int got;
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), 4);
		num("F_GETFD", fcntl(got, F_GETFD));
		close(got);
		send_with(s[0], "a", 1, fds, 1, NULL, 0);
		m.msg_controllen = sizeof control;
		recvmsg(s[1], &m, 0);
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), 4);
		num("F_GETFD without", fcntl(got, F_GETFD));
		close(got);
	}
}

static long control(int s, int level, int type, size_t len, size_t total)
{
	char c[128] = {0};
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c, .msg_controllen = total};
	struct cmsghdr *h = (void *)c;
	h->cmsg_level = level, h->cmsg_type = type, h->cmsg_len = len;
	return sendmsg(s, &m, 0);
}

TEST(bad_control, "malformed control data")
{
	EACH_TYPE(type) {
		int s[2];
		char c[200];
		pair(type, s);
		say("%s", type_name(type));
		num("no file", control(s[0], SOL_SOCKET, SCM_RIGHTS, 16, 16));
		num("one file (0)", control(s[0], SOL_SOCKET, SCM_RIGHTS, 20, 24));
		num("length beyond the end", control(s[0], SOL_SOCKET, SCM_RIGHTS, 32, 24));
		num("length too short", control(s[0], SOL_SOCKET, SCM_RIGHTS, 8, 24));
		num("length 0", control(s[0], SOL_SOCKET, SCM_RIGHTS, 0, 24));
		num("odd length", control(s[0], SOL_SOCKET, SCM_RIGHTS, 23, 24));
		num("a short header", control(s[0], SOL_SOCKET, SCM_RIGHTS, 16, 8));
		num("short credentials", control(s[0], SOL_SOCKET, SCM_CREDENTIALS, 20, 24));
		num("long credentials", control(s[0], SOL_SOCKET, SCM_CREDENTIALS, 40, 40));
		num("credentials of pid 0", control(s[0], SOL_SOCKET, SCM_CREDENTIALS, 28, 32));
		num("unknown type", control(s[0], SOL_SOCKET, 99, 20, 24));
		num("SCM_TIMESTAMP", control(s[0], SOL_SOCKET, SO_TIMESTAMP, 32, 32));
		num("another level", control(s[0], 1234, 99, 20, 24));
		num("another level, bad length", control(s[0], 1234, 99, 8, 24));
		while (recv(s[1], c, sizeof c, 0) > 0)
			;
	}
}

static void flags_of(int type, int flag, const char *name)
{
	int s[2];
	char c[10], what[60];
	pair(type, s);
	snprintf(what, sizeof what, "send %s", name);
	num(what, send(s[0], "abc", 3, flag | MSG_NOSIGNAL));
	send(s[0], "def", 3, 0);
	snprintf(what, sizeof what, "receive %s", name);
	num(what, recv(s[1], c, 2, flag | MSG_DONTWAIT));
	close(s[0]), close(s[1]);
}

TEST(message_flags, "flags of send and receive")
{
	EACH_TYPE(type) {
		say("%s", type_name(type));
		flags_of(type, MSG_DONTROUTE, "MSG_DONTROUTE");
		flags_of(type, MSG_CTRUNC, "MSG_CTRUNC");
		flags_of(type, MSG_PROXY, "MSG_PROXY");
		flags_of(type, MSG_TRUNC, "MSG_TRUNC");
		flags_of(type, MSG_DONTWAIT, "MSG_DONTWAIT");
		flags_of(type, MSG_EOR, "MSG_EOR");
		flags_of(type, MSG_WAITALL, "MSG_WAITALL");
		flags_of(type, MSG_FIN, "MSG_FIN");
		flags_of(type, MSG_SYN, "MSG_SYN");
		flags_of(type, MSG_CONFIRM, "MSG_CONFIRM");
		flags_of(type, MSG_RST, "MSG_RST");
		flags_of(type, MSG_ERRQUEUE, "MSG_ERRQUEUE");
		flags_of(type, MSG_MORE, "MSG_MORE");
		flags_of(type, MSG_WAITFORONE, "MSG_WAITFORONE");
		flags_of(type, MSG_ZEROCOPY, "MSG_ZEROCOPY");
		flags_of(type, MSG_FASTOPEN, "MSG_FASTOPEN");
		flags_of(type, MSG_CMSG_CLOEXEC, "MSG_CMSG_CLOEXEC");
	}
}

TEST(binding, "bind")
{
	EACH_TYPE(type) {
		say("%s", type_name(type));
		int s = (int)socket(AF_UNIX, type, 0), r = (int)socket(AF_UNIX, type, 0);
		struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "x"};
		show_name("unbound", s, getsockname);
		err("too short", bind(s, (void *)&a, 1));
		err("another family", bind(s, (void *)&(struct sockaddr_un){.sun_family = AF_INET, .sun_path = "x"}, sizeof a));
		err("AF_UNSPEC", bind(s, (void *)&(struct sockaddr_un){.sun_family = AF_UNSPEC, .sun_path = "x"}, sizeof a));
		err("too long", bind(s, (void *)&a, sizeof a + 1));
		err("no directory", bind_to(s, "none/x"));
		err("bind", bind_to(s, "first"));
		err("again", bind_to(s, "second"));
		err("again, autobind", bind(s, (void *)&a, 2));
		err("another to the same", bind_to(r, "first"));
		show_name("bound", s, getsockname);
		struct stat st;
		stat("first", &st);
		say("mode %o", st.st_mode);
		unlink("first");
		err("another after unlink", bind_to(r, "first"));
		show_name("still", s, getsockname);
		err("bind to a directory", bind_to((int)socket(AF_UNIX, type, 0), "."));
		err("autobind", bind((int)(r = socket(AF_UNIX, type, 0)), (void *)&a, 2));
		socklen_t n = sizeof a;
		getsockname(r, (void *)&a, &n);
		say("autobind gives %u bytes, first %d, hexadecimal %d", n, a.sun_path[0], strspn(a.sun_path + 1, "0123456789abcdef") >= 5);
		err("autobind again", bind(r, (void *)&a, 2));
		memset(&a, 0, sizeof a), a.sun_family = AF_UNIX;
		err("abstract, whole length", bind((int)(r = socket(AF_UNIX, type, 0)), (void *)&a, sizeof a));
		show_name("it", r, getsockname);
		err("abstract, one zero", bind((int)(r = socket(AF_UNIX, type, 0)), (void *)&a, 3));
		show_name("it", r, getsockname);
		err("abstract, taken", bind((int)socket(AF_UNIX, type, 0), (void *)&a, 3));
		memset(a.sun_path, 'p', sizeof a.sun_path);
		err("108 bytes", bind((int)(r = socket(AF_UNIX, type, 0)), (void *)&a, sizeof a));
		show_name("it", r, getsockname);
		err("107 bytes", bind((int)(r = socket(AF_UNIX, type, 0)), (void *)&a, sizeof a - 1));
		show_name("it", r, getsockname);
		memset(a.sun_path, 'p', sizeof a.sun_path);
		unlink(a.sun_path);
		char path[110] = {0};
		memset(path, 'p', 108);
		unlink(path), path[107] = 0, unlink(path);
		symlink("nowhere", "dangling");
		err("a dangling link", bind_to((int)socket(AF_UNIX, type, 0), "dangling"));
		err("trailing slash", bind_to((int)socket(AF_UNIX, type, 0), "slash/"));
		unlink("dangling"), unlink("first");
	}
}

TEST(no_connection, "connect that fails")
{
	int made = open("file", O_CREAT | O_RDWR, 0644);
	(void)made;
	EACH_TYPE(type) {
		say("%s", type_name(type));
		int s = (int)socket(AF_UNIX, type, 0), b = bound(type, "bound");
		struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "x"};
		err("no name", connect_to(s, "none"));
		err("abstract", connect_to(s, "@none"));
		err("a file", connect_to(s, "file"));
		err("a directory", connect_to(s, "."));
		err("empty address", connect(s, (void *)&a, 2));
		err("one byte", connect(s, (void *)&a, 1));
		err("too long", connect(s, (void *)&a, sizeof a + 1));
		err("another family", connect(s, (void *)&(struct sockaddr_un){.sun_family = AF_INET}, sizeof a));
		err("AF_UNSPEC", connect(s, (void *)&(struct sockaddr_un){.sun_family = AF_UNSPEC}, sizeof a));
		err("AF_UNSPEC, short", connect(s, (void *)&(struct sockaddr_un){.sun_family = AF_UNSPEC}, 2));
		err("bound only", connect_to(s, "bound"));
		err("again", connect_to(s, "bound"));
		EACH_TYPE(other) if (other != type) {
			int o = (int)socket(AF_UNIX, other, 0);
			say("from %s", type_name(other));
			err("connect", connect_to(o, "bound"));
			close(o);
		}
		close(b);
		err("closed", connect_to(s, "bound"));
		int r = (int)socket(AF_UNIX, type, 0);
		err("closed, another", connect_to(r, "bound"));
		unlink("bound");
		b = listening(type == SOCK_DGRAM ? SOCK_STREAM : type, "listen", 1);
		int w = (int)socket(AF_UNIX, b, 0);
		chmod("listen", 0444);
		IN_CHILD("unprivileged", {
			chmod(".", 0777);
			setuid(1000);
			int c = (int)socket(AF_UNIX, type, 0);
			err("a socket that may not be written", connect_to(c, "listen"));
		});
		close(b), unlink("listen");
		err("accept of an unconnected one", accept(s, NULL, NULL));
		err("listen of an unbound one", listen((int)socket(AF_UNIX, type, 0), 1));
		char c;
		s = (int)socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
		num("recv", recv(s, &c, 1, 0));
		num("recv 0", recv(s, &c, 0, 0));
		num("peek", recv(s, &c, 1, MSG_PEEK));
		num("send", send(s, "x", 1, MSG_NOSIGNAL));
		num("send 0", send(s, "x", 0, MSG_NOSIGNAL));
		socklen_t n;
		a = address("none", &n);
		num("sendto", sendto(s, "x", 1, MSG_NOSIGNAL, (void *)&a, n));
		num("sendto nothing", sendto(s, "x", 1, MSG_NOSIGNAL, (void *)&a, 0));
		num("sendto, short", sendto(s, "x", 1, MSG_NOSIGNAL, (void *)&a, 1));
		show_name("peer", s, getpeername);
		err("shutdown", shutdown(s, SHUT_RD));
		say("SIOCINQ %d", ioctl(s, SIOCINQ, &type));
		say("poll:%s", events(s));
	}
}

TEST(backlog, "connections that wait")
{
	EACH_TYPE(type) if (type != SOCK_DGRAM) {
		say("%s", type_name(type));
		for (int backlog = -1; backlog < 3; backlog++) {
			int l = listening(type, "l", backlog), c[5], n;
			for (n = 0; n < 5; n++) {
				c[n] = (int)socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
				if (connect_to(c[n], "l") < 0)
					break;
			}
			say("backlog %d takes %d, then %s", backlog, n, n < 5 ? name_of(errno) : "more");
			close(l), unlink("l");
			for (int i = 0; i < 5 && i <= n; i++)
				close(c[i]);
		}
		int l = listening(type, "l", 0), c = connected(type, "l");
		say("listener:%s, connected:%s", events(l), events(c));
		num("write before accept", write(c, "early", 5));
		show_name("peer before accept", c, getpeername);
		err("connect again", connect_to(c, "l"));
		err("bind after connect", bind_to(c, "late"));
		int a = (int)accept(l, NULL, NULL);
		show_name("peer of the accepted", a, getpeername);
		show_name("name of the accepted", a, getsockname);
		receive("what was written early", a, 10, 0);
		err("listen on a connected one", listen(c, 1));
		err("connect of a listener", connect_to(l, "l"));
		err("listen again", listen(l, 5));
		char x;
		num("recv from a listener", recv(l, &x, 1, 0));
		num("send to a listener", send(l, &x, 1, MSG_NOSIGNAL));
		int v;
		err("SIOCINQ", ioctl(l, SIOCINQ, &v));
		err("SIOCOUTQ", ioctl(l, SIOCOUTQ, &v));
		say("SO_ACCEPTCONN %d %d %d", get(l, SO_ACCEPTCONN), get(c, SO_ACCEPTCONN), get(a, SO_ACCEPTCONN));
		int d = connected(type, "l");
		close(l);
		say("never accepted:%s", events(d));
		num("read", read(d, &x, 1));
		num("read again", read(d, &x, 1));
		num("write", send(d, &x, 1, MSG_NOSIGNAL));
		unlink("l"), unlink("late");
		l = listening(type, "l", 5);
		d = connected(type, "l");
		close(d);
		err("accept of one that has gone", a = (int)accept(l, NULL, NULL));
		say("it:%s", events(a));
		num("read", read(a, &x, 1));
		struct sockaddr_un from;
		socklen_t n = sizeof from;
		d = connected(type, "l");
		a = (int)accept(l, (void *)&from, &n);
		say("name of an unbound peer: %u", n);
		err("shutdown of the listener", shutdown(l, SHUT_RD));
		say("listener:%s", events(l));
		int e = (int)socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
		err("connect", connect_to(e, "l"));
		num("accept", accept(l, NULL, NULL));
		unlink("l");
	}
}

TEST(peer_credentials, "SO_PEERCRED")
{
	tester = getpid();
	EACH_TYPE(type) if (type != SOCK_DGRAM) {
		struct ucred u;
		socklen_t n = sizeof u;
		say("%s", type_name(type));
		chmod(".", 0777);
		int l = bound(type, "l");
		chmod("l", 0777);
#define CRED(what, s) (n = sizeof u, memset(&u, 0x55, n), getsockopt(s, SOL_SOCKET, SO_PEERCRED, &u, &n) < 0 ? (void)say("%s: %s", what, name_of(errno)) : \
	(void)say("%s: pid %s uid %d gid %d len %u", what, u.pid == 0 ? "0" : u.pid == getpid() ? "own" : u.pid == tester ? "tester" : "other", (int)u.uid, (int)u.gid, n))
		CRED("bound", l);
		IN_CHILD("listens", {
			setgid(60), setuid(50);
			listen(l, 1);
			CRED("listening", l);
		});
		CRED("listening", l);
		int c = connected(type, "l");
		CRED("connected", c);
		int a = (int)accept(l, NULL, NULL);
		CRED("accepted", a);
		close(c), close(a);
		listen(l, 2);
		CRED("listening again", l);
		IN_CHILD("connects", {
			setgid(61), setuid(51);
			int d = connected(type, "l");
			CRED("connected", d);
		});
		a = (int)accept(l, NULL, NULL);
		CRED("accepted after its death", a);
		gid_t groups[10];
		n = sizeof groups;
		num("SO_PEERGROUPS", getsockopt(a, SOL_SOCKET, SO_PEERGROUPS, groups, &n));
		n = 4;
		memset(&u, 0, sizeof u);
		num("with little room", getsockopt(a, SOL_SOCKET, SO_PEERCRED, &u, &n));
		say("length %u uid %d", n, (int)u.uid);
		unlink("l");
	}
	EACH_TYPE(type) {
		int s[2];
		struct ucred u;
		socklen_t n;
		pair(type, s);
		say("pair of %s", type_name(type));
		CRED("pair", s[0]);
		IN_CHILD("inherited", CRED("pair", s[0]));
		n = sizeof u;
		num("set", setsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &u, n));
		CRED("unconnected", socket(AF_UNIX, type, 0));
	}
}

TEST(groups, "SO_PEERGROUPS")
{
	EACH_TYPE(type) {
		say("%s", type_name(type));
		IN_CHILD("groups", {
			gid_t g[4] = {3, 5, 9, 4000};
			int s[2];
			must(setgroups(4, g), "setgroups");
			pair(type, s);
			gid_t out[8] = {0};
			socklen_t n = sizeof out;
			num("get", getsockopt(s[0], SOL_SOCKET, SO_PEERGROUPS, out, &n));
			say("%u: %u %u %u %u", n, out[0], out[1], out[2], out[3]);
			n = 8;
			num("too little room", getsockopt(s[0], SOL_SOCKET, SO_PEERGROUPS, out, &n));
			say("%u", n);
			must(setgroups(0, g), "setgroups");
			n = sizeof out;
			num("after a change", getsockopt(s[0], SOL_SOCKET, SO_PEERGROUPS, out, &n));
			say("%u", n);
			n = sizeof out;
			num("unconnected", getsockopt(socket(AF_UNIX, type, 0), SOL_SOCKET, SO_PEERGROUPS, out, &n));
		});
	}
}

TEST(ends, "shutdown, close and what poll says")
{
	EACH_TYPE(type) for (int how = 0; how <= 4; how++) {
		int s[2];
		char c[10];
		pair(type, s);
		send(s[0], "abc", 3, 0);
		send(s[1], "def", 3, 0);
		say("%s, %s", type_name(type), how == 0 ? "SHUT_RD" : how == 1 ? "SHUT_WR" : how == 2 ? "SHUT_RDWR" : how == 3 ? "close" : "close after reading");
		say("before:%s,%s", events(s[0]), events(s[1]));
		if (how == 4)
			recv(s[0], c, 3, 0);
		if (how < 3)
			err("shutdown", shutdown(s[0], how));
		else
			close(s[0]), s[0] = -1;
		say("after:%s,%s", events(s[0]), events(s[1]));
		say("SO_ERROR %d", get(s[1], SO_ERROR));
		num("own recv", recv(s[0], c, 3, 0));
		num("own recv", recv(s[0], c, 3, 0));
		num("own send", send(s[0], c, 3, MSG_NOSIGNAL));
		num("peer's recv", recv(s[1], c, 3, 0));
		num("peer's recv", recv(s[1], c, 3, 0));
		num("peer's recv", recv(s[1], c, 3, 0));
		num("peer's send", send(s[1], c, 3, MSG_NOSIGNAL));
		num("peer's send", send(s[1], c, 3, MSG_NOSIGNAL));
		say("peer:%s", events(s[1]));
		show_name("peer's peer", s[1], getpeername);
		int q = -1;
		num("SIOCINQ", ioctl(s[1], SIOCINQ, &q));
		num("SIOCOUTQ", ioctl(s[1], SIOCOUTQ, &q));
		close(s[0]), close(s[1]);
	}
}

TEST(sigpipe, "SIGPIPE")
{
	EACH_TYPE(type) {
		say("%s", type_name(type));
		int s[2];
		pair(type, s);
		close(s[1]);
		IN_CHILD("write", num("write", write(s[0], "x", 1)));
		IN_CHILD("write again", num("write", write(s[0], "x", 1)));
		IN_CHILD("MSG_NOSIGNAL", num("send", send(s[0], "x", 1, MSG_NOSIGNAL)));
		pair(type, s);
		shutdown(s[0], SHUT_WR);
		IN_CHILD("after shutdown", num("write", write(s[0], "x", 1)));
	}
}

TEST(datagrams, "datagram peers")
{
	int a = bound(SOCK_DGRAM, "a"), b = bound(SOCK_DGRAM, "b"), c = bound(SOCK_DGRAM, "c");
	int u = (int)socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	err("connect a to b", connect_to(a, "b"));
	err("connect b to c", connect_to(b, "c"));
	num("a sends to b, which has another peer", send(a, "x", 1, 0));
	num("c sends to b? unconnected", send(c, "x", 1, 0));
	socklen_t n;
	struct sockaddr_un to = address("b", &n);
	num("u sends to b", sendto(u, "x", 1, 0, (void *)&to, n));
	err("u connects to b", connect_to(u, "b"));
	num("c sends to b, its peer", sendto(c, "hi", 2, 0, (void *)&to, n));
	receive("b gets", b, 10, 0);
	say("a:%s", events(a));
	to = address("a", &n);
	num("connected a sends elsewhere", sendto(a, "own", 3, 0, (void *)&to, n));
	to = address("c", &n);
	num("connected a sends to c", sendto(a, "toc", 3, 0, (void *)&to, n));
	receive("c gets", c, 10, 0);
	num("unbound to c", sendto(u, "anon", 4, 0, (void *)&to, n));
	receive("c gets", c, 10, 0);
	num("unbound, bound before the receive", sendto(u, "late", 4, 0, (void *)&to, n));
	bind_to(u, "u");
	receive("c gets", c, 10, 0);
	num("empty", sendto(u, "", 0, 0, (void *)&to, n));
	say("c:%s", events(c));
	receive("c gets", c, 10, 0);
	receive("nothing", c, 10, 0);
	err("dissolve", connect(a, (void *)&(struct sockaddr_un){.sun_family = AF_UNSPEC}, 2));
	show_name("no peer", a, getpeername);
	num("send", send(a, "x", 1, 0));
	err("again", connect_to(a, "c"));
	num("send before close", send(a, "x", 1, 0));
	close(c);
	say("a after its peer's close:%s", events(a));
	num("send", send(a, "x", 1, 0));
	num("send", send(a, "x", 1, 0));
	show_name("peer", a, getpeername);
	num("sendto a closed one", sendto(u, "x", 1, 0, (void *)&to, n));
	err("reconnect", connect_to(a, "b"));
	int p[2];
	pair(SOCK_DGRAM, p);
	show_name("peer of a pair", p[0], getpeername);
	num("send to the pair's half by a third: no name", bind_to(p[1], "p1"));
	show_name("peer of a pair, bound late", p[0], getpeername);
	to = address("p1", &n);
	num("a third", sendto(u, "x", 1, 0, (void *)&to, n));
	num("own peer by name", sendto(p[0], "x", 1, 0, (void *)&to, n));
	err("reconnect a pair's half to b", connect_to(p[0], "u"));
	say("other half:%s", events(p[1]));
	num("its SO_ERROR", get(p[1], SO_ERROR));
	num("its send", send(p[1], "x", 1, 0));
	close(u);
	num("after the close", send(p[0], "x", 1, 0));
	num("after that", send(p[0], "x", 1, 0));
}

TEST(queue, "a full queue of datagrams")
{
	int r = bound(SOCK_DGRAM, "r"), s = connected(SOCK_DGRAM, "r"), n = 0;
	while (n < 2000 && send(s, "x", 1, 0) == 1)
		n++;
	say("takes %d, then %s", n, name_of(errno));
	say("sender:%s, receiver:%s", events(s), events(r));
	char c;
	recv(r, &c, 1, 0);
	say("after one is read:%s", events(s));
	num("send", send(s, "x", 1, 0));
	num("send", send(s, "x", 1, 0));
	int u = (int)socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	say("unconnected sender:%s", events(u));
	int t[2];
	pair(SOCK_DGRAM, t);
	for (n = 0; n < 2000 && send(t[0], "x", 1, 0) == 1; n++)
		;
	say("a pair takes %d, then %s", n, name_of(errno));
	say("sender:%s", events(t[0]));
	pair(SOCK_DGRAM, t);
	char big[300000];
	for (n = 0; n < 2000 && send(t[0], big, 4096, 0) > 0; n++)
		;
	say("of 4096 bytes %d, then %s", n, name_of(errno));
	pair(SOCK_SEQPACKET, t);
	for (n = 0; n < 2000 && send(t[0], "x", 1, 0) > 0; n++)
		;
	say("seqpacket: %d, then %s", n, n < 2000 ? name_of(errno) : "more");
	say("sender:%s", events(t[0]));
	static const int sizes[] = {1, 1000, 5000, 100000, 212960, 212991, 212992, 212993, 300000};
	EACH_TYPE(type) for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char what[50];
		pair(type, t);
		snprintf(what, sizeof what, "%s of %d", type_name(type), sizes[i]);
		if (type == SOCK_STREAM)
			say("%s: %d", what, send(t[0], big, sizes[i], 0) > 0);
		else
			num(what, send(t[0], big, sizes[i], 0));
		close(t[0]), close(t[1]);
	}
}

TEST(peeking, "SO_PEEK_OFF")
{
	EACH_TYPE(type) {
		int s[2];
		say("%s", type_name(type));
		pair(type, s);
		say("at first %d", get(s[1], SO_PEEK_OFF));
		int v = 2;
		err("set", setsockopt(s[1], SOL_SOCKET, SO_PEEK_OFF, &v, 4));
		send(s[0], "abcdefgh", 8, 0);
		receive("peek", s[1], 3, MSG_PEEK);
		say("now %d", get(s[1], SO_PEEK_OFF));
		receive("peek on", s[1], 3, MSG_PEEK);
		say("now %d", get(s[1], SO_PEEK_OFF));
		receive("read", s[1], 3, 0);
		say("now %d", get(s[1], SO_PEEK_OFF));
		send(s[0], "ijk", 3, 0);
		receive("peek on", s[1], 10, MSG_PEEK);
		say("now %d", get(s[1], SO_PEEK_OFF));
		v = -1;
		err("off", setsockopt(s[1], SOL_SOCKET, SO_PEEK_OFF, &v, 4));
		receive("peek", s[1], 10, MSG_PEEK);
		v = -2;
		err("-2", setsockopt(s[1], SOL_SOCKET, SO_PEEK_OFF, &v, 4));
		say("now %d", get(s[1], SO_PEEK_OFF));
	}
}

TEST(out_of_band, "out-of-band data")
{
	int s[2], mark;
	char c[10];
	pair(SOCK_STREAM, s);
	num("nothing there", recv(s[1], c, 1, MSG_OOB));
	num("send", send(s[0], "abc", 3, MSG_OOB));
	say("poll:%s", events(s[1]));
	num("recv", recv(s[1], c, 1, MSG_OOB));
	say("%c", c[0]);
	num("the rest", recv(s[1], c, 10, 0));
	num("empty", send(s[0], "", 0, MSG_OOB));
	say("poll:%s", events(s[1]));
	send(s[0], "hello", 5, 0);
	send(s[0], "world", 5, MSG_OOB);
	send(s[0], "after", 5, 0);
	receive("a read stops at the mark", s[1], 100, 0);
	err("SIOCATMARK", ioctl(s[1], 0x8905, &mark));
	say("at mark %d", mark);
	receive("the next one passes it", s[1], 100, 0);
	num("passed", recv(s[1], c, 1, MSG_OOB));
	int one = 1;
	setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &one, 4);
	send(s[0], "xyz", 3, MSG_OOB);
	num("inline: recv", recv(s[1], c, 1, MSG_OOB));
	receive("inline", s[1], 100, 0);
	receive("inline, the mark", s[1], 100, 0);
	err("SIOCATMARK", ioctl(s[1], 0x8905, &mark));
	EACH_TYPE(type) if (type != SOCK_STREAM) {
		pair(type, s);
		num("no stream: send", send(s[0], "abc", 3, MSG_OOB));
		num("no stream: recv", recv(s[1], c, 1, MSG_OOB));
		err("SIOCATMARK", ioctl(s[1], 0x8905, &mark));
	}
}

TEST(options, "options")
{
	EACH_TYPE(type) {
		int s = (int)socket(AF_UNIX, type, 0);
		say("%s", type_name(type));
		say("type %d domain %d protocol %d error %d", get(s, SO_TYPE), get(s, SO_DOMAIN), get(s, SO_PROTOCOL), get(s, SO_ERROR));
		int v = 1;
		err("level 6", setsockopt(s, 6, 1, &v, 4));
		err("level 0", setsockopt(s, 0, 1, &v, 4));
		socklen_t n = 4;
		err("get level 6", getsockopt(s, 6, 1, &v, &n));
		err("short value", setsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, 3));
		n = 2;
		v = -1;
		err("little room", getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &n));
		say("length %u value %#x", n, v);
	}
	IN_CHILD("unprivileged", {
		int s = (int)socket(AF_UNIX, SOCK_STREAM, 0), v = 100000;
		setuid(1000);
		err("SO_DEBUG", setsockopt(s, SOL_SOCKET, SO_DEBUG, &v, 4));
		err("SO_MARK", setsockopt(s, SOL_SOCKET, SO_MARK, &v, 4));
		err("SO_PRIORITY", setsockopt(s, SOL_SOCKET, SO_PRIORITY, &v, 4));
	});
}

TEST(making, "socket and socketpair")
{
	int s[2];
	static const int bad[] = {0, 1, 2, 3, 4, 5, 6, 10, 11};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		char what[40];
		snprintf(what, sizeof what, "type %d", bad[i]);
		err(what, socket(AF_UNIX, bad[i], 0));
		err(what, socketpair(AF_UNIX, bad[i], 0, s));
	}
	err("protocol 1", socket(AF_UNIX, SOCK_STREAM, 1));
	err("protocol 2", socket(AF_UNIX, SOCK_STREAM, 2));
	err("protocol -1", socket(AF_UNIX, SOCK_STREAM, -1));
	err("pair of protocol 2", socketpair(AF_UNIX, SOCK_STREAM, 2, s));
	err("bad flags", socket(AF_UNIX, SOCK_STREAM | 0x100, 0));
	err("bad place", socketpair(AF_UNIX, SOCK_STREAM, 0, (void *)8));
	int r = (int)socket(AF_UNIX, SOCK_RAW, 0);
	say("raw is %d", get(r, SO_TYPE));
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s);
	num("F_GETFD", fcntl(s[0], F_GETFD));
	num("F_GETFL", fcntl(s[0], F_GETFL));
}

TEST(attributes, "fstat, fchmod and fchown")
{
	EACH_TYPE(type) {
		int s = (int)socket(AF_UNIX, type, 0);
		struct stat st;
		say("%s", type_name(type));
		fstat(s, &st);
		say("mode %o uid %d nlink %d size %d", st.st_mode, (int)st.st_uid, (int)st.st_nlink, (int)st.st_size);
		err("fchmod", fchmod(s, 0600));
		err("fchown", fchown(s, 5, 6));
		fstat(s, &st);
		say("mode %o uid %d gid %d", st.st_mode, (int)st.st_uid, (int)st.st_gid);
		bind_to(s, "bound");
		stat("bound", &st);
		say("bound: mode %o uid %d gid %d", st.st_mode, (int)st.st_uid, (int)st.st_gid);
		err("fchmod of a bound one", fchmod(s, 0640));
		err("fchown of a bound one", fchown(s, 7, 8));
		fstat(s, &st);
		say("socket: mode %o uid %d gid %d", st.st_mode, (int)st.st_uid, (int)st.st_gid);
		stat("bound", &st);
		say("name: mode %o uid %d gid %d", st.st_mode, (int)st.st_uid, (int)st.st_gid);
		err("open of the name", open("bound", O_RDONLY));
		err("open of the name with O_PATH", open("bound", O_PATH));
		err("ftruncate", ftruncate(s, 0));
		err("lseek", lseek(s, 0, SEEK_SET));
		err("fsync", fsync(s));
		err("pread", pread(s, &st, 1, 0));
		err("mmap", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, s, 0) == MAP_FAILED ? -1 : 0);
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", s);
		err("reopen", open(path, O_RDWR));
		struct timespec ts[2] = {{1, 0}, {2, 0}};
		err("futimens", futimens(s, ts));
		fstat(s, &st);
		say("mtime %ld", (long)st.st_mtime);
		unlink("bound");
	}
	int p[2];
	struct stat st;
	pipe(p);
	fstat(p[0], &st);
	say("pipe: mode %o", st.st_mode);
	err("fchmod", fchmod(p[0], 0640));
	err("fchown", fchown(p[1], 5, 6));
	fstat(p[1], &st);
	say("pipe: mode %o uid %d gid %d", st.st_mode, (int)st.st_uid, (int)st.st_gid);
}

TEST(waitall, "MSG_WAITALL")
{
	EACH_TYPE(type) {
		int s[2];
		char c[10];
		must(socketpair(AF_UNIX, type, 0, s), "socketpair");
		say("%s", type_name(type));
		pid_t p = FORK(send(s[0], "abc", 3, 0), sleep_ms(30), send(s[0], "def", 3, 0), sleep_ms(30), send(s[0], "g", 1, 0));
		num("recv", recv(s[1], c, 6, MSG_WAITALL));
		num("recv and peek", recv(s[1], c, 2, MSG_WAITALL | MSG_PEEK | (type == SOCK_STREAM ? MSG_DONTWAIT : 0)) > 0 || errno == EAGAIN);
		close(s[0]);
		wait_for(p);
		num("to the end", recv(s[1], c, 6, MSG_WAITALL));
	}
}

TEST(watched, "epoll on the states of a stream")
{
	int ep = epoll_create1(0), s[2];
	pair(SOCK_STREAM, s);
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET}, got[4];
	epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &e);
#define WAIT(what) do { int n = epoll_wait(ep, got, 4, 50); say("%s: %d %#x", what, n, n > 0 ? got[0].events : 0); } while (0)
	WAIT("at first");
	WAIT("again");
	send(s[0], "x", 1, 0);
	WAIT("a byte");
	send(s[0], "x", 1, 0);
	WAIT("another byte");
	char c;
	recv(s[1], &c, 1, 0);
	WAIT("after a read");
	shutdown(s[0], SHUT_WR);
	WAIT("peer's SHUT_WR");
	close(s[0]);
	WAIT("peer's close");
	WAIT("again");
}

// A message that is taken and cannot be handed out gives its files back: the other end of
// a pipe in it sees the end.
TEST(rights_and_faults, "descriptors in a message with a bad buffer")
{
	EACH_TYPE(type) {
		int s[2], p[2];
		char c[10], control[64];
		pair(type, s);
		for (int bad = 0; bad < 4; bad++) {
			must(pipe2(p, O_NONBLOCK), "pipe");
			send_with(s[0], "abc", 3, &p[1], 1, NULL, 0);
			close(p[1]);
			struct iovec iov = {bad == 0 ? (void *)8 : c, sizeof c};
			struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = bad == 1 ? (void *)8 : control,
					   .msg_controllen = bad == 2 ? 4 : sizeof control, .msg_name = bad == 3 ? (void *)8 : NULL, .msg_namelen = 100};
			static const char *const what[] = {"buffer", "control", "short control", "name"};
			char line[80];
			snprintf(line, sizeof line, "%s, bad %s: recvmsg", type_name(type), what[bad]);
			num(line, recvmsg(s[1], &m, MSG_DONTWAIT));
			num("then", recv(s[1], c, sizeof c, MSG_DONTWAIT));
			int got = bad == 3 ? 1 : 0;
			if (got && m.msg_controllen >= CMSG_LEN(4)) // a stream's sender has no name: the file came
				for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = NULL)
					if (h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(4))
						close(*(int *)CMSG_DATA(h));
			num("the pipe", read(p[0], c, 1));
			close(p[0]);
		}
		close(s[0]), close(s[1]);
	}
}
