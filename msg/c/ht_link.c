/* The system's side of a link: sockets of packets, memory files, greetings. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static _Thread_local char detail[400];

const char *ht_detail(void) { return detail; }

void ht_note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
}

int ht_wrong(const char *what)
{
	ht_note("%s", what);
	return HT_BAD_PEER;
}

int ht_fail_system(const char *what)
{
	int e = errno;
	snprintf(detail, sizeof(detail), "%s: %s", what, strerror(e));
	return e == ENOMEM ? HT_NO_MEMORY : HT_SYSTEM;
}

static void hex(char *out, const uint8_t *b)
{
	for (int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", b[i]);
}

int ht_fail_mismatch(const struct ht_interface *ours, const struct ht_greeting *theirs)
{
	char a[33], b[33];
	hex(a, ours->fingerprint);
	hex(b, theirs->fingerprint);
	snprintf(detail, sizeof(detail), "this end speaks \"%s\" (%s), the peer \"%s\" (%s)", ours->name, a, theirs->name, b);
	return HT_MISMATCH;
}

const char *ht_strerror(int err)
{
	static const char *const text[] = {"no error", "no room yet", "out of memory", "message too large", "closed by the peer",
		"the peer is gone", "the peer broke the protocol", "connection closed", "interface mismatch", "no such name",
		"name taken", "refused: the peer accepts no connections now, or its user is not trusted", "a system call failed", "not a name for a service",
		"not a cap that can be sent", "the call failed", "the peer speaks a protocol without error replies"};
	int i = -err;
	return i >= 0 && i < (int)(sizeof(text) / sizeof(*text)) ? text[i] : "unknown error";
}

int64_t ht_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Of linux/membarrier.h: a full barrier on all threads of all registered processes. */
enum { GLOBAL_EXPEDITED = 1 << 1, REGISTER_GLOBAL_EXPEDITED = 1 << 2 };

bool ht_register_barriers(void)
{
	return syscall(SYS_membarrier, REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 && syscall(SYS_membarrier, GLOBAL_EXPEDITED, 0, 0) == 0;
}

void ht_barrier(const struct ht_loop *loop)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (loop->barriers)
		syscall(SYS_membarrier, GLOBAL_EXPEDITED, 0, 0);
}

/* Of linux/futex.h. The memory is common, so the futex is not private. */
void ht_futex_wake(uint32_t *word) { syscall(SYS_futex, word, 1, 1, NULL, NULL, 0); }

int ht_send_frame(int sock, const uint8_t *b, size_t n, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(HT_MAX_FILES * sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)b, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (nfds > HT_MAX_FILES || n > HT_MAX_FRAME)
		return HT_TOO_LARGE;
	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		switch (errno) {
		case EINTR:
			continue;
		case EAGAIN:
		case ETOOMANYREFS:
			return HT_FULL;
		case EPIPE:
		case ECONNRESET:
			return HT_PEER_GONE;
		case EBADF:
			return HT_BAD_CAP;
		}
		return ht_fail_system("sendmsg");
	}
	return 0;
}

int ht_recv_frame(struct ht_loop *loop, int sock, struct ht_frame *f)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(HT_MAX_FILES * sizeof(int))];
	} control;
	struct iovec iov = {loop->frame, HT_MAX_FRAME};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n;
	f->nfds = 0;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* reset is said once, and what was sent is still there */
	if (n < 0)
		return errno == EAGAIN ? 0 : ht_fail_system("recvmsg");
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (k > HT_MAX_FILES - f->nfds)
			k = HT_MAX_FILES - f->nfds;
		memcpy(f->fds + f->nfds, CMSG_DATA(c), k * sizeof(int));
		f->nfds += k;
	}
	f->b = loop->frame;
	f->n = (size_t)n;
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		ht_frame_close(f);
		return ht_wrong("a packet that is too long");
	}
	if (n == 0) {
		ht_frame_close(f);
		return HT_PEER_GONE;
	}
	return 1;
}

void ht_frame_close(struct ht_frame *f)
{
	for (size_t i = 0; i < f->nfds; i++)
		close(f->fds[i]);
	f->nfds = 0;
}

int ht_new_memory(size_t n, int *fd, void **mem)
{
	*fd = memfd_create("hardtack-msg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return ht_fail_system("memfd_create");
	if (ftruncate(*fd, (off_t)n) == 0 && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
		*mem = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
		if (*mem != MAP_FAILED)
			return 0;
	}
	int err = ht_fail_system("memory file");
	close(*fd);
	return err;
}

/* The peer's file must be memory that has n bytes and keeps them: looking at it then cannot raise a signal. */
int ht_map_memory(int fd, size_t n, bool write, void **mem)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	int have = fcntl(fd, F_GET_SEALS);
	if (have < 0 || (have & seals) != seals || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)n ||
		st.st_blksize > HT_PAGE)
		return ht_wrong("memory that can shrink, or of another size");
	*mem = mmap(NULL, n, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	return *mem == MAP_FAILED ? ht_fail_system("mmap") : 0;
}

/* A bell is one of a pair of sockets without names: a byte sent there has no effect on anybody but the peer. */
bool ht_good_bell(int fd)
{
	static const int want[][2] = {{SO_DOMAIN, AF_UNIX}, {SO_TYPE, SOCK_STREAM}, {SO_ACCEPTCONN, 0}};
	struct sockaddr_un a;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		int v;
		socklen_t n = sizeof(v);
		if (getsockopt(fd, SOL_SOCKET, want[i][0], &v, &n) != 0 || v != want[i][1])
			return false;
	}
	socklen_t n = sizeof(a);
	if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 || n > sizeof(a.sun_family))
		return false;
	n = sizeof(a);
	return getpeername(fd, (struct sockaddr *)&a, &n) == 0 && n <= sizeof(a.sun_family);
}

enum { VERSION = 1, GREETING = 44 };

int ht_send_greeting(struct ht_conn *c, uint8_t kind, uint8_t reason, const uint8_t *token, uint64_t delivered)
{
	uint8_t b[GREETING + 255];
	size_t n = strlen(c->iface->name);
	memset(b, 0, GREETING);
	b[0] = kind;
	b[1] = VERSION;
	b[2] = (c->loop->barriers || c->stream != NULL ? 0 : GREET_FENCE) | GREET_BOUND | GREET_CALLS;
	b[3] = reason;
	memcpy(b + 4, c->iface->fingerprint, 16);
	if (token != NULL)
		memcpy(b + 20, token, 16);
	ht_put64(b + 36, delivered);
	if (n > 255)
		n = 255;
	memcpy(b + GREETING, c->iface->name, n);
	return c->stream != NULL ? ht_stream_frame(c, b, GREETING + n) : ht_send_frame(c->sock, b, GREETING + n, NULL, 0);
}

void ht_refuse_version(struct ht_conn *c, const struct ht_frame *f)
{
	uint8_t b[GREETING];
	if (f->n < GREETING || f->b[0] != FRAME_HELLO || f->b[1] == VERSION)
		return;
	memset(b, 0, GREETING);
	b[0] = FRAME_REFUSE;
	b[1] = f->b[1]; /* one that it reads */
	b[3] = 5;
	b[20] = VERSION;
	ht_send_frame(c->sock, b, GREETING, NULL, 0);
}

bool ht_parse_greeting(const struct ht_frame *f, struct ht_greeting *g)
{
	if (f->n < GREETING || f->n > GREETING + 255 || f->b[0] < FRAME_HELLO || f->b[0] > FRAME_REFUSE || f->b[1] != VERSION)
		return false;
	g->kind = f->b[0];
	g->flags = f->b[2];
	g->reason = f->b[3];
	memcpy(g->fingerprint, f->b + 4, 16);
	memcpy(g->token, f->b + 20, 16);
	g->delivered = ht_get64(f->b + 36);
	memcpy(g->name, f->b + GREETING, f->n - GREETING);
	g->name[f->n - GREETING] = 0;
	return true;
}

bool ht_user_allowed(const struct ht_loop *l, uint32_t uid)
{
	if (uid == 0 || uid == geteuid())
		return true;
	for (size_t i = 0; i < l->nusers; i++) {
		if (l->users[i] == uid || l->users[i] == HT_ANY_USER)
			return true;
	}
	ht_note("user %u, who is not this process's user, not root, and not named by ht_loop_users", (unsigned)uid);
	return false;
}

int ht_peer_allowed(const struct ht_loop *l, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return ht_fail_system("SO_PEERCRED");
	return ht_user_allowed(l, cred.uid) ? 0 : HT_REFUSED;
}

/* Names are the directory's owner's: nobody else may put a socket there, or take the directory's place. */
static int check_dir(const struct ht_loop *l, const char *dir, bool own, mode_t closed)
{
	struct stat st;
	if (lstat(dir, &st) != 0)
		return errno == ENOENT ? HT_NO_NAME : ht_fail_system(dir);
	if (!S_ISDIR(st.st_mode) || (st.st_mode & closed)) {
		ht_note("%s is a link, or others can write to it (mode %04o)", dir, (unsigned)st.st_mode & 07777);
		return HT_REFUSED;
	}
	if (own && st.st_uid != geteuid() && st.st_uid != 0) {
		ht_note("%s belongs to user %u", dir, (unsigned)st.st_uid);
		return HT_REFUSED;
	}
	return ht_user_allowed(l, st.st_uid) ? 0 : HT_REFUSED;
}

int ht_socket_path(const struct ht_loop *l, const char *name, char *path, size_t n, bool make)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	char dir[108];
	const char *e;
	size_t len = strlen(name);
	if (strncmp(name, "unix:", 5) == 0) { /* an address */
		if (len - 5 >= n)
			return HT_BAD_NAME;
		memcpy(path, name + 5, len - 4);
		return 0;
	}
	if (len == 0 || len > 80 || strspn(name, ok) != len || strspn(name, ".") == len)
		return HT_BAD_NAME;
	int k;
	mode_t closed = 022;
	if ((e = getenv("HARDTACK_MSG_DIR")) != NULL && *e)
		k = snprintf(dir, sizeof(dir), "%s", e);
	else if ((closed = 077, e = getenv("XDG_RUNTIME_DIR")) != NULL && *e)
		k = snprintf(dir, sizeof(dir), "%s/hardtack", e);
	else
		k = snprintf(dir, sizeof(dir), "%s/hardtack-%u", (e = getenv("TMPDIR")) != NULL && *e ? e : "/tmp", (unsigned)geteuid());
	if (k < 0 || k >= (int)sizeof(dir))
		return HT_BAD_NAME;
	if (make && mkdir(dir, 0700) != 0 && errno != EEXIST)
		return ht_fail_system(dir);
	int err = check_dir(l, dir, make, make ? closed : 022);
	if (err != 0)
		return err;
	k = snprintf(path, n, "%s/%s.sock", dir, name);
	return k < 0 || k >= (int)n ? HT_BAD_NAME : 0;
}

/* Connects to the socket at path. HT_NO_NAME: nobody is there, or it is not ready. */
int ht_dial(const char *path, int *sock)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(a.sun_path))
		return HT_BAD_NAME;
	strcpy(a.sun_path, path);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return ht_fail_system("socket");
	if (connect(s, (struct sockaddr *)&a, sizeof(a)) != 0) {
		int err = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN ? HT_NO_NAME : ht_fail_system(path);
		close(s);
		return err;
	}
	*sock = s;
	return 0;
}
