// Who may change a file's mode and owner, and what a change or a write does to the
// set-id bits. Beside Linux; everything is tried as root and as plain users.
#include "perm.h"
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

TEST(chmod_rules, "chmod")
{
	make("mine", USER, USER, 0644);
	make("club", USER, CLUB, 0644);
	make("other", OTHER, OTHER, 0666);
	make_dir("dir", USER, CLUB, 0755);
	AS(USER, 0, {
		err("own file, own group", chmod("mine", 06755)); mode("is", "mine");
		err("a foreign group", chmod("club", 02755)); mode("is", "club");
		err("a foreign group, not executable", chmod("club", 02744)); mode("is", "club");
		err("set-uid stays", chmod("club", 06755)); mode("is", "club");
		err("a directory of a foreign group", chmod("dir", 02755)); mode("is", "dir");
		err("sticky", chmod("dir", 03777)); mode("is", "dir");
		err("another's file", chmod("other", 0600)); mode("is", "other");
		int fd = open("club", O_RDONLY);
		err("fchmod", fchmod(fd, 02711)); mode("is", "club");
		err("fchmod of a directory", fchmod(open("dir", O_RDONLY), 02700)); mode("is", "dir");
		err("fchmodat", fchmodat(AT_FDCWD, "club", 02777, 0)); mode("is", "club");
	});
	AS(USER, CLUB, {
		err("a member's file", chmod("club", 02755)); mode("is", "club");
		err("a member's directory", chmod("dir", 02755)); mode("is", "dir");
	});
	IN_CHILD("root without CAP_FSETID", {
		drop_caps(CAP(CAP_FSETID));
		err("chmod", chmod("club", 06755)); mode("is", "club");
		err("a directory", chmod("dir", 02777)); mode("is", "dir");
	});
	IN_CHILD("root without CAP_FOWNER", {
		drop_caps(CAP(CAP_FOWNER));
		err("chmod", chmod("club", 0700)); mode("is", "club");
	});
	err("root", chmod("club", 06755)); mode("is", "club");
}

static void create_all(mode_t mask)
{
	umask(mask);
	close(open("a", O_CREAT | O_WRONLY | O_EXCL, 02775)); mode("open", "a");
	close(open("b", O_CREAT | O_WRONLY | O_EXCL, 02745)); mode("open, not executable", "b");
	close(creat("c", 06777)); mode("creat", "c");
	err("mkdir", mkdir("d", 02777)); mode("is", "d");
	err("mknod", mknod("e", S_IFREG | 02777, 0)); mode("is", "e");
	err("mkfifo", mkfifo("f", 02775)); mode("is", "f");
	int fd = open(".", O_TMPFILE | O_RDWR, 02775);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0)
		say("O_TMPFILE: %04o %u:%u", st.st_mode & 07777, st.st_uid, st.st_gid);
	struct sockaddr_un sa = {AF_UNIX, "s"};
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	err("fchmod of the socket", fchmod(s, 02777));
	err("bind", bind(s, (void *)&sa, sizeof sa)); mode("is", "s");
	err("symlink", symlink("x", "l")); mode("is", "l");
	for (const char *p = "abcefsl"; *p; p++)
		unlink((char[]){*p, 0});
	rmdir("d");
}

TEST(create, "creating in a set-group-id directory")
{
	make_dir("dir", 0, CLUB, 02777);
	must(chdir("dir"), "chdir");
	mode_t masks[] = {0, 022, 077, 010};
	for (int i = 0; i < 4; i++) {
		say("a stranger, umask %03o", masks[i]);
		AS(USER, 0, create_all(masks[i]));
	}
	say("a member");
	AS(USER, CLUB, create_all(022));
	say("root");
	create_all(022);
	IN_CHILD("root without CAP_FSETID", drop_caps(CAP(CAP_FSETID)); create_all(022));
}

static mode_t modes[] = {06755, 06745, 04755, 02755, 02745, 02711, 0755};

static void chown_one(const char *who, uid_t as, gid_t more, uid_t owner, gid_t group, uid_t uid, gid_t gid)
{
	for (int i = 0; i < 7; i++) {
		make("f", owner, group, modes[i]);
		char text[100];
		snprintf(text, sizeof text, "%s: %04o %d:%d", who, modes[i], (int)uid, (int)gid);
		if (as == 0)
			err(text, chown("f", uid, gid));
		else
			AS(as, more, err(text, chown("f", uid, gid)));
		mode("is", "f");
	}
}

TEST(chown_rules, "chown")
{
	chown_one("root", 0, 0, USER, USER, OTHER, -1);
	chown_one("root", 0, 0, USER, USER, -1, CLUB);
	chown_one("root", 0, 0, USER, USER, -1, -1);
	chown_one("owner", USER, CLUB, USER, USER, -1, CLUB);
	chown_one("owner", USER, CLUB, USER, CLUB, -1, USER);
	chown_one("owner", USER, 0, USER, OTHER, -1, -1);
	chown_one("owner", USER, 0, USER, OTHER, USER, OTHER);
	chown_one("owner", USER, 0, USER, USER, -1, CLUB);
	chown_one("owner", USER, 0, USER, USER, OTHER, -1);
	chown_one("stranger", OTHER, 0, USER, USER, -1, -1);
	chown_one("stranger", OTHER, 0, USER, USER, USER, USER);
	make_dir("dir", USER, USER, 07775);
	err("a directory", chown("dir", OTHER, -1)); mode("is", "dir");
	AS(OTHER, CLUB, err("its owner", chown("dir", -1, CLUB)); mode("is", "dir"));
	make("f", USER, USER, 06755);
	IN_CHILD("root without CAP_CHOWN", {
		drop_caps(CAP(CAP_CHOWN));
		err("chown", chown("f", OTHER, -1));
		err("nothing", chown("f", -1, -1));
	});
	mode("is", "f");
	IN_CHILD("root without CAP_FSETID", {
		drop_caps(CAP(CAP_FSETID));
		err("chown", chown("f", -1, CLUB));
	});
	mode("is", "f");
}

static int source_fd(void)
{
	int fd = memfd_create("source", 0);
	must(write(fd, "abcdef", 6), "write");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void touch(const char *path, int how)
{
	int fd = how < 9 ? open(path, O_RDWR) : -1, src = source_fd(), p[2];
	off_t off = 0;
	long rc = 0;
	switch (how) {
	case 0: rc = write(fd, "x", 1); break;
	case 1: rc = write(fd, "", 0); break;
	case 2: rc = pwrite(fd, "x", 1, 3); break;
	case 3: rc = ftruncate(fd, 4); break;
	case 4: rc = ftruncate(fd, 10); break;
	case 5: rc = fallocate(fd, 0, 0, 4096); break;
	case 6: rc = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096); break;
	case 7: rc = sendfile(fd, src, &off, 3); break;
	case 8:
		must(pipe(p), "pipe");
		must(write(p[1], "abc", 3), "write");
		rc = splice(p[0], NULL, fd, NULL, 3, 0);
		break;
	case 9: rc = truncate(path, 3); break;
	case 10: rc = fd = open(path, O_WRONLY | O_TRUNC); break;
	case 11: {
		fd = open(path, O_RDWR);
		char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (m == MAP_FAILED)
			fatal("mmap");
		m[0] = 'z';
		break;
	}
	case 12: rc = utimensat(AT_FDCWD, path, NULL, 0); break;
	case 13: rc = fd = open(path, O_RDWR); break;
	case 14: {
		char page[4096] = "x";
		fd = open(path, O_RDWR);
		rc = pwritev2(fd, &(struct iovec){page, 100}, 1, 0, 0);
		break;
	}
	}
	if (rc < 0)
		say("%s", name_of(errno));
}

TEST(writes, "writes clear set-id bits")
{
	static const char *names[] = {"write", "write nothing", "pwrite", "ftruncate", "ftruncate to the same", "fallocate",
		"punch", "sendfile", "splice", "truncate", "O_TRUNC", "store", "utimes", "open", "pwritev2"};
	static mode_t all[] = {06777, 06767, 02767, 04777};
	char text[100];
	for (int how = 0; how < 15; how++)
		for (int i = 0; i < 4; i++)
			for (int who = 0; who < 4; who++) {
				make("f", 0, CLUB, all[i]);
				snprintf(text, sizeof text, "%s %d", names[how], who);
				if (who == 0)
					AS(USER, 0, touch("f", how));
				else if (who == 1)
					AS(USER, CLUB, touch("f", how));
				else if (who == 2)
					wait_for(FORK(touch("f", how)));
				else
					wait_for(FORK(drop_caps(CAP(CAP_FSETID)); touch("f", how)));
				mode(text, "f");
			}
}

TEST(caps_of_files, "writes clear security.capability")
{
	uint32_t v[5] = {0x02000001, 1 << CAP_NET_RAW, 0, 0, 0};
	char got[64];
	static const char *names[] = {"write", "chown", "truncate", "O_TRUNC", "fallocate", "chmod", "store"};
	for (int how = 0; how < 7; how++) {
		make("f", USER, USER, 0777);
		if (setxattr("f", "security.capability", v, sizeof v, 0) < 0)
			fatal("setxattr");
		int fd = open("f", O_RDWR);
		switch (how) {
		case 0: write(fd, "x", 1); break;
		case 1: chown("f", USER, USER); break;
		case 2: truncate("f", 3); break;
		case 3: open("f", O_RDWR | O_TRUNC); break;
		case 4: fallocate(fd, 0, 0, 4096); break;
		case 5: chmod("f", 0755); break;
		case 6: *(char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) = 1; break;
		}
		num(names[how], getxattr("f", "security.capability", got, sizeof got));
		close(fd);
	}
	make("f", USER, USER, 0777);
	AS(USER, 0, {
		err("set by its owner", setxattr("f", "security.capability", v, sizeof v, 0));
		err("another of security", setxattr("f", "security.other", v, sizeof v, 0));
	});
	IN_CHILD("root without CAP_SETFCAP", {
		drop_caps(CAP(CAP_SETFCAP));
		err("set", setxattr("f", "security.capability", v, sizeof v, 0));
		err("remove", removexattr("f", "security.capability"));
		err("another", setxattr("f", "security.other", v, 1, 0));
	});
	IN_CHILD("root without CAP_SYS_ADMIN", {
		drop_caps(CAP(CAP_SYS_ADMIN));
		err("set", setxattr("f", "security.capability", v, sizeof v, 0));
		err("another", setxattr("f", "security.another", v, 1, 0));
	});
	err("a wrong one", setxattr("f", "security.capability", v, 3, 0));
}

static struct timespec old[2] = {{1000, 0}, {2000, 0}};

static void times_of(const char *path)
{
	struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}}, omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	struct timespec half[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
	err("set", utimensat(AT_FDCWD, path, old, 0));
	err("now", utimensat(AT_FDCWD, path, now, 0));
	err("NULL", utimensat(AT_FDCWD, path, NULL, 0));
	err("omit", utimensat(AT_FDCWD, path, omit, 0));
	err("half", utimensat(AT_FDCWD, path, half, 0));
}

TEST(times_rules, "utimensat")
{
	static mode_t all[] = {0666, 0644, 0466, 0444, 0000};
	char text[50];
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof text, "%04o", all[i]);
		make("f", USER, USER, all[i]);
		say("%s: the owner", text);
		AS(USER, 0, times_of("f"));
		say("%s: another", text);
		AS(OTHER, 0, times_of("f"));
	}
	IN_CHILD("root without CAP_FOWNER", drop_caps(CAP(CAP_FOWNER)); times_of("f"));
	IN_CHILD("and CAP_DAC_OVERRIDE", drop_caps(CAP(CAP_FOWNER) | CAP(CAP_DAC_OVERRIDE)); times_of("f"));
}

static void access_all(const char *path)
{
	char text[16];
	for (int m = 0; m < 8; m++)
		text[m] = access(path, m) == 0 ? '0' + m : '-';
	text[8] = 0;
	say("access %s: %s", path, text);
	for (int m = 0; m < 8; m++)
		text[m] = faccessat(AT_FDCWD, path, m, AT_EACCESS) == 0 ? '0' + m : '-';
	say("faccessat2 %s: %s", path, text);
}

TEST(access_rules, "access with real and effective ids")
{
	static mode_t all[] = {0700, 0070, 0007, 0640, 0000, 0111, 0444, 0005};
	char name[8];
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "f%d", i);
		make(name, USER, CLUB, all[i]);
		snprintf(name, sizeof name, "d%d", i);
		make_dir(name, USER, CLUB, all[i]);
	}
	for (int who = 0; who < 7; who++) {
		say("as %d", who);
		wait_for(FORK({
			switch (who) {
			case 1: become(USER, USER, 0); break;
			case 2: become(OTHER, OTHER, CLUB); break;
			case 3: become(OTHER, OTHER, 0); break;
			case 4: setgroups(0, 0); must(setresuid(OTHER, 0, 0), "setresuid"); break;
			case 5: setgroups(0, 0); must(setresuid(0, USER, 0), "setresuid"); break;
			case 6: setgroups(0, 0); must(setresgid(CLUB, USER, 0), "setresgid"); must(setresuid(USER, OTHER, 0), "setresuid"); break;
			}
			for (int i = 0; i < 8; i++) {
				snprintf(name, sizeof name, "f%d", i);
				access_all(name);
				snprintf(name, sizeof name, "d%d", i);
				access_all(name);
			}
		}));
	}
	err("a wrong mode", access("f0", 8));
	err("wrong flags", syscall(SYS_faccessat2, AT_FDCWD, "f0", 0, 1));
}

TEST(opens, "open")
{
	static mode_t all[] = {0700, 0070, 0007, 0640, 0200, 0400, 0000};
	static int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, 3, O_RDONLY | O_TRUNC, O_PATH, O_RDONLY | O_NOATIME, O_WRONLY | O_APPEND};
	char name[8], text[100];
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof name, "f%d", i);
		make(name, USER, CLUB, all[i]);
	}
	for (int who = 0; who < 4; who++)
		wait_for(FORK({
			if (who == 0)
				become(USER, USER, 0);
			else if (who == 1)
				become(OTHER, OTHER, CLUB);
			else if (who == 2)
				become(OTHER, OTHER, 0);
			for (int i = 0; i < 7; i++)
				for (int k = 0; k < 8; k++) {
					snprintf(name, sizeof name, "f%d", i);
					snprintf(text, sizeof text, "%d: %04o flags %d", who, all[i], k);
					err(text, open(name, flags[k]));
				}
		}));
	make("f", USER, USER, 0666);
	make_dir("d", USER, USER, 0777);
	AS(OTHER, 0, {
		int fd = open("f", O_RDWR);
		err("F_SETFL O_NOATIME", fcntl(fd, F_SETFL, O_NOATIME));
		err("a directory for writing", open("d", O_WRONLY));
		err("O_TMPFILE", open("d", O_TMPFILE | O_RDWR, 0600));
		err("O_TMPFILE where one may not write", open(".", O_TMPFILE | O_RDWR, 0600));
		err("O_CREAT there", open("new", O_CREAT | O_RDWR, 0600));
		err("mkdir there", mkdir("new", 0700));
		err("symlink there", symlink("a", "new"));
		err("mkfifo there", mkfifo("new", 0700));
		err("unlink there", unlink("f"));
		err("rmdir there", rmdir("d"));
		err("rename there", rename("f", "g"));
		err("link there", link("f", "g"));
	});
}
