// Process 1 of the machine: it runs a well-behaved program beside offenders and prints a
// row for each run.
//
//	memory MILLISECONDS KIND[+KIND]...   another user's well-behaved program beside these
//	memory -same MILLISECONDS KIND...    the same user's
//	memory -left MILLISECONDS KIND...    and after each run what is left of it
#include "memory.h"
#include <dirent.h>
#include <grp.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/reboot.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>

enum {
	offenderUID = 1000,
	goodUID = 1001,
	maxOffenders = 4,
	maxSamples = 1 << 16,
	step = 2, // milliseconds between samples
};

struct shared *shared;

int64_t now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

void nap(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

void become(int uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(99);
}

static const struct kind *find(const char *name, size_t length)
{
	static const struct kind *const all[] = {memoryKinds, fileKinds, socketKinds, descriptorKinds, processKinds, manyKinds, nameKinds, callKinds, moreKinds, outsideKinds};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct kind *k = all[i]; k->name; k++)
			if (strlen(k->name) == length && strncmp(k->name, name, length) == 0)
				return k;
	return NULL;
}

// sample is what process 1 sees of the machine.
static struct sample {
	int64_t at;
	long free;
} samples[maxSamples];

static long total, start; // KiB: all memory, and what was free at first

static long freeMemory(void)
{
	struct sysinfo si;
	if (sysinfo(&si) < 0)
		return 0;
	total = si.totalram / 1024 * si.mem_unit;
	return si.freeram / 1024 * si.mem_unit;
}

// run is one run: the processes that process 1 starts.
struct run {
	int seconds, goodUID, offenders;
	const struct kind *kinds[maxOffenders];
	pid_t good, offender[maxOffenders];
	int deaths;    // of the well-behaved program
	int64_t begin; // of the first offender
	int samples;
};

static pid_t spawn(int uid, const struct kind *k)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	become(uid);
	if (k)
		offend(k);
	else
		behave(getpid());
	_exit(98);
}

// reap asks who has died and starts it again.
static void reap(struct run *r)
{
	int st;
	for (pid_t pid; (pid = waitpid(-1, &st, WNOHANG)) > 0;) {
		if (pid == r->good) {
			r->deaths++;
			r->good = 0;
		}
		for (int i = 0; i < r->offenders; i++)
			if (pid == r->offender[i]) {
				ended(st);
				r->offender[i] = 0;
			}
	}
	if (r->good <= 0)
		r->good = spawn(r->goodUID, NULL);
	for (int i = 0; i < r->offenders; i++)
		if (r->offender[i] <= 0)
			r->offender[i] = spawn(offenderUID, r->kinds[i]);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

// rootWorks reports whether root can start a program now.
static int rootWorks(void)
{
	int st = -1;
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "memory", "ok", NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &st, 0) == pid && st == 0;
}

static void report(struct run *r, const char *name, int root)
{
	int n = shared->rounds, failed = 0;
	int64_t running = shared->running;
	uint32_t stuck = running ? now() - running : 0;
	long least = start;
	int64_t gone = 0, kill = shared->firstKill;
	for (int i = 0; i < r->samples && (kill == 0 || samples[i].at <= kill); i++)
		if (samples[i].free < least)
			least = samples[i].free;
	for (int i = 0; i < r->samples && gone == 0; i++)
		if (samples[i].free <= least + total / 64)
			gone = samples[i].at;
	qsort(shared->micros, n, sizeof *shared->micros, compare);
	uint32_t worst = n ? shared->micros[n - 1] : 0;
	for (int i = 0; i < maxFailures; i++)
		failed += shared->failures[i].count;
	printf("row %s rounds=%d failed=%d deaths=%d median=%d worst=%d gone=%d killed=%d kills=%d used=%ld root=%d", name, n, failed,
	       r->deaths, n ? shared->micros[n / 2] : 0, worst > stuck ? worst : stuck, gone ? (int)((gone - r->begin) / 1000) : 0,
	       kill ? (int)((kill - r->begin) / 1000) : -1, shared->kills, 100 * (total - least) / total, root);
	for (int i = 0; i < maxFailures && shared->failures[i].count; i++)
		printf(" %s:%s:%d", shared->failures[i].call, strerrorname_np(shared->failures[i].error), shared->failures[i].count);
	if (shared->slow.round > 0)
		printf(" slow=%s:%u:%u", shared->slow.step, shared->slow.micros, (uint32_t)((shared->slow.at - r->begin) / 1000));
	printf("\n");
}

// flatten removes what a directory holds, and moves directories that are not empty to /tmp:
// their paths may be longer than a path can be.
static int flatten(const char *dir)
{
	static long moved;
	char name[600], to[64];
	int left = 0;
	DIR *d = opendir(dir);
	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof name, "%s/%s", dir, e->d_name);
		if (unlink(name) == 0 || rmdir(name) == 0)
			continue;
		left = 1;
		if (strcmp(dir, "/tmp") == 0)
			flatten(name);
		else {
			snprintf(to, sizeof to, "/tmp/moved.%ld", moved++);
			rename(name, to);
		}
	}
	closedir(d);
	return left;
}

static void removeObjects(void)
{
	struct shmid_ds shm;
	struct msqid_ds msg;
	struct seminfo sem;
	struct semid_ds ds;
	for (int i = shmctl(0, SHM_INFO, &shm), id; i >= 0; i--)
		if ((id = shmctl(i, SHM_STAT, &shm)) >= 0)
			shmctl(id, IPC_RMID, NULL);
	for (int i = msgctl(0, MSG_INFO, &msg), id; i >= 0; i--)
		if ((id = msgctl(i, MSG_STAT, &msg)) >= 0)
			msgctl(id, IPC_RMID, NULL);
	for (int i = semctl(0, 0, SEM_INFO, &sem), id; i >= 0; i--)
		if ((id = semctl(i, 0, SEM_STAT, &ds)) >= 0)
			semctl(id, 0, IPC_RMID);
}

// clean ends everybody and gives the machine back its memory.
static void clean(const char *name)
{
	int64_t begin = now();
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	int64_t ended = now();
	for (int i = 0; i < 1 << 20 && flatten("/tmp"); i++)
		;
	flatten("/dev/mqueue");
	removeObjects();
	long back = 0;
	while (now() - ended < 300000 && (back = freeMemory()) < start - total / 20)
		nap(10);
	printf("end %s ended=%d back=%d free=%ld\n", name, (int)((ended - begin) / 1000), (int)((now() - ended) / 1000), 100 * back / start);
}

// field is the number behind a name in a file of /proc, or at its beginning.
static long field(const char *file, const char *name)
{
	static char text[1 << 16];
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n < 0)
		return -1;
	text[n] = 0;
	char *at = strstr(text, name);
	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

// left waits until the machine has its memory back, and says how long that took, what is in
// use then, and what of the kernel's heap after a collection.
static void left(const char *name)
{
	int64_t begin = now();
	while (now() - begin < 10000000 && freeMemory() < start - total / 20)
		nap(10);
	int waited = (now() - begin) / 1000;
	long back = freeMemory();
	int fd = open("/proc/hardtack/heap", O_WRONLY);
	for (int i = 0; i < 3; i++) {
		write(fd, "1", 1);
		nap(5);
	}
	close(fd);
	printf("left %s after=%d missing=%ld collected=%ld heap=%ld objects=%ld stacks=%ld goroutines=%ld\n", name, waited, start - back,
	       start - freeMemory(), field("/proc/hardtack/heap", "HeapAlloc"), field("/proc/hardtack/heap", "HeapObjects"),
	       field("/proc/hardtack/heap", "StackInuse"), field("/proc/hardtack/goroutines", ""));
}

static void once(const char *name, int millis, int uid)
{
	struct run r = {.goodUID = uid};
	for (const char *p = name; *p && r.offenders < maxOffenders;) {
		size_t n = strcspn(p, "+");
		if (n != 4 || strncmp(p, "none", 4) != 0)
			if (!(r.kinds[r.offenders++] = find(p, n))) {
				printf("memory: no kind %s\n", p);
				return;
			}
		p += p[n] ? n + 1 : n;
	}
	memset(shared, 0, sizeof *shared);
	start = freeMemory();
	printf("begin %s\n", name);
	r.begin = now();
	while (now() - r.begin < millis * 1000LL) {
		reap(&r);
		if (r.samples < maxSamples)
			samples[r.samples++] = (struct sample){now(), freeMemory()};
		nap(step);
	}
	reap(&r);
	int root = rootWorks();
	report(&r, name, root);
	clean(name);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "rest") == 0)
		for (;;)
			pause();
	if (argc == 2 && strcmp(argv[1], "ok") == 0)
		return 0;
	if (argc > 1 && strcmp(argv[1], "again") == 0)
		execv("/proc/self/exe", argv);
	if (getpid() != 1) {
		fprintf(stderr, "memory: this is not process 1 of a Hardtack guest\n");
		return 2;
	}
	if (argc == 1)
		sink();
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/tmp", 0777);
	chmod("/tmp", 01777);
	mkdir("/dev/mqueue", 0755);
	mount("none", "/dev/mqueue", "mqueue", 0, NULL);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(samples, 1, sizeof samples);
	int uid = goodUID, i = 1, looks = 0;
	for (; i < argc && argv[i][0] == '-'; i++)
		if (strcmp(argv[i], "-same") == 0)
			uid = offenderUID;
		else
			looks = 1;
	for (int millis = atoi(argv[i++]); i < argc; i++) {
		once(argv[i], millis, uid);
		if (looks)
			left(argv[i]);
	}
	printf("memory: done\n");
	return 0;
}
