// Program procchange tests what /proc and /sys answer to whoever wants to change them.
#include "perm.h"

#include <sys/xattr.h>

static const char *names[] = {"/proc/self", "/proc/1", "/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/77", "/proc/self/fdinfo",
	"/proc/self/task", "/proc/self/ns", "/proc/self/ns/net", "/proc/self/cwd", "/proc/self/exe", "/proc/self/comm", "/proc/self/x",
	"/proc/self/map_files", "/proc/self/net/dev", "/proc/net/tcp", "/proc/net/sockstat", "/proc/mounts", "/proc/version", "/proc/x",
	"/proc/sys", "/proc/sys/kernel", "/proc/sys/kernel/ostype", "/proc/sys/kernel/pid_max", "/proc/sys/x", "/proc/sysvipc/shm", "/proc/bus",
	"/sys/kernel", "/sys/kernel/x", "/sys/class/net", "/sys/devices/system/cpu/online", NULL};

static char line[4000];

static void add(const char *call, int rc)
{
	sprintf(line + strlen(line), " %s %s", call, rc >= 0 ? "ok" : strerrorname_np(errno));
	if (rc > 2)
		close(rc);
}

static void change(const char *n)
{
	char in[200], same[200];
	struct timespec old[2] = {{1, 1}, {2, 2}};
	struct stat st;
	int known = lstat(n, &st) == 0, link = known && S_ISLNK(st.st_mode);
	snprintf(in, sizeof in, "%s/new", n), snprintf(same, sizeof same, "%s-b", n);
	line[0] = 0;
	add("unlink", unlink(n)), add("rmdir", strncmp(n, "/sys", 4) ? rmdir(n) : 0), add("rename", rename(n, same));
	add("mkdir", mkdir(n, 0777)), add("symlink", symlink("x", n)), add("mknod", mknod(n, S_IFIFO | 0666, 0));
	add("creat", open(n, O_CREAT | O_EXCL | O_WRONLY, 0666)), add("tmpfile", open(n, O_TMPFILE | O_RDWR, 0666));
	add("trunc", open(n, O_TRUNC | O_RDONLY | O_NONBLOCK)), add("write", open(n, O_WRONLY | O_NONBLOCK));
	add("truncate", truncate(n, 0)), add("setxattr", lsetxattr(n, "user.a", "b", 1, 0));
	add("chown", fchownat(AT_FDCWD, n, 0, 0, AT_SYMLINK_NOFOLLOW)), add("chown-", fchownat(AT_FDCWD, n, -1, -1, AT_SYMLINK_NOFOLLOW));
	add("touch", utimensat(AT_FDCWD, n, NULL, AT_SYMLINK_NOFOLLOW)), add("times", utimensat(AT_FDCWD, n, old, AT_SYMLINK_NOFOLLOW));
	add("chmod", link ? 0 : chmod(n, known ? st.st_mode & 07777 : 0644)), add("access", access(n, W_OK));
	say("%s:%s", n, line);
	line[0] = 0;
	add("mkdir", mkdir(in, 0777)), add("creat", open(in, O_CREAT | O_WRONLY, 0666)), add("symlink", symlink("x", in)), add("unlink", unlink(in));
	strcpy(in + strlen(n), "/");
	add("unlink/", unlink(in));
	say("%s, in it:%s", n, line);
}

static void changes(void)
{
	close(0);
	must(open("file", O_CREAT | O_RDWR, 0666), "file");
	for (int i = 0; names[i]; i++)
		change(names[i]);
}

TEST(root, "by root") { changes(); }

TEST(user, "by a user")
{
	must(chmod(".", 0777), "chmod");
	become(USER, USER, 0);
	changes();
}

TEST(kept, "modes that stay")
{
	struct stat st;
	chmod("/proc/devices", 0400);
	stat("/proc/devices", &st);
	say("mode %o", st.st_mode);
	IN_CHILD("a user", {
		become(USER, USER, 0);
		err("open", open("/proc/devices", O_RDONLY));
	});
	must(chown("/proc/devices", USER, USER), "chown");
	stat("/proc/devices", &st);
	say("of %d %d", st.st_uid, st.st_gid);
	chown("/proc/devices", 0, 0);
	chmod("/proc/devices", 0444);
	stat("/proc/devices", &st);
	say("mode %o of %d %d", st.st_mode, st.st_uid, st.st_gid);
}
