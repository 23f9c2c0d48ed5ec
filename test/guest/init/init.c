// Signals of process 1. On Linux the program makes a process id name space and is
// process 1 of that; on Hardtack it is booted as process 1.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *format, ...)
{
	char line[200] = "init: ";
	va_list ap;
	va_start(ap, format);
	int n = 6 + vsnprintf(line + 6, sizeof line - 8, format, ap);
	line[n++] = '\n';
	if (write(1, line, n) < 0)
		_exit(9);
}

static void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static volatile int caught;
static void on_signal(int sig) { caught = sig; }

static void in_child(void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void kill_all(void)
{
	int failed = 0;
	for (int sig = 1; sig <= 64; sig++)
		if (sig != 32 && sig != 33 && kill(1, sig) < 0)
			failed++;
	say("%d signals sent to 1, %d refused", 62, failed);
}

static void terminate(void) { kill(1, SIGTERM); }
static void user(void) { kill(1, SIGUSR1); }

static void limits(void)
{
	struct rlimit r = {10, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	signal(SIGXFSZ, SIG_DFL);
	setrlimit(RLIMIT_FSIZE, &r);
	int fd = open("/tmp/init-file", O_CREAT | O_TRUNC | O_WRONLY, 0600);
	lseek(fd, 100, SEEK_SET);
	int n = write(fd, "x", 1), error = errno;
	setrlimit(RLIMIT_FSIZE, &all); // also the output may be a file
	say("beyond RLIMIT_FSIZE: %d %s", n, strerrorname_np(error));
	unlink("/tmp/init-file");
	r.rlim_cur = 1;
	setrlimit(RLIMIT_CPU, &r);
	while (clock() < CLOCKS_PER_SEC + CLOCKS_PER_SEC / 5)
		;
	setrlimit(RLIMIT_CPU, &all);
	say("beyond RLIMIT_CPU");
}

static void timers(void)
{
	struct itimerval v = {{0, 0}, {0, 2000}};
	setitimer(ITIMER_REAL, &v, NULL);
	nap(20);
	setitimer(ITIMER_PROF, &v, NULL);
	setitimer(ITIMER_VIRTUAL, &v, NULL);
	clock_t end = clock() + CLOCKS_PER_SEC / 20;
	while (clock() < end)
		;
	timer_t id;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
	timer_create(CLOCK_MONOTONIC, &ev, &id);
	timer_settime(id, 0, &(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
	nap(20);
	say("timers");
}

static void files(void)
{
	int p[2];
	if (pipe(p) == 0) {
		close(p[0]);
		int n = write(p[1], "x", 1);
		say("write to a broken pipe: %d %s", n, strerrorname_np(errno));
	}
	socketpair(AF_UNIX, SOCK_STREAM, 0, p);
	fcntl(p[0], F_SETOWN, 1);
	fcntl(p[0], F_SETFL, O_ASYNC);
	write(p[1], "x", 1);
	fcntl(p[0], F_SETSIG, SIGRTMIN + 2);
	write(p[1], "x", 1);
	close(p[1]);
	nap(5);
	say("SIGIO");
}

static void terminal(void)
{
	int master, slave;
	setsid();
	int tty = open("/dev/tty", O_RDWR);
	if (tty >= 0)
		ioctl(tty, TIOCNOTTY); // SIGHUP and SIGCONT to this group
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0 || ioctl(slave, TIOCSCTTY, 0) < 0) {
		say("no terminal: %s", strerrorname_np(errno));
		return;
	}
	tcsetpgrp(slave, getpgrp());
	static const char keys[] = {3, 28, 26};
	for (int i = 0; i < 3; i++) {
		write(master, keys + i, 1);
		nap(5);
	}
	ioctl(master, TIOCSWINSZ, &(struct winsize){1, 2, 3, 4});
	close(master);
	nap(5);
	say("a terminal's keys and its end");
}

static int as_init(void *arg)
{
	sigset_t set;
	siginfo_t info;
	for (int sig = 1; sig <= 64; sig++)
		signal(sig, SIG_DFL);
	kill_all();
	for (int sig = 1; sig <= 31; sig++)
		syscall(SYS_tgkill, getpid(), gettid(), sig);
	say("by itself");
	in_child(kill_all);
	say("by a child");
	files();
	timers();
	limits();
	terminal();
	// Blocked ones wait, for sigwait or to be thrown away.
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	in_child(terminate);
	sigset_t pending;
	sigpending(&pending);
	say("blocked and pending: %d", sigismember(&pending, SIGTERM));
	say("sigwaitinfo: %d", sigwaitinfo(&set, &info));
	in_child(terminate);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	say("unblocked");
	signal(SIGUSR1, on_signal);
	in_child(user);
	say("with a handler: %d", caught);
	signal(SIGUSR1, SIG_DFL);
	in_child(user);
	say("without again");
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGTERM);
		_exit(0);
	}
	int st = 0;
	waitpid(pid, &st, 0);
	say("a child is not spared: %d", WTERMSIG(st));
	if (arg) {
		say("a fault comes");
		*(volatile int *)8 = 1;
		say("a fault had no effect");
	}
	say("end");
	_exit(0);
}

int main(int argc, char **argv)
{
	void *fault = argc > 1 && !strcmp(argv[1], "fault") ? argv : NULL;
	if (getpid() == 1)
		return as_init(fault);
	char *stack = malloc(1 << 18);
	pid_t pid = clone(as_init, stack + (1 << 18), CLONE_NEWPID | SIGCHLD, fault);
	if (pid < 0) {
		say("no name space: %s", strerrorname_np(errno));
		return 7;
	}
	int st = 0;
	waitpid(pid, &st, 0);
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}
