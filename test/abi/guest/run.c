// Runs the cases of a table, each on a new subject, in children that may die or
// hang, and prints the kinds that answered the same together.
#include "abi.h"
#include <setjmp.h>

#define MAX_KINDS 200
#define ROOM 131072 // for the results of a call on a kind

// What a child tells its parent, who goes on behind the case that killed it.
struct progress {
	int kind, item; // where the child is
	int open;       // a case has begun
	int done;
	unsigned long beats;
	char text[MAX_KINDS][ROOM];
	int used[MAX_KINDS];
};

static struct progress *log_, *logs[2];
static int target, counter, ran;
static volatile sig_atomic_t alarms, caught;
static sigjmp_buf fault;
static volatile sig_atomic_t in_case;
int as_user;
char *buffer, *bad;

static void append(const char *format, va_list ap)
{
	int *used = &log_->used[log_->kind], room = ROOM - *used;
	int n = vsnprintf(log_->text[log_->kind] + *used, room, format, ap);
	*used += n < room ? n : room - 1;
}

static int first; // result of its case

static void add(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	append(format, ap);
	va_end(ap);
}

static const char *prefix = "";

void want_prefix(const char *p)
{
	prefix = p;
}

// want names the next case and says whether it is the one to run.
int want(const char *format, ...)
{
	if (counter++ != target)
		return 0;
	va_list ap;
	va_start(ap, format);
	add(" %s", prefix);
	append(format, ap);
	add("=");
	va_end(ap);
	ran = 1;
	log_->open = 1;
	errno = 0;
	return 1;
}

// another begins the next result of a case that has several.
void another(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	add(" %s", prefix);
	append(format, ap);
	va_end(ap);
	add("=");
	first = 1;
}

void note(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (!first)
		add(",");
	first = 0;
	append(format, ap);
	va_end(ap);
}

// result notes what a call gave, and the signals that came with it.
long result(long rc)
{
	int e = errno;
	if (rc == -1 && e == EINTR && alarms)
		note("blocks");
	else if (rc < 0 && rc >= -4095)
		note("%s", error_name(rc == -1 ? e : (int)-rc));
	else
		note("%ld", rc);
	if (caught)
		note("SIG%s", sigabbrev_np(caught));
	caught = 0;
	errno = e;
	return rc;
}

static void on_signal(int sig)
{
	if (sig == SIGALRM) {
		alarms++;
		return;
	}
	caught = sig;
	if ((sig == SIGSEGV || sig == SIGBUS) && in_case)
		siglongjmp(fault, 1);
}

static void catch(void)
{
	static const int caught_signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGPIPE, SIGXFSZ, SIGIO, SIGURG};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (unsigned i = 0; i < sizeof caught_signals / sizeof *caught_signals; i++)
		sigaction(caught_signals[i], &sa, NULL);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		signal(i, SIG_IGN);
	static const int ignored[] = {SIGHUP, SIGTTIN, SIGTTOU, SIGTSTP, SIGUSR1, SIGUSR2};
	for (unsigned i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
}

void as_root(void)
{
	int e = errno;
	if (as_user)
		syscall(SYS_setresuid, -1, 0, -1);
	errno = e;
}

void as_case(void)
{
	if (as_user) {
		syscall(SYS_setresgid, as_user, as_user, 0);
		syscall(SYS_setresuid, as_user, as_user, 0);
	}
}

static sigjmp_buf unmade;
static const char *unmade_why;
static int unmade_error;

// must ends the making of a subject that cannot be made.
void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	unmade_why = what;
	unmade_error = errno;
	siglongjmp(unmade, 1);
}

static void alarm_each(long ms)
{
	struct itimerval it = {{0, ms * 1000}, {0, ms * 1000}};
	setitimer(ITIMER_REAL, &it, NULL);
}

// one runs a case and says whether there was one.
static int one(const table *t, const kind *k, const call *c)
{
	subject s = {-1, -1, -1, 0};
	memset(buffer, '.', 4096);
	counter = ran = caught = 0;
	alarms = 0;
	first = 1;
	alarm_each(100);
	if (sigsetjmp(unmade, 1) == 0) {
		k->make(&s);
	} else {
		add(" unmade=%s:%s", unmade_why, error_name(unmade_error));
		return 0;
	}
	if (t->before)
		t->before(&s);
	alarms = 0;
	as_case();
	if (sigsetjmp(fault, 1) == 0) {
		in_case = 1;
		c->run(&s);
	} else {
		result(0);
	}
	in_case = 0;
	as_root();
	if (ran && t->after)
		t->after(&s);
	log_->open = 0;
	syscall(SYS_close_range, 3, ~0u, 0);
	return ran;
}

static void child(const table *t, const call *c, const char *only_kind)
{
	catch();
	if (chdir(work) < 0)
		_exit(90);
	if (as_user)
		syscall(SYS_setgroups, 0, NULL);
	for (; t->kinds[log_->kind].name; log_->kind++, log_->item = 0) {
		if (only_kind && strcmp(only_kind, t->kinds[log_->kind].name))
			continue;
		for (;; log_->item++) {
			target = log_->item;
			log_->beats++;
			if (!one(t, &t->kinds[log_->kind], c))
				break;
		}
		if (c->each) {
			log_->kind++, log_->item = 0;
			_exit(0);
		}
	}
	log_->done = 1;
	_exit(0);
}

// attend waits for a child. One that no longer gets on is killed.
static int attend(pid_t pid)
{
	unsigned long beats = log_->beats;
	int status;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		struct timespec ts = {20, 0};
		if (sigtimedwait(&set, NULL, &ts) == SIGCHLD)
			continue; // this child's, or one before it
		if (beats == log_->beats) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		beats = log_->beats;
	}
}

static void run_call(const table *t, const call *c, const char *only_kind)
{
	memset(log_, 0, offsetof(struct progress, text));
	memset(log_->used, 0, sizeof log_->used);
	while (!log_->done) {
		pid_t pid = fork();
		if (pid == 0)
			child(t, c, only_kind);
		int status = attend(pid);
		if (status == 0)
			continue;
		if (!log_->open)
			add(" dead=");
		if (status == -1)
			add("HANGS");
		else if (WIFSIGNALED(status))
			add("KILLED:%s", sigabbrev_np(WTERMSIG(status)));
		else
			add("EXIT:%d", WEXITSTATUS(status));
		log_->open = 0;
		log_->item++;
		log_->beats++;
	}
}

// print tells the results, once for all kinds that have them.
static void print(const table *t, const call *c)
{
	static char line[ROOM + 16384];
	char printed[MAX_KINDS][2] = {};
	printf("@ %s %s%s\n", t->name, c->name, c->users ? " +1000" : "");
	for (int i = 0; t->kinds[i].name; i++) {
		for (int u = 0; u <= c->users; u++) {
			if (printed[i][u] || !logs[u]->used[i])
				continue;
			const char *text = logs[u]->text[i];
			int at = 0;
			for (int j = i; t->kinds[j].name; j++) {
				int same[2] = {0, 0};
				for (int v = 0; v <= c->users; v++)
					if (!printed[j][v] && logs[v]->used[j] && !strcmp(logs[v]->text[j], text))
						same[v] = printed[j][v] = 1;
				if (same[0] && same[1])
					at += sprintf(line + at, "%s ", t->kinds[j].name);
				else if (same[0] || same[1])
					at += sprintf(line + at, c->users ? "%s@%d " : "%s ", t->kinds[j].name, same[0] ? 0 : 1000);
			}
			printf("%s|%s\n", line, text);
		}
	}
	fflush(stdout);
}

// make_buffers puts them where they are on every machine and in every run: some calls take
// an address for a number.
void make_buffers(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	buffer = mmap((void *)0x20000000, BUFFER, PROT_READ | PROT_WRITE, flags, -1, 0);
	char *last = mmap((void *)0x30000000, 8192, PROT_READ | PROT_WRITE, flags, -1, 0);
	bad = last + 4096;
	mprotect(bad, 4096, PROT_NONE);
}

void run_table(const table *t, const char *only_call, const char *only_kind)
{
	for (int u = 0; u < 2 && !logs[u]; u++)
		logs[u] = mmap(NULL, sizeof(struct progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (const call *c = t->calls; c->name; c++) {
		if (only_call && strcmp(only_call, c->name))
			continue;
		for (int u = 0; u <= c->users; u++) {
			log_ = logs[u];
			as_user = u ? 1000 : 0;
			sigprocmask(SIG_BLOCK, &set, NULL);
			run_call(t, c, only_kind);
		}
		print(t, c);
	}
}
