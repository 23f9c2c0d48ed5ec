// Program tty tests pseudo-terminals: line discipline, job control, sessions.
#include "gt.h"

#include <termios.h>

static int master, slave;

// open_pair makes a pseudo-terminal without echo surprises and returns nothing.
static void open_pair(void)
{
	char name[64];
	int number, unlock = 0;
	master = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "open /dev/ptmx");
	must(ioctl(master, TIOCSPTLCK, &unlock), "TIOCSPTLCK");
	must(ioctl(master, TIOCGPTN, &number), "TIOCGPTN");
	snprintf(name, sizeof name, "/dev/pts/%d", number);
	slave = (int)must(open(name, O_RDWR | O_NOCTTY), "open the slave");
}

static struct termios mode(void (*change)(struct termios *))
{
	struct termios t;
	must(tcgetattr(slave, &t), "tcgetattr");
	if (change) {
		change(&t);
		must(tcsetattr(slave, TCSANOW, &t), "tcsetattr");
	}
	return t;
}

static void no_echo(struct termios *t) { t->c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL); }
static void raw(struct termios *t) { cfmakeraw(t); }

static void quote(char *out, const char *in, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)in[i];
		if (c >= 32 && c < 127)
			*out++ = (char)c;
		else
			out += sprintf(out, "\\%03o", c);
	}
	*out = 0;
}

// get reads what is there within a while and prints it.
static void get(const char *what, int fd)
{
	char buf[512], text[2048];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, 300) == 0) {
		say("%s: nothing", what);
		return;
	}
	if (fd == master)
		sleep_ms(20); // all of the echo
	ssize_t n = read(fd, buf, sizeof buf);
	if (n < 0) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	quote(text, buf, n);
	say("%s: \"%s\"", what, text);
}

static void put(const char *text) { must(write(master, text, strlen(text)), "write to the master"); }

TEST(defaults, "default modes")
{
	open_pair();
	struct termios t = mode(NULL);
	say("iflag %#o oflag %#o cflag %#o lflag %#o", t.c_iflag, t.c_oflag, t.c_cflag, t.c_lflag);
	say("intr %d quit %d erase %d kill %d eof %d susp %d min %d time %d", t.c_cc[VINTR], t.c_cc[VQUIT], t.c_cc[VERASE],
	    t.c_cc[VKILL], t.c_cc[VEOF], t.c_cc[VSUSP], t.c_cc[VMIN], t.c_cc[VTIME]);
	say("isatty %d %d", isatty(master), isatty(slave));
	struct winsize w = {1, 1, 1, 1};
	err("TIOCGWINSZ", ioctl(slave, TIOCGWINSZ, &w));
	say("%d x %d", w.ws_row, w.ws_col);
	w = (struct winsize){24, 80, 0, 0};
	err("TIOCSWINSZ", ioctl(master, TIOCSWINSZ, &w));
	w.ws_col = 0;
	ioctl(slave, TIOCGWINSZ, &w);
	say("%d x %d", w.ws_row, w.ws_col);
	err("wild termios", ioctl(slave, TCGETS, 8));
	err("wild size", ioctl(slave, TIOCGWINSZ, 8));
	err("unknown", ioctl(slave, 0x5499, 0));
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	err("a file is no terminal", tcgetattr(fd, &t));
	struct stat st;
	fstat(slave, &st);
	say("character device %d, major %d", S_ISCHR(st.st_mode), (int)(st.st_rdev >> 8));
}

TEST(canonical, "canonical input")
{
	open_pair();
	mode(no_echo);
	put("hello\n");
	get("a line", slave);
	put("part");
	get("no line yet", slave);
	put("ial\r");
	get("return is a newline", slave);
	put("abc\177\177d\n");
	get("erase", slave);
	put("\177\177x\n");
	get("erase at the start", slave);
	put("one two\027three\n");
	get("word erase", slave);
	put("gone\025kept\n");
	get("kill", slave);
	put("lit\026\177eral\n");
	get("literal next", slave);
	put("two\nlines\n");
	get("one line at a time", slave);
	get("the other", slave);
	put("no newline\004");
	get("end of file after text", slave);
	put("\004");
	get("end of file", slave);
	put("after\n");
	get("and on", slave);
	put("long line\n");
	char c[4];
	say("read 4 of it: %zd %.4s", read(slave, c, 4), c);
	get("the rest", slave);
	int n;
	put("12345\nabc");
	sleep_ms(20);
	err("FIONREAD", ioctl(slave, FIONREAD, &n));
	say("%d", n);
	err("flush", tcflush(slave, TCIFLUSH));
	get("flushed", slave);
}

TEST(echo, "echo and output")
{
	open_pair();
	put("hi\n");
	get("echo", master);
	get("line", slave);
	put("ab\177c\n");
	get("echo of erase", master);
	get("line", slave);
	put("\001x\n");
	get("echo of control", master);
	get("line", slave);
	put("abc\025\n");
	get("echo of kill", master);
	get("line", slave);
	must(write(slave, "out\nput\tx\r", 10), "write");
	get("output", master);
	struct termios t = mode(NULL);
	t.c_oflag &= ~(tcflag_t)ONLCR;
	tcsetattr(slave, TCSADRAIN, &t);
	must(write(slave, "a\nb", 3), "write");
	get("without ONLCR", master);
	t.c_oflag &= ~(tcflag_t)OPOST;
	tcsetattr(slave, TCSANOW, &t);
	must(write(slave, "a\nb", 3), "write");
	get("without OPOST", master);
	t.c_lflag &= ~(tcflag_t)ECHO;
	t.c_lflag |= ECHONL;
	tcsetattr(slave, TCSANOW, &t);
	put("secret\n");
	get("echo of the newline alone", master);
}

TEST(raw_input, "raw input")
{
	open_pair();
	mode(raw);
	put("a\003\177\r\004");
	get("bytes as they are", slave);
	get("no echo", master);
	struct termios t = mode(NULL);
	t.c_cc[VMIN] = 0, t.c_cc[VTIME] = 0;
	tcsetattr(slave, TCSANOW, &t);
	char c[10];
	num("VMIN 0, VTIME 0", read(slave, c, 10));
	t.c_cc[VTIME] = 1;
	tcsetattr(slave, TCSANOW, &t);
	long long began = now_ms();
	num("VTIME 1", read(slave, c, 10));
	say("took a tenth: %d", now_ms() - began >= 90);
	t.c_cc[VMIN] = 5, t.c_cc[VTIME] = 0;
	tcsetattr(slave, TCSANOW, &t);
	pid_t pid = FORK({
		sleep_ms(20);
		put("123");
		sleep_ms(20);
		put("45");
	});
	num("VMIN 5 waits for five", read(slave, c, 10));
	wait_for(pid);
	t.c_cc[VMIN] = 3, t.c_cc[VTIME] = 1;
	tcsetattr(slave, TCSANOW, &t);
	put("x");
	num("VMIN 3, VTIME 1 after a byte", read(slave, c, 10));
	fcntl(slave, F_SETFL, O_NONBLOCK);
	num("non-blocking", read(slave, c, 10));
}

static volatile int hits[65];
static void note(int sig) { hits[sig]++; }

TEST(interrupts, "signals from the keyboard")
{
	open_pair();
	mode(no_echo);
	int fd[2];
	must(pipe(fd), "pipe");
	pid_t pid = FORK({
		setsid();
		must(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
		say("the terminal is ours: %d, session %d, group %d", open("/dev/tty", O_RDWR) >= 0, tcgetsid(slave) == getpid(), tcgetpgrp(slave) == getpid());
		signal(SIGINT, note), signal(SIGQUIT, note), signal(SIGTSTP, note), signal(SIGWINCH, note);
		must(write(fd[1], "r", 1), "write");
		say("SIGINT %d", until(hits[SIGINT]));
		must(write(fd[1], "r", 1), "write");
		say("SIGQUIT %d", until(hits[SIGQUIT]));
		must(write(fd[1], "r", 1), "write");
		say("SIGTSTP %d", until(hits[SIGTSTP]));
		must(write(fd[1], "r", 1), "write");
		say("SIGWINCH %d", until(hits[SIGWINCH]));
		get("what was typed before is gone", slave);
		struct termios t = mode(NULL);
		t.c_lflag |= NOFLSH;
		t.c_lflag &= ~(tcflag_t)ISIG;
		tcsetattr(slave, TCSANOW, &t);
		must(write(fd[1], "r", 1), "write");
		get("without ISIG", slave);
	});
	char c;
	must(read(fd[0], &c, 1), "read"), put("typed\003");
	must(read(fd[0], &c, 1), "read"), put("\034");
	must(read(fd[0], &c, 1), "read"), put("\032");
	must(read(fd[0], &c, 1), "read");
	struct winsize w = {30, 100, 0, 0};
	must(ioctl(master, TIOCSWINSZ, &w), "TIOCSWINSZ");
	must(read(fd[0], &c, 1), "read"), put("\003\n");
	status("session", wait_for(pid));
}

TEST(jobs, "job control")
{
	open_pair();
	mode(no_echo);
	IN_CHILD("session", {
		setsid();
		must(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
		int st;
		char c;
		pid_t job = FORK({
			setpgid(0, 0);
			sleep_ms(20);
			say("background read: %zd", read(slave, &c, 1));
		});
		setpgid(job, job);
		must(waitpid(job, &st, WUNTRACED), "waitpid");
		status("a background reader", st);
		signal(SIGTTOU, SIG_IGN);
		err("give it the terminal", tcsetpgrp(slave, job));
		say("it has it: %d", tcgetpgrp(slave) == job);
		kill(-job, SIGCONT);
		put("x\n");
		status("job", wait_for(job));
		err("take it back", tcsetpgrp(slave, getpid()));
		err("a group of another session", tcsetpgrp(slave, getppid()));
		err("no group", tcsetpgrp(slave, 999999));
		job = FORK({
			setpgid(0, 0);
			signal(SIGTTIN, SIG_IGN);
			err("a background reader that ignores SIGTTIN", read(slave, &c, 1));
			must(write(slave, "y", 1), "write");
			say("background output is allowed");
			signal(SIGTTOU, SIG_DFL);
			struct termios t = mode(NULL);
			t.c_lflag |= TOSTOP;
			tcsetattr(slave, TCSANOW, &t);
			say("continued");
		});
		setpgid(job, job);
		must(waitpid(job, &st, WUNTRACED), "waitpid");
		status("changing modes in the background", st);
		kill(-job, SIGCONT);
		must(waitpid(job, &st, WUNTRACED), "waitpid");
		status("again", st);
		tcsetpgrp(slave, job);
		kill(-job, SIGCONT);
		status("in the foreground", wait_for(job));
		tcsetpgrp(slave, getpid());
		// An orphaned group gets EIO instead of a stop.
		int done[2];
		must(pipe(done), "pipe");
		pid_t middle = FORK({
			setpgid(0, 0);
			pid_t parent = getpid();
			FORK({
				until(getppid() != parent);
				sleep_ms(20);
				err("orphan's read", read(slave, &c, 1));
				must(write(done[1], "x", 1), "write");
			});
		});
		wait_for(middle);
		must(read(done[0], &c, 1), "read");
	});
}

TEST(hangup, "hang-up and controlling terminals")
{
	open_pair();
	int fd[2];
	must(pipe(fd), "pipe");
	pid_t leader = FORK({
		close(master);
		setsid();
		must(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
		signal(SIGHUP, note);
		must(write(fd[1], "r", 1), "write");
		say("the master closes: SIGHUP %d", until(hits[SIGHUP]));
		char c;
		num("read", read(slave, &c, 1));
		err("write", write(slave, "x", 1));
		struct pollfd p = {.fd = slave, .events = POLLIN | POLLOUT};
		poll(&p, 1, 1000);
		say("poll: hung up %d", (p.revents & POLLHUP) != 0);
	});
	char c;
	close(slave);
	must(read(fd[0], &c, 1), "read");
	close(master);
	status("leader", wait_for(leader));
	open_pair();
	pid_t session = FORK({
		setsid();
		must(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
		FORK({
			signal(SIGHUP, note);
			must(write(fd[1], "r", 1), "write");
			say("the leader ends: SIGHUP %d", until(hits[SIGHUP]));
			must(write(fd[1], "r", 1), "write");
		});
		must(read(fd[0], &c, 1), "read");
	});
	wait_for(session);
	must(read(fd[0], &c, 1), "read");
	IN_CHILD("detaching", {
		setsid();
		err("no terminal", open("/dev/tty", O_RDWR));
		err("a terminal of nobody", ioctl(slave, TIOCSCTTY, 0));
		int tty = (int)err("/dev/tty", open("/dev/tty", O_RDWR));
		signal(SIGHUP, SIG_IGN);
		err("TIOCNOTTY", ioctl(tty, TIOCNOTTY, 0));
		err("none again", open("/dev/tty", O_RDWR));
	});
	IN_CHILD("by opening", {
		setsid();
		char name[64];
		int number;
		ioctl(master, TIOCGPTN, &number);
		snprintf(name, sizeof name, "/dev/pts/%d", number);
		close(open(name, O_RDWR | O_NOCTTY));
		err("not with O_NOCTTY", open("/dev/tty", O_RDWR));
		int s = open(name, O_RDWR);
		err("with a plain open", open("/dev/tty", O_RDWR));
		close(s);
	});
	close(slave);
	num("the master when no slave is open", read(master, &c, 1));
}

TEST(names, "names of terminals")
{
	open_pair();
	int number;
	ioctl(master, TIOCGPTN, &number);
	char name[64], link[64] = "";
	snprintf(name, sizeof name, "/dev/pts/%d", number);
	struct stat st;
	err("stat", stat(name, &st));
	say("a character device: %d", S_ISCHR(st.st_mode));
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", slave);
	must(readlink(path, link, sizeof link - 1), "readlink");
	say("the descriptor's name is right: %d", strcmp(link, name) == 0);
	close(slave), close(master);
	err("the name goes with the master", stat(name, &st));
	int many[50], got = 0;
	for (int i = 0; i < 50; i++)
		got += (many[i] = open("/dev/ptmx", O_RDWR | O_NOCTTY)) >= 0;
	say("fifty masters: %d", got);
	int unlock = 1;
	ioctl(many[0], TIOCSPTLCK, &unlock);
	ioctl(many[0], TIOCGPTN, &number);
	snprintf(name, sizeof name, "/dev/pts/%d", number);
	err("a locked one", open(name, O_RDWR | O_NOCTTY));
}
