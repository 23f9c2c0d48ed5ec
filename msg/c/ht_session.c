/*
 * A session: what stays when a connection is bound again to another link.
 *
 * The end that dialled dials again and greets with the session's token and how
 * many messages it has had; the other answers in kind. Each then leaves the old
 * ring: the slots that the peer has not had are copied out of it, into the new
 * ring as it has room, and what the peer sends twice is dropped by its number.
 * Bodies in bulk memory stay where they are, since the peer knows the pool. The
 * old socket is read until both have left it: descriptors may be under way. So long
 * the old rings stay mapped: a peer that closes before it has moved closes there.
 *
 * It all happens between two looks at the rings, so nothing is sent or received
 * meanwhile; Go's package msg, where the owners are other goroutines, has more to
 * do. Only shared memory is spoken here: a wish to move elsewhere is not followed.
 */
#define _GNU_SOURCE
#include "ht_int.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOVE_MS = 5000 };

/* Finds the accepted connection with a token, in time that does not depend on it. */
struct ht_conn *ht_session_find(struct ht_loop *loop, const struct ht_interface *iface, const uint8_t *token)
{
	struct ht_conn *found = NULL;
	for (struct ht_conn *c = loop->conns; c != NULL; c = c->next) {
		uint8_t differ = 0;
		for (int i = 0; i < 16; i++)
			differ |= c->token[i] ^ token[i];
		if (differ == 0 && c->stage == HT_OPEN && c->end == 0 && !c->dialled &&
			memcmp(c->iface->fingerprint, iface->fingerprint, 16) == 0)
			found = c;
	}
	return found;
}

/* What a connection sent that its peer has not acknowledged. */
struct unread {
	struct ht_slot *slots;
	uint32_t n;
	uint64_t first, next; /* numbers of the first message among them, and of the one after them */
};

static unsigned flags_of(const struct ht_slot *s) { return (unsigned)(s->hdr >> 28 & 0xf); }

/* Copies the slots. They are in memory that the peer can write to. */
static int collect(struct ht_conn *c, struct unread *u)
{
	struct ht_ring *r = &c->tx.r;
	if (!ht_refill(&c->tx))
		return ht_wrong("acknowledged what was not sent");
	ht_pool_free(c);
	uint32_t out = r->n - c->tx.room, rest = c->again_n - c->again_at;
	/* The first of a message's slots may be acknowledged before the last. */
	while (out > 0 && out < r->n && flags_of(&r->slots[(r->at + r->n - out) % r->n]) & HT_CONT)
		out++;
	u->slots = malloc((out + rest + 1) * sizeof(*u->slots));
	if (u->slots == NULL)
		return HT_NO_MEMORY;
	for (uint32_t i = 0; i < out; i++)
		u->slots[i] = r->slots[(r->at + r->n - out + i) % r->n];
	for (uint32_t i = 0; i < rest; i++)
		u->slots[out + i] = c->again[c->again_at + i];
	u->n = out + rest;
	uint32_t messages = 0, bulk = 0;
	for (uint32_t i = 0; i < u->n; i++) {
		unsigned f = flags_of(&u->slots[i]), num = u->slots[i].hdr >> 16 & 0xfff;
		messages += !(f & HT_MORE);
		bulk += (f & HT_BULK) != 0;
		if ((u->slots[i].hdr >> 48 & 0x3f) > HT_BODY || num == 0 || num > c->iface->count || (i + 1 == u->n && (f & HT_MORE)))
			bulk = UINT32_MAX / 2;
	}
	u->next = c->tx.seq;
	for (uint32_t i = 0; i < rest; i++)
		u->next += !(flags_of(&u->slots[out + i]) & HT_MORE);
	u->first = u->next - messages;
	if (bulk != c->live_n) { /* it was written to */
		free(u->slots);
		return ht_wrong("the ring was written to");
	}
	return 0;
}

/* Drops the messages that the peer has had. */
static void drop(struct ht_conn *c, struct unread *u, uint64_t peer_has)
{
	uint32_t at = 0, kept;
	while (at < u->n && u->first < peer_has) {
		unsigned f = flags_of(&u->slots[at++]);
		if (f & HT_BULK) {
			c->live_first = (c->live_first + 1) % c->live_cap;
			c->live_n--;
		}
		u->first += !(f & HT_MORE);
	}
	memmove(u->slots, u->slots + at, (u->n - at) * sizeof(*u->slots));
	u->n -= at;
	kept = 0;
	for (uint32_t i = 0; i < u->n; i++) { /* the new ring counts its slots from 0 */
		if (flags_of(&u->slots[i]) & HT_BULK)
			c->live[(c->live_first + kept++) % c->live_cap].slot = i;
	}
}

/* Has room for the bodies in bulk that a ring of n slots can refer to. */
static int live_room(struct ht_conn *c, uint32_t n)
{
	if (c->live == NULL || n <= c->live_cap)
		return 0;
	struct ht_live *live = calloc(n, sizeof(*live));
	if (live == NULL)
		return HT_NO_MEMORY;
	for (uint32_t i = 0; i < c->live_n; i++)
		live[i] = c->live[(c->live_first + i) % c->live_cap];
	free(c->live);
	c->live = live;
	c->live_first = 0;
	c->live_cap = n;
	return 0;
}

/* Says goodbye to the old link, and goes on listening to its socket. */
static int leave(struct ht_conn *c)
{
	static const uint8_t left = FRAME_LEFT;
	for (struct ht_left **at = &c->left; *at != NULL;) { /* an event may still be about these */
		struct ht_left *l = *at;
		if (l->sock >= 0) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		l->next = c->loop->trash;
		c->loop->trash = l;
	}
	int sent;
	for (int i = 0; i < 100 && (sent = ht_send_frame(c->sock, &left, 1, NULL, 0)) == HT_FULL; i++) {
		struct pollfd p = {c->sock, POLLOUT, 0};
		poll(&p, 1, 10);
	}
	bool gone = sent != 0;
	int err = ht_conn_socket(c); /* what has come so far comes before what comes on the new link */
	if (err != 0 && err != HT_PEER_GONE)
		return err;
	if (!gone && err == 0) {
		struct ht_left *l = calloc(1, sizeof(*l));
		if (l == NULL)
			return HT_NO_MEMORY;
		l->conn = c;
		l->sock = c->sock;
		l->next = c->left;
		c->left = l;
		l->mem = c->mem;
		l->mem_n = c->mem_n;
		l->tx = c->tx;
		l->rx = c->rx;
		c->mem = NULL;
		if (c->frag_n > 0) {
			l->frag = c->frag;
			l->frag_n = c->frag_n;
			c->frag = NULL;
		}
		ht_watch(c->loop, l->sock, l, HT_AT_LEFT);
		if (c->peer_left)
			shutdown(l->sock, SHUT_WR);
		c->sock = -1;
	}
	return 0;
}

/*
 * Moves a session to the link of another connection, which loses it. peer_has is
 * how many messages the peer had had when it greeted. On an error the session
 * must end.
 */
int ht_session_move(struct ht_conn *c, struct ht_conn *link, uint64_t peer_has)
{
	struct unread u = {0};
	int err = collect(c, &u);
	if (err != 0)
		return err;
	err = peer_has > u.next ? ht_wrong("had more than was sent") : leave(c);
	if (err != 0) {
		free(u.slots);
		return err;
	}
	drop(c, &u, peer_has);
	ht_conn_unlink(c);
	c->sock = link->sock;
	c->ring_bell = link->ring_bell;
	c->memfd = link->memfd;
	c->mem = link->mem;
	c->mem_n = link->mem_n;
	c->pages = link->pages;
	c->second = link->second;
	c->fence_them = link->fence_them;
	if (link->addr[0] != 0)
		memcpy(c->addr, link->addr, sizeof(c->addr));
	link->sock = link->ring_bell = link->memfd = -1;
	link->mem = NULL;
	memset(&c->tx, 0, sizeof(c->tx));
	c->out_n = c->files_out = 0; /* places in the old ring */
	uint64_t had = c->rx.seq;
	memset(&c->rx, 0, sizeof(c->rx));
	ht_conn_rings(c);
	c->tx.seq = u.first;
	c->rx.seq = had;
	c->resume = true;
	c->frag_n = 0;
	c->stalled = c->missing = c->peer_left = c->unbound = c->gone = false;
	c->parks = 0;
	if (c->deadline != 0) {
		c->deadline = 0;
		c->loop->waiting--;
	}
	free(c->again);
	c->again = u.slots;
	c->again_n = u.n;
	c->again_at = 0;
	if ((err = live_room(c, c->tx.r.n)) != 0 || (err = ht_watch(c->loop, c->sock, c, HT_AT_SOCK)) != 0)
		return err;
	ht_conn_heat(c);
	ht_session_again(c);
	return 0;
}

/* Sends again what is to be, as far as there is room; true if that was all. */
bool ht_session_again(struct ht_conn *c)
{
	bool wake = false;
	while (c->again_at < c->again_n) {
		uint32_t n = 1; /* slots of the message */
		while (c->again_at + n < c->again_n && flags_of(&c->again[c->again_at + n - 1]) & HT_MORE)
			n++;
		if (c->tx.room < n && !ht_refill(&c->tx)) {
			ht_conn_end(c, ht_wrong("acknowledged what was not sent"));
			return false;
		}
		if (c->tx.room < n)
			break;
		for (; n > 0; n--) {
			const struct ht_slot *s = &c->again[c->again_at++];
			memcpy(c->tx.r.slots[c->tx.r.at].body, s->body, HT_BODY);
			wake = ht_publish(&c->tx, &c->rx, s->hdr >> 16 & 0xfff, flags_of(s), s->hdr >> 48 & 0x3f) || wake;
		}
	}
	if (wake)
		ht_conn_woken(c, ht_take_flag(&c->tx.r.ctl->parked));
	if (c->again_at < c->again_n)
		return false;
	free(c->again);
	c->again = NULL;
	c->again_n = c->again_at = 0;
	return true;
}

/*
 * A link that ends is the end of the connection, unless another is being made, or
 * the peer, who dialled this one, may have given it up and be on the one before.
 */
bool ht_session_returns(struct ht_conn *c)
{
	bool before = false;
	for (struct ht_left *l = c->left; l != NULL; l = l->next)
		before = before || l->sock >= 0;
	return c->peer_left || c->moving || (c->unbound && before);
}

void ht_left_free(struct ht_left *l)
{
	if (l->mem != NULL)
		munmap(l->mem, l->mem_n);
	l->mem = NULL;
	free(l->frag);
	l->frag = NULL;
}

/*
 * A link has ended. If the peer has closed on one before, it never wrote into the
 * present ring: goes back to that one and receives what it holds.
 */
int ht_left_bye(struct ht_conn *c)
{
	struct ht_left *l = c->left;
	for (; l != NULL && !l->bye; l = l->next) {
		if (l->sock >= 0)
			ht_left_frames(l);
		if (l->bye)
			break;
	}
	if (l == NULL || l->mem == NULL)
		return l == NULL ? 0 : HT_PEER_CLOSED;
	uint64_t had = c->rx.seq;
	c->tx = l->tx;
	c->rx = l->rx;
	free(c->frag);
	c->frag = NULL;
	c->frag_n = 0;
	if (had == l->rx.seq) { /* else the peer wrote into both rings */
		c->frag = l->frag;
		c->frag_n = l->frag_n;
		l->frag = NULL;
	}
	c->rx.seq = had;
	c->resume = true;
	c->stalled = false;
	c->live_n = 0; /* nobody reads that any more, */
	free(c->again); /* nor that */
	c->again = NULL;
	c->again_n = c->again_at = 0;
	while (ht_conn_receive(c, 64) > 0)
		continue;
	return HT_PEER_CLOSED;
}

/*
 * Reads what still comes on a link that was left, until the peer has closed it: it
 * may have sent something just before it knew. Returns why the connection ends, or 0.
 */
int ht_left_frames(struct ht_left *l)
{
	struct ht_frame f;
	int got, err = 0;
	while (l->sock >= 0 && err == 0 && (got = ht_recv_frame(l->conn->loop, l->sock, &f)) != 0) {
		if (got < 0) {
			ht_unwatch(l->conn->loop, l->sock);
			close(l->sock);
			l->sock = -1;
			if (!l->bye)
				ht_left_free(l);
			if (l->conn->gone && !ht_session_returns(l->conn))
				return HT_PEER_GONE;
			break;
		}
		uint8_t kind = f.b[0];
		if (kind == FRAME_CAPS || kind == FRAME_BULK)
			err = ht_conn_frame(l->conn, &f);
		else
			ht_frame_close(&f);
		if (kind == FRAME_BYE) {
			l->bye = true;
			return HT_PEER_CLOSED;
		}
		if (kind == FRAME_LEFT)
			shutdown(l->sock, SHUT_WR); /* nothing more comes from here */
	}
	return err;
}

/* Dials path for a session, which goes on with its link until there is an answer. */
int ht_session_dial(struct ht_conn *c, const char *path)
{
	if (c->moving || c->peer_left)
		return HT_FULL;
	struct ht_conn *n = ht_conn_new(c->loop, c->iface, c->events, NULL);
	if (n == NULL)
		return HT_NO_MEMORY;
	int err = ht_dial(path, &n->sock);
	if (err == 0)
		err = ht_peer_allowed(c->loop, n->sock); /* before it hears the token */
	if (err == 0 && (err = ht_offer(n, c->pages)) == 0)
		err = ht_send_greeting(n, FRAME_HELLO, 0, c->token, c->rx.seq);
	n->dialled = true;
	n->stage = HT_WAIT_WELCOME;
	n->deadline = ht_now_ns() / 1000000 + MOVE_MS;
	if (err == 0)
		err = ht_conn_enter(n);
	if (err != 0) {
		ht_conn_free(n);
		return err;
	}
	strcpy(n->addr, path);
	n->session = c;
	c->moving = true;
	return 0;
}

int ht_rebind(struct ht_conn *c, const char *addr)
{
	uint8_t move[1 + sizeof("unix:") + sizeof(c->addr)] = {FRAME_MOVE};
	if (c->end != 0)
		return c->end;
	if (c->stage != HT_OPEN)
		return HT_FULL;
	if (c->stream != NULL)
		return HT_BAD_NAME; /* a service is in one place */
	const char *path = strncmp(addr, "unix:", 5) == 0 ? addr + 5 : addr;
	if (*path == 0)
		path = c->addr;
	if (*path == 0 || strlen(path) >= sizeof(c->addr))
		return HT_BAD_NAME;
	if (c->dialled)
		return ht_session_dial(c, path);
	memcpy(move + 1, "unix:", 5);
	memcpy(move + 6, path, strlen(path));
	return ht_send_frame(c->sock, move, 6 + strlen(path), NULL, 0);
}
