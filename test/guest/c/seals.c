// Seals of memory files, and mappings that may not become writable.
#include "perm.h"
#include <sys/sendfile.h>
#include <sys/shm.h>

enum { PAGE = 4096 };

static int sealed(unsigned seals)
{
	int fd = must(memfd_create("f", MFD_ALLOW_SEALING), "memfd_create");
	char page[PAGE] = "";
	memset(page, 'a', PAGE);
	must(write(fd, page, PAGE), "write");
	must(write(fd, page, 100), "write");
	if (seals)
		must(fcntl(fd, F_ADD_SEALS, seals), "F_ADD_SEALS");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void size_of(int fd)
{
	struct stat st;
	fstat(fd, &st);
	say("size %ld", (long)st.st_size);
}

// store tries to store through a mapping and prints what came of it.
static void store(const char *what, char *p)
{
	if (p == MAP_FAILED) {
		say("%s: %s", what, name_of(errno));
		return;
	}
	pid_t pid = FORK(signal(SIGSEGV, SIG_DFL); signal(SIGBUS, SIG_DFL); p[5] = 'Z');
	status(what, wait_for(pid));
}

static void writes(unsigned seals)
{
	char two[2 * PAGE] = "";
	int p[2], fd;
	off_t off;
	fd = sealed(seals);
	num("write", write(fd, "x", 1));
	num("write over the end", pwrite(fd, two, 10, PAGE + 95));
	num("two pages", pwrite(fd, two, 2 * PAGE, 0)); size_of(fd);
	num("behind the end", pwrite(fd, "x", 1, 3 * PAGE)); size_of(fd);
	fd = sealed(seals);
	num("pwritev", pwritev(fd, &(struct iovec){two, 10}, 1, 0));
	fcntl(fd, F_SETFL, O_APPEND);
	num("append", write(fd, "x", 1)); size_of(fd);
	fd = sealed(seals);
	err("shrink", ftruncate(fd, 50)); size_of(fd);
	fd = sealed(seals);
	err("grow", ftruncate(fd, 3 * PAGE)); size_of(fd);
	err("same size", ftruncate(fd, PAGE + 100)); size_of(fd);
	fd = sealed(seals);
	err("fallocate inside", fallocate(fd, 0, 0, 50));
	err("fallocate beyond", fallocate(fd, 0, 0, 4 * PAGE)); size_of(fd);
	fd = sealed(seals);
	err("keep size inside", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 50));
	err("keep size beyond", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4 * PAGE)); size_of(fd);
	err("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	fd = sealed(seals);
	int src = sealed(0);
	off = 0;
	num("sendfile", sendfile(fd, src, &off, 10));
	must(pipe(p), "pipe");
	write(p[1], two, 10);
	off = 0;
	num("splice", splice(p[0], NULL, fd, &off, 10, 0));
	loff_t a = 0, b = 0;
	num("copy_file_range", syscall(SYS_copy_file_range, src, &a, fd, &b, 10L, 0));
	b = 3 * PAGE;
	num("copy_file_range beyond", syscall(SYS_copy_file_range, src, &a, fd, &b, 10L, 0)); size_of(fd);
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_RDWR);
	err("open again", again);
	num("write there", pwrite(again, "x", 1, 0));
	err("open to truncate", open(path, O_RDWR | O_TRUNC)); size_of(fd);
	err("truncate", truncate(path, 5)); size_of(fd);
	struct iovec out = {two, 4};
	char *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, sealed(seals), 0);
	store("private mapping", m);
}

TEST(each, "every way to write against every seal")
{
	static const struct { const char *name; unsigned seals; } all[] = {
		{"none", 0}, {"write", F_SEAL_WRITE}, {"future write", F_SEAL_FUTURE_WRITE}, {"grow", F_SEAL_GROW}, {"shrink", F_SEAL_SHRINK},
		{"grow and shrink", F_SEAL_GROW | F_SEAL_SHRINK}, {"seal", F_SEAL_SEAL}, {"all", F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL},
	};
	for (int i = 0; i < 8; i++) {
		say("sealed against: %s", all[i].name);
		writes(all[i].seals);
	}
}

TEST(adding, "adding seals")
{
	int fd = sealed(0);
	num("seals", fcntl(fd, F_GET_SEALS));
	err("unknown", fcntl(fd, F_ADD_SEALS, 0x1000));
	err("grow", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	err("grow again", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY);
	err("through what is read-only", fcntl(ro, F_ADD_SEALS, F_SEAL_SHRINK));
	num("read through that", fcntl(ro, F_GET_SEALS));
	err("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	err("after that", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	num("seals", fcntl(fd, F_GET_SEALS));
	int plain = memfd_create("p", 0);
	num("without MFD_ALLOW_SEALING", fcntl(plain, F_GET_SEALS));
	err("add", fcntl(plain, F_ADD_SEALS, F_SEAL_GROW));
	int p[2];
	must(pipe(p), "pipe");
	err("a pipe's", fcntl(p[0], F_GET_SEALS));
	err("add to a pipe's reader", fcntl(p[0], F_ADD_SEALS, F_SEAL_GROW));
	err("add to a pipe's writer", fcntl(p[1], F_ADD_SEALS, F_SEAL_GROW));
}

TEST(mapped, "sealing what is mapped")
{
	int fd = sealed(0), ro;
	char path[40], *p, *q;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err("mapped to write", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	mprotect(p, 2 * PAGE, PROT_READ);
	err("made read-only", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	mprotect(p + PAGE, PAGE, PROT_NONE);
	munmap(p, PAGE);
	err("half of it left", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	q = mremap(p + PAGE, 0, PAGE, MREMAP_MAYMOVE);
	munmap(p + PAGE, PAGE);
	err("a copy left", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	int go[2];
	must(pipe(go), "pipe");
	pid_t pid = FORK(char c; close(go[1]); read(go[0], &c, 1));
	munmap(q, PAGE);
	err("a child's left", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	close(go[1]);
	wait_for(pid);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	err("mapped read-only, descriptor writable", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ro = open(path, O_RDONLY);
	q = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0);
	p[0] = 'x';
	err("mapped private, and shared through what is read-only", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	store("store to the private", p);
	store("store to the shared", q);
	num("seals", fcntl(fd, F_GET_SEALS));
	say("a mapping to write: %s", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? name_of(errno) : "ok");
	err("read-only, then mprotect", mprotect(q, PAGE, PROT_READ | PROT_WRITE));
}

TEST(future, "F_SEAL_FUTURE_WRITE")
{
	int fd = sealed(0);
	char *old = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *p, *q;
	err("added while mapped", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	store("through the old mapping", old);
	mprotect(old, PAGE, PROT_READ);
	err("which can be made writable again", mprotect(old, PAGE, PROT_READ | PROT_WRITE));
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	err("a new one, read-only", p == MAP_FAILED ? -1 : 0);
	err("mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	err("pkey_mprotect", syscall(SYS_pkey_mprotect, p, PAGE, PROT_READ | PROT_WRITE, -1));
	q = mremap(p, 0, PAGE, MREMAP_MAYMOVE);
	err("mremap, then mprotect", q == MAP_FAILED ? -1 : mprotect(q, PAGE, PROT_READ | PROT_WRITE));
	err("remap_file_pages, then mprotect", remap_file_pages(p, PAGE, 0, 1, 0) < 0 ? -1 : mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	IN_CHILD("a child's mprotect", err("mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE)));
	err("one to write", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	err("a private one's mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	err("MADV_REMOVE", madvise(old, PAGE, MADV_REMOVE));
	err("sealed against writing, still mapped", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	munmap(old, PAGE);
	err("and not any more", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
}

TEST(read_only, "shared mappings of what was opened read-only")
{
	make("f", USER, USER, 0644);
	truncate("f", PAGE);
	AS(OTHER, 0, {
		int fd = open("f", O_RDONLY);
		err("to write", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
		char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
		err("mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
		err("mprotect to write only", mprotect(p, PAGE, PROT_WRITE));
		err("part of more", mprotect(p, PAGE, PROT_NONE));
		err("and back", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
		err("pkey_mprotect", syscall(SYS_pkey_mprotect, p, PAGE, PROT_READ | PROT_WRITE, -1));
		char *q = mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		err("mremap, then mprotect", mprotect(q, PAGE, PROT_READ | PROT_WRITE));
		err("remap_file_pages", remap_file_pages(q, PAGE, 0, 0, 0));
		err("and mprotect", mprotect(q, PAGE, PROT_READ | PROT_WRITE));
		err("MADV_REMOVE", madvise(q, PAGE, MADV_REMOVE));
		IN_CHILD("a child", err("mprotect", mprotect(q, PAGE, PROT_READ | PROT_WRITE)));
		err("a private mapping's mprotect", mprotect(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0), PAGE, PROT_READ | PROT_WRITE));
		err("write only", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, open("g", O_WRONLY), 0) == MAP_FAILED ? -1 : 0);
		int z = open("/dev/zero", O_RDONLY);
		char *zero = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, z, 0);
		err("/dev/zero", zero == MAP_FAILED ? -1 : mprotect(zero, PAGE, PROT_READ | PROT_WRITE));
	});
	int own = shmget(IPC_PRIVATE, PAGE, 0600);
	char *p = shmat(own, NULL, SHM_RDONLY);
	err("SHM_RDONLY", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	err("remap_file_pages", remap_file_pages(p, PAGE, 0, 0, 0));
	err("and mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	IN_CHILD("a child", err("mprotect", mprotect(p, PAGE, PROT_READ | PROT_WRITE)));
	shmctl(own, IPC_RMID, NULL);
}

// A mapping is made, or the seal is added, but not both; and no store comes later.
TEST(race, "a mapping against a seal")
{
	int both = 0, late = 0, none = 0;
	for (int i = 0; i < 300; i++) {
		int fd = sealed(0);
		_Atomic int *go = shared(PAGE);
		pid_t pid = FORK({
			while (!go[0])
				;
			char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			go[1] = p != MAP_FAILED ? 2 : 1;
			if (p != MAP_FAILED)
				p[0] = 'b';
			while (go[0] != 2)
				;
			if (p != MAP_FAILED)
				p[0] = 'c';
		});
		if (i & 1)
			sched_yield();
		go[0] = 1;
		for (volatile int k = 0; k < i * 40 % 8000; k++)
			;
		int added = fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
		char before = 0, after = 0;
		while (!go[1])
			sched_yield();
		pread(fd, &before, 1, 0);
		go[0] = 2;
		wait_for(pid);
		pread(fd, &after, 1, 0);
		both += added && go[1] == 2;
		none += !added && go[1] == 1;
		late += added && before != after;
		munmap((void *)go, PAGE);
		close(fd);
	}
	say("both: %d, neither: %d, stores to a sealed file: %d", both, none, late);
}
