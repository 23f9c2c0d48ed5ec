// Program anyaddress tests sockets bound to addresses that the machine does not have
// (IP_FREEBIND and its kin), filters on sockets of AF_UNIX and AF_NETLINK, and
// SO_BINDTOIFINDEX where there are no interfaces. On Linux it has a network of its own.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

static void begin(void)
{
	unshare(CLONE_NEWNET); // as far as there are any
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int s = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
}

static socklen_t address(struct sockaddr_storage *a, const char *text, int port)
{
	memset(a, 0, sizeof *a);
	if (strchr(text, ':')) {
		struct sockaddr_in6 *six = (void *)a;
		six->sin6_family = AF_INET6, six->sin6_port = htons((unsigned short)port);
		inet_pton(AF_INET6, text, &six->sin6_addr);
		return sizeof *six;
	}
	struct sockaddr_in *four = (void *)a;
	four->sin_family = AF_INET, four->sin_port = htons((unsigned short)port);
	inet_pton(AF_INET, text, &four->sin_addr);
	return sizeof *four;
}

static void nonlocal(int six, const char *value)
{
	int fd = (int)must(open(six ? "/proc/sys/net/ipv6/ip_nonlocal_bind" : "/proc/sys/net/ipv4/ip_nonlocal_bind", O_WRONLY), "open");
	must(write(fd, value, strlen(value)), "write");
	close(fd);
}

TEST(freebind, "addresses that are not there")
{
	begin();
	static const char *const all[] = {"192.0.2.7", "2001:db8::7", "::ffff:192.0.2.8", "224.0.0.5", "255.255.255.255"};
	static const struct {
		const char *name;
		int level4, option4, level6, option6;
	} how[] = {
	    {"plain", 0, 0, 0, 0}, {"freebind", IPPROTO_IP, IP_FREEBIND, IPPROTO_IPV6, IPV6_FREEBIND}, {"freebind of IPv4", IPPROTO_IP, IP_FREEBIND, IPPROTO_IP, IP_FREEBIND},
	    {"transparent", IPPROTO_IP, IP_TRANSPARENT, IPPROTO_IPV6, IPV6_TRANSPARENT}, {"nonlocal", -1, 0, -1, 0},
	};
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW};
	for (size_t h = 0; h < LEN(how); h++)
		for (size_t i = 0; i < LEN(all); i++)
			for (size_t t = 0; t < LEN(types); t++) {
				int six = strchr(all[i], ':') != NULL, on = 1;
				int s = (int)must(socket(six ? AF_INET6 : AF_INET, types[t], types[t] == SOCK_RAW ? IPPROTO_UDP : 0), "socket");
				char what[100];
				snprintf(what, sizeof what, "%s, %s, type %d", how[h].name, all[i], types[t]);
				if (six && how[h].level6 > 0 && setsockopt(s, how[h].level6, how[h].option6, &on, sizeof on) < 0)
					say("%s: option %s", what, name_of(errno));
				if (!six && how[h].level4 > 0 && setsockopt(s, how[h].level4, how[h].option4, &on, sizeof on) < 0)
					say("%s: option %s", what, name_of(errno));
				if (how[h].level4 == -1)
					nonlocal(0, "1"), nonlocal(1, "1");
				struct sockaddr_storage a;
				socklen_t n = address(&a, all[i], 4000 + (int)(h * 10 + i));
				if (types[t] != SOCK_RAW || all[i][0] != ':') // newer kernels differ on raw sockets of IPv6
					err(what, bind(s, (void *)&a, n));
				if (types[t] == SOCK_STREAM)
					err("listen", listen(s, 5));
				char b[60] = "";
				n = sizeof a;
				getsockname(s, (void *)&a, &n);
				inet_ntop(six ? AF_INET6 : AF_INET, six ? (void *)&((struct sockaddr_in6 *)&a)->sin6_addr : (void *)&((struct sockaddr_in *)&a)->sin_addr, b, sizeof b);
				if (types[t] == SOCK_STREAM)
					say("%s", b);
				if (how[h].level4 == -1)
					nonlocal(0, "0"), nonlocal(1, "0");
				close(s);
			}
}

// A server waits on an address that comes later.
TEST(later, "the address comes later")
{
	begin();
	int on = 1, s = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket"), u = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	struct sockaddr_storage a;
	socklen_t n = address(&a, "10.77.0.1", 4711);
	setsockopt(s, IPPROTO_IP, IP_FREEBIND, &on, sizeof on), setsockopt(u, IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
	err("bind", bind(s, (void *)&a, n));
	err("listen", listen(s, 5));
	err("bind of UDP", bind(u, (void *)&a, n));
	struct ifreq r = {.ifr_name = "lo:7"};
	memcpy(&r.ifr_addr, &a, sizeof(struct sockaddr_in));
	int c = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket"), v = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(c, SIOCSIFADDR, &r), "address");
	err("connect", connect(c, (void *)&a, n));
	int x = (int)err("accept", accept(s, NULL, NULL));
	num("send", send(c, "hello", 5, 0));
	char b[20] = "";
	num("recv", recv(x, b, sizeof b, 0));
	num("a datagram", sendto(v, "dear", 4, 0, (void *)&a, n));
	num("it comes", recv(u, b, sizeof b, 0));
	say("%s", b);
	IN_CHILD("another user", must(setresuid(1000, 1000, 1000), "setresuid"); err("freebind", setsockopt(v, IPPROTO_IP, IP_FREEBIND, &on, sizeof on)); err("transparent", setsockopt(v, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on)));
	memset(&r.ifr_addr, 0, sizeof r.ifr_addr);
	r.ifr_addr.sa_family = AF_INET;
	ioctl(c, SIOCSIFADDR, &r);
}

// accept_first lets messages through that begin with a byte, cut to so much.
static int filter(int s, int byte, unsigned keep)
{
	struct sock_filter code[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)byte}, {BPF_RET | BPF_K, 0, 0, keep}, {BPF_RET | BPF_K, 0, 0, 0}};
	struct sock_fprog p = {LEN(code), code};
	return setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p);
}

TEST(unixfilter, "filters of unix sockets")
{
	static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
	for (size_t t = 0; t < LEN(types); t++) {
		int p[2], pipes[2];
		must(socketpair(AF_UNIX, types[t] | SOCK_NONBLOCK, 0, p), "pair");
		must(pipe(pipes), "pipe");
		err("filter", filter(p[1], 'y', 5));
		static const char *const sent[] = {"yes it is", "no", "y", "", "yellow"};
		for (size_t i = 0; i < LEN(sent); i++) {
			char b[30] = "";
			struct iovec v = {(void *)sent[i], strlen(sent[i])};
			union {
				struct cmsghdr h;
				char room[CMSG_SPACE(sizeof(int))];
			} control = {.h = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
			struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
			memcpy(CMSG_DATA(&control.h), &pipes[1], sizeof(int));
			num("send", i % 2 ? sendmsg(p[0], &m, 0) : send(p[0], sent[i], strlen(sent[i]), 0));
			num("recv", recv(p[1], b, sizeof b, 0));
			say("%s", b);
		}
		// No file of what was dropped stays open.
		close(pipes[1]);
		char c;
		fcntl(pipes[0], F_SETFL, O_NONBLOCK);
		num("end of the pipe", read(pipes[0], &c, 1));
		err("off", setsockopt(p[1], SOL_SOCKET, SO_DETACH_FILTER, &t, sizeof(int)));
		num("send", send(p[0], "no", 2, 0));
		num("recv", recv(p[1], &c, 1, 0));
		int index = 1;
		socklen_t n = sizeof index;
		err("an interface", setsockopt(p[0], SOL_SOCKET, SO_BINDTOIFINDEX, &index, n));
		index = -1;
		err("a negative one", setsockopt(p[0], SOL_SOCKET, SO_BINDTOIFINDEX, &index, n));
		getsockopt(p[0], SOL_SOCKET, SO_BINDTOIFINDEX, &index, &n);
		num("kept", index);
		close(p[0]), close(p[1]), close(pipes[0]);
	}
}

TEST(nlfilter, "filters of netlink sockets")
{
	begin();
	int s = (int)must(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE), "socket");
	// Only answers that are no NLMSG_ERROR: the type is in bytes 4 and 5, in the machine's order.
	struct sock_filter code[] = {{BPF_LD | BPF_H | BPF_ABS, 0, 0, 4}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, NLMSG_ERROR << 8}, {BPF_RET | BPF_K, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, 0xffff}};
	struct sock_fprog p = {LEN(code), code};
	err("attach", setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
	struct {
		struct nlmsghdr h;
		struct ifinfomsg l;
	} m = {{sizeof m, RTM_GETLINK, NLM_F_REQUEST, 7, 0}, {.ifi_index = 1}};
	char b[8192];
	num("ask", send(s, &m, sizeof m, 0));
	say("answer %d", recv(s, b, sizeof b, 0) > 0 ? ((struct nlmsghdr *)b)->nlmsg_type : -1);
	m.l.ifi_index = 12345;
	num("ask for nothing", send(s, &m, sizeof m, 0));
	num("no answer", recv(s, b, sizeof b, 0));
	err("detach", setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &m, sizeof(int)));
	num("ask for nothing", send(s, &m, sizeof m, 0));
	say("answer %d", recv(s, b, sizeof b, 0) > 0 ? ((struct nlmsghdr *)b)->nlmsg_type : -1);
	int u = (int)must(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT), "socket");
	err("of events", setsockopt(u, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
}
