/*
 * Connections to services of the Hardtack kernel: a device in /dev/kernel carries frames, each
 * with its length before it, and in frames the messages (Go's msg/kernel and msg/carrier.go).
 *
 * There are no rings. A message is put into a queue, and from there into the device as that has
 * room; what comes is put together from frames and delivered at once. The kernel keeps what was not
 * acknowledged in a ring and a pool of its own, and takes nothing more when these are full,
 * acknowledgements neither. So no more than half of them is ever under way.
 */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FRAME_SLOTS = 8, FRAME_ACK = 9,
	HEAD = 4, FRAME = 8 << 10, /* a length, and the longest frame */
	RECORD = 8,                /* a body's length, its message's kind and number */
	OUT_SLOTS = 30, OUT_BYTES = 32 << 10, MAX_BODY = 16 << 10,
	GREET_MS = 5000
};

/* A message that was not acknowledged: the room that it takes at the kernel. */
struct taken {
	uint8_t slots;
	uint16_t bytes;
};

struct ht_stream {
	/* sending */
	uint8_t *out; /* of which out_at bytes are written */
	size_t out_at, out_n, out_cap;
	uint8_t body[MAX_BODY];
	struct taken taken[OUT_SLOTS]; /* a ring: by the number of the message */
	uint64_t acked;                /* messages that the kernel's service has had */
	uint32_t slots, bytes;         /* of those that it has not */
	bool waits;                    /* the loop waits for room in the device, too */
	/* receiving */
	uint64_t told; /* messages that the kernel knows we had */
	size_t in_n, part_n;
	uint8_t in[HEAD + FRAME];                 /* a frame */
	uint8_t part[RECORD + MAX_BODY + FRAME];  /* a record, and what came behind it */
};

void ht_stream_free(struct ht_conn *c)
{
	if (c->stream != NULL)
		free(c->stream->out);
	free(c->stream);
	c->stream = NULL;
}

/* Writes what the device has room for, and has the loop wait for more room if need be. */
static int flush(struct ht_conn *c)
{
	struct ht_stream *s = c->stream;
	while (s->out_at < s->out_n) {
		ssize_t n = write(c->sock, s->out + s->out_at, s->out_n - s->out_at);
		if (n >= 0) {
			s->out_at += (size_t)n;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			return errno == EPIPE ? HT_PEER_GONE : ht_fail_system("a service's device");
		}
	}
	bool waits = s->out_at < s->out_n;
	if (!waits)
		s->out_at = s->out_n = 0;
	if (waits == s->waits || c->stage != HT_OPEN)
		return 0;
	struct epoll_event e = {.events = EPOLLIN | (waits ? EPOLLOUT : 0u)};
	e.data.u64 = (uint64_t)(uintptr_t)c | HT_AT_SOCK;
	if (epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->sock, &e) != 0)
		return ht_fail_system("epoll_ctl");
	s->waits = waits;
	return 0;
}

/* Makes room for n more bytes in the queue. */
static int reserve(struct ht_stream *s, size_t n)
{
	if (s->out_n + n <= s->out_cap)
		return 0;
	size_t cap = 2 * (s->out_n + n);
	uint8_t *out = realloc(s->out, cap);
	if (out == NULL)
		return HT_NO_MEMORY;
	s->out = out;
	s->out_cap = cap;
	return 0;
}

static void append(struct ht_stream *s, const uint8_t *b, size_t n)
{
	memcpy(s->out + s->out_n, b, n);
	s->out_n += n;
}

int ht_stream_frame(struct ht_conn *c, const uint8_t *b, size_t n)
{
	uint8_t head[HEAD];
	int err = reserve(c->stream, HEAD + n);
	if (err != 0)
		return err;
	ht_put32(head, (uint32_t)n);
	append(c->stream, head, HEAD);
	append(c->stream, b, n);
	return flush(c);
}

/* The slots of the kernel's ring that a body of n bytes takes. */
static uint32_t slots_of(size_t n) { return n <= HT_BODY || n >= HT_MIN_BULK_BODY ? 1 : (uint32_t)((n + HT_BODY - 1) / HT_BODY); }

static uint32_t bytes_of(size_t n) { return n >= HT_MIN_BULK_BODY ? (uint32_t)n : 0; }

int ht_stream_begin(struct ht_conn *c, size_t n, uint8_t **b)
{
	struct ht_stream *s = c->stream;
	if (n > MAX_BODY)
		return HT_TOO_LARGE;
	bool fits = s->slots + slots_of(n) <= OUT_SLOTS && (s->bytes == 0 || s->bytes + bytes_of(n) <= OUT_BYTES);
	if (!fits) {
		c->wants_room = true; /* an acknowledgement will tell */
		return HT_FULL;
	}
	c->begun = n;
	*b = s->body;
	return 0;
}

/* Puts the record of the message that was begun into frames. */
int ht_stream_commit(struct ht_conn *c, uint16_t num)
{
	struct ht_stream *s = c->stream;
	uint8_t record[RECORD];
	size_t n = c->begun, left = RECORD + n;
	int err = reserve(s, left + (left / (FRAME - 1) + 1) * (HEAD + 1));
	if (err != 0)
		return err;
	ht_put32(record, (uint32_t)n);
	ht_put16(record + 4, num);
	ht_put16(record + 6, (uint16_t)(c->tx.seq & 1023));
	const uint8_t *rest = s->body;
	for (bool first = true; left > 0; first = false) {
		uint8_t head[HEAD + 1];
		size_t k = left < FRAME - 1 ? left : FRAME - 1;
		left -= k;
		ht_put32(head, (uint32_t)k + 1);
		head[HEAD] = FRAME_SLOTS;
		append(s, head, sizeof(head));
		if (first) {
			append(s, record, RECORD);
			k -= RECORD;
		}
		append(s, rest, k);
		rest += k;
	}
	s->taken[c->tx.seq % OUT_SLOTS] = (struct taken){(uint8_t)slots_of(n), (uint16_t)bytes_of(n)};
	s->slots += slots_of(n);
	s->bytes += bytes_of(n);
	c->tx.seq++;
	err = flush(c);
	if (err != 0 && err != HT_PEER_GONE) /* else what it sent before comes first */
		ht_conn_end(c, err);
	return 0;
}

/* The kernel's service has had all messages before number n. */
static int acknowledged(struct ht_conn *c, uint64_t n)
{
	struct ht_stream *s = c->stream;
	if (n > c->tx.seq)
		return ht_wrong("acknowledged what was not sent");
	for (; s->acked < n; s->acked++) {
		s->slots -= s->taken[s->acked % OUT_SLOTS].slots;
		s->bytes -= s->taken[s->acked % OUT_SLOTS].bytes;
	}
	return 0;
}

/* Delivers the first record of those that have come, if it is complete. */
static int record(struct ht_conn *c, bool *whole)
{
	struct ht_stream *s = c->stream;
	*whole = false;
	if (s->part_n < RECORD)
		return 0;
	uint32_t n = ht_get32(s->part);
	uint16_t num = ht_get16(s->part + 4), seq = ht_get16(s->part + 6);
	bool own = num == NUM_FAILED || num == NUM_GIVEN_UP;
	if (num == 0 || (num > c->iface->count && !own) || n > MAX_BODY)
		return ht_wrong("a record that is none");
	if (!own) {
		const struct ht_message *m = &c->iface->messages[num - 1];
		if (n < m->min || n > m->max || m->role == HT_CALL || m->caps > 0)
			return ht_wrong("a message that a service does not send, or of another length");
	}
	if (((seq ^ c->rx.seq) & 1023) != 0)
		return ht_wrong("a message is missing");
	if (s->part_n < RECORD + n)
		return 0;
	*whole = true;
	c->rx.seq++;
	c->busy = true;
	int err = own ? ht_receive_own(c, num, s->part + RECORD, n) : c->events->deliver(c->self, num, s->part + RECORD, n, NULL, 0);
	c->busy = false;
	s->part_n -= RECORD + n;
	memmove(s->part, s->part + RECORD + n, s->part_n);
	return err;
}

/* Handles one frame; *n counts messages. */
static int frame(struct ht_conn *c, const uint8_t *b, size_t len, int *n)
{
	struct ht_stream *s = c->stream;
	int err = 0;
	if (c->bye)
		return ht_wrong("a frame after the last");
	switch (b[0]) {
	case FRAME_SLOTS:
		if (len - 1 > sizeof(s->part) - s->part_n)
			return ht_wrong("a record that is too long");
		memcpy(s->part + s->part_n, b + 1, len - 1);
		s->part_n += len - 1;
		for (bool whole = true; whole && err == 0 && c->end == 0; *n += whole)
			err = record(c, &whole);
		return err;
	case FRAME_ACK:
		return len == 9 ? acknowledged(c, ht_get64(b + 1)) : ht_wrong("an acknowledgement of another length");
	case FRAME_BYE:
		c->bye = true;
		return 0;
	}
	return ht_wrong("a frame of no kind");
}

/* Reads until there is a whole frame: 1, or 0 if there is none now, or an error. */
static int next_frame(struct ht_conn *c, struct ht_frame *f)
{
	struct ht_stream *s = c->stream;
	for (;;) {
		size_t want = HEAD;
		if (s->in_n >= HEAD) {
			uint32_t n = ht_get32(s->in);
			if (n == 0 || n > FRAME)
				return ht_wrong("a frame of an impossible length");
			want += n;
		}
		if (want > HEAD && s->in_n == want) {
			*f = (struct ht_frame){.b = s->in + HEAD, .n = want - HEAD};
			s->in_n = 0;
			return 1;
		}
		ssize_t got = read(c->sock, s->in + s->in_n, want - s->in_n);
		if (got == 0)
			return c->bye ? HT_PEER_CLOSED : HT_PEER_GONE;
		if (got < 0 && errno == EAGAIN)
			return 0;
		if (got < 0 && errno != EINTR)
			return ht_fail_system("a service's device");
		if (got > 0)
			s->in_n += (size_t)got;
	}
}

/* Says how many messages were had, unless earlier bytes still wait: then it is said after them. */
static int acknowledge(struct ht_conn *c)
{
	uint8_t b[9] = {FRAME_ACK};
	if (c->stream->told == c->rx.seq || c->stream->out_n > 0)
		return 0;
	c->stream->told = c->rx.seq;
	ht_put64(b + 1, c->rx.seq);
	return ht_stream_frame(c, b, sizeof(b));
}

int ht_stream_events(struct ht_conn *c)
{
	struct ht_frame f;
	uint64_t acked = c->stream->acked;
	int n = 0, got = 0, err = 0, written = flush(c);
	while (err == 0 && c->end == 0 && (got = next_frame(c, &f)) > 0)
		err = frame(c, f.b, f.n, &n);
	if (err == 0)
		err = got < 0 ? got : written;
	if (err == 0 && c->end == 0 && c->wants_room && c->stream->acked != acked) {
		c->wants_room = false;
		if (ht_calls_tell(c) && c->end == 0) {
			c->busy = true;
			c->events->room(c->self);
			c->busy = false;
			n++;
		}
	}
	if (err == 0 && c->end == 0)
		err = acknowledge(c);
	if (err != 0)
		ht_conn_end(c, err);
	return n;
}

/* Waits for the answer to the greeting. */
static int welcome(struct ht_conn *c)
{
	struct ht_greeting g;
	struct ht_frame f;
	int64_t until = ht_now_ns() + (int64_t)GREET_MS * 1000000;
	for (;;) {
		int got = next_frame(c, &f);
		if (got > 0)
			return ht_welcome(c, &f, &g);
		int64_t left = (until - ht_now_ns()) / 1000000;
		if (got < 0 || left <= 0)
			return got < 0 ? got : HT_PEER_GONE;
		struct pollfd p = {c->sock, POLLIN, 0};
		poll(&p, 1, (int)left);
	}
}

/* Opens the device, and greets. */
static int dial(struct ht_conn *c, const char *service)
{
	char path[80];
	struct stat st;
	int k = snprintf(path, sizeof(path), "/dev/kernel/%s", service);
	if (*service == 0 || strchr(service, '/') != NULL || k < 0 || k >= (int)sizeof(path))
		return HT_BAD_NAME;
	while ((c->sock = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == EINTR)
		continue;
	if (c->sock < 0)
		return errno == ENOENT ? HT_NO_NAME : ht_fail_system(path);
	if (fstat(c->sock, &st) != 0 || !S_ISCHR(st.st_mode))
		return HT_NO_NAME;
	int err = ht_send_greeting(c, FRAME_HELLO, 0, NULL, 0);
	return err != 0 ? err : welcome(c);
}

int ht_stream_connect(struct ht_loop *l, const char *service, const struct ht_interface *iface, const struct ht_events *events,
	void *self, struct ht_conn **conn)
{
	struct ht_conn *c = ht_conn_new(l, iface, events, self);
	if (c == NULL || (c->stream = calloc(1, sizeof(*c->stream))) == NULL) {
		free(c);
		return HT_NO_MEMORY;
	}
	c->dialled = true;
	int err = dial(c, service);
	if (err == 0)
		err = ht_conn_enter(c);
	if (err != 0) {
		ht_conn_free(c);
		return err;
	}
	c->stage = HT_OPEN;
	*conn = c;
	return 0;
}
