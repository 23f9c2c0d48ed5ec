// What a program that is more than its caller gets from that caller: signals that
// children and timers were to send, descriptors, mappings.
#include "gt.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>

enum { nobody = 1000 };

static void copy_self(const char *name, uid_t uid, mode_t mode)
{
	int in = must(open("/proc/self/exe", O_RDONLY), "open self"), out = must(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700), name);
	char b[65536];
	ssize_t n;
	while ((n = read(in, b, sizeof b)) > 0)
		must(write(out, b, n), "write");
	must(fchown(out, uid, uid), "chown");
	must(fchmod(out, mode), "chmod");
	close(in), close(out);
}

static void become(uid_t id)
{
	must(syscall(SYS_setgroups, 0, NULL), "setgroups");
	must(syscall(SYS_setresgid, id, id, id), "setresgid");
	must(syscall(SYS_setresuid, id, id, id), "setresuid");
}

// child_main is the program that is started. "child-root" becomes root altogether,
// says so and waits until its input ends.
int child_main(int argc, char **argv)
{
	char c;
	if (strcmp(argv[0], "child-root") == 0) {
		must(syscall(SYS_setresgid, 0, 0, 0), "setresgid");
		must(syscall(SYS_setresuid, 0, 0, 0), "setresuid");
		struct itimerspec left;
		if (syscall(SYS_timer_gettime, 0, &left) == 0)
			say("a timer of the program before");
		must(write(3, "x", 1), "write");
		while (read(4, &c, 1) > 0)
			;
		sleep_ms(20);
	}
	if (strcmp(argv[0], "child-death") == 0) {
		int sig = -1;
		prctl(PR_GET_PDEATHSIG, &sig);
		return sig;
	}
	return 0;
}

// meet makes two pipes in a directory where the set-user-id program "root" lies: the
// program writes to 3 when it is root, and reads 4.
static void meet(int *ready, int *end)
{
	int a[2], b[2];
	must(chmod(".", 0755), "chmod");
	copy_self("root", 0, 04755);
	must(pipe(a), "pipe"), must(pipe(b), "pipe");
	*ready = must(fcntl(a[0], F_DUPFD_CLOEXEC, 20), "dup"), *end = must(fcntl(b[1], F_DUPFD_CLOEXEC, 20), "dup");
	int w = must(fcntl(a[1], F_DUPFD, 20), "dup"), r = must(fcntl(b[0], F_DUPFD, 20), "dup");
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
	must(dup2(w, 3), "dup2"), must(dup2(r, 4), "dup2");
	close(w), close(r);
}

static void await(int fd)
{
	char c;
	must(read(fd, &c, 1), "read");
}

TEST(exit_signal_parent, "the exit signal of a child made before exec")
{
	int ready, end, gate[2];
	meet(&ready, &end);
	must(pipe2(gate, O_CLOEXEC), "pipe");
	pid_t p = FORK({
		become(nobody);
		if (must(syscall(SYS_clone, SIGKILL, 0, 0, 0, 0), "clone") == 0) {
			close(gate[1]), close(end), close(3), close(4);
			await(gate[0]);
			_exit(0);
		}
		close(gate[0]), close(gate[1]);
		execl("./root", "root", "child-root", NULL);
	});
	close(gate[0]), close(3), close(4);
	await(ready);
	close(gate[1]); // the child ends
	sleep_ms(50);
	close(end);
	status("root", wait_for(p));
}

TEST(exit_signal_child, "the exit signal of a child that calls exec")
{
	copy_self("plain", 0, 0755);
	status("parent", wait_for(FORK({
		pid_t c = must(syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0), "clone");
		if (c == 0) {
			execl("./plain", "plain", "child", NULL);
			_exit(9);
		}
		int st;
		num("wait, __WCLONE", waitpid(c, &st, __WCLONE));
		num("wait", waitpid(c, &st, 0) == c);
	})));
	status("without exec", wait_for(FORK({
		if (must(syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0), "clone") == 0)
			_exit(0);
		sleep_ms(5000);
	})));
}

TEST(timers, "timers, SIGIO and a parent's death")
{
	int ready, end;
	meet(&ready, &end);
	pid_t p = FORK({
		become(nobody);
		timer_t t;
		struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
		must(timer_create(CLOCK_MONOTONIC, &ev, &t), "timer_create");
		struct itimerspec at = {{0, 0}, {60, 0}};
		must(timer_settime(t, 0, &at, NULL), "timer_settime");
		execl("./root", "root", "child-root", NULL);
	});
	await(ready);
	int s[2];
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), "socketpair");
	wait_for(FORK({
		become(nobody);
		must(fcntl(s[0], F_SETOWN, p), "F_SETOWN");
		must(fcntl(s[0], F_SETSIG, SIGKILL), "F_SETSIG");
		must(fcntl(s[0], F_SETFL, O_ASYNC), "F_SETFL");
	}));
	must(write(s[1], "x", 1), "write");
	sleep_ms(50);
	close(3), close(4), close(end);
	status("root", wait_for(p));
	status("death signal", wait_for(FORK(become(nobody); prctl(PR_SET_PDEATHSIG, SIGUSR1); execl("./root", "root", "child-death", NULL))));
}

TEST(sysctls, "a file of /proc/sys that root opened")
{
	static const char *const files[] = {"kernel/hostname", "vm/overcommit_memory", "fs/protected_symlinks", "fs/pipe-user-pages-soft"};
	for (int i = 0; i < 4; i++) {
		char path[64], b[128];
		snprintf(path, sizeof path, "/proc/sys/%s", files[i]);
		int fd = open(path, O_RDWR);
		ssize_t n = fd < 0 ? -1 : read(fd, b, sizeof b);
		if (n <= 0)
			continue; // a machine that shows none
		wait_for(FORK({
			become(nobody);
			if (pwrite(fd, b, n, 0) != -1 || errno != EPERM)
				say("%s: written", files[i]);
			if (pread(fd, b, 1, 0) != 1)
				say("%s: not read", files[i]);
		}));
		close(fd);
	}
}

TEST(no_exec, "mappings of files on a noexec mount")
{
	must(mkdir("m", 0755), "mkdir");
	must(mount("none", "m", "tmpfs", MS_NOEXEC, NULL), "mount");
	copy_self("m/x", 0, 0755);
	int fd = must(open("m/x", O_RDWR), "open");
	for (int shared = 0; shared < 2; shared++) {
		int flags = shared ? MAP_SHARED : MAP_PRIVATE;
		err("mmap", (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, flags, fd, 0));
		char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, fd, 0);
		err("mprotect", mprotect(p, 4096, PROT_READ | PROT_EXEC));
		p = mremap(p, 8192, 16384, MREMAP_MAYMOVE);
		err("mprotect, moved", mprotect(p, 4096, PROT_EXEC));
		err("mprotect to read", mprotect(p, 4096, PROT_READ));
		munmap(p, 16384);
	}
	err("exec", execl("m/x", "x", "child", NULL));
	close(fd);
	err("umount", umount("m"));
}

TEST(read_only_segment, "shared memory that one may only read")
{
	int id = must(shmget(IPC_PRIVATE, 4096, 0444 | IPC_CREAT), "shmget");
	char *w = shmat(id, NULL, 0);
	wait_for(FORK({
		become(nobody);
		err("to write", (long)shmat(id, NULL, 0));
		char *r = shmat(id, NULL, SHM_RDONLY);
		err("mprotect", mprotect(r, 4096, PROT_READ | PROT_WRITE));
		void *m = mremap(r, 0, 4096, MREMAP_MAYMOVE);
		err("mprotect of a second mapping", mprotect(m, 4096, PROT_READ | PROT_WRITE));
	}));
	say("%d", w[0]);
	must(shmctl(id, IPC_RMID, NULL), "shmctl");
}

// deletes asks for the end of an address that is not there.
static void deletes(const char *what, int s, int named)
{
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg a;
		struct rtattr local;
		unsigned char address[4];
	} m = {
		{sizeof m, RTM_DELADDR, NLM_F_REQUEST | NLM_F_ACK, 1},
		{AF_INET, 32, 0, 0, 1},
		{sizeof m.local + 4, IFA_LOCAL},
		{192, 0, 2, 1},
	};
	struct sockaddr_nl kernel = {AF_NETLINK};
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[512];
	} r;
	if (named)
		must(sendto(s, &m, sizeof m, 0, (void *)&kernel, sizeof kernel), "sendto");
	else
		must(write(s, &m, sizeof m), "write");
	must(recv(s, &r, sizeof r, 0), "recv");
	say("%s: %s", what, name_of(-r.e.error));
}

TEST(netlink, "a netlink socket that a user made")
{
	int s;
	IN_CHILD("child", {
		deletes("root's own, written", must(socket(AF_NETLINK, SOCK_RAW, 0), "socket"), 0);
		must(seteuid(nobody), "seteuid");
		s = must(socket(AF_NETLINK, SOCK_RAW, 0), "socket");
		deletes("a user", s, 0), deletes("a user who names the kernel", s, 1);
		must(seteuid(0), "seteuid");
		deletes("root writes what it was given", s, 0), deletes("root names the kernel", s, 1);
	});
}

TEST(configuration, "a file system that root began to set up")
{
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, NULL), "mount");
	IN_CHILD("child", {
		int made = must(syscall(SYS_fsopen, "tmpfs", 0), "fsopen"), picked = must(syscall(SYS_fspick, AT_FDCWD, "m", 0), "fspick");
		must(seteuid(nobody), "seteuid");
		err("set", syscall(SYS_fsconfig, made, 1, "size", "1m", 0));
		err("create", syscall(SYS_fsconfig, made, 6, NULL, NULL, 0));
		err("mount", syscall(SYS_fsmount, made, 0, 0));
		err("set ro", syscall(SYS_fsconfig, picked, 0, "ro", NULL, 0));
		err("reconfigure", syscall(SYS_fsconfig, picked, 7, NULL, NULL, 0));
		must(seteuid(0), "seteuid");
		err("root creates", syscall(SYS_fsconfig, made, 6, NULL, NULL, 0));
		err("root reconfigures", syscall(SYS_fsconfig, picked, 7, NULL, NULL, 0));
		err("it is writable", access("m", W_OK));
	});
	umount2("m", MNT_DETACH);
}
