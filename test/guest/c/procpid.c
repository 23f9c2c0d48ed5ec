// Files of /proc/PID: who may read and write them, namespaces, attributes, timers.
#include "gt.h"
#include <grp.h>
#include <linux/nsfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static char text[1 << 16];

static char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = 0, k = 0;
	while (fd >= 0 && n < (ssize_t)sizeof text - 1 && (k = read(fd, text + n, sizeof text - 1 - n)) > 0)
		n += k;
	if (fd < 0 || k < 0)
		return NULL;
	close(fd);
	text[n] = 0;
	return text;
}

static long put(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	long n = write(fd, what, strlen(what));
	int e = errno;
	close(fd);
	errno = e;
	return n < 0 ? n : 0;
}

static const char *const names[] = {"stat", "status", "statm", "cmdline", "comm", "environ", "auxv", "maps", "smaps", "smaps_rollup", "mem", "pagemap",
	"uid_map", "gid_map", "projid_map", "setgroups", "cpuset", "limits", "io", "exe", "cwd", "root", "fd", "fdinfo", "mounts", "mountinfo", "mountstats",
	"syscall", "oom_score", "oom_score_adj", "oom_adj", "loginuid", "sessionid", "wchan", "cgroup", "personality", "schedstat", "net", "ns", "attr",
	"numa_maps", "clear_refs", "timers", "timerslack_ns", "timens_offsets", "sched", "coredump_filter", "map_files", "task", "children",
	"attr/current", "attr/prev", "attr/exec", "attr/fscreate", "attr/keycreate", "attr/sockcreate", "ns/net", "ns/time_for_children"};

static void modes(const char *dir)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		struct stat st;
		if (lstat(path, &st) < 0)
			say("%s: %s", names[i], name_of(errno));
		else
			say("%s: %o, owner %d:%d", names[i], st.st_mode, st.st_uid, st.st_gid);
	}
}

TEST(of_process, "modes")
{
	modes("/proc/self");
}

TEST(of_thread, "modes of a thread")
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d", getpid());
	modes(path);
}

static void look(const char *dir)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128], b[4096];
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		struct stat st;
		if (!strcmp(names[i], "timers"))
			continue; // newer kernels ask who reads it
		if (lstat(path, &st) < 0) {
			say("%s: lstat %s", names[i], name_of(errno));
		} else if (S_ISLNK(st.st_mode)) {
			say("%s: readlink %s, stat %s", names[i], readlink(path, b, sizeof b) < 0 ? name_of(errno) : "ok", stat(path, &st) < 0 ? name_of(errno) : "ok");
		} else {
			int fd = open(path, O_RDONLY);
			long n = fd < 0 ? 0 : S_ISDIR(st.st_mode) ? syscall(SYS_getdents64, fd, b, sizeof b) : pread(fd, b, sizeof b, 0);
			const char *r = fd < 0 ? "" : n < 0 ? name_of(errno) : n == 0 ? "nothing" : "something";
			if (!strcmp(names[i], "mem") && fd >= 0)
				r = "";
			say("%s: open %s, read %s", names[i], fd < 0 ? name_of(errno) : "ok", r);
			if (fd >= 0)
				close(fd);
		}
	}
}

// A process of a user, and who looks at it.
static void seen(const char *who, int uid, int dumpable)
{
	int ready[2];
	pipe(ready);
	pid_t child = FORK(if (uid && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)) _exit(1);
		prctl(PR_SET_DUMPABLE, dumpable); write(ready[1], "x", 1); pause());
	char b[64], dir[64];
	read(ready[0], b, 1);
	snprintf(dir, sizeof dir, "/proc/%d", child);
	say("%s", who);
	IN_CHILD("user 1000", {
		if (setgroups(0, NULL) < 0 || setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		prctl(PR_SET_DUMPABLE, 1);
		look(dir);
		snprintf(b, sizeof b, "%s/clear_refs", dir);
		err("clear_refs", put(b, "1"));
		snprintf(b, sizeof b, "%s/coredump_filter", dir);
		err("coredump_filter", put(b, "0x33"));
		snprintf(b, sizeof b, "%s/attr/current", dir);
		err("attr/current", put(b, "x"));
		snprintf(b, sizeof b, "%s/comm", dir);
		err("comm", put(b, "x"));
		snprintf(b, sizeof b, "%s/sched", dir);
		err("sched", put(b, "0"));
		snprintf(b, sizeof b, "%s/oom_adj", dir);
		err("oom_adj", put(b, "1"));
	});
	kill(child, SIGKILL);
	wait_for(child);
}

TEST(own_user, "a process of the same user") { seen("same user", 1000, 1); }
TEST(not_dumpable, "a process of the same user that is not dumpable") { seen("not dumpable", 1000, 0); }
TEST(other_user, "a process of another user") { seen("another user", 1001, 1); }
TEST(roots, "root's process") { seen("root", 0, 1); }

TEST(zombie, "a zombie")
{
	pid_t child = FORK(_exit(0));
	siginfo_t info;
	waitid(P_PID, child, &info, WEXITED | WNOWAIT);
	char dir[64];
	snprintf(dir, sizeof dir, "/proc/%d", child);
	static const char *const of[] = {"ns/net", "ns/user", "ns/pid", "ns/pid_for_children", "ns/mnt", "ns/time", "attr/current", "numa_maps", "coredump_filter", "map_files", "oom_adj", "schedstat"};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		char path[128], b[256];
		snprintf(path, sizeof path, "%s/%s", dir, of[i]);
		int fd = open(path, O_RDONLY);
		if (fd < 0) {
			say("%s: %s", of[i], name_of(errno));
			continue;
		}
		long n = read(fd, b, sizeof b);
		say("%s: %s", of[i], n < 0 ? name_of(errno) : n ? "something" : "nothing");
	}
	wait_for(child);
}

static const struct {
	const char *name;
	int kind;
} kinds[] = {{"net", CLONE_NEWNET}, {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC}, {"pid", CLONE_NEWPID}, {"pid_for_children", CLONE_NEWPID},
	{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS}, {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80}, {"time_for_children", 0x80}};

TEST(links, "namespaces")
{
	struct stat first, st, parent;
	struct statfs fs;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		char path[64], link[64] = "", other[64], own[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i].name);
		num("readlink", readlink(path, link, sizeof link - 1) > 0);
		say("%s: %.*s", kinds[i].name, (int)(strchr(link, '[') - link), link);
		err("stat", stat(path, &st));
		say("%o, owner %d, links %d, size %d, in the link: %d", st.st_mode, st.st_uid, (int)st.st_nlink, (int)st.st_size,
		    strtoul(strchr(link, '[') + 1, NULL, 10) == st.st_ino);
		if (i == 0)
			first = st;
		say("one device: %d, one inode: %d", st.st_dev == first.st_dev, st.st_ino == first.st_ino);
		snprintf(path, sizeof path, "/proc/%d/ns/%s", getppid(), kinds[i].name);
		say("the parent's: %d", stat(path, &parent) == 0 && parent.st_ino == st.st_ino && parent.st_dev == st.st_dev);
		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i].name);
		int fd = must(open(path, O_RDONLY), path);
		fstatfs(fd, &fs);
		say("%lx", (long)fs.f_type);
		snprintf(other, sizeof other, "/proc/self/fd/%d", fd);
		num("its name", readlink(other, own, sizeof own - 1) > 0);
		say("same name: %d", !strcmp(own, link));
		err("read", read(fd, own, 1));
		err("write", write(fd, own, 1));
		say("type: %d", ioctl(fd, NS_GET_NSTYPE) == kinds[i].kind);
		err("parent", ioctl(fd, NS_GET_PARENT));
		int user = err("owner", ioctl(fd, NS_GET_USERNS));
		if (user >= 0) {
			say("close on exec: %d", fcntl(user, F_GETFD));
			say("type: %d", ioctl(user, NS_GET_NSTYPE) == CLONE_NEWUSER);
		}
		uid_t uid = 7;
		err("owner's uid", ioctl(fd, NS_GET_OWNER_UID, &uid));
		say("%d", uid);
		err("bad owner", ioctl(fd, NS_GET_OWNER_UID, 8));
		err("ioctl", ioctl(fd, FIONREAD, &uid));
		close(fd);
	}
	err("to write", open("/proc/self/ns/net", O_RDWR));
	err("truncate", truncate("/proc/self/ns/net", 0));
	err("chmod", chmod("/proc/self/ns/net", 0600));
	err("times", utimensat(AT_FDCWD, "/proc/self/ns/net", NULL, 0));
	err("absent", open("/proc/self/ns/none", O_RDONLY));
	err("through a link", readlink("/proc/self/ns/net/x", text, sizeof text));
	err("create", open("/proc/self/ns/x", O_CREAT | O_RDWR, 0600));
}

static void enter(void)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i].name);
		int fd = must(open(path, O_RDONLY), path);
		say("%s", kinds[i].name);
		err("any", syscall(SYS_setns, fd, 0));
		err("itself", syscall(SYS_setns, fd, kinds[i].kind));
		err("another", syscall(SYS_setns, fd, kinds[i].kind == CLONE_NEWNET ? CLONE_NEWUTS : CLONE_NEWNET));
		int pidfd = must(syscall(SYS_pidfd_open, getpid(), 0), "pidfd");
		err("by pidfd", syscall(SYS_setns, pidfd, kinds[i].kind));
		close(fd), close(pidfd);
	}
	int pidfd = must(syscall(SYS_pidfd_open, getpid(), 0), "pidfd"), parent = must(syscall(SYS_pidfd_open, getppid(), 0), "pidfd");
	err("nothing", syscall(SYS_setns, pidfd, 0));
	err("unknown", syscall(SYS_setns, pidfd, CLONE_FILES));
	err("several", syscall(SYS_setns, pidfd, CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC));
	err("the parent's", syscall(SYS_setns, parent, CLONE_NEWUTS));
	err("another file", syscall(SYS_setns, 0, 0));
	err("none", syscall(SYS_setns, -1, 0));
}

TEST(setns_root, "setns by root") { enter(); }

TEST(setns_user, "setns by a user")
{
	IN_CHILD("user", {
		if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		prctl(PR_SET_DUMPABLE, 1);
		enter();
	});
}

static int idle(void *arg)
{
	(void)arg;
	pause();
	return 0;
}

TEST(setns_mount, "the mount namespace changes directories")
{
	char cwd[PATH_MAX];
	int fd = must(open("/proc/self/ns/mnt", O_RDONLY), "mnt");
	IN_CHILD("moved", {
		chdir("/tmp");
		err("setns", syscall(SYS_setns, fd, CLONE_NEWNS));
		say("%s", getcwd(cwd, sizeof cwd));
	});
	IN_CHILD("shared directories", {
		static char stack[65536];
		pid_t child = must(clone(idle, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL), "clone");
		err("setns", syscall(SYS_setns, fd, CLONE_NEWNS));
		kill(child, SIGKILL);
	});
}

TEST(filter, "coredump_filter")
{
	static const char *const values[] = {"0x33", "0", "511", "0x1ff", "0xffffffff", "077", " 1", "1 ", "1\n", "x", "", "-1", "0x100000000", "+5"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		err(values[i], put("/proc/self/coredump_filter", values[i]));
		say("%s", strtok(slurp("/proc/self/coredump_filter"), "\n"));
	}
	put("/proc/self/coredump_filter", "7");
	IN_CHILD("a child has it", say("%s", strtok(slurp("/proc/self/coredump_filter"), "\n")));
}

TEST(refs, "clear_refs")
{
	static const char *const values[] = {"1", "2", "3", "5", "0", "6", "-1", "x", "", " 1 ", "1\n", "0x1", "99999999999"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		err(values[i], put("/proc/self/clear_refs", values[i]));
	err("read", open("/proc/self/clear_refs", O_RDONLY) < 0 ? -1 : read(open("/proc/self/clear_refs", O_RDONLY), text, 1));
	size_t n = 8 << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, n);
	munmap(p, n);
	long before = atol(strstr(slurp("/proc/self/status"), "VmHWM:") + 6);
	put("/proc/self/clear_refs", "5");
	long after = atol(strstr(slurp("/proc/self/status"), "VmHWM:") + 6);
	say("the peak fell: %d", before - after > 6000);
	p = mmap(NULL, 96 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p += 16 << 10;
	mprotect(p, 64 << 10, PROT_READ | PROT_WRITE);
	madvise(p, 64 << 10, MADV_NOHUGEPAGE);
	memset(p, 1, 64 << 10);
	char at[32];
	snprintf(at, sizeof at, "%lx-", (long)p);
	for (int i = 0; i < 2; i++) {
		char *line = strstr(slurp("/proc/self/smaps"), at);
		say("referenced: %ld", line ? atol(strstr(line, "Referenced:") + 11) : -1);
		put("/proc/self/clear_refs", "1");
	}
}

TEST(numa, "numa_maps")
{
	char at[32];
	char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, 8 * 4096, MADV_NOHUGEPAGE);
	mprotect(p + 4 * 4096, 4 * 4096, PROT_READ);
	p[0] = p[4096] = p[2 * 4096] = p[3 * 4096] = 1;
	for (int i = 0; i < 2; i++) {
		snprintf(at, sizeof at, "%lx ", (long)p + i * 4 * 4096);
		char *line = strstr(slurp("/proc/self/numa_maps"), at), *end = line ? strchr(line, '\n') : NULL;
		if (!end)
			fatal("no such mapping");
		*end = 0;
		char *active = strstr(line, " active=");
		if (active)
			memmove(active, strchr(active + 1, ' '), strlen(strchr(active + 1, ' ')) + 1);
		say("%s", strchr(line, ' ') + 1);
	}
	char *line = strstr(slurp("/proc/self/numa_maps"), " stack ");
	say("a stack: %d, a file: %d", line != NULL, strstr(slurp("/proc/self/numa_maps"), " file=/") != NULL);
}

TEST(oom_score, "oom_score")
{
	static const char *const adj[] = {"0", "500", "1000"};
	for (int i = 0; i < 3; i++) {
		if (put("/proc/self/oom_score_adj", adj[i]) < 0)
			fatal("oom_score_adj");
		int n = atoi(slurp("/proc/self/oom_score")) - (1000 + atoi(adj[i])) * 2 / 3;
		// Linux drops the part of memory that no thousand pages fill: one below at most.
		say("%s: %s", adj[i], n >= -1 && n < 30 ? "as Linux counts" : "another number");
	}
}

TEST(posix_timers, "timers")
{
	say("none: %d", (int)strlen(slurp("/proc/self/timers")));
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 0x1234};
	int id;
	err("signal", syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev._sigev_un._tid = gettid();
	ev.sigev_signo = SIGRTMIN;
	err("thread", syscall(SYS_timer_create, CLOCK_REALTIME, &ev, &id));
	ev.sigev_notify = SIGEV_THREAD;
	err("by the library", syscall(SYS_timer_create, CLOCK_BOOTTIME, &ev, &id));
	char pid[16];
	snprintf(pid, sizeof pid, ".%d", getpid());
	for (char *l = strtok(slurp("/proc/self/timers"), "\n"); l; l = strtok(NULL, "\n")) {
		char *at = strstr(l, pid);
		if (at)
			*at = 0;
		say("%s%s", l, at ? ".PID" : "");
	}
}

TEST(attributes, "attr")
{
	static const char *const of[] = {"current", "prev", "exec", "fscreate", "keycreate", "sockcreate"};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		char path[64], b[64];
		snprintf(path, sizeof path, "/proc/self/attr/%s", of[i]);
		int fd = open(path, O_RDWR);
		say("%s", of[i]);
		err("read", read(fd, b, sizeof b));
		err("write", write(fd, "unconfined", 10));
		close(fd);
	}
}

TEST(links_to_files, "map_files")
{
	int fd = must(open("f", O_CREAT | O_RDWR, 0600), "f");
	ftruncate(fd, 8192);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open("f", O_RDONLY), 0);
	char path[128], link[PATH_MAX] = "";
	struct stat st, own;
	fstat(fd, &own);
	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)p, (long)p + 8192);
	err("lstat", lstat(path, &st));
	say("%o", st.st_mode);
	num("readlink", readlink(path, link, sizeof link - 1) > 0);
	say("%s", strrchr(link, '/'));
	err("stat", stat(path, &st));
	say("it: %d", st.st_ino == own.st_ino);
	unlink("f");
	int again = err("open", open(path, O_RDWR));
	err("write", write(again, "x", 1));
	say("%c", p[0]);
	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)q, (long)q + 4096);
	err("lstat", lstat(path, &st));
	say("%o", st.st_mode);
	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)p, (long)p + 4096);
	err("half", lstat(path, &st));
	snprintf(path, sizeof path, "/proc/self/map_files/0%lx-%lx", (long)p, (long)p + 8192);
	err("with a zero", lstat(path, &st));
	err("nonsense", lstat("/proc/self/map_files/x", &st));
	IN_CHILD("user", {
		if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		prctl(PR_SET_DUMPABLE, 1);
		snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)p, (long)p + 8192);
		num("readlink", readlink(path, link, sizeof link - 1) > 0);
		err("open", open(path, O_RDONLY));
	});
	DIR *d = opendir("/proc/self/map_files");
	int n = 0, found = 0;
	snprintf(path, sizeof path, "%lx-%lx", (long)p, (long)p + 8192);
	for (struct dirent *e; d && (e = readdir(d)); n++)
		found |= !strcmp(e->d_name, path) && e->d_type == DT_LNK;
	say("listed: %d, several: %d", found, n > 3);
}

TEST(machine, "files about the machine")
{
	static const char *const of[] = {"softirqs", "buddyinfo", "zoneinfo", "slabinfo", "vmallocinfo", "pressure", "pressure/cpu", "pressure/io", "pressure/memory", "execdomains"};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%s", of[i]);
		struct stat st;
		if (err(of[i], stat(path, &st)) == 0)
			say("%o", st.st_mode);
		IN_CHILD("user", {
			if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
				fatal("setresuid");
			err("open", open(path, O_RDONLY));
			if (strncmp(of[i], "pressure/", 9)) // newer kernels ask for nothing
				err("open to write", open(path, O_WRONLY));
		});
	}
	char some[8], full[8];
	double a[6];
	unsigned long long t[2];
	static const char *const res[] = {"cpu", "io", "memory"};
	for (int i = 0; i < 3; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/pressure/%s", res[i]);
		int n = sscanf(slurp(path), "%7s avg10=%lf avg60=%lf avg300=%lf total=%llu\n%7s avg10=%lf avg60=%lf avg300=%lf total=%llu\n", some, a, a + 1, a + 2, t, full,
			       a + 3, a + 4, a + 5, t + 1);
		say("%s: %d, %s %s, shares: %d, full at most some: %d", res[i], n, some, full, a[0] <= 100 && a[1] <= 100 && a[2] <= 100, t[1] <= t[0]);
	}
	say("%d", !strncmp(slurp("/proc/slabinfo"), "slabinfo - version: 2.1\n# name            <active_objs>", 50));
	say("%.8s", strstr(slurp("/proc/softirqs"), "NET_RX:"));
	say("softirq: %d", strstr(slurp("/proc/stat"), "\nsoftirq ") != NULL);
}
