// Program login tests what a login leaves behind: the login user and its session,
// and the terminal's name for whoever was given the slave through its master.
#include "gt.h"

#include <pthread.h>
#include <pty.h>
#include <sys/inotify.h>
#include <termios.h>

#define UNSET 4294967295u

static unsigned number(const char *name)
{
	char text[32] = "";
	int fd = (int)must(open(name, O_RDONLY), name);
	must(read(fd, text, sizeof text - 1), name);
	close(fd);
	return (unsigned)strtoul(text, NULL, 10);
}

static unsigned user(void) { return number("/proc/thread-self/loginuid"); }
static unsigned session(void) { return number("/proc/thread-self/sessionid"); }

static void put(const char *what, const char *text)
{
	int fd = (int)must(open("/proc/self/loginuid", O_WRONLY), "open loginuid");
	num(what, write(fd, text, strlen(text)));
	close(fd);
}

TEST(numbers, "what loginuid takes")
{
	static const char *const list[] = {"", "\n", "x", "-1", "+", "+7", "7 ", " 7", "7\n", "7\n\n", "0x7", "4294967296",
	    "99999999999999999999", "4294967295", "12", "12", "4294967294"};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		put(list[i][0] == '\n' ? "newline" : list[i], list[i]);
		say("user %u", user());
	}
}

TEST(sequence, "a session for each login")
{
	put("log out", "4294967295");
	say("unset: %d %d", user() == UNSET, session() == UNSET);
	put("log in", "5");
	unsigned first = session();
	say("a session: %d", first != UNSET && first != 0);
	put("again", "5");
	say("another session: %d", session() > first);
	first = session();
	pid_t child = fork();
	if (child == 0) {
		say("the child's: %u %d", user(), session() == first);
		must(setuid(1000), "setuid");
		prctl(PR_SET_DUMPABLE, 1);
		say("after setuid: %u %d", user(), session() == first);
		_exit(0);
	}
	wait_for(child);
	put("log out", "4294967295");
	say("unset: %d %d", user() == UNSET, session() == UNSET);
}

// As pam_loginuid does it: read, rewind, cut, write.
TEST(pam, "read, rewind, truncate, write")
{
	char text[32];
	int fd = (int)must(open("/proc/self/loginuid", O_NOFOLLOW | O_RDWR), "open");
	must(read(fd, text, sizeof text), "read");
	err("lseek", lseek(fd, 0, SEEK_SET));
	err("ftruncate", ftruncate(fd, 0));
	num("write", write(fd, "1000", 4));
	num("pwrite elsewhere", pwrite(fd, "1001", 4, 2));
	num("pwrite", pwrite(fd, "1002", 4, 0));
	say("user %u", user());
	close(fd);
}

static void *other(void *arg)
{
	(void)arg;
	char name[64];
	put("the process's file, by a thread", "3");
	int fd = (int)must(open("/proc/thread-self/loginuid", O_WRONLY), "open");
	num("the thread's file", write(fd, "4", 1));
	close(fd);
	say("the thread: %u", user());
	snprintf(name, sizeof name, "/proc/self/task/%d/loginuid", getpid());
	fd = (int)must(open(name, O_WRONLY), name);
	num("another thread's file", write(fd, "4", 1));
	return NULL;
}

TEST(threads, "each thread has its own")
{
	pthread_t t;
	put("log out", "4294967295");
	pthread_create(&t, NULL, other, NULL);
	pthread_join(t, NULL);
	say("the first thread: %d", user() == UNSET);
}

TEST(others, "who may")
{
	put("log out", "4294967295");
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/loginuid", getppid());
	int fd = (int)must(open(name, O_WRONLY), name);
	num("another process's", write(fd, "1", 1));
	int own = (int)must(open("/proc/self/loginuid", O_WRONLY), "open");
	must(setuid(1000), "setuid");
	num("anybody, when unset", pwrite(own, "1000", 4, 0));
	say("user %u", user());
	num("anybody, when set", pwrite(own, "1001", 4, 0));
	num("anybody, unset again", pwrite(own, "4294967295", 10, 0));
	say("user %u", user());
	err("open by anybody", open("/proc/self/loginuid", O_WRONLY));
	err("sessionid is read-only", open("/proc/self/sessionid", O_WRONLY));
}

static int peer_of(int flags, char *link, size_t size)
{
	char path[64];
	int master = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx"), unlock = 0;
	must(ioctl(master, TIOCSPTLCK, &unlock), "TIOCSPTLCK");
	int fd = ioctl(master, TIOCGPTPEER, flags);
	if (fd < 0)
		return fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = must(readlink(path, link, size - 1), "readlink");
	link[n] = 0;
	int pts = -1;
	char want[64];
	ioctl(master, TIOCGPTN, &pts);
	snprintf(want, sizeof want, "/dev/pts/%d", pts);
	say("named as /dev/pts/N: %d", strcmp(want, link) == 0);
	return fd;
}

TEST(peer, "a slave opened through its master has a name")
{
	char link[128], name[128] = "";
	int fd = peer_of(O_RDWR | O_NOCTTY, link, sizeof link);
	struct stat a, b;
	must(fstat(fd, &a), "fstat"), must(stat(link, &b), "stat");
	say("the same file: %d", a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev);
	say("ttyname: %d %d", ttyname_r(fd, name, sizeof name), strcmp(name, link) == 0);
	err("fchmod", fchmod(fd, 0600));
	must(stat(link, &b), "stat");
	say("mode %o", b.st_mode & 07777);
	err("fchown", fchown(fd, 1000, 5));
	int again = (int)err("reopened by its descriptor", open(link, O_RDWR | O_NOCTTY));
	say("the same terminal: %d", write(again, "x\n", 2) == 2);
}

TEST(peer_flags, "flags of TIOCGPTPEER")
{
	char link[128];
	int fd = peer_of(O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, link, sizeof link);
	say("flags %#x, close on exec %d", fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), fcntl(fd, F_GETFD));
	char c;
	num("read", read(fd, &c, 1));
	num("write", write(fd, "x", 1));
	int locked = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx"), one = 1;
	ioctl(locked, TIOCSPTLCK, &one);
	num("a locked one", ioctl(locked, TIOCGPTPEER, O_RDWR | O_NOCTTY));
}

TEST(peer_nobody, "the master is right enough")
{
	int master = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx"), unlock = 0, n;
	char name[64];
	ioctl(master, TIOCSPTLCK, &unlock), ioctl(master, TIOCGPTN, &n);
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	must(chmod(name, 0), "chmod");
	must(setuid(1000), "setuid");
	err("by name", open(name, O_RDWR | O_NOCTTY));
	err("through the master", ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
	close(master);
}

TEST(peer_controls, "the slave becomes the controlling terminal, and is found by name")
{
	pid_t child = fork();
	if (child == 0) {
		int master, slave;
		char name[64] = "";
		setsid();
		must(openpty(&master, &slave, NULL, NULL, NULL), "openpty");
		err("TIOCSCTTY", ioctl(slave, TIOCSCTTY, 0));
		int tty = (int)err("/dev/tty", open("/dev/tty", O_RDWR));
		ctermid(name);
		say("%s; foreground: %d", name, tcgetpgrp(tty) == getpgrp());
		signal(SIGHUP, SIG_IGN);
		_exit(0);
	}
	wait_for(child);
}
