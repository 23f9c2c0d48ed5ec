/* What the files of the library share. */
#ifndef HT_INT_H
#define HT_INT_H

#include <sys/types.h>

#include "ht_msg.h"
#include "ht_ring.h"

enum {
	HT_MAX_FRAME = 64 << 10,
	HT_MAX_FILES = 64,
	HT_MAX_CAPS = 16,
	HT_FILES_OUT = 64,     /* descriptors in messages that the peer has not had, */
	HT_FILES_QUEUED = 256, /* and how many of them this end keeps; more than an honest peer has under way */
	HT_MIN_BULK_BODY = 512, /* shorter bodies go in slots */
	HT_FRAGMENTS = (HT_MIN_BULK_BODY + HT_BODY - 1) / HT_BODY, /* slots of the longest of those */
	HT_MIN_POOL = 256 << 10,
	HT_MAX_BODY = 16 << 20,
	HT_CAPS_QUEUED = 4096, /* frames of caps without their messages */
	HT_POOLS = 4           /* a peer has one pool, and older ones for what it sends again */
};

/* Frames: the connection's, then the driver's. */
enum {
	FRAME_HELLO = 1, FRAME_WELCOME = 2, FRAME_REFUSE = 3, FRAME_CAPS = 4, FRAME_BULK = 5, FRAME_BYE = 6, FRAME_MOVE = 7,
	FRAME_LEFT = 10, FRAME_BOUND = 11,
	FRAME_MEMORY = 0xf0, FRAME_WAKE = 0xf1, FRAME_BELL = 0xf2, FRAME_PLACE = 0xf3
};

struct ht_greeting {
	uint8_t kind, flags, reason;
	uint8_t fingerprint[16], token[16];
	uint64_t delivered;
	char name[256];
};

/* Flags of a greeting: barriers of its sender do not reach us; it knows FRAME_BOUND. */
enum { GREET_FENCE = 1, GREET_BOUND = 2, GREET_CALLS = 8 }; /* and it knows messages about calls */

/* Messages of the library's own: a call failed, or its caller waits no more. */
enum { NUM_FAILED = 4001, NUM_GIVEN_UP = 4002, FAILED_BYTES = 12, GIVEN_UP_BYTES = 4 };

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
	size_t n, files;
	struct ht_cap caps[HT_MAX_CAPS];
};

struct ht_pool { /* a peer's, mapped */
	uint8_t *mem;
	size_t n;
	uint32_t id;
};

struct ht_live { /* a body in the pool */
	uint32_t slot, off;
};

/* Where a connection is on its way. */
enum ht_stage {
	HT_WAIT_MEMORY, /* accepted: the rings come first, */
	HT_WAIT_HELLO,  /* then the greeting */
	HT_WAIT_WELCOME, /* dialled again for a session */
	HT_OPEN
};

/*
 * A link that the session has left, on which descriptors may still be under way. A
 * peer that closes on it never made the new bind, and its last messages are here.
 */
struct ht_left {
	struct ht_left *next;
	struct ht_conn *conn;
	int sock; /* -1: to be freed */
	bool bye; /* the peer has closed here */
	void *mem; /* the rings; NULL once they are not needed */
	size_t mem_n;
	struct ht_tx tx;
	struct ht_rx rx;
	uint8_t *frag; /* of a message that was half received */
	size_t frag_n;
};

/*
 * A connection. While messages come and go it is hot: the loop looks at its rings
 * in turn. When nothing comes any more it is parked: the flag in its ring is set,
 * and the peer wakes the loop, which then costs nothing, however many there are.
 */
struct ht_conn {
	struct ht_conn *next, *prev, *next_dead;
	struct ht_loop *loop;
	const struct ht_interface *iface;
	const struct ht_events *events;
	void *self;
	struct ht_listener *from; /* until accepted */
	struct ht_conn *session;  /* HT_WAIT_WELCOME: whose link this will be */
	enum ht_stage stage;
	int64_t deadline; /* in ms, of the greeting, or of a new link after the peer left this one; or 0 */
	size_t hot;       /* the place among the hot connections, from 1; 0 while parked */
	uint32_t active;  /* the loop's tick when something last came or went */
	bool parking;     /* its flags are set, and the loop will look once more */

	/* the link */
	int sock, bell, ring_bell; /* bell: on which we wait; ring_bell: the peer's; -1 if none */
	unsigned parks;
	bool second, fence_them;
	bool calls; /* the peer knows messages about calls */
	struct ht_error error; /* while events->failed runs */
	uint32_t last_call;    /* its number */
	bool canceled;         /* a call has been given up: late replies may come */
	struct ht_calls *table; /* the stub's, once a call was sent */
	int64_t late;           /* no call's time is over before, in ns; 0: none has one */
	uint32_t *untold;       /* calls that were given up when there was no room to tell the peer */
	size_t untold_n, untold_cap;
	int pages, memfd;
	void *mem;
	size_t mem_n;
	struct ht_tx tx;
	struct ht_rx rx;

	/* the session */
	uint8_t token[16];
	bool dialled, moving, peer_left; /* moving: a new link is being made */
	bool unbound, gone;              /* the peer has not said that it has the new link; and the link has ended since */
	char addr[112];                  /* where it was dialled, or empty */
	struct ht_left *left;
	struct ht_slot *again; /* slots to be sent again in the new ring, */
	uint32_t again_n, again_at; /* of which so many are */

	/* sending */
	size_t begun;
	struct ht_live out[HT_FILES_OUT]; /* a ring: where messages with descriptors end, and how many these are */
	uint32_t out_first, out_n, files_out;
	bool in_bulk, wants_room;
	uint8_t *longer;
	uint8_t *pool;
	size_t pool_n, head;
	uint32_t pool_id;
	struct ht_live *live; /* a ring of live_cap */
	uint32_t live_first, live_n, live_cap;

	/* receiving */
	bool resume; /* after a new bind: messages may come again */
	uint8_t *frag;
	size_t frag_n;
	struct ht_pool peers[HT_POOLS]; /* the peer's pools, the newest last */
	size_t npeers;
	struct ht_came *came; /* by number */
	size_t came_n, came_files;

	bool stalled; /* the next message must wait: no reply to it could be sent now, or it will come again */
	bool missing; /* what belongs to the next message has not come */
	bool busy, bye; /* in a handler; the peer said so, or is gone */
	int end;        /* why it ended, or 0 */

	struct ht_stream *stream; /* to a service of the kernel, which has no rings; else NULL */
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
	bool own_dir; /* the socket has a directory for itself */
	char *name;   /* in the name service, or NULL */
};

struct ht_loop {
	struct ht_conn *conns, *dead; /* dead: ended, to be freed when nothing looks at them */
	struct ht_listener *listeners;
	struct ht_names *names; /* the program's, or NULL */
	struct ht_left *trash;
	uint32_t *users; /* who may be at the other end, beside this process's user and root */
	size_t nusers;
	size_t nconns;
	int epoll;
	struct ht_conn **hot;
	size_t nhot, hot_cap;
	size_t waiting;    /* connections with a deadline, about */
	int64_t late;      /* no call's time is over before, in ns; 0: none has one */
	int handled;       /* since the last look, outside rings: calls given up, messages of services */
	size_t kept, keep; /* memory files kept, so that an end can be moved, and how many may be */
	int64_t look, full; /* when to look at deadlines, and at listeners again; ms */
	int64_t swept;      /* ns */
	uint32_t tick;
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

/* Sets what ht_detail says. */
__attribute__((format(printf, 1, 2))) void ht_note(const char *format, ...);
int ht_fail_system(const char *what);
int ht_wrong(const char *what); /* HT_BAD_PEER, and why */
int ht_fail_mismatch(const struct ht_interface *ours, const struct ht_greeting *theirs);
int64_t ht_now_ns(void);

/* What an event of epoll is about is told by the low bits of its pointer. */
enum { HT_AT_SOCK = 0, HT_AT_BELL = 1, HT_AT_LISTENER = 2, HT_AT_LEFT = 3 };
int ht_watch(struct ht_loop *loop, int fd, void *what, unsigned kind);
void ht_unwatch(struct ht_loop *loop, int fd);

/* ht_link.c */
bool ht_register_barriers(void);
void ht_barrier(const struct ht_loop *loop);
void ht_futex_wake(uint32_t *word);
int ht_send_frame(int sock, const uint8_t *b, size_t n, const int *fds, size_t nfds);
int ht_recv_frame(struct ht_loop *loop, int sock, struct ht_frame *f); /* 1 a frame, 0 none now, or an error */
void ht_frame_close(struct ht_frame *f);
int ht_new_memory(size_t n, int *fd, void **mem);
int ht_map_memory(int fd, size_t n, bool write, void **mem);
int ht_send_greeting(struct ht_conn *c, uint8_t kind, uint8_t reason, const uint8_t *token, uint64_t delivered);
/* Tells a peer that greets in another version of the protocol which this one is. */
void ht_refuse_version(struct ht_conn *c, const struct ht_frame *f);
bool ht_parse_greeting(const struct ht_frame *f, struct ht_greeting *g);
int ht_socket_path(const struct ht_loop *l, const char *name, char *path, size_t n, bool make);
bool ht_user_allowed(const struct ht_loop *l, uint32_t uid);
int ht_peer_allowed(const struct ht_loop *l, int sock);
bool ht_good_bell(int fd);
int ht_dial(const char *path, int *sock);

/* ht_conn.c */
struct ht_conn *ht_conn_new(struct ht_loop *loop, const struct ht_interface *iface, const struct ht_events *events, void *self);
void ht_conn_rings(struct ht_conn *c);
int ht_conn_frame(struct ht_conn *c, struct ht_frame *f);
void ht_conn_wake(struct ht_conn *c);
void ht_conn_woken(struct ht_conn *c, uint32_t was);
void ht_conn_end(struct ht_conn *c, int reason);
void ht_conn_await(struct ht_conn *c);
void ht_conn_free(struct ht_conn *c);
void ht_conn_unlink(struct ht_conn *c);
int ht_conn_socket(struct ht_conn *c);
void ht_conn_bell(struct ht_conn *c);
void ht_conn_quiet(struct ht_conn *c);
void ht_conn_keep(struct ht_conn *c, int memfd);
void ht_drop_pools(struct ht_conn *c, size_t n); /* the oldest of the peer */

/* ht_send.c */
void ht_pool_free(struct ht_conn *c);
bool ht_pool_fits(struct ht_conn *c, size_t n);

/* ht_recv.c */
int ht_conn_receive(struct ht_conn *c, int most);
/* Gives up one call whose time is over; false if there is none. */
bool ht_calls_expire(struct ht_conn *c, int64_t now);
/* Tells the peer what there was no room to tell it. */
bool ht_calls_tell(struct ht_conn *c); /* whether nothing is left to tell */
/* A whole message of the library's own. */
int ht_receive_own(struct ht_conn *c, unsigned num, const uint8_t *body, size_t n);
int ht_begin_own(struct ht_conn *c, size_t n, uint8_t **b); /* ht_begin for what calls are ended with */

/* ht_loop.c */
int ht_conn_enter(struct ht_conn *c);
void ht_conn_heat(struct ht_conn *c);

/* ht_bind.c */
int ht_take_in(struct ht_listener *n);
int ht_set_up(struct ht_conn *c);
int ht_offer(struct ht_conn *c, int pages);
void ht_listener_free(struct ht_listener *n);
/* Takes in an answer to a greeting. */
int ht_welcome(struct ht_conn *c, const struct ht_frame *f, struct ht_greeting *g);

/* ht_session.c */
struct ht_conn *ht_session_find(struct ht_loop *loop, const struct ht_interface *iface, const uint8_t *token);
int ht_session_move(struct ht_conn *c, struct ht_conn *link, uint64_t peer_has);
int ht_session_dial(struct ht_conn *c, const char *path);
bool ht_session_again(struct ht_conn *c); /* true: all is in the ring */
int ht_left_frames(struct ht_left *l);
void ht_left_free(struct ht_left *l); /* what it holds, except for the socket */
int ht_left_bye(struct ht_conn *c);   /* receives the last of a peer that closed on a link before; 0 if it did not */
bool ht_session_returns(struct ht_conn *c); /* true: the peer may bind again though the link has ended */

/* ht_stream.c */
int ht_stream_connect(struct ht_loop *loop, const char *service, const struct ht_interface *iface,
	const struct ht_events *events, void *self, struct ht_conn **conn);
int ht_stream_begin(struct ht_conn *c, size_t n, uint8_t **b);
int ht_stream_commit(struct ht_conn *c, uint16_t num);
int ht_stream_frame(struct ht_conn *c, const uint8_t *b, size_t n); /* sends a frame beside messages */
int ht_stream_events(struct ht_conn *c); /* reads and writes what it can; returns how many messages came */
void ht_stream_free(struct ht_conn *c);

/* ht_end.c */
int ht_end_parse(const uint8_t *state, size_t n, const int *fds, size_t nfds, struct ht_end **end);

#endif
