// Program signals tests delivery, masks, frames and faults.
#include "gt.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/signalfd.h>
#include <ucontext.h>

#pragma GCC diagnostic ignored "-Warray-bounds"

enum { page = 4096 };

static volatile int count, nested, order[64];
static volatile siginfo_t seen;
static volatile uintptr_t frame;

static void counting(int sig) { order[count++ % 64] = sig; }

static void remember(int sig, siginfo_t *info, void *context)
{
	(void)context;
	order[count++ % 64] = sig;
	*(siginfo_t *)&seen = *info;
	frame = (uintptr_t)__builtin_frame_address(0);
}

static void handle(int sig, void (*f)(int), int flags)
{
	struct sigaction sa = {.sa_handler = f, .sa_flags = flags};
	must(sigaction(sig, &sa, NULL), "sigaction");
}

static void handle_info(int sig, void (*f)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = {.sa_sigaction = f, .sa_flags = flags | SA_SIGINFO};
	must(sigaction(sig, &sa, NULL), "sigaction");
}

static sigset_t set_of(int a, int b)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, a);
	if (b)
		sigaddset(&s, b);
	return s;
}

static void block(int a, int b)
{
	sigset_t s = set_of(a, b);
	sigprocmask(SIG_BLOCK, &s, NULL);
}

static void unblock(int a, int b)
{
	sigset_t s = set_of(a, b);
	sigprocmask(SIG_UNBLOCK, &s, NULL);
}

TEST(basic, "handlers")
{
	handle(SIGUSR1, counting, 0);
	raise(SIGUSR1), raise(SIGUSR1);
	say("handled %d", count);
	handle_info(SIGUSR2, remember, 0);
	kill(getpid(), SIGUSR2);
	say("signo %d code %d from us %d uid %d", seen.si_signo, seen.si_code, seen.si_pid == getpid(), seen.si_uid == getuid());
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
	say("tgkill: code %d", seen.si_code);
	sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 4711});
	say("sigqueue: code %d value %d", seen.si_code, seen.si_value.sival_int);
	handle(SIGUSR1, counting, SA_RESETHAND);
	raise(SIGUSR1);
	struct sigaction sa;
	sigaction(SIGUSR1, NULL, &sa);
	say("reset after one: %d", sa.sa_handler == SIG_DFL);
	IN_CHILD("child with defaults", raise(SIGUSR1));
	err("handler for SIGKILL", sigaction(SIGKILL, &sa, NULL));
	err("handler for SIGSTOP", sigaction(SIGSTOP, &sa, NULL));
	err("asking for SIGKILL", sigaction(SIGKILL, NULL, &sa));
	err("signal 65", syscall(SYS_rt_sigaction, 65, &sa, NULL, 8));
	err("mask of a bad size", syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 16));
	err("wild action", syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8));
	handle(SIGUSR1, SIG_IGN, 0);
	raise(SIGUSR1);
	say("ignored");
}

static void nest(int sig)
{
	static volatile int level;
	level++;
	nested = nested > level ? nested : level;
	if (sig == SIGUSR1 && count++ < 3)
		raise(SIGUSR1);
	level--;
}

TEST(masks, "masks")
{
	handle(SIGUSR1, counting, 0);
	handle(SIGUSR2, counting, 0);
	block(SIGUSR1, SIGUSR2);
	raise(SIGUSR1), raise(SIGUSR1), raise(SIGUSR2);
	sigset_t p;
	sigpending(&p);
	say("blocked: %d, pending %d %d", count, sigismember(&p, SIGUSR1), sigismember(&p, SIGUSR2));
	unblock(SIGUSR1, SIGUSR2);
	say("then %d", count);
	sigpending(&p);
	say("pending %d", sigismember(&p, SIGUSR1));
	sigset_t all, old;
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &old, 8);
	say("SIGKILL and SIGSTOP cannot be blocked: %d %d", sigismember(&old, SIGKILL), sigismember(&old, SIGSTOP));
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	err("bad how", syscall(SYS_rt_sigprocmask, 9, &all, NULL, 8));
	err("bad size", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 4));
	err("wild set", syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8));
	count = nested = 0;
	handle(SIGUSR1, nest, 0);
	raise(SIGUSR1);
	say("blocked in its own handler: calls %d, depth %d", count, nested);
	count = nested = 0;
	handle(SIGUSR1, nest, SA_NODEFER);
	raise(SIGUSR1);
	say("not with NODEFER: calls %d, depth %d", count, nested);
	struct sigaction sa = {.sa_handler = nest};
	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &sa, NULL);
	count = 0;
	// A child inherits the mask but nothing that is pending.
	block(SIGUSR2, 0);
	raise(SIGUSR2);
	IN_CHILD("child", {
		sigset_t m;
		sigprocmask(SIG_BLOCK, NULL, &m);
		sigpending(&p);
		say("child's mask %d, pending %d", sigismember(&m, SIGUSR2), sigismember(&p, SIGUSR2));
	});
}

TEST(realtime, "real-time signals queue in order")
{
	for (int s = SIGRTMIN; s < SIGRTMIN + 3; s++)
		handle_info(s, remember, 0);
	sigset_t s = set_of(SIGRTMIN, SIGRTMIN + 1), old;
	sigaddset(&s, SIGRTMIN + 2);
	sigprocmask(SIG_BLOCK, &s, &old);
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 1});
	sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 2});
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 3});
	sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 4});
	siginfo_t info;
	for (int i = 0; i < 4; i++) {
		struct timespec none = {0, 0};
		int sig = sigtimedwait(&s, &info, &none);
		say("RTMIN+%d value %d", sig - SIGRTMIN, info.si_value.sival_int);
	}
	struct timespec none = {0, 20000000};
	err("none is left", sigtimedwait(&s, &info, &none));
	none.tv_nsec = 2000000000;
	err("bad time", sigtimedwait(&s, &info, &none));
	for (int i = 0; i < 10; i++)
		raise(SIGRTMIN + 2);
	count = 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	say("delivered %d", count);
	siginfo_t forged = {.si_signo = SIGRTMIN, .si_code = SI_USER};
	err("a forged kill to another", syscall(SYS_rt_sigqueueinfo, getppid(), SIGRTMIN, &forged));
}

TEST(suspend, "sigsuspend, pause and waiting")
{
	handle(SIGUSR1, counting, 0);
	block(SIGUSR1, 0);
	raise(SIGUSR1);
	sigset_t none;
	sigemptyset(&none);
	err("sigsuspend", sigsuspend(&none));
	say("handled %d", count);
	sigset_t m;
	sigprocmask(SIG_BLOCK, NULL, &m);
	say("the mask is back: %d", sigismember(&m, SIGUSR1));
	pid_t me = getpid();
	FORK({
		settle(me);
		kill(me, SIGUSR1);
	});
	err("waits", sigsuspend(&none));
	unblock(SIGUSR1, 0);
	FORK({
		settle(me);
		kill(me, SIGUSR1);
	});
	err("pause", pause());
	sigset_t s = set_of(SIGUSR2, 0);
	block(SIGUSR2, 0);
	FORK({
		settle(me);
		kill(me, SIGUSR2);
	});
	siginfo_t info;
	say("sigwaitinfo %d code %d", sigwaitinfo(&s, &info), info.si_code);
	FORK({
		settle(me);
		kill(me, SIGUSR1);
	});
	err("another signal interrupts it", sigwaitinfo(&s, &info));
	while (wait(NULL) > 0)
		;
	// ppoll with a mask: the signal comes only inside.
	block(SIGUSR1, 0);
	raise(SIGUSR1);
	count = 0;
	struct timespec ts = {5, 0};
	err("ppoll", ppoll(NULL, 0, &ts, &none));
	say("handled %d", count);
}

static void after_settling(int sig)
{
	pid_t me = getpid();
	FORK({
		settle(me);
		kill(me, sig);
		settle(me);
		kill(me, SIGUSR2);
		_exit(0);
	});
}

TEST(restart, "interrupted calls")
{
	int fd[2];
	char c;
	struct timespec ts = {0, 30000000}, left = {9, 9};
	must(pipe(fd), "pipe");
	handle(SIGUSR2, counting, 0);
	handle(SIGUSR1, counting, 0);
	after_settling(SIGUSR1);
	err("read is interrupted", read(fd[0], &c, 1));
	while (wait(NULL) > 0)
		;
	handle(SIGUSR1, counting, SA_RESTART);
	count = 0;
	after_settling(SIGUSR1);
	err("read restarts until a handler without SA_RESTART", read(fd[0], &c, 1));
	say("handlers %d", count);
	while (wait(NULL) > 0)
		;
	count = 0;
	pid_t parent = getpid();
	FORK({
		settle(parent);
		kill(parent, SIGUSR1);
		settle(parent);
	});
	err("wait restarts", waitpid(-1, NULL, 0));
	say("handlers %d", count);
	after_settling(SIGUSR1);
	struct pollfd p = {.fd = fd[0], .events = POLLIN};
	err("poll never restarts", poll(&p, 1, 5000));
	while (wait(NULL) > 0)
		;
	ts.tv_sec = 5;
	after_settling(SIGUSR1);
	err("nanosleep never restarts", nanosleep(&ts, &left));
	say("it tells the rest: %d", left.tv_sec == 4 || left.tv_sec == 5);
	while (wait(NULL) > 0)
		;
	after_settling(SIGUSR1);
	say("clock_nanosleep returns %s", name_of(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &left)));
	while (wait(NULL) > 0)
		;
	// A signal without a handler, and stop and continue, interrupt nothing.
	pid_t me = getpid();
	FORK({
		settle(me);
		kill(me, SIGCHLD);
		kill(me, SIGSTOP);
		sleep_ms(20);
		kill(me, SIGCONT);
		settle(me);
		must(write(fd[1], "x", 1), "write");
	});
	say("read %zd", read(fd[0], &c, 1));
	while (wait(NULL) > 0)
		;
	// A partial transfer returns what it has.
	must(write(fd[1], "abc", 3), "write");
	fcntl(fd[1], F_SETPIPE_SZ, 4096);
	char big[10000];
	after_settling(SIGUSR2);
	ssize_t n = write(fd[1], big, sizeof big);
	say("a write that had begun returns a part: %d", n > 0 && n < (ssize_t)sizeof big);
}

TEST(altstack, "alternate stacks")
{
	char *stack = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t st = {.ss_sp = stack, .ss_size = 64 << 10}, old;
	err("set", sigaltstack(&st, &old));
	say("none before: %d", old.ss_flags == SS_DISABLE);
	handle_info(SIGUSR1, remember, SA_ONSTACK);
	raise(SIGUSR1);
	say("handler on it: %d", frame > (uintptr_t)stack && frame < (uintptr_t)stack + (64 << 10));
	handle_info(SIGUSR1, remember, 0);
	raise(SIGUSR1);
	say("not without the flag: %d", !(frame > (uintptr_t)stack && frame < (uintptr_t)stack + (64 << 10)));
	st.ss_size = 100;
	err("too small", sigaltstack(&st, NULL));
	st.ss_size = 64 << 10, st.ss_flags = 77;
	err("bad flags", sigaltstack(&st, NULL));
	err("wild", syscall(SYS_sigaltstack, 8, NULL));
	st.ss_flags = SS_DISABLE;
	err("disable", sigaltstack(&st, NULL));
	IN_CHILD("no room for a frame", {
		handle(SIGSEGV, SIG_DFL, 0);
		handle(SIGUSR1, counting, SA_ONSTACK);
		stack_t bad = {.ss_sp = (void *)0x10000, .ss_size = 64 << 10};
		sigaltstack(&bad, NULL);
		raise(SIGUSR1);
	});
	IN_CHILD("a wild stack pointer", {
		handle(SIGUSR1, counting, 0);
		__asm__ volatile("mov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\tmov $10, %%esi\n\tmov $0x8000000000000000, %%rsp\n\t"
				 "mov $62, %%eax\n\tsyscall\n\tmov $60, %%eax\n\tsyscall" ::: "memory");
	});
}

static void *volatile target;
static sigjmp_buf back;
static int hide_error;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	say("SIG%s code %d, address right %d, trap %lld, error %lld", sigabbrev_np(sig), info->si_code,
	    info->si_addr == target || info->si_addr == (void *)uc->uc_mcontext.gregs[REG_RIP],
	    uc->uc_mcontext.gregs[REG_TRAPNO], hide_error ? 0 : uc->uc_mcontext.gregs[REG_ERR]);
	siglongjmp(back, 1);
}

// divide is the instruction; the compiler knows better ways for some operands.
static void divide(long a, long b)
{
	long d;
	__asm__ volatile("cqo\n\tidiv %2" : "+a"(a), "=&d"(d) : "r"(b) : "cc");
}

#define FAULT(what, at, ...)                  \
	do {                                  \
		say(what);                    \
		target = (void *)(at);        \
		if (sigsetjmp(back, 1) == 0) { \
			__VA_ARGS__;          \
			say("no fault");      \
		}                             \
	} while (0)

TEST(faults, "faults")
{
	static const int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		handle_info(all[i], on_fault, 0);
	volatile int zero = 0;
	volatile char *ro = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)*ro; // present from now on, which the error codes show
	FAULT("null read", 0, (void)*(volatile char *)0);
	FAULT("null write", 16, *(volatile char *)16 = 1);
	FAULT("read-only write", ro + 9, ro[9] = 1);
	FAULT("kernel read", 0xffffffff80200000, (void)*(volatile char *)0xffffffff80200000);
	FAULT("kernel write", 0xffff800000001000, *(volatile char *)0xffff800000001000 = 1);
	FAULT("not canonical", 0, (void)*(volatile char *)0x1234000000000000);
	FAULT("jump to null", 0, ((void (*)(void))target)());
	FAULT("jump to data", ro, ((void (*)(void))target)());
	FAULT("division by zero", 0, divide(1, zero));
	FAULT("division that overflows", 0, divide(LONG_MIN, -1));
	FAULT("ud2", 0, __asm__ volatile("ud2"));
	FAULT("int3", 0, __asm__ volatile("int3"));
	FAULT("hlt", 0, __asm__ volatile("hlt"));
	FAULT("cli", 0, __asm__ volatile("cli"));
	FAULT("in", 0, __asm__ volatile("in $0x60, %%al" ::: "eax"));
	FAULT("out", 0, __asm__ volatile("out %%al, $0x80" ::: "eax"));
	FAULT("rdmsr", 0, __asm__ volatile("rdmsr" ::: "eax", "edx"));
	FAULT("write cr3", 0, __asm__ volatile("mov %%rax, %%cr3" ::: "memory"));
	FAULT("read cr0", 0, __asm__ volatile("mov %%cr0, %%rax" ::: "rax"));
	FAULT("lgdt", 0, __asm__ volatile("lgdt (%0)" ::"r"(ro)));
	FAULT("invlpg", 0, __asm__ volatile("invlpg (%0)" ::"r"(ro)));
	FAULT("wbinvd", 0, __asm__ volatile("wbinvd"));
	// TCG's error code for the next two is its own.
	hide_error = 1;
	FAULT("int 0x20", 0, __asm__ volatile("int $0x20"));
	FAULT("int 0x0e", 0, __asm__ volatile("int $0x0e"));
	hide_error = 0;
	FAULT("bad selector", 0, __asm__ volatile("mov %0, %%ds" ::"r"((short)0x1234)));
	FAULT("kernel selector", 0, __asm__ volatile("mov %0, %%ss" ::"r"((short)0x10)));
	FAULT("sysret", 0, __asm__ volatile("sysretq" ::: "memory"));
	FAULT("swapgs", 0, __asm__ volatile("swapgs" ::: "memory"));
	say("trap flag");
	target = NULL;
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("pushf\n\torq $0x100, (%%rsp)\n\tpopf\n\tnop\n\tnop" ::: "memory", "cc");
	IN_CHILD("blocked SIGSEGV kills", {
		block(SIGSEGV, 0);
		*(volatile char *)0 = 1;
	});
	IN_CHILD("ignored SIGSEGV kills", {
		signal(SIGSEGV, SIG_IGN);
		*(volatile char *)0 = 1;
	});
	IN_CHILD("a fault in the handler kills", {
		handle(SIGSEGV, (void (*)(int))0x10, 0);
		*(volatile char *)0 = 1;
	});
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		signal(all[i], SIG_DFL);
	IN_CHILD("division", divide(1, zero));
	IN_CHILD("ud2", __asm__ volatile("ud2"));
	IN_CHILD("int3", __asm__ volatile("int3"));
	IN_CHILD("null", *(volatile char *)0 = 1);
}

static void rewrite(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	ucontext_t *uc = context;
	if (uc->uc_mcontext.gregs[REG_RAX] == 0x1122334455667788)
		count = 100;
	uc->uc_mcontext.gregs[REG_RBX] = 0x4242;
	uc->uc_mcontext.gregs[REG_R15] = 0x4343;
	uc->uc_mcontext.gregs[REG_RIP] += 2; // over the ud2
	sigaddset(&uc->uc_sigmask, SIGUSR2);
}

TEST(context, "registers in the frame")
{
	handle_info(SIGILL, rewrite, 0);
	long rbx = 1, r15 = 2, rax = 0x1122334455667788, flags = 0;
	__asm__ volatile("mov %2, %%rax\n\tmov $7, %%ebx\n\tmov $8, %%r15d\n\tstc\n\tud2\n\tpushf\n\tpop %3\n\tmov %%rbx, %0\n\tmov %%r15, %1"
			 : "=&r"(rbx), "=&r"(r15), "+r"(rax), "=&r"(flags)::"rax", "rbx", "r15", "cc", "memory");
	say("rbx %#lx r15 %#lx, rax seen %d, carry kept %ld", rbx, r15, count == 100, flags & 1);
	sigset_t m;
	sigprocmask(SIG_BLOCK, NULL, &m);
	say("the mask in the frame counts: %d", sigismember(&m, SIGUSR2));
	IN_CHILD("sigreturn without a frame", {
		__asm__ volatile("mov $0x10000, %%rsp\n\tmov $15, %%eax\n\tsyscall" ::: "memory");
	});
	IN_CHILD("sigreturn to the kernel", {
		ucontext_t *uc = calloc(1, 4096);
		uc->uc_mcontext.gregs[REG_RIP] = (long long)0xffffffff80200000;
		uc->uc_mcontext.gregs[REG_RSP] = (long long)0xffffffff80200000;
		uc->uc_mcontext.gregs[REG_CSGSFS] = 0x10;
		uc->uc_mcontext.gregs[REG_EFL] = 0x3202;
		__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" ::"r"(uc) : "memory");
	});
	IN_CHILD("sigreturn to no canonical address", {
		ucontext_t *uc = calloc(1, 4096);
		uc->uc_mcontext.gregs[REG_RIP] = (long long)0x8000000000000000;
		uc->uc_mcontext.gregs[REG_CSGSFS] = 0x33 | 0x2bLL << 48;
		uc->uc_mcontext.gregs[REG_EFL] = 0x202;
		__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" ::"r"(uc) : "memory");
	});
	IN_CHILD("sigreturn with wild floating-point state", {
		ucontext_t *uc = calloc(1, 4096);
		uc->uc_mcontext.fpregs = (void *)8;
		uc->uc_mcontext.gregs[REG_RIP] = (long long)(uintptr_t)_exit;
		uc->uc_mcontext.gregs[REG_CSGSFS] = 0x33 | 0x2bLL << 48;
		__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" ::"r"(uc) : "memory");
	});
}

TEST(timers, "interval timers and alarm")
{
	handle(SIGALRM, counting, 0);
	struct itimerval it = {{0, 5000}, {0, 10000}}, old;
	err("set", setitimer(ITIMER_REAL, &it, NULL));
	say("five ticks: %d", until(count >= 5));
	it = (struct itimerval){{0, 0}, {0, 0}};
	err("stop", setitimer(ITIMER_REAL, &it, &old));
	say("interval was %ld", (long)old.it_interval.tv_usec);
	int n = count;
	sleep_ms(30);
	say("no more: %d", count == n);
	say("alarm before %u", alarm(100));
	say("alarm left %u", alarm(0));
	it.it_value.tv_usec = 2000000;
	err("bad time", setitimer(ITIMER_REAL, &it, NULL));
	err("bad timer", setitimer((enum __itimer_which)9, &old, NULL));
	handle(SIGVTALRM, counting, 0);
	count = 0;
	it = (struct itimerval){{0, 0}, {0, 20000}};
	err("virtual", setitimer(ITIMER_VIRTUAL, &it, NULL));
	sleep_ms(60);
	say("does not run asleep: %d", count);
	long long end = now_ms() + 5000;
	while (count == 0 && now_ms() < end)
		;
	say("runs while computing: %d", count);
	timer_t timer;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 99};
	handle_info(SIGUSR1, remember, 0);
	err("timer_create", timer_create(CLOCK_MONOTONIC, &ev, &timer));
	struct itimerspec ts = {{0, 0}, {0, 10000000}};
	count = 0;
	err("timer_settime", timer_settime(timer, 0, &ts, NULL));
	say("it fires: %d", until(count > 0));
	say("code %d value %d", seen.si_code, seen.si_value.sival_int);
	err("timer_delete", timer_delete(timer));
	err("again", syscall(SYS_timer_delete, 12345));
	IN_CHILD("a child has no timer", {
		sleep_ms(1);
		struct itimerval now;
		getitimer(ITIMER_REAL, &now);
		say("%ld %ld", (long)now.it_value.tv_sec, (long)now.it_value.tv_usec);
	});
}

TEST(child_signal, "SIGCHLD")
{
	handle_info(SIGCHLD, remember, 0);
	pid_t pid = FORK(_exit(3));
	until(count > 0);
	say("exit: code %d status %d pid %d", seen.si_code, seen.si_status, seen.si_pid == pid);
	wait_for(pid);
	count = 0;
	pid = FORK(pause());
	kill(pid, SIGSTOP);
	until(count > 0);
	say("stop: code %d status %d", seen.si_code, seen.si_status);
	kill(pid, SIGCONT);
	until(count > 1);
	say("continue: code %d", seen.si_code);
	kill(pid, SIGKILL);
	until(count > 2);
	say("kill: code %d status %d", seen.si_code, seen.si_status);
	wait_for(pid);
	handle_info(SIGCHLD, remember, SA_NOCLDSTOP);
	count = 0;
	pid = FORK(pause());
	kill(pid, SIGSTOP);
	int st;
	waitpid(pid, &st, WUNTRACED);
	say("NOCLDSTOP: %d", count);
	kill(pid, SIGKILL);
	wait_for(pid);
}

TEST(pipes, "SIGPIPE")
{
	int fd[2];
	must(pipe(fd), "pipe");
	close(fd[0]);
	IN_CHILD("default", if (write(fd[1], "x", 1) < 0) _exit(1));
	handle(SIGPIPE, counting, 0);
	err("handled", write(fd[1], "x", 1));
	say("handlers %d", count);
}

static void *thread_loop(void *arg)
{
	atomic_int *got = arg;
	sigset_t s = set_of(SIGUSR1, 0);
	int sig;
	sigwait(&s, &sig);
	atomic_fetch_add(got, 1);
	return NULL;
}

TEST(threads, "signals and threads")
{
	block(SIGUSR1, 0);
	atomic_int got = 0;
	pthread_t th[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, thread_loop, &got);
	settle_threads();
	kill(getpid(), SIGUSR1);
	until(got == 1);
	sleep_ms(20);
	say("one thread takes it: %d", got);
	for (int i = 0; i < 3; i++)
		pthread_kill(th[i], SIGUSR1);
	say("each its own: %d", until(got == 3));
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
}

TEST(storm, "a storm of signals over a computation")
{
	handle(SIGUSR1, counting, 0);
	handle(SIGALRM, counting, SA_RESTART);
	pid_t me = getpid();
	pid_t pid = FORK(for (int i = 0; i < 3000; i++) kill(me, SIGUSR1));
	struct itimerval it = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &it, NULL);
	double x = 1;
	unsigned long h = 1;
	for (int i = 0; i < 3000000; i++)
		x = x * 1.0000001 + 0.5 / (i + 1), h = h * 6364136223846793005UL + 1442695040888963407UL;
	it = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &it, NULL);
	wait_for(pid);
	double y = 1;
	unsigned long k = 1;
	for (int i = 0; i < 3000000; i++)
		y = y * 1.0000001 + 0.5 / (i + 1), k = k * 6364136223846793005UL + 1442695040888963407UL;
	say("the same result: %d %d, some were handled %d", x == y, h == k, count > 0);
}
