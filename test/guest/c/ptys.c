// Program ptys tests what a pseudo-terminal's two ends answer in every state.
#include "gt.h"

#include <sys/sysmacros.h>
#include <termios.h>

static int master, slave;
static char slave_name[64];

static void open_pair(void)
{
	int number, unlock = 0;
	master = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), "open /dev/ptmx");
	must(ioctl(master, TIOCSPTLCK, &unlock), "TIOCSPTLCK");
	must(ioctl(master, TIOCGPTN, &number), "TIOCGPTN");
	snprintf(slave_name, sizeof slave_name, "/dev/pts/%d", number);
	slave = (int)must(open(slave_name, O_RDWR | O_NOCTTY | O_NONBLOCK), "open the slave");
}

static void raw(void)
{
	struct termios t;
	tcgetattr(slave, &t);
	cfmakeraw(&t);
	tcsetattr(slave, TCSANOW, &t);
}

static const char *events(int fd)
{
	static char text[4][20];
	static int turn;
	char *s = text[turn++ & 3];
	struct pollfd f = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND};
	poll(&f, 1, 0);
	sprintf(s, "%#x", f.revents);
	return s;
}

// settled waits until bytes have gone through: Linux moves them in the background.
static void settled(void) { sleep_ms(20); }

static void number(const char *what, int fd, unsigned long request)
{
	int n = -77;
	long rc = ioctl(fd, request, &n);
	say("%s: %s %d", what, rc < 0 ? name_of(errno) : "ok", n);
}

TEST(requests, "requests to both ends")
{
	char c[100];
	open_pair();
	static const struct { const char *name; unsigned long request; } gets[] = {
		{"FIONREAD", FIONREAD}, {"TIOCOUTQ", TIOCOUTQ}, {"TIOCGPTLCK", TIOCGPTLCK}, {"TIOCGPKT", TIOCGPKT}, {"TIOCGPGRP", TIOCGPGRP},
		{"TIOCGSID", TIOCGSID}, {"TIOCGEXCL", TIOCGEXCL}, {"TIOCGETD", TIOCGETD}, {"TIOCMGET", TIOCMGET}, {"TIOCGSOFTCAR", TIOCGSOFTCAR},
		{"FIOQSIZE", FIOQSIZE}, {"TIOCGICOUNT", TIOCGICOUNT}, {"TIOCGSERIAL", TIOCGSERIAL}, {"SIOCGPGRP", 0x8904},
		{"TIOCSSOFTCAR", TIOCSSOFTCAR}, {"unknown", 0x5499}, {"TIOCCONS", 0}};
	for (unsigned i = 0; i < sizeof gets / sizeof *gets - 1; i++) {
		char what[40];
		snprintf(what, sizeof what, "master %s", gets[i].name);
		if (gets[i].request != TIOCGICOUNT && gets[i].request != TIOCGSERIAL)
			number(what, master, gets[i].request);
		snprintf(what, sizeof what, "slave %s", gets[i].name);
		if (gets[i].request != TIOCGICOUNT && gets[i].request != TIOCGSERIAL)
			number(what, slave, gets[i].request);
		snprintf(what, sizeof what, "%s to a bad place", gets[i].name);
		err(what, ioctl(slave, gets[i].request, 8));
	}
	err("TIOCGPTN of the slave", ioctl(slave, TIOCGPTN, c));
	err("TIOCSPTLCK of the slave", ioctl(slave, TIOCSPTLCK, c));
	err("TIOCPKT of the slave", ioctl(slave, TIOCPKT, c));
	err("TIOCSIG of the slave", ioctl(slave, TIOCSIG, SIGINT));
	err("TIOCSIG", ioctl(master, TIOCSIG, SIGINT));
	err("TIOCSIG of SIGHUP", ioctl(master, TIOCSIG, SIGHUP));
	err("TIOCSIG of 0", ioctl(master, TIOCSIG, 0));
	err("TIOCGPTPEER of the slave", ioctl(slave, TIOCGPTPEER, O_RDWR));
	for (int i = -1; i < 5; i++) {
		char what[40];
		snprintf(what, sizeof what, "TCFLSH %d", i);
		err(what, ioctl(slave, TCFLSH, i));
		snprintf(what, sizeof what, "TCXONC %d", i);
		err(what, ioctl(slave, TCXONC, i));
		snprintf(what, sizeof what, "TCFLSH %d of the master", i);
		err(what, ioctl(master, TCFLSH, i));
	}
	err("TCSBRK", ioctl(slave, TCSBRK, 0));
	err("TCSBRK 1", ioctl(slave, TCSBRK, 1));
	err("TCSBRKP", ioctl(slave, TCSBRKP, 0));
	err("TIOCSBRK", ioctl(slave, TIOCSBRK, 0));
	int n = 0;
	err("TIOCSETD 0", ioctl(slave, TIOCSETD, &n));
	n = 77;
	err("TIOCSETD 77", ioctl(slave, TIOCSETD, &n));
	err("TIOCSWINSZ from a bad place", ioctl(slave, TIOCSWINSZ, 8));
	err("TCSETS from a bad place", ioctl(slave, TCSETS, 8));
	err("TIOCSCTTY, not a leader", ioctl(slave, TIOCSCTTY, 0));
	err("TIOCNOTTY", ioctl(slave, TIOCNOTTY, 0));
	err("TIOCSPGRP", ioctl(slave, TIOCSPGRP, &n));
	err("TIOCSPGRP of the master", ioctl(master, TIOCSPGRP, &n));
	err("TIOCSCTTY of the master", ioctl(master, TIOCSCTTY, 0));
	err("TIOCNOTTY of the master", ioctl(master, TIOCNOTTY, 0));
	num("lseek", lseek(slave, 0, SEEK_CUR));
	num("lseek of the master", lseek(master, 0, SEEK_CUR));
	num("pread", pread(slave, c, 1, 0));
	num("pwrite", pwrite(master, c, 1, 0));
	num("ftruncate", ftruncate(slave, 0));
	num("fsync", fsync(slave));
	num("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, slave, 0) == MAP_FAILED ? -1 : 0);
	num("flock", flock(slave, 2));
	num("read 0", read(slave, c, 0));
	num("write 0", write(slave, c, 0));
	num("read 0 of the master", read(master, c, 0));
	num("read of nothing", read(slave, c, 1));
	num("read of nothing from the master", read(master, c, 1));
	num("bad buffer", write(slave, (void *)8, 5));
	num("bad buffer of the master", write(master, (void *)8, 5));
	struct stat st;
	fstat(slave, &st);
	say("mode %o major %d size %ld", st.st_mode & ~0020, major(st.st_rdev), (long)st.st_size);
	fstat(master, &st);
	say("mode %o major %d minor %d", st.st_mode, major(st.st_rdev), minor(st.st_rdev));
	say("isatty %d %d", isatty(slave), isatty(master));
}

TEST(locked, "a slave that is locked, exclusive or gone")
{
	int m = open("/dev/ptmx", O_RDWR | O_NOCTTY), n, one = 1, zero = 0;
	char path[64];
	ioctl(m, TIOCGPTN, &n);
	snprintf(path, sizeof path, "/dev/pts/%d", n);
	number("TIOCGPTLCK", m, TIOCGPTLCK);
	err("open", open(path, O_RDWR | O_NOCTTY));
	err("TIOCGPTPEER", ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY));
	ioctl(m, TIOCSPTLCK, &zero);
	int s = open(path, O_RDWR | O_NOCTTY);
	err("unlocked", s);
	ioctl(m, TIOCSPTLCK, &one);
	err("locked again", open(path, O_RDWR | O_NOCTTY));
	ioctl(m, TIOCSPTLCK, &zero);
	err("TIOCEXCL", ioctl(s, TIOCEXCL, 0));
	number("TIOCGEXCL", s, TIOCGEXCL);
	chmod(path, 0666);
	IN_CHILD("unprivileged", {
		setuid(1000);
		err("open", open(path, O_RDWR | O_NOCTTY));
	});
	ioctl(s, TIOCNXCL, 0);
	IN_CHILD("unprivileged", {
		setuid(1000);
		err("open", open(path, O_RDWR | O_NOCTTY));
	});
	err("open with O_PATH", open(path, O_PATH));
	err("unlink", unlink(path));
	err("create in /dev/pts", open("/dev/pts/new", O_CREAT | O_RDWR, 0600));
	err("mkdir in /dev/pts", mkdir("/dev/pts/new", 0700));
	close(m);
	err("after the master's close", open(path, O_RDWR | O_NOCTTY));
	say("slave: %s", events(s));
	char c;
	num("read", read(s, &c, 1));
	num("write", write(s, &c, 1));
	err("TCGETS", ioctl(s, TCGETS, &c));
	err("TIOCGWINSZ", ioctl(s, TIOCGWINSZ, &c));
	err("TIOCSPGRP", ioctl(s, TIOCSPGRP, &n));
	err("FIONREAD", ioctl(s, FIONREAD, &n));
	struct stat st;
	err("fstat", fstat(s, &st));
	num("links", (long)st.st_nlink);
	int tty = open("/dev/tty", O_RDWR);
	err("/dev/tty without a terminal", (setsid(), open("/dev/tty", O_RDWR)));
	(void)tty;
}

TEST(states, "what poll says")
{
	char c[9000];
	memset(c, 'x', sizeof c);
	open_pair();
	raw();
	say("empty: %s %s", events(master), events(slave));
	write(master, "a", 1);
	settled();
	say("typed: %s %s", events(master), events(slave));
	write(slave, "b", 1);
	settled();
	say("shown: %s %s", events(master), events(slave));
	read(master, c, 9000), read(slave, c, 9000);
	say("read: %s %s", events(master), events(slave));
	int one = 1;
	ioctl(master, TIOCPKT, &one);
	tcflush(slave, TCIOFLUSH);
	say("packet: %s %s", events(master), events(slave));
	num("read", read(master, c, 100));
	say("%#x", c[0]);
	ioctl(slave, TCXONC, TCOOFF);
	say("stopped: %s %s", events(master), events(slave));
	num("write", write(slave, "z", 1));
	num("read", read(master, c, 100));
	say("%#x", c[0]);
	ioctl(slave, TCXONC, TCOON);
	num("read", read(master, c, 100));
	say("%#x", c[0]);
	close(slave);
	settled();
	say("slave closed: %s", events(master));
	num("read", read(master, c, 1));
	num("write", write(master, c, 1));
	slave = open(slave_name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	say("opened again: %s %s", events(master), events(slave));
}

TEST(flushing, "a flush wakes the master's writer")
{
	char c[4096];
	memset(c, 'x', sizeof c);
	open_pair();
	raw();
	while (write(master, c, sizeof c) > 0)
		;
	settled();
	while (write(master, c, sizeof c) > 0)
		;
	say("full: %d", errno == EAGAIN);
	fcntl(master, F_SETFL, 0);
	pid_t p = FORK(_exit(write(master, c, 1) == 1 ? 5 : 6));
	settle(p);
	err("flush", tcflush(slave, TCIFLUSH));
	status("the writer", wait_for(p));
	fcntl(master, F_SETFL, O_NONBLOCK);
	while (write(master, c, sizeof c) > 0)
		;
	settled();
	while (write(master, c, sizeof c) > 0)
		;
	struct pollfd f = {.fd = master, .events = POLLOUT};
	p = FORK(_exit(poll(&f, 1, 5000)));
	settle(p);
	struct termios t;
	tcgetattr(slave, &t);
	err("TCSETSF", tcsetattr(slave, TCSAFLUSH, &t));
	status("the poll", wait_for(p));
}

static volatile int came;

static void on_io(int sig)
{
	say("SIGIO");
	came = 1;
}

TEST(asynchronous, "O_ASYNC")
{
	open_pair();
	raw();
	signal(SIGIO, on_io);
	num("no owner", fcntl(slave, F_GETOWN));
	err("on", fcntl(slave, F_SETFL, O_NONBLOCK | O_ASYNC));
	num("the owner is set", fcntl(slave, F_GETOWN) == getpid());
	write(master, "a", 1);
	for (int i = 0; i < 500 && !came; i++)
		settled();
	err("off", fcntl(slave, F_SETFL, O_NONBLOCK));
	write(master, "a", 1);
	settled();
}

TEST(typing, "TIOCSTI")
{
	char c[10];
	open_pair();
	raw();
	err("not ours, as root", ioctl(slave, TIOCSTI, "q"));
	settled();
	num("read", read(slave, c, 10));
	say("%c", c[0]);
	err("bad pointer", ioctl(slave, TIOCSTI, 8));
	IN_CHILD("a session", {
		setsid();
		err("TIOCSCTTY", ioctl(slave, TIOCSCTTY, 0));
		err("TIOCSTI", ioctl(slave, TIOCSTI, "w"));
		settled();
		num("read", read(slave, c, 10));
	});
}

TEST(sessions, "sessions and groups")
{
	open_pair();
	IN_CHILD("a leader", {
		int n = -5;
		setsid();
		err("open without O_NOCTTY", open(slave_name, O_RDWR));
		number("TIOCGPTN", master, TIOCGPTN + 0);
		say("sid %d pgrp %d", tcgetsid(slave) == getpid(), tcgetpgrp(slave) == getpid());
		err("TIOCSPGRP of a negative", ioctl(slave, TIOCSPGRP, &n));
		n = 9999999;
		err("TIOCSPGRP of nobody", ioctl(slave, TIOCSPGRP, &n));
		n = getppid();
		err("TIOCSPGRP of another session", ioctl(slave, TIOCSPGRP, &n));
		err("TIOCSPGRP from a bad place", ioctl(slave, TIOCSPGRP, 8));
		err("TIOCSCTTY again", ioctl(slave, TIOCSCTTY, 0));
		int tty = open("/dev/tty", O_RDWR | O_NONBLOCK);
		say("/dev/tty %d %s", tty > 0, ttyname(tty) ? ttyname(tty) : "none");
		struct stat st;
		fstat(tty, &st);
		say("device %d %d", major(st.st_rdev), minor(st.st_rdev));
		int m2 = open("/dev/ptmx", O_RDWR);
		say("another /dev/ptmx is not ours: %d", tcgetsid(slave) == getpid());
		int zero = 0;
		ioctl(m2, TIOCSPTLCK, &zero);
		int s2 = ioctl(m2, TIOCGPTPEER, O_RDWR);
		say("nor its slave: %d", tcgetsid(s2));
		err("TIOCSCTTY of a second", ioctl(s2, TIOCSCTTY, 0));
		pid_t other = FORK({
			say("another process: %d", tcgetsid(slave) == getppid());
			err("its TIOCSCTTY", ioctl(slave, TIOCSCTTY, 0));
			setsid();
			err("in a session of its own", ioctl(slave, TIOCSCTTY, 0));
			err("tcgetpgrp", tcgetpgrp(slave));
			err("/dev/tty", open("/dev/tty", O_RDWR));
			err("by force", ioctl(slave, TIOCSCTTY, 1));
			err("/dev/tty", open("/dev/tty", O_RDWR));
		});
		wait_for(other);
		err("tcgetpgrp after the theft", tcgetpgrp(slave));
	});
}
