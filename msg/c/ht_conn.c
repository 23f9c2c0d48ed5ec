/* One connection: sending, receiving, and the frames beside the rings. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { AWAIT_MS = 5000 }; /* a peer may take so long to come back, or to send what belongs to a message */

struct ht_conn *ht_conn_new(struct ht_loop *loop, const struct ht_interface *iface, const struct ht_events *events, void *self)
{
	struct ht_conn *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->loop = loop;
	c->iface = iface;
	c->events = events;
	c->self = self;
	c->sock = c->bell = c->ring_bell = c->memfd = -1;
	return c;
}

/* Opens the rings in c->mem. */
void ht_conn_rings(struct ht_conn *c)
{
	size_t half = c->mem_n / 2;
	char *first = c->mem;
	ht_ring_open(&c->tx.r, c->second ? first + half : first, half);
	ht_ring_open(&c->rx.r, c->second ? first : first + half, half);
	c->tx.room = c->tx.r.n;
	c->rx.quarter = c->rx.r.n / 4;
	c->tx.fence = c->fence_them;
}

/* Wakes the peer. */
void ht_conn_wake(struct ht_conn *c)
{
	static const uint8_t wake = FRAME_WAKE;
	static const uint64_t one = 1;
	if (c->ring_bell >= 0) {
		/* A full counter is a wake as well. */
		ssize_t n = write(c->ring_bell, &one, sizeof(one));
		(void)n;
	} else {
		ht_send_frame(c->sock, &wake, 1, NULL, 0); /* a full buffer holds wakes enough */
	}
}

/* Wakes the peer as its flag says: 1 it sleeps, 2 it naps in futex(2). */
void ht_conn_woken(struct ht_conn *c, uint32_t was)
{
	if (was == 2)
		ht_futex_wake(&c->tx.r.ctl->parked);
	else if (was != 0)
		ht_conn_wake(c);
}

/* Marks the connection as ended; the first reason counts. */
void ht_conn_end(struct ht_conn *c, int reason)
{
	if (c->end != 0)
		return;
	c->end = reason;
	c->next_dead = c->loop->dead;
	c->loop->dead = c;
}

/* Gives a peer some time. */
void ht_conn_await(struct ht_conn *c)
{
	if (c->deadline == 0)
		c->loop->waiting++;
	c->deadline = ht_now_ns() / 1000000 + AWAIT_MS;
}

/* Keeps the memory file, so that the end can be moved, unless there are too many. */
void ht_conn_keep(struct ht_conn *c, int memfd)
{
	if (c->loop->kept >= c->loop->keep) {
		close(memfd);
		return;
	}
	c->loop->kept++;
	c->memfd = memfd;
}

/* Gives up the link. */
void ht_conn_unlink(struct ht_conn *c)
{
	int fds[] = {c->sock, c->bell, c->ring_bell, c->memfd};
	ht_unwatch(c->loop, c->sock);
	ht_unwatch(c->loop, c->bell);
	if (c->memfd >= 0)
		c->loop->kept--;
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	c->sock = c->bell = c->ring_bell = c->memfd = -1;
	if (c->mem != NULL)
		munmap(c->mem, c->mem_n);
	c->mem = NULL;
}

void ht_conn_free(struct ht_conn *c)
{
	if (c->session != NULL) { /* the link that it was made for never was */
		c->session->moving = false;
		if (c->session->deadline != 0)
			ht_conn_end(c->session, HT_PEER_GONE);
	}
	for (struct ht_conn *n = c->moving ? c->loop->conns : NULL; n != NULL; n = n->next) {
		if (n->session == c)
			n->session = NULL;
	}
	ht_conn_unlink(c);
	while (c->left != NULL) {
		struct ht_left *l = c->left;
		c->left = l->next;
		ht_unwatch(c->loop, l->sock);
		if (l->sock >= 0)
			close(l->sock);
		free(l);
	}
	if (c->pool != NULL)
		munmap(c->pool, c->pool_n);
	for (size_t i = 0; i < c->npeers; i++)
		munmap(c->peers[i].mem, c->peers[i].n);
	while (c->came != NULL) {
		struct ht_came *k = c->came;
		c->came = k->next;
		ht_caps_close(k->caps, k->n);
		free(k);
	}
	free(c->again);
	free(c->longer);
	free(c->live);
	free(c->frag);
	free(c);
}

/* The bulk pool: a ring of bytes, given back as slots are acknowledged. */

static size_t align_line(size_t n) { return (n + 63) & ~(size_t)63; }

void ht_pool_free(struct ht_conn *c)
{
	if (c->live_n == 0)
		return;
	uint32_t acked = c->tx.sent - (c->tx.r.n - c->tx.room);
	while (c->live_n > 0 && (int32_t)(acked - c->live[c->live_first].slot) > 0) {
		c->live_first = (c->live_first + 1) % c->live_cap;
		c->live_n--;
	}
}

static bool pool_fits(struct ht_conn *c, size_t n)
{
	n = align_line(n);
	if (n > c->pool_n)
		return false;
	ht_pool_free(c);
	if (c->live_n == 0) {
		if (c->head + n > c->pool_n)
			c->head = 0;
		return true;
	}
	size_t tail = c->live[c->live_first].off;
	if (c->head <= tail) /* equal means full */
		return c->head + n <= tail;
	if (c->head + n <= c->pool_n)
		return true;
	if (n <= tail) {
		c->head = 0;
		return true;
	}
	return false;
}

/* Replaces the empty pool by one for bodies of n bytes, and tells the peer. */
static int pool_grow(struct ht_conn *c, size_t n)
{
	size_t size = 2 * align_line(n);
	uint8_t b[9] = {FRAME_BULK};
	void *mem;
	int fd;
	if (size < HT_MIN_POOL)
		size = HT_MIN_POOL;
	if (c->live == NULL && (c->live = calloc(c->tx.r.n, sizeof(*c->live))) == NULL)
		return HT_NO_MEMORY;
	if (c->live_cap == 0)
		c->live_cap = c->tx.r.n;
	int err = ht_new_memory(size, &fd, &mem);
	if (err != 0)
		return err;
	ht_put32(b + 1, c->pool_id + 1);
	ht_put32(b + 5, (uint32_t)size);
	err = ht_send_frame(c->sock, b, sizeof(b), &fd, 1);
	close(fd);
	if (err != 0) {
		munmap(mem, size);
		return err;
	}
	if (c->pool != NULL)
		munmap(c->pool, c->pool_n);
	c->pool = mem;
	c->pool_n = size;
	c->pool_id++;
	c->head = 0;
	return 0;
}

/* Has the room handler called when there is room. */
static void want_room(struct ht_conn *c)
{
	c->wants_room = true;
	ht_conn_heat(c);
}

int ht_begin(struct ht_conn *c, size_t n, uint8_t **b)
{
	uint32_t slots = n <= HT_BODY || n >= HT_MIN_BULK_BODY ? 1 : (uint32_t)((n + HT_BODY - 1) / HT_BODY);
	if (c->end != 0)
		return c->end;
	if (c->bye)
		return HT_PEER_CLOSED;
	if (c->stage != HT_OPEN)
		return HT_FULL;
	if (n > HT_MAX_BODY)
		return HT_TOO_LARGE;
	bool bulk = n >= HT_MIN_BULK_BODY;
	if (c->again != NULL && !ht_session_again(c)) {
		want_room(c);
		return c->end != 0 ? c->end : HT_FULL;
	}
	if (c->tx.room < slots || (bulk && !pool_fits(c, n))) {
		if (!ht_refill(&c->tx)) {
			ht_conn_end(c, ht_wrong("acknowledged what was not sent"));
			return c->end;
		}
		if (bulk && align_line(n) > c->pool_n) {
			ht_pool_free(c);
			int err = c->live_n == 0 ? pool_grow(c, n) : HT_FULL;
			if (err != 0) {
				if (err == HT_FULL)
					want_room(c);
				return err;
			}
		}
		if (c->tx.room < slots || (bulk && !pool_fits(c, n))) {
			want_room(c);
			return HT_FULL;
		}
	}
	c->begun = n;
	c->in_bulk = bulk;
	if (bulk) {
		*b = c->pool + c->head;
	} else if (n <= HT_BODY) {
		*b = c->tx.r.slots[c->tx.r.at].body;
	} else {
		if (c->longer == NULL && (c->longer = malloc(HT_MIN_BULK_BODY)) == NULL)
			return HT_NO_MEMORY;
		*b = c->longer;
	}
	return 0;
}

/* Sends the frame of what comes with the next message. */
static int send_caps(struct ht_conn *c, const struct ht_cap *caps, size_t n)
{
	uint8_t b[2048], *p = b;
	int fds[HT_MAX_FILES] = {0};
	size_t nfds = 0;
	if (n > HT_MAX_CAPS)
		return HT_TOO_LARGE;
	*p++ = FRAME_CAPS;
	*p++ = (uint8_t)n;
	ht_put64(p, c->tx.seq);
	p += 8;
	for (size_t i = 0; i < n; i++) {
		size_t own = 0, state = 0;
		switch (caps[i].kind) {
		case HT_CAP_NONE:
			break;
		case HT_CAP_FILE:
			if (caps[i].fd < 0)
				return HT_BAD_CAP;
			fds[nfds++] = caps[i].fd;
			own = 1;
			break;
		case HT_CAP_END: {
			struct ht_end *e = caps[i].end;
			if (e == NULL || e->nfds == 0 || nfds + e->nfds > HT_MAX_FILES || e->nstate > (size_t)(b + sizeof(b) - p) - 4)
				return HT_BAD_CAP;
			memcpy(fds + nfds, e->fds, e->nfds * sizeof(int));
			nfds += own = e->nfds;
			state = e->nstate;
			memcpy(p + 4, e->state, state);
			break;
		}
		default:
			return HT_BAD_CAP;
		}
		p[0] = (uint8_t)caps[i].kind;
		p[1] = (uint8_t)own;
		ht_put16(p + 2, (uint16_t)state);
		p += 4 + state;
		if (b + sizeof(b) - p < 8)
			return HT_TOO_LARGE;
	}
	int err = ht_send_frame(c->sock, b, (size_t)(p - b), fds, nfds);
	if (err != 0)
		return err;
	for (size_t i = 0; i < n; i++) {
		if (caps[i].kind == HT_CAP_END)
			ht_end_close(caps[i].end);
	}
	return 0;
}

int ht_commit(struct ht_conn *c, uint16_t num, const struct ht_cap *caps, size_t ncaps)
{
	struct ht_tx *t = &c->tx;
	unsigned flags = 0;
	bool wake = false;
	if (ncaps > 0) {
		int err = send_caps(c, caps, ncaps);
		if (err != 0) {
			if (err == HT_FULL)
				want_room(c);
			return err;
		}
		flags = HT_CAPS;
	}
	if (c->in_bulk) {
		uint8_t *ref = t->r.slots[t->r.at].body;
		ht_put32(ref, c->pool_id);
		ht_put32(ref + 4, (uint32_t)c->head);
		ht_put32(ref + 8, (uint32_t)c->begun);
		c->live[(c->live_first + c->live_n) % c->live_cap] = (struct ht_live){t->sent, (uint32_t)c->head};
		c->live_n++;
		c->head += align_line(c->begun);
		if (c->head == c->pool_n)
			c->head = 0;
		wake = ht_publish(t, &c->rx, num, flags | HT_BULK, 12);
	} else if (c->begun <= HT_BODY) {
		wake = ht_publish(t, &c->rx, num, flags, c->begun);
	} else {
		for (size_t at = 0; at < c->begun;) {
			size_t k = c->begun - at < HT_BODY ? c->begun - at : HT_BODY;
			unsigned f = flags | (at > 0 ? HT_CONT : 0);
			memcpy(t->r.slots[t->r.at].body, c->longer + at, k);
			at += k;
			wake = ht_publish(t, &c->rx, num, f | (at < c->begun ? HT_MORE : 0), k);
		}
	}
	if (wake)
		ht_conn_woken(c, ht_take_flag(&t->r.ctl->parked));
	if (c->hot == 0)
		ht_conn_heat(c); /* an answer may come soon */
	return 0;
}

/* Frames. */

static int take_caps(struct ht_conn *c, struct ht_frame *f)
{
	const uint8_t *p = f->b, *end = f->b + f->n;
	size_t at = 0;
	if (f->n < 10 || p[1] > HT_MAX_CAPS || c->came_n >= HT_CAPS_QUEUED)
		return ht_wrong("caps: short, or too many");
	struct ht_came *k = calloc(1, sizeof(*k));
	if (k == NULL)
		return HT_NO_MEMORY;
	k->seq = ht_get64(p + 2);
	size_t n = p[1];
	int err = 0;
	p += 10;
	while (k->n < n && err == 0) {
		struct ht_cap *cap = &k->caps[k->n];
		if (end - p < 4)
			err = ht_wrong("caps: short");
		if (err != 0)
			break;
		unsigned kind = p[0], own = p[1], state = ht_get16(p + 2);
		p += 4;
		*cap = (struct ht_cap){(int)kind, -1, NULL};
		if (state > (size_t)(end - p) || own > f->nfds - at)
			err = ht_wrong("caps: files that do not fit");
		else if (kind == HT_CAP_FILE && own == 1 && state == 0)
			cap->fd = f->fds[at];
		else if (kind == HT_CAP_END && own > 0)
			err = ht_end_parse(p, state, f->fds + at, own, &cap->end);
		else if (kind != HT_CAP_NONE || own != 0 || state != 0)
			err = ht_wrong("caps: of no kind");
		if (err != 0)
			break;
		p += state;
		at += own;
		k->n++;
	}
	if (err == 0 && (p != end || at != f->nfds))
		err = ht_wrong("caps: more than its caps");
	if (err != 0) { /* the descriptors are still the frame's */
		for (size_t i = 0; i < k->n; i++) {
			if (k->caps[i].kind == HT_CAP_END) {
				k->caps[i].end->nfds = 0;
				ht_end_close(k->caps[i].end);
			}
		}
		free(k);
		return err;
	}
	f->nfds = 0;
	struct ht_came **last = &c->came; /* what came on an older link may be older */
	while (*last != NULL && (*last)->seq < k->seq)
		last = &(*last)->next;
	k->next = *last;
	*last = k;
	c->came_n++;
	return 0;
}

/* Forgets the oldest pools of the peer. */
static void drop_pools(struct ht_conn *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		munmap(c->peers[i].mem, c->peers[i].n);
	c->npeers -= n;
	memmove(c->peers, c->peers + n, c->npeers * sizeof(*c->peers));
}

static int take_bulk(struct ht_conn *c, struct ht_frame *f)
{
	void *mem;
	if (f->n != 9 || f->nfds != 1)
		return ht_wrong("bulk pool: not one file");
	uint32_t n = ht_get32(f->b + 5);
	if (n < HT_MIN_BULK_BODY || n > 2 * HT_MAX_BODY + HT_MIN_POOL || n % 64 != 0)
		return ht_wrong("bulk pool: impossible size");
	int err = ht_map_memory(f->fds[0], n, false, &mem);
	if (err != 0)
		return err;
	if (c->npeers == HT_POOLS)
		drop_pools(c, 1);
	c->peers[c->npeers++] = (struct ht_pool){mem, n, ht_get32(f->b + 1)};
	return 0;
}

/* Follows the peer's wish to be reached elsewhere, if this end is the one that dials. */
static int follow(struct ht_conn *c, const struct ht_frame *f)
{
	char path[sizeof(c->addr)];
	if (!c->dialled || f->n < 7 || f->n - 6 >= sizeof(path) || memcmp(f->b + 1, "unix:", 5) != 0)
		return 0;
	memcpy(path, f->b + 6, f->n - 6);
	path[f->n - 6] = 0;
	int err = ht_session_dial(c, path);
	return err == HT_NO_MEMORY ? err : 0;
}

/* Handles a frame of an open connection; what it does not keep is closed. */
int ht_conn_frame(struct ht_conn *c, struct ht_frame *f)
{
	int err = 0;
	bool late = f->b[0] == FRAME_CAPS || f->b[0] == FRAME_BULK || f->b[0] == FRAME_MOVE; /* sent while it left */
	if (f->b[0] < FRAME_MEMORY && (c->bye || (c->peer_left && !late))) {
		err = ht_wrong("a frame after the last"); /* nothing but wakes comes after these */
	} else {
		switch (f->b[0]) {
		case FRAME_CAPS:
			err = take_caps(c, f);
			break;
		case FRAME_BULK:
			err = take_bulk(c, f);
			break;
		case FRAME_BYE:
			c->bye = true;
			break;
		case FRAME_WAKE:
			break;
		case FRAME_MOVE: /* if it cannot be done, the old link stays */
			err = follow(c, f);
			break;
		case FRAME_LEFT: /* a new link comes, or has come and was not looked at yet; or our bind was given up */
			if (c->dialled && !c->moving && c->addr[0] != 0)
				ht_session_dial(c, c->addr);
			c->peer_left = true;
			ht_conn_await(c);
			break;
		case FRAME_BOUND:
			c->unbound = false;
			break;
		case FRAME_BELL:
			if (f->nfds != 1 || c->ring_bell >= 0 || !ht_good_bell(f->fds[0])) {
				err = ht_wrong("a bell that is none, or a second");
				break;
			}
			c->ring_bell = f->fds[0];
			f->nfds = 0;
			break;
		default:
			err = ht_wrong("a frame of no kind");
		}
	}
	ht_frame_close(f);
	return err;
}

/* Reads the frames that are there. Returns 0 or why the connection ends. */
int ht_conn_socket(struct ht_conn *c)
{
	struct ht_frame f;
	int got;
	while ((got = ht_recv_frame(c->loop, c->sock, &f)) > 0) {
		int err = ht_conn_frame(c, &f);
		if (err != 0)
			return err;
	}
	if (got == HT_PEER_GONE && c->bye)
		return HT_PEER_CLOSED;
	return got;
}

/* Makes a bell and gives it to the peer, once sleeping has become a habit. */
void ht_conn_bell(struct ht_conn *c)
{
	static const uint8_t frame = FRAME_BELL;
	if (c->bell >= 0 || ++c->parks < 4)
		return;
	c->parks = 0;
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->bell < 0)
		return;
	if (ht_watch(c->loop, c->bell, c, HT_AT_BELL) != 0 || ht_send_frame(c->sock, &frame, 1, &c->bell, 1) != 0) {
		ht_unwatch(c->loop, c->bell);
		close(c->bell);
		c->bell = -1;
	}
}

/* Receiving. */

/*
 * Looks for what was sent before the slot at hand. HT_FULL: it is not there yet. It
 * is on its way by the socket, or by that of a link which is being made, on which
 * the message will come again; a peer that does not send it at all has a deadline.
 */
static int find(struct ht_conn *c, bool (*found)(struct ht_conn *, uint64_t), uint64_t what)
{
	int err = 0;
	if (!found(c, what)) {
		err = ht_conn_socket(c);
		for (struct ht_left *l = c->left; l != NULL && err == 0; l = l->next)
			err = ht_left_frames(l);
		if (!found(c, what)) {
			if (!c->moving && !c->peer_left && (err != 0 || c->bye))
				return err == HT_NO_MEMORY || err == HT_SYSTEM ? err : ht_wrong("what came with a message is missing");
			if (!c->missing)
				ht_conn_await(c);
			c->missing = c->stalled = true;
			return HT_FULL;
		}
	}
	if (c->missing) {
		c->missing = false;
		if (!c->peer_left && !c->gone) {
			c->deadline = 0;
			c->loop->waiting--;
		}
	}
	return 0;
}

static bool have_pool(struct ht_conn *c, uint64_t id)
{
	for (size_t i = c->npeers; i-- > 0;) {
		if (c->peers[i].id == id) {
			drop_pools(c, i); /* it has come to an end with those before */
			return true;
		}
	}
	return false;
}

static bool have_caps(struct ht_conn *c, uint64_t seq) { return c->came != NULL && c->came->seq >= seq; }

/* Finds the body that a reference in ref names. */
static int bulk_body(struct ht_conn *c, const uint8_t *ref, size_t n, const uint8_t **body, size_t *len)
{
	if (n != 12)
		return ht_wrong("a reference to bulk memory of the wrong length");
	int err = find(c, have_pool, ht_get32(ref));
	if (err != 0)
		return err;
	uint32_t off = ht_get32(ref + 4), size = ht_get32(ref + 8);
	const struct ht_pool *p = c->peers;
	if (off > p->n || size > p->n - off || size < HT_MIN_BULK_BODY)
		return ht_wrong("a reference beyond the bulk memory");
	*body = p->mem + off;
	*len = size;
	return 0;
}

/* True if any reply to call m can be sent now. */
static bool can_reply(struct ht_conn *c, const struct ht_message *m)
{
	const struct ht_message *reply = m + 1;
	if (c->again != NULL && !ht_session_again(c))
		return false;
	for (int again = 0;; again = 1) {
		bool fits = reply->max < HT_MIN_BULK_BODY || pool_fits(c, reply->max);
		ht_pool_free(c);
		if (c->tx.room >= HT_FRAGMENTS && (fits || c->live_n == 0))
			return true;
		if (again)
			return false;
		if (!ht_refill(&c->tx)) {
			ht_conn_end(c, ht_wrong("acknowledged what was not sent"));
			return false;
		}
	}
}

/* Handles one message, of which the next slot, with header h, is the first or next part. */
static int receive_one(struct ht_conn *c, uint64_t h, bool *whole)
{
	unsigned num = h >> 16 & 0xfff, flags = h >> 28 & 0xf;
	size_t n = h >> 48 & 0x3f, len = n;
	uint8_t in[HT_BODY];
	const uint8_t *body = in;
	bool wake = false;
	int err;
	*whole = false;
	if (n > HT_BODY || num == 0 || num > c->iface->count)
		return ht_wrong("a slot header that is none");
	const struct ht_message *m = &c->iface->messages[num - 1];
	bool twice = false;
	if (c->resume) { /* numbers of messages are modulo 1024, more than twice the slots of a ring */
		uint64_t d = ((h >> 54) - c->rx.seq) & 1023;
		twice = d > 511;
		if (d != 0 && !twice)
			return ht_wrong("messages are missing after a new bind");
		c->resume = twice;
	}
	if (twice) { /* it was delivered before the connection was bound anew */
		if (ht_consume(&c->rx, &c->tx, h))
			ht_conn_wake(c);
		if (!(flags & HT_MORE))
			c->rx.seq--;
		return 0;
	}
	c->stalled = m->role == HT_CALL && c->frag_n == 0 && !can_reply(c, m);
	if (c->stalled)
		return 0;
	memcpy(in, c->rx.r.slots[c->rx.r.at].body, HT_BODY);
	if (((flags & HT_CONT) != 0) != (c->frag_n > 0) || ((flags & HT_BULK) && (flags & (HT_MORE | HT_CONT))))
		return ht_wrong("flags that do not fit");
	if (flags & HT_BULK) {
		if ((err = bulk_body(c, in, n, &body, &len)) != 0)
			return err == HT_FULL ? 0 : err;
	} else if (flags & (HT_MORE | HT_CONT)) {
		if (((flags & HT_MORE) && n != HT_BODY) || c->frag_n + n >= HT_MIN_BULK_BODY)
			return ht_wrong("fragments that do not fit");
		if (c->frag == NULL && (c->frag = malloc(HT_MIN_BULK_BODY)) == NULL)
			return HT_NO_MEMORY;
		memcpy(c->frag + c->frag_n, in, n);
		c->frag_n += n;
		if (flags & HT_MORE) {
			if (ht_consume(&c->rx, &c->tx, h))
				ht_conn_wake(c);
			return 0;
		}
		body = c->frag;
		len = c->frag_n;
		c->frag_n = 0;
	}
	if (len < m->min || len > m->max)
		return ht_wrong("a message that is too long or too short");
	struct ht_came *came = NULL;
	if (flags & HT_CAPS) {
		if ((err = find(c, have_caps, c->rx.seq)) == HT_FULL) {
			if (flags & HT_CONT)
				c->frag_n = len - n;
			return 0;
		}
		if (err != 0)
			return err;
		came = c->came;
		if (came->seq != c->rx.seq || came->n != m->caps)
			return ht_wrong("caps of another message, or not so many");
		c->came = came->next;
		c->came_n--;
	}
	if (!(flags & HT_BULK)) /* a body in bulk is the peer's to keep until it was handled */
		wake = ht_consume(&c->rx, &c->tx, h);
	err = c->events->deliver(c->self, (uint16_t)num, body, len, came ? came->caps : NULL, came ? came->n : 0);
	if (flags & HT_BULK)
		wake = ht_consume(&c->rx, &c->tx, h);
	if (came != NULL) {
		if (err != 0)
			ht_caps_close(came->caps, came->n);
		free(came);
	}
	if (wake)
		ht_conn_wake(c);
	*whole = true;
	return err;
}

/* Handles up to so many messages that have arrived; returns how many. */
int ht_conn_receive(struct ht_conn *c, int most)
{
	int n = 0;
	uint64_t h;
	while (n < most && c->end == 0 && ht_peek(&c->rx, &h)) {
		bool whole;
		c->busy = true;
		int err = receive_one(c, h, &whole);
		c->busy = false;
		if (err != 0)
			ht_conn_end(c, err);
		if (c->stalled)
			break;
		n += whole;
	}
	return n;
}

void ht_caps_close(const struct ht_cap *caps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (caps[i].kind == HT_CAP_FILE && caps[i].fd >= 0)
			close(caps[i].fd);
		else if (caps[i].kind == HT_CAP_END && caps[i].end != NULL)
			ht_end_close(caps[i].end);
	}
}
