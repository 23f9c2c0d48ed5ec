// Names: what every call says of every kind of name, alone and in pairs, with and without
// slashes behind, through links, too long, empty, gone.
#include "gt.h"
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

static char longest[256], longer[257], path[4200];
static const char *const names[] = {"f", "f/", "f/.", "f/x", "d", "d/", "d/.", "d/..", "d/e", "none", "none/", "none/x", "lf", "lf/", "ld", "ld/", "ln",
	"ln/", "loop", "loop/x", "p", "full", "full/x", "", ".", "..", longest, longer, path, "none/../f"};
enum { NAMES = sizeof names / sizeof *names };

static const char *shown(const char *name)
{
	return name == longest ? "(255)" : name == longer ? "(256)" : name == path ? "(4100)" : *name ? name : "(empty)";
}

static void touch(const char *name) { close(open(name, O_CREAT | O_RDWR, 0644)); }

static void make(void)
{
	memset(longest, 'n', 255), memset(longer, 'n', 256), memset(path, 'p', 4100);
	mkdir("d", 0755), mkdir("d/e", 0755), mkdir("full", 0755);
	touch("full/x"), touch("f"), touch(longest);
	symlink("f", "lf"), symlink("d", "ld"), symlink("none", "ln"), symlink("loop", "loop");
	mkfifo("p", 0644);
}

static void clear(const char *at)
{
	DIR *d = opendir(at);
	struct dirent *e;
	char name[600];
	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%s/%s", at, e->d_name);
		if (unlink(name) < 0) {
			clear(name);
			rmdir(name);
		}
	}
	if (d)
		closedir(d);
}

static void told(const char *call, const char *name, long rc)
{
	int e = errno;
	say("%s %s: %s", call, shown(name), rc < 0 ? name_of(e) : "ok");
}

// renewed tells of a call that changes names, and makes them again where it succeeded.
static void renewed(const char *call, const char *name, long rc)
{
	told(call, name, rc);
	if (rc < 0)
		return;
	if (rc > 2)
		close(rc);
	clear(".");
	make();
}

TEST(looked, "calls that look")
{
	make();
	struct stat st;
	struct statfs fs;
	struct timespec ts[2] = {{1, 2}, {3, 4}};
	char b[300];
	int here = open(".", O_RDONLY);
	for (int i = 0; i < NAMES; i++) {
		const char *n = names[i];
		told("stat", n, stat(n, &st));
		told("lstat", n, lstat(n, &st));
		told("access", n, access(n, R_OK));
		told("statfs", n, statfs(n, &fs));
		told("readlink", n, readlink(n, b, 100));
		told("truncate", n, truncate(n, 0));
		told("truncate to less than nothing", n, truncate(n, -1));
		told("chmod", n, chmod(n, 0755));
		told("lchown", n, lchown(n, -1, -1));
		told("utimensat", n, utimensat(AT_FDCWD, n, ts, AT_SYMLINK_NOFOLLOW));
		told("getxattr", n, lgetxattr(n, "user.none", b, 10));
		told("setxattr", n, lsetxattr(n, "user.x", "v", 1, 0));
		told("chdir", n, chdir(n));
		fchdir(here);
		told("of a bad descriptor", n, fstatat(999, n, &st, 0));
		told("of a file", n, fstatat(open("f", O_RDONLY), n, &st, 0));
	}
}

TEST(opened, "open")
{
	static const int flags[] = {O_RDONLY, O_WRONLY, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY, O_NOFOLLOW | O_DIRECTORY,
		O_RDWR | O_DIRECTORY, O_TRUNC, O_RDWR | O_TMPFILE, O_TMPFILE, O_RDWR | O_TMPFILE | O_EXCL, O_TMPFILE | O_RDWR | O_CREAT, 3, O_EXCL, O_PATH | O_CREAT};
	make();
	for (int i = 0; i < NAMES; i++)
		for (int k = 0; k < sizeof flags / sizeof *flags; k++) {
			char t[40];
			int fd = open(names[i], flags[k] | O_NONBLOCK, 0644), e = errno;
			sprintf(t, "open %o", flags[k]);
			errno = e;
			told(t, names[i], fd);
			if (fd >= 0)
				say("  %o", fcntl(fd, F_GETFL) & ~O_NONBLOCK & ~0100000), close(fd);
		}
}

TEST(made, "calls that make and remove")
{
	make();
	for (int i = 0; i < NAMES; i++) {
		const char *n = names[i];
		renewed("mkdir", n, mkdir(n, 0777));
		renewed("rmdir", n, rmdir(n));
		renewed("unlink", n, unlink(n));
		renewed("mkfifo", n, mknod(n, S_IFIFO | 0777, 0));
		renewed("mknod of a directory", n, mknod(n, S_IFDIR | 0644, 0));
		renewed("mknod of a link", n, mknod(n, S_IFLNK | 0644, 0));
		renewed("mknod of nothing", n, mknod(n, 0644, 7));
		renewed("symlink", n, symlink("f", n));
		renewed("symlink to it", n, symlink(n, "new"));
		renewed("O_CREAT", n, open(n, O_CREAT | O_RDWR | O_NONBLOCK, 0644));
		renewed("O_EXCL", n, open(n, O_CREAT | O_EXCL | O_RDWR, 0600));
		renewed("O_CREAT and O_DIRECTORY", n, open(n, O_CREAT | O_DIRECTORY | O_NONBLOCK, 0400));
		renewed("O_CREAT and O_NOFOLLOW", n, open(n, O_CREAT | O_NOFOLLOW | O_RDWR | O_NONBLOCK, 0400));
	}
}

static void pairs(const char *call, int (*f)(const char *, const char *))
{
	make();
	for (int i = 0; i < NAMES; i++)
		for (int k = i % 3; k < NAMES; k += 3) {
			char t[60];
			int rc = f(names[i], names[k]), e = errno;
			snprintf(t, sizeof t, "%s %s", call, shown(names[i]));
			errno = e;
			renewed(t, names[k], rc);
		}
}

static int keep(const char *a, const char *b) { return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE); }
static int swap(const char *a, const char *b) { return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE); }
static int follow(const char *a, const char *b) { return linkat(AT_FDCWD, a, AT_FDCWD, b, AT_SYMLINK_FOLLOW); }

TEST(renamed, "rename") { pairs("rename", rename); }
TEST(kept, "RENAME_NOREPLACE") { pairs("keep", keep); }
TEST(swapped, "RENAME_EXCHANGE") { pairs("swap", swap); }
TEST(linked, "link") { pairs("link", link); }
TEST(followed, "AT_SYMLINK_FOLLOW") { pairs("follow", follow); }

TEST(restricted, "openat2")
{
	static const uint64_t resolve[] = {0, RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_BENEATH | RESOLVE_IN_ROOT, 0x40};
	make();
	for (int i = 0; i < NAMES; i++)
		for (int k = 0; k < 8; k++) {
			struct open_how how = {.flags = O_RDONLY | O_NONBLOCK, .resolve = resolve[k]};
			char t[40];
			long fd = syscall(SYS_openat2, AT_FDCWD, names[i], &how, sizeof how);
			int e = errno;
			sprintf(t, "openat2 %lx", (long)resolve[k]);
			errno = e;
			told(t, names[i], fd);
			if (fd >= 0)
				close(fd);
		}
	struct open_how how = {.flags = O_RDWR | O_CREAT, .resolve = RESOLVE_CACHED};
	err("cached, creating", syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof how));
	how.flags = O_RDWR | O_TRUNC;
	err("cached, truncating", syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof how));
}

TEST(gone, "in a directory that is gone")
{
	char b[1000];
	make();
	chdir("d/e");
	rmdir("../../d/e");
	err("open", open("x", O_CREAT | O_RDWR, 0644));
	err("open .", open(".", O_RDONLY));
	err("mkdir", mkdir("x", 0755));
	num("getdents", syscall(SYS_getdents64, open(".", O_RDONLY), b, sizeof b));
	num("getcwd", syscall(SYS_getcwd, b, sizeof b));
	err("link", link("../../f", "x"));
	err("rename", rename("../../f", "x"));
	err("chdir .", chdir("."));
	err("rmdir .", rmdir("."));
	err("stat ..", stat("..", (void *)b));
}

TEST(deep, "in a directory whose name is longer than PATH_MAX")
{
	char name[201], b[8192];
	memset(name, 'n', 200);
	name[200] = 0;
	int depth = 0;
	for (; depth < 30; depth++) {
		if (mkdir(name, 0755) < 0 || chdir(name) < 0)
			break;
		if (depth != 17 && depth != 21)
			continue;
		int fd = open("f", O_CREAT | O_RDWR, 0644);
		char link[40];
		sprintf(link, "/proc/self/fd/%d", fd);
		err("getcwd", syscall(SYS_getcwd, b, sizeof b) < 0 ? -1 : 0);
		err("cwd", readlink("/proc/self/cwd", b, sizeof b) < 0 ? -1 : 0);
		err("fd", readlink(link, b, sizeof b) < 0 ? -1 : 0);
		err("unlink", unlink("f"));
		close(fd);
	}
	num("depth", depth);
	for (; depth > 0; depth--)
		if (chdir("..") < 0 || rmdir(name) < 0)
			break;
	num("left", depth);
}
