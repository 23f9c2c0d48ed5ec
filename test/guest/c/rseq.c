// Restartable sequences: who registers, what restarts a critical section, what kills.
#include "gt.h"
#include <pthread.h>
#include <sys/rseq.h>

#define SIGNATURE 0x53053053

struct section {
	uint32_t version, flags;
	uint64_t start, size, abort;
} __attribute__((aligned(32)));

static struct rseq *mine(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

static int call(void *area, unsigned size, int flags, unsigned signature)
{
	return syscall(SYS_rseq, area, size, flags, signature);
}

// add increments *to[cpu] if the thread is still on that processor; 0: it was not, or was
// interrupted. *to lie stride bytes apart.
static int add(volatile long *to, int stride)
{
	struct rseq *r = mine();
	int cpu = *(volatile uint32_t *)&r->cpu_id_start;
	volatile long *p = (volatile long *)((char *)to + (long)cpu * stride);
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
		     ".balign 32\n"
		     "3: .long 0, 0\n"
		     ".quad 1f, 2f - 1f, 4f\n"
		     ".popsection\n"
		     "leaq 3b(%%rip), %%rax\n"
		     "movq %%rax, %[cs]\n"
		     "1: cmpl %[cpu], %[id]\n"
		     "jne %l[failed]\n"
		     "movq (%[p]), %%rax\n"
		     "incq %%rax\n"
		     "pause\npause\npause\npause\npause\npause\npause\npause\n"
		     "movq %%rax, (%[p])\n"
		     "2:\n"
		     ".pushsection __rseq_failure, \"ax\"\n"
		     ".byte 0x0f, 0xb9, 0x3d\n"
		     ".long 0x53053053\n"
		     "4: jmp %l[failed]\n"
		     ".popsection\n"
		     :
		     : [cs] "m"(r->rseq_cs), [id] "m"(r->cpu_id), [cpu] "r"(cpu), [p] "r"(p)
		     : "rax", "memory", "cc"
		     : failed);
	return 1;
failed:
	return 0;
}

// wait_inside spins in a critical section until *end is not 0 or it is aborted. A bad one has
// another signature (1), a flag (2), an abort handler inside (3), a version (4), or lies
// where nothing is (5). It reports whether it was aborted.
static int wait_inside(volatile int *in, volatile int *end, int bad)
{
	static _Thread_local struct section s;
	struct rseq *r = mine();
	uint64_t at;
	__asm__ goto("leaq 1f(%%rip), %%rax\n"
		     "movq %%rax, 8(%[s])\n"
		     "leaq 2f(%%rip), %%rcx\n"
		     "subq %%rax, %%rcx\n"
		     "movq %%rcx, 16(%[s])\n"
		     "leaq 4f(%%rip), %%rcx\n"
		     "cmpl $1, %[bad]\n"
		     "jne 5f\n"
		     "leaq 6f(%%rip), %%rcx\n"
		     "5: cmpl $3, %[bad]\n"
		     "jne 5f\n"
		     "leaq 7f(%%rip), %%rcx\n"
		     "5: movq %%rcx, 24(%[s])\n"
		     "movl $0, (%[s])\n"
		     "movl $0, 4(%[s])\n"
		     "cmpl $4, %[bad]\n"
		     "jne 5f\n"
		     "movl $1, (%[s])\n"
		     "5: cmpl $2, %[bad]\n"
		     "jne 5f\n"
		     "movl $1, 4(%[s])\n"
		     "5: movq %[s], %%rax\n"
		     "cmpl $5, %[bad]\n"
		     "jne 5f\n"
		     "movl $64, %%eax\n"
		     "5: movq %%rax, %[cs]\n"
		     "1: movl $1, (%[in])\n"
		     "jmp 7f\n"
		     ".long 0x53053053\n"
		     "7: pause\n"
		     "cmpl $0, (%[end])\n"
		     "je 7b\n"
		     "2: jmp 8f\n"
		     ".byte 0x0f, 0xb9, 0x3d\n"
		     ".long 0x53053053\n"
		     "4: jmp %l[aborted]\n"
		     ".long 0x12345678\n"
		     "6: jmp %l[aborted]\n"
		     "8:\n"
		     :
		     : [s] "r"(&s), [cs] "m"(r->rseq_cs), [in] "r"(in), [end] "r"(end), [bad] "r"(bad)
		     : "rax", "rcx", "memory", "cc"
		     : aborted);
	(void)at;
	return 0;
aborted:
	return 1;
}

// stay_inside is wait_inside of a good section, tried again if it is aborted before *in is set:
// a page fault there may take the processor away.
static int stay_inside(volatile int *in, volatile int *end)
{
	int aborted;
	do
		aborted = wait_inside(in, end, 0);
	while (aborted && !*in);
	return aborted;
}

TEST(registered, "the C library's registration")
{
	struct rseq *r = mine();
	num("is a processor", r->cpu_id < 1024 && r->cpu_id == r->cpu_id_start);
	num("section", (long)r->rseq_cs), num("flags", r->flags);
	err("again", call(r, 32, 0, SIGNATURE));
	err("other signature", call(r, 32, 0, 1));
	err("other size", call(r, 64, 0, SIGNATURE));
	err("other place", call((char *)r + 32, 32, 0, SIGNATURE));
	err("unregister: signature", call(r, 32, 1, 1));
	err("unregister: size", call(r, 33, 1, SIGNATURE));
	err("unregister: place", call((char *)r + 32, 32, 1, SIGNATURE));
	err("flags", call(r, 32, 2, SIGNATURE));
	err("unregister", call(r, 32, 1, SIGNATURE));
	num("no cpu_id", r->cpu_id == -1u), num("cpu_id_start", r->cpu_id_start);
	err("unregister again", call(r, 32, 1, SIGNATURE));
	err("odd", call((char *)r + 8, 32, 0, SIGNATURE));
	err("size", call(r, 31, 0, SIGNATURE));
	err("nowhere", call((void *)4096, 32, 0, SIGNATURE));
	err("kernel", call((void *)(1ul << 63), 32, 0, SIGNATURE));
	r->rseq_cs = 77; // of an earlier owner
	err("register", call(r, 32, 0, SIGNATURE));
	num("section", (long)r->rseq_cs), num("is here", r->cpu_id < 1024);
}

static volatile long counts[64][16] __attribute__((aligned(128)));
static int cpus(void) { return sysconf(_SC_NPROCESSORS_ONLN); }

static void *counter(void *arg)
{
	uint64_t mask;
	for (long done = 0, i = 0; done < 10000; i++) {
		done += add(&counts[0][0], sizeof counts[0]);
		if (arg && i % 1000 == 0) {
			mask = 1ull << (i / 1000) % cpus();
			syscall(SYS_sched_setaffinity, 0, 8, &mask);
		}
		if (i % 1000 == 0)
			sched_yield();
	}
	return 0;
}

static volatile sig_atomic_t ticks;
static void tick(int sig) { ticks++, add(&counts[0][1], sizeof counts[0]); }

static void count(const char *what, int wander, int timer)
{
	pthread_t id[16];
	struct itimerval it = {{0, 1500}, {0, 1500}}, none = {{0}};
	memset((void *)counts, 0, sizeof counts);
	ticks = 0;
	signal(SIGALRM, tick);
	if (timer)
		setitimer(ITIMER_REAL, &it, 0);
	for (int i = 0; i < 16; i++)
		pthread_create(&id[i], 0, counter, wander ? &id : 0);
	for (int i = 0; i < 16; i++)
		pthread_join(id[i], 0);
	setitimer(ITIMER_REAL, &none, 0);
	long sum = 0;
	for (int i = 0; i < 64; i++)
		sum += counts[i][0];
	num(what, sum);
}

TEST(counters, "counters of processors lose nothing")
{
	count("16 threads", 0, 0);
	count("that change processors", 1, 0);
	count("with signals", 0, 1);
	count("with both", 1, 1);
}

static void *elsewhere(void *arg)
{
	long wrong = 0;
	for (int i = 0; i < 600; i++) {
		int cpu = i % cpus();
		uint64_t mask = 1ull << cpu;
		syscall(SYS_sched_setaffinity, 0, 8, &mask);
		struct rseq *r = mine();
		wrong += (int)r->cpu_id != cpu || (int)r->cpu_id_start != cpu || sched_getcpu() != cpu;
	}
	return (void *)wrong;
}

TEST(number, "cpu_id follows the thread")
{
	pthread_t id[4];
	long wrong = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&id[i], 0, elsewhere, 0);
	for (int i = 0; i < 4; i++) {
		void *r;
		pthread_join(id[i], &r);
		wrong += (long)r;
	}
	num("wrong", wrong);
}

static volatile int in, end;
static void seen(int sig) {}

TEST(signals, "a signal restarts")
{
	struct itimerval it = {{0, 0}, {0, 30000}};
	signal(SIGALRM, seen);
	setitimer(ITIMER_REAL, &it, 0);
	num("aborted", wait_inside(&in, &end, 0));
}

TEST(preempted, "another thread restarts")
{
	uint64_t mask = 1;
	syscall(SYS_sched_setaffinity, 0, 8, &mask);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			;
	num("aborted", wait_inside(&in, &end, 0));
	kill(pid, SIGKILL), waitpid(pid, 0, 0);
}

static void *inside(void *arg) { return (void *)(long)stay_inside(&in, &end); }

TEST(moved, "a move to another processor restarts")
{
	// With one processor nothing moves; then the answer is the test's own.
	volatile int *shm = shared(4096);
	pid_t pid = fork();
	if (pid == 0)
		_exit(stay_inside(&shm[0], &shm[1]));
	while (!shm[0])
		sleep_ms(1);
	for (int i = 0; i < 4; i++) {
		uint64_t mask = 1ull << i % cpus();
		syscall(SYS_sched_setaffinity, pid, 8, &mask);
		sleep_ms(5);
	}
	if (cpus() == 1)
		kill(pid, SIGKILL), waitpid(pid, 0, 0), status("end", 1 << 8);
	else
		status("end", wait_for(pid));
}

TEST(barrier, "membarrier restarts")
{
	pthread_t id;
	void *r = 0;
	err("not registered", syscall(SYS_membarrier, 128, 0, 0));
	err("register", syscall(SYS_membarrier, 256, 0, 0));
	err("flags of another", syscall(SYS_membarrier, 8, 1, 0));
	err("flags", syscall(SYS_membarrier, 128, 2, 0));
	err("no such processor", syscall(SYS_membarrier, 128, 1, 4000));
	in = end = 0;
	pthread_create(&id, 0, inside, 0);
	while (!in)
		sleep_ms(1);
	int e = syscall(SYS_membarrier, 128, 0, 0);
	err("barrier", e);
	if (cpus() == 1)
		end = 1;
	pthread_join(id, &r);
	num("aborted", r != 0);
}

static const char *const wrongs[] = {0, "signature", "flag", "abort handler inside", "version", "nowhere"};

TEST(bad, "bad sections kill")
{
	for (int bad = 1; bad <= 5; bad++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct itimerval it = {{0, 0}, {0, 20000}};
			signal(SIGALRM, seen);
			setitimer(ITIMER_REAL, &it, 0);
			wait_inside(&in, &end, bad);
			_exit(3);
		}
		status(wrongs[bad], wait_for(pid));
	}
	pid_t pid = fork();
	if (pid == 0) { // its area goes away
		struct rseq *r = mine(), *area = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		call(r, 32, 1, SIGNATURE);
		if (call(area, 32, 0, SIGNATURE))
			_exit(4);
		munmap(area, 4096);
		raise(SIGUSR1);
		_exit(5);
	}
	signal(SIGUSR1, SIG_DFL);
	int st = wait_for(pid);
	num("area that is gone: killed", WIFSIGNALED(st));
}

static void *thread_area(void *arg) { return (void *)(long)(mine()->cpu_id < 1024); }
static int after_vfork;

TEST(inherited, "over fork, vfork and threads")
{
	pid_t pid = fork();
	if (pid == 0) {
		err("child: again", call(mine(), 32, 0, SIGNATURE));
		num("has a number", mine()->cpu_id < 1024);
		_exit(0);
	}
	wait_for(pid);
	if ((pid = vfork()) == 0) {
		after_vfork = syscall(SYS_rseq, mine(), 32, 1, SIGNATURE) ? errno : 0;
		_exit(0);
	}
	wait_for(pid);
	say("vfork: unregister: %s", name_of(after_vfork));
	pthread_t id;
	void *r;
	pthread_create(&id, 0, thread_area, 0);
	pthread_join(id, &r);
	num("thread's own", (long)r);
}

TEST(outside, "a section that was left is forgotten")
{
	uint64_t mask = 1;
	static volatile long one[16];
	syscall(SYS_sched_setaffinity, 0, 8, &mask);
	int there = 0;
	for (int i = 0; i < 1000 && !there; i++) // another thread may have run between
		add(one, 0), there = mine()->rseq_cs != 0;
	num("is there", there);
	signal(SIGALRM, seen);
	raise(SIGALRM);
	num("after a signal", mine()->rseq_cs != 0);
}

// edge_run makes a section the current one and executes an instruction that does not exist.
void edge_run(struct section *s, volatile uint64_t *current);
extern char edge_trap[], edge_out[], edge_abort[];
__asm__(".text\n"
	"edge_run: movq %rdi, (%rsi)\n"
	"edge_trap: ud2\n"
	"edge_out: ret\n"
	".byte 0x0f, 0xb9, 0x3d\n"
	".long 0x53053053\n"
	"edge_abort: ret\n");

static char *trapped_at;
static void trapped(int sig, siginfo_t *si, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	trapped_at = (char *)regs[REG_RIP];
	regs[REG_RIP] = (greg_t)edge_out;
}

TEST(edges, "a section begins with its first byte, and ends before its end")
{
	struct {
		const char *what;
		int start, size; // start is relative to where the thread is interrupted
	} at[] = {{"in front", 1, 8}, {"at the start", 0, 8}, {"in its last byte", -3, 4}, {"at its end", -4, 4}, {"a byte behind", -4, 3}};
	struct sigaction sa = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	sigaction(SIGILL, &sa, 0);
	for (int i = 0; i < 5; i++) {
		struct section s = {0, 0, (uint64_t)edge_trap + at[i].start, at[i].size, (uint64_t)edge_abort};
		for (trapped_at = 0; !trapped_at;) // it may be aborted before the trap
			edge_run(&s, (void *)&mine()->rseq_cs);
		say("%s: restarted %d, where it was %d, forgotten %d", at[i].what, trapped_at == edge_abort, trapped_at == edge_trap, !mine()->rseq_cs);
	}
}
