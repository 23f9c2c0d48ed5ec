// Known attacks on kernels, of the kind that has worked somewhere: what a plain user
// gains from memory, pipes, descriptors and processes that change identity.
#include "perm.h"
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static void copy_self(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	int in = must(open("/proc/self/exe", O_RDONLY), "open self"), out = must(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700), name);
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	must(fchown(out, uid, gid), "chown");
	must(fchmod(out, mode), "chmod");
	close(in), close(out);
}

// content prints what is in a file.
static void content(const char *what, const char *path)
{
	char b[32] = "";
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, b, sizeof b - 1) < 0)
		strcpy(b, "?");
	close(fd);
	say("%s: %s", what, b);
}

static volatile int over;
static char *map;

static void *advise(void *arg)
{
	while (!over)
		madvise(map, 4096, MADV_DONTNEED);
	return arg;
}

static void *write_mem(void *arg)
{
	int mem = open("/proc/self/mem", O_RDWR);
	struct iovec l = {"XXXXXXXXXX", 10}, r = {map, 10};
	while (!over) {
		pwrite(mem, "XXXXXXXXXX", 10, (intptr_t)map);
		process_vm_writev(getpid(), &l, 1, &r, 1, 0);
	}
	close(mem);
	return arg;
}

static void *read_into(void *arg)
{
	int fd = open("/dev/zero", O_RDONLY);
	while (!over)
		read(fd, map, 10);
	close(fd);
	return arg;
}

TEST(copy_on_write, "a file that one may only read, mapped")
{
	make("root", 0, 0, 0644);
	for (int flags = MAP_SHARED; flags <= MAP_PRIVATE; flags++)
		AS(USER, 0, {
			prctl(PR_SET_DUMPABLE, 1); // to open mem
			int fd = must(open("root", O_RDONLY), "open");
			map = mmap(NULL, 4096, PROT_READ, flags, fd, 0);
			int mem = must(open("/proc/self/mem", O_RDWR), "mem");
			if (flags == MAP_SHARED)
				num("write", pwrite(mem, "X", 1, (intptr_t)map));
			err("mprotect", mprotect(map, 4096, PROT_READ | PROT_WRITE));
			close(mem);
			mprotect(map, 4096, PROT_READ);
			pthread_t t[4];
			pthread_create(&t[0], NULL, advise, NULL);
			pthread_create(&t[1], NULL, write_mem, NULL);
			pthread_create(&t[2], NULL, read_into, NULL);
			pthread_create(&t[3], NULL, advise, NULL);
			sleep_ms(400);
			over = 1;
			for (int i = 0; i < 4; i++)
				pthread_join(t[i], NULL);
		});
	content("the file", "root");
}

TEST(dirty_pipe, "pages of a file in a pipe")
{
	make("root", 0, 0, 0644);
	AS(USER, 0, {
		int fd = must(open("root", O_RDONLY), "open"), p[2], q[2];
		must(pipe(p), "pipe");
		must(pipe(q), "pipe");
		char b[65536] = "";
		must(write(p[1], b, sizeof b), "fill");
		must(read(p[0], b, sizeof b), "drain");
		loff_t off = 1;
		num("splice", splice(fd, &off, p[1], NULL, 1, 0));
		num("write", write(p[1], "XXXXXXXX", 8));
		num("tee", tee(p[0], q[1], 9, 0));
		num("write", write(q[1], "XXXXXXXX", 8));
		num("read", read(p[0], b, 4));
		num("splice", splice(fd, NULL, p[1], NULL, 3, SPLICE_F_MOVE | SPLICE_F_GIFT));
		num("write", write(p[1], "XXXXXXXX", 8));
		char *m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		struct iovec v = {m, 4};
		num("vmsplice", vmsplice(p[1], &v, 1, SPLICE_F_GIFT));
		num("write", write(p[1], "XXXXXXXX", 8));
		int s[2];
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
		num("sendfile", sendfile(s[0], fd, &(off_t){0}, 4));
		num("write", write(s[0], "XXXX", 4));
		num("sendfile to it", sendfile(fd, fd, NULL, 4));
		num("splice to it", splice(p[0], NULL, fd, NULL, 4, 0));
		num("copy to it", copy_file_range(fd, NULL, fd, &(loff_t){100}, 4, 0));
	});
	content("the file", "root");
}

// A set-user-id copy of this program; what it does depends on its first argument.
static char here[8192] __attribute__((aligned(4096))) = "untouched";

__attribute__((constructor)) static void as_program(int argc, char **argv)
{
	if (argc < 2 || strncmp(argv[1], "--", 2))
		return;
	if (!strcmp(argv[1], "--wait")) { // to be attacked, and to end by itself
		printf("    euid %d\n", geteuid());
		fflush(stdout);
		sleep_ms(300);
		printf("    survives\n");
		fflush(stdout);
		_exit(0);
	}
	if (!strcmp(argv[1], "--look")) {
		sleep_ms(300);
		for (int i = 0; i < sizeof here; i++)
			if (here[i] != (i < 9 ? "untouched"[i] : 0)) {
				printf("    byte %d is %d\n", i, here[i]);
				break;
			}
		struct sigaction a;
		sigaction(SIGUSR1, NULL, &a);
		printf("    euid %d, %.9s, SIGUSR1 is %s\n", geteuid(), here, a.sa_handler == SIG_DFL ? "default" : a.sa_handler == SIG_IGN ? "ignored" : "handled");
		printf("    descriptor 77: %s\n", fcntl(77, F_GETFD) < 0 ? "closed" : "open");
		fflush(stdout);
		_exit(0);
	}
	if (!strcmp(argv[1], "--send")) { // a netlink message on the standard input's socket
		struct { struct nlmsghdr h; struct ifinfomsg i; } r = {{sizeof r, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1}, {.ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP}};
		struct { struct nlmsghdr h; struct nlmsgerr e; char more[200]; } a = {};
		write(0, &r, sizeof r);
		read(0, &a, sizeof a);
		printf("    euid %d: %s\n", geteuid(), name_of(-a.e.error));
		fflush(stdout);
		_exit(0);
	}
	if (!strcmp(argv[1], "--write")) {
		long n = write(0, argv[2], strlen(argv[2]));
		printf("    euid %d: %s\n", geteuid(), n < 0 ? name_of(errno) : "ok");
		fflush(stdout);
		_exit(0);
	}
}

static void run(const char *what, const char *arg)
{
	execl("su", "su", what, arg, NULL);
	fatal("exec");
}

TEST(death_signal, "a signal at the parent's death, and a set-user-id program")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	int p[2];
	must(pipe(p), "pipe");
	FORK({
		AS(USER, 0, {
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				run("--wait", NULL);
			}
			sleep_ms(150); // it is dead before its child ends
			_exit(0);
		});
	});
	close(p[1]);
	read(p[0], &p, 1);
	wait_for(-1);
}

static int exits_later(void *arg)
{
	sleep_ms(100);
	_exit(0);
}

TEST(exit_signal, "a child's signal to a set-user-id program")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	static char stack[65536];
	AS(USER, 0, {
		must(clone(exits_later, stack + sizeof stack, SIGKILL, NULL), "clone");
		run("--wait", NULL);
	});
}

TEST(queued_io_signal, "SIGIO and timers that a set-user-id program inherits")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	AS(USER, 0, {
		int p[2];
		must(pipe(p), "pipe");
		must(fcntl(p[0], F_SETOWN, getpid()), "F_SETOWN");
		must(fcntl(p[0], F_SETSIG, SIGKILL), "F_SETSIG");
		must(fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK), "F_SETFL");
		if (fork() == 0) {
			sleep_ms(100);
			write(p[1], "x", 1);
			_exit(0);
		}
		timer_t id; // does not outlive exec
		struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
		must(timer_create(CLOCK_MONOTONIC, &ev, &id), "timer_create");
		struct itimerspec at = {{0, 0}, {0, 100000000}};
		must(timer_settime(id, 0, &at, NULL), "timer_settime");
		run("--wait", NULL);
	});
}

static int exec_su(void *arg)
{
	run("--look", NULL);
	return 0;
}

static int meddle(void *arg)
{
	struct sigaction ign = {.sa_handler = SIG_IGN};
	sleep_ms(150); // the other is the set-user-id program by now
	dup2(1, 77);
	syscall(SYS_rt_sigaction, SIGUSR1, &ign, NULL, 8);
	strcpy(here, "changed");
	_exit(0);
}

TEST(shared_with, "who shares handlers, descriptors or memory with a set-user-id program")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	for (int i = 0; i < 3; i++) {
		int flags = (int[]){CLONE_FILES, CLONE_FILES | CLONE_VM | CLONE_SIGHAND, CLONE_VM | CLONE_VFORK}[i];
		say("flags %#x", flags);
		AS(USER, 0, {
			static char stack[65536];
			if (flags & CLONE_VFORK) {
				must(clone(exec_su, stack + sizeof stack, flags | SIGCHLD, NULL), "clone");
				strcpy(here, "changed");
				wait_for(-1);
			} else {
				must(clone(meddle, stack + sizeof stack, flags | SIGCHLD, NULL), "clone");
				run("--look", NULL);
			}
		});
	}
}

TEST(left_addresses, "addresses of the old program's memory, and a set-user-id program")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	AS(USER, 0, {
		static struct { struct robust_list_head h; } head;
		head.h.list.next = &head.h.list;
		head.h.futex_offset = 0;
		head.h.list_op_pending = (void *)(here + 4096);
		*(int *)(here + 4096) = gettid();
		syscall(SYS_set_robust_list, &head, sizeof head.h);
		syscall(SYS_set_tid_address, here + 4);
		stack_t alt = {here, 0, sizeof here};
		sigaltstack(&alt, NULL);
		run("--look", NULL);
	});
}

TEST(netlink, "a netlink socket that a set-user-id program writes to")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	AS(USER, 0, {
		int fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");
		struct sockaddr_nl to = {AF_NETLINK};
		must(connect(fd, (void *)&to, sizeof to), "connect");
		dup2(fd, 0);
		run("--send", NULL);
	});
	int fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");
	struct sockaddr_nl to = {AF_NETLINK};
	must(connect(fd, (void *)&to, sizeof to), "connect");
	dup2(fd, 0);
	AS(USER, 0, run("--send", NULL));
}

TEST(opened_before, "files of /proc that a set-user-id program writes to")
{
	copy_self("su", 0, 0, 04755);
	chmod(".", 0755);
	static const char *what[][2] = {
		{"oom_score_adj", "-900"}, {"comm", "name"}, {"coredump_filter", "1"}, {"clear_refs", "1"}, {"timerslack_ns", "1"},
		{"uid_map", "0 0 1"}, {"gid_map", "0 0 1"}, {"attr/current", "x"}, {"loginuid", "0"},
	};
	for (int i = 0; i < sizeof what / sizeof *what; i++)
		AS(USER, 0, {
			prctl(PR_SET_DUMPABLE, 1);
			char path[100];
			pid_t victim = FORK(pause());
			snprintf(path, sizeof path, "/proc/%d/%s", victim, what[i][0]);
			int fd = open(path, O_WRONLY);
			if (fd < 0) {
				err(what[i][0], -1);
			} else {
				say("%s", what[i][0]);
				dup2(fd, 0);
				if (fork() == 0)
					run("--write", what[i][1]);
				wait_for(-1);
			}
			kill(victim, SIGKILL);
		});
	AS(USER, 0, {
		prctl(PR_SET_DUMPABLE, 1);
		dup2(must(open("/proc/self/mem", O_RDWR), "mem"), 0);
		lseek(0, (intptr_t)here, SEEK_SET);
		say("mem");
		run("--write", "changed");
	});
}

TEST(path_only, "descriptors that only name a file")
{
	make("own", USER, USER, 0644);
	make("root", 0, 0, 0644);
	AS(USER, 0, {
		for (int i = 0; i < 2; i++) {
			say(i ? "another's" : "one's own");
			int fd = must(open(i ? "root" : "own", O_PATH), "open");
			char b[64];
			char path[40];
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			err("read", read(fd, b, 1));
			err("write", write(fd, b, 1));
			err("mmap", mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
			err("fchmod", fchmod(fd, 0666));
			err("fchown", fchown(fd, USER, USER));
			err("ftruncate", ftruncate(fd, 0));
			err("fallocate", fallocate(fd, 0, 0, 1));
			err("ioctl", ioctl(fd, FIONREAD, b));
			err("flock", syscall(SYS_flock, fd, 1));
			err("F_SETOWN", fcntl(fd, F_SETOWN, getpid()));
			err("F_SETLEASE", fcntl(fd, F_SETLEASE, F_RDLCK));
			err("F_SETFL", fcntl(fd, F_SETFL, O_APPEND));
			err("F_ADD_SEALS", fcntl(fd, F_ADD_SEALS, 1));
			err("fsync", fsync(fd));
			err("lseek", lseek(fd, 0, SEEK_SET));
			err("readahead", readahead(fd, 0, 1));
			err("fsetxattr", syscall(SYS_fsetxattr, fd, "user.x", "x", 1, 0));
			err("fgetxattr", syscall(SYS_fgetxattr, fd, "user.x", b, 1));
			err("futimens", futimens(fd, NULL));
			err("utimensat", utimensat(fd, "", NULL, AT_EMPTY_PATH));
			err("fchownat", fchownat(fd, "", USER, USER, AT_EMPTY_PATH));
			err("chmod of the link", chmod(path, 0666));
			err("open to write", open(path, O_WRONLY));
			err("open to truncate", open(path, O_RDONLY | O_TRUNC));
			err("linkat of the link", linkat(AT_FDCWD, path, AT_FDCWD, i ? "linked2" : "linked1", AT_SYMLINK_FOLLOW));
			err("sendfile", sendfile(1, fd, NULL, 1));
			err("copy_file_range", copy_file_range(fd, NULL, fd, NULL, 1, 0));
			err("fexecve", fexecve(fd, (char *[]){"x", NULL}, (char *[]){NULL}));
			err("getdents", syscall(SYS_getdents64, fd, b, 64));
			err("poll", poll(&(struct pollfd){fd, POLLIN}, 1, 0));
		}
	});
}

TEST(reopened, "descriptors opened again through /proc")
{
	make("root", 0, 0, 0644);
	make("secret", 0, 0, 0600);
	make_dir("closed", 0, 0, 0700);
	make("closed/file", USER, USER, 0644);
	int fd = must(open("root", O_RDWR), "open"), secret = must(open("secret", O_RDONLY), "open"), dir = must(open("closed", O_PATH), "open");
	AS(USER, 0, {
		char path[60];
		for (int i = 0; i < 2; i++) {
			snprintf(path, sizeof path, "/proc/self/fd/%d", i ? secret : fd);
			err("read", open(path, O_RDONLY));
			err("write", open(path, O_RDWR));
			err("truncate", truncate(path, 0));
			err("chmod", chmod(path, 0666));
			err("chown", chown(path, USER, USER));
			err("rename", rename(path, "x"));
			err("exec", execl(path, path, NULL));
		}
		err("in a closed directory", openat(dir, "file", O_RDONLY));
		err("fchdir", fchdir(dir));
		snprintf(path, sizeof path, "/proc/self/fd/%d/file", dir);
		err("through the link", open(path, O_RDONLY));
		int m = must(syscall(SYS_memfd_create, "m", MFD_ALLOW_SEALING), "memfd");
		snprintf(path, sizeof path, "/proc/self/fd/%d", m);
		int r = must(open(path, O_RDONLY), "open");
		err("a seal through one to read", fcntl(r, F_ADD_SEALS, F_SEAL_WRITE));
		err("a seal", fcntl(m, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
		int w = err("to write again", open(path, O_RDWR));
		err("write", write(w, "x", 1));
		err("truncate", truncate(path, 10));
		err("a hole", fallocate(w, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
		err("mapped", mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, w, 0) == MAP_FAILED ? -1 : 0);
	});
	content("the file", "root");
}

// Each way to change a set-user-id file takes its bit away.
TEST(set_id_bits, "a set-user-id file that others may write")
{
	char *page = shared(4096);
	for (int i = 0; i < 13; i++) {
		make("su", 0, 0, 06777);
		char what[40];
		AS(USER, 0, {
			int fd = must(open("su", O_RDWR), "open"), p[2], own = must(open("/tmp", O_TMPFILE | O_RDWR, 0600), "open");
			must(pipe(p), "pipe");
			write(p[1], "abcd", 4);
			write(own, "abcd", 4);
			switch (i) {
			case 0: num("write", write(fd, "x", 1)); break;
			case 1: num("write of nothing", write(fd, "x", 0)); break;
			case 2: num("pwritev2", syscall(SYS_pwritev2, fd, &(struct iovec){"x", 1}, 1, 0, 0, RWF_APPEND)); break;
			case 3: num("ftruncate", ftruncate(fd, 3)); break;
			case 4: num("ftruncate to the same", ftruncate(fd, 10)); break;
			case 5: num("truncate", truncate("su", 0)); break;
			case 6: num("O_TRUNC", open("su", O_RDONLY | O_TRUNC) < 0 ? -1 : 0); break;
			case 7: num("fallocate", fallocate(fd, 0, 0, 20)); break;
			case 8: num("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5)); break;
			case 9: num("splice", splice(p[0], NULL, fd, NULL, 4, 0)); break;
			case 10: num("sendfile", sendfile(fd, own, &(off_t){0}, 4)); break;
			case 11: num("copy_file_range", copy_file_range(own, &(loff_t){0}, fd, &(loff_t){0}, 4, 0)); break;
			case 12: num("FICLONE", ioctl(fd, 0x40049409, own) < 0 ? 0 : 1); break;
			}
		});
		mode("afterwards", "su");
	}
}

// The options and requests that need a capability, on sockets that root made.
TEST(roots_sockets, "a socket of root's in a user's hands")
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0), "socket"), raw = must(socket(AF_INET, SOCK_RAW, IPPROTO_UDP), "raw");
	AS(USER, 0, {
		int one = 1;
		int big = 100 << 20;
		struct ifreq r = {.ifr_name = "lo"};
		for (int i = 0; i < 2; i++) {
			int s = i ? raw : fd;
			err("SO_MARK", setsockopt(s, SOL_SOCKET, SO_MARK, &one, 4));
			err("SO_DEBUG", setsockopt(s, SOL_SOCKET, SO_DEBUG, &one, 4));
			err("SO_PRIORITY 7", setsockopt(s, SOL_SOCKET, SO_PRIORITY, &(int){7}, 4));
			err("SO_SNDBUFFORCE", setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &big, 4));
			err("SO_RCVBUFFORCE", setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &big, 4));
			err("IP_TRANSPARENT", setsockopt(s, IPPROTO_IP, IP_TRANSPARENT, &one, 4));
			err("SIOCSIFFLAGS", ioctl(s, SIOCSIFFLAGS, &r));
			err("SIOCSIFADDR", ioctl(s, SIOCSIFADDR, &r));
			err("SIOCSIFMTU", ioctl(s, SIOCSIFMTU, &r));
			err("SIOCADDRT", ioctl(s, SIOCADDRT, &r));
			err("SIOCSARP", ioctl(s, SIOCSARP, &r));
		}
		struct sockaddr_in a = {AF_INET, htons(80), {htonl(INADDR_LOOPBACK)}};
		err("bind to port 80", bind(fd, (void *)&a, sizeof a));
	});
}
