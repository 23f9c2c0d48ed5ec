// mounts DEVICE: mounting, remounting and unmounting a disk. It prints what the calls
// answer; the test knows what Linux answers.
#include "../c/gt.h"
#include <sys/mount.h>
#include <sys/statfs.h>

static char *device;

static void mounts(const char *what)
{
	char b[4096];
	int fd = must(open("/proc/mounts", O_RDONLY), "open");
	ssize_t n = read(fd, b, sizeof b - 1);
	close(fd);
	b[n > 0 ? n : 0] = 0;
	for (char *line = strtok(b, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, "/mnt"))
			say("%s: %s", what, line + strcspn(line, " ") + 1);
}

TEST(mounting, "mounts")
{
	err("no device", mount("/dev/none", "/mnt", "ext4", 0, NULL));
	err("a file", mount("/proc/version", "/mnt", "ext4", 0, NULL));
	err("unknown type", mount(device, "/mnt", "xyz", 0, NULL));
	err("quotas", mount(device, "/mnt", "ext4", 0, "usrquota"));
	err("unknown option", mount(device, "/mnt", "ext4", 0, "nonsense=1"));
	err("mount", mount(device, "/mnt", "ext4", 0, "data=ordered"));
	mounts("mounted");
	err("in use for O_EXCL", open(device, O_RDWR | O_EXCL));
	err("mkdir", mkdir("/mnt/d", 0755));
	err("a second time", mount(device, "/mnt2", "ext4", 0, NULL));
	err("a second time, read-only", mount(device, "/mnt2", "ext4", MS_RDONLY, NULL));
	say("the same: %d", access("/mnt2/d", F_OK));
	err("umount the second", umount("/mnt2"));
	int fd = must(open("/mnt/f", O_RDWR | O_CREAT, 0644), "open");
	err("umount while a file is open", umount("/mnt"));
	err("remount read-only while it is open for writing", mount(NULL, "/mnt", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	must(write(fd, "content", 7), "write");
	close(fd);
	must(chdir("/mnt/d"), "chdir");
	err("umount of the working directory", umount("/mnt"));
	must(chdir("/"), "chdir");
	err("remount read-only", mount(NULL, "/mnt", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	mounts("remounted");
	err("write", open("/mnt/f", O_WRONLY));
	err("mkdir", mkdir("/mnt/e", 0755));
	err("unlink", unlink("/mnt/f"));
	err("chmod", chmod("/mnt/f", 0600));
	char b[8] = {0};
	fd = must(open("/mnt/f", O_RDONLY), "open");
	must(read(fd, b, 7), "read");
	say("it holds %s", b);
	close(fd);
	err("remount for writing", mount(NULL, "/mnt", NULL, MS_REMOUNT | MS_NOATIME, NULL));
	mounts("remounted");
	err("mkdir", mkdir("/mnt/e", 0755));
	fd = must(open("/mnt/gone", O_RDWR | O_CREAT, 0644), "open");
	must(unlink("/mnt/gone"), "unlink");
	must(write(fd, b, 7), "write");
	err("detach", umount2("/mnt", MNT_DETACH));
	err("it is not there", access("/mnt/e", F_OK));
	err("but the file is", pwrite(fd, b, 7, 0));
	close(fd); // the last user: unmounted now
	err("mount again", mount(device, "/mnt", "ext4", MS_RDONLY, NULL));
	err("the directory is there", access("/mnt/e", F_OK));
	err("umount", umount("/mnt"));
	err("umount again", umount("/mnt"));
}

int child_main(int argc, char **argv) { return 1; }

__attribute__((constructor)) static void pick(int argc, char **argv)
{
	device = argc > 2 ? argv[2] : "/dev/vda";
}
