// Program pathmtu tests what IP_MTU_DISCOVER and IPV6_MTU_DISCOVER do to datagrams that are
// longer than the MTU of lo, what the error queue then tells, and IPV6_CHECKSUM of sockets of
// ICMPv6. On Linux it has a network of its own.
#include "gt.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static void mtu(int v)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_mtu = v};
	int s = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(s, SIOCSIFMTU, &r), "mtu");
	close(s);
}

static void begin(void)
{
	unshare(CLONE_NEWNET); // as far as there are any
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int s = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
	mtu(1500);
}

static void queue(const char *what, int s)
{
	char control[300], data[100];
	struct sockaddr_storage from = {0};
	struct iovec v = {data, sizeof data};
	struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(s, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (n < 0) {
		say("%s: queue %s", what, name_of(errno));
		return;
	}
	say("%s: %zd bytes, flags %#x, name %u of %d", what, n, m.msg_flags, m.msg_namelen, from.ss_family);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err *e = (void *)CMSG_DATA(c);
		struct sockaddr *a = SO_EE_OFFENDER(e);
		say("%s: %d/%d %s origin %d type %d code %d info %u data %u offender %d", what, c->cmsg_level, c->cmsg_type, name_of((int)e->ee_errno), e->ee_origin, e->ee_type, e->ee_code, e->ee_info, e->ee_data, a->sa_family);
	}
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

static char big[70000];

TEST(udp, "UDP")
{
	begin();
	static const char *const to[] = {"127.0.0.1", "::ffff:127.0.0.1", "::1"};
	static const int sizes[] = {1400, 1452, 1453, 1472, 1473, 3000, 65507};
	for (size_t t = 0; t < LEN(to); t++)
		for (int how = IP_PMTUDISC_DONT; how <= IP_PMTUDISC_OMIT; how++)
			for (int connected = 0; connected < 2; connected++) {
				int six = strchr(to[t], ':') != NULL, on = 1;
				int s = (int)must(socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), "socket"), r = (int)must(socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), "socket");
				struct sockaddr_storage a;
				socklen_t n = address(&a, to[t], 0);
				must(bind(r, (void *)&a, n), "bind");
				getsockname(r, (void *)&a, &n);
				must(setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof how), "discover");
				must(setsockopt(s, IPPROTO_IP, IP_RECVERR, &on, sizeof on), "recverr");
				if (six) {
					must(setsockopt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &how, sizeof how), "discover");
					must(setsockopt(s, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on), "recverr");
				}
				if (connected)
					must(connect(s, (void *)&a, n), "connect");
				for (size_t i = 0; i < LEN(sizes); i++) {
					char what[80];
					snprintf(what, sizeof what, "%s, how %d, connected %d, %d bytes", to[t], how, connected, sizes[i]);
					long rc = connected ? send(s, big, (size_t)sizes[i], 0) : sendto(s, big, (size_t)sizes[i], 0, (void *)&a, n);
					num(what, rc);
					if (rc < 0) {
						struct pollfd p = {.fd = s};
						poll(&p, 1, 0);
						say("%s: poll %#x", what, p.revents);
						queue(what, s), queue(what, s);
					}
				}
				close(s), close(r);
			}
	mtu(65536);
}

TEST(raw, "raw sockets and those of ping")
{
	begin();
	static const int sizes[] = {1480, 1481, 3000, 65515, 65535, 65536, 69000};
	for (int how = IP_PMTUDISC_DONT; how <= IP_PMTUDISC_PROBE; how++)
		for (size_t i = 0; i < LEN(sizes); i++) {
			int s = (int)must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "socket"), on = 1;
			struct sockaddr_storage a;
			socklen_t n = address(&a, "127.0.0.1", 0);
			((struct icmphdr *)big)->type = ICMP_ECHOREPLY;
			setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof how);
			setsockopt(s, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
			char what[80];
			snprintf(what, sizeof what, "how %d, %d bytes", how, sizes[i]);
			long rc = sendto(s, big, (size_t)sizes[i], 0, (void *)&a, n);
			num(what, rc);
			if (rc < 0 && how >= IP_PMTUDISC_DO && sizes[i] < 65500)
				queue(what, s);
			close(s);
		}
	mtu(65536);
}

TEST(checksum, "IPV6_CHECKSUM")
{
	static const int levels[] = {SOL_RAW, IPPROTO_IPV6}, values[] = {2, -1, 3}, protocols[] = {IPPROTO_ICMPV6, IPPROTO_UDP};
	for (size_t p = 0; p < LEN(protocols); p++)
		for (size_t l = 0; l < LEN(levels); l++)
			for (size_t i = 0; i < LEN(values); i++) {
				if (protocols[p] == IPPROTO_ICMPV6 && values[i] == -1)
					continue; // Linux then sends without
				int s = (int)must(socket(AF_INET6, SOCK_RAW, protocols[p]), "socket"), v = values[i];
				char what[60];
				snprintf(what, sizeof what, "protocol %d, level %d, %d", protocols[p], levels[l], v);
				err(what, setsockopt(s, levels[l], IPV6_CHECKSUM, &v, sizeof v));
				socklen_t n = sizeof v;
				getsockopt(s, levels[l], IPV6_CHECKSUM, &v, &n);
				num("then", v);
				close(s);
			}
}
