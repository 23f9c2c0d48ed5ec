/*
 * Hardtack's endpoints and notifications for C programs; a header is all there is.
 * What each call does and which errors it has: abi/ipc/ipc.go. Calls return 0 or
 * more, or a negative errno; on another kernel that is -ENOSYS.
 *
 *	int fds[2];
 *	ht_ipc_endpoint(fds, HT_IPC_CLOEXEC);            fds[0] receives, fds[1] sends
 *
 *	server   struct ht_message m = {0};
 *	         ht_ipc_recv(fds[0], &m, HT_IPC_FOREVER);
 *	         for (;;) {
 *	                 …reads and writes m…
 *	                 ht_ipc_reply_recv(fds[0], &m, HT_IPC_FOREVER);
 *	         }
 *	client   struct ht_message m = {.words = {1, 2}, .info = ht_ipc_info(16, 0)};
 *	         ht_ipc_call(fds[1], &m, HT_IPC_FOREVER); the reply is in m
 */
#ifndef HT_IPC_H
#define HT_IPC_H

#include <stdint.h>

enum {
	HT_IPC_SHORT = 48,      /* bytes that travel in registers */
	HT_IPC_LONG = 512,      /* bytes that travel in a buffer */
	HT_IPC_DESCRIPTORS = 4, /* that come with a message */
	HT_IPC_CLOEXEC = 02000000,
	HT_IPC_BASE = 0x48540000,
};

/* Deadlines; others are nanoseconds of CLOCK_MONOTONIC. */
#define HT_IPC_NOW ((uint64_t)0)
#define HT_IPC_FOREVER (~(uint64_t)0)

/* Where a message of more than HT_IPC_SHORT bytes lies, and descriptors. */
struct ht_ipc_buffer {
	uint8_t data[HT_IPC_LONG];
	int32_t fds[HT_IPC_DESCRIPTORS];
} __attribute__((aligned(8)));

/*
 * A message, sent and received in place. After a call that received one info, badge
 * and token are its; after one that failed words, badge and token have any value.
 */
struct ht_message {
	uint64_t words[6];            /* a short message */
	uint64_t badge;               /* of the sender that it came through */
	uint64_t token;               /* the right to reply; 0: it was no call */
	uint32_t info;                /* how long it is: ht_ipc_info */
	struct ht_ipc_buffer *buffer; /* or NULL */
};

static inline uint32_t ht_ipc_info(unsigned bytes, unsigned descriptors) { return bytes | descriptors << 16; }
static inline unsigned ht_ipc_bytes(uint32_t info) { return info & 0xffff; }
static inline unsigned ht_ipc_descriptors(uint32_t info) { return info >> 16; }

/*
 * A message call. RDI, RSI, RBX, RBP, RSP and the control words are kept, all others
 * destroyed.
 */
static inline long ht_ipc_raw(unsigned number, int fd, struct ht_message *m, uint64_t value)
{
	register uint64_t r8 __asm__("r8") = m->words[0];
	register uint64_t r9 __asm__("r9") = m->words[1];
	register uint64_t r10 __asm__("r10") = m->token;
	register uint64_t r12 __asm__("r12") = m->words[2];
	register uint64_t r13 __asm__("r13") = m->words[3];
	register uint64_t r14 __asm__("r14") = m->words[4];
	register uint64_t r15 __asm__("r15") = m->words[5];
	long rax = HT_IPC_BASE + number;
	__asm__ volatile("syscall"
		: "+a"(rax), "+d"(value), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
		: "D"((long)fd), "S"((long)m->info), "b"(m->buffer)
		: "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
		"st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
	m->words[0] = r8, m->words[1] = r9, m->words[2] = r12, m->words[3] = r13, m->words[4] = r14, m->words[5] = r15;
	m->badge = value, m->token = r10;
	return rax;
}

/* The same, for calls that receive: info is what was received. */
static inline long ht_ipc_receive(unsigned number, int fd, struct ht_message *m, uint64_t deadline)
{
	long rc = ht_ipc_raw(number, fd, m, deadline);
	if (rc < 0)
		return rc;
	m->info = (uint32_t)rc;
	return 0;
}

static inline long ht_ipc_plain(unsigned number, long a, long b, long c)
{
	long rax = HT_IPC_BASE + number;
	__asm__ volatile("syscall" : "+a"(rax) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory", "cc");
	return rax;
}

/* Sends m and waits until it is received. */
static inline long ht_ipc_send(int fd, struct ht_message *m, uint64_t deadline)
{
	m->token = 0;
	return ht_ipc_raw(0, fd, m, deadline);
}

/* Waits for a message. */
static inline long ht_ipc_recv(int fd, struct ht_message *m, uint64_t deadline) { return ht_ipc_receive(1, fd, m, deadline); }

/* Sends m and waits for the reply, which is then in m. */
static inline long ht_ipc_call(int fd, struct ht_message *m, uint64_t deadline) { return ht_ipc_receive(2, fd, m, deadline); }

/* Replies with m to the call whose token it has. */
static inline long ht_ipc_reply(struct ht_message *m) { return ht_ipc_raw(3, -1, m, 0); }

/* Both, and without a token only the second: replies, and waits for the next message. */
static inline long ht_ipc_reply_recv(int fd, struct ht_message *m, uint64_t deadline)
{
	return ht_ipc_receive(4, fd, m, deadline);
}

/* Sets bits of a notification. */
static inline long ht_ipc_signal(int fd, uint64_t bits)
{
	struct ht_message m = {0};
	return ht_ipc_raw(5, fd, &m, bits);
}

/* Takes the bits of a notification, waiting until some are set. */
static inline long ht_ipc_wait(int fd, uint64_t *bits, uint64_t deadline)
{
	struct ht_message m = {0};
	long rc = ht_ipc_raw(6, fd, &m, deadline);
	*bits = m.badge;
	return rc;
}

/* Sets bits of the notification to, and takes those of fd, waiting until some are set. */
static inline long ht_ipc_signal_wait(int to, uint64_t set, int fd, uint64_t *bits, uint64_t deadline)
{
	struct ht_message m = {.words = {set}, .info = (uint32_t)to};
	long rc = ht_ipc_raw(7, fd, &m, deadline);
	*bits = m.badge;
	return rc;
}

/* Makes an endpoint: fds[0] receives, fds[1] sends with badge 0. */
static inline long ht_ipc_endpoint(int fds[2], int flags) { return ht_ipc_plain(8, (long)fds, flags, 0); }

/* Makes a sending descriptor with a badge. */
static inline long ht_ipc_mint(int fd, uint64_t badge, int flags) { return ht_ipc_plain(9, fd, (long)badge, flags); }

/* Makes a notification. */
static inline long ht_ipc_notification(int flags) { return ht_ipc_plain(10, flags, 0, 0); }

#endif
