// Program sockopts sets and gets the options of Internet sockets: every name of
// every level, on every kind of socket, with many values and lengths.
#include "gt.h"

#include <netinet/in.h>
#include <sys/socket.h>

static const struct kind { const char *name; int domain, type, protocol; } kinds[] = {
	{"tcp", AF_INET, SOCK_STREAM, 0},
	{"tcp6", AF_INET6, SOCK_STREAM, 0},
	{"udp", AF_INET, SOCK_DGRAM, 0},
	{"udp6", AF_INET6, SOCK_DGRAM, 0},
	{"icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP},
	{"icmp6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
	{"raw", AF_INET, SOCK_RAW, IPPROTO_RAW},
};
enum { all_kinds = sizeof kinds / sizeof *kinds };

static int open_kind(const struct kind *k)
{
	return must(socket(k->domain, k->type, k->protocol), k->name);
}

static const int values[] = {-1, 0, 1, 2, 5, 6, 7, 64, 87, 88, 127, 128, 254, 255, 256, 500,
	32767, 32768, 65535, 65536, 1000000, INT_MAX, -2, INT_MIN};
static const int lengths[] = {0, 1, 2, 3, 5, 8, 12, 16, 20, 32, -1};

static char line[900];
static int used;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line + used, sizeof line - (size_t)used, format, ap);
	va_end(ap);
	used += n;
	if (used > (int)sizeof line - 200) {
		say("%s", line);
		used = sprintf(line, "  ");
	}
}

static void flush(void)
{
	say("%s", line);
	used = 0;
	line[0] = 0;
}

// get writes what getsockopt answers to a length.
static void get(char *to, int fd, int level, int name, int length)
{
	unsigned char b[64];
	memset(b, 0xaa, sizeof b);
	socklen_t len = (socklen_t)length;
	if (getsockopt(fd, level, name, b, &len) < 0) {
		strcpy(to, name_of(errno));
		return;
	}
	to += sprintf(to, "%u:", len);
	for (unsigned i = 0; i < len && i < 16; i++)
		to += sprintf(to, "%02x", b[i]);
}

// gets and sets print a level's names; results that repeat are left out.
static void gets_(const struct kind *k, int level, const int *names)
{
	for (; *names; names++) {
		char now[100], before[100] = "";
		int fd = open_kind(k);
		add("%s %d/%d get", k->name, level, *names);
		for (int i = -1; i < 6; i++) {
			get(now, fd, level, *names, i < 0 ? 64 : lengths[i]);
			if (strcmp(now, before))
				add(" [%d]%s", i < 0 ? 64 : lengths[i], now);
			strcpy(before, now);
		}
		get(now, fd, level, *names, -1);
		add(" [-1]%s", now);
		close(fd);
		flush();
	}
}

static void sets(const struct kind *k, int level, const int *names)
{
	for (; *names; names++) {
		char now[200], before[200] = "";
		add("%s %d/%d set", k->name, level, *names);
		for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
			int fd = open_kind(k);
			int e = setsockopt(fd, level, *names, &values[i], 4) < 0 ? errno : 0;
			int n = sprintf(now, "%s/", name_of(e));
			get(now + n, fd, level, *names, 64);
			if (strcmp(now, before))
				add(" %d=%s", values[i], now);
			strcpy(before, now);
			close(fd);
		}
		before[0] = 0;
		for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			int fd = open_kind(k);
			unsigned char b[64] = {1};
			int e = setsockopt(fd, level, *names, b, (socklen_t)lengths[i]) < 0 ? errno : 0;
			int n = sprintf(now, "%s/", name_of(e));
			get(now + n, fd, level, *names, 64);
			if (strcmp(now, before))
				add(" [%d]%s", lengths[i], now);
			strcpy(before, now);
			close(fd);
		}
		flush();
	}
}

static void level(int number, const int *names)
{
	for (int i = 0; i < all_kinds; i++) {
		gets_(&kinds[i], number, names);
		sets(&kinds[i], number, names);
	}
}

// The lists name what the Linux versions agree on; zero ends them.
TEST(at_socket, "options at SOL_SOCKET")
{
	level(SOL_SOCKET, (const int[]){1, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 22, 23, 24,
		25, 27, 28, 29, 30, 32, 33, 35, 36, 38, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 53, 54, 55, 56,
		59, 60, 61, 62, 63, 64, 66, 67, 69, 70, 72, 73, 75, 79, 0});
}

TEST(at_ip, "options at IPPROTO_IP")
{
	level(IPPROTO_IP, (const int[]){1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23,
		24, 25, 26, 27, 32, 33, 34, 35, 42, 43, 44, 45, 46, 47, 49, 50, 52, 53, 0});
}

TEST(at_ipv6, "options at IPPROTO_IPV6")
{
	level(IPPROTO_IPV6, (const int[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 18, 19, 20, 21, 23, 24, 25, 26,
		29, 30, 31, 32, 33, 36, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 53, 56, 58, 60, 62, 66, 67, 70,
		72, 73, 74, 75, 76, 77, 78, 79, 0});
}

TEST(at_tcp, "options at IPPROTO_TCP")
{
	level(IPPROTO_TCP, (const int[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 18, 23, 25, 30, 31, 34, 36, 0});
}

TEST(at_others, "options at other levels")
{
	level(IPPROTO_UDP, (const int[]){1, 2, 10, 11, 99, 101, 102, 110, 0});
	level(IPPROTO_RAW, (const int[]){2, 3, 0});
	level(IPPROTO_ICMPV6, (const int[]){2, 3, 0});
	level(136, (const int[]){1, 10, 11, 0});
	level(263, (const int[]){1, 0});
	level(-1, (const int[]){1, 0});
}
