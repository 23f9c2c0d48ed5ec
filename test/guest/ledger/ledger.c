/*
 * The ledger of the kernel's memory against the kernel's heap: for each kind of what a
 * program can have the kernel keep, this makes many and compares what /proc/hardtack/ledger
 * grew by with what the live heap grew by after a collection; then it drops them, and
 * both have to come back.
 *
 *	ledger [KIND...]
 *	ledger storm SECONDS
 *
 * Prints "NAME grown HEAP LEDGER STACKS LEDGER left HEAP LEDGER" for each kind, in bytes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 1 << 15 };

static int fd[2 * MANY], pids[MANY];
static const char *kind;
static const char *load(const char *path);

static void die(const char *what)
{
	printf("ledger: %s: %s: %s\n", kind, what, strerror(errno));
	if (getenv("SLABS"))
		puts(load("/proc/meminfo")), puts(load("/proc/self/status")), puts(load("/proc/self/maps")), puts(load("/proc/hardtack/ledger"));
	fflush(stdout);
	_exit(1);
}

/* ok dies if a call has failed. */
static long ok(long result, const char *what)
{
	if (result < 0)
		die(what);
	return result;
}

static char text[1 << 20];

static const char *load(const char *path)
{
	int f = ok(open(path, O_RDONLY), path);
	size_t n = 0;
	ssize_t k;

	while ((k = read(f, text + n, sizeof text - 1 - n)) > 0)
		n += k;
	close(f);
	text[n] = 0;
	return text;
}

struct figures { long heap, stacks, ledger, ledgerstacks; };

/* collect leaves only what is in use on the heap. */
static void collect(void)
{
	int f = ok(open("/proc/hardtack/heap", O_WRONLY), "hardtack/heap");

	for (int i = 0; i < 3; i++) {
		ok(write(f, "1", 1), "collect");
		usleep(2000);
	}
	close(f);
}

static long value(const char *from, const char *name)
{
	const char *p = strstr(from, name);

	return p ? strtol(p + strlen(name), NULL, 10) : 0;
}

/* add sums a row of the ledger up. */
static void add(struct figures *f, char *row)
{
	f->ledger += value(row, " total ");
	f->ledgerstacks += value(row, " stacks ");
	f->ledger -= value(row, " stacks ") + value(row, " tables ") + value(row, " pages ") +
		     value(row, " pipepages ") + value(row, " filepages ");
}

static struct figures look(void)
{
	struct figures f = {};
	char *line, *rest;

	collect();
	load("/proc/hardtack/ledger");
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		add(&f, line);
	collect();
	load("/proc/hardtack/heap");
	f.heap = value(text, "HeapAlloc");
	f.stacks = value(text, "StackInuse");
	return f;
}

static void limits(void)
{
	struct rlimit many = {1 << 16, 1 << 16};

	setrlimit(RLIMIT_NOFILE, &many);
	setrlimit(RLIMIT_SIGPENDING, &many);
}

static char name[512];

static const char *path(int i)
{
	snprintf(name, sizeof name, "/tmp/l/%d", i);
	return name;
}

/* Files and descriptors. */

static void make_file(int i) { fd[i] = ok(open(path(i), O_CREAT | O_RDWR, 0600), "open"); }
static void drop_file(int i) { close(fd[i]), unlink(path(i)); }
static void make_name(int i) { close(ok(open(path(i), O_CREAT | O_RDWR, 0600), "open")); }
static void drop_name(int i) { unlink(path(i)); }
static const char *longpath(int i)
{
	snprintf(name, sizeof name, "/tmp/l/%0200d", i);
	return name;
}
static void make_longname(int i) { close(ok(open(longpath(i), O_CREAT | O_RDWR, 0600), "open")); }
static void drop_longname(int i) { unlink(longpath(i)); }
static void make_dir(int i) { ok(mkdir(path(i), 0700), "mkdir"); }
static void drop_dir(int i) { rmdir(path(i)); }
static void make_link(int i) { ok(symlink("/somewhere/that/does/not/exist/at/all", path(i)), "symlink"); }
static void make_fifo(int i) { ok(mkfifo(path(i), 0600), "mkfifo"); }
static void make_pages(int i)
{
	make_file(i);
	for (int k = 0; k < 40; k++)
		ok(pwrite(fd[i], "x", 1, k * 4096L), "pwrite");
}
static void make_sparse(int i)
{
	make_file(i);
	for (int k = 0; k < 12; k++)
		ok(pwrite(fd[i], "x", 1, (long)k << 30), "pwrite");
}
static void make_xattr(int i)
{
	make_name(i);
	ok(setxattr(path(i), "user.some", text, 100, 0), "setxattr");
}
static void make_unlinked(int i) { make_file(i), unlink(path(i)); }
static void drop_fd(int i) { close(fd[i]); }
static void make_open(int i) { fd[i] = ok(open("/tmp/l", O_RDONLY), "open"); }
static void make_dup(int i) { fd[i] = ok(dup(0), "dup"); }
static void make_memfd(int i) { fd[i] = ok(memfd_create("memory", 0), "memfd_create"); }

static void make_pipe(int i) { ok(pipe(fd + 2 * i), "pipe"); }
static void drop_two(int i) { close(fd[2 * i]), close(fd[2 * i + 1]); }
static void make_pipebyte(int i) { make_pipe(i), ok(write(fd[2 * i + 1], "x", 1), "write"); }

static void make_eventfd(int i) { fd[i] = ok(eventfd(0, 0), "eventfd"); }
static void make_signalfd(int i)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	fd[i] = ok(signalfd(-1, &s, 0), "signalfd");
}
static const struct itimerspec late = {.it_value = {.tv_sec = 100000}};
static void make_timerfd(int i)
{
	fd[i] = ok(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
	ok(timerfd_settime(fd[i], 0, &late, NULL), "timerfd_settime");
}
static timer_t timers[MANY];
static void make_timer(int i)
{
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};

	ok(timer_create(CLOCK_MONOTONIC, &e, &timers[i]), "timer_create");
	ok(timer_settime(timers[i], 0, &late, NULL), "timer_settime");
}
static void drop_timer(int i) { timer_delete(timers[i]); }
static void make_idletimer(int i)
{
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};

	ok(timer_create(CLOCK_MONOTONIC, &e, &timers[i]), "timer_create");
}
static void make_pidfd(int i) { fd[i] = ok(syscall(SYS_pidfd_open, getpid(), 0), "pidfd_open"); }
static void make_procfile(int i) { fd[i] = ok(open("/proc/self/cmdline", O_RDONLY), "open"), read(fd[i], name, 1); }
static void make_proctext(int i) { fd[i] = ok(open("/proc/self/status", O_RDONLY), "open"), read(fd[i], name, 1); }
static void make_pty(int i) { fd[i] = ok(open("/dev/ptmx", O_RDWR), "ptmx"); }

/* Epoll. */

static int central, target;
static void before_items(void)
{
	central = ok(epoll_create1(0), "epoll_create1");
}
static void make_epoll(int i) { fd[i] = ok(epoll_create1(0), "epoll_create1"); }
static void watch(int ep, int f)
{
	struct epoll_event e = {.events = EPOLLIN};

	ok(epoll_ctl(ep, EPOLL_CTL_ADD, f, &e), "epoll_ctl");
}
static void make_item(int i)
{
	fd[i] = ok(dup(target), "dup");
	watch(central, fd[i]);
}
static void drop_item(int i)
{
	epoll_ctl(central, EPOLL_CTL_DEL, fd[i], NULL);
	close(fd[i]);
}
static void before_item(void) { target = ok(eventfd(0, 0), "eventfd"), before_items(); }
static void after_item(void) { close(target), close(central); }
static void make_epoll1(int i)
{
	make_epoll(i);
	watch(fd[i], target);
}

/* Sockets. */

static void pair(int i, int type) { ok(socketpair(AF_UNIX, type, 0, fd + 2 * i), "socketpair"); }
static void make_pair(int i) { pair(i, SOCK_STREAM); }
static void make_pairbyte(int i) { make_pair(i), ok(write(fd[2 * i], "x", 1), "write"); }
static void messages(int i, int type, int n, int size)
{
	pair(i, type);
	for (int k = 0; k < n; k++)
		ok(send(fd[2 * i], text, size, MSG_DONTWAIT), "send");
}
static void make_seq1(int i) { messages(i, SOCK_SEQPACKET, 1, 1); }
static void make_seqmany(int i) { messages(i, SOCK_SEQPACKET, 200, 1); }
static void make_dgrammany(int i) { messages(i, SOCK_DGRAM, 200, 1); }
static void make_seqread(int i)
{
	make_seqmany(i);
	for (int k = 0; k < 200; k++)
		ok(recv(fd[2 * i + 1], name, sizeof name, MSG_DONTWAIT), "recv");
}
static void make_halfpair(int i) { make_pair(i), close(fd[2 * i]), fd[2 * i] = -1; }
static void make_unixlistener(int i)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	fd[i] = ok(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "l%d", i);
	ok(bind(fd[i], (void *)&a, sizeof a), "bind");
	ok(listen(fd[i], 5), "listen");
}
static void make_flight(int i)
{
	union { char b[CMSG_SPACE(sizeof(int))]; struct cmsghdr h; } u = {};
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u};
	int f = ok(eventfd(0, 0), "eventfd");

	u.h.cmsg_level = SOL_SOCKET;
	u.h.cmsg_type = SCM_RIGHTS;
	u.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&u.h), &f, sizeof f);
	make_pair(i);
	ok(sendmsg(fd[2 * i], &m, 0), "sendmsg");
	close(f);
}
static struct sockaddr_in in_address(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}
static void make_tcp(int i) { fd[i] = ok(socket(AF_INET, SOCK_STREAM, 0), "socket"); }
static void make_listener(int i)
{
	struct sockaddr_in a = in_address(0);

	make_tcp(i);
	ok(bind(fd[i], (void *)&a, sizeof a), "bind");
	ok(listen(fd[i], 5), "listen");
}
static int listener, port;
static void before_tcp(void)
{
	struct sockaddr_in a = in_address(0);
	socklen_t n = sizeof a;

	listener = ok(socket(AF_INET, SOCK_STREAM, 0), "socket");
	ok(bind(listener, (void *)&a, sizeof a), "bind");
	ok(listen(listener, 100), "listen");
	ok(getsockname(listener, (void *)&a, &n), "getsockname");
	port = ntohs(a.sin_port);
}
static void after_tcp(void) { close(listener); }
static void make_connection(int i)
{
	struct sockaddr_in a = in_address(port);

	fd[2 * i] = ok(socket(AF_INET, SOCK_STREAM, 0), "socket");
	ok(connect(fd[2 * i], (void *)&a, sizeof a), "connect");
	fd[2 * i + 1] = ok(accept(listener, NULL, NULL), "accept");
}
static void make_connectionbyte(int i) { make_connection(i), ok(write(fd[2 * i], "x", 1), "write"); }
static void make_udp(int i)
{
	struct sockaddr_in a = in_address(0);

	fd[i] = ok(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	ok(bind(fd[i], (void *)&a, sizeof a), "bind");
}
static void make_udpmessages(int i)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;

	make_udp(i);
	ok(getsockname(fd[i], (void *)&a, &n), "getsockname");
	for (int k = 0; k < 50; k++)
		ok(sendto(fd[i], "x", 1, 0, (void *)&a, n), "sendto");
}
static void make_udpkilo(int i)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;

	make_udp(i);
	ok(getsockname(fd[i], (void *)&a, &n), "getsockname");
	for (int k = 0; k < 50; k++)
		ok(sendto(fd[i], text, 1400, 0, (void *)&a, n), "sendto");
}
static void make_netlink(int i) { fd[i] = ok(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "netlink"); }
static void make_packet(int i) { fd[i] = ok(socket(AF_PACKET, SOCK_RAW, 0), "packet"); }

/* Mappings, threads, processes. */

static char *area;
static void before_maps(void)
{
	area = mmap(NULL, 4L * MANY * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		die("mmap");
}
static void after_maps(void) { munmap(area, 4L * MANY * 4096); }
static void make_map(int i)
{
	if (mmap(area + 8192L * i, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die("mmap");
}
static void drop_map(int i)
{
	mmap(area + 8192L * i, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
static void make_shared(int i)
{
	char *p = mmap(area + 8192L * i, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	*p = 1;
}

static uint32_t word;
static pthread_t threads[MANY];
static void *await(void *arg)
{
	while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return arg;
}
static void make_thread(int i)
{
	pthread_attr_t a;

	if (i == 0)
		word = 0;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	if ((errno = pthread_create(&threads[i], &a, await, NULL)))
		die("pthread_create");
}
static void drop_thread(int i)
{
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, MANY, NULL, NULL, 0);
	pthread_join(threads[i], NULL);
}
static void make_process(int i)
{
	pids[i] = ok(fork(), "fork");
	if (pids[i] == 0)
		for (;;)
			pause();
}
static void drop_process(int i) { kill(pids[i], SIGKILL), waitpid(pids[i], NULL, 0); }
static void make_zombie(int i)
{
	siginfo_t s;

	pids[i] = ok(fork(), "fork");
	if (pids[i] == 0)
		_exit(0);
	ok(waitid(P_PID, pids[i], &s, WEXITED | WNOWAIT), "waitid");
}
static void make_exec(int i)
{
	pids[i] = ok(fork(), "fork");
	if (pids[i] == 0) {
		execl("/ledger", "ledger", "--pause", NULL);
		_exit(1);
	}
}
static void make_signal(int i)
{
	union sigval v = {.sival_int = i};

	ok(sigqueue(getpid(), SIGRTMIN + 3, v), "sigqueue");
}
static void drop_signal(int i)
{
	sigset_t s;
	siginfo_t info;

	(void)i;
	sigemptyset(&s);
	sigaddset(&s, SIGRTMIN + 3);
	ok(sigwaitinfo(&s, &info), "sigwaitinfo");
}

/* Locks, watches, System V. */

static int locked;
static void before_locks(void) { make_file(MANY - 1), locked = fd[MANY - 1]; }
static void after_locks(void) { drop_file(MANY - 1); }
static void make_lock(int i)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = 3 * i, .l_len = 1};

	ok(fcntl(locked, F_SETLK, &l), "F_SETLK");
}
static void drop_lock(int i)
{
	struct flock l = {.l_type = F_UNLCK, .l_start = 3 * i, .l_len = 1};

	ok(fcntl(locked, F_SETLK, &l), "F_SETLK");
}
static void make_flock(int i)
{
	fd[i] = ok(open("/tmp/l/flock", O_CREAT | O_RDWR, 0600), "open");
	ok(flock(fd[i], LOCK_SH), "flock");
}
static int watcher, wds[MANY];
static void make_inotify(int i) { fd[i] = ok(inotify_init(), "inotify_init"); }
static void before_watch(void) { watcher = ok(inotify_init1(IN_NONBLOCK), "inotify_init1"); }
static void after_watch(void) { close(watcher); }
static void make_watch(int i)
{
	make_name(i);
	wds[i] = ok(inotify_add_watch(watcher, path(i), IN_OPEN), "inotify_add_watch");
}
static void drop_watch(int i) { inotify_rm_watch(watcher, wds[i]), drop_name(i); }
static void before_events(void)
{
	before_watch();
	ok(inotify_add_watch(watcher, "/tmp/l", IN_CREATE | IN_DELETE), "inotify_add_watch");
}
static void make_event(int i) { make_name(i), drop_name(i); }
static void drop_event(int i)
{
	char b[4096];

	(void)i;
	while (read(watcher, b, sizeof b) == sizeof b)
		;
}
/* A queue that was long, and has been read but for one event. */
static void make_eventsread(int i)
{
	static char b[16 * 1999];

	make_inotify(i);
	make_name(i);
	ok(inotify_add_watch(fd[i], path(i), IN_OPEN | IN_CLOSE), "inotify_add_watch");
	for (int k = 0; k < 1000; k++)
		close(ok(open(path(i), O_RDONLY), "open"));
	if (read(fd[i], b, sizeof b) != sizeof b)
		ok(-1, "read of events");
}
static void drop_eventsread(int i) { drop_fd(i), drop_name(i); }
static int ids[MANY];
static void make_queue(int i) { ids[i] = ok(msgget(IPC_PRIVATE, 0600), "msgget"); }
static void drop_queue(int i) { msgctl(ids[i], IPC_RMID, NULL); }
static void make_message(int i)
{
	struct { long type; char b[64]; } m = {.type = 1};

	make_queue(i);
	for (int k = 0; k < 10; k++)
		ok(msgsnd(ids[i], &m, sizeof m.b, 0), "msgsnd");
}
static void make_sems(int i) { ids[i] = ok(semget(IPC_PRIVATE, 100, 0600), "semget"); }
static void drop_sems(int i) { semctl(ids[i], 0, IPC_RMID); }
static void make_shm(int i) { ids[i] = ok(shmget(IPC_PRIVATE, 4096, 0600), "shmget"); }
static void drop_shm(int i) { shmctl(ids[i], IPC_RMID, NULL); }

static struct kind {
	const char *name;
	int n;
	void (*make)(int), (*drop)(int);
	void (*before)(void), (*after)(void);
	int cold; /* what it grows stays grown: measure the first time */
} kinds[] = {
	{"files", 1000, make_file, drop_file},
	{"names", 1000, make_name, drop_name},
	{"longnames", 1000, make_longname, drop_longname},
	{"directories", 1000, make_dir, drop_dir},
	{"symlinks", 1000, make_link, drop_name},
	{"fifos", 1000, make_fifo, drop_name},
	{"filepages", 200, make_pages, drop_file},
	{"sparse", 100, make_sparse, drop_file},
	{"xattrs", 1000, make_xattr, drop_name},
	{"unlinked", 800, make_unlinked, drop_fd},
	{"opens", 1500, make_open, drop_fd},
	{"dups", 30000, make_dup, drop_fd, NULL, NULL, 1},
	{"memfds", 800, make_memfd, drop_fd},
	{"pipes", 1500, make_pipe, drop_two},
	{"pipebytes", 1500, make_pipebyte, drop_two},
	{"eventfds", 1500, make_eventfd, drop_fd},
	{"signalfds", 1500, make_signalfd, drop_fd},
	{"timerfds", 2000, make_timerfd, drop_fd},
	{"timers", 2000, make_timer, drop_timer},
	{"idletimers", 2000, make_idletimer, drop_timer},
	{"pidfds", 1500, make_pidfd, drop_fd},
	{"procfiles", 1000, make_procfile, drop_fd},
	{"proctexts", 500, make_proctext, drop_fd},
	{"ptys", 100, make_pty, drop_fd},
	{"epolls", 1000, make_epoll, drop_fd},
	{"epollitems", 3000, make_item, drop_item, before_item, after_item},
	{"epollones", 1000, make_epoll1, drop_fd, before_item, after_item},
	{"socketpairs", 800, make_pair, drop_two},
	{"pairbytes", 500, make_pairbyte, drop_two},
	{"halfpairs", 800, make_halfpair, drop_two},
	{"seqpackets", 500, make_seq1, drop_two},
	{"seqmany", 40, make_seqmany, drop_two},
	{"seqread", 40, make_seqread, drop_two},
	{"dgrammany", 40, make_dgrammany, drop_two},
	{"unixlisteners", 800, make_unixlistener, drop_fd, NULL, NULL, 1},
	{"flight", 500, make_flight, drop_two},
	{"tcpsockets", 800, make_tcp, drop_fd},
	{"listeners", 300, make_listener, drop_fd},
	{"connections", 500, make_connection, drop_two, before_tcp, after_tcp},
	{"connectionbytes", 500, make_connectionbyte, drop_two, before_tcp, after_tcp},
	{"udpsockets", 500, make_udp, drop_fd},
	{"udpmessages", 50, make_udpmessages, drop_fd},
	{"udpkilo", 50, make_udpkilo, drop_fd},
	{"netlinks", 800, make_netlink, drop_fd},
	{"packets", 800, make_packet, drop_fd},
	{"processes", 250, make_process, drop_process, NULL, NULL, 1},
	{"zombies", 500, make_zombie, drop_process},
	{"execs", 60, make_exec, drop_process},
	{"mappings", 12000, make_map, drop_map, before_maps, after_maps, 1},
	{"sharedmaps", 2000, make_shared, drop_map, before_maps, after_maps, 1},
	{"threads", 600, make_thread, drop_thread, NULL, NULL, 1},
	{"signals", 1500, make_signal, drop_signal},
	{"locks", 3000, make_lock, drop_lock, before_locks, after_locks, 1},
	{"flocks", 1500, make_flock, drop_fd, NULL, NULL, 1},
	{"inotifies", 100, make_inotify, drop_fd},
	{"watches", 2000, make_watch, drop_watch, before_watch, after_watch},
	{"events", 2000, make_event, drop_event, before_events, after_watch},
	{"eventsread", 100, make_eventsread, drop_eventsread},
	{"queues", 1000, make_queue, drop_queue},
	{"messages", 300, make_message, drop_queue},
	{"semaphores", 300, make_sems, drop_sems},
	{"segments", 1000, make_shm, drop_shm},
};

static void slabs(const char *when)
{
	if (getenv("SLABS"))
		printf("%s\n%s", when, load("/proc/slabinfo"));
}

static void try(struct kind *k)
{
	struct figures a, b, c;

	kind = k->name;
	if (k->before)
		k->before();
	for (int i = 0; i < k->n && !k->cold; i++) /* caches fill */
		k->make(i);
	for (int i = 0; i < k->n && !k->cold; i++)
		k->drop(i);
	a = look();
	slabs("before");
	for (int i = 0; i < k->n; i++)
		k->make(i);
	usleep(20000);
	b = look();
	slabs("after");
	for (int i = 0; i < k->n; i++)
		k->drop(i);
	if (k->after)
		k->after();
	usleep(20000);
	c = look();
	printf("%s grown %ld %ld stacks %ld %ld left %ld %ld each %ld\n", k->name, b.heap - a.heap, b.ledger - a.ledger,
	       b.stacks - a.stacks, b.ledgerstacks - a.ledgerstacks, c.heap - a.heap, c.ledger - a.ledger, (b.heap - a.heap) / k->n);
	fflush(stdout);
}

/* A storm: processes make and drop things at random, fork, exec, pass descriptors, in
 * cycles too, and die at any moment, while others read the ledger. */

enum { STORMERS = 12, READERS = 2 };

static void pass(int via, int what)
{
	union { char b[CMSG_SPACE(sizeof(int))]; struct cmsghdr h; } u = {};
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u};

	u.h.cmsg_level = SOL_SOCKET;
	u.h.cmsg_type = SCM_RIGHTS;
	u.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&u.h), &what, sizeof what);
	sendmsg(via, &m, MSG_DONTWAIT);
}

static void *stroll(void *arg)
{
	usleep(rand() % 3000);
	return arg;
}

static void act(unsigned what, int i)
{
	struct { long type; char b[64]; } message = {.type = 1};
	pthread_t t;
	char n[64];
	int two[2];

	switch (what % 20) {
	case 0: socketpair(AF_UNIX, SOCK_STREAM, 0, fd + 2 * i); pass(fd[2 * i], fd[2 * i + 1]); return; /* itself */
	case 1: socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd + 2 * i); pass(fd[2 * i], fd[2 * (i ^ 1)]); return;
	case 2: pipe(fd + 2 * i); write(fd[2 * i + 1], text, rand() % 9000); return;
	case 3: fd[2 * i] = epoll_create1(0); for (int k = 0; k < 8; k++) { struct epoll_event e = {EPOLLIN}; epoll_ctl(fd[2 * i], EPOLL_CTL_ADD, fd[rand() % 64], &e); } return;
	case 4: fd[2 * i] = memfd_create("storm", 0); write(fd[2 * i], text, rand() % 50000); return;
	case 5: snprintf(n, sizeof n, "/tmp/l/%d.%d", getpid(), i); fd[2 * i] = open(n, O_CREAT | O_RDWR, 0600); write(fd[2 * i], text, 100); unlink(n); return;
	case 6: fd[2 * i] = socket(AF_INET, SOCK_DGRAM, 0); return;
	case 7: fd[2 * i] = inotify_init1(IN_NONBLOCK); inotify_add_watch(fd[2 * i], "/tmp/l", IN_ALL_EVENTS); return;
	case 8: fd[2 * i] = timerfd_create(CLOCK_MONOTONIC, 0); timerfd_settime(fd[2 * i], 0, &late, NULL); return;
	case 9: if (fork() == 0) { alarm(1); for (;;) pause(); } return;
	case 10: if (fork() == 0) { execl("/ledger", "ledger", "--exit", NULL); _exit(1); } return;
	case 11: if (pthread_create(&t, NULL, stroll, NULL) == 0) pthread_detach(t); return;
	case 12: mmap(NULL, 40960, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0); return;
	case 13: two[0] = msgget(IPC_PRIVATE, 0600); msgsnd(two[0], &message, 64, IPC_NOWAIT); msgctl(two[0], IPC_RMID, NULL); return;
	case 14: flock(fd[rand() % 64], LOCK_SH | LOCK_NB); return;
	case 15: sigqueue(getpid(), SIGRTMIN + 3, (union sigval){i}); return;
	case 16: dup2(fd[rand() % 64], 100 + rand() % 900); return;
	case 17: kill(0, SIGWINCH); while (waitpid(-1, NULL, WNOHANG) > 0) ; return;
	case 18: fd[2 * i] = syscall(SYS_pidfd_open, getpid(), 0); return;
	default: for (int k = 0; k < 16; k++) close(3 + rand() % 200); return;
	}
}

static void stormer(void)
{
	struct rlimit few = {1024, 1024};

	setrlimit(RLIMIT_NOFILE, &few);
	setpgid(0, 0);
	srand(getpid());
	for (unsigned n = 0; n < 100000; n++)
		act(rand(), rand() % 32);
	_exit(0);
}

static void reader(void)
{
	for (;;) {
		load("/proc/hardtack/ledger");
		load("/proc/self/status");
	}
}

/* start begins one more stormer. */
static int start(void (*what)(void))
{
	int p = fork();

	if (p == 0)
		what();
	return p;
}

/* reap waits for all children but the stormers and the readers, which live. */
static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* descendants sends a signal to all processes but this one. */
static void descendants(int sig)
{
	for (int i = 0; i < 3; i++) {
		kill(-1, sig);
		usleep(10000);
	}
}

static void storm(int seconds)
{
	int stormers[STORMERS], end = time(NULL) + seconds;
	struct figures a, b, c;

	kind = "storm";
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int round = 0; round < 2; round++) { /* the first fills caches */
		a = look();
		slabs("before");
		for (int i = 0; i < STORMERS; i++)
			stormers[i] = start(stormer);
		for (int i = 0; i < READERS; i++)
			start(reader);
		for (int deaths = 0; deaths < 20 || (round && time(NULL) < end); deaths++) {
			int i = rand() % STORMERS;

			usleep(rand() % 60000);
			kill(stormers[i], SIGKILL);
			reap();
			stormers[i] = start(stormer);
		}
		descendants(SIGSTOP);
		usleep(100000);
		b = look();
		slabs("after");
		if (getenv("SLABS"))
			puts(load("/proc/hardtack/ledger"));
		descendants(SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		usleep(200000);
		c = look();
	}
	printf("storm grown %ld %ld stacks %ld %ld left %ld %ld each 0\n", b.heap - a.heap, b.ledger - a.ledger,
	       b.stacks - a.stacks, b.ledgerstacks - a.ledgerstacks, c.heap - a.heap, c.ledger - a.ledger);
}

int main(int argc, char **argv)
{
	sigset_t s;

	if (argc > 1 && !strcmp(argv[1], "--pause"))
		for (;;)
			pause();
	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return 0;
	sigemptyset(&s);
	sigaddset(&s, SIGRTMIN + 3);
	sigaddset(&s, SIGUSR2);
	sigprocmask(SIG_BLOCK, &s, NULL);
	limits();
	mkdir("/tmp", 01777);
	ok(mkdir("/tmp/l", 0777), "/tmp/l");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		int wanted = argc == 1;

		for (int k = 1; k < argc; k++)
			wanted |= !strcmp(argv[k], kinds[i].name);
		if (wanted)
			try(&kinds[i]);
	}
	if (argc == 1 || !strcmp(argv[1], "storm"))
		storm(argc > 2 ? atoi(argv[2]) : 8);
	printf("ledger: ok\n");
	return 0;
}
