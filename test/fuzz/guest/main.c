// fuzz makes random system calls that look like real ones: every call with arguments
// of its kinds (calls.def, value.c), on descriptors of every kind (files.c), from
// several threads and processes that share memory, descriptors and names, often two
// groups of calls against each other (races.h).
//
//	fuzz -t SECONDS | -n CALLS [-s SEED] [-u 0|1000|mix] [-p PROCESSES] [-d DISK]
//	fuzz -c CHILD [-r TIMES] …            that child of the seed alone
//
// It asks of the kernel: to live, to kill whom it shall kill, to take its locks in one
// order, and to have its memory back when the processes are gone. Of children that run
// as user 1000 it also asks that they stay that, never see a secret of root's, change
// nothing of root's, and do not keep another user's process from its work (guard.c).
//
// A child that dies of its own calls is replaced; one that hangs is killed. The calls
// of a child's worker follow from the seed and the child's number. The last calls of
// each worker are in memory that the host reads when the kernel has stopped.
//
// It runs on Hardtack only: as root on a real machine it would destroy it. Root's
// children leave out what ends the run by design: reboot, signals and limits for other
// processes than the child's own, mounts over the root. User 1000's leave out little.
#include "fuzz.h"

#include <stdarg.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/utsname.h>

uint64_t seed = 1;
pid_t parent_pid;
char *common;
int have_disk, failures;

static slot *slots;
static uint64_t next_child;
static const char *users = "0", *disk;
static int goroutines = -1, locks = -1;

static const long stall_ms = 3000, stuck_ms = 60000, witness_ms = 60000;

void fail(const char *format, ...)
{
	va_list ap;
	if (failures++ >= 20)
		return;
	printf("fuzz: FAIL: ");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

static long long now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

// value finds `name` in a file of lines "name: number" or "name number".
static long value(int fd, const char *name)
{
	char text[8192];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = 0;
	char *at = strstr(text, name);
	if (!at)
		return -1;
	at += strlen(name);
	return strtol(at + strspn(at, ": \t"), NULL, 10);
}

// remove_objects drops System V objects, which outlive processes; only children make
// any here.
static void remove_objects(void)
{
	struct seminfo sems;
	struct msginfo messages;
	int last = semctl(0, 0, SEM_INFO, &sems); // the highest index in use
	for (int i = 0; i <= last; i++) {
		struct semid_ds ds;
		int id = semctl(i, 0, SEM_STAT, &ds);
		if (id >= 0)
			semctl(id, 0, IPC_RMID);
	}
	last = msgctl(0, MSG_INFO, (struct msqid_ds *)&messages);
	for (int i = 0; i <= last; i++) {
		struct msqid_ds ds;
		int id = msgctl(i, MSG_STAT, &ds);
		if (id >= 0)
			msgctl(id, IPC_RMID, NULL);
	}
	for (int i = 0; i < 4096; i++) {
		struct shmid_ds ds;
		int id = shmctl(i, SHM_STAT, &ds);
		if (id >= 0)
			shmctl(id, IPC_RMID, NULL);
	}
}

// directories makes the children's, each with its part of the disk.
static void directories(void)
{
	char name[64], disk[64];
	if (chdir("/") == 0)
		remove_tree("/tmp/fuzz");
	chmod("/tmp", 01777);
	mkdir("/tmp/fuzz", 0755);
	if (chdir("/tmp/fuzz") < 0)
		fail("chdir: %m");
	for (int i = 0; i < max_children; i++) {
		snprintf(name, sizeof name, "w%d", i);
		mkdir(name, 0777), chmod(name, 0777);
		if (!have_disk)
			continue;
		snprintf(disk, sizeof disk, "/disk/w%d", i);
		remove_tree(disk);
		mkdir(disk, 0777), chmod(disk, 0777);
		strcat(name, "/disk");
		if (symlink(disk, name) < 0)
			fail("symlink: %m");
	}
}

// show prints a file of the kernel's, for the one who looks for a leak or a deadlock.
static void show(int fd)
{
	static char text[1 << 20];
	ssize_t n = 0, k;
	while (n < (ssize_t)sizeof text - 1 && (k = pread(fd, text + n, sizeof text - 1 - (size_t)n, n)) > 0)
		n += k;
	text[n > 0 ? n : 0] = 0;
	fputs(text, stdout);
}

// clean ends what children left behind: processes that are ours by now, files.
static void clean(void)
{
	long long begun = now_ms();
	for (int i = 0;; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			break;
		if (pid > 0)
			continue;
		usleep(2000);
		if (i % 20 == 19) // as process 1 every other process is a child's
			kill(-1, SIGKILL);
		if (now_ms() - begun > stuck_ms) {
			fail("a process cannot be killed");
			break;
		}
	}
	int fd[2]; // sockets that wait in each other go when a socket is closed
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0)
		close(fd[0]), close(fd[1]);
	right_mounts(1), right_modes();
	remove_objects();
	remove_left();
	directories();
}

typedef struct {
	long ended[64], hung, children; // ended by signal; 0: of themselves
	uint64_t calls;
} totals;

static struct {
	pid_t pid;
	uint64_t seen;
	long long moved;
	int killed;
} running[max_children];

// begin starts a child in a slot.
static void begin(int i, totals *t)
{
	uint64_t number = next_child++;
	uid_t uid = strcmp(users, "mix") == 0 ? (number / 2 % 2 ? user : 0) : (uid_t)atoi(users);
	memset(&slots[i], 0, sizeof slots[i]);
	char own[32]; // its directory, which another one may have closed
	snprintf(own, sizeof own, "/tmp/fuzz/w%d", (int)(number % max_children));
	chmod(own, 0777);
	snprintf(own, sizeof own, "/disk/w%d", (int)(number % max_children));
	chmod(own, 0777);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		munmap((void *)progress, page);
		for (int k = 0; k < max_children; k++)
			if (k != i)
				munmap(&slots[k], sizeof slots[k]);
		child(number, uid, &slots[i]);
	}
	if (pid < 0) {
		usleep(1000);
		return;
	}
	running[i].pid = pid, running[i].seen = 0, running[i].moved = now_ms(), running[i].killed = 0;
	t->children++;
}

static void watch(int i, totals *t, long long now)
{
	uint64_t sum = 0;
	for (int w = 0; w < workers; w++)
		sum += slots[i].calls[w];
	if (sum > running[i].seen && sum <= workers * calls_per_child) {
		t->calls += sum - running[i].seen;
		running[i].seen = sum, running[i].moved = now;
	} else if (!running[i].killed && now - running[i].moved > stall_ms) {
		kill(running[i].pid, SIGKILL);
		t->hung++;
		running[i].killed = 1, running[i].moved = now;
	} else if (running[i].killed == 1 && now - running[i].moved > stuck_ms) {
		fail("process %d of child %llu was killed and lives", running[i].pid, (unsigned long long)slots[i].ring[0].child);
		show(goroutines);
		running[i].killed = 2;
	}
}

// show_calls shows the last calls of a worker, the oldest first.
static void show_calls(const ring *r)
{
	unsigned end = (unsigned)r->count;
	for (unsigned i = end < ring_calls ? 0 : end - ring_calls; i != end; i++) {
		const uint64_t *a = r->call[i % ring_calls].args;
		printf("fuzz: %llu(%#llx, %#llx, %#llx, %#llx, %#llx, %#llx) = %lld\n", (unsigned long long)r->call[i % ring_calls].nr, (unsigned long long)a[0], (unsigned long long)a[1],
		       (unsigned long long)a[2], (unsigned long long)a[3], (unsigned long long)a[4], (unsigned long long)a[5], (long long)r->call[i % ring_calls].result);
	}
}

// judge tells what a child saw that must not be.
static void judge(const slot *s)
{
	static const char *const breaches[] = {"", "has become root", "has seen root's secret", "got memory that is not zero"};
	uint64_t breach = s->broken - BREACH;
	if (breach > 0 && breach < 4)
		fail("child %llu %s (%#llx, %lld: %#llx)", (unsigned long long)s->ring[0].child, breaches[breach], (unsigned long long)s->seen[0],
		     (long long)s->seen[1], (unsigned long long)s->seen[2]);
	if (breach == secret_seen)
		for (int i = 0; i < workers; i++)
			show_calls(&s->ring[i]);
}

static void reap(totals *t)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == guard_pid || pid == witness_pid)
			fail("process %d, which is no child's, is dead: status %#x", pid, status);
		for (int i = 0; i < max_children; i++) {
			if (running[i].pid == pid) {
				running[i].pid = 0;
				judge(&slots[i]);
				t->ended[WIFSIGNALED(status) ? WTERMSIG(status) & 63 : 0]++;
			}
		}
	}
}

// beside checks what goes on beside the children.
static void beside(long long now)
{
	static uint64_t seen;
	static long long moved, looked;
	if (now - looked < 100)
		return;
	looked = now;
	if (progress[0] != seen || moved == 0)
		seen = progress[0], moved = now;
	if (now - moved > witness_ms) {
		fail("the other user's process has made no progress for %ld s (%llu failures, the last: %s)", witness_ms / 1000, (unsigned long long)progress[1],
		     complaint());
		moved = now;
	}
	if (strcmp(users, "1000") == 0)
		look_around();
	else // root's children take from everybody what they get hold of
		right_mounts(0), right_modes();
}

// run keeps `processes` children busy until so many calls were made or the time is up.
static totals run(uint64_t most, long long until, int processes)
{
	totals t = {0};
	long long told = now_ms();
	for (;;) {
		long long now = now_ms();
		int over = t.calls >= most || now >= until, alive = 0;
		for (int i = 0; i < processes; i++) {
			if (!running[i].pid && !over)
				begin(i, &t);
			if (running[i].pid && now >= until && running[i].killed == 0)
				kill(running[i].pid, SIGKILL), running[i].killed = 1, running[i].moved = now;
			if (running[i].pid)
				alive++, watch(i, &t, now);
		}
		usleep(1000);
		reap(&t);
		beside(now);
		if (now - told > 10000) {
			told = now;
			printf("fuzz: %llu calls, %ld processes, next child %llu\n", (unsigned long long)t.calls, t.children, (unsigned long long)next_child);
			fflush(stdout);
		}
		if (over && alive == 0)
			return t;
	}
}

static int allowed(void)
{
	struct utsname u;
	uname(&u);
	return strcasestr(u.version, "hardtack") || strcasestr(u.release, "hardtack");
}

// broken tries, with ordinary means, whether the machine still works; it returns what
// does not.
static const char *broken(void)
{
	int fd[2], status;
	char buf[6] = "";
	if (pipe(fd) < 0)
		return "pipe";
	if (write(fd[1], "alive", 5) != 5 || read(fd[0], buf, 5) != 5 || strcmp(buf, "alive") != 0)
		return "writing to a pipe";
	close(fd[0]), close(fd[1]);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "fuzz", NULL);
		_exit(100 + errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return "making a process";
	if (status != 2 << 8) {
		errno = WIFEXITED(status) ? WEXITSTATUS(status) - 100 : 0;
		return "executing a program";
	}
	int file = open("/tmp/fuzz/check", O_CREAT | O_RDWR | O_TRUNC, 0600);
	if (file < 0 || write(file, "alive", 5) != 5 || pread(file, buf, 5, 0) != 5)
		return "writing to a file";
	close(file);
	return NULL;
}

typedef struct {
	long memory, heap, pages, routines;
} resources;

// measure collects the kernel's garbage and looks what is in use.
static resources measure(void)
{
	static int meminfo = -1, frames = -1, heap = -1;
	if (meminfo < 0) {
		meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
		frames = open("/proc/hardtack/frames", O_RDONLY | O_CLOEXEC);
		heap = open("/proc/hardtack/heap", O_RDWR | O_CLOEXEC);
	}
	if (write(heap, "1", 1) < 0)
		fail("collecting garbage: %m");
	// What belongs to neither the free lists nor the kernel itself are user pages.
	return (resources){value(meminfo, "MemFree"), value(heap, "HeapAlloc"),
			   value(frames, "total") - value(frames, "free") - value(frames, "kernel"), value(goroutines, "")};
}

// leave_disk unmounts the disk; who has been killed may hold it a moment longer.
static int leave_disk(void)
{
	for (int i = 0; i < 200; i++) {
		if (umount2("/disk", 0) == 0)
			return 0;
		if (errno != EBUSY)
			break;
		usleep(100000);
	}
	return -1;
}

// drop_caches takes what the disk's files have in memory for what it is: free.
static void drop_caches(void)
{
	if (!have_disk)
		return;
	if (leave_disk() < 0 || mount(disk, "/disk", "ext4", 0, NULL) < 0)
		fail("unmounting and mounting the disk: %m"), show(open("/proc/self/mounts", O_RDONLY)), show(open("/proc/net/unix", O_RDONLY));
}

static void give_back(resources before)
{
	const long slack = 24 << 10; // KiB: the kernel's own heap breathes
	const long heap_slack = 8 << 20;
	const long cached = 1024; // frames: of processors, of the disk's cache
	resources after;
	for (int i = 0; i < 80; i++) {
		clean();
		usleep(100000);
		drop_caches();
		after = measure();
		if (after.memory >= before.memory - slack && after.pages <= before.pages + cached && after.routines <= before.routines + 64 &&
		    after.heap <= before.heap + heap_slack)
			break;
		if (i == 79) {
			fail("resources did not come back");
			show(goroutines);
		}
	}
	printf("fuzz: free memory %ld KiB before, %ld after; heap %ld, %ld; user pages %ld, %ld; goroutines %ld, %ld\n", before.memory, after.memory,
	       before.heap >> 10, after.heap >> 10, before.pages, after.pages, before.routines, after.routines);
}

int main(int argc, char **argv)
{
	uint64_t most = 0;
	long seconds = 0;
	int processes = 4, opt, times = 0;
	if (geteuid() == 0 && getuid() != 0)
		return suid_main();
	if (argc < 2)
		return 2; // also when a fuzzed execve starts us
	while ((opt = getopt(argc, argv, "n:t:s:c:r:p:u:d:")) != -1) {
		switch (opt) {
		case 'n': most = strtoull(optarg, NULL, 0); break;
		case 't': seconds = atol(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'c': next_child = strtoull(optarg, NULL, 0), times = times ? times : 1; break;
		case 'r': times = atoi(optarg); break;
		case 'p': processes = atoi(optarg); break;
		case 'u': users = optarg; break;
		case 'd': disk = optarg; break;
		default: return 2;
		}
	}
	if ((most == 0 && seconds == 0 && times == 0) || processes < 1 || processes > max_children)
		return 2;
	if (!allowed()) {
		fprintf(stderr, "fuzz: this is not a Hardtack guest, and the calls would harm it\n");
		return 2;
	}
	parse_calls();
	parent_pid = getpid();
	goroutines = open("/proc/hardtack/goroutines", O_RDONLY | O_CLOEXEC);
	locks = open("/proc/hardtack/locks", O_RDONLY | O_CLOEXEC);
	// Where no call comes that goes on beyond what its argument names.
	slots = mmap((void *)slots_at, max_children * sizeof(slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	common = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED || common == MAP_FAILED) {
		perror("fuzz");
		return 1;
	}
	mkdir("/disk", 0755);
	have_disk = disk != NULL;
	if (disk && mount(disk, "/disk", "ext4", 0, NULL) < 0)
		fail("mounting %s: %m", disk);
	printf("fuzz: seed %llu, user %s, locks %s\n", (unsigned long long)seed, users, locks < 0 ? "not checked" : "checked");
	right_mounts(1);
	set_scene();
	directories();
	right_modes();
	remove_left();
	totals t = {0};
	if (times > 0) {
		uint64_t number = next_child;
		while (times-- > 0)
			next_child = number, t = run(1, now_ms() + 600000, 1);
		kill(guard_pid, SIGKILL), kill(witness_pid, SIGKILL);
		return failures != 0;
	}
	// Caches, pools and the kernel's heap grow to their size first.
	long long begun = now_ms();
	if (most == 0)
		most = -1UL;
	run(most / 20, seconds ? begun + seconds * 1000 / 10 : begun + 20000, processes);
	const char *what = end_scene();
	clean();
	drop_caches();
	usleep(300000);
	resources before = measure();
	set_scene();
	long long from = now_ms();
	t = run(most, seconds ? begun + seconds * 1000 : from + (1LL << 40), processes);
	long long took = now_ms() - from;
	if (!what)
		what = end_scene();
	if (what)
		fail("%s", what);
	printf("fuzz: seed %llu, user %s, %llu calls in %lld ms, %ld processes (%ld hung); witness %llu (%llu failed), guard %llu; ended by", (unsigned long long)seed, users,
	       (unsigned long long)t.calls, took, t.children, t.hung, (unsigned long long)progress[0], (unsigned long long)progress[1],
	       (unsigned long long)progress[2]);
	for (int i = 0; i < 64; i++)
		if (t.ended[i])
			printf(" %s %ld", i ? sigabbrev_np(i) : "exit", t.ended[i]);
	printf("\n");
	if (progress[0] == 0)
		fail("the other user's process got nothing done");
	give_back(before);
	if ((what = broken()))
		fail("does not work any more: %s: %m", what);
	if (locks >= 0 && (value(locks, "inversions") != 0 || value(locks, "foreign") != 0)) {
		fail("the kernel took locks in two orders");
		show(locks);
	}
	if (have_disk && (chdir("/") < 0 || leave_disk() < 0))
		fail("unmounting the disk: %m");
	if (failures == 0)
		printf("fuzz: ok\n");
	fflush(stdout);
	return failures != 0;
}
