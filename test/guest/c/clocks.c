// Every clock with every call that takes one.
#include "gt.h"
#include <sys/timex.h>
#include <sys/timerfd.h>

static const char *answer(long rc) { return rc == -1 ? name_of(errno) : "ok"; }

static void each(const char *name, int clock)
{
	struct timespec ts, zero = {0, 0};
	say("%s: gettime %s", name, answer(syscall(SYS_clock_gettime, clock, &ts)));
	say("getres %s", answer(syscall(SYS_clock_getres, clock, NULL)));
	if (clock != CLOCK_REALTIME)
		say("settime %s", answer(syscall(SYS_clock_settime, clock, &zero)));
	say("nanosleep %s", answer(syscall(SYS_clock_nanosleep, clock, TIMER_ABSTIME, &zero, NULL)));
	struct sigevent ev = {.sigev_notify = SIGEV_NONE};
	int id;
	long rc = syscall(SYS_timer_create, clock, &ev, &id);
	say("timer_create %s", answer(rc));
	if (rc == 0)
		syscall(SYS_timer_delete, id);
	struct timex tx = {};
	say("adjtime %s", answer(syscall(SYS_clock_adjtime, clock, &tx)));
	say("timerfd %s", answer(timerfd_create(clock, 0)));
}

TEST(fixed, "clocks with names")
{
	for (int clock = 0; clock < 20; clock++) {
		if (clock == 10 || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM)
			continue; // they need a clock that wakes the machine
		char name[20];
		snprintf(name, sizeof name, "clock %d", clock);
		each(name, clock);
	}
}

TEST(made, "clocks of processes, threads and files")
{
	int ids[] = {0, getpid(), 1, 99999};
	static const char *const names[] = {"own", "own by number", "process 1", "nobody"};
	for (int kind = 0; kind < 8; kind++)
		for (int i = 0; i < 4; i++) {
			char name[40];
			snprintf(name, sizeof name, "kind %d, %s", kind, names[i]);
			each(name, ~(unsigned)ids[i] << 3 | kind);
		}
}

TEST(order, "what is looked at first")
{
	err("sleep on a thread's clock, bad address", syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, 8, 0));
	err("adjtime, bad address", syscall(SYS_clock_adjtime, CLOCK_MONOTONIC, 8));
	err("setitimer, bad address", syscall(SYS_setitimer, 7, 8, 0));
	err("settimeofday, bad zone", syscall(SYS_settimeofday, 0, 8));
	struct timezone tz = {.tz_minuteswest = 9999};
	err("settimeofday, a zone too far", syscall(SYS_settimeofday, 0, &tz));
	setuid(1);
	err("a user", syscall(SYS_settimeofday, 0, &tz));
	struct timex tx = {.modes = ADJ_OFFSET_SS_READ};
	say("a user may ask: %d", syscall(SYS_adjtimex, &tx) >= 0);
}

TEST(overlimit, "classic signals keep their information beyond RLIMIT_SIGPENDING")
{
	struct rlimit l = {0, 0};
	setrlimit(RLIMIT_SIGPENDING, &l);
	setresuid(1000, 1000, 1000);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	err("kill", kill(getpid(), SIGUSR2));
	err("kill, real-time", kill(getpid(), 41));
	err("sigqueue", sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 5}));
	err("sigqueue, real-time", sigqueue(getpid(), 42, (union sigval){.sival_int = 5}));
	err("tkill, real-time", syscall(SYS_tkill, getpid(), 43));
	siginfo_t info;
	int sig;
	while ((sig = sigtimedwait(&all, &info, &(struct timespec){0, 0})) > 0)
		say("%d: code %d, ours %d", sig, info.si_code, info.si_pid == getpid());
	err("an unknown signal for nobody", kill(99999, 65));
	err("sigaction, unknown signal, bad address", syscall(SYS_rt_sigaction, 65, 8, 0, 8));
}
