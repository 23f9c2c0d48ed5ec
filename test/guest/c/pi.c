// Program pi tests PI futexes, what happens to them when an owner ends, and
// futexes that processes share.
#include "gt.h"

#include <linux/futex.h>
#include <pthread.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

enum { waiters = (int)FUTEX_WAITERS, died = FUTEX_OWNER_DIED };

static long futex(void *at, int op, uint32_t val, const void *timeout, void *at2, uint32_t val3)
{
	return syscall(SYS_futex, at, op, val, timeout, at2, val3);
}

static uint32_t *word; // shared memory
static atomic_int *count;

static void prepare(void)
{
	word = shared(4096);
	count = (atomic_int *)(word + 100);
	alarm(60);
}

// look prints a word with names for what is in it.
static void look(const char *what, uint32_t v, int tid)
{
	say("%s: %s%s%s", what, v & FUTEX_TID_MASK ? (v & FUTEX_TID_MASK) == tid ? "owner" : "stranger" : "free",
	    v & FUTEX_WAITERS ? ", waiters" : "", v & FUTEX_OWNER_DIED ? ", owner died" : "");
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	ts.tv_nsec += ms % 1000 * 1000000;
	ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

TEST(alone, "lock and unlock, nobody waits")
{
	prepare();
	for (int private = 0; private < 2; private++) {
		int f = private ? FUTEX_PRIVATE_FLAG : 0;
		*word = 0;
		err("lock", futex(word, FUTEX_LOCK_PI | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		err("lock again", futex(word, FUTEX_LOCK_PI | f, 0, NULL, NULL, 0));
		err("try again", futex(word, FUTEX_TRYLOCK_PI | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		err("unlock", futex(word, FUTEX_UNLOCK_PI | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		err("unlock again", futex(word, FUTEX_UNLOCK_PI | f, 0, NULL, NULL, 0));
		err("try", futex(word, FUTEX_TRYLOCK_PI | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		*word |= waiters | died;
		err("unlock with bits", futex(word, FUTEX_UNLOCK_PI | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		*word = waiters | died;
		err("lock with bits", futex(word, FUTEX_LOCK_PI2 | f, 0, NULL, NULL, 0));
		look("word", *word, gettid());
	}
}

TEST(errors, "errors")
{
	prepare();
	err("odd address", futex((char *)word + 2, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	err("wild", futex((void *)16, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	err("wild, private", futex((void *)16, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	err("wild unlock", futex((void *)16, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	err("wild try", futex((void *)16, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	struct timespec bad = {0, -1}, past = {1, 0}, future = in_ms(CLOCK_REALTIME, 30), soon = in_ms(CLOCK_MONOTONIC, 30);
	err("bad time", futex(word, FUTEX_LOCK_PI, 0, &bad, NULL, 0));
	err("wild time", futex(word, FUTEX_LOCK_PI, 0, (void *)16, NULL, 0));
	err("real time flag", futex(word, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	err("real time flag of a plain wait", futex(word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0));
	err("past, but free", futex(word, FUTEX_LOCK_PI, 0, &past, NULL, 0));
	*word = getppid();
	err("past", futex(word, FUTEX_LOCK_PI, 0, &past, NULL, 0));
	look("word", *word, getppid());
	err("a while", futex(word, FUTEX_LOCK_PI, 0, &future, NULL, 0));
	err("a while, monotonic", futex(word, FUTEX_LOCK_PI2, 0, &soon, NULL, 0));
	future = in_ms(CLOCK_REALTIME, 30);
	err("a while, real time", futex(word, FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME, 0, &future, NULL, 0));
	err("try another's", futex(word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	look("word", *word, getppid());
	err("unlock another's", futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	pid_t pid = FORK();
	wait_for(pid);
	*word = pid;
	err("owned by nobody", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	look("word", *word, pid);
	err("try nobody's", futex(word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	*word = FUTEX_TID_MASK;
	err("the highest number", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	err("unknown operation", futex(word, 14, 0, NULL, NULL, 0));
	err("unknown flag", futex(word, FUTEX_WAKE | 512, 0, NULL, NULL, 0));
}

TEST(contended, "waiting and handing on")
{
	prepare();
	futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
	pid_t pid[3];
	for (int i = 0; i < 3; i++) {
		pid[i] = FORK({
			err("lock", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
			say("child %d is number %d", i, (*count)++);
			look("word", *word, gettid());
			futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
		});
		settle(pid[i]);
	}
	look("word", *word, gettid());
	err("wake", futex(word, FUTEX_WAKE, 1, NULL, NULL, 0));
	err("requeue", futex(word, FUTEX_REQUEUE, 1, (void *)1, word + 1, 0));
	err("wake op", futex(word, FUTEX_WAKE_OP, 1, (void *)1, word + 1, 0));
	err("wake op, second", futex(word + 1, FUTEX_WAKE_OP, 1, (void *)1, word, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_NE, 0)));
	long rc = futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	for (int i = 0; i < 3; i++)
		wait_for(pid[i]);
	err("unlock", rc);
	look("in the end", *word, 0);
}

TEST(meddled, "a word that was meddled with")
{
	prepare();
	pid_t plain = FORK(futex(word, FUTEX_WAIT, 0, NULL, NULL, 0));
	settle(plain);
	*word = gettid();
	IN_CHILD("lock where others wait plainly", err("lock", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0)));
	err("unlock where others wait plainly", futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	futex(word, FUTEX_WAKE, 1, NULL, NULL, 0);
	wait_for(plain);
	*word = gettid();
	pid_t pid = FORK(err("lock", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0)));
	settle(pid);
	*word = getppid() | waiters;
	IN_CHILD("another owner in the word", err("lock", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0)));
	*word = gettid() | waiters;
	long rc = futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	wait_for(pid);
	err("unlock", rc);
}

static uint32_t lock_a, lock_b;

static void *second(void *arg)
{
	futex(&lock_b, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	(*count)++;
	until(*count == 2);
	long rc = futex(&lock_a, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	futex(&lock_b, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	return (void *)rc;
}

TEST(deadlock, "deadlock")
{
	prepare();
	pthread_t th;
	futex(&lock_a, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	pthread_create(&th, NULL, second, NULL);
	until(*count == 1);
	(*count)++;
	settle_threads();
	err("a circle", futex(&lock_b, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	err("try in a circle", futex(&lock_b, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	err("unlock", futex(&lock_a, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	void *rc;
	pthread_join(th, &rc);
	say("the other %ld", (long)rc);
}

static void nothing(int sig) {}

TEST(signals, "signals while waiting")
{
	prepare();
	*word = getppid();
	struct sigaction sa = {.sa_handler = nothing};
	sigaction(SIGUSR1, &sa, NULL);
	pid_t pid = FORK({
		struct timespec end = in_ms(CLOCK_REALTIME, 300);
		err("a handler does not end it", futex(word, FUTEX_LOCK_PI, 0, &end, NULL, 0));
	});
	settle(pid);
	kill(pid, SIGUSR1);
	wait_for(pid);
	pid = FORK(futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	settle(pid);
	kill(pid, SIGKILL);
	status("killed", wait_for(pid));
	*word = gettid() | waiters;
	err("unlock", futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	look("word", *word, gettid());
}

TEST(death, "an owner ends")
{
	prepare();
	// Without a robust list the first waiter gets it all the same.
	pid_t owner = FORK(futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0); until(*count == 1));
	until(*word != 0);
	pid_t heir = FORK({
		err("lock", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
		look("word", *word, gettid());
		futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	});
	settle(heir);
	pid_t next = FORK(err("next", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0)));
	settle(next);
	*count = 1;
	wait_for(owner), wait_for(heir), wait_for(next);
	// The last one kept it; nobody waited.
	err("after one that nobody waited for", futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
}

static pthread_mutex_t *mutex;

static void make_mutex(int robust, int protocol, int type)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	say("protocol: %s", name_of(pthread_mutexattr_setprotocol(&a, protocol)));
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, robust);
	pthread_mutexattr_settype(&a, type);
	say("init: %s", name_of(pthread_mutex_init(mutex, &a)));
}

TEST(robust, "robust mutexes of processes")
{
	prepare();
	mutex = shared(4096);
	static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
	for (int i = 0; i < 2; i++) {
		make_mutex(PTHREAD_MUTEX_ROBUST, protocols[i], PTHREAD_MUTEX_NORMAL);
		IN_CHILD("dies with it", pthread_mutex_lock(mutex));
		say("lock: %s", name_of(pthread_mutex_lock(mutex)));
		say("consistent: %s", name_of(pthread_mutex_consistent(mutex)));
		say("unlock: %s", name_of(pthread_mutex_unlock(mutex)));
		*count = 0;
		pid_t pid = FORK(pthread_mutex_lock(mutex); *count = 1; pause());
		until(*count == 1);
		say("trylock: %s", name_of(pthread_mutex_trylock(mutex)));
		struct timespec end = in_ms(CLOCK_REALTIME, 30);
		say("timedlock: %s", name_of(pthread_mutex_timedlock(mutex, &end)));
		end = in_ms(CLOCK_MONOTONIC, 30);
		say("clocklock: %s", name_of(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &end)));
		pid_t waiter = FORK(say("waiter: %s", name_of(pthread_mutex_lock(mutex))); pthread_mutex_unlock(mutex));
		settle(waiter);
		kill(pid, SIGKILL);
		wait_for(pid), wait_for(waiter);
		say("not recoverable: %s", name_of(pthread_mutex_lock(mutex)));
		make_mutex(PTHREAD_MUTEX_ROBUST, protocols[i], PTHREAD_MUTEX_NORMAL);
		IN_CHILD("another program with it", pthread_mutex_lock(mutex); execl("/proc/self/exe", "pi", "child", NULL));
		say("lock: %s", name_of(pthread_mutex_lock(mutex)));
	}
}

int child_main(int argc, char **argv) { return 0; }

enum { rounds = 300 };
static long shared_sum[1];

static void *adder(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(mutex);
		long v = *(volatile long *)(mutex + 1);
		if (i % 16 == 0)
			sched_yield();
		*(volatile long *)(mutex + 1) = v + 1;
		pthread_mutex_unlock(mutex);
	}
	return NULL;
}

TEST(exclusion, "mutual exclusion of threads and processes")
{
	prepare();
	mutex = shared(4096);
	make_mutex(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ERRORCHECK);
	pid_t pid[2];
	for (int p = 0; p < 2; p++)
		pid[p] = FORK({
			pthread_t th[3];
			for (int i = 0; i < 3; i++)
				pthread_create(&th[i], NULL, adder, NULL);
			for (int i = 0; i < 3; i++)
				pthread_join(th[i], NULL);
		});
	wait_for(pid[0]), wait_for(pid[1]);
	say("%ld of %d", *(long *)(mutex + 1), 6 * rounds);
	say("lock: %s, %s", name_of(pthread_mutex_lock(mutex)), name_of(pthread_mutex_lock(mutex)));
	say("unlock: %s, %s", name_of(pthread_mutex_unlock(mutex)), name_of(pthread_mutex_unlock(mutex)));
}

TEST(requeue, "FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI")
{
	prepare();
	uint32_t *from = word, *to = word + 1, *third = word + 2;
	struct timespec end = in_ms(CLOCK_MONOTONIC, 30);
	err("wait for itself", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, NULL, from, 0));
	err("another value", futex(from, FUTEX_WAIT_REQUEUE_PI, 1, NULL, to, 0));
	err("time", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, &end, to, 0));
	end = in_ms(CLOCK_REALTIME, 30);
	err("real time", futex(from, FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME, 0, &end, to, 0));
	err("requeue to itself", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, from, 0));
	err("wake 2", futex(from, FUTEX_CMP_REQUEUE_PI, 2, (void *)1, to, 0));
	err("wake 0", futex(from, FUTEX_CMP_REQUEUE_PI, 0, (void *)1, to, 0));
	err("another value", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, to, 1));
	num("nobody waits", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, to, 0));

	pid_t pid[4];
	for (int i = 0; i < 4; i++) {
		pid[i] = FORK({
			err("wait", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, NULL, to, 0));
			say("child %d is number %d", i, (*count)++);
			look("word", *to, gettid());
			futex(to, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
		});
		settle(pid[i]);
	}
	err("wake", futex(from, FUTEX_WAKE, 1, NULL, NULL, 0));
	err("requeue", futex(from, FUTEX_CMP_REQUEUE, 1, (void *)1, third, 0));
	err("to another", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, third, 0));
	long rc = futex(from, FUTEX_CMP_REQUEUE_PI, 1, NULL, to, 0);
	wait_for(pid[0]);
	num("the lock is free, move none", rc);
	futex(to, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
	num("the lock is taken, move one and one", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, to, 0));
	look("word", *to, gettid());
	num("move the rest", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)INT_MAX, to, 0));
	rc = futex(to, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	for (int i = 1; i < 4; i++)
		wait_for(pid[i]);
	err("unlock", rc);
	look("in the end", *to, 0);
}

TEST(requeued, "the end of a requeued wait")
{
	prepare();
	uint32_t *from = word, *to = word + 1;
	struct sigaction sa = {.sa_handler = nothing};
	sigaction(SIGUSR1, &sa, NULL);
	pid_t pid = FORK(err("signal", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, NULL, to, 0)));
	settle(pid);
	futex(to, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
	num("move", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, to, 0));
	kill(pid, SIGUSR1);
	wait_for(pid);
	pid = FORK({
		struct timespec end = in_ms(CLOCK_MONOTONIC, 1500);
		err("time", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, &end, to, 0));
	});
	settle(pid);
	num("move", futex(from, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, to, 0));
	wait_for(pid);
	pid = FORK({
		struct timespec end = in_ms(CLOCK_MONOTONIC, 300);
		err("a signal before the move", futex(from, FUTEX_WAIT_REQUEUE_PI, 0, &end, to, 0));
	});
	settle(pid);
	kill(pid, SIGUSR1);
	wait_for(pid);
}

static uint32_t sum;

TEST(keys, "who meets at a word")
{
	prepare();
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 8192);
	uint32_t *x = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	uint32_t *y = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	uint32_t *z = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	static const char *const names[] = {"shared file", "read-only private file", "private file", "own memory", "own memory, private wake", "anonymous"};
	uint32_t *at[] = {x, y + 1024, z + 1024, &sum, &sum, word};
	for (int i = 0; i < 6; i++) {
		pid_t pid = FORK({
			struct timespec end = {i < 2 || i == 5 ? 5 : 0, 100000000};
			err(names[i], futex(at[i], FUTEX_WAIT, 0, &end, NULL, 0));
		});
		settle(pid);
		long rc = futex(i < 3 ? x : at[i], i == 4 ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, 1, NULL, NULL, 0);
		wait_for(pid);
		num("wake", rc);
	}
	uint32_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *shared_ro = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	num("no access", futex(none, FUTEX_WAKE, 1, NULL, NULL, 0));
	num("no access, private", futex(none, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	num("read-only", futex(ro, FUTEX_WAKE, 1, NULL, NULL, 0));
	num("read-only, private", futex(ro, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	num("read-only, shared", futex(shared_ro, FUTEX_WAKE, 1, NULL, NULL, 0));
	num("read-only lock", futex(shared_ro, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	num("nothing there", futex((void *)16, FUTEX_WAKE, 1, NULL, NULL, 0));
	num("nothing there, private", futex((void *)16, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	num("read-only, wake op", futex(word, FUTEX_WAKE_OP, 1, (void *)1, shared_ro, 0));
	num("read-only, requeue", futex(word, FUTEX_REQUEUE, 1, (void *)1, shared_ro, 0));

	// A word of a page that a file's end has left.
	z[1024] = 0;
	x[0] = 0;
	ftruncate(fd, 4096);
	num("truncated, shared: wake", futex(x, FUTEX_WAKE, 1, NULL, NULL, 0));
	num("wait", futex(x, FUTEX_WAIT, 0, NULL, NULL, 0));
	num("lock", futex(x, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	num("private flag, wake", futex(x, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	num("private flag, wait", futex(x, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
}

TEST(conditions, "shared condition variables and barriers")
{
	prepare();
	struct {
		pthread_mutex_t m;
		pthread_cond_t c;
		pthread_barrier_t b;
		pthread_rwlock_t rw;
		int turn;
	} *s = shared(4096);
	pthread_mutexattr_t ma;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setprotocol(&ma, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&s->m, &ma);
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&s->c, &ca);
	pthread_barrierattr_t ba;
	pthread_barrierattr_init(&ba);
	pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&s->b, &ba, 3);
	pid_t pid[3];
	for (int i = 0; i < 3; i++)
		pid[i] = FORK({
			for (int round = 0; round < 20; round++) {
				pthread_mutex_lock(&s->m);
				while (s->turn % 3 != i)
					pthread_cond_wait(&s->c, &s->m);
				s->turn++;
				pthread_cond_broadcast(&s->c);
				pthread_mutex_unlock(&s->m);
			}
			pthread_barrier_wait(&s->b);
		});
	for (int i = 0; i < 3; i++)
		status("child", wait_for(pid[i]));
	say("turns %d", s->turn);
}

static void become(int priority)
{
	struct sched_param p = {priority};
	sched_setscheduler(0, SCHED_FIFO, &p);
}

static void on_first_cpu(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
}

// spin_until_locked keeps the processor until somebody has what they want, or for half a
// second of processor time. It returns whether they got it.
static int spin_until(atomic_int *got)
{
	struct timespec used;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (!*got && used.tv_sec == 0 && used.tv_nsec < 500000000);
	return *got;
}

// inversion: a thread of priority 30 wants a lock of one of 10, over a chain of others, while
// one of 20 does not give up their processor.
static int inversion(int chain)
{
	atomic_int *owns = (atomic_int *)(word + 200), *got = owns + 64, *go = owns + 65;
	pid_t pid[8];
	memset((void *)word, 0, 1024);
	on_first_cpu(), become(40);
	for (int i = 0; i < chain; i++) {
		pid[i] = FORK(become(10 + i); futex(word + i, FUTEX_LOCK_PI, 0, NULL, NULL, 0); owns[i] = 1;
			      if (i > 0) futex(word + i - 1, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
			      else while (!*go) usleep(1000);
			      if (i > 0) futex(word + i - 1, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
			      futex(word + i, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
		while (!owns[i])
			usleep(1000);
		usleep(5000);
	}
	pid[chain] = FORK(become(30); futex(word + chain - 1, FUTEX_LOCK_PI, 0, NULL, NULL, 0); *got = 1;
			  futex(word + chain - 1, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	usleep(20000);
	*go = 1;
	pid_t spinner = fork();
	if (spinner == 0)
		become(20), _exit(spin_until(got));
	int status;
	waitpid(spinner, &status, 0);
	for (int i = 0; i <= chain; i++)
		waitpid(pid[i], NULL, 0);
	become(1);
	return WEXITSTATUS(status);
}

TEST(inherits, "an owner has the priority of who waits")
{
	prepare();
	num("one owner", inversion(1));
	num("through two", inversion(2));
	num("through five", inversion(5));
}

TEST(priorities, "who is woken and who gets the lock, by priority")
{
	static const int priorities[] = {10, 30, 20, 30, 5};
	prepare();
	atomic_int *n = (atomic_int *)(word + 200), *order = n + 1;
	on_first_cpu(), become(50);
	for (int pi = 0; pi < 2; pi++) {
		pid_t pid[5];
		memset((void *)word, 0, 1024);
		if (pi)
			futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
		for (int i = 0; i < 5; i++) {
			pid[i] = FORK(become(priorities[i]); futex(word, pi ? FUTEX_LOCK_PI : FUTEX_WAIT, 0, NULL, NULL, 0);
				      order[(*n)++] = i; if (pi) futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
			usleep(30000);
		}
		if (pi)
			futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
		for (int i = 0; i < 5; i++) {
			if (!pi)
				futex(word, FUTEX_WAKE, 1, NULL, NULL, 0);
			while (*n <= i)
				usleep(1000);
		}
		for (int i = 0; i < 5; i++)
			waitpid(pid[i], NULL, 0), say("%s: %d", pi ? "locks" : "wakes", order[i]);
	}
	become(1);
}
