/*
 * Typed messages between processes, for C programs: the event-driven library
 * under the stubs that `hardtack idl` generates.
 *
 * Connections belong to a loop, and a loop to one thread at a time. ht_dispatch
 * calls the handlers of whatever has arrived; nothing else calls them. Sending
 * never waits: if there is no room it returns HT_FULL, and the room handler is
 * called when there is. A call is delivered only when there is room for its
 * reply, so a client that does not take its answers slows down a server that
 * answers at once.
 *
 * The wire format, the rings and the exchange at the start are those of Go's
 * package msg with the transport msg/ump, whose comments describe them. The
 * peer is not trusted: a violation closes the connection with HT_BAD_PEER.
 *
 * A connection can be bound again to other shared memory, by ht_rebind or by the
 * peer; messages under way arrive exactly once and in order. Moving to another
 * transport is not supported.
 *
 * Names are the sockets of a directory, as in Go without a name service:
 * $HARDTACK_MSG_DIR, else $XDG_RUNTIME_DIR/hardtack, else /tmp/hardtack-UID; or
 * those of the name service (ht_loop_names, ht_names.h). "unix:PATH" is an address.
 *
 * "kernel:SERVICE" is a service of the Hardtack kernel that the program runs under: process,
 * clusters, names, log or metrics, with the stubs of idl/process.if and so on. Such a connection
 * carries no descriptors, and cannot be moved or bound again. What the kernel has not taken yet
 * when ht_close is called is lost.
 */
#ifndef HT_MSG_H
#define HT_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ht_wire.h"

/* Errors. All are negative. */
enum {
	HT_FULL = -1,        /* no room yet; nothing was sent */
	HT_NO_MEMORY = -2,
	HT_TOO_LARGE = -3,   /* longer than the interface allows; nothing was sent */
	HT_PEER_CLOSED = -4, /* after all that it had sent was received */
	HT_PEER_GONE = -5,   /* it died */
	HT_BAD_PEER = -6,    /* it broke the protocol */
	HT_CLOSED_HERE = -7,
	HT_MISMATCH = -8,    /* the ends come from different interfaces; see ht_detail */
	HT_NO_NAME = -9,     /* nobody has that name */
	HT_TAKEN = -10,      /* somebody else has that name */
	HT_REFUSED = -11,    /* by the peer, or its user is not one to trust; see ht_detail */
	HT_SYSTEM = -12,     /* a system call failed; see ht_detail */
	HT_BAD_NAME = -13,
	HT_BAD_CAP = -14,    /* an end that was sent before, or no descriptor */
	HT_CALL_FAILED = -15, /* by the peer's handler; see ht_call_error */
	HT_OLD_PEER = -16    /* a call failed, and the peer was built before calls could: the connection is closed */
};

const char *ht_strerror(int err);

/* More about the last HT_MISMATCH, HT_SYSTEM or HT_BAD_PEER of this thread. */
const char *ht_detail(void);

/*
 * Why a call failed: the number of an error that the interface declares, from 1, or
 * one of these; and a zero-terminated text of at most HT_MAX_ERROR_TEXT bytes, which must
 * not be trusted.
 */
enum {
	HT_CODE_FAILED = 1 << 16, /* the text says why */
	HT_CODE_TOO_LARGE,        /* the reply is longer than the interface or the connection allows */
	HT_CODE_NO_CAPS,          /* the reply has descriptors, and the transport passes none */
	HT_CODE_CANCELED,         /* the handler gave up, or ht_call_cancel did */
	HT_CODE_TIMED_OUT         /* the time of ht_call_timeout is over */
};

enum { HT_MAX_ERROR_TEXT = 480 };

struct ht_error {
	uint32_t code;
	struct ht_text text;
};

/* Roles of messages. */
enum { HT_ONE_WAY = 0, HT_CALL = 1, HT_REPLY = 2 };

struct ht_message {
	const char *name;
	int role;
	uint32_t min, max; /* bytes of a body */
	uint32_t caps;
};

struct ht_interface {
	const char *name;
	uint8_t fingerprint[16];
	const struct ht_message *messages; /* number n is messages[n - 1] */
	uint32_t count;
};

struct ht_loop;
struct ht_conn;

struct ht_loop *ht_loop_new(void);

/* Closes all that belongs to the loop. */
void ht_loop_free(struct ht_loop *loop);

/*
 * Handles what has arrived, after waiting for at most timeout milliseconds, or
 * for ever if timeout is negative. Returns how many events were handled, 0 after
 * the timeout, or an error.
 */
int ht_dispatch(struct ht_loop *loop, int timeout);

/* How many connections the loop has. */
size_t ht_loop_conns(const struct ht_loop *loop);

/*
 * Has ht_connect and ht_export ask the name service, whose connection must last
 * as long as the loop.
 */
struct ht_names;
void ht_loop_names(struct ht_loop *loop, struct ht_names *names);

/*
 * Sets which users, besides this process's user and root, may be at the other end of the
 * loop's connections, as clients and as services. HT_ANY_USER allows all users. Must
 * come before ht_export and ht_connect. Returns 0 or HT_NO_MEMORY.
 */
#define HT_ANY_USER ((uint32_t)-1)
int ht_loop_users(struct ht_loop *loop, const uint32_t *uids, size_t n);

/* What stubs are told. self is what they gave or returned for the connection. */
struct ht_events {
	/* A message whose length is within its limits. Anything but 0 closes the connection for that reason. */
	int (*deliver)(void *self, uint16_t num, const uint8_t *body, size_t n, const struct ht_cap *caps, size_t ncaps);
	/* There is room again after HT_FULL. */
	void (*room)(void *self);
	/* The last call; the connection is freed after it. */
	void (*closed)(void *self, int reason);
	/* A call of ours failed, as ht_call_error says; or the peer does not wait for its call any more. Both may be NULL. */
	void (*failed)(void *self, uint32_t call);
	void (*given_up)(void *self, uint32_t call);
};

/* Connects to the service called name, waiting up to ten seconds for it; not for one of the kernel. */
int ht_connect(struct ht_loop *loop, const char *name, const struct ht_interface *iface,
	const struct ht_events *events, void *self, struct ht_conn **conn);

/*
 * Makes the program reachable as name until the loop is freed. accept returns
 * each connection's self; NULL refuses the connection. done(arg) is called at the end.
 */
int ht_export(struct ht_loop *loop, const char *name, const struct ht_interface *iface,
	const struct ht_events *events, void *(*accept)(void *arg, struct ht_conn *conn), void *arg,
	void (*done)(void *arg));

/* Takes up an end that arrived as a cap; on success it belongs to the connection. */
int ht_adopt(struct ht_loop *loop, struct ht_end *end, const struct ht_interface *iface,
	const struct ht_events *events, void *self, struct ht_conn **conn);

/*
 * Turns a connection into an end that can be sent as a cap. Messages that have
 * arrived move with it. HT_FULL: something is under way that
 * cannot be moved, or this was called within a handler of the connection. The
 * connection is freed as after ht_close.
 */
int ht_detach(struct ht_conn *c, struct ht_end **end);

/*
 * Binds a connection again, in new memory, at an address that begins with unix:,
 * or where it was if addr is empty. The end that accepted asks its peer to do it.
 * Returns before it is done. If it fails, nothing changes. HT_FULL: a bind is
 * under way.
 */
int ht_rebind(struct ht_conn *c, const char *addr);

/* Gives up an end that was neither sent nor adopted. */
void ht_end_close(struct ht_end *end);

/* Closes what caps hold. */
void ht_caps_close(const struct ht_cap *caps, size_t n);

/*
 * Closes this end: the peer still receives what was sent before, and nothing more
 * is delivered here. events->closed is called with HT_CLOSED_HERE, and the
 * connection freed, by the next ht_dispatch or ht_loop_free.
 */
void ht_close(struct ht_conn *c);

/*
 * Finds room for a body of n bytes. Write the whole body to *b and commit it as
 * message num, or do not commit it to abandon it.
 */
int ht_begin(struct ht_conn *c, size_t n, uint8_t **b);
int ht_commit(struct ht_conn *c, uint16_t num, const struct ht_cap *caps, size_t ncaps);

/*
 * Answers a call with an error instead of its reply. text may be NULL, and is
 * truncated if it is too long. Returns 0, HT_FULL, or another error. The connection of
 * a peer that was built before calls could fail is closed, with HT_OLD_PEER.
 */
int ht_reply_error(struct ht_conn *c, uint32_t call, uint32_t code, const char *text);

/*
 * For stubs: err is what sending the reply to a call returned. If the reply can never be
 * sent, this tells the caller. Returns err, or HT_FULL if there is no room for that.
 */
int ht_replied(struct ht_conn *c, uint32_t call, int err);

/* Why a call failed: valid while its done runs with HT_CALL_FAILED. */
const struct ht_error *ht_call_error(const struct ht_conn *c);

/* The number of the call that was sent last, for ht_call_cancel; 0 before the first. */
uint32_t ht_last_call(const struct ht_conn *c);

/*
 * Cancels a call: its done is called here, with HT_CALL_FAILED and the code
 * HT_CODE_CANCELED, the handler at the other end is told (in Go its context ends), and a
 * later reply is dropped. Returns 0, also if the call has already ended, or HT_FULL if there
 * is no room to tell the peer: then the call continues, and room is called when it is time to
 * try again.
 */
int ht_call_cancel(struct ht_conn *c, uint32_t call);

/*
 * Gives a call a timeout in milliseconds from now: if it has not ended by then, ht_dispatch
 * cancels it. Its done is called with HT_CALL_FAILED and the code HT_CODE_TIMED_OUT, and
 * the rest is as in ht_call_cancel, without HT_FULL. It counts as an event for
 * ht_dispatch. Right after a call was sent:
 *
 *	ht_call_timeout(shop_raw(c), ht_last_call(shop_raw(c)), 500);
 *
 * A call that has ended is left alone; a second timeout replaces the first.
 */
void ht_call_timeout(struct ht_conn *c, uint32_t call, int ms);

/* Calls under way, by number: what a stub keeps for each. */
struct ht_call {
	uint32_t id;
	uint16_t num; /* of the reply; 0 if the place is free */
	void (*done)(void);
	void *arg;
	int64_t until; /* ht_call_timeout, in ns; 0: for ever */
};

struct ht_calls {
	struct ht_call *all; /* a table with room for size, a power of two; open addressing by id */
	uint32_t size, used, next;
};

/* For stubs: a call of the table was sent; a reply has come that nobody waits for. */
void ht_called(struct ht_conn *c, struct ht_calls *calls, uint32_t call);
int ht_late_reply(struct ht_conn *c, const struct ht_cap *caps, size_t ncaps);

/* Notes a call and gives it a number. */
int ht_calls_add(struct ht_calls *c, uint16_t num, void (*done)(void), void *arg, uint32_t *id);
/* Takes out the call that message num answers; false if there is none. */
bool ht_calls_take(struct ht_calls *c, uint32_t id, uint16_t num, struct ht_call *out);
/* Takes out the call with that number, whatever answers it; false if there is none. */
bool ht_calls_take_id(struct ht_calls *c, uint32_t id, struct ht_call *out);
/* Takes out any call; false if there is none. */
bool ht_calls_any(struct ht_calls *c, struct ht_call *out);
/* Finds a call by its number; NULL if there is none. */
struct ht_call *ht_calls_find(const struct ht_calls *c, uint32_t id);
/* Finds a call whose time is over; NULL if there is none, and *next is when the next one's will be, or 0. */
struct ht_call *ht_calls_late(const struct ht_calls *c, int64_t now, int64_t *next);
void ht_calls_drop(struct ht_calls *c, uint32_t id);
void ht_calls_free(struct ht_calls *c);

#endif
