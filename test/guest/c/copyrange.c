// copy_file_range within one file, and writes that are done in part.
#include "gt.h"

static int make(const char *name, int size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *p = malloc(size);
	for (int i = 0; i < size; i++)
		p[i] = i / 7;
	if (write(fd, p, size) != size)
		say("write: %s", strerror(errno));
	free(p);
	return fd;
}

static void copy(int fd, off_t in, off_t out, size_t n)
{
	struct stat st;
	off_t i = in, o = out;
	errno = 0;
	ssize_t got = syscall(SYS_copy_file_range, fd, &i, fd, &o, n, 0);
	int e = errno;
	fstat(fd, &st);
	say("%ld to %ld, %#lx: %zd (%s), now at %ld and %ld, size %ld", (long)in, (long)out, (long)n, got,
	    got < 0 ? strerror(e) : "ok", (long)i, (long)o, (long)st.st_size);
	if (got > 0) {
		char *a = malloc(got), *b = malloc(got);
		if (pread(fd, a, got, in) != got || pread(fd, b, got, out) != got || memcmp(a, b, got))
			say("the copy differs");
		free(a), free(b);
	}
}

TEST(old_end, "copies end where the file ended")
{
	int fd = make("f", 10000);
	copy(fd, 5000, 10000, 100000);
	copy(fd, 14999, 20000, 1 << 20);
	copy(fd, 0, 20001, 1 << 30);
	copy(fd, 50000, 0, 100);
	close(fd);
}

TEST(overlap, "overlap counts what is copied")
{
	int fd = make("f", 10000);
	copy(fd, 0, 5000, 10000);
	copy(fd, 6000, 3000, 1 << 20);
	copy(fd, 8000, 0, 1L << 40);
	copy(fd, 8000, 6000, 1L << 40);
	copy(fd, 8000, 6001, 1L << 40);
	copy(fd, 9999, 9999, 1);
	copy(fd, 10000, 10000, 1);
	copy(fd, 1, 0, -1UL);
	copy(fd, 0, 1, -1UL);
	close(fd);
}

TEST(limited, "a limit of size cuts what is written")
{
	signal(SIGXFSZ, SIG_IGN);
	int fd = make("f", 10000);
	struct rlimit l = {12000, 12000};
	setrlimit(RLIMIT_FSIZE, &l);
	copy(fd, 0, 10000, 5000);
	copy(fd, 0, 12000, 5000);
	copy(fd, 5000, 0, 5000);
	char p[3000] = {0};
	struct iovec v[3] = {{p, 100}, {p, 1000}, {p, 3000}};
	say("pwritev: %zd", pwritev(fd, v, 3, 10500));
	say("pwrite: %zd", pwrite(fd, p, 3000, 11999));
	ssize_t n = pwrite(fd, p, 1, 12000);
	say("pwrite at the limit: %zd (%s)", n, strerror(errno));
	close(fd);
}

TEST(faulting, "a write that meets memory which is not there gives what it has written")
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 5, page);
	munmap(p + page, page);
	int fd = make("f", 10);
	say("write: %d", pwrite(fd, p + page - 100, 200, 0) == 100);
	ssize_t n = pwrite(fd, p + page, 200, 0);
	say("beyond it: %zd (%s)", n, strerror(errno));
	struct stat st;
	fstat(fd, &st);
	say("size %ld", (long)st.st_size);
	close(fd);
}
