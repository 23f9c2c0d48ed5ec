/* Sending: the pool for long bodies, slots, and what goes before them. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

bool ht_pool_fits(struct ht_conn *c, size_t n)
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

int ht_begin_own(struct ht_conn *c, size_t n, uint8_t **b)
{
	uint32_t slots = n <= HT_BODY || n >= HT_MIN_BULK_BODY ? 1 : (uint32_t)((n + HT_BODY - 1) / HT_BODY);
	if (c->end != 0)
		return c->end;
	if (c->bye)
		return HT_PEER_CLOSED;
	if (c->stage != HT_OPEN)
		return HT_FULL;
	if (c->stream != NULL)
		return ht_stream_begin(c, n, b);
	if (n > HT_MAX_BODY)
		return HT_TOO_LARGE;
	bool bulk = n >= HT_MIN_BULK_BODY;
	if (c->again != NULL && !ht_session_again(c)) {
		want_room(c);
		return c->end != 0 ? c->end : HT_FULL;
	}
	if (c->tx.room < slots || (bulk && !ht_pool_fits(c, n))) {
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
		if (c->tx.room < slots || (bulk && !ht_pool_fits(c, n))) {
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

int ht_begin(struct ht_conn *c, size_t n, uint8_t **b)
{
	/* What the peer is to be told of earlier calls goes first, or an answer could overtake it. */
	if (c->untold_n > 0 && !ht_calls_tell(c))
		return c->end != 0 ? c->end : HT_FULL;
	return ht_begin_own(c, n, b);
}

/*
 * Whether n descriptors may be sent: all that the peer has not had yet are open at its end, and no more than
 * HT_FILES_OUT may be. Descriptors count as had when the last slot of their message is acknowledged.
 */
static bool out_fits(struct ht_conn *c, size_t n)
{
	if (n == 0 || c->files_out + n <= HT_FILES_OUT)
		return true;
	if (!ht_refill(&c->tx))
		return true; /* the next ht_begin says what is wrong */
	uint32_t acked = c->tx.sent - (c->tx.r.n - c->tx.room);
	while (c->out_n > 0 && (int32_t)(acked - c->out[c->out_first].slot) >= 0) {
		c->files_out -= c->out[c->out_first].off;
		c->out_first = (c->out_first + 1) % HT_FILES_OUT;
		c->out_n--;
	}
	return c->out_n == 0 || c->files_out + n <= HT_FILES_OUT;
}

/* Sends the frame of what comes with the next message, and says how many descriptors that was. */
static int send_caps(struct ht_conn *c, const struct ht_cap *caps, size_t n, size_t *sent)
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
	if (!out_fits(c, nfds))
		return HT_FULL;
	int err = ht_send_frame(c->sock, b, (size_t)(p - b), fds, nfds);
	if (err != 0)
		return err;
	*sent = nfds;
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
	size_t files = 0;
	if (c->stream != NULL)
		return ncaps > 0 ? HT_BAD_CAP : ht_stream_commit(c, num);
	if (ncaps > 0) {
		int err = send_caps(c, caps, ncaps, &files);
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
	if (files > 0) {
		c->out[(c->out_first + c->out_n++) % HT_FILES_OUT] = (struct ht_live){t->sent, (uint32_t)files};
		c->files_out += (uint32_t)files;
	}
	if (wake)
		ht_conn_woken(c, ht_take_flag(&t->r.ctl->parked));
	if (c->hot == 0)
		ht_conn_heat(c); /* an answer may come soon */
	return 0;
}

int ht_reply_error(struct ht_conn *c, uint32_t call, uint32_t code, const char *text)
{
	size_t n = text == NULL ? 0 : strlen(text);
	uint8_t *b;
	if (!c->calls) {
		ht_conn_end(c, HT_OLD_PEER);
		return HT_OLD_PEER;
	}
	if (n > HT_MAX_ERROR_TEXT)
		for (n = HT_MAX_ERROR_TEXT; n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80; n--)
			; /* not within a character */
	int err = ht_begin(c, FAILED_BYTES + n, &b);
	if (err != 0)
		return err;
	ht_put32(b, call);
	ht_put32(b + 4, code);
	ht_put32(b + 8, (uint32_t)n);
	if (n > 0)
		memcpy(b + FAILED_BYTES, text, n);
	return ht_commit(c, NUM_FAILED, NULL, 0);
}

int ht_replied(struct ht_conn *c, uint32_t call, int err)
{
	if ((err != HT_TOO_LARGE && err != HT_BAD_CAP) || !c->calls)
		return err;
	int sent = ht_reply_error(c, call, err == HT_TOO_LARGE ? HT_CODE_TOO_LARGE : HT_CODE_FAILED, ht_strerror(err));
	return sent == HT_FULL ? sent : err;
}
