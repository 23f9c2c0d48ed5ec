// folder: what a guest sees of a folder that the host shares and changes underneath. Before
// each step it asks the host, by a file named ask-N, and waits for a file done-N.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>

static int step;

static void host(void)
{
	char name[32];
	struct stat st;
	snprintf(name, sizeof name, "ask-%d", ++step);
	close(open(name, O_WRONLY | O_CREAT, 0644));
	snprintf(name, sizeof name, "done-%d", step);
	while (stat(name, &st) < 0)
		usleep(10000);
}

static const char *error(long got) { return got < 0 ? strerrorname_np(errno) : "0"; }

static void show(const char *what, long got) { printf("%s: %s\n", what, error(got)); }

static void content(const char *what, int fd)
{
	char b[64];
	struct stat st = {0};
	long n = pread(fd, b, sizeof b, 0);
	fstat(fd, &st);
	printf("%s: \"%.*s\", %ld bytes, %ld links\n", what, n > 0 ? (int)n : 0, b, (long)st.st_size, (long)st.st_nlink);
}

static void file(const char *name)
{
	int fd = open(name, O_RDONLY);
	if (fd < 0) {
		show(name, fd);
		return;
	}
	content(name, fd);
	close(fd);
}

static int names(const char *name)
{
	DIR *d = opendir(name);
	int n = 0;
	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

// locks: two processes do not have one lock.
static void locks(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
	show("lock", fcntl(fd, F_SETLK, &l));
	if (fork() == 0) {
		show("lock of another", fcntl(fd, F_SETLK, &l));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (chdir("/mnt") < 0)
		return 1;
	int a = open("a", O_RDWR), gone = open("gone", O_RDONLY);
	content("a", a);
	file("later");
	struct stat st;
	printf("the link out leads %s\n", stat("out", &st) < 0 ? "nowhere" : "out");
	mkdir("/inside", 0755), close(open("/inside/secret", O_CREAT | O_WRONLY, 0600));
	host(); // makes inside a link to /inside, changes a, removes gone, makes later, renames d
	content("a", a);
	content("gone, open", gone);
	file("gone"), file("later"), file("d/x"), file("e/x");
	printf("inside/secret is the guest's: %s\n", stat("inside/secret", &st) == 0 && st.st_size == 0 ? "yes" : "no");
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
	memcpy(map, "MAPPED", 6);
	show("msync", msync(map, 4096, MS_SYNC));
	show("fsync", fsync(a));
	locks(a);
	host(); // says what a has
	file("said");
	show("setxattr", syscall(188, "a", "user.x", "value", 5, 0));
	char value[16] = "";
	printf("getxattr: %ld %s\n", syscall(191, "a", "user.x", value, sizeof value), value);
	show("removexattr", syscall(197, "a", "user.x"));
	for (int i = 0; i < 1000; i++) {
		char name[32];
		snprintf(name, sizeof name, "many/%d", i);
		close(open(name, O_CREAT | O_WRONLY, 0644));
	}
	printf("%d names\n", names("many"));
	file("/ro/a");
	show("create in /ro", open("/ro/new", O_CREAT | O_WRONLY, 0644));
	show("remount /ro", mount(NULL, "/ro", NULL, MS_REMOUNT, NULL));
	show("create in /ro, remounted", open("/ro/new", O_CREAT | O_WRONLY, 0644));
	show("unlink in /ro, remounted", unlink("/ro/a"));
	file("/vanish/x");
	int v = open("/vanish/x", O_RDONLY);
	host(); // removes the folder vanish
	file("/vanish/x");
	content("open, of a folder that vanished", v);
	show("create in /vanish", open("/vanish/new", O_CREAT | O_WRONLY, 0644));
	printf("list of /vanish: %d\n", names("/vanish"));
	puts("end");
	return 0;
}
