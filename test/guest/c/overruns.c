// Expirations of POSIX timers between the signal's queueing and its being taken.
#include "gt.h"
#include <sys/signalfd.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

enum { period = 10000, first = 20000000 };

// pass lets time of a clock go by.
static void pass(clockid_t clock, int64_t ns)
{
	if (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME) {
		nanosleep(&(struct timespec){0, ns}, NULL);
		return;
	}
	for (int64_t end = now_ns(clock) + ns; now_ns(clock) < end;)
		;
}

static volatile sig_atomic_t handled;
static volatile int in_handler;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	if (!handled)
		in_handler = info->si_overrun;
	handled = 1;
}

// Ways to take a signal that is pending; each returns its overrun count.
static int by_wait(sigset_t *set)
{
	siginfo_t info;
	return sigwaitinfo(set, &info) == SIGUSR2 ? info.si_overrun : -1;
}

static int by_handler(sigset_t *set)
{
	handled = 0;
	sigprocmask(SIG_UNBLOCK, set, NULL);
	while (!handled)
		;
	sigprocmask(SIG_BLOCK, set, NULL);
	return in_handler;
}

static int by_descriptor(sigset_t *set)
{
	int fd = signalfd(-1, set, 0);
	struct signalfd_siginfo info;
	ssize_t n = read(fd, &info, sizeof info);
	close(fd);
	return n == sizeof info ? (int)info.ssi_overrun : -1;
}

static void count(const char *name, clockid_t clock, int (*take)(sigset_t *))
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, NULL);
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct itimerspec its = {{0, period}, {0, first}};
	timer_t t;
	if (err("timer_create", timer_create(clock, &ev, &t)) < 0)
		return;
	int64_t start = now_ns(clock);
	timer_settime(t, 0, &its, NULL);
	int64_t started = now_ns(clock);
	say("%s: nothing was taken: %d", name, timer_getoverrun(t));
	pass(clock, first + 37000000);
	int64_t before = now_ns(clock);
	int64_t n = take(&set) + 1LL;
	int64_t after = now_ns(clock);
	if (n < (before - started - first) / period - 1 || n > (after - start - first) / period + 2)
		say("%s: counted %lld between %lld and %lld", name, (long long)n, (long long)(before - started - first) / period,
		    (long long)(after - start - first) / period);
	// getoverrun is of the signal that was taken last, which may be a later one of the handler's.
	if (take != by_handler && timer_getoverrun(t) != n - 1)
		say("%s: getoverrun %d, not %lld", name, timer_getoverrun(t), (long long)n - 1);
	its.it_value.tv_nsec = 0;
	timer_settime(t, 0, &its, NULL);
	say("%s: set anew: %d", name, timer_getoverrun(t));
	timer_delete(t);
	while (sigtimedwait(&set, NULL, &(struct timespec){0, 0}) > 0)
		;
}

TEST(wall, "a clock of time")
{
	count("sigwaitinfo", CLOCK_MONOTONIC, by_wait);
	count("handler", CLOCK_MONOTONIC, by_handler);
	count("signalfd", CLOCK_MONOTONIC, by_descriptor);
	count("realtime", CLOCK_REALTIME, by_wait);
}

// Linux looks at timers of CPU time once a tick, and counts what passed since when the
// signal is taken too.
TEST(spent, "clocks of CPU time")
{
	count("process", CLOCK_PROCESS_CPUTIME_ID, by_wait);
	count("thread", CLOCK_THREAD_CPUTIME_ID, by_wait);
}

TEST(default_ignored, "a blocked signal whose default is to do nothing")
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	struct itimerspec its = {{0, 2}, {0, 1000000}};
	timer_t t;
	if (timer_create(CLOCK_REALTIME, &ev, &t) < 0)
		return;
	int64_t start = now_ns(CLOCK_REALTIME);
	timer_settime(t, 0, &its, NULL);
	int64_t started = now_ns(CLOCK_REALTIME);
	pass(CLOCK_REALTIME, 30000000);
	int64_t before = now_ns(CLOCK_REALTIME);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	int n = timer_getoverrun(t);
	int64_t after = now_ns(CLOCK_REALTIME);
	if (n < (before - started - 1000000) / 2 - 1 || n > (after - start) / 2)
		say("counted %d between %lld and %lld", n, (long long)(before - started - 1000000) / 2, (long long)(after - start) / 2);
	timer_delete(t);
}

TEST(forged, "a signal that says it is a timer's")
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	siginfo_t info = {.si_code = SI_TIMER};
	info.si_overrun = 7;
	err("sigqueue", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR2, &info));
	say("sigwaitinfo %d, overrun %d", sigwaitinfo(&set, &info), info.si_overrun);
}
