// faults disk DEVICE [READ-ONLY DEVICE]: what programs see of an ext4 disk that fails.
// A second disk takes commands: which requests fail from now on (package test/nbd). The
// same on Linux and on ours; what it prints is compared. It goes to the second disk in
// the end: the kernel's messages mix with what is on the console.
#include "../c/gt.h"
#include <sys/mount.h>
#include <sys/statfs.h>

#define PAGE 4096
#define FILE_SIZE (64 * 1024)

static char *device, *read_only;
static char *buffer, *bad; // a page for O_DIRECT; one that cannot be written

static int control = -1;

// tell gives the disk a command.
static void tell(const char *command)
{
	static char *block;
	if (!block && posix_memalign((void **)&block, PAGE, PAGE))
		fatal("memory");
	for (int i = 0; control < 0; i++) {
		const char *names[] = {"/dev/vda", "/dev/vdb"};
		int fd = open(names[i % 2], O_RDWR | O_DIRECT);
		if (fd >= 0 && pread(fd, block, PAGE, 0) == PAGE && memcmp(block, "fault control\n", 14) == 0)
			control = fd;
		else if (fd >= 0)
			close(fd);
		if (i == 1000)
			fatal("no control disk");
		if (control < 0)
			usleep(10000);
	}
	memset(block, 0, PAGE);
	snprintf(block, PAGE, "%s\n", command);
	if (pwrite(control, block, PAGE, 0) != PAGE)
		fatal(command);
}

// report sends what was printed, which is in a file, to the second disk.
static void report(void)
{
	static char text[60 * 1024] __attribute__((aligned(PAGE)));
	int fd = must(open("/out", O_RDONLY), "/out");
	ssize_t n = must(read(fd, text, sizeof text - 1), "read");
	if (pwrite(control, text, sizeof text, PAGE) != sizeof text)
		fatal("report");
	dprintf(2, "faults: %ld bytes\n", (long)n);
}

static pid_t first;

static void at_end(void)
{
	if (getpid() == first) {
		fflush(stdout);
		tell("ok");
		report();
	}
}

static void mount_disk(void)
{
	must(mount(device, "/mnt", "ext4", 0, "errors=remount-ro,commit=300"), "mount");
}

static void unmount(void)
{
	must(umount("/mnt"), "umount");
}

static int file(const char *name, int flags)
{
	return must(open(name, flags, 0644), name);
}

// make writes a file of FILE_SIZE bytes and makes it durable.
static void make(const char *name, int seed)
{
	char b[FILE_SIZE];
	for (int i = 0; i < FILE_SIZE; i++)
		b[i] = (char)(seed + i / 100);
	int fd = file(name, O_RDWR | O_CREAT | O_TRUNC);
	if (pwrite(fd, b, FILE_SIZE, 0) != FILE_SIZE)
		fatal("pwrite");
	must(fsync(fd), "fsync");
	close(fd);
}

// holds prints whether a file is as make left it.
static void holds(const char *name, int seed)
{
	char b[FILE_SIZE];
	int fd = file(name, O_RDONLY), wrong = 0;
	ssize_t n = pread(fd, b, FILE_SIZE, 0);
	for (int i = 0; i < n; i++)
		wrong += b[i] != (char)(seed + i / 100);
	say("%s: %s", name, n != FILE_SIZE ? "short, or unreadable" : wrong ? "not what was written" : "as written");
	close(fd);
}

// close_all closes every file but the control disk.
static void close_all(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (fd != control)
			close(fd);
}

static void begin(void)
{
	mkdir("/mnt", 0755);
	tell("ok");
	if (posix_memalign((void **)&buffer, PAGE, PAGE) || posix_memalign((void **)&bad, PAGE, PAGE))
		fatal("memory");
	memset(buffer, 'b', PAGE);
	memset(bad, 'x', PAGE);
	memcpy(bad, "BAD BLOCK", 9);
	mount_disk();
}

TEST(reads, "disk: reads fail")
{
	begin();
	make("/mnt/a", 1), make("/mnt/b", 2);
	unmount(), mount_disk();
	int a = file("/mnt/a", O_RDWR), direct = file("/mnt/a", O_RDWR | O_DIRECT);
	holds("/mnt/b", 2);
	char *p = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, a, 0);
	tell("read");
	num("read", pread(a, buffer, PAGE, 0));
	num("read again", pread(a, buffer, PAGE, 0));
	num("O_DIRECT", pread(direct, buffer, PAGE, 8 * PAGE));
	IN_CHILD("a mapping", _exit(p[4 * PAGE]));
	holds("/mnt/b", 2);
	tell("ok");
	num("read, the disk is well", pread(a, buffer, PAGE, 0));
	num("O_DIRECT, the disk is well", pread(direct, buffer, PAGE, 8 * PAGE));
	holds("/mnt/a", 1);
	err("still writable", mkdir("/mnt/d", 0755));
	close(a), close(direct), munmap(p, FILE_SIZE);
	unmount();
}

TEST(data, "disk: data cannot be written")
{
	begin();
	make("/mnt/f", 3);
	int dir = file("/mnt", O_RDONLY | O_DIRECTORY), a = file("/mnt/f", O_RDWR), b = file("/mnt/f", O_RDONLY), c = dup(a);
	tell("data");
	num("write", pwrite(a, bad, PAGE, 0));
	err("fsync", fsync(a));
	err("fsync of a duplicate", fsync(c));
	err("fsync through another descriptor", fsync(b));
	err("the same again", fsync(b));
	int late = file("/mnt/f", O_RDWR);
	err("fsync by who came later", fsync(late));
	err("syncfs", syncfs(dir));
	err("syncfs again", syncfs(dir));
	err("syncfs by who came later", syncfs(late));
	make("/mnt/other", 4);
	say("another file can be synced");

	int s = file("/mnt/f", O_RDWR | O_SYNC);
	num("O_SYNC", pwrite(s, bad, PAGE, 2 * PAGE));
	err("fsync of it", fsync(s));
	num("good data", pwrite(s, buffer, PAGE, 3 * PAGE));
	int d = file("/mnt/f", O_RDWR | O_DIRECT);
	num("O_DIRECT", pwrite(d, bad, PAGE, 4 * PAGE));

	char *p = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, late, 0);
	fsync(late);
	memcpy(p + 6 * PAGE, bad, PAGE);
	err("msync", msync(p, FILE_SIZE, MS_SYNC));
	err("fsync of what was mapped", fsync(late));
	munmap(p, FILE_SIZE);
	num("write", pwrite(late, bad, PAGE, 7 * PAGE));
	err("sync_file_range", sync_file_range(late, 0, 0, 7));
	err("fsync", fsync(late));
	num("write", pwrite(late, bad, PAGE, 7 * PAGE));
	err("close", close(late));

	int n = file("/mnt/new", O_RDWR | O_CREAT);
	num("a new file", write(n, bad, PAGE));
	err("its fsync", fsync(n));
	err("its fsync again", fsync(n));
	err("close", close(n));
	err("unlink", unlink("/mnt/new"));
	err("still writable", mkdir("/mnt/d2", 0755));
	err("sync of names", fsync(dir));

	tell("ok");
	make("/mnt/f", 5);
	holds("/mnt/f", 5);
	close(dir), close(a), close(b), close(c), close(s), close(d);
	unmount(), mount_disk();
	holds("/mnt/f", 5), holds("/mnt/other", 4);
	err("its name", access("/mnt/d2", F_OK));
	unmount();
}

TEST(flushes, "disk: flushes fail")
{
	begin();
	make("/mnt/f", 6);
	int fd = file("/mnt/f", O_RDWR);
	must(fsync(fd), "fsync");
	tell("flush");
	num("write", pwrite(fd, buffer, PAGE, 0));
	err("fdatasync", fdatasync(fd));
	tell("ok");
	err("fdatasync, the disk is well", fdatasync(fd));
	err("still writable", mkdir("/mnt/d3", 0755));
	err("fsync", fsync(fd));
	close(fd);
	make("/mnt/f", 6);
	unmount(), mount_disk();
	holds("/mnt/f", 6);
	unmount();
}

TEST(logging, "disk: nothing can be written")
{
	begin();
	must(mkdir("/mnt/safe", 0755), "mkdir");
	make("/mnt/safe/f", 7), make("/mnt/safe/g", 8);
	int dir = file("/mnt", O_RDONLY | O_DIRECTORY), f = file("/mnt/safe/f", O_RDWR);
	must(syncfs(dir), "syncfs");
	tell("write");
	err("mkdir", mkdir("/mnt/lost", 0755));
	err("fsync", fsync(dir));
	err("mkdir", mkdir("/mnt/more", 0755));
	err("create", open("/mnt/new", O_RDWR | O_CREAT, 0644));
	err("unlink", unlink("/mnt/safe/g"));
	err("rename", rename("/mnt/safe/g", "/mnt/g"));
	err("truncate", truncate("/mnt/safe/g", 0));
	holds("/mnt/safe/f", 7);
	tell("ok");
	err("mkdir, the disk is well", mkdir("/mnt/more", 0755));
	close(dir), close(f);
	err("umount", umount("/mnt"));
	mount_disk();
	holds("/mnt/safe/f", 7), holds("/mnt/safe/g", 8);
	err("mkdir after the next mount", mkdir("/mnt/more", 0755));
	unmount();
}

TEST(full, "disk: it is full")
{
	begin();
	make("/mnt/f", 9), make("/mnt/spare", 9);
	int big = file("/mnt/big", O_RDWR | O_CREAT);
	static char mib[1 << 20];
	memset(mib, 1, sizeof mib);
	long n, sum = 0;
	while ((n = write(big, mib, sizeof mib)) > 0)
		sum += n;
	num("write", n);
	say("after %s", sum > 20 << 20 ? "much" : "little");
	err("fsync", fsync(big));
	int f = file("/mnt/f", O_RDWR);
	num("over what is there", pwrite(f, buffer, PAGE, 0));
	err("fsync", fsync(f));
	err("more space", fallocate(f, 0, 0, 64 << 20));
	err("unlink a small file", unlink("/mnt/spare")); // the big one's tree may have grown
	make("/mnt/f", 9); // as large as before
	err("unlink", unlink("/mnt/big"));
	close(big);
	must(syncfs(f), "syncfs");
	make("/mnt/again", 10);
	holds("/mnt/again", 10), holds("/mnt/f", 9);

	must(mkdir("/mnt/many", 0755), "mkdir");
	char name[64];
	int i;
	for (i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "/mnt/many/%d", i);
		int fd = open(name, O_RDWR | O_CREAT, 0644);
		if (fd < 0)
			break;
		close(fd);
	}
	err("another file", open(name, O_RDWR | O_CREAT, 0644));
	say("after %s", i > 100 ? "many" : "few");
	err("a directory", mkdir("/mnt/many/d", 0755));
	err("a link", link("/mnt/f", "/mnt/many/link"));
	holds("/mnt/f", 9);
	make("/mnt/f", 11);
	holds("/mnt/f", 11);
	while (--i >= 0) {
		snprintf(name, sizeof name, "/mnt/many/%d", i);
		must(unlink(name), "unlink");
	}
	must(unlink("/mnt/many/link"), "unlink");
	err("a file", open("/mnt/many/0", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
	must(unlink("/mnt/many/0"), "unlink");
	err("rmdir", rmdir("/mnt/many"));
	close_all();
	unmount(), mount_disk();
	holds("/mnt/f", 11), holds("/mnt/again", 10);
	unmount();
}

TEST(gone, "disk: it disappears")
{
	begin();
	make("/mnt/f", 12), make("/mnt/g", 13);
	unmount(), mount_disk();
	int f = file("/mnt/f", O_RDWR), g = file("/mnt/g", O_RDWR);
	holds("/mnt/f", 12);
	tell("all");
	holds("/mnt/f", 12);
	num("what was not read yet", pread(g, buffer, PAGE, 0));
	num("write", pwrite(f, buffer, PAGE, 0));
	err("fsync", fsync(f));
	err("mkdir or its fsync", mkdir("/mnt/lost", 0755) < 0 ? -1 : fsync(file("/mnt", O_RDONLY)));
	err("elsewhere", open("elsewhere", O_RDWR | O_CREAT, 0644));
	close_all();
	err("umount", umount("/mnt"));
	err("mount", mount(device, "/mnt", "ext4", 0, NULL));
	tell("ok");
	mount_disk();
	holds("/mnt/g", 13);
	make("/mnt/f", 14);
	holds("/mnt/f", 14);
	unmount();
}

TEST(slow, "disk: it is slow")
{
	begin();
	tell("slow 400");
	make("/mnt/s", 15);
	unmount(), mount_disk();
	holds("/mnt/s", 15);
	tell("ok");
	unmount();
}

TEST(protected, "disk: it is read-only")
{
	if (!read_only)
		return;
	begin();
	make("/mnt/f", 16);
	unmount();
	for (int i = 0; access(read_only, F_OK) < 0 && i < 500; i++)
		usleep(10000);
	err("open for writing", open(read_only, O_RDWR));
	err("mount", mount(read_only, "/mnt", "ext4", 0, NULL));
	err("mount read-only", mount(read_only, "/mnt", "ext4", MS_RDONLY, NULL));
	holds("/mnt/f", 16);
	err("open for writing", open("/mnt/f", O_RDWR));
	err("mkdir", mkdir("/mnt/x", 0755));
	err("remount", mount(NULL, "/mnt", NULL, MS_REMOUNT, NULL));
	unmount();
}

int child_main(int argc, char **argv) { return 1; }

__attribute__((constructor)) static void pick(int argc, char **argv)
{
	device = argc > 2 ? argv[2] : "/dev/vda";
	read_only = argc > 3 ? argv[3] : NULL;
	first = getpid();
	int out = open("/out", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	if (out < 0 || dup2(out, 1) < 0 || atexit(at_end) < 0)
		abort();
	close(out);
}
