// Offenders that use files, names, watches and locks.
#include "memory.h"
#include <sys/file.h>
#include <sys/inotify.h>

static char *place(void) // the directory of this process
{
	static char dir[64];
	snprintf(dir, sizeof dir, "/tmp/o.%d", getpid());
	mkdir(dir, 0700);
	return dir;
}

static void fill(int fd)
{
	size_t size = 1 << 20;
	char *buf = emptyPages(size);
	for (ssize_t n; size >= 4096; size /= 2)
		while ((n = write(fd, buf, size)) > 0)
			;
}

static void bigfiles(void)
{
	char name[128];
	snprintf(name, sizeof name, "%s/big", place());
	fill(open(name, O_CREAT | O_WRONLY, 0600));
}

static void sparse(void)
{
	char name[128];
	snprintf(name, sizeof name, "%s/sparse", place());
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	for (off_t at = 0; pwrite(fd, "x", 1, at) == 1; at += 64 << 20)
		;
}

// make makes files, each with a name of so many bytes.
static void make(unsigned length, int (*one)(const char *))
{
	char name[256];
	if (chdir(place()) < 0)
		return;
	memset(name, 'n', sizeof name);
	for (long i = 0;; i++) {
		unsigned n = snprintf(name, 24, "%ld", i);
		if (length > n)
			name[n] = 'n';
		name[length > n ? length : n] = 0;
		if (one(name) < 0)
			return;
	}
}

static int empty(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int directory(const char *name) { return mkdir(name, 0700); }
static int fifo(const char *name) { return mkfifo(name, 0600); }

static int link4000(const char *name)
{
	static char target[4000];
	memset(target, 't', sizeof target - 1);
	return symlink(target, name);
}

static void longnames(void) { make(255, empty); }
static void emptyfiles(void) { make(0, empty); }
static void directories(void) { make(0, directory); }
static void symlinks(void) { make(0, link4000); }
static void fifos(void) { make(0, fifo); }

// A watch on each directory of its own, in as many instances as there may be.
static int watchfd = -1;

static int watched(const char *name)
{
	if (mkdir(name, 0700) < 0)
		return -1;
	if (watchfd < 0 || inotify_add_watch(watchfd, name, IN_ALL_EVENTS) < 0)
		watchfd = inotify_init();
	return watchfd;
}

static void watches(void) { make(0, watched); }

// Queues of events that nobody reads.
static void events(void)
{
	char name[320], *dir = place();
	for (int fd; (fd = inotify_init()) >= 0;) {
		if (inotify_add_watch(fd, dir, IN_ALL_EVENTS) < 0)
			return;
		for (int i = 0; i < 20000; i++) {
			int n = snprintf(name, sizeof name, "%s/%d", dir, i & 1);
			memset(name + n, 'n', 200);
			name[n + 200] = 0;
			if (empty(name) < 0)
				return;
		}
	}
}

static void locks(void)
{
	char name[128];
	snprintf(name, sizeof name, "%s/locks", place());
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	for (l.l_start = 0; fcntl(fd, F_SETLK, &l) == 0; l.l_start += 2)
		;
}

// Texts of /proc that were read in part.
static void texts(void)
{
	char c;
	moreDescriptors();
	for (int i = 0; i < 2000; i++) // so that the text of the mappings is long
		mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int fd; (fd = open("/proc/self/maps", O_RDONLY)) >= 0;)
		if (read(fd, &c, 1) != 1)
			return;
}

static void cmdlines(void)
{
	char c;
	moreDescriptors();
	for (int fd; (fd = open("/proc/self/cmdline", O_RDONLY)) >= 0;)
		if (read(fd, &c, 1) != 1)
			return;
}

const struct kind fileKinds[] = {
	{"bigfiles", bigfiles},
	{"sparse", sparse},
	{"longnames", longnames},
	{"emptyfiles", emptyfiles},
	{"directories", directories},
	{"symlinks", symlinks},
	{"fifos", fifos},
	{"watches", watches},
	{"events", events},
	{"locks", locks},
	{"texts", texts},
	{"cmdlines", cmdlines},
	{NULL, NULL},
};
