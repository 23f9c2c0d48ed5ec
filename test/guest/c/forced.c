// Program forced tests what /proc/PID/mem writes to: private mappings that the program
// itself may not write to, and no others.
#include "gt.h"

#include <sys/auxv.h>

static int mem;

static char at(const char *p)
{
	char c = '?';
	return pread(mem, &c, 1, (off_t)(uintptr_t)p) == 1 ? c : '!';
}

// poke writes one byte, tells what came of it and of a write by the program itself.
static void poke(const char *what, char *p)
{
	char before = at(p), c = 'w';
	errno = 0;
	int n = pwrite(mem, &c, 1, (off_t)(uintptr_t)p), e = errno;
	int null = open("/dev/zero", O_RDONLY), own = read(null, p + 1, 1);
	say("%s: %d %s, now %s, itself %s", what, n, n < 0 ? strerror(e) : "", n < 0 ? "the same" : at(p) == 'w' ? "changed" : "not",
	    own == 1 ? "may" : "may not");
	if (n < 0 && at(p) != before)
		say("%s: it has changed", what);
	close(null);
}

static char *map(int prot, int flags, int fd)
{
	char *p = mmap(NULL, 4 * 4096, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		fatal("mmap");
	return p;
}

static int file(const char *name, int size)
{
	int fd = must(open(name, O_CREAT | O_RDWR | O_TRUNC, 0600), name);
	for (int i = 0; i < size; i++)
		must(write(fd, "f", 1), "write");
	return fd;
}

static char content(int fd, off_t off)
{
	char c = '?';
	pread(fd, &c, 1, off);
	return c;
}

TEST(anonymous, "anonymous memory")
{
	mem = must(open("/proc/self/mem", O_RDWR), "mem");
	char *p = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	poke("read only, not touched", p);
	poke("read only, again", p);
	say("its neighbours: %d %d", p[4096], p[4095]);
	char *w = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(w, 'a', 8192);
	mprotect(w, 8192, PROT_READ);
	poke("read only now", w);
	mprotect(w, 8192, PROT_NONE);
	poke("no access now", w + 4096);
	say("no access: reads %c%c", at(w + 4097), at(w));
	mprotect(w, 8192, PROT_READ);
	say("with access again: %c%c", w[4096], w[4097]);
	poke("no access, not touched", map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	poke("execute only", map(PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	poke("writable", map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	poke("shared, read only", map(PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1));
	poke("shared, no access", map(PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1));
	munmap(p, 4096);
	poke("unmapped", p);
}

TEST(files, "files")
{
	mem = must(open("/proc/self/mem", O_RDWR), "mem");
	int fd = file("f", 6000);
	char *p = map(PROT_READ, MAP_PRIVATE, fd);
	poke("private, not touched", p);
	poke("private, touched", p + (p[4096] ? 4096 : 0));
	poke("behind the end", p + 8192);
	say("the file: %c%c", content(fd, 0), content(fd, 4096));
	poke("private, no access", map(PROT_NONE, MAP_PRIVATE, fd));
	poke("shared, read only", map(PROT_READ, MAP_SHARED, fd));
	int ro = open("f", O_RDONLY);
	poke("shared, of a file open to read", map(PROT_READ, MAP_SHARED, ro));
	poke("private, of a file open to read", map(PROT_READ, MAP_PRIVATE, ro));
	char *none = map(PROT_NONE, MAP_PRIVATE, fd);
	say("no access reads: %c%c%c", at(none), at(none + 5999), at(none + 8192));
	must(ftruncate(fd, 0), "ftruncate");
	say("cut: %c%c", at(p), at(p + 4096));
	poke("cut", p);
	say("the file: %d", (int)lseek(fd, 0, SEEK_END));
}

static int __attribute__((noinline)) answer(void) { return 41; }

TEST(program, "the program itself")
{
	mem = must(open("/proc/self/mem", O_RDWR), "mem");
	unsigned char *code = (unsigned char *)answer;
	for (int i = 0; i < 16; i++)
		if (code[i] == 41) {
			unsigned char c = 42;
			say("changed: %d", (int)pwrite(mem, &c, 1, (off_t)(uintptr_t)(code + i)));
			break;
		}
	int (*volatile call)(void) = answer;
	say("answer: %d", call());
	pid_t pid = fork();
	if (pid == 0) {
		say("in a child: %d", call());
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR), c = vdso[5000 % 4096];
	say("vdso: %d", (int)pwrite(mem, &c, 1, (off_t)(uintptr_t)(vdso + 5000 % 4096)));
	errno = 0;
	int n = pread(mem, &c, 1, (off_t)(uintptr_t)(vdso - 4096));
	say("in front of it: %d %s", n, strerror(errno));
}

TEST(forked, "after a fork")
{
	char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int ready[2], go[2];
	char c;
	strcpy(p, "abc");
	mprotect(p, 4096, PROT_READ);
	pipe(ready), pipe(go);
	pid_t pid = fork();
	if (pid == 0) {
		mem = open("/proc/self/mem", O_RDWR);
		poke("in the child", p);
		write(ready[1], "x", 1);
		read(go[0], &c, 1);
		say("the child has %s", p);
		_exit(0);
	}
	read(ready[0], &c, 1);
	say("the parent has %s", p);
	char name[40];
	snprintf(name, sizeof name, "/proc/%d/mem", pid);
	mem = must(open(name, O_RDWR), name);
	say("into the child: %d", (int)pwrite(mem, "xyz", 3, (off_t)(uintptr_t)p));
	say("the parent has %s", p);
	write(go[1], "x", 1);
	waitpid(pid, NULL, 0);
}
