// init is process 1 of a measured machine, the same binary on Linux and on
// Hardtack. It prints the time-stamp counter of its first instruction, brings
// up what Linux leaves to user mode (file systems, virtio modules, network
// addresses), runs the commands of a file and ends the machine.
//
//	init [FILE]       default /bench/run; one command a line, words by spaces
//
// A line "& cmd" runs in the background, "port N" waits until something listens
// on 127.0.0.1:N, "forever" keeps the machine up. `#` starts a comment.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int same_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

// load_modules loads /bench/modules/*.ko in the order of their names.
static void load_modules(void)
{
	struct dirent **list;
	int n = scandir("/bench/modules", &list, NULL, same_name);
	for (int i = 0; i < n; i++) {
		char path[512];
		if (list[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/bench/modules/%s", list[i]->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (syscall(SYS_finit_module, fd, "", 0) < 0)
			printf("init: %s: %s\n", path, strerror(errno));
		close(fd);
	}
}

static void set_addr(struct sockaddr *to, const char *addr)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	inet_pton(AF_INET, addr, &a.sin_addr);
	memcpy(to, &a, sizeof a);
}

static void interface_up(const char *name, const char *addr, const char *mask)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {0};
	strcpy(r.ifr_name, name);
	if (addr) {
		set_addr(&r.ifr_addr, addr);
		if (ioctl(fd, SIOCSIFADDR, &r) < 0)
			printf("init: %s: address: %s\n", name, strerror(errno));
		set_addr(&r.ifr_netmask, mask);
		ioctl(fd, SIOCSIFNETMASK, &r);
	}
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		printf("init: %s: up: %s\n", name, strerror(errno));
	close(fd);
}

static void default_route(const char *gateway)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rtentry rt = {.rt_flags = RTF_UP | RTF_GATEWAY};
	set_addr(&rt.rt_dst, "0.0.0.0");
	set_addr(&rt.rt_genmask, "0.0.0.0");
	set_addr(&rt.rt_gateway, gateway);
	ioctl(fd, SIOCADDRT, &rt);
	close(fd);
}

static int exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static void set_up_linux(void)
{
	mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755), mkdir("/tmp", 01777), mkdir("/run", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/pts", 0755), mkdir("/dev/shm", 01777);
	mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mount("tmpfs", "/run", "tmpfs", 0, NULL);
	int fd = open("/dev/console", O_RDWR);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	load_modules();
	interface_up("lo", NULL, NULL);
	// Virtio devices are probed asynchronously: give the card some time.
	for (int i = 0; i < 100 && exists("/bench/modules") && !exists("/sys/class/net/eth0"); i++)
		usleep(10000);
	if (exists("/sys/class/net/eth0")) {
		interface_up("eth0", "10.0.2.15", "255.255.255.0");
		default_route("10.0.2.2");
	}
}

static void wait_for_port(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 600; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int up = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
		close(fd);
		if (up)
			return;
		usleep(50000);
	}
	printf("init: nothing listens on port %d\n", port);
}

static void run(char *line)
{
	char *argv[64];
	int argc = 0, background = 0;
	for (char *word = strtok(line, " \t\n"); word && argc < 63; word = strtok(NULL, " \t\n")) {
		if (argc == 0 && strcmp(word, "&") == 0)
			background = 1;
		else if (word[0] == '#')
			break;
		else
			argv[argc++] = word;
	}
	argv[argc] = NULL;
	if (argc == 0)
		return;
	if (strcmp(argv[0], "forever") == 0)
		for (;;)
			if (wait(NULL) < 0)
				pause();
	if (strcmp(argv[0], "port") == 0 && argc == 2) {
		wait_for_port(atoi(argv[1]));
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		if (background)
			setsid();
		execv(argv[0], argv);
		printf("init: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	int status = 0;
	if (background)
		return;
	// Orphans end as our children; they are waited for in passing.
	for (pid_t ended; (ended = waitpid(-1, &status, 0)) != pid;)
		if (ended < 0 && errno != EINTR)
			break;
	if (status)
		printf("init: %s: status %#x\n", argv[0], status);
}

int main(int argc, char **argv)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	setvbuf(stdout, NULL, _IONBF, 0);

	struct utsname un;
	uname(&un);
	int on_linux = !strcasestr(un.version, "hardtack") && !strcasestr(un.release, "hardtack");
	if (on_linux)
		set_up_linux();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	printf("boot 1 %llu %llu\n", (unsigned long long)hi << 32 | lo, (unsigned long long)hi << 32 | lo);

	FILE *f = fopen(argc > 1 ? argv[1] : "/bench/run", "re");
	if (!f)
		printf("init: no command file: %s\n", strerror(errno));
	char line[1024];
	while (f && fgets(line, sizeof line, f))
		run(line);
	printf("init: done\n");
	if (getpid() == 1 && on_linux) {
		sync();
		reboot(RB_AUTOBOOT); // QEMU runs with -no-reboot
	}
	return 0;
}
