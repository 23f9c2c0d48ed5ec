// Access control lists as attributes: what is a list, who may set it, what it allows, what
// new files get, how modes and lists change each other; attributes and flags of inodes.
#include "gt.h"
#include <grp.h>
#include <linux/fs.h>
#include <sys/xattr.h>

enum { U = 1, USER = 2, G = 4, GROUP = 8, MASK = 16, O = 32 };
#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

// acl makes an attribute's value of entries; it returns the length.
static int acl(char *b, int n, const struct entry *e)
{
	*(uint32_t *)b = 2;
	memcpy(b + 4, e, n * sizeof *e);
	return 4 + n * (int)sizeof *e;
}

#define SET(path, name, ...)                                                               \
	({                                                                                 \
		struct entry e_[] = {__VA_ARGS__};                                         \
		char b_[4096];                                                             \
		int n_ = acl(b_, sizeof e_ / sizeof *e_, e_);                              \
		setxattr(path, name, b_, n_, 0);                                           \
	})

static void show(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0) {
		say("%s: %s", path, name_of(errno));
		return;
	}
	say("%s: %o", path, st.st_mode);
	for (int k = 0; k < 2; k++) {
		char b[4096], text[500] = "";
		int n = getxattr(path, k ? DEFAULT : ACCESS, b, sizeof b);
		if (n < 0)
			continue;
		for (struct entry *e = (void *)(b + 4); (char *)e < b + n; e++)
			sprintf(text + strlen(text), " %d:%d:%d", e->tag, (int)e->id, e->perm);
		say("  %s%s", k ? "default" : "access", text);
	}
}

// as runs something as another user.
#define AS(uid, gid, ...)                                                           \
	IN_CHILD("as " #uid, setgroups(0, NULL); setresgid(gid, gid, gid); setresuid(uid, uid, uid); __VA_ARGS__)

static void tries(const char *path)
{
	char t[64];
	for (int m = 1; m < 8; m++) {
		snprintf(t, sizeof t, "%s %d", path, m);
		err(t, access(path, m));
	}
}

TEST(values, "what is a list")
{
	close(open("f", O_CREAT | O_RDWR, 0640));
	mkdir("d", 0750);
	char b[100] = {2};
	for (int n = 0; n < 22; n++) {
		char t[40];
		snprintf(t, sizeof t, "%d bytes", n);
		err(t, setxattr("f", ACCESS, b, n, 0));
	}
	b[0] = 1;
	err("version 1", setxattr("f", ACCESS, b, 4, 0));
	err("minimal", SET("f", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 0, -1}));
	show("f");
	err("extended", SET("f", ACCESS, {U, 7, -1}, {USER, 6, 1001}, {G, 5, -1}, {GROUP, 3, 77}, {MASK, 6, -1}, {O, 1, -1}));
	show("f");
	err("ids of others", SET("f", ACCESS, {U, 7, 5}, {G, 5, 6}, {MASK, 6, 7}, {O, 1, 8}));
	show("f");
	err("no owner", SET("f", ACCESS, {G, 5, -1}, {O, 1, -1}));
	err("no group", SET("f", ACCESS, {U, 5, -1}, {O, 1, -1}));
	err("no others", SET("f", ACCESS, {U, 5, -1}, {G, 1, -1}));
	err("no mask", SET("f", ACCESS, {U, 5, -1}, {USER, 1, 5}, {G, 1, -1}, {O, 0, -1}));
	err("order", SET("f", ACCESS, {U, 5, -1}, {G, 1, -1}, {USER, 1, 5}, {MASK, 7, -1}, {O, 0, -1}));
	err("order 2", SET("f", ACCESS, {U, 5, -1}, {G, 1, -1}, {O, 0, -1}, {MASK, 7, -1}));
	err("twice", SET("f", ACCESS, {U, 5, -1}, {U, 5, -1}, {G, 1, -1}, {O, 0, -1}));
	err("permissions", SET("f", ACCESS, {U, 8, -1}, {G, 1, -1}, {O, 0, -1}));
	err("tag", SET("f", ACCESS, {U, 5, -1}, {3, 1, -1}, {O, 0, -1}));
	err("nobody", SET("f", ACCESS, {U, 5, -1}, {USER, 1, -1}, {G, 1, -1}, {MASK, 7, -1}, {O, 0, -1}));
	err("same user twice", SET("f", ACCESS, {U, 5, -1}, {USER, 1, 5}, {USER, 2, 5}, {G, 1, -1}, {MASK, 7, -1}, {O, 0, -1}));
	show("f");
	err("default of a file", SET("f", DEFAULT, {U, 6, -1}, {G, 4, -1}, {O, 0, -1}));
	b[0] = 2;
	err("empty default of a file", setxattr("f", DEFAULT, b, 4, 0));
	err("remove default of a file", removexattr("f", DEFAULT));
	err("default", SET("d", DEFAULT, {U, 6, -1}, {G, 4, -1}, {O, 0, -1}));
	show("d");
	err("flags", setxattr("f", ACCESS, b, 4, XATTR_CREATE));
	show("f");
	err("remove", removexattr("d", DEFAULT));
	err("remove again", removexattr("d", DEFAULT));
	err("remove access", removexattr("d", ACCESS));
	show("d");
	symlink("f", "l");
	err("symbolic link", lsetxattr("l", ACCESS, b, 4, 0));
	num("symbolic link", lgetxattr("l", ACCESS, b, sizeof b));
	num("none", getxattr("d", ACCESS, b, sizeof b));
	SET("f", ACCESS, {U, 7, -1}, {USER, 6, 1001}, {G, 5, -1}, {MASK, 6, -1}, {O, 1, -1});
	num("size", getxattr("f", ACCESS, NULL, 0));
	num("too small", getxattr("f", ACCESS, b, 8));
	num("list", listxattr("f", b, sizeof b));
	say("%s", b);
	mkfifo("p", 0644);
	err("FIFO", SET("p", ACCESS, {U, 7, -1}, {USER, 6, 1001}, {G, 5, -1}, {MASK, 6, -1}, {O, 1, -1}));
	show("p");
	err("proc", SET("/proc/self/stat", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 0, -1}));
	num("proc", getxattr("/proc/self/stat", ACCESS, b, sizeof b));
}

TEST(rights, "who may set and use it")
{
	chmod(".", 0755);
	close(open("f", O_CREAT | O_RDWR, 0640));
	chown("f", 1000, 2000);
	SET("f", ACCESS, {U, 6, -1}, {USER, 7, 1001}, {USER, 2, 1002}, {USER, 0, 1003}, {G, 4, -1}, {GROUP, 2, 2001}, {MASK, 6, -1}, {O, 1, -1});
	show("f");
	AS(1000, 9, tries("f"));
	AS(1001, 9, tries("f"));
	AS(1002, 2000, tries("f"));
	AS(1003, 2001, tries("f"));
	AS(1004, 2000, tries("f"));
	AS(1004, 2001, tries("f"));
	AS(1004, 9, tries("f"));
	AS(1001, 9, err("open", open("f", O_RDWR)));
	AS(1003, 9, err("open", open("f", O_RDONLY)));
	AS(1001, 9, err("set", SET("f", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 0, -1})));
	AS(1000, 9, err("set", SET("f", ACCESS, {U, 6, -1}, {USER, 4, 1009}, {G, 4, -1}, {MASK, 4, -1}, {O, 0, -1})));
	show("f");
	chmod("f", 06750);
	show("f");
	AS(1000, 9, err("set", SET("f", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 0, -1})));
	show("f");
	mkdir("d", 0711);
	SET("d", ACCESS, {U, 7, -1}, {USER, 0, 1001}, {G, 5, -1}, {MASK, 5, -1}, {O, 1, -1});
	close(open("d/x", O_CREAT | O_RDWR, 0666));
	AS(1001, 9, err("search", access("d/x", F_OK)));
	AS(1002, 9, err("search", access("d/x", F_OK)));
}

TEST(modes, "chmod, chown, write")
{
	close(open("f", O_CREAT | O_RDWR, 0640));
	SET("f", ACCESS, {U, 6, -1}, {USER, 7, 1001}, {G, 4, -1}, {MASK, 7, -1}, {O, 1, -1});
	show("f");
	for (int m = 0; m < 01000; m += 0123) {
		chmod("f", m);
		show("f");
	}
	chown("f", 5, 6);
	show("f");
	err("mode again", SET("f", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 1, -1}));
	show("f");
}

TEST(inherited, "what new files get")
{
	mkdir("d", 0755);
	SET("d", DEFAULT, {U, 7, -1}, {USER, 6, 1001}, {G, 5, -1}, {MASK, 7, -1}, {O, 4, -1});
	show("d");
	for (int mask = 0; mask < 0100; mask += 027) {
		umask(mask);
		say("umask %o", mask);
		close(open("d/f", O_CREAT | O_RDWR, 0666));
		close(open("d/s", O_CREAT | O_RDWR, 0600));
		mkdir("d/d", 0777);
		mkdir("d/e", 0700);
		mkfifo("d/p", 0666);
		symlink("x", "d/l");
		const char *names[] = {"d/f", "d/s", "d/d", "d/e", "d/p", "d/l"};
		for (int i = 0; i < 6; i++) {
			show(names[i]);
			if (unlink(names[i]) < 0)
				rmdir(names[i]);
		}
		int t = open("d", O_TMPFILE | O_RDWR, 0666);
		struct stat st;
		fstat(t, &st);
		say("O_TMPFILE %o", st.st_mode);
		num("its list", fgetxattr(t, ACCESS, NULL, 0));
		close(t);
	}
	umask(022);
	SET("d", DEFAULT, {U, 7, -1}, {G, 5, -1}, {O, 0, -1});
	close(open("d/f", O_CREAT | O_RDWR, 0666));
	mkdir("d/d", 0777);
	mkdir("d/d/d", 0777);
	show("d/f"), show("d/d"), show("d/d/d");
	link("d/f", "f2");
	show("f2");
	rename("d/d", "moved");
	show("moved");
}

TEST(attributes, "names, sizes, flags")
{
	close(open("f", O_CREAT | O_RDWR, 0644));
	char big[70000] = {0}, name[300] = "user.";
	memset(name + 5, 'n', 251);
	const char *names[] = {"user.a", "user.", "user", "trusted.", "security.", "system.", "system.x", "", ".", "nospace", "other.x", "usera.x", name};
	for (int i = 0; i < 13; i++) {
		char t[60];
		snprintf(t, sizeof t, "%.20s", names[i]);
		err(t, setxattr("f", names[i], "v", 1, 0));
		num(t, getxattr("f", names[i], big, 10));
		err(t, removexattr("f", names[i]));
	}
	name[255] = 0;
	err("255", setxattr("f", name, "v", 1, 0));
	err("create", setxattr("f", name, "v", 1, XATTR_CREATE));
	err("replace", setxattr("f", name, "vw", 2, XATTR_REPLACE));
	err("both", setxattr("f", name, "vw", 2, XATTR_REPLACE | XATTR_CREATE));
	err("bad flags", setxattr("f", name, "vw", 2, 4));
	err("replace none", setxattr("f", "user.none", "vw", 2, XATTR_REPLACE));
	err("empty", setxattr("f", "user.e", "", 0, 0));
	num("empty", getxattr("f", "user.e", big, 10));
	err("null", setxattr("f", "user.e", NULL, 0, 0));
	err("null of a size", setxattr("f", "user.e", NULL, 1, 0));
	err("65537", setxattr("f", "user.e", big, 65537, 0));
	num("size", getxattr("f", name, NULL, 0));
	num("small", getxattr("f", name, big, 1));
	num("huge", getxattr("f", name, big, 70000));
	num("bad buffer", getxattr("f", name, (void *)8, 10));
	num("bad name", getxattr("f", (void *)8, big, 10));
	num("list size", listxattr("f", NULL, 0));
	num("list small", listxattr("f", big, 3));
	num("list bad", listxattr("f", (void *)8, 1000));
	err("remove none", removexattr("f", "user.none"));
	setxattr("f", "trusted.t", "v", 1, 0);
	chmod("f", 0666);
	AS(1000, 9, num("list", listxattr("f", big, 1000)); num("trusted", getxattr("f", "trusted.t", big, 10));
	   err("set trusted", setxattr("f", "trusted.t", "w", 1, 0)); err("set user", setxattr("f", "user.t", "w", 1, 0));
	   err("set security", setxattr("f", "security.t", "w", 1, 0)); num("security", getxattr("f", "security.t", big, 10)));
	chmod("f", 0600);
	AS(1000, 9, num("user", getxattr("f", "user.e", big, 10)); err("set user", setxattr("f", "user.t", "w", 1, 0)); num("list", listxattr("f", NULL, 0) > 0));
	mkdir("sticky", 01777);
	chmod("sticky", 01777);
	AS(1000, 9, err("sticky", setxattr("sticky", "user.t", "w", 1, 0)));
}

TEST(immutable, "inodes that do not change")
{
	int fd = open("f", O_CREAT | O_RDWR, 0644), d, flags = -1, want;
	mkdir("d", 0755);
	close(open("d/x", O_CREAT | O_RDWR, 0644));
	d = open("d", O_RDONLY);
	err("get", ioctl(fd, FS_IOC_GETFLAGS, &flags));
	for (int pass = 0; pass < 2; pass++) {
		want = flags | (pass ? FS_APPEND_FL : FS_IMMUTABLE_FL);
		say("%s", pass ? "append only" : "immutable");
		err("set", ioctl(fd, FS_IOC_SETFLAGS, &want));
		err("set", ioctl(d, FS_IOC_SETFLAGS, &want));
		int is = 0;
		ioctl(fd, FS_IOC_GETFLAGS, &is);
		say("changed %x", is ^ flags);
		struct statx x;
		statx(AT_FDCWD, "f", 0, STATX_ALL, &x);
		say("attributes %x", (int)x.stx_attributes & 0x70);
		err("open to write", close(open("f", O_WRONLY)));
		err("open to append", close(open("f", O_WRONLY | O_APPEND)));
		err("open to append and truncate", close(open("f", O_WRONLY | O_APPEND | O_TRUNC)));
		err("open to truncate", close(open("f", O_RDONLY | O_TRUNC)));
		err("open to read", close(open("f", O_RDONLY)));
		err("access", access("f", W_OK));
		err("truncate", truncate("f", 0));
		err("ftruncate", ftruncate(fd, 0));
		err("fallocate", fallocate(fd, 0, 0, 10));
		err("punch", fallocate(fd, 3, 0, 10));
		err("chmod", chmod("f", 0600));
		err("chown", chown("f", 1, 1));
		err("chown nothing", chown("f", -1, -1));
		err("touch", utimes("f", NULL));
		struct timeval tv[2] = {{1, 0}, {1, 0}};
		err("times", utimes("f", tv));
		err("attribute", setxattr("f", "user.x", "y", 1, 0));
		err("list", SET("f", ACCESS, {U, 6, -1}, {G, 4, -1}, {O, 0, -1}));
		err("link", link("f", "g"));
		err("unlink", unlink("f"));
		err("rename", rename("f", "g"));
		close(open("h", O_CREAT | O_RDWR, 0644));
		err("replace", rename("h", "f"));
		err("create in", close(open("d/y", O_CREAT | O_RDWR, 0644)));
		err("remove in", unlink("d/x"));
		err("move in", rename("h", "d/h"));
		err("move out", rename("d/x", "h2"));
		err("rmdir", rmdir("d"));
		err("make", mkdir("d/z", 0755));
		IN_CHILD("as another", setresuid(1000, 1000, 1000); err("clear", ioctl(fd, FS_IOC_SETFLAGS, &flags)));
		err("clear", ioctl(fd, FS_IOC_SETFLAGS, &flags));
		err("clear", ioctl(d, FS_IOC_SETFLAGS, &flags));
	}
	want = flags | FS_NODUMP_FL | FS_NOATIME_FL;
	err("set", ioctl(d, FS_IOC_SETFLAGS, &want));
	close(open("d/new", O_CREAT | O_RDWR, 0644));
	int n = open("d/new", O_RDONLY), is = 0;
	ioctl(n, FS_IOC_GETFLAGS, &is);
	say("inherited %x", is & 0xff);
	err("null", ioctl(fd, FS_IOC_GETFLAGS, NULL));
	int p[2];
	pipe(p);
	err("pipe", ioctl(p[0], FS_IOC_GETFLAGS, &is));
	err("O_PATH", ioctl(open("f", O_PATH), FS_IOC_GETFLAGS, &is));
}
