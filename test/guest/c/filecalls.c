// Calls on files that few programs make.
#include "gt.h"
#include <sys/file.h>

#ifndef F_GET_RW_HINT
#define F_GET_RW_HINT 1035
#define F_SET_RW_HINT 1036
#endif

static int file_of(const char *name, const char *text)
{
	int fd = must(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644), name);
	if (write(fd, text, strlen(text)) < 0)
		fatal(name);
	return fd;
}

TEST(seals, "a file of tmpfs cannot be sealed")
{
	int fd = file_of("f", "x");
	num("seals", fcntl(fd, F_GET_SEALS));
	err("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	err("truncate", ftruncate(fd, 0));
	fd = memfd_create("m", MFD_ALLOW_SEALING);
	num("memfd", fcntl(fd, F_GET_SEALS));
	fd = memfd_create("m", 0);
	num("not to be sealed", fcntl(fd, F_GET_SEALS));
}

TEST(hints, "how long what is written will live")
{
	int fd = file_of("f", "x"), again = open("f", O_RDONLY), p[2];
	uint64_t hint = 77;
	err("get", fcntl(fd, F_GET_RW_HINT, &hint));
	num("hint", hint);
	for (hint = 0; hint < 8; hint++)
		err("set", fcntl(fd, F_SET_RW_HINT, &hint));
	hint = 1ull << 32;
	err("set", fcntl(fd, F_SET_RW_HINT, &hint));
	hint = 3;
	err("set by a reader", fcntl(again, F_SET_RW_HINT, &hint));
	hint = 0;
	err("get", fcntl(fd, F_GET_RW_HINT, &hint));
	num("hint", hint);
	err("bad address", fcntl(fd, F_GET_RW_HINT, 1));
	err("bad address", fcntl(fd, F_SET_RW_HINT, 1));
	err("of a path", fcntl(open("f", O_PATH), F_GET_RW_HINT, &hint));
	must(pipe(p), "pipe");
	err("of a pipe", fcntl(p[0], F_GET_RW_HINT, &hint));
	num("hint", hint);
	err("of a directory", fcntl(open(".", O_RDONLY), F_GET_RW_HINT, &hint));
}

TEST(ioctls, "ioctls of files")
{
	int fd = file_of("f", "hello"), p[2], dir = open(".", O_RDONLY), null = open("/dev/null", O_RDWR);
	long long bytes = -1;
	struct stat st;
	err("FIOQSIZE", ioctl(fd, 0x5460, &bytes));
	fstat(fd, &st);
	num("as stat", bytes == st.st_blocks * 512);
	err("of a directory", ioctl(dir, 0x5460, &bytes));
	err("of a device", ioctl(null, 0x5460, &bytes));
	must(pipe(p), "pipe");
	err("of a pipe", ioctl(p[0], 0x5460, &bytes));
	err("bad address", ioctl(fd, 0x5460, 1));
	err("FIFREEZE", ioctl(fd, 0xc0045877, 0));
	err("FITHAW", ioctl(fd, 0xc0045878, 0));
	IN_CHILD("a user", setuid(1000); err("FIFREEZE", ioctl(fd, 0xc0045877, 0)); err("FITHAW", ioctl(fd, 0xc0045878, 0)));
}

TEST(locks, "locks that are none")
{
	int fd = file_of("f", "hello");
	err("LOCK_MAND", flock(fd, 32));
	err("LOCK_MAND and more", flock(fd, 32 | 64 | LOCK_EX));
	err("of nothing", flock(999, 32));
	err("another may lock", flock(open("f", O_RDONLY), LOCK_EX | LOCK_NB));
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_END, .l_start = LONG_MAX};
	err("get what is no lock", fcntl(fd, F_GETLK, &l));
	l.l_type = F_WRLCK;
	err("get beyond the end", fcntl(fd, F_GETLK, &l));
}

TEST(full, "/dev/full")
{
	int fd = open("/dev/full", O_RDWR);
	char b[8] = "xxxxxxx";
	num("read", read(fd, b, 4));
	num("zero", b[0] == 0 && b[3] == 0 && b[4] == 'x');
	num("write", write(fd, b, 1));
	num("write of nothing", write(fd, b, 0));
	num("seek", lseek(fd, 5, SEEK_END));
	err("private mapping", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
	err("shared mapping", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
}

TEST(packets, "flags of a pipe of packets")
{
	int p[2];
	must(pipe2(p, O_DIRECT | O_NONBLOCK), "pipe2");
	say("%o %o", fcntl(p[0], F_GETFL), fcntl(p[1], F_GETFL));
	char b[8];
	num("write", write(p[1], "abc", 3));
	num("write", write(p[1], "de", 2));
	num("read", read(p[0], b, 8));
	num("read", read(p[0], b, 1));
	num("read", read(p[0], b, 8));
}

TEST(times, "times that are none")
{
	static const struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}}, bad[2] = {{0, -1}, {0, 0}},
				     late[2] = {{0, 0}, {0, 1000000000}};
	file_of("f", "x");
	err("nothing to change, nowhere", utimensat(AT_FDCWD, "nil", omit, 0));
	err("and flags that nobody knows", utimensat(AT_FDCWD, "nil", omit, 0x4000));
	err("and no descriptor", syscall(SYS_utimensat, 999, NULL, omit, 0));
	err("bad nanoseconds, nowhere", utimensat(AT_FDCWD, "nil", bad, 0));
	err("bad nanoseconds of a file", utimensat(AT_FDCWD, "f", bad, 0));
	err("too many", utimensat(AT_FDCWD, "f", late, 0));
	err("with no descriptor", syscall(SYS_utimensat, 999, NULL, bad, 0));
	IN_CHILD("a user", setuid(1000); err("bad nanoseconds", utimensat(AT_FDCWD, "f", bad, 0)));
	struct timeval tv[2] = {{0, -1}, {0, 0}};
	err("bad microseconds, nowhere", utimes("nil", tv));
	// The clock's new time is looked at before the right to set it.
	IN_CHILD("a user", setuid(1000); tv[0] = (struct timeval){-1, 0}; err("before 1970", settimeofday(tv, NULL));
		 tv[0] = (struct timeval){0, 1000001}; err("too many microseconds", settimeofday(tv, NULL));
		 tv[0] = (struct timeval){5, 0}; err("a time", settimeofday(tv, NULL)));
}

TEST(renames, "flags of rename before its names")
{
	file_of("f", "x");
	err("two that exclude one another", syscall(SYS_renameat2, AT_FDCWD, "", AT_FDCWD, "g", 3));
	err("an unknown one", syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "", 8));
	err("and a bad address", syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, 1, 8));
	err("and no descriptor", syscall(SYS_renameat2, 999, "f", AT_FDCWD, "g", 6));
	err("known", syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "", 1));
}
