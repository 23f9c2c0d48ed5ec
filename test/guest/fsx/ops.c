#include "fsx.h"

static struct logged *begin(worker *w, file *f, const char *what, long off, long n, long from)
{
	model *m = f->m;
	w->at = f;
	struct logged *l = &m->log[++m->number % LOGGED];
	*l = (struct logged){what, m->number, off, n, from, m->size, 0, 0};
	return l;
}

static void end(struct logged *l, long result)
{
	l->result = result;
	l->error = result < 0 ? errno : 0;
}

// range picks a place: often pages, blocks or sectors as a whole.
static void range(worker *w, long *off, long *n, long most)
{
	static const long unit[] = {1, 1, 1, SECTOR, 1024, PAGE, PAGE};
	*off = (long)rnd(w, (unsigned long)most);
	*n = 1 + (long)rnd(w, rnd(w, 4) ? 9000 : 70000);
	long u = unit[rnd(w, 7)];
	*off = *off / u * u;
	u = unit[rnd(w, 7)];
	*n = (*n + u - 1) / u * u;
	if (*n > most - *off)
		*n = most - *off;
}

// inside picks a range within the file; 0 if the file is empty.
static int inside(worker *w, file *f, long *off, long *n)
{
	if (f->m->size == 0)
		return 0;
	range(w, off, n, f->m->size);
	return 1;
}

// accepted is how much of a write was done. Nothing may be missing but for space.
static long accepted(worker *w, long got, long n, const char *what)
{
	if (got == n)
		return n;
	if (!opt.full || got == 0 || got > n || (got < 0 && errno != ENOSPC))
		wrong(w, "%s of %ld: %ld", what, n, got);
	shared->refused++;
	return got < 0 ? 0 : got;
}

static void grow(file *f, long to)
{
	if (to > f->m->size)
		f->m->size = to;
}

static void put(file *f, long off, const unsigned char *p, long n)
{
	if (n > 0) {
		memcpy(f->m->data + off, p, (size_t)n);
		grow(f, off + n);
	}
}

static void zero(file *f, long off, long n)
{
	memset(f->m->data + off, 0, (size_t)n);
}

static unsigned fresh(worker *w, file *f, long off, long n)
{
	unsigned tag = f->m->number * 31 + (unsigned)w->number * 7919;
	fill(w->a, off, n, tag);
	note(w, f, NOTE_WRITE, off, n, tag, NULL, 0);
	return tag;
}

// cut makes up to four pieces of a buffer.
static int cut(worker *w, struct iovec *v, unsigned char *p, long n)
{
	int count = 0;
	for (; count < 3 && n > 1; count++) {
		long k = 1 + (long)rnd(w, (unsigned long)n - 1);
		v[count] = (struct iovec){p, (size_t)k};
		p += k, n -= k;
	}
	v[count++] = (struct iovec){p, (size_t)n};
	return count;
}

static void op_write(worker *w, file *f)
{
	long off, n, got;
	range(w, &off, &n, MOST);
	fresh(w, f, off, n);
	struct iovec v[4];
	struct logged *l;
	switch (rnd(w, 4)) {
	case 0:
		l = begin(w, f, "write", off, n, 0);
		if (lseek(f->fd, off, SEEK_SET) != off)
			wrong(w, "lseek");
		got = write(f->fd, w->a, (size_t)n);
		if (got > 0 && lseek(f->fd, 0, SEEK_CUR) != off + got)
			wrong(w, "the position after write");
		break;
	case 1:
		l = begin(w, f, "writev", off, n, 0);
		lseek(f->fd, off, SEEK_SET);
		got = writev(f->fd, v, cut(w, v, w->a, n));
		break;
	case 2:
		l = begin(w, f, "pwritev", off, n, 0);
		got = pwritev(f->fd, v, cut(w, v, w->a, n), off);
		break;
	default:
		l = begin(w, f, "pwrite", off, n, 0);
		got = pwrite(f->fd, w->a, (size_t)n, off);
	}
	end(l, got);
	put(f, off, w->a, accepted(w, got, n, l->what));
}

static void op_append(worker *w, file *f)
{
	long off = f->m->size, n = 1 + (long)rnd(w, 9000);
	if (off + n > MOST)
		return;
	fresh(w, f, off, n);
	struct logged *l = begin(w, f, "append", off, n, 0);
	long got = write(f->append, w->a, (size_t)n);
	end(l, got);
	put(f, off, w->a, accepted(w, got, n, "append"));
}

static void op_direct_write(worker *w, file *f)
{
	long off, n;
	range(w, &off, &n, MOST);
	off = off / SECTOR * SECTOR, n = (n + SECTOR - 1) / SECTOR * SECTOR;
	if (f->direct < 0 || off + n > MOST)
		return;
	fresh(w, f, off, n);
	struct logged *l = begin(w, f, "direct write", off, n, 0);
	long got = pwrite(f->direct, w->a, (size_t)n, off);
	end(l, got);
	if (got < 0 && errno == ENOSPC && opt.lenient) { // Linux does not tell how much it wrote
		long k = pread(f->fd, w->b, (size_t)n, off);
		for (long i = 0; i < k; i++)
			if (w->b[i] != w->a[i] && w->b[i] != f->m->data[off + i])
				wrong(w, "byte %ld is neither old nor new", off + i);
		if (k > 0)
			memcpy(f->m->data + off, w->b, (size_t)k);
		return;
	}
	put(f, off, w->a, accepted(w, got, n, "direct write"));
}

static void op_read(worker *w, file *f)
{
	long off, n, got;
	range(w, &off, &n, MOST);
	long want = off >= f->m->size ? 0 : off + n > f->m->size ? f->m->size - off : n;
	struct iovec v[4];
	struct logged *l;
	switch (rnd(w, 5)) {
	case 0:
		l = begin(w, f, "read", off, n, 0);
		lseek(f->fd, off, SEEK_SET);
		got = read(f->fd, w->a, (size_t)n);
		break;
	case 1:
		l = begin(w, f, "preadv", off, n, 0);
		got = preadv(f->fd, v, cut(w, v, w->a, n), off);
		break;
	case 2:
		l = begin(w, f, "direct read", off, n, 0);
		off = off / SECTOR * SECTOR, n = (n + SECTOR - 1) / SECTOR * SECTOR;
		if (f->direct < 0 || n > CHUNK)
			return;
		want = off >= f->m->size ? 0 : off + n > f->m->size ? f->m->size - off : n;
		got = pread(f->direct, w->a, (size_t)n, off);
		break;
	default:
		l = begin(w, f, "pread", off, n, 0);
		got = pread(f->fd, w->a, (size_t)n, off);
	}
	end(l, got);
	if (got != want)
		wrong(w, "%s of %ld at %ld: %ld, not %ld", l->what, n, off, got, want);
	compare(w, f, w->a, off, got, l->what);
}

struct store {
	unsigned char *to, *from;
	volatile long done;
	long off, n;
};

// run_store stores page by page: a page that cannot be had gets nothing.
static void run_store(void *arg)
{
	struct store *s = arg;
	while (s->done < s->n) {
		long k = PAGE - (s->off + s->done) % PAGE;
		if (k > s->n - s->done)
			k = s->n - s->done;
		memcpy(s->to + s->done, s->from + s->done, (size_t)k);
		s->done += k;
	}
}

static void op_store(worker *w, file *f)
{
	long off, n;
	if (!inside(w, f, &off, &n))
		return;
	fresh(w, f, off, n);
	struct logged *l = begin(w, f, "store", off, n, 0);
	struct store s = {f->map + off, w->a, 0, off, n};
	if (guarded(run_store, &s)) {
		errno = ENOSPC;
		end(l, -1);
		if (!opt.full)
			wrong(w, "SIGBUS at %ld", off + s.done);
		shared->refused++;
	} else
		end(l, n);
	put(f, off, w->a, s.done);
}

static void op_load(worker *w, file *f)
{
	long off, n;
	if (!inside(w, f, &off, &n))
		return;
	end(begin(w, f, "load", off, n, 0), n);
	if (rnd(w, 8) == 0)
		madvise(f->map, MOST, MADV_DONTNEED);
	load(w, f, f->map, off, n, "load");
}

// op_private: stores to a private mapping are not the file's.
static void op_private(worker *w, file *f)
{
	long off, n;
	if (!inside(w, f, &off, &n) || (opt.full && strcmp(opt.type, "tmpfs") == 0))
		return;
	struct logged *l = begin(w, f, "private", off, n, 0);
	unsigned char *p = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE, f->fd, 0);
	if (p == MAP_FAILED)
		wrong(w, "mmap");
	memset(p + off, 0xee, (size_t)n);
	load(w, f, p, 0, off, "private mapping before the store");
	load(w, f, p, off + n, f->m->size - off - n, "private mapping behind the store");
	for (long i = 0; i < n; i++)
		if (p[off + i] != 0xee)
			wrong(w, "a private store at %ld was lost", off + i);
	load(w, f, f->map, off, n, "file under a private store");
	munmap(p, MOST);
	end(l, n);
}

// adopt takes over what a refused fallocate did of its range: zeros and size.
static void adopt(worker *w, file *f, long off, long n, int keep, int zeros)
{
	struct stat st;
	long most = keep || off + n < f->m->size ? f->m->size : off + n;
	if (fstat(f->fd, &st) < 0 || st.st_size < f->m->size || st.st_size > most)
		wrong(w, "after a refused fallocate the size is %ld", (long)st.st_size);
	f->m->size = st.st_size;
	long k = pread(f->fd, w->b, (size_t)n, off);
	for (long i = 0; zeros && i < k; i++)
		if (w->b[i] == 0)
			f->m->data[off + i] = 0;
}

// op_self: the kernel copies from or to memory that is a mapping of a file, of the same
// one perhaps.
static void op_self(worker *w, file *f)
{
	file *from = &w->own[rnd(w, FILES)];
	long off, n, at, got;
	int reading = (int)rnd(w, 2), direct = rnd(w, 3) == 0 && f->direct >= 0 && from->direct >= 0;
	range(w, &off, &n, MOST);
	at = (long)rnd(w, (unsigned long)from->m->size + 1);
	if (direct)
		off = off / SECTOR * SECTOR, at = at / SECTOR * SECTOR, n = n / SECTOR * SECTOR;
	if (n == 0 || at + n > from->m->size || (reading && off + n > f->m->size) || (from == f && off < at + n && at < off + n))
		return;
	memcpy(w->a, from->m->data + at, (size_t)n);
	note(w, f, NOTE_COPY, off, n, 0, from, at);
	struct logged *l = begin(w, f, (const char *[]){"write from a mapping", "read to a mapping", "direct write from a mapping",
		"direct read to a mapping"}[reading + 2 * direct], off, n, at);
	if (reading)
		got = pread(direct ? from->direct : from->fd, f->map + off, (size_t)n, at);
	else
		got = pwrite(direct ? f->direct : f->fd, from->map + at, (size_t)n, off);
	end(l, got);
	if (got < 0 && opt.full && errno == EFAULT) { // no page for it
		errno = ENOSPC;
		if (opt.lenient) // Linux's tmpfs grows nevertheless
			adopt(w, f, off, n, reading, 0);
	}
	if (direct && !reading && got < 0 && opt.lenient) { // Linux does not tell how much it wrote
		long k = pread(f->fd, w->a, (size_t)n, off);
		memcpy(f->m->data + off, w->a, k > 0 ? (size_t)k : 0);
		errno = ENOSPC;
	}
	put(f, off, w->a, accepted(w, got, n, l->what));
}

static void op_truncate(worker *w, file *f)
{
	long to = (long)rnd(w, MOST), size = f->m->size;
	if (rnd(w, 3))
		to = size / 2 + (long)rnd(w, (unsigned long)size + 1);
	if (rnd(w, 4) == 0)
		to = to / PAGE * PAGE;
	if (to > MOST)
		to = MOST;
	note(w, f, NOTE_SIZE, 0, to, 0, NULL, 0);
	struct logged *l = begin(w, f, "truncate", to, 0, 0);
	long got = rnd(w, 3) || f->anonymous ? ftruncate(f->fd, to) : truncate(f->m->name, to);
	end(l, got);
	if (got < 0)
		return (void)accepted(w, got, 0, "truncate");
	if (to < size)
		zero(f, to, size - to);
	f->m->size = to;
}

static void op_fallocate(worker *w, file *f)
{
	static const struct { int mode; const char *name; } modes[] = {
		{0, "fallocate"}, {FALLOC_FL_KEEP_SIZE, "fallocate keep"},
		{FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch"}, {FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch"},
		{FALLOC_FL_ZERO_RANGE, "zero"}, {FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "zero keep"},
		{FALLOC_FL_COLLAPSE_RANGE, "collapse"}, {FALLOC_FL_INSERT_RANGE, "insert"},
	};
	if (opt.without && strstr(opt.without, "fallocate"))
		return;
	int i = (int)rnd(w, 8), mode = modes[i].mode, keep = mode & FALLOC_FL_KEEP_SIZE;
	int zeros = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
	int shift = mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
	long off, n, size = f->m->size;
	range(w, &off, &n, MOST);
	if (shift) {
		off = off / PAGE * PAGE, n = (n + PAGE - 1) / PAGE * PAGE;
		if (opt.notes || off >= size || (i == 6 ? off + n >= size : size + n > MOST))
			return;
	} else if (zeros)
		note(w, f, NOTE_ZERO, off, n, 0, NULL, !keep);
	else if (!keep && off + n > size)
		note(w, f, NOTE_SIZE, 0, off + n, 0, NULL, 0);
	struct logged *l = begin(w, f, modes[i].name, off, n, 0);
	long got = fallocate(f->fd, mode, off, n);
	end(l, got);
	if (got < 0 && errno == EOPNOTSUPP && mode != 0 && mode != FALLOC_FL_KEEP_SIZE && !(mode & FALLOC_FL_PUNCH_HOLE))
		return; // not here
	if (got < 0) {
		accepted(w, got, 0, l->what);
		if (!shift)
			adopt(w, f, off, n, keep, zeros);
		return;
	}
	unsigned char *d = f->m->data;
	if (i == 6) {
		memmove(d + off, d + off + n, (size_t)(size - off - n));
		zero(f, size - n, n);
		f->m->size = size - n;
	} else if (i == 7) {
		memmove(d + off + n, d + off, (size_t)(size - off));
		zero(f, off, n);
		f->m->size = size + n;
	} else if (zeros)
		zero(f, off, n);
	if (!keep && !shift)
		grow(f, off + n);
}

static int all_zero(const unsigned char *p, long n)
{
	return n <= 0 || (p[0] == 0 && memcmp(p, p + 1, (size_t)n - 1) == 0);
}

// op_seek: what is between two pieces of data is a hole, and holes are zeros.
static void op_seek(worker *w, file *f)
{
	long off = (long)rnd(w, (unsigned long)f->m->size + 1), size = f->m->size;
	struct logged *l = begin(w, f, "seek", off, 0, 0);
	for (int i = 0; i < 6; i++) {
		long data = lseek(f->fd, off, SEEK_DATA);
		end(l, data);
		if (data < 0) {
			if (errno != ENXIO || !all_zero(f->m->data + off, size - off))
				wrong(w, "SEEK_DATA at %ld", off);
			return;
		}
		if (data < off || data >= size || !all_zero(f->m->data + off, data - off))
			wrong(w, "SEEK_DATA at %ld: %ld", off, data);
		long hole = lseek(f->fd, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			wrong(w, "SEEK_HOLE at %ld: %ld", data, hole);
		off = hole;
		if (off == size)
			return;
	}
}

// op_copy copies from one file of the worker to another, or within one, by one of
// three calls.
static void op_copy(worker *w, file *f)
{
	file *from = rnd(w, 3) ? &w->own[rnd(w, FILES)] : f;
	long off, n, at = (long)rnd(w, (unsigned long)from->m->size + 1);
	range(w, &off, &n, MOST);
	if (opt.notes && n > 32768)
		n = 32768; // as much as each call does at once
	if (rnd(w, 3) == 0)
		at = at / PAGE * PAGE;
	long had = from->m->size - at, got, want = n < had ? n : had;
	int how = (int)rnd(w, 3);
	if (how == 1 && from == f && (n = want) == 0) // sendfile would read what it has just appended
		return;
	// Linux cuts the length to the old size first, then looks for an overlap.
	long span = how ? n : want;
	if (from == f && span > 0 && off < at + span && at < off + span) {
		if (how)
			return;
		off_t a = at, b = off;
		end(begin(w, f, "copy overlap", off, n, at), got = copy_file_range(f->fd, &a, f->fd, &b, (size_t)n, 0));
		if (got != -1 || errno != EINVAL)
			wrong(w, "copy_file_range over itself: %ld", got);
		return;
	}
	memcpy(w->a, from->m->data + at, (size_t)want);
	note(w, f, NOTE_COPY, off, want, 0, from, at);
	struct logged *l = begin(w, f, (const char *[]){"copy", "sendfile", "splice"}[how], off, n, at);
	if (how == 0) {
		off_t a = at, b = off;
		got = copy_file_range(from->fd, &a, f->fd, &b, (size_t)n, 0);
		if (got > 0 && (a != at + got || b != off + got))
			wrong(w, "copy_file_range of %ld: the positions are %ld and %ld", got, (long)a, (long)b);
	} else if (how == 1) {
		off_t a = at;
		lseek(f->fd, off, SEEK_SET);
		got = sendfile(f->fd, from->fd, &a, (size_t)n);
		if (got > 0 && a != at + got)
			wrong(w, "sendfile of %ld: the position is %ld", got, (long)a);
	} else {
		off_t a = at, b = off;
		got = splice(from->fd, &a, w->pipe[1], NULL, (size_t)n, 0);
		if (got > want || (got <= 0 && want > 0))
			wrong(w, "splice to a pipe: %ld of %ld", got, want);
		want = got;
		for (long left = got; left > 0;) {
			long k = splice(w->pipe[0], NULL, f->fd, &b, (size_t)left, 0);
			if (k <= 0 && opt.full && errno == ENOSPC) { // what could not be written stays in the pipe
				got = b - off > 0 ? b - off : -1;
				while (left > 0 && (k = read(w->pipe[0], w->b, (size_t)left)) > 0)
					left -= k;
				errno = ENOSPC;
				break;
			}
			if (k <= 0)
				wrong(w, "splice from a pipe: %ld of %ld", k, left);
			left -= k;
		}
	}
	end(l, got);
	if (got > 0 && got < want && !opt.full && !opt.notes)
		want = got; // both may do less than was asked for
	put(f, off, w->a, accepted(w, got, want, l->what));
}

static void op_sync(worker *w, file *f)
{
	int how = (int)rnd(w, 6);
	static const char *names[] = {"fsync", "fdatasync", "msync", "sync_file_range", "syncfs", "O_SYNC"};
	struct logged *l = begin(w, f, names[how], 0, 0, 0);
	long got = 0;
	if (how < 2)
		note(w, f, NOTE_SYNC, 0, 0, 0, NULL, 0);
	switch (how) {
	case 0: got = fsync(f->fd); break;
	case 1: got = fdatasync(f->fd); break;
	case 2: got = msync(f->map, MOST, MS_SYNC); break;
	case 3: got = sync_file_range(f->fd, (long)rnd(w, MOST), 100000, 7); break;
	case 4: got = rnd(w, 8) ? 0 : syncfs(f->fd); break;
	}
	end(l, got);
	if (got < 0)
		wrong(w, "%s", l->what);
	if (how < 2)
		note(w, f, NOTE_SYNCED, 0, 0, 0, NULL, 0);
}

static void op_cache(worker *w, file *f)
{
	long off, n;
	range(w, &off, &n, MOST);
	end(begin(w, f, "drop", off, n, 0), 0);
	if (rnd(w, 20) == 0)
		drop_caches();
	else
		posix_fadvise(f->fd, off, rnd(w, 2) ? 0 : n, rnd(w, 3) ? POSIX_FADV_DONTNEED : POSIX_FADV_WILLNEED);
}

// op_name renames, links, opens again; or removes the file and goes on with it open.
static void op_name(worker *w, file *f)
{
	model *m = f->m;
	char other[40];
	snprintf(other, sizeof other, "%s'", m->name);
	int how = (int)rnd(w, 8);
	if (f->anonymous || how < 3) {
		begin(w, f, "reopen", 0, 0, 0);
		close_file(f);
		if (f->anonymous || (rnd(w, 3) == 0 && !opt.notes)) { // a new file
			m->size = 0;
			memset(m->data, 0, MOST);
			open_file(w, f, f->anonymous ? O_CREAT | O_EXCL : O_TRUNC);
		} else
			open_file(w, f, 0);
		return;
	}
	if (how == 3 && !opt.notes) {
		begin(w, f, "unlink", 0, 0, 0);
		if (unlink(m->name) < 0)
			wrong(w, "unlink");
		f->anonymous = 1;
		return;
	}
	note(w, f, NOTE_RENAME, 0, 0, 0, NULL, 0);
	struct logged *l = begin(w, f, how < 6 ? "rename" : "link and unlink", 0, 0, 0);
	long got = how < 6 ? rename(m->name, other) : link(m->name, other);
	end(l, got);
	if (got == 0 && how >= 6)
		got = unlink(m->name);
	if (got == 0)
		got = rename(other, m->name);
	if (got < 0)
		accepted(w, got, 0, l->what);
}

static const struct {
	const char *name;
	void (*run)(worker *, file *);
	int odds;
} ops[] = {
	{"write", op_write, 14}, {"append", op_append, 4}, {"direct", op_direct_write, 7}, {"read", op_read, 16},
	{"store", op_store, 9}, {"load", op_load, 9}, {"private", op_private, 2}, {"truncate", op_truncate, 8},
	{"fallocate", op_fallocate, 14}, {"seek", op_seek, 5}, {"copy", op_copy, 10}, {"sync", op_sync, 5},
	{"cache", op_cache, 4}, {"name", op_name, 3}, {"self", op_self, 5},
};

void step(worker *w, file *f)
{
	int n = 0, i;
	for (i = 0; i < (int)(sizeof ops / sizeof *ops); i++)
		n += ops[i].odds;
	n = (int)rnd(w, (unsigned long)n);
	for (i = 0; n >= ops[i].odds; i++)
		n -= ops[i].odds;
	w->at = f;
	if (!opt.without || !strstr(opt.without, ops[i].name))
		ops[i].run(w, f);
	struct stat st;
	w->at = f;
	if (fstat(f->fd, &st) < 0 || st.st_size != f->m->size)
		wrong(w, "the size is %ld", (long)st.st_size);
}

// step_region changes the worker's own region of a file that all have in common, whose
// size stays.
void step_region(worker *w, file *f)
{
	long base = (long)w->number * REGION, off, n, got = 0;
	if (base + REGION > MOST)
		return;
	range(w, &off, &n, REGION);
	off += base;
	struct logged scratch, *l = &scratch; // the model's log is not this worker's alone
	w->at = f;
	switch (rnd(w, 6)) {
	case 0:
		fill(w->a, off, n, (unsigned)rnd(w, 1 << 30));
		got = accepted(w, pwrite(f->fd, w->a, (size_t)n, off), n, "pwrite to a region");
		memcpy(f->m->data + off, w->a, (size_t)got);
		break;
	case 1:
		fill(w->a, off, n, (unsigned)rnd(w, 1 << 30));
		struct store s = {f->map + off, w->a, 0, off, n};
		if (guarded(run_store, &s) && !opt.full)
			wrong(w, "SIGBUS in a region");
		memcpy(f->m->data + off, w->a, (size_t)s.done);
		break;
	case 2:
		off = off / SECTOR * SECTOR, n = n / SECTOR * SECTOR;
		if (f->direct < 0 || n == 0 || opt.lenient)
			break;
		fill(w->a, off, n, (unsigned)rnd(w, 1 << 30));
		got = accepted(w, pwrite(f->direct, w->a, (size_t)n, off), n, "direct write to a region");
		memcpy(f->m->data + off, w->a, (size_t)got);
		break;
	case 3:
		if (opt.without && strstr(opt.without, "fallocate"))
			break;
		if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n) == 0)
			memset(f->m->data + off, 0, (size_t)n);
		else
			accepted(w, -1, 0, "punch in a region");
		break;
	case 4:
		off = off / SECTOR * SECTOR, n = n / SECTOR * SECTOR;
		if (n > 0 && pread(f->direct < 0 ? f->fd : f->direct, w->a, (size_t)n, off) != n)
			wrong(w, "direct read of a region");
		compare(w, f, w->a, off, n, "direct read of a region");
		break;
	case 5:
		if (rnd(w, 4) == 0 && fsync(f->fd) < 0)
			wrong(w, "fsync");
	}
	end(l, got);
	if (pread(f->fd, w->a, REGION, base) != REGION)
		wrong(w, "pread of a region");
	compare(w, f, w->a, base, REGION, "pread of a region");
	if (rnd(w, 4) == 0)
		load(w, f, f->map, base, REGION, "load of a region");
}

// step_locked does any operation that does not open the file again, under a lock.
void step_locked(worker *w, file *f)
{
	static void (*const run[])(worker *, file *) = {op_write, op_append, op_direct_write, op_read, op_store, op_load,
		op_truncate, op_fallocate, op_seek, op_sync, op_private};
	if (flock(f->fd, LOCK_EX) < 0)
		wrong(w, "flock");
	for (int i = 0; i < 3; i++)
		run[rnd(w, sizeof run / sizeof *run)](w, f);
	struct stat st;
	w->at = f;
	if (fstat(f->fd, &st) < 0 || st.st_size != f->m->size)
		wrong(w, "the size is %ld", (long)st.st_size);
	flock(f->fd, LOCK_UN);
}
