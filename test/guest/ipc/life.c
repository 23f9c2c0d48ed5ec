// Ends: descriptors closed and duplicated, parties killed, limits of time, signals.
#include "check.h"

static short polled(int fd, short events)
{
	struct pollfd p = {fd, events, 0};
	good(poll(&p, 1, 0));
	return p.revents;
}

TEST(polls, "poll and epoll")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0));
	short both = POLLIN | POLLOUT;
	is(polled(e.recv, both), 0);
	is(polled(e.send, both), POLLOUT);
	is(polled(note, both), POLLOUT);
	good(ht_ipc_signal(note, 4));
	is(polled(note, both), both);
	uint64_t bits;
	good(ht_ipc_wait(note, &bits, NOW));
	is(polled(note, both), POLLOUT);

	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data = {.fd = e.recv}}, got[4];
	is(epoll_ctl(ep, EPOLL_CTL_ADD, e.recv, &ev), 0);
	ev.data.fd = note;
	is(epoll_ctl(ep, EPOLL_CTL_ADD, note, &ev), 0);
	is(epoll_wait(ep, got, 4, 0), 0);
	pid_t sender = FORK({
		struct ht_message m = word(1);
		sleep_ms(20);
		good(ht_ipc_send(e.send, &m, FOREVER));
	});
	is(epoll_wait(ep, got, 4, 60000), 1);
	is(got[0].data.fd, e.recv);
	is(polled(e.recv, both), POLLIN);
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, NOW));
	is(polled(e.recv, both), 0);
	ended(sender);
	pid_t signaller = FORK(sleep_ms(20); good(ht_ipc_signal(note, 1)));
	is(epoll_wait(ep, got, 4, 60000), 1);
	is(got[0].data.fd, note);
	ended(signaller);
	close(e.recv);
	is(polled(e.send, POLLOUT) & POLLERR, POLLERR);
}

TEST(closing, "close, dup, exit: who waits gets EPIPE")
{
	endpoint e = new_endpoint();
	int copy = dup(e.recv);
	close(e.recv);
	pid_t sender = FORK({
		close(copy);
		struct ht_message m = word(1);
		is(ht_ipc_send(e.send, &m, FOREVER), -EPIPE);
		m = word(1);
		is(ht_ipc_send(e.send, &m, FOREVER), -EPIPE);
		is(ht_ipc_call(e.send, &m, NOW), -EPIPE);
	});
	pid_t caller = FORK({
		close(copy);
		struct ht_message m = word(1);
		is(ht_ipc_call(e.send, &m, FOREVER), -EPIPE);
	});
	settle(sender);
	settle(caller);
	close(copy);
	ended(sender);
	ended(caller);

	// The last receiving descriptor is that of a process that exits.
	e = new_endpoint();
	pid_t owner = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		good(ht_ipc_reply(&m));
	});
	close(e.recv);
	struct ht_message m = word(1);
	good(ht_ipc_call(e.send, &m, FOREVER));
	long rc;
	do
		m = word(1), rc = ht_ipc_send(e.send, &m, in(10));
	while (rc == -ETIMEDOUT);
	is(rc, -EPIPE);
	ended(owner);

	// A thread that waits keeps what it waits on, though the number is closed.
	e = new_endpoint();
	owner = FORK({
		struct ht_message w = {0};
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		is(w.words[0], 5);
	});
	settle(owner);
	close(e.recv);
	m = word(5);
	good(ht_ipc_send(e.send, &m, in(60000)));
	ended(owner);

	// A notification that is signalled while it is waited for, by the last of others.
	int note = (int)good(ht_ipc_notification(0));
	pid_t waiter = FORK({
		uint64_t bits;
		good(ht_ipc_wait(note, &bits, FOREVER));
		is(bits, 6);
	});
	settle(waiter);
	good(ht_ipc_signal(note, 6));
	close(note);
	ended(waiter);
}

TEST(notes, "bits of notifications")
{
	int note = (int)good(ht_ipc_notification(HT_IPC_CLOEXEC));
	is(fcntl(note, F_GETFD), FD_CLOEXEC);
	uint64_t bits;
	is(ht_ipc_wait(note, &bits, NOW), -EAGAIN);
	for (int i = 0; i < 64; i++)
		good(ht_ipc_signal(note, 1ul << i)), good(ht_ipc_signal(note, 1ul << i));
	good(ht_ipc_wait(note, &bits, FOREVER));
	is(bits, ~0ul);
	is(ht_ipc_wait(note, &bits, NOW), -EAGAIN);
	// Several wait: each signal is for one of them, the first first.
	int done[2];
	is(pipe(done), 0);
	for (int i = 0; i < 3; i++) {
		settle(FORK({
			good(ht_ipc_wait(note, &bits, FOREVER));
			char c = (char)(10 * i + (int)bits);
			is(write(done[1], &c, 1), 1);
		}));
	}
	for (int i = 0; i < 3; i++) {
		good(ht_ipc_signal(note, (uint64_t)i + 1));
		char c;
		is(read(done[0], &c, 1), 1);
		is(c, 11 * i + 1);
	}
	// Two processes in turn.
	int other = (int)good(ht_ipc_notification(0));
	pid_t peer = FORK({
		for (;;) {
			good(ht_ipc_wait(note, &bits, FOREVER));
			good(ht_ipc_signal(other, bits + 1));
		}
	});
	for (uint64_t i = 1; i < 3000; i++) {
		good(ht_ipc_signal(note, i));
		good(ht_ipc_wait(other, &bits, FOREVER));
		is(bits, i + 1);
	}
	end(peer);
}

TEST(times, "limits of time")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0));
	struct ht_message m = word(1);
	uint64_t bits;
	is(ht_ipc_send(e.send, &m, NOW), -EAGAIN);
	is(ht_ipc_call(e.send, &m, NOW), -EAGAIN);
	is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN);
	m.token = 0;
	is(ht_ipc_reply_recv(e.recv, &m, NOW), -EAGAIN);
	is(ht_ipc_send(e.send, &m, 1), -ETIMEDOUT); // a time long ago
	for (int i = 0; i < 5; i++) {
		uint64_t until = in(30);
		m = word(1);
		switch (i) {
		case 0: is(ht_ipc_send(e.send, &m, until), -ETIMEDOUT); break;
		case 1: is(ht_ipc_call(e.send, &m, until), -ETIMEDOUT); break;
		case 2: is(ht_ipc_recv(e.recv, &m, until), -ETIMEDOUT); break;
		case 3: m.token = 0; is(ht_ipc_reply_recv(e.recv, &m, until), -ETIMEDOUT); break;
		case 4: is(ht_ipc_wait(note, &bits, until), -ETIMEDOUT); break;
		}
		is(in(0) >= until, 1);
	}
	// A call that was received and is not answered; the reply comes too late.
	pid_t server = FORK({
		struct ht_message w = {0};
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		sleep_ms(100);
		struct ht_message late = w;
		is(ht_ipc_reply(&late), -EPIPE);
		w.info = 8;
		good(ht_ipc_reply_recv(e.recv, &w, FOREVER)); // without an error
		is(w.words[0], 2);
		good(ht_ipc_reply(&w));
	});
	m = word(1);
	is(ht_ipc_call(e.send, &m, in(20)), -ETIMEDOUT);
	m = word(2);
	good(ht_ipc_call(e.send, &m, in(60000)));
	ended(server);
}

static volatile int handled;
static void handler(int sig) { (void)sig; handled++; }

static void handle(int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
	is(sigaction(SIGUSR1, &a, NULL), 0);
	handled = 0;
}

TEST(signals, "EINTR, and SA_RESTART")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0)), other = (int)good(ht_ipc_notification(0));
	pid_t self = getpid();
	for (int i = 0; i < 6; i++) {
		handle(0);
		pid_t killer = FORK(settle(self); kill(self, SIGUSR1));
		struct ht_message m = word(1);
		uint64_t bits;
		long rc = 0;
		switch (i) {
		case 0: rc = ht_ipc_send(e.send, &m, FOREVER); break;
		case 1: rc = ht_ipc_call(e.send, &m, FOREVER); break;
		case 2: rc = ht_ipc_recv(e.recv, &m, FOREVER); break;
		case 3: m.token = 0; rc = ht_ipc_reply_recv(e.recv, &m, in(60000)); break;
		case 4: rc = ht_ipc_wait(note, &bits, FOREVER); break;
		case 5: rc = ht_ipc_signal_wait(other, 1, note, &bits, FOREVER); break;
		}
		is(rc, -EINTR);
		is(handled, 1);
		ended(killer);
	}
	// With SA_RESTART it goes on, and gets what comes afterwards.
	for (int i = 0; i < 3; i++) {
		handle(SA_RESTART);
		pid_t killer = FORK({
			settle(self);
			kill(self, SIGUSR1);
			sleep_ms(20);
			settle(self);
			struct ht_message m = word(7);
			switch (i) {
			case 0: good(ht_ipc_send(e.send, &m, FOREVER)); break;
			case 1: good(ht_ipc_recv(e.recv, &m, FOREVER)); is(m.words[0], 3); break;
			case 2: good(ht_ipc_signal(note, 7)); break;
			}
		});
		struct ht_message m = word(3);
		uint64_t bits = 0;
		switch (i) {
		case 0: good(ht_ipc_recv(e.recv, &m, FOREVER)); is(m.words[0], 7); break;
		case 1: good(ht_ipc_send(e.send, &m, FOREVER)); break;
		case 2: good(ht_ipc_wait(note, &bits, FOREVER)); is(bits, 7); break;
		}
		is(handled, 1);
		ended(killer);
	}
	// A call that was received is not made twice: EINTR although SA_RESTART is set.
	handle(SA_RESTART);
	pid_t server = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		settle(self);
		kill(self, SIGUSR1);
		struct ht_message next = {0};
		good(ht_ipc_recv(e.recv, &next, FOREVER));
		is(next.words[0], 2);
	});
	struct ht_message m = word(1);
	is(ht_ipc_call(e.send, &m, FOREVER), -EINTR);
	is(handled, 1);
	m = word(2);
	good(ht_ipc_send(e.send, &m, FOREVER));
	ended(server);
	// Stopped and continued, a wait goes on.
	pid_t stopped = FORK({
		struct ht_message w = {0};
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		is(w.words[0], 9);
	});
	settle(stopped);
	kill(stopped, SIGSTOP);
	int st;
	is(waitpid(stopped, &st, WUNTRACED), stopped);
	kill(stopped, SIGCONT);
	m = word(9);
	good(ht_ipc_send(e.send, &m, in(60000)));
	ended(stopped);
}

TEST(signal_wait, "SignalWait")
{
	int a = (int)good(ht_ipc_notification(0)), b = (int)good(ht_ipc_notification(0));
	uint64_t bits;
	// What is signalled counts whether or not there is something to take.
	is(ht_ipc_signal_wait(a, 5, b, &bits, NOW), -EAGAIN);
	good(ht_ipc_wait(a, &bits, NOW));
	is(bits, 5);
	is(ht_ipc_signal_wait(a, 6, b, &bits, in(20)), -ETIMEDOUT);
	good(ht_ipc_signal(b, 1));
	good(ht_ipc_signal_wait(a, 1, b, &bits, FOREVER));
	is(bits, 1);
	good(ht_ipc_wait(a, &bits, NOW));
	is(bits, 7);
	// To itself.
	good(ht_ipc_signal_wait(a, 9, a, &bits, FOREVER));
	is(bits, 9);
	// Two processes in turn, by whatever descriptors.
	for (int apart = 0; apart < 10; apart++) {
		int c = dup2(b, 40 + apart);
		pid_t peer = FORK({
			good(ht_ipc_wait(a, &bits, FOREVER));
			for (;;)
				good(ht_ipc_signal_wait(c, bits + 1, a, &bits, FOREVER));
		});
		for (uint64_t i = 1; i < 500; i++) {
			good(ht_ipc_signal_wait(a, i, c, &bits, FOREVER));
			is(bits, i + 1);
		}
		end(peer);
		close(c);
		ht_ipc_wait(a, &bits, NOW);
	}
	// Somebody else polls for what is signalled.
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN}, got;
	is(epoll_ctl(ep, EPOLL_CTL_ADD, a, &ev), 0);
	is(epoll_wait(ep, &got, 1, 0), 0);
	pid_t poller = FORK(good(ht_ipc_signal_wait(a, 2, b, &bits, FOREVER)); is(bits, 3));
	is(epoll_wait(ep, &got, 1, 60000), 1);
	settle(poller);
	good(ht_ipc_wait(a, &bits, NOW));
	is(bits, 2);
	good(ht_ipc_signal(b, 3));
	ended(poller);
	close(ep);
	// A handler with SA_RESTART: the wait goes on, and nothing is signalled again.
	for (int i = 0; i < 2; i++) {
		uint64_t until = i ? in(60000) : FOREVER;
		pid_t sleeper = FORK(handle(SA_RESTART); good(ht_ipc_signal_wait(a, 4, b, &bits, until)); is(bits, 8); is(handled, 1));
		good(ht_ipc_wait(a, &bits, FOREVER));
		is(bits, 4);
		settle(sleeper);
		kill(sleeper, SIGUSR1);
		sleep_ms(20);
		settle(sleeper);
		is(ht_ipc_wait(a, &bits, NOW), -EAGAIN);
		good(ht_ipc_signal(b, 8));
		ended(sleeper);
	}
	// Whoever waits hears of the end of what it waits for, also when the last descriptor of
	// what it signals is closed.
	pid_t waiter = FORK({
		good(ht_ipc_signal_wait(a, 1, b, &bits, FOREVER));
		is(bits, 2);
	});
	good(ht_ipc_wait(a, &bits, FOREVER));
	close(a);
	good(ht_ipc_signal(b, 2));
	ended(waiter);
}

TEST(caller_dies, "a caller that is killed while the server works")
{
	endpoint e = new_endpoint();
	for (int i = 0; i < 20; i++) {
		pid_t caller = FORK({
			struct ht_message m = word(1);
			ht_ipc_call(e.send, &m, FOREVER);
		});
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		end(caller);
		m.info = 8;
		if (i % 2 == 0) {
			is(ht_ipc_reply(&m), -EPIPE);
		} else {
			pid_t next = FORK({
				struct ht_message w = word(2);
				good(ht_ipc_send(e.send, &w, FOREVER));
			});
			good(ht_ipc_reply_recv(e.recv, &m, FOREVER));
			is(m.words[0], 2);
			ended(next);
		}
	}
	// And one that is killed while it waits to be received: nothing is left of it.
	pid_t caller = FORK({
		struct ht_message m = word(1);
		ht_ipc_call(e.send, &m, FOREVER);
	});
	settle(caller);
	end(caller);
	struct ht_message m = {0};
	is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN);
}

TEST(server_dies, "a server that dies holding ten callers")
{
	for (int how = 0; how < 3; how++) {
		endpoint e = new_endpoint();
		int ready[2];
		is(pipe(ready), 0);
		pid_t server = FORK({
			for (int i = 0; i < 10; i++) {
				struct ht_message m = {0};
				good(ht_ipc_recv(e.recv, &m, FOREVER));
			}
			is(write(ready[1], "x", 1), 1);
			if (how == 1)
				_exit(0);
			pause();
		});
		pid_t callers[10], waiting;
		for (int i = 0; i < 10; i++) {
			callers[i] = FORK({
				struct ht_message m = word((uint64_t)i);
				is(ht_ipc_call(e.send, &m, FOREVER), -EPIPE);
			});
		}
		char c;
		is(read(ready[0], &c, 1), 1);
		// One that it has not received stays, for whoever receives next.
		waiting = FORK({
			struct ht_message m = word(50);
			good(ht_ipc_call(e.send, &m, FOREVER));
			is(m.words[0], 51);
		});
		if (how != 1)
			kill(server, SIGKILL);
		wait_for(server);
		for (int i = 0; i < 10; i++)
			ended(callers[i]);
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		is(m.words[0]++, 50);
		good(ht_ipc_reply(&m));
		ended(waiting);
	}
}

static void *serve_once(void *arg)
{
	struct ht_message m = {0};
	good(ht_ipc_recv((int)(long)arg, &m, FOREVER));
	return NULL; // the thread ends without a reply
}

TEST(thread_dies, "a server's thread that ends with a call, in a process that goes on")
{
	endpoint e = new_endpoint();
	pid_t caller = FORK({
		struct ht_message m = word(1);
		is(ht_ipc_call(e.send, &m, FOREVER), -EPIPE);
	});
	pthread_t t;
	is(pthread_create(&t, NULL, serve_once, (void *)(long)e.recv), 0);
	pthread_join(t, NULL);
	ended(caller);
}

int child_main(int argc, char **argv)
{
	// After exec: descriptors 10 and 11 are an endpoint's.
	(void)argc, (void)argv;
	struct ht_message m = {0};
	good(ht_ipc_recv(10, &m, FOREVER));
	m.words[0]++;
	good(ht_ipc_reply(&m));
	is(fcntl(12, F_GETFD), -1);
	return 0;
}

TEST(forks, "fork and exec with endpoints")
{
	endpoint e = new_endpoint();
	pid_t server = FORK({
		endpoint gone = new_endpoint();
		dup2(e.recv, 10), dup2(e.send, 11), dup3(gone.recv, 12, O_CLOEXEC);
		execl("/proc/self/exe", "ipc", "child", NULL);
	});
	struct ht_message m = word(41);
	good(ht_ipc_call(e.send, &m, FOREVER));
	is(m.words[0], 42);
	ended(server);
	// A child of fork does not share what its parent has received: the token is the
	// parent's thread's, and the parent's death, not the child's, is what counts.
	pid_t parent = FORK({
		struct ht_message w = {0};
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		ended(FORK(is(ht_ipc_reply(&w), -EPIPE)));
		w.words[0] = 5;
		good(ht_ipc_reply(&w));
	});
	m = word(1);
	good(ht_ipc_call(e.send, &m, FOREVER));
	is(m.words[0], 5);
	ended(parent);
	// exec while a caller waits for the reply: the thread that had the call is gone.
	pid_t execs = FORK({
		struct ht_message w = {0};
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		dup2(e.recv, 10);
		execl("/proc/self/exe", "ipc", "child", NULL);
	});
	m = word(1);
	is(ht_ipc_call(e.send, &m, FOREVER), -EPIPE);
	m = word(1);
	good(ht_ipc_call(e.send, &m, FOREVER));
	ended(execs);
}

TEST(limits, "as many as there are: errno, and all of them back")
{
	for (int round = 0; round < 3; round++) {
		int made = 0;
		for (; made < 2000; made++) {
			int fds[2];
			long rc = ht_ipc_endpoint(fds, 0);
			if (rc == -ENFILE || rc == -EMFILE)
				break;
			good(rc);
		}
		is(made >= 64, 1);
		is(made < 2000, 1);
		closefrom(3);
		for (made = 0; made < 2000; made++) {
			long rc = ht_ipc_notification(0);
			if (rc == -ENFILE || rc == -EMFILE)
				break;
			good(rc);
		}
		is(made >= 64, 1);
		is(made < 2000, 1);
		closefrom(3);
	}
	endpoint e = new_endpoint();
	pid_t peer = FORK({
		struct ht_message m = word(1);
		good(ht_ipc_send(e.send, &m, FOREVER));
	});
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	ended(peer);
}
