// Walks that have to stay in a directory, or on a mount, while that is moved away.
#include "gt.h"
#include <linux/openat2.h>
#include <sys/mount.h>

static int open2(int dir, const char *path, int flags, int resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};
	return syscall(SYS_openat2, dir, path, &how, sizeof how);
}

TEST(bind_mount, "a directory moved out of what a bind mount shows")
{
	must(mkdir("a", 0755), "mkdir"), must(mkdir("a/b", 0755), "mkdir"), must(mkdir("a/b/c", 0755), "mkdir");
	must(mkdir("out", 0755), "mkdir"), must(mkdir("m", 0755), "mkdir");
	must(mount("a/b", "m", NULL, MS_BIND, NULL), "mount");
	int back = must(open(".", O_RDONLY), "open");
	must(chdir("m/c"), "chdir");
	err("..", chdir(".."));
	must(chdir("c"), "chdir");
	must(renameat(back, "a/b/c", back, "out/c"), "rename");
	err("..", chdir(".."));
	err("../..", open("../../a", O_RDONLY));
	err(".", chdir("."));
	must(renameat(back, "out/c", back, "a/b/c"), "rename");
	err(".. again", chdir(".."));
	must(fchdir(back), "fchdir");
	err("umount", umount2("m", MNT_DETACH));
}

TEST(no_xdev, "RESOLVE_NO_XDEV and links of /proc")
{
	int d = must(open("/proc/self", O_PATH | O_DIRECTORY), "open");
	err("cwd", open2(d, "cwd", O_PATH, RESOLVE_NO_XDEV));
	err("through cwd", open2(d, "cwd/..", O_PATH, RESOLVE_NO_XDEV));
	err("exe", open2(d, "exe", O_PATH, RESOLVE_NO_XDEV));
	err("all", open2(d, "cwd", O_PATH, 0));
}

TEST(beneath, "RESOLVE_BENEATH and RESOLVE_IN_ROOT while directories move")
{
	must(mkdir("in", 0755), "mkdir"), must(mkdir("in/a", 0755), "mkdir"), must(mkdir("in/a/b", 0755), "mkdir");
	must(mkdir("out", 0755), "mkdir");
	close(must(open("secret", O_CREAT | O_RDWR, 0600), "open"));
	int d = must(open("in", O_PATH | O_DIRECTORY), "open");
	err("without a race", open2(d, "a/b/../../secret", O_RDONLY, RESOLVE_BENEATH));
	err("still in", open2(d, "a/b/../../a", O_RDONLY, RESOLVE_BENEATH));
	pid_t mover = FORK(for (;;) {
		rename("in/a", "out/a");
		rename("out/a", "in/a");
	});
	int escapes = 0;
	for (long long end = now_ms() + 500; now_ms() < end;) {
		int f = open2(d, "a/b/../../../secret", O_RDONLY, RESOLVE_BENEATH);
		int g = open2(d, "a/b/../../secret", O_RDONLY, RESOLVE_BENEATH);
		int h = open2(d, "a/b/../../secret", O_RDONLY, RESOLVE_IN_ROOT);
		escapes += (f >= 0) + (g >= 0) + (h >= 0);
		close(f), close(g), close(h);
	}
	kill(mover, SIGKILL);
	say("escapes: %d", escapes);
}
