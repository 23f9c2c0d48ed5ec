// Calls that take a descriptor as a place or as a file to name.
#include "files.h"
#include <linux/openat2.h>

void call_at(subject *s)
{
	struct open_how how = {O_RDONLY};
	CASE("open.") result(S(openat, s->fd, P("."), O_RDONLY) >= 0 ? 0 : -1);
	CASE("open..") result(S(openat, s->fd, P(".."), O_RDONLY) >= 0 ? 0 : -1);
	CASE("openempty") result(S(openat, s->fd, P(""), O_RDONLY) >= 0 ? 0 : -1);
	CASE("openmissing") result(S(openat, s->fd, P("missing"), O_RDONLY));
	CASE("openabsolute") result(S(openat, s->fd, P("/tmp"), O_RDONLY) >= 0 ? 0 : -1);
	CASE("openbad") result(S(openat, s->fd, P(bad), O_RDONLY));
	CASE("create") result(S(openat, s->fd, P("created"), O_RDWR | O_CREAT, 0600) >= 0 ? 0 : -1), S(unlinkat, s->fd, P("created"), 0);
	CASE("tmpfile") result(S(openat, s->fd, P("."), O_RDWR | O_TMPFILE, 0600) >= 0 ? 0 : -1);
	CASE("openat2") result(S(openat2, s->fd, P("."), P(&how), sizeof how) >= 0 ? 0 : -1);
	CASE("openat2beneath") how.resolve = 8, result(S(openat2, s->fd, P(".."), P(&how), sizeof how) >= 0 ? 0 : -1);
	CASE("openat2root") how.resolve = 16, result(S(openat2, s->fd, P("/"), P(&how), sizeof how) >= 0 ? 0 : -1);
	CASE("mkdir") result(S(mkdirat, s->fd, P("made"), 0777)), S(unlinkat, s->fd, P("made"), AT_REMOVEDIR);
	CASE("mkdirempty") result(S(mkdirat, s->fd, P(""), 0777));
	CASE("mknod") result(S(mknodat, s->fd, P("node"), S_IFIFO | 0600, 0)), S(unlinkat, s->fd, P("node"), 0);
	CASE("symlink") result(S(symlinkat, P("x"), s->fd, P("sym"))), S(unlinkat, s->fd, P("sym"), 0);
	CASE("unlink") result(S(unlinkat, s->fd, P("missing"), 0));
	CASE("unlink.") result(S(unlinkat, s->fd, P("."), AT_REMOVEDIR));
	CASE("unlinkempty") result(S(unlinkat, s->fd, P(""), 0));
	CASE("rename") result(S(renameat, s->fd, P("missing"), s->fd, P("other")));
	CASE("readlink") result(S(readlinkat, s->fd, P("missing"), P(buffer), 10));
	CASE("stat") result(S(newfstatat, s->fd, P("missing"), P(buffer), 0));
	CASE("stat.") result(S(newfstatat, s->fd, P("."), P(buffer), 0));
	CASE("access") result(S(faccessat, s->fd, P("."), 0));
	CASE("chmod") result(S(fchmodat, s->fd, P("missing"), 0));
	CASE("times") result(S(utimensat, s->fd, P("missing"), 0, 0));
	CASE("statx") result(S(statx, s->fd, P("."), 0, 0, P(buffer)));
}

void call_linkat(subject *s)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	unlink("linked");
	CASE("empty") result(S(linkat, s->fd, P(""), AT_FDCWD, P("linked"), AT_EMPTY_PATH));
	CASE("follow") result(S(linkat, AT_FDCWD, P(path), AT_FDCWD, P("linked"), AT_SYMLINK_FOLLOW));
	CASE("nofollow") result(S(linkat, AT_FDCWD, P(path), AT_FDCWD, P("linked"), 0));
	CASE("0") result(S(linkat, s->fd, P(""), AT_FDCWD, P("linked"), 0));
	CASE("into") result(S(linkat, AT_FDCWD, P("/tmp/abi/file"), s->fd, P("linked"), 0)), S(unlinkat, s->fd, P("linked"), 0);
	unlink("linked");
}

void call_execveat(subject *s)
{
	char *argv[] = {"x", NULL};
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	struct stat st;
	int fd = s->fd;
	// This very program would run.
	if (fstat(fd, &st) == 0 && st.st_size > 100000 && S_ISREG(st.st_mode))
		fd = -1;
	CASE("empty") result(S(execveat, fd, P(""), P(argv), P(argv + 1), AT_EMPTY_PATH));
	CASE("0") result(S(execveat, fd, P(""), P(argv), P(argv + 1), 0));
	CASE("missing") result(S(execveat, s->fd, P("missing"), P(argv), P(argv + 1), 0));
	CASE("proc") result(S(execve, P(fd < 0 ? "/proc/self/fd/-1" : path), P(argv), P(argv + 1)));
}

static void got_events(int in)
{
	long n = S(read, in, P(buffer), 4096);
	if (n < 0)
		result(n);
	for (long at = 0; at < n;) {
		struct inotify_event *e = (void *)(buffer + at);
		note("%x", e->mask);
		at += sizeof *e + e->len;
	}
}

void call_watch(subject *s)
{
	int in = inotify_init1(IN_NONBLOCK);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	CASE("all") result(S(inotify_add_watch, in, P(path), 0xfff));
	CASE("onlydir") result(S(inotify_add_watch, in, P(path), 0x1000fff));
	CASE("dontfollow") result(S(inotify_add_watch, in, P(path), 0x2000fff));
	CASE("chmod") S(inotify_add_watch, in, P(path), 0xfff), S(fchmod, s->fd, 0644), got_events(in);
	CASE("write") S(inotify_add_watch, in, P(path), 0xfff), S(write, s->fd, P("12345678"), 8), got_events(in);
	CASE("read") S(inotify_add_watch, in, P(path), 0xfff), S(read, s->fd, P(buffer), 8), got_events(in);
	CASE("truncate") S(inotify_add_watch, in, P(path), 0xfff), S(ftruncate, s->fd, 5), got_events(in);
	CASE("close") S(inotify_add_watch, in, P(path), 0xfff), S(close, s->fd), got_events(in);
}

void call_handle(subject *s)
{
	struct { unsigned bytes; int type; char f[128]; } h = {128};
	int mount;
	CASE("empty") result(S(name_to_handle_at, s->fd, P(""), P(&h), P(&mount), AT_EMPTY_PATH));
	CASE("0") h.bytes = 0, result(S(name_to_handle_at, s->fd, P(""), P(&h), P(&mount), AT_EMPTY_PATH));
	CASE("129") h.bytes = 129, result(S(name_to_handle_at, s->fd, P(""), P(&h), P(&mount), AT_EMPTY_PATH));
	CASE("bad") result(S(name_to_handle_at, s->fd, P(""), P(bad), P(&mount), AT_EMPTY_PATH));
	CASE("flag0") result(S(name_to_handle_at, s->fd, P(""), P(&h), P(&mount), 0));
	CASE("open") h.bytes = 8, h.type = 1, result(S(open_by_handle_at, s->fd, P(&h), O_RDONLY));
}

void call_fchdir(subject *s)
{
	CASE("fchdir") result(S(fchdir, s->fd)), S(chdir, P(work));
}

static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE, O_PATH, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND, O_RDONLY | O_DIRECTORY,
			    O_RDONLY | O_NOFOLLOW, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_TMPFILE, O_RDONLY | O_DIRECT,
			    O_RDONLY | O_NOATIME, O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY, O_WRONLY | O_SYNC};

void call_reopen(subject *s)
{
	char path[64], name[256];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
		CASE("%o", modes[i])
		{
			struct stat a, b;
			long fd = S(open, P(path), modes[i] | O_NONBLOCK | O_NOCTTY, 0600);
			result(fd >= 0 ? 0 : -1);
			if (fd < 0)
				return;
			note("%lo", S(fcntl, fd, F_GETFL));
			struct pollfd p = {fd, 0xffff, 0};
			result(S(poll, P(&p), 1, 0)), note("%x", p.revents);
			if (fstat(fd, &a) == 0 && fstat(s->fd, &b) == 0)
				note(a.st_ino == b.st_ino && a.st_dev == b.st_dev ? "same" : "other");
			struct epoll_event e = {EPOLLIN | EPOLLOUT};
			int ep = epoll_create1(0);
			result(S(epoll_ctl, ep, EPOLL_CTL_ADD, fd, P(&e)));
			note("pos%ld", S(lseek, fd, 0, SEEK_CUR));
		}
	CASE("readlink")
	{
		long n = S(readlink, P(path), P(name), 255);
		if (n < 0) {
			result(n);
			return;
		}
		name[n] = 0;
		for (char *c = name; *c; c++)
			*c = *c == ' ' ? '_' : *c >= '0' && *c <= '9' ? 'N' : *c;
		note("%s", name[0] == '/' && strstr(name, "/proc/") ? "/proc" : name);
	}
}
