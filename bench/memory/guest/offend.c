// What all offenders have in common.
#include "memory.h"

void *emptyPages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void moreDescriptors(void)
{
	struct rlimit rl;
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

// ended counts a process that was killed: not one that a limit ended, by SIGBUS.
void ended(int st)
{
	if (!WIFSIGNALED(st) || WTERMSIG(st) != SIGKILL)
		return;
	int64_t never = 0;
	atomic_compare_exchange_strong(&shared->firstKill, &never, now());
	shared->kills++;
}

// offend starts one process after another that takes what it gets. A process that gets
// no more stops itself and keeps what it has; one that was killed is followed by the next.
void offend(const struct kind *k)
{
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int st;
		pid_t pid = fork();
		if (pid == 0) {
			k->take();
			for (;;)
				raise(SIGSTOP);
		}
		if (pid < 0) {
			nap(1);
			continue;
		}
		if (waitpid(pid, &st, WUNTRACED) == pid)
			ended(st);
		while (waitpid(-1, &st, WNOHANG) > 0)
			ended(st);
	}
}
