// Secure bits: what user ID 0 still means, and which bits can be changed.
#include "gt.h"
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>

static void set_caps(uint64_t all, uint64_t inheritable)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{all, all, inheritable}, {all >> 32, all >> 32, inheritable >> 32}};
	must(syscall(SYS_capset, &h, d), "capset");
}

// show prints what the program has.
static void show(const char *what)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {};
	must(syscall(SYS_capget, &h, d), "capget");
	unsigned host = 1u << CAP_SYS_RESOURCE; // not every container has it
	say("%s: uid %d, effective %x, permitted %x, inheritable %x, bits %x, keep %d, ambient %d", what, geteuid(), d[0].effective & ~host,
	    d[0].permitted & ~host, d[0].inheritable, prctl(PR_GET_SECUREBITS), prctl(PR_GET_KEEPCAPS), prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_ADMIN, 0, 0));
}

int child_main(int argc, char **argv)
{
	show("after exec");
	return 0;
}

static void again(void)
{
	execl("/proc/self/exe", "x", "child", NULL);
	fatal("exec");
}

static const int bits[] = {SECBIT_NOROOT, SECBIT_NOROOT_LOCKED, SECBIT_NO_SETUID_FIXUP, SECBIT_NO_SETUID_FIXUP_LOCKED, 5, 15,
			   SECBIT_KEEP_CAPS, SECBIT_KEEP_CAPS_LOCKED, 48, SECBIT_NO_CAP_AMBIENT_RAISE, 128, 0xff, 0x2f};

TEST(effects, "what each bit does")
{
	for (int i = 0; i < sizeof bits / sizeof *bits; i++) {
		int b = bits[i];
		wait_for(FORK(err("set", prctl(PR_SET_SECUREBITS, b)); again()));
		wait_for(FORK(prctl(PR_SET_SECUREBITS, b); setresuid(1, 1, 1); show("a user"); err("keep", prctl(PR_SET_KEEPCAPS, 1)); err("not", prctl(PR_SET_KEEPCAPS, 0));
			      err("clear", prctl(PR_SET_SECUREBITS, 0)); again()));
		wait_for(FORK(prctl(PR_SET_SECUREBITS, b); setfsuid(1); show("files as a user"); setfsuid(0); show("as root again")));
		wait_for(FORK(prctl(PR_SET_SECUREBITS, b); setresuid(-1, 1, -1); show("effective"); setresuid(-1, 0, -1); show("back")));
		wait_for(FORK(prctl(PR_SET_SECUREBITS, b); set_caps(1 << CAP_NET_ADMIN, 1 << CAP_NET_ADMIN);
			      err("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0)); again()));
	}
}

TEST(changes, "from each set of bits to each other")
{
	for (int i = 0; i < sizeof bits / sizeof *bits; i++)
		for (int j = 0; j < sizeof bits / sizeof *bits; j++)
			wait_for(FORK({
				prctl(PR_SET_SECUREBITS, bits[i]);
				int rc = prctl(PR_SET_SECUREBITS, bits[j]);
				say("%x to %x: %s, now %x", bits[i], bits[j], rc ? name_of(errno) : "ok", prctl(PR_GET_SECUREBITS));
			}));
	err("an unknown bit", prctl(PR_SET_SECUREBITS, 1 << 20));
	setuid(1);
	err("a user", prctl(PR_SET_SECUREBITS, 1));
}

TEST(groups, "groups are sorted, and -1 is none")
{
	gid_t g[4] = {3, 1, 2, 2};
	err("set", syscall(SYS_setgroups, 4, g));
	memset(g, 0, sizeof g);
	syscall(SYS_getgroups, 4, g);
	say("%d %d %d %d", g[0], g[1], g[2], g[3]);
	g[0] = -1;
	err("-1", syscall(SYS_setgroups, 1, g));
}
