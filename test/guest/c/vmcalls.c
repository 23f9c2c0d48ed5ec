// Memory calls: every advice, flag and alignment on every kind of mapping, over holes
// and at the limits.
#include "gt.h"
#include <linux/membarrier.h>
#include <stdbool.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = 4096 };

static int file_fd = -1;

enum { ANON, ANON_RO, ANON_NONE, SHARED, FILE_SHARED, FILE_RO, FILE_PRIVATE, BEYOND, LOCKED, HOLE, GROWS, KINDS };
static const char *kinds[] = {"anonymous", "read-only", "no access", "shared", "shared file", "read-only file", "private file", "beyond the end", "locked", "a hole", "grows down"};

// map makes eight pages of a kind, touched where they can be.
static char *map(int kind)
{
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	if (kind >= FILE_SHARED && kind <= BEYOND) {
		file_fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
		must(ftruncate(file_fd, kind == BEYOND ? PAGE : 8 * PAGE), "ftruncate");
		fd = file_fd, flags = kind == FILE_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
	}
	switch (kind) {
	case ANON_RO: case FILE_RO: prot = PROT_READ; break;
	case ANON_NONE: prot = PROT_NONE; break;
	case SHARED: flags = MAP_SHARED | MAP_ANONYMOUS; break;
	case GROWS: flags |= MAP_GROWSDOWN; break;
	}
	char *p = mmap(NULL, 12 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 2 * PAGE;
	if (mmap(p, 8 * PAGE, prot, flags | MAP_FIXED, fd, 0) != p)
		fatal("mmap");
	if (prot & PROT_WRITE)
		for (int i = 0; i < (kind == BEYOND ? 1 : 8); i++)
			p[i * PAGE] = 'a' + i;
	if (kind == LOCKED)
		must(mlock(p, 8 * PAGE), "mlock");
	if (kind == HOLE)
		munmap(p + 3 * PAGE, 2 * PAGE);
	return p;
}

static void unmap(char *p)
{
	munmap(p - 2 * PAGE, 12 * PAGE);
	if (file_fd >= 0)
		close(file_fd), file_fd = -1;
}

// content shows the first byte of each page: '.' for zero, '!' where it faults.
static const char *content(char *p)
{
	static char text[9];
	int fds[2];
	must(pipe(fds), "pipe");
	for (int i = 0; i < 8; i++) {
		char c = '!';
		if (write(fds[1], p + i * PAGE, 1) == 1)
			read(fds[0], &c, 1);
		text[i] = c ? c : '.';
	}
	close(fds[0]), close(fds[1]);
	return text;
}

TEST(advice, "madvise: every advice on every kind")
{
	static const int advices[] = {0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 26, 99, -1};
	for (int a = 0; a < (int)(sizeof advices / sizeof *advices); a++)
		for (int k = 0; k < KINDS; k++) {
			char *p = map(k);
			long rc = madvise(p + PAGE, 6 * PAGE, advices[a]);
			int e = errno;
			if (advices[a] == MADV_FREE || advices[a] == 12 || advices[a] == 13)
				say("%d on %s: %s", advices[a], kinds[k], rc ? name_of(e) : "ok");
			else
				say("%d on %s: %s %s", advices[a], kinds[k], rc ? name_of(e) : "ok", content(p));
			unmap(p);
		}
}

TEST(advice_ranges, "madvise: ranges")
{
	static const int advices[] = {0, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_WIPEONFORK, 77};
	for (int a = 0; a < (int)(sizeof advices / sizeof *advices); a++) {
		char *p = map(ANON);
		say("%d", advices[a]);
		err("nothing", madvise(p, 0, advices[a])), err("unaligned", madvise(p + 1, PAGE, advices[a])), err("unaligned nothing", madvise(p + 1, 0, advices[a]));
		err("part of a page", madvise(p, 1, advices[a])), err("-1", madvise(p, -1, advices[a])), err("-4096", madvise(p, -4096, advices[a]));
		err("kernel", madvise((void *)0xffff800000000000, PAGE, advices[a])), err("nothing at 0", madvise(NULL, 0, advices[a])), err("0", madvise(NULL, PAGE, advices[a]));
		unmap(p);
	}
}

TEST(forks, "madvise and fork")
{
	char *p = map(ANON);
	err("DONTFORK", madvise(p, 2 * PAGE, MADV_DONTFORK)), err("WIPEONFORK", madvise(p + 4 * PAGE, 2 * PAGE, MADV_WIPEONFORK));
	IN_CHILD("child", say("%s", content(p)); IN_CHILD("grandchild", p[4 * PAGE] = 'x'; IN_CHILD("its child", say("%s", content(p)))));
	err("DOFORK", madvise(p, 2 * PAGE, MADV_DOFORK)), err("KEEPONFORK", madvise(p + 4 * PAGE, 2 * PAGE, MADV_KEEPONFORK));
	IN_CHILD("child", say("%s", content(p)));
	unmap(p), p = map(SHARED);
	err("DONTFORK of shared", madvise(p, 2 * PAGE, MADV_DONTFORK)), err("WIPEONFORK of shared", madvise(p + 4 * PAGE, 2 * PAGE, MADV_WIPEONFORK));
	IN_CHILD("child", say("%s", content(p)));
	unmap(p), p = map(FILE_PRIVATE);
	err("WIPEONFORK of a file", madvise(p + 4 * PAGE, 2 * PAGE, MADV_WIPEONFORK));
	unmap(p);
}

TEST(locks, "mlock, munlock, mlock2, mlockall on every kind")
{
	for (int k = 0; k < KINDS; k++) {
		char *p = map(k), vec[8];
		say("%s", kinds[k]);
		err("mlock", mlock(p, 8 * PAGE)), err("again", mlock(p, 8 * PAGE)), err("munlock", munlock(p, 8 * PAGE));
		err("mlock2", syscall(SYS_mlock2, p, 8 * PAGE, 0)), err("on fault", syscall(SYS_mlock2, p, 8 * PAGE, 1)), err("bad flags", syscall(SYS_mlock2, p, 8 * PAGE, 2));
		err("DONTNEED", madvise(p, 8 * PAGE, MADV_DONTNEED)), err("munlock", munlock(p, 8 * PAGE));
		err("unaligned", mlock(p + 5, 1)), err("nothing", mlock(p, 0)), err("-1", mlock(p, -1)), err("munlock nothing", munlock(p + 1, 0)), err("munlock -1", munlock(p, -1)), err("munlock of what is not", munlock(p + 3 * PAGE, 2 * PAGE));
		err("msync invalidate", msync(p, 8 * PAGE, MS_INVALIDATE)), mlock(p, PAGE), err("msync invalidate of locked", msync(p, 8 * PAGE, MS_INVALIDATE | MS_SYNC)), err("async", msync(p, 8 * PAGE, MS_ASYNC)), err("both", msync(p, 8 * PAGE, MS_ASYNC | MS_SYNC)), err("none", msync(p, 8 * PAGE, 0)), err("unknown", msync(p, 8 * PAGE, 8));
		err("unaligned", msync(p + 1, PAGE, MS_SYNC)), err("nothing", msync(p, 0, MS_SYNC)), err("-1", msync(p, -1, MS_SYNC)), err("part", msync(p, 1, MS_SYNC));
		err("mincore", mincore(p, 8 * PAGE, vec)), err("unaligned", mincore(p + 1, PAGE, vec)), err("nothing", mincore(p, 0, vec)), err("-1", mincore(p, -1, vec)), err("bad vector", mincore(p, PAGE, (void *)8)), err("kernel", mincore((void *)-4096, PAGE, vec));
		unmap(p);
	}
	err("flags 0", mlockall(0)), err("flags 8", mlockall(8)), err("on fault alone", mlockall(4)), err("future, on fault", mlockall(6));
	err("future", mlockall(MCL_FUTURE)), err("munlockall", munlockall());
	IN_CHILD("without privilege", struct rlimit r = {4 * PAGE, 4 * PAGE}; setrlimit(RLIMIT_MEMLOCK, &r); setresuid(1000, 1000, 1000);
		 char *p = map(ANON); err("two", mlock(p, 2 * PAGE)); err("four", mlock(p, 4 * PAGE)); err("five", mlock(p, 5 * PAGE)); err("three others", mlock(p + 5 * PAGE, 3 * PAGE)); err("all", mlockall(MCL_CURRENT));
		 err("future", mlockall(MCL_FUTURE)); err("mmap", (long)mmap(NULL, 8 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); munlockall();
		 err("MAP_LOCKED", (long)mmap(NULL, 5 * PAGE, 3, MAP_LOCKED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); err("MAP_LOCKED less", (long)mmap(NULL, 4 * PAGE, 3, MAP_LOCKED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		 r.rlim_cur = r.rlim_max = 0; setrlimit(RLIMIT_MEMLOCK, &r); munlockall(); err("with limit 0", mlock(p, PAGE)); err("munlock", munlock(p, PAGE)); err("mlockall", mlockall(MCL_CURRENT)); err("MAP_LOCKED", (long)mmap(NULL, PAGE, 3, MAP_LOCKED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}

TEST(protect, "mprotect on every kind")
{
	static const int prots[] = {0, 1, 2, 3, 4, 7, 8, 16, PROT_GROWSDOWN | 3, PROT_GROWSUP | 3, PROT_GROWSDOWN | PROT_GROWSUP | 3, -1};
	for (int i = 0; i < (int)(sizeof prots / sizeof *prots); i++)
		for (int k = 0; k < KINDS; k++) {
			char *p = map(k);
			long rc = mprotect(p + PAGE, 6 * PAGE, prots[i]);
			int e = errno;
			say("%x of %s: %s %s", prots[i], kinds[k], rc ? name_of(e) : "ok", content(p));
			unmap(p);
		}
	char *p = map(ANON);
	err("nothing", mprotect(p, 0, 0)), err("unaligned", mprotect(p + 1, PAGE, 0)), err("unaligned nothing", mprotect(p + 1, 0, 0)), err("-1", mprotect(p, -1, 0)), err("-4096", mprotect(p, -4096, 0)), err("wrap", mprotect(p, -(unsigned long)p, 0));
	err("kernel", mprotect((void *)0xffff800000000000, PAGE, 0)), err("0", mprotect(NULL, PAGE, 0)), err("nothing at a hole", mprotect(NULL, 0, 0)), err("part", mprotect(p, 1, 0));
	unmap(p);
	int fd = open("g", O_RDONLY | O_CREAT, 0600);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	err("write to what was opened to read", mprotect(p, PAGE, PROT_READ | PROT_WRITE)), munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	err("privately", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	err("pkey_mprotect", syscall(SYS_pkey_mprotect, p, PAGE, 1, -1)), err("with key 99", syscall(SYS_pkey_mprotect, p, PAGE, 1, 99)), err("with key -2", syscall(SYS_pkey_mprotect, p, PAGE, 1, -2));
	err("pkey_alloc flags", syscall(SYS_pkey_alloc, 1, 0)), err("pkey_alloc rights", syscall(SYS_pkey_alloc, 0, 8)), err("pkey_free 99", syscall(SYS_pkey_free, 99)), err("pkey_free -1", syscall(SYS_pkey_free, -1));
	err("pkey_free 0", syscall(SYS_pkey_free, 15));
}

TEST(unmaps, "munmap and mmap arguments")
{
	char *p = map(ANON);
	err("nothing", munmap(p, 0)), err("unaligned", munmap(p + 1, PAGE)), err("-1", munmap(p, -1)), err("kernel", munmap((void *)0xffff800000000000, PAGE)), err("a hole", munmap(NULL, PAGE)), err("wrap", munmap(p, -(unsigned long)p)), err("part", munmap(p, 1));
	say("%s", content(p)), unmap(p);
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600), dir = open(".", O_RDONLY), path = open("f", O_PATH), wo = open("f", O_WRONLY);
	ftruncate(fd, 3 * PAGE);
	struct {
		const char *what;
		void *addr;
		unsigned long size;
		int prot, flags, fd;
		long off;
	} cases[] = {{"nothing", 0, 0, 3, 0x22, -1, 0}, {"no type", 0, PAGE, 3, 0x20, -1, 0}, {"both types", 0, PAGE, 3, 0x23, -1, 0}, {"unaligned offset", 0, PAGE, 1, 2, fd, 1}, {"unaligned offset of nothing", 0, PAGE, 1, 0x22, -1, 1},
		{"negative offset", 0, PAGE, 1, 2, fd, -4096}, {"offset beyond", 0, PAGE, 1, 2, fd, 1L << 40}, {"offset that wraps", 0, 2 * PAGE, 1, 2, fd, 0x7ffffffffffff000}, {"huge", 0, -4096, 3, 0x22, -1, 0}, {"-1", 0, -1, 3, 0x22, -1, 0}, {"2^47", 0, 1L << 47, 0, 0x4022, -1, 0},
		{"a directory", 0, PAGE, 1, 2, dir, 0}, {"O_PATH", 0, PAGE, 1, 2, path, 0}, {"write only", 0, PAGE, 2, 1, wo, 0}, {"write only, private", 0, PAGE, 2, 2, wo, 0}, {"write only, nothing", 0, PAGE, 0, 1, wo, 0}, {"bad descriptor", 0, PAGE, 1, 2, 99, 0}, {"-1", 0, PAGE, 1, 2, -1, 0}, {"anonymous with a descriptor", 0, PAGE, 1, 0x22, fd, 0}, {"anonymous with a bad one", 0, PAGE, 1, 0x22, 99, 0},
		{"fixed unaligned", (void *)0x10000001, PAGE, 1, 0x32, -1, 0}, {"fixed in the kernel", (void *)0xffff800000000000, PAGE, 1, 0x32, -1, 0}, {"fixed at the end", (void *)0x7ffffffff000, PAGE, 1, 0x32, -1, 0}, {"noreplace in the kernel", (void *)0xffff800000000000, PAGE, 1, 0x100022, -1, 0}, {"hint in the kernel", (void *)0xffff800000000000, PAGE, 1, 0x22, -1, 0},
		{"shared validate", 0, PAGE, 1, 3, fd, 0}, {"shared validate, unknown", 0, PAGE, 1, 0x8000003, fd, 0}, {"sync", 0, PAGE, 1, 0x80003, fd, 0}, {"sync, not validated", 0, PAGE, 1, 0x80001, fd, 0}, {"unknown flag", 0, PAGE, 1, 0x8000022, -1, 0}, {"grows down", 0, PAGE, 1, 0x122, -1, 0}, {"grows down, file", 0, PAGE, 1, 0x102, fd, 0}, {"grows down, shared", 0, PAGE, 1, 0x101, fd, 0}, {"32bit", 0, PAGE, 1, 0x62, -1, 0}, {"prot 8", 0, PAGE, 8, 0x22, -1, 0}, {"prot -1", 0, PAGE, -1, 0x22, -1, 0}, {"denywrite", 0, PAGE, 1, 0x802, fd, 0}, {"populate", 0, PAGE, 1, 0x8022, -1, 0}, {"nonblock", 0, PAGE, 1, 0x18022, -1, 0}, {"stack", 0, PAGE, 1, 0x20022, -1, 0}};
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		char *q = mmap(cases[i].addr, cases[i].size, cases[i].prot, cases[i].flags, cases[i].fd, cases[i].off);
		say("%s: %s", cases[i].what, q == MAP_FAILED ? name_of(errno) : "ok");
		if (q != MAP_FAILED)
			munmap(q, cases[i].size);
	}
	p = map(ANON);
	err("noreplace over", (long)mmap(p, PAGE, 3, MAP_FIXED_NOREPLACE | 0x22, -1, 0)), err("noreplace over a part", (long)mmap(p - PAGE, 4 * PAGE, 3, MAP_FIXED_NOREPLACE | 0x22, -1, 0)), err("noreplace unaligned", (long)mmap(p + 1, PAGE, 3, MAP_FIXED_NOREPLACE | 0x22, -1, 0));
	munmap(p, PAGE), num("noreplace in a hole", (char *)mmap(p, PAGE, 3, MAP_FIXED_NOREPLACE | 0x22, -1, 0) - p), err("noreplace and fixed", (long)mmap(p, PAGE, 3, MAP_FIXED | MAP_FIXED_NOREPLACE | 0x22, -1, 0));
	err("remap_file_pages of anonymous", syscall(SYS_remap_file_pages, p, PAGE, 0, 1, 0)), unmap(p), p = map(FILE_SHARED);
	err("remap_file_pages", syscall(SYS_remap_file_pages, p, 2 * PAGE, 0, 5, 0)), say("%s", content(p)), err("prot", syscall(SYS_remap_file_pages, p, 2 * PAGE, 1, 5, 0)), err("unaligned", syscall(SYS_remap_file_pages, p + 1, PAGE, 0, 3, 0)), err("nothing", syscall(SYS_remap_file_pages, p, 0, 0, 3, 0)), err("wraps", syscall(SYS_remap_file_pages, p, PAGE, 0, -1L, 0));
	unmap(p);
}

TEST(grow, "mappings that grow down")
{
	char *p = mmap(NULL, 600 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 600 * PAGE);
	char *q = mmap(p + 400 * PAGE, 2 * PAGE, 3, MAP_FIXED | MAP_GROWSDOWN | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	num("there", q - p - 400 * PAGE);
	IN_CHILD("a page below", q[-PAGE] = 1);
	IN_CHILD("ten pages below", q[-10 * PAGE] = 1);
	IN_CHILD("a hundred", q[-100 * PAGE] = 1);
	IN_CHILD("a write of the kernel", int fds[2]; pipe(fds); write(fds[1], "x", 1); num("read", read(fds[0], q - 3 * PAGE, 1)));
	mmap(p + 100 * PAGE, PAGE, 3, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IN_CHILD("down to the gap", for (int i = 1; i < 43; i++) q[-i * PAGE] = 1);
	IN_CHILD("into the gap", for (int i = 1; i < 250; i++) q[-i * PAGE] = 1);
	mprotect(p + 100 * PAGE, PAGE, PROT_NONE);
	IN_CHILD("into the gap of one without access", for (int i = 1; i < 290; i++) q[-i * PAGE] = 1);
	char *near = mmap(q - 300 * PAGE, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	num("a hint below is taken", near == q - 300 * PAGE);
	near = mmap(q - 100 * PAGE, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	num("a hint in the gap is not", near == q - 100 * PAGE);
	IN_CHILD("limit", struct rlimit r = {20 * PAGE, 20 * PAGE}; setrlimit(RLIMIT_STACK, &r); for (int i = 1; i < 30; i++) q[-i * PAGE] = 1);
}
