// Program idle tests TCP sockets without a connection that were shut down, where lseek
// goes in directories of /proc and /sys, and what the auxiliary vector says of the CPU.
#include "gt.h"

#include <arpa/inet.h>
#include <cpuid.h>
#include <netinet/in.h>
#include <sys/auxv.h>
#include <sys/socket.h>

static int fresh(int bound)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int s = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
	if (bound)
		must(bind(s, (void *)&at, sizeof at), "bind");
	return s;
}

static void look(int s)
{
	char c;
	struct pollfd p = {s, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0};
	poll(&p, 1, 0);
	say("  poll %#x", p.revents);
	num("  recv", recv(s, &c, 1, 0));
	num("  recv of nothing", recv(s, &c, 0, 0));
	num("  peek", recv(s, &c, 1, MSG_PEEK));
	num("  all", recv(s, &c, 1, MSG_WAITALL));
	num("  read", read(s, &c, 1));
	num("  read of nothing", read(s, &c, 0));
	num("  send", send(s, "x", 1, MSG_NOSIGNAL));
}

TEST(unconnected, "shutdown of a socket without a connection")
{
	for (int bound = 0; bound < 2; bound++) {
		for (int how = 0; how < 3; how++) {
			say("bound %d, how %d", bound, how);
			int s = fresh(bound);
			look(s);
			err(" shutdown", shutdown(s, how));
			look(s);
			err(" again", shutdown(s, 2 - how));
			look(s);
			struct sockaddr none = {AF_UNSPEC, {0}};
			err(" disconnect", connect(s, &none, sizeof none));
			look(s);
			close(s);
		}
	}
}

TEST(blocked, "a receive that may wait")
{
	int s = fresh(1);
	char c;
	fcntl(s, F_SETFL, 0);
	shutdown(s, SHUT_RD);
	num("recv", recv(s, &c, 1, 0));
	num("of nothing", recv(s, &c, 0, 0));
}

TEST(listener, "a listener that is shut")
{
	int s = fresh(1);
	char c;
	listen(s, 1);
	num("recv of nothing", recv(s, &c, 0, 0));
	num("recv", recv(s, &c, 1, 0));
	err("shutdown", shutdown(s, SHUT_RD));
	look(s);
}

static void seeks(const char *path)
{
	static const off_t to[] = {0, 1, 5, 0x7ffffffe, 0x7fffffff, 0x80000000, 1ll << 40, INT64_MAX - 1, INT64_MAX, -1, -5, INT64_MIN};
	static const char *const from[] = {"set", "cur", "end", "data", "hole"};
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return (void)err(path, -1);
	say("%s", path);
	for (int whence = 0; whence < 5; whence++)
		for (size_t i = 0; i < sizeof to / sizeof *to; i++)
			for (off_t at = 0; at < 2; at++) {
				lseek(fd, at, SEEK_SET);
				off_t rc = lseek(fd, to[i], whence);
				say("  %s %lld from %lld: %lld %s", from[whence], (long long)to[i], (long long)at, (long long)rc,
				    rc < 0 ? name_of(errno) : "");
			}
	close(fd);
}

TEST(seek, "lseek in directories and files of /proc and /sys")
{
	static const char *const paths[] = {"/proc", "/proc/self", "/proc/self/fd", "/proc/self/task", "/proc/self/environ",
	                                    "/proc/self/cmdline", "/proc/self/status", "/proc/self/comm", "/proc/sys", "/proc/sys/kernel",
	                                    "/proc/sys/kernel/ostype", "/proc/version", "/proc/self/fdinfo", "/proc/sys/kernel/threads-max"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		seeks(paths[i]);
}

TEST(features, "the CPU in the auxiliary vector")
{
	// The C library answers getauxval(AT_HWCAP) with flags of its own.
	unsigned long word[128] = {0};
	unsigned a = 0, b, c, d = 0;
	int fd = open("/proc/self/auxv", O_RDONLY);
	must(read(fd, word, sizeof word - 16), "read");
	__get_cpuid(1, &a, &b, &c, &d);
	for (int i = 0; word[i]; i += 2) {
		if (word[i] == AT_HWCAP) // Linux may leave out what it does not use
			say("AT_HWCAP: floating point %d, TSC %d, SSE2 %d, others than CPUID tells %d", (int)word[i + 1] & 1,
			    (int)(word[i + 1] >> 4) & 1, (int)(word[i + 1] >> 26) & 1, (word[i + 1] & ~(unsigned long)d) != 0);
		if (word[i] == AT_HWCAP2)
			say("AT_HWCAP2: FSGSBASE %d", (int)(word[i + 1] >> 1) & 1);
	}
}
