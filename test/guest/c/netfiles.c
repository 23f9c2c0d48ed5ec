// Program netfiles tests which files /proc/net has, and what those say that are about lo
// and about nothing. On Linux it has a network of its own for that.
#include "gt.h"

#include <net/if.h>
#include <sys/socket.h>

static void begin(void)
{
	unshare(CLONE_NEWNET); // as far as there are any
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int s = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	must(ioctl(s, SIOCSIFFLAGS, &r), "up");
	close(s);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void list(const char *path)
{
	struct dirent **all;
	int n = scandir(path, &all, NULL, by_name);
	if (n < 0)
		say("%s: %s", path, name_of(errno));
	for (int i = 0; i < n; i++) {
		char name[600];
		struct stat st;
		snprintf(name, sizeof name, "%s/%s", path, all[i]->d_name);
		if (all[i]->d_name[0] == '.' || strcmp(all[i]->d_name, "eth0") == 0 || strstr(all[i]->d_name, "_tables_") ||
		    strstr(all[i]->d_name, "conntrack") || strstr(all[i]->d_name, "hashlimit") || strcmp(all[i]->d_name, "netfilter") == 0 ||
		    strcmp(all[i]->d_name, "stat") == 0 || strcmp(all[i]->d_name, "rt6_stats") == 0 || strcmp(all[i]->d_name, "rt_acct") == 0)
			continue; // modules of filters, and counters of caches
		int rc = stat(name, &st);
		say("%s: %o", name, rc < 0 ? 0 : st.st_mode);
	}
}

TEST(names, "which files there are")
{
	begin();
	list("/proc/net");
	list("/proc/net/dev_snmp6");
}

// show prints a file; lines about eth0 are not the test's.
static void show(const char *path)
{
	char line[600];
	FILE *f = fopen(path, "r");
	if (!f) {
		say("%s: %s", path, name_of(errno));
		return;
	}
	say("%s:", path);
	while (fgets(line, sizeof line, f))
		if (!strstr(line, "eth0"))
			say("%.*s|", (int)strcspn(line, "\n"), line);
	fclose(f);
}

TEST(texts, "what they say of lo")
{
	begin();
	static const char *const names[] = {"dev_mcast", "if_inet6", "route", "ip6_flowlabel", "anycast6", "rt_cache",
		"wireless", "ip_mr_cache", "ip_mr_vif", "ip6_mr_cache", "ip6_mr_vif", "arp", "udplite", "udplite6", "raw6", "icmp6", "psched", "mcfilter", "connector"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/net/%s", names[i]);
		show(path);
	}
}

TEST(trie, "fib_trie and fib_triestat")
{
	begin();
	char line[300];
	FILE *f = fopen("/proc/net/fib_trie", "r");
	int ours = 0;
	while (f && fgets(line, sizeof line, f)) {
		if (strstr(line, "-- "))
			ours = strstr(line, "|-- 127.") != NULL;
		if (ours || line[0] != ' ')
			say("%.*s|", (int)strcspn(line, "\n") - (int)strspn(line, " "), line + strspn(line, " "));
	}
	f = fopen("/proc/net/fib_triestat", "r");
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (strchr(line, ':') && strncmp(line, "Basic", 5) && line[1] != ' ' )
			*strchr(line, ':') = 0;
		if (!strstr(line, "  "))
			say("%s|", line);
	}
}

TEST(routes6, "routes of IPv6")
{
	begin();
	char line[300];
	FILE *f = fopen("/proc/net/ipv6_route", "r");
	// Without a router in the network there is one more that refuses the rest.
	char refuses[300] = "";
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "ffffffff"))
			strcpy(refuses, line);
		else if (!strstr(line, "eth0"))
			say("%.114s ... %s|", line, line + 132);
	}
	say("%.114s ... %s|", refuses, refuses[0] ? refuses + 132 : "");
}

// first prints the first word of each line.
static void first(const char *path)
{
	char line[300];
	FILE *f = fopen(path, "r");
	if (!f)
		say("%s: %s", path, name_of(errno));
	while (f && fgets(line, sizeof line, f)) {
		int words = 0;
		for (char *p = strtok(line, " \t\n"); p; p = strtok(NULL, " \t\n"))
			words++;
		say("%s %d", strtok(line, " \t\n"), words);
	}
}

TEST(columns, "lines and columns")
{
	begin();
	char line[300];
	first("/proc/net/dev_snmp6/lo");
	first("/proc/net/xfrm_stat");
	FILE *f = fopen("/proc/net/softnet_stat", "r");
	say("softnet_stat: %d characters", f && fgets(line, sizeof line, f) ? (int)strlen(line) : -1);
}
