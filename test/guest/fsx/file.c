#include "fsx.h"

// open_file opens what the model names.
void open_file(worker *w, file *f, int flags)
{
	w->at = f;
	f->fd = open(f->m->name, O_RDWR | flags, 0644);
	if (f->fd < 0)
		wrong(w, "open");
	f->append = open(f->m->name, O_WRONLY | O_APPEND);
	errno = EINVAL;
	f->direct = opt.without && strstr(opt.without, "direct") ? -1 : open(f->m->name, O_RDWR | O_DIRECT);
	if (f->append < 0 || (f->direct < 0 && errno != EINVAL))
		wrong(w, "open with O_APPEND and O_DIRECT");
	f->map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED)
		wrong(w, "mmap");
	f->anonymous = 0;
}

void close_file(file *f)
{
	munmap(f->map, MOST);
	close(f->fd), close(f->append);
	if (f->direct >= 0)
		close(f->direct);
	f->fd = -1;
}

struct copying {
	unsigned char *to, *from;
	long n;
};

static void copy(void *arg)
{
	struct copying *c = arg;
	memcpy(c->to, c->from, (size_t)c->n);
}

// load compares what a mapping of the file has. A tmpfs needs memory for a hole that is
// loaded, and may have none.
void load(worker *w, file *f, const unsigned char *map, long off, long n, const char *what)
{
	w->at = f;
	for (long k; n > 0; off += k, n -= k) {
		struct copying c = {w->b, (unsigned char *)map + off, k = n < CHUNK ? n : CHUNK};
		if (!guarded(copy, &c))
			compare(w, f, w->b, off, k, what);
		else if (!opt.full || strcmp(opt.type, "tmpfs") != 0)
			wrong(w, "%s: SIGBUS between %ld and %ld", what, off, off + k);
	}
}

// check_file compares all of a file with its model.
void check_file(worker *w, file *f)
{
	w->at = f;
	struct stat st;
	if (fstat(f->fd, &st) < 0 || st.st_size != f->m->size)
		wrong(w, "the size is %ld", (long)st.st_size);
	for (long off = 0; off < f->m->size;) {
		long n = pread(f->fd, w->a, CHUNK, off);
		long want = f->m->size - off < CHUNK ? f->m->size - off : CHUNK;
		if (n != want)
			wrong(w, "check: pread at %ld: %ld, not %ld", off, n, want);
		compare(w, f, w->a, off, n, "check");
		off += n;
	}
	load(w, f, f->map, 0, f->m->size, "check of the mapping");
}
