// A disk that fails: what fsync accepted is there after the next mount, byte for byte;
// anything later is there or not. An error is told once. In the end the disk is gone.
#include "fsx.h"

enum { SIZE = 96 * 1024, VERSIONS = 48, TRACKED = 4, NAMES = 16 };

// tracked is a file with all that it may hold: the first version is durable, the others
// began later.
typedef struct {
	char name[16];
	int fd, direct, errored, count;
	unsigned char *map;
	long size[VERSIONS];
	unsigned char data[VERSIONS][SIZE];
	unsigned number;
	struct logged log[LOGGED];
} tracked;

static tracked *files;
static int control, names; // names: how many of them were synced in this round
static const char *fault = "ok";
static unsigned tag;

static void tell(const char *command)
{
	static char *block;
	if (!block && (posix_memalign((void **)&block, PAGE, PAGE) || (control = open(opt.control, O_RDWR | O_DIRECT)) < 0))
		die("%s: %s", opt.control, strerrorname_np(errno));
	memset(block, 0, PAGE);
	snprintf(block, PAGE, "%s\n", command);
	if (pwrite(control, block, PAGE, 0) != PAGE)
		die("the disk does not take the command %s", command);
	fault = strdup(command);
}

// differs reports a file that holds what it must not, with what was done to it.
__attribute__((noreturn, format(printf, 2, 3))) static void differs(tracked *f, const char *format, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	for (unsigned i = f->number > LOGGED ? f->number - LOGGED + 1 : 1; i <= f->number; i++) {
		struct logged *l = &f->log[i % LOGGED];
		dprintf(1, "    %u %s off %ld n %ld, version %ld of %ld bytes: %ld %s\n", l->number, l->what, l->off, l->n, l->from, l->size,
			l->result, l->error ? strerrorname_np(l->error) : "");
	}
	die("%s: %s; %d versions, the fault was %s", f->name, what, f->count, fault);
}

static long logged(tracked *f, long result, const char *what, long off, long n)
{
	f->log[++f->number % LOGGED] = (struct logged){what, f->number, off, n, f->count - 1, f->size[f->count - 1], result,
		result < 0 ? errno : 0};
	return result;
}

// failed notes how a call ended: it may fail as long as the disk does.
static int failed(tracked *f, long result, const char *what)
{
	if (result >= 0)
		return 0;
	if (errno != EIO && errno != EROFS && errno != ENODATA)
		die("%s of %s: %s (fault: %s)", what, f->name, strerrorname_np(errno), fault);
	f->errored = 1;
	shared->refused++;
	return 1;
}

// wrote is failed for a write, which may also be done in part.
static void wrote(tracked *f, long result, long n, const char *what)
{
	if (!failed(f, result, what) && result != n) {
		if (strcmp(fault, "ok") == 0)
			die("%s of %s: %ld of %ld", what, f->name, result, n);
		f->errored = 1;
	}
}

// version begins another one, a copy of the last with another size.
static unsigned char *version(tracked *f, long size)
{
	int k = f->count++;
	memcpy(f->data[k], f->data[k - 1], SIZE);
	f->size[k] = size;
	if (size < f->size[k - 1])
		memset(f->data[k] + size, 0, (size_t)(f->size[k - 1] - size));
	return f->data[k];
}

// durable makes the last version the only one.
static void durable(tracked *f)
{
	memcpy(f->data[0], f->data[f->count - 1], SIZE);
	f->size[0] = f->size[f->count - 1];
	f->count = 1;
}

static void sync_it(tracked *f, int data_only)
{
	if (!failed(f, logged(f, data_only ? fdatasync(f->fd) : fsync(f->fd), "fsync", 0, 0), "fsync") && !f->errored)
		durable(f);
}

struct access {
	unsigned char *to;
	const unsigned char *from;
	long n;
};

static void move(void *arg)
{
	struct access *a = arg;
	memcpy(a->to, a->from, (size_t)a->n);
}

// allowed wants each byte to be that of some version.
static void allowed(tracked *f, const unsigned char *p, long off, long n, const char *what)
{
	for (long i = off; i < off + n; i++) {
		int k = 0;
		while (k < f->count && f->data[k][i] != p[i - off])
			k++;
		if (k == f->count)
			differs(f, "%s: byte %ld is %d and must be %d", what, i, p[i - off], f->data[f->count - 1][i]);
	}
}

static void reading(worker *w, tracked *f)
{
	long off = (long)rnd(w, SIZE) / SECTOR * SECTOR, n = (1 + (long)rnd(w, 40)) * SECTOR, got;
	if (off + n > SIZE)
		n = SIZE - off;
	if (rnd(w, 3) == 0 && off + n <= f->size[f->count - 1]) {
		struct access a = {w->a, f->map + off, n};
		if (!guarded(move, &a))
			allowed(f, w->a, off, n, "load");
		return;
	}
	got = pread(rnd(w, 2) ? f->fd : f->direct, w->a, (size_t)n, off);
	if (got < 0 && errno != EIO && errno != EROFS && errno != ENODATA)
		die("pread: %s", strerrorname_np(errno));
	allowed(f, w->a, off, got, "read");
}

// work does one thing to a file, whatever comes of it.
static void work(worker *w, tracked *f)
{
	if (f->count == VERSIONS)
		return;
	long size = f->size[f->count - 1], off = (long)rnd(w, SIZE), n = 1 + (long)rnd(w, 20000);
	if (off + n > SIZE)
		n = SIZE - off;
	switch (rnd(w, 12)) {
	case 0: case 1: case 2:
		fill(version(f, off + n > size ? off + n : size) + off, off, n, ++tag);
		wrote(f, logged(f, pwrite(f->fd, f->data[f->count - 1] + off, (size_t)n, off), "pwrite", off, n), n, "pwrite");
		break;
	case 3: case 4:
		off = off / SECTOR * SECTOR, n = (n + SECTOR - 1) / SECTOR * SECTOR;
		if (off + n > SIZE)
			n = SIZE - off;
		fill(version(f, off + n > size ? off + n : size) + off, off, n, ++tag);
		memcpy(w->a, f->data[f->count - 1] + off, (size_t)n);
		wrote(f, logged(f, pwrite(f->direct, w->a, (size_t)n, off), "direct write", off, n), n, "direct write");
		break;
	case 5: case 6:
		if (off + n > size)
			break;
		fill(version(f, size) + off, off, n, ++tag);
		struct access a = {f->map + off, f->data[f->count - 1] + off, n};
		if (logged(f, -guarded(move, &a), "store", off, n) < 0)
			f->errored = 1;
		break;
	case 7:
		version(f, off);
		failed(f, logged(f, ftruncate(f->fd, off), "ftruncate", off, 0), "ftruncate");
		break;
	case 8:
		memset(version(f, size) + off, 0, (size_t)n);
		failed(f, logged(f, fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n), "punch", off, n), "punch");
		break;
	case 9:
		version(f, off + n > size ? off + n : size);
		failed(f, logged(f, fallocate(f->fd, 0, off, n), "fallocate", off, n), "fallocate");
		break;
	case 10:
		sync_it(f, rnd(w, 2) != 0);
		break;
	case 11:
		if (rnd(w, 2))
			posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
		else
			failed(f, logged(f, msync(f->map, SIZE, MS_SYNC), "msync", 0, SIZE), "msync");
	}
	if (f->errored == 0 && rnd(w, 3) == 0)
		sync_it(f, 0);
	reading(w, f);
	shared->done++;
	shared->steps++;
}

// make_name makes a file or takes one away; those that were synced are to be there.
static void make_name(worker *w)
{
	char name[16], other[16];
	snprintf(name, sizeof name, "n%d", names), snprintf(other, sizeof other, "x%lu", rnd(w, 20));
	int fd = open(other, O_RDWR | O_CREAT, 0644);
	if (fd >= 0 && write(fd, name, 3) == 3 && rename(other, name) == 0 && fsync(fd) == 0 && names < NAMES - 1)
		names++;
	if (fd >= 0)
		close(fd);
	mkdir(other, 0755), rmdir(other), unlink(other);
}

static void open_tracked(tracked *f, int flags)
{
	f->fd = open(f->name, O_RDWR | flags, 0644);
	f->direct = open(f->name, O_RDWR | O_DIRECT);
	if (f->fd < 0 || f->direct < 0 || (f->map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0)) == MAP_FAILED)
		die("%s: %s (the fault was %s)", f->name, strerrorname_np(errno), fault);
	f->errored = 0;
}

static void close_tracked(tracked *f)
{
	munmap(f->map, SIZE), close(f->fd), close(f->direct);
}

static void mount_disk(void)
{
	if (mount(opt.device, opt.dir, "ext4", 0, opt.data) < 0 || chdir(opt.dir) < 0)
		die("mount: %s (the fault was %s)", strerrorname_np(errno), fault);
}

static void umount_disk(void)
{
	if (chdir("/") < 0 || (umount(opt.dir) < 0 && errno != EIO))
		die("umount: %s (the fault was %s)", strerrorname_np(errno), fault);
}

// recheck looks at all after a mount, and takes for certain what is there.
static void recheck(worker *w)
{
	for (int i = 0; i < TRACKED; i++) {
		tracked *f = &files[i];
		int errored = f->errored;
		open_tracked(f, 0);
		long shortest = f->size[0], longest = 0;
		for (int k = 0; k < f->count; k++) {
			shortest = f->size[k] < shortest ? f->size[k] : shortest;
			longest = f->size[k] > longest ? f->size[k] : longest;
		}
		static unsigned char all[SIZE + PAGE];
		long n = pread(f->fd, all, SIZE + PAGE, 0);
		if ((n < shortest || n > longest) && !(opt.lenient && errored))
			differs(f, "%ld bytes, not %ld to %ld", n, shortest, longest);
		if (!opt.lenient || !errored) // Linux can show what a block held before that it could not write
			allowed(f, all, 0, n, "after the mount");
		memset(f->data[0], 0, SIZE), memcpy(f->data[0], all, (size_t)n);
		f->size[0] = n, f->count = 1;
		// Linux shows what a failed write left behind the end when the file grows.
		if (opt.lenient && ftruncate(f->fd, 0) == 0)
			f->size[0] = 0, memset(f->data[0], 0, SIZE);
		logged(f, n, "after the mount", 0, 0);
		if (fsync(f->fd) < 0)
			die("fsync after the mount: %s", strerrorname_np(errno));
	}
	for (; names > 0; names--) {
		char name[16];
		snprintf(name, sizeof name, "n%d", names - 1);
		if (unlink(name) < 0)
			die("%s was synced and is gone: %s (the fault was %s)", name, strerrorname_np(errno), fault);
	}
}

static void pick_fault(worker *w)
{
	static const char *all[] = {"read", "write", "flush", "all"};
	char command[64];
	unsigned long at = rnd(w, 131072);
	switch (rnd(w, 3)) {
	case 0: snprintf(command, sizeof command, "%s", all[rnd(w, 4)]); break;
	case 1: snprintf(command, sizeof command, "some %lu", 2 + rnd(w, 12)); break;
	case 2: snprintf(command, sizeof command, "sectors %lu %lu", at, at + 8 + rnd(w, 40000));
	}
	tell(command);
	for (int i = 0; i < TRACKED; i++)
		logged(&files[i], 0, fault, 0, 0);
}

// once: the disk is well. What has not been told yet is told by one fsync, not by two.
static void once(tracked *f)
{
	if (logged(f, fsync(f->fd), "first fsync", 0, 0) == 0 && !f->errored)
		durable(f);
	int read_only = mkdir("probe", 0755) < 0 && errno == EROFS;
	rmdir("probe");
	if (!read_only && fsync(f->fd) < 0)
		differs(f, "an error is told again: %s", strerrorname_np(errno));
}

static void disk_gone(worker *w)
{
	pid_t pid[3];
	for (int i = 0; i < 3; i++)
		if ((pid[i] = fork()) == 0)
			for (tracked *f = &files[i];; f->count = f->count == VERSIONS ? 1 : f->count) {
				struct access a = {f->map + rnd(w, SIZE), (unsigned char *)"store", 5};
				guarded(move, &a);
				if (pwrite(f->fd, w->a, 9000, (long)rnd(w, SIZE)) > 0)
					fsync(f->fd);
				close(open("new", O_RDWR | O_CREAT, 0644)), unlink("new");
			}
	usleep(200000);
	tell("gone");
	usleep(300000);
	for (int i = 0; i < 3; i++)
		kill(pid[i], SIGKILL);
	long end = now_ms() + 60000;
	for (int i = 0; i < 3; i++)
		while (waitpid(pid[i], NULL, WNOHANG) == 0) {
			if (now_ms() > end)
				die("a process cannot be killed: the disk is gone");
			usleep(10000);
		}
	if (pwrite(files[3].fd, "x", 1, 0) == 1 && fsync(files[3].fd) == 0)
		die("fsync on a disk that is gone");
	for (int i = 0; i < TRACKED; i++)
		close_tracked(&files[i]);
	umount_disk();
	if (mount(opt.device, opt.dir, "ext4", 0, NULL) == 0)
		die("a disk that is gone was mounted");
}

int faults_main(void)
{
	worker w = {.rng = opt.seed * 0x9e3779b97f4a7c15ul};
	if (posix_memalign((void **)&w.a, PAGE, CHUNK) || !(files = calloc(TRACKED, sizeof *files)))
		die("memory");
	for (int i = 0; i < TRACKED; i++) {
		tracked *f = &files[i];
		snprintf(f->name, sizeof f->name, "t%d", i);
		unlink(f->name);
		f->count = 1;
		open_tracked(f, O_CREAT);
		if (fsync(f->fd) < 0)
			die("fsync: %s", strerrorname_np(errno));
	}
	int r;
	for (r = 0; r < opt.rounds; r++) {
		for (int i = 0; i < 10; i++)
			work(&w, &files[rnd(&w, TRACKED)]);
		pick_fault(&w);
		for (int i = 0; i < 30; i++) {
			work(&w, &files[rnd(&w, TRACKED)]);
			if (i % 6 == 0)
				make_name(&w);
		}
		const char *was = fault;
		tell("ok");
		fault = was;
		for (int i = 0; i < TRACKED; i++)
			once(&files[i]), close_tracked(&files[i]);
		umount_disk(), mount_disk();
		recheck(&w);
	}
	disk_gone(&w);
	return r;
}
