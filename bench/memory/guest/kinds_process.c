// Offenders that use threads, processes, timers and signals.
#include "memory.h"
#include <pthread.h>
#include <sys/syscall.h>

static void *rest(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void threads(void)
{
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	while (pthread_create(&t, &a, rest, NULL) == 0)
		;
}

static void processes(void)
{
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			rest(NULL);
}

static void zombies(void)
{
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0)
			_exit(0);
}

static void timers(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_NONE};
	struct itimerspec later = {.it_value.tv_sec = 1000};
	for (timer_t t; timer_create(CLOCK_MONOTONIC, &ev, &t) == 0;)
		timer_settime(t, 0, &later, NULL);
}

static void signals(void)
{
	sigset_t all;
	union sigval v = {0};
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	while (sigqueue(getpid(), SIGRTMIN, v) == 0)
		;
}

// Programs with arguments as long as may be.
static void arguments(void)
{
	enum { count = 15, length = 128 << 10 };
	char *text = emptyPages(length), *argv[count + 3] = {"memory", "rest"};
	memset(text, 'a', length - 1);
	for (int i = 0; i < count; i++)
		argv[i + 2] = text;
	for (pid_t pid; (pid = fork()) >= 0;)
		if (pid == 0) {
			execv("/proc/self/exe", argv);
			_exit(1);
		}
}

const struct kind processKinds[] = {
	{"threads", threads},
	{"processes", processes},
	{"zombies", zombies},
	{"timers", timers},
	{"signals", signals},
	{"arguments", arguments},
	{NULL, NULL},
};
