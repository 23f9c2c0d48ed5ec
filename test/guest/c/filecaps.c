// Capabilities of programs: the attribute security.capability at exec.
#include "gt.h"
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/xattr.h>

static void copy_self(const char *to, int mode)
{
	static char buf[1 << 16];
	int in = must(open("/proc/self/exe", O_RDONLY), "self"), out = must(open(to, O_CREAT | O_TRUNC | O_WRONLY, 0755), to);
	for (ssize_t n; (n = read(in, buf, sizeof buf)) > 0;)
		must(write(out, buf, n), to);
	close(in), close(out);
	must(chmod(to, mode), to);
}

// value makes an attribute of a revision; its length is returned.
static int value(unsigned *v, int revision, int effective, uint64_t permitted, uint64_t inheritable, int root)
{
	v[0] = revision << 24 | effective;
	v[1] = permitted, v[2] = inheritable, v[3] = permitted >> 32, v[4] = inheritable >> 32, v[5] = root;
	return revision == 3 ? 24 : revision == 2 ? 20 : 12;
}

static void sets(const char *what)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	must(syscall(SYS_capget, &h, d), "capget");
	say("%s: e %x%08x p %x%08x i %x%08x ambient %d %d, secure %lu, dumpable %d, uid %d %d", what, d[1].effective, d[0].effective, d[1].permitted, d[0].permitted, d[1].inheritable, d[0].inheritable,
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0), getauxval(AT_SECURE), prctl(PR_GET_DUMPABLE), getuid(), geteuid());
}

int child_main(int argc, char **argv)
{
	sets(argc > 1 ? argv[1] : "?");
	return 0;
}

static void inheritable(uint64_t i, bool keep)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	must(syscall(SYS_capget, &h, d), "capget");
	d[0].inheritable = i, d[1].inheritable = i >> 32;
	if (!keep)
		d[0].effective = d[1].effective = 0, d[0].permitted = i, d[1].permitted = i >> 32;
	must(syscall(SYS_capset, &h, d), "capset");
}

static void user(void)
{
	must(setresgid(1000, 1000, 1000), "setresgid"), must(setresuid(1000, 1000, 1000), "setresuid");
}

// run starts a program with the attribute, prepared by prep.
static void run(const char *what, const char *path, void (*prep)(void))
{
	pid_t p = FORK(prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE); if (prep) prep(); execl(path, path, "child", what, NULL); exit(errno));
	int st = wait_for(p);
	if (st)
		say("%s: %s", what, name_of(WEXITSTATUS(st)));
}

#define B(c) (1ULL << (c))

TEST(starting, "what a program gets")
{
	static const struct {
		const char *what;
		int revision, effective;
		uint64_t permitted, inheritable;
		int root;
	} files[] = {{"permitted", 2, 0, B(CAP_CHOWN) | B(CAP_NET_RAW), 0, 0}, {"effective", 2, 1, B(CAP_CHOWN) | B(CAP_NET_RAW), 0, 0}, {"inheritable", 2, 0, 0, B(CAP_KILL) | B(CAP_CHOWN), 0}, {"inheritable, effective", 2, 1, 0, B(CAP_KILL), 0},
		{"nothing", 2, 0, 0, 0, 0}, {"nothing, effective", 2, 1, 0, 0, 0}, {"revision 3", 3, 1, B(CAP_CHOWN), 0, 0}, {"of another root", 3, 1, B(CAP_CHOWN), 0, 1000}, {"high", 2, 1, B(CAP_SYSLOG) | B(CAP_BPF), 0, 0}, {"unknown", 2, 0, B(CAP_CHOWN) | 1ULL << 50, 0, 0}};
	void nothing(void) { user(); }
	void inherits(void) { prctl(PR_SET_KEEPCAPS, 1); user(); inheritable(B(CAP_KILL) | B(CAP_CHOWN), false); }
	void ambient(void) { inherits(); must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0), "ambient"); }
	void bounded(void) { must(prctl(PR_CAPBSET_DROP, CAP_CHOWN), "drop"); user(); }
	void no_new(void) { user(); prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }
	void noroot(void) { must(prctl(PR_SET_SECUREBITS, 1), "securebits"); }
	struct {
		const char *what;
		void (*prep)(void);
	} users[] = {{"user", nothing}, {"inherits", inherits}, {"ambient", ambient}, {"bounded", bounded}, {"no new", no_new}, {"noroot", noroot}};
	for (int f = 0; f < (int)(sizeof files / sizeof *files); f++) {
		unsigned v[6];
		char name[100];
		for (int set_id = 0; set_id < 2; set_id++) {
			copy_self("p", set_id ? 04755 : 0755);
			int n = value(v, files[f].revision, files[f].effective, files[f].permitted, files[f].inheritable, files[f].root);
			if (setxattr("p", "security.capability", v, n, 0) < 0)
				say("%s: setxattr: %s", files[f].what, name_of(errno));
			for (int u = 0; u < (int)(sizeof users / sizeof *users); u++) {
				snprintf(name, sizeof name, "%s%s, %s", files[f].what, set_id ? ", set-user-id" : "", users[u].what);
				run(name, "./p", users[u].prep);
			}
		}
	}
}

TEST(setting, "who may set them, and what takes them away")
{
	unsigned v[6], w[6];
	copy_self("p", 0755);
	chown("p", 1000, 1000), chmod(".", 0777);
	int n = value(v, 2, 1, B(CAP_CHOWN), 0, 0);
	IN_CHILD("the owner", user(); err("set", setxattr("p", "security.capability", v, n, 0)));
	for (int r = 0; r < 5; r++)
		say("revision %d: %s", r, (n = value(v, r, 0, 1, 0, 0), setxattr("p", "security.capability", v, n, 0)) ? name_of(errno) : "ok");
	value(v, 2, 0, 1, 0, 0);
	err("short", setxattr("p", "security.capability", v, 19, 0)), err("long", setxattr("p", "security.capability", v, 21, 0)), v[0] |= 2, err("unknown flags", setxattr("p", "security.capability", v, 20, 0));
	static const char *what[] = {"write", "truncate", "chown", "chmod", "rename", "append by the owner", "utime", "setxattr", "chown by the owner", "a write of nothing", "fallocate"};
	for (int i = 0; i < 11; i++) {
		n = value(v, 2, 1, B(CAP_CHOWN), 0, 0);
		must(setxattr("p", "security.capability", v, n, 0), "set");
		int fd = open("p", O_RDWR | O_APPEND);
		switch (i) {
		case 0: write(fd, "x", 1); break;
		case 1: truncate("p", 5000000); break;
		case 2: chown("p", 1000, 1000); break;
		case 3: chmod("p", 0755); break;
		case 4: rename("p", "q"), rename("q", "p"); break;
		case 5: wait_for(FORK(user(); int own = open("p", O_WRONLY | O_APPEND); write(own, "x", 1))); break;
		case 6: utimensat(AT_FDCWD, "p", NULL, 0); break;
		case 7: setxattr("p", "user.x", "y", 1, 0); break;
		case 8: wait_for(FORK(user(); chown("p", 1000, 1000))); break;
		case 9: write(fd, "", 0); break;
		case 10: fallocate(fd, 0, 0, 6000000); break;
		}
		close(fd);
		num(what[i], getxattr("p", "security.capability", w, sizeof w));
	}
	copy_self("p", 0755), setxattr("p", "security.capability", v, n, 0);
	run("again", "./p", user);
	int fd = open("p", O_WRONLY);
	write(fd, "\177", 1), close(fd);
	run("after a write", "./p", user);
	setxattr("p", "security.capability", v, n, 0), run("once more", "./p", user), removexattr("p", "security.capability"), run("removed", "./p", user);
}
