// Program errnos tests which error a call gives that cannot be carried out on
// what it is given.
#include "gt.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

static void maps(const char *what, int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	err(what, p == MAP_FAILED ? -1 : 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err("  shared", p == MAP_FAILED ? -1 : 0);
}

TEST(mappings, "mmap of what cannot be mapped")
{
	close(open("file", O_CREAT | O_RDWR, 0600));
	int p[2];
	must(pipe(p), "pipe");
	maps("O_PATH", open("file", O_PATH));
	maps("closed", 1000);
	maps("write only", open("file", O_WRONLY));
	maps("read only", open("file", O_RDONLY));
	maps("pipe", p[0]);
	maps("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	maps("directory", open(".", O_RDONLY));
}

TEST(levels, "socket options of unknown levels and names")
{
	static const struct { int family, type, protocol; } kinds[] = {
		{AF_INET, SOCK_STREAM}, {AF_INET, SOCK_DGRAM}, {AF_INET, SOCK_RAW, IPPROTO_ICMP},
		{AF_INET6, SOCK_STREAM}, {AF_INET6, SOCK_DGRAM}, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
		{AF_UNIX, SOCK_STREAM}, {AF_UNIX, SOCK_DGRAM}, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		int fd = must(socket(kinds[i].family, kinds[i].type, kinds[i].protocol), "socket");
		int was[2] = {-1, -1};
		for (int level = -1; level < 300; level += level < 64 ? 1 : 7) {
			int v = 1, now[2];
			socklen_t len = sizeof v;
			now[0] = getsockopt(fd, level, 12345, &v, &len) ? errno : 0;
			now[1] = setsockopt(fd, level, 12345, &v, sizeof v) ? errno : 0;
			if (memcmp(now, was, sizeof now) != 0)
				say("family %d type %d from level %d: get %s, set %s", kinds[i].family, kinds[i].type, level, name_of(now[0]), name_of(now[1]));
			memcpy(was, now, sizeof now);
		}
		close(fd);
	}
}

TEST(pairs, "socketpair")
{
	int p[2];
	static const int families[] = {0, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, 3, 45, 1000, -1};
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
		for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
			char what[64];
			snprintf(what, sizeof what, "family %d type %d", families[i], type);
			err(what, socketpair(families[i], type, 0, p));
		}
	err("protocol", socketpair(AF_INET, SOCK_STREAM, 99, p));
	err("type", socketpair(AF_INET, 77, 0, p));
	err("unix protocol", socketpair(AF_UNIX, SOCK_STREAM, 99, p));
	err("flags", socketpair(AF_INET, SOCK_STREAM | 0x100, 0, p));
	err("wild", socketpair(AF_INET, SOCK_STREAM, 0, (void *)8));
	err("unix wild", socketpair(AF_UNIX, SOCK_STREAM, 0, (void *)8));
}

TEST(positions, "positions in pipes and sockets")
{
	int p[2], s[2];
	must(pipe(p), "pipe");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
	char text[8];
	struct iovec out = {"abc", 3}, in = {text, sizeof text};
	num("pwritev2", pwritev2(p[1], &out, 1, 0, 0));
	num("pwritev2, present position", pwritev2(p[1], &out, 1, -1, 0));
	num("pwritev2, flags", pwritev2(p[1], &out, 1, -1, 0x4000));
	num("preadv2", preadv2(p[0], &in, 1, 0, 0));
	num("preadv2, present position", preadv2(p[0], &in, 1, -1, 0));
	num("pwritev2, -2", pwritev2(p[1], &out, 1, -2, 0));
	num("pwrite, -1", pwrite(p[1], "x", 1, -1));
	num("pread, -1", pread(p[0], text, 1, -1));
	num("pwritev", pwritev(p[1], &out, 1, 0));
	num("preadv", preadv(p[0], &in, 1, 0));
	num("pwritev2 at the wrong end", pwritev2(p[0], &out, 1, 0, 0));
	num("present position at the wrong end", pwritev2(p[0], &out, 1, -1, 0));
	num("socket, pwritev2", pwritev2(s[1], &out, 1, 0, 0));
	num("socket, present position", pwritev2(s[1], &out, 1, -1, 0));
	num("socket, preadv2", preadv2(s[0], &in, 1, 0, 0));
	num("socket, present position", preadv2(s[0], &in, 1, -1, 0));
	num("socket, pwrite", pwrite(s[1], "x", 1, 0));
	num("no vector", pwritev2(p[1], &out, 0, 0, 0));
	num("no vector, present position", pwritev2(p[1], &out, 0, -1, 0));
}

static void sync_all(const char *what, int fd)
{
	say("%s", what);
	err("  sync_file_range", sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
	err("  fsync", fsync(fd));
	err("  fdatasync", fdatasync(fd));
	err("  readahead", readahead(fd, 0, 10));
	say("  posix_fadvise: %s", name_of(posix_fadvise(fd, 0, 0, 0)));
	err("  fallocate", fallocate(fd, 0, 0, 10));
	err("  ftruncate", ftruncate(fd, 0));
}

TEST(syncing, "sync and fallocate of what has no blocks")
{
	int p[2];
	must(pipe(p), "pipe");
	sync_all("/dev/null", open("/dev/null", O_RDONLY));
	sync_all("/dev/null, to write", open("/dev/null", O_WRONLY));
	sync_all("/dev/zero", open("/dev/zero", O_RDWR));
	sync_all("/dev/full", open("/dev/full", O_RDONLY));
	sync_all("/dev/urandom", open("/dev/urandom", O_RDONLY));
	sync_all("/dev/ptmx", open("/dev/ptmx", O_RDWR | O_NOCTTY));
	sync_all("/proc file", open("/proc/self/status", O_RDONLY));
	sync_all("directory", open(".", O_RDONLY));
	sync_all("pipe", p[0]);
	sync_all("pipe, to write", p[1]);
	sync_all("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	sync_all("O_PATH", open("/dev/null", O_PATH));
	sync_all("closed", 1000);
	err("bad flags", sync_file_range(p[0], 0, 1, 99));
	err("negative", sync_file_range(p[0], -1, 1, 0));
}

TEST(scheduling, "affinity and priority of nobody")
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(0, &s);
	struct sched_param param = {0};
	pid_t gone = FORK();
	wait_for(gone);
	int ids[] = {-1, -2, gone, INT_MIN};
	for (int i = 0; i < 4; i++) {
		err("sched_getaffinity", syscall(SYS_sched_getaffinity, ids[i], sizeof s, &s));
		CPU_SET(0, &s);
		err("sched_setaffinity", syscall(SYS_sched_setaffinity, ids[i], sizeof s, &s));
		err("sched_getscheduler", sched_getscheduler(ids[i]));
		err("sched_setscheduler", sched_setscheduler(ids[i], SCHED_OTHER, &param));
		err("sched_getparam", sched_getparam(ids[i], &param));
		errno = 0;
		getpriority(PRIO_PROCESS, ids[i]);
		say("getpriority: %s", name_of(errno));
	}
	err("a short mask", syscall(SYS_sched_getaffinity, 0, 1, &s));
	err("an odd mask", syscall(SYS_sched_getaffinity, 0, 12, &s));
}

static int other_tid;
static atomic_int stage;

static void *nicer(void *arg)
{
	other_tid = gettid();
	stage = 1;
	until(stage == 2);
	say("the other thread's: %d", getpriority(PRIO_PROCESS, 0));
	num("setpriority of itself", setpriority(PRIO_PROCESS, 0, 7));
	say("now %d", getpriority(PRIO_PROCESS, 0));
	stage = 3;
	until(stage == 4);
	return NULL;
}

// nice_of reads it from /proc.
static int nice_of(int tid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	int fd = open(path, O_RDONLY), nice = 99;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *end = strrchr(text, ')');
	if (end)
		sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %d", &nice);
	return nice;
}

TEST(niceness, "nice is a thread's")
{
	alarm(30);
	pthread_t th;
	num("setpriority", setpriority(PRIO_PROCESS, 0, 3));
	pthread_create(&th, NULL, nicer, NULL);
	until(stage == 1);
	say("inherited: %d", getpriority(PRIO_PROCESS, other_tid));
	num("setpriority", setpriority(PRIO_PROCESS, 0, 5));
	stage = 2;
	until(stage == 3);
	say("mine %d, the other's %d", getpriority(PRIO_PROCESS, 0), getpriority(PRIO_PROCESS, other_tid));
	say("in /proc %d and %d", nice_of(gettid()), nice_of(other_tid));
	num("of the other thread", setpriority(PRIO_PROCESS, other_tid, 9));
	say("mine %d, the other's %d", getpriority(PRIO_PROCESS, 0), getpriority(PRIO_PROCESS, other_tid));
	say("the group's least: %d", getpriority(PRIO_PGRP, 0));
	num("of the group", setpriority(PRIO_PGRP, 0, 11));
	say("mine %d, the other's %d", getpriority(PRIO_PROCESS, 0), getpriority(PRIO_PROCESS, other_tid));
	stage = 4;
	pthread_join(th, NULL);
	IN_CHILD("a child", say("inherits %d", getpriority(PRIO_PROCESS, 0)));
}

TEST(pidfds, "CLONE_PIDFD and where its number goes")
{
	int before = dup(0);
	close(before);
	long rc = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, (int *)8, NULL, NULL);
	if (rc == 0)
		_exit(7);
	num("a wild address", rc);
	num("there is no child", waitpid(-1, NULL, WNOHANG));
	int after = dup(0);
	say("no descriptor is left: %d", after == before);
	close(after);
	int *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rc = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, ro, NULL, NULL);
	if (rc == 0)
		_exit(7);
	num("read-only", rc);
	num("there is no child", waitpid(-1, NULL, WNOHANG));
	int fd = -1;
	rc = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &fd, NULL, NULL);
	if (rc == 0)
		_exit(7);
	say("a good one: %d, descriptor %d", rc > 0, fd == before);
	status("child", wait_for(rc));
	// The others are written as far as they can be.
	rc = syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, (int *)8, (int *)8, NULL);
	if (rc == 0)
		_exit(8);
	say("wild thread ids: %d", rc > 0);
	status("child", wait_for(rc));
}
