// What the tests of permissions share: acting as another user.
#pragma once
#include "gt.h"
#include <grp.h>
#include <linux/capability.h>

enum { USER = 1000, OTHER = 1001, CLUB = 2000 };

// become gives up root for a user, a group, and at most one more group (0: none).
__attribute__((unused)) static void become(uid_t uid, gid_t gid, gid_t more)
{
	must(setgroups(more != 0, &more), "setgroups");
	must(setresgid(gid, gid, gid), "setresgid");
	must(setresuid(uid, uid, uid), "setresuid");
}

// AS(uid, more, statement…) runs it in a child that is a user with the group of
// the same number and one more (0: none).
#define AS(uid, more, ...)                                          \
	({                                                          \
		int gt_st = wait_for(FORK(become(uid, uid, more); __VA_ARGS__)); \
		if (gt_st != 0)                                     \
			status("child", gt_st);                     \
	})

// drop_caps takes capabilities of a set away from the effective ones.
__attribute__((unused)) static void drop_caps(uint64_t set)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	must(syscall(SYS_capget, &h, d), "capget");
	d[0].effective &= ~(uint32_t)set;
	d[1].effective &= ~(uint32_t)(set >> 32);
	must(syscall(SYS_capset, &h, d), "capset");
}

#define CAP(n) (1ULL << (n))

// mode prints permissions and owners of a file.
__attribute__((unused)) static void mode(const char *what, const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		say("%s: %s", what, name_of(errno));
	else
		say("%s: %04o %u:%u", what, st.st_mode & 07777, st.st_uid, st.st_gid);
}

// make makes a file with content, owner and mode.
__attribute__((unused)) static void make(const char *path, uid_t uid, gid_t gid, mode_t m)
{
	unlink(path);
	int fd = must(open(path, O_CREAT | O_WRONLY | O_EXCL, 0600), path);
	must(write(fd, "0123456789", 10), "write");
	must(fchown(fd, uid, gid), "fchown");
	must(fchmod(fd, m), "fchmod");
	close(fd);
}

__attribute__((unused)) static void make_dir(const char *path, uid_t uid, gid_t gid, mode_t m)
{
	must(mkdir(path, 0700), path);
	must(chown(path, uid, gid), "chown");
	must(chmod(path, m), "chmod");
}

// setting reads a number under /proc/sys.
__attribute__((unused)) static int setting(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	close(fd);
	return atoi(text);
}
