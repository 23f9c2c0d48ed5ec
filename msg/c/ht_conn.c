/* One connection, and the frames beside its rings. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
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
	static const uint8_t one = 1;
	if (c->ring_bell >= 0) {
		/* A full bell was rung and not heard yet. The call itself says that it must not wait: the peer may change O_NONBLOCK. */
		ssize_t n = send(c->ring_bell, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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
	free(c->untold);
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
	ht_stream_free(c);
	while (c->left != NULL) {
		struct ht_left *l = c->left;
		c->left = l->next;
		ht_unwatch(c->loop, l->sock);
		if (l->sock >= 0)
			close(l->sock);
		ht_left_free(l);
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

/* Frames. */

static int take_caps(struct ht_conn *c, struct ht_frame *f)
{
	const uint8_t *p = f->b, *end = f->b + f->n;
	size_t at = 0;
	if (f->n < 10 || p[1] > HT_MAX_CAPS || c->came_n >= HT_CAPS_QUEUED ||
		c->came_files + f->nfds > HT_FILES_QUEUED)
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
	k->files = at;
	c->came_files += at;
	return 0;
}

/* Forgets the oldest pools of the peer. */
void ht_drop_pools(struct ht_conn *c, size_t n)
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
		ht_drop_pools(c, 1);
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
		case FRAME_PLACE: /* for another process that had this end: woken by a frame, the peer will do */
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
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return;
	c->bell = ends[0];
	if (ht_watch(c->loop, c->bell, c, HT_AT_BELL) != 0 || ht_send_frame(c->sock, &frame, 1, &ends[1], 1) != 0) {
		ht_unwatch(c->loop, c->bell);
		close(c->bell);
		c->bell = -1;
	}
	close(ends[1]);
}

/* Takes what was rung: every ring is an edge for epoll, until the buffer is full. */
void ht_conn_quiet(struct ht_conn *c)
{
	char rung[256];
	ssize_t n = recv(c->bell, rung, sizeof(rung), MSG_DONTWAIT);
	(void)n;
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
