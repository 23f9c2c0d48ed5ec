// What statfs, ustat and sysfs tell of each kind of file; calls that must not wait.
#include "gt.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/sysmacros.h>

TEST(magic, "statfs of each kind")
{
	int p[2], s[2], us[2];
	sigset_t set;
	sigemptyset(&set);
	pipe(p), socketpair(AF_UNIX, SOCK_STREAM, 0, us);
	struct {
		const char *what;
		int fd;
	} files[] = {{"pipe", p[0]}, {"socket", us[0]}, {"TCP", socket(AF_INET, SOCK_STREAM, 0)}, {"memfd", memfd_create("x", 0)}, {"eventfd", eventfd(0, 0)}, {"timerfd", timerfd_create(0, 0)}, {"signalfd", signalfd(-1, &set, 0)}, {"epoll", epoll_create1(0)}, {"inotify", inotify_init()},
		{"proc", open("/proc/self/stat", O_RDONLY)}, {"proc directory", open("/proc", O_RDONLY)}, {"ptmx", open("/dev/ptmx", O_RDWR)}, {"/dev/pts", open("/dev/pts", O_RDONLY)}, {"O_PATH", open("/proc/self", O_PATH)}, {"a pipe by its link", open("/proc/self/fd/3", O_PATH)}};
	for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
		struct statfs st;
		memset(&st, 0, sizeof st);
		if (fstatfs(files[i].fd, &st) < 0)
			say("%s: %s", files[i].what, name_of(errno));
		else
			say("%s: %lx, block %ld, fragment %ld, names %ld", files[i].what, (long)st.f_type, (long)st.f_bsize, (long)st.f_frsize, (long)st.f_namelen);
	}
	struct statfs st;
	err("bad descriptor", fstatfs(99, &st)), err("bad address", fstatfs(p[0], (void *)8)), err("none", statfs("none", &st)), err("long", statfs("/proc/self/fd/3/x", &st)), err("no directory", statfs("/proc/self/stat/x", &st));
}

TEST(ustats, "ustat and sysfs")
{
	struct {
		int free;
		unsigned long inodes;
		char a[6], b[6];
	} u;
	struct stat st;
	stat(".", &st);
	err("ustat", syscall(SYS_ustat, st.st_dev, &u)), num("inodes", u.inodes > 0), num("free", u.free > 0);
	err("of nothing", syscall(SYS_ustat, makedev(77, 77), &u)), err("0", syscall(SYS_ustat, 0, &u)), err("bad address", syscall(SYS_ustat, st.st_dev, (void *)8));
	char name[80];
	int n = syscall(SYS_sysfs, 3), at = syscall(SYS_sysfs, 1, "proc");
	num("types", n > 4), num("proc", at >= 0 && at < n);
	err("its name", syscall(SYS_sysfs, 2, at, name)), say("%s", name);
	err("none", syscall(SYS_sysfs, 1, "none")), err("beyond", syscall(SYS_sysfs, 2, n, name)), err("0", syscall(SYS_sysfs, 0)), err("4", syscall(SYS_sysfs, 4)), err("bad name", syscall(SYS_sysfs, 1, 8)), err("bad buffer", syscall(SYS_sysfs, 2, 0, 8)), err("negative", syscall(SYS_sysfs, 2, -1, name));
}

TEST(nowait, "RWF_NOWAIT")
{
	static char page[8192];
	struct iovec v = {page, 1}, large = {page, 8192};
	int f = open("f", O_RDWR | O_CREAT, 0600), null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), on_disk;
	struct statfs st;
	must(write(f, page, 6000), "write");
	on_disk = fstatfs(f, &st) == 0 && st.f_type == 0xef53;
	num("/dev/null", preadv2(null, &v, 1, -1, 8)), num("write to it", pwritev2(null, &v, 1, -1, 8)), num("/dev/zero", preadv2(zero, &large, 1, -1, 8));
	num("a directory", preadv2(open(".", O_RDONLY), &v, 1, 0, 8));
	num("a file", preadv2(f, &v, 1, 0, 8)), num("all of it", preadv2(f, &large, 1, 0, 8)), num("its rest", preadv2(f, &large, 1, 5000, 8)), num("its end", preadv2(f, &v, 1, 6000, 8));
	lseek(f, 4000, SEEK_SET), num("from its position", preadv2(f, &large, 1, -1, 8)), num("now", lseek(f, 0, SEEK_CUR));
	if (on_disk) {
		fsync(f), posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED);
		// It may stay in memory.
		void *m = mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0);
		unsigned char in = 1;
		mincore(m, 1, &in), munmap(m, 4096);
		num("what is not in memory waits", preadv2(f, &v, 1, 0, 8) == 1 || !(in & 1));
		pread(f, page, 1, 0);
		num("in memory", preadv2(f, &v, 1, 0, 8));
	}
}
