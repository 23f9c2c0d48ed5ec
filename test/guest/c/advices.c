// membarrier and process_madvise: every command and every advice, beside what was
// registered, flags, descriptors and vectors.
#include "gt.h"
#include <sys/syscall.h>

static long barrier(int cmd, unsigned flags, int cpu) { return syscall(SYS_membarrier, cmd, flags, cpu); }

static const char *outcome(long r) { return r < 0 ? name_of(errno) : "ok"; }

// RSEQ's commands are not everywhere, and later kernels have more.
static const int commands[] = {0, 1, 2, 4, 8, 16, 32, 64, 3, 5, 9, 1024, 1 << 20, INT_MIN, -1};

static void all(const char *what)
{
	char line[600];
	int n = 0;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (commands[i] != 4 && commands[i] != 16 && commands[i] != 64)
			n += sprintf(line + n, " %d %s", commands[i], outcome(commands[i] ? barrier(commands[i], 0, 0) : 0));
	say("%s:%s", what, line);
}

TEST(query, "membarrier: query and flags")
{
	say("commands %lx", barrier(0, 0, 0) & 0x7f);
	unsigned flags[] = {1, 2, 3, 0x80000000, -1u};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		for (int k = 0; k < 5; k++)
			say("command %d flags %x: %s", commands[i], flags[k], outcome(barrier(commands[i], flags[k], 0)));
	int cpus[] = {-1, 0, 1, 100000, INT_MIN};
	for (int k = 0; k < 5; k++)
		say("cpu %d: %s", cpus[k], outcome(barrier(1, 0, cpus[k])));
}

int child_main(int argc, char **argv)
{
	all("after exec");
	return 0;
}

static int on_own_stack(void *cmd)
{
	_exit(barrier((long)cmd, 0, 0) < 0);
}

TEST(registered, "membarrier: who is registered")
{
	all("nobody");
	int registers[] = {4, 16, 64};
	for (int i = 0; i < 8; i++) {
		char what[64];
		sprintf(what, "registered %x", i);
		IN_CHILD(what, {
			for (int k = 0; k < 3; k++)
				if (i >> k & 1)
					say("register %d: %s", registers[k], outcome(barrier(registers[k], 0, 0)));
			all("then");
			IN_CHILD("forked", all("in the child"));
		});
	}
	IN_CHILD("exec", {
		barrier(16, 0, 0);
		execl("/proc/self/exe", "advices", "child", NULL);
	});
	IN_CHILD("vfork", {
		char *stack = malloc(1 << 16);
		int pid = clone(on_own_stack, stack + (1 << 16), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)16L);
		wait_for(pid);
		all("one with the same memory registered");
	});
}

static long advise(int fd, struct iovec *v, size_t n, int advice, unsigned flags) { return syscall(SYS_process_madvise, fd, v, n, advice, flags); }

static int pidfd(pid_t pid) { return syscall(SYS_pidfd_open, pid, 0); }

#define PAGE 4096L

TEST(advised, "process_madvise")
{
	char *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 16 * PAGE);
	munmap(p + 8 * PAGE, PAGE);
	int hold[2];
	char c;
	pipe(hold);
	pid_t other = fork();
	if (other == 0)
		close(hold[1]), read(hold[0], &c, 1), _exit(0);
	pid_t dead = FORK(_exit(0)), reaped = FORK(_exit(0));
	int gone = pidfd(reaped), zombie = pidfd(dead), fd = pidfd(other);
	wait_for(reaped), settle(other);
	siginfo_t info;
	waitid(P_PID, dead, &info, WEXITED | WNOWAIT);
	// Only what is a hint may be said of others; what one says of oneself came later.
	int advices[] = {0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 100, 101, 102, -1};
	struct iovec one = {p, PAGE};
	for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
		say("advice %d: %s", advices[i], outcome(advise(fd, &one, 1, advices[i], 0)));
	int null = open("/dev/null", O_RDWR), proc = open("/proc/self", O_RDONLY);
	struct { const char *what; int fd; } fds[] = {{"another", fd}, {"zombie", zombie}, {"gone", gone}, {"none", -1}, {"a file", null}, {"/proc/self", proc}};
	struct iovec none = {NULL, 0}, bad = {p, -1}, odd = {p + 1, PAGE}, kernel = {(void *)0xffff800000000000, PAGE}, high = {(void *)0x7ffffffff000, 4 * PAGE},
		     hole = {p + 7 * PAGE, 3 * PAGE}, absent = {p + 8 * PAGE, PAGE}, part = {p, 100};
	struct iovec two[] = {{p, PAGE}, {p + PAGE, PAGE}}, second_odd[] = {{p, PAGE}, {p + PAGE + 1, PAGE}}, second_absent[] = {{p, 2 * PAGE}, {p + 8 * PAGE, PAGE}, {p, PAGE}},
		     empty_between[] = {{p, PAGE}, {NULL, 0}, {p, PAGE}}, first_bad[] = {{p + 1, PAGE}, {p, PAGE}};
	struct { const char *what; struct iovec *v; size_t n; } vectors[] = {
		{"one", &one, 1}, {"nothing", &one, 0}, {"an empty one", &none, 1}, {"a negative length", &bad, 1}, {"an odd address", &odd, 1}, 
		{"the kernel's", &kernel, 1}, {"beyond the end", &high, 1}, {"a hole", &hole, 1}, {"absent", &absent, 1}, {"a part of a page", &part, 1}, {"two", two, 2},
		{"the second odd", second_odd, 2}, {"the second absent", second_absent, 3}, {"an empty one between", empty_between, 3}, {"the first odd", first_bad, 2},
		{"bad address", (void *)8, 1}, {"no address", NULL, 1}, {"no address, nothing", NULL, 0}, {"too many", &one, 1025}, {"far too many", &one, -1UL},
	};
	int some[] = {MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED, MADV_HUGEPAGE, -1};
	for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
		for (size_t k = 0; k < 3; k++) {
			long r = advise(fd, vectors[v].v, vectors[v].n, some[k], 0);
			say("%s, advice %d: %ld %s", vectors[v].what, some[k], r, outcome(r));
		}
	for (size_t f = 0; f < sizeof fds / sizeof *fds; f++)
		for (int k = 0; k < 5; k++) {
			if (k == 1 && fds[f].fd == zombie)
				continue; // later kernels look for its memory first
			struct iovec *v[] = {&one, &one, &odd, (void *)8, &one};
			int advice[] = {MADV_COLD, -1, MADV_COLD, -1, MADV_COLD};
			long r = advise(fds[f].fd, v[k], 1, advice[k], k == 4);
			say("%s, %d: %ld %s", fds[f].what, k, r, outcome(r));
		}
	IN_CHILD("as another", setresuid(1000, 1000, 1000); for (size_t f = 0; f < 4; f++) say("%s: %s", fds[f].what, outcome(advise(fds[f].fd, &one, 1, MADV_COLD, 0))););
	memset(p, 2, PAGE);
	say("still %d", p[0]);
	close(hold[1]);
}
