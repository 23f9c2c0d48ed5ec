/* Receiving: slots, which the peer may change at any time, become messages. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <stdlib.h>

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
			ht_drop_pools(c, i); /* it has come to an end with those before */
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
		bool fits = reply->max < HT_MIN_BULK_BODY || ht_pool_fits(c, reply->max);
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

int ht_receive_own(struct ht_conn *c, unsigned num, const uint8_t *body, size_t n)
{
	char text[HT_MAX_ERROR_TEXT + 1];
	uint32_t call = n >= GIVEN_UP_BYTES ? ht_get32(body) : 0;
	if (num == NUM_GIVEN_UP) {
		if (n != GIVEN_UP_BYTES)
			return ht_wrong("a call given up of another length");
		if (c->events->given_up != NULL)
			c->events->given_up(c->self, call);
		return 0;
	}
	if (n < FAILED_BYTES || n > FAILED_BYTES + HT_MAX_ERROR_TEXT || ht_get32(body + 8) != n - FAILED_BYTES)
		return ht_wrong("an error reply of another length");
	uint32_t len = (uint32_t)(n - FAILED_BYTES);
	memcpy(text, body + FAILED_BYTES, len);
	text[len] = 0;
	c->error = (struct ht_error){ht_get32(body + 4), {text, len}};
	if (c->events->failed != NULL)
		c->events->failed(c->self, call);
	c->error = (struct ht_error){0, {"", 0}};
	return 0;
}

const struct ht_error *ht_call_error(const struct ht_conn *c) { return &c->error; }

void ht_called(struct ht_conn *c, struct ht_calls *calls, uint32_t call)
{
	c->table = calls;
	c->last_call = call;
}

uint32_t ht_last_call(const struct ht_conn *c) { return c->last_call; }

int ht_late_reply(struct ht_conn *c, const struct ht_cap *caps, size_t ncaps)
{
	if (!c->canceled)
		return HT_BAD_PEER;
	ht_caps_close(caps, ncaps);
	return 0;
}

/* Tells the peer that nobody waits for a call any more. */
static int tell(struct ht_conn *c, uint32_t call)
{
	uint8_t *b;
	int err = c->calls ? ht_begin_own(c, GIVEN_UP_BYTES, &b) : 0;
	if (err != 0 || !c->calls) /* it does not know what it means */
		return err;
	ht_put32(b, call);
	return ht_commit(c, NUM_GIVEN_UP, NULL, 0);
}

/* Has the done of a call called. */
static void give_up(struct ht_conn *c, uint32_t call, uint32_t code, const char *text)
{
	struct ht_error before = c->error; /* within the done of another call */
	c->canceled = true;
	c->error = (struct ht_error){code, {text, (uint32_t)strlen(text)}};
	c->events->failed(c->self, call);
	c->error = before;
}

int ht_call_cancel(struct ht_conn *c, uint32_t call)
{
	if (c->events->failed == NULL || c->last_call == 0)
		return 0;
	int err = tell(c, call);
	if (err == 0)
		give_up(c, call, HT_CODE_CANCELED, "the call was given up");
	return err;
}

void ht_call_timeout(struct ht_conn *c, uint32_t call, int ms)
{
	struct ht_call *p = c->table != NULL ? ht_calls_find(c->table, call) : NULL;
	if (p == NULL)
		return;
	p->until = ht_now_ns() + (int64_t)(ms > 0 ? ms : 0) * 1000000;
	if (c->late == 0 || p->until < c->late)
		c->late = p->until;
	if (c->loop->late == 0 || p->until < c->loop->late)
		c->loop->late = p->until;
}

/* Notes a call of which the peer is to be told. Without memory it is not: nothing depends on it. */
static void tell_later(struct ht_conn *c, uint32_t call)
{
	if (c->untold_n == c->untold_cap) {
		size_t cap = c->untold_cap == 0 ? 16 : 2 * c->untold_cap;
		uint32_t *all = realloc(c->untold, cap * sizeof(*all));
		if (all == NULL)
			return;
		c->untold = all;
		c->untold_cap = cap;
	}
	c->untold[c->untold_n++] = call;
}

bool ht_calls_tell(struct ht_conn *c)
{
	while (c->untold_n > 0 && tell(c, c->untold[c->untold_n - 1]) == 0)
		c->untold_n--;
	return c->untold_n == 0;
}

bool ht_calls_expire(struct ht_conn *c, int64_t now)
{
	struct ht_call *p;
	if (c->late == 0 || c->late > now || c->end != 0)
		return false;
	if ((p = ht_calls_late(c->table, now, &c->late)) == NULL)
		return false;
	uint32_t call = p->id;
	p->until = 0;
	if (tell(c, call) == HT_FULL)
		tell_later(c, call);
	c->late = now; /* there may be more */
	bool busy = c->busy;
	c->busy = true;
	give_up(c, call, HT_CODE_TIMED_OUT, "the time for the call is over");
	c->busy = busy;
	return true;
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
	bool own = num == NUM_FAILED || num == NUM_GIVEN_UP;
	if (n > HT_BODY || num == 0 || (num > c->iface->count && !own))
		return ht_wrong("a slot header that is none");
	if (own && (flags & (HT_BULK | HT_CAPS)))
		return ht_wrong("flags that do not fit");
	static const struct ht_message any = {"", HT_ONE_WAY, 0, FAILED_BYTES + HT_MAX_ERROR_TEXT, 0};
	const struct ht_message *m = own ? &any : &c->iface->messages[num - 1];
	bool twice = false;
	if (c->resume) { /* numbers of messages are modulo 1024, more than twice the slots of a ring */
		uint64_t d = ((h >> 54) - c->rx.seq) & 1023;
		twice = d > 511;
		if (d != 0 && !twice)
			return ht_wrong("messages are missing after a new bind");
		c->resume = twice;
	}
	if (twice) { /* it was delivered before the connection was bound again */
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
		c->came_files -= came->files;
	}
	if (!(flags & HT_BULK)) /* a body in bulk is the peer's to keep until it was handled */
		wake = ht_consume(&c->rx, &c->tx, h);
	if (own)
		err = ht_receive_own(c, num, body, len);
	else
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
