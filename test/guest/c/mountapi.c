// Mounts by descriptors: open_tree, move_mount, mount_setattr, and file systems set up
// step by step: fsopen, fsconfig, fsmount, fspick.
#include "gt.h"
#include <sys/mount.h>
#include <sys/statfs.h>

struct attr {
	uint64_t set, clear, propagation, userns;
};

enum { FLAG, STRING, BINARY, PATH, PATH_EMPTY, FD, CREATE, RECONFIGURE };
enum { CLONE = 1, RECURSIVE = 0x8000, F_EMPTY = 4, T_EMPTY = 0x40 };

static long open_tree_(int fd, const char *path, unsigned flags) { return syscall(428, fd, path, flags); }
static long move_mount_(int from, const char *path, int to, const char *onto, unsigned flags)
{
	return syscall(429, from, path, to, onto, flags);
}
static long fsopen_(const char *kind, unsigned flags) { return syscall(430, kind, flags); }
static long fsconfig_(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return syscall(431, fd, cmd, key, value, aux);
}
static long fsmount_(int fd, unsigned flags, unsigned attrs) { return syscall(432, fd, flags, attrs); }
static long fspick_(int fd, const char *path, unsigned flags) { return syscall(433, fd, path, flags); }
static long setattr_(int fd, const char *path, unsigned flags, struct attr *a, size_t size)
{
	return syscall(442, fd, path, flags, a, size);
}

static void file_at(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (fd < 0)
		fatal(path);
	close(fd);
}

// line prints how the mount at a directory of this one appears in /proc/mounts.
static void line(const char *name)
{
	char cwd[PATH_MAX], want[PATH_MAX + 300], text[1024];
	if (!getcwd(cwd, sizeof cwd))
		fatal("getcwd");
	snprintf(want, sizeof want, " %s/%s ", cwd, name);
	FILE *f = fopen("/proc/self/mounts", "r");
	int found = 0;
	while (f && fgets(text, sizeof text, f)) {
		char *at = strstr(text, want);
		if (!at)
			continue;
		char *rest = at + strlen(want), *end = strchr(strchr(rest, ' ') + 1, ',');
		*at = 0;
		char options[300];
		snprintf(options, sizeof options, "%s", rest);
		// What a mount of its own has; the file system's options follow.
		static const char *known[] = {"nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "nosymfollow"};
		char have[200] = "";
		for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
			char item[40];
			snprintf(item, sizeof item, ",%s", known[i]);
			if (strstr(options, item))
				strcat(have, item);
		}
		*end = 0;
		say("mounted: %s on %s: %s%s", text, name, rest, have);
		found = 1;
	}
	if (f)
		fclose(f);
	if (!found)
		say("not mounted: %s", name);
}

static int made(const char *source)
{
	int fd = must(fsopen_("tmpfs", 1), "fsopen");
	if (source)
		must(fsconfig_(fd, STRING, "source", source, 0), "source");
	must(fsconfig_(fd, CREATE, NULL, NULL, 0), "create");
	return fd;
}

TEST(arguments, "arguments that are refused")
{
	err("fsopen of nothing", fsopen_(NULL, 0));
	err("fsopen of what nobody knows", fsopen_("nosuchfs", 0));
	err("fsopen with a flag", fsopen_("tmpfs", 2));
	int fd = must(fsopen_("tmpfs", 1), "fsopen"), other = open(".", O_RDONLY);
	num("close on exec", fcntl(fd, F_GETFD));
	num("mode", fcntl(fd, F_GETFL) & O_ACCMODE);
	static const struct {
		int cmd;
		const char *key, *value;
		int aux;
	} bad[] = {
		{FLAG, NULL, NULL, 0}, {FLAG, "rw", "x", 0}, {FLAG, "rw", NULL, 1}, {STRING, NULL, "x", 0},
		{STRING, "source", NULL, 0}, {STRING, "source", "x", 1}, {BINARY, NULL, "x", 1}, {BINARY, "a", NULL, 1},
		{BINARY, "a", "x", 0}, {BINARY, "a", "x", (1 << 20) + 1}, {PATH, NULL, "x", AT_FDCWD}, {PATH, "a", NULL, AT_FDCWD},
		{PATH, "a", "x", -1}, {PATH_EMPTY, "a", "x", -2}, {FD, NULL, NULL, 0}, {FD, "a", "x", 0}, {FD, "a", NULL, -1},
		{CREATE, "a", NULL, 0}, {CREATE, NULL, "x", 0}, {CREATE, NULL, NULL, 1}, {RECONFIGURE, "a", NULL, 0},
		{RECONFIGURE, NULL, NULL, 1}, {100, "a", "x", 0}, {FLAG, "nosuchflag", NULL, 0},
		{STRING, "nosuchkey", "x", 0}, {STRING, "size", "many", 0}, {FLAG, "source", NULL, 0}, {RECONFIGURE, NULL, NULL, 0},
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		char what[80];
		snprintf(what, sizeof what, "fsconfig %d %s %s %d", bad[i].cmd, bad[i].key ? bad[i].key : "-",
			 bad[i].value ? bad[i].value : "-", bad[i].aux);
		err(what, fsconfig_(fd, bad[i].cmd, bad[i].key, bad[i].value, bad[i].aux));
	}
	err("fsconfig of descriptor -1", fsconfig_(-1, FLAG, "rw", NULL, 0));
	err("of a closed one", fsconfig_(999, FLAG, "rw", NULL, 0));
	err("of a directory", fsconfig_(other, FLAG, "rw", NULL, 0));
	err("key at a bad address", fsconfig_(fd, FLAG, (char *)1, NULL, 0));
	char longer[300];
	memset(longer, 'k', sizeof longer);
	longer[299] = 0;
	err("a long key", fsconfig_(fd, FLAG, longer, NULL, 0));
	err("a long value", fsconfig_(fd, STRING, "source", longer, 0));
	close(fd);

	fd = must(fsopen_("tmpfs", 0), "fsopen");
	err("fsmount before it is made", fsmount_(fd, 0, 0));
	err("source", fsconfig_(fd, STRING, "source", "one", 0));
	err("another source", fsconfig_(fd, STRING, "source", "two", 0));
	err("create", fsconfig_(fd, CREATE, NULL, NULL, 0));
	err("create again", fsconfig_(fd, CREATE, NULL, NULL, 0));
	err("a parameter after it", fsconfig_(fd, FLAG, "ro", NULL, 0));
	err("fsmount with a flag", fsmount_(fd, 2, 0));
	err("unknown attribute", fsmount_(fd, 0, 0x400000));
	err("idmap", fsmount_(fd, 0, 0x100000));
	err("two access times", fsmount_(fd, 0, 0x30));
	err("fsmount of -1", fsmount_(-1, 0, 0));
	err("of a directory", fsmount_(other, 0, 0));
	err("fsmount", fsmount_(fd, 0, 0));
	err("fsmount again", fsmount_(fd, 0, 0));

	err("open_tree, unknown flag", open_tree_(AT_FDCWD, ".", 2));
	err("recursive but no clone", open_tree_(AT_FDCWD, ".", RECURSIVE));
	err("no file", open_tree_(AT_FDCWD, "nil", CLONE));
	err("empty path", open_tree_(AT_FDCWD, "", CLONE));
	err("bad descriptor", open_tree_(999, "x", CLONE));
	err("move_mount, unknown flag", move_mount_(AT_FDCWD, "/proc", AT_FDCWD, ".", 0x8));
	err("from no mount", move_mount_(AT_FDCWD, ".", AT_FDCWD, ".", 0));
	err("from nothing", move_mount_(AT_FDCWD, "nil", AT_FDCWD, ".", 0));
	err("to nothing", move_mount_(AT_FDCWD, "/proc", AT_FDCWD, "nil", 0));
	err("from an empty path", move_mount_(other, "", AT_FDCWD, ".", 0));
	err("fspick, unknown flag", fspick_(AT_FDCWD, "/proc", 16));
	err("of no mount", fspick_(AT_FDCWD, ".", 0));
	err("of nothing", fspick_(AT_FDCWD, "nil", 0));
	struct attr a = {0}, wide[2] = {{0}};
	err("mount_setattr, unknown flag", setattr_(AT_FDCWD, ".", 1, &a, sizeof a));
	err("small", setattr_(AT_FDCWD, ".", 0, &a, 31));
	err("large", setattr_(AT_FDCWD, ".", 0, &a, 4097));
	err("nothing to do, nowhere", setattr_(AT_FDCWD, "nil", 0, &a, sizeof a));
	err("wide, zero", setattr_(AT_FDCWD, "nil", 0, wide, sizeof wide));
	wide[1].set = 1;
	err("wide, not zero", setattr_(AT_FDCWD, "nil", 0, wide, sizeof wide));
	err("bad address", setattr_(AT_FDCWD, ".", 0, (struct attr *)1, sizeof a));
	static const struct attr wrong[] = {
		{.set = 0x400000}, {.clear = 0x400000}, {.set = 0x10}, {.clear = 0x10}, {.set = 0x30, .clear = 0x70},
		{.propagation = 1}, {.propagation = MS_SHARED | MS_SLAVE}, {.clear = 0x100000}, {.set = 0x100000, .userns = 999},
		{.set = 0x100000, .userns = 0}, {.set = 0x100000, .userns = 1ull << 40}, {.set = 1},
	};
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char what[20];
		snprintf(what, sizeof what, "attributes %u", i);
		a = wrong[i];
		err(what, setattr_(AT_FDCWD, ".", 0, &a, sizeof a));
	}
	a = (struct attr){.set = 1};
	err("of nothing", setattr_(AT_FDCWD, "nil", 0, &a, sizeof a));
	a = (struct attr){.set = 0x100000, .userns = open("/proc/self/ns/user", O_RDONLY)};
	err("idmap of the first user namespace", setattr_(AT_FDCWD, ".", 0, &a, sizeof a));
	IN_CHILD("a user", {
		setuid(1000);
		err("fsopen", fsopen_("tmpfs", 99));
		err("fsmount", fsmount_(-1, 99, 0));
		err("fspick", fspick_(AT_FDCWD, "nil", 99));
		err("open_tree", open_tree_(AT_FDCWD, ".", CLONE));
		int t = err("open_tree without clone", open_tree_(AT_FDCWD, ".", 0));
		num("its flags", fcntl(t, F_GETFL) & O_PATH ? 1 : 0);
		err("move_mount", move_mount_(AT_FDCWD, "nil", AT_FDCWD, "nil", 0x8));
		err("mount_setattr", setattr_(AT_FDCWD, ".", 0, &a, sizeof a));
	});
}

TEST(messages, "what is said of a parameter that is refused")
{
	char text[200];
	int fd = must(fsopen_("tmpfs", 0), "fsopen");
	num("nothing", read(fd, text, sizeof text));
	err("unknown", fsconfig_(fd, FLAG, "nosuchflag", NULL, 0));
	err("no string", fsconfig_(fd, FLAG, "source", NULL, 0));
	num("too small", read(fd, text, 3));
	for (int i = 0; i < 2; i++) {
		long n = read(fd, text, sizeof text - 1);
		text[n > 0 ? n : 0] = 0;
		say("said: %s", text);
	}
	num("nothing more", read(fd, text, sizeof text));
	num("write", write(fd, "x", 1));
	num("seek", lseek(fd, 0, SEEK_SET));
	long n = readlink("/proc/self/fd/3", text, sizeof text);
	say("link: %.*s", (int)n, text);
}

TEST(fresh, "a new file system")
{
	mkdir("m", 0755);
	int fd = must(fsopen_("tmpfs", 1), "fsopen");
	err("source", fsconfig_(fd, STRING, "source", "mine", 0));
	err("size", fsconfig_(fd, STRING, "size", "1M", 0));
	err("mode", fsconfig_(fd, STRING, "mode", "0700", 0));
	err("create", fsconfig_(fd, CREATE, NULL, NULL, 0));
	int m = err("fsmount", fsmount_(fd, 1, 0x2 | 0x4 | 0x10));
	num("close on exec", fcntl(m, F_GETFD));
	num("path", fcntl(m, F_GETFL) == O_PATH);
	line("m");
	// It can be used before it is anywhere.
	int f = openat(m, "file", O_CREAT | O_RDWR, 0600);
	num("write", write(f, "hello", 5));
	close(f);
	err("unlink through it", unlinkat(m, "nil", 0));
	err("from a place of it that is no mount", move_mount_(m, "file", AT_FDCWD, "m", 0));
	file_at("plain");
	err("a directory on a file", move_mount_(m, "", AT_FDCWD, "plain", F_EMPTY));
	err("into itself", move_mount_(m, "", m, "", F_EMPTY | T_EMPTY));
	err("move", move_mount_(m, "", AT_FDCWD, "m", F_EMPTY));
	line("m");
	struct statfs sf;
	statfs("m", &sf);
	num("blocks", sf.f_blocks * sf.f_bsize);
	struct stat st;
	stat("m", &st);
	say("mode %o", st.st_mode);
	stat("m/file", &st);
	num("size", st.st_size);
	err("busy while the descriptor is open", umount("m"));
	close(m);
	err("umount", umount("m"));
	line("m");
	// What is not mounted ends with the descriptor.
	fd = made(NULL);
	m = must(fsmount_(fd, 0, 0), "fsmount");
	f = openat(m, "file", O_CREAT | O_RDWR, 0600);
	close(m);
	num("write after", write(f, "x", 1));
	char link[40];
	snprintf(link, sizeof link, "/proc/self/fd/%d", f);
	err("reopen after", open(link, O_RDONLY));
	close(f);
	close(fd);
}

TEST(trees, "copies of trees")
{
	mkdir("a", 0755), mkdir("b", 0755);
	must(mount("outer", "a", "tmpfs", MS_NODEV, NULL), "mount");
	mount(NULL, "a", NULL, MS_PRIVATE, NULL);
	mkdir("a/sub", 0755);
	must(mount("inner", "a/sub", "tmpfs", 0, NULL), "mount");
	mount(NULL, "a/sub", NULL, MS_PRIVATE, NULL);
	file_at("a/one"), file_at("a/sub/two");

	int t = err("one", open_tree_(AT_FDCWD, "a", CLONE));
	err("its file", faccessat(t, "one", F_OK, 0));
	err("what is mounted below", faccessat(t, "sub/two", F_OK, 0));
	close(t);
	t = err("all", open_tree_(AT_FDCWD, "a", CLONE | RECURSIVE));
	err("what is mounted below", faccessat(t, "sub/two", F_OK, 0));
	err("busy", umount("a/sub"));
	err("move", move_mount_(t, "", AT_FDCWD, "b", F_EMPTY));
	line("b"), line("b/sub");
	err("move a mount by its path", move_mount_(AT_FDCWD, "b/sub", AT_FDCWD, "b/one", 0));
	mkdir("b/new", 0755);
	err("to a directory", move_mount_(AT_FDCWD, "b/sub", AT_FDCWD, "b/new", 0));
	line("b/sub"), line("b/new");
	err("below itself", move_mount_(AT_FDCWD, "b", AT_FDCWD, "b/new", 0));
	close(t);
	t = err("not a copy", open_tree_(AT_FDCWD, "b", 0));
	err("move", move_mount_(t, "", AT_FDCWD, "a", F_EMPTY));
	line("b"), line("a"), line("a/new");
	close(t);
	err("umount", umount2("a", MNT_DETACH));
	err("umount", umount2("a", MNT_DETACH));
	line("a");
	// A copy that nobody mounts goes with its descriptor, and with what is below.
	must(mount("outer", "a", "tmpfs", 0, NULL), "mount");
	mount(NULL, "a", NULL, MS_PRIVATE, NULL);
	mkdir("a/sub", 0755);
	must(mount("inner", "a/sub", "tmpfs", 0, NULL), "mount");
	mount(NULL, "a/sub", NULL, MS_PRIVATE, NULL);
	close(must(open_tree_(AT_FDCWD, "a", CLONE | RECURSIVE), "open_tree"));
	t = must(open_tree_(AT_FDCWD, "a", CLONE | RECURSIVE), "open_tree");
	int f = openat(t, "sub/file", O_CREAT | O_RDWR, 0600);
	close(t);
	num("write after", write(f, "x", 1));
	err("the tree it was of", access("a/sub/file", F_OK));
	close(f);
	err("umount", umount("a/sub"));
	err("umount", umount("a"));
	file_at("a/plain"), file_at("b/plain");
	t = err("of a file", open_tree_(AT_FDCWD, "a/plain", CLONE));
	err("on a directory", move_mount_(t, "", AT_FDCWD, "b", F_EMPTY));
	err("on a file", move_mount_(t, "", AT_FDCWD, "b/plain", F_EMPTY));
	num("a mount of its own", open_tree_(AT_FDCWD, "b/plain", 0) >= 0 && unlink("b/plain") < 0 && errno == EBUSY);
	close(t);
	err("umount", umount2("b/plain", MNT_DETACH));
}

TEST(attributes, "mount_setattr")
{
	mkdir("m", 0755);
	int m = must(fsmount_(made("it"), 0, 0), "fsmount");
	struct attr a = {.set = 0x1 | 0x8};
	err("of a loose mount", setattr_(m, "", AT_EMPTY_PATH, &a, sizeof a));
	err("create", openat(m, "x", O_CREAT, 0600));
	err("move", move_mount_(m, "", AT_FDCWD, "m", F_EMPTY));
	close(m);
	line("m");
	a = (struct attr){.clear = 0x1, .set = 0x2 | 0x80 | 0x200000};
	err("change", setattr_(AT_FDCWD, "m", 0, &a, sizeof a));
	line("m");
	symlink("nowhere", "m/link");
	err("through a link", open("m/link", O_RDONLY));
	a = (struct attr){.clear = 0x70, .set = 0x10};
	err("noatime", setattr_(AT_FDCWD, "m", 0, &a, sizeof a));
	line("m");
	a = (struct attr){.clear = 0x70, .set = 0x20};
	err("strictatime", setattr_(AT_FDCWD, "m", 0, &a, sizeof a));
	line("m");
	a = (struct attr){.clear = 0x70 | 0x2 | 0x8 | 0x80 | 0x200000};
	err("all cleared", setattr_(AT_FDCWD, "m", 0, &a, sizeof a));
	line("m");
	a = (struct attr){.propagation = MS_PRIVATE};
	err("private", setattr_(AT_FDCWD, "m", 0, &a, sizeof a));
	mkdir("m/sub", 0755);
	must(mount("sub", "m/sub", "tmpfs", 0, NULL), "mount");
	int f = open("m/sub/file", O_CREAT | O_RDWR, 0600);
	a = (struct attr){.set = 0x1};
	err("all read-only", setattr_(AT_FDCWD, "m", RECURSIVE, &a, sizeof a));
	line("m"), line("m/sub");
	close(f);
	err("all read-only", setattr_(AT_FDCWD, "m", RECURSIVE, &a, sizeof a));
	line("m"), line("m/sub");
	err("mkdir", mkdir("m/sub/x", 0755));
	a = (struct attr){.clear = 0x1};
	err("one writable", setattr_(AT_FDCWD, "m/sub", 0, &a, sizeof a));
	err("mkdir", mkdir("m/sub/x", 0755));
	err("mkdir above", mkdir("m/x", 0755));
	err("no mount", setattr_(AT_FDCWD, "m/sub/x", 0, &a, sizeof a));
	err("umount", umount("m/sub"));
	err("umount", umount("m"));
}

TEST(changes, "a file system that is changed")
{
	mkdir("m", 0755);
	must(mount("it", "m", "tmpfs", 0, "size=1M"), "mount");
	int fd = err("fspick", fspick_(AT_FDCWD, "m", 1));
	num("close on exec", fcntl(fd, F_GETFD));
	err("create", fsconfig_(fd, CREATE, NULL, NULL, 0));
	err("size", fsconfig_(fd, STRING, "size", "2M", 0));
	err("ro", fsconfig_(fd, FLAG, "ro", NULL, 0));
	err("fsmount", fsmount_(fd, 0, 0) == -1 && errno != EINVAL ? (errno = 0, 0) : 0);
	err("reconfigure", fsconfig_(fd, RECONFIGURE, NULL, NULL, 0));
	struct statfs sf;
	statfs("m", &sf);
	num("blocks", sf.f_blocks * sf.f_bsize);
	err("mkdir", mkdir("m/x", 0755));
	err("rw", fsconfig_(fd, FLAG, "rw", NULL, 0));
	err("reconfigure", fsconfig_(fd, RECONFIGURE, NULL, NULL, 0));
	err("mkdir", mkdir("m/x", 0755));
	close(fd);
	int f = open("m/file", O_CREAT | O_RDWR, 0600);
	fd = must(fspick_(AT_FDCWD, "m", 0), "fspick");
	err("ro", fsconfig_(fd, FLAG, "ro", NULL, 0));
	err("while a file is open for writing", fsconfig_(fd, RECONFIGURE, NULL, NULL, 0));
	err("after that failed", fsconfig_(fd, FLAG, "ro", NULL, 0));
	close(fd), close(f);
	// The descriptor of fsmount's file system goes on as fspick's.
	umount("m");
	fd = made("it");
	int m = must(fsmount_(fd, 0, 0), "fsmount");
	err("move", move_mount_(m, "", AT_FDCWD, "m", F_EMPTY));
	err("ro", fsconfig_(fd, FLAG, "ro", NULL, 0));
	err("reconfigure", fsconfig_(fd, RECONFIGURE, NULL, NULL, 0));
	err("mkdir", mkdir("m/x", 0755));
	close(m), close(fd);
	err("umount", umount("m"));
}
