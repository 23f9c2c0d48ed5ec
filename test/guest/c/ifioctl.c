// Requests of ioctl about network interfaces. Nothing is changed: the names do not exist,
// or the caller may not.
#include "gt.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <net/if_arp.h>

static struct sockaddr_in lo4(int port) { struct sockaddr_in a = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}}; return a; }
static int udp_bound(struct sockaddr_in *a) {
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	*a = lo4(0);
	must(bind(s, (void *)a, sizeof *a), "bind");
	socklen_t n = sizeof *a;
	getsockname(s, (void *)a, &n);
	return s;
}

TEST(ifreq, "interfaces") {
	struct sockaddr_in a;
	int s = udp_bound(&a);
	struct ifreq r;
	static const struct { unsigned long c; const char *n; } get[] = {{SIOCGIFNAME,"NAME"},{SIOCGIFFLAGS,"FLAGS"},{SIOCGIFADDR,"ADDR"},{SIOCGIFDSTADDR,"DSTADDR"},{SIOCGIFBRDADDR,"BRD"},{SIOCGIFNETMASK,"MASK"},{SIOCGIFMETRIC,"METRIC"},{SIOCGIFMEM,"MEM"},{SIOCGIFMTU,"MTU"},{SIOCGIFHWADDR,"HW"},{SIOCGIFENCAP,"ENCAP"},{SIOCGIFSLAVE,"SLAVE"},{SIOCGIFPFLAGS,"PFLAGS"},{SIOCGIFINDEX,"INDEX"},{SIOCGIFCOUNT,"COUNT"},{SIOCGIFTXQLEN,"TXQLEN"},{SIOCGIFMAP,"MAP"},{SIOCETHTOOL,"ETHTOOL"},{SIOCGIFVLAN,"VLAN"},{SIOCGMIIPHY,"MII"},{SIOCGMIIREG,"MIIREG"},{SIOCWANDEV,"WAN"},{SIOCGIFCONF+0x40,"+40"},{SIOCGHWTSTAMP,"HWTSTAMP"},{SIOCSHWTSTAMP,"SHWTSTAMP"},{SIOCGARP,"ARP"},{SIOCGRARP,"RARP"},{SIOCGPGRP,"pgrp"},{FIOGETOWN,"own"},{SIOCDEVPRIVATE,"private"},{SIOCPROTOPRIVATE,"proto"},{SIOCRTMSG,"rtmsg"},{SIOCADDDLCI,"dlci"},{0x89f5,"89f5"},{0x89ff,"89ff"},{0x8990,"bond"},{0x8b01,"wext"}};
	for (int d = 0; d < 3; d++)
	for (unsigned i = 0; i < sizeof get / sizeof *get; i++) {
		memset(&r, 0x55, sizeof r);
		strcpy(r.ifr_name, d == 0 ? "lo" : d == 1 ? "nosuch" : "lo:0");
		if (get[i].c == SIOCGIFNAME) r.ifr_ifindex = d == 0 ? 1 : d == 1 ? 9999 : -1;
		int rc = ioctl(s, get[i].c, &r);
		if (rc) { say("%s %s: %d %s", d?d==1?"nosuch":"lo:0":"lo", get[i].n, rc, name_of(errno)); continue; }
		char h[120];
		for (int k = 0; k < 24; k++) sprintf(h + 2*k, "%02x", ((unsigned char *)&r.ifr_ifru)[k]);
		say("%s %s: %d %.16s %s", d?d==1?"nosuch":"lo:0":"lo", get[i].n, rc, r.ifr_name, h);
	}
	for (unsigned i = 0; i < sizeof get / sizeof *get; i++) err(get[i].n, ioctl(s, get[i].c, (void *)8));
	struct ifconf c = {0};
	char buf[sizeof(struct ifreq) * 8];
	num("ifconf null", ioctl(s, SIOCGIFCONF, &c));
	say("%d", c.ifc_len >= (int)sizeof(struct ifreq));
	c.ifc_len = sizeof buf;
	c.ifc_buf = buf;
	num("ifconf", ioctl(s, SIOCGIFCONF, &c));
	say("%.16s %d", c.ifc_req[0].ifr_name, c.ifc_req[0].ifr_addr.sa_family);
	c.ifc_len = sizeof(struct ifreq) - 1;
	num("small", ioctl(s, SIOCGIFCONF, &c));
	say("%d", c.ifc_len);
	c.ifc_len = sizeof(struct ifreq);
	num("one", ioctl(s, SIOCGIFCONF, &c));
	say("%d", c.ifc_len);
	c.ifc_len = -1;
	num("negative", ioctl(s, SIOCGIFCONF, &c));
	say("%d", c.ifc_len);
	c.ifc_len = 100;
	c.ifc_buf = (void *)8;
	num("fault", ioctl(s, SIOCGIFCONF, &c));
	int x = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(r.ifr_name, "lo");
	num("unix index", ioctl(x, SIOCGIFINDEX, &r));
	say("%d", r.ifr_ifindex);
	num("unix addr", ioctl(x, SIOCGIFADDR, &r));
	int six = socket(AF_INET6, SOCK_DGRAM, 0);
	strcpy(r.ifr_name, "lo");
	num("six index", ioctl(six, SIOCGIFINDEX, &r));
	num("six addr", ioctl(six, SIOCGIFADDR, &r));
	num("six mask", ioctl(six, SIOCGIFNETMASK, &r));
	num("six flags", ioctl(six, SIOCGIFFLAGS, &r));
	int nl = socket(AF_NETLINK, SOCK_RAW, 0);
	num("nl index", ioctl(nl, SIOCGIFINDEX, &r));
}

TEST(ifset, "changing interfaces") {
	struct sockaddr_in a;
	int s = udp_bound(&a);
	static const struct { unsigned long c; const char *n; } set[] = {{SIOCSIFFLAGS,"FLAGS"},{SIOCSIFADDR,"ADDR"},{SIOCSIFDSTADDR,"DST"},{SIOCSIFBRDADDR,"BRD"},{SIOCSIFNETMASK,"MASK"},{SIOCSIFMETRIC,"METRIC"},{SIOCSIFMEM,"MEM"},{SIOCSIFMTU,"MTU"},{SIOCSIFNAME,"NAME"},{SIOCSIFHWADDR,"HW"},{SIOCSIFENCAP,"ENCAP"},{SIOCSIFSLAVE,"SLAVE"},{SIOCADDMULTI,"ADDMULTI"},{SIOCDELMULTI,"DELMULTI"},{SIOCSIFPFLAGS,"PFLAGS"},{SIOCDIFADDR,"DIFADDR"},{SIOCSIFHWBROADCAST,"HWB"},{SIOCSIFTXQLEN,"TXQLEN"},{SIOCSIFMAP,"MAP"},{SIOCDARP,"DARP"},{SIOCSARP,"SARP"},{SIOCADDRT,"ADDRT"},{SIOCDELRT,"DELRT"},{SIOCSIFVLAN,"VLAN"}};
	struct ifreq r;
	for (int u = 0; u < 2; u++) {
		if (u) { must(setresuid(1000, 1000, 1000), "setuid"); }
		for (unsigned i = 0; i < sizeof set / sizeof *set; i++) {
			memset(&r, 0, sizeof r);
			strcpy(r.ifr_name, "nosuch");
			say("%d nosuch %s: %s", u, set[i].n, ioctl(s, set[i].c, &r) ? name_of(errno) : "ok");
			if (u) { memset(&r, 0, sizeof r); strcpy(r.ifr_name, "lo"); say("%d lo %s: %s", u, set[i].n, ioctl(s, set[i].c, &r) ? name_of(errno) : "ok"); }
		}
	}
}
