// The table of signals: each call that waits is met by each kind of signal, and it is
// told how it goes on. Calls wait side by side, since most of the time passes so.
#include "blocking.h"

// What comes while a call waits.
static const struct scenario {
	const char *name;
	int signal, flags; // a handler with these flags; -1 none
	int ignored, stop, masked, twice;
} scenarios[] = {
	{"none", 0, -1},
	{"handler", SIGUSR1, 0},
	{"restart", SIGUSR1, SA_RESTART},
	{"twice", SIGUSR1, SA_RESTART, .twice = 1},
	{"ignored", SIGUSR1, -1, .ignored = 1},
	{"default", SIGCHLD, -1},
	{"masked", SIGUSR1, 0, .masked = 1},
	{"stop", 0, -1, .stop = 1},
	{"stop-handler", SIGCONT, 0, .stop = 1},
	{"stop-restart", SIGCONT, SA_RESTART, .stop = 1},
	{"kill", SIGTERM, -1},
};
#define SCENARIOS (int)(sizeof scenarios / sizeof *scenarios)

// What the process that waits and the one that watches share.
struct meeting {
	volatile int begun, ended, handled;
	long result;
	int error;
	struct timespec left;
	char text[256];
};

static struct meeting *here;

static void handle(int sig)
{
	here->handled++;
}

static void waiter(const struct scenario *sc, const blocking *b, wait_state *w)
{
	struct sigaction sa = {.sa_handler = sc->ignored ? SIG_IGN : handle, .sa_flags = sc->flags};
	if (sc->signal && (sc->flags >= 0 || sc->ignored))
		sigaction(sc->signal, &sa, NULL);
	sigset_t set;
	sigemptyset(&set);
	if (sc->masked)
		sigaddset(&set, sc->signal);
	if (b->release && !strcmp(b->name, "sigtimedwait"))
		sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_SETMASK, &set, NULL);
	w->left = (struct timespec){0, 0};
	here->begun = 1;
	here->result = b->call(w);
	here->error = errno;
	here->left = w->left;
	here->ended = 1;
	_exit(0);
}

static char state_of(pid_t pid)
{
	char name[64], text[256];
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	int fd = open(name, O_RDONLY);
	long n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *end = strrchr(text, ')');
	return end ? end[2] : '?';
}

// settle waits until the process sleeps, or has ended.
static void settle(pid_t pid)
{
	for (int still = 0, i = 0; still < 5 && i < 2000 && !here->ended; i++) {
		usleep(4000);
		char c = state_of(pid);
		if (c == 'Z' || c == '?')
			return;
		still = here->begun && c == 'S' ? still + 1 : 0;
	}
}

static void await_state(pid_t pid, char c)
{
	for (int i = 0; i < 2000 && state_of(pid) != c; i++)
		usleep(2000);
}

static void disturb(const struct scenario *sc, pid_t pid)
{
	if (sc->stop) {
		kill(pid, SIGSTOP);
		await_state(pid, 'T');
		kill(pid, SIGCONT);
	} else if (sc->signal) {
		kill(pid, sc->signal);
	}
	if (sc->flags >= 0 && !sc->masked)
		for (int i = 0; i < 2000 && !here->handled && state_of(pid) != 'Z'; i++)
			usleep(1000);
	settle(pid);
}

// meet has one call meet one signal.
static void meet(const struct scenario *sc, const blocking *b)
{
	wait_state w = {{-1, -1, -1, -1}};
	int status, at = 0;
	b->set_up(&w);
	pid_t pid = fork();
	if (pid == 0)
		waiter(sc, b, &w);
	w.other = pid;
	settle(pid);
	if (here->ended)
		at += sprintf(here->text + at, "early,");
	disturb(sc, pid);
	if (sc->twice && !here->ended)
		here->handled = 0, disturb(sc, pid), here->handled++;
	int alive = !here->ended && state_of(pid) != 'Z' && state_of(pid) != '?';
	if (alive) {
		at += sprintf(here->text + at, "waits,");
		if (b->release)
			b->release(&w);
		else
			kill(pid, SIGKILL);
	}
	for (int i = 0; i < 1500 && waitpid(pid, &status, WNOHANG) != pid; i++) {
		usleep(2000);
		if (i == 1499)
			at += sprintf(here->text + at, "HANGS,"), kill(pid, SIGKILL), waitpid(pid, &status, 0);
	}
	if (here->ended)
		at += here->result < 0 ? sprintf(here->text + at, "%s", error_name(here->error)) : sprintf(here->text + at, "%ld", here->result);
	else
		at += sprintf(here->text + at, WIFSIGNALED(status) ? "killed:%s" : "exit", sigabbrev_np(WTERMSIG(status)));
	if (here->handled)
		at += sprintf(here->text + at, ",handled:%d", here->handled);
	if (here->left.tv_sec || here->left.tv_nsec)
		sprintf(here->text + at, ",left");
}

void signals_run(const char *only)
{
	enum { MOST = 80 };
	struct meeting *all = mmap(NULL, MOST * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[MOST];
	if (chdir(work) < 0)
		return;
	for (int i = 0; i < SCENARIOS; i++) {
		if (only && *only && strcmp(only, scenarios[i].name))
			continue;
		memset(all, 0, MOST * sizeof *all);
		printf("@ signals %s\n", scenarios[i].name);
		fflush(stdout);
		for (int b = 0; blocking_calls[b].name; b++) {
			pids[b] = fork();
			if (pids[b] == 0) {
				signal(SIGPIPE, SIG_IGN);
				here = &all[b];
				meet(&scenarios[i], &blocking_calls[b]);
				_exit(0);
			}
		}
		for (int b = 0; blocking_calls[b].name; b++) {
			waitpid(pids[b], NULL, 0);
			printf("%s | %s=%s\n", blocking_calls[b].name, scenarios[i].name, all[b].text);
		}
		fflush(stdout);
	}
}
