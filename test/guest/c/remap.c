// mremap: every kind, size, flag and target.
#include "gt.h"
enum { PAGE = 4096 };
static int fd;
static char *base;
static const char *kinds[] = {"anonymous", "shared", "shared file", "private file", "locked", "two"};

static char *map(int kind)
{
	fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ftruncate(fd, 16 * PAGE);
	base = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p = base + 24 * PAGE;
	int flags[] = {0x22, 0x21, 1, 2, 0x22, 0x22};
	p = mmap(p, 4 * PAGE, 3, MAP_FIXED | flags[kind], kind == 2 || kind == 3 ? fd : -1, 0);
	for (int i = 0; i < 4; i++)
		p[i * PAGE] = 'a' + i;
	if (kind == 4)
		mlock(p, 4 * PAGE);
	if (kind == 5)
		mprotect(p + 2 * PAGE, 2 * PAGE, PROT_READ);
	return p;
}

static const char *content(char *p, int n)
{
	static char text[2][40];
	static int turn;
	char *t = text[turn ^= 1];
	int fds[2];
	pipe(fds);
	for (int i = 0; i < n; i++) {
		char c = '!';
		if (write(fds[1], p + i * PAGE, 1) == 1)
			read(fds[0], &c, 1);
		t[i] = c ? c : '.';
	}
	t[n] = 0;
	close(fds[0]), close(fds[1]);
	return t;
}

// where names the place of an address relative to the old mapping.
static const char *where(char *q, char *p, int error)
{
	static char text[40];
	if (q == MAP_FAILED)
		return name_of(error);
	if (q >= base && q < base + 64 * PAGE)
		snprintf(text, sizeof text, "%+ld", (long)(q - p) / PAGE);
	else
		strcpy(text, "elsewhere");
	return text;
}

TEST(matrix, "mremap")
{
	static const struct {
		const char *what;
		int at, old, new, flags, target;
	} cases[] = {
		{"shrink", 0, 4, 2, 0, 0}, {"shrink, may move", 0, 4, 2, 1, 0}, {"same", 0, 4, 4, 0, 0}, {"grow in place", 0, 4, 6, 0, 0}, {"grow, may move", 0, 4, 6, 1, 0}, {"grow the middle", 1, 2, 5, 0, 0}, {"move the middle", 1, 2, 5, 1, 0},
		{"to 0", 0, 4, 0, 0, 0}, {"from 0", 0, 0, 4, 1, 0}, {"from 0 without moving", 0, 0, 4, 0, 0}, {"old too long, shrink", 0, 6, 2, 1, 0}, {"fixed above", 0, 4, 4, 3, 20}, {"fixed, larger", 0, 4, 6, 3, 20}, {"fixed, smaller", 0, 4, 2, 3, 20},
		{"fixed over itself", 0, 4, 4, 3, 0}, {"fixed overlapping above", 0, 4, 4, 3, 2}, {"fixed overlapping below", 0, 4, 4, 3, -2}, {"fixed beside", 0, 4, 4, 3, 4}, {"fixed without moving", 0, 4, 4, 2, 20}, {"fixed to 0", 0, 4, 0, 3, 20}, {"fixed from 0", 0, 0, 4, 3, 20}, {"fixed middle", 1, 2, 2, 3, 20},
		{"dontunmap", 0, 4, 4, 5, 0}, {"dontunmap, larger", 0, 4, 6, 5, 0}, {"dontunmap without moving", 0, 4, 4, 4, 0}, {"dontunmap fixed", 0, 4, 4, 7, 20}, {"dontunmap fixed over itself", 0, 4, 4, 7, 0}, {"dontunmap middle", 1, 2, 2, 5, 0}, {"unknown flag", 0, 4, 4, 9, 0}, {"hole", 8, 2, 2, 1, 0}, {"end hole", 3, 2, 2, 1, 0}};
	for (int k = 0; k < 6; k++)
		for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
			if (k == 5 && cases[i].flags & MREMAP_FIXED)
				continue; // newer versions of Linux move several mappings at once
			char *p = map(k);
			munmap(p + 4 * PAGE, 4 * PAGE), munmap(p + 12 * PAGE, 2 * PAGE);
			char *q = mremap(p + cases[i].at * PAGE, cases[i].old * PAGE, cases[i].new * PAGE, cases[i].flags, p + cases[i].target * PAGE);
			int e = errno;
			say("%s of %s: %s, there %s, here %s", cases[i].what, kinds[k], where(q, p, e), q == MAP_FAILED ? "-" : content(q, cases[i].new ? cases[i].new : 1), content(p, 6));
			if (q != MAP_FAILED)
				munmap(q, 8 * PAGE);
			munmap(base, 64 * PAGE), close(fd);
		}
	char *p = map(0);
	err("unaligned", (long)mremap(p + 1, PAGE, PAGE, 0)), err("unaligned sizes", (long)mremap(p, 4 * PAGE - 5, 4 * PAGE - 9, 0)), err("-1", (long)mremap(p, PAGE, -1, 1));
	err("to an unaligned address", (long)mremap(p, PAGE, PAGE, 3, base + 1)), err("to the kernel", (long)mremap(p, PAGE, PAGE, 3, 0xffff800000000000)), err("to the end", (long)mremap(p, PAGE, PAGE, 3, 0x7ffffffff000));
	err("of the kernel", (long)mremap((void *)0xffff800000000000, PAGE, PAGE, 1)), err("of 0", (long)mremap(NULL, PAGE, PAGE, 1)), err("old -1", (long)mremap(p, -1, PAGE, 0));
	IN_CHILD("limit of memory", struct rlimit r = {64 << 20, 64 << 20}; setrlimit(RLIMIT_AS, &r); err("large", (long)mremap(p, PAGE, 80 << 20, 1)));
	IN_CHILD("limit of locked memory", struct rlimit r = {4 * PAGE, 4 * PAGE}; setrlimit(RLIMIT_MEMLOCK, &r); setresuid(1, 1, 1); mlock(p, 2 * PAGE); err("3", (long)mremap(p, 2 * PAGE, 5 * PAGE, 1)); err("2", (long)mremap(p, 2 * PAGE, 4 * PAGE, 1)));
}

static unsigned long brk_to(unsigned long a) { return syscall(SYS_brk, a); }

TEST(program_break, "brk at its limits")
{
	unsigned long b = brk_to(0), e;
	num("up", brk_to(b + 10000) - b), num("same", brk_to(b + 10000) - b), num("down", brk_to(b + 5) - b), num("below the start", brk_to(4096) - b), num("0", brk_to(0) - b), num("far", brk_to(-1) - b), num("kernel", brk_to(0xffff800000000000) - b), num("huge", brk_to(b + (1UL << 46)) - b);
	e = (b + 5 + 4095) & ~4095UL;
	char *p = mmap((void *)(e + 4 * 4096), 4096, 3, MAP_FIXED_NOREPLACE | 0x22, -1, 0);
	num("mapped above", p != MAP_FAILED), num("up to it", brk_to(e + 3 * 4096) == e + 3 * 4096), num("beside it", brk_to(e + 4 * 4096) == e + 4 * 4096), num("over it", brk_to(e + 5 * 4096) == e + 5 * 4096);
	IN_CHILD("limit", struct rlimit r = {1 << 20, 1 << 20}; setrlimit(RLIMIT_DATA, &r); num("2 MB", brk_to(e + (2 << 20)) == e + (2 << 20)); munmap(p, 4096); num("2 MB", brk_to(e + (2 << 20)) == e + (2 << 20)); err("private memory", (long)mmap(NULL, 4 << 20, 3, 0x22, -1, 0)); err("shared", (long)mmap(NULL, 4 << 20, 3, 0x21, -1, 0)); err("read-only", (long)mmap(NULL, 4 << 20, 1, 0x22, -1, 0)));
}

TEST(count, "vm.max_map_count")
{
	char text[40] = "";
	int f = open("/proc/sys/vm/max_map_count", O_RDONLY), most, n = 0, e = 0;
	read(f, text, 39), most = atoi(text);
	num("default", most);
	char *p = mmap(NULL, (long)most * 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (; n < most * 2; n++)
		if (mprotect(p + (long)n * 2 * PAGE, PAGE, PROT_NONE) < 0) {
			e = errno;
			break;
		}
	say("%s, about half as many: %d", name_of(e), n > most / 2 - 30 && n <= most / 2);
	// How many a program has before differs with the kernel's own pages: fill the rest.
	for (n = 0; n < 3 && mmap(NULL, PAGE, 3, 0x21, -1, 0) != MAP_FAILED;)
		n++;
	say("the last: %d", n < 3);
	n = most / 2;
	err("mmap", (long)mmap(NULL, PAGE, 3, 0x22, -1, 0)), err("one more", (long)mmap(NULL, PAGE, 3, 0x21, -1, 0)), err("and more", (long)mmap(NULL, PAGE, 1, 0x21, -1, 0)), err("munmap of a middle", munmap(p + (long)(n + 5) * 2 * PAGE, PAGE)), err("mremap", (long)mremap(p, PAGE, 2 * PAGE, 1)), err("madvise", madvise(p + (long)(n + 9) * 2 * PAGE, PAGE, MADV_DONTFORK)), err("mlock", mlock(p + (long)(n + 9) * 2 * PAGE, PAGE));
	err("munmap of a whole", munmap(p, PAGE));
}
