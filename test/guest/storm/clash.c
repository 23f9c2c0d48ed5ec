// clash has threads and processes use what others close, unmount, exit from or replace
// at the same moment: descriptors, processes that end, mounts, programs. Nobody checks
// what the calls return; the kernel must live, and everybody must die when killed.
//
// It runs as process 1 of a Hardtack guest.
//
//	clash SECONDS [NAME]
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { user = 1000, first_fd = 10, fds = 12, user_threads = 5 };

static void nap(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&ts, NULL);
}

static _Thread_local uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	if (!seed)
		seed = (uint32_t)(getpid() * 2654435761u ^ (uint32_t)syscall(SYS_gettid) * 40503u) | 1;
	seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
	return seed % n;
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(99);
}

// start runs f in a process; f does not return.
static pid_t start(uid_t uid, void (*f)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		if (uid)
			become(uid);
		f();
		_exit(0);
	}
	return pid;
}

// ——— descriptors: closed and replaced while others use them ———

static int any_fd(void) { return first_fd + (int)rnd(fds); }

// put makes both ends of something the descriptors of two numbers.
static void put(int a, int b)
{
	dup2(a, any_fd());
	if (b >= 0)
		dup2(b, any_fd());
	close(a);
	if (b >= 0)
		close(b);
}

static void replace(void)
{
	int p[2];
	switch (rnd(11)) {
	case 0:
		if (pipe2(p, O_NONBLOCK) == 0)
			put(p[0], p[1]);
		break;
	case 1:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0)
			put(p[0], p[1]);
		break;
	case 2:
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) == 0)
			put(p[0], p[1]);
		break;
	case 3:
		put(eventfd(1, EFD_NONBLOCK), epoll_create1(0));
		break;
	case 4:
		put(open("/tmp/clash", O_RDWR | O_CREAT, 0666), memfd_create("clash", 0));
		break;
	case 5:
		put(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), inotify_init1(IN_NONBLOCK));
		break;
	case 6:
		put(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), open("/proc/self/maps", O_RDONLY));
		break;
	case 7:
		put(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
		break;
	case 8:
		close(any_fd());
		break;
	case 9:
		dup3(any_fd(), any_fd(), O_CLOEXEC);
		break;
	case 10:
		p[0] = any_fd();
		close_range((unsigned)p[0], (unsigned)p[0] + rnd(4), 0);
		break;
	}
}

static void pass(int to, int what)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, c = 0;
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	if (what >= 0) {
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &what, sizeof what);
		sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	if (recvmsg(to, &m, MSG_DONTWAIT) > 0)
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
			if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
				close(*(int *)CMSG_DATA(h));
}

static void use(void)
{
	static _Thread_local char buf[8192];
	int fd = any_fd(), n = 0;
	struct pollfd p[4];
	struct stat st;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	switch (rnd(16)) {
	case 0:
		read(fd, buf, 1 + rnd(sizeof buf));
		break;
	case 1:
		write(fd, buf, 1 + rnd(sizeof buf));
		break;
	case 2:
		splice(fd, NULL, any_fd(), NULL, 4096, SPLICE_F_NONBLOCK);
		break;
	case 3:
		tee(fd, any_fd(), 4096, SPLICE_F_NONBLOCK);
		break;
	case 4:
		ioctl(fd, FIONREAD, &n);
		ioctl(fd, FIOASYNC, &n);
		break;
	case 5:
		for (int i = 0; i < 4; i++)
			p[i] = (struct pollfd){any_fd(), POLLIN | POLLOUT, 0};
		poll(p, 4, (int)rnd(2));
		break;
	case 6: {
		char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, rnd(2) ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		if (m != MAP_FAILED) {
			if (fstat(fd, &st) == 0 && st.st_size > 0)
				process_vm_readv(getpid(), &(struct iovec){buf, 64}, 1, &(struct iovec){m, 64}, 1, 0);
			munmap(m, 4096);
		}
		break;
	}
	case 7:
		pass(fd, any_fd());
		break;
	case 8:
		pass(fd, -1);
		break;
	case 9:
		epoll_ctl(fd, EPOLL_CTL_ADD, any_fd(), &ev);
		break;
	case 10:
		epoll_ctl(fd, rnd(2) ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, any_fd(), &ev);
		break;
	case 11:
		epoll_wait(fd, &ev, 1, (int)rnd(2));
		break;
	case 12:
		ftruncate(fd, rnd(3) * 4096);
		fsync(fd);
		break;
	case 13:
		sendfile(fd, any_fd(), NULL, 4096);
		break;
	case 14:
		fcntl(fd, F_SETFL, O_NONBLOCK | (rnd(2) ? O_APPEND : 0));
		fcntl(fd, F_SETOWN, getpid());
		flock(fd, 4 | (rnd(2) ? 2 : 8));
		break;
	case 15:
		inotify_add_watch(fd, "/tmp", IN_ALL_EVENTS);
		lseek(fd, 0, SEEK_SET);
		break;
	}
}

static void *replacing(void *arg)
{
	for (;;)
		replace();
	return arg;
}

static void *using(void *arg)
{
	for (;;)
		use();
	return arg;
}

static void descriptors(void)
{
	pthread_t t;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (int i = 0; i < user_threads; i++)
		pthread_create(&t, NULL, using, NULL);
	pthread_create(&t, NULL, replacing, NULL);
	replacing(NULL);
}

static void all_descriptors(void)
{
	start(user, descriptors);
	start(0, descriptors);
}

// ——— processes that end while others look into them ———

static void *sleeping(void *arg)
{
	nap(rnd(4));
	return arg;
}

static void ending(void)
{
	pthread_t t;
	for (int i = (int)rnd(4); i > 0; i--)
		pthread_create(&t, NULL, sleeping, NULL);
	char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	m[rnd(1 << 20)] = 1;
	switch (rnd(5)) {
	case 0:
		execl("/clash", "clash", "child", NULL);
		break;
	case 1:
		raise(SIGKILL);
		break;
	case 2:
		syscall(SYS_exit, 0); // the leader; others stay a while
		break;
	case 3:
		munmap(m, 1 << 20);
		break;
	}
}

static void born(void)
{
	for (int n = 0;;) {
		if (n < 12 && start(0, ending) > 0)
			n++;
		while (n > 0 && waitpid(-1, NULL, n >= 12 ? 0 : WNOHANG) > 0)
			n--;
	}
}

static void look_at(int pid)
{
	static const char *const files[] = {"status", "stat", "statm", "maps", "smaps", "environ", "cmdline", "auxv", "limits",
	                                    "io", "wchan", "mountinfo", "syscall", "oom_score", "fdinfo/0", "comm", "sched", "cgroup"};
	static char buf[4096];
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, files[rnd(sizeof files / sizeof *files)]);
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	while (fd >= 0 && read(fd, buf, sizeof buf) > 0 && rnd(4))
		;
	close(fd);
	static const char *const links[] = {"exe", "cwd", "root", "fd/0", "fd/1"};
	snprintf(path, sizeof path, "/proc/%d/%s", pid, links[rnd(5)]);
	readlink(path, buf, sizeof buf);
	snprintf(path, sizeof path, "/proc/%d/%s", pid, rnd(2) ? "fd" : "task");
	DIR *d = opendir(path);
	while (d && readdir(d))
		;
	if (d)
		closedir(d);
	struct iovec own = {buf, 64}, its = {(void *)0x400000, 64};
	process_vm_readv(pid, &own, 1, &its, 1, 0);
	its.iov_base = buf;
	process_vm_writev(pid, &own, 1, &its, 1, 0);
	struct rlimit rl;
	prlimit(pid, RLIMIT_NOFILE, NULL, &rl);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		close((int)syscall(SYS_pidfd_getfd, pidfd, 0, 0));
		struct pollfd p = {pidfd, POLLIN, 0};
		poll(&p, 1, 0);
		close(pidfd);
	}
	cpu_set_t set;
	sched_getaffinity(pid, sizeof set, &set);
	getpgid(pid);
	getsid(pid);
	kill(pid, 0);
	syscall(SYS_kcmp, getpid(), pid, 0, 0, 0);
}

static void looking(void)
{
	for (;;) {
		DIR *d = opendir("/proc");
		for (struct dirent *e; d && (e = readdir(d));)
			if (atoi(e->d_name) > 1)
				look_at(atoi(e->d_name));
		if (d)
			closedir(d);
	}
}

static void all_looking(void)
{
	start(0, born);
	start(0, looking);
	start(user, looking);
}

// ——— mounts that come and go ———

static const char *const places[] = {"/tmp/m/a", "/tmp/m/b", "/tmp/m/a/c"};

static const char *place(void) { return places[rnd(3)]; }

static void mounting(void)
{
	for (;;) {
		switch (rnd(5)) {
		case 0:
			mount("tmpfs", place(), "tmpfs", 0, "size=64k");
			break;
		case 1:
			mount(place(), place(), NULL, MS_BIND | (rnd(2) ? MS_REC : 0), NULL);
			break;
		case 2:
			umount2(place(), rnd(2) ? MNT_DETACH : 0);
			break;
		case 3:
			mount(NULL, place(), NULL, MS_REMOUNT | (rnd(2) ? MS_RDONLY : 0), NULL);
			break;
		case 4: // no end of layers
			for (int i = 0; i < 3; i++)
				while (umount2(places[i], MNT_DETACH) == 0)
					;
			break;
		}
	}
}

static void walking(void)
{
	static char buf[1024];
	char path[64], other[64];
	struct stat st;
	struct statfs fs;
	for (;;) {
		snprintf(path, sizeof path, "%s/f%u", place(), rnd(3));
		snprintf(other, sizeof other, "%s/f%u", place(), rnd(3));
		int fd;
		switch (rnd(10)) {
		case 0:
			fd = open(path, O_CREAT | O_RDWR, 0666);
			write(fd, buf, sizeof buf);
			close(fd);
			break;
		case 1:
			rename(path, other);
			break;
		case 2:
			link(path, other);
			unlink(path);
			break;
		case 3:
			mkdir(path, 0777);
			rmdir(other);
			break;
		case 4:
			stat(path, &st);
			statfs(path, &fs);
			break;
		case 5:
			if (chdir(place()) == 0) {
				open("f0", O_RDONLY);
				close(3);
				stat("../a", &st);
				getcwd(buf, sizeof buf);
				chdir("/");
			}
			break;
		case 6:
			rmdir(place());
			mkdir(place(), 0777);
			break;
		case 7:
			rename(place(), place());
			mkdir(place(), 0777);
			break;
		case 8: {
			DIR *d = opendir(place());
			while (d && readdir(d))
				;
			if (d)
				closedir(d);
			break;
		}
		case 9:
			symlink("../b/f0", path);
			truncate(other, 100);
			break;
		}
	}
}

static void all_mounting(void)
{
	umask(0);
	mkdir("/tmp/m", 0777);
	for (int i = 0; i < 3; i++)
		mkdir(places[i], 0777);
	start(0, mounting);
	start(0, walking);
	start(user, walking);
	start(user, walking);
}

// ——— programs that replace processes whose threads are just being made ———

static void *cloning(void *arg)
{
	for (pthread_t t;;) {
		if (pthread_create(&t, NULL, sleeping, NULL) == 0)
			pthread_detach(t);
		if (rnd(3) == 0) {
			pid_t pid = fork();
			if (pid == 0)
				_exit(0);
			if (pid > 0)
				waitpid(pid, NULL, 0);
		}
	}
	return arg;
}

static void *executing(void *arg)
{
	nap(rnd(20));
	if (rnd(3))
		execl("/clash", "clash", "child", NULL);
	_exit(0);
	return arg;
}

static void one_exec(void)
{
	pthread_t t;
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, rnd(3) ? cloning : executing, NULL);
	executing(NULL);
}

static void execs(void)
{
	for (;;) {
		pid_t pid = start(0, one_exec);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void all_execs(void)
{
	for (int i = 0; i < 4; i++)
		start(user, execs);
}

static const struct {
	const char *name;
	void (*all)(void);
} clashes[] = {
	{"descriptors", all_descriptors},
	{"inspection", all_looking},
	{"mounts", all_mounting},
	{"programs", all_execs},
};

// over kills everybody, and says whether they died.
static int over(void)
{
	time_t start = time(NULL);
	for (;;) {
		if (kill(-1, SIGKILL) < 0 && errno == ESRCH)
			return 1;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (time(NULL) - start > 60)
			return 0;
		nap(2);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "child") == 0)
		return 0;
	if (getpid() != 1 || argc < 2) {
		fprintf(stderr, "clash: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
		if (argc > 2 && strcmp(argv[2], clashes[i].name))
			continue;
		printf("%s\n", clashes[i].name);
		clashes[i].all();
		nap(1000 * atol(argv[1]));
		if (!over()) {
			printf("clash: somebody cannot be killed\n");
			return 1;
		}
		for (int k = 0; k < 3; k++)
			while (umount2(places[k], MNT_DETACH) == 0)
				;
	}
	char oops[32] = "?";
	int fd = open("/proc/hardtack/oops", O_RDONLY);
	read(fd, oops, sizeof oops - 1);
	printf("clash: %s\n", atoi(oops) == 0 && oops[0] == '0' ? "over" : "the kernel recovered from panics");
	return 0;
}
