// Program memory tests mappings, protection, copy-on-write and what faults say.
#include "gt.h"

#include <pthread.h>
#include <setjmp.h>

enum { page = 4096 };

static sigjmp_buf back;
static siginfo_t fault;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	fault = *info;
	siglongjmp(back, 1);
}

static void catch_faults(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
}

// touch tries one byte and prints the fault, with its address as an offset.
static void touch(const char *what, volatile char *p, int write, char *base)
{
	if (sigsetjmp(back, 1) == 0) {
		if (write)
			*p = 42;
		else
			(void)*p;
		say("%s: fine", what);
	} else {
		say("%s: SIG%s code %d at %ld", what, sigabbrev_np(fault.si_signo), fault.si_code, (long)((char *)fault.si_addr - base));
	}
}

static char *map(size_t len, int prot, int flags)
{
	char *p = mmap(NULL, len, prot, flags, -1, 0);
	if (p == MAP_FAILED)
		fatal("mmap");
	return p;
}

static char *anon(size_t len) { return map(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS); }

static int file(const char *name, size_t len, char fill)
{
	int fd = (int)must(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), "open");
	for (size_t i = 0; i < len; i++)
		must(pwrite(fd, &fill, 1, (off_t)i), "pwrite");
	return fd;
}

TEST(anonymous, "anonymous memory")
{
	char *p = anon(10 * page);
	int sum = 0;
	for (int i = 0; i < 10 * page; i++)
		sum += p[i];
	say("zero: %d, aligned %d", sum == 0, (uintptr_t)p % page == 0);
	for (int i = 0; i < 10; i++)
		p[i * page + i] = (char)i;
	for (int i = 0; i < 10; i++)
		sum += p[i * page + i];
	say("sum %d", sum);
	err("munmap", munmap(p, 10 * page));
	err("munmap again", munmap(p, 10 * page));
	err("munmap unaligned", munmap(p + 1, page));
	err("munmap nothing", munmap(p, 0));
	err("munmap the kernel's", munmap((void *)0xffffffff80000000, page));
}

TEST(protection, "protection and faults")
{
	catch_faults();
	char *p = anon(4 * page);
	p[0] = p[page] = p[2 * page] = p[3 * page] = 1;
	err("read-only", mprotect(p + page, page, PROT_READ));
	err("none", mprotect(p + 2 * page, page, PROT_NONE));
	touch("write the first", p, 1, p);
	touch("read the read-only", p + page, 0, p);
	touch("write the read-only", p + page + 5, 1, p);
	touch("read the inaccessible", p + 2 * page + 7, 0, p);
	touch("write the last", p + 3 * page, 1, p);
	err("again writable", mprotect(p, 4 * page, PROT_READ | PROT_WRITE));
	touch("write the second", p + page, 1, p);
	say("the inaccessible page kept its byte: %d", p[2 * page]);
	munmap(p + page, page);
	touch("read the hole", p + page + 1, 0, p);
	err("mprotect over the hole", mprotect(p, 3 * page, PROT_READ));
	touch("the page before it is read-only", p, 1, p);
	touch("null", NULL, 0, NULL);
	touch("null + 100", (char *)100, 1, NULL);
	touch("the kernel's half", (char *)0xffffffff80200000, 0, (char *)0xffffffff80200000);
	touch("the direct map", (char *)0xffff800000000000, 1, (char *)0xffff800000000000);
	touch("not canonical", (char *)0x8000000000000000, 0, NULL);
	err("mprotect unaligned", mprotect(p + 1, page, PROT_READ));
	err("mprotect nothing", mprotect(p, 0, PROT_READ));
	err("mprotect bad bits", mprotect(p, page, 0x100));
	err("mprotect the kernel's", mprotect((void *)0xffffffff80000000, page, PROT_READ));
}

TEST(execute, "execution")
{
	catch_faults();
	char *p = anon(page);
	memcpy(p, "\xb8\x2a\x00\x00\x00\xc3", 6); // mov $42, %eax; ret
	if (sigsetjmp(back, 1) == 0) {
		((int (*)(void))p)();
		say("executed");
	} else {
		say("no execution: SIG%s code %d at its start: %d", sigabbrev_np(fault.si_signo), fault.si_code, fault.si_addr == p);
	}
	err("mprotect", mprotect(p, page, PROT_READ | PROT_EXEC));
	say("returns %d", ((int (*)(void))p)());
	touch("write to it", p, 1, p);
}

TEST(fixed, "fixed addresses")
{
	char *p = anon(4 * page);
	memset(p, 'a', 4 * page);
	char *q = mmap(p + page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("replaced: %d, bytes %d %d %d", q == p + page, p[0], p[page], p[2 * page]);
	err("noreplace over something", (long)mmap(p, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	munmap(p + 2 * page, page);
	q = mmap(p + 2 * page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	say("noreplace in the hole: %d", q == p + 2 * page);
	err("fixed, unaligned", (long)mmap(p + 1, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	err("fixed in the kernel's half", (long)mmap((void *)0xffffffff80000000, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	q = mmap((void *)0x12345678000, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("a free hint is taken: %d", q == (void *)0x12345678000);
	err("length 0", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	err("huge", (long)mmap(NULL, 1UL << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	err("larger than anything", (long)mmap(NULL, SIZE_MAX - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	err("neither shared nor private", (long)mmap(NULL, page, PROT_READ, MAP_ANONYMOUS, -1, 0));
	err("bad descriptor", (long)mmap(NULL, page, PROT_READ, MAP_PRIVATE, 999, 0));
	int fd = file("f", 10, 'x');
	err("unaligned offset", (long)syscall(SYS_mmap, NULL, page, PROT_READ, MAP_PRIVATE, fd, 100));
	int ro = open("f", O_RDONLY), wo = open("f", O_WRONLY);
	err("shared writable of a read-only descriptor", (long)mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0));
	err("private writable of it", (long)mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0));
	err("of a write-only descriptor", (long)mmap(NULL, page, PROT_READ, MAP_PRIVATE, wo, 0));
	char *s = mmap(NULL, page, PROT_READ, MAP_SHARED, ro, 0);
	err("make it writable", mprotect(s, page, PROT_READ | PROT_WRITE));
	int dir = open(".", O_RDONLY);
	err("a directory", (long)mmap(NULL, page, PROT_READ, MAP_PRIVATE, dir, 0));
}

TEST(sparse, "large sparse mappings")
{
	size_t len = 64UL << 30;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		fatal("mmap of 64 GiB");
	for (size_t i = 0; i < len; i += 1UL << 30)
		p[i + i / 7 % page] = 5;
	long sum = 0;
	for (size_t i = 0; i < len; i += 1UL << 30)
		sum += p[i + i / 7 % page];
	say("sum %ld", sum);
	err("munmap the middle", munmap(p + (16UL << 30), 32UL << 30));
	err("munmap all", munmap(p, len));
	int fails = 0;
	for (int i = 0; i < 1000; i++) {
		char *q = anon(page);
		*q = 1;
		fails += munmap(q, page) != 0;
	}
	say("1000 times: %d failures", fails);
}

TEST(files, "file mappings")
{
	catch_faults();
	int fd = file("f", page + 100, 'x');
	char *s = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	say("content %c %c, behind the end %d", s[0], p[page + 99], s[page + 100]);
	touch("beyond the last page", s + 2 * page, 0, s);
	touch("private beyond it", p + 2 * page + 9, 1, p);
	s[0] = 'S';
	p[1] = 'P';
	char buf[4] = "";
	must(pread(fd, buf, 2, 0), "pread");
	say("the file has %s, the private map %c%c, the shared map %c%c", buf, p[0], p[1], s[0], s[1]);
	must(pwrite(fd, "WW", 2, 0), "pwrite");
	say("after a write: shared %c%c, private %c", s[0], s[1], p[1]);
	must(ftruncate(fd, 10), "ftruncate");
	touch("the first page", s + 5, 0, s);
	touch("a page that was cut off", s + page, 0, s);
	say("bytes behind the new end: %d", s[20]);
	must(ftruncate(fd, 2 * page), "ftruncate");
	touch("it came back", s + page, 0, s);
	say("and is empty: %d", s[page]);
	close(fd);
	s[100] = 'z';
	err("msync", msync(s, page, MS_SYNC));
	err("msync bad flags", msync(s, page, MS_SYNC | MS_ASYNC));
	munmap(s, 3 * page);
	err("msync unmapped", msync(s, page, MS_SYNC));
	fd = open("f", O_RDONLY);
	must(pread(fd, buf, 1, 100), "pread");
	say("the file kept %c", buf[0]);
	char *second = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, page);
	say("with an offset: %d", second[0]);
	unlink("f");
	say("still there: %c", ((char *)mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0))[100]);
}

TEST(kernel_faults, "the kernel meets a mapping's end")
{
	int fd = file("f", 100, 'y');
	char *s = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int out = (int)must(open("g", O_RDWR | O_CREAT, 0644), "open");
	err("write from beyond the end", write(out, s + page, 10));
	say("write across it: %zd", write(out, s + page - 10, 20) > 0 ? (ssize_t)10 : (ssize_t)-1);
	err("read into beyond the end", pread(out, s + page, 1, 0));
	char *ro = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	err("read into a read-only mapping", pread(out, ro, 1, 0));
	char *fresh = anon(2 * page);
	say("read into fresh memory %zd", pread(out, fresh + page - 5, 10, 0));
	say("write from fresh memory %zd", write(out, anon(page), page));
}

TEST(cow, "copy on write over fork")
{
	char *p = anon(64 * page), *s = map(2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	for (int i = 0; i < 64; i++)
		p[i * page] = (char)i;
	s[0] = 1;
	int ready[2], go[2];
	must(pipe(ready), "pipe"), must(pipe(go), "pipe");
	char c = 0;
	pid_t pid = FORK({
		for (int i = 0; i < 64; i += 2)
			p[i * page] = (char)(100 + i % 20);
		s[0] = 2;
		must(write(ready[1], &c, 1), "write");
		must(read(go[0], &c, 1), "read");
		int sum = 0;
		for (int i = 0; i < 64; i++)
			sum += p[i * page];
		say("child's sum %d, shared %d %d", sum, s[0], s[page]);
	});
	must(read(ready[0], &c, 1), "read");
	int sum = 0;
	for (int i = 0; i < 64; i++)
		sum += p[i * page];
	say("parent's sum %d, shared %d", sum, s[0]);
	for (int i = 0; i < 64; i++)
		p[i * page] = 1;
	s[page] = 7;
	must(write(go[1], &c, 1), "write");
	status("child", wait_for(pid));
	say("parent's byte %d", p[5 * page]);
	// Three generations, the middle one gone.
	p[0] = 'g';
	int fd[2], gate[2];
	must(pipe(fd), "pipe");
	must(pipe(gate), "pipe");
	IN_CHILD("middle", {
		p[1] = 'm';
		if (fork() == 0) {
			p[2] = 's';
			must(read(gate[0], &c, 1), "read");
			say("grandchild sees %c%c%c", p[0], p[1], p[2]);
			close(fd[1]);
			_exit(0);
		}
	});
	close(fd[1]);
	p[0] = 'x';
	must(write(gate[1], "g", 1), "write");
	must(read(fd[0], &c, 1), "read");
	say("parent sees %c %d %d", p[0], p[1], p[2]);
}

TEST(cow_kernel, "the kernel writes to shared pages")
{
	char *p = anon(page);
	strcpy(p, "before");
	int fd[2];
	must(pipe(fd), "pipe");
	must(write(fd[1], "kernel", 6), "write");
	IN_CHILD("child", {
		must(read(fd[0], p, 6), "read");
		say("child has %s", p);
	});
	say("parent has %s", p);
	pid_t pid = FORK({
		sleep_ms(30);
		say("child has %s", p);
	});
	must(write(fd[1], "parent", 6), "write");
	must(read(fd[0], p, 6), "read");
	wait_for(pid);
	say("parent has %s", p);
}

TEST(remap, "mremap")
{
	catch_faults();
	char *p = anon(4 * page);
	memset(p, 'r', 4 * page);
	char *q = mremap(p, 4 * page, 2 * page, 0);
	say("shrinks in place: %d", q == p);
	touch("the cut part", p + 2 * page, 0, p);
	q = mremap(p, 2 * page, 3 * page, 0);
	say("grows in place: %d, new byte %d", q == p, q == p ? q[2 * page] : -1);
	char *wall = mmap(p + 3 * page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say("a wall: %d", wall == p + 3 * page);
	err("cannot grow in place", (long)mremap(p, 3 * page, 8 * page, 0));
	q = mremap(p, 3 * page, 8 * page, MREMAP_MAYMOVE);
	say("moves: %d, content %c %c %d", q != MAP_FAILED && q != p, q[0], q[2 * page - 1], q[7 * page]);
	touch("the old place", p, 0, p);
	char *to = anon(8 * page);
	char *r = mremap(q, 8 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	say("moves where asked: %d, content %c", r == to, r[0]);
	err("unaligned", (long)mremap(r + 1, page, 2 * page, MREMAP_MAYMOVE));
	err("unmapped", (long)mremap(q, page, 2 * page, MREMAP_MAYMOVE));
	err("to nothing", (long)mremap(r, page, 0, MREMAP_MAYMOVE));
	err("bad flags", (long)mremap(r, page, page, 64));
	err("overlap", (long)mremap(r, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, r + page));
	char *s = map(page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	s[0] = 'd';
	char *dup = mremap(s, 0, page, MREMAP_MAYMOVE);
	say("a shared page twice: %d", dup != MAP_FAILED && dup != s && dup[0] == 'd');
}

TEST(advice, "madvise")
{
	char *p = anon(4 * page);
	memset(p, 'm', 4 * page);
	err("DONTNEED", madvise(p + page, 2 * page, MADV_DONTNEED));
	say("%d %d %d %d", p[0], p[page], p[2 * page], p[3 * page]);
	err("unaligned", madvise(p + 1, page, MADV_DONTNEED));
	err("nothing", madvise(p, 0, MADV_DONTNEED));
	err("unknown", madvise(p, page, 9999));
	err("NORMAL", madvise(p, page, MADV_NORMAL));
	err("SEQUENTIAL", madvise(p, page, MADV_SEQUENTIAL));
	err("WILLNEED", madvise(p, page, MADV_WILLNEED));
	err("FREE", madvise(p, page, MADV_FREE));
	munmap(p + page, page);
	err("over a hole", madvise(p, 4 * page, MADV_DONTNEED));
	say("the rest was done: %d %d", p[0], p[3 * page]);
	int fd = file("f", 100, 'f');
	char *f = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	f[0] = 'c';
	err("private file", madvise(f, page, MADV_DONTNEED));
	say("the file's byte again: %c", f[0]);
	char *s = map(page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	s[0] = 's';
	err("shared", madvise(s, page, MADV_DONTNEED));
	say("shared memory keeps it: %c", s[0]);
	err("DONTFORK", madvise(s, page, MADV_DONTFORK));
	IN_CHILD("a child without it", { s[0] = 1; });
	err("DOFORK", madvise(s, page, MADV_DOFORK));
	char *w = anon(page);
	w[0] = 'w';
	err("WIPEONFORK", madvise(w, page, MADV_WIPEONFORK));
	IN_CHILD("child", say("the child's is wiped: %d", w[0]));
	say("the parent's is not: %c", w[0]);
}

TEST(program_break, "brk")
{
	char *start = sbrk(0);
	char *p = sbrk(10 * page);
	say("sbrk gives the old break: %d", p == start);
	memset(p, 'b', 10 * page);
	say("grown %ld", (long)((char *)sbrk(0) - start));
	sbrk(-5 * page);
	sbrk(5 * page);
	say("kept %c, fresh %d", start[0], start[9 * page]);
	long now = syscall(SYS_brk, 0);
	say("brk(0) tells the break: %d", (char *)now == (char *)sbrk(0));
	say("too low is refused: %d", syscall(SYS_brk, page) == now);
	say("too high is refused: %d", syscall(SYS_brk, 0x7fffffffffff) == now);
	say("the kernel's half is refused: %d", syscall(SYS_brk, 0xffffffff80000000) == now);
	struct rlimit rl = {1 << 20, 1 << 20};
	must(setrlimit(RLIMIT_DATA, &rl), "setrlimit");
	say("over the limit is refused: %d", syscall(SYS_brk, now + (64 << 20)) == now);
}

TEST(limits, "address space limit")
{
	struct rlimit rl = {256 << 20, 256 << 20};
	must(setrlimit(RLIMIT_AS, &rl), "setrlimit");
	err("300 MiB", (long)mmap(NULL, 300 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	char *p = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err("100 MiB", (long)p);
	err("200 MiB more", (long)mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	err("grow it to 300", (long)mremap(p, 100 << 20, 300 << 20, MREMAP_MAYMOVE));
	munmap(p, 100 << 20);
	err("200 MiB then", (long)mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int deep(int n)
{
	volatile char frame[page];
	frame[0] = (char)n;
	return n == 0 ? 0 : deep(n - 1) + frame[0] - (char)n + 1;
}

TEST(stack, "stack growth")
{
	say("1000 pages of stack: %d", deep(1000));
	struct rlimit rl;
	getrlimit(RLIMIT_STACK, &rl);
	say("limit %ld", (long)rl.rlim_cur);
	IN_CHILD("endless recursion", deep(1 << 30));
	IN_CHILD("with a small limit", {
		struct rlimit small = {256 << 10, 256 << 10};
		setrlimit(RLIMIT_STACK, &small);
		deep(200);
	});
	IN_CHILD("handled on another stack", {
		stack_t alt = {.ss_sp = anon(64 << 10), .ss_size = 64 << 10};
		must(sigaltstack(&alt, NULL), "sigaltstack");
		struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
		sigaction(SIGSEGV, &sa, NULL);
		if (sigsetjmp(back, 1) == 0)
			deep(1 << 30);
		say("overflow: code %d", fault.si_code);
	});
}

TEST(locks, "mlock and mincore")
{
	char *p = anon(4 * page);
	p[0] = p[2 * page] = 1;
	unsigned char in[4];
	err("mincore", mincore(p, 4 * page, in));
	say("%d %d %d %d", in[0] & 1, in[1] & 1, in[2] & 1, in[3] & 1);
	err("mincore unaligned", mincore(p + 1, page, in));
	munmap(p + page, page);
	err("mincore over a hole", mincore(p, 4 * page, in));
	err("mlock", mlock(p, page));
	err("mlock the hole", mlock(p + page, page));
	err("munlock", munlock(p, page));
	err("populate", (long)mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
}

static void *reader(void *arg)
{
	volatile char *p = arg;
	long sum = 0;
	for (int i = 0; i < 200000; i++)
		sum += p[i % 8 * page];
	return (void *)sum;
}

TEST(race, "threads fault while mappings change")
{
	char *p = anon(8 * page);
	pthread_t th[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, reader, p);
	for (int i = 0; i < 2000; i++) {
		madvise(p + i % 8 * page, page, MADV_DONTNEED);
		mprotect(p + i % 8 * page, page, PROT_READ);
		mprotect(p + i % 8 * page, page, PROT_READ | PROT_WRITE);
	}
	long total = 0;
	for (int i = 0; i < 3; i++) {
		void *sum;
		pthread_join(th[i], &sum);
		total += (long)sum;
	}
	say("all read zeros: %d", total == 0);
}

TEST(wild, "wild pointers in memory calls")
{
	static void *const bad[] = {(void *)8, (void *)0x8000000000000000, (void *)0xffffffff80200000, (void *)-1};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		void *aligned = (void *)((uintptr_t)bad[i] & ~4095UL);
		err("munmap", munmap(aligned, 1));
		err("mprotect", mprotect(aligned, page, PROT_READ));
		err("madvise", madvise(aligned, page, MADV_DONTNEED));
		err("mremap", (long)mremap(aligned, page, page, MREMAP_MAYMOVE));
		err("mincore into it", mincore(aligned, page, bad[i]));
	}
	err("munmap of everything above", munmap((void *)0x700000000000, (size_t)1 << 62));
	err("madvise that wraps", madvise((void *)(1UL << 46), -(1UL << 46), MADV_DONTNEED));
	err("mprotect that wraps", mprotect((void *)(1UL << 46), -(1UL << 46), PROT_READ));
}

TEST(truncated, "private pages of a file that is truncated")
{
	catch_faults();
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	must(ftruncate(fd, 4 * page), "ftruncate");
	char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *half = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 2 * page);
	for (int i = 0; i < 4; i++)
		p[i * page] = p[i * page + 100] = 'a' + i;
	half[page] = 'h';
	must(ftruncate(fd, page + 50), "ftruncate");
	touch("the last page stays", p + page, 0, p);
	touch("beyond the end", p + 2 * page, 0, p);
	touch("a write there", p + 3 * page, 1, p);
	touch("in the other mapping", half + page, 0, half);
	must(ftruncate(fd, 4 * page), "ftruncate");
	say("grown again: %d %d %d %d", p[0], p[page], p[2 * page], p[3 * page]);
	say("behind the end in its page: %d", p[page + 100]);
	say("the other mapping: %d", half[page]);
	p[2 * page] = 'x';
	int again = open("file", O_RDWR | O_TRUNC);
	touch("O_TRUNC", p, 0, p);
	must(ftruncate(fd, 4 * page), "ftruncate");
	say("then: %d %d", p[0], p[2 * page]);

	// Holes leave private copies alone.
	must(pwrite(fd, "0123", 4, 2 * page), "pwrite");
	p[2 * page] = 'y';
	must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * page, page), "fallocate");
	char c = -1;
	must(pread(fd, &c, 1, 2 * page), "pread");
	say("punched: the file has %d, the copy %d", c, p[2 * page]);

	// The child of fork loses its copies as well.
	p[3 * page] = 'z';
	int *go = shared(page);
	pid_t pid = FORK({
		until(*(volatile int *)go);
		touch("the child's copy", p + 3 * page, 0, p);
	});
	must(ftruncate(fd, 0), "ftruncate");
	*(volatile int *)go = 1;
	wait_for(pid);
	touch("the parent's copy", p + 3 * page, 0, p);
	int memory = memfd_create("m", 0);
	must(ftruncate(memory, 2 * page), "ftruncate");
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
	p[page] = 'm';
	must(ftruncate(memory, page), "ftruncate");
	must(ftruncate(memory, 2 * page), "ftruncate");
	say("memfd: %d", p[page]);
}
