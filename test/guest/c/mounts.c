// Mounting: flags and what they forbid, binds, moves, remounts, expiry, and what umount
// and mount refuse.
#include "gt.h"
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

// apart keeps the mounts of a test to itself where that can be had.
static void apart(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void flags(const char *path)
{
	struct statfs s;
	must(statfs(path, &s), "statfs");
	say("%s: flags %lx", path, s.f_flags & 0x3fff);
}

static void tmpfs(const char *at, unsigned long f)
{
	mkdir(at, 0755);
	must(mount("none", at, "tmpfs", f, "mode=755"), "mount");
}

static void touch(const char *path) { close(open(path, O_CREAT | O_RDWR, 0755)); }

TEST(errors, "what mount and umount refuse")
{
	apart();
	mkdir("d", 0755), mkdir("e", 0755);
	touch("f");
	symlink("d", "l");
	err("no such type", mount("none", "d", "nosuchfs", 0, NULL));
	err("no type", mount("none", "d", NULL, 0, NULL));
	err("no directory", mount("none", "none", "tmpfs", 0, NULL));
	err("on a file", mount("none", "f", "tmpfs", 0, NULL));
	err("bad option", mount("none", "d", "tmpfs", 0, "nosuch=1"));
	err("bad size", mount("none", "d", "tmpfs", 0, "size=x"));
	err("bad strings", mount((void *)8, "d", "tmpfs", 0, NULL));
	err("bad target", mount("none", (void *)8, "tmpfs", 0, NULL));
	err("bad type", mount("none", "d", (void *)8, 0, NULL));
	err("no device", mount("none", "d", "ext4", 0, NULL));
	err("device is a file", mount("f", "d", "ext4", 0, NULL));
	err("bind of nothing", mount(NULL, "d", NULL, MS_BIND, NULL));
	err("bind of none", mount("none", "d", NULL, MS_BIND, NULL));
	err("bind of a file on a directory", mount("f", "d", NULL, MS_BIND, NULL));
	err("bind of a directory on a file", mount("d", "f", NULL, MS_BIND, NULL));
	err("remount of no mount", mount("none", "d", NULL, MS_REMOUNT, NULL));
	err("remount bind of no mount", mount("none", "d", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	err("propagation of no mount", mount("none", "d", NULL, MS_PRIVATE, NULL));
	err("move of no mount", mount("d", "e", NULL, MS_MOVE, NULL));
	err("umount of no mount", umount("d"));
	err("umount of none", umount("none"));
	err("umount of a file", umount("f"));
	err("umount bad flags", umount2("d", 0x100));
	err("umount bad address", umount((void *)8));
	tmpfs("d", 0);
	err("two propagations", mount("none", "d", NULL, MS_PRIVATE | MS_SHARED, NULL));
	err("propagation and more", mount("none", "d", NULL, MS_PRIVATE | MS_RDONLY, NULL));
	err("private", mount("none", "d", NULL, MS_PRIVATE, NULL));
	err("expire and detach", umount2("d", MNT_EXPIRE | MNT_DETACH));
	err("expire and force", umount2("d", MNT_EXPIRE | MNT_FORCE));
	err("through a link, no follow", umount2("l", UMOUNT_NOFOLLOW));
	IN_CHILD("as another", setresuid(1000, 1000, 1000); err("mount", mount("none", "e", "tmpfs", 0, NULL)); err("umount", umount("d"));
		 err("mount on none", mount("none", "none", "tmpfs", 0, NULL)); err("umount none", umount("none")));
	err("rename", rename("d", "x"));
	err("rmdir", rmdir("d"));
	int fd = open("d", O_RDONLY);
	err("busy", umount("d"));
	close(fd);
	chdir("d");
	err("busy", umount("../d"));
	chdir("..");
	err("through a link", umount("l"));
	err("again", umount("d"));
}

TEST(obeyed, "flags")
{
	apart();
	tmpfs("m", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME);
	flags("m");
	mknod("m/null", S_IFCHR | 0666, 0x103);
	err("device", open("m/null", O_RDWR));
	touch("m/x");
	symlink("x", "m/l");
	err("run", execl("m/x", "x", NULL));
	err("access", access("m/x", X_OK));
	err("access directory", access("m", X_OK));
	int fd = open("m/x", O_RDWR);
	ftruncate(fd, 4096);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	err("map to run", p == MAP_FAILED ? -1 : 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	err("protect to run", mprotect(p, 4096, PROT_READ | PROT_EXEC));
	close(fd);
	err("remount", mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	flags("m");
	err("write", open("m/x", O_RDWR));
	err("create", open("m/y", O_CREAT | O_RDONLY, 0644));
	err("create existing", open("m/x", O_CREAT | O_RDONLY, 0644));
	err("truncate", truncate("m/x", 0));
	err("mkdir", mkdir("m/y", 0755));
	err("mkdir existing", mkdir("m/x", 0755));
	err("unlink", unlink("m/x"));
	err("unlink none", unlink("m/none"));
	err("rename", rename("m/x", "m/y"));
	err("link", link("m/x", "m/y"));
	err("symlink", symlink("m/x", "m/y"));
	err("chmod", chmod("m/x", 0700));
	err("chown", chown("m/x", 1, 1));
	err("times", utimes("m/x", NULL));
	err("attribute", setxattr("m/x", "user.x", "y", 1, 0));
	err("remove attribute", removexattr("m/x", "user.x"));
	err("access", access("m/x", W_OK));
	err("O_TMPFILE", open("m", O_TMPFILE | O_RDWR, 0644));
	err("mknod", mknod("m/q", S_IFIFO | 0644, 0));
	err("remount", mount("none", "m", NULL, MS_REMOUNT, NULL));
	flags("m");
	fd = open("m/x", O_RDWR);
	err("remount busy", mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	err("remount bind busy", mount("none", "m", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	close(fd);
	err("remount bind", mount("none", "m", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOEXEC, NULL));
	flags("m");
	err("write", open("m/x", O_RDWR));
	err("no links", mount("none", "m", NULL, MS_REMOUNT | MS_BIND | 256, NULL));
	flags("m");
	err("through a link", open("m/l", O_RDONLY));
	err("strict", mount("none", "m", NULL, MS_REMOUNT | MS_BIND | MS_STRICTATIME, NULL));
	flags("m");
	err("nothing said", mount("none", "m", NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL));
	flags("m");
	err("umount", umount("m"));
}

TEST(binds, "binds and moves")
{
	apart();
	tmpfs("a", 0);
	mkdir("a/sub", 0755), mkdir("a/in", 0755), mkdir("b", 0755), mkdir("c", 0755);
	touch("a/f");
	touch("file");
	tmpfs("a/in", 0);
	touch("a/in/deep");
	err("bind", mount("a", "b", NULL, MS_BIND, NULL));
	err("plain", access("b/in/deep", F_OK));
	err("read-only", mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	err("here", open("b/f", O_RDWR));
	err("there", open("a/f", O_RDWR));
	err("across", rename("a/f", "b/g"));
	err("across", link("a/f", "b/g"));
	err("umount", umount("b"));
	err("recursive", mount("a", "b", NULL, MS_BIND | MS_REC, NULL));
	err("deep", access("b/in/deep", F_OK));
	err("busy", umount("b"));
	err("detach", umount2("b", MNT_DETACH));
	err("deep", access("b/in/deep", F_OK));
	err("still there", access("a/in/deep", F_OK));
	err("file", mount("a/f", "file", NULL, MS_BIND, NULL));
	err("its unlink", unlink("file"));
	err("file", umount("file"));
	err("move", mount("a", "c", NULL, MS_MOVE, NULL));
	err("moved", access("c/in/deep", F_OK));
	err("gone", access("a/f", F_OK));
	err("into itself", mount("c", "c/sub", NULL, MS_MOVE, NULL));
	err("on a file", mount("c", "file", NULL, MS_MOVE, NULL));
	err("back", mount("c", "a", NULL, MS_MOVE, NULL));
	err("deep", access("a/in/deep", F_OK));
	err("two on one", mount("none", "a", "tmpfs", 0, NULL));
	err("covered", access("a/f", F_OK));
	err("top", umount("a"));
	err("uncovered", access("a/f", F_OK));
	err("below first", umount("a"));
	err("inner", umount("a/in"));
	err("outer", umount("a"));
}

TEST(dot, "umount of where one is")
{
	apart();
	tmpfs("m", 0);
	chdir("m");
	touch("f");
	err("busy", umount2(".", 0));
	err("detach", umount2(".", MNT_DETACH));
	err("still here", access("f", F_OK));
	err("create", open("g", O_CREAT | O_RDWR, 0644));
	err("again", umount2(".", MNT_DETACH));
	char b[200];
	long n = syscall(SYS_getcwd, b, sizeof b);
	say("%d", n > 0 && strncmp(b, "(unreachable)", 13) == 0);
	chdir("/");
}

TEST(covered, "umount of what lies on the working directory")
{
	apart();
	mkdir("m", 0755);
	chdir("m");
	touch("under");
	must(mount("none", "../m", "tmpfs", 0, NULL), "mount");
	err("under", access("under", F_OK));
	err("detach", umount2(".", MNT_DETACH));
	err("gone", umount2("../m", MNT_DETACH));
}

TEST(expire, "MNT_EXPIRE")
{
	apart();
	tmpfs("m", 0);
	int fd = open("m", O_RDONLY);
	err("busy", umount2("m", MNT_EXPIRE));
	close(fd);
	err("marked", umount2("m", MNT_EXPIRE));
	close(open("m", O_RDONLY));
	err("used meanwhile", umount2("m", MNT_EXPIRE));
	err("unused", umount2("m", MNT_EXPIRE));
	err("gone", umount2("m", MNT_EXPIRE));
	err("root", umount2("/", MNT_EXPIRE));
}

TEST(doubling, "recursive binds that double")
{
	apart();
	tmpfs("m", 0);
	mkdir("m/a", 0755), mkdir("m/b", 0755);
	int n = 0, e = 0;
	for (int i = 0; i < 40; i++) {
		char path[64];
		snprintf(path, sizeof path, "m/d%d", i);
		if (mkdir(path, 0755) < 0 || mount("m", path, NULL, MS_BIND | MS_REC, NULL) < 0) {
			e = errno;
			break;
		}
		n++;
	}
	say("%s, %s", name_of(e), n >= 12 ? "after many" : "soon");
	err("detach", umount2("m", MNT_DETACH));
}
