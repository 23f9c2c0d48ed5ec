// A child: workers that make calls, and its first thread, which interrupts those that
// block and gives up when all do.
#include "fuzz.h"

#include <grp.h>

#include "races.h"

child_state me;
thread worker[workers];

call calls[] = {
#define CALL(number, n, g, w) {.nr = number, .name = #n, .groups = g, .words = w},
#define OWN(number, name)
#define LEFT(number, name, why)
#include "calls.def"
};
const int ncalls = sizeof calls / sizeof calls[0];
static short of_group[128][sizeof calls / sizeof calls[0]], in_group[128];
static short by_number[512];

// parse_calls turns the words of calls.def into numbers, once.
void parse_calls(void)
{
	memset(by_number, -1, sizeof by_number);
	for (int i = 0; i < ncalls; i++) {
		by_number[calls[i].nr] = (short)i;
		for (const char *g = calls[i].groups; *g; g++)
			of_group[(int)*g][in_group[(int)*g]++] = (short)i;
		for (const char *w = calls[i].words; *w;) {
			int n = (int)strcspn(w, " ");
			if (calls[i].args == 6 || !word(w, n, &calls[i].arg[calls[i].args].kind, &calls[i].arg[calls[i].args].set)) {
				printf("fuzz: calls.def: %s: %.*s\n", calls[i].name, n, w);
				exit(2);
			}
			calls[i].args++;
			w += n + (w[n] == ' ');
		}
	}
}

// stranger tells whether a pid could name a process that is not the child's.
static int stranger(uint64_t pid)
{
	int p = (int)pid;
	if (p == me.pid || p == 0)
		return 0;
	for (int i = 0; i < workers; i++)
		if (p == worker[i].tid)
			return 0;
	return p < 1 << 20;
}

// tame keeps a call of root's from ending the run by design, and most calls of anybody
// from ending the child. It returns 0 if the call is not to be made.
static int tame(thread *t, long nr, uint64_t *a)
{
	switch (nr) {
	case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_execve: case SYS_execveat: case SYS_alarm:
		if (!one_in(t, nr == SYS_exit ? 400 : 100))
			return 0;
		break;
	case SYS_pause: case SYS_rt_sigsuspend: case SYS_vhangup: case SYS_close_range: case SYS_mlockall:
		if (!one_in(t, 16))
			return 0;
		break;
	case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo: case SYS_pidfd_send_signal: {
		uint64_t sig = a[nr == SYS_tgkill || nr == SYS_rt_tgsigqueueinfo ? 2 : 1];
		if (sig != 0 && sig < 65 && sig != SIGURG && sig != SIGCHLD && !one_in(t, 24))
			return 0; // most signals are deadly
		if (me.uid != 0 && nr == SYS_kill && (int)a[0] == -1 && sig != 0)
			return 0; // all of this user's: it may, and nothing would be done
		break;
	}
	case SYS_process_vm_writev: // what it does to itself says little
		if (!stranger(a[0]) && !one_in(t, 16))
			return 0;
		break;
	case SYS_reboot:
		return me.uid != 0;
	}
	if (me.uid != 0)
		return 1;
	switch (nr) {
	case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo: case SYS_pidfd_open:
	case SYS_prlimit64: case SYS_sched_setscheduler: case SYS_sched_setparam: case SYS_sched_setaffinity: case SYS_sched_setattr:
	case SYS_process_vm_readv: case SYS_process_vm_writev: case SYS_migrate_pages: case SYS_move_pages: case SYS_setpgid:
		if (stranger(a[0]))
			a[0] = (uint64_t)me.pid;
		if ((nr == SYS_tgkill || nr == SYS_rt_tgsigqueueinfo) && stranger(a[1]))
			a[1] = (uint64_t)me.pid;
		break;
	case SYS_setpriority: case SYS_ioprio_set:
		if (stranger(a[1]))
			a[1] = 0;
		break;
	case SYS_mount: case SYS_umount2: // only where a name of the child's is
		if (a[nr == SYS_mount] - (uint64_t)me.paths < path_size * (uint64_t)me.npaths)
			a[nr == SYS_mount] = (uint64_t)me.paths + mount_name * path_size;
		break;
	case SYS_settimeofday: case SYS_clock_settime:
		return one_in(t, 64);
	}
	return 1;
}

static long number(thread *t, const char *race)
{
	unsigned r = below(t, 64);
	if (race && r < 54) {
		int g = race[(unsigned)t->number % strlen(race)];
		if (in_group[g] > 0)
			return calls[of_group[g][below(t, (unsigned)in_group[g])]].nr;
	}
	if (r < 62)
		return calls[below(t, (unsigned)ncalls)].nr;
	return r == 62 && one_in(t, 8) ? (long)boundary(t) : (long)below(t, 470);
}

// forked makes a child process, which goes on for a few calls at most. One that shares
// memory must not return to a frame that its parent uses: it ends at once.
static long forked(thread *t, long nr, uint64_t *a)
{
	if (nr == SYS_fork || (nr == SYS_clone && !(a[0] & 0x100))) {
		long rc = raw(SYS_fork, 0, 0, 0, 0, 0, 0);
		if (rc != 0)
			return rc;
		for (int i = 0; i < 12; i++) {
			const call *c = &calls[below(t, (unsigned)ncalls)];
			uint64_t b[6] = {0};
			if (c->nr == SYS_fork || c->nr == SYS_vfork || c->nr == SYS_clone || c->nr == SYS_clone3)
				continue;
			for (int k = 0; k < c->args; k++)
				b[k] = argument(t, c->arg[k].kind, c->arg[k].set);
			if (c->nr == SYS_execve || c->nr == SYS_exit_group || c->nr == SYS_execveat || tame(t, c->nr, b))
				raw(c->nr, (long)b[0], (long)b[1], (long)b[2], (long)b[3], (long)b[4], (long)b[5]);
		}
		raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
	long rc;
	register long r10 __asm__("r10") = (long)a[3];
	register long r8 __asm__("r8") = (long)a[4];
	long rdi = (long)a[0];
	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall\n\tud2\n1:"
			 : "=a"(rc), "+D"(rdi) : "a"(nr), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return rc;
}

// keep remembers what a call returned that others may use.
static void keep(thread *t, long nr, long rc)
{
	if (rc <= 2 || rc > 1 << 22)
		return;
	switch (nr) {
	case SYS_read: case SYS_write: case SYS_readv: case SYS_writev: case SYS_getpid: case SYS_gettid: case SYS_getuid: case SYS_getdents64:
	case SYS_pread64: case SYS_pwrite64: case SYS_lseek: case SYS_times: case SYS_splice: case SYS_sendfile: case SYS_getppid:
		return;
	}
	me.recent[below(t, 8)] = (int)rc;
}

// one makes a random call.
static void one(thread *t)
{
	if (one_in(t, me.groups && strchr(me.groups, 'E') ? 2 : 16)) {
		message(t);
		return;
	}
	long nr = number(t, me.groups);
	const call *c = nr >= 0 && nr < 512 && by_number[nr] >= 0 ? &calls[by_number[nr]] : NULL;
	uint64_t a[6];
	short any, set;
	word("any", 3, &any, &set);
	for (int i = 0; i < 6; i++)
		a[i] = c && i < c->args ? argument(t, c->arg[i].kind, c->arg[i].set) : !c ? argument(t, any, 0) : 0;
	if (!tame(t, nr, a))
		return;
	ring *r = t->ring;
	unsigned at = r->count++ % ring_calls;
	r->call[at].nr = (uint64_t)nr;
	memcpy(r->call[at].args, a, sizeof a);
	r->call[at].result = not_yet;
	long rc;
	if (nr == SYS_fork || nr == SYS_clone || nr == SYS_vfork || nr == SYS_clone3)
		rc = nr == SYS_fork && one_in(t, 2) ? 0 : forked(t, nr, a);
	else
		rc = raw(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
	r->call[at].result = rc;
	keep(t, nr, rc);
}

// look checks what must hold for a child that is not root's.
static void look(thread *t)
{
	uint32_t id[3];
	uint64_t *w;
	if (me.uid == 0)
		return;
	if (raw(SYS_getresuid, (long)&id[0], (long)&id[1], (long)&id[2], 0, 0, 0) == 0 && (id[0] != user || id[1] != user || id[2] != user)) {
		me.slot->seen[0] = id[0], me.slot->seen[1] = id[1], me.slot->seen[2] = id[2];
		me.slot->broken = BREACH + root_gained;
	}
	struct {
		uint32_t version, pid;
	} head = {0x20080522, 0};
	uint32_t cap[6] = {0};
	if (raw(SYS_capget, (long)&head, (long)cap, 0, 0, 0, 0) == 0 && (cap[0] | cap[1] | cap[3] | cap[4])) {
		me.slot->seen[0] = cap[0], me.slot->seen[1] = cap[1], me.slot->seen[2] = cap[3];
		me.slot->broken = BREACH + root_gained;
	}
	char *buffer = me.buffers + below(t, buffer_pages) * page;
	if (secret_in(buffer, page) || secret_in(t->slots, 64 * 512)) {
		me.slot->seen[0] = (uint64_t)buffer, me.slot->seen[1] = (uint64_t)t->number, me.slot->seen[2] = (uint64_t)t->slots;
		me.slot->broken = BREACH + secret_seen;
		raw(SYS_exit_group, 1, 0, 0, 0, 0, 0); // the parent shows the last calls
	}
	// Elsewhere other workers write. No argument names this place, and a call with too
	// great a length for its buffer does not come here either: nothing is below.
	long at = raw(SYS_mmap, (long)t->fresh, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
	if (at < 0 && at > -4096)
		return;
	w = (uint64_t *)at;
	for (int i = 0; i < 4 * page / 8; i++)
		if (w[i] != 0 && me.slot->broken != BREACH + memory_not_zero) {
			me.slot->seen[0] = (uint64_t)at, me.slot->seen[1] = (uint64_t)i, me.slot->seen[2] = w[i];
			me.slot->broken = BREACH + memory_not_zero;
		}
	raw(SYS_madvise, at, 4 * page, MADV_DONTNEED, 0, 0, 0);
}

static int work(void *arg)
{
	thread *t = &worker[(intptr_t)arg];
	t->tid = (pid_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < calls_per_child; i++) {
		one(t);
		me.slot->calls[t->number]++;
		if (i % 64 == 63)
			look(t);
		if (i % 32 == 31) // what was closed comes back
			open_kind(t, me.groups ? me.focus[below(t, 3)] - fd_base : (int)below(t, k_kinds));
		if (i % 256 == 255) // and what calls made goes
			raw(SYS_close_range, 64, ~0U, 0, 0, 0, 0);
		if (i % 128 == 127) // mappings come back, too
			raw(SYS_mmap, (long)me.area + below(t, area_pages) * page, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	t->tid = 0;
	for (;;)
		raw(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

static void nothing(int sig) { (void)sig; }

static char *map(size_t pages, int prot)
{
	char *p = mmap(NULL, pages * page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(3);
	return p;
}

// memory lays out what arguments point at.
static void memory(void)
{
	me.buffers = map(buffer_pages, PROT_READ | PROT_WRITE);
	if (me.uid == 0) // what root's children name must not become anything else
		me.paths = mmap((void *)paths_at, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	else
		me.paths = map(4, PROT_READ | PROT_WRITE);
	if (me.paths == MAP_FAILED)
		_exit(3);
	me.area = map(area_pages + 600, PROT_READ | PROT_WRITE); // and what calls take behind it
	me.readonly = map(1, PROT_READ);
	me.edge = map(3, PROT_READ | PROT_WRITE) + 2 * page;
	munmap(me.edge, page);
	int fd = memfd_create("beyond", 0);
	if (fd < 0 || ftruncate(fd, page) < 0)
		_exit(3);
	me.beyond = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (me.beyond == MAP_FAILED)
		_exit(3);
	me.beyond += page;
	close(fd);
	me.shared = common;
	for (int i = 0; i < workers; i++)
		worker[i].slots = map(8, PROT_READ | PROT_WRITE), worker[i].fresh = (char *)fresh_at + (uintptr_t)i * (16 << 20);
}

static void limit(int what, rlim_t value)
{
	struct rlimit l = {value, value};
	setrlimit(what, &l);
}

// enter makes a child of the parent's a process of its own, in a directory of its own.
static void enter(uid_t uid)
{
	char name[32];
	me.pid = getpid(), me.uid = uid;
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	syscall(SYS_close_range, 3, ~0U, 0);
	snprintf(name, sizeof name, "w%d", (int)(me.number % max_children));
	if (chdir(name) < 0)
		_exit(5);
	limit(RLIMIT_FSIZE, 8 << 20), limit(RLIMIT_CORE, 0), limit(RLIMIT_NOFILE, 300), limit(RLIMIT_MEMLOCK, 1 << 20);
	if (uid != 0) {
		limit(RLIMIT_NPROC, 100);
		if (setresgid(uid, uid, uid) < 0 || setgroups(0, NULL) < 0 || setresuid(uid, uid, uid) < 0)
			_exit(6);
	}
	setsid(); // not before: look_around takes who is in another session for what it seems
	memory();
	limit(RLIMIT_AS, 96 << 20);
	make_names();
}

static void begin(uint64_t number, slot *at)
{
	me.slot = at;
	for (int i = 0; i < workers; i++) {
		thread *t = &worker[i];
		t->number = i;
		t->rng = seed * 0x9e3779b97f4a7c15 + number * 0xbf58476d1ce4e5b9 + (uint64_t)i * 0x94d049bb133111eb + 1;
		for (int k = 0; k < 8; k++)
			next(&t->rng);
		t->ring = &at->ring[i];
		memcpy(t->ring->magic, "HTFUZZ01", 8);
		t->ring->seed = seed, t->ring->child = number, t->ring->worker = (uint64_t)i, t->ring->pid = me.pid, t->ring->uid = (int)me.uid;
	}
}

// kind_for is a kind of descriptor that calls of a group can use.
static int kind_for(thread *t, char group)
{
	static const struct {
		char group;
		unsigned char from, to;
	} of[] = {
		{'s', 0, k_sockets}, {'e', k_epoll, k_epoll2 + 1}, {'E', k_receive, k_note + 1}, {'y', k_master, k_slave + 1},
		{'t', k_tmpfs, k_regs}, {'T', k_timer, k_timer + 1}, {'x', k_pid, k_pid2 + 1}, {'n', k_dir, k_dirs},
	};
	for (unsigned i = 0; i < sizeof of / sizeof of[0]; i++)
		if (of[i].group == group)
			return of[i].from + (int)below(t, (unsigned)(of[i].to - of[i].from));
	return (int)below(t, k_kinds);
}

_Noreturn void child(uint64_t number, uid_t uid, slot *at)
{
	me.number = number;
	enter(uid);
	begin(number, at);
	thread *t = &worker[0];
	if (number % 16 == 15)
		instructions(t);
	mkdir("d", 0777), mkdir("m", 0777), mknod("fifo", S_IFIFO | 0666, 0);
	symlink("a", "link"), symlink("loop2", "loop1"), symlink("loop1", "loop2"), mkdir("disk/d", 0777);
	if (number % 4 != 0) {
		me.groups = races_of[below(t, sizeof races_of / sizeof races_of[0])];
		for (int i = 0; i < 3; i++)
			me.focus[i] = fd_base + kind_for(t, me.groups[(unsigned)i % strlen(me.groups)]);
	}
	for (int k = 0; k < k_kinds; k++)
		open_kind(t, k);
	struct sigaction sa = {.sa_handler = nothing};
	for (int sig = 1; sig < 65; sig++) // but for those of faults: who goes on would fault again
		if (sig != SIGSEGV && sig != SIGBUS && sig != SIGILL && sig != SIGFPE && sig != SIGTRAP && sig != SIGSYS)
			sigaction(sig, &sa, NULL);
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	for (int i = 0; i < workers; i++) {
		worker[i].tid = -1;
		pid_t tid = clone(work, worker[i].stack + sizeof worker[i].stack, flags, (void *)(intptr_t)i);
		if (tid < 0)
			raw(SYS_exit_group, 4, 0, 0, 0, 0, 0);
	}
	uint64_t last[workers] = {0};
	int still[workers] = {0};
	for (;;) {
		struct timespec ts = {0, 1000000};
		raw(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
		int alive = 0;
		for (int i = 0; i < workers; i++) {
			pid_t tid = worker[i].tid;
			if (tid == 0 || still[i] > 20)
				continue;
			alive++;
			if (at->calls[i] != last[i]) {
				last[i] = at->calls[i], still[i] = 0;
				continue;
			}
			if (still[i]++ == 0) // the handler may be gone
				sigaction(SIGURG, &sa, NULL);
			raw(SYS_tgkill, me.pid, tid, SIGURG, 0, 0, 0);
		}
		if (alive == 0)
			raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
}

// instructions is the body of a child that executes what comes.
_Noreturn void instructions(thread *t)
{
	static const char *const nasty[] = {
		"\x48\xcf", "\x48\x0f\x07", "\x0f\x05", "\x0f\x34", "\xcd\x80", "\xcd\x02", "\xcd\x08", "\xcd\x0e", "\xcd\x20", "\xcd\xff", "\xcc", "\xf1",
		"\xf4", "\xfa", "\xfb", "\x0f\x01\xf8", "\x0f\x22\xd8", "\x0f\x20\xc0", "\x0f\x01\xd1", "\x0f\x30", "\x0f\x32", "\x0f\x33",
		"\x8e\xd8", "\x8e\xd0", "\x8e\xe0", "\x8e\xe8", "\x0f\x00\xd8", "\x0f\x00\xd0", "\x0f\x01\x10", "\x0f\x01\x18",
		"\xf3\x48\x0f\xae\xd0", "\xf3\x48\x0f\xae\xd8", "\xcb", "\xcf", "\x9d", "\x48\x89\xc4", "\xe4\x60", "\xe6\x80", "\x0f\x0b",
		"\x0f\x09", "\x0f\x01\x38", "\x66\x0f\x38\x82", "\x0f\xc7\xf8", "\xdb\xe3\xd9\xe8", "\x0f\xae\x08", "\xff\x28", "\x0f\xa1",
	};
	limit(RLIMIT_CPU, 1);
	for (int i = 0; i < 12; i++) {
		pid_t pid = (pid_t)raw(SYS_fork, 0, 0, 0, 0, 0, 0);
		if (pid == 0) {
			unsigned char *code = (unsigned char *)map(1, PROT_READ | PROT_WRITE | PROT_EXEC);
			for (int k = 0; k < page; k++)
				code[k] = (unsigned char)(next(&t->rng) >> 16);
			int at = 0;
			for (int k = 0; k < 6; k++) {
				const char *n = nasty[below(t, sizeof nasty / sizeof nasty[0])];
				memcpy(code + at, n, strlen(n));
				at += (int)strlen(n);
			}
			uint64_t regs[4];
			for (int k = 0; k < 4; k++)
				regs[k] = boundary(t);
			raw(SYS_alarm, 1, 0, 0, 0, 0, 0);
			if ((int)regs[0] == SYS_reboot || (int)regs[0] == SYS_kill)
				regs[0] = 0;
			__asm__ volatile("mov %0, %%rcx\n\tmov (%1), %%rax\n\tmov 8(%1), %%rdi\n\tmov 16(%1), %%rsi\n\tmov 24(%1), %%rdx\n\tjmp *%%rcx"
					 ::"r"(code), "r"(regs) : "memory", "rax", "rcx", "rdx", "rdi", "rsi");
		}
		next(&t->rng);
		me.slot->calls[0]++;
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
