// The arguments of the calls on memory: types and flags of mmap, what mremap leaves
// behind, locked memory, advice, the kernel's own pages.
#include "gt.h"

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, SHARED = MAP_SHARED | MAP_ANONYMOUS };

static char *map(size_t pages, int prot, int flags, int fd) { return mmap(NULL, pages * PAGE, prot, flags, fd, 0); }

static void unprivileged(long limit)
{
	struct rlimit l = {limit, limit};
	setrlimit(RLIMIT_MEMLOCK, &l);
	setresgid(1000, 1000, 1000);
	setresuid(1000, 1000, 1000);
}

// locked is VmLck in KiB.
static int locked(void)
{
	char text[8192];
	int fd = must(open("/proc/self/status", O_RDONLY), "status");
	text[read(fd, text, sizeof text - 1)] = 0;
	close(fd);
	return atoi(strstr(text, "VmLck:") + 6);
}

static void touch(const char *what, volatile char *p, int store)
{
	status(what, wait_for(FORK(if (store) *p = 1; else (void)*p)));
}

TEST(types, "types and flags of mmap")
{
	int fd = must(open("f", O_RDWR | O_CREAT, 0600), "open");
	must(ftruncate(fd, 4 * PAGE), "truncate");
	for (int type = 0; type < 16; type++)
		for (int anonymous = 0; anonymous < 2; anonymous++) {
			if (type > 3 && type <= 8)
				continue; // what is new there differs from one Linux to the next
			void *p = mmap(NULL, PAGE, RW, type | (anonymous ? MAP_ANONYMOUS : 0), fd, 0);
			say("type %x%s: %s", type, anonymous ? ", anonymous" : "", p == MAP_FAILED ? name_of(errno) : "ok");
		}
	for (int bit = 7; bit < 32; bit++) {
		int flag = 1 << bit;
		if (flag == MAP_HUGETLB || flag == MAP_FIXED_NOREPLACE || flag == 0x80 || bit >= 21 && bit < 26)
			continue;
		void *p = mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | flag, fd, 0);
		say("MAP_SHARED_VALIDATE with %x: %s", flag, p == MAP_FAILED ? name_of(errno) : "ok");
		p = mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS | flag, -1, 0);
		say("anonymous: %s", p == MAP_FAILED ? name_of(errno) : "ok");
	}
	err("the last page of all", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0x7ffffffffffff000));
	err("huge pages of a file", (long)mmap(NULL, 2 << 20, RW, MAP_PRIVATE | MAP_HUGETLB, fd, 0));
	err("huge pages of 1 MiB", (long)mmap(NULL, 2 << 20, RW, PRIVATE | MAP_HUGETLB | 20 << 26, -1, 0));
	err("mprotect of nothing", syscall(SYS_mprotect, map(1, RW, PRIVATE, -1), 0, 0x20));
	err("mprotect with high bits", syscall(SYS_mprotect, map(1, RW, PRIVATE, -1), PAGE, 1UL << 32));
	err("mprotect upwards", syscall(SYS_mprotect, map(1, RW, PRIVATE, -1), PAGE, PROT_READ | PROT_GROWSUP));
}

static void left_behind(const char *what, char *p, int flags, char *to)
{
	p[0] = 'x', p[PAGE] = 'y';
	char *q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | flags, to);
	if (q == MAP_FAILED)
		say("%s: %s", what, name_of(errno));
	else
		say("%s: moved %d, there %c%c, here %d %d", what, q != p, q[0], q[PAGE], p[0], p[PAGE]);
}

TEST(remap, "mremap")
{
	int fd = must(open("f", O_RDWR | O_CREAT, 0600), "open");
	must(ftruncate(fd, 8 * PAGE), "truncate");
	left_behind("private", map(2, RW, PRIVATE, -1), MREMAP_DONTUNMAP, NULL);
	left_behind("shared", map(2, RW, SHARED, -1), MREMAP_DONTUNMAP, NULL);
	left_behind("private of a file", map(2, RW, MAP_PRIVATE, fd), MREMAP_DONTUNMAP, NULL);
	left_behind("to a place", map(2, RW, PRIVATE, -1), MREMAP_DONTUNMAP | MREMAP_FIXED, map(2, PROT_NONE, PRIVATE, -1));
	char *p = map(4, RW, PRIVATE, -1);
	mlock(p, 2 * PAGE);
	left_behind("locked", p, MREMAP_DONTUNMAP, NULL);
	err("it may not move", (long)mremap(p, PAGE, PAGE, MREMAP_DONTUNMAP));
	err("it may not grow", (long)mremap(p, PAGE, 2 * PAGE, MREMAP_DONTUNMAP | MREMAP_MAYMOVE));
	err("an unknown flag", (long)mremap(p, PAGE, PAGE, 8));
	err("onto itself", (long)mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p));
	err("too much", (long)mremap(p, PAGE, 1UL << 46, MREMAP_MAYMOVE));

	char *s = map(2, RW, SHARED, -1);
	s[0] = 'd';
	char *twin = mremap(s, 0, 2 * PAGE, MREMAP_MAYMOVE);
	say("a twin: %c", twin == MAP_FAILED ? '-' : *twin);
	err("a twin in place", (long)mremap(s, 0, PAGE, 0));
	err("a twin of private memory", (long)mremap(p, 0, PAGE, MREMAP_MAYMOVE));
	s = mremap(s, 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	touch("within shared memory", s + PAGE, 1);
	touch("behind it", s + 2 * PAGE, 1);
	touch("behind it, reading", s + 5 * PAGE, 0);
	s = mremap(map(2, RW, MAP_SHARED, fd), 2 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	touch("within the file", s + 7 * PAGE, 1);
	touch("behind the file", s + 8 * PAGE, 1);
	int zero = must(open("/dev/zero", O_RDWR), "open");
	s = mremap(map(2, RW, MAP_SHARED, zero), 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	touch("behind shared zeroes", s + 5 * PAGE, 1);
	s = mremap(map(2, RW, MAP_PRIVATE, zero), 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	touch("behind private zeroes", s + 5 * PAGE, 1);
}

TEST(locks, "memory that is locked")
{
	char *p = map(16, RW, PRIVATE, -1);
	status("no limit", wait_for(FORK(unprivileged(0); err("mlock", mlock(p, PAGE)); err("of nothing", mlock(p, 0)); err("of everything", mlock(p, -1));
					 err("mlock2 of nothing", syscall(SYS_mlock2, p, 0, 1)); err("mlock2, bad flag", syscall(SYS_mlock2, p, 0, 2));
					 err("mlockall", mlockall(MCL_CURRENT)); err("of nothing at all", mlockall(0)); err("later ones", mlockall(MCL_FUTURE));
					 err("MAP_LOCKED", (long)map(1, RW, PRIVATE | MAP_LOCKED, -1)); err("munlock", munlock(p, PAGE)))));
	status("four pages", wait_for(FORK(unprivileged(4 * PAGE); err("eight", mlock(p, 8 * PAGE)); err("four", mlock(p, 4 * PAGE)); err("again", mlock(p, 4 * PAGE));
					   err("one further", mlock(p + PAGE, 4 * PAGE)); err("two less", munlock(p, 2 * PAGE)); err("two elsewhere", mlock(p + 4 * PAGE, 2 * PAGE));
					   say("%d KiB", locked()); err("MAP_LOCKED", (long)map(1, RW, PRIVATE | MAP_LOCKED, -1));
					   err("growing", (long)mremap(p + 4 * PAGE, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE)))));
	err("everything, as it wraps", mlock(p, -1));
	err("beyond the end", mlock(p, -PAGE));
	say("%d KiB", locked());
	err("msync of everything", msync(p, -1, MS_SYNC));
	mlock(p, 2 * PAGE);
	static const struct {
		const char *name;
		int advice;
	} advice[] = {{"MADV_COLD", MADV_COLD}, {"MADV_PAGEOUT", MADV_PAGEOUT}, {"MADV_DONTNEED", MADV_DONTNEED}, {"MADV_FREE", MADV_FREE}, {"MADV_WILLNEED", MADV_WILLNEED}};
	for (int i = 0; i < 5; i++)
		err(advice[i].name, madvise(p, PAGE, advice[i].advice));
}

// kernels finds a mapping of the kernel's own and its length.
static char *kernels(const char *name, size_t *size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[300];
	unsigned long start = 0, end = 0;
	while (fgets(line, sizeof line, f) && !strstr(line, name))
		;
	sscanf(line, "%lx-%lx", &start, &end);
	fclose(f);
	*size = end - start;
	return (char *)start;
}

TEST(clock_pages, "the pages that the kernel keeps up to date")
{
	static const int advice[] = {MADV_DONTNEED, MADV_DODUMP, MADV_HUGEPAGE, MADV_COLD, MADV_FREE, MADV_WIPEONFORK, MADV_DOFORK, MADV_REMOVE, MADV_POPULATE_READ};
	static const char *const names[] = {"[vvar]", "[vdso]"};
	for (int k = 0; k < 2; k++) {
		size_t size;
		char *p = kernels(names[k], &size);
		char what[60];
		for (int prot = k ? 5 : 1; prot < 8; prot++) {
			snprintf(what, sizeof what, "%s, mprotect %d", names[k], prot);
			err(what, mprotect(p, size, prot));
		}
		must(mprotect(p, size, k ? 5 : 1), "mprotect");
		for (int i = 0; i < sizeof advice / sizeof *advice; i++) {
			snprintf(what, sizeof what, "%s, madvise %d", names[k], advice[i]);
			err(what, madvise(p, size, advice[i]));
		}
		err("mlock", mlock(p, size));
		say("%d KiB locked", locked());
		err("mremap", (long)mremap(p, size, size + PAGE, MREMAP_MAYMOVE));
	}
}

// whole_lines reads an open text to its end and says how.
static void whole_lines(const char *what, int fd, size_t size)
{
	static char text[1 << 16];
	int reads = 0, full = 1, whole = 1, last = 0;
	for (long n; (n = read(fd, text, size)) > 0; reads++) {
		full &= reads == 0 || last > 2048;
		whole &= text[n - 1] == '\n' && n < 4096;
		last = n;
	}
	say("%s: %s reads, %s, %s", what, reads > 5 ? "many" : "few", whole ? "of whole lines in a page" : "of anything", full ? "full" : "short");
}

TEST(texts, "what one read gives of the list of mappings")
{
	static const char *const names[] = {"/proc/self/maps", "/proc/self/smaps"};
	static char text[1 << 16];
	char *p = map(600, RW, PRIVATE, -1);
	for (int i = 0; i < 600; i += 2)
		must(mprotect(p + i * PAGE, PAGE, PROT_READ), "mprotect");
	for (int k = 0; k < 2; k++) {
		int fd = must(open(names[k], O_RDONLY), names[k]);
		whole_lines(names[k], fd, sizeof text);
		must(lseek(fd, 0, SEEK_SET), "lseek");
		whole_lines("again", fd, 4096);
		say("at the end: %d", (int)read(fd, text, 100));
		must(lseek(fd, 0, SEEK_SET), "lseek");
		say("ten bytes: %d", (int)read(fd, text, 10));
		whole_lines("what is left", fd, 4095);
		int n = pread(fd, text, sizeof text, 7), m = pread(fd, text + 32768, 32768, 0);
		say("from byte 7: %s, %d", n > 2048 && text[n - 1] == '\n' ? "whole lines" : "others", memcmp(text, text + 32768 + 7, m - 7 < n ? m - 7 : n));
		for (int i = 1; i < 3; i++)
			say("%d bytes at %d: %d", 40 * i, 900 * i, (int)pread(fd, text, 40 * i, 900 * i));
		say("far beyond: %d", (int)pread(fd, text, 40, 1 << 30));
		close(fd);
	}
}
