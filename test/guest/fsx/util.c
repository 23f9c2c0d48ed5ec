#include "fsx.h"

unsigned long rnd(worker *w, unsigned long n)
{
	w->rng ^= w->rng << 13, w->rng ^= w->rng >> 7, w->rng ^= w->rng << 17;
	return (w->rng >> 11) % n;
}

void die(const char *format, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, format);
	int n = snprintf(line, sizeof line, "fsx: seed %lu: ", (unsigned long)opt.seed);
	n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
	line[n < (int)sizeof line - 1 ? n : (int)sizeof line - 2] = 0;
	dprintf(1, "%s\n", line);
	if (shared)
		shared->failed = 1;
	_exit(1);
}

// wrong reports a difference, with the last operations on the file, once.
void wrong(worker *w, const char *format, ...)
{
	int error = errno;
	if (atomic_exchange(&shared->failed, 1) == 1)
		_exit(1);
	char what[256];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	model *m = w->at->m;
	dprintf(1, "fsx: seed %lu: worker %d: %s, operation %u: %s (%s; size %ld)\n", (unsigned long)opt.seed, w->number,
		m->name, m->number, what, strerrorname_np(error), m->size);
	for (unsigned i = m->number > LOGGED ? m->number - LOGGED + 1 : 1; i <= m->number; i++) {
		struct logged *l = &m->log[i % LOGGED];
		dprintf(1, "    %u %s off %ld n %ld from %ld, size %ld: %ld %s\n", l->number, l->what, l->off, l->n, l->from,
			l->size, l->result, l->error ? strerrorname_np(l->error) : "");
	}
	_exit(1);
}

// fill makes bytes that tell the operation and the place, and are never zero.
void fill(unsigned char *p, long off, long n, unsigned tag)
{
	unsigned base = tag * 2654435761u >> 16;
	for (long i = 0; i < n; i++) {
		unsigned char x = (unsigned char)(base + (unsigned)(off + i) * 13 + (unsigned)((off + i) >> 9) * 7);
		p[i] = x ? x : 1;
	}
}

void compare(worker *w, file *f, const unsigned char *got, long off, long n, const char *what)
{
	w->at = f;
	if (memcmp(got, f->m->data + off, (size_t)n) == 0)
		return;
	long i = 0, bad = 0;
	while (got[i] == f->m->data[off + i])
		i++;
	for (long k = i; k < n; k++)
		bad += got[k] != f->m->data[off + k];
	errno = 0;
	wrong(w, "%s of %ld at %ld: byte %ld is %d and must be %d; %ld bytes differ", what, n, off, off + i, got[i],
	      f->m->data[off + i], bad);
}

long now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd >= 0) {
		if (write(fd, "3\n", 2) != 2)
			die("drop_caches: %s", strerrorname_np(errno));
		close(fd);
	}
}

static __thread sigjmp_buf out;
static __thread volatile int inside;

static void on_bus(int sig)
{
	if (inside)
		siglongjmp(out, 1);
	signal(sig, SIG_DFL);
}

int guarded(void (*run)(void *), void *arg)
{
	static atomic_int set;
	if (!atomic_exchange(&set, 1)) {
		struct sigaction sa = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};
		sigaction(SIGBUS, &sa, NULL);
	}
	if (sigsetjmp(out, 0)) {
		inside = 0;
		return 1;
	}
	inside = 1;
	run(arg);
	inside = 0;
	return 0;
}
