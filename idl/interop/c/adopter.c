/*
 * adopter NAME PINGS
 *
 * Takes up the ends of connections that it is sent, answers PINGS pings on each, and sends it back,
 * with what has arrived on it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "ping.h"
#include "shapes.h"

static int ended, pings, back;
static struct ht_loop *loop;
static struct shapes_conn *home;
static struct ping_conn *guest;

static void fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	exit(1);
}

static void on_ping(struct ping_conn *c, const struct ping_ping *m)
{
	struct ping_pong pong = {m->client_id, m->msg_id};
	int err = ping_send_pong(c, &pong);
	if (err != 0)
		fail("pong", err);
	pings++;
}

static void on_ping_closed(struct ping_conn *c, int why)
{
	(void)c;
	fail("the end", why);
}

static const struct ping_handlers on_guest = {.ping = on_ping, .closed = on_ping_closed};

static void on_caps(struct shapes_conn *c, const struct shapes_caps *m)
{
	if (m->second.kind != HT_CAP_END)
		fail("no end", HT_BAD_CAP);
	int err = ping_adopt(loop, m->second.end, &on_guest, NULL, &guest);
	if (err != 0)
		fail("adopt", err);
	home = c;
	pings = 0;
}

static void on_closed(struct shapes_conn *c, int why)
{
	(void)c;
	ended = 1;
	if (why != HT_PEER_CLOSED)
		fail("closed", why);
}

int main(int argc, char **argv)
{
	static const struct shapes_handlers on = {.caps = on_caps, .closed = on_closed};
	int err;
	loop = ht_loop_new();
	if (argc < 3 || loop == NULL)
		return 2;
	if ((err = shapes_export(loop, argv[1], &on, NULL, NULL)) != 0)
		fail("export", err);
	puts("ready");
	fflush(stdout);
	while (!ended) {
		if ((err = ht_dispatch(loop, 20000)) < 0)
			fail("dispatch", err);
		struct shapes_caps m = {0};
		if (guest == NULL || pings < atoi(argv[2]))
			continue;
		m.second.kind = HT_CAP_END;
		if ((err = ht_detach(ping_raw(guest), &m.second.end)) != 0)
			fail("detach", err);
		guest = NULL;
		back++;
		if ((err = shapes_send_caps(home, &m)) != 0)
			fail("caps", err);
	}
	ht_loop_free(loop);
	printf("%d ends\n", back);
	return 0;
}
