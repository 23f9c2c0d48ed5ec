// Threads that message calls take to another processor: what rseq(2) tells them is where they
// are, whatever happens to their masks and their memory meanwhile.
#include "check.h"
#include <sched.h>
#include <sys/rseq.h>
#include <sys/wait.h>

static struct common {
	_Atomic uint64_t moves, calls;
	_Atomic uint32_t over;
} *c;

static uint32_t here(void)
{
	uint32_t a = 1, b, x = 0, d;
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(x), "=d"(d));
	return b >> 24;
}

static uint32_t told(void)
{
	return *(volatile uint32_t *)((char *)__builtin_thread_pointer() + __rseq_offset + __builtin_offsetof(struct rseq, cpu_id));
}

// look compares both. Between the two looks the thread may be moved, but not each time.
static uint32_t look(void)
{
	for (int i = 0; i < 1000; i++) {
		uint32_t t = told(), h = here();
		if (t == h)
			return h;
	}
	say("told %u, is on %u", told(), here());
	_exit(97);
}

static void work(long n)
{
	while (n-- > 0)
		__asm__ volatile("pause");
}

static void serve(endpoint e)
{
	uint32_t last = look();
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	for (;;) {
		uint32_t now = look();
		c->moves += now != last;
		last = now;
		work((long)m.words[0]);
		good(ht_ipc_reply_recv(e.recv, &m, FOREVER));
	}
}

enum { clients = 3, each = 1500 };

static void bind_to(uint64_t mask)
{
	is(syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask), 0);
	if (mask != ~0ul)
		is(mask >> look() & 1, 1);
}

// disturb changes what the processor's number lies in: the page is copied, protected, and
// belongs to another for a moment.
static void disturb(int i)
{
	switch (i % 200) {
	case 50: {
		pid_t pid = fork();
		if (pid == 0) {
			look();
			_exit(0);
		}
		ended(pid);
		break;
	}
	case 100:
		munmap(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), 4096);
		break;
	case 150:
		bind_to(1ul << (i / 200 % sysconf(_SC_NPROCESSORS_ONLN)));
		break;
	case 199:
		bind_to(~0ul);
	}
}

static void call_all(endpoint e, int me, int disturbs)
{
	for (int i = 0; i < each; i++) {
		uint64_t turns = (uint64_t)(i + me) % 7 * 20, until = i % 3 ? FOREVER : in(10000);
		struct ht_message m = word(turns);
		good(ht_ipc_call(e.send, &m, until));
		is(m.words[0], turns);
		look();
		work((i * 3 + me) % 5 * 30);
		if (disturbs)
			disturb(i);
		c->calls++;
	}
}

static void meet(int disturbs)
{
	c = shared(sizeof *c);
	endpoint e = new_endpoint();
	pid_t server = FORK(serve(e)), pids[clients];
	for (int i = 0; i < clients; i++)
		pids[i] = FORK(call_all(e, i, disturbs));
	for (int i = 0; i < clients; i++)
		ended(pids[i]);
	end(server);
	is(c->calls, clients * each);
}

TEST(called, "who calls and who serves are told where they are")
{
	meet(0);
}

TEST(disturbed, "the same while masks and memory change")
{
	meet(1);
}

// The processes are bound at any time, by another.
TEST(bound, "a thread that is bound by another is where it may be")
{
	c = shared(sizeof *c);
	endpoint e = new_endpoint();
	pid_t server = FORK(serve(e)), pids[clients];
	for (int i = 0; i < clients; i++)
		pids[i] = FORK({
			for (int k = 0; !c->over; k++) {
				struct ht_message m = word(k % 5 * 20);
				good(ht_ipc_call(e.send, &m, FOREVER));
				look();
				c->calls++;
			}
		});
	for (int i = 0; i < 400 || c->calls < 500; i++) {
		uint64_t mask = i % 3 == 0 ? ~0ul : 1ul << (i % sysconf(_SC_NPROCESSORS_ONLN));
		is(syscall(SYS_sched_setaffinity, i % 4 == 3 ? server : pids[i % 4], sizeof mask, &mask), 0);
		sched_yield();
	}
	c->over = 1;
	for (int i = 0; i < clients; i++)
		ended(pids[i]);
	end(server);
}
