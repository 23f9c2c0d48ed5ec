// Who a process is and who may look into it: set-user-id programs, credentials,
// dumpability, and what /proc shows to whom.
#include "gt.h"
#include <elf.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/utsname.h>

enum { nobody = 1000 };

// copy_self makes an executable copy of this program.
static void copy_self(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	int in = must(open("/proc/self/exe", O_RDONLY), "open self"), out = must(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700), name);
	char b[65536];
	ssize_t n;
	while ((n = read(in, b, sizeof b)) > 0)
		must(write(out, b, n), "write");
	must(fchown(out, uid, gid), "chown");
	must(fchmod(out, mode), "chmod");
	close(in), close(out);
}

static void become(uid_t id)
{
	must(syscall(SYS_setgroups, 0, NULL), "setgroups");
	must(syscall(SYS_setresgid, id, id, id), "setresgid");
	must(syscall(SYS_setresuid, id, id, id), "setresuid");
}

static void set_caps(uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {
		{permitted, permitted, inheritable}, {permitted >> 32, permitted >> 32, inheritable >> 32}};
	must(syscall(SYS_capset, &h, d), "capset");
}

static int on_hardtack(void)
{
	struct utsname u;
	uname(&u);
	return strstr(u.release, "hardtack") != NULL;
}

static long vm_read(pid_t pid, volatile void *to, volatile void *from, size_t n)
{
	struct iovec l = {(void *)to, n}, r = {(void *)from, n};
	return process_vm_readv(pid, &l, 1, &r, 1, 0);
}

static long vm_write(pid_t pid, volatile void *from, volatile void *to, size_t n)
{
	struct iovec l = {(void *)from, n}, r = {(void *)to, n};
	return process_vm_writev(pid, &l, 1, &r, 1, 0);
}

static int proc_open(pid_t pid, const char *file)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	return open(path, O_RDONLY);
}

static ssize_t proc_read(pid_t pid, const char *file, char *b, size_t n)
{
	int fd = proc_open(pid, file);
	if (fd < 0)
		return -1;
	size_t done = 0;
	ssize_t k = 0;
	while (done < n && (k = read(fd, b + done, n - done)) > 0)
		done += k;
	int e = errno;
	close(fd);
	errno = e;
	return k < 0 ? -1 : (ssize_t)done;
}

static ssize_t proc_link(pid_t pid, const char *file, char *b, size_t n)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	ssize_t k = readlink(path, b, n - 1);
	b[k > 0 ? k : 0] = 0;
	return k;
}

// --- A race for a set-user-id program. ---

enum { executions = 4000, secret_fd = 200 };
enum { by_read, by_write, by_auxv, by_environ, by_maps, by_getfd, by_exe, by_cwd, by_fd, ways };
static const char *const way_names[ways] = {"memory read", "memory written", "auxv", "environ", "maps", "pidfd_getfd", "exe", "cwd", "fd"};

static struct race {
	atomic_int pid, seen, done;
	atomic_int hits[ways];
} *race;

static volatile int mark = 0x600d; // before exec: 0xbad
static volatile int poked;

static void attack_memory(void)
{
	int one = 1;
	while (!race->done) {
		pid_t pid = race->pid;
		int v = 0;
		if (pid == 0) {
			sched_yield();
			continue;
		}
		if (vm_read(pid, &v, &mark, sizeof v) == sizeof v) {
			race->seen = pid;
			if (v == 0x600d)
				race->hits[by_read]++;
		}
		vm_write(pid, &one, &poked, sizeof one);
	}
}

static void attack_files(void)
{
	static char b[1 << 16];
	int pidfd = -1;
	pid_t of = 0;
	while (!race->done) {
		pid_t pid = race->pid;
		if (pid == 0) {
			sched_yield();
			continue;
		}
		if (pid != of) {
			if (pidfd >= 0)
				close(pidfd);
			pidfd = syscall(SYS_pidfd_open, of = pid, 0);
		}
		ssize_t n = proc_read(pid, "auxv", b, sizeof b);
		for (Elf64_auxv_t *a = (void *)b; n > 0 && (char *)a < b + n; a++)
			if (a->a_type == AT_SECURE && a->a_un.a_val == 1)
				race->hits[by_auxv]++;
		if ((n = proc_read(pid, "environ", b, sizeof b)) > 0 && memmem(b, n, "MARK=suid", 9))
			race->hits[by_environ]++;
		int fd = syscall(SYS_pidfd_getfd, pidfd, secret_fd, 0);
		if (fd >= 0) {
			race->hits[by_getfd]++;
			close(fd);
		}
		if ((n = proc_read(pid, "maps", b, sizeof b)) > 0 && memmem(b, n, "/suid\n", 6))
			race->hits[by_maps]++;
		if (proc_link(pid, "exe", b, 256) > 5 && strcmp(b + strlen(b) - 5, "/suid") == 0)
			race->hits[by_exe]++;
		if (proc_link(pid, "cwd", b, 256) == 1)
			race->hits[by_cwd]++;
		if (proc_link(pid, "fd/200", b, 256) > 0)
			race->hits[by_fd]++;
	}
}

// victim runs the program again and again as somebody without rights, and
// returns how often.
static int victim(void)
{
	int tries = 0;
	long long end = now_ms() + (on_hardtack() ? 10000 : 2000);
	for (int i = 0; i < 30; i++)
		fcntl(0, F_DUPFD_CLOEXEC, 20);
	for (; tries < executions && now_ms() < end; tries++) {
		pid_t pid = FORK({
			race->seen = 0;
			race->pid = getpid();
			for (int k = 0; k < 200 && race->seen != getpid(); k++)
				sched_yield();
			execle("./suid", "suid", "child suid", NULL, (char *[]){"MARK=suid", NULL});
			_exit(90);
		});
		int st = wait_for(pid);
		race->pid = 0;
		if (st == 7 << 8)
			race->hits[by_write]++;
		else if (st != 0)
			status("the program", st);
	}
	return tries;
}

// child_suid is the set-user-id program of the race.
static int child_suid(void)
{
	must(chdir("/"), "chdir");
	must(dup2(must(open("/etc", O_RDONLY), "open /etc"), secret_fd), "dup2");
	for (int i = 0; i < 20; i++)
		sched_yield();
	return geteuid() != 0 || getauxval(AT_SECURE) != 1 ? 8 : poked ? 7 : 0;
}

TEST(set_uid_race, "nobody looks into a set-user-id program while it starts")
{
	copy_self("suid", 0, 0, 04755);
	race = shared(sizeof *race);
	mark = 0xbad;
	int memory = 0, st;
	pid_t a = FORK(become(nobody); prctl(PR_SET_DUMPABLE, 1); attack_memory());
	pid_t b = FORK(become(nobody); prctl(PR_SET_DUMPABLE, 1); attack_files());
	pid_t c = FORK({
		become(nobody);
		personality(ADDR_NO_RANDOMIZE);
		prctl(PR_SET_DUMPABLE, 1);
		_exit(victim() == 0);
	});
	st = wait_for(c);
	race->done = 1;
	wait_for(a), wait_for(b);
	status("executions", st);
	for (int i = 0; i < ways; i++) {
		// Linux checks and follows these links in two steps.
		if (i >= by_exe && !on_hardtack())
			race->hits[i] = 0;
		say("%s: %d times", way_names[i], race->hits[i]);
	}
}

// --- What a set-user-id program starts with. ---

// child_report prints what a program finds.
static int child_report(int argc, char **argv)
{
	struct rlimit l;
	int death = -1;
	getrlimit(RLIMIT_STACK, &l);
	prctl(PR_GET_PDEATHSIG, &death);
	say("%s: uid %d %d gid %d %d secure %ld dumpable %d personality %#x death signal %d stack %s", argv[1], getuid(), geteuid(), getgid(),
		getegid(), getauxval(AT_SECURE), prctl(PR_GET_DUMPABLE), personality(~0u), death,
		l.rlim_cur == 8 << 20 ? "8 MiB" : l.rlim_cur == 64 << 20 ? "64 MiB" : "else");
	return 0;
}

static void report_as(const char *program, const char *what)
{
	struct rlimit l = {64 << 20, RLIM_INFINITY};
	setrlimit(RLIMIT_STACK, &l);
	prctl(PR_SET_PDEATHSIG, SIGURG);
	personality(ADDR_NO_RANDOMIZE | 0x0400000);
	execl(program, program, "child report", what, NULL);
	fatal("exec");
}

TEST(set_uid_start, "what a set-user-id program starts with")
{
	copy_self("plain", 0, 0, 0755);
	copy_self("suid", 0, 0, 04755);
	copy_self("sgid", 0, 7, 02755);
	copy_self("sgid-noexec", 0, 7, 02745);
	copy_self("hidden", 0, 0, 0711);
	copy_self("own", nobody, nobody, 04755);
	IN_CHILD("plain", become(nobody); report_as("./plain", "plain"));
	IN_CHILD("set-uid", become(nobody); report_as("./suid", "set-uid"));
	IN_CHILD("set-gid", become(nobody); report_as("./sgid", "set-gid"));
	IN_CHILD("set-gid without x", become(nobody); report_as("./sgid-noexec", "set-gid without x"));
	IN_CHILD("one's own", become(nobody); report_as("./own", "one's own"));
	IN_CHILD("not readable", become(nobody); report_as("./hidden", "not readable"));
	IN_CHILD("root", report_as("./plain", "root"));
	IN_CHILD("root, set-uid", report_as("./suid", "root, set-uid"));
	IN_CHILD("root, to a user", report_as("./own", "root, to a user"));
	IN_CHILD("no new privileges", become(nobody); prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); report_as("./suid", "no new privileges"));
	IN_CHILD("effective user only", syscall(SYS_setresuid, nobody, 0, 0); report_as("./plain", "effective user only"));
	IN_CHILD("fewer capabilities", set_caps(1, 0); report_as("./plain", "fewer capabilities"));
	IN_CHILD("ambient", {
		prctl(PR_SET_KEEPCAPS, 1);
		become(nobody);
		set_caps(1ull << CAP_NET_RAW, 1ull << CAP_NET_RAW);
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0);
		report_as("./plain", "ambient");
	});
	int fd = must(open("script", O_CREAT | O_WRONLY, 0700), "script");
	dprintf(fd, "#!%s/plain child report\n", getcwd(NULL, 0));
	must(fchmod(fd, 04755), "chmod");
	close(fd);
	IN_CHILD("script", become(nobody); execl("./script", "script", NULL); fatal("exec"));
}

static int sleeper(void *arg)
{
	pause();
	return 0;
}

static char stack[65536];

TEST(shared_directories, "who shares directories cannot get a set-user-id program")
{
	copy_self("suid", 0, 0, 04755);
	IN_CHILD("shared", {
		become(nobody);
		pid_t pid = must(clone(sleeper, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL), "clone");
		if (fork() == 0)
			report_as("./suid", "child of one that shares");
		wait(NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		report_as("./suid", "shared");
	});
	IN_CHILD("unshared", {
		become(nobody);
		pid_t pid = must(clone(sleeper, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL), "clone");
		must(unshare(CLONE_FS), "unshare");
		report_as("./suid", "unshared");
	});
	IN_CHILD("shared by root", {
		pid_t pid = must(clone(sleeper, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL), "clone");
		set_caps(1 << CAP_SETUID | 1 << CAP_SETGID, 0);
		syscall(SYS_setresuid, nobody, 0, 0);
		set_caps(1 << CAP_SETUID, 0);
		report_as("./suid", "shared with CAP_SETUID");
	});
}

static void *pauses(void *arg)
{
	for (;;)
		pause();
}

TEST(threads_share, "threads that share directories do not count")
{
	copy_self("suid", 0, 0, 04755);
	IN_CHILD("threads", {
		become(nobody);
		for (int i = 0; i < 3; i++) {
			pthread_t t;
			pthread_create(&t, NULL, pauses, NULL);
		}
		report_as("./suid", "threads");
	});
}

// --- Who may look into whom. ---

static volatile int content = 42;

// look prints what a caller can see of a process.
static void look(const char *who, pid_t pid)
{
	char b[8192];
	int v = 0, pidfd = syscall(SYS_pidfd_open, pid, 0);
	void *head;
	size_t len;
	void *page = (void *)((uintptr_t)&content & ~4095ul);
	int node;
#define show(what, rc) say("%s: %s: %s", who, what, (rc) >= 0 ? "ok" : name_of(errno))
	show("process_vm_readv", vm_read(pid, &v, &content, sizeof v));
	show("process_vm_writev", vm_write(pid, &v, &v, sizeof v));
	show("kcmp", syscall(SYS_kcmp, pid, getpid(), KCMP_FILES, 0, 0) < 0 ? -1 : 0);
	show("kcmp of files", syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, 1, 1) < 0 ? -1 : 0);
	show("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 1, 0));
	show("get_robust_list", syscall(SYS_get_robust_list, pid, &head, &len));
	show("move_pages", syscall(SYS_move_pages, pid, 1, &page, NULL, &node, 0));
	if (geteuid() != 0) // a container's root may not
		show("prlimit", prlimit(pid, RLIMIT_CORE, NULL, &(struct rlimit){}));
	show("environ", proc_read(pid, "environ", b, sizeof b));
	show("auxv", proc_read(pid, "auxv", b, sizeof b));
	show("maps", proc_read(pid, "maps", b, sizeof b));
	show("smaps", proc_read(pid, "smaps", b, sizeof b));
	show("io", proc_read(pid, "io", b, sizeof b));
	show("personality", proc_read(pid, "personality", b, sizeof b));
	show("cmdline", proc_read(pid, "cmdline", b, sizeof b));
	show("status", proc_read(pid, "status", b, sizeof b));
	show("limits", proc_read(pid, "limits", b, sizeof b));
	show("exe", proc_link(pid, "exe", b, sizeof b));
	show("cwd", proc_link(pid, "cwd", b, sizeof b));
	show("root", proc_link(pid, "root", b, sizeof b));
	show("fd", proc_open(pid, "fd"));
	show("fd/1", proc_link(pid, "fd/1", b, sizeof b));
	show("kill 0", kill(pid, 0));
	show("setpriority", setpriority(PRIO_PROCESS, pid, 5));
	ssize_t n = proc_read(pid, "stat", b, sizeof b - 1);
	if (n > 0) {
		b[n] = 0;
		unsigned long f[52] = {0};
		char *s = strrchr(b, ')') + 3;
		for (int i = 3; i < 52 && (s = strchr(s, ' ')); i++)
			f[i] = strtoul(++s, NULL, 10);
		say("%s: stat: code %s stack %s data %s", who, f[25] > 1 ? "shown" : f[25] ? "1" : "0", f[27] ? "shown" : "0", f[44] ? "shown" : "0");
	}
}

// target starts a process that becomes somebody and says when it is ready.
#define TARGET(...)                                        \
	({                                                 \
		int gt_p[2];                               \
		char gt_c;                                 \
		must(pipe(gt_p), "pipe");                  \
		pid_t gt_t = FORK({                        \
			close(gt_p[0]);                    \
			__VA_ARGS__;                       \
			close(gt_p[1]);                    \
			for (;;)                           \
				pause();                   \
		});                                        \
		close(gt_p[1]);                            \
		must(read(gt_p[0], &gt_c, 1), "read");     \
		close(gt_p[0]);                            \
		gt_t;                                      \
	})

TEST(same_user, "a process of the same user")
{
	pid_t pid = TARGET(become(nobody); prctl(PR_SET_DUMPABLE, 1));
	IN_CHILD("it", become(nobody); look("plain", pid));
	kill(pid, SIGKILL);
	pid = TARGET(become(nobody));
	IN_CHILD("it", become(nobody); look("not dumpable", pid));
	IN_CHILD("it", look("root", pid));
	kill(pid, SIGKILL);
	pid = TARGET(become(nobody); prctl(PR_SET_DUMPABLE, 1));
	IN_CHILD("it", become(nobody + 1); look("another user", pid));
	kill(pid, SIGKILL);
}

TEST(capable_target, "a process of the same user with more capabilities")
{
	pid_t pid = TARGET({
		prctl(PR_SET_KEEPCAPS, 1);
		become(nobody);
		set_caps(1 << CAP_NET_RAW, 0);
		prctl(PR_SET_DUMPABLE, 1);
	});
	IN_CHILD("it", become(nobody); look("without", pid));
	IN_CHILD("it", {
		prctl(PR_SET_KEEPCAPS, 1);
		become(nobody);
		set_caps(1 << CAP_NET_RAW | 1 << CAP_CHOWN, 0);
		look("with as many", pid);
	});
	IN_CHILD("it", {
		prctl(PR_SET_KEEPCAPS, 1);
		become(nobody);
		set_caps(1 << CAP_SYS_PTRACE, 0);
		look("with CAP_SYS_PTRACE", pid);
	});
	kill(pid, SIGKILL);
}

TEST(kinds_of_ids, "real IDs count for calls, file-system IDs for files")
{
	pid_t pid = TARGET(become(nobody); prctl(PR_SET_DUMPABLE, 1));
	IN_CHILD("it", {
		syscall(SYS_setresgid, nobody, 5, 5);
		syscall(SYS_setresuid, nobody, 5, 5);
		look("real", pid);
	});
	IN_CHILD("it", {
		syscall(SYS_setresgid, 5, nobody, 5);
		syscall(SYS_setresuid, 5, nobody, 5);
		look("effective", pid);
	});
	kill(pid, SIGKILL);
}

static int thread_id;

static void *drops(void *arg)
{
	thread_id = gettid();
	become(nobody);
	prctl(PR_SET_DUMPABLE, 1);
	*(atomic_int *)arg = thread_id;
	for (;;)
		pause();
}

TEST(thread_credentials, "threads have credentials of their own")
{
	atomic_int *tid = shared(4096);
	pid_t pid = FORK({
		pthread_t t;
		pthread_create(&t, NULL, drops, tid);
		pause();
	});
	until(*tid);
	IN_CHILD("it", {
		become(nobody);
		int v;
		err("the process", vm_read(pid, &v, &content, sizeof v));
		err("its thread", vm_read(*tid, &v, &content, sizeof v));
		err("kcmp of the process", syscall(SYS_kcmp, pid, pid, KCMP_VM, 0, 0));
		err("kcmp of the thread", syscall(SYS_kcmp, *tid, *tid, KCMP_VM, 0, 0));
		err("kill", kill(pid, 0));
		err("tgkill", syscall(SYS_tgkill, pid, *tid, 0));
		char path[64], b[4096];
		snprintf(path, sizeof path, "task/%d/environ", *tid);
		err("environ of the thread", proc_read(pid, path, b, sizeof b));
		err("environ of the process", proc_read(pid, "environ", b, sizeof b));
	});
	kill(pid, SIGKILL);
}

TEST(shared_memory_dumpable, "dumpability belongs to the memory")
{
	atomic_int *step = shared(4096);
	pid_t pid = FORK({
		become(nobody);
		prctl(PR_SET_DUMPABLE, 1);
		*step = must(clone(sleeper, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL), "clone");
		prctl(PR_SET_DUMPABLE, 0);
		step[1] = 1;
		pause();
	});
	until(step[1]);
	IN_CHILD("it", {
		become(nobody);
		int v;
		err("who shares it", vm_read(*step, &v, &content, sizeof v));
	});
	kill(*step, SIGKILL);
	kill(pid, SIGKILL);
}

// --- Files of /proc that were opened before. ---

// child_hold is a set-user-id program that reads what it inherited.
static int child_hold(int argc, char **argv)
{
	char b[4096];
	for (int i = 1; i + 1 < argc; i += 2) {
		int fd = atoi(argv[i + 1]);
		ssize_t n = read(fd, b, sizeof b);
		say("%s, inherited: %s", argv[i], n > 0 ? "text" : n == 0 ? "nothing" : name_of(errno));
	}
	write(9, "", 1);
	pause();
	return 0;
}

TEST(open_before, "a file of /proc that was opened before exec")
{
	copy_self("suid", 0, 0, 04755);
	IN_CHILD("it", {
		become(nobody);
		prctl(PR_SET_DUMPABLE, 1);
		int p[2];
		must(pipe(p), "pipe");
		atomic_int *go = shared(4096);
		pid_t pid = FORK({
			dup2(p[1], 9);
			until(*go);
			char n[4][8];
			snprintf(n[0], 8, "%d", open("/proc/self/environ", O_RDONLY));
			snprintf(n[1], 8, "%d", open("/proc/self/maps", O_RDONLY));
			snprintf(n[2], 8, "%d", open("/proc/self/auxv", O_RDONLY));
			snprintf(n[3], 8, "%d", open("/proc/self/io", O_RDONLY));
			execl("./suid", "suid", "child hold", "environ", n[0], "maps", n[1], "auxv", n[2], "io", n[3], NULL);
		});
		const char *names[] = {"environ", "maps", "smaps", "auxv", "io", "personality", "cmdline", "status"};
		int fds[8];
		for (int i = 0; i < 8; i++)
			fds[i] = must(proc_open(pid, names[i]), names[i]);
		int dir = must(proc_open(pid, "fd"), "fd"), stat = must(proc_open(pid, "stat"), "stat");
		*go = 1;
		char b[8192];
		must(read(p[0], b, 1), "read");
		for (int i = 0; i < 8; i++) {
			ssize_t n = read(fds[i], b, sizeof b);
			say("%s: %s", names[i], n > 0 ? "text" : n == 0 ? "nothing" : name_of(errno));
		}
		err("a link in fd", readlinkat(dir, "1", b, sizeof b));
		ssize_t n = pread(stat, b, sizeof b - 1, 0);
		b[n > 0 ? n : 0] = 0;
		unsigned long f[52] = {0};
		char *s = strrchr(b, ')') + 3;
		for (int i = 3; i < 52 && (s = strchr(s, ' ')); i++)
			f[i] = strtoul(++s, NULL, 10);
		say("stat: code %lu stack %lu", f[25], f[27]);
	});
}

TEST(kernel_files, "what the kernel shows of itself to anybody")
{
	IN_CHILD("it", {
		become(nobody);
		const char *names[] = {"heap", "goroutines", "syscalls", "nucleus", "allocated"};
		for (int i = 0; i < 5; i++) {
			char path[64];
			snprintf(path, sizeof path, "/proc/hardtack/%s", names[i]);
			if (open(path, O_RDONLY) >= 0) // Linux has none
				say("%s is readable", names[i]);
		}
	});
}

TEST(maps_in_pieces, "maps of many mappings, in pieces")
{
	enum { count = 1000 };
	char *at = must((long)mmap(NULL, 2 * count * 4096ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	for (int i = 0; i < count; i++)
		mprotect(at + 2 * i * 4096ul, 4096, PROT_NONE);
	int sizes[] = {1 << 20, 4096, 100, 7};
	int fd = must(open("/proc/self/maps", O_RDONLY), "maps");
	static char text[1 << 20];
	for (int k = 0; k < 4; k++) {
		size_t n = 0;
		ssize_t got;
		must(lseek(fd, 0, SEEK_SET), "lseek");
		while ((got = read(fd, text + n, n + sizes[k] < sizeof text ? sizes[k] : sizeof text - n)) > 0)
			n += got;
		text[n] = 0;
		int ours = 0, odd = 0;
		unsigned long last = 0;
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			unsigned long a, b;
			char prot[5];
			if (sscanf(line, "%lx-%lx %4s", &a, &b, prot) != 3 || a < last)
				odd++;
			last = b;
			ours += a >= (unsigned long)at && b <= (unsigned long)at + 2 * count * 4096ul;
		}
		say("read by %d: %d of %d, %d odd lines", sizes[k], ours, 2 * count, odd);
	}
	char one[64], two[64];
	pread(fd, one, 64, 20000);
	lseek(fd, 20000, SEEK_SET);
	read(fd, two, 64);
	say("at an offset: %s", memcmp(one, two, 64) ? "another text" : "the same text");
	close(fd);
}

// child_title writes over its arguments.
static int child_title(int argc, char **argv)
{
	char b[256];
	memset(argv[0], 'x', strlen(argv[0]) + 1 + strlen(argv[1]) + 1);
	say("title: %zd bytes", proc_read(getpid(), "cmdline", b, sizeof b));
	b[0] = 0;
	int fd = open("/proc/self/cmdline", O_RDONLY);
	say("in the middle: %zd bytes", pread(fd, b, 3, 2));
	return 0;
}

TEST(cmdline, "cmdline and environ at offsets")
{
	IN_CHILD("it", {
		execle("/proc/self/exe", "zero", "child line", "abc", NULL, (char *[]){"A=1", "B=2", NULL});
	});
	IN_CHILD("it", {
		execle("/proc/self/exe", "zero", "child title", NULL, (char *[]){"A=1", "B=2", NULL});
	});
}

static int child_line(int argc, char **argv)
{
	char b[256];
	for (int off = 0; off < 24; off += 5) {
		int fd = open("/proc/self/cmdline", O_RDONLY), env = open("/proc/self/environ", O_RDONLY);
		ssize_t n = pread(fd, b, 4, off), m = pread(env, b + 4, 4, off);
		say("at %d: %zd %d, %zd %d", off, n, n > 0 ? b[0] : 0, m, m > 0 ? b[4] : 0);
		close(fd), close(env);
	}
	return 0;
}

int child_main(int argc, char **argv)
{
	if (strcmp(argv[0], "child suid") == 0)
		return child_suid();
	if (strcmp(argv[0], "child report") == 0)
		return child_report(argc, argv);
	if (strcmp(argv[0], "child hold") == 0)
		return child_hold(argc, argv);
	if (strcmp(argv[0], "child line") == 0)
		return child_line(argc, argv);
	if (strcmp(argv[0], "child title") == 0)
		return child_title(argc + 1, argv - 1);
	return 9;
}
