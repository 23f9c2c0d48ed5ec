// The table of paths: each kind of path with each call that takes one.
#include "files.h"
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/xattr.h>

static const char *path;
static char long_name[300], long_path[5000], deep_path[4096];

// wipe empties a directory.
static void wipe(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		char name[600];
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%s/%s", dir, e->d_name);
		if (unlink(name) == 0)
			continue;
		wipe(name);
		rmdir(name);
	}
	if (d)
		closedir(d);
}

// A kind of path is made by a subject whose descriptor nobody uses.
static void scene(subject *s, const char *p)
{
	wipe(work);
	mkdir("dir", 0755), mkdir("secret", 0700), mkdir("empty", 0777), mkdir("sticky", 01777), chmod("empty", 0777), chmod("sticky", 01777);
	static const char *const files[] = {"file", "dir/file", "secret/file", "sticky/file"};
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		int fd = open(files[i], O_CREAT | O_WRONLY | O_TRUNC, 0644);
		if (write(fd, "0123456789", 10) != 10)
			must(-1, "write");
		close(fd);
	}
	must(symlink("file", "link"), "symlink");
	symlink("nowhere", "dangling"), symlink("loop", "loop"), symlink("dir", "dirlink"), symlink("file/", "filelink");
	mkfifo("fifo", 0644);
	chown(work, 0, 0), chmod(work, 0777), chown("/tmp", 0, 0), chmod("/tmp", 01777);
	path = p;
	s->nofile = 1;
}

#define PATH_KIND(name, text) \
	static void name(subject *s) { scene(s, text); }
PATH_KIND(p_file, "file")
PATH_KIND(p_dir, "dir")
PATH_KIND(p_empty_dir, "empty")
PATH_KIND(p_dir_slash, "dir/")
PATH_KIND(p_dir_dot, "dir/.")
PATH_KIND(p_dir_dots, "dir/..")
PATH_KIND(p_file_slash, "file/")
PATH_KIND(p_file_dot, "file/.")
PATH_KIND(p_file_dots, "file/..")
PATH_KIND(p_file_below, "file/x")
PATH_KIND(p_missing, "missing")
PATH_KIND(p_missing_slash, "missing/")
PATH_KIND(p_missing_below, "missing/x")
PATH_KIND(p_link, "link")
PATH_KIND(p_link_slash, "link/")
PATH_KIND(p_link_below, "link/x")
PATH_KIND(p_dirlink, "dirlink")
PATH_KIND(p_dirlink_slash, "dirlink/")
PATH_KIND(p_dangling, "dangling")
PATH_KIND(p_dangling_slash, "dangling/")
PATH_KIND(p_loop, "loop")
PATH_KIND(p_loop_below, "loop/x")
PATH_KIND(p_filelink, "filelink")
PATH_KIND(p_secret, "secret/file")
PATH_KIND(p_secret_new, "secret/x")
PATH_KIND(p_sticky, "sticky/file")
PATH_KIND(p_fifo, "fifo")
PATH_KIND(p_dot, ".")
PATH_KIND(p_dots, "..")
PATH_KIND(p_root, "/")
PATH_KIND(p_slashes, "//tmp///abi//file")
PATH_KIND(p_empty, "")
PATH_KIND(p_bad, bad)
PATH_KIND(p_null, NULL)
PATH_KIND(p_ro_file, "/tmp/ro/file")
PATH_KIND(p_ro_dir, "/tmp/ro/dir")
PATH_KIND(p_ro_missing, "/tmp/ro/missing")
PATH_KIND(p_mount, "/tmp/ro")
PATH_KIND(p_device, "/dev/null")
PATH_KIND(p_proc, "/proc/self/status")
PATH_KIND(p_proc_exe, "/proc/self/cwd")
PATH_KIND(p_sys, "/sys/devices/system/cpu/online")
PATH_KIND(p_proc_missing, "/proc/missing")
PATH_KIND(p_proc_pid, "/proc/4194304/stat")
PATH_KIND(p_sys_missing, "/sys/missing")
PATH_KIND(p_dev_pts, "/dev/pts/x")

static void p_long_name(subject *s)
{
	memset(long_name, 'n', 256);
	scene(s, long_name);
}

static void p_name_255(subject *s)
{
	memset(long_name, 'n', 299), long_name[255] = 0;
	scene(s, long_name);
	long_name[255] = 'n';
	static char name[256];
	memset(name, 'n', 255);
	path = name;
}

static void p_long_path(subject *s)
{
	for (int i = 0; i < 4998; i += 2)
		memcpy(long_path + i, "./", 2);
	scene(s, long_path);
}

static void p_path_4095(subject *s)
{
	for (int i = 0; i < 4090; i += 2)
		memcpy(deep_path + i, "./", 2);
	strcpy(deep_path + 4090, "/file");
	scene(s, deep_path);
}

static void p_ext4(subject *s)
{
	scene(s, "/tmp/disk/abi/new");
	unlink(path), rmdir(path);
}

static const kind path_kinds[] = {
	{"file", p_file}, {"dir", p_dir}, {"emptydir", p_empty_dir}, {"dir/", p_dir_slash}, {"dir/.", p_dir_dot}, {"dir/..", p_dir_dots},
	{"file/", p_file_slash}, {"file/.", p_file_dot}, {"file/..", p_file_dots}, {"file/x", p_file_below}, {"missing", p_missing},
	{"missing/", p_missing_slash}, {"missing/x", p_missing_below}, {"link", p_link}, {"link/", p_link_slash}, {"link/x", p_link_below},
	{"dirlink", p_dirlink}, {"dirlink/", p_dirlink_slash}, {"dangling", p_dangling}, {"dangling/", p_dangling_slash}, {"loop", p_loop},
	{"loop/x", p_loop_below}, {"filelink", p_filelink}, {"secret/file", p_secret}, {"secret/x", p_secret_new}, {"sticky/file", p_sticky},
	{"fifo", p_fifo}, {".", p_dot}, {"..", p_dots}, {"root", p_root}, {"slashes", p_slashes}, {"empty", p_empty}, {"bad", p_bad}, {"null", p_null},
	{"ro-file", p_ro_file}, {"ro-dir", p_ro_dir}, {"ro-missing", p_ro_missing}, {"mount", p_mount}, {"device", p_device},
	{"proc-status", p_proc}, {"proc-cwd", p_proc_exe}, {"sys-online", p_sys}, {"proc-missing", p_proc_missing}, {"proc-pid", p_proc_pid},
	{"sys-missing", p_sys_missing}, {"pts-missing", p_dev_pts}, {"name256", p_long_name}, {"name255", p_name_255}, {"path4999", p_long_path},
	{"path4095", p_path_4095}, {"ext4-new", p_ext4},
	{},
};

// shared says that the path names what other cases need.
static int needed(void)
{
	return path && path != bad && (path[0] == '/' && strncmp(path, "/tmp/", 5) && strncmp(path, "//", 2));
}

static void opened(long fd)
{
	result(fd >= 0 ? 0 : fd);
	if (fd >= 0)
		note("%lo", S(fcntl, fd, F_GETFL)), close(fd);
}

static void path_open(subject *s)
{
	static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_CREAT | O_EXCL, O_CREAT | O_WRONLY, O_CREAT | O_DIRECTORY, O_DIRECTORY,
				    O_NOFOLLOW, O_PATH, O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY, O_TMPFILE | O_RDWR, O_TMPFILE | O_RDONLY, O_TRUNC | O_WRONLY,
				    O_CREAT | O_NOFOLLOW, O_CREAT | O_EXCL | O_NOFOLLOW, O_CREAT | O_TRUNC | O_RDWR, O_APPEND | O_WRONLY, O_NOATIME, O_DIRECT, O_TMPFILE | O_EXCL | O_WRONLY, O_ACCMODE};
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
		CASE("%o", flags[i]) opened(S(openat, AT_FDCWD, P(path), flags[i] | O_NONBLOCK, 0644));
	EACH(bit, 11, 31, "bit") opened(S(openat, AT_FDCWD, P(path), 1L << bit | O_NONBLOCK, 0644));
	CASE("creat") opened(needed() ? -2 : S(creat, P(path), 0600));
	CASE("mode") opened(S(openat, AT_FDCWD, P(path), O_CREAT | O_EXCL, 0177777));
	CASE("badfd") opened(S(openat, -1, P(path), O_RDONLY | O_NONBLOCK));
	CASE("filefd") opened(S(openat, 0, P(path), O_RDONLY | O_NONBLOCK));
}

static void path_openat2(subject *s)
{
	struct open_how how = {O_RDONLY | O_NONBLOCK};
	EACH(resolve, 0, 31, "resolve") how.resolve = resolve, opened(S(openat2, AT_FDCWD, P(path), P(&how), sizeof how));
	CASE("mode") how.mode = 0644, opened(S(openat2, AT_FDCWD, P(path), P(&how), sizeof how));
	CASE("size0") opened(S(openat2, AT_FDCWD, P(path), P(&how), 0));
	CASE("size23") opened(S(openat2, AT_FDCWD, P(path), P(&how), 23));
	CASE("size32") memset(buffer, 0, 64), opened(S(openat2, AT_FDCWD, P(path), P(buffer), 32));
	CASE("size32more") memset(buffer, 0, 64), buffer[30] = 1, opened(S(openat2, AT_FDCWD, P(path), P(buffer), 32));
	CASE("size5000") opened(S(openat2, AT_FDCWD, P(path), P(buffer), 5000));
	CASE("bad") opened(S(openat2, AT_FDCWD, P(path), P(bad), sizeof how));
	for (int bit = 23; bit < 64; bit += 3)
		CASE("bit%d", bit) how.flags = 1L << bit, opened(S(openat2, AT_FDCWD, P(path), P(&how), sizeof how));
}

static void path_stat(subject *s)
{
	struct stat st;
	struct statx x;
	CASE("stat") result(S(stat, P(path), P(&st))) == 0 ? note("%o", st.st_mode) : (void)0;
	CASE("lstat") result(S(lstat, P(path), P(&st))) == 0 ? note("%o", st.st_mode) : (void)0;
	CASE("statbad") result(S(stat, P(path), P(bad)));
	EACH(bit, 0, 31, "flag") result(S(newfstatat, AT_FDCWD, P(path), P(&st), 1L << bit));
	EACH(bit, 0, 31, "statx") result(S(statx, AT_FDCWD, P(path), 1L << bit, 0xfff, P(&x)));
	CASE("badfd") result(S(newfstatat, -1, P(path), P(&st), 0));
	EACH(mode, 0, 8, "access") result(S(access, P(path), mode));
	EACH(bit, 0, 31, "access2") result(S(faccessat2, AT_FDCWD, P(path), 0, 1L << bit));
	CASE("statfs") result(S(statfs, P(path), P(buffer)));
	CASE("statfsbad") result(S(statfs, P(path), P(bad)));
	CASE("readlink") note_bytes(buffer, result(S(readlink, P(path), P(buffer), 20)));
	CASE("readlink3") note_bytes(buffer, result(S(readlink, P(path), P(buffer), 3)));
	CASE("readlink0") result(S(readlink, P(path), P(buffer), 0));
	CASE("readlink-1") result(S(readlink, P(path), P(buffer), -1));
	CASE("readlinkbad") result(S(readlink, P(path), P(bad), 20));
	CASE("chdir") result(S(chdir, P(path))), chdir(work);
	CASE("getxattr") result(S(getxattr, P(path), P("user.a"), P(buffer), 10));
	CASE("lgetxattr") result(S(lgetxattr, P(path), P("trusted.a"), P(buffer), 10));
	CASE("listxattr") result(S(listxattr, P(path), P(buffer), 100));
	CASE("watch") result(S(inotify_add_watch, inotify_init1(0), P(path), 1));
	EACH(bit, 0, 31, "handle") *(int *)buffer = 128, result(S(name_to_handle_at, AT_FDCWD, P(path), P(buffer), P(buffer + 1000), 1L << bit));
}

static void path_change(subject *s)
{
	struct timespec t[2] = {{1, 0}, {2, 0}};
	if (needed())
		return;
	CASE("chmod") result(S(chmod, P(path), 0600));
	CASE("chown") result(S(chown, P(path), -1, -1));
	CASE("chownuser") result(S(chown, P(path), 1000, 1000));
	CASE("lchown") result(S(lchown, P(path), 1000, 1000));
	EACH(bit, 0, 31, "chownat") result(S(fchownat, AT_FDCWD, P(path), -1, -1, 1L << bit));
	EACH(bit, 0, 31, "times") result(S(utimensat, AT_FDCWD, P(path), P(t), 1L << bit));
	CASE("utime") result(S(utime, P(path), 0));
	CASE("utimes") result(S(utimes, P(path), P(t)));
	CASE("utimenull") result(S(utimensat, AT_FDCWD, P(path), 0, 0));
	CASE("truncate") result(S(truncate, P(path), 5));
	CASE("truncate-1") result(S(truncate, P(path), -1));
	CASE("setxattr") result(S(setxattr, P(path), P("user.a"), P("b"), 1, 0));
	CASE("lsetxattr") result(S(lsetxattr, P(path), P("user.a"), P("b"), 1, 0));
	CASE("setxattr-trusted") result(S(lsetxattr, P(path), P("trusted.a"), P("b"), 1, 0));
	CASE("removexattr") result(S(removexattr, P(path), P("user.a")));
}

static void path_names(subject *s)
{
	if (needed())
		return;
	CASE("mkdir") result(S(mkdir, P(path), 0777));
	CASE("mkdirmode") result(S(mkdir, P(path), 07777));
	CASE("rmdir") result(S(rmdir, P(path)));
	CASE("unlink") result(S(unlink, P(path)));
	EACH(bit, 0, 31, "unlinkat") bit == 9 ? (void)0 : (void)result(S(unlinkat, AT_FDCWD, P(path), 1L << bit));
	CASE("mknodfifo") result(S(mknod, P(path), S_IFIFO | 0644, 0));
	CASE("mknodfile") result(S(mknod, P(path), 0644, 0));
	CASE("mknodsock") result(S(mknod, P(path), S_IFSOCK | 0644, 0));
	CASE("mknodchr") result(S(mknod, P(path), S_IFCHR | 0644, 0x103));
	CASE("mknodblk") result(S(mknod, P(path), S_IFBLK | 0644, 0x103));
	CASE("mknoddir") result(S(mknod, P(path), S_IFDIR | 0644, 0));
	CASE("mknodlnk") result(S(mknod, P(path), S_IFLNK | 0644, 0));
	CASE("mknod70000") result(S(mknod, P(path), 0070644, 0));
	CASE("symlink") result(S(symlink, P("target"), P(path)));
	CASE("symlinkempty") result(S(symlink, P(""), P(path)));
	CASE("symlinkto") result(S(symlink, P(path), P("made")));
	CASE("link") result(S(link, P("file"), P(path)));
	CASE("linkfrom") result(S(link, P(path), P("made")));
	CASE("linkdir") result(S(link, P("dir"), P(path)));
	EACH(bit, 0, 31, "linkflag") result(S(linkat, AT_FDCWD, P(path), AT_FDCWD, P("made"), 1L << bit)), unlink("made");
	CASE("renamefrom") result(S(rename, P(path), P("made")));
	CASE("renamefile") result(S(rename, P("file"), P(path)));
	CASE("renamedir") result(S(rename, P("dir"), P(path)));
	CASE("renameempty") result(S(rename, P("empty"), P(path)));
	CASE("renameself") result(S(rename, P(path), P(path)));
	CASE("renamemissing") result(S(rename, P("missing"), P(path)));
	CASE("renameinto") result(S(rename, P("dir"), P("dir/made")));
	for (int flags = 1; flags < 9; flags++)
		CASE("rename2-%d", flags) result(S(renameat2, AT_FDCWD, P("file"), AT_FDCWD, P(path), flags));
	for (int flags = 1; flags < 9; flags++)
		CASE("rename2from%d", flags) result(S(renameat2, AT_FDCWD, P(path), AT_FDCWD, P("other"), flags));
	EACH(bit, 3, 31, "renamebit") result(S(renameat2, AT_FDCWD, P("file"), AT_FDCWD, P(path), 1L << bit));
}

static void path_others(subject *s)
{
	char *argv[] = {"x", NULL};
	struct sockaddr_un a = {AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (path && path != bad)
		strncpy(a.sun_path, path, 107);
	CASE("exec") result(S(execve, P(path), P(argv), P(argv + 1)));
	EACH(bit, 0, 31, "execveat") result(S(execveat, AT_FDCWD, P(path), P(argv), P(argv + 1), 1L << bit));
	CASE("connect") result(S(connect, fd, P(&a), sizeof a));
	if (needed())
		return;
	CASE("bind") result(S(bind, fd, P(&a), sizeof a));
	if (path && path != bad && path[0] && path[strlen(path) - 1] == '.')
		return; // it would be covered for all that follows
	CASE("mountmissing") result(S(mount, P("none"), P(path), P("nosuch"), 0, 0));
	CASE("mount") result(S(mount, P("none"), P(path), P("tmpfs"), 0, 0)), umount2(path, MNT_DETACH);
	CASE("bindfrom") result(S(mount, P(path), P("empty"), 0, MS_BIND, 0)), umount2("empty", MNT_DETACH);
	CASE("bindto") result(S(mount, P("empty"), P(path), 0, MS_BIND, 0)), umount2(path, MNT_DETACH);
	CASE("swapon") result(S(swapon, P(path), 0));
	CASE("swapoff") result(S(swapoff, P(path)));
}

static const call calls[] = {
	{"open", path_open, 1}, {"openat2", path_openat2, 1}, {"stat", path_stat, 1}, {"change", path_change, 1}, {"names", path_names, 1},
	{"others", path_others, 1},
	{},
};

const table paths_table = {"paths", path_kinds, calls};
