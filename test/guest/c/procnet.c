// /proc/net: headers, names of counters, what they count, lines of sockets.
#include "gt.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <net/if.h>
static char text[1 << 16];
static int get(const char *path) {
	int fd = open(path, O_RDONLY);
	if (fd < 0) { say("%s: %s", path, name_of(errno)); return -1; }
	int n = 0, r;
	while ((r = read(fd, text + n, sizeof text - 1 - n)) > 0)
		n += r;
	text[n] = 0;
	close(fd);
	return n;
}
// value finds a counter in the pairs of lines of snmp and netstat.
static long value(const char *path, const char *title, const char *field) {
	get(path);
	char key[40];
	snprintf(key, sizeof key, "%s:", title);
	char *names = strstr(text, key);
	while (names && names != text && names[-1] != '\n')
		names = strstr(names + 1, key);
	if (!names)
		return -1;
	char *values = strchr(names, '\n') + 1, *s1, *s2;
	*strchr(names, '\n') = 0;
	*strchr(values, '\n') = 0;
	char *a = strtok_r(names, " ", &s1), *b = strtok_r(values, " ", &s2);
	while (a && b && strcmp(a, field))
		a = strtok_r(NULL, " ", &s1), b = strtok_r(NULL, " ", &s2);
	return a && b ? atol(b) : -1;
}
#define TCP(f) value("/proc/net/snmp", "Tcp", f)
#define UDP(f) value("/proc/net/snmp", "Udp", f)
// alone gives the test counters of its own where other programs run, too.
static void alone(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	if (unshare(CLONE_NEWNET))
		return;
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	must(ioctl(s, SIOCGIFFLAGS, &r), "flags");
	r.ifr_flags |= IFF_UP;
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
}

static struct sockaddr_in lo4(int port) { struct sockaddr_in a = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}}; return a; }
TEST(headers, "first lines") {
	static const char *files[] = {"tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "icmp", "icmp6", "raw", "raw6", "netlink", "packet", "arp", "unix", "dev", "route", "sockstat6", "sockstat", "psched"};
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		char path[60];
		snprintf(path, sizeof path, "/proc/net/%s", files[i]);
		if (get(path) < 0)
			continue;
		if (!strncmp(files[i], "sockstat", 8)) { // only the first words
			for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n")) { *strrchr(l, ' ') = 0; if (strncmp(l, "TCP:", 4)) say("%.12s", l); }
			continue;
		}
		*strchr(text, '\n') = 0;
		say("%s %d: %s|", files[i], (int)strlen(text), text);
	}
}

TEST(names, "names of the counters") {
	static const char *lines[] = {"Icmp", "Tcp", "Udp", "UdpLite"};
	get("/proc/net/snmp");
	for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n"))
		if (strchr(l, ':') && strchr(l, ':')[2] > '9' && strncmp(l, "Ip:", 3) && strncmp(l, "IcmpMsg", 7)) say("%s", l);
	get("/proc/net/snmp6");
	for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n"))
		if (strncmp(l, "Icmp6InType", 11) && strncmp(l, "Icmp6OutType", 12) && strncmp(l, "Ip6OutTrans", 11)) { strchr(l, '\t')[1] = 0; say("%s|", l); }
}

TEST(tcp, "TCP is counted") {
	alone();
	struct sockaddr_in a = lo4(0);
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	bind(l, (void *)&a, n);
	getsockname(l, (void *)&a, &n);
	long fails = TCP("AttemptFails");
	int s = socket(AF_INET, SOCK_STREAM, 0);
	err("refused", connect(s, (void *)&a, n));
	close(s);
	num("AttemptFails", TCP("AttemptFails") - fails);
	listen(l, 5);
	long active = TCP("ActiveOpens"), passive = TCP("PassiveOpens"), estab = TCP("CurrEstab"), resets = TCP("EstabResets"), out = TCP("OutRsts");
	s = socket(AF_INET, SOCK_STREAM, 0);
	connect(s, (void *)&a, n);
	int c = accept(l, 0, 0);
	num("ActiveOpens", TCP("ActiveOpens") - active);
	num("PassiveOpens", TCP("PassiveOpens") - passive);
	num("CurrEstab", TCP("CurrEstab") - estab);
	close(s);
	close(c);
	num("CurrEstab", TCP("CurrEstab") - estab);
	num("EstabResets", TCP("EstabResets") - resets);
	s = socket(AF_INET, SOCK_STREAM, 0);
	connect(s, (void *)&a, n);
	c = accept(l, 0, 0);
	struct linger li = {1, 0};
	setsockopt(s, SOL_SOCKET, SO_LINGER, &li, sizeof li);
	close(s);
	num("EstabResets", TCP("EstabResets") - resets);
	num("OutRsts", TCP("OutRsts") - out);
	num("CurrEstab", TCP("CurrEstab") - estab);
}

TEST(udp, "UDP is counted") {
	alone();
	struct sockaddr_in a = lo4(0);
	socklen_t n = sizeof a;
	int r = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);
	bind(r, (void *)&a, n);
	getsockname(r, (void *)&a, &n);
	long in = UDP("InDatagrams"), out = UDP("OutDatagrams"), no = UDP("NoPorts");
	char b[8];
	for (int i = 0; i < 3; i++) { sendto(s, "x", 1, 0, (void *)&a, n); recv(r, b, 8, 0); }
	num("InDatagrams", UDP("InDatagrams") - in);
	num("OutDatagrams", UDP("OutDatagrams") - out);
	close(r);
	sendto(s, "x", 1, 0, (void *)&a, n);
	num("NoPorts", UDP("NoPorts") - no);
	long in6, out6;
	struct sockaddr_in6 a6 = {AF_INET6, 0, 0, IN6ADDR_LOOPBACK_INIT};
	n = sizeof a6;
	get("/proc/net/snmp6");
	in6 = atol(strstr(text, "Udp6InDatagrams") + 32);
	out6 = atol(strstr(text, "Udp6OutDatagrams") + 32);
	in = UDP("InDatagrams");
	r = socket(AF_INET6, SOCK_DGRAM, 0);
	s = socket(AF_INET6, SOCK_DGRAM, 0);
	bind(r, (void *)&a6, n);
	getsockname(r, (void *)&a6, &n);
	sendto(s, "x", 1, 0, (void *)&a6, n);
	recv(r, b, 8, 0);
	get("/proc/net/snmp6");
	num("in6", atol(strstr(text, "Udp6InDatagrams") + 32) - in6);
	num("out6", atol(strstr(text, "Udp6OutDatagrams") + 32) - out6);
	num("in", UDP("InDatagrams") - in);
}

TEST(icmp, "ICMP is counted") {
	alone();
	unsigned char q[8] = {8, 0, 0xf7, 0xff}, b[100];
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	struct sockaddr_in a = lo4(0);
	long in = value("/proc/net/snmp", "Icmp", "InEchos"), out = value("/proc/net/snmp", "Icmp", "OutEchoReps"), all = value("/proc/net/snmp", "Icmp", "InMsgs");
	num("send", sendto(s, q, 8, 0, (void *)&a, sizeof a));
	num("recv", recv(s, b, 100, 0));
	num("recv", recv(s, b, 100, 0));
	num("InEchos", value("/proc/net/snmp", "Icmp", "InEchos") - in);
	num("OutEchoReps", value("/proc/net/snmp", "Icmp", "OutEchoReps") - out);
	num("InMsgs", value("/proc/net/snmp", "Icmp", "InMsgs") - all);
}

TEST(lines, "lines of sockets") {
	struct sockaddr_in a = lo4(0);
	socklen_t n = sizeof a;
	char want[40], *l;
	int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0), r = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	bind(s, (void *)&a, n);
	listen(s, 3);
	getsockname(s, (void *)&a, &n);
	snprintf(want, 40, "0100007F:%04X", ntohs(a.sin_port));
	get("/proc/net/tcp");
	l = strstr(text, want);
	if (!l) return;
	l[75] = 0;
	say("tcp %s|", l + 14);
	say("%c", text[149]);
	a.sin_port = 0;
	bind(u, (void *)&a, n);
	getsockname(u, (void *)&a, &n);
	snprintf(want, 40, "0100007F:%04X", ntohs(a.sin_port));
	get("/proc/net/udp");
	l = strstr(text, want);
	if (!l) return;
	l[65] = 0;
	say("udp %s|", l + 14);
	get("/proc/net/raw");
	l = strstr(text, "00000000:0001");
	if (!l) return;
	l[65] = 0;
	say("raw %s|", l);
	int nl = socket(AF_NETLINK, SOCK_RAW, 0);
	struct sockaddr_nl na = {AF_NETLINK, 0, 123456};
	bind(nl, (void *)&na, sizeof na);
	get("/proc/net/netlink");
	l = strstr(text, "123456");
	if (!l) return;
	l[60] = 0;
	say("nl %s|", l - 4);
}

// has says the lines of the text that contain a word.
static void has(const char *what)
{
	for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n"))
		if (strstr(l, what))
			say("%s|", l);
}

TEST(groups, "groups that sockets have joined") {
	alone();
	int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET6, SOCK_DGRAM, 0);
	struct ip_mreqn m = {{inet_addr("224.5.6.7")}, {0}, if_nametoindex("lo")};
	struct ipv6_mreq m6 = {.ipv6mr_interface = if_nametoindex("lo")};
	inet_pton(AF_INET6, "ff02::5:77", &m6.ipv6mr_multiaddr);
	err("join", setsockopt(a, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m));
	err("join", setsockopt(b, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m));
	err("join", setsockopt(s, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &m6, sizeof m6));
	get("/proc/net/igmp");
	has("Idx");
	get("/proc/net/igmp");
	has("070605E0");
	get("/proc/net/igmp");
	say("all hosts: %d", strstr(text, "\t\t\t\t010000E0     1 0:00000000\t\t0\n") != NULL);
	get("/proc/net/igmp6");
	has("ff020000000000000000000000050077");
	get("/proc/net/igmp6");
	say("all nodes: %d", strstr(text, "1    lo              ff020000000000000000000000000001     1 0000000C 0\n") != NULL);
	close(b);
	get("/proc/net/igmp");
	has("070605E0");
	err("leave", setsockopt(a, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof m));
	close(s);
	get("/proc/net/igmp");
	has("070605E0");
	get("/proc/net/igmp6");
	has("ff020000000000000000000000050077");
	get("/proc/net/mcfilter");
	say("%s|", text);
	get("/proc/net/mcfilter6");
	say("%s|", text);
}
