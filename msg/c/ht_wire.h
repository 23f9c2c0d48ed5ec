/*
 * What generated stubs encode and decode messages with.
 *
 * Numbers are little endian, without padding, whatever the host. A reader does
 * not trust what it reads: each length is loaded once, and compared with the
 * interface's limit and with what is left before anything is allocated. The
 * first mistake is kept and makes all that follows read as zero, so that stubs
 * need look only at the end.
 */
#ifndef HT_WIRE_H
#define HT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An error's number, as in Barrelfish; 0 says that all went well. */
typedef uint32_t ht_errval;

/* A reference to an interface that somebody exports. */
typedef uint64_t ht_iref;

/*
 * A text of len bytes. One that was received has a zero byte behind it, and may
 * have others in it; one that is sent need not.
 */
struct ht_text {
	const char *s;
	uint32_t len;
};

static inline struct ht_text ht_text(const char *s)
{
	struct ht_text t = {s, (uint32_t)strlen(s)};
	return t;
}

/* What the kind of a cap is. */
enum { HT_CAP_NONE = 0, HT_CAP_FILE = 1, HT_CAP_END = 2 };

struct ht_end;

/*
 * The value of a cap field: a file descriptor, a channel end, or nothing.
 * Sending a descriptor leaves it open; an end that was sent can no longer be
 * used. What was received is the receiver's to close.
 */
struct ht_cap {
	int kind;
	int fd;
	struct ht_end *end;
};

static inline void ht_put8(uint8_t *b, uint8_t v) { b[0] = v; }

static inline void ht_put16(uint8_t *b, uint16_t v)
{
	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

static inline void ht_put32(uint8_t *b, uint32_t v)
{
	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)(v >> 16);
	b[3] = (uint8_t)(v >> 24);
}

static inline void ht_put64(uint8_t *b, uint64_t v)
{
	ht_put32(b, (uint32_t)v);
	ht_put32(b + 4, (uint32_t)(v >> 32));
}

static inline uint8_t ht_get8(const uint8_t *b) { return b[0]; }
static inline uint16_t ht_get16(const uint8_t *b) { return (uint16_t)(b[0] | b[1] << 8); }

static inline uint32_t ht_get32(const uint8_t *b)
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/*
 * ht_get32 of what is about to be checked: exactly one load of each byte, since
 * a body in bulk memory can change under the reader.
 */
static inline uint32_t ht_load32(const volatile uint8_t *b)
{
	uint32_t b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
	return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}

static inline uint64_t ht_get64(const uint8_t *b) { return ht_get32(b) | (uint64_t)ht_get32(b + 4) << 32; }

static inline uint8_t *ht_put_text(uint8_t *p, struct ht_text t)
{
	ht_put32(p, t.len);
	if (t.len > 0)
		memcpy(p + 4, t.s, t.len);
	return p + 4 + t.len;
}

/*
 * Memory for what is not in a body as C wants it: texts and arrays of
 * other than bytes. It is used again for each message.
 */
struct ht_block;
struct ht_arena {
	struct ht_block *blocks; /* the newest first; NULL at first */
	size_t used;             /* of the newest */
};

/* Zeroed memory that lasts until the arena is reset, or NULL. */
void *ht_arena_alloc(struct ht_arena *a, size_t n, size_t size);
/* Takes back all that was given out. */
void ht_arena_reset(struct ht_arena *a);
/* Gives the memory back. */
void ht_arena_free(struct ht_arena *a);

/* A body being taken apart. Set the first five members. */
struct ht_reader {
	const uint8_t *p;
	size_t n;
	const struct ht_cap *caps;
	size_t ncaps;
	struct ht_arena *arena;
	bool bad;
};

static inline void ht_reader_fail(struct ht_reader *r)
{
	r->bad = true;
	r->n = 0;
}

/* True if the body was read to its end and had no mistake. */
static inline bool ht_reader_done(const struct ht_reader *r) { return !r->bad && r->n == 0 && r->ncaps == 0; }

/* The next n bytes, in place, or NULL if there are fewer. */
static inline const uint8_t *ht_take(struct ht_reader *r, size_t n)
{
	if (r->n < n) {
		ht_reader_fail(r);
		return NULL;
	}
	const uint8_t *p = r->p;
	r->p += n;
	r->n -= n;
	return p;
}

static inline uint8_t ht_take8(struct ht_reader *r)
{
	const uint8_t *p = ht_take(r, 1);
	return p ? *p : 0;
}

static inline uint16_t ht_take16(struct ht_reader *r)
{
	const uint8_t *p = ht_take(r, 2);
	return p ? ht_get16(p) : 0;
}

static inline uint32_t ht_take32(struct ht_reader *r)
{
	const uint8_t *p = ht_take(r, 4);
	return p ? ht_get32(p) : 0;
}

static inline uint64_t ht_take64(struct ht_reader *r)
{
	const uint8_t *p = ht_take(r, 8);
	return p ? ht_get64(p) : 0;
}

static inline bool ht_take_bool(struct ht_reader *r)
{
	uint8_t v = ht_take8(r);
	if (v > 1)
		ht_reader_fail(r);
	return v == 1;
}

/* A value below n. */
static inline uint32_t ht_take_enum(struct ht_reader *r, uint32_t n)
{
	const uint8_t *p = ht_take(r, 4);
	uint32_t v = p ? ht_load32(p) : 0;
	if (v >= n) {
		ht_reader_fail(r);
		return 0;
	}
	return v;
}

/* A length: at most limit elements of at least each bytes. */
static inline uint32_t ht_take_count(struct ht_reader *r, uint32_t limit, uint32_t each)
{
	const uint8_t *p = ht_take(r, 4);
	uint32_t n = p ? ht_load32(p) : 0;
	if (n > limit || (uint64_t)n * each > r->n) {
		ht_reader_fail(r);
		return 0;
	}
	return n;
}

void *ht_reader_alloc(struct ht_reader *r, size_t n, size_t size);
struct ht_text ht_take_text(struct ht_reader *r, uint32_t limit);
struct ht_cap ht_take_cap(struct ht_reader *r);

#endif
