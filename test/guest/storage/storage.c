// What programs see of a file system on a disk: the same on Linux's ext4 and on ours.
#include "../c/gt.h"
#include <linux/falloc.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#define KB 1024
#define PAGE 4096

static int make(const char *name, int flags)
{
	return must(open(name, O_RDWR | O_CREAT | flags, 0644), name);
}

static void fill(char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(seed * 31 + i * 7 + (i >> 8));
}

static void put(int fd, off_t off, size_t n, unsigned seed)
{
	char *p = malloc(n);
	fill(p, n, seed);
	if (pwrite(fd, p, n, off) != (ssize_t)n)
		fatal("pwrite");
	free(p);
}

// sum is a checksum of a file's bytes.
static unsigned long sum(int fd)
{
	char b[8192];
	unsigned long h = 1469598103934665603UL;
	ssize_t n;
	for (off_t off = 0; (n = pread(fd, b, sizeof b, off)) > 0; off += n)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ (unsigned char)b[i]) * 1099511628211UL;
	if (n < 0)
		fatal("pread");
	return h;
}

static void look(const char *what, int fd)
{
	struct stat st;
	must(fstat(fd, &st), "fstat");
	say("%s: size %ld, links %ld, sum %016lx", what, (long)st.st_size, (long)st.st_nlink, sum(fd));
}

static long kib(int fd)
{
	struct stat st;
	must(fsync(fd), "fsync");
	must(fstat(fd, &st), "fstat");
	return st.st_blocks / 2;
}

TEST(sizes, "write, truncate, grow")
{
	int fd = make("f", 0);
	put(fd, 0, 10000, 1);
	look("written", fd);
	must(ftruncate(fd, 5000), "ftruncate");
	look("cut", fd);
	must(ftruncate(fd, 9000), "ftruncate");
	look("grown", fd);
	put(fd, 20001, 3, 2);
	look("written behind the end", fd);
	err("fsync", fsync(fd));
	must(ftruncate(fd, 4096), "ftruncate");
	must(ftruncate(fd, 12288), "ftruncate");
	look("cut at a page", fd);
	num("append", write(must(open("f", O_WRONLY | O_APPEND), "open"), "tail", 4));
	look("appended", fd);
	err("too far", ftruncate(fd, -1));
	close(fd);
	fd = make("f", O_TRUNC);
	look("O_TRUNC", fd);
	num("offset near the end", pwrite(fd, "x", 1, 17592186040319L - 4096));
	num("lseek beyond", lseek(fd, 1L << 62, SEEK_SET));
	err("grow to 1 TiB", ftruncate(fd, 1L << 40));
}

TEST(holes, "holes")
{
	int fd = make("f", 0);
	must(ftruncate(fd, 1 << 20), "ftruncate");
	num("data in nothing", lseek(fd, 0, SEEK_DATA));
	num("hole in nothing", lseek(fd, 0, SEEK_HOLE));
	put(fd, 64 * KB, 64 * KB, 1);
	put(fd, 512 * KB, 4 * KB, 2);
	num("data", lseek(fd, 0, SEEK_DATA));
	num("its hole", lseek(fd, 64 * KB, SEEK_HOLE));
	num("next data", lseek(fd, 128 * KB, SEEK_DATA));
	num("from within", lseek(fd, 513 * KB, SEEK_DATA));
	num("last hole", lseek(fd, 516 * KB, SEEK_HOLE));
	num("at the end", lseek(fd, 1 << 20, SEEK_HOLE));
	num("no more data", lseek(fd, 516 * KB, SEEK_DATA));
	look("sparse", fd);
	say("%ld KiB on disk", kib(fd));
	err("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 70000, 20000));
	look("punched", fd);
	say("%ld KiB on disk", kib(fd));
	num("hole of the punch", lseek(fd, 64 * KB, SEEK_HOLE));
	num("data behind", lseek(fd, 72 * KB, SEEK_DATA));
	err("punch within a page", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100000, 100));
	look("punched within", fd);
	err("punch without KEEP_SIZE", fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096));
	err("zero", fallocate(fd, FALLOC_FL_ZERO_RANGE, 66000, 3000));
	look("zeroed", fd);
	err("zero behind the end", fallocate(fd, FALLOC_FL_ZERO_RANGE, 1048000, 9000));
	look("zeroed behind the end", fd);
	err("collapse a part", fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE, 0, 0));
}

TEST(preallocation, "fallocate")
{
	int fd = make("f", 0);
	err("keep size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 256 * KB));
	look("kept", fd);
	say("%ld KiB on disk", kib(fd));
	err("with size", fallocate(fd, 0, 0, 128 * KB));
	num("data", lseek(fd, 0, SEEK_DATA)); // before pages are in memory: Linux counts those as data
	put(fd, 8 * KB, 4 * KB, 3);
	num("dirty data", lseek(fd, 0, SEEK_DATA));
	must(fsync(fd), "fsync");
	num("data", lseek(fd, 0, SEEK_DATA));
	num("hole behind", lseek(fd, 8 * KB, SEEK_HOLE));
	look("written", fd);
	say("%ld KiB on disk", kib(fd));
	must(ftruncate(fd, 10 * KB), "ftruncate");
	say("%ld KiB on disk", kib(fd));
	err("negative", fallocate(fd, 0, -1, 10));
	err("no length", fallocate(fd, 0, 0, 0));
	err("too long", fallocate(fd, 0, 0, 1L << 60));
	int ro = must(open("f", O_RDONLY), "open");
	err("read-only descriptor", fallocate(ro, 0, 0, 10));
}

TEST(mapping, "mmap and read and write agree")
{
	int fd = make("f", 0);
	put(fd, 0, 3 * PAGE + 100, 1);
	char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char b[16];
	memcpy(p + 5000, "mapped", 6);
	must(pread(fd, b, 6, 5000), "pread");
	say("read sees the store: %.6s", b);
	must(pwrite(fd, "written", 7, 6000), "pwrite");
	say("the mapping sees the write: %.7s", p + 6000);
	err("msync", msync(p, 4 * PAGE, MS_SYNC));
	memcpy(p + 5000, "MAPPED", 6);
	look("stored after msync", fd);
	err("fsync", fsync(fd));
	p[7000] = 1;
	look("stored after fsync", fd);
	say("behind the end in its page: %d", p[3 * PAGE + 200]);
	memset(p + 3 * PAGE + 100, 'x', PAGE - 100);
	err("fsync", fsync(fd));
	must(ftruncate(fd, 3 * PAGE + 1000), "ftruncate");
	look("grown over stores behind the end", fd);
	put(fd, 3 * PAGE + 2000, 10, 3);
	memset(p + 3 * PAGE + 2010, 'y', 100);
	put(fd, 3 * PAGE + 3000, 10, 3);
	look("written behind stores behind the end", fd);
	IN_CHILD("behind the last page", p[4 * PAGE] = 1);
	must(ftruncate(fd, PAGE), "ftruncate");
	IN_CHILD("a page that was cut", b[0] = p[PAGE]);
	must(ftruncate(fd, 2 * PAGE), "ftruncate");
	say("grown again it is zero: %d", p[PAGE + 1000]);
	p[PAGE + 1000] = 5;
	look("filled a hole by a store", fd);
	char *q = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	q[10] = 'q';
	must(pwrite(fd, "z", 1, 10), "pwrite");
	say("private %c, shared %c", q[10], p[10]);
	must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), "punch");
	say("punched: shared %d, private %c", p[10], q[10]);
	p[20] = 7;
	look("stored in the hole", fd);
	err("MADV_REMOVE", madvise(p, PAGE, MADV_REMOVE));
	look("removed", fd);
	pid_t pid = FORK(p[30] = 1; must(msync(p, PAGE, MS_SYNC), "msync"); p[31] = 2);
	status("child", wait_for(pid));
	look("a child stored", fd);
	err("msync of nothing", msync(p + 100 * PAGE, PAGE, MS_SYNC) < 0 && errno == ENOMEM ? 0 : -1);
}

TEST(mapped_times, "stores change the time")
{
	int fd = make("f", 0);
	put(fd, 0, PAGE, 1);
	must(fsync(fd), "fsync");
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	must(futimens(fd, old), "futimens");
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct stat st;
	p[0]++;
	must(msync(p, PAGE, MS_SYNC), "msync");
	must(fstat(fd, &st), "fstat");
	say("mtime moved: %d", st.st_mtime > 1000);
	must(futimens(fd, old), "futimens");
	must(fsync(fd), "fsync");
	must(fstat(fd, &st), "fstat");
	say("and stays as it was set: %ld", (long)st.st_mtime);
	char c;
	must(pread(fd, &c, 1, 0), "pread");
	must(fstat(fd, &st), "fstat");
	say("read moved atime: %d", st.st_atime > 1000);
}

TEST(direct, "O_DIRECT")
{
	int fd = must(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644), "open");
	char *p = NULL;
	if (posix_memalign((void **)&p, 4096, 1 << 20))
		fatal("memalign");
	fill(p, 1 << 20, 1);
	num("write 1 MiB", pwrite(fd, p, 1 << 20, 0));
	int buf = must(open("f", O_RDWR), "open");
	look("buffered", buf);
	put(buf, 5000, 100, 9);
	memset(p, 0, 8192);
	num("read what is dirty", pread(fd, p, 8192, 4096));
	say("%d %d", p[5000 - 4096], p[5099 - 4096]);
	fill(p, 4096, 5);
	num("write over what is cached", pwrite(fd, p, 4096, 4096));
	look("buffered", buf);
	num("512 bytes", pwrite(fd, p, 512, 1024));
	look("buffered", buf);
	num("odd length", pwrite(fd, p, 100, 0));
	num("odd offset", pwrite(fd, p, 512, 100));
	num("odd length, read", pread(fd, p, 100, 0));
	num("behind the end", pwrite(fd, p, 4096, 2 << 20));
	look("buffered", buf);
	num("read at the end", pread(fd, p, 65536, 2 << 20));
	num("read behind", pread(fd, p, 4096, 4 << 20));
	must(ftruncate(fd, 10000), "ftruncate");
	num("read the odd end", pread(fd, p, 8192, 8192));
	num("read it all", pread(fd, p, 1 << 20, 0));
	char *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	m[100] = 77;
	num("read a store", pread(fd, p, 4096, 0));
	say("%d", p[100]);
	p[200] = 78;
	num("write under a mapping", pwrite(fd, p, 4096, 0));
	say("%d", m[200]);
}

TEST(names, "names")
{
	must(close(make("a", 0)), "close");
	err("link", link("a", "b"));
	struct stat st;
	must(stat("a", &st), "stat");
	say("links %ld", (long)st.st_nlink);
	must(mkdir("d", 0755), "mkdir");
	must(mkdir("d/e", 0755), "mkdir");
	must(stat("d", &st), "stat");
	say("directory's links %ld", (long)st.st_nlink);
	err("rename into", rename("b", "d/e/c"));
	err("same file", rename("a", "d/e/c"));
	say("a is still there: %d", access("a", F_OK));
	err("noreplace", syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "d/e/c", 1));
	must(close(make("x", 0)), "close");
	err("exchange", syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "d", 2));
	must(stat("x", &st), "stat");
	say("x is a directory: %d", S_ISDIR(st.st_mode));
	err("into itself", rename("x", "x/e/f"));
	err("directory over file", rename("x", "a"));
	err("not empty", rename("x/e", "x"));
	err("rmdir not empty", rmdir("x"));
	err("unlink a directory", unlink("x"));
	err("long link", symlink("0123456789012345678901234567890123456789012345678901234567890123456789", "l"));
	char b[100];
	num("readlink", readlink("l", b, sizeof b));
	err("short link", symlink("a", "s"));
	num("readlink", readlink("s", b, sizeof b));
	must(lstat("s", &st), "lstat");
	say("size %ld", (long)st.st_size);
	char name[300];
	memset(name, 'n', sizeof name);
	name[255] = 0;
	err("255 bytes", mkdir(name, 0755));
	name[255] = 'n', name[256] = 0;
	err("256 bytes", mkdir(name, 0755));
	err("fifo", mkfifo("p", 0644));
	err("device", mknod("n", S_IFCHR | 0600, 0x103) < 0 && errno == EPERM ? 0 : 0);
}

TEST(nameless, "files without a name")
{
	int fd = make("gone", 0);
	put(fd, 0, 100000, 1);
	must(unlink("gone"), "unlink");
	look("unlinked", fd);
	put(fd, 50000, 100000, 2);
	look("written after", fd);
	err("fsync", fsync(fd));
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	err("link it again", linkat(AT_FDCWD, path, AT_FDCWD, "back", AT_SYMLINK_FOLLOW));
	close(fd);
	fd = must(open(".", O_TMPFILE | O_RDWR, 0600), "O_TMPFILE");
	put(fd, 0, 5000, 3);
	look("O_TMPFILE", fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	err("give it a name", linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	look("named", fd);
	err("and another", linkat(AT_FDCWD, path, AT_FDCWD, "named2", AT_SYMLINK_FOLLOW));
	look("twice", fd);
	close(fd);
	fd = must(open("named", O_RDONLY), "open");
	look("opened by name", fd);
	close(fd);
	fd = must(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600), "O_TMPFILE|O_EXCL");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	err("with O_EXCL it gets none", linkat(AT_FDCWD, path, AT_FDCWD, "never", AT_SYMLINK_FOLLOW));
}

TEST(attributes, "extended attributes")
{
	int fd = make("f", 0);
	err("set", setxattr("f", "user.one", "1", 1, 0));
	err("create again", setxattr("f", "user.one", "2", 1, XATTR_CREATE));
	err("replace none", setxattr("f", "user.two", "2", 1, XATTR_REPLACE));
	err("empty value", setxattr("f", "user.empty", "", 0, 0));
	char big[3000], b[4096];
	memset(big, 'b', sizeof big);
	err("large", fsetxattr(fd, "user.big", big, sizeof big, 0));
	num("get", getxattr("f", "user.one", b, sizeof b));
	num("get empty", getxattr("f", "user.empty", b, sizeof b));
	num("get large", getxattr("f", "user.big", b, sizeof b));
	say("it is the same: %d", memcmp(b, big, sizeof big));
	num("too small", getxattr("f", "user.big", b, 10));
	num("none", getxattr("f", "user.none", b, sizeof b));
	num("list size", listxattr("f", NULL, 0));
	err("remove", removexattr("f", "user.one"));
	err("remove again", removexattr("f", "user.one"));
	num("list size", listxattr("f", NULL, 0));
	err("huge", setxattr("f", "user.huge", malloc(60000), 60000, 0));
	err("other space", setxattr("f", "other.x", "1", 1, 0));
	must(symlink("f", "l"), "symlink");
	err("on a link", lsetxattr("l", "user.x", "1", 1, 0));
	must(mkdir("d", 0755), "mkdir");
	err("on a directory", setxattr("d", "user.x", "1", 1, 0));
}

TEST(syncing, "all kinds of syncing")
{
	int fd = make("f", 0);
	put(fd, 0, 100000, 1);
	err("fdatasync", fdatasync(fd));
	err("sync_file_range", sync_file_range(fd, 4096, 8192, 7));
	err("bad flags", sync_file_range(fd, 0, 0, 8));
	err("syncfs", syncfs(fd));
	int dir = must(open(".", O_RDONLY | O_DIRECTORY), "open");
	err("fsync of a directory", fsync(dir));
	sync();
	for (int i = 0; i < 2; i++) {
		int s = must(open("s", O_WRONLY | O_CREAT | (i ? O_DSYNC : O_SYNC), 0644), "open");
		num("synchronous write", write(s, "synchronous", 11));
		close(s);
	}
	struct iovec v = {"vector", 6};
	num("RWF_DSYNC", pwritev2(fd, &v, 1, 0, 2));
	err("fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ? -1 : 0);
	look("read again", fd);
	err("readahead", readahead(fd, 0, 100000));
	err("fadvise of a range", posix_fadvise(fd, 8192, 4096, POSIX_FADV_WILLNEED) ? -1 : 0);
}

TEST(listing, "a directory of 3,000 names")
{
	must(mkdir("d", 0755), "mkdir");
	char name[300];
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "d/a-somewhat-long-name-%d", i);
		close(must(open(name, O_CREAT | O_WRONLY, 0644), name));
	}
	unsigned char seen[3000] = {0};
	DIR *d = opendir("d");
	struct dirent *e;
	int n = 0, twice = 0, removed = 0;
	while ((e = readdir(d))) {
		int i;
		if (sscanf(e->d_name, "a-somewhat-long-name-%d", &i) != 1)
			continue;
		n++, twice += seen[i]++;
		if (i % 3 == 0) { // while it is read
			snprintf(name, sizeof name, "d/%s", e->d_name);
			must(unlink(name), name);
			removed++;
		}
	}
	say("%d names, %d twice, %d removed", n, twice, removed);
	rewinddir(d);
	long where = -1;
	char at[256] = "";
	n = 0;
	while ((e = readdir(d))) {
		if (n++ == 500) {
			where = telldir(d);
			if (!(e = readdir(d)))
				break;
			n++;
			strcpy(at, e->d_name);
		}
	}
	seekdir(d, where);
	e = readdir(d);
	say("%d entries; seekdir comes back: %d", n, e && strcmp(e->d_name, at) == 0);
	closedir(d);
	int missing = 0;
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "d/a-somewhat-long-name-%d", i);
		missing += (access(name, F_OK) != 0) != (i % 3 == 0);
	}
	say("%d wrong look-ups", missing);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "d/a-somewhat-long-name-%d", i);
		unlink(name);
	}
	err("rmdir", rmdir("d"));
}

TEST(sums, "statfs")
{
	struct statfs s, t;
	must(statfs(".", &s), "statfs");
	say("type %lx, names of %ld", (long)s.f_type, (long)s.f_namelen);
	int fd = make("f", 0);
	put(fd, 0, 4 << 20, 1);
	must(statfs(".", &t), "statfs");
	long used = (long)(s.f_bfree - t.f_bfree) * s.f_bsize;
	say("4 MiB that are not on disk yet are counted: %d", used >= 4 << 20 && used < 5 << 20);
	must(fsync(fd), "fsync");
	struct stat st;
	must(fstat(fd, &st), "fstat");
	say("blocks: %d", st.st_blocks >= 8192 && st.st_blocks < 8300);
}

TEST(copies, "copy_file_range, sendfile, splice")
{
	int a = make("a", 0), b = make("b", 0);
	put(a, 0, 300000, 1);
	num("copy_file_range", copy_file_range(a, NULL, b, NULL, 300000, 0));
	look("copy", b);
	off_t off = 1000;
	num("sendfile", syscall(SYS_sendfile, b, a, &off, 100000));
	look("sent", b);
	int p[2];
	must(pipe(p), "pipe");
	off = 5;
	num("splice", splice(a, &off, p[1], NULL, 20000, 0));
	num("splice", splice(p[0], NULL, b, NULL, 20000, 0));
	look("spliced", b);
}

TEST(bits, "set-id bits go with a write")
{
	int fd = make("f", 0);
	must(fchmod(fd, 06755), "fchmod");
	if (getuid() == 0) {
		must(fchmod(fd, 06777), "fchmod");
		must(setresgid(1000, 1000, 1000), "setresgid");
		must(setresuid(1000, 1000, 1000), "setresuid");
	}
	must(write(fd, "x", 1), "write");
	struct stat st;
	must(fstat(fd, &st), "fstat");
	say("mode %o", st.st_mode & 06000);
}

TEST(cut, "files without a name are cut, and go")
{
	for (int i = 0; i < 20; i++) {
		static char p[100000];
		int fd = make("gone", 0);
		must(write(fd, p, sizeof p), "write");
		must(unlink("gone"), "unlink");
		must(ftruncate(fd, i * 1000), "ftruncate");
		if (i % 2)
			must(ftruncate(fd, 50000), "ftruncate up");
		close(fd);
	}
	say("the checker looks for them afterwards");
}

TEST(limits, "RLIMIT_FSIZE")
{
	struct rlimit r = {100000, 100000};
	must(setrlimit(RLIMIT_FSIZE, &r), "setrlimit");
	signal(SIGXFSZ, SIG_IGN);
	int fd = make("f", 0);
	char b[8192] = {0};
	num("up to it", pwrite(fd, b, 8192, 95000));
	num("at it", pwrite(fd, b, 1, 100000));
	err("ftruncate", ftruncate(fd, 100001));
	err("fallocate", fallocate(fd, 0, 0, 100001));
	look("file", fd);
}

// resident is whether a file's first page is in memory.
static int resident(int fd)
{
	unsigned char in = 0;
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || mincore(p, 4096, &in) < 0)
		fatal("mincore");
	munmap(p, 4096);
	return in & 1;
}

TEST(dropped, "drop_caches")
{
	int fd = make("f", 0), sys = must(open("/proc/sys/vm/drop_caches", O_WRONLY), "drop_caches");
	put(fd, 0, 20480, 1);
	say("written: in memory %d", resident(fd));
	must(fsync(fd), "fsync");
	err("0", write(sys, "0\n", 2));
	err("3", write(sys, "3\n", 2));
	say("dropped: in memory %d", resident(fd));
	look("read again", fd);
	say("read: in memory %d", resident(fd));
}

TEST(running, "a program on the disk")
{
	int from = must(open("/proc/self/exe", O_RDONLY), "open"), to = must(open("prog", O_WRONLY | O_CREAT | O_TRUNC, 0755), "open");
	char b[65536];
	ssize_t n;
	while ((n = read(from, b, sizeof b)) > 0)
		must(write(to, b, (size_t)n), "write");
	pid_t pid = FORK(execl("./prog", "prog", "child", NULL); _exit(errno == ETXTBSY ? 26 : 99));
	status("while it is written", wait_for(pid));
	close(to);
	pid = FORK(execl("./prog", "prog", "child", NULL); _exit(99));
	status("it runs", wait_for(pid));
	pid = FORK(execl("./prog", "prog", "child", "wait", NULL); _exit(99));
	sleep_ms(300);
	err("open it for writing while it runs", open("prog", O_WRONLY));
	kill(pid, SIGKILL);
	wait_for(pid);
}

int child_main(int argc, char **argv)
{
	if (argc > 1)
		pause();
	return 42;
}
