// What root's children make outside of their own directories stays when they are gone:
// it is taken away before memory is measured.
#include "fuzz.h"

#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

enum { most_names = 1024 };

// The names that the tree had at first.
static char *known[most_names];
static int nknown;

static int is_known(const char *path)
{
	for (int i = 0; i < nknown; i++)
		if (strcmp(known[i], path) == 0)
			return 1;
	return 0;
}

// others tells whether a directory is not looked into: it makes its names itself, or is
// cleaned otherwise.
static int others(const char *path)
{
	static const char *const names[] = {"/proc", "/sys", "/dev/pts", "/tmp/fuzz", "/disk"};
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(path, names[i]) == 0)
			return 1;
	return 0;
}

static void drop_name(const char *path)
{
	if (unlink(path) == 0)
		return;
	if (errno == EPERM) { // append-only or immutable
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), none = 0;
		ioctl(fd, 0x40086602, &none);
		close(fd);
		unlink(path);
	}
}

void remove_tree(const char *path)
{
	char name[4300];
	umount2(path, MNT_DETACH);
	DIR *d = opendir(path);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strlen(path) > 4000)
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		struct stat st;
		if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode))
			remove_tree(name);
		else
			drop_name(name);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

// each_name visits a directory and what is below: it notes the names, or removes those
// that are not known.
static void each_name(const char *dir, int note)
{
	DIR *d = opendir(*dir ? dir : "/");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		char path[4300];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (lstat(path, &st) < 0)
			continue;
		if (note && nknown < most_names)
			known[nknown++] = strdup(path);
		if (!is_known(path) && S_ISDIR(st.st_mode))
			remove_tree(path);
		else if (!is_known(path))
			drop_name(path);
		else if (S_ISDIR(st.st_mode) && !others(path))
			each_name(path, note);
	}
	if (d)
		closedir(d);
}

// remove_left makes the names of the tree what they were at the first call.
void remove_left(void) { each_name("", nknown == 0); }
