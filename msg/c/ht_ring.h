/*
 * A ring of 64-byte slots, one direction of a connection; private to the
 * library. The layout and the rules are those of Go's msg/internal/ring, where
 * they are explained. In short: a slot's header word is stored last, with
 * release meaning, and has the lap, the message's number, flags, length and
 * number in the session, and how many slots of the other direction are consumed.
 * A header is loaded once and checked; a body is copied before it is looked at.
 */
#ifndef HT_RING_H
#define HT_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { HT_BODY = 56, HT_PAGE = 4096, HT_MORE = 1, HT_CONT = 2, HT_BULK = 4, HT_CAPS = 8 };

struct ht_slot {
	uint8_t body[HT_BODY];
	uint64_t hdr;
};

/* The head of a ring: one word in each of its four lines. */
struct ht_control {
	_Alignas(64) uint32_t ack;     /* the receiver writes how many slots it has consumed */
	_Alignas(64) uint32_t parked;  /* the receiver writes: 1 it sleeps, 2 it naps in futex(2) here */
	_Alignas(64) uint32_t blocked; /* the sender writes: it sleeps for want of room */
	_Alignas(64) uint32_t unused;
};

struct ht_ring {
	struct ht_control *ctl;
	struct ht_slot *slots;
	uint32_t n, at; /* how many slots, and the next */
	uint16_t lap;
};

struct ht_tx {
	struct ht_ring r;
	uint32_t room, sent, acked, told; /* acked: by headers; told: what our headers have acknowledged */
	uint64_t seq;
	bool fence; /* the peer's barrier does not reach us */
};

struct ht_rx {
	struct ht_ring r;
	uint32_t count, quarter, consumed;
	uint64_t seq;
	uint16_t seen;
};

static inline void ht_ring_open(struct ht_ring *r, void *mem, size_t n)
{
	r->ctl = mem;
	r->slots = (struct ht_slot *)(r->ctl + 1);
	r->n = (uint32_t)((n - sizeof(*r->ctl)) / sizeof(*r->slots));
	r->at = 0;
	r->lap = 1;
}

static inline void ht_ring_next(struct ht_ring *r)
{
	if (++r->at == r->n) {
		r->at = 0;
		r->lap++;
	}
}

static inline uint32_t ht_load(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void ht_store(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

/* What the flag said, once for each time that the peer set it. */
static inline uint32_t ht_take_flag(uint32_t *p) { return ht_load(p) == 0 ? 0 : __atomic_exchange_n(p, 0, __ATOMIC_ACQ_REL); }

/* Looks how much room there is; false if the peer acknowledged what was not sent. */
static inline bool ht_refill(struct ht_tx *t)
{
	uint32_t out = t->sent - t->acked, word = t->sent - ht_load(&t->r.ctl->ack);
	if (word < out)
		out = word;
	if (out > t->r.n)
		return false;
	t->room = t->r.n - out;
	return true;
}

/* Hands the next slot over; true if the receiver must be woken. */
static inline bool ht_publish(struct ht_tx *t, const struct ht_rx *rx, uint16_t num, unsigned flags, size_t n)
{
	uint64_t h = (uint64_t)t->r.lap | (uint64_t)num << 16 | (uint64_t)flags << 28 |
		(uint64_t)(uint16_t)rx->consumed << 32 | (uint64_t)n << 48 | t->seq << 54;
	__atomic_store_n(&t->r.slots[t->r.at].hdr, h, __ATOMIC_RELEASE);
	t->sent++;
	t->room--;
	t->told = rx->consumed;
	if (!(flags & HT_MORE))
		t->seq++;
	ht_ring_next(&t->r);
	if (t->fence)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ht_load(&t->r.ctl->parked) != 0;
}

/* The header of the next slot, if that is full. */
static inline bool ht_peek(const struct ht_rx *r, uint64_t *h)
{
	*h = __atomic_load_n(&r->r.slots[r->r.at].hdr, __ATOMIC_ACQUIRE);
	return (uint16_t)*h == r->r.lap;
}

/* Tells the sender what was consumed; true if that must be woken. */
static inline bool ht_flush(struct ht_rx *r, const struct ht_tx *t, bool now)
{
	r->quarter = r->count + r->r.n / 4;
	r->consumed = r->count;
	if (!now && ht_load(&r->r.ctl->blocked) == 0 && r->count - t->told < r->r.n / 2)
		return false;
	if (ht_load(&r->r.ctl->ack) != r->count)
		ht_store(&r->r.ctl->ack, r->count);
	if (t->fence) /* lest this and the sender's look for room miss each other */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ht_take_flag(&r->r.ctl->blocked) != 0;
}

/* Moves on from the slot whose header was h; true if the sender must be woken. */
static inline bool ht_consume(struct ht_rx *r, struct ht_tx *t, uint64_t h)
{
	uint16_t ack = (uint16_t)(h >> 32);
	r->count++;
	ht_ring_next(&r->r);
	t->acked += (uint16_t)(ack - r->seen);
	r->seen = ack;
	if (h >> 28 & HT_MORE)
		return false;
	r->seq++;
	return (int32_t)(r->count - r->quarter) >= 0 && ht_flush(r, t, false);
}

#endif
