// Files of /proc: a process's memory and mappings, positions, polling, locks.
#include "gt.h"
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>

static char text[1 << 16];

static char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	size_t n = 0;
	for (ssize_t k; fd >= 0 && n < sizeof text - 1 && (k = read(fd, text + n, sizeof text - 1 - n)) > 0;)
		n += k;
	close(fd);
	text[n] = 0;
	return text;
}

TEST(memory, "mem")
{
	char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), b[8192] = "";
	munmap(page + 2 * 4096, 4096);
	strcpy(page + 4090, "hello");
	int fd = must(open("/proc/self/mem", O_RDWR), "mem");
	num("read", pread(fd, b, 5, (off_t)page + 4090));
	say("%s", b);
	num("over the end", pread(fd, b, 8192, (off_t)page + 4096));
	num("behind the end", pread(fd, b, 1, (off_t)page + 8192));
	num("at 0", pread(fd, b, 1, 0));
	num("write", pwrite(fd, "HELLO", 5, (off_t)page + 4090));
	say("%s", page + 4090);
	num("write behind", pwrite(fd, "x", 1, (off_t)page + 8192));
	mprotect(page, 4096, PROT_NONE);
	num("without access", pread(fd, b, 5, (off_t)page + 4090));
	num("end", lseek(fd, 0, SEEK_END));
	say("far: %d", lseek(fd, (off_t)0xffffffffff600000, SEEK_SET) == (off_t)0xffffffffff600000);
	pid_t child = FORK(pause());
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", child);
	int other = must(open(path, O_RDONLY), path);
	num("of a child", pread(other, b, 5, (off_t)page + 4096));
	kill(child, SIGKILL);
	wait_for(child);
	num("of one that has ended", pread(other, b, 5, (off_t)page + 4096));
	IN_CHILD("a stranger", {
		snprintf(path, sizeof path, "/proc/%d/mem", getppid());
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		err("mem", open(path, O_RDONLY));
		snprintf(path, sizeof path, "/proc/%d/pagemap", getppid());
		err("pagemap", open(path, O_RDONLY));
	});
}

static uint64_t entry(int fd, void *p)
{
	uint64_t v = 0;
	pread(fd, &v, 8, (uintptr_t)p / 4096 * 8);
	return v;
}

TEST(pagemap, "pagemap")
{
	char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	madvise(p, 4 * 4096, MADV_NOHUGEPAGE);
	p[4096] = 1;
	s[0] = 1;
	int fd = must(open("/proc/self/pagemap", O_RDONLY), "pagemap");
	for (int i = 0; i < 4; i++)
		say("page %d: present %d", i, (int)(entry(fd, p + i * 4096) >> 63));
	say("shared: present %d file %d", (int)(entry(fd, s) >> 63), (int)(entry(fd, s) >> 61 & 1));
	say("its own: file %d", (int)(entry(fd, p + 4096) >> 61 & 1));
	uint64_t v[4];
	num("several", pread(fd, v, 32, (uintptr_t)p / 4096 * 8));
	num("odd length", pread(fd, v, 12, (uintptr_t)p / 4096 * 8));
	num("odd offset", pread(fd, v, 8, (uintptr_t)p / 4096 * 8 + 4));
}

TEST(smaps, "smaps")
{
	char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), at[32];
	err("mlock", mlock(p, 2 * 4096));
	snprintf(at, sizeof at, "%lx-", (long)p);
	char *line = strstr(slurp("/proc/self/smaps"), at);
	char *end = line ? strstr(line, "VmFlags") : NULL;
	if (!end)
		fatal("no such mapping");
	*end = 0;
	for (char *l = strtok(strchr(line, '\n'), "\n"); l; l = strtok(NULL, "\n"))
		if (strncmp(l, "Pss_Dirty", 9) && strncmp(l, "KSM", 3) && strncmp(l, "THP", 3) && strncmp(l, "Referenced", 10) && strncmp(l, "ProtectionKey", 13))
			say("%s", l);
	say("rollup: %d", strstr(slurp("/proc/self/smaps_rollup"), "[rollup]\nRss:") != NULL);
}

TEST(positions, "positions")
{
	static const char *const names[] = {"/proc/self/status", "/proc/self/maps", "/proc/self/environ", "/proc/self/cmdline", "/proc/meminfo", "/proc/self/mounts",
		"/proc/self/comm", "/proc/self/limits", "/proc/self/loginuid", "/proc/self/oom_score_adj", "/proc", "/proc/self", "/proc/self/fd", "/proc/sys", "/proc/sys/vm/swappiness",
		"/proc/self/auxv", "/proc/self/io", "/proc/self/fdinfo/0"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int fd = must(open(names[i], O_RDONLY), names[i]);
		say("%s", names[i]);
		num("  end", lseek(fd, 0, SEEK_END));
		num("  data", lseek(fd, 0, SEEK_DATA));
		num("  hole", lseek(fd, 0, SEEK_HOLE));
		num("  before", lseek(fd, -1, SEEK_SET));
		num("  at 5", lseek(fd, 5, SEEK_SET));
		num("  on", lseek(fd, 2, SEEK_CUR));
		struct epoll_event ev = {EPOLLIN};
		err("  epoll", epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &ev));
		close(fd);
	}
}

TEST(mounts, "mounts can be polled")
{
	int fd = must(open("/proc/self/mountinfo", O_RDONLY), "mountinfo");
	struct pollfd p = {fd, POLLPRI};
	num("before", poll(&p, 1, 0));
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, NULL), "mount");
	num("after mount", poll(&p, 1, 1000));
	say("%x", p.revents);
	num("again", poll(&p, 1, 0));
	pid_t child = FORK(sleep_ms(100); umount("m"));
	num("after umount", poll(&p, 1, 5000));
	say("%x", p.revents);
	wait_for(child);
}

TEST(directory, "a directory of /proc as a pidfd")
{
	pid_t child = FORK(pause());
	char path[64];
	snprintf(path, sizeof path, "/proc/%d", child);
	int fd = must(open(path, O_RDONLY | O_DIRECTORY), path);
	err("signal 0", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	err("O_PATH", syscall(SYS_pidfd_send_signal, open(path, O_PATH), 0, NULL, 0));
	err("another file", syscall(SYS_pidfd_send_signal, open("/proc", O_RDONLY), 0, NULL, 0));
	err("fd of it", syscall(SYS_pidfd_send_signal, open("/proc/self/fd", O_RDONLY), 0, NULL, 0));
	err("getfd", syscall(SYS_pidfd_getfd, fd, 0, 0));
	err("kill", syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
	status("child", wait_for(child));
	err("gone", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}

TEST(threads, "children, slack, descriptors")
{
	char path[64], want[64];
	pid_t a = FORK(pause()), b = FORK(pause());
	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	snprintf(want, sizeof want, "%d %d ", a, b);
	say("children: %d", !strcmp(slurp(path), want));
	say("slack: %s", slurp("/proc/self/timerslack_ns"));
	int fd = open("/proc/self/timerslack_ns", O_WRONLY);
	num("set", write(fd, "12345", 5));
	say("slack: %d", prctl(PR_GET_TIMERSLACK));
	say("setgroups: %s", slurp("/proc/self/setgroups"));
	int in = inotify_init();
	inotify_add_watch(in, ".", IN_CREATE);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", in);
	char *line = strstr(slurp(path), "inotify wd:1 ino:");
	say("inotify: %d mask %d", line != NULL, line && strstr(line, " mask:100 ") != NULL);
	int pf = syscall(SYS_pidfd_open, a, 0);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pf);
	snprintf(want, sizeof want, "Pid:\t%d\nNSpid:\t%d\n", a, a);
	say("pidfd: %d", strstr(slurp(path), want) != NULL);
	kill(a, SIGKILL);
	kill(b, SIGKILL);
}

TEST(locks, "locks")
{
	int fd = must(open("f", O_RDWR | O_CREAT, 0600), "f"), g = must(open("f", O_RDWR), "f");
	struct flock l = {F_WRLCK, SEEK_SET, 10, 20};
	fcntl(fd, F_SETLK, &l);
	struct flock r = {F_RDLCK, SEEK_SET, 100, 0};
	fcntl(fd, F_SETLK, &r);
	flock(g, LOCK_SH);
	struct stat st;
	fstat(fd, &st);
	char ino[32];
	snprintf(ino, sizeof ino, ":%lu ", (unsigned long)st.st_ino);
	int n = 0;
	char *found[8];
	for (char *l = strtok(slurp("/proc/locks"), "\n"); l && n < 8; l = strtok(NULL, "\n"))
		if (strstr(l, ino))
			found[n++] = l;
	static const char *const kinds[] = {"POSIX WRITE", "POSIX READ", "FLOCK READ"};
	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; i < n; i++) {
			int id, pid;
			char a[16], b[16], c[16], d[32], from[32], to[32];
			sscanf(found[i], "%d: %15s %15s %15s %d %31s %31s %31s", &id, a, b, c, &pid, d, from, to);
			char what[40];
			snprintf(what, sizeof what, "%s %s", a, c);
			if (!strcmp(what, kinds[kind]))
				say("%s %s %s mine %d %s %s", a, b, c, pid == getpid(), from, to);
		}
	int id = shmget(IPC_PRIVATE, 5000, 0640);
	snprintf(ino, sizeof ino, " %d   640                  5000 ", id);
	say("shm: %d", strstr(slurp("/proc/sysvipc/shm"), ino) != NULL);
	shmctl(id, IPC_RMID, NULL);
}

TEST(load, "load averages and time")
{
	struct sysinfo s;
	double avg[3];
	sysinfo(&s);
	sscanf(slurp("/proc/loadavg"), "%lf %lf %lf", avg, avg + 1, avg + 2);
	for (int i = 0; i < 3; i++) {
		double d = avg[i] - s.loads[i] / 65536.0;
		say("the same: %d", d < 0.3 && d > -0.3);
	}
	long long start = now_ms();
	while (now_ms() - start < 200)
		;
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	long long used = (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000LL + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
	say("no more than passed: %d", used <= now_ms() - start + 50);
}

static void syscall_text(const char *what, int pid)
{
	char name[64], b[512] = "", *p = b;
	snprintf(name, sizeof name, "/proc/%d/syscall", pid);
	int fd = open(name, O_RDONLY);
	long n = read(fd, b, sizeof b - 1);
	if (n <= 0) {
		say("%s: %s", what, name_of(n < 0 ? errno : 0));
		return;
	}
	if (!strcmp(b, "running\n")) {
		say("%s: running", what);
		return;
	}
	unsigned long long v[9] = {};
	int words = 0;
	long number = strtol(p, &p, 10);
	while (words < 9 && *p == ' ')
		v[words++] = strtoull(p + 1, &p, 16);
	say("%s: call %ld, %d words, the first %d, stack %d, code %d, end %d", what, number, words,
	    pid == getpid() ? v[0] == (unsigned)fd : (int)v[0], v[6] > 4096, v[7] > 4096, *p == '\n' && !p[1]);
	close(fd);
}

TEST(calls, "syscall and mountstats")
{
	syscall_text("its own", getpid());
	int p[2];
	pipe(p);
	int blocked = fork();
	if (blocked == 0) {
		char c;
		syscall(SYS_read, p[0], &c, 1, 44, 55, 66);
		_exit(0);
	}
	int spins = fork();
	if (spins == 0)
		for (;;)
			;
	usleep(100000);
	char name[64], b[8192] = "";
	syscall_text("blocked in read", blocked);
	syscall_text("it computes", spins);
	kill(spins, SIGKILL);
	kill(blocked, SIGKILL);
	while (wait(NULL) > 0)
		;
	snprintf(name, sizeof name, "/proc/%d/mountstats", getpid());
	int fd = open(name, O_RDONLY), whole = 0;
	read(fd, b, sizeof b - 1);
	for (char *line = strtok(b, "\n"); line; line = strtok(NULL, "\n"))
		whole += strncmp(line, "device ", 7) == 0 && strstr(line, " mounted on /proc with fstype proc");
	say("mountstats has /proc %d", whole > 0);
	struct stat st;
	stat("/proc/self/syscall", &st);
	say("mode %o", st.st_mode);
	stat("/proc/self/mountstats", &st);
	say("mode %o", st.st_mode);
}

// counts reads a line of /proc/self/io.
static long counted(const char *what)
{
	const char *at = strstr(slurp("/proc/self/io"), what);
	return at ? atol(at + strlen(what)) : -1;
}

TEST(moved, "what calls moved")
{
	char buf[1000] = "";
	int p[2];
	must(pipe(p), "pipe");
	long rchar = counted("rchar: "), wchar = counted("wchar: "), syscr = counted("syscr: "), syscw = counted("syscw: ");
	for (int i = 0; i < 20; i++) {
		write(p[1], buf, sizeof buf);
		read(p[0], buf, sizeof buf);
	}
	long r = counted("rchar: ") - rchar, w = counted("wchar: ") - wchar, nr = counted("syscr: ") - syscr, nw = counted("syscw: ") - syscw;
	say("read %s, written %s, reads %s, writes %s", r >= 20000 && r < 24000 ? "20000" : "?", w == 20000 ? "20000" : "?",
	    nr >= 20 && nr < 60 ? "20" : "?", nw == 20 ? "20" : "?");
}

TEST(terminals, "tty, cgroups and pty/nr")
{
	static const char *const names[] = {"/proc/tty/drivers", "/proc/tty/ldiscs", "/proc/cgroups", "/proc/net/igmp", "/proc/net/igmp6", "/proc/net/mcfilter",
		"/proc/net/mcfilter6", "/proc/sys/kernel/pty/nr", "/proc/sys/kernel/cad_pid"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat st;
		say("%s %d", names[i], stat(names[i], &st));
		say("  %o %ld %ld", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	}
	slurp("/proc/tty/drivers");
	for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n")) {
		if (!strncmp(l, "pty_slave", 9)) // how many there may be differs
			say("%.*s %s", (int)strcspn(l, "-"), l, strrchr(l, ' '));
		else if ((!strncmp(l, "/dev/", 5) && !strstr(l, "/dev/vc/0")) || strstr(l, "ttyS"))
			say("%.44s%s", l, strrchr(l, ' '));
	}
	say("%.13s|", slurp("/proc/tty/ldiscs"));
	say("%.*s|", (int)strcspn(slurp("/proc/cgroups"), "\n"), text);
	long n = atol(slurp("/proc/sys/kernel/pty/nr"));
	int a = must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx"), b = must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx");
	num("two more", atol(slurp("/proc/sys/kernel/pty/nr")) - n);
	close(a);
	num("one more", atol(slurp("/proc/sys/kernel/pty/nr")) - n);
	close(b);
	num("as before", atol(slurp("/proc/sys/kernel/pty/nr")) - n);
	err("write", open("/proc/sys/kernel/pty/nr", O_WRONLY) < 0 ? -1 : 0);
}

// ram says what the table has to say of any machine.
static void ram(const char *who)
{
	unsigned long first, last, end = 0, sum = 0;
	int kernel = 0, order = 1, n;
	char name[64];
	for (char *l = strtok(slurp("/proc/iomem"), "\n"); l; l = strtok(NULL, "\n")) {
		if (sscanf(l, "%lx-%lx : %63[^\n]%n", &first, &last, name, &n) != 3)
			say("%s: a line is %s", who, l);
		kernel += !strcmp(name, "Kernel code") && l[0] == ' ' && l[1] == ' ';
		if (l[0] == ' ')
			continue;
		order &= first >= end && last >= first;
		end = last;
		sum += strcmp(name, "System RAM") ? 0 : last - first + 1;
	}
	struct sysinfo s;
	sysinfo(&s);
	say("%s: in order %d, kernel %d, as much RAM as there is %d, the end is 0 %d", who, order, kernel, sum >= s.totalram, end == 0);
}

TEST(physical, "iomem")
{
	ram("root");
	IN_CHILD("a stranger", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		ram("another");
	});
}
