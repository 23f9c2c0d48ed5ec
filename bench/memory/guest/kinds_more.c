// Offenders whose memory is easily overlooked: error queues, connections that have ended,
// what is shared, what has been and left tables behind.
#include "memory.h"
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

// enter makes a directory of this process and enters it.
static void enter(void)
{
	char name[32];
	snprintf(name, sizeof name, "/tmp/more.%d", getpid());
	mkdir(name, 0700);
	if (chdir(name) < 0)
		nap(1);
}

// Connections that were closed on this side first.
static void timewaits(void)
{
	struct sockaddr_in a = at(0);
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (struct sockaddr *)&a, sizeof a) < 0 || listen(l, 100) < 0 || getsockname(l, (struct sockaddr *)&a, &n) < 0)
		return;
	for (int i = 0; i < 100000; i++) {
		int c = socket(AF_INET, SOCK_STREAM, 0);
		if (c < 0 || connect(c, (struct sockaddr *)&a, sizeof a) < 0) {
			close(c);
			nap(1);
			continue;
		}
		int s = accept(l, NULL, NULL);
		close(c);
		close(s);
	}
}

// Datagrams that are not sent yet.
static void corks(void)
{
	char *buf = emptyPages(60000);
	struct sockaddr_in a = at(9);
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;)
		sendto(s, buf, 60000, MSG_MORE | MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a);
}

// Errors that nobody asks for, each with the datagram.
static void errqueues(void)
{
	char *buf = emptyPages(4096);
	struct sockaddr_in a = at(9);
	int on = 1;
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;) {
		setsockopt(s, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
		for (int i = 0; i < 200; i++)
			sendto(s, buf, 1000, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a);
	}
}

// Datagrams that come back with the time at which they were sent.
static void timestamps(void)
{
	struct sockaddr_in a = at(9);
	int what = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE;
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;) {
		setsockopt(s, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof what);
		for (int i = 0; i < 200; i++)
			sendto(s, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a);
	}
}

// Dumps of processes.
static void cores(void)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	size_t size = 4 << 20;
	int st;
	setrlimit(RLIMIT_CORE, &all);
	enter();
	for (;;) {
		pid_t pid = fork();
		if (pid == 0) {
			char *p = emptyPages(size);
			memset(p, 1, size);
			if (chdir("/tmp") == 0)
				enter();
			abort();
		}
		if (pid < 0 || waitpid(pid, &st, 0) < 0)
			nap(1);
	}
}

// Access control lists with as many entries as may be.
static void acls(void)
{
	enum { most = 8000 };
	static struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} e[most + 4];
	} acl;
	int n = 0;
	char name[32];
	acl.version = 2;
	acl.e[n].tag = 1, acl.e[n++].perm = 7; // the owner
	for (int i = 0; i < most; i++)
		acl.e[n].tag = 2, acl.e[n].perm = 7, acl.e[n++].id = i;
	acl.e[n].tag = 4, acl.e[n++].perm = 7;
	acl.e[n].tag = 16, acl.e[n++].perm = 7;
	acl.e[n].tag = 32, acl.e[n++].perm = 7;
	for (int i = 0; i < n; i++)
		if (acl.e[i].tag != 2)
			acl.e[i].id = -1;
	enter();
	for (int i = 0;; i++) {
		snprintf(name, sizeof name, "%d", i);
		int fd = open(name, O_CREAT | O_WRONLY, 0700);
		if (fd < 0)
			return;
		for (int m = n; m > 8 && fsetxattr(fd, "system.posix_acl_access", &acl, 4 + 8 * m, 0) < 0; m /= 2)
			memmove(&acl.e[m / 2 - 3], &acl.e[m - 3], 3 * sizeof acl.e[0]);
		close(fd);
	}
}

// Sources of multicast groups.
static void sources(void)
{
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;)
		for (int i = 0; i < 2000; i++) {
			struct ip_mreq_source m = {.imr_multiaddr.s_addr = htonl(0xe8000001 + i / 10), .imr_interface.s_addr = htonl(INADDR_LOOPBACK),
			                           .imr_sourceaddr.s_addr = htonl(0x0b000001 + i)};
			if (setsockopt(s, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &m, sizeof m) < 0)
				i += 9;
		}
}

static int rest(void *arg)
{
	for (;;)
		pause();
	return 0;
}

// Many processes in one address space, with one table of descriptors.
static void sharers(void)
{
	size_t size = 1UL << 30;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *stacks = emptyPages(200 * 8192);
	for (int i = 0; i < 200 && stacks; i++)
		if (clone(rest, stacks + (i + 1) * 8192, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, NULL) < 0)
			nap(1);
	for (size_t at = 0; p != MAP_FAILED && at < size; at += 4096)
		p[at] = 1;
}

// Processes that wait for the child that they have vforked, each with memory.
static void vforks(void)
{
	size_t size = 256 << 10;
	for (;;) {
		char *p = emptyPages(size);
		if (p)
			memset(p, 1, size);
		pid_t pid = syscall(SYS_vfork);
		if (pid < 0)
			nap(1);
		if (pid > 0)
			_exit(0);
	}
}

// Memory that is locked.
static void mlocked(void)
{
	struct rlimit rl;
	size_t size = 64 << 10;
	if (getrlimit(RLIMIT_MEMLOCK, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &rl);
	}
	for (char *p; (p = emptyPages(size));)
		if (mlock(p, size) < 0)
			memset(p, 1, size);
}

// Directories that had many names.
static void shrunk(void)
{
	char name[280];
	enter();
	for (int d = 0;; d++) {
		snprintf(name, sizeof name, "%d", d);
		if (mkdir(name, 0700) < 0)
			return;
		int i = 0;
		for (; i < 3000; i++) {
			snprintf(name, sizeof name, "%d/%0200d", d, i);
			if (mknod(name, S_IFREG | 0600, 0) < 0)
				break;
		}
		while (--i >= 0) {
			snprintf(name, sizeof name, "%d/%0200d", d, i);
			unlink(name);
		}
	}
}

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

// Mappings with names.
static void vmanames(void)
{
	size_t size = 1UL << 28;
	char name[80];
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (size_t at = 0; p != MAP_FAILED && at < size; at += 8192) {
		snprintf(name, sizeof name, "%070zu", at);
		if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p + at, 4096, name) < 0)
			return;
	}
}

// Hardtack's endpoints and notifications, and senders with other badges.
static void endpoints(void)
{
	enum { base = 0x48540000, endpoint = base + 8, mint, notification };
	int fds[2];
	moreDescriptors();
	while (syscall(endpoint, fds, 0) == 0)
		for (int i = 0; i < 10; i++) {
			syscall(mint, fds[0], i + 1, 0);
			syscall(notification, 0);
		}
}

// Files that never had a name, and dup'ed and sealed memory.
static void tmpfiles(void)
{
	char *buf = emptyPages(16384);
	moreDescriptors();
	for (int fd; (fd = open("/tmp", O_TMPFILE | O_RDWR, 0600)) >= 0;)
		if (write(fd, buf, 16384) < 0)
			nap(1);
}

// Echo requests whose answers nobody reads.
static void pings(void)
{
	struct sockaddr_in a = at(0);
	char *buf = emptyPages(4096);
	moreDescriptors();
	buf[0] = 8;
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)) >= 0;)
		for (int i = 0; i < 100; i++)
			sendto(s, buf, 1000, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a);
}

// Children of children that end one after the other, and hand theirs on.
static void orphans(void)
{
	size_t size = 128 << 10;
	for (;;) {
		pid_t pid = fork();
		if (pid < 0)
			nap(1);
		if (pid > 0 && getpid() % 2)
			_exit(0);
		if (pid == 0) {
			char *p = emptyPages(size);
			if (p)
				memset(p, 1, size);
		}
	}
}

// Threads that wait in reads of long texts of /proc, each into memory that is not there yet.
static void readers(void)
{
	char *p = mmap(NULL, 1UL << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = open("/dev/zero", O_RDONLY);
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			for (;; p += 1 << 30)
				if (read(fd, p, 1 << 30) < 0)
					nap(1);
}

const struct kind moreKinds[] = {
	{"timewaits", timewaits},
	{"corks", corks},
	{"errqueues", errqueues},
	{"timestamps", timestamps},
	{"cores", cores},
	{"acls", acls},
	{"sources", sources},
	{"sharers", sharers},
	{"vforks", vforks},
	{"mlocked", mlocked},
	{"shrunk", shrunk},
	{"vmanames", vmanames},
	{"endpoints", endpoints},
	{"tmpfiles", tmpfiles},
	{"pings", pings},
	{"orphans", orphans},
	{"readers", readers},
	{NULL, NULL},
};
