// Descriptors of every kind, and the names that paths are made of.
#include "fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static long sys(long nr, long a, long b, long c) { return raw(nr, a, b, c, 0, 0, 0); }

static long socket_of(int family, int type, int protocol) { return sys(SYS_socket, family, type | SOCK_NONBLOCK, protocol); }

// pair makes two connected sockets or the ends of a pipe; the other one is put where
// kind `other` is, or given up.
static long pair(int type, int other)
{
	int fd[2];
	long rc = type ? raw(SYS_socketpair, AF_UNIX, type | SOCK_NONBLOCK, 0, (long)fd, 0, 0) : sys(SYS_pipe2, (long)fd, O_NONBLOCK, 0);
	if (rc < 0)
		return rc;
	sys(SYS_dup2, fd[1], fd_base + other, 0);
	sys(SYS_close, fd[1], 0, 0);
	return fd[0];
}

static long tcp(int listener)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned len = sizeof a;
	long s = socket_of(AF_INET, SOCK_STREAM, 0);
	if (!listener) {
		sys(SYS_getsockname, fd_base + k_listener, (long)&a, (long)&len);
		sys(SYS_connect, s, (long)&a, sizeof a);
		return s;
	}
	sys(SYS_bind, s, (long)&a, sizeof a);
	sys(SYS_listen, s, 4, 0);
	return s;
}

static long open_file(const char *name, int flags) { return raw(SYS_openat, AT_FDCWD, (long)name, flags | O_NONBLOCK, 0666, 0, 0); }

static long memfd(int sealed)
{
	long fd = sys(SYS_memfd_create, (long)"m", 2, 0);
	sys(SYS_ftruncate, fd, 3 * page + 100, 0);
	if (sealed)
		sys(SYS_fcntl, fd, 1033, 1 << (sealed & 3) | (sealed & 1 ? 8 : 16));
	return fd;
}

static long epoll_with(int other)
{
	long e = sys(SYS_epoll_create1, 0, 0, 0);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
	raw(SYS_epoll_ctl, e, EPOLL_CTL_ADD, fd_base + other, (long)&ev, 0, 0);
	raw(SYS_epoll_ctl, e, EPOLL_CTL_ADD, fd_base + k_event, (long)&ev, 0, 0);
	return e;
}

static long inotify(void)
{
	long i = sys(SYS_inotify_init1, O_NONBLOCK, 0, 0);
	sys(SYS_inotify_add_watch, i, (long)"d", IN_ALL_EVENTS);
	return i;
}

static long slave(void)
{
	int zero = 0;
	sys(SYS_ioctl, fd_base + k_master, 0x40045431, (long)&zero); // TIOCSPTLCK
	return sys(SYS_ioctl, fd_base + k_master, 0x5441, O_RDWR | O_NOCTTY | O_NONBLOCK);
}

static long endpoint(int other)
{
	int fd[2];
	long rc = ht_ipc_endpoint(fd, 0);
	if (rc < 0)
		return rc;
	sys(SYS_dup2, fd[1], fd_base + other, 0);
	sys(SYS_close, fd[1], 0, 0);
	return fd[0];
}

// packet makes a packet socket with rings, if one may.
static long packet(thread *t)
{
	int version = (int)below(t, 3);
	unsigned ring[7] = {8192, 2, 1024, 16, 1, 0, 0};
	long s = socket_of(AF_PACKET, one_in(t, 2) ? SOCK_RAW : SOCK_DGRAM, htons(3));
	if (s < 0)
		return s;
	raw(SYS_setsockopt, s, 263, 10, (long)&version, 4, 0);
	for (int name = 5; name <= 13; name += 8) // PACKET_RX_RING, PACKET_TX_RING
		if (one_in(t, 2))
			raw(SYS_setsockopt, s, 263, name, (long)ring, name == 5 && version == 2 ? 28 : 16, 0);
	return s;
}

static long make(thread *t, int kind)
{
	static const char *const names[] = {"a", "b", "c", "d/x"};
	uint64_t set = 1UL << (SIGUSR1 - 1) | 1UL << (SIGURG - 1);
	switch (kind) {
	case k_unix: return pair(SOCK_STREAM, k_netlink);
	case k_dgram: return pair(SOCK_DGRAM, k_dgram);
	case k_seqpacket: return pair(SOCK_SEQPACKET, k_seqpacket);
	case k_tcp: return tcp(0);
	case k_listener: return tcp(1);
	case k_udp: return socket_of(one_in(t, 3) ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	case k_raw: return one_in(t, 3) ? packet(t) : socket_of(AF_INET, one_in(t, 2) ? SOCK_RAW : SOCK_DGRAM, 1);
	case k_netlink: return socket_of(AF_NETLINK, SOCK_RAW, 0);
	case k_tmpfs: return open_file(names[below(t, 4)], O_RDWR | O_CREAT);
	case k_ext4: return open_file(below(t, 2) ? "disk/a" : "disk/b", O_RDWR | O_CREAT | (one_in(t, 4) ? O_DIRECT : 0));
	case k_memfd: return memfd(0);
	case k_sealed: return memfd(1 + (int)below(t, 7));
	case k_dir: return open_file(one_in(t, 2) ? "." : "d", O_RDONLY | O_DIRECTORY);
	case k_dir2: return open_file(one_in(t, 2) ? "disk" : one_in(t, 2) ? "/proc/self" : "/dev", O_RDONLY | O_DIRECTORY);
	case k_pipe_in: return pair(0, k_pipe_out);
	case k_pipe_out: return pair(0, k_pipe_in);
	case k_fifo: return open_file("fifo", O_RDWR);
	case k_epoll: return epoll_with(k_pipe_in);
	case k_epoll2: return epoll_with(k_epoll);
	case k_event: return sys(SYS_eventfd2, below(t, 4), EFD_NONBLOCK | (int)below(t, 2), 0);
	case k_timer: return sys(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK, 0);
	case k_signal: return raw(SYS_signalfd4, -1, (long)&set, 8, SFD_NONBLOCK, 0, 0);
	case k_inotify: return inotify();
	case k_pid: return sys(SYS_pidfd_open, me.pid, 0, 0);
	case k_pid2: return sys(SYS_pidfd_open, me.uid ? (below(t, 2) ? guard_pid : witness_pid) : me.pid, 0, 0);
	case k_master: return open_file("/dev/ptmx", O_RDWR | O_NOCTTY);
	case k_slave: return slave();
	case k_null: return open_file(one_in(t, 2) ? "/dev/null" : "/dev/full", O_RDWR);
	case k_zero: return open_file("/dev/zero", O_RDWR);
	case k_random: return open_file("/dev/urandom", O_RDWR);
	case k_maps: return open_file(one_in(t, 2) ? "/proc/self/maps" : "/proc/self/smaps", O_RDONLY);
	case k_mem: return open_file("/proc/self/mem", O_RDWR);
	case k_status: return open_file(one_in(t, 2) ? "/proc/self/status" : one_in(t, 2) ? "/proc/self/mountinfo" : "/proc/meminfo", O_RDONLY);
	case k_path: return open_file(one_in(t, 2) ? "a" : "/proc/self/exe", O_PATH);
	case k_receive: return endpoint(k_send);
	case k_send: return endpoint(k_receive);
	case k_note: return ht_ipc_notification(0);
	}
	return -1;
}

// open_kind puts a new descriptor of a kind where workers look for it.
void open_kind(thread *t, int kind)
{
	long fd = make(t, kind);
	if (fd < 0 || fd == fd_base + kind)
		return;
	sys(SYS_dup2, fd, fd_base + kind, 0);
	sys(SYS_close, fd, 0, 0);
}

// make_names writes the strings of paths: names in the directory of the child first,
// which every child may change, then what is everybody's.
void make_names(void)
{
	static const char *const names[] = {
		"a", "b", "c", "d", "d/x", "d/y", "d/z", "link", "loop1", "loop2", "fifo", "socket", "socket2", "d/../a", "none/none", [mount_name] = "m", "m/a",
		"disk/a", "disk/b", "disk/d", "disk/d/x", "disk/d/y", "disk/link", "disk/big", ".", "..", "", "d/", "a/b", "disk/e", "\001\377\200", "f\nile",
	};
	static const char *const others[] = {
		"/proc/self/exe", "/proc/self/maps", "/proc/self/status", "/proc/self/fd/9", "/proc/self/fd/20", "/proc/self/cmdline", "/proc/self/environ",
		"/proc/self/stat", "/proc/self/mem", "/proc/self/root", "/proc/self/cwd", "/proc/thread-self/fdinfo/9", "/proc/self/task", "/proc/self/auxv",
		"/proc/self/oom_score_adj", "/proc/self/mountinfo", "/proc/meminfo", "/proc/stat", "/proc/net/tcp", "/proc/net/unix", "/proc/loadavg",
		"/proc/sys/kernel/ostype", "/proc/hardtack/syscalls", "/proc/hardtack/frames", "/dev/null", "/dev/zero", "/dev/full", "/dev/ptmx", "/dev/pts/0",
		"/dev/tty", "/tmp", "/", "/sys", "/proc", "/suid",
	};
	static const char *const forbidden[] = {
		"/root/secret", "/root/canary", "/root", "/root/new", "/report", "/dev/vda", "/dev/console", "/proc/1/mem", "/proc/1/environ", "/proc/1/maps",
		"/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/hardtack/heap", "/proc/sysrq-trigger", "/fuzz", "/etc/passwd", "/dev/kmsg",
	};
	int n = 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		strcpy(me.paths + path_size * n++, names[i]);
	me.nnames = n;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		strcpy(me.paths + path_size * n++, others[i]);
	memset(me.paths + path_size * n, 'n', path_size - 1); // in one path with the next
	n++;
	if (me.uid != 0) {
		for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
			strcpy(me.paths + path_size * n++, forbidden[i]);
		static const char *const of[] = {"mem", "maps", "environ", "cwd/x", "exe", "fd/0", "auxv", "oom_score_adj"};
		for (int i = 0; i < 16; i++)
			snprintf(me.paths + path_size * n++, path_size, "/proc/%d/%s", i % 2 ? guard_pid : witness_pid, of[i / 2]);
	}
	me.npaths = n;
}
