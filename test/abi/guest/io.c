// Calls that read, write and move in a file.
#include "files.h"
#include <linux/falloc.h>

static int is_random(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && (st.st_rdev == 0x108 || st.st_rdev == 0x109);
}

// varies says that what is read differs from one machine or run to another.
int varies(subject *s)
{
	char link[64], name[128] = "";
	int e = errno;
	snprintf(link, sizeof link, "/proc/self/fd/%d", s->fd);
	if (readlink(link, name, sizeof name - 1) < 0)
		name[0] = 0;
	errno = e;
	return is_random(s->fd) || !strcmp(name, "/dev/kmsg") || !strcmp(name, "/dev/vda") || !strcmp(name, "/abi") ||
	       !strcmp(name, "/bench/init") || strstr(name, "/status") || strstr(name, "/maps") || strstr(name, "/mounts") ||
	       strstr(name, "/version") || strstr(name, "/threads-max") || strstr(name, "/environ") || strstr(name, "/online");
}

static void got(subject *s, long n, const void *p)
{
	int vary = varies(s);
	if (vary && n > 64) {
		note("many");
		return;
	}
	result(n);
	if (!vary)
		note_bytes(p, n);
}

#define FAR 0x7fffffffffffffff

void call_read(subject *s)
{
	CASE("16") got(s, S(read, s->fd, P(buffer), 16), buffer);
	CASE("8") got(s, S(read, s->fd, P(buffer), 8), buffer);
	CASE("4096") got(s, S(read, s->fd, P(buffer), 4096), buffer);
	CASE("7") got(s, S(read, s->fd, P(buffer), 7), buffer);
	CASE("1") got(s, S(read, s->fd, P(buffer), 1), buffer);
	CASE("0") result(S(read, s->fd, P(buffer), 0));
	CASE("0bad") result(S(read, s->fd, P(bad), 0));
	CASE("bad") result(S(read, s->fd, P(bad), 16));
	CASE("null") result(S(read, s->fd, 0, 16));
	CASE("kernel") result(S(read, s->fd, -4096, 16));
	CASE("edge") result(S(read, s->fd, P(bad - 4), 4096) >= 0 ? 0 : -1);
	CASE("huge") result(S(read, s->fd, P(bad), 1L << 40));
	CASE("negative") result(S(read, s->fd, P(buffer), -1));
	CASE("twice")
	{
		got(s, S(read, s->fd, P(buffer), 4096), buffer);
		got(s, S(read, s->fd, P(buffer), 4096), buffer);
	}
}

// seen tells what came out at the other end.
static void seen(subject *s)
{
	if (s->peer < 0)
		return;
	struct pollfd p = {s->peer, POLLIN, 0};
	poll(&p, 1, 20);
	long n = S(read, s->peer, P(buffer + 32768), 4096);
	if (n > 0)
		note("peer:%ld", n), note_bytes(buffer + 32768, n);
}

void call_write(subject *s)
{
	memcpy(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	CASE("16") result(S(write, s->fd, P(buffer), 16)), seen(s);
	CASE("8") *(uint64_t *)buffer = 3, result(S(write, s->fd, P(buffer), 8)), seen(s);
	CASE("8max") memset(buffer, 255, 8), result(S(write, s->fd, P(buffer), 8));
	CASE("7") result(S(write, s->fd, P(buffer), 7));
	CASE("1") result(S(write, s->fd, P(buffer), 1));
	CASE("0") result(S(write, s->fd, P(buffer), 0));
	CASE("0bad") result(S(write, s->fd, P(bad), 0));
	CASE("bad") result(S(write, s->fd, P(bad), 16));
	CASE("null") result(S(write, s->fd, 0, 16));
	CASE("kernel") result(S(write, s->fd, -4096, 16));
	CASE("huge") result(S(write, s->fd, P(bad), 1L << 40));
	CASE("negative") result(S(write, s->fd, P(buffer), -1));
	CASE("edge") result(S(write, s->fd, P(bad - 4), 4096));
}

void call_pread(subject *s)
{
	CASE("16at0") got(s, S(pread64, s->fd, P(buffer), 16, 0), buffer);
	CASE("16at30") got(s, S(pread64, s->fd, P(buffer), 16, 30), buffer);
	CASE("16at100000") got(s, S(pread64, s->fd, P(buffer), 16, 100000), buffer);
	CASE("0") result(S(pread64, s->fd, P(buffer), 0, 0));
	CASE("0at-1") result(S(pread64, s->fd, P(buffer), 0, -1));
	CASE("at-1") result(S(pread64, s->fd, P(buffer), 16, -1));
	CASE("atfar") result(S(pread64, s->fd, P(buffer), 16, FAR));
	CASE("atfar16") result(S(pread64, s->fd, P(buffer), 16, FAR - 16));
	CASE("bad") result(S(pread64, s->fd, P(bad), 16, 0));
	CASE("negative") result(S(pread64, s->fd, P(buffer), -1, 0));
	CASE("huge") result(S(pread64, s->fd, P(bad), 1L << 40, 0));
}

void call_pwrite(subject *s)
{
	memcpy(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	CASE("16at0") result(S(pwrite64, s->fd, P(buffer), 16, 0));
	CASE("16at30") result(S(pwrite64, s->fd, P(buffer), 16, 30));
	CASE("16at100000") result(S(pwrite64, s->fd, P(buffer), 16, 100000));
	CASE("0") result(S(pwrite64, s->fd, P(buffer), 0, 0));
	CASE("0at-1") result(S(pwrite64, s->fd, P(buffer), 0, -1));
	CASE("at-1") result(S(pwrite64, s->fd, P(buffer), 16, -1));
	CASE("atfar") result(S(pwrite64, s->fd, P(buffer), 16, FAR));
	CASE("atfar16") result(S(pwrite64, s->fd, P(buffer), 16, FAR - 16));
	CASE("bad") result(S(pwrite64, s->fd, P(bad), 16, 0));
	CASE("negative") result(S(pwrite64, s->fd, P(buffer), -1, 0));
	CASE("huge") result(S(pwrite64, s->fd, P(bad), 1L << 40, 0));
}

static struct iovec two[2];

static long vector(long a, long b)
{
	two[0] = (struct iovec){buffer, a}, two[1] = (struct iovec){buffer + 64, b};
	return P(two);
}

void call_readv(subject *s)
{
	static struct iovec many[1025];
	CASE("4+8") got(s, S(readv, s->fd, vector(4, 8), 2), buffer);
	CASE("8+8") result(S(readv, s->fd, vector(8, 8), 2) >= 0 ? 0 : -1);
	CASE("0+0") result(S(readv, s->fd, vector(0, 0), 2));
	CASE("none") result(S(readv, s->fd, vector(4, 4), 0));
	CASE("count-1") result(S(readv, s->fd, vector(4, 4), -1));
	CASE("1025") result(S(readv, s->fd, P(many), 1025));
	CASE("1024") result(S(readv, s->fd, P(many), 1024));
	CASE("badvector") result(S(readv, s->fd, P(bad), 2));
	CASE("badbase") two[0] = (struct iovec){bad, 8}, two[1] = (struct iovec){buffer, 8}, result(S(readv, s->fd, P(two), 2));
	CASE("badsecond") two[0] = (struct iovec){buffer, 8}, two[1] = (struct iovec){bad, 8}, got(s, S(readv, s->fd, P(two), 2), buffer);
	CASE("negative") result(S(readv, s->fd, vector(-1, 8), 2));
	CASE("sum") result(S(readv, s->fd, vector(0x7fffffffffffffff, 8), 2));
}

void call_writev(subject *s)
{
	static struct iovec many[1025];
	memcpy(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	CASE("4+8") result(S(writev, s->fd, vector(4, 8), 2)), seen(s);
	CASE("0+0") result(S(writev, s->fd, vector(0, 0), 2));
	CASE("none") result(S(writev, s->fd, vector(4, 4), 0));
	CASE("count-1") result(S(writev, s->fd, vector(4, 4), -1));
	CASE("1025") result(S(writev, s->fd, P(many), 1025));
	CASE("1024") result(S(writev, s->fd, P(many), 1024));
	CASE("badvector") result(S(writev, s->fd, P(bad), 2));
	CASE("badbase") two[0] = (struct iovec){bad, 8}, two[1] = (struct iovec){buffer, 8}, result(S(writev, s->fd, P(two), 2));
	CASE("badsecond") two[0] = (struct iovec){buffer, 8}, two[1] = (struct iovec){bad, 8}, result(S(writev, s->fd, P(two), 2)), seen(s);
	CASE("negative") result(S(writev, s->fd, vector(-1, 8), 2));
	CASE("sum") result(S(writev, s->fd, vector(0x7fffffffffffffff, 8), 2));
}

void call_preadv2(subject *s)
{
	CASE("preadv@0") got(s, S(preadv, s->fd, vector(4, 8), 2, 0, 0), buffer);
	CASE("preadv@-1") result(S(preadv, s->fd, vector(4, 8), 2, -1, -1));
	CASE("at0") got(s, S(preadv2, s->fd, vector(4, 8), 2, 0, 0, 0), buffer);
	CASE("here") got(s, S(preadv2, s->fd, vector(4, 8), 2, -1, -1, 0), buffer);
	CASE("at-2") result(S(preadv2, s->fd, vector(4, 8), 2, -2, -1, 0));
	CASE("none") result(S(preadv2, s->fd, vector(4, 8), 0, 0, 0, 0));
	EACH(bit, 0, 31, "here-flag") got(s, S(preadv2, s->fd, vector(4, 8), 2, -1, -1, 1L << bit), buffer);
	EACH(bit, 0, 31, "at0-flag") got(s, S(preadv2, s->fd, vector(4, 8), 2, 0, 0, 1L << bit), buffer);
}

void call_pwritev2(subject *s)
{
	memcpy(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	CASE("pwritev@0") result(S(pwritev, s->fd, vector(4, 8), 2, 0, 0));
	CASE("pwritev@-1") result(S(pwritev, s->fd, vector(4, 8), 2, -1, -1));
	CASE("at0") result(S(pwritev2, s->fd, vector(4, 8), 2, 0, 0, 0));
	CASE("here") result(S(pwritev2, s->fd, vector(4, 8), 2, -1, -1, 0));
	CASE("at-2") result(S(pwritev2, s->fd, vector(4, 8), 2, -2, -1, 0));
	CASE("none") result(S(pwritev2, s->fd, vector(4, 8), 0, 0, 0, 0));
	EACH(bit, 0, 31, "here-flag") result(S(pwritev2, s->fd, vector(4, 8), 2, -1, -1, 1L << bit));
	EACH(bit, 0, 31, "at0-flag") result(S(pwritev2, s->fd, vector(4, 8), 2, 0, 0, 1L << bit));
}

void call_lseek(subject *s)
{
	static const long offsets[] = {0, 5, -5, -100, 4096, FAR, FAR - 10, -FAR - 1, 1L << 32};
	static const char *const names[] = {"set", "cur", "end", "data", "hole"};
	for (int whence = -1; whence < 7; whence++) {
		const char *name = whence >= 0 && whence < 5 ? names[whence] : "whence";
		for (unsigned i = 0; i < (name[0] == 'w' ? 1 : sizeof offsets / sizeof *offsets); i++) {
			if (i == 0 && !want("%s%d@%ld", name, whence, offsets[i]))
				break;
			if (i > 0)
				another("%s%d@%ld", name, whence, offsets[i]);
			S(lseek, s->fd, 10, SEEK_SET);
			long at = S(lseek, s->fd, offsets[i], whence);
			if (whence == SEEK_END && at > 0 && varies(s))
				note("some");
			else
				result(at);
		}
	}
}

void call_getdents(subject *s)
{
	CASE("4096") result(S(getdents64, s->fd, P(buffer), 4096) > 0 ? 1 : S(getdents64, s->fd, P(buffer), 4096));
	CASE("old") result(S(getdents, s->fd, P(buffer), 4096) > 0 ? 1 : S(getdents, s->fd, P(buffer), 4096));
	CASE("0") result(S(getdents64, s->fd, P(buffer), 0));
	CASE("23") result(S(getdents64, s->fd, P(buffer), 23));
	CASE("24") result(S(getdents64, s->fd, P(buffer), 24) > 0 ? 1 : -1);
	CASE("bad") result(S(getdents64, s->fd, P(bad), 4096));
	CASE("edge") result(S(getdents64, s->fd, P(bad - 8), 4096) > 0 ? 1 : -1);
	CASE("negative") result(S(getdents64, s->fd, P(buffer), -1) > 0 ? 1 : -1);
	CASE("end")
	{
		while (S(getdents64, s->fd, P(buffer), 32768) > 0)
			;
		result(S(getdents64, s->fd, P(buffer), 4096));
		result(S(getdents64, s->fd, P(buffer), 0));
	}
}

void call_ftruncate(subject *s)
{
	static const long sizes[] = {0, 5, 36, 5000, -1, -FAR - 1, FAR, 1L << 44};
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		CASE("%ld", sizes[i]) result(S(ftruncate, s->fd, sizes[i]));
}

void call_fallocate(subject *s)
{
	static const int valid[] = {0, 1, 3, 8, 16, 17, 32, 64, 65, 73};
	for (unsigned i = 0; i < sizeof valid / sizeof *valid; i++)
		CASE("mode%d", valid[i]) result(S(fallocate, s->fd, valid[i], 0, 4096));
	EACH(mode, 0, 70, "modes") result(S(fallocate, s->fd, mode, 0, 4096));
	static const int modes[] = {0, 1, 3, 8, 16, 17, 32};
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		int m = modes[i];
		CASE("mode%d-at4096", m) result(S(fallocate, s->fd, m, 4096, 4096));
		CASE("mode%d-odd", m) result(S(fallocate, s->fd, m, 5, 10));
		CASE("mode%d-nothing", m) result(S(fallocate, s->fd, m, 0, 0));
		CASE("mode%d-length-1", m) result(S(fallocate, s->fd, m, 0, -1));
		CASE("mode%d-at-1", m) result(S(fallocate, s->fd, m, -1, 4096));
		CASE("mode%d-far", m) result(S(fallocate, s->fd, m, FAR, 4096));
		CASE("mode%d-over", m) result(S(fallocate, s->fd, m, FAR - 4095, 4096));
	}
}

void call_sync(subject *s)
{
	CASE("fsync") result(S(fsync, s->fd));
	CASE("fdatasync") result(S(fdatasync, s->fd));
	CASE("syncfs") result(S(syncfs, s->fd));
	CASE("range") result(S(sync_file_range, s->fd, 0, 0, 0));
	CASE("range-at-1") result(S(sync_file_range, s->fd, -1, 0, 0));
	CASE("range-length-1") result(S(sync_file_range, s->fd, 0, -1, 0));
	CASE("range-far") result(S(sync_file_range, s->fd, FAR, FAR, 7));
	EACH(bit, 0, 31, "range-flag") result(S(sync_file_range, s->fd, 0, 4096, 1L << bit));
}

void call_readahead(subject *s)
{
	CASE("0") result(S(readahead, s->fd, 0, 4096));
	CASE("nothing") result(S(readahead, s->fd, 0, 0));
	CASE("at-1") result(S(readahead, s->fd, -1, 4096));
	CASE("huge") result(S(readahead, s->fd, 0, FAR));
}

void call_fadvise(subject *s)
{
	for (int advice = -1; advice < 9; advice++)
		CASE("%d", advice) result(S(fadvise64, s->fd, 0, 4096, advice));
	CASE("length-1") result(S(fadvise64, s->fd, 0, -1, 0));
	CASE("at-1") result(S(fadvise64, s->fd, -1, 4096, 0));
	CASE("willneed0") result(S(fadvise64, s->fd, 0, 0, 3));
}
