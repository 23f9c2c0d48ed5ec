// Program tcpstates tests connect, listen, accept, shutdown and bind in the
// states of TCP sockets on loopback.
#include "gt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

static struct sockaddr_in to;

static int stream(void) { return must(socket(AF_INET, SOCK_STREAM, 0), "socket"); }

static void on(int fd, int name)
{
	int one = 1;
	must(setsockopt(fd, SOL_SOCKET, name, &one, sizeof one), "setsockopt");
}

// listener makes one and notes where in to.
static int listener(int backlog)
{
	int fd = stream();
	socklen_t len = sizeof to;
	to = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	must(bind(fd, (void *)&to, sizeof to), "bind");
	getsockname(fd, (void *)&to, &len);
	must(listen(fd, backlog), "listen");
	alarm(30);
	signal(SIGPIPE, SIG_IGN);
	return fd;
}

static int client(void)
{
	int fd = stream();
	must(connect(fd, (void *)&to, sizeof to), "connect");
	return fd;
}

static int state(int fd)
{
	struct tcp_info i;
	socklen_t len = sizeof i;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len) < 0 ? -1 : i.tcpi_state;
}

static void look(const char *what, int fd)
{
	struct sockaddr_in x;
	socklen_t len = sizeof x;
	struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP};
	poll(&p, 1, 0);
	int peer = getpeername(fd, (void *)&x, &len) < 0 ? errno : 0;
	say("%s: poll %#x, state %d, peer %s", what, p.revents, state(fd), name_of(peer));
}

static void pending(const char *what, int fd)
{
	int e = -1;
	socklen_t len = sizeof e;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	say("%s: SO_ERROR %s", what, name_of(e));
}

static int try(int fd) { return connect(fd, (void *)&to, sizeof to); }

TEST(nonblocking, "connect of a socket that does not block")
{
	int l = listener(5), c = stream();
	fcntl(c, F_SETFL, O_NONBLOCK);
	look("fresh", c);
	err("connect", try(c));
	struct pollfd p = {c, POLLOUT};
	say("poll %d", poll(&p, 1, 5000));
	pending("connected", c);
	look("connected", c);
	err("second", try(c));
	err("third", try(c));
	close(accept(l, NULL, NULL));
	close(c);
	c = stream();
	err("blocking", try(c));
	err("second", try(c));
	close(c);
	close(l);

	c = stream();
	fcntl(c, F_SETFL, O_NONBLOCK);
	err("nobody listens", try(c));
	p.fd = c, p.events = POLLIN | POLLOUT | POLLRDHUP;
	poll(&p, 1, 5000);
	say("poll %#x", p.revents);
	pending("refused", c);
	pending("again", c);
	poll(&p, 1, 0);
	say("poll %#x", p.revents);
	close(c);
	c = stream();
	fcntl(c, F_SETFL, O_NONBLOCK);
	err("nobody listens", try(c));
	poll(&p, 1, 100);
	err("second", try(c));
	l = listener(5);
	err("somebody listens", try(c));
	p.fd = c, p.events = POLLOUT;
	say("poll %d", poll(&p, 1, 5000));
	err("then", try(c));
	err("and then", try(c));
	close(c);
	c = stream();
	err("connect to port 0", ({ struct sockaddr_in none = to; none.sin_port = 0; connect(c, (void *)&none, sizeof none); }));
	err("listener connects", try(l));
}

TEST(relisten, "a listener that was shut listens again")
{
	int l = listener(5), port = to.sin_port;
	err("SHUT_WR", shutdown(l, SHUT_WR));
	look("listening", l);
	int c = client();
	err("SHUT_RD", shutdown(l, SHUT_RD));
	look("shut", l);
	err("accept", accept(l, NULL, NULL));
	look("its connection", c);
	num("read", read(c, (char[1]){0}, 1));
	int d = stream();
	err("connect", try(d));
	err("listen", listen(l, 5));
	socklen_t len = sizeof to;
	getsockname(l, (void *)&to, &len);
	say("the same port %d", to.sin_port == port);
	look("listening", l);
	d = client();
	look("connected", d);
	int e = accept(l, NULL, NULL);
	look("accepted", e);
	err("shut", shutdown(l, SHUT_RDWR));
	look("still there", e);
	err("it connects", try(l));
	int m = stream();
	err("unbound listen", listen(m, 1));
	err("shut", shutdown(m, SHUT_RD));
	err("bind", bind(m, (void *)&(struct sockaddr_in){AF_INET}, sizeof to));
}

static void *accepts(void *fd)
{
	err("accept that waited", accept(*(int *)fd, NULL, NULL));
	return NULL;
}

TEST(woken, "shutdown wakes an accept that waits")
{
	int l = listener(5);
	pthread_t t;
	pthread_create(&t, NULL, accepts, &l);
	settle_threads();
	int e = shutdown(l, SHUT_RD);
	pthread_join(t, NULL);
	err("shutdown", e);
}

TEST(queued, "connections whose listener is closed")
{
	int l = listener(5), c = client(), d = client();
	write(d, "abc", 3);
	close(l);
	sleep_ms(20);
	look("queued", c);
	look("with data", d);
	num("read", read(c, (char[1]){0}, 1));
	num("read", read(c, (char[1]){0}, 1));
	num("write", write(d, "x", 1));
	pending("with data", d);
	num("write", write(d, "x", 1));
	int e = stream();
	err("connect", try(e));
}

static int connected(const int *fds, int n)
{
	int done = 0;
	for (int i = 0; i < n; i++) {
		struct pollfd p = {fds[i], POLLOUT};
		done += poll(&p, 1, 0) == 1;
	}
	return done;
}

TEST(backlog, "more connections than the backlog")
{
	for (int backlog = 0; backlog <= 2; backlog++) {
		int l = listener(backlog), c[8], in_time = 0;
		for (int i = 0; i < 6; i++) {
			c[i] = stream();
			fcntl(c[i], F_SETFL, O_NONBLOCK);
			try(c[i]);
			struct pollfd p = {c[i], POLLOUT};
			in_time += poll(&p, 1, 100) == 1;
		}
		say("backlog %d: %d connected", backlog, in_time);
		look("one that waits", c[5]);
		err("connect again", try(c[5]));
		num("send", send(c[5], "x", 1, MSG_DONTWAIT));
		num("recv", recv(c[5], "x", 1, MSG_DONTWAIT));
		close(must(accept(l, NULL, NULL), "accept"));
		say("then one more: %d", until(connected(c, 6) > in_time));
		for (int i = 0; i < 6; i++)
			close(c[i]);
		close(l);
	}
}

TEST(defer, "TCP_DEFER_ACCEPT")
{
	int l = listener(5), sec = 20;
	setsockopt(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, &sec, sizeof sec);
	int c = client(), d = client();
	struct pollfd p = {l, POLLIN};
	say("before data: %d", poll(&p, 1, 100));
	look("connected", c);
	num("write", write(c, "hello", 5));
	say("with data: %d", poll(&p, 1, 5000));
	int a = accept(l, NULL, NULL);
	char buf[10];
	num("read", read(a, buf, sizeof buf));
	fcntl(l, F_SETFL, O_NONBLOCK);
	err("the other", accept(l, NULL, NULL));
	err("shutdown", shutdown(d, SHUT_WR));
	say("with the end: %d", poll(&p, 1, 5000));
	a = accept(l, NULL, NULL);
	num("read", read(a, buf, sizeof buf));
}

// rebind tries to bind the address of to, with and without SO_REUSEADDR.
static void rebind(const char *what)
{
	int fd = stream();
	int plain = bind(fd, (void *)&to, sizeof to) < 0 ? errno : 0;
	close(fd);
	fd = stream();
	on(fd, SO_REUSEADDR);
	int reuse = bind(fd, (void *)&to, sizeof to) < 0 ? errno : 0;
	int listens = reuse ? 0 : listen(fd, 1) < 0 ? errno : 0;
	close(fd);
	say("%s: bind %s, reusing %s, listen %s", what, name_of(plain), name_of(reuse), name_of(listens));
}

TEST(ports, "ports of connections that end")
{
	for (int reuse = 0; reuse < 2; reuse++) {
		say("reuse %d", reuse);
		int l = stream();
		socklen_t len = sizeof to;
		to = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
		if (reuse)
			on(l, SO_REUSEADDR);
		must(bind(l, (void *)&to, sizeof to), "bind");
		getsockname(l, (void *)&to, &len);
		rebind("bound");
		listen(l, 5);
		rebind("listening");
		int c = client(), a = accept(l, NULL, NULL);
		close(l);
		rebind("connected");
		struct sockaddr_in server = to;
		len = sizeof to;
		getsockname(c, (void *)&to, &len);
		rebind("the client's, connected");
		to = server;
		shutdown(a, SHUT_WR);
		sleep_ms(100);
		look("FIN_WAIT2", a);
		rebind("FIN_WAIT2");
		close(a);
		rebind("FIN_WAIT2 without a file");
		close(c);
		sleep_ms(20);
		rebind("TIME_WAIT");

		l = listener(5), c = client(), a = accept(l, NULL, NULL);
		close(l);
		struct sockaddr_in own;
		len = sizeof own;
		getsockname(c, (void *)&own, &len);
		shutdown(c, SHUT_WR);
		shutdown(a, SHUT_WR);
		sleep_ms(20);
		rebind("closed by the client first");
		close(a);
		sleep_ms(20);
		rebind("all closed");
		to = own;
		rebind("the client's");
		close(c);
		rebind("the client's, closed");

		l = listener(5), c = client(), a = accept(l, NULL, NULL);
		close(l);
		struct linger now = {1, 0};
		setsockopt(a, SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close(a);
		sleep_ms(20);
		rebind("reset");
		close(c);
	}
}

static struct sockaddr_storage address(int family, int which, int port)
{
	struct sockaddr_storage s = {0};
	struct sockaddr_in *four = (void *)&s;
	struct sockaddr_in6 *six = (void *)&s;
	if (family == AF_INET) {
		*four = (struct sockaddr_in){AF_INET, (in_port_t)port, {htonl(which == 0 ? INADDR_ANY : which == 1 ? INADDR_LOOPBACK : 0x7f000002)}};
	} else {
		*six = (struct sockaddr_in6){AF_INET6, (in_port_t)port};
		if (which == 1)
			six->sin6_addr.s6_addr[15] = 1;
		else if (which == 2)
			inet_pton(AF_INET6, "::ffff:127.0.0.1", &six->sin6_addr);
	}
	return s;
}

static const struct { const char *name; int family, which, only; } places[] = {
	{"any", AF_INET, 0, 0}, {"lo", AF_INET, 1, 0}, {"lo2", AF_INET, 2, 0},
	{"any6", AF_INET6, 0, 0}, {"only6", AF_INET6, 0, 1}, {"lo6", AF_INET6, 1, 0}, {"mapped", AF_INET6, 2, 0},
};

static const struct { const char *name; int addr, port; } uses[] = {
	{"plain", 0, 0}, {"addr", 1, 0}, {"port", 0, 1}, {"both", 1, 1},
};

static int place(int type, int where, int use, int port, int *error)
{
	int fd = must(socket(places[where].family, type, 0), "socket");
	if (places[where].only)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &places[where].only, sizeof(int));
	if (uses[use].addr)
		on(fd, SO_REUSEADDR);
	if (uses[use].port)
		on(fd, SO_REUSEPORT);
	struct sockaddr_storage s = address(places[where].family, places[where].which, port);
	*error = bind(fd, (void *)&s, places[where].family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) < 0 ? errno : 0;
	return fd;
}

// quiet_port is a port that is free at every address of both families. It is not
// one that the kernel hands out, so no other process comes upon it.
static int quiet_port(int type)
{
	static int next;
	if (next == 0)
		next = 61000 + getpid() % 4000;
	for (;; next++) {
		int e;
		close(place(type, 3, 0, htons(next), &e));
		if (e == 0)
			return htons(next);
		if (next == 65535)
			must(-1, "no free port");
	}
}

static void matrix(int type, int listens)
{
	char line[300];
	for (int i = 0; i < 7; i++)
		for (int u = 0; u < 4; u++) {
			int n = sprintf(line, "%s %s:", places[i].name, uses[u].name), e;
			int port = quiet_port(type);
			int first = place(type, i, u, port, &e);
			if (e)
				say("the first: %s", name_of(e));
			if (listens)
				listen(first, 1);
			for (int j = 0; j < 7; j++) {
				n += sprintf(line + n, " ");
				for (int v = 0; v < 4; v++) {
					int second = place(type, j, v, port, &e);
					if (e == 0 && listens && listen(second, 1) < 0)
						e = -1;
					n += sprintf(line + n, "%c", e == 0 ? '+' : e == EADDRINUSE ? '-' : e == -1 ? 'l' : '?');
					close(second);
				}
			}
			say("%s", line);
			close(first);
		}
}

TEST(matrix_tcp, "two binds to one port, of TCP") { matrix(SOCK_STREAM, 0); }
TEST(matrix_listen, "two listeners on one port") { matrix(SOCK_STREAM, 1); }
TEST(matrix_udp, "two binds to one port, of UDP") { matrix(SOCK_DGRAM, 0); }

TEST(users, "SO_REUSEPORT belongs to one user")
{
	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		int e;
		int first = place(type, 1, 2, 0, &e);
		struct sockaddr_in s;
		socklen_t len = sizeof s;
		getsockname(first, (void *)&s, &len);
		place(type, 1, 2, s.sin_port, &e);
		say("the same: %s", name_of(e));
		IN_CHILD("another", {
			must(setuid(1000), "setuid");
			place(type, 1, 2, s.sin_port, &e);
			say("another: %s", name_of(e));
			place(type, 2, 2, s.sin_port, &e);
			say("another address: %s", name_of(e));
		});
	}
}
