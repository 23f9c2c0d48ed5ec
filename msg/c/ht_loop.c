/*
 * The loop: whose rings are looked at, who sleeps, and what the system has to say.
 *
 * A connection is hot or parked. Hot ones are polled in turn; what has been quiet
 * for a while is parked, many at a time, since the barrier that this takes
 * (membarrier(2), so that the peer's next message finds the flag) costs the same
 * for all. A parked one is only known to epoll(7), by its socket and, once it was
 * woken a few times, a pair of sockets, so idle connections cost a dispatch nothing.
 */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	SPIN_MAX = 50000, SPIN_MIN = 1000, /* ns */
	QUIET_NS = 200000, /* between two ticks; parked after two without anything */
	LOOK_MS = 500,     /* between two looks at deadlines */
	REST_MS = 100,     /* of listeners, when there are no descriptors */
	BATCH = 32, EVENTS = 64
};

struct ht_loop *ht_loop_new(void)
{
	struct rlimit lim;
	struct ht_loop *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	l->frame = malloc(HT_MAX_FRAME);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->frame == NULL || l->epoll < 0) {
		if (l->epoll >= 0)
			close(l->epoll);
		free(l->frame);
		free(l);
		return NULL;
	}
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0)
		l->keep = (lim.rlim_cur < 1 << 20 ? lim.rlim_cur : 1 << 20) / 4;
	l->barriers = ht_register_barriers();
	l->spin = SPIN_MAX;
	return l;
}

size_t ht_loop_conns(const struct ht_loop *l) { return l->nconns; }

int ht_watch(struct ht_loop *l, int fd, void *what, unsigned kind)
{
	struct epoll_event e = {.events = EPOLLIN | (kind == HT_AT_BELL ? EPOLLET : 0u)};
	e.data.u64 = (uint64_t)(uintptr_t)what | kind;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0 || (errno == EEXIST && epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &e) == 0))
		return 0;
	return ht_fail_system("epoll_ctl");
}

/* A descriptor may live on in the peer, so closing it is not enough. */
void ht_unwatch(struct ht_loop *l, int fd)
{
	if (fd >= 0)
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Makes a new connection the loop's, and hot. */
int ht_conn_enter(struct ht_conn *c)
{
	struct ht_loop *l = c->loop;
	if (l->nconns == l->hot_cap) {
		size_t cap = l->hot_cap < 16 ? 16 : 2 * l->hot_cap;
		struct ht_conn **hot = realloc(l->hot, cap * sizeof(*hot));
		if (hot == NULL)
			return HT_NO_MEMORY;
		l->hot = hot;
		l->hot_cap = cap;
	}
	int err = ht_watch(l, c->sock, c, HT_AT_SOCK);
	if (err == 0 && c->bell >= 0)
		err = ht_watch(l, c->bell, c, HT_AT_BELL);
	if (err != 0) {
		ht_unwatch(l, c->sock);
		return err;
	}
	c->next = l->conns;
	if (l->conns != NULL)
		l->conns->prev = c;
	l->conns = c;
	l->nconns++;
	if (c->deadline != 0)
		l->waiting++;
	ht_conn_heat(c);
	return 0;
}

/* Has a connection's rings looked at again. */
void ht_conn_heat(struct ht_conn *c)
{
	struct ht_loop *l = c->loop;
	c->active = l->tick;
	if (c->hot != 0 || c->stage != HT_OPEN || c->end != 0 || c->stream != NULL)
		return;
	l->hot[l->nhot++] = c;
	c->hot = l->nhot;
	ht_store(&c->rx.r.ctl->parked, 0);
	ht_store(&c->tx.r.ctl->blocked, 0);
}

/* Takes a connection out of the hot ones. */
static void cool(struct ht_conn *c)
{
	struct ht_loop *l = c->loop;
	if (c->hot == 0)
		return;
	struct ht_conn *last = l->hot[--l->nhot];
	l->hot[c->hot - 1] = last;
	last->hot = c->hot;
	c->hot = 0;
}

/* Frees the connections that have ended, except for one whose handler runs. */
static void reap(struct ht_loop *l)
{
	struct ht_conn *later = NULL;
	while (l->dead != NULL) {
		struct ht_conn *c = l->dead;
		l->dead = c->next_dead;
		if (c->busy) {
			c->next_dead = later;
			later = c;
			continue;
		}
		cool(c);
		*(c->prev != NULL ? &c->prev->next : &l->conns) = c->next;
		if (c->next != NULL)
			c->next->prev = c->prev;
		l->nconns--;
		if (c->deadline != 0)
			l->waiting--;
		if (c->self != NULL)
			c->events->closed(c->self, c->end); /* which may close others */
		ht_conn_free(c);
	}
	l->dead = later;
}

void ht_close(struct ht_conn *c)
{
	static const uint8_t bye = FRAME_BYE;
	if (c->end == 0) {
		if (c->stream != NULL)
			ht_stream_frame(c, &bye, 1);
		else if (c->stage == HT_OPEN)
			ht_send_frame(c->sock, &bye, 1, NULL, 0);
		ht_conn_end(c, HT_CLOSED_HERE);
	}
}

static void empty_trash(struct ht_loop *l)
{
	while (l->trash != NULL) {
		struct ht_left *left = l->trash;
		l->trash = left->next;
		ht_left_free(left);
		free(left);
	}
}

int ht_loop_users(struct ht_loop *l, const uint32_t *uids, size_t n)
{
	uint32_t *users = malloc(n > 0 ? n * sizeof(*users) : 1);
	if (users == NULL)
		return HT_NO_MEMORY;
	memcpy(users, uids, n * sizeof(*users));
	free(l->users);
	l->users = users;
	l->nusers = n;
	return 0;
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
		ht_listener_free(n);
	}
	empty_trash(l);
	close(l->epoll);
	free(l->users);
	free(l->hot);
	free(l->frame);
	free(l);
}

/* Handles what is in the ring of a hot connection. */
static int look_at(struct ht_conn *c)
{
	int n = ht_conn_receive(c, BATCH);
	if (c->again != NULL && c->end == 0 && !ht_session_again(c))
		return n;
	if (c->wants_room && c->end == 0) {
		uint32_t before = c->tx.room;
		if (!ht_refill(&c->tx)) {
			ht_conn_end(c, ht_wrong("acknowledged what was not sent"));
		} else if (c->tx.room > before || c->tx.room == c->tx.r.n) {
			c->wants_room = false;
			ht_calls_tell(c);
			if (c->wants_room || c->end != 0)
				return n;
			c->busy = true;
			c->events->room(c->self);
			c->busy = false;
			n++;
		}
	}
	return n;
}

static int rings(struct ht_loop *l)
{
	int n = 0;
	for (size_t i = 0; i < l->nhot; i++) {
		struct ht_conn *c = l->hot[i];
		if (c->end != 0)
			continue;
		int got = look_at(c);
		if (got > 0) {
			n += got;
			c->active = l->tick;
		}
	}
	return n + (l->dead != NULL);
}

/* True if a parked connection must not stay so. */
static bool has_news(struct ht_conn *c)
{
	uint64_t h;
	uint32_t before = c->tx.room;
	if (c->end != 0 || (!c->stalled && ht_peek(&c->rx, &h)))
		return true;
	if (!c->wants_room && !c->stalled && c->again == NULL)
		return false;
	return !ht_refill(&c->tx) || c->tx.room > before;
}

/* Parks what was quiet for so many ticks. */
static void park(struct ht_loop *l, uint32_t ticks)
{
	size_t parking = 0;
	for (size_t i = 0; i < l->nhot; i++) {
		struct ht_conn *c = l->hot[i];
		c->parking = c->end == 0 && l->tick - c->active >= ticks;
		if (!c->parking)
			continue;
		parking++;
		/* Not in the middle of a message: its slots are sent again after a new bind. */
		if (c->frag_n == 0 && ht_flush(&c->rx, &c->tx, true))
			ht_conn_wake(c);
		ht_store(&c->rx.r.ctl->parked, 1);
		ht_store(&c->tx.r.ctl->blocked, c->wants_room || c->stalled || c->again != NULL);
	}
	if (parking == 0)
		return;
	ht_barrier(l);
	for (size_t i = 0; i < l->nhot;) {
		struct ht_conn *c = l->hot[i];
		if (c->parking && !has_news(c)) {
			cool(c); /* another takes its place */
			ht_conn_bell(c);
			continue;
		}
		if (c->parking) {
			ht_store(&c->rx.r.ctl->parked, 0);
			ht_store(&c->tx.r.ctl->blocked, 0);
			c->active = l->tick;
		}
		i++;
	}
}

/* Parks what has been quiet while others were not. */
static void sweep(struct ht_loop *l)
{
	int64_t now = ht_now_ns();
	if (now - l->swept < QUIET_NS)
		return;
	l->swept = now;
	l->tick++;
	park(l, 2);
}

/* Handles the socket of a connection. */
static void on_socket(struct ht_conn *c)
{
	int err;
	if (c->end != 0)
		return;
	if (c->stream != NULL) {
		c->loop->handled += ht_stream_events(c);
		return;
	}
	if (c->stage != HT_OPEN) {
		if ((err = ht_set_up(c)) != 0)
			ht_conn_end(c, err);
		return;
	}
	ht_conn_heat(c);
	err = ht_conn_socket(c);
	if (err == HT_PEER_GONE && ht_session_returns(c)) {
		ht_unwatch(c->loop, c->sock);
		c->gone = true;
		ht_conn_await(c);
		return;
	}
	if (c->end == 0 && err == HT_PEER_GONE && ht_left_bye(c) != 0)
		err = HT_PEER_CLOSED;
	if (c->end == 0 && (err == HT_PEER_CLOSED || err == HT_PEER_GONE || c->bye)) {
		/* What it sent before comes first. */
		while (ht_conn_receive(c, BATCH) > 0)
			continue;
		if (err == 0)
			err = HT_PEER_CLOSED;
	}
	if (err != 0)
		ht_conn_end(c, err);
}

/* Gives up on who has let a deadline pass, and lets listeners listen again. */
static void deadlines(struct ht_loop *l)
{
	int64_t now = ht_now_ns() / 1000000;
	if (l->full != 0 && now >= l->full) {
		l->full = 0;
		for (struct ht_listener *n = l->listeners; n != NULL; n = n->next)
			ht_watch(l, n->sock, n, HT_AT_LISTENER);
	}
	if (l->waiting == 0 || now < l->look)
		return;
	l->look = now + LOOK_MS;
	for (struct ht_conn *c = l->conns; c != NULL; c = c->next) {
		if (c->deadline != 0 && now > c->deadline && c->end == 0)
			ht_conn_end(c, c->missing ? ht_wrong("what came with a message is missing") : HT_PEER_GONE);
	}
}

/*
 * Gives up the calls whose time is over. What their done does may free other connections,
 * so the search begins again behind each.
 */
static void late_calls(struct ht_loop *l)
{
	int64_t now = l->late != 0 ? ht_now_ns() : 0;
	if (now < l->late || l->late == 0)
		return;
	struct ht_conn *c = l->conns;
	while (c != NULL) {
		if (ht_calls_expire(c, now)) {
			l->handled++;
			c = l->conns;
		} else {
			c = c->next;
		}
	}
	l->late = 0;
	for (c = l->conns; c != NULL; c = c->next) {
		if (c->late != 0 && c->end == 0 && (l->late == 0 || c->late < l->late))
			l->late = c->late;
	}
}

/* Handles what the system has to say, waiting for it at most so many ms. */
static int events(struct ht_loop *l, int64_t ms)
{
	struct epoll_event all[EVENTS];
	if (l->full != 0 && (ms < 0 || ms > REST_MS))
		ms = REST_MS;
	if (l->waiting > 0 && (ms < 0 || ms > LOOK_MS))
		ms = LOOK_MS;
	if (l->late != 0) {
		int64_t left = (l->late - ht_now_ns() + 999999) / 1000000;
		if (ms < 0 || ms > left)
			ms = left > 0 ? left : 0;
	}
	empty_trash(l); /* no event is about these any more */
	int got = epoll_wait(l->epoll, all, EVENTS, ms < 0 ? -1 : ms > 1000000000 ? 1000000000 : (int)ms);
	if (got < 0 && errno != EINTR)
		return ht_fail_system("epoll_wait");
	for (int i = 0; i < got; i++) {
		void *what = (void *)(uintptr_t)(all[i].data.u64 & ~(uint64_t)3);
		switch (all[i].data.u64 & 3) {
		case HT_AT_SOCK:
			on_socket(what);
			break;
		case HT_AT_BELL:
			ht_conn_quiet(what);
			ht_conn_heat(what);
			break;
		case HT_AT_LISTENER:
			if (ht_take_in(what) == HT_FULL) {
				ht_unwatch(l, ((struct ht_listener *)what)->sock);
				l->full = ht_now_ns() / 1000000 + REST_MS;
			}
			break;
		case HT_AT_LEFT: {
			struct ht_left *left = what;
			int err = left->conn->end == 0 ? ht_left_frames(left) : 0;
			if (left->bye && left->conn->end == 0)
				err = ht_left_bye(left->conn);
			if (err != 0)
				ht_conn_end(left->conn, err);
			break;
		}
		}
	}
	deadlines(l);
	late_calls(l);
	return got > 0 ? got : 0;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* Looks at the hot rings for a while. */
static int spin(struct ht_loop *l, int64_t *now, int64_t until)
{
	int64_t end = *now + l->spin;
	int n = 0;
	for (unsigned i = 1; n == 0; i++) {
		n = rings(l);
		relax();
		if (i % 64 == 0) {
			*now = ht_now_ns();
			if (*now > end || *now > until)
				break;
			if (i % 512 == 0)
				sched_yield();
		}
	}
	return n;
}

int ht_dispatch(struct ht_loop *l, int timeout)
{
	int n = 0, got;
	l->handled = 0;
	reap(l);
	if (++l->round % 64 == 0) {
		if ((n = events(l, 0)) < 0)
			return n;
		sweep(l);
	}
	n += rings(l) + l->handled;
	if (n == 0) {
		int64_t now = ht_now_ns(), until = timeout < 0 ? INT64_MAX : now + (int64_t)timeout * 1000000;
		while (n == 0) {
			if (l->nhot > 0) {
				if ((n = spin(l, &now, until)) > 0) { /* it pays */
					l->spin = SPIN_MAX;
					break;
				}
				l->spin = l->spin / 2 < SPIN_MIN ? SPIN_MIN : l->spin / 2;
				park(l, 0);
			}
			bool late = now >= until;
			if ((got = events(l, l->nhot > 0 || late ? 0 : timeout < 0 ? -1 : (until - now + 999999) / 1000000)) < 0)
				return got;
			int64_t woken = ht_now_ns();
			if (woken - now < SPIN_MAX && l->spin < SPIN_MAX)
				l->spin *= 2; /* it would have caught that */
			now = woken;
			n = rings(l) + l->handled;
			if (late)
				break;
		}
	}
	reap(l);
	return n;
}
