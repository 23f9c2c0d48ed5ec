// Sticky directories, hard and symbolic links to what is another's, and files without
// names. The rules that /proc/sys/fs/protected_* switch are held against a model, for
// the values that the machine has.
#include "perm.h"
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

static int hardlinks, symlinks, fifos, regular;

static void settings(void)
{
	hardlinks = setting("/proc/sys/fs/protected_hardlinks");
	symlinks = setting("/proc/sys/fs/protected_symlinks");
	fifos = setting("/proc/sys/fs/protected_fifos");
	regular = setting("/proc/sys/fs/protected_regular");
	if (hardlinks < 0 || symlinks < 0 || fifos < 0 || regular < 0)
		fatal("/proc/sys/fs/protected_*");
}

// expect compares a call's result with the model's, 0 or an error.
static int wrong, tried;

static void expect(const char *what, long rc, int want)
{
	int got = rc < 0 ? errno : 0;
	tried++;
	if (got != want) {
		say("%s: %s instead of %s", what, name_of(got), name_of(want));
		wrong++;
	}
}

static void held(const char *what)
{
	say("%s: %s", what, wrong ? "NO" : tried ? "yes" : "nothing was tried");
	wrong = tried = 0;
}

TEST(sysctls, "the settings")
{
	static const char *names[] = {"hardlinks", "symlinks", "fifos", "regular"};
	for (int i = 0; i < 4; i++) {
		char path[64];
		struct stat st;
		snprintf(path, sizeof path, "/proc/sys/fs/protected_%s", names[i]);
		if (stat(path, &st) < 0)
			fatal(path);
		say("%s: %04o %u:%u", names[i], st.st_mode & 07777, st.st_uid, st.st_gid);
		AS(USER, 0, err("a user reads", open(path, O_RDONLY)); err("writes", open(path, O_WRONLY)));
	}
}

// linked is the model's answer to link(2).
static int linked(uid_t uid, int caps, uid_t owner, mode_t m, int type)
{
	if (!hardlinks || owner == uid || caps)
		return 0;
	int others = m & 7;
	if (type != S_IFREG || m & S_ISUID || (m & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) || (others & 6) != 6)
		return EPERM;
	return 0;
}

TEST(hard_links, "hard links to another's files")
{
	static mode_t all[] = {0666, 0644, 0600, 04666, 02666, 02676, 02677, 0777, 0622};
	settings();
	make_dir("free", 0, 0, 0777);
	char name[16], text[64];
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof name, "free/f%d", i);
		make(name, OTHER, OTHER, all[i]);
		snprintf(name, sizeof name, "free/p%d", i);
		must(mkfifo(name, 0600), "mkfifo");
		must(chown(name, OTHER, OTHER), "chown");
		must(chmod(name, all[i]), "chmod");
	}
	must(symlink("f0", "free/l"), "symlink");
	must(lchown("free/l", OTHER, OTHER), "lchown");
	for (int who = 0; who < 4; who++) {
		int st = wait_for(FORK({
			uid_t uid = who == 0 ? USER : who == 1 ? OTHER : 0;
			if (uid)
				become(uid, uid, 0);
			if (who == 3)
				drop_caps(CAP(CAP_FOWNER));
			for (int i = 0; i < 9; i++) {
				snprintf(name, sizeof name, "free/f%d", i);
				snprintf(text, sizeof text, "link %d %04o", who, all[i]);
				int full = uid == 0; // root may read and write whatever the mode says
				mode_t m = full ? all[i] | 6 : all[i];
				expect(text, link(name, "free/new"), linked(uid, who == 2, OTHER, m, S_IFREG));
				unlink("free/new");
				snprintf(name, sizeof name, "free/p%d", i);
				expect("link of a FIFO", link(name, "free/new"), linked(uid, who == 2, OTHER, m, S_IFIFO));
				unlink("free/new");
			}
			expect("link of a link", link("free/l", "free/new"), linked(uid, who == 2, OTHER, 0777, S_IFLNK));
			unlink("free/new");
			_exit(wrong != 0);
		}));
		wrong += st != 0;
		tried++;
	}
	held("as the setting says");
}

// A link in a directory: whose directory, its mode, whose link, who follows it.
TEST(symbolic_links, "symbolic links in sticky directories")
{
	static mode_t dirs[] = {0777, 01777, 01775, 01755};
	static uid_t ids[] = {0, USER, OTHER};
	char name[32], text[100];
	settings();
	make("target", 0, 0, 0666);
	for (int d = 0; d < 4; d++)
		for (int o = 0; o < 3; o++) {
			snprintf(name, sizeof name, "d%d%d", d, o);
			make_dir(name, ids[o], 0, dirs[d]);
			for (int l = 0; l < 3; l++) {
				snprintf(name, sizeof name, "d%d%d/l%d", d, o, l);
				must(symlink("../target", name), "symlink");
				must(lchown(name, ids[l], 0), "lchown");
			}
		}
	for (int who = 0; who < 3; who++) {
		int st = wait_for(FORK({
			if (ids[who])
				become(ids[who], ids[who], 0);
			for (int d = 0; d < 4; d++)
				for (int o = 0; o < 3; o++)
					for (int l = 0; l < 3; l++) {
						int want = 0;
						if (symlinks && ids[l] != ids[who] && (dirs[d] & 01002) == 01002 && ids[l] != ids[o])
							want = EACCES;
						struct stat s;
						snprintf(name, sizeof name, "d%d%d/l%d", d, o, l);
						snprintf(text, sizeof text, "%04o of %d, link of %d, by %d", dirs[d], ids[o], ids[l], ids[who]);
						expect(text, open(name, O_RDONLY), want);
						expect(text, open(name, O_RDWR), want);
						expect("stat", stat(name, &s), want);
						expect("lstat", lstat(name, &s), 0);
						expect("readlink", readlink(name, text, sizeof text), 0);
						expect("O_NOFOLLOW", open(name, O_RDONLY | O_NOFOLLOW), ELOOP);
						expect("access", access(name, R_OK), want);
						expect("truncate", truncate(name, 3), want);
						strcat(name, "/x"); // only a link at the end is looked at
						expect("in the middle", open(name, O_RDONLY), ENOTDIR);
					}
			_exit(wrong != 0);
		}));
		wrong += st != 0;
		tried++;
	}
	held("as the setting says");
}

TEST(fifos_and_files, "O_CREAT of what is there in sticky directories")
{
	static mode_t dirs[] = {0777, 01777, 01775, 01755, 01770};
	static uid_t ids[] = {0, USER, OTHER};
	char name[32], text[100];
	settings();
	for (int d = 0; d < 5; d++)
		for (int o = 0; o < 3; o++) {
			snprintf(name, sizeof name, "d%d%d", d, o);
			make_dir(name, ids[o], USER, dirs[d]);
			for (int f = 0; f < 3; f++) {
				snprintf(name, sizeof name, "d%d%d/f%d", d, o, f);
				make(name, ids[f], 0, 0666);
				name[4] = 'p';
				must(mkfifo(name, 0666), "mkfifo");
				must(chown(name, ids[f], 0), "chown");
				must(chmod(name, 0666), "chmod");
				name[4] = 's';
				struct sockaddr_un sa = {AF_UNIX};
				strcpy(sa.sun_path, name);
				must(bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&sa, sizeof sa), "bind");
				must(chown(name, ids[f], 0), "chown");
			}
		}
	for (int who = 0; who < 3; who++) {
		int st = wait_for(FORK({
			if (ids[who])
				become(ids[who], USER, 0);
			for (int d = 0; d < 5; d++)
				for (int o = 0; o < 3; o++)
					for (int f = 0; f < 3; f++)
						for (int fifo = 0; fifo < 2; fifo++) {
							int level = fifo ? fifos : regular;
							int want = 0;
							if (level && dirs[d] & 01000 && ids[f] != ids[o] && ids[f] != ids[who])
								if (dirs[d] & 2 || dirs[d] & 020 && level >= 2)
									want = EACCES;
							snprintf(name, sizeof name, "d%d%d/%c%d", d, o, fifo ? 'p' : 'f', f);
							snprintf(text, sizeof text, "%04o of %d, %s of %d, by %d", dirs[d], ids[o], name, ids[f], ids[who]);
							int fd = open(name, O_CREAT | O_RDWR | O_NONBLOCK, 0666);
							expect(text, fd, want);
							close(fd);
							fd = open(name, O_RDWR | O_NONBLOCK);
							expect("without O_CREAT", fd, 0);
							close(fd);
							expect("O_EXCL", open(name, O_CREAT | O_EXCL | O_RDWR, 0666), EEXIST);
						}
			_exit(wrong != 0);
		}));
		wrong += st != 0;
		tried++;
	}
	held("as the settings say");
}

TEST(sticky, "removing and renaming in sticky directories")
{
	static uid_t ids[] = {0, USER, OTHER};
	char name[32], to[32], text[100];
	for (int d = 0; d < 3; d++) {
		snprintf(name, sizeof name, "d%d", d);
		make_dir(name, ids[d], 0, 01777);
	}
	make_dir("free", 0, 0, 0777);
	for (int who = 0; who < 5; who++)
		for (int d = 0; d < 3; d++)
			for (int f = 0; f < 3; f++)
				for (int how = 0; how < 8; how++) {
					snprintf(name, sizeof name, "d%d/f", d);
					snprintf(to, sizeof to, "d%d/to", d);
					if (how == 1) {
						make_dir(name, ids[f], 0, 0777);
					} else {
						make(name, ids[f], 0, 0666);
					}
					make("free/x", ids[who % 3], 0, 0666);
					snprintf(text, sizeof text, "%d: by %d in %d's, %d's file", how, who, ids[d], ids[f]);
					wait_for(FORK({
						if (who < 3 && ids[who])
							become(ids[who], ids[who], 0);
						if (who == 3)
							drop_caps(CAP(CAP_FOWNER));
						if (who == 4)
							drop_caps(CAP(CAP_FOWNER) | CAP(CAP_DAC_OVERRIDE));
						switch (how) {
						case 0: err(text, unlink(name)); break;
						case 1: err(text, rmdir(name)); break;
						case 2: err(text, rename(name, to)); break;
						case 3: err(text, rename(name, "free/y")); break;
						case 4: err(text, rename("free/x", name)); break;
						case 5: err(text, syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, "free/x", RENAME_EXCHANGE)); break;
						case 6: err(text, syscall(SYS_renameat2, AT_FDCWD, "free/x", AT_FDCWD, name, RENAME_EXCHANGE)); break;
						case 7: err(text, syscall(SYS_renameat2, AT_FDCWD, "free/x", AT_FDCWD, name, RENAME_NOREPLACE)); break;
						}
					}));
					unlink(name), unlink(to), unlink("free/x"), unlink("free/y");
					rmdir(name);
				}
}

TEST(directories, "moving directories")
{
	make_dir("a", USER, USER, 0777);
	make_dir("b", USER, USER, 0777);
	make_dir("a/mine", USER, USER, 0755);
	make_dir("a/other", OTHER, OTHER, 0755);
	make_dir("a/closed", USER, USER, 0000);
	AS(USER, 0, {
		err("own", rename("a/mine", "b/mine"));
		err("another's, its .. changes", rename("a/other", "b/other"));
		err("another's, its .. does not change", rename("a/other", "a/other2"));
		err("own that is not writable", rename("a/closed", "b/closed"));
		err("a file in a closed one", unlink("a/closed/x"));
		err("exchange", syscall(SYS_renameat2, AT_FDCWD, "a/other2", AT_FDCWD, "b/mine", RENAME_EXCHANGE));
	});
}

TEST(nameless, "names for files without one")
{
	make_dir("d", USER, USER, 0777);
	char path[64];
	make("closed", OTHER, OTHER, 0600);
	int foreign = must(open("closed", O_RDONLY), "open");
	AS(USER, 0, {
		int fd = open("d", O_TMPFILE | O_RDWR, 0600), excl = open("d", O_TMPFILE | O_RDWR | O_EXCL, 0600);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		err("through /proc", linkat(AT_FDCWD, path, AT_FDCWD, "d/b", AT_SYMLINK_FOLLOW));
		err("again", linkat(AT_FDCWD, path, AT_FDCWD, "d/c", AT_SYMLINK_FOLLOW));
		snprintf(path, sizeof path, "/proc/self/fd/%d", excl);
		err("O_EXCL", linkat(AT_FDCWD, path, AT_FDCWD, "d/e", AT_SYMLINK_FOLLOW));
		err("an inherited descriptor", linkat(foreign, "", AT_FDCWD, "d/f", AT_EMPTY_PATH));
		int gone = open("d/g", O_CREAT | O_RDWR, 0600);
		unlink("d/g");
		snprintf(path, sizeof path, "/proc/self/fd/%d", gone);
		err("removed", linkat(AT_FDCWD, path, AT_FDCWD, "d/g", AT_SYMLINK_FOLLOW));
		// What is reopened through /proc is asked for again.
		int ro = open("d/b", O_RDONLY);
		fchmod(ro, 0400);
		snprintf(path, sizeof path, "/proc/self/fd/%d", ro);
		err("reopen for writing", open(path, O_RDWR));
	});
	int fd = open("d", O_TMPFILE | O_RDWR, 0600);
	err("root, AT_EMPTY_PATH", linkat(fd, "", AT_FDCWD, "d/a", AT_EMPTY_PATH));
	AS(USER, 0, {
		snprintf(path, sizeof path, "/proc/self/fd/%d", foreign);
		err("reopen what was inherited", open(path, O_RDONLY));
		int p = open("closed", O_PATH);
		snprintf(path, sizeof path, "/proc/self/fd/%d", p);
		err("O_PATH", p);
		err("reopen what O_PATH opened", open(path, O_RDONLY));
	});
}

TEST(nodes, "device nodes")
{
	make_dir("d", USER, USER, 0777);
	AS(USER, 0, {
		err("character", mknod("d/c", S_IFCHR | 0600, makedev(1, 3)));
		err("block", mknod("d/b", S_IFBLK | 0600, makedev(7, 0)));
		err("whiteout", mknod("d/w", S_IFCHR | 0600, 0));
		err("FIFO", mknod("d/f", S_IFIFO | 0600, 0));
		err("socket", mknod("d/s", S_IFSOCK | 0600, 0));
		err("regular", mknod("d/r", S_IFREG | 0600, 0));
		err("directory", mknod("d/d", S_IFDIR | 0600, 0));
	});
	IN_CHILD("root without CAP_MKNOD", {
		drop_caps(CAP(CAP_MKNOD));
		err("character", mknod("d/c", S_IFCHR | 0600, makedev(1, 3)));
	});
}

static void attributes(const char *path)
{
	char b[16];
	static const char *names[] = {"user.a", "trusted.a", "security.a", "system.a", "a", "user.", "nothing.a"};
	for (int i = 0; i < 7; i++) {
		char text[80];
		snprintf(text, sizeof text, "%s set %s", path, names[i]);
		err(text, lsetxattr(path, names[i], "v", 1, 0));
		snprintf(text, sizeof text, "%s get %s", path, names[i]);
		num(text, lgetxattr(path, names[i], b, sizeof b));
		snprintf(text, sizeof text, "%s remove %s", path, names[i]);
		err(text, lremovexattr(path, names[i]));
	}
}

TEST(xattrs, "extended attributes")
{
	make("own", USER, USER, 0600);
	make("ro", USER, USER, 0444);
	make("read", OTHER, OTHER, 0644);
	make("write", OTHER, OTHER, 0622);
	make("none", OTHER, OTHER, 0600);
	make_dir("sticky", OTHER, OTHER, 01777);
	make_dir("dir", OTHER, OTHER, 0777);
	must(mkfifo("fifo", 0666), "mkfifo");
	must(chown("fifo", USER, USER), "chown");
	must(symlink("own", "link"), "symlink");
	must(lchown("link", USER, USER), "lchown");
	static const char *all[] = {"own", "ro", "read", "write", "none", "sticky", "dir", "fifo", "link"};
	for (int i = 0; i < 9; i++) {
		lsetxattr(all[i], "trusted.a", "123", 3, 0);
		lsetxattr(all[i], "security.a", "12345", 5, 0);
		AS(USER, 0, attributes(all[i]));
		char list[256];
		AS(USER, 0, {
			int n = llistxattr(all[i], list, sizeof list);
			for (int k = 0; k < n; k += strlen(list + k) + 1)
				if (strcmp(list + k, "security.selinux"))
					say("%s has %s", all[i], list + k);
		});
	}
	say("root");
	for (int i = 0; i < 9; i++)
		attributes(all[i]);
	IN_CHILD("root without CAP_SYS_ADMIN", drop_caps(CAP(CAP_SYS_ADMIN)); attributes("own"); attributes("sticky"));
}
