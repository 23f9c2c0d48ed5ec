// Calls about the descriptor itself, its locks, and waiting for it.
#include "files.h"
#include <sys/file.h>
#include <sys/select.h>

void call_fcntl(subject *s)
{
	CASE("dupfd") result(S(fcntl, s->fd, F_DUPFD, 50));
	CASE("dupfd-1") result(S(fcntl, s->fd, F_DUPFD, -1));
	CASE("dupfdmax") result(S(fcntl, s->fd, F_DUPFD, 1 << 30));
	CASE("dupcloexec") result(S(fcntl, s->fd, F_DUPFD_CLOEXEC, 50)), note("%ld", S(fcntl, 50, F_GETFD));
	CASE("getfd") result(S(fcntl, s->fd, F_GETFD));
	CASE("setfd") result(S(fcntl, s->fd, F_SETFD, 1)), note("%ld", S(fcntl, s->fd, F_GETFD));
	CASE("setfdall") result(S(fcntl, s->fd, F_SETFD, -1)), note("%ld", S(fcntl, s->fd, F_GETFD));
	CASE("getfl") note("%lo", S(fcntl, s->fd, F_GETFL));
	EACH(command, 17, 41, "command") result(S(fcntl, s->fd, command, P(bad)));
	EACH(command, 1024, 1047, "command") result(S(fcntl, s->fd, command, P(bad)));
	CASE("command-1") result(S(fcntl, s->fd, -1, 0));
}

void call_setfl(subject *s)
{
	CASE("0") result(S(fcntl, s->fd, F_SETFL, 0));
	CASE("all") result(S(fcntl, s->fd, F_SETFL, -1));
	EACH(bit, 0, 31, "bit") result(S(fcntl, s->fd, F_SETFL, 1L << bit)), note("%lo", S(fcntl, s->fd, F_GETFL));
}

void call_owner(subject *s)
{
	struct { int type, pid; } ex = {1, getpid()}, wrong = {7, 1};
	CASE("get") result(S(fcntl, s->fd, F_GETOWN));
	CASE("set") result(S(fcntl, s->fd, F_SETOWN, getpid())), note(S(fcntl, s->fd, F_GETOWN) == getpid() ? "same" : "other");
	CASE("group") result(S(fcntl, s->fd, F_SETOWN, -getpgrp()));
	CASE("none") result(S(fcntl, s->fd, F_SETOWN, 0x3fffffff));
	CASE("min") result(S(fcntl, s->fd, F_SETOWN, INT_MIN));
	CASE("setex") result(S(fcntl, s->fd, F_SETOWN_EX, P(&ex)));
	CASE("setexwrong") result(S(fcntl, s->fd, F_SETOWN_EX, P(&wrong)));
	CASE("setexbad") result(S(fcntl, s->fd, F_SETOWN_EX, P(bad)));
	CASE("getex") result(S(fcntl, s->fd, F_GETOWN_EX, P(&ex))), note("%d,%s", ex.type, ex.pid == getpid() ? "self" : ex.pid ? "other" : "0");
	CASE("setsig") result(S(fcntl, s->fd, F_SETSIG, 34)), result(S(fcntl, s->fd, F_GETSIG));
	CASE("setsig0") result(S(fcntl, s->fd, F_SETSIG, 0));
	CASE("setsig65") result(S(fcntl, s->fd, F_SETSIG, 65));
	CASE("setsig-1") result(S(fcntl, s->fd, F_SETSIG, -1));
	CASE("getsig") result(S(fcntl, s->fd, F_GETSIG));
	CASE("uids") result(S(fcntl, s->fd, 17, P(buffer)));
}

void call_pipesize(subject *s)
{
	static const long sizes[] = {0, 1, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1, 1L << 31, -1};
	CASE("get") result(S(fcntl, s->fd, F_GETPIPE_SZ));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		CASE("%ld", sizes[i]) result(S(fcntl, s->fd, F_SETPIPE_SZ, sizes[i]));
}

void call_seals(subject *s)
{
	CASE("get") result(S(fcntl, s->fd, F_GET_SEALS));
	CASE("add0") result(S(fcntl, s->fd, F_ADD_SEALS, 0));
	for (int bit = 0; bit < 7; bit++)
		CASE("bit%d", bit) result(S(fcntl, s->fd, F_ADD_SEALS, 1L << bit)), result(S(fcntl, s->fd, F_GET_SEALS));
	uint64_t hint = 2;
	EACH(command, 1035, 1038, "hint") result(S(fcntl, s->fd, command, P(&hint)));
	CASE("hintwrong") hint = 9, result(S(fcntl, s->fd, 1036, P(&hint)));
}

void call_lease(subject *s)
{
	CASE("get") result(S(fcntl, s->fd, F_GETLEASE));
	CASE("read") result(S(fcntl, s->fd, F_SETLEASE, F_RDLCK)), result(S(fcntl, s->fd, F_GETLEASE));
	CASE("write") result(S(fcntl, s->fd, F_SETLEASE, F_WRLCK)), result(S(fcntl, s->fd, F_GETLEASE));
	CASE("unlock") result(S(fcntl, s->fd, F_SETLEASE, F_UNLCK));
	CASE("wrong") result(S(fcntl, s->fd, F_SETLEASE, 7));
	CASE("notify") result(S(fcntl, s->fd, F_NOTIFY, 2));
	CASE("notify0") result(S(fcntl, s->fd, F_NOTIFY, 0));
}

void call_flock(subject *s)
{
	for (int op = 0; op < 17; op++)
		CASE("%d", op) result(S(flock, s->fd, op | (op & 3 ? 4 : 0)));
	EACH(bit, 5, 31, "bit") result(S(flock, s->fd, 1L << bit | LOCK_NB));
	CASE("mand") result(S(flock, s->fd, 32 | 64));
	CASE("twice")
	{
		result(S(flock, s->fd, LOCK_EX | LOCK_NB));
		result(S(flock, s->fd, LOCK_SH | LOCK_NB));
		result(S(flock, s->fd, LOCK_UN));
	}
}

static void locks(subject *s, int get, int set)
{
	struct flock f = {F_WRLCK, SEEK_SET, 0, 0, 0};
	CASE("write") result(S(fcntl, s->fd, set, P(&f)));
	CASE("read") f.l_type = F_RDLCK, result(S(fcntl, s->fd, set, P(&f)));
	CASE("unlock") f.l_type = F_UNLCK, result(S(fcntl, s->fd, set, P(&f)));
	CASE("get") result(S(fcntl, s->fd, get, P(&f))), note("%d", f.l_type);
	CASE("getunlock") f.l_type = F_UNLCK, result(S(fcntl, s->fd, get, P(&f)));
	CASE("type3") f.l_type = 3, result(S(fcntl, s->fd, set, P(&f)));
	CASE("type-1") f.l_type = -1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("whence3") f.l_whence = 3, result(S(fcntl, s->fd, set, P(&f)));
	CASE("cur") f.l_whence = 1, f.l_start = -5, result(S(fcntl, s->fd, set, P(&f)));
	CASE("curbefore") f.l_whence = 1, f.l_start = -50, result(S(fcntl, s->fd, set, P(&f)));
	CASE("end") f.l_whence = 2, f.l_start = -1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("start-1") f.l_start = -1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("length-1") f.l_len = -1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("lengthback") f.l_start = 10, f.l_len = -5, result(S(fcntl, s->fd, set, P(&f)));
	CASE("far") f.l_start = LONG_MAX, f.l_len = 1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("over") f.l_start = LONG_MAX, f.l_len = 2, result(S(fcntl, s->fd, set, P(&f)));
	CASE("pid1") f.l_pid = 1, result(S(fcntl, s->fd, set, P(&f)));
	CASE("bad") result(S(fcntl, s->fd, set, P(bad)));
	CASE("getbad") result(S(fcntl, s->fd, get, P(bad)));
}

void call_posixlock(subject *s) { locks(s, F_GETLK, F_SETLK); }
void call_ofdlock(subject *s) { locks(s, F_OFD_GETLK, F_OFD_SETLK); }

void call_dup(subject *s)
{
	CASE("dup") result(S(dup, s->fd) >= 0 ? 0 : -1);
	CASE("dup2") result(S(dup2, s->fd, 60));
	CASE("dup2self") result(S(dup2, s->fd, s->fd) >= 0 ? 0 : -1);
	CASE("dup2-1") result(S(dup2, s->fd, -1));
	CASE("dup3") result(S(dup3, s->fd, 60, O_CLOEXEC)), note("%ld", S(fcntl, 60, F_GETFD));
	CASE("dup3self") result(S(dup3, s->fd, s->fd, 0));
	CASE("close") result(S(close, s->fd)), result(S(close, s->fd));
	EACH(bit, 0, 31, "dup3flag") result(S(dup3, s->fd, 60, 1L << bit));
}

void call_closerange(subject *s)
{
	CASE("one") result(S(close_range, s->fd, s->fd, 0)), result(S(fcntl, s->fd, F_GETFD));
	CASE("cloexec") result(S(close_range, s->fd, s->fd, 4)), result(S(fcntl, s->fd, F_GETFD));
	CASE("unshare") result(S(close_range, s->fd, s->fd, 2)), result(S(fcntl, s->fd, F_GETFD));
	CASE("order") result(S(close_range, s->fd + 1L, s->fd, 0));
}

void call_poll(subject *s)
{
	static const int masks[] = {0, POLLIN, POLLOUT, POLLPRI, 0xffff, 0x2000, 0x40, 0x80, 0x100, 0x200};
	struct timespec none = {0, 0};
	for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++)
		CASE("%x", masks[i])
		{
			struct pollfd p = {s->fd, masks[i], 0};
			result(S(poll, P(&p), 1, 0));
			note("%x", p.revents);
		}
	CASE("ppoll")
	{
		struct pollfd p = {s->fd, 0xffff, 0};
		result(S(ppoll, P(&p), 1, P(&none), 0, 8));
		note("%x", p.revents);
	}
	CASE("twice")
	{
		struct pollfd p[2] = {{s->fd, 0xffff, 0}, {s->fd, POLLIN, 0}};
		result(S(poll, P(p), 2, 0));
		note("%x,%x", p[0].revents, p[1].revents);
	}
}

void call_select(subject *s)
{
	fd_set sets[3];
	struct timeval none = {0, 0};
	if (s->fd < 0)
		return;
	for (int which = 0; which < 8; which++)
		CASE("%d", which)
		{
			int of = 0;
			for (int i = 0; i < 3; i++) {
				FD_ZERO(&sets[i]);
				if (which >> i & 1)
					FD_SET(s->fd, &sets[i]);
			}
			result(S(select, s->fd + 1, P(&sets[0]), P(&sets[1]), P(&sets[2]), P(&none)));
			for (int i = 0; i < 3; i++)
				of |= FD_ISSET(s->fd, &sets[i]) ? 1 << i : 0;
			note("%d", of);
		}
}

void call_epoll(subject *s)
{
	int ep = epoll_create1(0);
	struct epoll_event e = {EPOLLIN, {.u64 = 1}};
	static const uint32_t flags[] = {0, EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLEXCLUSIVE,
					 EPOLLIN | EPOLLWAKEUP, EPOLLPRI, EPOLLRDHUP, EPOLLHUP, EPOLLERR, 0xffff, EPOLLEXCLUSIVE | EPOLLONESHOT};
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
		CASE("add%x", flags[i])
		{
			e.events = flags[i];
			result(S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(&e)));
			e.events = 0;
			result(S(epoll_wait, ep, P(&e), 1, 0)), note("%x", e.events);
			e.events = 0;
			result(S(epoll_wait, ep, P(&e), 1, 0)), note("%x", e.events);
		}
	CASE("twice") result(S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(&e))), result(S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(&e)));
	CASE("mod") result(S(epoll_ctl, ep, EPOLL_CTL_MOD, s->fd, P(&e)));
	CASE("del") result(S(epoll_ctl, ep, EPOLL_CTL_DEL, s->fd, 0));
	CASE("op4") result(S(epoll_ctl, ep, 4, s->fd, P(&e)));
	CASE("badevent") result(S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(bad)));
	CASE("deleted")
	{
		S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(&e));
		result(S(epoll_ctl, ep, EPOLL_CTL_DEL, s->fd, P(&e)));
		result(S(epoll_wait, ep, P(&e), 1, 0));
	}
	CASE("closed")
	{
		S(epoll_ctl, ep, EPOLL_CTL_ADD, s->fd, P(&e));
		close(s->fd);
		result(S(epoll_wait, ep, P(&e), 1, 0));
	}
}

void call_epollwait(subject *s)
{
	struct epoll_event e = {EPOLLIN, {.u64 = 1}};
	int other = eventfd(0, 0);
	CASE("wait") result(S(epoll_wait, s->fd, P(&e), 1, 0));
	CASE("wait0") result(S(epoll_wait, s->fd, P(&e), 0, 0));
	CASE("wait-1") result(S(epoll_wait, s->fd, P(&e), -1, 0));
	CASE("waitbad") result(S(epoll_wait, s->fd, P(bad), 1, 0));
	CASE("waithuge") result(S(epoll_wait, s->fd, P(&e), INT_MAX, 0));
	CASE("add") result(S(epoll_ctl, s->fd, EPOLL_CTL_ADD, other, P(&e)));
	CASE("addself") result(S(epoll_ctl, s->fd, EPOLL_CTL_ADD, s->fd, P(&e)));
	CASE("pwait") result(S(epoll_pwait, s->fd, P(&e), 1, 0, 0, 8));
	CASE("pwait2") result(S(epoll_pwait2, s->fd, P(&e), 1, P((&(struct timespec){0, 0})), 0, 8));
	CASE("timerset") result(S(timerfd_settime, s->fd, 0, P((&(struct itimerspec){{0, 0}, {1000, 0}})), 0));
	CASE("timerget") result(S(timerfd_gettime, s->fd, P(buffer)));
	CASE("signalfd") result(S(signalfd4, s->fd, P(buffer), 8, 0));
	CASE("watch") result(S(inotify_add_watch, s->fd, P("/tmp"), 1));
	CASE("unwatch") result(S(inotify_rm_watch, s->fd, 77));
	CASE("pidsignal") result(S(pidfd_send_signal, s->fd, 0, 0, 0));
	CASE("pidgetfd") result(S(pidfd_getfd, s->fd, 0, 0) > 0 ? 1 : -1);
	CASE("waitid") result(S(waitid, 3, s->fd, P(buffer), WEXITED | WNOHANG, 0));
	CASE("setns") result(S(setns, s->fd, 0));
}

void call_fdcalls(subject *s)
{
	char text[64];
	struct stat st;
	snprintf(text, sizeof text, "/proc/self/fd/%d", s->fd);
	CASE("readlink") result(S(readlinkat, s->fd, P(""), P(buffer), 100));
	CASE("linkmode") result(lstat(text, &st)) == 0 ? note("%o", st.st_mode) : (void)0;
	CASE("fsopen") result(S(move_mount, s->fd, P(""), AT_FDCWD, P("/nowhere"), 4));
	CASE("opentree") result(S(open_tree, s->fd, P(""), AT_EMPTY_PATH) >= 0 ? 0 : -1);
	CASE("finit") result(S(finit_module, s->fd, P(""), 0));
	CASE("quotactl") result(S(quotactl_fd, s->fd, 0, 0, 0));
	CASE("kcmp") result(S(kcmp, getpid(), getpid(), 0, s->fd, s->fd));
	CASE("fanotify") result(S(fanotify_mark, s->fd, 1, 1, AT_FDCWD, P("/tmp")));
	CASE("landlock") result(S(landlock_restrict_self, s->fd, 0));
	CASE("madvise") result(S(process_madvise, s->fd, P(buffer), 0, 0, 0));
	CASE("mrelease") result(S(process_mrelease, s->fd, 1));
}

void call_fdinfo(subject *s)
{
	char text[64], *line, *rest;
	snprintf(text, sizeof text, "/proc/self/fdinfo/%d", s->fd);
	CASE("fdinfo")
	{
		int fd = open(text, O_RDONLY);
		result(fd < 0 ? -1 : 0);
		long n = fd < 0 ? 0 : read(fd, buffer, 4095);
		buffer[n > 0 ? n : 0] = 0;
		for (line = strtok_r(buffer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			char *colon = strchr(line, ':');
			if (!strncmp(line, "pos", 3))
				note("pos%s", colon + 2);
			else if (!strncmp(line, "flags", 5))
				note("flags%s", colon + 2);
			else
				note("%.*s", colon ? (int)strcspn(line, ": ") : 0, line);
		}
	}
}
