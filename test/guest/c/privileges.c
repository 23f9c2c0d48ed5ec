// What plain users may not do to the machine and to others' processes and objects:
// a broad table beside Linux. Everything is tried by a user against what root has.
#include "perm.h"
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/reboot.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/un.h>

static pid_t victim; // root's process, which waits

static void start_victim(void)
{
	victim = FORK(pause());
	settle(victim);
}

TEST(machine, "the machine")
{
	struct timespec ts = {1, 0};
	struct timeval tv = {1, 0};
	struct timex tx = {.modes = ADJ_OFFSET};
	make("closed", 0, 0, 0600);
	AS(USER, 0, {
		err("sethostname", sethostname("x", 1));
		err("setdomainname", setdomainname("x", 1));
		err("settimeofday", settimeofday(&tv, NULL));
		err("clock_settime", clock_settime(CLOCK_REALTIME, &ts));
		err("adjtimex", adjtimex(&tx));
		tx.modes = 0;
		err("adjtimex reads", adjtimex(&tx) < 0 ? -1 : 0);
		err("chroot", chroot("."));
		err("mount", mount("none", ".", "tmpfs", 0, ""));
		err("bind", mount(".", ".", NULL, MS_BIND, NULL));
		err("remount", mount("none", "/", NULL, MS_REMOUNT, ""));
		err("umount", umount2("/proc", 0));
		err("detach", umount2("/", MNT_DETACH));
		err("reboot", reboot(RB_DISABLE_CAD));
		err("vhangup", vhangup());
		err("timerfd of an alarm clock", timerfd_create(CLOCK_REALTIME_ALARM, 0));
		timer_t id;
		struct sigevent ev = {.sigev_notify = SIGEV_NONE};
		say("timer of an alarm clock: %s", timer_create(CLOCK_BOOTTIME_ALARM, &ev, &id) < 0 ? "refused" : "made");
		err("a socket of raw packets", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
		int p[2];
		must(pipe(p), "pipe");
		err("a large pipe", fcntl(p[0], F_SETPIPE_SZ, 1 << 21));
		err("a watch on what one may not read", inotify_add_watch(inotify_init(), "closed", IN_MODIFY));
	});
}

TEST(identities, "becoming somebody else")
{
	AS(USER, CLUB, {
		gid_t g[2] = {0, CLUB};
		err("setuid", setuid(0));
		err("setgid", setgid(0));
		err("setgid to a further group", setgid(CLUB));
		err("setreuid", setreuid(0, -1));
		err("setreuid effective", setreuid(-1, 0));
		err("setresuid", setresuid(-1, -1, 0));
		err("setresgid", setresgid(CLUB, -1, -1));
		err("setgroups", setgroups(2, g));
		err("setgroups to none", setgroups(0, g));
		num("setfsuid", setfsuid(0));
		num("setfsuid again", setfsuid(-1));
		num("setfsgid", setfsgid(CLUB));
		num("setfsgid again", setfsgid(-1));
		struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
		struct __user_cap_data_struct d[2] = {{1, 1, 0}};
		err("capset", syscall(SYS_capset, &h, d));
		d[0] = (struct __user_cap_data_struct){0, 0, 1};
		err("capset inheritable", syscall(SYS_capset, &h, d));
		err("PR_CAPBSET_DROP", prctl(PR_CAPBSET_DROP, CAP_CHOWN));
		err("PR_SET_SECUREBITS", prctl(PR_SET_SECUREBITS, 1));
		err("PR_CAP_AMBIENT_RAISE", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
		err("PR_SET_KEEPCAPS", prctl(PR_SET_KEEPCAPS, 1));
	});
}

TEST(limits, "limits")
{
	start_victim();
	struct rlimit r = {100, 200};
	must(setrlimit(RLIMIT_NOFILE, &r), "setrlimit");
	AS(USER, 0, {
		struct rlimit s = {100, 300};
		err("raise the hard limit", setrlimit(RLIMIT_NOFILE, &s));
		s = (struct rlimit){200, 200};
		err("raise the soft limit", setrlimit(RLIMIT_NOFILE, &s));
		s = (struct rlimit){50, 100};
		err("lower", setrlimit(RLIMIT_NOFILE, &s));
		s = (struct rlimit){100, 101};
		err("raise again", setrlimit(RLIMIT_NOFILE, &s));
		err("root's, read", prlimit(victim, RLIMIT_NOFILE, NULL, &s));
		err("root's, write", prlimit(victim, RLIMIT_NOFILE, &r, NULL));
		s = (struct rlimit){0, 0};
		setrlimit(RLIMIT_MEMLOCK, &s);
		setrlimit(RLIMIT_NICE, &s);
		setrlimit(RLIMIT_RTPRIO, &s);
		void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		err("mlock", mlock(p, 4096));
		err("mlockall", mlockall(MCL_CURRENT));
		err("MAP_LOCKED", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED ? -1 : 0);
		err("nicer", setpriority(PRIO_PROCESS, 0, 5));
		err("less nice", setpriority(PRIO_PROCESS, 0, 0));
		struct sched_param sp = {1};
		err("SCHED_FIFO", sched_setscheduler(0, SCHED_FIFO, &sp));
		sp.sched_priority = 0;
		err("SCHED_BATCH", sched_setscheduler(0, SCHED_BATCH, &sp));
		err("SCHED_IDLE", sched_setscheduler(0, SCHED_IDLE, &sp));
		err("SCHED_IDLE and back", sched_setscheduler(0, SCHED_OTHER, &sp));
	});
	AS(USER, 0, {
		struct rlimit s = {0, 0};
		setrlimit(RLIMIT_NICE, &s);
		struct sched_param sp = {0};
		err("reset on fork", sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &sp));
		err("not any more", sched_setscheduler(0, SCHED_OTHER, &sp));
		err("ioprio, real time", syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 4));
		err("ioprio, best effort", syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4));
		err("ioprio, idle", syscall(SYS_ioprio_set, 1, 0, 3 << 13));
	});
}

// against tries everything on a process; self says that it is the caller's own.
static void against(pid_t pid)
{
	struct sched_param sp = {0};
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	char b[8];
	struct iovec in = {b, 8}, out = {b, 8};
	siginfo_t info = {.si_signo = SIGURG, .si_code = SI_QUEUE};
	void *head;
	size_t size;
	err("kill 0", kill(pid, 0));
	err("SIGURG", kill(pid, SIGURG));
	err("SIGCONT", kill(pid, SIGCONT));
	err("tgkill", syscall(SYS_tgkill, pid, pid, SIGURG));
	err("tkill", syscall(SYS_tkill, pid, SIGURG));
	err("sigqueue", syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info));
	info.si_code = SI_USER;
	err("forged SI_USER", syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info));
	info.si_code = SI_KERNEL;
	err("forged SI_KERNEL", syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGURG, &info));
	info.si_code = SI_TKILL;
	err("forged SI_TKILL", syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGURG, &info));
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	err("pidfd_open", pidfd);
	err("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, SIGURG, NULL, 0));
	err("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
	err("getpriority", getpriority(PRIO_PROCESS, pid));
	err("setpriority", setpriority(PRIO_PROCESS, pid, 19));
	err("sched_setaffinity", sched_setaffinity(pid, sizeof cpus, &cpus));
	err("sched_setscheduler", sched_setscheduler(pid, SCHED_BATCH, &sp));
	err("sched_setparam", sched_setparam(pid, &sp));
	err("sched_getaffinity", sched_getaffinity(pid, sizeof cpus, &cpus));
	err("sched_getparam", sched_getparam(pid, &sp));
	err("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 2 << 13 | 4));
	err("ioprio_get", syscall(SYS_ioprio_get, 1, pid));
	err("prlimit", prlimit(pid, RLIMIT_CORE, NULL, &(struct rlimit){0}));
	err("process_vm_readv", process_vm_readv(pid, &in, 1, &out, 1, 0) < 0 && errno != EFAULT ? -1 : 0);
	err("process_vm_writev", process_vm_writev(pid, &in, 1, &out, 1, 0) < 0 && errno != EFAULT ? -1 : 0);
	err("kcmp", syscall(SYS_kcmp, pid, getpid(), 1, 0, 0));
	err("get_robust_list", syscall(SYS_get_robust_list, pid, &head, &size));
	err("setpgid", setpgid(pid, 0));
	err("getpgid", getpgid(pid));
	err("getsid", getsid(pid));
	err("wait", waitpid(pid, NULL, WNOHANG));
	static const char *files[] = {"environ", "auxv", "maps", "smaps", "exe", "cwd", "root", "fd", "fdinfo", "io", "status",
		"stat", "statm", "cmdline", "comm", "limits", "personality", "mounts", "mountinfo", "oom_score", "oom_score_adj", "cgroup", "wchan"};
	for (int i = 0; i < sizeof files / sizeof *files; i++) {
		char path[64], text[100], buf[4096];
		snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
		long rc = i >= 4 && i <= 6 ? readlink(path, buf, sizeof buf) : 0;
		if (i == 7 || i == 8) {
			DIR *d = opendir(path);
			rc = d ? 0 : -1;
		} else if (i < 4 || i > 6) {
			int fd = open(path, O_RDONLY);
			rc = fd < 0 ? -1 : read(fd, buf, sizeof buf) < 0 ? -1 : 0;
			if (fd >= 0)
				close(fd);
		}
		err(files[i], rc);
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	int fd = open(path, O_WRONLY);
	err("open oom_score_adj to write", fd);
	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	fd = open(path, O_WRONLY);
	err("open comm to write", fd);
	snprintf(path, sizeof path, "/proc/%d/fd/0", pid);
	err("open its descriptor", open(path, O_RDONLY));
	err("stat its descriptor", access(path, F_OK));
	snprintf(path, sizeof path, "/proc/%d/cwd/x", pid);
	err("a path through its directory", access(path, F_OK));
	err("SIGTERM", kill(pid, SIGTERM));
}

static void waits_as(uid_t real, uid_t effective, uid_t saved)
{
	int null = open("/dev/zero", O_RDWR);
	dup2(null, 0);
	setgroups(0, NULL);
	if (real || effective || saved) {
		must(setresgid(real, effective, saved), "setresgid");
		must(setresuid(real, effective, saved), "setresuid");
	}
	prctl(PR_SET_DUMPABLE, 1);
	for (;;)
		pause();
}

TEST(processes, "others' processes")
{
	static const uid_t who[][3] = {{0, 0, 0}, {USER, USER, USER}, {OTHER, OTHER, OTHER}, {USER, 0, 0}, {0, USER, 0}, {0, 0, USER}, {0, USER, USER}, {USER, OTHER, OTHER}};
	for (int i = 0; i < 8; i++) {
		pid_t pid = FORK(waits_as(who[i][0], who[i][1], who[i][2]));
		settle(pid);
		say("a process of %d %d %d", who[i][0], who[i][1], who[i][2]);
		AS(USER, 0, against(pid));
		kill(pid, SIGKILL);
		wait_for(pid);
	}
	// Sessions matter to SIGCONT only.
	pid_t pid = FORK(setsid(); pause());
	settle(pid);
	AS(USER, 0, err("SIGCONT to another session", kill(pid, SIGCONT)); err("kill", kill(pid, SIGKILL)));
	kill(pid, SIGKILL);
	settle(pid);
	AS(USER, 0, err("a zombie", kill(pid, SIGTERM)); err("0 to a zombie", kill(pid, 0)));
	pid_t mine = FORK(become(USER, USER, 0));
	siginfo_t ended;
	waitid(P_PID, mine, &ended, WEXITED | WNOWAIT);
	AS(USER, 0, err("my zombie", kill(mine, 0)));
	AS(OTHER, 0, err("another's zombie", kill(mine, 0)));
	AS(USER, 0, err("PRIO_USER of another", setpriority(PRIO_USER, 77777, 1)); err("kill everybody", kill(-1, 0)));
	AS(USER, 0, {
		// A group with a process of root's in it: some are enough.
		setpgid(0, 0);
		err("own group", kill(0, 0));
		err("root's group", kill(-victim, 0));
	});
}

TEST(ports, "sockets")
{
	AS(USER, 0, {
		struct sockaddr_in a = {AF_INET, htons(80), {htonl(INADDR_LOOPBACK)}};
		int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0), v = 7, one = 1;
		err("port 80", bind(s, (void *)&a, sizeof a));
		err("port 80, UDP", bind(u, (void *)&a, sizeof a));
		a.sin_port = htons(1023);
		err("port 1023", bind(u, (void *)&a, sizeof a));
		err("SO_MARK", setsockopt(s, SOL_SOCKET, SO_MARK, &one, 4));
		err("SO_PRIORITY 7", setsockopt(s, SOL_SOCKET, SO_PRIORITY, &v, 4));
		v = 6;
		err("SO_PRIORITY 6", setsockopt(s, SOL_SOCKET, SO_PRIORITY, &v, 4));
		err("SO_RCVBUFFORCE", setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &v, 4));
		err("SO_SNDBUFFORCE", setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &v, 4));
		err("SO_DEBUG", setsockopt(s, SOL_SOCKET, SO_DEBUG, &one, 4));
		err("IP_TRANSPARENT", setsockopt(s, IPPROTO_IP, IP_TRANSPARENT, &one, 4));
		err("IP_FREEBIND", setsockopt(s, IPPROTO_IP, IP_FREEBIND, &one, 4));
		struct ifreq r = {"lo"};
		err("SIOCGIFFLAGS", ioctl(s, SIOCGIFFLAGS, &r));
		err("SIOCSIFFLAGS", ioctl(s, SIOCSIFFLAGS, &r));
		err("SIOCSIFADDR", ioctl(s, SIOCSIFADDR, &r));
		err("SIOCSIFMTU", ioctl(s, SIOCSIFMTU, &r));
	});
}

// The owner of a socket in the file system decides who may connect.
TEST(unix_sockets, "sockets in the file system")
{
	struct sockaddr_un sa = {AF_UNIX, "s"}, da = {AF_UNIX, "d"};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), d = socket(AF_UNIX, SOCK_DGRAM, 0);
	must(bind(s, (void *)&sa, sizeof sa), "bind");
	must(listen(s, 64), "listen");
	must(bind(d, (void *)&da, sizeof da), "bind");
	static mode_t modes[] = {0777, 0755, 0722, 0700, 0702, 0000};
	for (int i = 0; i < 6; i++) {
		chmod("s", modes[i]), chmod("d", modes[i]);
		say("%04o", modes[i]);
		AS(USER, 0, {
			int c = socket(AF_UNIX, SOCK_STREAM, 0), e = socket(AF_UNIX, SOCK_DGRAM, 0);
			err("connect", connect(c, (void *)&sa, sizeof sa));
			err("connect, datagrams", connect(e, (void *)&da, sizeof da));
			err("sendto", sendto(e, "x", 1, 0, (void *)&da, sizeof da));
			err("open", open("s", O_RDWR));
			struct ucred u;
			socklen_t n = sizeof u;
			if (getsockopt(c, SOL_SOCKET, SO_PEERCRED, &u, &n) == 0)
				say("peer: %d %d, %s", u.uid, u.gid, u.pid == getppid() ? "the parent" : u.pid == 0 ? "nobody" : "another");
		});
	}
	AS(USER, 0, {
		struct sockaddr_un na = {AF_UNIX, "new"};
		err("bind where one may not write", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&na, sizeof na));
	});
	// Who listened is what a client learns; who made the socket is not.
	int p[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
	int late = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un la = {AF_UNIX, "\0hardtack-privileges"};
	must(bind(late, (void *)&la, 22), "bind");
	AS(USER, 0, {
		must(listen(late, 1), "listen");
		struct ucred u;
		socklen_t n = sizeof u;
		must(getsockopt(p[0], SOL_SOCKET, SO_PEERCRED, &u, &n), "SO_PEERCRED");
		say("a pair's peer: %d %d", u.uid, u.gid);
	});
	int c = socket(AF_UNIX, SOCK_STREAM, 0);
	must(connect(c, (void *)&la, 22), "connect");
	struct ucred u;
	socklen_t n = sizeof u;
	must(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &u, &n), "SO_PEERCRED");
	say("the listener: %d %d", u.uid, u.gid);
	must(setresuid(USER, USER, 0), "setresuid");
	int a = must(accept(late, NULL, NULL), "accept");
	must(getsockopt(a, SOL_SOCKET, SO_PEERCRED, &u, &n), "SO_PEERCRED");
	say("the client: %d %d", u.uid, u.gid);
}

static long send_cred(int s, pid_t pid, uid_t uid, gid_t gid)
{
	char b[CMSG_SPACE(sizeof(struct ucred))] = "";
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = b, .msg_controllen = sizeof b};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_CREDENTIALS, h->cmsg_len = CMSG_LEN(sizeof(struct ucred));
	*(struct ucred *)CMSG_DATA(h) = (struct ucred){pid, uid, gid};
	return sendmsg(s, &m, 0);
}

TEST(forged, "forged credentials")
{
	int p[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, p), "socketpair");
	AS(USER, CLUB, {
		err("own", send_cred(p[0], getpid(), USER, USER));
		err("another process", send_cred(p[0], getppid(), USER, USER));
		err("another user", send_cred(p[0], getpid(), 0, USER));
		err("another group", send_cred(p[0], getpid(), USER, 0));
		err("a further group", send_cred(p[0], getpid(), USER, CLUB));
	});
	IN_CHILD("saved ids", {
		must(setresgid(USER, OTHER, CLUB), "setresgid");
		must(setresuid(USER, OTHER, OTHER), "setresuid");
		err("real", send_cred(p[0], getpid(), USER, USER));
		err("effective", send_cred(p[0], getpid(), OTHER, OTHER));
		err("saved group", send_cred(p[0], getpid(), OTHER, CLUB));
		err("root", send_cred(p[0], getpid(), 0, CLUB));
	});
	err("root", send_cred(p[0], 1, 5, 6));
	err("a process that is not there", send_cred(p[0], 4000000, 5, 6));
}

static volatile int got_io;
static void on_io(int sig) { got_io = 1; }

// SIGIO goes out with the rights of whoever asked for it.
TEST(sigio, "SIGIO to another's process")
{
	int *got = shared(sizeof *got);
	int ready[2], p[2];
	must(pipe(ready), "pipe");
	pid_t pid = FORK({
		signal(SIGIO, on_io);
		write(ready[1], "x", 1);
		for (int i = 0; i < 1000 && !got_io; i++)
			sleep_ms(1);
		*got = got_io;
	});
	char c;
	read(ready[0], &c, 1);
	AS(USER, 0, {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
		err("F_SETOWN", fcntl(p[0], F_SETOWN, pid));
		err("O_ASYNC", fcntl(p[0], F_SETFL, O_ASYNC));
		write(p[1], "x", 1);
		err("F_SETOWN of init", fcntl(p[0], F_SETOWN, 1));
		sleep_ms(30);
	});
	say("root's process got one: %d", got_io || *got);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
	fcntl(p[0], F_SETOWN, pid);
	fcntl(p[0], F_SETFL, O_ASYNC);
	AS(USER, 0, write(p[1], "x", 1));
	wait_for(pid);
	say("when root had asked: %d", *got);
}

static void segments(int shm, int sem, int msg)
{
	struct shmid_ds d;
	struct semid_ds sd;
	struct msqid_ds md;
	struct sembuf up = {0, 1, IPC_NOWAIT}, zero = {0, 0, IPC_NOWAIT};
	struct { long type; char text[8]; } m = {1, "x"};
	unsigned short values[1] = {0};
	err("shmat", shmat(shm, NULL, 0) == (void *)-1 ? -1 : 0);
	err("shmat SHM_RDONLY", shmat(shm, NULL, SHM_RDONLY) == (void *)-1 ? -1 : 0);
	err("shmat SHM_EXEC", shmat(shm, NULL, SHM_RDONLY | SHM_EXEC) == (void *)-1 ? -1 : 0);
	int rc = err("shm IPC_STAT", shmctl(shm, IPC_STAT, &d));
	if (rc < 0)
		memset(&d, 0, sizeof d);
	err("shm IPC_SET", shmctl(shm, IPC_SET, &d));
	err("SHM_LOCK", shmctl(shm, SHM_LOCK, NULL));
	err("SHM_UNLOCK", shmctl(shm, SHM_UNLOCK, NULL));
	err("semop", semop(sem, &up, 1));
	err("semop for 0", semop(sem, &zero, 1) < 0 && errno != EAGAIN ? -1 : 0);
	err("GETVAL", semctl(sem, 0, GETVAL));
	err("SETVAL", semctl(sem, 0, SETVAL, 1));
	err("GETALL", semctl(sem, 0, GETALL, values));
	err("SETALL", semctl(sem, 0, SETALL, values));
	err("sem IPC_STAT", semctl(sem, 0, IPC_STAT, &sd));
	memset(&sd, 0, sizeof sd);
	err("sem IPC_SET", semctl(sem, 0, IPC_SET, &sd));
	err("msgsnd", msgsnd(msg, &m, 1, IPC_NOWAIT));
	err("msgrcv", msgrcv(msg, &m, 8, 0, IPC_NOWAIT) < 0 && errno != ENOMSG ? -1 : 0);
	err("msg IPC_STAT", msgctl(msg, IPC_STAT, &md));
	md.msg_qbytes = 1 << 20;
	err("msg IPC_SET", msgctl(msg, IPC_SET, &md));
	err("shm IPC_RMID", shmctl(shm, IPC_RMID, NULL));
	err("sem IPC_RMID", semctl(sem, 0, IPC_RMID));
	err("msg IPC_RMID", msgctl(msg, IPC_RMID, NULL));
}

TEST(sysv, "System V objects")
{
	static const int modes[] = {0600, 0666, 0644, 0622, 0640, 0000};
	for (int i = 0; i < 6; i++)
		for (int who = 0; who < 4; who++) {
			int shm = shmget(IPC_PRIVATE, 4096, modes[i]), sem = semget(IPC_PRIVATE, 1, modes[i]), msg = msgget(IPC_PRIVATE, modes[i]);
			if (who == 2) {
				struct shmid_ds d;
				struct semid_ds sd;
				struct msqid_ds md;
				shmctl(shm, IPC_STAT, &d), semctl(sem, 0, IPC_STAT, &sd), msgctl(msg, IPC_STAT, &md);
				d.shm_perm.gid = sd.sem_perm.gid = md.msg_perm.gid = CLUB;
				shmctl(shm, IPC_SET, &d), semctl(sem, 0, IPC_SET, &sd), msgctl(msg, IPC_SET, &md);
			}
			say("%04o by %d", modes[i], who);
			if (who == 0)
				AS(USER, 0, segments(shm, sem, msg));
			else if (who == 2)
				AS(USER, CLUB, segments(shm, sem, msg));
			else if (who == 1) {
				IN_CHILD("root without CAP_IPC_OWNER", drop_caps(CAP(CAP_IPC_OWNER) | CAP(CAP_SYS_RESOURCE)); segments(shm, sem, msg));
			} else {
				IN_CHILD("root for another", {
					drop_caps(CAP(CAP_SYS_ADMIN) | CAP(CAP_IPC_LOCK));
					setresuid(OTHER, OTHER, 0);
					segments(shm, sem, msg);
				});
			}
			shmctl(shm, IPC_RMID, NULL), semctl(sem, 0, IPC_RMID), msgctl(msg, IPC_RMID, NULL);
		}
	int key = 0x48540000 | getpid() & 0xffff, shm = shmget(key, 4096, IPC_CREAT | 0640);
	AS(USER, 0, {
		err("shmget", shmget(key, 0, 0));
		err("shmget to read", shmget(key, 0, 0400));
		err("shmget to write", shmget(key, 0, 0600));
	});
	AS(USER, 0, {
		int own = shmget(IPC_PRIVATE, 4096, 0600), *p = shmat(own, NULL, SHM_RDONLY);
		err("mprotect of SHM_RDONLY", mprotect(p, 4096, PROT_READ | PROT_WRITE));
		void *q = mremap(p, 0, 4096, MREMAP_MAYMOVE);
		err("mremap", q == MAP_FAILED ? -1 : 0);
		err("mprotect of that", mprotect(q, 4096, PROT_READ | PROT_WRITE));
		shmctl(own, IPC_RMID, NULL);
	});
	shmctl(shm, IPC_RMID, NULL);
}

// Files that the kernel shows: who may open them how.
TEST(shown, "files of /proc, /sys and /dev")
{
	static const char *files[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kmsg", "/dev/console", "/dev/ptmx",
		"/proc", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/cmdline", "/proc/version", "/proc/mounts", "/proc/uptime",
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/dmesg_restrict",
		"/proc/sys/kernel/kptr_restrict", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/panic", "/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/shmmax", "/proc/sys/kernel/msgmax", "/proc/sys/kernel/sem", "/proc/sys/kernel/random/boot_id",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/vm/swappiness", "/proc/sys/vm/mmap_min_addr",
		"/proc/sys/fs/file-max", "/proc/sys/fs/nr_open", "/proc/sys/fs/file-nr", "/proc/sys/fs/pipe-max-size",
		"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/net/core/somaxconn", "/proc/sys/net/ipv4/ip_forward",
		"/sys", "/sys/class/net/lo/address", "/sys/class/net/lo/mtu", "/sys/devices/system/cpu/online",
		"/proc/self/oom_score_adj", "/proc/self/comm", "/proc/self/loginuid", "/proc/self/environ", "/proc/self/status", "/proc/self/exe",
		"/proc/self/fd", "/proc/self/fdinfo", "/proc/self/task", "/proc/self/maps", "/proc/self/root", "/proc/self/limits",
	};
	AS(USER, 0, {
		for (int i = 0; i < sizeof files / sizeof *files; i++) {
			if (access(files[i], F_OK) < 0)
				continue; // not everything is on every machine
			char text[100];
			int dmesg = !strcmp(files[i], "/dev/kmsg") && setting("/proc/sys/kernel/dmesg_restrict") == 0;
			snprintf(text, sizeof text, "%s: read", files[i]);
			if (!dmesg)
				err(text, open(files[i], O_RDONLY | O_NONBLOCK));
			snprintf(text, sizeof text, "%s: write", files[i]);
			err(text, open(files[i], O_WRONLY | O_NONBLOCK));
			snprintf(text, sizeof text, "%s: truncate", files[i]);
			err(text, open(files[i], O_RDONLY | O_TRUNC | O_NONBLOCK) < 0 && errno != EISDIR ? -1 : 0);
			snprintf(text, sizeof text, "%s: chmod", files[i]);
			err(text, chmod(files[i], 0666));
		}
		err("create in /proc", open("/proc/new", O_CREAT | O_WRONLY, 0600));
		err("create in /sys", open("/sys/new", O_CREAT | O_WRONLY, 0600));
		err("create in /dev", open("/dev/new", O_CREAT | O_WRONLY, 0600));
		err("remove /dev/null", unlink("/dev/null"));
		err("rename /dev/null", rename("/dev/null", "/dev/nothing"));
	});
}
