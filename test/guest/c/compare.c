// Program compare tests kcmp's kinds, and the modes of a terminal that are locked.
#include "gt.h"

#include <asm/termbits.h>
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>

static void compare(const char *what, pid_t a, pid_t b, int kind, unsigned long x, unsigned long y)
{
	long r = syscall(SYS_kcmp, a, b, kind, x, y); // which of two comes first is nobody's business
	say("%s: %s", what, r == 0 ? "same" : r > 0 ? "other" : strerror(errno));
}

static pid_t sleeper(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

TEST(processes, "two processes and their parts")
{
	pid_t me = getpid(), other = sleeper();
	for (int kind = KCMP_VM; kind <= KCMP_TYPES; kind++) {
		char name[40];
		if (kind == KCMP_EPOLL_TFD)
			continue;
		snprintf(name, sizeof name, "kind %d of one", kind);
		compare(name, me, me, kind, 0, 0);
		snprintf(name, sizeof name, "kind %d of two", kind);
		compare(name, me, other, kind, 0, 0);
	}
	must(syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4), "ioprio_set");
	compare("I/O, with a priority", me, other, KCMP_IO, 0, 0);
	compare("I/O, with itself", me, me, KCMP_IO, 0, 0);
	int id = must(semget(IPC_PRIVATE, 1, 0600), "semget");
	struct sembuf up = {0, 1, 0}, undo = {0, 1, SEM_UNDO};
	must(semop(id, &up, 1), "semop");
	compare("semaphores, changed", me, other, KCMP_SYSVSEM, 0, 0);
	must(semop(id, &undo, 1), "semop");
	compare("semaphores, to be undone", me, other, KCMP_SYSVSEM, 0, 0);
	compare("semaphores, with itself", me, me, KCMP_SYSVSEM, 0, 0);
	semctl(id, 0, IPC_RMID);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	compare("with a process that has ended", me, other, KCMP_IO, 0, 0);
}

TEST(targets, "what epoll waits for")
{
	pid_t me = getpid();
	int ep = epoll_create1(0), p[2], q[2];
	struct epoll_event e = {EPOLLIN, {0}};
	pipe(p), pipe(q);
	epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e);
	int copy = dup(p[0]);
	struct kcmp_epoll_slot slot = {ep, p[0], 0}, missing = {ep, q[0], 0}, second = {ep, p[0], 1}, bad = {99, p[0], 0},
			       pipe_slot = {p[0], p[0], 0};
	compare("the file", me, me, KCMP_EPOLL_TFD, p[0], (long)&slot);
	compare("a copy of it", me, me, KCMP_EPOLL_TFD, copy, (long)&slot);
	compare("another", me, me, KCMP_EPOLL_TFD, q[0], (long)&slot);
	compare("not watched", me, me, KCMP_EPOLL_TFD, q[0], (long)&missing);
	compare("a second one", me, me, KCMP_EPOLL_TFD, p[0], (long)&second);
	compare("not open", me, me, KCMP_EPOLL_TFD, 99, (long)&slot);
	compare("no instance", me, me, KCMP_EPOLL_TFD, p[0], (long)&bad);
	compare("not an instance", me, me, KCMP_EPOLL_TFD, p[0], (long)&pipe_slot);
	compare("nowhere", me, me, KCMP_EPOLL_TFD, p[0], 8);
	int other = dup(p[0]);
	epoll_ctl(ep, EPOLL_CTL_ADD, other, &e);
	dup2(q[0], other);
	e.events = EPOLLOUT;
	epoll_ctl(ep, EPOLL_CTL_ADD, other, &e);
	slot.tfd = other, second.tfd = other, second.toff = 2;
	compare("neither of two", me, me, KCMP_EPOLL_TFD, ep, (long)&slot);
	compare("a third one", me, me, KCMP_EPOLL_TFD, ep, (long)&second);
}

TEST(locked, "modes that are locked")
{
	int master = must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx"), unlock = 0, number;
	char name[40];
	ioctl(master, TIOCSPTLCK, &unlock);
	ioctl(master, TIOCGPTN, &number);
	snprintf(name, sizeof name, "/dev/pts/%d", number);
	int slave = must(open(name, O_RDWR | O_NOCTTY), "slave");
	struct termios t, lock, had;
	memset(&lock, 0xff, sizeof lock);
	say("ask: %d", ioctl(slave, TIOCGLCKTRMIOS, &lock));
	say("nothing is: %x %x %x %x %d %d", lock.c_iflag, lock.c_oflag, lock.c_cflag, lock.c_lflag, lock.c_line, lock.c_cc[0]);
	lock.c_lflag = ECHO | ICANON, lock.c_oflag = OPOST, lock.c_cc[VINTR] = 1, lock.c_cflag = HUPCL;
	say("lock: %d", ioctl(slave, TIOCSLCKTRMIOS, &lock));
	memset(&lock, 0, sizeof lock);
	say("ask through the master: %d", ioctl(master, TIOCGLCKTRMIOS, &lock));
	say("what is: %x %x %x %x %d %d", lock.c_iflag, lock.c_oflag, lock.c_cflag, lock.c_lflag, lock.c_line, lock.c_cc[0]);
	ioctl(slave, TCGETS, &had);
	t = had;
	t.c_lflag ^= ECHO | ISIG, t.c_oflag ^= OPOST | ONLCR, t.c_iflag ^= ICRNL, t.c_cflag ^= HUPCL, t.c_cc[VINTR] = 7, t.c_cc[VQUIT] = 8;
	say("change: %d", ioctl(slave, TCSETS, &t));
	ioctl(slave, TCGETS, &t);
	say("changed: %x %x %x %x", had.c_iflag ^ t.c_iflag, had.c_oflag ^ t.c_oflag, had.c_cflag ^ t.c_cflag, had.c_lflag ^ t.c_lflag);
	say("characters: %d %d", t.c_cc[VINTR], t.c_cc[VQUIT]);
	say("nowhere: %d %d", ioctl(slave, TIOCGLCKTRMIOS, 8), ioctl(slave, TIOCSLCKTRMIOS, 8));
	if (setresuid(1000, 1000, 1000) == 0) {
		int rc = ioctl(slave, TIOCSLCKTRMIOS, &lock);
		say("as a user: %d %s", rc, strerror(errno));
		say("ask as a user: %d", ioctl(slave, TIOCGLCKTRMIOS, &lock));
	}
}
