// The calls that wait. Each has what must be there, the call, and what ends it.
#include "blocking.h"
#include <linux/futex.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <termios.h>

static void none(wait_state *w)
{
}

static void pipes(wait_state *w)
{
	if (pipe(w->fd) < 0 || pipe(w->fd + 2) < 0)
		_exit(91);
}

static void fill(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, buffer, 4096) > 0)
		;
	while (write(fd, buffer, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void drain(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 100; i++)
		if (read(fd, buffer, BUFFER) <= 0)
			usleep(1000);
}

static void pipe_full(wait_state *w) { pipes(w), fill(w->fd[1]); }
static void feed(wait_state *w) { write(w->fd[1], "abc", 3); }
static void empty(wait_state *w) { drain(w->fd[0]); }
static long read_it(wait_state *w) { return S(read, w->fd[0], P(buffer), 10); }
static long readv_it(wait_state *w) { struct iovec v = {buffer, 10}; return S(readv, w->fd[0], P(&v), 1); }
static long write_it(wait_state *w) { return S(write, w->fd[1], P(buffer), 10); }
static long write_much(wait_state *w) { return S(write, w->fd[1], P(buffer), BUFFER) > 0 ? 1 : -1; }

static long splice_it(wait_state *w) { return S(splice, w->fd[0], 0, w->fd[3], 0, 10, 0); }
static long tee_it(wait_state *w) { return S(tee, w->fd[0], w->fd[3], 10, 0); }
static long vmsplice_it(wait_state *w) { struct iovec v = {buffer, 10}; return S(vmsplice, w->fd[1], P(&v), 1, 0); }

static void fifo_there(wait_state *w)
{
	char name[64];
	sprintf(name, "fifo%d", getpid());
	mkfifo(name, 0644);
}

static long open_fifo(wait_state *w)
{
	char name[64];
	sprintf(name, "fifo%d", getppid());
	return open(name, O_RDONLY) >= 0 ? 0 : -1;
}

static void open_other(wait_state *w)
{
	char name[64];
	sprintf(name, "fifo%d", getpid());
	w->fd[0] = open(name, O_WRONLY | O_NONBLOCK);
}

static void event(wait_state *w) { w->fd[0] = w->fd[1] = eventfd(0, 0); }
static void event_full(wait_state *w) { w->fd[0] = w->fd[1] = eventfd(0, 0); write(w->fd[1], "\376\377\377\377\377\377\377\377", 8); }
static long write_event(wait_state *w) { return S(write, w->fd[1], P("\5\0\0\0\0\0\0\0"), 8); }
static void raise_event(wait_state *w) { write(w->fd[1], "\1\0\0\0\0\0\0\0", 8); }
static void lower_event(wait_state *w) { read(w->fd[0], buffer, 8); }
static void timer(wait_state *w) { w->fd[0] = timerfd_create(CLOCK_MONOTONIC, 0); }
static void set_timer(wait_state *w) { timerfd_settime(w->fd[0], 0, &(struct itimerspec){{0, 0}, {0, 1}}, NULL); }

static void notifier(wait_state *w)
{
	char name[64];
	sprintf(name, "watched%d", getpid());
	mkdir(name, 0700);
	w->fd[0] = inotify_init(), inotify_add_watch(w->fd[0], name, IN_CREATE);
}

static long read_some(wait_state *w) { return S(read, w->fd[0], P(buffer), 4096) > 0 ? 1 : -1; }

static void create(wait_state *w)
{
	char name[64];
	sprintf(name, "watched%d/new", getpid());
	close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void pair_of(wait_state *w, int type)
{
	if (socketpair(AF_UNIX, type, 0, w->fd) < 0)
		_exit(92);
}

static void stream(wait_state *w) { pair_of(w, SOCK_STREAM); }
static void datagrams(wait_state *w) { pair_of(w, SOCK_DGRAM); }
static void stream_full(wait_state *w) { stream(w), fill(w->fd[1]); }

static void datagrams_full(wait_state *w)
{
	datagrams(w);
	while (send(w->fd[1], "x", 1, MSG_DONTWAIT) > 0)
		;
}

static void receive_timeout(wait_state *w)
{
	struct timeval tv = {60, 0};
	stream(w);
	setsockopt(w->fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
}

static void send_timeout(wait_state *w)
{
	struct timeval tv = {60, 0};
	stream_full(w);
	setsockopt(w->fd[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

static long receive(wait_state *w) { return S(recvfrom, w->fd[0], P(buffer), 10, 0, 0, 0); }
static long receive_all(wait_state *w) { return S(recvfrom, w->fd[0], P(buffer), 6, MSG_WAITALL, 0, 0); }
static void feed_twice(wait_state *w) { feed(w), feed(w); }
static long receive_message(wait_state *w) { struct iovec v = {buffer, 10}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}; return S(recvmsg, w->fd[0], P(&m), 0); }
static long send_it(wait_state *w) { return S(sendto, w->fd[1], P(buffer), 10, 0, 0, 0); }

static long receive_several(wait_state *w)
{
	struct iovec v = {buffer, 10};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	return S(recvmmsg, w->fd[0], P(&m), 1, 0, 0);
}

static void tcp_listener(wait_state *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	w->fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	bind(w->fd[0], (void *)&a, sizeof a);
	listen(w->fd[0], 5);
}

static void tcp_client(wait_state *w)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	getsockname(w->fd[0], (void *)&a, &n);
	w->fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	connect(w->fd[1], (void *)&a, n);
}

static void tcp_pair(wait_state *w)
{
	tcp_listener(w), tcp_client(w);
	w->fd[0] = accept(w->fd[0], NULL, NULL);
}


// tcp_full fills a connection, whose buffers grow meanwhile.
static void tcp_full(wait_state *w)
{
	tcp_pair(w);
	for (int i = 0; i < 4; i++)
		fill(w->fd[1]), usleep(30000);
}


static void udp_pair(wait_state *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	w->fd[0] = socket(AF_INET, SOCK_DGRAM, 0);
	bind(w->fd[0], (void *)&a, sizeof a);
	getsockname(w->fd[0], (void *)&a, &n);
	w->fd[1] = socket(AF_INET, SOCK_DGRAM, 0);
	connect(w->fd[1], (void *)&a, n);
}

static long accept_it(wait_state *w) { return S(accept4, w->fd[0], 0, 0, 0) >= 0 ? 0 : -1; }

static struct sockaddr_un *unix_name(void)
{
	static struct sockaddr_un a = {AF_UNIX};
	sprintf(a.sun_path, "name%d", getpid());
	return &a;
}

static void unix_listener(wait_state *w)
{
	w->fd[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(w->fd[0], (void *)unix_name(), sizeof(struct sockaddr_un));
	listen(w->fd[0], 0);
}

static void unix_client(wait_state *w)
{
	w->fd[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	connect(w->fd[1], (void *)unix_name(), sizeof(struct sockaddr_un));
}

static void unix_busy(wait_state *w) { unix_listener(w), unix_client(w); }

static long unix_connect(wait_state *w)
{
	struct sockaddr_un a = {AF_UNIX};
	sprintf(a.sun_path, "name%d", getppid());
	return S(connect, socket(AF_UNIX, SOCK_STREAM, 0), P(&a), sizeof a);
}

static void unix_accept(wait_state *w) { accept(w->fd[0], NULL, NULL); }

static void pty(wait_state *w)
{
	struct termios t;
	openpty(&w->fd[1], &w->fd[0], NULL, NULL, NULL);
	tcgetattr(w->fd[0], &t), cfmakeraw(&t), tcsetattr(w->fd[0], TCSANOW, &t);
}

static long poll_it(wait_state *w) { struct pollfd p = {w->fd[0], POLLIN, 0}; return S(poll, P(&p), 1, -1); }
static long poll_timed(wait_state *w) { struct pollfd p = {w->fd[0], POLLIN, 0}; return S(poll, P(&p), 1, 60000); }

static long ppoll_it(wait_state *w)
{
	struct pollfd p = {w->fd[0], POLLIN, 0};
	w->left = (struct timespec){60, 0};
	return S(ppoll, P(&p), 1, P(&w->left), 0, 8);
}

static long select_it(wait_state *w)
{
	struct timeval tv = {60, 0};
	fd_set set;
	FD_ZERO(&set);
	FD_SET(w->fd[0], &set);
	long rc = S(select, w->fd[0] + 1, P(&set), 0, 0, P(&tv));
	w->left.tv_sec = tv.tv_sec;
	return rc;
}

static long pselect_it(wait_state *w)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(w->fd[0], &set);
	w->left = (struct timespec){60, 0};
	return S(pselect6, w->fd[0] + 1, P(&set), 0, 0, P(&w->left), 0);
}

static void epolled(wait_state *w)
{
	struct epoll_event e = {EPOLLIN};
	pipes(w);
	w->fd[2] = epoll_create1(0);
	epoll_ctl(w->fd[2], EPOLL_CTL_ADD, w->fd[0], &e);
}

static long epoll_it(wait_state *w) { return S(epoll_wait, w->fd[2], P(buffer), 1, -1); }
static long epoll_timed(wait_state *w) { return S(epoll_pwait, w->fd[2], P(buffer), 1, 60000, 0, 8); }

static long sleep_it(wait_state *w) { struct timespec ts = {30, 0}; return S(nanosleep, P(&ts), P(&w->left)); }
static long sleep_clock(wait_state *w) { struct timespec ts = {30, 0}; return S(clock_nanosleep, 1, 0, P(&ts), P(&w->left)); }

static long sleep_until(wait_state *w)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 30;
	return S(clock_nanosleep, 1, TIMER_ABSTIME, P(&ts), P(&w->left));
}

static long pause_it(wait_state *w) { return S(pause); }
static long suspend_it(wait_state *w) { long set = 0; return S(rt_sigsuspend, P(&set), 8); }

static long wait_signal(wait_state *w)
{
	long set = 1L << (SIGWINCH - 1);
	struct timespec ts = {60, 0};
	return S(rt_sigtimedwait, P(&set), 0, P(&ts), 8);
}

static void send_winch(wait_state *w) { kill(w->other, SIGWINCH); }

static long wait_child(wait_state *w)
{
	if (fork() == 0)
		read(w->fd[0], buffer, 1), _exit(3);
	return S(wait4, -1, 0, 0, 0) > 0 ? 1 : -1;
}

static long waitid_child(wait_state *w)
{
	if (fork() == 0)
		read(w->fd[0], buffer, 1), _exit(3);
	return S(waitid, 0, 0, 0, WEXITED, 0);
}

static int *shared_word(void)
{
	static int *word;
	if (!word)
		word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return word;
}

static void word(wait_state *w) { *shared_word() = 0; }
static long futex_it(wait_state *w) { return S(futex, P(shared_word()), FUTEX_WAIT, 0, 0, 0, 0); }
static long futex_timed(wait_state *w) { struct timespec ts = {60, 0}; return S(futex, P(shared_word()), FUTEX_WAIT, 0, P(&ts), 0, 0); }
static void wake(wait_state *w) { S(futex, P(shared_word()), FUTEX_WAKE, 1, 0, 0, 0); }

static long futex_bitset(wait_state *w)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 60;
	return S(futex, P(shared_word()), FUTEX_WAIT_BITSET, 0, P(&ts), 0, -1);
}

static void lock_word(wait_state *w) { *shared_word() = 0, S(futex, P(shared_word()), FUTEX_LOCK_PI, 0, 0, 0, 0); }
static long lock_it(wait_state *w) { return S(futex, P(shared_word()), FUTEX_LOCK_PI, 0, 0, 0, 0); }
static void unlock_word(wait_state *w) { S(futex, P(shared_word()), FUTEX_UNLOCK_PI, 0, 0, 0, 0); }

static void locked(wait_state *w)
{
	char name[64];
	struct flock f = {F_WRLCK};
	sprintf(name, "locked%d", getpid());
	w->fd[0] = open(name, O_RDWR | O_CREAT, 0600);
	flock(w->fd[0], LOCK_EX);
	fcntl(w->fd[0], F_SETLK, &f);
}

static int open_locked(void)
{
	char name[64];
	sprintf(name, "locked%d", getppid());
	return open(name, O_RDWR);
}

static void unlock(wait_state *w)
{
	struct flock f = {F_UNLCK};
	flock(w->fd[0], LOCK_UN), fcntl(w->fd[0], F_SETLK, &f);
}

static long flock_it(wait_state *w) { return S(flock, open_locked(), LOCK_EX); }
static long setlkw(wait_state *w) { struct flock f = {F_WRLCK}; return S(fcntl, open_locked(), F_SETLKW, P(&f)); }
static long ofd_setlkw(wait_state *w) { struct flock f = {F_WRLCK}; return S(fcntl, open_locked(), F_OFD_SETLKW, P(&f)); }

static void semaphore(wait_state *w) { w->word = semget(IPC_PRIVATE, 1, 0600); }
static long semop_it(wait_state *w) { struct sembuf b = {0, -1, 0}; return S(semop, w->word, P(&b), 1); }
static long semtimedop_it(wait_state *w) { struct sembuf b = {0, -1, 0}; struct timespec ts = {60, 0}; return S(semtimedop, w->word, P(&b), 1, P(&ts)); }

static void post(wait_state *w)
{
	struct sembuf b = {0, 1, 0};
	semop(w->word, &b, 1);
	usleep(20000);
	semctl(w->word, 0, IPC_RMID);
}

static long waitv_it(wait_state *w)
{
	struct { long value, address; int flags, more; } v = {0, P(shared_word()), 2, 0};
	return S(futex_waitv, P(&v), 1, 0, 0, 0);
}

const blocking blocking_calls[] = {
	{"read-pipe", pipes, read_it, feed}, {"readv-pipe", pipes, readv_it, feed}, {"write-pipe", pipe_full, write_it, empty},
	{"write-much", pipe_full, write_much, empty}, {"splice", pipes, splice_it, feed}, {"tee", pipes, tee_it, feed},
	{"vmsplice", pipe_full, vmsplice_it, empty}, {"open-fifo", fifo_there, open_fifo, open_other},
	{"read-event", event, read_it, raise_event}, {"write-event", event_full, write_event, lower_event}, {"read-timer", timer, read_it, set_timer},
	{"read-inotify", notifier, read_some, create}, {"read-unix", stream, read_it, feed}, {"recv-unix", stream, receive, feed},
	{"recv-all", stream, receive_all, feed_twice}, {"recvmsg-unix", stream, receive_message, feed}, {"recvmmsg", datagrams, receive_several, feed},
	{"recv-timeout", receive_timeout, receive, feed}, {"send-unix", stream_full, send_it, empty}, {"send-timeout", send_timeout, send_it, empty},
	{"write-unix", stream_full, write_much, empty}, {"send-dgram", datagrams_full, send_it, empty}, {"recv-dgram", datagrams, receive, feed},
	{"accept-unix", unix_listener, accept_it, unix_client}, {"connect-unix", unix_busy, unix_connect, unix_accept},
	{"accept-tcp", tcp_listener, accept_it, tcp_client}, {"recv-tcp", tcp_pair, receive, feed}, {"read-tcp", tcp_pair, read_it, feed},
	{"send-tcp", tcp_full, send_it, empty}, {"recv-udp", udp_pair, receive, feed}, {"read-pty", pty, read_it, feed},
	{"poll", pipes, poll_it, feed}, {"poll-timed", pipes, poll_timed, feed}, {"ppoll", pipes, ppoll_it, feed}, {"select", pipes, select_it, feed},
	{"pselect", pipes, pselect_it, feed}, {"epoll_wait", epolled, epoll_it, feed}, {"epoll_pwait", epolled, epoll_timed, feed},
	{"nanosleep", none, sleep_it, NULL}, {"clock_nanosleep", none, sleep_clock, NULL}, {"clock_nanosleep-abs", none, sleep_until, NULL},
	{"pause", none, pause_it, NULL}, {"sigsuspend", none, suspend_it, NULL}, {"sigtimedwait", none, wait_signal, send_winch},
	{"wait4", pipes, wait_child, feed}, {"waitid", pipes, waitid_child, feed}, {"futex", word, futex_it, wake},
	{"futex-timed", word, futex_timed, wake}, {"futex-bitset", word, futex_bitset, wake}, {"futex-pi", lock_word, lock_it, unlock_word},
	{"futex_waitv", word, waitv_it, wake}, {"flock", locked, flock_it, unlock}, {"setlkw", locked, setlkw, unlock}, {"ofd_setlkw", locked, ofd_setlkw, unlock},
	{"semop", semaphore, semop_it, post}, {"semtimedop", semaphore, semtimedop_it, post},
	{},
};
