// What vm.overcommit_memory refuses. The limit of mode 2 is 64 GiB more than what is in
// use, so that other programs of the machine do not notice.
#include "gt.h"
#include <sys/ipc.h>
#include <sys/shm.h>

#define G (1L << 30)

static void put(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/sys/vm/%s", name);
	int fd = must(open(path, O_WRONLY), path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static char *get(const char *name)
{
	static char text[64];
	char path[64];
	snprintf(path, sizeof path, "/proc/sys/vm/%s", name);
	int fd = must(open(path, O_RDONLY), path);
	ssize_t n = read(fd, text, 63);
	close(fd);
	text[n > 0 ? n - 1 : 0] = 0;
	return text;
}

static long meminfo(const char *name)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "r");
	while (fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name) + 1, "%ld", &kb);
	fclose(f);
	return kb;
}

// in_mode runs a test in a mode, and puts everything back.
static void in_mode(const char *mode, void (*run)(void))
{
	char was[3][64], limit[32];
	static const char *names[] = {"overcommit_memory", "overcommit_ratio", "overcommit_kbytes"};
	for (int i = 0; i < 3; i++)
		strcpy(was[i], get(names[i]));
	sprintf(limit, "%ld", meminfo("Committed_AS") + 64 * G / 1024);
	put("overcommit_kbytes", limit), put("overcommit_memory", mode);
	pid_t pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	wait_for(pid);
	put("overcommit_memory", was[0]);
	if (atol(was[2]))
		put("overcommit_kbytes", was[2]);
	else
		put("overcommit_ratio", was[1]);
}

#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define SHARED (MAP_SHARED | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

static char *map(const char *what, long n, int prot, int flags)
{
	char *p = mmap(NULL, n, prot, flags, -1, 0);
	say("%s, %ld GiB: %s", what, n / G, p == MAP_FAILED ? name_of(errno) : "ok");
	return p == MAP_FAILED ? NULL : p;
}

static void mappings(void)
{
	say("CommitLimit is overcommit_kbytes: %d", meminfo("CommitLimit") == atol(get("overcommit_kbytes")));
	long before = meminfo("Committed_AS");
	char *p = map("private", 40 * G, RW, PRIVATE);
	long grown = meminfo("Committed_AS") - before;
	say("counted: %d", grown > 39 * G / 1024 && grown < 41 * G / 1024);
	map("another", 40 * G, RW, PRIVATE);
	map("another without reserve", 40 * G, RW, PRIVATE | MAP_NORESERVE);
	map("another to read", 40 * G, PROT_READ, PRIVATE);
	char *none = map("another for nothing", 80 * G, PROT_NONE, PRIVATE);
	err("that to write", mprotect(none, 80 * G, RW));
	err("a part of that", mprotect(none, 10 * G, RW));
	err("the part again", mprotect(none, 10 * G, RW));
	map("a third", 20 * G, RW, PRIVATE);
	p[0] = 1; // what has pages stays counted
	err("the first one read only", mprotect(p, 40 * G, PROT_READ));
	map("a third", 20 * G, RW, PRIVATE);
	err("for nothing", mprotect(p, 40 * G, PROT_NONE));
	map("a third", 20 * G, RW, PRIVATE);
	err("to write again", mprotect(p, 40 * G, RW));
	err("gone", munmap(p, 40 * G));
	p = map("a third", 20 * G, RW, PRIVATE);
	char *q = mremap(p, 20 * G, 80 * G, MREMAP_MAYMOVE);
	say("larger: %s", q == MAP_FAILED ? name_of(errno) : "ok");
	q = mremap(p, 20 * G, 30 * G, MREMAP_MAYMOVE);
	say("a little larger: %s", q == MAP_FAILED ? name_of(errno) : "ok");
	char *r = mremap(q, 30 * G, 10 * G, 0);
	say("smaller: %s", r == MAP_FAILED ? name_of(errno) : "ok");
	map("what that gave", 35 * G, RW, PRIVATE);
}

static void others(void)
{
	char *p = map("private", 40 * G, RW, PRIVATE);
	char *again = mmap(p, 40 * G, RW, PRIVATE | MAP_FIXED, -1, 0);
	say("over itself: %s", again == MAP_FAILED ? name_of(errno) : "ok");
	say("brk: %s", sbrk(40 * G) == (void *)-1 ? name_of(errno) : "ok");
	say("brk: %s", sbrk(10 * G) == (void *)-1 ? name_of(errno) : "ok");
	map("what is left", 10 * G, RW, PRIVATE);
	map("more", 10 * G, RW, PRIVATE);
}

static void shared_memory(void)
{
	long before = meminfo("Committed_AS");
	char *p = map("shared", 40 * G, RW, SHARED);
	long grown = meminfo("Committed_AS") - before;
	say("counted: %d", grown > 39 * G / 1024 && grown < 41 * G / 1024);
	map("another", 40 * G, RW, SHARED);
	map("another to read", 40 * G, PROT_READ, SHARED);
	map("another without reserve", 40 * G, RW, SHARED | MAP_NORESERVE);
	map("private", 40 * G, RW, PRIVATE);
	IN_CHILD("forked", map("private", 40 * G, RW, PRIVATE); map("private", 10 * G, RW, PRIVATE));
	munmap(p, 20 * G);
	map("another, a half gone", 40 * G, RW, SHARED);
	munmap(p + 20 * G, 20 * G);
	p = map("another, all gone", 40 * G, RW, SHARED);
	munmap(p, 40 * G);
	int id = shmget(IPC_PRIVATE, 80 * G, 0600);
	say("segment: %s", id < 0 ? name_of(errno) : "ok");
	id = shmget(IPC_PRIVATE, 40 * G, 0600);
	say("segment: %s", id < 0 ? name_of(errno) : "ok");
	int second = shmget(IPC_PRIVATE, 40 * G, 0600 | SHM_NORESERVE);
	say("second: %s", second < 0 ? name_of(errno) : "ok");
	map("private", 40 * G, RW, PRIVATE);
	shmctl(id, IPC_RMID, NULL);
	p = map("private, the segment gone", 40 * G, RW, PRIVATE);
	munmap(p, 40 * G);
	int fd = memfd_create("f", 0);
	err("file", ftruncate(fd, 80 * G));
	p = mmap(NULL, 80 * G, RW, MAP_PRIVATE, fd, 0);
	say("private of a file: %s", p == MAP_FAILED ? name_of(errno) : "ok");
	p = mmap(NULL, 80 * G, RW, MAP_SHARED, fd, 0);
	say("shared of a file: %s", p == MAP_FAILED ? name_of(errno) : "ok");
}

static void forks(void)
{
	char *p = map("private", 30 * G, RW, PRIVATE);
	int hold[2];
	char c;
	pipe(hold);
	pid_t pid = fork();
	if (pid == 0) {
		close(hold[1]), read(hold[0], &c, 1);
		_exit(0);
	}
	say("fork: %d", pid > 0);
	map("while it lives", 20 * G, RW, PRIVATE);
	pid_t second = fork();
	say("another: %s", second < 0 ? name_of(errno) : "ok");
	if (second == 0)
		_exit(0);
	write(hold[1], "x", 1), wait_for(pid);
	map("after it", 20 * G, RW, PRIVATE);
}

static void guess(void)
{
	long huge = 1L << 44;
	map("private", huge, RW, PRIVATE);
	map("private without reserve", huge, RW, PRIVATE | MAP_NORESERVE);
	char *p = map("private to read", huge, PROT_READ, PRIVATE);
	err("to write", mprotect(p, huge, RW));
	map("shared", huge, RW, SHARED);
	map("shared to read", huge, PROT_READ, SHARED);
	map("shared without reserve", huge, RW, SHARED | MAP_NORESERVE);
	say("brk: %s", sbrk(huge) == (void *)-1 ? name_of(errno) : "ok");
	int id = shmget(IPC_PRIVATE, huge, 0600);
	say("segment: %s", id < 0 ? name_of(errno) : "ok");
	id = shmget(IPC_PRIVATE, huge, 0600 | SHM_NORESERVE);
	say("segment without reserve: %s", id < 0 ? name_of(errno) : "ok");
	shmctl(id, IPC_RMID, NULL);
}

TEST(never_mappings, "mode 2: private mappings") { in_mode("2", mappings); }
TEST(never_others, "mode 2: brk and fixed places") { in_mode("2", others); }
TEST(never_shared, "mode 2: shared memory") { in_mode("2", shared_memory); }
TEST(never_forks, "mode 2: fork") { in_mode("2", forks); }
TEST(guessing, "mode 0") { in_mode("0", guess); }
TEST(always, "mode 1") { in_mode("1", guess); }

static void partner(const char *a, const char *value, const char *b)
{
	put(a, value);
	say("%s is %s", a, get(a));
	say("%s is %s", b, get(b));
}

TEST(partners, "one of two takes the other back")
{
	static const char *names[] = {"overcommit_ratio", "overcommit_kbytes", "dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes"};
	char was[6][64];
	for (int i = 0; i < 6; i++)
		strcpy(was[i], get(names[i]));
	partner("overcommit_kbytes", "123456789", "overcommit_ratio");
	partner("overcommit_ratio", "60", "overcommit_kbytes");
	partner("dirty_bytes", "200000000", "dirty_ratio");
	partner("dirty_ratio", "21", "dirty_bytes");
	partner("dirty_background_bytes", "100000000", "dirty_background_ratio");
	partner("dirty_background_ratio", "11", "dirty_background_bytes");
	for (int i = 0; i < 6; i++)
		if (strcmp(was[i], "0"))
			put(names[i], was[i]);
}
