// The table of numbers: calls that take a flag, an identifier or a command, with
// each bit and with values about the edges.
#include "files.h"
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static void nothing(subject *s)
{
	s->nofile = 1;
}

static const kind kinds[] = {{"-", nothing}, {}};

static void fd(long rc)
{
	result(rc >= 0 ? 0 : rc);
	if (rc >= 0)
		note("%lo,%ld", S(fcntl, rc, F_GETFL), S(fcntl, rc, F_GETFD)), close(rc);
}

static void ok(long rc)
{
	result(rc > 0 ? 1 : rc);
}

static void clocks(subject *s)
{
	struct timespec ts = {0, 1}, wrong = {0, 1000000000}, negative = {-1, 0};
	struct itimerspec it = {{0, 0}, {1000, 0}};
	int id;
	EACH(c, 0, 26, "gettime") result(S(clock_gettime, c - 6, P(&ts)));
	EACH(c, 0, 26, "getres") result(S(clock_getres, c - 6, P(&ts)));
	EACH(c, 0, 26, "getresnull") result(S(clock_getres, c - 6, 0));
	EACH(c, 0, 26, "gettimebad") result(S(clock_gettime, c - 6, P(bad)));
	EACH(c, 0, 26, "settimebad") result(S(clock_settime, c - 6, P(bad)));
	EACH(c, 0, 26, "settimewrong") result(S(clock_settime, c - 6, P(&wrong)));
	EACH(c, 0, 26, "nanosleep") ts = (struct timespec){0, 1}, result(S(clock_nanosleep, c - 6, 0, P(&ts), 0));
	EACH(c, 0, 26, "nanosleepwrong") result(S(clock_nanosleep, c - 6, 0, P(&wrong), 0));
	EACH(c, 0, 26, "nanosleepbad") result(S(clock_nanosleep, c - 6, 0, P(bad), 0));
	EACH(c, 0, 26, "timer") ok(S(timer_create, c - 6, 0, P(&id)));
	EACH(c, 0, 26, "timerfd") fd(S(timerfd_create, c - 6, 0));
	EACH(c, 0, 26, "adjtime") memset(buffer, 0, 256), ok(S(clock_adjtime, c - 6, P(buffer)));
	EACH(bit, 0, 31, "sleepflag") ts = (struct timespec){0, 1}, result(S(clock_nanosleep, 1, 1L << bit, P(&ts), 0));
	EACH(bit, 0, 31, "timerfdflag") fd(S(timerfd_create, 1, 1L << bit));
	EACH(which, 0, 6, "getitimer") result(S(getitimer, which - 1, P(buffer)));
	EACH(which, 0, 6, "setitimer") memset(buffer, 0, 64), which == 1 ? (void)0 : (void)result(S(setitimer, which - 1, P(buffer), 0));
	CASE("negative") result(S(nanosleep, P(&negative), 0));
	CASE("wrong") result(S(nanosleep, P(&wrong), 0));
	CASE("null") result(S(nanosleep, 0, 0));
	CASE("settimer")
	{
		S(timer_create, 1, 0, P(&id));
		result(S(timer_settime, id, 0, P(&it), P(buffer)));
		result(S(timer_settime, id, 2, P(&it), 0));
		result(S(timer_settime, id, 1, P(bad), 0));
		result(S(timer_settime, id, 1, 0, 0));
		result(S(timer_gettime, id, P(bad)));
		result(S(timer_getoverrun, id));
		it.it_value.tv_nsec = -1;
		result(S(timer_settime, id, 0, P(&it), 0));
		result(S(timer_delete, id));
		result(S(timer_delete, id));
		result(S(timer_gettime, id, P(buffer)));
		result(S(timer_getoverrun, -1));
	}
	EACH(sig, 0, 70, "sigev")
	{
		struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig - 1};
		ok(S(timer_create, 1, P(&e), P(&id)));
	}
	EACH(notify, 0, 9, "notify")
	{
		struct sigevent e = {.sigev_notify = notify - 1, .sigev_signo = 10};
		ok(S(timer_create, 1, P(&e), P(&id)));
	}
}

static void signals(subject *s)
{
	struct { long handler, flags, restorer, mask; } a = {1}, old;
	siginfo_t info;
	struct timespec none = {0, 0};
	long set = 0;
	EACH(sig, 0, 71, "action") sig == 10 || sig == 15 ? (void)0 : (void)result(S(rt_sigaction, sig - 1, 0, P(&old), 8));
	EACH(sig, 0, 71, "setaction") sig == 12 || sig == 8 || sig == 15 ? (void)0 : (void)result(S(rt_sigaction, sig - 1, P(&a), 0, 8));
	EACH(size, 0, 17, "actionsize") result(S(rt_sigaction, 10, 0, P(&old), size));
	EACH(size, 0, 17, "masksize") result(S(rt_sigprocmask, 0, 0, P(&old), size));
	EACH(how, 0, 5, "how") result(S(rt_sigprocmask, how - 1, P(&set), 0, 8));
	EACH(how, 0, 5, "hownull") result(S(rt_sigprocmask, how - 1, 0, P(&old), 8));
	EACH(size, 0, 17, "pendingsize") result(S(rt_sigpending, P(buffer), size));
	EACH(size, 0, 17, "waitsize") result(S(rt_sigtimedwait, P(&set), P(&info), P(&none), size));
	EACH(size, 0, 17, "suspendsize") size == 8 ? (void)0 : (void)result(S(rt_sigsuspend, P(&set), size));
	CASE("maskbad") result(S(rt_sigprocmask, 0, P(bad), 0, 8));
	CASE("maskoldbad") result(S(rt_sigprocmask, 0, 0, P(bad), 8));
	CASE("actionbad") result(S(rt_sigaction, 10, P(bad), 0, 8));
	CASE("actionoldbad") result(S(rt_sigaction, 10, 0, P(bad), 8));
	CASE("waitbad") result(S(rt_sigtimedwait, P(bad), 0, 0, 8));
	CASE("pendingbad") result(S(rt_sigpending, P(bad), 8));
	static const int quiet[] = {-1, 0, 17, 18, 23, 28, 65, 66, 100, INT_MAX, INT_MIN};
	for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++) {
		int sig = quiet[i];
		CASE("kill%d", sig) result(S(kill, getpid(), sig));
		CASE("kill0-%d", sig) setsid(), result(S(kill, 0, sig));
		CASE("killmax%d", sig) result(S(kill, 0x3fffffff, sig));
		CASE("killmin%d", sig) result(S(kill, INT_MIN, sig));
		CASE("kill1-%d", sig) result(S(kill, 1, sig));
		CASE("tkill%d", sig) result(S(tkill, gettid(), sig));
		CASE("tgkill%d", sig) result(S(tgkill, getpid(), gettid(), sig));
		CASE("tgkill0-%d", sig) result(S(tgkill, 0, gettid(), sig));
		CASE("tgkill-1-%d", sig) result(S(tgkill, getpid(), -1, sig));
		CASE("tkill-1-%d", sig) result(S(tkill, -1, sig));
		CASE("tgkillother%d", sig) result(S(tgkill, 1, gettid(), sig));
		CASE("queue%d", sig) memset(&info, 0, sizeof info), info.si_code = -1, result(S(rt_sigqueueinfo, getpid(), sig, P(&info)));
		CASE("queue0-%d", sig) memset(&info, 0, sizeof info), result(S(rt_sigqueueinfo, getpid(), sig, P(&info)));
		CASE("queueother%d", sig) memset(&info, 0, sizeof info), result(S(rt_sigqueueinfo, getppid(), sig, P(&info)));
		CASE("queuebad%d", sig) result(S(rt_sigqueueinfo, getpid(), sig, P(bad)));
	}
	CASE("altstack") result(S(sigaltstack, P((&(stack_t){buffer, 0, 100})), 0));
	CASE("altstackflag") result(S(sigaltstack, P((&(stack_t){buffer, 8, 8192})), 0));
	CASE("altstackdisable") result(S(sigaltstack, P((&(stack_t){0, SS_DISABLE, 0})), 0));
	CASE("altstackbad") result(S(sigaltstack, P(bad), 0));
	CASE("altstackoldbad") result(S(sigaltstack, 0, P(bad)));
	EACH(bit, 0, 31, "altstackbit") result(S(sigaltstack, P((&(stack_t){buffer, 1u << bit, 8192})), 0));
	EACH(bit, 0, 31, "signalfdflag") fd(S(signalfd4, -1, P(&set), 8, 1L << bit));
	EACH(size, 0, 17, "signalfdsize") fd(S(signalfd4, -1, P(&set), size, 0));
}

static void resources(subject *s)
{
	struct rlimit l = {1, 0};
	EACH(r, 0, 22, "get") result(S(getrlimit, r - 2, P(&l)));
	EACH(r, 0, 22, "getbad") result(S(getrlimit, r - 2, P(bad)));
	EACH(r, 0, 22, "prget") result(S(prlimit64, 0, r - 2, 0, P(&l)));
	EACH(r, 0, 22, "order") l = (struct rlimit){2, 1}, result(S(setrlimit, r - 2, P(&l)));
	EACH(r, 0, 22, "raise") getrlimit(r - 2, &l), l.rlim_max++, l.rlim_max == 0 ? (void)0 : (void)result(S(setrlimit, r - 2, P(&l)));
	EACH(r, 0, 22, "values") getrlimit(r - 2, &l) == 0 ? note("%lx,%lx", r == 8 || r == 13 ? 0 : l.rlim_cur, r == 8 || r == 13 ? 0 : l.rlim_max) : (void)0;
	EACH(r, 0, 22, "prother") result(S(prlimit64, 1, r - 2, 0, P(&l)));
	EACH(who, 0, 5, "usage") result(S(getrusage, who - 2, P(buffer)));
	EACH(who, 0, 5, "usagebad") result(S(getrusage, who - 2, P(bad)));
	EACH(which, 0, 5, "getpriority") result(S(getpriority, which - 1, 0));
	EACH(which, 0, 5, "getpriority-1") result(S(getpriority, which - 1, -1));
	EACH(which, 0, 5, "getprioritymax") result(S(getpriority, which - 1, 0x3fffffff));
	EACH(which, 0, 5, "setprioritymax") result(S(setpriority, which - 1, 0x3fffffff, 1));
	EACH(nice, 0, 45, "setpriority") result(S(setpriority, 0, 0, nice - 22)), note("%ld", S(getpriority, 0, 0));
	EACH(which, 0, 5, "ioprio") result(S(ioprio_get, which - 1, 0));
	EACH(class, 0, 9, "ioprioset") result(S(ioprio_set, 1, 0, class << 13));
	EACH(class, 0, 9, "ioprioset4") result(S(ioprio_set, 1, 0, class << 13 | 4));
	CASE("prlimitpid") result(S(prlimit64, -1, 0, 0, P(&l)));
	CASE("prlimitnone") result(S(prlimit64, 0x3fffffff, 0, 0, P(&l)));
	EACH(policy, 0, 10, "min") result(S(sched_get_priority_min, policy - 2));
	EACH(policy, 0, 10, "max") result(S(sched_get_priority_max, policy - 2));
	EACH(policy, 0, 10, "scheduler") *(int *)buffer = 0, result(S(sched_setscheduler, 0, policy - 2, P(buffer))), note("%ld", S(sched_getscheduler, 0));
	EACH(prio, 0, 10, "param") *(int *)buffer = prio - 1, result(S(sched_setparam, 0, P(buffer)));
	CASE("scheduler-1") result(S(sched_getscheduler, -1));
	CASE("schedulerbad") result(S(sched_setscheduler, 0, 0, P(bad)));
	CASE("schedulernull") result(S(sched_setscheduler, 0, 0, 0));
	CASE("getparam") result(S(sched_getparam, 0, P(buffer)));
	CASE("getparamnull") result(S(sched_getparam, 0, 0));
	CASE("getparambad") result(S(sched_getparam, 0, P(bad)));
	CASE("interval") result(S(sched_rr_get_interval, 0, P(buffer)));
	CASE("interval-1") result(S(sched_rr_get_interval, -1, P(buffer)));
	CASE("intervalbad") result(S(sched_rr_get_interval, 0, P(bad)));
	EACH(size, 0, 70, "getattr") result(S(sched_getattr, 0, P(buffer), size, 0));
	EACH(bit, 0, 31, "getattrflag") result(S(sched_getattr, 0, P(buffer), 56, 1L << bit));
	EACH(size, 0, 70, "setattr") memset(buffer, 0, 128), *(int *)buffer = size, result(S(sched_setattr, 0, P(buffer), 0));
	EACH(size, 0, 33, "getaffinity") ok(S(sched_getaffinity, 0, size, P(buffer)));
	CASE("getaffinity-1") ok(S(sched_getaffinity, -1, 128, P(buffer)));
	CASE("getaffinitybad") ok(S(sched_getaffinity, 0, 128, P(bad)));
	CASE("setaffinity0") memset(buffer, 0, 128), result(S(sched_setaffinity, 0, 128, P(buffer)));
	CASE("setaffinitysize0") result(S(sched_setaffinity, 0, 0, P(buffer)));
	CASE("setaffinitybad") result(S(sched_setaffinity, 0, 128, P(bad)));
	CASE("setaffinity-1") memset(buffer, 255, 128), result(S(sched_setaffinity, -1, 128, P(buffer)));
	CASE("setaffinity") memset(buffer, 255, 128), result(S(sched_setaffinity, 0, 128, P(buffer)));
}

static void flags(subject *s)
{
	int pair[2];
	EACH(bit, 0, 31, "pipe2") result(S(pipe2, P(pair), 1L << bit));
	EACH(bit, 0, 31, "eventfd2") fd(S(eventfd2, 0, 1L << bit));
	EACH(bit, 0, 31, "epoll_create1") fd(S(epoll_create1, 1L << bit));
	EACH(bit, 0, 31, "inotify_init1") fd(S(inotify_init1, 1L << bit));
	EACH(bit, 0, 31, "memfd_create") bit == 2 ? (void)0 : fd(S(memfd_create, P("m"), 1L << bit));
	EACH(bit, 0, 31, "pidfd_open") fd(S(pidfd_open, getpid(), 1L << bit));
	EACH(bit, 0, 31, "getrandom") result(S(getrandom, P(buffer), 16, 1L << bit));
	EACH(bit, 0, 31, "mlock2") result(S(mlock2, P(buffer), 4096, 1L << bit));
	EACH(bit, 0, 31, "mlockall") bit < 3 ? (void)0 : (void)result(S(mlockall, 1L << bit));
	EACH(bit, 0, 31, "msync") result(S(msync, P(buffer), 4096, 1L << bit));
	EACH(bit, 0, 31, "mremap") bit == 1 ? (void)0 : ok(S(mremap, P(buffer), 4096, 4096, 1L << bit));
	EACH(bit, 0, 31, "mprotect") ok(S(mprotect, P(bad), 4096, 1L << bit)), S(mprotect, P(bad), 4096, 0);
	EACH(advice, 0, 110, "madvise") advice == 100 || advice == 101 ? (void)0 : (void)result(S(madvise, P(buffer), 4096, advice));
	EACH(bit, 0, 31, "membarrier") result(S(membarrier, 1L << bit, 0, 0));
	EACH(bit, 0, 31, "membarrierflag") result(S(membarrier, 0, 1L << bit, 0) < 0 ? -1 : 0);
	EACH(bit, 0, 31, "wait4") result(S(wait4, -1, 0, 1L << bit, 0));
	EACH(bit, 0, 31, "waitid") result(S(waitid, 0, 0, P(buffer), 1L << bit, 0));
	EACH(type, 0, 6, "waitidtype") result(S(waitid, type - 1, 0, P(buffer), WEXITED | WNOHANG, 0));
	EACH(type, 0, 6, "waitidtypemin") result(S(waitid, type - 1, INT_MIN, P(buffer), WEXITED | WNOHANG, 0));
	EACH(bit, 0, 31, "umount") result(S(umount2, P("/nowhere"), 1L << bit));
	EACH(bit, 0, 31, "getcwd") result(S(getcwd, P(buffer), bit));
	EACH(bit, 0, 31, "close_range") bit == 1 ? (void)0 : (void)result(S(close_range, 90, 91, 1L << bit));
	EACH(bit, 0, 31, "socket") fd(S(socket, AF_UNIX, SOCK_STREAM | 1L << bit, 0));
	EACH(bit, 0, 31, "futexwaitv") result(S(futex_waitv, P(buffer), 1, 1L << bit, 0, 0));
	EACH(bit, 0, 31, "rseq") result(S(rseq, P(buffer + 4096), 32, 1L << bit, 0));
	EACH(bit, 0, 31, "unshare") bit == 16 || bit == 8 || bit == 17 || bit > 24 ? (void)0 : (void)result(S(unshare, 1L << bit));
	EACH(bit, 0, 31, "setns") result(S(setns, 0, 1L << bit));
	EACH(bit, 0, 31, "process_vm") result(S(process_vm_readv, getpid(), 0, 0, 0, 0, 1L << bit));
	EACH(bit, 0, 31, "pidfd_send_signal") result(S(pidfd_send_signal, S(pidfd_open, getpid(), 0), 0, 0, 1L << bit));
	EACH(bit, 0, 31, "mountflag") result(S(mount, 0, P("/nowhere"), 0, 1L << bit, 0));
	EACH(bit, 0, 31, "fanotify") fd(S(fanotify_init, 1L << bit, 0));
	EACH(bit, 0, 31, "userfaultfd") fd(S(userfaultfd, 1L << bit));
	EACH(bit, 0, 31, "pkey") ok(S(pkey_alloc, 1L << bit, 0));
}

static void sockets(subject *s)
{
	int pair[2];
	for (int family = -1; family < 46; family++)
		CASE("family%d", family) fd(S(socket, family, SOCK_STREAM, 0));
	EACH(family, 0, 46, "dgram") fd(S(socket, family, SOCK_DGRAM, 0));
	EACH(family, 0, 46, "raw") fd(S(socket, family, SOCK_RAW, 0));
	EACH(family, 0, 46, "pair") result(S(socketpair, family, SOCK_STREAM, 0, P(pair)));
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	for (int f = 0; f < 4; f++)
		for (int type = 0; type < 12; type++) {
			CASE("%d:%d:-1", families[f], type) fd(S(socket, families[f], type, -1));
			CASE("%d:%d:max", families[f], type) fd(S(socket, families[f], type, INT_MAX));
			for (int protocol = 0; protocol < 264; protocol = protocol < 25 ? protocol + 1 : protocol + 34)
				CASE("%d:%d:%d", families[f], type, protocol) fd(S(socket, families[f], type, protocol));
		}
	CASE("pairbad") result(S(socketpair, AF_UNIX, SOCK_STREAM, 0, P(bad)));
	CASE("pairprotocol") result(S(socketpair, AF_UNIX, SOCK_STREAM, 1, P(pair)));
	CASE("pairprotocol2") result(S(socketpair, AF_UNIX, SOCK_STREAM, 2, P(pair)));
}

static void identities(subject *s)
{
	static const long ids[] = {0, 1, 1000, 65534, 65535, 65536, INT_MAX, -1, -2};
	gid_t groups[] = {1, 2, -1};
	for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
		CASE("setpgid%ld", ids[i]) result(S(setpgid, ids[i], 0));
		CASE("setpgidto%ld", ids[i]) result(S(setpgid, 0, ids[i]));
		CASE("getpgid%ld", ids[i]) ok(S(getpgid, ids[i]));
		CASE("getsid%ld", ids[i]) ok(S(getsid, ids[i]));
		CASE("umask%ld", ids[i]) S(umask, ids[i]), result(S(umask, 022));
		CASE("setfsuid%ld", ids[i]) S(setfsuid, ids[i]), result(S(setfsuid, -1)), S(setfsuid, as_user);
		CASE("setfsgid%ld", ids[i]) S(setfsgid, ids[i]), result(S(setfsgid, -1)), S(setfsgid, as_user);
	}
	CASE("getgroups-1") result(S(getgroups, -1, P(groups)));
	CASE("getgroups0") result(S(getgroups, 0, 0));
	CASE("setgroups-1") result(S(setgroups, -1, P(groups)));
	CASE("setgroups65537") result(S(setgroups, 65537, P(groups)));
	CASE("setgroupsbad") result(S(setgroups, 1, P(bad)));
	CASE("setgroupswrong") result(S(setgroups, 3, P(groups)));
	CASE("getresuidbad") result(S(getresuid, P(bad), P(buffer), P(buffer)));
	CASE("getresgidbad") result(S(getresgid, P(buffer), P(buffer), P(bad)));
	for (long version = 0x19980329; version < 0x19980332; version++)
		CASE("capget%lx", version)
		{
			long header[2] = {version, 0};
			result(S(capget, P(header), P(buffer)));
		}
	static const long versions[] = {0, 0x19980330, 0x20071026, 0x20080522, 0x20080523};
	for (unsigned i = 0; i < 5; i++) {
		int header[2] = {versions[i], 0};
		CASE("cap%lx", versions[i]) result(S(capget, P(header), P(buffer))), note("%x", header[0]);
		CASE("cap%lxnull", versions[i]) result(S(capget, P(header), 0)), note("%x", header[0]);
		CASE("cap%lxpid", versions[i]) header[1] = -1, result(S(capget, P(header), P(buffer)));
		CASE("cap%lxnone", versions[i]) header[1] = 0x3fffffff, result(S(capget, P(header), P(buffer)));
		CASE("cap%lxset", versions[i]) result(S(capget, P(header), P(buffer))), result(S(capset, P(header), P(buffer)));
		CASE("cap%lxother", versions[i]) header[1] = 1, result(S(capset, P(header), P(buffer)));
	}
	CASE("capbad") result(S(capget, P(bad), P(buffer)));
	CASE("sethostname-1") result(S(sethostname, P("x"), -1));
	CASE("sethostname65") result(S(sethostname, P(buffer), 65));
	CASE("sethostnamebad") result(S(sethostname, P(bad), 5));
	CASE("setdomainname65") result(S(setdomainname, P(buffer), 65));
	CASE("unamebad") result(S(uname, P(bad)));
	CASE("sysinfobad") result(S(sysinfo, P(bad)));
	CASE("timesbad") result(S(times, P(bad)));
	CASE("personality") result(S(personality, 0xffffffff));
	EACH(type, 0, 12, "syslog") ok(S(syslog, type - 1 == 2 || type - 1 == 5 || type - 1 == 4 ? -2 : type - 1, P(buffer), -1));
	EACH(type, 0, 12, "syslog0") ok(S(syslog, type - 1 == 2 || type - 1 == 5 || type - 1 == 4 || type == 7 || type == 8 ? -2 : type - 1, P(buffer), 0));
	CASE("reboot") result(S(reboot, 1, 2, 3));
	CASE("rebootcommand") result(S(reboot, 0xfee1dead, 672274793, 12345));
	CASE("rebootmagic2") result(S(reboot, 0xfee1dead, 1, 0x89abcdef));
	CASE("rebootcad") result(S(reboot, 0xfee1dead, 672274793, 0));
	CASE("vhangup") result(S(vhangup));
	CASE("ioperm") result(S(ioperm, 0x3f8, 1, 0));
	CASE("iopermrange") result(S(ioperm, 65536, 1, 0));
	CASE("iopl4") result(S(iopl, 4));
	CASE("setxid") result(S(setresuid, -1, -1, -1)), result(S(setreuid, -1, -1)), result(S(setresgid, -1, -1, -1)), result(S(setregid, -1, -1));
	CASE("setuid-1") result(S(setuid, -1)), result(S(setgid, -1));
}

static void prctls(subject *s)
{
	EACH(option, 0, 75, "zero") option == 35 ? (void)0 : ok(S(prctl, option, 0, 0, 0, 0));
	EACH(option, 0, 75, "minus") option == 35 ? (void)0 : ok(S(prctl, option, -1, 0, 0, 0));
	EACH(option, 0, 75, "bad") option == 22 ? (void)0 : ok(S(prctl, option, P(bad), 0, 0, 0));
	EACH(option, 0, 75, "more") option == 22 ? (void)0 : ok(S(prctl, option, P(buffer), 1, 1, 1));
	for (int option = 0; option < 66; option++)
		if (option != 22 && option != 26 && option != 38 && option != 1)
			CASE("one%d", option) ok(S(prctl, option, 1, 0, 0, 0));
	EACH(cap, 0, 64, "boundread") result(S(prctl, 23, cap));
	EACH(cap, 0, 64, "ambient") result(S(prctl, 47, 1, cap, 0, 0));
	EACH(command, 0, 6, "ambientcommand") result(S(prctl, 47, command, 0, 0, 0));
	EACH(bit, 0, 31, "securebit") bit == 0 || bit == 2 || bit == 4 || bit == 6 ? (void)0 : (void)result(S(prctl, 28, 1L << bit, 0, 0, 0));
	EACH(code, 0, 32, "arch") code == 1 || code == 2 ? (void)0 : (void)result(S(arch_prctl, 0x1000 + code, P(bad)));
	EACH(code, 0, 48, "xarch") result(S(arch_prctl, 0x2000 + code, 0));
	EACH(op, 0, 6, "seccomp") result(S(seccomp, op - 1 == 0 ? 99 : op - 1, 0, 0));
	EACH(bit, 0, 31, "seccompflag") result(S(seccomp, 1, 1L << bit, P(bad)));
	EACH(action, 0, 8, "seccompaction") *(int *)buffer = action << 16, result(S(seccomp, 2, 0, P(buffer)));
}

static void futexes(subject *s)
{
	static int word = 5, other = 6; // not on the stack: their addresses are taken for counts
	static struct timespec none = {0, 0}, wrong = {0, -1};
	EACH(op, 0, 16, "op") word = 5, result(S(futex, P(&word), op, 7, P(&none), P(&other), 0));
	EACH(op, 0, 16, "private") word = 5, result(S(futex, P(&word), op | 128, 7, P(&none), P(&other), 0));
	EACH(op, 0, 16, "clock") word = 5, result(S(futex, P(&word), op | 256, 7, P(&none), P(&other), 0));
	EACH(op, 0, 16, "equal") word = 5, op == 6 || op == 13 ? (void)0 : (void)result(S(futex, P(&word), op, 5, P(&none), P(&other), 1));
	EACH(op, 0, 16, "bad") result(S(futex, P(bad), op, 5, P(&none), P(bad), 1));
	EACH(op, 0, 16, "odd") result(S(futex, P(buffer + 1), op, 5, P(&none), P(buffer + 2), 1));
	EACH(op, 0, 16, "kernel") result(S(futex, -4096, op, 5, P(&none), -4096, 1));
	EACH(op, 0, 16, "wrong") word = 5, op == 1 ? (void)0 : (void)result(S(futex, P(&word), op, 7, P(&wrong), P(&other), 1));
	EACH(op, 0, 16, "negative") word = 5, result(S(futex, P(&word), op, -1, P(&none), P(&other), 0));
	EACH(op, 16, 140, "high") word = 5, op > 127 ? (void)0 : (void)result(S(futex, P(&word), op, 7, P(&none), P(&other), 0));
	EACH(op, 0, 15, "wakeop") word = 5, result(S(futex, P(&word), 5, 1, 1, P(&other), op << 28 | 1 << 12)), note("%d", other), other = 6;
	EACH(op, 0, 15, "compare") word = 5, result(S(futex, P(&word), 5, 1, 1, P(&other), op << 24 | 1 << 12)), note("%d", other), other = 6;
	CASE("robustsize") result(S(set_robust_list, P(buffer), 23));
	CASE("robust") result(S(set_robust_list, P(buffer + 1000), 24)), S(set_robust_list, 0, 24);
	CASE("getrobust") result(S(get_robust_list, 0, P(buffer), P(buffer + 8)));
	CASE("getrobust1") result(S(get_robust_list, 1, P(buffer), P(buffer + 8)));
	CASE("getrobustnone") result(S(get_robust_list, 0x3fffffff, P(buffer), P(buffer + 8)));
	CASE("getrobust-1") result(S(get_robust_list, -1, P(buffer), P(buffer + 8)));
	EACH(count, 0, 4, "waitv") result(S(futex_waitv, 0, count == 4 ? 129 : 0, 0, 0, 0));
}

static void memory(subject *s)
{
	static const long addresses[] = {0, 1, 4095, 4096, -4096, -1, 0x7ffffffff000, 0x800000000000};
	static const long lengths[] = {0, 1, 4096, -1, LONG_MAX, 1L << 46};
	for (unsigned a = 0; a < sizeof addresses / sizeof *addresses; a++)
		for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
			long at = addresses[a], n = lengths[l];
			CASE("munmap:%ld:%ld", at, n) result(at >= 0 && at < 8192 && n > 4096 ? -2 : S(munmap, at, n));
			CASE("mprotect:%ld:%ld", at, n) result(S(mprotect, at, n, 1));
			CASE("madvise:%ld:%ld", at, n) result(S(madvise, at, n, 3));
			CASE("mincore:%ld:%ld", at, n) result(S(mincore, at, n, P(buffer)));
			CASE("msync:%ld:%ld", at, n) result(S(msync, at, n, 1));
			CASE("mlock:%ld:%ld", at, n) result(S(mlock, at, n));
			CASE("munlock:%ld:%ld", at, n) result(S(munlock, at, n));
			CASE("mremap:%ld:%ld", at, n) ok(S(mremap, at, n, 8192, 1));
			CASE("mremapto:%ld:%ld", at, n) ok(S(mremap, P(buffer), 4096, n, 1));
			CASE("fixed:%ld:%ld", at, n) ok(at < 8192 && at >= 0 && n > 4096 ? -2 : S(mmap, at, n, 0, MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), at == 0 || at == 4096 ? S(munmap, at, 4096) : 0;
			CASE("remap:%ld:%ld", at, n) result(S(remap_file_pages, at, n, 0, 0, 0));
			CASE("getrandom:%ld:%ld", at, n) result(S(getrandom, at, n, 1));
			CASE("shmat:%ld:%ld", at, n) ok(n == 0 ? S(shmat, 99999, at, 0) : -1);
			CASE("mbind:%ld:%ld", at, n) result(S(mbind, at, n, 0, 0, 0, 0));
		}
	EACH(bit, 0, 31, "map") bit == 4 || bit == 20 || bit == 18 || bit == 8 ? (void)0 : ok(S(mmap, 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | 1L << bit, -1, 0));
	EACH(type, 0, 15, "type") ok(S(mmap, 0, 4096, 3, type | MAP_ANONYMOUS, -1, 0));
	EACH(bit, 0, 31, "prot") ok(S(mmap, 0, 4096, 1L << bit, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	CASE("brk0") ok(S(brk, 0));
	CASE("brkmax") ok(S(brk, -1));
	EACH(policy, 0, 9, "mempolicy") result(S(set_mempolicy, policy - 1, 0, 0));
	EACH(bit, 0, 31, "getmempolicy") result(S(get_mempolicy, P(buffer), 0, 0, 0, 1L << bit));
}

static void ipcs(subject *s)
{
	char q[256] = {};
	for (int command = -1; command < 25; command++) {
		CASE("shmctl%d", command) memset(buffer, 0, 512), ok(S(shmctl, -1, command, P(buffer)));
		CASE("semctl%d", command) memset(buffer, 0, 512), ok(S(semctl, -1, 0, command, P(buffer)));
		CASE("msgctl%d", command) memset(buffer, 0, 512), ok(S(msgctl, -1, command, P(buffer)));
		CASE("shmctlbad%d", command) ok(S(shmctl, 0, command, P(bad)));
		CASE("semctlbad%d", command) ok(S(semctl, 0, 0, command, P(bad)));
		CASE("msgctlbad%d", command) ok(S(msgctl, 0, command, P(bad)));
	}
	CASE("semget-1") ok(S(semget, 0, -1, 0600));
	CASE("semget0") ok(S(semget, 0, 0, 0600));
	CASE("semgetmax") ok(S(semget, 0, 32001, 0600));
	CASE("semgetnone") ok(S(semget, 77, 1, 0));
	CASE("shmget0") ok(S(shmget, 0, 0, 0600));
	CASE("shmget-1") ok(S(shmget, 0, -1, 0600));
	CASE("shmgetnone") ok(S(shmget, 77, 1, 0));
	CASE("msggetnone") ok(S(msgget, 77, 0));
	CASE("semop") result(S(semop, -1, P(q), 1)), result(S(semop, 0, P(q), 0)), result(S(semop, 0, P(q), 501)), result(S(semop, 0, P(bad), 1));
	CASE("msgsnd") result(S(msgsnd, -1, P(q), 1, 0)), result(S(msgsnd, 0, P(bad), 1, 0)), result(S(msgsnd, 0, P(q), -1, 0));
	CASE("msgrcv") result(S(msgrcv, -1, P(q), 1, 0, 0)), result(S(msgrcv, 0, P(q), -1, 0, 0));
	CASE("shmdt") result(S(shmdt, 0)), result(S(shmdt, 1)), result(S(shmdt, P(buffer)));
}

// absent asks for numbers that nobody has, or that this kernel may lack.
static void absent(subject *s)
{
	EACH(n, 335, 423, "call") result(syscall(n, -1, -1, -1, -1, -1, -1));
	EACH(n, 452, 600, "call") result(syscall(n, -1, -1, -1, -1, -1, -1));
	static const long far[] = {1000, 0x40000000, 0x40000001, -1, -2, INT_MAX, 0x100000000};
	for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
		CASE("number%ld", far[i]) result(syscall(far[i], -1, -1, -1, -1, -1, -1));
	static const int rare[] = {134, 136, 139, 153, 156, 163, 168, 169, 171, 174, 177, 178, 180, 181, 182, 183, 184, 185, 205, 206, 207, 208,
				   209, 210, 211, 212, 214, 215, 216, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 248, 249, 250, 256,
				   279, 298, 300, 301, 303, 304, 310, 311, 312, 313, 320, 321, 323, 329, 330, 331, 333};
	for (unsigned i = 0; i < sizeof rare / sizeof *rare; i++)
		CASE("rare%d", rare[i]) result(syscall(rare[i], -1, -1, -1, -1, -1, -1));
}

static const call calls[] = {
	{"clocks", clocks, 1}, {"signals", signals, 1, 1}, {"resources", resources, 1, 1}, {"flags", flags, 1}, {"sockets", sockets, 1},
	{"identities", identities, 1, 1}, {"prctl", prctls, 1, 1}, {"futexes", futexes}, {"memory", memory, 1}, {"ipc", ipcs, 1}, {"absent", absent, 1},
	{},
};

const table integers_table = {"integers", kinds, calls};
