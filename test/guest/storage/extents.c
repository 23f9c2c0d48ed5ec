// Where files lie: ranges taken out of files and put into them, FIEMAP, FIBMAP, SEEK_HOLE
// and SEEK_DATA, on a file system with blocks of 4 KiB.
#include "../c/gt.h"
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/statfs.h>

#define PAGE 4096L

static int make(const char *name, long pages)
{
	int fd = must(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), "open");
	char b[PAGE];
	for (long i = 0; i < pages; i++) {
		memset(b, 'a' + i % 26, PAGE);
		must(pwrite(fd, b, PAGE, i * PAGE), "pwrite");
	}
	return fd;
}

static const char *outcome(long r) { return r < 0 ? name_of(errno) : "ok"; }

// show prints a file: size, blocks, what each page begins with, its extents.
static void show(const char *what, int fd)
{
	struct stat st;
	char text[512], *p = text;
	struct {
		struct fiemap m;
		struct fiemap_extent e[32];
	} x = {{0}};
	fsync(fd), posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); // what was read counts as data
	fstat(fd, &st);
	for (off_t at = 0; at < st.st_size;) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0)
			break;
		off_t hole = lseek(fd, data, SEEK_HOLE);
		p += sprintf(p, " %ld-%ld", (long)data, (long)hole);
		at = hole;
	}
	*p = 0;
	say("%s: data%s", what, text);
	p = text;
	for (off_t at = 0; at < st.st_size && p < text + 100; at += PAGE) {
		char c = 0;
		pread(fd, &c, 1, at);
		*p++ = c ? c : '.';
	}
	*p = 0;
	x.m.fm_length = -1, x.m.fm_flags = FIEMAP_FLAG_SYNC, x.m.fm_extent_count = 32;
	int r = ioctl(fd, FS_IOC_FIEMAP, &x);
	fstat(fd, &st);
	say("  size %ld blocks %ld %s; fiemap %s", (long)st.st_size, (long)st.st_blocks, text, outcome(r));
	p = text, *p = 0;
	for (unsigned i = 0; r == 0 && i < x.m.fm_mapped_extents && i < 32; i++) {
		struct fiemap_extent *e = &x.e[i];
		while (i + 1 < x.m.fm_mapped_extents && e->fe_flags == (x.e[i + 1].fe_flags & ~1u) && e->fe_logical + e->fe_length == x.e[i + 1].fe_logical)
			e->fe_length += x.e[++i].fe_length, e->fe_flags |= x.e[i].fe_flags; // wherever the parts lie
		p += sprintf(p, " %lld+%lld/%x", e->fe_logical / 1024, e->fe_length / 1024, e->fe_flags);
	}
	say("  extents%s", text);
}

TEST(refused, "what collapse and insert refuse")
{
	int fd = make("f", 8);
	struct { int mode; long off, n; } t[] = {
		{8, 1, PAGE}, {8, 0, 1}, {8, 0, 8 * PAGE}, {8, 4 * PAGE, 4 * PAGE}, {8, 4 * PAGE, 40 * PAGE}, {8, 9 * PAGE, PAGE},
		{8, 0, 0}, {8, -PAGE, PAGE}, {8, 0, -PAGE}, {8, 512, PAGE}, {8, 7 * PAGE, PAGE}, {8, 0, 1L << 62}, {8, 0, (1L << 44) - PAGE},
		{0x20, 1, PAGE}, {0x20, 0, 1}, {0x20, 8 * PAGE, PAGE}, {0x20, 9 * PAGE, PAGE}, {0x20, 0, 0}, {0x20, 512, PAGE},
		{0x20, 0, 1L << 62}, {0x20, 0, (1L << 44) - 9 * PAGE}, {0x20, 0, (1L << 44) - PAGE}, {0x20, 1, 1L << 44}, {0x20, 8 * PAGE, (1L << 44) - 8 * PAGE},
		{9, 0, PAGE}, {0x21, 0, PAGE}, {0x28, 0, PAGE}, {0xa, 0, PAGE}, {0x30, 0, PAGE}, {0x40, 0, PAGE}, {0x41, 0, PAGE}, {0x48, 0, PAGE},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		if (t[i].mode & (t[i].mode - 1) && (t[i].mode & ~1) != 0x40)
			continue; // later kernels give another error
		long r = fallocate(fd, t[i].mode, t[i].off, t[i].n);
		say("mode %#x at %ld, %ld: %s", t[i].mode, t[i].off, t[i].n, outcome(r));
	}
	int ro = open("f", O_RDONLY), path = open("f", O_PATH), dir = open(".", O_RDONLY), append = open("f", O_WRONLY | O_APPEND);
	err("read only", fallocate(ro, 8, 0, PAGE));
	err("path", fallocate(path, 8, 0, PAGE));
	err("directory", fallocate(dir, 8, 0, PAGE));
	err("append", fallocate(append, 8, 0, PAGE));
	int p[2];
	pipe(p);
	err("pipe", fallocate(p[1], 0x20, 0, PAGE));
	show("then", fd);
}

TEST(moves, "ranges go and come")
{
	int fd = make("f", 20);
	struct { const char *what; int mode; long off, n; } t[] = {
		{"collapse the front", 8, 0, 2 * PAGE}, {"collapse the midst", 8, 5 * PAGE, 3 * PAGE}, {"insert at the front", 0x20, 0, PAGE},
		{"insert in the midst", 0x20, 4 * PAGE, 5 * PAGE}, {"insert into the hole", 0x20, 6 * PAGE, PAGE}, {"collapse across it", 8, 3 * PAGE, 4 * PAGE},
		{"collapse the hole", 8, 3 * PAGE, 3 * PAGE}, {"insert and", 0x20, 10 * PAGE, 2 * PAGE}, {"take it back", 8, 10 * PAGE, 2 * PAGE},
		{"allocate", 0, 2 * PAGE, 20 * PAGE}, {"insert into what is allocated", 0x20, 18 * PAGE, PAGE}, {"allocate beyond the end", 1, 30 * PAGE, 2 * PAGE},
		{"insert", 0x20, PAGE, PAGE}, {"collapse", 8, PAGE, 3 * PAGE}, {"punch", 3, 2 * PAGE, PAGE}, {"collapse a part of it", 8, 2 * PAGE, 2 * PAGE},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		long r = fallocate(fd, t[i].mode, t[i].off, t[i].n);
		say("%s: %s", t[i].what, outcome(r));
		show(t[i].what, fd);
	}
	ftruncate(fd, 5 * PAGE + 100);
	err("insert before an odd end", fallocate(fd, 0x20, 5 * PAGE, PAGE));
	show("odd end", fd);
	err("collapse up to it", fallocate(fd, 8, 5 * PAGE, PAGE));
	show("odd end", fd);
	err("sync", fsync(fd));
}

TEST(sequences, "random sequences leave what a model says")
{
	static unsigned char model[400 * PAGE], got[400 * PAGE];
	uint32_t state = 5;
	long size = 0;
	int fd = make("f", 0);
	for (int i = 0; i < 400; i++) {
		state = state * 1664525u + 1013904223u;
		long at = (state >> 8) % 100 * PAGE, n = (1 + (state >> 16) % 8) * PAGE;
		long r = 0;
		switch ((state >> 28) % 6) {
		case 0: case 1:
			memset(got, 1 + i % 200, n);
			r = pwrite(fd, got, n - 50, at);
			if (at + n - 50 > size)
				size = at + n - 50;
			memset(model + at, 1 + i % 200, n - 50);
			break;
		case 2:
			r = fallocate(fd, 8, at, n);
			if (r == 0)
				memmove(model + at, model + at + n, sizeof model - at - n), size -= n, memset(model + size, 0, sizeof model - size);
			break;
		case 3: case 4:
			if (size + n > 300 * PAGE)
				continue;
			r = fallocate(fd, 0x20, at, n);
			if (r == 0)
				memmove(model + at + n, model + at, size - at), memset(model + at, 0, n), size += n;
			break;
		case 5: {
			char *p = mmap(NULL, 300 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			long k = at + 9;
			if (k < size)
				p[k] = model[k] = 7;
			munmap(p, 300 * PAGE);
		}
		}
		struct stat st;
		fstat(fd, &st);
		if (pread(fd, got, sizeof got, 0) != size || memcmp(got, model, size) || st.st_size != size)
			return (void)say("differs after %d", i);
	}
	say("size %ld", size);
}

TEST(mapped, "a mapping sees what moved")
{
	int fd = make("f", 8);
	char *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[3 * PAGE] = 'M';
	err("collapse", fallocate(fd, 8, PAGE, PAGE));
	say("%c%c%c", p[0], p[PAGE], p[2 * PAGE]);
	p[2 * PAGE] = 'N';
	err("insert", fallocate(fd, 0x20, PAGE, 2 * PAGE));
	say("%c%d%c%c", p[0], p[PAGE], p[3 * PAGE], p[4 * PAGE]);
	show("mapped", fd);
	IN_CHILD("beyond the end", err("collapse", fallocate(fd, 8, 0, 8 * PAGE)); (void)*(volatile char *)(p + 2 * PAGE));
}

TEST(setid, "set-id bits and times")
{
	int fd = make("f", 8);
	struct stat a, b;
	int modes[] = {8, 0x20};
	for (int i = 0; i < 2; i++) {
		fchown(fd, 1000, 1000), fchmod(fd, 06777);
		fstat(fd, &a);
		sleep_ms(20);
		IN_CHILD("as another", setresgid(1000, 1000, 1000); setresuid(1000, 1000, 1000); err("fallocate", fallocate(fd, modes[i], 0, PAGE)));
		fstat(fd, &b);
		say("mode %o, mtime %d ctime %d atime %d", b.st_mode, memcmp(&a.st_mtim, &b.st_mtim, sizeof a.st_mtim) != 0,
		    memcmp(&a.st_ctim, &b.st_ctim, sizeof a.st_ctim) != 0, memcmp(&a.st_atim, &b.st_atim, sizeof a.st_atim) != 0);
	}
}

TEST(fiemap, "requests of FIEMAP")
{
	int fd = make("f", 8);
	fallocate(fd, 3, 2 * PAGE, PAGE), fallocate(fd, 3, 5 * PAGE, PAGE);
	fsync(fd);
	struct { const char *what; uint64_t start, length; uint32_t flags, count; } t[] = {
		{"all", 0, -1, 1, 8}, {"count", 0, -1, 0, 0}, {"two", 0, -1, 0, 2}, {"three", 0, -1, 0, 3}, {"a part", PAGE + 5, PAGE, 0, 8}, {"a byte", 3 * PAGE + 5, 1, 0, 8},
		{"a hole", 2 * PAGE, PAGE, 0, 8}, {"nothing", 0, 0, 0, 8}, {"beyond the end", 100 * PAGE, -1, 0, 8}, {"far beyond", 1UL << 60, 1, 0, 8},
		{"wraps", 8, -1, 0, 8}, {"bad flags", 0, -1, 0x80, 8}, {"bad flags and sync", 0, -1, 0x81, 8}, {"cache", 0, -1, 4, 8}, {"too many", 0, -1, 0, 0x8000000},
		{"half of one", 3 * PAGE, PAGE, 0, 8},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct {
			struct fiemap m;
			struct fiemap_extent e[8];
		} x = {{t[i].start, t[i].length, t[i].flags, 77, t[i].count, 0}};
		char text[256], *p = text;
		int r = ioctl(fd, FS_IOC_FIEMAP, &x);
		*p = 0;
		for (unsigned k = 0; r == 0 && t[i].count && k < x.m.fm_mapped_extents; k++)
			p += sprintf(p, " %lld+%lld/%x", x.e[k].fe_logical, x.e[k].fe_length, x.e[k].fe_flags);
		say("%s: %s flags %x mapped %u%s", t[i].what, outcome(r), x.m.fm_flags, x.m.fm_mapped_extents, text);
	}
	err("bad address", ioctl(fd, FS_IOC_FIEMAP, 8));
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + PAGE, PAGE);
	struct fiemap *m = (void *)(page + PAGE - 100);
	*m = (struct fiemap){0, -1, 0, 0, 8, 0};
	err("extents at a bad address", ioctl(fd, FS_IOC_FIEMAP, m));
	int p[2], dir = open(".", O_RDONLY), null = open("/dev/null", O_RDWR), proc = open("/proc/self/stat", O_RDONLY), path = open("f", O_PATH);
	pipe(p);
	struct fiemap all = {0, -1, 0, 0, 0, 0};
	err("pipe", ioctl(p[0], FS_IOC_FIEMAP, &all));
	err("null", ioctl(null, FS_IOC_FIEMAP, &all));
	err("proc", ioctl(proc, FS_IOC_FIEMAP, &all));
	err("path", ioctl(path, FS_IOC_FIEMAP, &all));
	err("directory", ioctl(dir, FS_IOC_FIEMAP, &all));
	say("of the directory %u", all.fm_mapped_extents);
}

TEST(fibmap, "FIBMAP")
{
	int fd = make("f", 4), size = 0;
	fallocate(fd, 3, PAGE, PAGE), fallocate(fd, 1, 8 * PAGE, PAGE);
	struct {
		struct fiemap m;
		struct fiemap_extent e[8];
	} x = {{0, -1, 1, 0, 8, 0}};
	ioctl(fd, FS_IOC_FIEMAP, &x);
	int blocks[] = {0, 1, 2, 3, 4, 8, 100, INT_MAX, -1};
	for (int i = 0; i < 9; i++) {
		int b = blocks[i];
		long r = ioctl(fd, FIBMAP, &b), want = 0;
		for (unsigned k = 0; k < x.m.fm_mapped_extents; k++)
			if (!(x.e[k].fe_flags & 0x800) && (uint64_t)blocks[i] * PAGE >= x.e[k].fe_logical && (uint64_t)blocks[i] * PAGE < x.e[k].fe_logical + x.e[k].fe_length)
				want = (x.e[k].fe_physical + blocks[i] * PAGE - x.e[k].fe_logical) / PAGE;
		say("block %d: %s, %s", blocks[i], outcome(r), r == 0 ? b == want ? b ? "as FIEMAP" : "none" : "another" : "-");
	}
	err("bad address", ioctl(fd, FIBMAP, 8));
	num("FIGETBSZ", ioctl(fd, FIGETBSZ, &size)), say("size %d", size);
	int p[2], dir = open(".", O_RDONLY), proc = open("/proc/self/stat", O_RDONLY), b = 0;
	pipe(p);
	err("pipe", ioctl(p[0], FIBMAP, &b));
	err("directory", ioctl(dir, FIBMAP, &b));
	err("proc", ioctl(proc, FIBMAP, &b));
	IN_CHILD("as another", setresuid(1000, 1000, 1000); err("FIBMAP", ioctl(fd, FIBMAP, &b)));
}

typedef struct {
	unsigned bytes;
	int type;
	uint32_t words[32];
} handle;

static handle of(const char *path)
{
	handle h = {128};
	int id;
	must(syscall(SYS_name_to_handle_at, AT_FDCWD, path, &h, &id, 0), "name_to_handle_at");
	return h;
}

static int open_by(handle *h, int flags) { return syscall(SYS_open_by_handle_at, AT_FDCWD, h, flags); }

static void drop_caches(void)
{
	sync();
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	write(fd, "3", 1), close(fd);
}

TEST(handles, "file handles, also of what is not in memory")
{
	struct stat a, b;
	mkdir("a", 0755), mkdir("a/b", 0755), mkdir("a/b/c", 0755);
	close(make("a/b/c/f", 1));
	symlink("x", "a/l");
	handle f = of("a/b/c/f"), c = of("a/b/c"), l = of("a/l"), top = of("/");
	say("%u bytes, type %d, generation %d", f.bytes, f.type, f.words[1] != 0);
	for (int cold = 0; cold < 2; cold++) {
		if (cold)
			drop_caches();
		int fd = open_by(&c, O_RDONLY);
		say("directory: %s", outcome(fd));
		say("name below: %s", outcome(openat(fd, "f", O_RDONLY)));
		fstatat(fd, "../..", &a, 0), stat("a", &b);
		say("above: %d", a.st_ino == b.st_ino);
		char link[64], name[512] = "";
		sprintf(link, "/proc/self/fd/%d", fd), readlink(link, name, 511);
		say("path: %s", strstr(name, "/a/b/c") ? "whole" : name);
		close(fd);
		fd = open_by(&f, O_RDWR);
		say("file: %s", outcome(fd));
		fstat(fd, &a), stat("a/b/c/f", &b);
		say("the same: %d, size %ld", a.st_ino == b.st_ino, (long)a.st_size);
		say("written: %ld", (long)pwrite(fd, "w", 1, 0));
		close(fd);
		say("link: %s", outcome(open_by(&l, O_RDONLY)));
		say("link, O_PATH: %s", outcome(open_by(&l, O_PATH)));
		say("root: %s", outcome(open_by(&top, O_RDONLY)));
	}
	handle other = f;
	other.words[1]++;
	say("another generation: %s", outcome(open_by(&other, O_RDONLY)));
	other.words[1] = 0;
	say("no generation: %s", outcome(open_by(&other, O_RDONLY)));
	other = f, other.type = 2;
	say("type 2: %s", outcome(open_by(&other, O_RDONLY)));
	other = f, other.type = 77;
	say("type 77: %s", outcome(open_by(&other, O_RDONLY)));
	other = f, other.bytes = 4;
	say("short: %s", outcome(open_by(&other, O_RDONLY)));
	int fd = open("a/b/c/f", O_RDONLY);
	unlink("a/b/c/f");
	say("no name, but open: %s", outcome(open_by(&f, O_RDONLY)));
	for (int i = 3; i < 64; i++)
		close(i);
	say("gone: %s", outcome(open_by(&f, O_RDONLY)));
	rmdir("a/b/c");
	say("directory gone: %s", outcome(open_by(&c, O_RDONLY)));
	for (uint32_t ino = 0; ino < 11; ino++) {
		handle h = {8, 1, {ino, 0}};
		int fd = open_by(&h, O_RDONLY);
		say("inode %u: %s", ino, outcome(fd));
		close(fd);
	}
	uint32_t far[] = {0x7fffffff, 0x80000000, 0xffffffff};
	for (int i = 0; i < 3; i++) {
		handle h = {8, 1, {far[i], 0}};
		say("inode %#x: %s", far[i], outcome(open_by(&h, O_RDONLY)));
	}
}

TEST(guessed, "handles of numbers that come and go")
{
	close(make("f", 1));
	handle f = of("f");
	pid_t makers[2];
	for (int k = 0; k < 2; k++) {
		makers[k] = fork();
		if (makers[k] == 0) {
			char name[16], data[3000];
			memset(data, 'd', sizeof data);
			for (int i = 0;; i++) {
				sprintf(name, "%d.%d", k, i % 8);
				int fd = open(name, O_CREAT | O_RDWR, 0644);
				write(fd, data, sizeof data), close(fd);
				if (i % 2)
					unlink(name);
				mkdir("dir", 0755), rmdir("dir");
			}
		}
	}
	uint32_t state = 3;
	long wrong = 0;
	for (long long end = now_ms() + 1500; now_ms() < end;) {
		state = state * 1664525u + 1013904223u;
		handle h = {8, 1, {f.words[0] + (state >> 8) % 32, 0}};
		int fd = open_by(&h, O_RDONLY);
		struct stat st;
		if (fd >= 0) {
			if (fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
				wrong++;
			close(fd);
		}
	}
	for (int k = 0; k < 2; k++)
		kill(makers[k], SIGKILL), waitpid(makers[k], NULL, 0);
	say("wrong %ld", wrong);
}
