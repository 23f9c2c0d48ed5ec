// The kinds of files that a descriptor can stand for.
#include "kinds.h"
#include <linux/netlink.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pty.h>
#include <termios.h>

static const char content[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static int content_file(const char *dir, int flags)
{
	char path[128];
	snprintf(path, sizeof path, "%s/file", dir);
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	must(fd, "create");
	must(write(fd, content, 36), "write");
	close(fd);
	fd = open(path, flags);
	must(fd, "open");
	lseek(fd, 10, SEEK_SET);
	return fd;
}

#define FILE_KIND(name, dir, flags) \
	static void name(subject *s) { s->fd = content_file(dir, flags); }
FILE_KIND(tmpfs, work, O_RDWR)
FILE_KIND(tmpfs_read, work, O_RDONLY)
FILE_KIND(tmpfs_write, work, O_WRONLY)
FILE_KIND(tmpfs_append, work, O_RDWR | O_APPEND)
FILE_KIND(tmpfs_path, work, O_PATH)
FILE_KIND(tmpfs_none, work, O_ACCMODE)
FILE_KIND(ext4, work_disk, O_RDWR)
FILE_KIND(ext4_read, work_disk, O_RDONLY)
FILE_KIND(ext4_write, work_disk, O_WRONLY)
FILE_KIND(ext4_append, work_disk, O_RDWR | O_APPEND)

#define OPEN_KIND(name, path, flags)               \
	static void name(subject *s)               \
	{                                          \
		s->fd = open(path, flags);         \
		must(s->fd, "open");               \
	}
OPEN_KIND(ro_mount, "/tmp/ro/file", O_RDONLY)
OPEN_KIND(ro_mount_dir, "/tmp/ro/dir", O_RDONLY)
OPEN_KIND(dev_null, "/dev/null", O_RDWR)
OPEN_KIND(dev_null_read, "/dev/null", O_RDONLY)
OPEN_KIND(dev_zero, "/dev/zero", O_RDWR)
OPEN_KIND(dev_full, "/dev/full", O_RDWR)
OPEN_KIND(dev_random, "/dev/random", O_RDWR)
OPEN_KIND(dev_urandom, "/dev/urandom", O_RDONLY)
OPEN_KIND(dev_kmsg, "/dev/kmsg", O_RDONLY | O_NONBLOCK)
OPEN_KIND(dev_disk, "/dev/vda", O_RDONLY)
OPEN_KIND(proc_text, "/proc/self/comm", O_RDONLY)
OPEN_KIND(proc_comm, "/proc/self/comm", O_RDWR)
OPEN_KIND(proc_version, "/proc/version", O_RDONLY)
OPEN_KIND(proc_status, "/proc/self/status", O_RDONLY)
OPEN_KIND(proc_maps, "/proc/self/maps", O_RDONLY)
OPEN_KIND(proc_mounts, "/proc/self/mounts", O_RDONLY)
OPEN_KIND(proc_mem, "/proc/self/mem", O_RDWR)
OPEN_KIND(proc_environ, "/proc/self/environ", O_RDONLY)
OPEN_KIND(proc_sysctl, "/proc/sys/kernel/ostype", O_RDONLY)
OPEN_KIND(proc_sysctl_rw, "/proc/sys/kernel/threads-max", O_RDONLY)
OPEN_KIND(proc_root, "/proc", O_RDONLY)
OPEN_KIND(proc_self, "/proc/self", O_RDONLY)
OPEN_KIND(proc_fd, "/proc/self/fd", O_RDONLY)
OPEN_KIND(proc_ns, "/proc/self/ns/pid", O_RDONLY)
OPEN_KIND(proc_link, "/proc/self/exe", O_PATH | O_NOFOLLOW)
OPEN_KIND(sys_file, "/sys/devices/system/cpu/online", O_RDONLY)
OPEN_KIND(sys_dir, "/sys/devices/system/cpu", O_RDONLY)
OPEN_KIND(pts_dir, "/dev/pts", O_RDONLY)

static void empty_file(subject *s)
{
	unlink("file");
	s->fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0644);
	must(s->fd, "open");
}

static void unlinked(subject *s)
{
	s->fd = content_file(work, O_RDWR);
	unlink("file");
}

static void nameless(subject *s)
{
	s->fd = open(work, O_RDWR | O_TMPFILE, 0600);
	must(s->fd, "open");
	must(write(s->fd, content, 36), "write");
}

static void memfd(subject *s)
{
	s->fd = S(memfd_create, P("m"), 2);
	must(s->fd, "memfd_create");
	must(write(s->fd, content, 36), "write");
	lseek(s->fd, 10, SEEK_SET);
}

static void memfd_sealed(subject *s)
{
	memfd(s);
	must(fcntl(s->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), "seal");
}

static void directory(subject *s, const char *dir, int flags)
{
	char path[128];
	snprintf(path, sizeof path, "%s/dir/inner", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/dir", dir);
	rmdir(path);
	must(mkdir(path, 0755), "mkdir");
	s->fd = open(path, flags);
	must(s->fd, "open");
	int fd = openat(s->fd, "inner", O_WRONLY | O_CREAT, 0644);
	if (fd >= 0)
		close(fd);
}

static void dir_tmpfs(subject *s) { directory(s, work, O_RDONLY); }
static void dir_ext4(subject *s) { directory(s, work_disk, O_RDONLY); }
static void dir_path(subject *s) { directory(s, work, O_PATH); }

static void link_path(subject *s)
{
	unlink("link");
	must(symlink("file", "link"), "symlink");
	s->fd = open("link", O_PATH | O_NOFOLLOW);
	must(s->fd, "open");
}

static void fifo_kind(subject *s, int flags, int peer)
{
	unlink("fifo");
	must(mkfifo("fifo", 0644), "mkfifo");
	s->more = open("fifo", O_RDWR | O_NONBLOCK);
	s->fd = open("fifo", flags | O_NONBLOCK);
	must(s->fd, "open");
	if (peer)
		s->peer = open("fifo", peer == 1 ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_NONBLOCK);
	close(s->more);
}

static void fifo_read(subject *s) { fifo_kind(s, O_RDONLY, 2); }
static void fifo_write(subject *s) { fifo_kind(s, O_WRONLY, 1); }
static void fifo_both(subject *s) { fifo_kind(s, O_RDWR, 0); }
static void fifo_path(subject *s) { fifo_kind(s, O_PATH, 0); }

static void pipe_kind(subject *s, int end)
{
	int fd[2];
	must(pipe2(fd, O_NONBLOCK), "pipe");
	s->fd = fd[end], s->peer = fd[!end];
}

static void pipe_read(subject *s) { pipe_kind(s, 0); }
static void pipe_write(subject *s) { pipe_kind(s, 1); }

static void pipe_data(subject *s)
{
	pipe_kind(s, 0);
	must(write(s->peer, content, 20), "write");
}

static void pipe_end(subject *s)
{
	pipe_data(s);
	close(s->peer);
}

static void pipe_full(subject *s)
{
	pipe_kind(s, 1);
	while (write(s->fd, buffer, 4096) > 0)
		;
}

static void pipe_broken(subject *s)
{
	pipe_kind(s, 1);
	close(s->peer);
}

static void event_kind(subject *s, int count, int flags)
{
	s->fd = eventfd(count, flags | EFD_NONBLOCK);
	must(s->fd, "eventfd");
}

static void event_zero(subject *s) { event_kind(s, 0, 0); }
static void event_five(subject *s) { event_kind(s, 5, 0); }
static void event_sem(subject *s) { event_kind(s, 5, EFD_SEMAPHORE); }

static void timer_idle(subject *s)
{
	s->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	must(s->fd, "timerfd");
}

static void timer_due(subject *s)
{
	timer_idle(s);
	struct itimerspec it = {.it_value.tv_nsec = 1};
	must(timerfd_settime(s->fd, 0, &it, NULL), "settime");
	struct timespec ts = {0, 1000000};
	nanosleep(&ts, NULL);
}

static void signal_idle(subject *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->fd = signalfd(-1, &set, SFD_NONBLOCK);
	must(s->fd, "signalfd");
}

static void epoll_empty(subject *s)
{
	s->fd = epoll_create1(0);
	must(s->fd, "epoll");
}

static void epoll_ready(subject *s)
{
	epoll_empty(s);
	s->more = eventfd(1, 0);
	struct epoll_event e = {EPOLLIN, {.u64 = 7}};
	must(epoll_ctl(s->fd, EPOLL_CTL_ADD, s->more, &e), "epoll_ctl");
}

static void inotify_idle(subject *s)
{
	s->fd = inotify_init1(IN_NONBLOCK);
	must(s->fd, "inotify");
}

static void inotify_event(subject *s)
{
	inotify_idle(s);
	mkdir("watched", 0777);
	rmdir("watched/x");
	must(inotify_add_watch(s->fd, "watched", IN_CREATE), "watch");
	must(mkdir("watched/x", 0777), "mkdir");
}

static void pidfd_self(subject *s)
{
	s->fd = S(pidfd_open, getpid(), 0);
	must(s->fd, "pidfd");
}

static void pidfd_dead(subject *s)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	s->fd = S(pidfd_open, pid, 0);
	must(s->fd, "pidfd");
	waitpid(pid, NULL, 0);
}

static void pty_kind(subject *s)
{
	struct termios t;
	s->fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	must(s->fd, "ptmx");
	must(unlockpt(s->fd), "unlockpt");
	s->peer = S(ioctl, s->fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
	must(s->peer, "peer");
	tcgetattr(s->peer, &t);
	cfmakeraw(&t);
	tcsetattr(s->peer, TCSANOW, &t);
}

static void pty_master(subject *s) { pty_kind(s); }

static void pty_slave(subject *s)
{
	pty_kind(s);
	int fd = s->fd;
	s->fd = s->peer, s->peer = fd;
}

static void pty_data(subject *s)
{
	pty_slave(s);
	must(write(s->peer, content, 5), "write");
}

static void pty_hung(subject *s)
{
	pty_slave(s);
	close(s->peer);
}

static void pty_alone(subject *s)
{
	pty_kind(s);
	close(s->peer);
}

static void unopened(subject *s) { s->fd = 99, s->nofile = 1; }
static void minus_one(subject *s) { s->fd = -1, s->nofile = 1; }
static void at_cwd(subject *s) { s->fd = AT_FDCWD, s->nofile = 1; }

const kind file_kinds[] = {
	{"tmpfs", tmpfs}, {"tmpfs-r", tmpfs_read}, {"tmpfs-w", tmpfs_write}, {"tmpfs-append", tmpfs_append},
	{"tmpfs-path", tmpfs_path}, {"tmpfs-3", tmpfs_none}, {"tmpfs-empty", empty_file}, {"unlinked", unlinked},
	{"nameless", nameless}, {"ext4", ext4}, {"ext4-r", ext4_read}, {"ext4-w", ext4_write}, {"ext4-append", ext4_append},
	{"ro-file", ro_mount}, {"ro-dir", ro_mount_dir}, {"memfd", memfd}, {"memfd-sealed", memfd_sealed},
	{"dir", dir_tmpfs}, {"dir-ext4", dir_ext4}, {"dir-path", dir_path}, {"link-path", link_path},
	{"fifo-r", fifo_read}, {"fifo-w", fifo_write}, {"fifo-rw", fifo_both}, {"fifo-path", fifo_path},
	{"pipe-r", pipe_read}, {"pipe-data", pipe_data}, {"pipe-eof", pipe_end}, {"pipe-w", pipe_write},
	{"pipe-full", pipe_full}, {"pipe-broken", pipe_broken},
	{"eventfd", event_zero}, {"eventfd-5", event_five}, {"eventfd-sem", event_sem},
	{"timerfd", timer_idle}, {"timerfd-due", timer_due}, {"signalfd", signal_idle},
	{"epoll", epoll_empty}, {"epoll-ready", epoll_ready}, {"inotify", inotify_idle}, {"inotify-event", inotify_event},
	{"pidfd", pidfd_self}, {"pidfd-dead", pidfd_dead},
	{"ptmx", pty_master}, {"ptmx-alone", pty_alone}, {"pts", pty_slave}, {"pts-data", pty_data}, {"pts-hung", pty_hung},
	{"null", dev_null}, {"null-r", dev_null_read}, {"zero", dev_zero}, {"full", dev_full}, {"random", dev_random},
	{"urandom", dev_urandom}, {"kmsg", dev_kmsg}, {"disk", dev_disk},
	{"proc-comm-r", proc_text}, {"proc-comm", proc_comm}, {"proc-version", proc_version}, {"proc-status", proc_status},
	{"proc-maps", proc_maps}, {"proc-mounts", proc_mounts}, {"proc-mem", proc_mem}, {"proc-environ", proc_environ},
	{"proc-ostype", proc_sysctl}, {"proc-threads-max", proc_sysctl_rw}, {"proc", proc_root}, {"proc-self", proc_self},
	{"proc-fd", proc_fd}, {"proc-ns", proc_ns}, {"proc-link", proc_link},
	{"sys-file", sys_file}, {"sys-dir", sys_dir}, {"pts-dir", pts_dir},
	{"unix", unix_new}, {"unix-bound", unix_bound}, {"unix-listen", unix_listen}, {"unix-conn", unix_connected},
	{"unix-data", unix_data}, {"unix-eof", unix_closed}, {"unix-shutw", unix_shut_write}, {"unixdg", unixdg_new},
	{"unixdg-pair", unixdg_pair}, {"unixseq-pair", unixseq_pair},
	{"tcp", tcp_new}, {"tcp-bound", tcp_bound}, {"tcp-listen", tcp_listen}, {"tcp-conn", tcp_connected},
	{"tcp-data", tcp_data}, {"tcp-eof", tcp_closed}, {"tcp-reset", tcp_reset}, {"tcp-shutw", tcp_shut_write},
	{"tcp-shutr", tcp_shut_read}, {"tcp6", tcp6_new}, {"tcp6-conn", tcp6_connected},
	{"udp", udp_new}, {"udp-bound", udp_bound}, {"udp-conn", udp_connected}, {"udp-data", udp_data}, {"udp6", udp6_new},
	{"netlink", netlink_new}, {"netlink-bound", netlink_bound}, {"rawicmp", raw_icmp}, {"raw", raw_any}, {"packet", packet_new},
	{"closed", unopened}, {"fd-1", minus_one}, {"cwd", at_cwd},
	{},
};
