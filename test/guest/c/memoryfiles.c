// What files in memory take: size, blocks, the file system's free blocks and the map of
// data and holes after sequences of writes, truncations, fallocate and faults, also on a
// file system that gets full.
#include "gt.h"
#include <setjmp.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#define PAGE 4096L
#define FILES 2
#define LAST 24 // pages of a file that are looked at

static void apart(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static uint32_t state;

static uint32_t pick(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static sigjmp_buf back;
static void fault(int sig) { siglongjmp(back, sig); }

// touch reads or writes a byte through a mapping and tells how that went.
static const char *touch(int fd, long page, int flags, int prot, int write)
{
	char *p = mmap(NULL, (page + 1) * PAGE, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		return name_of(errno);
	const char *result = "ok";
	if (sigsetjmp(back, 1))
		result = "SIGBUS";
	else if (write)
		*(volatile char *)(p + page * PAGE + 7) = 'm';
	else
		(void)*(volatile char *)(p + page * PAGE + 7);
	munmap(p, (page + 1) * PAGE);
	return result;
}

static const char *advise(int fd, long page, long n, int advice)
{
	char *p = mmap(NULL, LAST * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return name_of(errno);
	const char *result = madvise(p + page * PAGE, n * PAGE, advice) ? name_of(errno) : "ok";
	munmap(p, LAST * PAGE);
	return result;
}

// map draws a file: # for data and . for holes, as lseek tells, of size pages.
static void map(int fd, off_t size, char *out)
{
	off_t at = 0;
	memset(out, '.', LAST), out[LAST] = 0;
	while (at < size) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0)
			break;
		off_t hole = lseek(fd, data, SEEK_HOLE);
		for (off_t i = data / PAGE; i * PAGE < hole && i < LAST; i++)
			out[i] = '#';
		at = hole;
	}
	out[(size + PAGE - 1) / PAGE < LAST ? (size + PAGE - 1) / PAGE : LAST] = 0;
}

// sum is over what can be read.
static uint32_t sum(int fd)
{
	static unsigned char bytes[LAST * PAGE];
	ssize_t n = pread(fd, bytes, sizeof bytes, 0);
	uint32_t s = 1;
	for (ssize_t i = 0; i < n; i++)
		s = s * 31 + bytes[i];
	return s;
}

static const char *step(int fd, int other, char *what)
{
	static char data[LAST * PAGE];
	int op = pick(14);
	off_t at = pick(LAST * PAGE - 1), n = 1 + pick(op < 2 ? 3 * PAGE : 8 * PAGE);
	if (pick(3) == 0)
		at &= -PAGE;
	if (pick(3) == 0)
		n = (n + PAGE - 1) & -PAGE;
	if (at + n > LAST * PAGE)
		n = LAST * PAGE - at;
	long page = at / PAGE;
	memset(data, 'a' + pick(26), n);
	long r = 0;
	switch (op) {
	case 0: case 1: case 2:
		sprintf(what, "write %ld %ld", at, n);
		r = pwrite(fd, data, n, at);
		if (r >= 0)
			sprintf(what + strlen(what), " = %ld", r);
		break;
	case 3: case 4:
		sprintf(what, "truncate %ld", at);
		r = ftruncate(fd, at);
		break;
	case 5:
		sprintf(what, "allocate %ld %ld", at, n);
		r = fallocate(fd, 0, at, n);
		break;
	case 6: case 7:
		sprintf(what, "keep %ld %ld", at, n);
		r = fallocate(fd, FALLOC_FL_KEEP_SIZE, at, n);
		break;
	case 8:
		sprintf(what, "punch %ld %ld", at, n);
		r = fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, at, n);
		break;
	case 9:
		sprintf(what, "load %ld", page);
		return touch(fd, page, MAP_SHARED, PROT_READ, 0);
	case 10:
		sprintf(what, "store %ld", page);
		return touch(fd, page, MAP_SHARED, PROT_READ | PROT_WRITE, 1);
	case 11:
		sprintf(what, "private store %ld", page);
		return touch(fd, page, MAP_PRIVATE, PROT_READ | PROT_WRITE, 1);
	case 12:
		n = 1 + pick(LAST - page);
		sprintf(what, "remove %ld %ld", page, (long)n);
		return advise(fd, page, n, MADV_REMOVE);
	case 13:
		sprintf(what, "copy %ld %ld", at, n);
		loff_t from = at, to = at;
		r = syscall(SYS_copy_file_range, other, &from, fd, &to, n, 0);
		if (r >= 0)
			sprintf(what + strlen(what), " = %ld", r);
		break;
	}
	return r < 0 ? name_of(errno) : "ok";
}

static void look(const char *what, const char *result, int k, int fd)
{
	struct stat st;
	struct statfs fs;
	char drawn[LAST + 1];
	fstat(fd, &st), fstatfs(fd, &fs);
	map(fd, st.st_size, drawn);
	say("%d %s: %s; size %ld blocks %ld used %ld %s %08x", k, what, result, (long)st.st_size, (long)st.st_blocks,
	    (long)(fs.f_blocks - fs.f_bfree), drawn, sum(fd));
}

static void sequences(const char *options, int first, int count, int steps)
{
	char what[128];
	apart();
	signal(SIGBUS, fault);
	mkdir("m", 0755);
	for (int i = 0; i < count; i++) {
		int fds[FILES];
		must(mount("none", "m", "tmpfs", 0, options), "mount");
		for (int k = 0; k < FILES; k++) {
			sprintf(what, "m/%d", k);
			fds[k] = must(open(what, O_RDWR | O_CREAT, 0644), "open");
		}
		state = first + i;
		say("sequence %d", i);
		for (int s = 0; s < steps; s++) {
			int k = pick(FILES);
			const char *result = step(fds[k], fds[1 - k], what);
			look(what, result, k, fds[k]);
		}
		for (int k = 0; k < FILES; k++)
			close(fds[k]);
		struct statfs fs;
		unlink("m/0"), statfs("m", &fs);
		say("one file removed: used %ld", (long)(fs.f_blocks - fs.f_bfree));
		unlink("m/1"), statfs("m", &fs);
		say("both removed: used %ld", (long)(fs.f_blocks - fs.f_bfree));
		must(umount("m"), "umount");
	}
}

TEST(roomy, "sequences with room") { sequences("size=1m", 1, 12, 40); }
TEST(tight, "sequences on a file system that gets full") { sequences("size=80k", 100, 20, 40); }

TEST(reserved, "what fallocate reserves is a hole until it is touched")
{
	char what[128];
	apart();
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, "size=64k"), "mount");
	int fd = must(open("m/f", O_RDWR | O_CREAT, 0644), "open");
	err("allocate", fallocate(fd, 0, 0, 8 * PAGE));
	look("allocated", "", 0, fd);
	unsigned char in[8];
	char *p = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	mincore(p, 8 * PAGE, in);
	say("in memory: %d%d%d", in[0] & 1, in[1] & 1, in[7] & 1);
	(void)*(volatile char *)(p + PAGE);
	mincore(p, 8 * PAGE, in);
	say("in memory: %d%d%d", in[0] & 1, in[1] & 1, in[7] & 1);
	look("loaded", "", 0, fd);
	num("read", pread(fd, what, 10, 3 * PAGE));
	look("read", "", 0, fd);
	num("write", pwrite(fd, "x", 1, 4 * PAGE));
	look("written", "", 0, fd);
	err("allocate more than there is", fallocate(fd, 0, 2 * PAGE, 15 * PAGE));
	look("failed", "", 0, fd);
	err("allocate beyond the end", fallocate(fd, FALLOC_FL_KEEP_SIZE, 8 * PAGE, 4 * PAGE));
	err("allocate more than there is", fallocate(fd, 0, 10 * PAGE, 10 * PAGE));
	look("failed", "", 0, fd);
	err("grow", ftruncate(fd, 9 * PAGE + 5));
	look("grown", "", 0, fd);
	err("shrink", ftruncate(fd, 9 * PAGE + 1));
	look("shrunk", "", 0, fd);
	err("the same", ftruncate(fd, 9 * PAGE + 1));
	look("same", "", 0, fd);
	err("to nothing", ftruncate(fd, 0));
	look("empty", "", 0, fd);
}

TEST(modes, "modes that files in memory do not know")
{
	apart();
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, "size=64k"), "mount");
	int fd = must(open("m/f", O_RDWR | O_CREAT, 0644), "open");
	must(ftruncate(fd, 8 * PAGE), "ftruncate");
	int modes[] = {0, 1, 2, 3, 4, 8, 0x10, 0x11, 0x20, 0x40, 0x41, 0x80, 0x100};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		long r = fallocate(fd, modes[i], PAGE, PAGE);
		say("mode %#x: %s", modes[i], r < 0 ? name_of(errno) : "ok");
	}
}

// copy_to writes this program into a file.
static int copy_to(int out)
{
	int in = must(open("/proc/self/exe", O_RDONLY), "open self");
	char b[65536];
	ssize_t n;
	while ((n = read(in, b, sizeof b)) > 0)
		must(write(out, b, n), "write");
	close(in);
	return out;
}

int child_main(int argc, char **argv)
{
	say("it runs");
	return 0;
}

TEST(run, "a program in a file without a name")
{
	char *argv[] = {"memory", "child", NULL}, *none[] = {NULL};
	int m = copy_to(must(memfd_create("m", 0), "memfd_create"));
	IN_CHILD("a memory file that one may write to", err("fexecve", fexecve(m, argv, none)));
	num("write", pwrite(m, "\177", 1, 0));
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", m);
	int again = must(open(path, O_RDWR), "open");
	IN_CHILD("one that was opened to write", err("fexecve", fexecve(m, argv, none)));
	close(again);
	int t = copy_to(must(open(".", O_TMPFILE | O_RDWR, 0700), "O_TMPFILE"));
	IN_CHILD("a temporary file that one may write to", err("fexecve", fexecve(t, argv, none)));
}
