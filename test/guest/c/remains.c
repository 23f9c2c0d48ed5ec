// What the calls that take a process's number say of a zombie, of a process whose
// first thread has ended, and of the number of a thread.
#include "gt.h"
#include <linux/capability.h>
#include <linux/futex.h>
#include <pthread.h>

static void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static void text(const char *dir, const char *name)
{
	char path[128], b[4096] = "";
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0) {
		say("%s: open %s", name, name_of(errno));
		return;
	}
	long n = read(fd, b, sizeof b - 1);
	say("%s: %s", name, n < 0 ? name_of(errno) : n == 0 ? "empty" : "some");
	close(fd);
}

static void calls(int id)
{
	err("kill 0", kill(id, 0));
	err("getpgid", getpgid(id));
	err("getsid", getsid(id));
	err("getpriority", getpriority(PRIO_PROCESS, id));
	err("setpriority", setpriority(PRIO_PROCESS, id, 3));
	errno = 0;
	int nice = getpriority(PRIO_PROCESS, id);
	say("nice %d", nice);
	err("sched_getscheduler", sched_getscheduler(id));
	struct sched_param sp = {};
	err("sched_getparam", sched_getparam(id, &sp));
	err("sched_setscheduler", sched_setscheduler(id, SCHED_BATCH, &sp));
	say("policy %d", sched_getscheduler(id));
	cpu_set_t set;
	err("sched_getaffinity", sched_getaffinity(id, sizeof set, &set));
	err("sched_setaffinity", sched_setaffinity(id, sizeof set, &set));
	struct timespec ts;
	err("sched_rr_get_interval", sched_rr_get_interval(id, &ts));
	char attr[64] = {};
	err("sched_getattr", syscall(SYS_sched_getattr, id, attr, 48, 0));
	err("ioprio_get", syscall(SYS_ioprio_get, 1, id));
	err("ioprio_set", syscall(SYS_ioprio_set, 1, id, 2 << 13 | 4));
	struct rlimit64 rl;
	err("prlimit", prlimit64(id, RLIMIT_NOFILE, NULL, &rl));
	err("setting it", prlimit64(id, RLIMIT_NOFILE, &rl, NULL));
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, id};
	struct __user_cap_data_struct d[2];
	err("capget", syscall(SYS_capget, &h, d));
	void *list;
	size_t len;
	err("get_robust_list", syscall(SYS_get_robust_list, id, &list, &len));
	char c;
	struct iovec l = {&c, 1}, r = {&c, 1};
	err("process_vm_readv", process_vm_readv(id, &l, 1, &r, 1, 0));
	err("thread's clock", clock_gettime(~(unsigned)id << 3 | 6, &ts));
	err("clock_getcpuclockid", clock_gettime(~(unsigned)id << 3 | 2, &ts));
	siginfo_t si = {.si_code = -1};
	err("rt_sigqueueinfo 0", syscall(SYS_rt_sigqueueinfo, id, 0, &si));
	err("move_pages", syscall(SYS_move_pages, id, 0, NULL, NULL, NULL, 0));
	err("migrate_pages", syscall(SYS_migrate_pages, id, 0, NULL, NULL) < 0 && errno != ENOSYS ? -1 : 0);
	err("kcmp", syscall(SYS_kcmp, getpid(), id, 1, 0, 0) < 0 && errno != ENOSYS ? -1 : 0);
}

static void files(int id)
{
	char dir[64], b[512], path[128];
	snprintf(dir, sizeof dir, "/proc/%d", id);
	static const char *const names[] = {"stat", "status", "statm", "cmdline", "comm", "maps", "smaps",
		"limits", "cgroup", "oom_score_adj", "loginuid", "mountinfo", "mounts", "wchan", "personality"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		text(dir, names[i]);
	static const char *const links[] = {"exe", "cwd", "root"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, links[i]);
		err(links[i], readlink(path, b, sizeof b));
	}
	static const char *const dirs[] = {"fd", "fdinfo", "task"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, dirs[i]);
		DIR *d = opendir(path);
		int n = 0;
		if (!d) {
			err(dirs[i], -1);
			continue;
		}
		errno = 0;
		for (struct dirent *e; (e = readdir(d));)
			n += e->d_name[0] != '.';
		say("%s: %s, entries %d", dirs[i], name_of(errno), i < 2 && n > 1 ? 2 : n);
		closedir(d);
	}
	snprintf(path, sizeof path, "%s/status", dir);
	FILE *f = fopen(path, "r");
	while (f && fgets(b, sizeof b, f))
		if (!strncmp(b, "State", 5) || !strncmp(b, "Threads", 7) || !strncmp(b, "FDSize", 6) || !strncmp(b, "VmSize", 6)) {
			b[strcspn(b, "\n")] = 0;
			if (!strncmp(b, "VmSize", 6) || !strncmp(b, "FDSize", 6) && atoi(b + 7) > 0)
				b[6] = 0;
			say("%s", b);
		}
	if (f)
		fclose(f);
}

TEST(zombie, "a zombie")
{
	int pid = fork();
	if (pid == 0)
		_exit(0);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	calls(pid);
	err("tgkill", syscall(SYS_tgkill, pid, pid, 0));
	err("tkill", syscall(SYS_tkill, pid, 0));
	err("setpgid", setpgid(pid, pid));
	int fd = syscall(SYS_pidfd_open, pid, 0);
	err("pidfd_open", fd);
	err("pidfd_send_signal", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	err("pidfd_getfd", syscall(SYS_pidfd_getfd, fd, 0, 0));
	struct pollfd p = {.fd = fd, .events = POLLIN};
	say("poll %d, %x", poll(&p, 1, 0), p.revents);
	files(pid);
	waitpid(pid, NULL, 0);
	say("afterwards");
	calls(pid);
	err("pidfd_send_signal", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	err("pidfd_getfd", syscall(SYS_pidfd_getfd, fd, 0, 0));
}

static void *rest(void *p)
{
	*(int *)p = gettid();
	for (;;)
		pause();
}

TEST(leader, "a process whose first thread has ended")
{
	int *tid = shared(4096);
	int pid = fork();
	if (pid == 0) {
		pthread_t t;
		pthread_create(&t, NULL, rest, tid);
		while (*(volatile int *)tid == 0)
			nap(1);
		syscall(SYS_exit, 0);
	}
	char name[64], b[512] = "";
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	for (int i = 0; i < 2000 && !strstr(b, ") Z"); i++) {
		int fd = open(name, O_RDONLY);
		read(fd, b, sizeof b - 1);
		close(fd);
		nap(1);
	}
	calls(pid);
	err("tgkill", syscall(SYS_tgkill, pid, pid, 0));
	err("tgkill, the other", syscall(SYS_tgkill, pid, *tid, 0));
	err("tkill", syscall(SYS_tkill, pid, 0));
	int fd = syscall(SYS_pidfd_open, pid, 0);
	err("pidfd_open", fd);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	say("poll %d, %x", poll(&p, 1, 0), p.revents);
	files(pid);
	say("the thread");
	calls(*tid);
	files(*tid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(thread, "the number of a thread")
{
	int *tid = shared(4096);
	pthread_t t;
	pthread_create(&t, NULL, rest, tid);
	while (*(volatile int *)tid == 0)
		nap(1);
	calls(*tid);
	err("tgkill", syscall(SYS_tgkill, getpid(), *tid, 0));
	err("tgkill, wrong group", syscall(SYS_tgkill, *tid, *tid, 0));
	err("tkill", syscall(SYS_tkill, *tid, 0));
	err("setpgid", setpgid(*tid, *tid));
	err("setpgid to it", setpgid(0, *tid));
	err("kill of its group", kill(-*tid, 0));
	err("waitpid", waitpid(*tid, NULL, WNOHANG));
	err("getpriority of its group", getpriority(PRIO_PGRP, *tid));
	files(*tid);
}
