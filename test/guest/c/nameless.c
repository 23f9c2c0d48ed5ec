// Program nameless tests inotify watches of files that no name leads to.
#include "gt.h"

#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static int in;

static void events(const char *what)
{
	char b[4096] __attribute__((aligned(8))), line[800] = "";
	for (ssize_t n; (n = read(in, b, sizeof b)) > 0;)
		for (char *p = b; p < b + n;) {
			struct inotify_event *e = (void *)p;
			sprintf(line + strlen(line), " %d:%x%s%s", e->wd, e->mask, e->len ? "/" : "", e->len ? e->name[0] == '#' ? "#" : e->name : "");
			p += sizeof *e + e->len;
		}
	say("%s:%s", what, line);
}

static int watch(int fd)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int wd = inotify_add_watch(in, path, IN_ALL_EVENTS);
	say("watch: %d", wd < 0 ? -errno : wd);
	return wd;
}

static void use(int fd)
{
	char b[10] = "x", path[40];
	struct timespec ts[2] = {{1, 0}, {1, 0}};
	struct iovec v = {b, 1};
	write(fd, "abc", 3), events("write");
	pread(fd, b, 1, 0), events("pread");
	read(fd, b, 1), events("read");
	pwritev(fd, &v, 1, 1), events("pwritev");
	fchmod(fd, 0700), events("fchmod");
	fchown(fd, -1, -1), events("fchown nobody");
	fchown(fd, 0, 0), events("fchown");
	futimens(fd, ts), events("futimens");
	ftruncate(fd, 1), events("ftruncate");
	fallocate(fd, 0, 0, 4096), events("fallocate");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_NONBLOCK);
	events("open again");
	read(again, b, 1), events("read again");
	close(again), events("close again");
	int opath = open(path, O_PATH);
	events("O_PATH");
	close(opath), events("close O_PATH");
	truncate(path, 2), events("truncate");
	chmod(path, 0600), events("chmod");
	again = open(path, O_WRONLY | O_TRUNC | O_NONBLOCK), events("open to cut");
	write(again, "x", 1), events("write again");
	close(again), events("close again");
	void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m != MAP_FAILED)
		*(char *)m = 1, msync(m, 4096, MS_SYNC), munmap(m, 4096);
	events("mapping");
	int to = open("to", O_CREAT | O_RDWR, 0600);
	lseek(fd, 0, SEEK_SET);
	events("others");
	sendfile(to, fd, NULL, 1), events("sendfile");
	copy_file_range(fd, &(loff_t){0}, to, &(loff_t){0}, 1, 0), events("copy_file_range");
	copy_file_range(to, &(loff_t){0}, fd, &(loff_t){0}, 1, 0), events("copy_file_range to it");
	close(to);
	int copy = dup(fd);
	close(copy), events("close a copy");
	close(fd), events("close");
}

#define BEGIN in = inotify_init1(IN_NONBLOCK)

TEST(temporary, "O_TMPFILE")
{
	BEGIN;
	int dir = inotify_add_watch(in, ".", IN_ALL_EVENTS);
	int fd = must(open(".", O_TMPFILE | O_RDWR, 0600), "open");
	events("open");
	watch(fd);
	use(fd);
	(void)dir;
}

TEST(linked, "O_TMPFILE that gets a name")
{
	BEGIN;
	char path[40];
	int fd = must(open(".", O_TMPFILE | O_RDWR, 0600), "open");
	watch(fd);
	inotify_add_watch(in, ".", IN_ALL_EVENTS);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	say("link: %d", linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	events("link");
	write(fd, "x", 1), events("write");
	int other = open("named", O_RDWR);
	write(other, "x", 1), close(other), events("by name");
}

TEST(unlinked, "a file that has lost its name")
{
	BEGIN;
	int fd = must(open("file", O_CREAT | O_RDWR, 0600), "open");
	watch(fd);
	unlink("file"), events("unlink");
	watch(fd);
	use(fd);
}

TEST(memory, "a memfd")
{
	BEGIN;
	int fd = must(memfd_create("x", MFD_ALLOW_SEALING), "memfd");
	watch(fd);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), events("seal");
	use(fd);
}

TEST(fifo, "a FIFO and a directory without a name")
{
	BEGIN;
	char b[10];
	mkfifo("f", 0600);
	int fd = open("f", O_RDWR | O_NONBLOCK);
	watch(fd);
	unlink("f"), events("unlink");
	write(fd, "abc", 3), read(fd, b, 3), events("write, read");
	close(fd), events("close");
	mkdir("d", 0700);
	fd = open("d", O_RDONLY | O_DIRECTORY);
	watch(fd);
	rmdir("d"), events("rmdir");
	watch(fd);
	getdents64(fd, b, sizeof b), events("getdents");
	fchmod(fd, 0711), events("fchmod");
	close(fd), events("close");
}
