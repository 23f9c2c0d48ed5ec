// Values of arguments: plausible first, then bent.
#include "fuzz.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "sets.h"

uint64_t wild(thread *t)
{
	static const uint64_t words[] = {
		8, 0x1000, 0x10000, 0x7ffffffff000, 0x7fffffffe000, 0x7fffffffffff, 0x800000000000, 0x8000000000000000, 0xffff800000000000,
		0xffff888000000000, 0xffffc90000000000, 0xffffffff80000000, 0xffffffff80200000, 0xffffffff81000000, 0xfffffffffffff000,
		0xffffffffffffffff, 0xdeadbeefdeadbeef,
	};
	return words[below(t, sizeof words / sizeof words[0])] + (one_in(t, 4) ? below(t, 16) : 0);
}

uint64_t boundary(thread *t)
{
	static const uint64_t words[] = {
		0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 127, 128, 255, 256, 511, 512, 1000, 1023, 1024, 4095, 4096, 4097, 8192, 65535, 65536, 1 << 20,
		0x7ffffffe, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000, 0x7ffffffffffff000, 0x7fffffffffffffff, 1UL << 63,
		-1UL, -2UL, -4095UL, -4096UL, -100UL,
	};
	unsigned r = below(t, 8);
	if (r < 5)
		return words[below(t, sizeof words / sizeof words[0])];
	if (r == 5)
		return 1UL << below(t, 64);
	return r == 6 ? (1UL << below(t, 64)) - 1 : next(&t->rng);
}

static uint64_t small(thread *t)
{
	unsigned r = below(t, 16);
	return r == 0 ? boundary(t) : r < 8 ? below(t, 4) : below(t, 32);
}

static int descriptor(thread *t, int from, int to)
{
	unsigned r = below(t, 32);
	if (me.groups && r < 24)
		return me.focus[r % 3];
	if (r < 24)
		return fd_base + from + (int)below(t, (unsigned)(to - from));
	if (r < 27)
		return fd_base + (int)below(t, k_kinds);
	if (r < 30)
		return me.recent[below(t, 8)];
	return r == 30 ? (int)below(t, 300) : (int)boundary(t);
}

// somewhere puts len bytes where the kernel shall find them, or shall not.
static uintptr_t somewhere(thread *t, const void *data, size_t len)
{
	char *at = t->slots + (t->slot++ & 63) * 512;
	unsigned r = below(t, 40);
	switch (r) {
	case 0:
		return 0;
	case 1:
		return wild(t);
	case 2: // ends with its page
		at = me.edge - len;
		break;
	case 3: // straddles the end
		return (uintptr_t)me.edge - 1 - below(t, (unsigned)len);
	case 4:
		return (uintptr_t)me.readonly + below(t, 8) * 8;
	case 5:
		return (uintptr_t)me.beyond + below(t, page) - 64;
	case 6: // comes and goes
		return (uintptr_t)me.area + below(t, area_pages * page);
	case 7:
		at += 1 + below(t, 7);
		break;
	case 8:
		return t->last; // overlaps
	case 9:
		at = me.shared + below(t, 4 * page - 512);
		break;
	}
	if (data)
		memcpy(at, data, len);
	return (uintptr_t)at;
}

// bend spoils a structure now and then.
static uintptr_t bend(thread *t, void *data, size_t len)
{
	unsigned char *b = data;
	if (one_in(t, 6) && len >= 8) {
		uint64_t w = boundary(t);
		memcpy(b + below(t, (unsigned)(len / 8)) * 8, &w, 8);
	}
	if (one_in(t, 8) && len >= 4) {
		uint32_t w = (uint32_t)boundary(t);
		memcpy(b + below(t, (unsigned)(len / 4)) * 4, &w, 4);
	}
	if (one_in(t, 8))
		b[below(t, (unsigned)len)] ^= (unsigned char)(1 << below(t, 8));
	return somewhere(t, data, len);
}

static uintptr_t buffer(thread *t)
{
	unsigned r = below(t, 24);
	size_t room = (1 + below(t, 4)) * page;
	char *at = me.buffers + below(t, buffer_pages - 4) * page;
	t->last_len = room;
	switch (r) {
	case 0: case 1: case 2: case 3: // ends with its page
		t->last_len = below(t, 256);
		at += page - t->last_len;
		break;
	case 4:
		at = me.edge - (t->last_len = below(t, 2 * page));
		break;
	case 5:
		t->last_len = page;
		at = me.edge - below(t, page);
		break;
	case 6:
		at = me.readonly;
		break;
	case 7:
		at = me.beyond - below(t, page);
		break;
	case 8: case 9:
		at = me.area + below(t, area_pages * page);
		break;
	case 10:
		return t->last;
	case 11:
		at = me.shared + below(t, page);
		break;
	case 12:
		return wild(t);
	case 13:
		return 0;
	case 14:
		at += below(t, page);
		break;
	}
	if (me.groups && one_in(t, 2))
		at = me.area + below(t, 4 * page);
	return t->last = (uintptr_t)at;
}

static uint64_t length(thread *t)
{
	unsigned r = below(t, 16);
	return r < 9 ? (t->last_len ? below(t, (unsigned)t->last_len) + 1 : 0) : r < 12 ? t->last_len : r == 12 ? t->last_len + 1 : boundary(t);
}

static uintptr_t path(thread *t, int names_only)
{
	if (one_in(t, 64))
		return somewhere(t, "/proc/self/fd/9", 16);
	if (one_in(t, 100)) { // one that never ends
		memset(me.buffers, 'x', 2 * page);
		return (uintptr_t)me.buffers;
	}
	int n = names_only && (me.uid == 0 || !one_in(t, 4)) ? me.nnames : me.npaths;
	if (me.groups && one_in(t, 2))
		n = 4;
	return (uintptr_t)me.paths + below(t, (unsigned)n) * path_size;
}

static uint64_t some_pid(thread *t)
{
	unsigned r = below(t, 12);
	if (r < 4)
		return (uint64_t)me.pid;
	if (r < 6)
		return (uint64_t)worker[below(t, workers)].tid;
	if (r < 8)
		return (uint64_t)me.recent[below(t, 8)];
	if (me.uid != 0)
		return r == 8 ? (uint64_t)parent_pid : r == 9 ? (uint64_t)guard_pid : r == 10 ? (uint64_t)witness_pid : boundary(t);
	return r < 11 ? 0 : 999999999;
}

static uintptr_t timespec(thread *t, unsigned most)
{
	struct timespec ts[2];
	for (int i = 0; i < 2; i++)
		ts[i] = (struct timespec){one_in(t, 8) ? (time_t)boundary(t) : 0, (long)below(t, most)};
	return one_in(t, 8) ? 0 : bend(t, ts, sizeof ts);
}

static uintptr_t timers(thread *t, int nano)
{
	long v[4] = {0, below(t, nano ? 5000000 : 5000), 0, below(t, nano ? 5000000 : 5000)};
	return bend(t, v, sizeof v);
}

static uintptr_t signal_set(thread *t)
{
	uint64_t set = one_in(t, 2) ? next(&t->rng) << 16 ^ next(&t->rng) : one_in(t, 2) ? 0 : 1UL << below(t, 64);
	set &= ~(1UL << (SIGURG - 1));
	return bend(t, &set, 8);
}

static void vector(thread *t, struct iovec *v, int n)
{
	for (int i = 0; i < n; i++) {
		v[i].iov_base = (void *)buffer(t);
		v[i].iov_len = length(t);
	}
}

static uintptr_t iovec(thread *t)
{
	struct iovec v[8];
	vector(t, v, 8);
	return bend(t, v, sizeof v);
}

// remote is a vector in the memory of any process.
static uintptr_t remote(thread *t)
{
	struct iovec v[4];
	for (int i = 0; i < 4; i++) {
		static const uint64_t places[] = {0x400000, 0x401000, 0x4a0000, 0x4c0000, 0x4d0000, 0x7ffffffde000, 0x7ffff7ff0000};
		v[i].iov_base = me.uid != 0 && one_in(t, 2) ? (void *)(places[below(t, 7)] + below(t, 4096)) : (void *)buffer(t);
		v[i].iov_len = one_in(t, 2) ? below(t, 8192) : length(t);
	}
	return bend(t, v, sizeof v);
}

static size_t address(thread *t, void *to)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(7000 + below(t, 4))), .sin_addr.s_addr = htonl(one_in(t, 6) ? 0 : one_in(t, 6) ? 0x0a00020f : INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)(7000 + below(t, 4))), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(one_in(t, 2) ? 0x800 : 3), .sll_ifindex = 1, .sll_halen = 6};
	switch (below(t, 7)) {
	case 6:
		return memcpy(to, &ll, sizeof ll), sizeof ll;
	case 0:
		strcpy(un.sun_path + 1, "abstract");
		return memcpy(to, &un, sizeof un), 2 + 9;
	case 1: case 2:
		strcpy(un.sun_path, one_in(t, 2) ? "socket" : "socket2");
		return memcpy(to, &un, sizeof un), sizeof un;
	case 3:
		return memcpy(to, &in6, sizeof in6), sizeof in6;
	case 4:
		return memcpy(to, &nl, sizeof nl), sizeof nl;
	default:
		return memcpy(to, &in, sizeof in), sizeof in;
	}
}

static uintptr_t sockaddr(thread *t)
{
	char a[128] = {0};
	t->last_len = address(t, a);
	return bend(t, a, 112);
}

// request is a message to NETLINK_ROUTE. Only the loopback interface is changed.
static void request(thread *t, struct iovec *v)
{
	struct {
		struct nlmsghdr h;
		unsigned char b[64];
	} m;
	memset(&m, 0, sizeof m);
	unsigned n = below(t, 12) + (one_in(t, 4) ? below(t, 32) : 4);
	for (unsigned i = 0; i < n; i++)
		m.b[i] = (unsigned char)(one_in(t, 2) ? 0 : below(t, 4));
	m.b[0] = one_in(t, 2) ? AF_INET : AF_INET6, m.b[4] = 1;
	for (unsigned more = below(t, 4); more-- && n < 44;) {
		struct rtattr a = {(unsigned short)(4 + (one_in(t, 2) ? 4 : below(t, 17))), (unsigned short)below(t, 20)};
		memcpy(m.b + (n = (n + 3) & ~3U), &a, 4);
		m.b[n + 4] = (unsigned char)(one_in(t, 2) ? 127 : below(t, 3)), m.b[n + 7] = (unsigned char)below(t, 4);
		n += (a.rta_len + 3U) & ~3U;
	}
	m.h = (struct nlmsghdr){.nlmsg_len = (uint32_t)sizeof m.h + n, .nlmsg_type = (uint16_t)(RTM_BASE + below(t, RTM_MAX - RTM_BASE + 2)), .nlmsg_flags = (uint16_t)(1 | below(t, 16) << 8)};
	v->iov_base = (void *)bend(t, &m, sizeof m), v->iov_len = one_in(t, 16) ? below(t, 80) : m.h.nlmsg_len;
}

// header fills a msghdr, whose parts it puts into slots of their own.
static void header(thread *t, struct msghdr *h)
{
	memset(h, 0, sizeof *h);
	struct iovec v[4];
	vector(t, v, 4);
	if (one_in(t, 6))
		request(t, v);
	h->msg_iov = (struct iovec *)somewhere(t, v, sizeof v);
	h->msg_iovlen = below(t, 5);
	if (one_in(t, 3))
		h->msg_name = (void *)sockaddr(t), h->msg_namelen = (socklen_t)t->last_len;
	if (one_in(t, 2)) {
		union {
			struct cmsghdr h;
			char b[CMSG_SPACE(8 * sizeof(int))];
		} c;
		memset(&c, 0, sizeof c);
		int n = 1 + (int)below(t, 4), fds[8];
		for (int i = 0; i < 8; i++)
			fds[i] = descriptor(t, 0, k_kinds);
		c.h.cmsg_level = SOL_SOCKET, c.h.cmsg_type = one_in(t, 4) ? SCM_CREDENTIALS : SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(&c.h), fds, sizeof fds);
		h->msg_control = (void *)bend(t, &c, sizeof c);
		h->msg_controllen = one_in(t, 6) ? boundary(t) : CMSG_SPACE((size_t)n * sizeof(int));
	}
}

static uintptr_t headers(thread *t, int many)
{
	struct mmsghdr m[4];
	memset(m, 0, sizeof m);
	for (int i = 0; i < (many ? 4 : 1); i++)
		header(t, &m[i].msg_hdr);
	return bend(t, m, many ? sizeof m : sizeof m[0].msg_hdr);
}

// ring_request is a struct tpacket_req3.
static uintptr_t ring_request(thread *t)
{
	uint32_t block = 4096U << below(t, 3), n = below(t, 4), frame = 256U << below(t, 5);
	uint32_t r[7] = {block, n, frame, block / frame * n, below(t, 20), below(t, 100), below(t, 2)};
	t->last_len = sizeof r;
	return bend(t, r, sizeof r);
}

static uintptr_t control_structure(thread *t, int kind);

#define WORDS(X) \
	X(fd) X(at) X(path) X(name) X(buf) X(out) X(len) X(small) X(int) X(off) X(offp) X(flen) X(addr) X(size) X(brk) X(ptr) X(pid) X(tid) \
	X(uid) X(sig) X(mode) X(ts) X(tv) X(its) X(itv) X(sigset) X(sigsetp) X(setlen) X(sigact) X(altstack) X(iov) X(riov) X(msg) X(mmsg) \
	X(sa) X(salen) X(salenp) X(event) X(pollfd) X(fdset) X(rlimit) X(cap) X(capd) X(how) X(howlen) X(cloneargs) X(clonelen) X(argv) \
	X(exe) X(cpus) X(siginfo) X(sigev) X(futex) X(waitv) X(robust) X(opt) X(key) X(id) X(sembuf) X(msgp) X(attr) X(fstype) X(mountopt) X(fskey) X(mountattrs) X(mountattrlen) \
	X(fcntlarg) X(msec) X(stack) X(tls) X(dev) X(zero) X(bits) X(one) X(any)
enum {
#define X(n) w_##n,
	WORDS(X)
#undef X
};
static const char *const word_names[] = {
#define X(n) #n,
	WORDS(X)
#undef X
};

static const struct {
	const char *name;
	short from, to;
} fd_sets[] = {
	{"", 0, k_kinds}, {"sock", 0, k_sockets}, {"reg", k_tmpfs, k_regs}, {"dir", k_dir, k_dirs}, {"pipe", k_pipe_in, k_pipes},
	{"epoll", k_epoll, k_epoll2 + 1}, {"timer", k_timer, k_timer + 1}, {"signal", k_signal, k_signal + 1},
	{"inotify", k_inotify, k_inotify + 1}, {"pid", k_pid, k_pid2 + 1},
};

// word finds what a word of calls.def means.
int word(const char *text, int length, short *kind, short *set)
{
	int stem = 0;
	while (stem < length && text[stem] != '.')
		stem++;
	const char *rest = stem < length ? text + stem + 1 : "";
	int left = stem < length ? length - stem - 1 : 0;
	for (unsigned i = 0; i < sizeof word_names / sizeof word_names[0]; i++) {
		if ((int)strlen(word_names[i]) != stem || memcmp(text, word_names[i], (size_t)stem) != 0)
			continue;
		*kind = (short)i, *set = 0;
		if (i == w_fd) {
			for (unsigned k = 0; k < sizeof fd_sets / sizeof fd_sets[0]; k++)
				if ((int)strlen(fd_sets[k].name) == left && memcmp(fd_sets[k].name, rest, (size_t)left) == 0)
					return *set = (short)k, 1;
			return 0;
		}
		if (i != w_bits && i != w_one)
			return left == 0;
		for (unsigned k = 0; k < sizeof sets / sizeof sets[0]; k++)
			if ((int)strlen(sets[k].name) == left && memcmp(sets[k].name, rest, (size_t)left) == 0)
				return *set = (short)k, 1;
		return 0;
	}
	return 0;
}

static uint64_t bits(thread *t, int set)
{
	uint64_t v = 0;
	unsigned n = one_in(t, 8) ? below(t, 5) : below(t, 3);
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)sets[set].value[below(t, (unsigned)sets[set].n)];
	if (one_in(t, 24))
		v ^= 1UL << below(t, 33);
	return one_in(t, 64) ? next(&t->rng) : v;
}

static uint64_t one(thread *t, int set)
{
	return one_in(t, 32) ? boundary(t) : (uint64_t)sets[set].value[below(t, (unsigned)sets[set].n)];
}

uint64_t argument(thread *t, int kind, int set)
{
	int v[4];
	uint64_t w[8];
	switch (kind) {
	case w_fd: return (uint64_t)(int64_t)descriptor(t, fd_sets[set].from, fd_sets[set].to);
	case w_at: return one_in(t, 3) ? (uint64_t)descriptor(t, k_dir, k_dirs) : (uint64_t)AT_FDCWD;
	case w_path: return path(t, 0);
	case w_name: return path(t, 1);
	case w_buf: return buffer(t);
	case w_out: t->last_len = 512; return t->last = somewhere(t, NULL, 256);
	case w_len: return length(t);
	case w_small: return small(t);
	case w_int: return boundary(t);
	case w_off: return one_in(t, 3) ? boundary(t) : below(t, 70000);
	case w_offp: w[0] = below(t, 70000); return one_in(t, 2) ? 0 : bend(t, w, 8);
	case w_flen: return one_in(t, 4) ? boundary(t) : below(t, 200000);
	case w_addr: return one_in(t, 80) ? wild(t) : one_in(t, 3000) ? (uintptr_t)me.buffers : one_in(t, 8) ? 0 : (uintptr_t)me.area + below(t, me.groups ? 4 : area_pages) * page + (one_in(t, 16) ? below(t, page) : 0);
	case w_size: return one_in(t, 16) ? boundary(t) : (1 + below(t, 12)) * page - (one_in(t, 8) ? below(t, page) : 0);
	case w_brk: return one_in(t, 2) ? 0 : (uint64_t)raw(SYS_brk, 0, 0, 0, 0, 0, 0) + below(t, 8 * page);
	case w_ptr:
		for (int i = 0; i < 8; i++)
			w[i] = boundary(t);
		return bend(t, w, sizeof w);
	case w_pid: return some_pid(t);
	case w_tid: return one_in(t, 2) ? (uint64_t)worker[below(t, workers)].tid : some_pid(t);
	case w_uid: return one_in(t, 2) ? me.uid : one_in(t, 3) ? (uint64_t)-1 : one_in(t, 2) ? 0 : below(t, 2) ? witness : boundary(t);
	case w_sig: return one_in(t, 12) ? boundary(t) : one_in(t, 3) ? 0 : one_in(t, 2) ? SIGURG : one_in(t, 6) ? below(t, 66) : SIGCHLD;
	case w_mode: return one_in(t, 8) ? boundary(t) : one_in(t, 4) ? S_IFIFO | 0666 : 0777 & next(&t->rng);
	case w_ts: return timespec(t, 3000000);
	case w_tv: return timespec(t, 3000);
	case w_its: return timers(t, 1);
	case w_itv: return timers(t, 0);
	case w_sigset: return signal_set(t);
	case w_sigsetp: w[0] = signal_set(t), w[1] = 8; return bend(t, w, 16);
	case w_setlen: return one_in(t, 16) ? boundary(t) : 8;
	case w_iov: return iovec(t);
	case w_riov: return remote(t);
	case w_msg: return headers(t, 0);
	case w_mmsg: return headers(t, 1);
	case w_sa: return sockaddr(t);
	case w_salen: return one_in(t, 16) ? boundary(t) : t->last_len;
	case w_salenp: v[0] = one_in(t, 8) ? (int)boundary(t) : 128; return somewhere(t, v, 4);
	case w_fdset:
		for (int i = 0; i < 8; i++)
			w[i] = next(&t->rng) & next(&t->rng);
		return one_in(t, 3) ? 0 : bend(t, w, sizeof w);
	case w_rlimit: w[0] = below(t, 300), w[1] = w[0] + below(t, 300); return one_in(t, 2) ? 0 : bend(t, w, 16);
	case w_howlen: return one_in(t, 6) ? boundary(t) : 24;
	case w_clonelen: return one_in(t, 6) ? boundary(t) : 88;
	case w_exe: return one_in(t, 4) ? (uint64_t)me.paths : path(t, 0);
	case w_cpus: w[0] = one_in(t, 2) ? 1 : boundary(t); return bend(t, w, 8);
	case w_opt:
		if (one_in(t, 5))
			return ring_request(t);
		v[0] = one_in(t, 3) ? (int)boundary(t) : (int)below(t, 2), v[1] = v[2] = v[3] = (int)below(t, 9); t->last_len = 16; return bend(t, v, 16);
	case w_key: return one_in(t, 2) ? 0 : below(t, 4);
	case w_id: return one_in(t, 8) ? boundary(t) : below(t, 2) * 32768 + below(t, 6);
	case w_attr: return somewhere(t, one_in(t, 2) ? "user.a" : one_in(t, 2) ? "user.bb" : one_in(t, 2) ? "trusted.c" : "security.capability", 24);
	case w_fstype: return somewhere(t, one_in(t, 2) ? "tmpfs\0\0\0" : one_in(t, 2) ? "proc\0\0\0\0" : one_in(t, 2) ? "devpts\0\0" : "sysfs\0\0\0", 8);
	case w_fskey: return one_in(t, 3) ? 0 : somewhere(t, one_in(t, 2) ? "size\0\0\0" : one_in(t, 2) ? "source\0" : one_in(t, 2) ? "ro\0\0\0\0\0" : "rw\0\0\0\0\0", 8);
	case w_mountattrlen: return one_in(t, 6) ? boundary(t) : 32;
	case w_mountopt: return one_in(t, 2) ? 0 : somewhere(t, "size=64k,mode=755", 18);
	case w_fcntlarg: return one_in(t, 2) ? small(t) : one_in(t, 2) ? control_structure(t, kind) : boundary(t);
	case w_msec: return one_in(t, 32) ? boundary(t) : below(t, 3);
	case w_stack: return one_in(t, 2) ? 0 : (uintptr_t)me.buffers + 31 * page;
	case w_tls: return one_in(t, 2) ? (uintptr_t)me.buffers : wild(t);
	case w_dev: return one_in(t, 2) ? 0 : one_in(t, 2) ? 0x103 : below(t, 65536);
	case w_zero: return one_in(t, 16) ? boundary(t) : 0;
	case w_bits: return bits(t, set);
	case w_one: return one(t, set);
	case w_any: {
		unsigned r = below(t, 8);
		return r < 2 ? (uint64_t)descriptor(t, 0, k_kinds) : r < 4 ? buffer(t) : r == 4 ? path(t, 1) : r == 5 ? wild(t) : boundary(t);
	}
	default: return control_structure(t, kind);
	}
}

// control_structure is a structure that one call or two have.
static uintptr_t control_structure(thread *t, int kind)
{
	union {
		uint64_t w[32];
		uint32_t i[64];
		uint16_t h[128];
		struct sigaction sa;
		struct epoll_event event;
		struct pollfd poll[16];
		struct flock lock;
		siginfo_t info;
		struct sigevent sigev;
		struct sembuf sem[4];
	} u;
	memset(&u, 0, sizeof u);
	switch (kind) {
	case w_sigact: // the kernel's form; no handler but none: SIGURG's must stay
		u.w[0] = below(t, 2), u.w[1] = bits(t, 0) & ~0x04000000UL, u.w[3] = next(&t->rng);
		return one_in(t, 4) ? 0 : bend(t, &u, 32);
	case w_altstack:
		u.w[0] = (uintptr_t)me.buffers, u.w[2] = 16 * page;
		return bend(t, &u, 24);
	case w_event:
		u.event.events = (uint32_t)next(&t->rng) & (one_in(t, 2) ? 0xf000201f : 0x1f);
		u.event.data.u64 = next(&t->rng);
		return bend(t, &u, 12);
	case w_pollfd:
		for (int i = 0; i < 16; i++)
			u.poll[i] = (struct pollfd){.fd = descriptor(t, 0, k_kinds), .events = (short)next(&t->rng)};
		return bend(t, &u, sizeof u.poll);
	case w_cap:
		u.i[0] = one_in(t, 6) ? (uint32_t)boundary(t) : 0x20080522, u.i[1] = one_in(t, 2) ? 0 : (uint32_t)some_pid(t);
		return bend(t, &u, 8);
	case w_capd:
		for (int i = 0; i < 6; i++)
			u.i[i] = one_in(t, 2) ? 0 : (uint32_t)next(&t->rng);
		return bend(t, &u, 24);
	case w_how:
		u.w[0] = next(&t->rng) & (O_CREAT | O_RDWR | O_NOFOLLOW | O_DIRECTORY | O_PATH | O_CLOEXEC | O_NONBLOCK | O_APPEND);
		u.w[1] = u.w[0] & O_CREAT ? 0600 : 0, u.w[2] = next(&t->rng) & 0x3f;
		return bend(t, &u, 32);
	case w_mountattrs:
		u.w[0] = one_in(t, 4) ? next(&t->rng) : next(&t->rng) & 0x2000ff, u.w[1] = one_in(t, 2) ? 0x70 : next(&t->rng) & 0x2000ff;
		u.w[2] = one_in(t, 3) ? 1 << 18 : 0, u.w[3] = below(t, 9);
		return bend(t, &u, 32);
	case w_cloneargs:
		u.w[0] = bits(t, 1), u.w[1] = (uintptr_t)t->slots, u.w[2] = u.w[3] = (uintptr_t)t->slots + 8, u.w[4] = SIGCHLD;
		if (one_in(t, 2))
			u.w[5] = (uintptr_t)me.buffers + 28 * page, u.w[6] = 3 * page;
		return bend(t, &u, 88);
	case w_argv:
		u.w[0] = (uintptr_t)me.paths, u.w[1] = one_in(t, 4) ? path(t, 0) : 0, u.w[2] = one_in(t, 4) ? wild(t) : 0;
		return one_in(t, 8) ? 0 : bend(t, &u, 32);
	case w_siginfo:
		u.info.si_signo = SIGURG, u.info.si_code = one_in(t, 2) ? SI_QUEUE : (int)boundary(t), u.info.si_pid = me.pid;
		return bend(t, &u, 128);
	case w_sigev:
		u.sigev.sigev_notify = (int)below(t, 5), u.sigev.sigev_signo = one_in(t, 2) ? SIGURG : SIGCHLD;
		u.sigev._sigev_un._tid = worker[below(t, workers)].tid;
		return one_in(t, 4) ? 0 : bend(t, &u, 64);
	case w_futex: {
		uint32_t *at = (uint32_t *)(one_in(t, 2) ? me.shared : me.buffers) + below(t, 4);
		return one_in(t, 16) ? wild(t) : one_in(t, 16) ? (uintptr_t)me.area + below(t, 4 * page) : (uintptr_t)at;
	}
	case w_waitv:
		for (int i = 0; i < 4; i++)
			u.w[3 * i + 1] = (uintptr_t)me.shared + below(t, 4) * 4, u.i[6 * i + 4] = 2 | (one_in(t, 2) ? 128 : 0);
		return bend(t, &u, 96);
	case w_robust:
		u.w[0] = (uintptr_t)t->slots, u.w[1] = (uint64_t)-8L, u.w[2] = one_in(t, 2) ? 0 : (uintptr_t)me.shared;
		return bend(t, &u, 24);
	case w_sembuf:
		for (int i = 0; i < 4; i++)
			u.sem[i] = (struct sembuf){(unsigned short)below(t, 4), (short)(below(t, 5) - 2), (short)(below(t, 4) * 0x800)};
		return bend(t, &u, sizeof u.sem);
	case w_msgp:
		u.w[0] = 1 + below(t, 3), t->last_len = 64;
		return bend(t, &u, 128);
	default: // fcntlarg
		u.lock = (struct flock){.l_type = (short)below(t, 3), .l_start = below(t, 8), .l_len = below(t, 8)};
		return bend(t, &u, sizeof u.lock);
	}
}
