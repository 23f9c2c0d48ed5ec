// Program threads tests clone, futexes, robust lists and thread exit.
#include "gt.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/rseq.h>

enum { page = 4096 };

static long futex(void *at, int op, uint32_t val, const void *timeout, void *at2, uint32_t val3)
{
	return syscall(SYS_futex, at, op, val, timeout, at2, val3);
}

static uint32_t word, word2;
static atomic_int woken, started;

static void *waiter(void *arg)
{
	started++;
	long rc = futex(&word, FUTEX_WAIT_PRIVATE, (uint32_t)(long)arg, NULL, NULL, 0);
	if (rc == 0)
		woken++;
	return NULL;
}

TEST(waking, "futex wait and wake")
{
	pthread_t th[5];
	num("nobody waits", futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	err("another value", futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
	for (int i = 0; i < 5; i++)
		pthread_create(&th[i], NULL, waiter, NULL);
	until(started == 5);
	settle_threads();
	num("wake 2", futex(&word, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0));
	until(woken == 2);
	sleep_ms(20);
	say("woken %d", woken);
	num("wake all", futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0));
	for (int i = 0; i < 5; i++)
		pthread_join(th[i], NULL);
	say("woken %d", woken);
}

TEST(timeouts, "futex time-outs")
{
	struct timespec ts = {0, 30000000};
	long long t = now_ms();
	err("relative", futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
	say("it took that: %d", now_ms() - t >= 29);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += 30000000;
	if (ts.tv_nsec >= 1000000000)
		ts.tv_sec++, ts.tv_nsec -= 1000000000;
	t = now_ms();
	err("absolute", futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, FUTEX_BITSET_MATCH_ANY));
	say("it took that: %d", now_ms() - t >= 28);
	ts = (struct timespec){1, 0};
	err("past", futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, FUTEX_BITSET_MATCH_ANY));
	err("past, real time", futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &ts, NULL, FUTEX_BITSET_MATCH_ANY));
	ts = (struct timespec){0, 2000000000};
	err("bad time", futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
	ts = (struct timespec){-1, 0};
	err("negative time", futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
	err("wild time", futex(&word, FUTEX_WAIT_PRIVATE, 0, (void *)8, NULL, 0));
}

static void *bit_waiter(void *arg)
{
	started++;
	futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(long)arg);
	woken += (int)(long)arg;
	return NULL;
}

TEST(bitsets, "futex bit sets")
{
	pthread_t th[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, bit_waiter, (void *)(1L << i));
	until(started == 3);
	settle_threads();
	num("wake the second", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 2));
	until(woken == 2);
	say("sum %d", woken);
	num("wake no one", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 8));
	num("wake the others", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 5));
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	say("sum %d", woken);
	err("empty set", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 0));
	err("empty wait set", futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0));
}

TEST(requeues, "futex requeue and wake-op")
{
	pthread_t th[6];
	for (int i = 0; i < 6; i++)
		pthread_create(&th[i], NULL, waiter, NULL);
	until(started == 6);
	settle_threads();
	err("compare fails", futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)3, &word2, 99));
	num("wake one, move three", futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)3, &word2, 0));
	until(woken == 1);
	num("at the new place", futex(&word2, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	num("at the old place", futex(&word, FUTEX_REQUEUE_PRIVATE, 1, (void *)10, &word2, 0));
	num("the last", futex(&word2, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	for (int i = 0; i < 6; i++)
		pthread_join(th[i], NULL);
	say("woken %d", woken);
	word2 = 5;
	num("wake-op", futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &word2, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5)));
	say("the word became %u", word2);
	err("bad wake-op", futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &word2, 0xf0000000));
	err("negative count", futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, (uint32_t)-1, (void *)1, &word2, 0));
}

TEST(bad, "futex errors")
{
	err("unaligned", futex((char *)&word + 1, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	err("null", futex(NULL, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	err("kernel", futex((void *)0xffffffff80200000, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	err("kernel, shared", futex((void *)0xffffffff80200000, FUTEX_WAKE, 1, NULL, NULL, 0));
	err("not canonical", futex((void *)0x8000000000000000, FUTEX_WAIT, 0, NULL, NULL, 0));
	err("unknown", futex(&word, 99, 0, NULL, NULL, 0));
	char *ro = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec ts = {0, 1000000};
	err("wait on a read-only page", futex(ro, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
	munmap(ro, page);
	err("wait on an unmapped page", futex(ro, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
}

TEST(sharing, "futexes between processes")
{
	uint32_t *s = shared(page);
	int fd = (int)must(open("f", O_CREAT | O_RDWR, 0644), "open");
	must(ftruncate(fd, page), "ftruncate");
	uint32_t *f = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint32_t *places[] = {s, f};
	for (int i = 0; i < 2; i++) {
		pid_t pid = FORK({
			uint32_t *w = places[i];
			if (i == 1) // another mapping of the same file
				w = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			while (*(volatile uint32_t *)w == 0)
				futex(w, FUTEX_WAIT, 0, NULL, NULL, 0);
		});
		settle(pid);
		*places[i] = 1;
		num("wake", futex(places[i], FUTEX_WAKE, 1, NULL, NULL, 0));
		status("child", wait_for(pid));
	}
	// A private futex is private: the parent cannot wake the child.
	uint32_t *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*p = 0;
	pid_t pid = FORK({
		struct timespec ts = {0, 300000000};
		err("child", futex(p, FUTEX_WAIT, 0, &ts, NULL, 0));
	});
	settle(pid);
	num("wake another's memory", futex(p, FUTEX_WAKE, 1, NULL, NULL, 0));
	wait_for(pid);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counter;
static sem_t sem;
static pthread_barrier_t barrier;

static void *count(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
	}
	pthread_barrier_wait(&barrier);
	sem_post(&sem);
	return arg;
}

static void *consumer(void *arg)
{
	pthread_mutex_lock(&lock);
	while (counter == 0)
		pthread_cond_wait(&cond, &lock);
	counter--;
	pthread_mutex_unlock(&lock);
	return arg;
}

TEST(library, "mutex, condition, semaphore, barrier")
{
	pthread_t th[6];
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&th[i], NULL, count, NULL);
	for (int i = 0; i < 4; i++)
		sem_wait(&sem);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	say("counted %ld", counter);
	counter = 0;
	for (int i = 0; i < 6; i++)
		pthread_create(&th[i], NULL, consumer, NULL);
	for (int i = 0; i < 6; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&cond);
	}
	pthread_cond_broadcast(&cond);
	for (int i = 0; i < 6; i++)
		pthread_join(th[i], NULL);
	say("left %ld", counter);
}

TEST(robust, "robust mutexes")
{
	pthread_mutex_t *m = shared(page);
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(m, &a);
	IN_CHILD("dies with the lock", pthread_mutex_lock(m));
	say("lock: %s", name_of(pthread_mutex_lock(m)));
	say("consistent: %s", name_of(pthread_mutex_consistent(m)));
	pthread_mutex_unlock(m);
	say("lock: %s", name_of(pthread_mutex_lock(m)));
	pthread_mutex_unlock(m);
	int fd[2];
	must(pipe(fd), "pipe");
	pid_t pid = FORK({
		pthread_mutex_lock(m);
		must(write(fd[1], "l", 1), "write");
		pause();
	});
	char c;
	must(read(fd[0], &c, 1), "read");
	pid_t other = FORK(say("the waiter gets %s", name_of(pthread_mutex_lock(m))));
	settle(other);
	kill(pid, SIGKILL);
	wait_for(pid);
	status("waiter", wait_for(other));
	err("a list of a bad size", syscall(SYS_set_robust_list, &c, 7));
	IN_CHILD("a wild list", syscall(SYS_set_robust_list, 8, 24));
	IN_CHILD("a circular list", {
		static struct robust_list_head h;
		static struct robust_list a, b;
		h.list.next = &a, a.next = &b, b.next = &a;
		syscall(SYS_set_robust_list, &h, sizeof h);
	});
}

static char stack[4][65536] __attribute__((aligned(16)));

static int thread_body(void *arg)
{
	atomic_int *n = arg;
	(*n)++;
	while (*n < 100)
		sched_yield();
	return 0;
}

TEST(clones, "raw clone")
{
	static atomic_int n;
	static pid_t ptid, ctid = 77;
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	int tid = clone(thread_body, stack[0] + sizeof stack[0], flags, &n, &ptid, NULL, &ctid);
	say("a thread: %d, parent word %d", tid > 0, ptid == tid);
	until(n == 1);
	say("it has the same pid: tgkill %ld", syscall(SYS_tgkill, getpid(), tid, 0));
	err("it cannot be waited for", waitpid(tid, NULL, __WALL));
	n = 100;
	struct timespec ts = {5, 0};
	while (*(volatile pid_t *)&ctid != 0)
		if (futex(&ctid, FUTEX_WAIT, 77, &ts, NULL, 0) == -1 && errno == ETIMEDOUT)
			break;
	say("its end clears the word and wakes: %d", ctid);
	until(syscall(SYS_tgkill, getpid(), tid, 0) == -1);
	err("it is gone", syscall(SYS_tgkill, getpid(), tid, 0));
	n = 0;
	pid_t pid = clone(thread_body, stack[1] + sizeof stack[1], CLONE_VM | SIGCHLD, &n);
	until(n == 1);
	n = 100;
	status("a process in our memory", wait_for(pid));
	err("threads without shared handlers", clone(thread_body, stack[2] + sizeof stack[2], CLONE_VM | CLONE_THREAD, &n));
	err("settid", syscall(SYS_set_tid_address, NULL) > 0 ? 0 : -1);
}

static void *quick(void *arg) { return arg; }

TEST(many, "many threads")
{
	int bad = 0;
	for (int i = 0; i < 1000; i++) {
		pthread_t th;
		void *got;
		bad += pthread_create(&th, NULL, quick, (void *)(long)i) != 0;
		bad += pthread_join(th, &got) != 0 || got != (void *)(long)i;
	}
	say("1000 one by one, %d bad", bad);
	pthread_t th[100];
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	started = 0;
	for (int i = 0; i < 100; i++)
		bad += pthread_create(&th[i], &a, waiter, NULL) != 0;
	until(started == 100);
	settle_threads();
	num("wake 100", futex(&word, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0));
	for (int i = 0; i < 100; i++)
		pthread_join(th[i], NULL);
	say("bad %d", bad);
}

static __thread int tls = 5;

static void *tls_thread(void *arg)
{
	tls += (int)(long)arg;
	sched_yield();
	return (void *)(long)tls;
}

TEST(locals, "thread-local storage and rseq")
{
	pthread_t th[4];
	int sum = 0;
	for (long i = 0; i < 4; i++)
		pthread_create(&th[i], NULL, tls_thread, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *r;
		pthread_join(th[i], &r);
		sum = sum * 10 + (int)(long)r;
	}
	say("each has its own: %d, ours %d", sum, tls);
	long fs;
	err("arch_prctl", syscall(SYS_arch_prctl, 0x1003, &fs));
	say("FS points at itself: %d", *(long *)fs == fs);
	err("FS into the kernel", syscall(SYS_arch_prctl, 0x1002, 0xffffffff80200000));
	err("FS not canonical", syscall(SYS_arch_prctl, 0x1002, 0x8000000000000000));
	err("bad code", syscall(SYS_arch_prctl, 1, 0));
	err("GS", syscall(SYS_arch_prctl, 0x1001, &fs));
	long got;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
	say("read through GS: %d", got == fs);
	sleep_ms(10);
	__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
	say("and after a switch: %d", got == fs);
	if (__rseq_size > 0) {
		struct rseq *r = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
		say("rseq names our processor: %d", r->cpu_id == (unsigned)sched_getcpu());
	} else {
		say("rseq names our processor: 1");
	}
}
