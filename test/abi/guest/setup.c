// What the cases need around them: file systems, directories, an address.
#include "abi.h"
#include <net/if.h>
#include <netinet/in.h>
#include <sys/sysmacros.h>

char work[] = "/tmp/abi";
char work_disk[] = "/tmp/disk/abi";
char work_ro[] = "/tmp/ro";

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_modules(void)
{
	struct dirent **list;
	int n = scandir("/bench/modules", &list, NULL, by_name);
	for (int i = 0; i < n; i++) {
		char path[512];
		if (list[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/bench/modules/%s", list[i]->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (syscall(SYS_finit_module, fd, "", 0) < 0)
			printf("abi: %s: %s\n", path, strerror(errno));
		close(fd);
	}
}

// first_process does what Linux leaves to process 1; Hardtack has done it.
static void first_process(void)
{
	if (access("/proc/self", F_OK) == 0)
		return;
	mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755), mkdir("/run", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/pts", 0755), mkdir("/dev/shm", 01777);
	mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	int fd = open("/dev/console", O_RDWR);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	load_modules();
	for (int i = 0; i < 200 && access("/sys/block/vda", F_OK) < 0; i++)
		usleep(10000);
}

static void loopback_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
}

static void need(int rc, const char *what)
{
	if (rc < 0)
		printf("abi: %s: %s\n", what, strerror(errno));
}

void set_up(void)
{
	umask(022);
	if (getpid() == 1)
		first_process();
	loopback_up();
	mkdir("/tmp", 01777);
	need(mount("tmpfs", "/tmp", "tmpfs", 0, "size=64m,mode=1777"), "tmpfs");
	need(mkdir(work, 0777), work), chmod(work, 0777);
	mkdir("/tmp/disk", 0755);
	if (access("/dev/vda", F_OK) < 0)
		mknod("/dev/vda", S_IFBLK | 0600, makedev(254, 0));
	need(mount("/dev/vda", "/tmp/disk", "ext4", 0, NULL), "ext4");
	need(mkdir(work_disk, 0777), work_disk), chmod(work_disk, 0777);
	mkdir(work_ro, 0755);
	need(mount("tmpfs", work_ro, "tmpfs", 0, "size=1m"), "tmpfs");
	int fd = open("/tmp/ro/file", O_RDWR | O_CREAT, 0666);
	need(write(fd, "0123456789", 10), "write");
	close(fd);
	mkdir("/tmp/ro/dir", 0777);
	need(mount("", work_ro, "", MS_REMOUNT | MS_RDONLY, NULL), "read-only");
	mkdir("/run", 0755);
	int tty = open("/proc/sys/kernel/printk", O_WRONLY);
	if (tty >= 0 && write(tty, "1", 1) == 1) // no kernel's message amid the text
		close(tty);
}
