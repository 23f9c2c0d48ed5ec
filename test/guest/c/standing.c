// Program standing tests that timers are bounded: those that wait belong to a user's or
// a process's limit, and who ends gives them back.
#include "gt.h"

#include <grp.h>
#include <sys/timerfd.h>

// Users that nobody else is.
enum { one = 60011, other = 60012, most = 16 };

static void become(uid_t uid)
{
	must(setgroups(0, NULL), "setgroups");
	must(setresgid(uid, uid, uid), "setresgid");
	must(setresuid(uid, uid, uid), "setresuid");
}

static void limit(int what, rlim_t n)
{
	struct rlimit rl = {n, n};
	must(setrlimit(what, &rl), "setrlimit");
}

// add makes a timer that waits for an hour.
static int add(timer_t *id)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec in = {.it_value = {3600, 0}};
	if (timer_create(CLOCK_MONOTONIC, &ev, id) < 0)
		return -1;
	return timer_settime(*id, 0, &in, NULL);
}

// take makes timers until there are no more, and says how many.
static int take(const char *what)
{
	timer_t id;
	int n = 0;
	while (n < 10 * most && add(&id) == 0)
		n++;
	say("%s: %d, then %s", what, n, n < 10 * most ? name_of(errno) : "more");
	return n;
}

// AS(uid, statement…) runs it in a child that is a user.
#define AS(uid, ...) IN_CHILD("child", become(uid); __VA_ARGS__)

// holder starts a process that makes n timers as a user and then goes on as what says.
static pid_t holder(uid_t uid, int n, const char *what)
{
	int ready[2];
	must(pipe(ready), "pipe");
	pid_t pid = FORK(
		if (strcmp(what, "becomes another") == 0)
			must(setresuid(uid, uid, 0), "setresuid");
		else
			become(uid);
		timer_t id;
		for (int i = 0; i < n; i++)
			must(add(&id), "timer_create");
		if (strcmp(what, "becomes another") == 0)
			must(setresuid(0, 0, 0), "setresuid"), become(other);
		must(write(ready[1], "x", 1), "write");
		close(ready[0]), close(ready[1]);
		for (;;)
			pause());
	char c;
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		fatal("the holder");
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	wait_for(pid);
}

TEST(shared_limit, "timers: one limit for all processes of a user")
{
	limit(RLIMIT_SIGPENDING, most);
	AS(one, take("all"); IN_CHILD("grandchild", take("of the child")));
	pid_t pid = holder(one, 10, "waits");
	AS(one, take("beside 10 of another process"));
	AS(other, take("of another user"));
	end(pid);
	AS(one, take("when that is gone"));
}

TEST(deleted, "timers: what is deleted can be had again")
{
	limit(RLIMIT_SIGPENDING, most);
	become(one);
	timer_t id[most], more;
	for (int i = 0; i < most; i++)
		must(add(&id[i]), "timer_create");
	err("one more", add(&more));
	for (int i = 0; i < 5; i++)
		must(timer_delete(id[i]), "timer_delete");
	err("deleted again", timer_delete(id[0]));
	take("after five were deleted");
}

int child_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	take("after exec");
	return 0;
}

TEST(exec, "timers: exec gives them back")
{
	limit(RLIMIT_SIGPENDING, most);
	char self[PATH_MAX] = "";
	must(readlink("/proc/self/exe", self, sizeof self - 1), "readlink");
	int fd = (int)must(open(self, O_RDONLY), "open"); // also where the user may not look
	IN_CHILD("child", become(one); take("before"); char *argv[] = {self, "child", NULL}; char *env[] = {NULL}; fexecve(fd, argv, env); fatal("fexecve"));
}

TEST(identity, "timers: who made them is charged, whatever the process becomes")
{
	limit(RLIMIT_SIGPENDING, most);
	pid_t pid = holder(one, most, "becomes another");
	AS(one, take("of the first user"));
	AS(other, take("of the second"));
	end(pid);
	AS(one, take("when that is gone"));
}

TEST(signals, "timers: signals that wait are of the same limit")
{
	limit(RLIMIT_SIGPENDING, most);
	become(one);
	sigset_t set;
	sigemptyset(&set), sigaddset(&set, SIGRTMIN + 1);
	must(sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
	int n = 0;
	for (union sigval v = {0}; n < 10; n++)
		must(sigqueue(getpid(), SIGRTMIN + 1, v), "sigqueue");
	take("beside 10 signals");
	union sigval v = {0};
	err("one more signal", sigqueue(getpid(), SIGRTMIN + 1, v));
	siginfo_t info;
	must(sigwaitinfo(&set, &info), "sigwaitinfo");
	take("after one was taken");
}

static int timerfds(void)
{
	int n = 0, fd;
	struct itimerspec in = {.it_value = {3600, 0}, .it_interval = {3600, 0}};
	while (n < 1000 && (fd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0) {
		must(timerfd_settime(fd, 0, &in, NULL), "timerfd_settime");
		n++;
	}
	return n;
}

TEST(files, "timerfds: as many as files")
{
	become(one);
	limit(RLIMIT_NOFILE, 60);
	for (int round = 0; round < 3; round++) {
		must(close_range(3, ~0U, 0), "close_range");
		int n = timerfds();
		say("%d, then %s", n, name_of(errno));
	}
	IN_CHILD("a child's are its own", close_range(3, ~0U, 0); num("timerfds", timerfds()));
}

TEST(single, "alarms and interval timers: one of each kind in a process")
{
	for (int i = 0; i < 1000; i++)
		alarm(1000);
	struct itimerval in = {.it_value = {2000, 0}}, was;
	for (int kind = ITIMER_REAL; kind <= ITIMER_PROF; kind++)
		for (int i = 0; i < 1000; i++) {
			must(setitimer(kind, &in, &was), "setitimer");
			if (i == 0)
				say("kind %d before: %d", kind, was.it_value.tv_sec > 0);
		}
	unsigned left = alarm(0);
	say("the alarm is the first kind: %d", left > 1990 && left <= 2000);
	for (int kind = ITIMER_REAL; kind <= ITIMER_PROF; kind++) {
		must(getitimer(kind, &was), "getitimer");
		say("kind %d is left: %d", kind, was.it_value.tv_sec > 0);
	}
	pid_t pid = FORK(must(getitimer(ITIMER_VIRTUAL, &was), "getitimer"); say("a child has one: %d", was.it_value.tv_sec > 0));
	status("child", wait_for(pid));
}
