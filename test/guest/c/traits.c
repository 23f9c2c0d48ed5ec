// Program traits tests personality's flags, what prctl says of speculation, the numbers
// that the next object of System V IPC gets, how many links directories of /proc have,
// and mappings of TCP sockets.
#include "gt.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

TEST(sticky, "STICKY_TIMEOUTS leaves the time as it is")
{
	for (int on = 0; on < 2; on++) {
		personality(PER_LINUX | (on ? STICKY_TIMEOUTS : 0));
		struct timeval tv = {0, 20000};
		struct timespec ts = {0, 20000000}, other = ts;
		num("select", select(0, 0, 0, 0, &tv));
		num("ppoll", syscall(SYS_ppoll, 0, 0, &ts, 0, 8));
		num("pselect6", syscall(SYS_pselect6, 0, 0, 0, 0, &other, 0));
		say("%ld %ld %ld", (long)tv.tv_usec, ts.tv_nsec, other.tv_nsec);
	}
}

static void protection(const char *what, void *at)
{
	char line[300], access[8];
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, f)) {
		unsigned long from, to;
		sscanf(line, "%lx-%lx %5s", &from, &to, access);
		if (from <= (unsigned long)at && (unsigned long)at < to)
			say("%s: %s", what, access);
	}
	fclose(f);
}

TEST(implies, "READ_IMPLIES_EXEC")
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *before = mmap(0, 12288, PROT_NONE, flags, -1, 0);
	personality(PER_LINUX | READ_IMPLIES_EXEC);
	char *p = mmap(0, 4096, PROT_READ, flags, -1, 0);
	protection("read", p);
	p = mmap(0, 4096, PROT_WRITE, flags, -1, 0);
	protection("write", p);
	mprotect(before, 4096, PROT_READ | PROT_WRITE);
	protection("mprotect", before);
	mprotect(before, 4096, PROT_NONE);
	protection("nothing", before);
	int fd = open("/proc/self/exe", O_RDONLY);
	p = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	protection("a file", p);
	personality(PER_LINUX);
	mprotect(before, 4096, PROT_READ);
	protection("off", before);
	err("a bit that there is not", syscall(SYS_mprotect, before, 4096, 1 << 30));
}

TEST(speculation, "PR_SET_SPECULATION_CTRL and PR_SET_SYSCALL_USER_DISPATCH")
{
	err("get 3", prctl(52, 3, 0, 0, 0));
	err("get with more", prctl(52, 0, 1, 0, 0));
	err("set 3", prctl(53, 3, 2, 0, 0));
	err("set with more", prctl(53, 0, 2, 1, 0));
	err("dispatch off", prctl(59, 0, 0, 0, 0));
	err("dispatch off with more", prctl(59, 0, 1, 0, 0));
	err("dispatch 2", prctl(59, 2, 0, 0, 0));
}

static void put(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/sys/kernel/%s_next_id", name);
	int fd = open(path, O_WRONLY);
	say("%s < %s: %s", name, text, fd < 0 || write(fd, text, strlen(text)) < 0 ? name_of(errno) : "ok");
	close(fd);
}

static void show(const char *name)
{
	char path[64], text[32] = "";
	struct stat st;
	snprintf(path, sizeof path, "/proc/sys/kernel/%s_next_id", name);
	must(stat(path, &st), "stat");
	int fd = must(open(path, O_RDONLY), "open");
	must(read(fd, text, sizeof text - 1), "read");
	close(fd);
	say("%s: %.*s, mode %o", name, (int)strcspn(text, "\n"), text, st.st_mode);
}

TEST(next, "numbers of System V IPC that are wanted")
{
	show("msg");
	put("msg", "98765");
	show("msg");
	int a = num("msgget", msgget(IPC_PRIVATE, 0600));
	show("msg");
	put("msg", "98765");
	int b = num("the same", msgget(IPC_PRIVATE, 0600));
	msgctl(a, IPC_RMID, 0), msgctl(b, IPC_RMID, 0);
	err("removed", msgctl(a, IPC_RMID, 0));
	put("shm", "98309");
	a = num("shmget", shmget(IPC_PRIVATE, 4096, 0600));
	err("shmctl", shmctl(a, IPC_RMID, 0));
	put("sem", "2147483647");
	a = num("semget", semget(IPC_PRIVATE, 1, 0600));
	err("semctl", semctl(a, 0, IPC_RMID));
	put("sem", "-1");
	put("sem", "2147483648");
	put("sem", "x");
	status("user", wait_for(FORK(must(setuid(1000), "setuid"); put("sem", "5"))));
}

static int links(const char *path)
{
	struct stat st;
	must(stat(path, &st), path);
	return (int)st.st_nlink;
}

static void *wait_long(void *p) { return pause(), p; }

TEST(nlink, "links of directories of /proc")
{
	char path[64];
	pthread_t t;
	say("self %d, sys %d, sys/net %d, fd %d", links("/proc/self"), links("/proc/sys"), links("/proc/sys/net"), links("/proc/self/fd"));
	snprintf(path, sizeof path, "/proc/self/task/%d", getpid());
	say("task %d, thread %d", links("/proc/self/task"), links(path));
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, 0, wait_long, 0);
		say("with one more: %d", links("/proc/self/task"));
	}
}

static sigjmp_buf back;

static void fault(int sig) { siglongjmp(back, sig); }

TEST(tcp, "mappings of TCP sockets")
{
	int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
	for (int prot = 0; prot < 8; prot++)
		for (int share = 1; share < 3; share++) {
			char *p = mmap(0, 8192, prot, share, s, 0);
			say("prot %d share %d: %s", prot, share, p == MAP_FAILED ? name_of(errno) : "ok");
			if (p != MAP_FAILED)
				munmap(p, 8192);
		}
	err("UDP", mmap(0, 4096, PROT_READ, MAP_SHARED, u, 0) == MAP_FAILED ? -1 : 0);
	err("grows down", mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_GROWSDOWN, s, 0) == MAP_FAILED ? -1 : 0);
	err("UDP grows down", mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_GROWSDOWN, u, 0) == MAP_FAILED ? -1 : 0);
	err("an odd place", mmap(0, 4096, PROT_READ, MAP_PRIVATE, -1, 5) == MAP_FAILED ? -1 : 0);
	char *p = mmap(0, 8192, PROT_READ, MAP_SHARED, s, 0);
	signal(SIGBUS, fault), signal(SIGSEGV, fault);
	int sig = sigsetjmp(back, 1);
	if (sig == 0)
		say("read %d", *(volatile char *)p);
	say("signal %s", sigabbrev_np(sig));
	err("writable", mprotect(p, 4096, PROT_READ | PROT_WRITE));
	err("to run", mprotect(p, 4096, PROT_READ | PROT_EXEC));
	close(s);
	err("unmap", munmap(p, 8192));
}

TEST(names, "names of peers and interfaces of Unix sockets")
{
	struct sockaddr_un at = {AF_UNIX, "socket"}, got;
	char name[32] = "";
	int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t n = sizeof got;
	must(bind(s, (void *)&at, sizeof at), "bind");
	must(listen(s, 1), "listen");
	err("no peer", getsockopt(c, SOL_SOCKET, SO_PEERNAME, &got, &n));
	must(connect(c, (void *)&at, sizeof at), "connect");
	n = 9;
	err("a peer", getsockopt(c, SOL_SOCKET, SO_PEERNAME, &got, &n));
	say("%d bytes, %s", n, got.sun_path);
	n = 200;
	err("too much", getsockopt(c, SOL_SOCKET, SO_PEERNAME, &got, &n));
	err("an interface", setsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	n = sizeof name;
	err("which", getsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, name, &n));
	say("%d bytes, %s", n, name);
	err("none of that name", setsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, "zz", 3));
	err("none", setsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
	n = sizeof name;
	err("which", getsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, name, &n));
	say("%d bytes", n);
}
