// What may happen at the same moment: a wait ends and its time is over, a signal comes
// and a message, a descriptor changes hands, a party dies at each step of a call. What
// has been sent arrives once, and nobody is forgotten.
#include "check.h"

static uint64_t next(uint64_t *s)
{
	uint64_t x = *s;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	*s = x;
	return x * 0x2545f4914f6cdd1d;
}

static void nothing(int sig) { (void)sig; }

// A time limit that is about to pass, or one that has no end.
static uint64_t soon(uint64_t *s)
{
	uint64_t r = next(s) % 8;
	return r == 0 ? NOW : r == 1 ? FOREVER : in(0) + next(s) % 300000;
}

static int again(long rc) { return rc == -EAGAIN || rc == -ETIMEDOUT || rc == -EINTR; }

// What several processes tell each other.
static struct common {
	_Atomic uint64_t sent, received, called, answered, late, over;
	_Atomic uint32_t got[1 << 20]; // by a message's number
} *c;

enum { parties = 3, each = 600 };

static void alarmed(int flags)
{
	struct sigaction a = {.sa_handler = nothing, .sa_flags = flags};
	is(sigaction(SIGALRM, &a, NULL), 0);
}

// perhaps_alarm has a signal interrupt the process soon, once: on a slow machine, too, it
// gets something done in between.
static void perhaps_alarm(uint64_t *s)
{
	struct itimerval once = {{0, 0}, {0, 1 + (long)(next(s) % 400)}};
	if (next(s) % 4 == 0)
		is(setitimer(ITIMER_REAL, &once, NULL), 0);
}

// send_all sends each number until that succeeds.
static void send_all(endpoint e, int party, int last)
{
	uint64_t s = (uint64_t)party + 77;
	struct ht_ipc_buffer buffer = {{0}};
	alarmed(party % 2 ? SA_RESTART : 0);
	for (int i = 0; i < last; i++) {
		uint64_t number = (uint64_t)(party * last + i);
		for (;;) {
			struct ht_message m = {.words = {number}, .info = 8, .buffer = &buffer};
			if (next(&s) % 3 == 0) {
				memcpy(buffer.data, &number, sizeof number);
				m.info = 400;
			}
			perhaps_alarm(&s);
			long rc = ht_ipc_send(e.send, &m, soon(&s));
			if (rc == 0)
				break;
			is(again(rc), 1);
		}
		c->sent++;
	}
}

static void receive_all(endpoint e, int party)
{
	uint64_t s = (uint64_t)party + 991;
	struct ht_ipc_buffer buffer;
	alarmed(party % 2 ? 0 : SA_RESTART);
	for (;;) {
		struct ht_message m = {.buffer = &buffer};
		perhaps_alarm(&s);
		long rc = ht_ipc_recv(e.recv, &m, soon(&s));
		if (rc != 0) {
			is(again(rc), 1);
			continue;
		}
		uint64_t number = m.words[0];
		if (ht_ipc_bytes(m.info) == 400)
			memcpy(&number, buffer.data, sizeof number);
		if (number == ~0ul)
			return;
		is(number < 1 << 20, 1);
		c->got[number]++, c->received++;
	}
}

TEST(once, "what is sent arrives once, whatever ends the waits")
{
	c = shared(sizeof *c);
	endpoint e = new_endpoint();
	pid_t senders[parties], receivers[parties];
	for (int i = 0; i < parties; i++) {
		senders[i] = FORK(send_all(e, i, each));
		receivers[i] = FORK(receive_all(e, i));
	}
	for (int i = 0; i < parties; i++)
		ended(senders[i]);
	for (int i = 0; i < parties; i++) {
		struct ht_message m = word(~0ul);
		good(ht_ipc_send(e.send, &m, FOREVER));
	}
	for (int i = 0; i < parties; i++)
		ended(receivers[i]);
	is(c->sent, parties * each);
	is(c->received, parties * each);
	for (int i = 0; i < parties * each; i++)
		is(c->got[i], 1);
}

TEST(replies, "a reply is a call's end, or too late: never neither, never both")
{
	c = shared(sizeof *c);
	endpoint e = new_endpoint();
	pid_t server = FORK({
		uint64_t s = 5;
		struct ht_ipc_buffer buffer;
		for (;;) {
			struct ht_message m = {.buffer = &buffer};
			long rc = ht_ipc_recv(e.recv, &m, soon(&s));
			if (rc != 0) {
				is(again(rc), 1);
				continue;
			}
			if (m.words[0] == ~0ul)
				break;
			for (uint64_t n = next(&s) % 3000; n > 0; n--)
				__asm__ volatile("pause");
			m.words[0] += 1, m.info = 8;
			rc = ht_ipc_reply(&m);
			if (rc == 0)
				c->answered++;
			else
				is(rc, -EPIPE), c->late++;
		}
	});
	pid_t callers[parties];
	for (int i = 0; i < parties; i++)
		callers[i] = FORK({
			uint64_t s = (uint64_t)i + 31;
			alarmed(i % 2 ? SA_RESTART : 0);
			for (uint64_t k = 0; k < each; k++) {
				struct ht_message m = word(k * 2);
				perhaps_alarm(&s);
				long rc = ht_ipc_call(e.send, &m, soon(&s));
				if (rc == 0)
					is(m.words[0], k * 2 + 1), c->called++;
				else
					is(again(rc), 1);
			}
		});
	for (int i = 0; i < parties; i++)
		ended(callers[i]);
	struct ht_message m = word(~0ul);
	good(ht_ipc_send(e.send, &m, FOREVER));
	ended(server);
	is(c->called, c->answered);
	is(c->called > 0, 1);
}

TEST(bits, "no bit of a notification is lost, whatever ends the waits")
{
	c = shared(sizeof *c);
	int note = (int)good(ht_ipc_notification(0));
	pid_t waiters[parties], signallers[parties];
	for (int i = 0; i < parties; i++) {
		waiters[i] = FORK({
			uint64_t s = (uint64_t)i + 3;
			alarmed(i % 2 ? SA_RESTART : 0);
			for (;;) {
				uint64_t bits;
				perhaps_alarm(&s);
				long rc = ht_ipc_wait(note, &bits, soon(&s));
				if (rc != 0) {
					is(again(rc), 1);
					continue;
				}
				for (int b = 0; b < parties; b++)
					if (bits >> b & 1)
						c->got[b]++;
			}
		});
		// Each sets its bit when the last one has been taken.
		signallers[i] = FORK({
			for (uint32_t k = 0; k < each; k++) {
				good(ht_ipc_signal(note, 1ul << i));
				while (c->got[i] == k)
					sched_yield();
				is(c->got[i], k + 1);
			}
		});
	}
	for (int i = 0; i < parties; i++)
		ended(signallers[i]);
	for (int i = 0; i < parties; i++)
		end(waiters[i]);
}

// changes is what the thread that makes calls and the one that changes the descriptor
// see of each other: the number of the change that begins, and of the one that is over.
static struct { _Atomic uint64_t begun, over, stop; endpoint e; int fd, badged[2]; } changes;

static void *change(void *arg)
{
	(void)arg;
	for (uint64_t k = 1; !changes.stop; k++) {
		changes.begun = k;
		int to = changes.badged[k % 2];
		is(dup2(to, changes.fd), changes.fd);
		changes.over = k;
		for (int i = 0; i < 2000; i++)
			__asm__ volatile("pause");
	}
	return NULL;
}

TEST(changes_hands, "a descriptor that another thread replaces is the new one from then on")
{
	changes.e = new_endpoint();
	for (int i = 0; i < 2; i++)
		changes.badged[i] = (int)good(ht_ipc_mint(changes.e.recv, 100 + (uint64_t)i, 0));
	changes.fd = dup(changes.badged[0]);
	pid_t server = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(changes.e.recv, &m, FOREVER));
		for (;;) {
			m.words[0] = m.badge, m.info = 8;
			good(ht_ipc_reply_recv(changes.e.recv, &m, FOREVER));
		}
	});
	pthread_t t;
	is(pthread_create(&t, NULL, change, NULL), 0);
	uint64_t both = 0;
	for (int i = 0; i < 3000 || (both != 3 && i < 600000); i++) {
		uint64_t from = changes.over;
		struct ht_message m = word(0);
		good(ht_ipc_call(changes.fd, &m, FOREVER));
		uint64_t to = changes.begun;
		if (to == from)
			is(m.words[0], 100 + from % 2);
		else
			is(m.words[0] == 100 || m.words[0] == 101, 1);
		both |= 1u << (m.words[0] - 100);
	}
	is(both, 3);
	changes.stop = 1;
	pthread_join(t, NULL);
	end(server);
	// A table of one's own, and a range that is closed at once.
	endpoint other = new_endpoint();
	struct ht_message m = word(1);
	is(ht_ipc_send(changes.e.send, &m, NOW), -EAGAIN);
	is(unshare(CLONE_FILES), 0);
	is(dup2(other.recv, changes.e.send), changes.e.send);
	is(ht_ipc_send(changes.e.send, &m, NOW), -EBADF);
	is(ht_ipc_recv(changes.e.send, &m, NOW), -EAGAIN);
	is(close_range((unsigned)changes.e.send, (unsigned)changes.e.send, 0), 0);
	is(ht_ipc_recv(changes.e.send, &m, NOW), -EBADF);
}

// Ways to die.
enum { by_kill, by_exit_group, by_exec, ways };

static int how;

// turn is shared by the processes of a step: when to die, and that a call has come.
static struct {
	_Atomic int die, received;
} *turn;

static void *dies(void *arg)
{
	(void)arg;
	while (!turn->die) // asleep is not enough: nobody may have received its call yet
		sleep_ms(1);
	settle_threads();
	if (how == by_exit_group)
		_exit(0);
	if (how == by_exec)
		execl("/proc/self/exe", "ipc", "child", NULL);
	pause();
	return NULL;
}

int child_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	return 0;
}

// dying runs a statement in a process that dies when it waits in it and dead is called.
#define dying(...)                                             \
	FORK({                                                 \
		pthread_t dying_t;                             \
		is(pthread_create(&dying_t, NULL, dies, NULL), 0); \
		__VA_ARGS__;                                   \
		pause();                                       \
	})

static void dead(pid_t pid)
{
	if (how == by_kill) {
		settle(pid);
		kill(pid, SIGKILL);
	}
	turn->die = 1;
	wait_for(pid);
	turn->die = 0;
}

TEST(steps, "either party dies at each step, each way: short, long, with descriptors, with a limit")
{
	turn = shared(sizeof *turn);
	for (how = 0; how < ways; how++)
		for (int kind = 0; kind < 4; kind++) {
			endpoint e = new_endpoint();
			turn->received = 0;
			int p[2];
			is(pipe(p), 0);
			struct ht_ipc_buffer buffer = {.data = {1}, .fds = {p[0]}};
			struct ht_message first = {.words = {1}, .info = ht_ipc_info(kind == 1 ? 400 : 8, kind == 2), .buffer = &buffer};
			uint64_t limit = kind == 3 ? in(1000000) : FOREVER;
			struct ht_message m = first;
			// Whoever waits to send, and to be received, leaves nothing.
			dead(dying(ht_ipc_send(e.send, &m, limit)));
			dead(dying(ht_ipc_call(e.send, &m, limit)));
			m = (struct ht_message){.buffer = &buffer};
			is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN);
			// Whoever waits to receive.
			dead(dying(struct ht_message w = {.buffer = &buffer}; ht_ipc_recv(e.recv, &w, limit)));
			dead(dying(struct ht_message w = {.buffer = &buffer}; ht_ipc_reply_recv(e.recv, &w, limit)));
			m = first;
			is(ht_ipc_send(e.send, &m, NOW), -EAGAIN);
			// The caller, when the call has been received.
			m = first;
			pid_t caller = dying(ht_ipc_call(e.send, &m, limit));
			struct ht_message got = {.buffer = &buffer};
			good(ht_ipc_recv(e.recv, &got, FOREVER));
			if (kind == 2)
				close(buffer.fds[0]), buffer.fds[0] = p[0];
			dead(caller);
			got.info = 8;
			is(ht_ipc_reply(&got), -EPIPE);
			// The server that has it, with another call in the queue, which stays.
			pid_t server = dying({
				struct ht_message w = {.buffer = &buffer};
				good(ht_ipc_recv(e.recv, &w, limit));
				close(e.recv), close(e.send);
				turn->received = 1;
			});
			m = first;
			pid_t calls = FORK(is(ht_ipc_call(e.send, &m, limit), -EPIPE));
			while (!turn->received)
				sleep_ms(1);
			dead(server);
			ended(calls);
			// The server in ReplyRecv, whose last caller has its answer.
			server = dying({
				struct ht_message w = {.buffer = &buffer};
				good(ht_ipc_recv(e.recv, &w, limit));
				w.words[0]++, w.info = 8;
				ht_ipc_reply_recv(e.recv, &w, limit);
			});
			m = first;
			calls = FORK(good(ht_ipc_call(e.send, &m, limit)); if (kind != 1) is(m.words[0], 2));
			ended(calls);
			dead(server);
			// And all is as before.
			calls = FORK(m = word(8); good(ht_ipc_call(e.send, &m, FOREVER)); is(m.words[0], 9));
			got = (struct ht_message){.buffer = &buffer};
			good(ht_ipc_recv(e.recv, &got, FOREVER));
			got.words[0]++;
			good(ht_ipc_reply(&got));
			ended(calls);
			close(e.recv), close(e.send), close(p[0]);
			// Nobody has kept the pipe that went with messages.
			close(p[1]);
		}
}

TEST(on_the_way, "a file in a message is nobody's when sender and receiver are killed")
{
	for (int i = 0; i < 150; i++) {
		endpoint e = new_endpoint();
		int p[2];
		is(pipe(p), 0);
		struct ht_ipc_buffer buffer;
		pid_t sender = FORK({
			for (;;) {
				buffer.fds[0] = p[1];
				ht_ipc_send(e.send, &(struct ht_message){.buffer = &buffer, .info = ht_ipc_info(i % 2 ? 400 : 8, 1)}, FOREVER);
			}
		});
		pid_t receiver = FORK({
			close(p[1]);
			for (;;) {
				struct ht_message m = {.buffer = &buffer};
				good(ht_ipc_recv(e.recv, &m, FOREVER));
				close(buffer.fds[0]);
			}
		});
		for (volatile int k = 0; k < i * 500; k++) {
		}
		if (i % 3 == 0)
			sleep_ms(1);
		kill(i % 2 ? sender : receiver, SIGKILL);
		kill(i % 2 ? receiver : sender, SIGKILL);
		is(wait_for(sender), SIGKILL);
		is(wait_for(receiver), SIGKILL);
		close(e.recv), close(e.send), close(p[1]);
		struct pollfd hung = {p[0], POLLIN, 0};
		is(poll(&hung, 1, 20000), 1);
		is(hung.revents & POLLHUP, POLLHUP);
		close(p[0]);
	}
}

static endpoint crowd_at;
static int crowd_note;

static void *waits(void *arg)
{
	long i = (long)arg;
	struct ht_ipc_buffer buffer;
	struct ht_message m = {.words = {1}, .info = i % 2 ? 400 : 8, .buffer = &buffer};
	uint64_t bits, limit = i % 3 ? FOREVER : in(1000000);
	switch (i % 4) {
	case 0: ht_ipc_call(crowd_at.send, &m, limit); break;
	case 1: ht_ipc_send(crowd_at.send, &m, limit); break;
	case 2: ht_ipc_wait(crowd_note, &bits, limit); break;
	case 3: ht_ipc_wait(crowd_note, &bits, FOREVER); break;
	}
	return NULL;
}

TEST(group, "a process ends, and another forks, with threads that wait on all CPUs")
{
	for (int round = 0; round < 6; round++) {
		crowd_at = new_endpoint();
		crowd_note = (int)good(ht_ipc_notification(0));
		pid_t p = FORK({
			for (long i = 0; i < 16; i++) {
				pthread_t t;
				is(pthread_create(&t, NULL, waits, (void *)i), 0);
			}
			if (round % 2)
				settle_threads();
			// The child has none of them, and calls as it likes.
			ended(FORK({
				endpoint mine = new_endpoint();
				struct ht_message m = word(1);
				is(ht_ipc_send(mine.send, &m, NOW), -EAGAIN);
				good(ht_ipc_signal(crowd_note, 1)); // one goes
			}));
			if (round % 3 == 0)
				kill(getpid(), SIGKILL);
			_exit(0);
		});
		wait_for(p);
		struct ht_message m = {0};
		is(ht_ipc_recv(crowd_at.recv, &m, NOW), -EAGAIN);
		uint64_t bits;
		ht_ipc_wait(crowd_note, &bits, NOW); // the last may have died of it
		is(ht_ipc_wait(crowd_note, &bits, NOW), -EAGAIN);
		good(ht_ipc_signal(crowd_note, 6));
		good(ht_ipc_wait(crowd_note, &bits, NOW));
		is(bits, 6);
		close(crowd_at.recv), close(crowd_at.send), close(crowd_note);
	}
}

static struct ht_ipc_buffer *lent;

static void *unmaps(void *arg)
{
	settle_threads();
	is(munmap(lent, 4096), 0);
	struct ht_message m = {.words = {7}, .info = 8};
	if (arg)
		good(ht_ipc_send((int)(long)arg, &m, FOREVER));
	return NULL;
}

static struct ht_ipc_buffer *lend(void) { return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

TEST(unmapped, "a buffer that goes away during the wait")
{
	endpoint e = new_endpoint(), done = new_endpoint();
	// The sender's has been read.
	pid_t sender = FORK({
		lent = lend();
		struct ht_message m = {.buffer = lent};
		content(&m, 512, 9);
		pthread_t t;
		is(pthread_create(&t, NULL, unmaps, (void *)(long)done.send), 0);
		good(ht_ipc_send(e.send, &m, FOREVER));
		pthread_join(t, NULL);
	});
	struct ht_ipc_buffer buffer;
	struct ht_message m = {.buffer = &buffer};
	good(ht_ipc_recv(done.recv, &m, FOREVER)); // it is gone
	m.buffer = &buffer;
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	right(&m, 512, 9);
	ended(sender);
	// The receiver's is as if there were none: it lives, and so does the sender.
	pid_t receiver = FORK({
		lent = lend();
		struct ht_message w = {.buffer = lent};
		pthread_t t;
		is(pthread_create(&t, NULL, unmaps, (void *)(long)done.send), 0);
		good(ht_ipc_recv(e.recv, &w, FOREVER));
		is(ht_ipc_bytes(w.info), 512);
		is(ht_ipc_descriptors(w.info), 0);
		is(((uint8_t *)w.words)[0], (uint8_t)(4 * 31));
		pthread_join(t, NULL);
	});
	m.buffer = &buffer;
	good(ht_ipc_recv(done.recv, &m, FOREVER));
	m.buffer = &buffer;
	content(&m, 512, 4);
	int p[2];
	is(pipe(p), 0);
	buffer.fds[0] = p[1], m.info = ht_ipc_info(512, 1);
	good(ht_ipc_send(e.send, &m, FOREVER));
	ended(receiver);
	close(p[1]);
	char byte;
	is(read(p[0], &byte, 1), 0); // nobody has the descriptor
}

TEST(itself, "an endpoint whose only receiving descriptor is in a message to itself")
{
	for (int i = 0; i < 260; i++) { // more than there are
		int pair[2];
		is(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		endpoint e = new_endpoint();
		pid_t p = FORK({
			struct ht_ipc_buffer buffer = {.fds = {e.recv}};
			struct ht_message m = {.info = ht_ipc_info(8, 1), .buffer = &buffer};
			close(pair[0]);
			is(write(pair[1], "x", 1), 1);
			ht_ipc_send(e.send, &m, FOREVER);
		});
		char byte;
		is(read(pair[0], &byte, 1), 1);
		close(e.recv), close(pair[0]), close(pair[1]);
		if (i % 50 == 0)
			settle(p);
		end(p);
		struct ht_message m = word(1);
		is(ht_ipc_send(e.send, &m, NOW), -EPIPE);
		close(e.send);
	}
}

TEST(hears, "poll hears of a sender, and of the end, at any moment")
{
	for (int i = 0; i < 150; i++) {
		endpoint e = new_endpoint();
		pid_t peer = FORK({
			close(e.recv);
			for (int n = i * 37 % 2000; n > 0; n--)
				__asm__ volatile("pause");
			struct ht_message m = word(1);
			good(ht_ipc_send(e.send, &m, i % 2 ? FOREVER : in(1000000)));
			struct pollfd f = {e.send, 0, 0};
			is(poll(&f, 1, -1), 1);
			is(f.revents, POLLERR);
		});
		struct pollfd f = {e.recv, POLLIN, 0};
		is(poll(&f, 1, -1), 1);
		is(f.revents, POLLIN);
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, NOW));
		for (int n = i * 53 % 2000; n > 0; n--)
			__asm__ volatile("pause");
		close(e.recv);
		ended(peer);
		close(e.send);
	}
}

TEST(stops, "stopped and continued: a wait goes on, a call that was received ends with EINTR")
{
	for (int i = 0; i < 8; i++) {
		endpoint e = new_endpoint();
		int received = i % 2, limited = i / 2 % 2, long_one = i / 4;
		struct ht_ipc_buffer buffer = {{0}};
		pid_t caller = FORK({
			struct ht_message m = {.words = {1}, .info = long_one ? 400 : 8, .buffer = &buffer};
			long rc = ht_ipc_call(e.send, &m, limited ? in(1000000) : FOREVER);
			is(rc, received ? -EINTR : 0);
		});
		struct ht_message m = {.buffer = &buffer};
		if (received)
			good(ht_ipc_recv(e.recv, &m, FOREVER));
		settle(caller);
		int st;
		kill(caller, SIGSTOP);
		is(waitpid(caller, &st, WUNTRACED), caller);
		is(WIFSTOPPED(st), 1);
		if (!received)
			is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN); // the stopped do not send
		kill(caller, SIGCONT);
		if (!received)
			good(ht_ipc_recv(e.recv, &m, FOREVER));
		else
			ended(caller);
		m.info = 8;
		is(ht_ipc_reply(&m), received ? -EPIPE : 0);
		if (!received)
			ended(caller);
		close(e.recv), close(e.send);
	}
}

TEST(order, "who waits is overtaken by nobody, however eager and whatever his priority")
{
	// What bounds an inversion of priorities: the queue is served in the order of
	// arrival, and the server, when it has a call, gets its share of a processor among
	// all that compute, whatever anybody's priority.
	enum { callers = 8, rounds = 2 };
	c = shared(sizeof *c);
	endpoint e = new_endpoint();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t busy[2 * cpus], pid[callers];
	for (int i = 0; i < callers; i++) {
		pid[i] = FORK({
			setpriority(PRIO_PROCESS, 0, i % 2 ? -20 : 19);
			for (int k = 0; k < rounds; k++) {
				struct ht_message m = word((uint64_t)i);
				good(ht_ipc_call(e.send, &m, FOREVER)); // and again, at once
			}
		});
		settle(pid[i]); // they are in the queue in this order
	}
	// Beside nice -20, a thread of nice 19 gets 15/88761 of a processor: its next slice may
	// be minutes away. So the others that compute are nice 0, and the server is nice 10.
	for (int i = 0; i < 2 * cpus; i++)
		busy[i] = FORK(for (;;) __asm__ volatile("pause"));
	setpriority(PRIO_PROCESS, 0, 10);
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	for (int i = 0; i < callers * rounds; i++) {
		// The first come in their order, each once, although who has its answer calls again.
		if (i < callers)
			is(m.words[0], i);
		c->got[m.words[0]]++;
		if (i == callers * rounds - 1)
			good(ht_ipc_reply(&m));
		else
			good(ht_ipc_reply_recv(e.recv, &m, FOREVER));
	}
	for (int i = 0; i < callers; i++)
		ended(pid[i]), is(c->got[i], rounds);
	for (int i = 0; i < 2 * cpus; i++)
		end(busy[i]);
}
