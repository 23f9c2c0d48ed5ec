/* Being known by a name, connecting, being connected to. */
#define _GNU_SOURCE
#include "ht_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ht_names.h"

enum { GREET_MS = 5000, CONNECT_MS = 10000 };

void ht_loop_names(struct ht_loop *l, struct ht_names *names) { l->names = names; }

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

/* The entry of a service is the interface, its fingerprint, and addresses, a line each. */

static int publish(struct ht_listener *n, const char *name)
{
	char value[HT_NAMES_VALUE], hex[33];
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", n->iface->fingerprint[i]);
	int k = snprintf(value, sizeof(value), "%s\n%s\nunix:%s\n", n->iface->name, hex, n->path);
	if (k < 0 || k >= (int)sizeof(value))
		return HT_BAD_NAME;
	int err = ht_names_set(n->loop->names, name, value, (size_t)k, 0);
	if (err != 0)
		return err;
	n->name = strdup(name);
	return n->name == NULL ? HT_NO_MEMORY : 0;
}

/* Finds the path in an entry, which anybody may have written. */
static int address(const struct ht_interface *iface, const struct ht_name *entry, char *path, size_t n)
{
	char value[HT_NAMES_VALUE + 1], hex[33], *save = NULL;
	memcpy(value, entry->value, entry->nvalue);
	value[entry->nvalue] = 0;
	const char *what = strtok_r(value, "\n", &save), *print = strtok_r(NULL, "\n", &save);
	if (print == NULL)
		return HT_NO_NAME;
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", iface->fingerprint[i]);
	if (strcmp(print, hex) != 0) {
		struct ht_greeting g = {.kind = FRAME_REFUSE};
		snprintf(g.name, sizeof(g.name), "%s", what);
		for (int i = 0; i < 16 && print[2 * i] != 0 && print[2 * i + 1] != 0; i++) {
			unsigned b = 0;
			sscanf(print + 2 * i, "%2x", &b);
			g.fingerprint[i] = (uint8_t)b;
		}
		return ht_fail_mismatch(iface, &g);
	}
	for (const char *a; (a = strtok_r(NULL, "\n", &save)) != NULL;) {
		if (strncmp(a, "unix:", 5) == 0 && strlen(a + 5) < n) {
			strcpy(path, a + 5);
			return 0;
		}
	}
	return HT_NO_NAME; /* it is on another machine, or in another process only */
}

/* Lets other users pass through the directory of a socket. */
static int open_dir(char *path)
{
	char *slash = strrchr(path, '/');
	*slash = 0;
	int err = chmod(path, 0711);
	*slash = '/';
	return err;
}

int ht_export(struct ht_loop *l, const char *name, const struct ht_interface *iface, const struct ht_events *events,
	void *(*accept_one)(void *arg, struct ht_conn *conn), void *arg, void (*done)(void *arg))
{
	struct ht_listener *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return HT_NO_MEMORY;
	n->sock = -1;
	n->loop = l;
	n->iface = iface;
	n->events = events;
	n->accept = accept_one;
	n->arg = arg;
	int err = 0;
	if (l->names == NULL || strncmp(name, "unix:", 5) == 0) {
		err = ht_socket_path(l, name, n->path, sizeof(n->path), true);
	} else { /* the socket is anywhere, and the name service knows where */
		const char *tmp = getenv("TMPDIR");
		char dir[64];
		int k = snprintf(dir, sizeof(dir), "%s/hardtack-msg-XXXXXX", tmp != NULL && *tmp ? tmp : "/tmp");
		if (k < 0 || k >= (int)sizeof(dir) || mkdtemp(dir) == NULL)
			err = ht_fail_system("directory for a socket");
		else
			snprintf(n->path, sizeof(n->path), "%s/socket", dir);
		n->own_dir = err == 0;
	}
	if (err == 0) {
		n->sock = bind_name(n->path);
		err = n->sock < 0 ? n->sock : ht_watch(l, n->sock, n, HT_AT_LISTENER);
	}
	if (err == 0 && l->nusers > 0 && (chmod(n->path, 0666) != 0 || (n->own_dir && open_dir(n->path) != 0)))
		err = ht_fail_system(n->path);
	if (err == 0 && n->own_dir)
		err = publish(n, name);
	if (err != 0) {
		if (n->sock >= 0 || n->own_dir)
			ht_listener_free(n);
		else
			free(n);
		return err;
	}
	n->done = done;
	n->next = l->listeners;
	l->listeners = n;
	return 0;
}

void ht_listener_free(struct ht_listener *n)
{
	if (n->name != NULL)
		ht_names_delete(n->loop->names, n->name);
	free(n->name);
	ht_unwatch(n->loop, n->sock);
	if (n->sock >= 0) {
		close(n->sock);
		unlink(n->path);
	}
	if (n->own_dir) {
		*strrchr(n->path, '/') = 0;
		rmdir(n->path);
	}
	if (n->done != NULL)
		n->done(n->arg);
	free(n);
}

/* Makes the rings of a link that this end has dialled, and sends their memory. */
int ht_offer(struct ht_conn *c, int pages)
{
	uint8_t memory[2] = {FRAME_MEMORY, (uint8_t)pages};
	int fd;
	c->pages = pages;
	c->mem_n = 2 * (size_t)pages * HT_PAGE;
	int err = ht_new_memory(c->mem_n, &fd, &c->mem);
	if (err != 0) {
		c->mem = NULL;
		return err;
	}
	err = ht_send_frame(c->sock, memory, 2, &fd, 1);
	ht_conn_keep(c, fd);
	return err;
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

int ht_welcome(struct ht_conn *c, const struct ht_frame *f, struct ht_greeting *g)
{
	if (!ht_parse_greeting(f, g))
		return ht_wrong("no greeting");
	if ((g->kind == FRAME_REFUSE && g->reason == 1) ||
		(g->kind == FRAME_WELCOME && memcmp(g->fingerprint, c->iface->fingerprint, 16) != 0))
		return ht_fail_mismatch(c->iface, g);
	if (g->kind == FRAME_REFUSE && g->reason == 5) {
		ht_wrong("it speaks another version of the protocol");
		return HT_REFUSED;
	}
	if (g->kind == FRAME_REFUSE)
		return HT_REFUSED;
	if (g->kind != FRAME_WELCOME)
		return ht_wrong("no welcome");
	c->fence_them = g->flags & GREET_FENCE;
	c->calls = g->flags & GREET_CALLS;
	if (c->stream == NULL)
		ht_conn_rings(c);
	return 0;
}

/* Exchanges memory and greetings with the service at c->sock. */
static int greet(struct ht_conn *c)
{
	struct ht_greeting g;
	struct ht_frame f;
	int64_t until = ht_now_ns() + (int64_t)GREET_MS * 1000000;
	int err;
	c->dialled = true;
	if ((err = ht_offer(c, 1)) != 0 || (err = ht_send_greeting(c, FRAME_HELLO, 0, NULL, 0)) != 0)
		return err;
	for (;;) {
		if ((err = wait_frame(c, until, &f)) < 0)
			return err;
		if (f.b[0] < FRAME_MEMORY)
			break;
		if ((err = ht_conn_frame(c, &f)) != 0) /* the peer may give its bell first */
			return err;
	}
	ht_frame_close(&f);
	if ((err = ht_welcome(c, &f, &g)) != 0)
		return err;
	memcpy(c->token, g.token, 16);
	c->stage = HT_OPEN;
	return 0;
}

/* Finds where name is, or waits for it; until is in ns. */
static int resolve(struct ht_loop *l, const char *name, const struct ht_interface *iface, int64_t until, char *path, size_t n)
{
	struct ht_name entry;
	if (l->names == NULL || strncmp(name, "unix:", 5) == 0)
		return ht_socket_path(l, name, path, n, false);
	int64_t left = (until - ht_now_ns()) / 1000000;
	int err = ht_names_wait_for(l->names, name, left < 0 ? 0 : (int)left, &entry);
	if (err == 0 && !ht_user_allowed(l, entry.uid))
		err = HT_REFUSED;
	return err != 0 ? err : address(iface, &entry, path, n);
}

int ht_connect(struct ht_loop *l, const char *name, const struct ht_interface *iface, const struct ht_events *events,
	void *self, struct ht_conn **conn)
{
	char path[sizeof(((struct ht_conn *)0)->addr)];
	int64_t until = ht_now_ns() + (int64_t)CONNECT_MS * 1000000;
	if (strncmp(name, "kernel:", 7) == 0)
		return ht_stream_connect(l, name + 7, iface, events, self, conn);
	for (;;) {
		int err = resolve(l, name, iface, until, path, sizeof(path));
		if (err != 0)
			return err;
		struct ht_conn *c = ht_conn_new(l, iface, events, self);
		if (c == NULL)
			return HT_NO_MEMORY;
		if ((err = ht_dial(path, &c->sock)) == 0 && (err = ht_peer_allowed(l, c->sock)) == 0 && (err = greet(c)) == 0) {
			strcpy(c->addr, path);
			if ((err = ht_conn_enter(c)) == 0) {
				*conn = c;
				return 0;
			}
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

/* Takes in whoever has dialled. HT_FULL: there are no descriptors, or no memory. */
int ht_take_in(struct ht_listener *n)
{
	for (;;) {
		int s = accept4(n->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s < 0)
			return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS ? HT_FULL : 0;
		struct ht_conn *c = ht_conn_new(n->loop, n->iface, n->events, NULL);
		if (c == NULL) {
			close(s);
			return HT_FULL;
		}
		c->sock = s;
		c->from = n;
		c->second = true;
		c->deadline = ht_now_ns() / 1000000 + GREET_MS;
		if (ht_conn_enter(c) != 0) {
			ht_conn_free(c);
			return HT_FULL;
		}
	}
}

/* The first frame from who has dialled: the memory. */
static int take_memory(struct ht_conn *c, struct ht_frame *f)
{
	int err = ht_wrong("no memory to begin with");
	if (f->n == 2 && f->b[0] == FRAME_MEMORY && f->b[1] >= 1 && f->b[1] <= 8 && f->nfds == 1) {
		c->pages = f->b[1];
		c->mem_n = 2 * (size_t)c->pages * HT_PAGE;
		err = ht_map_memory(f->fds[0], c->mem_n, true, &c->mem);
	}
	if (err != 0) {
		c->mem = NULL;
		ht_frame_close(f);
		return err;
	}
	ht_conn_keep(c, f->fds[0]);
	c->stage = HT_WAIT_HELLO;
	return 0;
}

/* The greeting of who has dialled: a new connection, or a new link of an old one. */
static int hello(struct ht_conn *c, const struct ht_frame *f)
{
	static const uint8_t none[16];
	struct ht_greeting g;
	int err;
	if (!ht_parse_greeting(f, &g) || g.kind != FRAME_HELLO) {
		ht_refuse_version(c, f);
		return ht_wrong("no hello");
	}
	if ((err = ht_peer_allowed(c->loop, c->sock)) != 0) {
		ht_send_greeting(c, FRAME_REFUSE, 4, NULL, 0);
		return err;
	}
	if (memcmp(g.fingerprint, c->iface->fingerprint, 16) != 0) {
		ht_send_greeting(c, FRAME_REFUSE, 1, NULL, 0);
		return HT_MISMATCH;
	}
	c->fence_them = g.flags & GREET_FENCE;
	c->calls = g.flags & GREET_CALLS;
	if (memcmp(g.token, none, 16) != 0) {
		struct ht_conn *old = ht_session_find(c->loop, c->iface, g.token);
		if (old == NULL) {
			ht_send_greeting(c, FRAME_REFUSE, 2, NULL, 0);
			return HT_REFUSED;
		}
		if ((err = ht_send_greeting(c, FRAME_WELCOME, 0, old->token, old->rx.seq)) != 0)
			return err;
		if ((err = ht_session_move(old, c, g.delivered)) != 0)
			ht_conn_end(old, err);
		old->unbound = g.flags & GREET_BOUND;
		return HT_CLOSED_HERE; /* its link has another owner */
	}
	if (getrandom(c->token, 16, 0) != 16)
		return ht_fail_system("getrandom");
	if ((err = ht_send_greeting(c, FRAME_WELCOME, 0, c->token, 0)) != 0)
		return err;
	ht_conn_rings(c);
	c->stage = HT_OPEN;
	c->deadline = 0;
	c->loop->waiting--;
	struct ht_listener *n = c->from;
	c->from = NULL;
	strcpy(c->addr, n->path);
	ht_conn_heat(c);
	c->busy = true;
	c->self = n->accept(n->arg, c);
	c->busy = false;
	return c->self == NULL ? HT_CLOSED_HERE : 0;
}

/* The answer to a session's greeting on a new link. */
static int welcome_again(struct ht_conn *c, const struct ht_frame *f)
{
	static const uint8_t bound = FRAME_BOUND;
	struct ht_greeting g;
	struct ht_conn *s = c->session;
	int err = ht_welcome(c, f, &g);
	c->session = NULL;
	if (s == NULL)
		return HT_CLOSED_HERE; /* it has ended meanwhile */
	s->moving = false;
	if (err == 0 && memcmp(g.token, s->token, 16) != 0)
		err = ht_wrong("a welcome to another session");
	if (err != 0)
		return err; /* the old link stays */
	if (g.flags & GREET_BOUND)
		ht_send_frame(c->sock, &bound, 1, NULL, 0);
	if ((err = ht_session_move(s, c, g.delivered)) != 0)
		ht_conn_end(s, err);
	return HT_CLOSED_HERE;
}

/* Goes on with a connection that is being set up. Returns 0 or why it ends. */
int ht_set_up(struct ht_conn *c)
{
	struct ht_frame f;
	for (int got, err; (got = ht_recv_frame(c->loop, c->sock, &f)) != 0;) {
		if (got < 0)
			return got;
		if (c->stage == HT_WAIT_MEMORY)
			err = take_memory(c, &f);
		else if (f.b[0] >= FRAME_MEMORY)
			err = ht_conn_frame(c, &f);
		else {
			ht_frame_close(&f);
			err = c->stage == HT_WAIT_HELLO ? hello(c, &f) : welcome_again(c, &f);
		}
		if (err != 0)
			return err;
		if (c->stage == HT_OPEN)
			break; /* the rest is the open connection's */
	}
	return 0;
}
