/* What the files of the library share. */
#ifndef HT_INT_H
#define HT_INT_H

#include <poll.h>
#include <sys/types.h>

#include "ht_msg.h"
#include "ht_ring.h"

enum {
	HT_MAX_FRAME = 64 << 10,
	HT_MAX_FILES = 64,
	HT_MAX_CAPS = 16,
	HT_MIN_BULK_BODY = 512, /* shorter bodies go in slots */
	HT_FRAGMENTS = (HT_MIN_BULK_BODY + HT_BODY - 1) / HT_BODY, /* slots of the longest of those */
	HT_MIN_POOL = 256 << 10,
	HT_MAX_BODY = 16 << 20,
	HT_CAPS_QUEUED = 256 /* frames of caps without their messages */
};

/* Frames: the connection's, then the driver's. */
enum {
	FRAME_HELLO = 1, FRAME_WELCOME = 2, FRAME_REFUSE = 3, FRAME_CAPS = 4, FRAME_BULK = 5, FRAME_BYE = 6, FRAME_MOVE = 7,
	FRAME_MEMORY = 0xf0, FRAME_WAKE = 0xf1, FRAME_BELL = 0xf2
};

struct ht_greeting {
	uint8_t kind, flags, reason;
	uint8_t fingerprint[16], token[16];
	char name[256];
};

/* A frame that was received, with its descriptors, which are the reader's. */
struct ht_frame {
	const uint8_t *b;
	size_t n;
	int fds[HT_MAX_FILES];
	size_t nfds;
};

/* What came for a message, before it. */
struct ht_came {
	struct ht_came *next;
	uint64_t seq;
	size_t n;
	struct ht_cap caps[HT_MAX_CAPS];
};

struct ht_live { /* a body in the pool */
	uint32_t slot, off;
};

/* Where a connection is on its way. */
enum ht_stage { HT_WAIT_MEMORY, HT_WAIT_HELLO, HT_OPEN };

struct ht_conn {
	struct ht_conn *next;
	struct ht_loop *loop;
	const struct ht_interface *iface;
	const struct ht_events *events;
	void *self;
	struct ht_listener *from; /* until accepted */
	enum ht_stage stage;
	int64_t deadline; /* of the greeting, in ms */

	int sock, bell, ring_bell; /* bell: on which we wait; ring_bell: the peer's; -1 if none */
	unsigned parks;
	bool second, dialled, fence_them;
	int pages, memfd;
	void *mem;
	size_t mem_n;
	struct ht_tx tx;
	struct ht_rx rx;
	uint8_t token[16];

	/* sending */
	size_t begun;
	bool in_bulk, wants_room;
	uint8_t *longer;
	uint8_t *pool;
	size_t pool_n, head;
	uint32_t pool_id;
	struct ht_live *live;
	uint32_t live_first, live_n;

	/* receiving */
	uint8_t *frag;
	size_t frag_n;
	uint8_t *peers; /* the peer's pool */
	size_t peers_n;
	uint32_t peers_id;
	struct ht_came *came, **came_end;
	size_t came_n;

	bool stalled; /* the next message is a call to which no reply could be sent now */
	bool busy, bye; /* in a handler; the peer said so, or is gone */
	int end;        /* why it ended, or 0 */
};

struct ht_listener {
	struct ht_listener *next;
	struct ht_loop *loop;
	const struct ht_interface *iface;
	const struct ht_events *events;
	void *(*accept)(void *arg, struct ht_conn *conn);
	void *arg;
	void (*done)(void *arg);
	int sock;
	char path[108];
};

struct ht_loop {
	struct ht_conn *conns;
	struct ht_listener *listeners;
	size_t nconns;
	struct pollfd *fds;
	size_t nfds;
	uint8_t *frame;
	int64_t spin; /* ns */
	unsigned round;
	bool barriers; /* membarrier reaches other processes */
};

/* An end on its way: what Go's End has. */
struct ht_end {
	uint8_t *state;
	size_t nstate;
	int fds[8];
	size_t nfds;
};

int ht_fail_system(const char *what);
int ht_fail_mismatch(const struct ht_interface *ours, const struct ht_greeting *theirs);
int64_t ht_now_ns(void);

/* ht_link.c */
bool ht_register_barriers(void);
void ht_barrier(const struct ht_loop *loop);
int ht_send_frame(int sock, const uint8_t *b, size_t n, const int *fds, size_t nfds);
int ht_recv_frame(struct ht_loop *loop, int sock, struct ht_frame *f); /* 1 a frame, 0 none now, or an error */
void ht_frame_close(struct ht_frame *f);
int ht_new_memory(size_t n, int *fd, void **mem);
int ht_map_memory(int fd, size_t n, bool write, void **mem);
int ht_send_greeting(struct ht_conn *c, uint8_t kind, uint8_t reason, const uint8_t *token);
bool ht_parse_greeting(const struct ht_frame *f, struct ht_greeting *g);
int ht_socket_path(const char *name, char *path, size_t n, bool make);
bool ht_good_bell(int fd);

/* ht_conn.c */
struct ht_conn *ht_conn_new(struct ht_loop *loop, const struct ht_interface *iface, const struct ht_events *events, void *self);
void ht_conn_rings(struct ht_conn *c);
int ht_conn_frame(struct ht_conn *c, struct ht_frame *f);
int ht_conn_receive(struct ht_conn *c, int most);
void ht_conn_wake(struct ht_conn *c);
void ht_conn_end(struct ht_conn *c, int reason);
void ht_conn_free(struct ht_conn *c);
int ht_conn_socket(struct ht_conn *c);
void ht_conn_bell(struct ht_conn *c);

/* ht_loop.c */
void ht_conn_enter(struct ht_conn *c);

/* ht_end.c */
int ht_end_parse(const uint8_t *state, size_t n, const int *fds, size_t nfds, struct ht_end **end);

#endif
