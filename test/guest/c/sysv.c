// System V shared memory, semaphores and message queues: who may do what, sizes,
// commands, waiting.
#include "gt.h"
#include <grp.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

union semun {
	int val;
	void *buf;
};

typedef struct {
	long type;
	char text[8192];
} message;

static const char *result(long rc) { return rc == -1 ? name_of(errno) : "ok"; }

// become makes the process uid and gid without privilege.
static void become(int uid, int gid)
{
	must(setgroups(0, NULL), "setgroups");
	must(setresgid(gid, gid, gid), "setresgid");
	must(setresuid(uid, uid, uid), "setresuid");
}

static int key_of(int kind) { return 0x68740000 | kind << 12 | (getpid() & 0xfff); }

static long make(int kind, int key, int flags)
{
	return kind == 0 ? shmget(key, 4096, flags) : kind == 1 ? semget(key, 2, flags) : msgget(key, flags);
}

static long control(int kind, int id, int cmd, void *arg)
{
	return kind == 0 ? syscall(SYS_shmctl, id, cmd, arg) : kind == 1 ? syscall(SYS_semctl, id, 0, cmd, arg) : syscall(SYS_msgctl, id, cmd, arg);
}

static const char *kinds[] = {"shm", "sem", "msg"};

// uses prints what the present user may do with an object.
static void uses(int kind, int id, int key, const char *who, int mode)
{
	char line[900] = "", buf[1024];
	int at = 0;
#define DO(what, call) at += snprintf(line + at, sizeof line - at, " %s:%s", what, result(call))
	DO("stat", control(kind, id, IPC_STAT, buf));
	DO("get0", make(kind, key, 0));
	DO("get4", make(kind, key, 0444));
	DO("get2", make(kind, key, 0222));
	DO("get6", make(kind, key, 0666));
	switch (kind) {
	case 0:
		DO("at", (long)shmat(id, NULL, 0));
		DO("at ro", (long)shmat(id, NULL, SHM_RDONLY));
		DO("at exec", (long)shmat(id, NULL, SHM_EXEC));
		DO("lock", shmctl(id, SHM_LOCK, NULL));
		DO("unlock", shmctl(id, SHM_UNLOCK, NULL));
		break;
	case 1:
		DO("getval", semctl(id, 0, GETVAL));
		DO("getall", semctl(id, 0, GETALL, (union semun){.buf = buf}));
		DO("getpid", semctl(id, 0, GETPID));
		DO("setval", semctl(id, 0, SETVAL, (union semun){.val = 1}));
		memset(buf, 0, 16);
		DO("setall", semctl(id, 0, SETALL, (union semun){.buf = buf}));
		DO("add", semop(id, &(struct sembuf){0, 1, IPC_NOWAIT}, 1));
		DO("zero", semop(id, &(struct sembuf){1, 0, IPC_NOWAIT}, 1));
		break;
	case 2:
		DO("send", msgsnd(id, &(message){1}, 5, IPC_NOWAIT));
		DO("receive", msgrcv(id, &(message){1}, 5, 0, IPC_NOWAIT));
	}
	say("%s %03o %s:%s", kinds[kind], mode, who, line);
}

static void matrix(int kind)
{
	static const int modes[] = {0, 0400, 0200, 0600, 0100, 0040, 0020, 0060, 0004, 0002, 0006, 0466, 0640, 0666, 0777};
	static const struct {
		const char *who;
		int uid, gid;
	} users[] = {{"owner", 1000, 1000}, {"group", 1001, 1000}, {"other", 1002, 1002}};
	for (int m = 0; m < (int)(sizeof modes / sizeof *modes); m++) {
		int key = key_of(kind), *id = shared(4096);
		wait_for(FORK(become(1000, 1000); *id = must(make(kind, key, modes[m] | IPC_CREAT | IPC_EXCL), "make")));
		for (int u = 0; u < 3; u++)
			wait_for(FORK(become(users[u].uid, users[u].gid); uses(kind, *id, key, users[u].who, modes[m])));
		uses(kind, *id, key, "root", modes[m]);
		must(control(kind, *id, IPC_RMID, NULL), "remove");
	}
}

TEST(shm_rights, "shared memory: who may do what") { matrix(0); }
TEST(sem_rights, "semaphores: who may do what") { matrix(1); }
TEST(msg_rights, "message queues: who may do what") { matrix(2); }

// Commands of each kind, good and bad, on good and bad ids and addresses.
static void commands(int kind)
{
	int id = must(make(kind, IPC_PRIVATE, 0600), "make"), gone = must(make(kind, IPC_PRIVATE, 0600), "make");
	must(control(kind, gone, IPC_RMID, NULL), "remove");
	char *buf = shared(4096);
	for (int cmd = -1; cmd < 22; cmd++) {
		static const char *names[] = {"id", "gone", "-1", "-2", "large"};
		int ids[] = {id, gone, -1, -2, 0x7fffffff};
		for (int i = 0; i < 5; i++) {
			if (i == 0 && (cmd == IPC_RMID || cmd >= 11 && cmd <= 20 && !(kind == 0 && cmd == IPC_INFO) && !(kind == 1 && cmd >= GETPID && cmd <= SETALL)))
				continue; // what takes an index instead is in another test
			control(kind, id, IPC_STAT, buf); // for IPC_SET and SETALL
			if (kind == 1 && cmd == SETALL)
				memset(buf, 0, 16);
			long rc = control(kind, ids[i], cmd, buf), error = errno;
			long bad = control(kind, ids[i], cmd, (void *)16);
			say("%s command %d of %s: %s, bad address %s", kinds[kind], cmd, names[i], rc == -1 ? name_of(error) : "ok", result(bad));
		}
	}
	control(kind, id, IPC_RMID, NULL);
	say("%s again: %s", kinds[kind], result(control(kind, id, IPC_RMID, NULL)));
}

TEST(shm_commands, "shared memory: commands") { commands(0); }
TEST(sem_commands, "semaphores: commands") { commands(1); }
TEST(msg_commands, "message queues: commands") { commands(2); }

TEST(get, "get: flags, keys, sizes")
{
	for (int kind = 0; kind < 3; kind++) {
		int key = key_of(kind);
		say("%s none: %s", kinds[kind], result(make(kind, key, 0600)));
		say("%s excl alone: %s", kinds[kind], result(make(kind, key, 0600 | IPC_EXCL)));
		int id = num("create", make(kind, key, 0600 | IPC_CREAT) < 0 ? -1 : 0);
		say("%s exists: %s", kinds[kind], result(make(kind, key, 0600 | IPC_CREAT | IPC_EXCL)));
		say("%s excl without creat: %s", kinds[kind], result(make(kind, key, 0600 | IPC_EXCL)));
		say("%s again: %s", kinds[kind], result(make(kind, key, 0600 | IPC_CREAT)));
		say("%s unknown flags: %s", kinds[kind], result(make(kind, key, 0600 | 0x10000)));
		must(control(kind, make(kind, key, 0), IPC_RMID, NULL), "remove");
		int p = make(kind, IPC_PRIVATE, 0), q = make(kind, IPC_PRIVATE, IPC_EXCL);
		say("%s private: %s", kinds[kind], p >= 0 && q >= 0 && p != q ? "two" : "?");
		control(kind, p, IPC_RMID, NULL), control(kind, q, IPC_RMID, NULL);
	}
	static const long sizes[] = {0, 1, 4095, 4097, -1, LONG_MIN, 1L << 40};
	for (int i = 0; i < 7; i++) {
		int id = shmget(IPC_PRIVATE, sizes[i], 0600);
		say("shmget %ld: %s", sizes[i], result(id));
		struct shmid_ds d;
		if (id >= 0 && shmctl(id, IPC_STAT, &d) == 0)
			say("size %ld, attached %ld", (long)d.shm_segsz, (long)d.shm_nattch);
		if (id >= 0)
			shmctl(id, IPC_RMID, NULL);
	}
	int key = key_of(3), id = must(shmget(key, 4096, IPC_CREAT | 0600), "shmget");
	num("smaller", shmget(key, 100, 0) == id), err("larger", shmget(key, 4097, 0)), num("0", shmget(key, 0, 0) == id);
	err("larger, excl", shmget(key, 9000, IPC_CREAT | IPC_EXCL | 0600));
	err("hugetlb", shmget(IPC_PRIVATE, 4096, SHM_HUGETLB | 0600) < 0 && (errno == ENOMEM || errno == EINVAL || errno == EPERM) ? 0 : -1);
	shmctl(id, IPC_RMID, NULL);
	static const int counts[] = {0, -1, 1, 32000, 32001, INT_MIN};
	for (int i = 0; i < 6; i++) {
		int id = semget(IPC_PRIVATE, counts[i], 0600);
		say("semget %d: %s", counts[i], result(id));
		semctl(id, 0, IPC_RMID);
	}
	id = must(semget(key, 3, IPC_CREAT | 0600), "semget");
	num("fewer", semget(key, 2, 0) == id), err("more", semget(key, 4, 0)), num("0", semget(key, 0, 0) == id), err("-1", semget(key, -1, 0));
	semctl(id, 0, IPC_RMID);
}

TEST(attach, "shmat and shmdt")
{
	int id = must(shmget(IPC_PRIVATE, 8192, 0600), "shmget");
	struct shmid_ds d;
	char *p = shmat(id, NULL, 0);
	p[0] = 'x', p[8191] = 'y';
	char *q = shmat(id, NULL, SHM_RDONLY);
	say("%c%c", q[0], q[8191]);
	IN_CHILD("store to a read-only one", q[0] = 1);
	IN_CHILD("mprotect of it", err("mprotect", mprotect(q, 4096, PROT_READ | PROT_WRITE)));
	IN_CHILD("jump into one", ((void (*)(void))p)());
	shmctl(id, IPC_STAT, &d), num("attached", d.shm_nattch);
	wait_for(FORK(shmctl(id, IPC_STAT, &d); num("attached after fork", d.shm_nattch)));
	err("detach in the middle", shmdt(p + 4096));
	err("unaligned", shmdt(p + 1));
	err("detach", shmdt(p)), err("again", shmdt(p));
	shmctl(id, IPC_STAT, &d), num("attached", d.shm_nattch), num("last pid", d.shm_lpid == getpid()), num("creator", d.shm_cpid == getpid());
	char *hole = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err("at a mapping", (long)shmat(id, hole, 0));
	err("at a mapping, unaligned", (long)shmat(id, hole + 1, 0));
	num("at a mapping, rounded and remapped", (char *)shmat(id, hole + 4100, SHM_REMAP | SHM_RND) - hole);
	err("remap without address", (long)shmat(id, NULL, SHM_REMAP));
	munmap(hole, 1 << 20);
	shmctl(id, IPC_STAT, &d), num("attached after munmap", d.shm_nattch);
	num("at an address", (char *)shmat(id, hole, 0) - hole);
	munmap(hole, 4096);
	shmctl(id, IPC_STAT, &d), num("attached after half an munmap", d.shm_nattch);
	num("the rest", shmdt(hole));
	num("the rest by its own address", shmdt(hole + 4096));
	shmctl(id, IPC_STAT, &d), num("attached", d.shm_nattch);
	err("high", (long)shmat(id, (void *)-4096, 0));
	err("a bad id", (long)shmat(id + 1, NULL, 0)), err("-1", (long)shmat(-1, NULL, 0));
	err("unknown flags", (long)shmat(id, NULL, 1));
	err("mremap", (long)mremap(q, 8192, 4096, 0));
	shmctl(id, IPC_STAT, &d), num("attached", d.shm_nattch);
	err("remove", shmctl(id, IPC_RMID, NULL));
	say("still %c", q[0]);
	err("stat of what is to go", shmctl(id, IPC_STAT, &d));
	say("mode %o, key %d", d.shm_perm.mode, d.shm_perm.__key);
	err("attach what is to go", (long)(p = shmat(id, NULL, 0)));
	err("remove again", shmctl(id, IPC_RMID, NULL));
	shmdt(p), shmdt(q), munmap(q, 8192);
	err("stat of what has gone", shmctl(id, IPC_STAT, &d));
	id = must(shmget(IPC_PRIVATE, 4096, 0600), "shmget");
	wait_for(FORK(shmat(id, NULL, 0); execl("/proc/self/exe", "sysv", "child", NULL)));
	shmctl(id, IPC_STAT, &d), num("attached after exec", d.shm_nattch);
	struct shm_info info;
	struct shminfo limits;
	num("SHM_INFO", shmctl(0, SHM_INFO, (void *)&info) >= 0), num("used", info.used_ids >= 1);
	num("IPC_INFO", shmctl(0, IPC_INFO, (void *)&limits) >= 0), num("shmmin", limits.shmmin), num("shmmni", limits.shmmni), num("shmseg", limits.shmseg);
	int highest = shmctl(0, SHM_INFO, (void *)&info), found = 0, any = 0;
	for (int i = 0; i <= highest; i++)
		found += shmctl(i, SHM_STAT, &d) == id, any += shmctl(i, SHM_STAT_ANY, &d) == id;
	num("found", found), num("by SHM_STAT_ANY", any);
	d.shm_perm.uid = 7, d.shm_perm.gid = 8, d.shm_perm.mode = 07777777;
	err("IPC_SET", shmctl(id, IPC_SET, &d)), shmctl(id, IPC_STAT, &d);
	say("%d %d %o %d %d", d.shm_perm.uid, d.shm_perm.gid, d.shm_perm.mode, d.shm_perm.cuid, d.shm_perm.cgid);
	d.shm_perm.uid = -1;
	err("IPC_SET to -1", shmctl(id, IPC_SET, &d));
	err("SHM_LOCK", shmctl(id, SHM_LOCK, NULL)), shmctl(id, IPC_STAT, &d), say("%o", d.shm_perm.mode);
	err("SHM_UNLOCK", shmctl(id, SHM_UNLOCK, NULL)), shmctl(id, IPC_STAT, &d), say("%o", d.shm_perm.mode);
	shmctl(id, IPC_RMID, NULL);
}

int child_main(int argc, char **argv) { return 0; }

TEST(semops, "semaphore operations")
{
	int id = must(semget(IPC_PRIVATE, 3, 0600), "semget");
	struct {
		const char *what;
		int n;
		struct sembuf ops[3];
	} cases[] = {
		{"add", 1, {{0, 2, 0}}}, {"take", 1, {{0, -1, 0}}}, {"take too many", 1, {{0, -5, IPC_NOWAIT}}}, {"zero of what is not", 1, {{0, 0, IPC_NOWAIT}}},
		{"zero", 1, {{1, 0, IPC_NOWAIT}}}, {"too high a number", 1, {{3, 1, 0}}}, {"too high a number later", 2, {{0, 1, 0}, {3, 1, 0}}},
		{"all or nothing", 2, {{1, 1, 0}, {2, -1, IPC_NOWAIT}}}, {"one after another", 2, {{2, 1, 0}, {2, -1, IPC_NOWAIT}}},
		{"down, then up", 2, {{2, -1, IPC_NOWAIT}, {2, 1, 0}}}, {"most", 1, {{1, 32767, 0}}}, {"more than most", 1, {{1, 1, 0}}},
		{"more than most, without waiting", 1, {{1, 32767, IPC_NOWAIT}}}, {"undo", 1, {{2, 5, SEM_UNDO}}}, {"undo beyond its range", 1, {{2, 32767, SEM_UNDO}}},
		{"unknown flags", 1, {{2, 1, 0x4000}}}, {"undo down", 1, {{2, -3, SEM_UNDO}}}};
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		long rc = semop(id, cases[i].ops, cases[i].n);
		int e = errno;
		say("%s: %s; %d %d %d", cases[i].what, rc ? name_of(e) : "ok", semctl(id, 0, GETVAL), semctl(id, 1, GETVAL), semctl(id, 2, GETVAL));
	}
	err("none", semop(id, cases[0].ops, 0)), err("too many", semop(id, cases[0].ops, 501)), err("bad address", semop(id, (void *)8, 1));
	err("bad id", semop(-1, cases[0].ops, 1)), err("unknown id", semop(id + 1, cases[0].ops, 1));
	err("setval -1", semctl(id, 0, SETVAL, (union semun){.val = -1})), err("setval 32768", semctl(id, 0, SETVAL, (union semun){.val = 32768}));
	err("setval of 3", semctl(id, 3, SETVAL, (union semun){.val = 0})), err("getval of -1", semctl(id, -1, GETVAL)), err("getpid of 3", semctl(id, 3, GETPID));
	err("setall 32768", semctl(id, 0, SETALL, (union semun){.buf = (unsigned short[]){1, 32768, 1}}));
	num("pid", semctl(id, 0, GETPID) == getpid());
	struct timespec soon = {0, 30000000}, bad = {0, 1000000000}, negative = {-1, 0}, none = {0, 0};
	err("time-out", semtimedop(id, &(struct sembuf){0, -30000, 0}, 1, &soon)), err("none", semtimedop(id, &(struct sembuf){0, -30000, 0}, 1, &none));
	err("bad time", semtimedop(id, &(struct sembuf){0, -30000, 0}, 1, &bad)), err("negative", semtimedop(id, &(struct sembuf){0, -30000, 0}, 1, &negative));
	err("bad time without need", semtimedop(id, &(struct sembuf){0, 0, IPC_NOWAIT}, 1, &bad));
	semctl(id, 0, SETALL, (union semun){.buf = (unsigned short[]){0, 0, 5}});
	IN_CHILD("undo", must(semop(id, (struct sembuf[]){{0, 3, SEM_UNDO}, {2, -4, SEM_UNDO}, {1, 1, 0}}, 3), "semop"); say("%d %d %d", semctl(id, 0, GETVAL), semctl(id, 1, GETVAL), semctl(id, 2, GETVAL)));
	say("%d %d %d", semctl(id, 0, GETVAL), semctl(id, 1, GETVAL), semctl(id, 2, GETVAL));
	IN_CHILD("undo after setval", must(semop(id, &(struct sembuf){0, 3, SEM_UNDO}, 1), "semop"); semctl(id, 0, SETVAL, (union semun){.val = 9}));
	say("%d", semctl(id, 0, GETVAL));
	IN_CHILD("undo below zero", must(semop(id, &(struct sembuf){0, 3, SEM_UNDO}, 1), "semop"); must(semop(id, &(struct sembuf){0, -12, 0}, 1), "semop"));
	say("%d", semctl(id, 0, GETVAL));
	IN_CHILD("undo over exec", must(semop(id, &(struct sembuf){0, 3, SEM_UNDO}, 1), "semop"); execl("/proc/self/exe", "sysv", "child", NULL));
	say("%d", semctl(id, 0, GETVAL));
	pid_t p = FORK(err("waits", semop(id, &(struct sembuf){0, -5, 0}, 1)));
	settle(p);
	num("waiters", semctl(id, 0, GETNCNT)), num("for zero", semctl(id, 0, GETZCNT)), num("of another", semctl(id, 1, GETNCNT));
	semctl(id, 0, SETVAL, (union semun){.val = 5});
	status("woken", wait_for(p));
	semctl(id, 0, SETVAL, (union semun){.val = 1});
	p = FORK(err("waits for zero", semop(id, &(struct sembuf){0, 0, 0}, 1)));
	settle(p), num("for zero", semctl(id, 0, GETZCNT)), semop(id, &(struct sembuf){0, -1, 0}, 1);
	status("woken", wait_for(p));
	p = FORK(err("waits for two", semop(id, (struct sembuf[]){{0, -1, 0}, {1, -1, 0}}, 2)));
	semctl(id, 1, SETVAL, (union semun){.val = 0});
	settle(p), semop(id, &(struct sembuf){0, 1, 0}, 1), settle(p);
	num("one is not enough", semctl(id, 0, GETVAL)), num("waiters of 0", semctl(id, 0, GETNCNT)), num("waiters of 1", semctl(id, 1, GETNCNT));
	semop(id, &(struct sembuf){1, 1, 0}, 1);
	status("woken", wait_for(p));
	p = FORK(err("removed", semop(id, &(struct sembuf){0, -1, 0}, 1)));
	settle(p), must(semctl(id, 0, IPC_RMID), "remove");
	status("woken", wait_for(p));
}

TEST(messages, "message queues")
{
	int id = must(msgget(IPC_PRIVATE, 0600), "msgget");
	message m = {1, "hello"};
	err("type 0", msgsnd(id, &(message){0}, 1, 0)), err("type -1", msgsnd(id, &(message){-1}, 1, 0));
	err("too long", msgsnd(id, &m, 8193, 0)), err("negative", msgsnd(id, &m, -1, 0)), err("empty", msgsnd(id, &m, 0, 0));
	err("bad address", msgsnd(id, (void *)8, 1, 0)), err("bad id", msgsnd(-1, &m, 1, 0)), err("unknown id", msgsnd(id + 1, &m, 1, 0));
	num("empty", msgrcv(id, &m, 10, 0, 0));
	err("none", msgrcv(id, &m, 10, 0, IPC_NOWAIT)), err("none of type 3", msgrcv(id, &m, 10, 3, IPC_NOWAIT)), err("receive negative", msgrcv(id, &m, -1, 0, IPC_NOWAIT));
	for (int i = 1; i <= 6; i++) {
		m.type = i % 3 + 1, m.text[0] = '0' + i;
		msgsnd(id, &m, i, 0);
	}
	struct msqid_ds d;
	msgctl(id, IPC_STAT, &d), say("%ld messages, %ld bytes of %ld", (long)d.msg_qnum, (long)d.__msg_cbytes, (long)d.msg_qbytes);
	struct {
		const char *what;
		long size, type;
		int flags;
	} cases[] = {{"any, too small", 0, 0, 0}, {"copy of 2", 10, 2, MSG_COPY | IPC_NOWAIT}, {"copy of 9", 10, 9, MSG_COPY | IPC_NOWAIT}, {"copy that waits", 10, 2, MSG_COPY},
		{"copy except", 10, 2, MSG_COPY | MSG_EXCEPT | IPC_NOWAIT}, {"copy too small", 1, 2, MSG_COPY | IPC_NOWAIT}, {"copy cut", 1, 2, MSG_COPY | IPC_NOWAIT | MSG_NOERROR},
		{"cut", 0, 0, MSG_NOERROR}, {"type 3", 10, 3, 0}, {"up to 2", 10, -2, 0}, {"up to 1", 10, -1, 0},
		{"except 3", 10, 3, MSG_EXCEPT}, {"except 0", 10, 0, MSG_EXCEPT | IPC_NOWAIT}, {"except -1", 10, -1, MSG_EXCEPT | IPC_NOWAIT}, {"type 9", 10, 9, IPC_NOWAIT}, {"lowest", 10, LONG_MIN, IPC_NOWAIT}, {"none", 10, 0, IPC_NOWAIT}};
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		m.text[0] = '-';
		long n = msgrcv(id, &m, cases[i].size, cases[i].type, cases[i].flags);
		if (n < 0)
			say("%s: %s", cases[i].what, name_of(errno));
		else
			say("%s: %ld bytes, type %ld, %c", cases[i].what, n, m.type, m.text[0]);
	}
	msgctl(id, IPC_STAT, &d);
	num("sender", d.msg_lspid == getpid()), num("receiver", d.msg_lrpid == getpid());
	IN_CHILD("more room without right", int own; become(1000, 1000); own = msgget(IPC_PRIVATE, 0600); msgctl(own, IPC_STAT, &d); d.msg_qbytes = 16385; err("more", msgctl(own, IPC_SET, &d)); d.msg_qbytes = 100; err("less", msgctl(own, IPC_SET, &d)); d.msg_qbytes = 200; err("more again", msgctl(own, IPC_SET, &d)); msgctl(own, IPC_RMID, NULL));
	d.msg_qbytes = 100, err("little room", msgctl(id, IPC_SET, &d));
	m.type = 1;
	err("60", msgsnd(id, &m, 60, IPC_NOWAIT)), err("60 more", msgsnd(id, &m, 60, IPC_NOWAIT)), err("40 more", msgsnd(id, &m, 40, IPC_NOWAIT)), err("nothing more", msgsnd(id, &m, 0, IPC_NOWAIT));
	err("more than the room", msgsnd(id, &m, 101, IPC_NOWAIT));
	pid_t p = FORK(err("waits for room", msgsnd(id, &m, 50, 0)));
	settle(p);
	long room = msgrcv(id, &m, 100, 0, 0);
	status("woken", wait_for(p)), num("make room", room);
	while (msgrcv(id, &m, 100, 0, IPC_NOWAIT | MSG_NOERROR) >= 0)
		;
	p = FORK(num("waits for type 2", msgrcv(id, &m, 100, 2, 0)); say("%.3s", m.text));
	settle(p), m.type = 1, msgsnd(id, &m, 3, 0), settle(p), m.type = 2, memcpy(m.text, "two", 3), msgsnd(id, &m, 3, 0);
	status("woken", wait_for(p));
	p = FORK(err("too small when it comes", msgrcv(id, &m, 2, 2, 0)));
	settle(p), m.type = 2, msgsnd(id, &m, 3, 0);
	status("woken", wait_for(p));
	num("it is still there", msgrcv(id, &m, 100, 2, IPC_NOWAIT));
	p = FORK(exit(msgrcv(id, &m, 100, 7, 0) < 0 && errno == EIDRM));
	pid_t q = FORK(m.type = 1; msgsnd(id, &m, 60, 0); exit(msgsnd(id, &m, 60, 0) < 0 && errno == EIDRM));
	settle(p), settle(q), must(msgctl(id, IPC_RMID, NULL), "remove");
	status("a receiver of what is removed", wait_for(p)), status("a sender", wait_for(q));
	struct msginfo info;
	num("MSG_INFO", msgctl(0, MSG_INFO, (void *)&info) >= 0), num("IPC_INFO", msgctl(0, IPC_INFO, (void *)&info) >= 0);
	say("%d %d %d %d", info.msgmax, info.msgmnb, info.msgssz, info.msgseg);
	struct seminfo si;
	num("SEM_INFO", semctl(0, 0, SEM_INFO, (union semun){.buf = &si}) >= 0), num("IPC_INFO", semctl(0, 0, IPC_INFO, (union semun){.buf = &si}) >= 0);
	say("%d %d %d %d %d %d %d", si.semmns, si.semmni, si.semmsl, si.semopm, si.semvmx, si.semusz, si.semaem);
}
