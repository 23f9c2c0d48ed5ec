// Program registers tests that x87, SSE, AVX and flags survive system calls,
// page faults, switches between processes, and signals.
#include "gt.h"

#include <fenv.h>
#include <immintrin.h>
#include <pthread.h>

static int have_avx;

// pattern fills all vector registers with what a seed gives.
#define LOAD(n) __asm__ volatile("movdqu (%0), %%xmm" #n ::"r"(v + 2 * n))
#define STORE(n) __asm__ volatile("movdqu %%xmm" #n ", (%0)" ::"r"(v + 2 * n) : "memory")
#define LOADY(n) __asm__ volatile("vmovdqu (%0), %%ymm" #n ::"r"(v + 4 * n))
#define STOREY(n) __asm__ volatile("vmovdqu %%ymm" #n ", (%0)" ::"r"(v + 4 * n) : "memory")
#define ALL(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#define ALLS(f) f(0); f(1); f(2); f(3); f(4); f(5); f(6); f(7); f(8); f(9); f(10); f(11); f(12); f(13); f(14); f(15)

// once loads every vector register and x87, runs do_this in assembly terms (a
// raw system call), and counts the registers that changed.
__attribute__((target("avx"), noinline)) static int vectors(uint64_t seed, long nr, long a, long b)
{
	uint64_t in[64], v[64];
	for (int i = 0; i < 64; i++)
		in[i] = v[i] = seed * 0x9e3779b97f4a7c15 + (uint64_t)i * 0x123456789abcdef;
	long rc;
	if (have_avx) {
		ALLS(LOADY);
		__asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(a), "S"(b), "d"(0) : "rcx", "r11", "memory");
		ALLS(STOREY);
	} else {
		ALLS(LOAD);
		__asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(a), "S"(b), "d"(0) : "rcx", "r11", "memory");
		ALLS(STORE);
	}
	int bad = 0;
	for (int i = 0; i < (have_avx ? 64 : 32); i++)
		bad += v[i] != in[i];
	return bad;
}

// spin loads every vector register and computes without system calls until the
// flag is set, so that only interrupts and signals come in between.
__attribute__((target("avx"), noinline)) static int spinning(uint64_t seed, volatile int *stop, long rounds)
{
	uint64_t in[64], v[64];
	int bad = 0;
	while (!*stop && rounds-- > 0) {
		for (int i = 0; i < 64; i++)
			in[i] = v[i] = ++seed * 0x9e3779b97f4a7c15;
		if (have_avx) {
			ALLS(LOADY);
			for (int i = 0; i < 2000; i++)
				__asm__ volatile("" ::: "memory");
			ALLS(STOREY);
		} else {
			ALLS(LOAD);
			for (int i = 0; i < 2000; i++)
				__asm__ volatile("" ::: "memory");
			ALLS(STORE);
		}
		for (int i = 0; i < (have_avx ? 64 : 32); i++)
			bad += v[i] != in[i];
	}
	return bad;
}

__attribute__((constructor)) static void detect(void) { have_avx = __builtin_cpu_supports("avx"); }

TEST(calls, "vector registers over system calls")
{
	int bad = 0;
	for (int i = 0; i < 1000; i++)
		bad += vectors((uint64_t)i, SYS_getpid, 0, 0);
	say("getpid: %d changed", bad);
	for (int i = 0; i < 200; i++)
		bad += vectors((uint64_t)i, SYS_sched_yield, 0, 0);
	say("sched_yield: %d changed", bad);
	struct timespec ts = {0, 100000};
	for (int i = 0; i < 50; i++)
		bad += vectors((uint64_t)i, SYS_nanosleep, (long)&ts, 0);
	say("nanosleep: %d changed", bad);
}

TEST(switches, "over switches between processes")
{
	int *bad = shared(4096);
	pid_t pids[4];
	for (int p = 0; p < 4; p++)
		pids[p] = FORK({
			for (int i = 0; i < 500; i++)
				bad[p] += vectors((uint64_t)(p * 1000 + i), SYS_sched_yield, 0, 0);
			int go = 0;
			bad[p] += spinning((uint64_t)p * 77777, &go, 20000);
		});
	for (int p = 0; p < 4; p++)
		wait_for(pids[p]);
	say("changed: %d %d %d %d", bad[0], bad[1], bad[2], bad[3]);
}

static volatile int hits, stop;

static void clobber(int sig)
{
	(void)sig;
	static int n;
	uint64_t v[64];
	for (int i = 0; i < 64; i++)
		v[i] = (uint64_t)n++;
	if (have_avx) {
		ALLS(LOADY);
		__asm__ volatile("vzeroall");
	} else {
		ALLS(LOAD);
	}
	fesetround(FE_UPWARD);
	__asm__ volatile("fninit\n\tfld1\n\tfldpi\n\tfld1\n\tstd\n\tcld");
	if (++hits == 100)
		stop = 1;
}

TEST(signals, "over signals")
{
	struct sigaction sa = {.sa_handler = clobber, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &sa, NULL);
	struct itimerval it = {{0, 1000}, {0, 1000}};
	fesetround(FE_DOWNWARD);
	setitimer(ITIMER_REAL, &it, NULL);
	int bad = spinning(42, &stop, 1 << 20);
	it = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &it, NULL);
	say("handlers ran %d, changed %d, rounding mode kept %d", hits >= 100, bad, fegetround() == FE_DOWNWARD);
}

static long double x87(long double x, int rounds)
{
	for (int i = 0; i < rounds; i++)
		__asm__ volatile("fldt %0\n\tfsqrt\n\tfld1\n\tfaddp\n\tfstpt %0" : "+m"(x)::"st");
	return x;
}

TEST(stack87, "the x87 stack and control words")
{
	// The stack stays loaded over calls and switches.
	long double out[8];
	__asm__ volatile("fninit\n\tfld1\n\tfldpi\n\tfldl2e\n\tfldln2\n\tfldlg2\n\tfldl2t\n\tfldz\n\tfld1");
	for (int i = 0; i < 20; i++)
		syscall(SYS_sched_yield);
	struct timespec ts = {0, 1000000};
	syscall(SYS_nanosleep, &ts, NULL);
	for (int i = 0; i < 8; i++)
		__asm__ volatile("fstpt %0" : "=m"(out[i]));
	for (int i = 0; i < 8; i++)
		say("%.15Lf", out[i]);
	uint16_t cw = 0x0f7f, got;
	uint32_t mx = 0x7f80, gotmx;
	__asm__ volatile("fldcw %0\n\tldmxcsr %1" ::"m"(cw), "m"(mx));
	for (int i = 0; i < 20; i++)
		syscall(SYS_sched_yield);
	syscall(SYS_nanosleep, &ts, NULL);
	__asm__ volatile("fnstcw %0\n\tstmxcsr %1" : "=m"(got), "=m"(gotmx));
	say("control words %#x %#x", got, gotmx);
	IN_CHILD("fork inherits them", {
		__asm__ volatile("fnstcw %0\n\tstmxcsr %1" : "=m"(got), "=m"(gotmx));
		say("control words %#x %#x", got, gotmx);
	});
	cw = 0x37f, mx = 0x1f80;
	__asm__ volatile("fldcw %0\n\tldmxcsr %1" ::"m"(cw), "m"(mx));
	long double *sum = shared(4096);
	pid_t pids[3];
	for (int p = 0; p < 3; p++)
		pids[p] = FORK(sum[p] = x87(p + 0.5L, 300000));
	for (int p = 0; p < 3; p++)
		wait_for(pids[p]);
	say("three computed %.12Lf %.12Lf %.12Lf", sum[0], sum[1], sum[2]);
}

static void on_fpe(int sig, siginfo_t *info, void *context)
{
	(void)context;
	say("SIG%s code %d", sigabbrev_np(sig), info->si_code);
	_exit(0);
}

// TCG raises no SSE exceptions, so only x87 is tested.
TEST(exceptions, "floating-point exceptions")
{
	struct sigaction sa = {.sa_sigaction = on_fpe, .sa_flags = SA_SIGINFO};
	sigaction(SIGFPE, &sa, NULL);
	volatile double zero = 0, r;
	IN_CHILD("x87 division by zero", {
		uint16_t cw = 0x37f & ~4;
		__asm__ volatile("fldcw %0\n\tfld1\n\tfldz\n\tfdivrp\n\tfwait" ::"m"(cw));
	});
	r = 1 / zero;
	say("masked: infinite %d", r > 1e300);
}


TEST(flags, "flags over a system call")
{
	unsigned long before, after;
	__asm__ volatile("std\n\tstc\n\tpushf\n\tpop %0\n\tmov $39, %%eax\n\tsyscall\n\tpushf\n\tpop %1\n\tcld"
			 : "=&r"(before), "=&r"(after)::"rax", "rcx", "r11", "cc", "memory");
	say("the same: %d, direction %lu, carry %lu", before == after, after >> 10 & 1, after & 1);
	long rcx, r11, next;
	__asm__ volatile("lea 1f(%%rip), %2\n\tmov $39, %%eax\n\tsyscall\n1:\tmov %%rcx, %0\n\tmov %%r11, %1"
			 : "=&r"(rcx), "=&r"(r11), "=&r"(next)::"rax", "rcx", "r11", "cc", "memory");
	say("RCX is the return address: %d, R11 the flags: %d", rcx == next, (r11 & 0x200) != 0);
	// Flags that a program may set but no kernel may run with.
	__asm__ volatile("pushf\n\torq $0x40000, (%%rsp)\n\tpopf\n\tmov $39, %%eax\n\tsyscall\n\tpushf\n\tpop %0\n\tpushf\n\tandq $~0x40000, (%%rsp)\n\tpopf"
			 : "=&r"(after)::"rax", "rcx", "r11", "cc", "memory");
	say("alignment check kept: %lu", after >> 18 & 1);
	__asm__ volatile("pushf\n\torq $0x4000, (%%rsp)\n\tpopf\n\tmov $39, %%eax\n\tsyscall\n\tpushf\n\tpop %0\n\tpushf\n\tandq $~0x4000, (%%rsp)\n\tpopf"
			 : "=&r"(after)::"rax", "rcx", "r11", "cc", "memory");
	say("nested task survived");
}

static void leave(int sig) { _exit(sig); }

// The kernel must not compute with a program's direction flag: its string
// instructions would run backwards over its own memory.
TEST(direction, "page faults and interrupts with the direction flag set")
{
	enum { pages = 64 };
	long sum = 0;
	for (int round = 0; round < 200; round++) {
		char *p = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			_exit(5);
		memset(p, 1, pages / 2 * 4096);
		pid_t child = FORK(for (int i = 0; i < pages; i++) // copies of pages, and fresh ones
			__asm__ volatile("std\n\tincb (%0)\n\tcld" ::"r"(p + i * 4096) : "memory"));
		for (int i = 0; i < pages; i++)
			__asm__ volatile("std\n\tincb (%0)\n\tcld" ::"r"(p + i * 4096) : "memory");
		wait_for(child);
		for (int i = 0; i < pages; i++)
			sum += p[i * 4096] + p[i * 4096 + 4095];
		munmap(p, pages * 4096);
	}
	say("sum %ld", sum);
	int died = 0;
	for (int i = 0; i < 300; i++) { // the kernel ends a process, or makes a signal's frame, on behalf of an exception
		pid_t child = FORK({
			if (i & 1)
				signal(SIGSEGV, leave);
			__asm__ volatile("std\n\tmov (%0), %%eax" ::"r"(8) : "eax");
		});
		int status = 0;
		waitpid(child, &status, 0);
		died += i & 1 ? WIFEXITED(status) : WIFSIGNALED(status);
	}
	say("exceptions: %d", died);
	unsigned long flags;
	__asm__ volatile("std\n\tmov $200000000, %%rcx\n1:\tdec %%rcx\n\tjnz 1b\n\tpushf\n\tpop %0\n\tcld" : "=r"(flags)::"rcx", "cc");
	say("over interrupts: kept %lu", flags >> 10 & 1);
	__asm__ volatile("pushf\n\torq $0x40000, (%%rsp)\n\tpopf\n\tmov $20000000, %%rcx\n1:\tdec %%rcx\n\tjnz 1b\n\tpushf\n\tpop %0\n\tpushf\n\tandq $~0x40000, (%%rsp)\n\tpopf"
			 : "=r"(flags)::"rcx", "cc");
	say("alignment check over interrupts: kept %lu", flags >> 18 & 1);
}

TEST(segments, "segments")
{
	unsigned short cs, ss, ds, es;
	__asm__ volatile("mov %%cs, %0\n\tmov %%ss, %1\n\tmov %%ds, %2\n\tmov %%es, %3" : "=r"(cs), "=r"(ss), "=r"(ds), "=r"(es));
	say("cs %#x ss %#x ds %#x es %#x", cs, ss, ds, es);
	IN_CHILD("other selectors and a system call", {
		__asm__ volatile("mov %0, %%ds\n\tmov %0, %%es\n\tmov %0, %%fs\n\tmov %0, %%gs" ::"r"((short)0x2b));
		long rc;
		__asm__ volatile("mov $39, %%eax\n\tsyscall\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall" : "=a"(rc)::"rcx", "r11", "rdi");
	});
	IN_CHILD("system call at the end of user space", {
		char *p = mmap((void *)0x7fffffffe000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (p == MAP_FAILED)
			_exit(5);
		p[4094] = 0x0f, p[4095] = 0x05; // the return address is the first beyond
		__asm__ volatile("mov $39, %%eax\n\tjmp *%0" ::"r"(p + 4094) : "rax", "memory");
	});
}

static void selector_fault(int sig, siginfo_t *info, void *context)
{
	say("  SIG%s code %d address %d", sigabbrev_np(sig), info->si_code, info->si_addr != NULL);
	_exit(0);
}

// far_return leaves for another code segment and stack segment.
static void far_return(unsigned long cs, unsigned long ss)
{
	struct sigaction sa = {.sa_sigaction = selector_fault, .sa_flags = SA_SIGINFO};
	static const int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
	for (int i = 0; i < 5; i++)
		sigaction(all[i], &sa, NULL);
	alarm(5);
	__asm__ volatile("mov %%rsp, %%rcx\n\tpush %1\n\tpush %%rcx\n\tpushf\n\tpush %0\n\tlea 1f(%%rip), %%rdx\n\tpush %%rdx\n\tiretq\n1:" ::"r"(cs), "r"(ss) : "rcx", "rdx", "memory");
	say("  it went on");
	_exit(0);
}

TEST(selectors, "iretq to bad selectors")
{
	static const struct { const char *what; unsigned long cs, ss; } cases[] = {
		{"no code segment", 0, 0x2b}, {"the kernel's code", 0x10, 0x2b}, {"data as code", 0x2b, 0x2b},
		{"beyond the table", 0x1238 | 3, 0x2b}, {"a local one", 0x37, 0x2b}, {"no stack segment", 0x33, 0},
		{"the kernel's stack", 0x33, 0x18}, {"code as stack", 0x33, 0x33}, {"a stack beyond the table", 0x33, 0x123b},
		{"privilege 0", 0x30, 0x2b}, {"the task's", 0x43, 0x2b}, {"the last", 0xffff, 0x2b}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		IN_CHILD(cases[i].what, far_return(cases[i].cs, cases[i].ss));
}
