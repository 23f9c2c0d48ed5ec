// Program interrupt tests what counts when a blocked call gets what it waits for
// and then, before it runs again, a signal whose handler does not restart calls:
// the call succeeds. (A stream socket's recv and a terminal's read are left out:
// there Linux lets either win.)
#include "gt.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { rounds = 12 };

static atomic_int *turn; // how often the parent was about to block
static volatile sig_atomic_t handled;
static char byte;

static void on_signal(int sig) { handled++; }

static void handle(int sig)
{
	struct sigaction sa = {.sa_handler = on_signal};
	sigaction(sig, &sa, NULL);
}

// compete blocks the parent in one call again and again, while a child brings
// about the event and sends a signal at once.
static void compete(const char *what, long (*block)(void), void (*event)(void))
{
	turn = shared(4096);
	handle(SIGUSR1);
	pid_t parent = getpid();
	pid_t pid = FORK({
		signal(SIGUSR1, SIG_DFL);
		for (int i = 1; i <= rounds; i++) {
			until(*turn == i);
			sleep_ms(2);
			event();
			kill(parent, SIGUSR1);
		}
	});
	int good = 0, intr = 0, other = 0;
	for (int i = 1; i <= rounds; i++) {
		handled = 0;
		*turn = i;
		if (block() != -1)
			good++;
		else if (errno == EINTR)
			intr++;
		else
			other = errno;
		until(handled > 0);
	}
	wait_for(pid);
	// On a busy machine the event itself may come late.
	say("%s: mostly good %d, %s", what, good >= rounds * 3 / 4, name_of(other));
}

static int a[2];

static long read_a(void) { return read(a[0], &byte, 1); }
static void write_a(void) { must(write(a[1], "x", 1), "write"); }

static long fill_a(void)
{
	static char block[4096];
	return write(a[1], block, sizeof block);
}

static void drain_a(void)
{
	static char block[4096];
	must(read(a[0], block, sizeof block), "read");
}

static long select_a(void)
{
	fd_set in;
	FD_ZERO(&in);
	FD_SET(a[0], &in);
	long n = select(a[0] + 1, &in, NULL, NULL, NULL);
	if (n > 0)
		read_a();
	return n;
}

static long poll_a(void)
{
	struct pollfd p = {a[0], POLLIN};
	long n = poll(&p, 1, -1);
	if (n > 0)
		read_a();
	return n;
}

static int ep;

static long epoll_a(void)
{
	struct epoll_event ev;
	long n = epoll_wait(ep, &ev, 1, -1);
	if (n > 0)
		read_a();
	return n;
}

TEST(pipes, "pipes and readiness")
{
	must(pipe(a), "pipe");
	compete("read", read_a, write_a);
	compete("select", select_a, write_a);
	compete("poll", poll_a, write_a);
	ep = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN};
	must(epoll_ctl(ep, EPOLL_CTL_ADD, a[0], &ev), "epoll_ctl");
	compete("epoll_wait", epoll_a, write_a);
	fcntl(a[1], F_SETFL, O_NONBLOCK);
	while (fill_a() > 0)
		;
	fcntl(a[1], F_SETFL, 0);
	compete("write", fill_a, drain_a);
}

static long open_fifo(void)
{
	int fd = open("fifo", O_RDONLY);
	if (fd >= 0)
		close(fd);
	return fd;
}

static void meet_fifo(void)
{
	int fd = open("fifo", O_RDWR | O_NONBLOCK);
	close(fd);
}

TEST(fifos, "fifos")
{
	must(mkfifo("fifo", 0600), "mkfifo");
	compete("open", open_fifo, meet_fifo);
}

static int listener;
static struct sockaddr_in to;

static long accept_one(void)
{
	int fd = accept(listener, NULL, NULL);
	if (fd >= 0)
		close(fd);
	return fd;
}

static void connect_one(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(fd, (void *)&to, sizeof to), "connect");
	close(fd);
}

static struct sockaddr_un path = {AF_UNIX, "listener"};

static void connect_unix(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	must(connect(fd, (void *)&path, sizeof path), "connect");
	close(fd);
}

static long receive_a(void) { return recv(a[0], &byte, 1, 0); }
static void send_to(void) { must(sendto(a[1], "x", 1, 0, (void *)&to, sizeof to), "sendto"); }

TEST(sockets, "sockets")
{
	static const struct { const char *name; int type; } kinds[] = {{"unix datagram", SOCK_DGRAM}, {"unix packets", SOCK_SEQPACKET}};
	for (int i = 0; i < 2; i++) {
		must(socketpair(AF_UNIX, kinds[i].type, 0, a), "socketpair");
		compete(kinds[i].name, receive_a, write_a);
		struct timeval tv = {20, 0};
		setsockopt(a[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
		compete("with a time limit", receive_a, write_a);
	}
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	must(bind(listener, (void *)&path, sizeof path), "bind");
	must(listen(listener, 5), "listen");
	compete("unix accept", accept_one, connect_unix);

	socklen_t len = sizeof to;
	to = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(listener, (void *)&to, sizeof to), "bind");
	must(listen(listener, 5), "listen");
	getsockname(listener, (void *)&to, &len);
	compete("accept", accept_one, connect_one);
	a[1] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(a[1], (void *)&to, sizeof to), "connect");
	a[0] = accept(listener, NULL, NULL);
	compete("tcp", receive_a, write_a);

	a[0] = socket(AF_INET, SOCK_DGRAM, 0);
	a[1] = socket(AF_INET, SOCK_DGRAM, 0);
	to.sin_port = 0;
	must(bind(a[0], (void *)&to, sizeof to), "bind");
	getsockname(a[0], (void *)&to, &len);
	compete("udp", receive_a, send_to);
}

static int fd;

static long read_eight(void)
{
	uint64_t n;
	return read(fd, &n, 8);
}

static void write_eight(void)
{
	uint64_t one = 1;
	must(write(fd, &one, 8), "write");
}

static long read_inotify(void)
{
	char text[512];
	return read(fd, text, sizeof text);
}

static void touch(void)
{
	close(open("touched", O_CREAT | O_WRONLY, 0600));
	unlink("touched");
}

static pid_t self;

static long read_signal(void)
{
	struct signalfd_siginfo info;
	return read(fd, &info, sizeof info);
}

static void send_signal(void) { kill(self, SIGUSR2); }

static long wait_signal(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigwaitinfo(&set, NULL);
}

TEST(files, "eventfd, inotify, signalfd, sigwaitinfo")
{
	fd = eventfd(0, 0);
	compete("eventfd", read_eight, write_eight);
	fd = inotify_init();
	must(inotify_add_watch(fd, ".", IN_CREATE), "watch");
	compete("inotify", read_inotify, touch);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, 0);
	self = getpid();
	compete("signalfd", read_signal, send_signal);
	compete("sigwaitinfo", wait_signal, send_signal);
}

static int other;
static atomic_int *stage;

// The child takes the lock before the parent wants it, in shared stages.
static long lock_flock(void)
{
	until(*stage == *turn);
	long rc = flock(fd, LOCK_EX);
	if (rc == 0)
		flock(fd, LOCK_UN);
	return rc;
}

static void give_flock(void)
{
	flock(other, LOCK_EX);
	*stage = *turn;
	sleep_ms(20);
	flock(other, LOCK_UN);
}

static long lock_record(void)
{
	until(*stage == *turn);
	struct flock l = {F_WRLCK, SEEK_SET, 0, 1};
	long rc = fcntl(fd, F_SETLKW, &l);
	if (rc == 0) {
		l.l_type = F_UNLCK;
		fcntl(fd, F_SETLK, &l);
	}
	return rc;
}

static void give_record(void)
{
	struct flock l = {F_WRLCK, SEEK_SET, 0, 1};
	fcntl(other, F_SETLKW, &l);
	*stage = *turn;
	sleep_ms(20);
	l.l_type = F_UNLCK;
	fcntl(other, F_SETLK, &l);
}

TEST(locks, "file locks")
{
	stage = shared(4096);
	fd = open("file", O_CREAT | O_RDWR, 0600);
	other = open("file", O_RDWR);
	compete("flock", lock_flock, give_flock);
	*stage = 0;
	compete("record lock", lock_record, give_record);
}

static int id;

static long take_semaphore(void)
{
	struct sembuf op = {0, -1, 0};
	return semop(id, &op, 1);
}

static void give_semaphore(void)
{
	struct sembuf op = {0, 1, 0};
	must(semop(id, &op, 1), "semop");
}

struct note {
	long type;
	char text[8];
};

static long take_message(void)
{
	struct note n;
	return msgrcv(id, &n, 8, 0, 0);
}

static void give_message(void)
{
	struct note n = {1, "hello"};
	must(msgsnd(id, &n, 8, 0), "msgsnd");
}

static uint32_t *word;

static long wait_word(void) { return syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static void wake_word(void) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

TEST(ipc, "semaphores, messages, futexes")
{
	id = must(semget(IPC_PRIVATE, 1, 0600), "semget");
	compete("semop", take_semaphore, give_semaphore);
	semctl(id, 0, IPC_RMID);
	id = must(msgget(IPC_PRIVATE, 0600), "msgget");
	compete("msgrcv", take_message, give_message);
	msgctl(id, IPC_RMID, NULL);
	word = shared(4096);
	compete("futex", wait_word, wake_word);
}

// The signal is that of the very child that is waited for.
static int children(int how)
{
	int intr = 0;
	for (int i = 0; i < 50; i++) {
		pid_t pid = FORK(sleep_ms(2); if (how == 3) raise(SIGSTOP););
		siginfo_t info;
		long rc;
		if (how == 0)
			rc = waitpid(pid, NULL, 0);
		else if (how == 1)
			rc = waitid(P_ALL, 0, &info, WEXITED);
		else if (how == 2)
			rc = waitpid(-1, NULL, 0);
		else
			rc = waitpid(pid, NULL, WUNTRACED);
		if (rc < 0 && errno == EINTR)
			intr++;
		if (how == 3 || rc < 0) {
			kill(pid, SIGKILL);
			wait_for(pid);
		}
	}
	return intr;
}

TEST(waiting, "wait4 and the child's own SIGCHLD")
{
	handle(SIGCHLD);
	say("waitpid of one: %d EINTR", children(0));
	say("waitid of all: %d EINTR", children(1));
	say("waitpid of all: %d EINTR", children(2));
	say("waitpid of a stop: %d EINTR", children(3));
	int intr = 0;
	for (int i = 0; i < 20; i++) {
		pid_t pid = FORK(raise(SIGSTOP); pause());
		int st;
		while (waitpid(pid, &st, WUNTRACED) < 0)
			;
		pid_t helper = FORK(sleep_ms(2); kill(pid, SIGCONT));
		if (waitpid(pid, &st, WCONTINUED) < 0)
			intr += errno == EINTR;
		kill(pid, SIGKILL);
		wait_for(pid), wait_for(helper);
	}
	say("waitpid of a continue: %d EINTR", intr);
	pid_t stranger = FORK(sleep_ms(30));
	pid_t mine = FORK(sleep_ms(200));
	err("the SIGCHLD of another", waitpid(mine, NULL, 0));
	wait_for(mine), wait_for(stranger);
}

// A signal that the call's own mask lets in interrupts it, although it would
// not have waited.
TEST(masks, "a pending signal and a call that does not wait")
{
	sigset_t set, none;
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	handle(SIGUSR1);
	must(pipe(a), "pipe");
	struct timespec zero = {0, 0};
	struct pollfd p = {a[0], POLLIN};
	raise(SIGUSR1);
	num("ppoll", ppoll(&p, 1, &zero, &none));
	say("handled %d", handled);
	raise(SIGUSR1);
	fd_set in;
	FD_ZERO(&in);
	FD_SET(a[0], &in);
	num("pselect", pselect(a[0] + 1, &in, NULL, NULL, &zero, &none));
	say("handled %d", handled);
	raise(SIGUSR1);
	ep = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN};
	must(epoll_ctl(ep, EPOLL_CTL_ADD, a[0], &ev), "epoll_ctl");
	num("epoll_pwait", epoll_pwait(ep, &ev, 1, 0, &none));
	sigset_t pending;
	sigpending(&pending);
	say("handled %d, pending %d", handled, sigismember(&pending, SIGUSR1));
	write_a();
	num("ppoll, ready", ppoll(&p, 1, &zero, &none));
	sigpending(&pending);
	say("handled %d, pending %d", handled, sigismember(&pending, SIGUSR1));
}
