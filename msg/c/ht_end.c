/* Ends of connections on their way, as caps. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int ht_end_parse(const uint8_t *state, size_t n, const int *fds, size_t nfds, struct ht_end **end)
{
	struct ht_end *e;
	if (nfds > sizeof(e->fds) / sizeof(*e->fds))
		return ht_wrong("an end with too many files");
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return HT_NO_MEMORY;
	e->state = malloc(n > 0 ? n : 1);
	if (e->state == NULL) {
		free(e);
		return HT_NO_MEMORY;
	}
	memcpy(e->state, state, n);
	e->nstate = n;
	memcpy(e->fds, fds, nfds * sizeof(int));
	e->nfds = nfds;
	*end = e;
	return 0;
}

void ht_end_close(struct ht_end *e)
{
	for (size_t i = 0; i < e->nfds; i++)
		close(e->fds[i]);
	free(e->state);
	free(e);
}

/*
 * The state of an end, as Go's msg.End has it: length and name of the interface,
 * length and name of the transport, fingerprint, token, flags, the number of the
 * last bulk pool, where both rings stand, and the link's pages, side and bells.
 */
enum { RING_STATE = 5 * 4 + 3 * 2 + 2 * 8, FIXED = 16 + 16 + 1 + 4 + RING_STATE, LINK_STATE = 3, DIALLED = 1, FENCE = 2, CALLS = 16 };

static bool is_socket(int fd)
{
	int domain, type, accepting;
	socklen_t n = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET &&
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &n) == 0 && !accepting;
}

static bool restore(struct ht_ring *r, uint32_t next, uint16_t lap)
{
	if (next >= r->n)
		return false;
	r->at = next;
	r->lap = lap;
	return true;
}

int ht_adopt(struct ht_loop *loop, struct ht_end *e, const struct ht_interface *iface, const struct ht_events *events,
	void *self, struct ht_conn **conn)
{
	const uint8_t *p = e->state, *stop = p + e->nstate;
	struct ht_greeting g;
	memset(&g, 0, sizeof(g));
	if (e->nstate < 2 || p[0] == 0 || 1 + (size_t)p[0] >= e->nstate)
		return HT_BAD_CAP;
	memcpy(g.name, p + 1, p[0]);
	p += 1 + p[0];
	if ((size_t)(stop - p) != 1 + (size_t)p[0] + FIXED + LINK_STATE || p[0] != 4 || memcmp(p + 1, "unix", 4) != 0)
		return HT_BAD_CAP;
	p += 5;
	memcpy(g.fingerprint, p, 16);
	if (memcmp(p, iface->fingerprint, 16) != 0)
		return ht_fail_mismatch(iface, &g);
	const uint8_t *s = p + 16 + 16 + 1 + 4, *link = s + RING_STATE;
	size_t want = 2 + (size_t)(link[2] & 1) + (size_t)(link[2] >> 1 & 1);
	if (link[0] < 1 || link[0] > 8 || e->nfds != want || !is_socket(e->fds[0]))
		return HT_BAD_CAP;
	struct ht_conn *c = ht_conn_new(loop, iface, events, self);
	if (c == NULL)
		return HT_NO_MEMORY;
	memcpy(c->token, p + 16, 16);
	c->dialled = p[32] & DIALLED;
	c->fence_them = (p[32] & FENCE) != 0;
	c->calls = (p[32] & CALLS) != 0;
	c->pool_id = ht_get32(p + 33);
	c->pages = link[0];
	c->second = link[1] != 0;
	c->mem_n = 2 * (size_t)c->pages * HT_PAGE;
	void *mem;
	int err = ht_map_memory(e->fds[1], c->mem_n, true, &mem);
	if (err != 0) {
		ht_conn_free(c);
		return HT_BAD_CAP;
	}
	c->mem = mem;
	ht_conn_rings(c);
	int bell = link[2] & 1 ? e->fds[2] : -1, theirs = link[2] & 2 ? e->fds[want - 1] : -1;
	if (!restore(&c->tx.r, ht_get32(s + 8), ht_get16(s + 22)) || !restore(&c->rx.r, ht_get32(s + 12), ht_get16(s + 24)) ||
		(bell >= 0 && !ht_good_bell(bell)) || (theirs >= 0 && !ht_good_bell(theirs))) {
		ht_conn_free(c);
		return HT_BAD_CAP;
	}
	c->tx.sent = ht_get32(s);
	c->tx.acked = ht_get32(s + 4);
	c->tx.room = 0;
	c->rx.count = c->rx.consumed = c->tx.told = ht_get32(s + 16);
	c->rx.quarter = c->rx.count + c->rx.r.n / 4;
	c->rx.seen = ht_get16(s + 20);
	c->tx.seq = ht_get64(s + 26);
	c->rx.seq = ht_get64(s + 34);
	c->sock = e->fds[0];
	ht_conn_keep(c, e->fds[1]);
	c->bell = bell;
	c->ring_bell = theirs;
	c->stage = HT_OPEN;
	e->nfds = 0;
	if ((err = ht_conn_enter(c)) != 0) {
		ht_conn_free(c);
		return err;
	}
	ht_end_close(e);
	*conn = c;
	return 0;
}

int ht_detach(struct ht_conn *c, struct ht_end **end)
{
	size_t name = strlen(c->iface->name), n = 1 + name + 1 + 4 + FIXED + LINK_STATE;
	if (c->end != 0 || c->stage != HT_OPEN || c->stream != NULL)
		return c->end != 0 ? c->end : HT_BAD_CAP;
	if (c->memfd < 0) {
		errno = EMFILE; /* the loop has too many connections to keep what this takes */
		return ht_fail_system("moving an end");
	}
	if (!ht_refill(&c->tx)) {
		ht_conn_end(c, ht_wrong("acknowledged what was not sent"));
		return c->end;
	}
	/* What is half received or is in bulk memory cannot go along. */
	uint32_t out = c->tx.r.n - c->tx.room;
	bool bulk = c->live_n > 0 && (int32_t)(c->tx.sent - out - c->live[(c->live_first + c->live_n - 1) % c->live_cap].slot) <= 0;
	if (c->busy || c->bye || bulk || c->npeers > 0 || c->came != NULL || c->frag_n > 0 || c->again != NULL || c->resume ||
		c->moving || c->peer_left || c->missing || c->left != NULL)
		return HT_FULL;
	struct ht_end *e = calloc(1, sizeof(*e));
	uint8_t *p = malloc(n);
	if (e == NULL || p == NULL) {
		free(e);
		free(p);
		return HT_NO_MEMORY;
	}
	e->state = p;
	e->nstate = n;
	if (ht_flush(&c->rx, &c->tx, true))
		ht_conn_wake(c);
	*p++ = (uint8_t)name;
	memcpy(p, c->iface->name, name);
	p += name;
	memcpy(p, "\4unix", 5);
	p += 5;
	memcpy(p, c->iface->fingerprint, 16);
	memcpy(p + 16, c->token, 16);
	p[32] = (uint8_t)((c->dialled ? DIALLED : 0) | (c->fence_them ? FENCE : 0) | (c->calls ? CALLS : 0));
	ht_put32(p + 33, c->pool_id);
	p += 37;
	ht_put32(p, c->tx.sent);
	ht_put32(p + 4, c->tx.acked);
	ht_put32(p + 8, c->tx.r.at);
	ht_put32(p + 12, c->rx.r.at);
	ht_put32(p + 16, c->rx.count);
	ht_put16(p + 20, c->rx.seen);
	ht_put16(p + 22, c->tx.r.lap);
	ht_put16(p + 24, c->rx.r.lap);
	ht_put64(p + 26, c->tx.seq);
	ht_put64(p + 34, c->rx.seq);
	p += RING_STATE;
	p[0] = (uint8_t)c->pages;
	p[1] = c->second;
	p[2] = (uint8_t)((c->bell >= 0 ? 1 : 0) | (c->ring_bell >= 0 ? 2 : 0));
	int fds[] = {c->sock, c->memfd, c->bell, c->ring_bell};
	ht_unwatch(c->loop, c->sock);
	ht_unwatch(c->loop, c->bell);
	c->loop->kept--;
	for (int i = 0; i < 4; i++) {
		if (fds[i] >= 0)
			e->fds[e->nfds++] = fds[i];
	}
	c->sock = c->memfd = c->bell = c->ring_bell = -1;
	ht_conn_end(c, HT_CLOSED_HERE);
	*end = e;
	return 0;
}
