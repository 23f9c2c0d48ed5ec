// Program limits tests what one user can take, and what waits can be killed: limits
// of users and not of processes, waiting that holds no lock.
#include "gt.h"

#include <grp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

// offender and innocent are users that nobody else is.
enum { offender = 60001, innocent = 60002 };

static void become(uid_t uid)
{
	must(setgroups(0, NULL), "setgroups");
	must(setresgid(uid, uid, uid), "setresgid");
	must(setresuid(uid, uid, uid), "setresuid");
}

static void limit(int what, rlim_t n)
{
	struct rlimit rl = {n, n};
	must(setrlimit(what, &rl), "setrlimit");
}

static long number_in(const char *path)
{
	char text[64] = "";
	int fd = (int)must(open(path, O_RDONLY), path);
	must(read(fd, text, sizeof text - 1), path);
	close(fd);
	return atol(text);
}

// ends reports whether a process that gets a SIGKILL ends soon.
static int ends(pid_t pid)
{
	int ended = 0;
	kill(pid, SIGKILL);
	return until(ended || (ended = waitpid(pid, NULL, WNOHANG) == pid));
}

static int watch(int ep, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

TEST(paths, "epoll: as many paths as Linux allows")
{
	// levels of instances, each of which watches all of the level below
	enum { wide = 30, levels = 4 };
	int ep[levels][wide];
	for (int i = 0; i < levels; i++)
		for (int j = 0; j < wide; j++) {
			ep[i][j] = (int)must(epoll_create1(0), "epoll_create1");
			for (int k = 0; i > 0 && k < wide; k++)
				must(watch(ep[i][j], ep[i - 1][k]), "epoll_ctl");
		}
	int fd = eventfd(0, 0);
	long long start = now_ms();
	for (int i = 0; i < levels; i++) {
		char what[32];
		snprintf(what, sizeof what, "under %d levels", levels - 1 - i);
		err(what, watch(ep[i][0], fd));
	}
	say("soon: %d", now_ms() - start < 5000);
	start = now_ms();
	num("write", eventfd_write(fd, 1));
	say("soon: %d", now_ms() - start < 5000);
	int deeper = epoll_create1(0);
	err("too deep", watch(deeper, ep[levels - 1][0]) == 0 ? watch(epoll_create1(0), deeper) : -1);
}

TEST(wide_paths, "epoll: paths through two instances")
{
	int inner = epoll_create1(0), fd = eventfd(0, 0), n = 0;
	must(watch(inner, fd), "epoll_ctl");
	while (n < 700 && watch(epoll_create1(0), inner) == 0)
		n++;
	say("%d, then %s", n, name_of(errno));
	int flat = 0;
	for (; flat < 100 && watch(epoll_create1(0), eventfd(0, 0)) == 0; flat++)
		;
	say("of one level %d", flat);
	err("file in a watched instance", watch(inner, eventfd(0, 0)));
	err("there already", watch(inner, fd));
}

TEST(oom_score_adj, "oom_score_adj: down again, to what was set with privilege")
{
	const char *path = "/proc/self/oom_score_adj";
	int fd = (int)must(open(path, O_WRONLY), path);
	must(write(fd, "0", 1), "as root");
	close(fd);
	become(innocent);
	must(prctl(PR_SET_DUMPABLE, 1), "dumpable");
	const char *values[] = {"900", "201", "0", "-5", "500", "1001", "x"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		fd = (int)must(open(path, O_WRONLY), path);
		err(values[i], write(fd, values[i], strlen(values[i])));
		close(fd);
	}
	IN_CHILD("a child", num("it has", number_in(path)); fd = open(path, O_WRONLY); err("down", write(fd, "0", 1)); err("further", write(fd, "-1", 2)));
}

TEST(splice_position, "a splice that waits does not hold the file")
{
	int p[2];
	must(pipe(p), "pipe");
	int fd = (int)must(open("file", O_CREAT | O_RDWR, 0600), "open");
	pid_t splicer = FORK(splice(p[0], NULL, fd, NULL, 4096, 0));
	settle(splicer);
	pid_t seeker = FORK(lseek(fd, 10, SEEK_SET); write(fd, "x", 1));
	int done = 0;
	until(done || (done = waitpid(seeker, NULL, WNOHANG) == seeker));
	say("others seek and write: %d", done);
	say("the splice can be killed: %d", ends(splicer));
	if (!done)
		say("the seek can be killed: %d", ends(seeker));
}

TEST(splice_busy, "a splice that waits for its reader does not hold the pipe")
{
	int p[2], s[2];
	must(pipe(p), "pipe");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
	char buf[4096] = "";
	fcntl(s[0], F_SETFL, O_NONBLOCK);
	while (write(s[0], buf, sizeof buf) > 0)
		;
	fcntl(s[0], F_SETFL, 0);
	must(write(p[1], buf, sizeof buf), "write");
	pid_t splicer = FORK(splice(p[0], NULL, s[0], NULL, sizeof buf, 0));
	settle(splicer);
	say("the splice can be killed: %d", ends(splicer));
}

TEST(copies_wait, "transfers that wait can be killed")
{
	int p[2], q[2];
	must(pipe(p), "pipe");
	must(pipe(q), "pipe");
	char buf[65536] = "";
	must(write(q[1], buf, sizeof buf), "write");
	int fd = (int)must(open("file", O_CREAT | O_RDWR, 0600), "open");
	must(ftruncate(fd, 1 << 20), "ftruncate");
	struct iovec iov = {buf, sizeof buf};
	pid_t all[] = {
	    FORK(tee(p[0], q[1], 100, 0)),
	    FORK(splice(p[0], NULL, q[1], NULL, 100, 0)),
	    FORK(splice(fd, NULL, q[1], NULL, 100, 0)),
	    FORK(sendfile(q[1], fd, NULL, 1 << 20)),
	    FORK(vmsplice(q[1], &iov, 1, 0)),
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		settle(all[i]);
	say("the position is free: %d", (int)lseek(fd, 0, SEEK_CUR) >= 0);
	int n = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		n += ends(all[i]);
	say("%d ended", n);
}

TEST(long_calls, "a look at very many pages can be killed")
{
	size_t pages = 1 << 26;
	unsigned char *vec = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *all = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (vec == MAP_FAILED || all == MAP_FAILED)
		fatal("mmap");
	pid_t pid = FORK(for (;;) mincore(all, pages * 4096, vec));
	sleep_ms(100);
	say("%d", ends(pid));
}

// send_files sends a byte with descriptor 0 some times.
static long send_files(int to, int files)
{
	char control[CMSG_SPACE(10 * sizeof(int))] = {0}, c = 0;
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE((size_t)files * sizeof(int))};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN((size_t)files * sizeof(int));
	for (int i = 0; i < files; i++)
		((int *)CMSG_DATA(h))[i] = 1;
	return sendmsg(to, &m, 0);
}

TEST(in_flight, "files in messages under way")
{
	limit(RLIMIT_NOFILE, 60);
	become(offender);
	int s[2], n = 0;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), "socketpair");
	while (n < 1000 && send_files(s[0], 10) == 1)
		n++;
	say("%d messages of 10, then %s", n, name_of(errno));
	char c[10];
	num("received without its files", recv(s[1], c, 1, 0));
	num("as before", send_files(s[0], 1));
	num("and one", send_files(s[0], 1));
}

TEST(timers, "POSIX timers count against RLIMIT_SIGPENDING")
{
	limit(RLIMIT_SIGPENDING, 50);
	become(offender);
	struct sigevent ev = {.sigev_notify = SIGEV_NONE};
	timer_t t, first = NULL;
	int n = 0, p[2];
	must(pipe(p), "pipe");
	while (n < 5000 && timer_create(CLOCK_MONOTONIC, &ev, &t) == 0)
		if (n++ == 0)
			first = t;
	say("%d timers, then %s", n, name_of(errno));
	IN_CHILD("another process of the user", {
		timer_t u;
		err("timer_create", timer_create(CLOCK_MONOTONIC, &ev, &u));
	});
	sigset_t set;
	sigemptyset(&set), sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	err("sigqueue", sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
	err("delete", timer_delete(first));
	ev = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 7};
	err("create", timer_create(CLOCK_MONOTONIC, &ev, &t));
	err("sigqueue", sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
	struct itimerspec its = {.it_value.tv_nsec = 1000000};
	err("set", timer_settime(t, 0, &its, NULL));
	siginfo_t si = {0};
	struct timespec limit = {10, 0};
	num("its signal comes", sigtimedwait(&set, &si, &limit) == SIGRTMIN);
	num("value", si.si_value.sival_int);
	err("no more", timer_create(CLOCK_MONOTONIC, &ev, &t));
}

TEST(instances, "inotify instances of a user")
{
	long most = number_in("/proc/sys/fs/inotify/max_user_instances");
	limit(RLIMIT_NOFILE, (rlim_t)most + 100);
	volatile int *state = shared(4096);
	pid_t pid = FORK({
		become(offender);
		int n = 0;
		while (n < 100000 && inotify_init() >= 0)
			n++;
		say("as many as the limit: %d, then %s", n == most, name_of(errno));
		IN_CHILD("another process", err("inotify_init", inotify_init()));
		*state = 1;
		for (;;)
			pause();
	});
	until(*state);
	IN_CHILD("another user", become(innocent); err("inotify_init", inotify_init()));
	IN_CHILD("root", err("inotify_init", inotify_init()));
	say("%d", ends(pid));
}

TEST(pipes, "pipes of a user are small when there are many")
{
	long soft = number_in("/proc/sys/fs/pipe-user-pages-soft");
	say("%ld", soft);
	limit(RLIMIT_NOFILE, 4096);
	volatile int *state = shared(4096);
	pid_t pid = FORK({
		become(offender);
		int p[2], n = 0;
		while (n < 2000 && pipe(p) == 0 && fcntl(p[1], F_GETPIPE_SZ) == 65536)
			n++;
		say("%d of 64 KiB, the next of %d", n, fcntl(p[1], F_GETPIPE_SZ));
		num("grow", fcntl(p[1], F_SETPIPE_SZ, 65536));
		num("write", write(p[1], "x", 1));
		*state = 1;
		for (;;)
			pause();
	});
	until(*state);
	IN_CHILD("another user", {
		become(innocent);
		int p[2];
		must(pipe(p), "pipe");
		num("size", fcntl(p[1], F_GETPIPE_SZ));
		num("grow", fcntl(p[1], F_SETPIPE_SZ, 1 << 20));
	});
	IN_CHILD("root", {
		int p[2];
		must(pipe(p), "pipe");
		num("size", fcntl(p[1], F_GETPIPE_SZ));
	});
	say("%d", ends(pid));
}

TEST(zombies, "processes that nobody has waited for count")
{
	limit(RLIMIT_NPROC, 20);
	become(offender);
	int n = 0;
	pid_t pid = 0;
	while (n < 1000 && (pid = fork()) > 0)
		n++;
	if (pid == 0)
		_exit(0);
	say("%d, then %s", n, name_of(errno));
	for (int i = 0; i < 5; i++)
		wait(NULL);
	for (n = 0; n < 1000 && (pid = fork()) > 0; n++)
		;
	if (pid == 0)
		_exit(0);
	say("%d more", n);
	while (wait(NULL) > 0)
		;
}

TEST(exec_over, "exec after setuid to a user with too many processes")
{
	char *argv[] = {"/proc/self/exe", "--exit", NULL};
	volatile int *ready = shared(4096);
	pid_t other[2];
	for (int i = 0; i < 2; i++)
		other[i] = FORK({
			become(innocent);
			ready[i] = 1;
			for (;;)
				pause();
		});
	until(ready[0] && ready[1]);
	IN_CHILD("over the limit", {
		limit(RLIMIT_NPROC, 1);
		become(innocent);
		err("execve", execv("/nowhere", argv));
		err("again", execv("/nowhere", argv));
	});
	IN_CHILD("until the limit is higher", {
		struct rlimit rl = {1, 100};
		must(setrlimit(RLIMIT_NPROC, &rl), "setrlimit");
		become(innocent);
		err("execve", execv("/nowhere", argv));
		limit(RLIMIT_NPROC, 100);
		err("execve", execv("/nowhere", argv));
	});
	say("%d%d", ends(other[0]), ends(other[1]));
}
