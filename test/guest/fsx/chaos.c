// All workers change one file at once, and nobody knows what it holds. The kernel must
// stay alive, no call may hang or fail for a strange reason, and e2fsck must find nothing.
#include "fsx.h"

static void touch(void *arg)
{
	memset(arg, 0x55, 100);
}

void step_chaos(worker *w, file *f)
{
	long off = (long)rnd(w, MOST), n = 1 + (long)rnd(w, 40000), got = 0;
	if (rnd(w, 2))
		off = off / PAGE * PAGE;
	if (n > MOST - off)
		n = MOST - off;
	long sector = off / SECTOR * SECTOR, whole = (n + SECTOR - 1) / SECTOR * SECTOR;
	w->at = f;
	off_t from = (long)rnd(w, MOST), to = off;
	switch (rnd(w, 15)) {
	case 0: got = pwrite(f->fd, w->a, (size_t)n, off); break;
	case 1: got = pread(f->fd, w->a, (size_t)n, off); break;
	case 2: got = f->direct < 0 ? 0 : pwrite(f->direct, w->a, (size_t)whole, sector); break;
	case 3: got = f->direct < 0 ? 0 : pread(f->direct, w->a, (size_t)whole, sector); break;
	case 4: got = ftruncate(f->fd, off); break;
	case 5: got = write(f->append, w->a, 700), got = ftruncate(f->fd, MOST); break;
	case 6: got = fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, n); break;
	case 7: got = fallocate(f->fd, FALLOC_FL_ZERO_RANGE, off, n); break;
	case 8: got = fallocate(f->fd, rnd(w, 2) ? FALLOC_FL_KEEP_SIZE : 0, off, n); break;
	case 9: case 10: guarded(touch, f->map + (off < MOST - 100 ? off : 0)); break;
	case 11: got = copy_file_range(f->fd, &from, f->fd, &to, (size_t)n / 4, 0); break;
	case 12: got = madvise(f->map + off / PAGE * PAGE, PAGE, rnd(w, 2) ? MADV_REMOVE : MADV_DONTNEED); break;
	case 13: got = rnd(w, 4) ? 0 : fsync(f->fd); break;
	case 14: got = pwrite(f->fd, f->map + off, (size_t)n, (off + MOST / 2) % MOST); break;
	}
	if (got < 0 && errno != ENOSPC && errno != EOPNOTSUPP && errno != EINVAL && errno != EFAULT && !(opt.lenient && errno == EIO))
		wrong(w, "a call on the file of all");
	struct stat st;
	if (fstat(f->fd, &st) < 0 || st.st_size > 2 * MOST)
		wrong(w, "the file of all has %ld bytes", (long)st.st_size);
}
