// Offenders that use names, open files and queues.
#include "memory.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/filter.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

static char *own(void) // a directory of this process, which it enters
{
	static char dir[64];
	snprintf(dir, sizeof dir, "/tmp/n.%d", getpid());
	mkdir(dir, 0700);
	return chdir(dir) == 0 ? dir : NULL;
}

// Directories within directories.
static void deep(void)
{
	char name[200];
	memset(name, 'd', sizeof name);
	name[sizeof name - 1] = 0;
	if (own())
		while (mkdir(name, 0700) == 0 && chdir(name) == 0)
			;
}

static void attributes(void)
{
	static char value[60000];
	char name[64];
	if (!own())
		return;
	for (int i = 0;; i++) {
		snprintf(name, sizeof name, "%d", i);
		int fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return;
		for (int j = 0; j < 1000; j++) {
			snprintf(name, sizeof name, "user.%d", j);
			if (fsetxattr(fd, name, value, j % 10 ? 100 : sizeof value, 0) < 0)
				break;
		}
		close(fd);
	}
}

// Links that lead through as many others as may be, and are followed.
static void chains(void)
{
	char name[32], to[32];
	struct stat st;
	if (!own())
		return;
	for (long i = 0;; i++) {
		snprintf(name, sizeof name, "%ld", i);
		snprintf(to, sizeof to, "./././%ld", i % 39 ? i - 1 : -1L);
		if (symlink(to, name) < 0)
			return;
		stat(name, &st);
	}
}

static void hardlinks(void)
{
	char name[250];
	if (!own())
		return;
	close(open("file", O_CREAT | O_WRONLY, 0600));
	memset(name, 'l', sizeof name);
	name[sizeof name - 1] = 0;
	for (long i = 0;; i++) {
		name[snprintf(name, 24, "%ld", i)] = 'l';
		if (link("file", name) < 0)
			return;
	}
}

// Names that do not exist.
static void absent(void)
{
	char name[250];
	struct stat st;
	if (!own())
		return;
	memset(name, 'a', sizeof name);
	name[sizeof name - 1] = 0;
	for (long i = 0;; i++) {
		name[snprintf(name, 24, "%ld", i)] = 'a';
		stat(name, &st);
	}
}

// Files that are open and have no name any more, with a page each.
static void unlinked(void)
{
	static char page[4096];
	if (!own())
		return;
	moreDescriptors();
	for (int fd; (fd = open("u", O_CREAT | O_RDWR, 0600)) >= 0; unlink("u"))
		if (write(fd, page, sizeof page) < 0)
			return;
}

static void opendirs(void)
{
	char buf[64];
	moreDescriptors();
	for (int fd; (fd = open("/proc", O_RDONLY | O_DIRECTORY)) >= 0;)
		syscall(SYS_getdents64, fd, buf, sizeof buf);
}

// Texts of /proc about each process.
static void procs(void)
{
	static const char *const names[] = {"status", "smaps", "stat", "limits", "mountinfo", "environ", "auxv", "net/tcp", "io"};
	char name[64], c;
	moreDescriptors();
	for (int i = 0;; i++) {
		snprintf(name, sizeof name, "/proc/self/%s", names[i % 9]);
		int fd = open(name, O_RDONLY);
		if (fd < 0)
			return;
		read(fd, &c, 1);
	}
}

// Locks on whole files, and of open files on parts of one.
static void flocks(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	if (!own())
		return;
	moreDescriptors();
	for (int fd, n = 0; (fd = open("lock", O_CREAT | O_RDWR, 0600)) >= 0; n++) {
		flock(fd, LOCK_SH);
		for (int i = 0; i < 1000; i++) {
			l.l_start = 2 * (n * 1000L + i);
			l.l_pid = 0;
			if (fcntl(fd, F_OFD_SETLK, &l) < 0)
				break;
		}
	}
}

static void leases(void)
{
	if (!own())
		return;
	moreDescriptors();
	for (int fd; (fd = open("lease", O_CREAT | O_RDONLY, 0600)) >= 0;)
		fcntl(fd, F_SETLEASE, F_RDLCK);
}

static void queues(void)
{
	static char text[8192];
	struct mq_attr a = {.mq_maxmsg = 10, .mq_msgsize = sizeof text};
	char name[64];
	moreDescriptors();
	for (int i = 0;; i++) {
		snprintf(name, sizeof name, "/%d.%d", getpid(), i);
		mqd_t q = mq_open(name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, &a);
		if (q < 0)
			return;
		while (mq_send(q, text, sizeof text, 0) == 0)
			;
	}
}

// Pipes as wide as may be, full, and filled with pages of a file.
static void widepipes(void)
{
	char *buf = emptyPages(1 << 20);
	moreDescriptors();
	for (int p[2]; pipe2(p, O_NONBLOCK) == 0;) {
		fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		while (write(p[1], buf, 1 << 20) > 0)
			;
	}
}

static void spliced(void)
{
	loff_t at = 0;
	int fd = memfd_create("spliced", 0);
	moreDescriptors();
	ftruncate(fd, 1 << 20);
	for (int p[2]; pipe2(p, O_NONBLOCK) == 0; at = 0)
		while (splice(fd, &at, p[1], NULL, 1 << 20, SPLICE_F_NONBLOCK) > 0)
			;
}

// Terminals with input that nobody reads.
static void ttys(void)
{
	static char text[4096];
	char name[64];
	moreDescriptors();
	memset(text, '\n', sizeof text);
	for (int m, n; (m = open("/dev/ptmx", O_RDWR | O_NONBLOCK)) >= 0;) {
		int unlock = 0;
		if (ioctl(m, 0x40045431, &unlock) < 0 || ioctl(m, 0x80045430, &n) < 0)
			return;
		snprintf(name, sizeof name, "/dev/pts/%d", n);
		int s = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
		while (write(m, text, sizeof text) > 0)
			;
		while (s >= 0 && write(s, text, sizeof text) > 0)
			;
	}
}

// Datagrams with as many descriptors as fit.
static void rights(void)
{
	enum { count = 250 };
	int fds[count];
	char space[CMSG_SPACE(sizeof fds)], c = 'x';
	moreDescriptors();
	for (int i = 0; i < count; i++)
		fds[i] = 0;
	for (int s[2]; socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0;)
		for (int i = 0; i < 10000; i++) {
			struct iovec iov = {&c, 1};
			struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
			struct cmsghdr *h = CMSG_FIRSTHDR(&m);
			h->cmsg_level = SOL_SOCKET;
			h->cmsg_type = SCM_RIGHTS;
			h->cmsg_len = CMSG_LEN(sizeof fds);
			memcpy(CMSG_DATA(h), fds, sizeof fds);
			if (sendmsg(s[0], &m, MSG_DONTWAIT) < 0)
				break;
		}
}

static void abstracts(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	moreDescriptors();
	memset(a.sun_path + 1, 'n', sizeof a.sun_path - 1);
	for (int i = 0, s; (s = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0; i++) {
		snprintf(a.sun_path + 1, 32, "%d.%d", getpid(), i);
		bind(s, (struct sockaddr *)&a, sizeof a);
	}
}

// Programs for sockets, to filter packets with.
static void sockfilters(void)
{
	enum { length = 4096 };
	static struct sock_filter code[length];
	struct sock_fprog prog = {length, code};
	for (int i = 0; i < length; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;)
		setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

static struct sockaddr_in at(uint32_t host, int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(port)};
}

// Memberships of groups, and what a socket may be told besides.
static void groups(void)
{
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;)
		for (uint32_t i = 0; i < 1000; i++) {
			struct ip_mreq m = {{htonl(0xe8000000 + i)}, {htonl(INADDR_LOOPBACK)}};
			if (setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) < 0)
				break;
		}
}

// Connections to a host that does not answer.
static void unanswered(void)
{
	struct sockaddr_in a = at(0x0a000263, 9);
	moreDescriptors();
	for (int s; (s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0;)
		connect(s, (struct sockaddr *)&a, sizeof a);
}

// TCP connections that nobody accepts, with bytes in them.
static void tcpbacklogs(void)
{
	static char buf[4096];
	moreDescriptors();
	for (int l; (l = socket(AF_INET, SOCK_STREAM, 0)) >= 0;) {
		struct sockaddr_in a = at(INADDR_LOOPBACK, 0);
		socklen_t n = sizeof a;
		if (bind(l, (struct sockaddr *)&a, sizeof a) < 0 || listen(l, 4096) < 0 || getsockname(l, (struct sockaddr *)&a, &n) < 0)
			return;
		for (int i = 0, s; i < 4000; i++) {
			if ((s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0)
				return;
			connect(s, (struct sockaddr *)&a, sizeof a);
			send(s, buf, sizeof buf, MSG_DONTWAIT);
		}
	}
}

// Large datagrams that nobody reads.
static void datagrams(void)
{
	static char buf[60000];
	moreDescriptors();
	for (int s, size = 64 << 20; (s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;) {
		struct sockaddr_in a = at(INADDR_LOOPBACK, 0);
		socklen_t n = sizeof a;
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
		setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		if (bind(s, (struct sockaddr *)&a, sizeof a) < 0 || getsockname(s, (struct sockaddr *)&a, &n) < 0)
			return;
		for (int i = 0; i < 1000; i++)
			if (sendto(s, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a) < 0)
				break;
	}
}

const struct kind nameKinds[] = {
	{"deep", deep},
	{"attributes", attributes},
	{"chains", chains},
	{"hardlinks", hardlinks},
	{"absent", absent},
	{"unlinked", unlinked},
	{"opendirs", opendirs},
	{"procs", procs},
	{"flocks", flocks},
	{"leases", leases},
	{"queues", queues},
	{"widepipes", widepipes},
	{"spliced", spliced},
	{"ttys", ttys},
	{"rights", rights},
	{"abstracts", abstracts},
	{"sockfilters", sockfilters},
	{"groups", groups},
	{"unanswered", unanswered},
	{"tcpbacklogs", tcpbacklogs},
	{"datagrams", datagrams},
	{NULL, NULL},
};
