// File handles and pivot_root.
#include "gt.h"
#include <sys/mount.h>
#include <sys/statfs.h>
#include <linux/capability.h>

typedef struct {
	unsigned bytes;
	int type;
	unsigned char data[128];
} handle;

static long name_to(int at, const char *path, void *h, int *id, int flags) { return syscall(SYS_name_to_handle_at, at, path, h, id, flags); }
static long open_by(int at, void *h, int flags) { return syscall(SYS_open_by_handle_at, at, h, flags); }

static void apart(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static handle of(const char *path)
{
	handle h = {128};
	int id;
	must(name_to(AT_FDCWD, path, &h, &id, 0), "name_to_handle_at");
	return h;
}

static void touch(const char *path, const char *text)
{
	int fd = must(open(path, O_CREAT | O_RDWR, 0644), "open");
	write(fd, text, strlen(text));
	close(fd);
}

// same opens a handle and tells whether it is the file at path.
static void same(const char *what, handle h, const char *path, int flags)
{
	struct stat a = {0}, b = {0};
	char text[64] = "";
	int at = open(".", O_RDONLY), fd = open_by(at, &h, flags);
	close(at);
	if (fd < 0)
		return (void)say("%s: %s", what, name_of(errno));
	fstat(fd, &a);
	int found = path && lstat(path, &b) == 0;
	if (S_ISREG(a.st_mode) && !(flags & O_PATH))
		read(fd, text, 63);
	say("%s: %s, mode %o, %ld links: %s", what, !found ? "no path" : a.st_ino == b.st_ino && a.st_dev == b.st_dev ? "the file" : "another",
	    a.st_mode, (long)a.st_nlink, text);
	close(fd);
}

static void tmp(void)
{
	apart();
	mkdir("m", 0755);
	must(mount("none", "m", "tmpfs", 0, "mode=755"), "mount");
	must(chdir("m"), "chdir");
}

TEST(naming, "name_to_handle_at")
{
	tmp();
	touch("f", "text");
	symlink("f", "l"), symlink("none", "dangling"), mkdir("d", 0755), mkfifo("p", 0644);
	handle h = {128};
	int id = -1, id2 = -2;
	err("file", name_to(AT_FDCWD, "f", &h, &id, 0));
	say("%u bytes, type %d", h.bytes, h.type);
	h.bytes = 128;
	err("directory", name_to(AT_FDCWD, ".", &h, &id2, 0));
	say("%u bytes, type %d, mount is the same %d", h.bytes, h.type, id == id2);
	char line[512], *seen = "not there";
	FILE *m = fopen("/proc/self/mountinfo", "r");
	while (m && fgets(line, sizeof line, m))
		if (atoi(line) == id)
			seen = strstr(line, "/m ") ? "it" : "another";
	say("in mountinfo: %s", seen);
	for (int n = 0; n <= 13; n++) {
		handle s = {n, 77};
		long r = name_to(AT_FDCWD, "f", &s, &id, 0);
		say("room for %d: %s, %u bytes, type %d", n, r < 0 ? name_of(errno) : "ok", s.bytes, s.type);
	}
	unsigned sizes[] = {128, 129, 1u << 31, -1u};
	for (int i = 0; i < 4; i++) {
		handle s = {sizes[i]};
		err("sizes", name_to(AT_FDCWD, "f", &s, &id, 0));
	}
	const char *paths[] = {"l", "dangling", "none", "", "f/x", "d", "p"};
	for (int i = 0; i < 7; i++)
		for (int follow = 0; follow < 2; follow++) {
			h.bytes = 128;
			long r = name_to(AT_FDCWD, paths[i], &h, &id, follow ? AT_SYMLINK_FOLLOW : 0);
			say("'%s' follow %d: %s", paths[i], follow, r < 0 ? name_of(errno) : "ok");
		}
	int fd = open("f", O_RDONLY), path = open("f", O_PATH), link = open("l", O_PATH | O_NOFOLLOW), p[2];
	pipe(p);
	int fds[] = {fd, path, link, p[0], -1, AT_FDCWD};
	for (int i = 0; i < 6; i++) {
		h.bytes = 128;
		long r = name_to(fds[i], "", &h, &id, AT_EMPTY_PATH);
		say("descriptor %d: %s", i, r < 0 ? name_of(errno) : "ok");
	}
	int flags[] = {AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR | 0x10000, AT_NO_AUTOMOUNT, 0x8000}; // later kernels have more
	for (int i = 0; i < 4; i++)
		err("flags", name_to(AT_FDCWD, "f", &h, &id, flags[i]));
	h.bytes = 128;
	err("bad path", name_to(AT_FDCWD, (void *)8, &h, &id, 0));
	err("bad handle", name_to(AT_FDCWD, "f", (void *)8, &id, 0));
	err("bad mount id", name_to(AT_FDCWD, "f", &h, (void *)8, 0));
	h.bytes = 128;
	err("proc", name_to(AT_FDCWD, "/proc/self/stat", &h, &id, 0));
	IN_CHILD("as another", setresuid(1000, 1000, 1000); h.bytes = 128; err("name", name_to(AT_FDCWD, "f", &h, &id, 0)));
}

TEST(opening, "open_by_handle_at")
{
	tmp();
	touch("f", "text");
	symlink("f", "l"), mkdir("d", 0755), mkdir("d/e", 0755), mkfifo("p", 0644);
	touch("d/e/g", "deep");
	handle f = of("f"), l = of("l"), d = of("d/e"), g = of("d/e/g"), p = of("p"), root = of(".");
	same("file", f, "f", O_RDONLY);
	same("file to write", f, "f", O_RDWR);
	same("file, O_PATH", f, "f", O_PATH);
	same("file, O_DIRECTORY", f, "f", O_RDONLY | O_DIRECTORY);
	same("file, O_CREAT", f, "f", O_RDWR | O_CREAT);
	same("file, O_CREAT and O_EXCL", f, "f", O_RDWR | O_CREAT | O_EXCL);
	same("link", l, "l", O_RDONLY);
	same("link, O_PATH", l, "l", O_PATH);
	same("link, O_PATH and O_NOFOLLOW", l, "l", O_PATH | O_NOFOLLOW);
	same("directory", d, "d/e", O_RDONLY | O_DIRECTORY);
	same("directory to write", d, "d/e", O_RDWR);
	same("deep file", g, "d/e/g", O_RDONLY);
	same("fifo", p, "p", O_RDONLY | O_NONBLOCK);
	same("root", root, ".", O_RDONLY);
	int at = open(".", O_RDONLY), fd = open_by(at, &d, O_RDONLY);
	struct stat a, b;
	say("from the directory: %d", openat(fd, "g", O_RDONLY) >= 0);
	fstatat(fd, "..", &a, 0), stat("d", &b);
	say("above it: %d", a.st_ino == b.st_ino);
	must(rename("d/e/g", "moved"), "rename");
	same("moved", g, "moved", O_RDONLY);
	must(rename("d/e", "up"), "rename");
	same("moved directory", d, "up", O_RDONLY);
	must(link("moved", "second"), "link"), unlink("moved");
	same("the second link", g, "second", O_RDONLY);
	fd = open("second", O_RDONLY), unlink("second");
	same("no link, but open", g, NULL, O_RDONLY);
	close(fd);
	same("gone", g, NULL, O_RDONLY);
	close(fd), close(open_by(at, &d, O_RDONLY)), close(3), close(4), close(5), close(6), close(7), close(8);
	at = open(".", O_RDONLY);
	same("truncated", f, "f", O_RDWR | O_TRUNC);
	fd = open_by(AT_FDCWD, &f, O_RDONLY | O_CLOEXEC);
	say("from the working directory: %d, flags %x", fd >= 0, fcntl(fd, F_GETFD));
	int file = open("f", O_RDONLY), pipes[2];
	pipe(pipes);
	num("from a file", open_by(file, &f, O_RDONLY) >= 0);
	num("from a pipe", open_by(pipes[0], &f, O_RDONLY));
	num("from nothing", open_by(-1, &f, O_RDONLY));
	num("from another file system", open_by(open("/proc", O_RDONLY), &f, O_RDONLY));
	num("bad address", open_by(at, (void *)8, O_RDONLY));
	unsigned sizes[] = {0, 1, 4, 8, 11, 129, -1u};
	for (int i = 0; i < 7; i++) {
		handle h = f;
		h.bytes = sizes[i];
		num("sizes", open_by(at, &h, O_RDONLY));
	}
	struct rlimit r = {at + 6, 4096};
	setrlimit(RLIMIT_NOFILE, &r);
	while (dup(at) >= 0)
		;
	num("no descriptor", open_by(at, &f, O_RDONLY));
	f.data[0] ^= 1;
	num("no descriptor, and stale", open_by(at, &f, O_RDONLY));
}

TEST(rights, "who may open handles")
{
	tmp();
	touch("f", "text");
	chmod("f", 0);
	handle f = of("f");
	IN_CHILD("as another", setresuid(1000, 1000, 1000); num("open", open_by(AT_FDCWD, &f, O_RDONLY)););
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3};
	for (int cap = 0; cap < 4; cap++) {
		struct __user_cap_data_struct caps[2] = {{1u << cap, 1u << cap, 0}};
		IN_CHILD("with one capability", prctl(PR_SET_KEEPCAPS, 1); setresuid(1000, 1000, 1000); syscall(SYS_capset, &head, caps);
			 say("%d to read: %s, to write: %s", cap, open_by(AT_FDCWD, &f, O_RDONLY) < 0 ? name_of(errno) : "ok", open_by(AT_FDCWD, &f, O_RDWR) < 0 ? name_of(errno) : "ok"));
	}
}

TEST(hostile, "handles that nobody gave")
{
	tmp();
	touch("f", "text");
	handle f = of("f");
	uint32_t state = 9;
	int opened = 0, stale = 0, other = 0;
	for (int i = 0; i < 20000; i++) {
		handle h = f;
		state = state * 1664525u + 1013904223u;
		h.bytes = 1 + (state >> 9) % 24;
		h.type = i % 3 ? f.type : (int)(state >> 20);
		if (h.bytes >= 12) // another number, or another generation
			h.data[i % 12] ^= 1 + (state >> 24) % 255;
		int fd = open_by(AT_FDCWD, &h, O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			opened++, close(fd);
		else if (errno == ESTALE)
			stale++;
		else
			other++;
	}
	say("%d opened, %d stale, %d other", opened, stale, other);
}

static void pivot(const char *what, const char *fresh, const char *old) { err(what, syscall(SYS_pivot_root, fresh, old)); }

static void exists(const char *path) { say("%s: %s", path, access(path, F_OK) ? name_of(errno) : "there"); }

TEST(pivoting, "pivot_root")
{
	apart();
	mkdir("r", 0755);
	must(mount("none", "r", "tmpfs", 0, "mode=755"), "mount");
	mkdir("r/new", 0755), mkdir("r/plain", 0755), touch("r/file", ""), mkdir("r/one", 0755), mkdir("r/proc", 0755);
	must(mount("none", "r/new", "tmpfs", 0, "mode=755"), "mount");
	mkdir("r/new/old", 0755), mkdir("r/new/deep", 0755), mkdir("r/new/deep/old", 0755), touch("r/new/file", "");
	must(mount("none", "r/one", "tmpfs", 0, "mode=755"), "mount");
	mkdir("r/one/x", 0755);
	mkdir("r/sub", 0755), mkdir("r/sub/m", 0755);
	must(mount("none", "r/sub/m", "tmpfs", 0, "mode=755"), "mount");
	mkdir("r/sub/m/o", 0755);
	IN_CHILD("in a directory that is no mount", must(chroot("r/sub"), "chroot"); must(chdir("/"), "chdir"); pivot("pivot", "/m", "/m/o"));
	must(chroot("r"), "chroot");
	must(chdir("/"), "chdir");
	pivot("nothing", "/none", "/new/old");
	pivot("nothing to put old", "/new", "/none");
	pivot("a file", "/file", "/new/old");
	pivot("onto a file", "/new", "/new/file");
	pivot("no mount", "/plain", "/plain");
	pivot("the root itself", "/", "/");
	pivot("the root itself", "/", "/new/old");
	pivot("old on the root's own", "/new", "/plain");
	pivot("old in another mount", "/new", "/one/x");
	pivot("not the mount's root", "/new/deep", "/new/deep/old");
	pivot("bad address", (void *)8, "/new/old");
	pivot("bad address", "/new", (void *)8);
	IN_CHILD("as another", setresuid(1000, 1000, 1000); pivot("pivot", "/new", "/new/old"); pivot("nothing", "/none", "/none"));
	int in[2], second[2], out[2];
	pipe(in), pipe(second), pipe(out);
	char c;
	pid_t sibling = FORK(chdir("/plain"); write(out[1], "x", 1); read(in[0], &c, 1); exists("/old"); exists("/plain"); exists("/old/plain"); char b[200]; exists("."); say("cwd %s", getcwd(b, 200)));
	pid_t at_root = FORK(write(out[1], "x", 1); read(second[0], &c, 1); exists("old"); char b[200]; say("cwd %s", getcwd(b, 200)));
	read(out[0], &c, 1), read(out[0], &c, 1);
	pivot("pivot", "/new", "/new/deep/old");
	exists("/deep"), exists("/plain"), exists("/deep/old/plain"), exists("/deep/old/one/x"), exists("deep"), exists("..");
	char b[200];
	say("cwd %s", getcwd(b, 200));
	write(in[1], "x", 1), wait_for(sibling);
	write(second[1], "x", 1), wait_for(at_root);
	pivot("back", "/deep/old", "/deep/old/new");
	exists("/plain"), exists("/new/deep"), exists("/new/old");
	pivot("onto its own root", "/new", "/new");
	exists("/plain"), exists("/deep");
	err("detach what lies on it", umount2("/", MNT_DETACH));
	exists("/plain"), exists("/deep");
}
