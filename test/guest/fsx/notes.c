// Notes tell the host what begins and what has been synced, in a disk of their own, so
// that it knows what a disk must hold that loses its power.
#include "fsx.h"

static int notes = -1;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

struct record {
	char magic[8];
	uint32_t kind, file, from, tag;
	int64_t off, n, from_off;
};

void note(worker *w, file *f, int kind, long off, long n, unsigned tag, file *from, long from_off)
{
	if (!opt.notes)
		return;
	pthread_mutex_lock(&opening);
	if (notes < 0 && (notes = open(opt.notes, O_RDWR | O_DIRECT)) < 0)
		die("%s: %s", opt.notes, strerrorname_np(errno));
	pthread_mutex_unlock(&opening);
	static __thread unsigned char *block;
	if (!block && posix_memalign((void **)&block, PAGE, PAGE))
		die("memory");
	struct record r = {"fsx note", (uint32_t)kind, (uint32_t)(f->m - shared->files), from ? (uint32_t)(from->m - shared->files) : 0,
		tag, off, n, from_off};
	memset(block, 0, PAGE);
	memcpy(block, &r, sizeof r);
	// Not side by side: a kernel may make one request of two that are.
	if (pwrite(notes, block, PAGE, (2 * w->number + 1) * PAGE) != PAGE)
		die("a note: %s", strerrorname_np(errno));
}
