// Offenders whose single calls need much memory at once.
#include "memory.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/un.h>

// manyMappings makes each page of a mapping one of its own.
static void manyMappings(long n)
{
	char *p = mmap(NULL, n * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long i = 0; p != MAP_FAILED && i < n; i++)
		if (mprotect(p + i * 8192, 4096, PROT_READ) < 0)
			return;
}

// part reads a byte of a text and keeps it open.
static int part(const char *name)
{
	char c;
	int fd = open(name, O_RDONLY);
	if (fd >= 0)
		read(fd, &c, 1);
	return fd;
}

static void longtexts(void)
{
	manyMappings(32000);
	moreDescriptors();
	while (part("/proc/self/maps") >= 0 && part("/proc/self/smaps") >= 0 && part("/proc/self/numa_maps") >= 0)
		;
}

// Forks copy all mappings at once.
static void forkmaps(void)
{
	manyMappings(32000);
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			for (;;)
				pause();
}

// Forks copy a large table of descriptors, and so do calls that no longer share one.
static void forktables(void)
{
	moreDescriptors();
	for (int fd = 100; dup2(0, fd) >= 0; fd += 100)
		;
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			for (;;)
				unshare(CLONE_FILES);
}

// Trees of mounts, which a new namespace copies as a whole.
static void mounts(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || mkdir("/tmp/m", 0700) < 0)
		nap(1);
	mount("none", "/tmp", NULL, MS_REC | MS_PRIVATE, NULL);
	mount("none", "/tmp/m", "tmpfs", 0, NULL);
	mkdir("/tmp/m/0", 0700);
	while (mount("/tmp/m/0", "/tmp/m/0", NULL, MS_BIND, NULL) == 0)
		;
	part("/proc/self/mountinfo");
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0) {
			while (unshare(CLONE_NEWNS) == 0)
				part("/proc/self/mounts");
			for (;;)
				pause();
		}
}

static int sendPair(int to, int fd)
{
	char space[CMSG_SPACE(sizeof fd)] = {0}, c = 'x';
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	return sendmsg(to, &m, MSG_DONTWAIT);
}

// Full sockets in flight, whose senders have ended.
static void passed(void)
{
	static char buf[65536];
	int q[2], p[2], st;
	moreDescriptors();
	for (; socketpair(AF_UNIX, SOCK_STREAM, 0, q) == 0;) {
		pid_t pid = fork();
		if (pid == 0) {
			for (int i = 0; i < 100 && socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0; i++) {
				while (send(p[0], buf, sizeof buf, MSG_DONTWAIT) > 0)
					;
				if (sendPair(q[0], p[1]) < 0)
					break;
				close(p[0]);
				close(p[1]);
			}
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &st, 0) < 0)
			nap(1);
	}
}

// Opens of a named pipe that nobody writes to.
static void openers(void)
{
	char name[64];
	snprintf(name, sizeof name, "/tmp/f.%d", getpid());
	mkfifo(name, 0600);
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			for (;;)
				open(name, O_RDONLY);
}

// Sets of semaphores as large as may be.
static void bigsems(void)
{
	for (int id; (id = semget(IPC_PRIVATE, 32000, IPC_CREAT | 0600)) >= 0;) {
		struct sembuf op = {31999, 1, SEM_UNDO};
		semop(id, &op, 1);
	}
	moreDescriptors();
	while (part("/proc/sysvipc/sem") >= 0)
		;
}

// Texts about all sockets and all locks.
static void lists(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char name[64];
	moreDescriptors();
	snprintf(name, sizeof name, "/tmp/l.%d", getpid());
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	for (int i = 0; i < 5000; i++, l.l_start += 2) {
		int s = socket(AF_UNIX, SOCK_DGRAM, 0);
		snprintf(a.sun_path + 1, 32, "%d.%d", getpid(), i);
		bind(s, (struct sockaddr *)&a, sizeof a);
		fcntl(fd, F_SETLK, &l);
	}
	while (part("/proc/net/unix") >= 0 && part("/proc/locks") >= 0 && part("/proc/hardtack/ledger") >= 0)
		;
}

// The text of a very long path.
static void longpaths(void)
{
	char name[200], buf[4096];
	snprintf(buf, sizeof buf, "/tmp/p.%d", getpid());
	mkdir(buf, 0700);
	chdir(buf);
	memset(name, 'p', sizeof name);
	name[sizeof name - 1] = 0;
	for (int i = 0; i < 1 << 20 && mkdir(name, 0700) == 0 && chdir(name) == 0; i++)
		if (i % 64 == 0) {
			syscall(SYS_getcwd, buf, sizeof buf);
			readlink("/proc/self/cwd", buf, sizeof buf);
			part("/proc/self/mountinfo");
		}
}

const struct kind callKinds[] = {
	{"longtexts", longtexts},
	{"forkmaps", forkmaps},
	{"forktables", forktables},
	{"mounts", mounts},
	{"passed", passed},
	{"openers", openers},
	{"bigsems", bigsems},
	{"lists", lists},
	{"longpaths", longpaths},
	{NULL, NULL},
};
