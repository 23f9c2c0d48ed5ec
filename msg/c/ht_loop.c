/* The loop: who waits for what, connecting and being connected to. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { GREET_MS = 5000, CONNECT_MS = 10000, SPIN_MAX = 50000, SPIN_MIN = 1000, BATCH = 32 };

struct ht_loop *ht_loop_new(void)
{
	struct ht_loop *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	l->frame = malloc(HT_MAX_FRAME);
	if (l->frame == NULL) {
		free(l);
		return NULL;
	}
	l->barriers = ht_register_barriers();
	l->spin = SPIN_MAX;
	return l;
}

void ht_conn_enter(struct ht_conn *c)
{
	c->next = c->loop->conns;
	c->loop->conns = c;
	c->loop->nconns++;
}

size_t ht_loop_conns(const struct ht_loop *l) { return l->nconns; }

/* Takes out the connections that have ended. */
static void reap(struct ht_loop *l)
{
	for (struct ht_conn **at = &l->conns; *at != NULL;) {
		struct ht_conn *c = *at;
		if (c->end == 0 || c->busy) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		l->nconns--;
		if (c->self != NULL)
			c->events->closed(c->self, c->end);
		ht_conn_free(c);
		at = &l->conns; /* closed may have closed others */
	}
}

void ht_close(struct ht_conn *c)
{
	static const uint8_t bye = FRAME_BYE;
	if (c->end == 0) {
		if (c->stage == HT_OPEN)
			ht_send_frame(c->sock, &bye, 1, NULL, 0);
		c->end = HT_CLOSED_HERE;
	}
}

void ht_loop_free(struct ht_loop *l)
{
	while (l->conns != NULL) {
		for (struct ht_conn *c = l->conns; c != NULL; c = c->next)
			ht_close(c);
		reap(l);
	}
	while (l->listeners != NULL) {
		struct ht_listener *n = l->listeners;
		l->listeners = n->next;
		close(n->sock);
		unlink(n->path);
		if (n->done != NULL)
			n->done(n->arg);
		free(n);
	}
	free(l->fds);
	free(l->frame);
	free(l);
}

static int bind_name(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(a.sun_path))
		return HT_BAD_NAME;
	strcpy(a.sun_path, path);
	for (int again = 0;; again++) {
		int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (s < 0)
			return ht_fail_system("socket");
		if (bind(s, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(s, 1024) == 0)
			return s;
		int e = errno;
		close(s);
		errno = e;
		if (e != EADDRINUSE || again)
			return e == EADDRINUSE ? HT_TAKEN : ht_fail_system(path);
		/* A socket at which nobody listens any more is replaced. */
		int d = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (d < 0)
			return ht_fail_system("socket");
		int dead = connect(d, (struct sockaddr *)&a, sizeof(a)) != 0 && errno == ECONNREFUSED;
		close(d);
		if (!dead)
			return HT_TAKEN;
		unlink(path);
	}
}

int ht_export(struct ht_loop *l, const char *name, const struct ht_interface *iface, const struct ht_events *events,
	void *(*accept_one)(void *arg, struct ht_conn *conn), void *arg, void (*done)(void *arg))
{
	struct ht_listener *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return HT_NO_MEMORY;
	int err = ht_socket_path(name, n->path, sizeof(n->path), true);
	if (err == 0) {
		n->sock = bind_name(n->path);
		err = n->sock < 0 ? n->sock : 0;
	}
	if (err != 0) {
		free(n);
		return err;
	}
	n->loop = l;
	n->iface = iface;
	n->events = events;
	n->accept = accept_one;
	n->arg = arg;
	n->done = done;
	n->next = l->listeners;
	l->listeners = n;
	return 0;
}

/* Waits for a frame on a socket that is being set up. */
static int wait_frame(struct ht_conn *c, int64_t until, struct ht_frame *f)
{
	for (;;) {
		int got = ht_recv_frame(c->loop, c->sock, f);
		if (got != 0)
			return got;
		int64_t left = (until - ht_now_ns()) / 1000000;
		struct pollfd p = {c->sock, POLLIN, 0};
		if (left <= 0)
			return HT_PEER_GONE;
		poll(&p, 1, (int)left);
	}
}

/* Exchanges memory and greetings with the service at c->sock. */
static int greet(struct ht_conn *c)
{
	uint8_t memory[2] = {FRAME_MEMORY, 1};
	struct ht_greeting g;
	struct ht_frame f;
	int64_t until = ht_now_ns() + (int64_t)GREET_MS * 1000000;
	c->pages = 1;
	c->mem_n = 2 * HT_PAGE;
	void *mem;
	int err = ht_new_memory(c->mem_n, &c->memfd, &mem);
	if (err != 0) {
		c->memfd = -1;
		return err;
	}
	c->mem = mem;
	c->dialled = true;
	if ((err = ht_send_frame(c->sock, memory, 2, &c->memfd, 1)) != 0 || (err = ht_send_greeting(c, FRAME_HELLO, 0, NULL)) != 0)
		return err;
	do {
		if ((err = wait_frame(c, until, &f)) < 0)
			return err;
		/* The peer may give its bell first. */
		if (f.b[0] >= FRAME_MEMORY) {
			if ((err = ht_conn_frame(c, &f)) != 0)
				return err;
			continue;
		}
		break;
	} while (true);
	ht_frame_close(&f);
	if (!ht_parse_greeting(&f, &g))
		return HT_BAD_PEER;
	if ((g.kind == FRAME_REFUSE && g.reason == 1) ||
		(g.kind == FRAME_WELCOME && memcmp(g.fingerprint, c->iface->fingerprint, 16) != 0))
		return ht_fail_mismatch(c->iface, &g);
	if (g.kind == FRAME_REFUSE)
		return HT_REFUSED;
	if (g.kind != FRAME_WELCOME)
		return HT_BAD_PEER;
	memcpy(c->token, g.token, 16);
	c->fence_them = g.flags & 1;
	ht_conn_rings(c);
	c->stage = HT_OPEN;
	return 0;
}

int ht_connect(struct ht_loop *l, const char *name, const struct ht_interface *iface, const struct ht_events *events,
	void *self, struct ht_conn **conn)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int err = ht_socket_path(name, a.sun_path, sizeof(a.sun_path), false);
	if (err != 0)
		return err;
	int64_t until = ht_now_ns() + (int64_t)CONNECT_MS * 1000000;
	for (;;) {
		struct ht_conn *c = ht_conn_new(l, iface, events, self);
		if (c == NULL)
			return HT_NO_MEMORY;
		c->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (c->sock < 0) {
			err = ht_fail_system("socket");
			ht_conn_free(c);
			return err;
		}
		if (connect(c->sock, (struct sockaddr *)&a, sizeof(a)) == 0) {
			err = greet(c);
			if (err == 0) {
				ht_conn_enter(c);
				*conn = c;
				return 0;
			}
		} else {
			err = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN ? HT_NO_NAME : ht_fail_system(name);
		}
		ht_conn_free(c);
		if (err != HT_NO_NAME && err != HT_PEER_GONE) /* else it is starting or ending */
			return err;
		if (ht_now_ns() > until)
			return HT_NO_NAME;
		struct timespec t = {0, 10 * 1000000};
		nanosleep(&t, NULL);
	}
}

/* Takes in whoever has dialled. */
static int take_in(struct ht_listener *n)
{
	int got = 0;
	for (int s; (s = accept4(n->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0; got++) {
		struct ht_conn *c = ht_conn_new(n->loop, n->iface, n->events, NULL);
		if (c == NULL) {
			close(s);
			return got;
		}
		c->sock = s;
		c->from = n;
		c->second = true;
		c->deadline = ht_now_ns() / 1000000 + GREET_MS;
		ht_conn_enter(c);
	}
	return got;
}

/* Goes on with a connection that is being set up. */
static int set_up(struct ht_conn *c)
{
	struct ht_greeting g;
	struct ht_frame f;
	void *mem;
	for (int got; (got = ht_recv_frame(c->loop, c->sock, &f)) != 0;) {
		if (got < 0)
			return got;
		if (c->stage == HT_WAIT_MEMORY) {
			int err = HT_BAD_PEER;
			if (f.n == 2 && f.b[0] == FRAME_MEMORY && f.b[1] >= 1 && f.b[1] <= 8 && f.nfds == 1) {
				c->pages = f.b[1];
				c->mem_n = 2 * (size_t)c->pages * HT_PAGE;
				err = ht_map_memory(f.fds[0], c->mem_n, true, &mem);
			}
			if (err != 0) {
				ht_frame_close(&f);
				return err;
			}
			c->mem = mem;
			c->memfd = f.fds[0];
			c->stage = HT_WAIT_HELLO;
			continue;
		}
		if (f.b[0] >= FRAME_MEMORY) {
			int err = ht_conn_frame(c, &f);
			if (err != 0)
				return err;
			continue;
		}
		ht_frame_close(&f);
		static const uint8_t none[16];
		if (!ht_parse_greeting(&f, &g) || g.kind != FRAME_HELLO)
			return HT_BAD_PEER;
		if (memcmp(g.fingerprint, c->iface->fingerprint, 16) != 0) {
			ht_send_greeting(c, FRAME_REFUSE, 1, NULL);
			return HT_MISMATCH;
		}
		if (memcmp(g.token, none, 16) != 0) { /* an old session, which a C program does not keep */
			ht_send_greeting(c, FRAME_REFUSE, 2, NULL);
			return HT_REFUSED;
		}
		if (getrandom(c->token, 16, 0) != 16)
			return ht_fail_system("getrandom");
		c->fence_them = g.flags & 1;
		ht_conn_rings(c);
		c->stage = HT_OPEN;
		struct ht_listener *n = c->from;
		c->from = NULL;
		int err = ht_send_greeting(c, FRAME_WELCOME, 0, c->token);
		if (err != 0)
			return err;
		c->busy = true;
		c->self = n->accept(n->arg, c);
		c->busy = false;
		return c->self == NULL ? HT_CLOSED_HERE : 0;
	}
	return 0;
}

/* Handles what is in the rings. */
static int rings(struct ht_loop *l)
{
	int n = 0;
	for (struct ht_conn *c = l->conns; c != NULL; c = c->next) {
		if (c->stage != HT_OPEN || c->end != 0)
			continue;
		n += ht_conn_receive(c, BATCH);
		if (c->wants_room && c->end == 0) {
			uint32_t before = c->tx.room;
			if (!ht_refill(&c->tx)) {
				ht_conn_end(c, HT_BAD_PEER);
			} else if (c->tx.room > before || c->tx.room == c->tx.r.n) {
				c->wants_room = false;
				c->busy = true;
				c->events->room(c->self);
				c->busy = false;
				n++;
			}
		}
		if (c->end != 0)
			n++;
	}
	return n;
}

/* Handles what poll reported, or looks at all sockets if all is set. */
static int sockets(struct ht_loop *l)
{
	int n = 0;
	for (struct ht_listener *k = l->listeners; k != NULL; k = k->next)
		n += take_in(k);
	int64_t now = ht_now_ns() / 1000000;
	for (struct ht_conn *c = l->conns; c != NULL; c = c->next) {
		if (c->end != 0)
			continue;
		int err;
		if (c->stage == HT_OPEN) {
			err = ht_conn_socket(c);
		} else {
			err = set_up(c);
			if (err == 0 && c->stage != HT_OPEN && now > c->deadline)
				err = HT_PEER_GONE;
		}
		if (c->stage == HT_OPEN && c->end == 0 && (err == HT_PEER_CLOSED || err == HT_PEER_GONE || c->bye)) {
			/* What it sent before comes first. */
			while (ht_conn_receive(c, BATCH) > 0)
				n++;
			if (err == 0)
				err = HT_PEER_CLOSED;
		}
		if (err != 0) {
			ht_conn_end(c, err);
			n++;
		}
	}
	return n;
}

static void set_parked(struct ht_loop *l, uint32_t v)
{
	for (struct ht_conn *c = l->conns; c != NULL; c = c->next) {
		if (c->stage != HT_OPEN)
			continue;
		if (v && ht_flush(&c->rx, &c->tx, true))
			ht_conn_wake(c);
		ht_store(&c->rx.r.ctl->parked, v);
		ht_store(&c->tx.r.ctl->blocked, v && (c->wants_room || c->stalled));
	}
}

/* Sleeps until something happens, at most so many ms. */
static int park(struct ht_loop *l, int64_t ms)
{
	size_t n = 0, want = 2 * l->nconns + 16;
	for (struct ht_listener *k = l->listeners; k != NULL; k = k->next)
		want++;
	if (want > l->nfds) {
		struct pollfd *fds = realloc(l->fds, want * sizeof(*fds));
		if (fds == NULL)
			return HT_NO_MEMORY;
		l->fds = fds;
		l->nfds = want;
	}
	for (struct ht_listener *k = l->listeners; k != NULL; k = k->next)
		l->fds[n++] = (struct pollfd){k->sock, POLLIN, 0};
	for (struct ht_conn *c = l->conns; c != NULL; c = c->next) {
		l->fds[n++] = (struct pollfd){c->sock, POLLIN, 0};
		if (c->stage != HT_OPEN) {
			if (ms < 0 || ms > GREET_MS)
				ms = GREET_MS; /* to give up on it */
			continue;
		}
		ht_conn_bell(c);
		if (c->bell >= 0)
			l->fds[n++] = (struct pollfd){c->bell, POLLIN, 0};
	}
	int got = poll(l->fds, n, ms < 0 ? -1 : ms > 1000000000 ? 1000000000 : (int)ms);
	if (got < 0 && errno != EINTR)
		return ht_fail_system("poll");
	for (struct ht_conn *c = l->conns; c != NULL && got > 0; c = c->next) {
		uint64_t count;
		if (c->bell >= 0) {
			ssize_t k = read(c->bell, &count, sizeof(count));
			(void)k;
		}
	}
	return 0;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

int ht_dispatch(struct ht_loop *l, int timeout)
{
	int64_t start = ht_now_ns(), until = timeout < 0 ? INT64_MAX : start + (int64_t)timeout * 1000000;
	int n = 0;
	reap(l);
	if (++l->round % 64 == 0)
		n = sockets(l);
	n += rings(l);
	while (n == 0) {
		int64_t now = ht_now_ns(), spin_end = now + l->spin;
		for (unsigned i = 1; n == 0; i++) {
			n = rings(l);
			relax();
			if (i % 64 == 0) {
				now = ht_now_ns();
				if (now > spin_end || now > until)
					break;
				if (i % 512 == 0)
					sched_yield();
			}
		}
		if (n > 0) { /* spinning pays */
			l->spin = SPIN_MAX;
			break;
		}
		if (now > until)
			break;
		l->spin = l->spin / 2 < SPIN_MIN ? SPIN_MIN : l->spin / 2;
		set_parked(l, 1);
		ht_barrier(l);
		if ((n = rings(l)) == 0) {
			int err = park(l, timeout < 0 ? -1 : (until - now + 999999) / 1000000);
			if (err != 0) {
				set_parked(l, 0);
				return err;
			}
			if (ht_now_ns() - now < SPIN_MAX && l->spin < SPIN_MAX)
				l->spin *= 2; /* it would have caught that */
		}
		set_parked(l, 0);
		n += sockets(l);
		n += rings(l);
		if (n == 0 && ht_now_ns() > until)
			break;
	}
	reap(l);
	return n;
}
