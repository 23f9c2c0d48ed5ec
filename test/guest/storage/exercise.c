// Random operations on files against an exact model in memory, several processes at
// once. It prints nothing but what went wrong: so the same on any system.
#include "../c/gt.h"
#include <linux/falloc.h>

#define MOST (1 << 20) // of a file
#define PAGE 4096

typedef struct {
	uint64_t seed;
	int fd, direct;
	char name[32], *map;
	unsigned char *model, *buf;
	long size;
	int number;
} file;

static unsigned long rnd(file *f, unsigned long n)
{
	f->seed ^= f->seed << 13, f->seed ^= f->seed >> 7, f->seed ^= f->seed << 17;
	return (f->seed >> 11) % n;
}

static void wrong(file *f, const char *what, long at)
{
	say("%s: step %d: %s at %ld: %s, size %ld", f->name, f->number, what, at, name_of(errno), f->size);
	_exit(1);
}

static void range(file *f, long *off, long *n, long most)
{
	*off = (long)rnd(f, (unsigned long)most);
	*n = 1 + (long)rnd(f, rnd(f, 4) ? 9000 : 70000);
	if (rnd(f, 3) == 0)
		*off &= ~(PAGE - 1L);
	if (rnd(f, 3) == 0)
		*n = (*n + PAGE - 1) & ~(PAGE - 1L);
	if (*off + *n > most)
		*n = most - *off;
}

static void compare(file *f, const unsigned char *got, long off, long n, const char *what)
{
	for (long i = 0; i < n; i++)
		if (got[i] != f->model[off + i]) {
			say("byte %ld is %d and should be %d", off + i, got[i], f->model[off + i]);
			wrong(f, what, off + i);
		}
}

static void grow(file *f, long to)
{
	if (to > f->size)
		f->size = to; // the model is zero behind the end
}

static void scribble(file *f, unsigned char *p, long n)
{
	unsigned x = (unsigned)rnd(f, 255) + 1;
	for (long i = 0; i < n; i++)
		p[i] = (unsigned char)(x + (unsigned)i * 13 + (unsigned)(i >> 9));
}

static void remap(file *f)
{
	if (f->map)
		munmap(f->map, MOST);
	f->map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED)
		wrong(f, "mmap", 0);
}

static void step(file *f)
{
	long off, n, got;
	switch (rnd(f, 17)) {
	case 0: case 1: case 2: // write
		range(f, &off, &n, MOST);
		scribble(f, f->buf, n);
		if ((got = pwrite(f->fd, f->buf, (size_t)n, off)) != n)
			wrong(f, "pwrite", got);
		memcpy(f->model + off, f->buf, (size_t)n);
		grow(f, off + n);
		break;
	case 3: case 4: // read
		range(f, &off, &n, MOST);
		got = pread(f->fd, f->buf, (size_t)n, off);
		if (got != (off >= f->size ? 0 : off + n > f->size ? f->size - off : n))
			wrong(f, "length of pread", got);
		compare(f, f->buf, off, got, "pread");
		break;
	case 5: case 6: // store
		if (f->size < 10)
			break;
		range(f, &off, &n, f->size);
		scribble(f, f->buf, n);
		memcpy(f->map + off, f->buf, (size_t)n);
		memcpy(f->model + off, f->buf, (size_t)n);
		break;
	case 7: // load
		if (f->size < 10)
			break;
		range(f, &off, &n, f->size);
		compare(f, (unsigned char *)f->map + off, off, n, "load");
		break;
	case 8: // truncate
		off = (long)rnd(f, MOST);
		if (rnd(f, 3))
			off = f->size / 2 + (long)rnd(f, (unsigned long)f->size + 1);
		if (off > MOST)
			off = MOST;
		if (ftruncate(f->fd, off) < 0)
			wrong(f, "ftruncate", off);
		if (off < f->size)
			memset(f->model + off, 0, (size_t)(f->size - off));
		f->size = off;
		break;
	case 9: // hole
		range(f, &off, &n, MOST);
		if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n) < 0)
			wrong(f, "punch", off);
		memset(f->model + off, 0, (size_t)n);
		break;
	case 10: // zeros, or room
		range(f, &off, &n, MOST);
		got = (long)rnd(f, 4);
		if (fallocate(f->fd, (got & 1 ? FALLOC_FL_KEEP_SIZE : 0) | (got & 2 ? FALLOC_FL_ZERO_RANGE : 0), off, n) < 0)
			wrong(f, "fallocate", off);
		if (got & 2)
			memset(f->model + off, 0, (size_t)n);
		if (!(got & 1))
			grow(f, off + n);
		break;
	case 11: // direct write
		range(f, &off, &n, MOST);
		off &= ~511L, n = (n + 511) & ~511L;
		if (off + n > MOST)
			break;
		scribble(f, f->buf, n);
		if ((got = pwrite(f->direct, f->buf, (size_t)n, off)) != n)
			wrong(f, "direct write", got);
		memcpy(f->model + off, f->buf, (size_t)n);
		grow(f, off + n);
		break;
	case 12: // direct read
		range(f, &off, &n, MOST);
		off &= ~511L, n = (n + 511) & ~511L;
		got = pread(f->direct, f->buf, (size_t)n, off);
		if (got != (off >= f->size ? 0 : off + n > f->size ? f->size - off : n))
			wrong(f, "length of direct read", got);
		compare(f, f->buf, off, got, "direct read");
		break;
	case 13:
		if (rnd(f, 4) == 0 && fsync(f->fd) < 0)
			wrong(f, "fsync", 0);
		if (rnd(f, 4) == 0 && msync(f->map, MOST, MS_SYNC) < 0)
			wrong(f, "msync", 0);
		if (rnd(f, 4) == 0)
			sync_file_range(f->fd, (long)rnd(f, MOST), 100000, 7);
		break;
	case 14:
		posix_fadvise(f->fd, (long)rnd(f, MOST), (long)rnd(f, MOST), POSIX_FADV_DONTNEED);
		break;
	case 15: // open again
		close(f->fd);
		if ((f->fd = open(f->name, O_RDWR)) < 0)
			wrong(f, "open", 0);
		remap(f);
		break;
	case 16: // append
		n = 1 + (long)rnd(f, 5000);
		if (f->size + n > MOST)
			break;
		scribble(f, f->buf, n);
		int fd = open(f->name, O_WRONLY | O_APPEND);
		if (fd < 0 || write(fd, f->buf, (size_t)n) != n)
			wrong(f, "append", n);
		close(fd);
		memcpy(f->model + f->size, f->buf, (size_t)n);
		f->size += n;
	}
	struct stat st;
	if (fstat(f->fd, &st) < 0 || st.st_size != f->size)
		wrong(f, "size", (long)st.st_size);
}

static void work(int which, int steps)
{
	file f = {.seed = 0x9e3779b97f4a7c15UL * (uint64_t)(which + 1)};
	snprintf(f.name, sizeof f.name, "f%d", which);
	f.fd = must(open(f.name, O_RDWR | O_CREAT | O_TRUNC, 0644), "open");
	f.direct = must(open(f.name, O_RDWR | O_DIRECT), "open directly");
	f.model = calloc(1, MOST + PAGE);
	if (posix_memalign((void **)&f.buf, PAGE, 1 << 17))
		fatal("memalign");
	remap(&f);
	for (f.number = 0; f.number < steps; f.number++)
		step(&f);
	unsigned char *all = malloc(MOST);
	if (pread(f.fd, all, MOST, 0) != f.size)
		wrong(&f, "last read", 0);
	compare(&f, all, 0, f.size, "last read");
}

TEST(alone, "one process")
{
	work(0, 3000);
}

TEST(together, "four processes")
{
	pid_t pid[4];
	for (int i = 0; i < 4; i++)
		pid[i] = FORK(work(i + 1, 1500));
	for (int i = 0; i < 4; i++)
		status("process", wait_for(pid[i]));
}

// Names: processes make, rename, link and remove in two directories that they share.
TEST(tree, "names of several processes")
{
	must(mkdir("a", 0755), "mkdir");
	must(mkdir("b", 0755), "mkdir");
	pid_t pid[4];
	for (int i = 0; i < 4; i++)
		pid[i] = FORK({
			file f = {.seed = 77777UL * (uint64_t)(i + 1)};
			for (int k = 0; k < 1500; k++) {
				char x[64], y[64];
				snprintf(x, sizeof x, "%c/n%lu", "ab"[rnd(&f, 2)], rnd(&f, 40));
				snprintf(y, sizeof y, "%c/n%lu", "ab"[rnd(&f, 2)], rnd(&f, 40));
				int fd;
				switch (rnd(&f, 6)) {
				case 0: case 1:
					if ((fd = open(x, O_CREAT | O_RDWR, 0644)) >= 0) {
						if (write(fd, x, strlen(x)) < 0)
							fatal("write");
						close(fd);
					}
					break;
				case 2:
					rename(x, y);
					break;
				case 3:
					link(x, y);
					break;
				case 4:
					if (unlink(x) < 0 && errno != ENOENT)
						rmdir(x);
					break;
				case 5:
					syscall(SYS_renameat2, AT_FDCWD, x, AT_FDCWD, y, 2);
				}
			}
		});
	for (int i = 0; i < 4; i++)
		status("process", wait_for(pid[i]));
	// Each name leads to a file with as many names as are found.
	long names = 0, links = 0;
	for (int d = 0; d < 2; d++)
		for (int k = 0; k < 40; k++) {
			char x[64];
			struct stat st;
			snprintf(x, sizeof x, "%c/n%d", "ab"[d], k);
			if (stat(x, &st) < 0)
				continue;
			names++;
			long same = 0;
			for (int e = 0; e < 2; e++)
				for (int m = 0; m < 40; m++) {
					char y[64];
					struct stat other;
					snprintf(y, sizeof y, "%c/n%d", "ab"[e], m);
					if (stat(y, &other) == 0 && other.st_ino == st.st_ino)
						same++;
				}
			links += same != (long)st.st_nlink;
		}
	say("%s names; %ld with a wrong number of links", names > 0 ? "some" : "no", links);
}

// child STEPS SEED…: so many steps with each seed at once, for long runs.
int child_main(int argc, char **argv)
{
	int steps = atoi(argv[1]), n = 0;
	for (int i = 2; i < argc; i++, n++)
		FORK(work(atoi(argv[i]), steps));
	int bad = 0;
	for (; n > 0; n--) {
		int st;
		wait(&st);
		bad |= st != 0;
	}
	say("%s", bad ? "failed" : "done");
	return bad;
}
