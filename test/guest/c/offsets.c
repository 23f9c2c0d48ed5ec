// Offsets and lengths at the ends of what they can say, limits of the length of files, and
// the calls with vectors, in tables.
#include "gt.h"
#include <linux/falloc.h>
#include <sys/sendfile.h>

static const long long offsets[] = {0, 1, 4095, 0x7fffffff, 0x80000000LL, 0x7fffffffffffeffeLL, 0x7fffffffffffefffLL, 0x7ffffffffffff000LL,
	0x7ffffffffffffffeLL, 0x7fffffffffffffffLL, -1, -4096, (long long)0x8000000000000000ULL};
static const unsigned long lengths[] = {0, 1, 4096, 0x7fffffff, 0x80000000UL, 0x7fffffffffffffffUL, 0x8000000000000000UL, 0xffffffffffffffffUL};
enum { OFFSETS = sizeof offsets / sizeof *offsets, LENGTHS = sizeof lengths / sizeof *lengths };

static char *buffer;
static const size_t small = 1 << 20;

static int file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	return must(fd, "open");
}

// result prints what a call returned and its offset and length.
static void result(const char *call, long long off, unsigned long n, long rc)
{
	int e = errno;
	say("%s %llx %lx: %ld%s%s", call, off, n, rc, rc < 0 ? " " : "", rc < 0 ? name_of(e) : "");
}

TEST(reads, "pread, pwrite, preadv, pwritev")
{
	buffer = malloc(small);
	int fd = file("f");
	for (int i = 0; i < OFFSETS; i++)
		for (int j = 0; j < LENGTHS; j++) {
			pwrite(fd, "hello", 5, 0);
			result("pread", offsets[i], lengths[j], syscall(SYS_pread64, fd, buffer, lengths[j], offsets[i]));
			if (lengths[j] <= 4096 || lengths[j] >> 63)
				result("pwrite", offsets[i], lengths[j], syscall(SYS_pwrite64, fd, buffer, lengths[j], offsets[i]));
			ftruncate(fd, 0);
			struct iovec v[2] = {{buffer, 1}, {buffer, lengths[j]}};
			if (lengths[j] <= 4096 || lengths[j] >> 63) {
				result("preadv", offsets[i], lengths[j], syscall(SYS_preadv, fd, v, 2, offsets[i], 0));
				result("preadv2", offsets[i], lengths[j], syscall(SYS_preadv2, fd, v, 2, offsets[i], 0, 0));
				result("pwritev", offsets[i], lengths[j], syscall(SYS_pwritev, fd, v, 2, offsets[i], 0));
			}
			ftruncate(fd, 0);
		}
}

TEST(positions, "lseek, and reads and writes from there")
{
	buffer = malloc(small);
	int fd = file("f");
	for (int i = 0; i < OFFSETS; i++)
		for (int j = 0; j < 3; j++) {
			result("lseek", offsets[i], 0, lseek(fd, offsets[i], SEEK_SET));
			result("write", offsets[i], lengths[j], write(fd, buffer, lengths[j]));
			result("position", 0, 0, lseek(fd, 0, SEEK_CUR));
			lseek(fd, offsets[i], SEEK_SET);
			result("read", offsets[i], lengths[j], read(fd, buffer, lengths[j] + 10));
			ftruncate(fd, 0);
		}
	for (int i = 0; i < OFFSETS; i++)
		for (int whence = -1; whence < 7; whence++) {
			lseek(fd, 2, SEEK_SET);
			result("lseek", offsets[i], whence, lseek(fd, offsets[i], whence));
		}
	int p[2];
	pipe(p);
	for (int whence = -1; whence < 6; whence++)
		result("lseek of a pipe", 0, whence, lseek(p[0], 0, whence));
}

TEST(lengthen, "truncate, ftruncate, fallocate")
{
	static const int modes[] = {0, 1, 2, 3, 4, 0x12, 0x13, 0x100, -1};
	int fd = file("f");
	for (int i = 0; i < OFFSETS; i++) {
		result("ftruncate", offsets[i], 0, ftruncate(fd, offsets[i]));
		result("truncate", offsets[i], 0, truncate("f", offsets[i]));
	}
	ftruncate(fd, 12288);
	for (int m = 0; m < sizeof modes / sizeof *modes; m++)
		for (int i = 0; i < OFFSETS; i++)
			for (int j = 0; j < LENGTHS; j++) {
				if ((modes[m] & ~1) == 0 && (offsets[i] >= 0x7fffffff || lengths[j] >= 0x7fffffff) && !(offsets[i] >> 63 || lengths[j] >> 62))
					continue; // too much
				char t[40];
				snprintf(t, sizeof t, "fallocate %x", modes[m]);
				result(t, offsets[i], lengths[j], fallocate(fd, modes[m], offsets[i], lengths[j]));
				ftruncate(fd, 12288);
			}
}

TEST(copies, "copy_file_range and sendfile")
{
	int a = file("a"), b = file("b");
	write(a, "hello world", 11);
	for (int i = 0; i < OFFSETS; i++)
		for (int k = 0; k < OFFSETS; k++)
			for (int j = 0; j < LENGTHS; j++) {
				loff_t x = offsets[i], y = offsets[k];
				char t[60];
				snprintf(t, sizeof t, "copy %llx", offsets[i]);
				result(t, offsets[k], lengths[j], syscall(SYS_copy_file_range, a, &x, b, &y, lengths[j], 0));
				ftruncate(b, 0);
			}
	for (int i = 0; i < OFFSETS; i++)
		for (int j = 0; j < LENGTHS; j++) {
			off_t x = offsets[i];
			lseek(b, 0, SEEK_SET);
			result("sendfile", offsets[i], lengths[j], sendfile(b, a, &x, lengths[j]));
		}
	num("bad offset", sendfile(b, a, (void *)8, 3));
	int p[2];
	pipe(p);
	int fds[] = {a, b, p[0], p[1], open(".", O_RDONLY), open("/dev/null", O_RDWR), open("a", O_PATH), open("a", O_RDONLY), open("b", O_WRONLY), open("b", O_WRONLY | O_APPEND), -1,
		memfd_create("m", 0)};
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < 12; j++) {
			lseek(a, 0, SEEK_SET), lseek(fds[7], 0, SEEK_SET);
			result("kinds, copy", i, j, copy_file_range(fds[i], NULL, fds[j], NULL, 3, 0));
			if (j != 3 && j != 2 && i != 2 && i != 5)
				result("kinds, sendfile", i, j, sendfile(fds[j], fds[i], NULL, 3));
		}
}

TEST(flags, "preadv2 and pwritev2")
{
	buffer = malloc(small);
	int fd = file("f"), p[2];
	struct iovec v = {buffer, 3}, none = {buffer, 0};
	for (int f = 0; f < 32; f++) {
		if (f & 8)
			continue; // RWF_NOWAIT: it depends on the file system
		ftruncate(fd, 0), pwrite(fd, "hello", 5, 0), lseek(fd, 2, SEEK_SET);
		result("preadv2", 1, f, syscall(SYS_preadv2, fd, &v, 1, 1L, 0L, f));
		result("pwritev2", 1, f, syscall(SYS_pwritev2, fd, &v, 1, 1L, 0L, f));
		result("size", 0, 0, lseek(fd, 0, SEEK_END));
		lseek(fd, 2, SEEK_SET);
		result("pwritev2 here", -1, f, syscall(SYS_pwritev2, fd, &v, 1, -1L, -1L, f));
		result("position", 0, 0, lseek(fd, 0, SEEK_CUR));
		result("size", 0, 0, lseek(fd, 0, SEEK_END));
	}
	pipe(p);
	result("pipe, at", 0, 0, syscall(SYS_pwritev2, p[1], &v, 1, 0L, 0L, 0));
	result("pipe", 0, 0, syscall(SYS_pwritev2, p[1], &v, 1, -1L, -1L, 0));
	result("pipe, empty", 0, 0, syscall(SYS_pwritev2, p[1], &none, 1, -1L, -1L, 0));
	result("directory, empty", 0, 0, readv(open(".", O_RDONLY), &none, 1));
	result("unknown flag, empty", 0, 0, syscall(SYS_preadv2, fd, &none, 1, 0L, 0L, 0x4000));
	result("negative, bad descriptor", 0, 0, syscall(SYS_preadv2, 999, &v, 1, -2L, -1L, 0));
	int ro = open("f", O_RDONLY), wo = open("f", O_WRONLY);
	result("read of a writer, bad buffer", 0, 0, read(wo, (void *)-4096, 1));
	result("write of a reader, bad buffer", 0, 0, write(ro, (void *)-4096, 1));
}

static volatile int signals;
static void count(int sig) { signals++; }

// limited runs calls in a child whose files must not grow beyond a limit, and says what
// it says afterwards: it could not write that to a file itself.
struct answer {
	long rc, size, pos;
	int error, signals;
	char what[40];
};

#define LIMITED(fd, what_, call)                                                           \
	do {                                                                               \
		struct answer *x = &log->answers[log->n++];                                \
		struct stat st;                                                            \
		signals = 0;                                                               \
		x->rc = (call);                                                            \
		x->error = errno;                                                          \
		x->signals = signals;                                                      \
		fstat(fd, &st);                                                            \
		x->size = st.st_size;                                                      \
		x->pos = lseek(fd, 0, SEEK_CUR);                                           \
		strcpy(x->what, what_);                                                    \
	} while (0)

struct log {
	int n;
	struct answer answers[64];
};

static void limit(rlim_t n)
{
	struct rlimit r = {n, RLIM_INFINITY};
	setrlimit(RLIMIT_FSIZE, &r);
}

static void beyond(struct log *log)
{
	static char b[20000];
	int fd = file("f"), src = file("src"), p[2];
	write(src, b, 8192);
	signal(SIGXFSZ, count);
	limit(8192);
	LIMITED(fd, "write", write(fd, b, 4096));
	LIMITED(fd, "write to the limit", write(fd, b, 8192));
	LIMITED(fd, "write at it", write(fd, b, 1));
	LIMITED(fd, "write nothing", write(fd, b, 0));
	LIMITED(fd, "pwrite over it", pwrite(fd, b, 10, 8190));
	LIMITED(fd, "pwrite beyond", pwrite(fd, b, 10, 9000));
	LIMITED(fd, "ftruncate to it", ftruncate(fd, 8192));
	LIMITED(fd, "ftruncate", ftruncate(fd, 8193));
	LIMITED(fd, "truncate", truncate("f", 8193));
	LIMITED(fd, "fallocate to it", fallocate(fd, 0, 0, 8192));
	LIMITED(fd, "fallocate", fallocate(fd, 0, 0, 8193));
	LIMITED(fd, "punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096));
	ftruncate(fd, 0);
	lseek(fd, 0, SEEK_SET);
	loff_t o = 0, q = 9000;
	LIMITED(fd, "copy", copy_file_range(src, &o, fd, NULL, 4096, 0));
	o = 0;
	LIMITED(fd, "copy to the limit", copy_file_range(src, &o, fd, NULL, 8192, 0));
	o = 0;
	LIMITED(fd, "copy at it", copy_file_range(src, &o, fd, NULL, 8192, 0));
	o = 0;
	LIMITED(fd, "copy beyond", copy_file_range(src, &o, fd, &q, 8, 0));
	lseek(fd, 4096, SEEK_SET);
	off_t s = 0;
	LIMITED(fd, "sendfile", sendfile(fd, src, &s, 8192));
	s = 0;
	LIMITED(fd, "sendfile at it", sendfile(fd, src, &s, 8192));
	pipe(p);
	write(p[1], b, 4096);
	lseek(fd, 8000, SEEK_SET);
	LIMITED(fd, "splice", splice(p[0], NULL, fd, NULL, 4096, 0));
	struct iovec v[2] = {{b, 100}, {b, 100}};
	lseek(fd, 8100, SEEK_SET);
	LIMITED(fd, "writev", writev(fd, v, 2));
	LIMITED(fd, "writev at it", writev(fd, v, 2));
	limit(100);
	LIMITED(fd, "shrink above it", ftruncate(fd, 5000));
	LIMITED(fd, "the same above it", ftruncate(fd, 5000));
	LIMITED(fd, "grow above it", ftruncate(fd, 5001));
	LIMITED(fd, "write below it", pwrite(fd, b, 10, 0));
	LIMITED(fd, "write inside, above", pwrite(fd, b, 10, 200));
	LIMITED(fd, "fallocate inside", fallocate(fd, 0, 0, 4000));
	signal(SIGXFSZ, SIG_IGN);
	LIMITED(fd, "ignored", pwrite(fd, b, 10, 200));
	int m = memfd_create("m", 0);
	LIMITED(m, "memfd", ftruncate(m, 200));
}

TEST(limits, "RLIMIT_FSIZE")
{
	struct log *log = shared(sizeof *log);
	wait_for(FORK(beyond(log)));
	for (int i = 0; i < log->n; i++) {
		struct answer *x = &log->answers[i];
		say("%s: %ld %s, %d signals, size %ld at %ld", x->what, x->rc, x->rc < 0 ? name_of(x->error) : "ok", x->signals, x->size, x->pos);
	}
	int m = memfd_create("m", 0);
	ftruncate(m, 1000);
	IN_CHILD("write kills", limit(100); pwrite(m, "x", 1, 200));
	IN_CHILD("ftruncate kills", limit(100); ftruncate(m, 2000));
	IN_CHILD("fallocate kills", limit(100); fallocate(m, 0, 0, 2000));
}
