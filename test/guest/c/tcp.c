// Program tcp tests what an end of a TCP connection over loopback learns of the
// other's end, and data that is held back, over TCP and UDP.
#include "gt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static int a, b, l; // connected to each other, a by connect; the listener

static void connected(void)
{
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof to;
	l = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(l, (void *)&to, sizeof to), "bind");
	must(listen(l, 5), "listen");
	getsockname(l, (void *)&to, &len);
	a = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(a, (void *)&to, sizeof to), "connect");
	b = must(accept(l, NULL, NULL), "accept");
	alarm(20);
	signal(SIGPIPE, SIG_IGN);
}

static void reset(int fd)
{
	struct linger now = {1, 0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

static void look(const char *what, int fd)
{
	struct sockaddr_in x;
	socklen_t len = sizeof x;
	struct tcp_info info;
	say("%s", what);
	err("  getpeername", getpeername(fd, (void *)&x, &len));
	err("  getsockname", getsockname(fd, (void *)&x, &len));
	struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP};
	poll(&p, 1, 0);
	say("  poll %#x", p.revents);
}

static void pending(const char *what, int fd)
{
	int e = -1;
	socklen_t len = sizeof e;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	say("%s: SO_ERROR %s", what, name_of(e));
}

static char *big;
enum { much = 200 << 20 };

TEST(large, "a large write to a peer that has closed")
{
	big = mmap(NULL, much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	connected();
	close(b);
	sleep_ms(20);
	look("after the close", a);
	ssize_t n = write(a, big, much);
	say("only a part was taken: %d", n > 0 && n < 100 << 20);
	sleep_ms(20);
	look("after the write", a);
	num("again", write(a, big, 1));
	num("read", read(a, (char[1]){0}, 1));
	connected();
	fcntl(a, F_SETFL, O_NONBLOCK);
	close(b);
	n = write(a, big, much);
	say("not blocking, a part: %d", n > 0 && n < 100 << 20);
	sleep_ms(20);
	num("again", write(a, big, 1));
}

TEST(gone, "names and errors after the end")
{
	connected();
	look("connected", a);
	write(a, "unread", 6);
	close(b);
	sleep_ms(20);
	look("the peer left data unread", a);
	num("write", write(a, "x", 1));
	num("write", write(a, "x", 1));
	num("read", read(a, (char[1]){0}, 1));
	err("shutdown", shutdown(a, SHUT_WR));

	connected();
	reset(b);
	sleep_ms(20);
	look("reset", a);
	pending("reset", a);
	pending("again", a);
	num("read", read(a, (char[1]){0}, 1));
	err("shutdown", shutdown(a, SHUT_RDWR));
	look("then", a);

	connected();
	write(b, "abc", 3);
	reset(b);
	sleep_ms(20);
	num("read after a reset", read(a, (char[4]){0}, 4));
	num("read", read(a, (char[4]){0}, 4));

	connected();
	shutdown(b, SHUT_WR);
	sleep_ms(20);
	look("one half closed", a);
	look("and the other end", b);
	shutdown(a, SHUT_WR);
	sleep_ms(20);
	look("both closed", a);
	look("both closed, the other end", b);
	err("shutdown", shutdown(a, SHUT_RD));
	num("write", write(a, "x", 1));
	num("read", read(a, (char[1]){0}, 1));

	connected();
	shutdown(a, SHUT_RD);
	look("SHUT_RD", a);
	num("peer writes", write(b, "x", 1));
	close(b);
	sleep_ms(20);
	look("and closed by the peer", a);

	connected();
	close(b);
	sleep_ms(20);
	num("first write", write(a, "x", 1));
	sleep_ms(20);
	look("the peer had closed", a);
	pending("the peer had closed", a);
	num("second write", write(a, "x", 1));
	num("third write", write(a, "x", 1));
}

static int arrived(void)
{
	int n = 0;
	ioctl(b, FIONREAD, &n);
	return n;
}

// soon waits less than the time after which data is sent all the same.
static int soon(void)
{
	long long end = now_ms() + 60;
	while (arrived() == 0 && now_ms() < end)
		sleep_ms(1);
	return arrived();
}

static void option(int name, int v) { must(setsockopt(a, IPPROTO_TCP, name, &v, sizeof v), "setsockopt"); }

TEST(more, "MSG_MORE and TCP_CORK hold data back")
{
	connected();
	num("send with MSG_MORE", send(a, "abc", 3, MSG_MORE));
	say("arrived: %d", soon());
	num("not blocking", recv(b, (char[8]){0}, 8, MSG_DONTWAIT));
	num("send", send(a, "de", 2, 0));
	say("arrived: %d", soon());
	num("read", read(b, (char[8]){0}, 8));
	num("send with MSG_MORE", send(a, "abc", 3, MSG_MORE));
	say("it comes in the end: %d", until(arrived() == 3));
	num("read", read(b, (char[8]){0}, 8));
	num("send with MSG_MORE", send(a, "abc", 3, MSG_MORE));
	shutdown(a, SHUT_WR);
	num("read", read(b, (char[8]){0}, 8));
	num("read", read(b, (char[8]){0}, 8));

	connected();
	num("send with MSG_MORE", send(a, "abc", 3, MSG_MORE));
	close(a);
	num("close, read", read(b, (char[8]){0}, 8));

	connected();
	option(TCP_CORK, 1);
	num("corked", write(a, "abc", 3));
	say("arrived: %d", soon());
	num("corked", write(a, "abc", 3));
	say("arrived: %d", soon());
	option(TCP_CORK, 0);
	say("arrived: %d", soon());
	num("read", read(b, (char[8]){0}, 8));
	option(TCP_CORK, 1);
	num("corked", write(a, "abc", 3));
	option(TCP_NODELAY, 1);
	say("arrived after TCP_NODELAY: %d", soon());
	option(TCP_CORK, 0);
	until(arrived() == 3);
	num("read", read(b, (char[8]){0}, 8));

	connected();
	num("send with MSG_MORE", send(a, "abc", 3, MSG_MORE));
	struct pollfd p = {b, POLLIN};
	num("a poll sees nothing", poll(&p, 1, 20));
	num("but the rest wakes it", (send(a, "d", 1, 0), poll(&p, 1, 5000)));
	num("read", read(b, (char[8]){0}, 8));
}

TEST(whole, "held back data of more than a segment")
{
	static char block[150000];
	connected();
	num("send with MSG_MORE", send(a, block, sizeof block, MSG_MORE));
	say("some arrived: %d", soon() > 0);
	num("the rest", send(a, block, 1, 0));
	size_t sum = 0;
	while (sum < sizeof block + 1) {
		ssize_t n = read(b, block, sizeof block);
		if (n <= 0)
			break;
		sum += n;
	}
	say("all %d", sum == sizeof block + 1);
}

static void datagram(const char *what)
{
	char text[64];
	ssize_t n = recv(b, text, sizeof text, MSG_DONTWAIT);
	if (n < 0)
		say("%s: %s", what, name_of(errno));
	else
		say("%s: \"%.*s\"", what, (int)n, text);
}

TEST(datagrams, "MSG_MORE and UDP_CORK")
{
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof to;
	b = socket(AF_INET, SOCK_DGRAM, 0);
	must(bind(b, (void *)&to, sizeof to), "bind");
	getsockname(b, (void *)&to, &len);
	a = socket(AF_INET, SOCK_DGRAM, 0);
	num("nowhere", send(a, "x", 1, MSG_MORE));
	num("first part", sendto(a, "one ", 4, MSG_MORE, (void *)&to, sizeof to));
	datagram("nothing yet");
	num("second part", send(a, "two ", 4, MSG_MORE));
	num("last part", send(a, "three", 5, 0));
	datagram("all");
	must(connect(a, (void *)&to, sizeof to), "connect");
	int on = 1, off = 0;
	err("UDP_CORK", setsockopt(a, IPPROTO_UDP, UDP_CORK, &on, sizeof on));
	num("part", send(a, "four ", 5, 0));
	num("part", write(a, "five", 4));
	datagram("nothing yet");
	err("off", setsockopt(a, IPPROTO_UDP, UDP_CORK, &off, sizeof off));
	datagram("all");
	err("off again", setsockopt(a, IPPROTO_UDP, UDP_CORK, &off, sizeof off));
	datagram("nothing");
	num("empty part", send(a, "", 0, MSG_MORE));
	num("empty end", send(a, "", 0, 0));
	datagram("an empty one");
	static char block[40000];
	num("much", send(a, block, sizeof block, MSG_MORE));
	num("too much", send(a, block, sizeof block, 0));
	datagram("nothing");
	num("an ordinary one", send(a, "six", 3, 0));
	datagram("it");
	num("wild", send(a, (void *)16, 4, MSG_MORE));
	num("after it", send(a, "seven", 5, 0));
	datagram("it");
	err("a byte", setsockopt(a, IPPROTO_UDP, UDP_CORK, &on, 1));
	on = -1, len = sizeof on;
	err("get", getsockopt(a, IPPROTO_UDP, UDP_CORK, &on, &len));
	say("%d", on);
}

TEST(nothing, "a send of nothing")
{
	for (int state = 0; state < 4; state++) {
		connected();
		if (state == 1)
			close(b);
		else if (state == 2)
			reset(b);
		else if (state == 3)
			shutdown(a, SHUT_WR);
		sleep_ms(20);
		say("state %d", state);
		num("  send", send(a, "", 0, 0));
		num("  write", write(a, "", 0));
		num("  writev", writev(a, NULL, 0));
		num("  a byte", send(a, "x", 1, 0));
		sleep_ms(20);
		num("  send", send(a, "", 0, 0));
		num("  again", send(a, "", 0, 0));
		close(a), close(l);
		if (state == 0 || state == 3)
			close(b);
	}
}

TEST(vectors, "vectors of nothing do not reach a socket")
{
	struct sockaddr_in to = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof to;
	struct iovec none = {"", 0};
	char c;
	int u = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	must(bind(u, (void *)&to, sizeof to), "bind");
	getsockname(u, (void *)&to, &len);
	must(connect(u, (void *)&to, sizeof to), "connect");
	num("writev of none", writev(u, NULL, 0));
	num("writev of nothing", writev(u, &none, 1));
	num("nothing came", recv(u, &c, 1, 0));
	num("write of nothing", write(u, "", 0));
	num("an empty datagram came", recv(u, &c, 1, 0));
	num("readv of none", readv(u, NULL, 0));
	num("readv of nothing", readv(u, &none, 1));
	num("preadv of nothing", preadv(u, &none, 1, 0));
	int p[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p), "socketpair");
	num("unix: writev of nothing", writev(p[0], &none, 1));
	num("unix: nothing came", recv(p[1], &c, 1, 0));
	close(p[1]);
	num("unix: writev after the end", writev(p[0], NULL, 0));
}
