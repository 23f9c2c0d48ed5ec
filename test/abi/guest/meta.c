// Calls about what a file is: stat, rights, owners, times, attributes.
#include "files.h"
#include <linux/stat.h>
#include <sys/xattr.h>

static void stated(long rc, const struct stat *st)
{
	if (result(rc) != 0)
		return;
	note("%o", st->st_mode);
	note("%d:%d", st->st_uid, st->st_gid);
	note("block:%ld", (long)st->st_blksize);
	if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
		note("size:%ld", (long)st->st_size);
	if (S_ISCHR(st->st_mode))
		note("dev:%lx", st->st_rdev);
	if (!S_ISDIR(st->st_mode))
		note("links:%ld", (long)st->st_nlink);
}

void call_fstat(subject *s)
{
	struct stat st;
	CASE("fstat") stated(S(fstat, s->fd, P(&st)), &st);
	CASE("bad") result(S(fstat, s->fd, P(bad)));
	CASE("null") result(S(fstat, s->fd, 0));
	CASE("at") stated(S(newfstatat, s->fd, P(""), P(&st), AT_EMPTY_PATH), &st);
	CASE("atnull") result(S(newfstatat, s->fd, 0, P(&st), AT_EMPTY_PATH));
	CASE("at0") result(S(newfstatat, s->fd, P(""), P(&st), 0));
	EACH(bit, 0, 31, "flag") result(S(newfstatat, s->fd, P(""), P(&st), AT_EMPTY_PATH | 1L << bit));
}

void call_statx(subject *s)
{
	struct statx x;
	CASE("mask0") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0, P(&x))), note("%x", x.stx_mask & 0x17ff);
	CASE("basic") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0x7ff, P(&x))), note("%x", x.stx_mask);
	CASE("all") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0xfff, P(&x))), note("%x", x.stx_mask);
	CASE("attributes") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0x7ff, P(&x))),
		note("%llx", (long long)x.stx_attributes), note("%llx", (long long)x.stx_attributes_mask);
	CASE("bad") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0x7ff, P(bad)));
	CASE("null") result(S(statx, s->fd, 0, AT_EMPTY_PATH, 0x7ff, P(&x)));
	CASE("bit31") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0x80000000, P(&x)));
	CASE("flag13+14") result(S(statx, s->fd, P(""), AT_EMPTY_PATH | 0x6000, 0x7ff, P(&x)));
	CASE("dio") result(S(statx, s->fd, P(""), AT_EMPTY_PATH, 0x2000, P(&x))), note("%x", x.stx_mask);
	EACH(bit, 0, 31, "flag") result(S(statx, s->fd, P(""), AT_EMPTY_PATH | 1L << bit, 0x7ff, P(&x)));
}

void call_fstatfs(subject *s)
{
	struct statfs f;
	CASE("fstatfs")
	{
		if (result(S(fstatfs, s->fd, P(&f))) == 0) {
			note("%lx", (long)f.f_type);
			note("%ld", (long)f.f_bsize);
			note("%ld", (long)f.f_namelen);
			note("%ld", (long)f.f_frsize);
			note("%lx", (long)f.f_flags);
		}
	}
	CASE("sizes")
	{
		if (result(S(fstatfs, s->fd, P(&f))) == 0)
			note(f.f_blocks ? "blocks" : "noblocks"), note(f.f_files ? "files" : "nofiles");
	}
	CASE("bad") result(S(fstatfs, s->fd, P(bad)));
}

void call_fchmod(subject *s)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	CASE("600") result(S(fchmod, s->fd, 0600));
	CASE("7777") result(S(fchmod, s->fd, 07777));
	CASE("2755") result(S(fchmod, s->fd, 02755));
	CASE("177777") result(S(fchmod, s->fd, 0177777));
	CASE("-1") result(S(fchmod, s->fd, -1));
	CASE("at") result(S(fchmodat, s->fd, P(""), 0600));
	CASE("byname") result(S(chmod, P(path), 0640));
	CASE("access") result(S(faccessat, s->fd, P(""), 4));
	EACH(mode, 0, 8, "access") result(S(faccessat2, s->fd, P(""), mode, AT_EMPTY_PATH));
	EACH(bit, 0, 31, "accessflag") result(S(faccessat2, s->fd, P(""), 4, AT_EMPTY_PATH | 1L << bit));
}

void call_fchown(subject *s)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	CASE("same") result(S(fchown, s->fd, -1, -1));
	CASE("user") result(S(fchown, s->fd, 1000, -1));
	CASE("group") result(S(fchown, s->fd, -1, 1000));
	CASE("both") result(S(fchown, s->fd, 1000, 1001));
	CASE("0:0") result(S(fchown, s->fd, 0, 0));
	CASE("at") result(S(fchownat, s->fd, P(""), 1000, -1, AT_EMPTY_PATH));
	CASE("at0") result(S(fchownat, s->fd, P(""), 1000, -1, 0));
	CASE("atnull") result(S(fchownat, s->fd, 0, 1000, -1, AT_EMPTY_PATH));
	CASE("byname") result(S(chown, P(path), 1000, -1));
	EACH(bit, 0, 31, "flag") result(S(fchownat, s->fd, P(""), -1, -1, AT_EMPTY_PATH | 1L << bit));
}

static void times(subject *s, long rc)
{
	struct stat st;
	if (result(rc) == 0 && fstat(s->fd, &st) == 0)
		note("%ld", st.st_mtime < 10000 ? (long)st.st_mtime : 0);
}

void call_utimens(subject *s)
{
	struct timespec t[2] = {{1000, 0}, {2000, 5}}, now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}}, wrong[2] = {{0, 1000000000}, {0, 0}};
	struct timespec mixed[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}}, old[2] = {{-5, 0}, {-5, 0}};
	struct timeval tv[2] = {{1000, 0}, {2000, 5}};
	CASE("set") times(s, S(utimensat, s->fd, 0, P(t), 0));
	CASE("now") times(s, S(utimensat, s->fd, 0, P(now), 0));
	CASE("null") times(s, S(utimensat, s->fd, 0, 0, 0));
	CASE("omit") result(S(utimensat, s->fd, 0, P(omit), 0));
	CASE("mixed") result(S(utimensat, s->fd, 0, P(mixed), 0));
	CASE("wrong") result(S(utimensat, s->fd, 0, P(wrong), 0));
	CASE("old") times(s, S(utimensat, s->fd, 0, P(old), 0));
	CASE("bad") result(S(utimensat, s->fd, 0, P(bad), 0));
	CASE("empty") times(s, S(utimensat, s->fd, P(""), P(t), 0));
	CASE("emptypath") times(s, S(utimensat, s->fd, P(""), P(t), AT_EMPTY_PATH));
	CASE("nullflag") result(S(utimensat, s->fd, 0, P(t), AT_SYMLINK_NOFOLLOW));
	CASE("futimesat") times(s, S(futimesat, s->fd, 0, P(tv)));
	EACH(bit, 0, 31, "flag") result(S(utimensat, s->fd, P(""), P(t), AT_EMPTY_PATH | 1L << bit));
}

static const char *const spaces[] = {"user.a", "trusted.a", "security.a", "system.a", "system.posix_acl_access",
				     "system.posix_acl_default", "security.capability", "nospace", "user.", "", "other.a"};
#define SPACES (sizeof spaces / sizeof *spaces)

void call_getxattr(subject *s)
{
	char name[300];
	memset(name, 'a', 299), memcpy(name, "user.", 5), name[256] = 0;
	for (unsigned i = 0; i < SPACES; i++)
		CASE("%s", spaces[i]) result(S(fgetxattr, s->fd, P(spaces[i]), P(buffer), 100));
	CASE("long") result(S(fgetxattr, s->fd, P(name), P(buffer), 100));
	CASE("badname") result(S(fgetxattr, s->fd, P(bad), P(buffer), 100));
	CASE("badvalue") result(S(fgetxattr, s->fd, P("user.a"), P(bad), 100));
	CASE("0") result(S(fgetxattr, s->fd, P("user.a"), 0, 0));
	CASE("huge") result(S(fgetxattr, s->fd, P("user.a"), P(buffer), -1));
}

void call_setxattr(subject *s)
{
	static const char acl[] = "\2\0\0\0\1\0\6\0\377\377\377\377\4\0\4\0\377\377\377\377\40\0\4\0\377\377\377\377";
	for (unsigned i = 0; i < SPACES; i++)
		CASE("%s", spaces[i])
		{
			long size = strstr(spaces[i], "acl") ? 28 : 5;
			if (result(S(fsetxattr, s->fd, P(spaces[i]), P(size == 28 ? acl : "value"), size, 0)) == 0) {
				note("%ld", S(fgetxattr, s->fd, P(spaces[i]), P(buffer), 100));
				result(S(fgetxattr, s->fd, P(spaces[i]), P(buffer), 2));
				result(S(fsetxattr, s->fd, P(spaces[i]), P("x"), 1, XATTR_CREATE));
				result(S(flistxattr, s->fd, 0, 0));
				result(S(fremovexattr, s->fd, P(spaces[i])));
			}
		}
	CASE("replace") result(S(fsetxattr, s->fd, P("user.b"), P("x"), 1, XATTR_REPLACE));
	CASE("zero") result(S(fsetxattr, s->fd, P("user.c"), P("x"), 0, 0)), S(fremovexattr, s->fd, P("user.c"));
	CASE("null") result(S(fsetxattr, s->fd, P("user.c"), 0, 0, 0)), S(fremovexattr, s->fd, P("user.c"));
	CASE("badname") result(S(fsetxattr, s->fd, P(bad), P("x"), 1, 0));
	CASE("badvalue") result(S(fsetxattr, s->fd, P("user.c"), P(bad), 1, 0));
	CASE("65537") result(S(fsetxattr, s->fd, P("user.c"), P(buffer), 65537, 0));
	CASE("huge") result(S(fsetxattr, s->fd, P("user.c"), P(buffer), -1, 0));
	EACH(bit, 0, 31, "flag") result(S(fsetxattr, s->fd, P("user.d"), P("x"), 1, 1L << bit)), S(fremovexattr, s->fd, P("user.d"));
}

void call_listxattr(subject *s)
{
	CASE("0") result(S(flistxattr, s->fd, 0, 0));
	CASE("100") result(S(flistxattr, s->fd, P(buffer), 100));
	CASE("bad") result(S(flistxattr, s->fd, P(bad), 100));
	CASE("huge") result(S(flistxattr, s->fd, P(buffer), -1));
}

void call_removexattr(subject *s)
{
	for (unsigned i = 0; i < SPACES; i++)
		CASE("%s", spaces[i]) result(S(fremovexattr, s->fd, P(spaces[i])));
	CASE("bad") result(S(fremovexattr, s->fd, P(bad)));
}
