// fuzz makes random system calls: all numbers, wild arguments, several threads
// and processes. It asks one thing of the kernel: to live, and to have its memory
// back when the processes are gone.
//
//	fuzz -n CALLS [-s SEED] [-c CHILD] [-p PROCESSES]
//
// A parent keeps some children running. A child has worker threads that make
// calls, and a ticker (its first thread) that interrupts workers which block. A
// child that dies of its own calls is replaced; one that hangs is killed. Every
// sixteenth child executes random instructions instead. The calls of a child follow
// from the seed and its number; -c runs that child alone.
//
// It runs on Hardtack only, or under bench/os's init on a throw-away Linux: as
// root on a real machine it would destroy it.
//
// Left out is what ends the run by design: reboot, signals and limits for
// processes other than the child's own, mounts over the root, and most exits.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../msg/c/ht_ipc.h"

enum {
	workers = 3,
	calls_per_child = 3000, // of one worker
	page = 4096,
	arena_pages = 64,
	stall_ms = 250,
};

// What the children share with the parent. A child can spoil its slot, so the
// parent believes only plausible values.
typedef struct {
	volatile uint64_t calls[workers];
} slot;

static slot *slots;
static char *arena; // where valid pointers point
static uint64_t seed = 1;
static pid_t self_pid;
static volatile uint64_t last_token; // of a call that somebody made

// raw makes a system call without touching thread-local storage, which the calls
// themselves may have moved. The child of a call that shares memory or stack
// with its parent must not return: it ends at once.
static inline __attribute__((always_inline)) long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long rc;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return rc;
}

static inline __attribute__((always_inline)) long raw_clone(long nr, long a, long b, long c, long d, long e)
{
	long rc;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall\n\tud2\n1:"
			 : "=a"(rc), "+D"(a) : "a"(nr), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return rc;
}

static inline uint64_t next(uint64_t *s)
{
	uint64_t x = *s;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	*s = x;
	return x * 0x2545f4914f6cdd1d;
}

static const char *const paths[] = {
	"a", "b", "c", "d", "d/x", "d/y", "link", ".", "..", "", "/", "a/b", "d/../a", "none/none",
	"/proc/self/maps", "/proc/self/status", "/proc/self/fd/3", "/proc/self/exe", "/proc/meminfo", "/proc/self/mem",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/ptmx", "/dev/pts/0", "/dev/tty", "/tmp",
	"\001\377\200", "f\nile",
};

// Layout of the arena: page 0 paths, page 1 structures, the rest buffers.
static void fill_arena(void)
{
	char *p = arena;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		strcpy(p + i * 64, paths[i]);
	memset(p + 2048, 'n', 300); // a name that is too long
	uint64_t *w = (uint64_t *)(arena + page);
	static const uint64_t words[] = {0, 1, 2, 3, 4, 5, 10, 1000, 4096, 0xffffffff, 0x7fffffff, 0x80000000, -1UL, 1UL << 62, 1UL << 63, 1000000};
	for (int i = 0; i < 512; i++)
		w[i] = words[(i * 7 + i / 16) % 16];
	// Vectors and pointers that point back into the arena, some wild.
	for (int i = 128; i < 256; i += 2) {
		w[i] = (uint64_t)(uintptr_t)(arena + (size_t)(i % 60) * page + 8 * (size_t)i);
		w[i + 1] = words[i / 2 % 11];
	}
	// Socket addresses.
	memcpy((char *)w + 3072, "\002\000\037\220\177\000\000\001\0\0\0\0\0\0\0\0", 16);
	memcpy((char *)w + 3104, "\001\000\000abstract", 11);
	memcpy((char *)w + 3136, "\001\000socket", 9);
	memset(arena + 2 * page, 'x', 2 * page); // a path that never ends
}

static uint64_t argument(uint64_t *s, uint64_t tid)
{
	uint64_t r = next(s);
	switch (r >> 60) {
	case 0: case 1: // descriptors and other small numbers
		return r % 24;
	case 2:
		return r % 3 ? (uint64_t)-100 : -1UL; // AT_FDCWD
	case 3: case 4: // a path
		return (uint64_t)(uintptr_t)(arena + r % (sizeof paths / sizeof paths[0]) * 64);
	case 5: case 6: // a structure
		return (uint64_t)(uintptr_t)(arena + page + r % 512 * 8);
	case 7: case 8: // a buffer, or one at the end of its page
		return (uint64_t)(uintptr_t)(arena + (4 + r % (arena_pages - 4)) * page + (r >> 8 & 1 ? page - (r >> 12) % 64 : 0));
	case 9: // lengths and flags
		return 1UL << (r % 64);
	case 10:
		return (1UL << (r % 64)) - 1;
	case 11: {
		static const uint64_t wild[] = {
			8, 0x1000, 0x7fffffffe000, 0x7fffffffffff, 0x800000000000, 0x8000000000000000, 0xffff800000000000,
			0xffff888000000000, 0xffffffff80000000, 0xffffffff80200000, 0xffffffff81000000, 0xfffffffffffff000,
			0xffffffffffffffff, 0xdeadbeefdeadbeef, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		};
		return wild[r % (sizeof wild / sizeof wild[0])];
	}
	case 12:
		return 0;
	case 13:
		return r % 2 ? (uint64_t)self_pid : tid;
	case 14:
		return r & 0xffff & next(s);
	default:
		return next(s);
	}
}

// Calls that make descriptors, memory and processes get a larger share, so that
// the others have something to work on.
static const short favourites[] = {
	SYS_openat, SYS_openat, SYS_open, SYS_mmap, SYS_mmap, SYS_munmap, SYS_read, SYS_write, SYS_pipe2, SYS_socket, SYS_socketpair,
	SYS_eventfd2, SYS_epoll_create1, SYS_epoll_ctl, SYS_timerfd_create, SYS_dup, SYS_close, SYS_clone, SYS_fork, SYS_futex,
	SYS_fcntl, SYS_ioctl, SYS_sendmsg, SYS_recvmsg, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_wait4, SYS_getdents64,
	SYS_rename, SYS_ftruncate, SYS_bind, SYS_connect, SYS_listen, SYS_accept4, SYS_poll, SYS_ppoll, SYS_execve,
};

static long number(uint64_t *s)
{
	uint64_t r = next(s);
	switch (r >> 60) {
	case 0: case 1: case 2: case 3: case 4:
		return favourites[r % (sizeof favourites / sizeof favourites[0])];
	case 5:
		return (r & 0xff) == 0 ? (long)next(s) : (long)(r % 2048);
	default:
		return (long)(r % 471);
	}
}

// stranger reports whether a pid argument could name a process outside the
// child: the parent, process 1, everybody.
static int stranger(uint64_t pid, uint64_t tid)
{
	int p = (int)pid;
	return p != self_pid && p != (int)tid && p != 0 && (p < 1 << 20);
}

// message makes one of Hardtack's own calls (abi/ipc). It destroys registers that
// others keep.
static __attribute__((noinline)) void message(uint64_t *s, uint64_t tid)
{
	struct ht_message m;
	for (int i = 0; i < 6; i++)
		m.words[i] = argument(s, tid);
	m.token = next(s) % 4 ? last_token : argument(s, tid);
	m.info = next(s) % 4 ? (uint32_t)(next(s) % 600) | (uint32_t)(next(s) % 8 ? 0 : next(s) % 6) << 16 : (uint32_t)next(s);
	m.buffer = (struct ht_ipc_buffer *)(uintptr_t)argument(s, tid);
	uint64_t nr = next(s) % 14;
	if (nr == 7) // the descriptor that is signalled
		m.info = (uint32_t)argument(s, tid);
	uint64_t deadline = next(s) % 3 == 0 ? argument(s, tid) : next(s) % 2 ? HT_IPC_NOW : HT_IPC_FOREVER;
	if (nr == 8) // endpoints are what the others need
		raw(HT_IPC_BASE + 8, (long)(uintptr_t)(arena + page + next(s) % 512 * 8), next(s) % 8 ? 0 : (long)argument(s, tid), 0, 0, 0, 0);
	else if (nr >= 9)
		raw(HT_IPC_BASE + (long)nr, (long)argument(s, tid), (long)argument(s, tid), next(s) % 2 ? 0 : (long)argument(s, tid), 0, 0, 0);
	else
		ht_ipc_raw((unsigned)nr, (int)argument(s, tid), &m, deadline);
	if (m.token != 0)
		last_token = m.token;
}

// one makes a random call.
static void one(uint64_t *s, uint64_t tid)
{
	if (next(s) % 8 == 0) {
		message(s, tid);
		return;
	}
	long nr = number(s);
	uint64_t a[6];
	for (int i = 0; i < 6; i++)
		a[i] = argument(s, tid);
	switch (nr) {
	case SYS_reboot: case SYS_kexec_load: case SYS_kexec_file_load:
		return;
	case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_vhangup:
		if (next(s) % 64)
			return;
		break;
	case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo:
	case SYS_ptrace: case SYS_pidfd_open: case SYS_prlimit64: case SYS_sched_setscheduler: case SYS_sched_setparam:
	case SYS_sched_setaffinity: case SYS_sched_setattr: case SYS_process_vm_readv: case SYS_process_vm_writev:
	case SYS_migrate_pages: case SYS_move_pages: case SYS_setpgid:
		if (stranger(a[0], tid))
			a[0] = next(s) % 2 ? (uint64_t)self_pid : 999999999;
		if (nr == SYS_tgkill && stranger(a[1], tid))
			a[1] = tid;
		if (nr == SYS_ptrace && stranger(a[1], tid))
			a[1] = tid;
		if ((nr == SYS_kill || nr == SYS_tkill || nr == SYS_tgkill) && next(s) % 64)
			return; // most signals are deadly
		break;
	case SYS_setpriority: case SYS_ioprio_set:
		if (stranger(a[1], tid))
			a[1] = 0;
		break;
	case SYS_mount: case SYS_umount2: case SYS_pivot_root: case SYS_move_mount: case SYS_chroot: case SYS_fsmount:
		a[0] = a[1] = 0xffffffff80200000;
		break;
	case SYS_clone:
		// Sharing the stack below a running frame spoils it; give some a stack.
		if (next(s) % 2)
			a[1] = (uint64_t)(uintptr_t)(arena + 60 * page);
		raw_clone(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4]);
		return;
	case SYS_vfork: case SYS_clone3:
		raw_clone(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4]);
		return;
	case SYS_fork:
		if (next(s) % 4 || raw(nr, 0, 0, 0, 0, 0, 0) != 0)
			return;
		for (int i = 0; i < 20; i++) { // the child goes on for a while
			long k = number(s);
			if (k == SYS_fork || k == SYS_clone || k == SYS_vfork || k == SYS_clone3 || k == SYS_reboot || k == SYS_kill)
				continue;
			if (k < 62 || (k > 72 && k < 160))
				raw(k, (long)argument(s, tid), (long)argument(s, tid), (long)argument(s, tid), 0, 0, 0);
		}
		raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
		return;
	}
	raw(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
}

static struct {
	uint64_t state;
	slot *slot;
	int number;
	volatile pid_t tid;
	char stack[64 << 10] __attribute__((aligned(16)));
} worker[workers];

static int work(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t tid = (uint64_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < calls_per_child; i++) {
		one(&worker[me].state, tid);
		worker[me].slot->calls[me]++;
	}
	worker[me].tid = 0;
	for (;;)
		raw(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

static void nothing(int sig) { (void)sig; }

static uint64_t start_state(uint64_t child, int n)
{
	uint64_t s = seed * 0x9e3779b97f4a7c15 + child * 0xbf58476d1ce4e5b9 + (uint64_t)n * 0x94d049bb133111eb + 1;
	for (int i = 0; i < 8; i++)
		next(&s);
	return s ? s : 1;
}

// enter makes a child of the parent a stranger to it.
static void enter(void)
{
	setsid();
	self_pid = getpid();
	int fd = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	syscall(SYS_close_range, 3, ~0U, 0);
	arena = mmap(NULL, arena_pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		_exit(3);
	fill_arena();
	struct rlimit files = {64 << 20, 64 << 20}, core = {0, 0};
	setrlimit(RLIMIT_FSIZE, &files);
	setrlimit(RLIMIT_CORE, &core);
}

// system_calls is the body of a child.
static _Noreturn void system_calls(uint64_t child, slot *at)
{
	enter();
	if (child % 8) {
		struct rlimit memory = {256 << 20, 256 << 20};
		setrlimit(RLIMIT_AS, &memory);
	}
	struct sigaction sa = {.sa_handler = nothing};
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	for (int i = 0; i < workers; i++) {
		worker[i].state = start_state(child, i);
		worker[i].slot = at;
		worker[i].tid = -1;
		pid_t tid = clone(work, worker[i].stack + sizeof worker[i].stack, flags, (void *)(intptr_t)i);
		if (tid < 0)
			raw(SYS_exit_group, 4, 0, 0, 0, 0, 0);
		if (worker[i].tid == -1)
			worker[i].tid = tid;
	}
	// The ticker: interrupts who stands still; gives up when all do.
	uint64_t last[workers] = {0};
	int still[workers] = {0};
	for (;;) {
		struct timespec ts = {0, 1000000};
		raw(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
		sigaction(SIGURG, &sa, NULL);
		int alive = 0;
		for (int i = 0; i < workers; i++) {
			pid_t tid = worker[i].tid;
			if (tid == 0 || still[i] > 12)
				continue;
			alive++;
			if (at->calls[i] != last[i]) {
				last[i] = at->calls[i], still[i] = 0;
				continue;
			}
			still[i]++;
			raw(SYS_tgkill, self_pid, tid, SIGURG, 0, 0, 0);
		}
		if (alive == 0)
			raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
}

// instructions is the body of a child that executes what comes.
static _Noreturn void instructions(uint64_t child, slot *at)
{
	static const char *const nasty[] = {
		"\x48\xcf", "\x48\x0f\x07", "\x0f\x05", "\x0f\x34", "\xcd\x80", "\xcd\x02", "\xcd\x08", "\xcd\x0e", "\xcd\x20", "\xcd\xff", "\xcc", "\xf1",
		"\xf4", "\xfa", "\xfb", "\x0f\x01\xf8", "\x0f\x22\xd8", "\x0f\x20\xc0", "\x0f\x01\xd1", "\x0f\x30", "\x0f\x32", "\x0f\x33",
		"\x8e\xd8", "\x8e\xd0", "\x8e\xe0", "\x8e\xe8", "\x0f\x00\xd8", "\x0f\x00\xd0", "\x0f\x01\x10", "\x0f\x01\x18", "\x0f\x01\x00",
		"\xf3\x48\x0f\xae\xd0", "\xf3\x48\x0f\xae\xd8", "\xcb", "\xcf", "\x9d", "\x48\x89\xc4", "\xe4\x60", "\xe6\x80", "\x0f\x0b",
		"\x0f\x09", "\x0f\x01\x38", "\x66\x0f\x38\x82\x00", "\x0f\xc7\xf8", "\xdb\xe3\xd9\xe8", "\x0f\xae\x00", "\x0f\xae\x08", "\xff\x28", "\x0f\xa1",
	};
	enter();
	uint64_t s = start_state(child, 0);
	struct rlimit cpu = {1, 1};
	setrlimit(RLIMIT_CPU, &cpu);
	for (int i = 0; i < 12; i++) {
		pid_t pid = (pid_t)raw(SYS_fork, 0, 0, 0, 0, 0, 0);
		if (pid == 0) {
			unsigned char *code = mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (code == MAP_FAILED)
				_exit(0);
			for (int k = 0; k < page; k++)
				code[k] = (unsigned char)(next(&s) >> 32);
			int at_byte = 0;
			for (int k = 0; k < 6; k++) {
				size_t n = next(&s) % (sizeof nasty / sizeof nasty[0]);
				size_t len = strlen(nasty[n]) ? strlen(nasty[n]) : 3;
				memcpy(code + at_byte, nasty[n], len);
				at_byte += (int)len;
			}
			uint64_t regs[6];
			for (int k = 0; k < 6; k++)
				regs[k] = argument(&s, (uint64_t)self_pid);
			raw(SYS_alarm, 1, 0, 0, 0, 0, 0);
			if ((int)regs[0] == SYS_reboot || (int)regs[0] == SYS_kill)
				regs[0] = 0;
			__asm__ volatile("mov %0, %%rcx\n\tmov (%1), %%rax\n\tmov 8(%1), %%rdi\n\tmov 16(%1), %%rsi\n\tmov 24(%1), %%rdx\n\tjmp *%%rcx"
					 ::"r"(code), "r"(regs) : "memory", "rax", "rcx", "rdx", "rdi", "rsi");
		}
		next(&s);
		at->calls[0]++;
		for (int k = 0; pid > 0 && k < 20; k++) {
			struct timespec ts = {0, 500000};
			if (raw(SYS_wait4, pid, 0, WNOHANG, 0, 0, 0) == pid)
				break;
			raw(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
			if (k == 19) {
				raw(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
				raw(SYS_wait4, pid, 0, 0, 0, 0, 0);
			}
		}
	}
	raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

static long long now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void remove_tree(const char *path)
{
	char name[4300];
	DIR *d = opendir(path);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strlen(path) > 4000)
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		if (unlink(name) < 0)
			remove_tree(name);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static int meminfo = -1, frames = -1, goroutines = -1, heap = -1;

// collect lets the kernel collect its garbage and give free memory back.
static void collect(void)
{
	if (heap >= 0 && write(heap, "1", 1) < 0)
		perror("fuzz: collect");
}

// value finds `name` in a file of lines "name: number" or "name number".
static long value(int fd, const char *name)
{
	char text[8192];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = 0;
	char *at = strstr(text, name);
	if (!at)
		return -1;
	at += strlen(name);
	return strtol(at + strspn(at, ": \t"), NULL, 10);
}

// user_pages are the frames that belong to neither the free lists nor the kernel
// itself; -1 where the kernel does not tell.
static long user_pages(void)
{
	long total = value(frames, "total"), unused = value(frames, "free"), kernel = value(frames, "kernel");
	return total < 0 ? -1 : total - unused - kernel;
}

// remove_objects drops System V objects, which outlive processes; only the
// fuzzer makes any here.
static void remove_objects(void)
{
	struct seminfo sems;
	struct msginfo messages;
	int last = semctl(0, 0, SEM_INFO, &sems); // the highest index in use
	for (int i = 0; i <= last; i++) {
		struct semid_ds ds;
		int id = semctl(i, 0, SEM_STAT, &ds);
		if (id >= 0)
			semctl(id, 0, IPC_RMID);
	}
	last = msgctl(0, MSG_INFO, (struct msqid_ds *)&messages);
	for (int i = 0; i <= last; i++) {
		struct msqid_ds ds;
		int id = msgctl(i, MSG_STAT, &ds);
		if (id >= 0)
			msgctl(id, IPC_RMID, NULL);
	}
	for (int i = 0; i < 4096; i++) {
		struct shmid_ds ds;
		int id = shmctl(i, SHM_STAT, &ds);
		if (id >= 0)
			shmctl(id, IPC_RMID, NULL);
		else if (errno == ENOSYS)
			break;
		shmctl(i, IPC_RMID, NULL);
	}
}

// working_directory makes /tmp/fuzz anew, and /tmp if some call has replaced it.
static void working_directory(void)
{
	struct stat st;
	if (chdir("/") == 0)
		remove_tree("/tmp/fuzz");
	if (lstat("/tmp", &st) < 0 || !S_ISDIR(st.st_mode)) {
		unlink("/tmp");
		mkdir("/tmp", 01777);
	}
	chmod("/tmp", 01777);
	mkdir("/tmp/fuzz", 0777);
	if (chdir("/tmp/fuzz") < 0)
		perror("fuzz: chdir");
}

// clean ends what children left behind: processes that are ours by now, files.
static void clean(void)
{
	for (int i = 0; i < 500; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			break;
		if (pid > 0) {
			i--;
		} else {
			usleep(2000);
			// As process 1 every other process is a child's.
			if (i >= 20 && getpid() == 1)
				kill(-1, SIGKILL);
		}
	}
	remove_objects();
	working_directory();
}

typedef struct {
	long crashed, hung, children;
	uint64_t calls;
} totals;

static uint64_t next_child;

// run keeps `processes` children busy until so many calls were made.
static totals run(uint64_t calls, int processes, int alone)
{
	struct {
		pid_t pid;
		uint64_t seen;
		long long moved;
	} child[16] = {0};
	totals t = {0};
	uint64_t told = 0;
	int running = 0;
	for (;;) {
		for (int i = 0; i < processes; i++) {
			if (child[i].pid || t.calls >= calls || (alone && t.children))
				continue;
			uint64_t number = next_child++;
			memset(&slots[i], 0, sizeof slots[i]);
			fflush(stdout);
			pid_t pid = fork();
			if (pid == 0) {
				if (number % 16 == 15)
					instructions(number, &slots[i]);
				system_calls(number, &slots[i]);
			}
			if (pid < 0) {
				usleep(1000);
				continue;
			}
			child[i].pid = pid, child[i].seen = 0, child[i].moved = now_ms();
			running++, t.children++;
		}
		usleep(1000);
		long long now = now_ms();
		for (int i = 0; i < processes; i++) {
			uint64_t sum = 0;
			for (int w = 0; w < workers; w++)
				sum += slots[i].calls[w];
			if (child[i].pid && sum > child[i].seen && sum <= workers * calls_per_child) {
				t.calls += sum - child[i].seen;
				child[i].seen = sum, child[i].moved = now;
			} else if (child[i].pid && now - child[i].moved > stall_ms) {
				kill(child[i].pid, SIGKILL);
				t.hung++;
				child[i].moved = now + 60000; // once
			}
		}
		int status;
		pid_t pid;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			for (int i = 0; i < processes; i++) {
				if (child[i].pid == pid) {
					child[i].pid = 0, running--;
					t.crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
				}
			}
		}
		if (t.calls - told >= 100000) {
			told = t.calls;
			printf("fuzz: %llu calls, %ld processes, next child %llu\n", (unsigned long long)t.calls, t.children, (unsigned long long)next_child);
			fflush(stdout);
		}
		if (running == 0 && (t.calls >= calls || alone))
			return t;
	}
}

// show_goroutines prints what the kernel's goroutines do, for the one who looks
// for a leak.
static void show_goroutines(void)
{
	static char text[1 << 19];
	ssize_t n = 0, k;
	while (n < (ssize_t)sizeof text - 1 && (k = pread(goroutines, text + n, sizeof text - 1 - (size_t)n, n)) > 0)
		n += k;
	text[n > 0 ? n : 0] = 0;
	fputs(text, stdout);
}

static int allowed(void)
{
	struct utsname u;
	char exe[64] = "";
	uname(&u);
	if ((strcasestr(u.version, "hardtack") || strcasestr(u.release, "hardtack")))
		return 1;
	return readlink("/proc/1/exe", exe, sizeof exe - 1) > 0 && strcmp(exe, "/bench/init") == 0;
}

// works tries, with ordinary means, whether the machine still does; it returns
// what does not.
static const char *broken(void)
{
	int fd[2], status;
	char buf[6] = "";
	if (pipe(fd) < 0)
		return "pipe";
	if (write(fd[1], "alive", 5) != 5 || read(fd[0], buf, 5) != 5 || strcmp(buf, "alive") != 0)
		return "writing to a pipe";
	close(fd[0]), close(fd[1]);
	chmod("/proc/self/exe", 0755); // some child may have changed it
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "fuzz", NULL);
		_exit(errno);
	}
	if (pid < 0)
		return "fork";
	if (waitpid(pid, &status, 0) != pid)
		return "wait";
	if (status != 2 << 8) {
		printf("fuzz: the child's status is %#x\n", status);
		return "exec";
	}
	working_directory();
	int file = open("/tmp/fuzz/check", O_CREAT | O_RDWR | O_TRUNC, 0600);
	if (file < 0)
		return "creating a file";
	if (write(file, "alive", 5) != 5 || pread(file, buf, 5, 0) != 5)
		return "writing to a file";
	close(file);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t calls = 0;
	int processes = 8, opt, alone = 0;
	if (argc < 2)
		return 2; // also when a fuzzed execve starts us
	while ((opt = getopt(argc, argv, "n:s:c:p:")) != -1) {
		switch (opt) {
		case 'n': calls = strtoull(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'c': alone = 1, next_child = strtoull(optarg, NULL, 0); break;
		case 'p': processes = atoi(optarg); break;
		default: return 2;
		}
	}
	if (calls == 0 || processes < 1 || processes > 16)
		return 2;
	if (!allowed()) {
		fprintf(stderr, "fuzz: this is not a Hardtack guest, and the calls would harm it\n");
		return 2;
	}
	meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	frames = open("/proc/hardtack/frames", O_RDONLY | O_CLOEXEC);
	heap = open("/proc/hardtack/heap", O_RDWR | O_CLOEXEC);
	goroutines = open("/proc/hardtack/goroutines", O_RDONLY | O_CLOEXEC);
	slots = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED || meminfo < 0) {
		perror("fuzz");
		return 1;
	}
	clean();
	// Caches, pools and the kernel's heap grow to their size first.
	if (!alone)
		run(calls / 10, processes, 0);
	clean();
	usleep(300000);
	collect();
	long free_before = value(meminfo, "MemFree"), heap_before = value(heap, "HeapAlloc"), pages_before = user_pages(), routines_before = value(goroutines, "");
	totals t = run(calls, alone ? 1 : processes, alone);
	// What the children held comes back; the kernel may need a moment. It keeps
	// some idle goroutines for the next threads.
	const long slack = 16 << 10; // KiB: the kernel's own heap breathes
	const long cached = 512; // frames that the processors keep at hand
	long free_after = 0, heap_after = 0, pages_after = 0, routines_after = 0;
	int back = 0;
	for (int i = 0; i < 50 && !back; i++) {
		clean();
		usleep(100000);
		collect();
		heap_after = value(heap, "HeapAlloc");
		free_after = value(meminfo, "MemFree");
		pages_after = user_pages();
		routines_after = value(goroutines, "");
		back = free_after >= free_before - slack && pages_after <= pages_before + cached && routines_after <= routines_before + 64;
	}
	printf("fuzz: seed %llu, %llu calls, %ld processes, %ld crashed, %ld hung\n", (unsigned long long)seed, (unsigned long long)t.calls, t.children, t.crashed, t.hung);
	printf("fuzz: free memory %ld KiB before, %ld after; heap %ld, %ld; user pages %ld, %ld; goroutines %ld, %ld\n", free_before, free_after, heap_before >> 10, heap_after >> 10, pages_before, pages_after, routines_before, routines_after);
	if (!back)
		show_goroutines();
	const char *what = broken();
	int error = errno;
	if (what)
		printf("fuzz: FAIL: does not work any more: %s: %s\n", what, strerror(error));
	else
		printf("fuzz: %s\n", back ? "ok" : "FAIL: resources did not come back");
	fflush(stdout);
	return !back || what;
}
