// storm: many threads of several processes make random calls on common endpoints and
// notifications, with descriptors, limits of time and signals, while processes are
// killed and replaced. Afterwards everything works as before, and nobody hangs.
// STORM_SECONDS and STORM_SEED in the environment make another one.
#include "check.h"

enum { processes = 4, threads = 3, endpoints = 3, notes = 2 };

static endpoint e[endpoints];
static int n[notes];
static volatile uint64_t *done; // operations, by process

static uint64_t next(uint64_t *s)
{
	uint64_t x = *s;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	*s = x;
	return x * 0x2545f4914f6cdd1d;
}

static void nothing(int sig) { (void)sig; }

typedef struct {
	uint64_t seed;
	int process;
} work;

static uint64_t some_time(uint64_t *s)
{
	uint64_t r = next(s) % 8;
	return r == 0 ? NOW : r == 1 ? FOREVER : in((long)(next(s) % 20));
}

static void *operate(void *arg)
{
	work w = *(work *)arg;
	uint64_t s = w.seed;
	struct ht_ipc_buffer buffer;
	struct ht_message m = {0};
	for (;;) {
		endpoint at = e[next(&s) % endpoints];
		uint64_t bits, limit = some_time(&s);
		unsigned descriptors = next(&s) % 8 == 0 ? 1 + next(&s) % 4 : 0;
		m.buffer = next(&s) % 4 == 0 && descriptors == 0 ? NULL : &buffer;
		unsigned length = (unsigned)(next(&s) % (m.buffer && next(&s) % 2 ? 513 : 49));
		if (next(&s) % 16 != 0)
			m.info = ht_ipc_info(length, descriptors);
		else
			m.info = (uint32_t)next(&s);
		for (unsigned i = 0; i < descriptors; i++)
			buffer.fds[i] = next(&s) % 2 ? n[next(&s) % notes] : (int)(next(&s) % 64);
		if (next(&s) % 16 == 0)
			m.token = next(&s) >> (next(&s) % 64);
		long rc = 0;
		int received = 0;
		switch (next(&s) % 13) {
		case 0: rc = ht_ipc_send(at.send, &m, limit); break;
		case 1: case 2: case 3: rc = ht_ipc_call(at.send, &m, limit), received = 1; break;
		case 4: rc = ht_ipc_recv(at.recv, &m, limit), received = 1; break;
		case 5: rc = ht_ipc_reply(&m), m.token = 0; break;
		case 6: case 7: case 8: rc = ht_ipc_reply_recv(at.recv, &m, limit), received = 1; break;
		case 9: rc = ht_ipc_signal(n[next(&s) % notes], next(&s)); break;
		case 10: rc = ht_ipc_wait(n[next(&s) % notes], &bits, limit == FOREVER ? in(20) : limit); break;
		case 12:
			rc = ht_ipc_signal_wait(n[next(&s) % notes], next(&s), n[next(&s) % notes], &bits, limit == FOREVER ? in(20) : limit);
			break;
		case 11: {
			int mine[2];
			if ((rc = ht_ipc_endpoint(mine, 0)) == 0) {
				struct ht_message own = word(1);
				ht_ipc_recv(mine[0], &own, in(1));
				close(mine[next(&s) % 2]);
				close(mine[0]), close(mine[1]);
			}
		}
		}
		if (received && rc == 0 && m.buffer)
			for (unsigned i = 0; i < ht_ipc_descriptors(m.info) && i < 4; i++)
				if (buffer.fds[i] >= 64)
					close(buffer.fds[i]);
		__atomic_fetch_add(&done[w.process], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void process(int number, uint64_t seed)
{
	// Numbers from 64 on are what was received, and what operations make.
	for (int fd = 3; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			dup2(2, fd);
	struct sigaction a = {.sa_handler = nothing, .sa_flags = seed % 2 ? SA_RESTART : 0};
	sigaction(SIGUSR1, &a, NULL);
	pthread_t t[threads];
	work w[threads];
	for (int i = 0; i < threads; i++) {
		w[i] = (work){seed * 977 + (uint64_t)i * 31 + 1, number};
		is(pthread_create(&t[i], NULL, operate, &w[i]), 0);
	}
	for (uint64_t s = seed;; usleep(3000))
		pthread_kill(t[next(&s) % threads], SIGUSR1);
}

TEST(storm, "storm")
{
	const char *given = getenv("STORM_SECONDS"), *from = getenv("STORM_SEED");
	long seconds = given ? atol(given) : 8;
	uint64_t seed = from ? strtoull(from, NULL, 0) : 1;
	done = shared(sizeof(uint64_t) * processes);
	for (int i = 0; i < endpoints; i++)
		e[i] = new_endpoint();
	for (int i = 0; i < notes; i++)
		n[i] = (int)good(ht_ipc_notification(0));
	pid_t child[processes] = {0};
	uint64_t last[processes] = {0}, s = seed, deaths = 0;
	int still[processes] = {0};
	for (long long stop = now_ms() + seconds * 1000; now_ms() < stop;) {
		for (int i = 0; i < processes; i++)
			if (child[i] == 0) {
				uint64_t seeded = next(&s);
				child[i] = FORK(process(i, seeded));
			}
		sleep_ms(20 + (long)(next(&s) % 60));
		int i = (int)(next(&s) % processes);
		end(child[i]);
		child[i] = 0, deaths++;
		for (i = 0; i < processes; i++) {
			still[i] = done[i] == last[i] ? still[i] + 1 : 0;
			last[i] = done[i];
		}
	}
	uint64_t all = 0;
	for (int i = 0; i < processes; i++) {
		if (child[i])
			end(child[i]);
		all += done[i];
	}
	// What was under way is gone; the endpoints and notifications are as new.
	for (int i = 0; i < endpoints; i++) {
		struct ht_message m = {0};
		is(ht_ipc_recv(e[i].recv, &m, NOW), -EAGAIN);
		pid_t peer = FORK({
			struct ht_message w = word(4);
			good(ht_ipc_call(e[i].send, &w, FOREVER));
			is(w.words[0], 5);
		});
		good(ht_ipc_recv(e[i].recv, &m, FOREVER));
		m.words[0]++;
		good(ht_ipc_reply(&m));
		ended(peer);
	}
	for (int i = 0; i < notes; i++) {
		uint64_t bits;
		ht_ipc_wait(n[i], &bits, NOW);
		good(ht_ipc_signal(n[i], 3));
		good(ht_ipc_wait(n[i], &bits, NOW));
		is(bits, 3);
	}
	// As many endpoints can be made as before: none was lost with the dead.
	int made = 0;
	for (int fds[2]; ht_ipc_endpoint(fds, 0) == 0;)
		made++;
	say("%lu operations, %lu processes killed, %d endpoints left", all, deaths, made);
	is(all >= processes && deaths > 0 && made >= 64, 1);
}
