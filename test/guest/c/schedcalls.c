// Calls about scheduling: what sched_setattr, ioprio_set, setpriority and the masks
// accept, and from whom. Each test starts from an ordinary process.
#include "gt.h"

#include <grp.h>

// attr is struct sched_attr, with room for what a later kernel might add.
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t clamp_min, clamp_max;
	uint64_t more[8];
};

enum { reset = 1, keep_policy = 8, keep_params = 16, clamp = 32 };

static long set(pid_t pid, struct attr *a, unsigned flags)
{
	return syscall(SYS_sched_setattr, pid, a, flags);
}

static void show(const char *what)
{
	struct attr a = {0};
	long rc = syscall(SYS_sched_getattr, 0, &a, sizeof a, 0);
	say("%s: %ld: size %u policy %u flags %#lx nice %d priority %u", what, rc, a.size, a.policy, (long)a.flags, a.nice, a.priority);
}

static void as_user(uid_t uid)
{
	must(setgroups(0, NULL), "setgroups");
	must(setresgid(uid, uid, uid), "setresgid");
	must(setresuid(uid, uid, uid), "setresuid");
}

static void limit(int what, rlim_t n)
{
	struct rlimit r = {n, n};
	must(setrlimit(what, &r), "setrlimit");
}

TEST(sizes, "sched_setattr and sched_getattr by size")
{
	static const uint32_t sizes[] = {0, 1, 4, 47, 48, 49, 52, 55, 56, 57, 64, 120, 4096, 4097, 0xffffffff};
	char *page = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 15; i++) {
		struct attr *a = (void *)page;
		memset(page, 0, 8192);
		a->size = sizes[i], a->nice = 1;
		say("size %u", sizes[i]);
		err("set", set(0, a, 0)), num("size now", a->size);
		memset(page, 0, 8192);
		a->size = sizes[i], page[60] = 1;
		err("set with a byte at 60", set(0, a, 0)), num("size now", a->size);
		memset(page, 7, 8192);
		err("get", syscall(SYS_sched_getattr, 0, a, sizes[i], 0));
		say("%u %d %d", a->size, page[48], page[56]);
	}
	must(mprotect(page + 8192, 4096, PROT_NONE), "mprotect");
	struct attr *last = (void *)(page + 8192 - 48);
	memset(last, 0, 48);
	last->size = 48, err("48 bytes before a hole", set(0, last, 0));
	last->size = 56, err("56 there", set(0, last, 0)), num("size now", last->size);
	last->size = 0, err("0 there", set(0, last, 0));
	err("get 48 there", syscall(SYS_sched_getattr, 0, last, 48, 0));
	err("get 56 there", syscall(SYS_sched_getattr, 0, last, 56, 0));
	err("null", set(0, NULL, 0));
	err("nowhere", set(0, (void *)8, 0));
	err("get null", syscall(SYS_sched_getattr, 0, NULL, 48, 0));
	memset(last, 0, 48);
	err("flags", set(0, last, 1)), err("pid -1", set(-1, last, 0)), err("nobody", set(0x3fffff, last, 0));
	err("get, flags", syscall(SYS_sched_getattr, 0, page, 48, 1));
	err("get, pid -1", syscall(SYS_sched_getattr, -1, page, 48, 0));
	err("get, nobody", syscall(SYS_sched_getattr, 0x3fffff, page, 48, 0));
}

TEST(flags, "sched_setattr with each policy and flag")
{
	static const uint64_t flags[] = {0, reset, 2, 4, keep_policy, keep_params, keep_policy | keep_params, 128, 1ULL << 32,
		keep_policy | reset, keep_params | reset, keep_policy | keep_params | reset};
	static const int nices[] = {0, -20, 19, -21, 20, 1000};
	for (int from = 0; from < 3; from++)
		for (int policy = -1; policy < 8; policy++)
			for (int f = 0; f < 12; f++)
				for (int priority = 0; priority <= 100; priority += 50) {
					struct attr a = {.size = 48, .policy = from, .priority = from ? 9 : 0, .nice = from ? 0 : 3};
					if (policy == 6)
						continue; // SCHED_DEADLINE is not built
					IN_CHILD("end", {
						set(0, &a, 0);
						a.policy = policy, a.flags = flags[f], a.priority = priority, a.nice = 5;
						say("from %d to %d, flags %#lx, priority %d", from, policy, (long)flags[f], priority);
						err("set", set(0, &a, 0)), show("now");
					});
				}
	for (int i = 0; i < 6; i++) {
		struct attr a = {.size = 48, .nice = nices[i]};
		err("nice", set(0, &a, 0)), show("now");
	}
	static const int policies[] = {0, 1, 2, 3, 4, 5, -1, 0x40000000, 0x40000001, 0x40000003};
	for (int i = 0; i < 10; i++) {
		struct attr a = {.size = 48, .policy = policies[i], .priority = 1};
		struct sched_param p = {1};
		say("policy %#x", policies[i]);
		err("setattr", set(0, &a, 0)), show("now");
		err("setscheduler", syscall(SYS_sched_setscheduler, 0, policies[i], &p)), show("now");
		err("max", sched_get_priority_max(policies[i])), err("min", sched_get_priority_min(policies[i]));
	}
}

TEST(user, "a user's sched_setattr and setpriority, by limit")
{
	static const int limits[][2] = {{0, 0}, {0, 20}, {0, 25}, {0, 40}, {10, 0}, {10, 25}};
	for (int l = 0; l < 6; l++)
		for (int policy = 0; policy < 6; policy++)
			for (int value = -10; value <= 20; value += 10)
				IN_CHILD("end", {
					struct attr a = {.size = 48, .policy = policy, .nice = value};
					if (policy == 1 || policy == 2)
						a.priority = value + 15;
					limit(RLIMIT_RTPRIO, limits[l][0]), limit(RLIMIT_NICE, limits[l][1]);
					as_user(1000);
					say("limits %d and %d, policy %d, value %d", limits[l][0], limits[l][1], policy, value);
					err("set", set(0, &a, 0)), show("now");
					a.flags = reset, err("with reset", set(0, &a, 0)), show("now");
					a.flags = 0, err("without", set(0, &a, 0)), show("now");
					err("setpriority", setpriority(PRIO_PROCESS, 0, value)), show("now");
					a.policy = 5, a.nice = 0, a.priority = 0, err("to idle", set(0, &a, 0)), show("now");
					a.policy = 3, err("to batch", set(0, &a, 0)), show("now");
					a.policy = 0, a.nice = 5, err("to other", set(0, &a, 0)), show("now");
				});
}

TEST(io, "I/O priorities")
{
	static const int levels[] = {0, 1, 7, 8, 9, 64, 0x1000, 0x1fff};
	for (int class = 0; class < 9; class++)
		for (int i = 0; i < 8; i++) {
			say("class %d level %d", class, levels[i]);
			err("set", syscall(SYS_ioprio_set, 1, 0, class << 13 | levels[i]));
			num("get", syscall(SYS_ioprio_get, 1, 0));
			num("the group's", syscall(SYS_ioprio_get, 2, 0));
		}
	for (int which = -1; which < 5; which++) {
		say("which %d", which);
		err("set, nobody", syscall(SYS_ioprio_set, which, 0x3fffff, 2 << 13 | 4));
		err("get, nobody", syscall(SYS_ioprio_get, which, 0x3fffff));
		err("set, nobody, bad", syscall(SYS_ioprio_set, which, 0x3fffff, 5 << 13));
	}
	syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6);
	IN_CHILD("inherited", num("get", syscall(SYS_ioprio_get, 1, 0)));
	syscall(SYS_ioprio_set, 1, 0, 0);
	static const int nices[] = {-20, -1, 0, 4, 5, 19};
	for (int i = 0; i < 6; i++) {
		setpriority(PRIO_PROCESS, 0, nices[i]);
		num("by nice", syscall(SYS_ioprio_get, 1, 0)), num("of the group", syscall(SYS_ioprio_get, 2, 0));
	}
	IN_CHILD("end", {
		as_user(1000);
		for (int class = 0; class < 5; class++)
			err("a user's", syscall(SYS_ioprio_set, 1, 0, class << 13 | 1));
		err("of init", syscall(SYS_ioprio_set, 1, 1, 2 << 13 | 1));
		err("init's", syscall(SYS_ioprio_set, 3, 0, 2 << 13 | 1));
	});
}

TEST(groups, "getpriority and setpriority by group and user")
{
	int go[2], ready[2];
	must(pipe(go), "pipe"), must(pipe(ready), "pipe");
	pid_t pid[3];
	for (int i = 0; i < 3; i++)
		pid[i] = FORK({
			setpgid(0, 0), setpriority(PRIO_PROCESS, 0, 3 + i);
			as_user(41000 + (i > 0));
			char c = 0;
			close(go[1]), must(write(ready[1], &c, 1), "write"), (void)!read(go[0], &c, 1);
		});
	for (int i = 0; i < 3; i++) {
		char c;
		must(read(ready[0], &c, 1), "read");
	}
	for (int i = 0; i < 3; i++)
		num("of the group", getpriority(PRIO_PGRP, pid[i]));
	num("of a user", getpriority(PRIO_USER, 41000)), num("of the other", getpriority(PRIO_USER, 41001));
	err("of nobody", getpriority(PRIO_USER, 41002)), err("no group", getpriority(PRIO_PGRP, 0x3fffff));
	err("which 3", getpriority(3, 0)), err("which -1", getpriority(-1, 0)), err("set, which 3", setpriority(3, 0, 0));
	err("set a user's", setpriority(PRIO_USER, 41001, 9));
	for (int i = 0; i < 3; i++)
		num("now", getpriority(PRIO_PROCESS, pid[i]));
	IN_CHILD("end", {
		as_user(41001);
		err("one's own", setpriority(PRIO_USER, 0, 11)), err("another's", setpriority(PRIO_USER, 41000, 12));
		err("better", setpriority(PRIO_USER, 0, 4)), err("a group", setpriority(PRIO_PGRP, pid[1], 13));
		err("another's group", setpriority(PRIO_PGRP, pid[0], 13)), err("another", setpriority(PRIO_PROCESS, pid[0], 13));
		err("nobody", setpriority(PRIO_USER, 41002, 13));
		struct attr a = {.size = 48, .policy = 3, .nice = 15};
		err("setattr of one's own", set(pid[1], &a, 0)), err("of another's", set(pid[0], &a, 0));
		unsigned long m = 1;
		err("mask of one's own", syscall(SYS_sched_setaffinity, pid[1], 8, &m));
		err("of another's", syscall(SYS_sched_setaffinity, pid[0], 8, &m));
		num("ask another's", syscall(SYS_sched_getaffinity, pid[0], 8, &m));
	});
	for (int i = 0; i < 3; i++)
		num("at last", getpriority(PRIO_PROCESS, pid[i]));
	close(go[1]), close(go[0]);
	for (int i = 0; i < 3; i++)
		wait_for(pid[i]);
}

TEST(masks, "masks without online CPUs, and of odd sizes")
{
	unsigned long m[16] = {0};
	err("none", syscall(SYS_sched_setaffinity, 0, 8, m));
	m[0] = 1UL << 63, err("offline", syscall(SYS_sched_setaffinity, 0, 8, m));
	m[0] = 1UL << 63 | 1, err("one of two", syscall(SYS_sched_setaffinity, 0, 8, m));
	m[0] = 0, num("get", syscall(SYS_sched_getaffinity, 0, 8, m)), num("mask", m[0]);
	m[0] = 0, m[1] = 1, err("beyond", syscall(SYS_sched_setaffinity, 0, 16, m));
	m[0] = 1, err("size 0", syscall(SYS_sched_setaffinity, 0, 0, m)), err("size 1", syscall(SYS_sched_setaffinity, 0, 1, m));
	err("size 3", syscall(SYS_sched_setaffinity, 0, 3, m)), err("size 128", syscall(SYS_sched_setaffinity, 0, 128, m));
	err("nowhere", syscall(SYS_sched_setaffinity, 0, 8, 8)), err("nobody", syscall(SYS_sched_setaffinity, 0x3fffff, 8, m));
	err("pid -1", syscall(SYS_sched_setaffinity, -1, 8, m));
	err("get, size 0", syscall(SYS_sched_getaffinity, 0, 0, m)), err("get, size 7", syscall(SYS_sched_getaffinity, 0, 7, m));
	err("get, nowhere", syscall(SYS_sched_getaffinity, 0, 8, 8)), err("get, nobody", syscall(SYS_sched_getaffinity, 0x3fffff, 8, m));
	err("get, pid -1", syscall(SYS_sched_getaffinity, -1, 8, m));
	IN_CHILD("inherited", m[0] = 0; syscall(SYS_sched_getaffinity, 0, 8, m); num("mask", m[0]));
}

TEST(rr, "sched_getparam, sched_setparam and others, wrong arguments")
{
	struct sched_param p = {0};
	err("setparam", sched_setparam(0, &p)), err("null", syscall(SYS_sched_setparam, 0, 0)), err("nowhere", syscall(SYS_sched_setparam, 0, 8));
	err("pid -1", syscall(SYS_sched_setparam, -1, &p)), err("nobody", syscall(SYS_sched_setparam, 0x3fffff, &p));
	err("get, null", syscall(SYS_sched_getparam, 0, 0)), err("nowhere", syscall(SYS_sched_getparam, 0, 8));
	err("pid -1", syscall(SYS_sched_getparam, -1, &p)), err("nobody", syscall(SYS_sched_getparam, 0x3fffff, &p));
	err("-1, null", syscall(SYS_sched_getparam, -1, 0)), err("set -1, null", syscall(SYS_sched_setparam, -1, 0));
	err("scheduler of -1", syscall(SYS_sched_getscheduler, -1)), err("of nobody", syscall(SYS_sched_getscheduler, 0x3fffff));
	err("set, null", syscall(SYS_sched_setscheduler, 0, 0, 0)), err("nowhere", syscall(SYS_sched_setscheduler, 0, 0, 8));
	err("policy -1", syscall(SYS_sched_setscheduler, 0, -1, &p)), err("pid -1", syscall(SYS_sched_setscheduler, -1, 0, &p));
	err("nobody, policy 77", syscall(SYS_sched_setscheduler, 0x3fffff, 77, &p));
	p.sched_priority = 1, err("priority 1", sched_setparam(0, &p)), p.sched_priority = -1, err("priority -1", sched_setparam(0, &p));
	struct timespec t;
	err("interval of nobody", syscall(SYS_sched_rr_get_interval, 0x3fffff, &t)), err("of -1", syscall(SYS_sched_rr_get_interval, -1, &t));
	err("null", syscall(SYS_sched_rr_get_interval, 0, 0));
}
