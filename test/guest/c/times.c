// Which times each call changes: of the file, of its names' directories, of links.
#include "gt.h"
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>
#include <utime.h>

// The objects of each case, made again for it.
static const char *objects[] = {"d", "d/f", "d/l", "d/s", "d/p", "e", "e/g", "e/s"};
enum { OBJECTS = sizeof objects / sizeof *objects };

typedef struct {
	const char *title;
	void (*run)(void);
} op;

#define OP(title, ...) \
	{ title, ({ void run(void) { __VA_ARGS__; } run; }) }

static int f = -1, g = -1, d = -1; // open files of a case: d/f, e/g and the directory d
static char *map;                  // a shared mapping of d/f
static char buffer[8192];

static void ok(long rc)
{
	if (rc < 0)
		say("  %s", name_of(errno));
}

static void make(const char *name, const char *text)
{
	int fd = must(open(name, O_CREAT | O_WRONLY, 0644), name);
	must(write(fd, text, strlen(text)), name);
	close(fd);
}

static void set(const char *name, int64_t atime)
{
	struct timespec ts[2] = {{atime, 0}, {2000, 0}};
	must(utimensat(AT_FDCWD, name, ts, AT_SYMLINK_NOFOLLOW), name);
}

// prepare makes the objects. Their access time is old, so that any read renews it.
static void prepare(int64_t atime)
{
	mkdir("d", 0755), mkdir("e", 0755), mkdir("d/s", 0755), mkdir("e/s", 0755);
	make("d/f", "0123456789"), make("e/g", "abcdef");
	must(symlink("f", "d/l"), "symlink");
	must(mkfifo("d/p", 0644), "mkfifo");
	f = must(open("d/f", O_RDWR), "f"), g = must(open("e/g", O_RDWR), "g"), d = must(open("d", O_RDONLY), "d");
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	for (int i = 0; i < OBJECTS; i++)
		set(objects[i], atime);
}

static void clean(void)
{
	munmap(map, 4096), close(f), close(g), close(d);
	static const char *all[] = {"d/f", "d/l", "d/p", "d/n", "d/s/n", "d/s", "d/f2", "e/f", "e/g", "e/n", "e/s/n", "e/s", "e/l", "e/p", "d/g", "d/t", "e/t", "d", "e", "x", "y"};
	for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
		if (unlink(all[i]) < 0)
			rmdir(all[i]);
}

static bool same(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

// run_case prints which times of which objects a call changed. Objects are found
// by name, or by inode number where their name has gone.
static void run_case(const op *o, int64_t atime)
{
	struct stat before[OBJECTS], after;
	char line[512] = "";
	prepare(atime);
	for (int i = 0; i < OBJECTS; i++)
		must(lstat(objects[i], &before[i]), objects[i]);
	sleep_ms(12);
	o->run();
	int fds[OBJECTS] = {[0] = d, [1] = f, [6] = g};
	for (int i = 0; i < OBJECTS; i++) {
		int at = strlen(line);
		if (fds[i] ? fstat(fds[i], &after) : lstat(objects[i], &after)) {
			snprintf(line + at, sizeof line - at, " %s:gone", objects[i]);
			continue;
		}
		bool a = !same(after.st_atim, before[i].st_atim), m = !same(after.st_mtim, before[i].st_mtim),
		     c = !same(after.st_ctim, before[i].st_ctim), other = after.st_ino != before[i].st_ino;
		if (a || m || c || other)
			snprintf(line + at, sizeof line - at, " %s:%s%s%s%s", objects[i], other ? "other:" : "", a ? "a" : "", m ? "m" : "", c ? "c" : "");
	}
	say("%s:%s", o->title, line);
	clean();
}

static void run_cases(const op *table, int n)
{
	for (int i = 0; i < n; i++)
		run_case(&table[i], 1000);
}

#define RUN(...)                                                   \
	op table[] = {__VA_ARGS__};                                \
	run_cases(table, (int)(sizeof table / sizeof *table));

TEST(reads, "reads")
{
	int dir_read(void) { return syscall(SYS_getdents64, d, buffer, sizeof buffer); }
	RUN(OP("nothing", ),
	    OP("stat", struct stat st; ok(stat("d/f", &st)); ok(lstat("d/l", &st))),
	    OP("stat through a link", struct stat st; ok(stat("d/l", &st))),
	    OP("access", ok(access("d/f", R_OK))),
	    OP("open", ok(close(open("d/f", O_RDWR)))),
	    OP("open O_TRUNC", ok(close(open("d/f", O_RDWR | O_TRUNC)))),
	    OP("open O_TRUNC of nothing", ok(ftruncate(f, 0)); set("d/f", 1000); sleep_ms(12); ok(close(open("d/f", O_RDWR | O_TRUNC)))),
	    OP("open O_CREAT of what exists", ok(close(open("d/f", O_RDWR | O_CREAT, 0600)))),
	    OP("creat", ok(close(creat("d/n", 0600)))),
	    OP("creat over", ok(close(creat("d/f", 0600)))),
	    OP("open O_CREAT|O_EXCL of what exists", close(open("d/f", O_RDWR | O_CREAT | O_EXCL, 0600))),
	    OP("O_TMPFILE", ok(close(open("d", O_RDWR | O_TMPFILE, 0600)))),
	    OP("open O_PATH", ok(close(open("d/f", O_PATH)))),
	    OP("open a directory", ok(close(open("d", O_RDONLY)))),
	    OP("read", ok(read(f, buffer, 5))),
	    OP("read of nothing", ok(read(f, buffer, 0))),
	    OP("read at the end", ok(pread(f, buffer, 5, 10))),
	    OP("read beyond the end", ok(pread(f, buffer, 5, 1000))),
	    OP("read to a bad address", read(f, (void *)8, 5)),
	    OP("readv of nothing", struct iovec v = {buffer, 0}; ok(readv(f, &v, 1))),
	    OP("readv", struct iovec v = {buffer, 3}; ok(readv(f, &v, 1))),
	    OP("pread", ok(pread(f, buffer, 5, 0))),
	    OP("read O_NOATIME", int n = open("d/f", O_RDONLY | O_NOATIME); ok(read(n, buffer, 5)); close(n)),
	    OP("read with O_NOATIME set later", ok(fcntl(f, F_SETFL, O_NOATIME)); ok(read(f, buffer, 5))),
	    OP("read O_NOATIME of a directory", int n = open("d", O_RDONLY | O_NOATIME); ok(syscall(SYS_getdents64, n, buffer, sizeof buffer)); close(n)),
	    OP("getdents", ok(dir_read())),
	    OP("getdents at the end", ok(dir_read()); set("d", 1000); sleep_ms(12); ok(dir_read())),
	    OP("getdents with little room", syscall(SYS_getdents64, d, buffer, 5)),
	    OP("read of a directory", read(d, buffer, 5)),
	    OP("readlink", ok(readlink("d/l", buffer, 10))),
	    OP("readlink of nothing", readlink("d/l", buffer, 0)),
	    OP("readlink of a file", readlink("d/f", buffer, 10)),
	    OP("open through a link", ok(close(open("d/l", O_RDONLY)))),
	    OP("a path through a directory", struct stat st; ok(stat("d/s/../f", &st))),
	    OP("mmap", char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, f, 0); munmap(p, 4096)),
	    OP("mmap shared", char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0); munmap(p, 4096)),
	    OP("mmap O_NOATIME", int n = open("d/f", O_RDONLY | O_NOATIME); char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, n, 0); munmap(p, 4096); close(n)),
	    OP("load", buffer[0] = *(volatile char *)map),
	    OP("sendfile from", int p[2]; ok(pipe(p)); off_t at = 0; ok(sendfile(p[1], f, &at, 5)); close(p[0]); close(p[1])),
	    OP("sendfile of nothing", int p[2]; ok(pipe(p)); off_t at = 0; ok(sendfile(p[1], f, &at, 0)); close(p[0]); close(p[1])),
	    OP("sendfile to", off_t at = 0; ok(sendfile(g, f, &at, 5))),
	    OP("splice from", int p[2]; ok(pipe(p)); loff_t at = 0; ok(splice(f, &at, p[1], NULL, 5, 0)); close(p[0]); close(p[1])),
	    OP("splice to", int p[2]; ok(pipe(p)); ok(write(p[1], "xyz", 3)); loff_t at = 0; ok(splice(p[0], NULL, f, &at, 3, 0)); close(p[0]); close(p[1])),
	    OP("copy_file_range", ok(copy_file_range(f, NULL, g, NULL, 5, 0))),
	    OP("copy_file_range of nothing", ok(copy_file_range(f, NULL, g, NULL, 0, 0))),
	    OP("copy_file_range at the end", loff_t at = 10; ok(copy_file_range(f, &at, g, NULL, 5, 0))),
	    OP("readahead", ok(readahead(f, 0, 4096))),
	    OP("fadvise", ok(posix_fadvise(f, 0, 0, POSIX_FADV_WILLNEED))),
	    OP("lseek", ok(lseek(f, 3, SEEK_SET))),
	    OP("lseek SEEK_HOLE", ok(lseek(f, 0, SEEK_HOLE))),
	    OP("chdir", ok(chdir("d")); ok(chdir(".."))),
	    OP("getxattr", getxattr("d/f", "user.x", buffer, 10)),
	    OP("listxattr", ok(listxattr("d/f", buffer, 100))),
	    OP("statfs", ok(syscall(SYS_statfs, "d/f", buffer))),
	    OP("flock", ok(syscall(SYS_flock, f, 2))),
	    OP("fsync", ok(fsync(f))))
}

TEST(writes, "writes")
{
	RUN(OP("write", ok(write(f, "x", 1))),
	    OP("write of nothing", ok(write(f, "x", 0))),
	    OP("writev of nothing", struct iovec v = {buffer, 0}; ok(writev(f, &v, 1))),
	    OP("pwrite", ok(pwrite(f, "x", 1, 3))),
	    OP("pwrite of nothing beyond the end", ok(pwrite(f, "x", 0, 100))),
	    OP("write beyond the end", ok(pwrite(f, "x", 1, 100))),
	    OP("append", int n = open("d/f", O_WRONLY | O_APPEND); ok(write(n, "x", 1)); close(n)),
	    OP("write of what is there", ok(pwrite(f, "0", 1, 0))),
	    OP("write from a bad address", write(f, (void *)8, 1)),
	    OP("truncate", ok(truncate("d/f", 5))),
	    OP("truncate to the same size", ok(truncate("d/f", 10))),
	    OP("truncate to more", ok(truncate("d/f", 100))),
	    OP("ftruncate", ok(ftruncate(f, 5))),
	    OP("ftruncate to the same size", ok(ftruncate(f, 10))),
	    OP("ftruncate to more", ok(ftruncate(f, 100))),
	    OP("truncate to -1", truncate("d/f", -1)),
	    OP("truncate of a directory", truncate("d", 0)),
	    OP("fallocate", ok(fallocate(f, 0, 0, 100))),
	    OP("fallocate within", ok(fallocate(f, 0, 0, 10))),
	    OP("fallocate keep size", ok(fallocate(f, FALLOC_FL_KEEP_SIZE, 0, 8192))),
	    OP("punch", ok(fallocate(f, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096))),
	    OP("punch beyond the end", ok(fallocate(f, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 8192, 4096))),
	    OP("store", *(volatile char *)map = 'x'; ok(msync(map, 4096, MS_SYNC))),
	    OP("store without sync", *(volatile char *)map = 'x'),
	    OP("store, then read", *(volatile char *)map = 'x'; ok(read(f, buffer, 3))),
	    OP("msync of a clean page", ok(msync(map, 4096, MS_SYNC))),
	    OP("chmod", ok(chmod("d/f", 0600))),
	    OP("chmod to the same mode", ok(chmod("d/f", 0644))),
	    OP("fchmod", ok(fchmod(f, 0600))),
	    OP("chmod of a directory", ok(chmod("d", 0700))),
	    OP("chmod through a link", ok(chmod("d/l", 0600))),
	    OP("chown", ok(chown("d/f", 1, 1))),
	    OP("chown to nobody else", ok(chown("d/f", -1, -1))),
	    OP("chown to the same", ok(chown("d/f", 0, 0))),
	    OP("fchown", ok(fchown(f, 1, -1))),
	    OP("lchown", ok(lchown("d/l", 1, 1))),
	    OP("chown through a link", ok(chown("d/l", 1, 1))),
	    OP("setxattr", ok(setxattr("d/f", "trusted.x", "y", 1, 0))),
	    OP("setxattr of the same", ok(setxattr("d/f", "trusted.x", "y", 1, 0)); set("d/f", 1000); sleep_ms(12); ok(setxattr("d/f", "trusted.x", "y", 1, 0))),
	    OP("setxattr of a directory", ok(setxattr("d", "trusted.x", "y", 1, 0))),
	    OP("setxattr XATTR_REPLACE", setxattr("d/f", "trusted.x", "y", 1, XATTR_REPLACE)),
	    OP("lsetxattr of a link", ok(lsetxattr("d/l", "trusted.x", "y", 1, 0))),
	    OP("removexattr", ok(setxattr("d/f", "trusted.x", "y", 1, 0)); set("d/f", 1000); sleep_ms(12); ok(removexattr("d/f", "trusted.x"))),
	    OP("removexattr of none", removexattr("d/f", "trusted.x")),
	    OP("an inode flag", int v; ok(ioctl(f, FS_IOC_GETFLAGS, &v)); v ^= FS_NODUMP_FL; ok(ioctl(f, FS_IOC_SETFLAGS, &v))))
}

TEST(names, "names")
{
	RUN(OP("mkdir", ok(mkdir("d/n", 0755))),
	    OP("mkdir of what exists", mkdir("d/s", 0755)),
	    OP("rmdir", ok(rmdir("d/s"))),
	    OP("rmdir of what is not empty", rmdir("d")),
	    OP("symlink", ok(symlink("x", "d/n"))),
	    OP("mkfifo", ok(mkfifo("d/n", 0600))),
	    OP("mknod", ok(mknod("d/n", S_IFREG | 0600, 0))),
	    OP("link", ok(link("d/f", "e/n"))),
	    OP("link beside", ok(link("d/f", "d/n"))),
	    OP("link of what exists", link("d/f", "e/g")),
	    OP("link of a link", ok(link("d/l", "e/n"))),
	    OP("unlink", ok(unlink("d/f"))),
	    OP("unlink of one of two", ok(link("d/f", "e/n")); set("d/f", 1000); set("e", 1000); sleep_ms(12); ok(unlink("e/n"))),
	    OP("unlink of a link", ok(unlink("d/l"))),
	    OP("unlink of none", unlink("d/n")),
	    OP("unlink of a directory", unlink("d/s")),
	    OP("rename", ok(rename("d/f", "d/n"))),
	    OP("rename to another directory", ok(rename("d/f", "e/n"))),
	    OP("rename over", ok(rename("d/f", "e/g"))),
	    OP("rename to itself", ok(rename("d/f", "d/f"))),
	    OP("rename to another name of the same", ok(link("d/f", "e/n")); set("d/f", 1000); set("e", 1000); sleep_ms(12); ok(rename("d/f", "e/n"))),
	    OP("rename of a directory", ok(rename("d/s", "d/n"))),
	    OP("rename of a directory elsewhere", ok(rename("d/s", "e/n"))),
	    OP("rename of a directory over one", ok(rename("d/s", "e/s"))),
	    OP("rename of a link", ok(rename("d/l", "e/l"))),
	    OP("rename of none", rename("d/n", "e/n")),
	    OP("rename RENAME_NOREPLACE", renameat2(AT_FDCWD, "d/f", AT_FDCWD, "e/g", RENAME_NOREPLACE)),
	    OP("exchange of files", ok(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "e/g", RENAME_EXCHANGE))),
	    OP("exchange of directories", ok(renameat2(AT_FDCWD, "d/s", AT_FDCWD, "e/s", RENAME_EXCHANGE))),
	    OP("exchange of file and directory", ok(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "e/s", RENAME_EXCHANGE))),
	    OP("exchange beside", ok(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/s", RENAME_EXCHANGE))),
	    OP("whiteout", ok(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "e/n", RENAME_WHITEOUT))))
}

TEST(sets, "utimensat")
{
	void ut(const char *name, struct timespec *ts, int flags)
	{
		ok(utimensat(AT_FDCWD, name, ts, flags));
	}
	RUN(OP("now", ut("d/f", NULL, 0)),
	    OP("both omitted", ut("d/f", (struct timespec[2]){{0, UTIME_OMIT}, {0, UTIME_OMIT}}, 0)),
	    OP("atime omitted", ut("d/f", (struct timespec[2]){{0, UTIME_OMIT}, {7, 0}}, 0)),
	    OP("mtime omitted", ut("d/f", (struct timespec[2]){{7, 0}, {0, UTIME_OMIT}}, 0)),
	    OP("atime now", ut("d/f", (struct timespec[2]){{0, UTIME_NOW}, {0, UTIME_OMIT}}, 0)),
	    OP("mtime now", ut("d/f", (struct timespec[2]){{0, UTIME_OMIT}, {0, UTIME_NOW}}, 0)),
	    OP("the same", ut("d/f", (struct timespec[2]){{1000, 0}, {2000, 0}}, 0)),
	    OP("bad nanoseconds", ut("d/f", (struct timespec[2]){{0, 1000000000}, {0, 0}}, 0)),
	    OP("bad nanoseconds beside omit", ut("d/f", (struct timespec[2]){{0, UTIME_OMIT}, {0, -1}}, 0)),
	    OP("through a link", ut("d/l", NULL, 0)),
	    OP("of a link", ut("d/l", NULL, AT_SYMLINK_NOFOLLOW)),
	    OP("of a fifo", ut("d/p", NULL, 0)),
	    OP("bad flags", ut("d/l", NULL, 1)),
	    OP("futimens", ok(futimens(f, NULL))),
	    OP("empty path", ok(syscall(SYS_utimensat, f, "", NULL, AT_EMPTY_PATH))),
	    OP("null path", ok(syscall(SYS_utimensat, f, NULL, NULL, 0))),
	    OP("null path with flags", ok(syscall(SYS_utimensat, f, NULL, NULL, AT_SYMLINK_NOFOLLOW))),
	    OP("null path of the directory", ok(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0))),
	    OP("O_PATH", int p = open("d/f", O_PATH); ok(futimens(p, NULL)); close(p)),
	    OP("O_PATH, empty path", int p = open("d/f", O_PATH); ok(utimensat(p, "", NULL, AT_EMPTY_PATH)); close(p)),
	    OP("utime", ok(syscall(SYS_utime, "d/f", NULL))),
	    OP("utimes with bad microseconds", ok(syscall(SYS_utimes, "d/f", (struct timeval[2]){{0, 1000000}, {0, 0}}))),
	    OP("utimes with negative microseconds", ok(syscall(SYS_utimes, "d/f", (struct timeval[2]){{0, -1}, {0, 0}}))),
	    OP("utimes", ok(syscall(SYS_utimes, "d/f", (struct timeval[2]){{3, 4}, {5, 6}}))),
	    OP("futimesat", ok(syscall(SYS_futimesat, d, "f", NULL))),
	    OP("futimesat without path", ok(syscall(SYS_futimesat, f, NULL, NULL))))
}

TEST(far, "times at their ends")
{
	static const struct timespec values[] = {{0, 0}, {-1, 0}, {1, 999999999}, {INT32_MAX, 0}, {INT32_MAX + 1LL, 5}, {UINT32_MAX, 0},
		{UINT32_MAX + 1LL, 1}, {INT32_MIN, 0}, {INT32_MIN - 1LL, 0}, {-5000000000LL, 0}};
	make("x", "");
	for (int i = 0; i < (int)(sizeof values / sizeof *values); i++) {
		struct timespec ts[2] = {values[i], values[i]};
		struct stat st;
		long rc = utimensat(AT_FDCWD, "x", ts, 0);
		stat("x", &st);
		say("%ld.%ld: %s %ld.%09ld", values[i].tv_sec, values[i].tv_nsec, rc ? name_of(errno) : "ok", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
}

// Under relatime an access time that is newer than the last change stays.
TEST(relatime, "relatime")
{
	op table[] = {OP("read", ok(read(f, buffer, 5))), OP("getdents", ok(syscall(SYS_getdents64, d, buffer, sizeof buffer))),
		OP("readlink", ok(readlink("d/l", buffer, 10))), OP("mmap", munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, f, 0), 4096)),
		OP("write, then read", ok(write(f, "x", 1)); ok(read(f, buffer, 1)))};
	for (int i = 0; i < (int)(sizeof table / sizeof *table); i++)
		run_case(&table[i], 4000000000);
}
