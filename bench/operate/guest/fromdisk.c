// fromdisk runs a program on the ext4 file system of the first disk, as an initramfs does.
//
//	fromdisk PROGRAM [ARG...]
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (int i = 0; access("/dev/vda", F_OK) < 0 && i < 2000; i++) // Linux finds disks in its own time
		usleep(5000);
	mkdir("/mnt", 0755);
	if (argc >= 2 && mount("/dev/vda", "/mnt", "ext4", 0, NULL) == 0 && chroot("/mnt") == 0 && chdir("/") == 0)
		execv(argv[1], argv + 1);
	fprintf(stderr, "fromdisk: %s\n", strerror(errno));
	return 1;
}
