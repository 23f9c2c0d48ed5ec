// Stops, continues, orphaned groups, zombies of threads, signals at death.
#include "gt.h"
#include <pthread.h>

static void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static char state(int pid)
{
	char name[64], b[512] = "";
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	int fd = open(name, O_RDONLY);
	if (fd < 0)
		return '-';
	read(fd, b, sizeof b - 1);
	close(fd);
	char *p = strrchr(b, ')');
	return p ? p[2] : '?';
}

// wait_state waits until a process is in a state.
static int wait_state(int pid, char want)
{
	for (int i = 0; i < 3000 && state(pid) != want; i++)
		nap(1);
	return state(pid) == want;
}

static volatile int *counter;

static void *count(void *p)
{
	for (;;)
		++*(volatile int *)p;
}

static void *rest(void *p)
{
	for (;;)
		pause();
	return p;
}

static void news(const char *what, int pid, int options)
{
	siginfo_t si;
	memset(&si, 0, sizeof si);
	int rc = waitid(P_PID, pid, &si, options | WNOHANG);
	if (rc < 0)
		say("%s: %s", what, name_of(errno));
	else if (si.si_pid == 0)
		say("%s: nothing", what);
	else
		say("%s: %s, status %d, signo %d, the child %d", what,
		    si.si_code == CLD_STOPPED ? "stopped" : si.si_code == CLD_CONTINUED ? "continued" :
		    si.si_code == CLD_EXITED ? "exited" : si.si_code == CLD_KILLED ? "killed" : "?",
		    si.si_status, si.si_signo, si.si_pid == pid);
}

TEST(all_threads, "a stop stops all threads")
{
	counter = shared(4096);
	int pid = fork();
	if (pid == 0) {
		pthread_t t;
		for (int i = 0; i < 4; i++)
			pthread_create(&t, NULL, count, (void *)&counter[i * 16]);
		for (int i = 0; i < 3; i++)
			pthread_create(&t, NULL, rest, NULL);
		counter[8 * 16] = 1;
		pause();
	}
	while (counter[8 * 16] == 0)
		nap(1);
	for (int i = 0; i < 4; i++)
		while (counter[i * 16] == 0)
			nap(1);
	kill(pid, SIGSTOP);
	int status;
	say("wait4 %d", waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	int before[4], moved = 0;
	for (int i = 0; i < 4; i++)
		before[i] = counter[i * 16];
	nap(50);
	for (int i = 0; i < 4; i++)
		moved += counter[i * 16] != before[i];
	say("threads that go on: %d", moved);
	char name[64];
	int stopped = 0, all = 0;
	snprintf(name, sizeof name, "/proc/%d/task", pid);
	DIR *d = opendir(name);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			all++, stopped += state(atoi(e->d_name)) == 'T';
	closedir(d);
	say("all threads are stopped: %d", all >= 7 && stopped == all); // one more may exist by now
	news("again", pid, WSTOPPED);
	kill(pid, SIGCONT);
	say("continued %d", waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
	news("again", pid, WCONTINUED);
	moved = 0;
	for (int i = 0; i < 4; i++) {
		int now = counter[i * 16];
		for (int k = 0; k < 2000 && counter[i * 16] == now; k++)
			nap(1);
		moved += counter[i * 16] != now;
	}
	say("threads that go on: %d", moved);
	kill(pid, SIGSTOP);
	wait_state(pid, 'T');
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	news("a stopped one is killed", pid, WEXITED | WSTOPPED | WCONTINUED);
}

TEST(reports, "what is reported, once, and what another event takes back")
{
	int pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	news("at first", pid, WSTOPPED | WCONTINUED);
	kill(pid, SIGTSTP);
	wait_state(pid, 'T');
	news("stopped, not taken", pid, WSTOPPED | WNOWAIT);
	news("stopped, asked for continues", pid, WCONTINUED);
	news("stopped", pid, WSTOPPED);
	news("stopped, again", pid, WSTOPPED);
	kill(pid, SIGTTIN);
	nap(20);
	news("another stop while stopped", pid, WSTOPPED);
	kill(pid, SIGCONT);
	wait_state(pid, 'S');
	news("continued, not taken", pid, WCONTINUED | WNOWAIT);
	news("continued, asked for stops", pid, WSTOPPED);
	news("continued", pid, WCONTINUED);
	news("continued, again", pid, WCONTINUED);
	kill(pid, SIGCONT);
	nap(20);
	news("SIGCONT without a stop", pid, WCONTINUED);
	kill(pid, SIGSTOP);
	wait_state(pid, 'T');
	kill(pid, SIGCONT);
	wait_state(pid, 'S');
	news("stopped and continued, asked for stops", pid, WSTOPPED);
	news("stopped and continued", pid, WCONTINUED);
	kill(pid, SIGSTOP);
	wait_state(pid, 'T');
	kill(pid, SIGCONT);
	wait_state(pid, 'S');
	kill(pid, SIGSTOP);
	wait_state(pid, 'T');
	news("stopped again, asked for continues", pid, WCONTINUED);
	news("stopped again", pid, WSTOPPED);
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	news("killed, asked for stops", pid, WSTOPPED);
	news("killed", pid, WEXITED);
	news("gone", pid, WEXITED);
}

static volatile sig_atomic_t hits[65];
static void hit(int sig) { hits[sig]++; }

static void catch(int sig, int flags)
{
	struct sigaction sa = {.sa_handler = hit, .sa_flags = flags};
	sigaction(sig, &sa, NULL);
}

TEST(pending, "SIGCONT removes pending stops, a stop a pending SIGCONT")
{
	static const int stops[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
	sigset_t all, p;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 1; i < 4; i++) {
		kill(getpid(), stops[i]);
		sigpending(&p);
		int before = sigismember(&p, stops[i]);
		kill(getpid(), SIGCONT);
		sigpending(&p);
		say("%s: pending %d, after SIGCONT %d, SIGCONT itself %d", sigabbrev_np(stops[i]), before, sigismember(&p, stops[i]), sigismember(&p, SIGCONT));
		kill(getpid(), stops[i]);
		sigpending(&p);
		say("after it again: SIGCONT %d, it %d", sigismember(&p, SIGCONT), sigismember(&p, stops[i]));
		kill(getpid(), SIGCONT);
	}
	// A thread's own pending signals are removed as well.
	syscall(SYS_tgkill, getpid(), gettid(), SIGTSTP);
	sigpending(&p);
	int before = sigismember(&p, SIGTSTP);
	kill(getpid(), SIGCONT);
	sigpending(&p);
	say("of the thread: %d, then %d", before, sigismember(&p, SIGTSTP));
	// A handler of SIGCONT runs, and a blocked or ignored SIGCONT continues all the same.
	sigemptyset(&p);
	sigprocmask(SIG_SETMASK, &p, NULL);
	for (int kind = 0; kind < 3; kind++) {
		int pid = fork();
		if (pid == 0) {
			if (kind == 0)
				catch(SIGCONT, 0);
			else if (kind == 1)
				signal(SIGCONT, SIG_IGN);
			else
				sigprocmask(SIG_SETMASK, &all, NULL);
			raise(SIGSTOP);
			_exit(hits[SIGCONT]);
		}
		int status;
		waitpid(pid, &status, WUNTRACED);
		kill(pid, SIGCONT);
		waitpid(pid, &status, 0);
		say("kind %d: exits %d with %d", kind, WIFEXITED(status), WEXITSTATUS(status));
	}
	// Signals that come while it is stopped are handled when it goes on; SIGKILL at once.
	int pid = fork();
	if (pid == 0) {
		catch(SIGUSR1, 0);
		raise(SIGSTOP);
		_exit(hits[SIGUSR1]);
	}
	int status;
	waitpid(pid, &status, WUNTRACED);
	kill(pid, SIGUSR1);
	nap(20);
	say("stopped with a signal pending: %c", state(pid));
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	say("exits with %d", WEXITSTATUS(status));
}

TEST(handlers, "SIGCHLD of stops, SA_NOCLDSTOP, SA_NOCLDWAIT, SIG_IGN")
{
	for (int flags = 0; flags < 2; flags++) {
		hits[SIGCHLD] = 0;
		catch(SIGCHLD, flags ? SA_NOCLDSTOP : 0);
		int pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		kill(pid, SIGSTOP);
		wait_state(pid, 'T');
		nap(10);
		int stop = hits[SIGCHLD];
		kill(pid, SIGCONT);
		wait_state(pid, 'S');
		nap(10);
		int cont = hits[SIGCHLD];
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		say("flags %d: %d at the stop, %d after continue, %d at the end", flags, stop, cont, (int)hits[SIGCHLD]);
	}
	for (int kind = 0; kind < 3; kind++) {
		hits[SIGCHLD] = 0;
		if (kind == 0)
			catch(SIGCHLD, SA_NOCLDWAIT);
		else if (kind == 1)
			signal(SIGCHLD, SIG_IGN);
		else {
			struct sigaction sa = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
			sigaction(SIGCHLD, &sa, NULL);
		}
		int p[2];
		pipe(p);
		int pid = fork();
		if (pid == 0) {
			char c;
			close(p[1]);
			read(p[0], &c, 1);
			_exit(3);
		}
		int stopped = fork();
		if (stopped == 0)
			for (;;)
				pause();
		kill(stopped, SIGSTOP);
		int status, rc = waitpid(stopped, &status, WUNTRACED);
		while (rc < 0 && errno == EINTR)
			rc = waitpid(stopped, &status, WUNTRACED);
		say("kind %d: a stop is reported %d", kind, rc == stopped);
		close(p[0]);
		close(p[1]);
		kill(stopped, SIGKILL);
		do
			rc = waitpid(-1, &status, 0);
		while (rc < 0 && errno == EINTR);
		say("wait ends with %s, SIGCHLD seen %d", name_of(rc < 0 ? errno : 0), hits[SIGCHLD] >= 2);
		signal(SIGCHLD, SIG_DFL);
	}
}

TEST(leader, "the first thread ends before the others")
{
	int pid = fork();
	if (pid == 0) {
		pthread_t t;
		pthread_create(&t, NULL, rest, NULL);
		syscall(SYS_exit, 7);
	}
	say("a zombie %d", wait_state(pid, 'Z'));
	news("not waited for yet", pid, WEXITED);
	say("a signal 0: %s", name_of(kill(pid, 0) ? errno : 0));
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/task", pid);
	int n = 0;
	DIR *d = opendir(name);
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	say("threads %d", n);
	kill(pid, SIGSTOP);
	int status;
	say("it can be stopped %d", waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	kill(pid, SIGCONT);
	say("and continued %d", waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	say("ends: signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	pid = fork();
	if (pid == 0) {
		pthread_t t;
		pthread_create(&t, NULL, rest, NULL);
		pthread_t u;
		void *ends(void *p) { nap(30); syscall(SYS_exit, 9); return p; }
		pthread_cancel(t);
		pthread_join(t, NULL);
		pthread_create(&u, NULL, ends, NULL);
		syscall(SYS_exit, 7);
	}
	waitpid(pid, &status, 0);
	say("the last thread exits with 9, the first with 7: %d", WEXITSTATUS(status));
}

static int death;
static void died(int sig, siginfo_t *si, void *c) { death = si->si_pid; }

TEST(orphans, "an orphaned group that has stopped members is hung up")
{
	int *seen = shared(4096);
	int p[2];
	pipe(p);
	int session = fork();
	if (session == 0) {
		setsid();
		int middle = fork();
		if (middle == 0) {
			setpgid(0, 0);
			int child = fork();
			if (child == 0) {
				catch(SIGHUP, 0);
				catch(SIGCONT, 0);
				seen[0] = getpid();
				kill(getpid(), SIGSTOP);
				nap(1);
				seen[1] = hits[SIGHUP];
				seen[2] = hits[SIGCONT];
				seen[3] = 1;
				_exit(0);
			}
			wait_state(child, 'T');
			_exit(0); // orphans the group
		}
		waitpid(middle, NULL, 0);
		for (int i = 0; i < 2000 && !seen[3]; i++)
			nap(1);
		_exit(0);
	}
	waitpid(session, NULL, 0);
	say("SIGHUP %d, SIGCONT %d, went on %d", seen[1], seen[2], seen[3]);
	// SIGTSTP does not stop a member of an orphaned group, SIGSTOP does.
	int pid = fork();
	if (pid == 0) {
		setsid();
		seen[10] = 0;
		raise(SIGTSTP);
		raise(SIGTTIN);
		raise(SIGTTOU);
		seen[10] = 1;
		raise(SIGSTOP);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, WUNTRACED);
	say("stopped by %d after the others %d", WIFSTOPPED(status) ? WSTOPSIG(status) : -1, seen[10]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(pdeathsig, "PR_SET_PDEATHSIG")
{
	int *seen = shared(4096);
	// Of the thread that made the child, not of its process.
	int pid = fork();
	if (pid == 0) {
		void *maker(void *p)
		{
			if (fork() == 0) {
				struct sigaction sa = {.sa_sigaction = died, .sa_flags = SA_SIGINFO};
				sigaction(SIGUSR2, &sa, NULL);
				prctl(PR_SET_PDEATHSIG, SIGUSR2);
				int sig = 0;
				prctl(PR_GET_PDEATHSIG, &sig);
				seen[0] = sig;
				int grandchild = fork();
				if (grandchild == 0) {
					prctl(PR_GET_PDEATHSIG, &sig);
					seen[1] = sig;
					_exit(0);
				}
				waitpid(grandchild, NULL, 0);
				seen[2] = 1;
				for (int i = 0; i < 2000 && !death; i++)
					nap(1);
				seen[3] = death == getppid();
				seen[4] = 1;
				_exit(0);
			}
			while (!seen[2])
				nap(1);
			return NULL;
		}
		pthread_t t;
		pthread_create(&t, NULL, maker, NULL);
		pthread_join(t, NULL);
		while (!seen[4])
			nap(1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	say("set %d, a child's %d, its thread ends: from the process %d", seen[0], seen[1], seen[3]);
	err("bad signal", prctl(PR_SET_PDEATHSIG, 65));
	err("bad signal", prctl(PR_SET_PDEATHSIG, -1));
	err("none", prctl(PR_SET_PDEATHSIG, 0));
}

TEST(adopted, "PR_SET_CHILD_SUBREAPER and zombies of the dead")
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int on = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &on);
	say("set %d", on);
	int *seen = shared(4096);
	int pid = fork();
	if (pid == 0) {
		prctl(PR_GET_CHILD_SUBREAPER, &on);
		seen[0] = on;
		for (int i = 0; i < 3; i++)
			if (fork() == 0) {
				if (i == 2)
					nap(50);
				_exit(i + 1);
			}
		nap(20);
		_exit(0);
	}
	int status, sum = 0, n = 0;
	while (waitpid(-1, &status, 0) > 0)
		n++, sum += WEXITSTATUS(status);
	say("a child's %d; %d waited for, their codes %d", seen[0], n, sum);
	// Adopted by a parent that ignores SIGCHLD: gone at once.
	signal(SIGCHLD, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		signal(SIGCHLD, SIG_DFL);
		int zombie = fork();
		if (zombie == 0)
			_exit(0);
		wait_state(zombie, 'Z');
		seen[1] = zombie;
		_exit(0);
	}
	say("wait: %s", name_of(waitpid(-1, NULL, 0) < 0 ? errno : 0));
	int gone = 0;
	for (int i = 0; i < 1000 && !gone; i++, nap(1))
		gone = kill(seen[1], 0) < 0 && errno == ESRCH;
	say("the zombie is gone %d", gone);
}

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

TEST(many, "thousands of children are waited for one by one")
{
	enum { N = 2000 };
	static int pid[N];
	int p[2];
	pipe(p);
	for (int i = 0; i < N; i++) {
		pid[i] = vfork();
		if (pid[i] == 0) {
			_exit(i & 63);
		}
	}
	// A zombie is found among those that live, and those are asked for.
	int living[400];
	for (int i = 0; i < 400; i++) {
		living[i] = fork();
		if (living[i] == 0)
			for (;;)
				pause();
	}
	double began = seconds();
	int good = 0, status;
	for (int i = 0; i < 20000; i++)
		good += waitpid(living[i % 400], NULL, WNOHANG) == 0;
	say("nothing new of %d", good);
	good = 0;
	for (int i = N - 1; i >= 0; i--)
		good += waitpid(pid[i], &status, 0) == pid[i] && WEXITSTATUS(status) == (i & 63);
	say("%d of them; fast %d", good, seconds() - began < 10);
	for (int i = 0; i < 400; i++)
		kill(living[i], SIGKILL);
	for (good = 0; waitpid(-1, NULL, 0) > 0; good++)
		;
	say("and %d", good);
	err("no more", waitpid(-1, NULL, 0));
}
