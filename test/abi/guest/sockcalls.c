// Calls that are meant for sockets, on every kind of file.
#include "files.h"
#include <netinet/in.h>
#include <netinet/tcp.h>

static struct sockaddr_in in_any = {.sin_family = AF_INET};
static struct sockaddr_un un = {AF_UNIX, "name"};

void call_bind(subject *s)
{
	unlink("name");
	in_any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CASE("inet") result(S(bind, s->fd, P(&in_any), sizeof in_any));
	CASE("unix") result(S(bind, s->fd, P(&un), 7));
	CASE("auto") result(S(bind, s->fd, P(&un), 2));
	CASE("abstract") result(S(bind, s->fd, P("\1\0\0abc"), 6));
	CASE("0") result(S(bind, s->fd, P(&un), 0));
	CASE("short") result(S(bind, s->fd, P(&in_any), 8));
	CASE("long") result(S(bind, s->fd, P(buffer), 200));
	CASE("negative") result(S(bind, s->fd, P(&un), -1));
	CASE("bad") result(S(bind, s->fd, P(bad), 16));
	CASE("unspec") result(S(bind, s->fd, P("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 16));
	CASE("family99") result(S(bind, s->fd, P("\143\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 28));
	unlink("name");
}

void call_listen(subject *s)
{
	CASE("5") result(S(listen, s->fd, 5));
	CASE("0") result(S(listen, s->fd, 0));
	CASE("-1") result(S(listen, s->fd, -1));
}

void call_accept(subject *s)
{
	socklen_t n = 100, negative = -1;
	CASE("accept") result(S(accept, s->fd, 0, 0) >= 0 ? 0 : -1);
	CASE("name") result(S(accept, s->fd, P(buffer), P(&n)) >= 0 ? 0 : -1);
	CASE("badname") result(S(accept, s->fd, P(bad), P(&n)) >= 0 ? 0 : -1);
	CASE("badlength") result(S(accept, s->fd, P(buffer), P(bad)) >= 0 ? 0 : -1);
	CASE("negative") result(S(accept, s->fd, P(buffer), P(&negative)) >= 0 ? 0 : -1);
	EACH(bit, 0, 31, "flag") result(S(accept4, s->fd, 0, 0, 1L << bit) >= 0 ? 0 : -1);
}

void call_connect(subject *s)
{
	struct sockaddr_in a = {AF_INET, htons(9)};
	unlink("name");
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CASE("inet") result(S(connect, s->fd, P(&a), sizeof a));
	CASE("unix") result(S(connect, s->fd, P(&un), sizeof un));
	CASE("unspec") result(S(connect, s->fd, P("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 16));
	CASE("0") result(S(connect, s->fd, P(&a), 0));
	CASE("1") result(S(connect, s->fd, P(&a), 1));
	CASE("short") result(S(connect, s->fd, P(&a), 8));
	CASE("long") result(S(connect, s->fd, P(buffer), 200));
	CASE("negative") result(S(connect, s->fd, P(&a), -1));
	CASE("bad") result(S(connect, s->fd, P(bad), 16));
	CASE("family99") result(S(connect, s->fd, P("\143\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 28));
	CASE("file") close(open("name", O_CREAT | O_WRONLY, 0666)), result(S(connect, s->fd, P(&un), sizeof un));
	unlink("name");
}

void call_send(subject *s)
{
	struct iovec v = {buffer, 5};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	memcpy(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	CASE("10") result(S(sendto, s->fd, P(buffer), 10, 0, 0, 0));
	CASE("0") result(S(sendto, s->fd, P(buffer), 0, 0, 0, 0));
	CASE("bad") result(S(sendto, s->fd, P(bad), 10, 0, 0, 0));
	CASE("negative") result(S(sendto, s->fd, P(buffer), -1, MSG_DONTWAIT, 0, 0) > 0 ? 1 : -1);
	CASE("65508") result(S(sendto, s->fd, P(buffer), 65508, MSG_DONTWAIT, 0, 0) > 0 ? 1 : -1);
	CASE("toinet") result(S(sendto, s->fd, P(buffer), 10, 0, P(&in_any), 16));
	CASE("tounix") result(S(sendto, s->fd, P(buffer), 10, 0, P(&un), sizeof un));
	CASE("to0") result(S(sendto, s->fd, P(buffer), 10, 0, P(&un), 0));
	CASE("tobad") result(S(sendto, s->fd, P(buffer), 10, 0, P(bad), 16));
	CASE("tonegative") result(S(sendto, s->fd, P(buffer), 10, 0, P(&un), -1));
	CASE("tolong") result(S(sendto, s->fd, P(buffer), 10, 0, P(buffer), 200));
	CASE("msg") result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msgnone") m.msg_iovlen = 0, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msg1025") m.msg_iovlen = 1025, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msgbad") result(S(sendmsg, s->fd, P(bad), 0));
	CASE("msgvector") m.msg_iov = (void *)bad, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msgname") m.msg_name = bad, m.msg_namelen = 16, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msgcontrol") m.msg_control = bad, m.msg_controllen = 16, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("msgcontrolhuge") m.msg_control = buffer, m.msg_controllen = INT_MAX + 1L, result(S(sendmsg, s->fd, P(&m), 0));
	CASE("mmsg") result(S(sendmmsg, s->fd, P(&m), 0, 0));
	EACH(bit, 0, 31, "flag") result(S(sendto, s->fd, P(buffer), 3, 1L << bit, 0, 0));
}

void call_recv(subject *s)
{
	struct iovec v = {buffer, 5};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	socklen_t n = 100, negative = -1;
	CASE("5") note_bytes(buffer, result(S(recvfrom, s->fd, P(buffer), 5, 0, 0, 0)));
	CASE("0") result(S(recvfrom, s->fd, P(buffer), 0, 0, 0, 0));
	CASE("bad") result(S(recvfrom, s->fd, P(bad), 5, 0, 0, 0));
	CASE("negative") result(S(recvfrom, s->fd, P(buffer), -1, 0, 0, 0));
	CASE("name") result(S(recvfrom, s->fd, P(buffer), 5, 0, P(buffer + 100), P(&n))), note("%d", n);
	CASE("namebad") result(S(recvfrom, s->fd, P(buffer), 5, 0, P(bad), P(&n)));
	CASE("namelength") result(S(recvfrom, s->fd, P(buffer), 5, 0, P(buffer + 100), P(&negative)));
	CASE("msg") result(S(recvmsg, s->fd, P(&m), 0)), note("%x", m.msg_flags);
	CASE("msgnone") m.msg_iovlen = 0, result(S(recvmsg, s->fd, P(&m), 0)), note("%x", m.msg_flags);
	CASE("msg1025") m.msg_iovlen = 1025, result(S(recvmsg, s->fd, P(&m), 0));
	CASE("msgbad") result(S(recvmsg, s->fd, P(bad), 0));
	CASE("msgname") m.msg_name = bad, m.msg_namelen = 16, result(S(recvmsg, s->fd, P(&m), 0));
	CASE("msgnamelength") m.msg_name = buffer, m.msg_namelen = -1, result(S(recvmsg, s->fd, P(&m), 0));
	CASE("msgcontrol") m.msg_control = bad, m.msg_controllen = 16, result(S(recvmsg, s->fd, P(&m), 0));
	CASE("mmsg") result(S(recvmmsg, s->fd, P(&m), 0, 0, 0));
	CASE("peek+trunc") result(S(recvfrom, s->fd, P(buffer), 5, MSG_PEEK | MSG_TRUNC, 0, 0));
	for (int bit = 0; bit < 32; bit++)
		CASE("flag%d", bit) result(S(recvfrom, s->fd, P(buffer), 5, 1L << bit, 0, 0));
}

static void named(long rc, socklen_t n)
{
	if (result(rc) == 0)
		note("%d", n), note("family%d", *(short *)buffer);
}

void call_names(subject *s)
{
	socklen_t n = 128, negative = -1, small = 3, none = 0;
	CASE("own") named(S(getsockname, s->fd, P(buffer), P(&n)), n);
	CASE("ownsmall") result(S(getsockname, s->fd, P(buffer), P(&small))), note("%d", small);
	CASE("own0") result(S(getsockname, s->fd, P(buffer), P(&none))), note("%d", none);
	CASE("ownnegative") result(S(getsockname, s->fd, P(buffer), P(&negative)));
	CASE("ownbad") result(S(getsockname, s->fd, P(bad), P(&n)));
	CASE("ownbadlength") result(S(getsockname, s->fd, P(buffer), P(bad)));
	CASE("peer") named(S(getpeername, s->fd, P(buffer), P(&n)), n);
	CASE("peersmall") result(S(getpeername, s->fd, P(buffer), P(&small))), note("%d", small);
	CASE("peernegative") result(S(getpeername, s->fd, P(buffer), P(&negative)));
	CASE("peerbad") result(S(getpeername, s->fd, P(bad), P(&n)));
	CASE("peerbadlength") result(S(getpeername, s->fd, P(buffer), P(bad)));
}

void call_shutdown(subject *s)
{
	for (int how = -1; how < 4; how++)
		CASE("%d", how)
		{
			struct pollfd p = {s->fd, 0xffff, 0};
			result(S(shutdown, s->fd, how));
			S(poll, P(&p), 1, 0), note("%x", p.revents);
			result(S(sendto, s->fd, P("x"), 1, MSG_NOSIGNAL, 0, 0));
			result(S(recvfrom, s->fd, P(buffer), 1, 0, 0, 0));
		}
}

void call_sockopt(subject *s)
{
	int one = 1;
	socklen_t n = 4;
	CASE("get") result(S(getsockopt, s->fd, SOL_SOCKET, SO_TYPE, P(&one), P(&n))), note("%d", one);
	CASE("set") result(S(setsockopt, s->fd, SOL_SOCKET, SO_KEEPALIVE, P(&one), n));
	CASE("error") result(S(getsockopt, s->fd, SOL_SOCKET, SO_ERROR, P(&one), P(&n))), note("%d", one);
}
