// peer is Linux's side of the tests in test/peer. One device holds COUNT disks,
// STRIDE bytes each; what is told of them goes to byte REPORT: 8 bytes of
// length, then text. On the console each command says "peer COMMAND ok".
//
//	peer list  DEVICE FIRST COUNT STRIDE REPORT       mounts each disk and lists it
//	peer write DEVICE FIRST COUNT STRIDE REPORT SEED  changes each at random, then lists it
//	peer dirty DEVICE FIRST COUNT STRIDE REPORT       writes and syncs until it is killed;
//	                                                  prints "synced DISK N" after each
//
// A list has a line for each file, as test/peer/list.go makes it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static void die(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	printf("peer: ");
	vprintf(format, ap);
	printf(": %s\n", strerror(errno));
	exit(1);
}

// What is told, in memory until the end.
static char *report;
static size_t report_len, report_cap;

static void tell(const char *format, ...)
{
	va_list ap;
	for (;;) {
		va_start(ap, format);
		int n = vsnprintf(report + report_len, report_cap - report_len, format, ap);
		va_end(ap);
		if ((size_t)n < report_cap - report_len) {
			report_len += n;
			return;
		}
		report_cap = report_cap * 2 + n + 65536;
		report = realloc(report, report_cap);
	}
}

static void tell_quoted(const char *s)
{
	for (; *s; s++)
		if (*s > ' ' && *s < 127 && *s != '%')
			tell("%c", *s);
		else
			tell("%%%02x", (unsigned char)*s);
}

// mix adds bytes to a hash, eight at a time; list.go has the same.
#define MIX_START 14695981039346656037u
static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	for (size_t at = 0; at < n; at += 8) {
		uint64_t w = 0;
		memcpy(&w, (const char *)p + at, n - at < 8 ? n - at : 8);
		h = (h ^ w) * 1099511628211u;
		h ^= h >> 32;
	}
	return h;
}

#define BLOCK 4096
static unsigned char block[BLOCK], zeros[BLOCK];

// content is a hash of a file's blocks that are not all zeros, and their numbers:
// the same wherever its holes are.
static uint64_t content(const char *path, off_t size)
{
	uint64_t h = MIX_START;
	int fd = open(path, O_RDONLY | O_NOATIME);
	if (fd < 0)
		die("open %s", path);
	for (off_t off = 0; off < size; off += BLOCK) {
		off_t data = lseek(fd, off, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			die("seek in %s", path);
		off = data / BLOCK * BLOCK;
		ssize_t n = pread(fd, block, BLOCK, off);
		if (n < 0)
			die("read %s", path);
		if (memcmp(block, zeros, n) == 0)
			continue;
		uint64_t number = off / BLOCK;
		h = mix(mix(h, &number, 8), block, n);
	}
	close(fd);
	return h;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void xattrs(const char *path)
{
	static char names[65536], value[65536];
	char *list[1024];
	int n = 0;
	ssize_t len = llistxattr(path, names, sizeof names);
	if (len < 0)
		die("xattrs of %s", path);
	for (char *p = names; p < names + len; p += strlen(p) + 1)
		list[n++] = p;
	qsort(list, n, sizeof *list, by_name);
	for (int i = 0; i < n; i++) {
		ssize_t size = lgetxattr(path, list[i], value, sizeof value);
		if (size < 0)
			die("%s of %s", list[i], path);
		tell(" ");
		tell_quoted(list[i]);
		tell("=%zd:%016llx", size, (unsigned long long)mix(MIX_START, value, size));
	}
}

// list tells of a file and of what is below it. path is where it is, name where
// it is on the disk.
static void list(int disk, const char *path, const char *name)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		die("stat %s", path);
	tell("%d %s", disk, *name ? "" : "/");
	tell_quoted(name);
	tell(" %06o %u:%u %u %lld %lld.%09ld %lld.%09ld", st.st_mode, st.st_uid, st.st_gid, (unsigned)st.st_nlink,
	     S_ISDIR(st.st_mode) ? 0 : (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
	     (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		tell(" %016llx", (unsigned long long)content(path, st.st_size));
		break;
	case S_IFLNK: {
		char target[4097];
		ssize_t n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			die("readlink %s", path);
		target[n] = 0;
		tell(" ");
		tell_quoted(target);
		break;
	}
	case S_IFCHR:
	case S_IFBLK:
		tell(" %u:%u", major(st.st_rdev), minor(st.st_rdev));
		break;
	default:
		tell(" -");
	}
	xattrs(path);
	tell("\n");
	if (!S_ISDIR(st.st_mode))
		return;
	DIR *d = opendir(path);
	if (!d)
		die("open %s", path);
	char **names = NULL;
	size_t n = 0, cap = 0;
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (n == cap)
			names = realloc(names, (cap = cap * 2 + 64) * sizeof *names);
		names[n++] = strdup(e->d_name);
	}
	if (errno)
		die("read %s", path);
	closedir(d);
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		char *p, *q;
		if (asprintf(&p, "%s/%s", path, names[i]) < 0 || asprintf(&q, "%s/%s", name, names[i]) < 0)
			die("memory");
		list(disk, p, q);
		free(p), free(q), free(names[i]);
	}
	free(names);
}

static uint64_t seed;

// rnd is a number below n.
static unsigned rnd(unsigned n)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (unsigned)(seed >> 11) % n;
}

static void fill(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		uint32_t w = rnd(1u << 30) * 4 + 1; // no block of zeros
		memcpy(p + i, &w, n - i < 4 ? n - i : 4);
	}
}

static unsigned char data[65536];

static void scribble(int fd, off_t where, size_t n)
{
	fill(data, n);
	if (pwrite(fd, data, n, where) != (ssize_t)n && errno != ENOSPC)
		die("write");
}

// An access control list as setxattr takes it.
static const unsigned char acl[] = {
	2, 0, 0, 0,
	0x01, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 4, 0, 0xe8, 3, 0, 0,
	0x04, 0, 4, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,
	0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};

// change does one random thing in the current directory. What cannot be done
// (a name that is there, a full disk) is left out.
static void change(int step)
{
	char name[300], other[300];
	snprintf(name, sizeof name, "d%u/f%u", rnd(8), rnd(60));
	snprintf(other, sizeof other, "d%u/%s%u", rnd(8), rnd(9) ? "f" : "a-much-longer-name-with-\xc3\xbc-in-it-", rnd(60));
	int fd;
	struct stat st;
	switch (rnd(20)) {
	case 0: case 1: case 2: case 3:
		fd = open(name, O_WRONLY | O_CREAT | (rnd(3) ? 0 : O_TRUNC) | O_NOFOLLOW | O_NONBLOCK, rnd(01000));
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
			scribble(fd, rnd(3) ? 0 : rnd(200000), 1 + rnd(30000));
			if (rnd(4) == 0)
				fsync(fd);
		}
		if (fd >= 0)
			close(fd);
		break;
	case 4:
		snprintf(name, sizeof name, "d%u/sub%u", rnd(8), rnd(5));
		mkdir(name, rnd(010000));
		break;
	case 5:
		memset(data, 'l', 300);
		data[rnd(2) ? 20 : 300] = 0;
		if (symlink((char *)data, name) < 0 && errno != EEXIST)
			die("symlink %s", name);
		break;
	case 6:
		link(name, other);
		break;
	case 7:
		if (rnd(2))
			mknod(name, S_IFCHR | rnd(01000), makedev(rnd(2) ? rnd(200) : rnd(4000), rnd(2) ? rnd(200) : rnd(1000000)));
		else
			mknod(name, (rnd(2) ? S_IFIFO : S_IFSOCK) | rnd(01000), 0);
		break;
	case 8: case 9:
		rename(name, other);
		break;
	case 10:
		unlink(name);
		break;
	case 11:
		truncate(name, rnd(3) ? rnd(100000) : (off_t)6 << 30);
		break;
	case 12: case 13:
		fd = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0) {
			static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE};
			fallocate(fd, modes[rnd(4)], rnd(100000), 1 + rnd(100000));
			close(fd);
		}
		break;
	case 14: case 15: {
		static const char *const names[] = {"user.a", "user.bcd", "trusted.x", "security.y", "user.a-longer-name-than-that"};
		fill(data, 1200);
		lsetxattr(name, names[rnd(5)], data, rnd(rnd(6) ? 40 : 1200), 0);
		break;
	}
	case 16:
		lsetxattr(name, "system.posix_acl_access", acl, sizeof acl, 0);
		snprintf(name, sizeof name, "d%u", rnd(8));
		lsetxattr(name, "system.posix_acl_default", acl, sizeof acl, 0);
		break;
	case 17: {
		struct timespec t[2] = {{rnd(2000000000), rnd(1000000000)}, {rnd(5) ? rnd(2000000000) : 5000000000, rnd(1000000000)}};
		utimensat(AT_FDCWD, name, t, AT_SYMLINK_NOFOLLOW);
		break;
	}
	case 18:
		lchown(name, rnd(70000), rnd(70000));
		chmod(name, rnd(010000));
		break;
	case 19: // a file in many pieces
		fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
		for (int i = 0; fd >= 0 && i < 40; i++)
			if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
				scribble(fd, (off_t)i * 3 * BLOCK + step, 100);
		if (fd >= 0)
			close(fd);
		break;
	}
}

static void write_disk(int disk)
{
	char name[100];
	if (chdir("/mnt") < 0)
		die("/mnt");
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "d%d", i);
		mkdir(name, 0755);
	}
	for (int i = 0; i < 400; i++)
		change(i);
	// A directory with an index, some of whose names go again.
	mkdir("names", 0755);
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "names/a-name-that-takes-some-room-%u", rnd(600));
		int fd = open(name, O_WRONLY | O_CREAT, 0644);
		if (fd >= 0)
			close(fd);
		if (rnd(3) == 0) {
			snprintf(name, sizeof name, "names/a-name-that-takes-some-room-%u", rnd(600));
			unlink(name);
		}
	}
	if (chdir("/") < 0)
		die("/");
}

// dirty writes small files in turn to all disks, and makes some durable.
static void dirty(int first, int count)
{
	char path[100];
	for (int n = 0;; n++) {
		int disk = first + n % count, k = n / count;
		snprintf(path, sizeof path, "/mnt%d/f%d", disk, k);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0)
			die("open %s", path);
		// File k of a disk: k words k*16+disk, so that the other side knows.
		uint32_t word = k * 16 + disk;
		for (int i = 0; i <= k; i++)
			memcpy(data + 4 * i, &word, 4);
		if (write(fd, data, 4 * (k + 1)) < 0)
			die("write %s", path);
		if (k % 7 == 3 && k > 10) { // names come and go
			snprintf(path, sizeof path, "/mnt%d/f%d", disk, k - 5);
			char to[100];
			snprintf(to, sizeof to, "/mnt%d/moved%d", disk, k - 5);
			rename(path, to);
		}
		if (k % 11 == 5) {
			snprintf(path, sizeof path, "/mnt%d/gone%d", disk, k);
			int g = open(path, O_WRONLY | O_CREAT, 0600);
			if (write(g, data, 4 * (k + 1)) < 0)
				die("write %s", path);
			unlink(path); // an orphan, while it is open
		}
		if (rnd(3) == 0) {
			if (fsync(fd) < 0)
				die("fsync");
			printf("synced %d %d\n", disk, k);
		}
		close(fd);
		if (k > 12000)
			die("nobody kills me");
	}
}

static void mount_disk(const char *device, int disk, const char *at)
{
	char dev[100];
	snprintf(dev, sizeof dev, "%s%d", device, disk + 1);
	for (int i = 0; access(dev, F_OK) < 0 && i < 500; i++)
		usleep(10000);
	mkdir(at, 0755);
	if (mount(dev, at, "ext4", MS_NOATIME, "acl,user_xattr") < 0)
		die("mount disk %d", disk);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc < 7)
		return 2;
	const char *command = argv[1], *device = argv[2];
	int first = atoi(argv[3]), count = atoi(argv[4]);
	long long stride = atoll(argv[5]);
	seed = argc > 7 ? strtoull(argv[7], NULL, 10) * 0x9e3779b97f4a7c15u | 1 : 88172645463325252u;

	int fd = -1;
	for (int i = 0; (fd = open(device, O_RDWR)) < 0 && i < 500; i++)
		usleep(10000);
	if (fd < 0)
		die("%s", device);
	int is_dirty = strcmp(command, "dirty") == 0, is_write = strcmp(command, "write") == 0;
	for (int disk = first; disk < first + count; disk++) {
		struct blkpg_partition p = {.start = disk * stride, .length = stride, .pno = disk + 1};
		struct blkpg_ioctl_arg a = {.op = BLKPG_ADD_PARTITION, .datalen = sizeof p, .data = &p};
		if (ioctl(fd, BLKPG, &a) < 0 && errno != EBUSY)
			die("partition %d", disk + 1);
		char at[100] = "/mnt";
		if (is_dirty)
			snprintf(at, sizeof at, "/mnt%d", disk);
		mount_disk(device, disk, at);
		if (is_dirty)
			continue;
		if (is_write)
			write_disk(disk);
		list(disk, "/mnt", "");
		if (umount("/mnt") < 0)
			die("umount");
	}
	if (is_dirty)
		dirty(first, count);
	uint64_t len = report_len;
	if (lseek(fd, atoll(argv[6]), SEEK_SET) < 0 || write(fd, &len, 8) != 8)
		die("report");
	for (size_t done = 0; done < report_len;) {
		ssize_t n = write(fd, report + done, report_len - done);
		if (n <= 0)
			die("report");
		done += n;
	}
	if (fsync(fd) < 0)
		die("report");
	printf("peer %s ok\n", command);
	return 0;
}
