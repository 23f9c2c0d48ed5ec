// Inotify: which events come, of whom, in which order, and which are one.
#include "gt.h"
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

static const char *const bits[] = {"ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN",
	"MOVED_FROM", "MOVED_TO", "CREATE", "DELETE", "DELETE_SELF", "MOVE_SELF", "?", "UNMOUNT", "Q_OVERFLOW", "IGNORED"};

static int in;
static uint32_t cookies[64];
static int known;

// cookie numbers cookies in the order in which they come.
static int cookie(uint32_t c)
{
	if (c == 0)
		return 0;
	for (int i = 0; i < known; i++)
		if (cookies[i] == c)
			return i + 1;
	cookies[known] = c;
	return ++known;
}

static void show(const struct inotify_event *e)
{
	char text[300] = "";
	for (int i = 0; i < 16; i++)
		if (e->mask >> i & 1)
			sprintf(text + strlen(text), " %s", bits[i]);
	if (e->mask & IN_ISDIR)
		strcat(text, " ISDIR");
	say("  wd %d%s cookie %d len %u %s", e->wd, text, cookie(e->cookie), e->len, e->len ? e->name : "-");
}

// events prints what is queued.
static void events(const char *what)
{
	char buf[8192] __attribute__((aligned(8)));
	int left = -1;
	ioctl(in, FIONREAD, &left);
	say("%s: %d bytes", what, left);
	ssize_t n = read(in, buf, sizeof buf);
	for (char *p = buf; n > 0 && p < buf + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len)
		show((struct inotify_event *)p);
}

static void start(void)
{
	known = 0;
	in = must(inotify_init1(IN_NONBLOCK | IN_CLOEXEC), "inotify_init1");
}

static int watch(const char *path, uint32_t mask)
{
	return num(path, inotify_add_watch(in, path, mask));
}

static void touch(const char *path) { close(must(open(path, O_CREAT | O_RDWR, 0644), path)); }

TEST(basic, "a directory and a file")
{
	start();
	touch("f");
	watch(".", IN_ALL_EVENTS);
	watch("f", IN_ALL_EVENTS);
	int fd = open("f", O_RDWR);
	events("open");
	write(fd, "abc", 3);
	write(fd, "abc", 3);
	events("two writes");
	write(fd, "abc", 0);
	events("empty write");
	char b[9];
	pread(fd, b, 3, 0);
	events("pread");
	pread(fd, b, 3, 100);
	events("pread at the end");
	ftruncate(fd, 1);
	events("ftruncate");
	ftruncate(fd, 1);
	events("ftruncate to the same");
	truncate("f", 0);
	events("truncate");
	fallocate(fd, 0, 0, 100);
	events("fallocate");
	fchmod(fd, 0600);
	events("fchmod");
	fchown(fd, 0, 0);
	events("fchown");
	fchown(fd, -1, -1);
	events("fchown of nothing");
	fsetxattr(fd, "user.x", "y", 1, 0);
	events("setxattr");
	fremovexattr(fd, "user.x");
	events("removexattr");
	struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}}, a[2] = {{1, 2}, {0, UTIME_OMIT}}, m[2] = {{0, UTIME_OMIT}, {1, 2}};
	futimens(fd, now);
	events("both times");
	futimens(fd, a);
	events("access time");
	futimens(fd, m);
	events("modification time");
	close(dup(fd));
	events("dup and close");
	close(fd);
	events("close");
	close(open("f", O_RDONLY));
	events("read only");
	inotify_add_watch(in, ".", IN_ALL_EVENTS & ~IN_OPEN); // before or after: versions differ
	inotify_add_watch(in, "f", IN_ALL_EVENTS & ~IN_OPEN);
	close(open("f", O_WRONLY | O_TRUNC));
	events("truncating open");
	inotify_add_watch(in, ".", IN_ALL_EVENTS);
	inotify_add_watch(in, "f", IN_ALL_EVENTS);
	close(open("f", O_CREAT | O_RDWR, 0644));
	events("O_CREAT of what is there");
	close(open("f", O_PATH));
	events("O_PATH");
	struct stat st;
	stat("f", &st);
	events("stat");
}

TEST(names, "names come and go")
{
	start();
	mkdir("d", 0755);
	mkdir("e", 0755);
	watch("d", IN_ALL_EVENTS);
	watch("e", IN_ALL_EVENTS);
	mkdir("d/sub", 0755);
	mknod("d/p", S_IFIFO | 0644, 0);
	symlink("x", "d/l");
	events("mkdir, mknod, symlink");
	touch("d/f");
	events("a file");
	link("d/f", "e/g");
	events("link");
	rename("d/f", "e/f");
	events("rename");
	rename("e/f", "e/g");
	events("rename of the same file");
	rename("d/sub", "e/sub");
	events("rename of a directory");
	touch("d/new");
	events("new");
	rename("d/new", "e/g");
	events("rename over a name");
	renameat2(AT_FDCWD, "e/g", AT_FDCWD, "d/p", RENAME_EXCHANGE);
	events("exchange");
	unlink("d/l");
	rmdir("e/sub");
	events("removed");
	rmdir("d/none");
	link("d/p", "d/none/x");
	events("nothing");
	inotify_add_watch(in, "d", IN_ALL_EVENTS & ~IN_OPEN & ~IN_CLOSE); // the name is a number
	int t = open("d", O_TMPFILE | O_RDWR, 0644);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", t);
	events("O_TMPFILE");
	linkat(AT_FDCWD, path, AT_FDCWD, "d/t", AT_SYMLINK_FOLLOW);
	close(t);
	events("linked");
	inotify_add_watch(in, "d", IN_ALL_EVENTS);
	chmod("d", 0700);
	rename("d", "d2");
	events("the directory itself");
	DIR *dir = opendir("d2");
	while (readdir(dir))
		;
	closedir(dir);
	events("listed");
}

TEST(self, "the end of a file")
{
	start();
	touch("a");
	link("a", "b");
	watch(".", IN_DELETE);
	watch("a", IN_ALL_EVENTS);
	unlink("b");
	events("one of two names");
	int fd = open("a", O_RDWR);
	unlink("a");
	events("the last name while it is open");
	write(fd, "x", 1);
	events("written");
	close(fd);
	events("closed");
	touch("c");
	watch("c", IN_ALL_EVENTS);
	unlink("c");
	events("not open");
	mkdir("d", 0755);
	watch("d", IN_ALL_EVENTS);
	rmdir("d");
	events("a directory");
	mkdir("d", 0755);
	watch("d", IN_ALL_EVENTS);
	fd = open("d", O_RDONLY);
	rmdir("d");
	events("an open directory");
	close(fd);
	events("closed");
	touch("x");
	touch("y");
	watch("x", IN_ALL_EVENTS);
	watch("y", IN_ALL_EVENTS);
	rename("x", "y");
	events("replaced");
	touch("z");
	watch("z", IN_DELETE_SELF);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd = open("z", O_RDWR), 0);
	close(fd);
	unlink("z");
	events("mapped");
	munmap(p, 4096);
	events("unmapped");
}

TEST(unlinked, "IN_EXCL_UNLINK")
{
	for (int i = 0; i < 2; i++) {
		start();
		touch("f");
		int fd = open("f", O_RDWR);
		watch(".", IN_ALL_EVENTS | (i ? IN_EXCL_UNLINK : 0));
		watch("f", IN_ALL_EVENTS | (i ? IN_EXCL_UNLINK : 0));
		write(fd, "a", 1);
		unlink("f");
		events("unlinked");
		write(fd, "a", 1);
		ftruncate(fd, 0);
		fchmod(fd, 0600);
		close(fd);
		events("used");
		close(in);
	}
}

TEST(masks, "flags of a watch")
{
	start();
	touch("f");
	mkdir("d", 0755);
	symlink("f", "l");
	symlink("none", "n");
	watch("f", 0);
	watch("f", IN_ONLYDIR | IN_OPEN);
	watch("d", IN_ONLYDIR | IN_OPEN);
	watch("d/", IN_OPEN);
	watch("f/", IN_OPEN);
	watch("l", IN_OPEN);
	watch("f", IN_OPEN);
	watch("l", IN_OPEN | IN_DONT_FOLLOW);
	watch("n", IN_OPEN);
	watch("n", IN_OPEN | IN_DONT_FOLLOW);
	watch("n", IN_OPEN | IN_DONT_FOLLOW | IN_ONLYDIR);
	watch("f", IN_OPEN | IN_MASK_CREATE);
	watch("f", IN_OPEN | IN_MASK_CREATE | IN_MASK_ADD);
	watch("f", 0x10000);
	watch("f", IN_ISDIR);
	watch("f", IN_ONESHOT);
	watch("", IN_OPEN);
	num("bad path", inotify_add_watch(in, (char *)8, IN_OPEN));
	num("bad descriptor", inotify_add_watch(999, "f", IN_OPEN));
	num("no inotify", inotify_add_watch(1, "f", IN_OPEN));
	num("bad watch", inotify_rm_watch(in, 999));
	num("bad watch", inotify_rm_watch(in, -1));
	num("no inotify", inotify_rm_watch(1, 1));
	num("bad flags", inotify_init1(1));
	watch("f", IN_OPEN);
	watch("f", IN_CLOSE | IN_MASK_ADD);
	close(open("f", O_RDONLY));
	events("added");
	watch("f", IN_CLOSE);
	close(open("f", O_RDONLY));
	events("replaced");
	watch("f", IN_OPEN | IN_ONESHOT);
	close(open("f", O_RDONLY));
	close(open("f", O_RDONLY));
	events("once");
	int wd = watch("f", IN_OPEN | IN_MASK_CREATE);
	close(open("f", O_RDONLY));
	num("removed", inotify_rm_watch(in, wd));
	num("again", inotify_rm_watch(in, wd));
	close(open("f", O_RDONLY));
	events("ignored");
	watch("f", IN_OPEN);
}

TEST(reading, "reading")
{
	start();
	touch("f");
	watch(".", IN_OPEN | IN_CLOSE);
	char b[100];
	num("nothing", read(in, b, sizeof b));
	num("nothing, small", read(in, b, 1));
	num("no bytes", read(in, b, 0));
	close(open("f", O_RDONLY));
	num("small", read(in, b, 15));
	num("without the name", read(in, b, 16));
	num("one", read(in, b, 32));
	close(open("f", O_RDONLY));
	num("not two", read(in, b, 60));
	num("bad address", read(in, (void *)8, 32));
	num("write", write(in, b, 1));
	num("lseek", lseek(in, 0, SEEK_SET));
	num("pread", pread(in, b, 32, 0));
	struct pollfd p = {in, POLLIN | POLLOUT};
	num("poll", poll(&p, 1, 0));
	say("revents %x", p.revents);
	close(open("f", O_RDONLY));
	num("poll", poll(&p, 1, 0));
	say("revents %x", p.revents);
	char name[256];
	for (int n = 14; n < 19; n++) {
		memset(name, 'x', n);
		name[n] = 0;
		touch(name);
		events("a name");
	}
}

TEST(merging, "the same events in a row")
{
	start();
	touch("f");
	touch("g");
	watch("f", IN_MODIFY | IN_ATTRIB);
	watch("g", IN_MODIFY | IN_ATTRIB);
	int f = open("f", O_RDWR), g = open("g", O_RDWR);
	write(f, "a", 1), write(f, "a", 1), write(g, "a", 1), write(f, "a", 1), write(f, "b", 1);
	events("writes");
	fchmod(f, 0600), fchmod(f, 0644), write(f, "a", 1), fchmod(f, 0644);
	events("modes");
}

TEST(transfers, "sendfile, splice and copy_file_range")
{
	start();
	int f = open("f", O_CREAT | O_RDWR, 0644), g = open("g", O_CREAT | O_RDWR, 0644), p[2];
	write(f, "0123456789", 10);
	pipe(p);
	watch("f", IN_ACCESS | IN_MODIFY);
	watch("g", IN_ACCESS | IN_MODIFY);
	off_t off = 0;
	sendfile(g, f, &off, 4);
	events("sendfile");
	loff_t o = 0;
	copy_file_range(f, &o, g, NULL, 4, 0);
	events("copy_file_range");
	char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, g, 0);
	m[0] = 'x';
	events("mapped");
	struct iovec v[2] = {{m, 2}, {m + 2, 2}};
	readv(f, v, 2), writev(g, v, 2);
	events("vectors");
}

TEST(special, "FIFOs and sockets")
{
	start();
	mkfifo("p", 0644);
	watch(".", IN_ALL_EVENTS);
	watch("p", IN_ALL_EVENTS);
	int r = open("p", O_RDWR);
	char c = 0;
	write(r, &c, 1), read(r, &c, 1);
	close(r);
	events("FIFO");
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un sa = {AF_UNIX, "s"};
	bind(s, (void *)&sa, sizeof sa);
	events("bound");
	unlink("s");
	events("unlinked");
}

TEST(overflow, "a full queue")
{
	start();
	touch("a");
	touch("b");
	watch("a", IN_OPEN);
	watch("b", IN_OPEN);
	int limit = 0;
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	if (!f || fscanf(f, "%d", &limit) != 1 || limit > 100000)
		fatal("limit");
	int a = 0, b = 0;
	for (int i = 0; i <= limit; i++)
		close(open(i & 1 ? "a" : "b", O_RDONLY));
	char buf[65536];
	int n, count = 0, last = 0, wd = 0;
	while ((n = read(in, buf, sizeof buf)) > 0)
		for (char *p = buf; p < buf + n; p += 16, count++)
			last = ((struct inotify_event *)p)->mask, wd = ((struct inotify_event *)p)->wd;
	say("%d beyond the limit, the last is %x of %d", count - limit, last, wd);
}

TEST(unmount, "the end of a file system")
{
	start();
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, ""), "mount");
	touch("m/f");
	watch("m/f", IN_OPEN);
	watch("m", IN_OPEN);
	err("umount", umount("m"));
	char buf[4096] __attribute__((aligned(8)));
	ssize_t n = read(in, buf, sizeof buf);
	int unmounted = 0, ignored = 0;
	for (char *p = buf; n > 0 && p < buf + n; p += 16) {
		unmounted += (((struct inotify_event *)p)->mask & IN_UNMOUNT) != 0;
		ignored += (((struct inotify_event *)p)->mask & IN_IGNORED) != 0;
	}
	say("unmounted %d ignored %d", unmounted, ignored);
}
