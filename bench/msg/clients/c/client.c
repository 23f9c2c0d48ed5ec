/* A client of clients in C: connects, says so, and on a byte of input sends N pings one after the other. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ping.h"

static uint32_t got;
static int ended;

static void on_pong(struct ping_conn *c, const struct ping_pong *m)
{
	(void)c;
	if (m->msg_id != got)
		abort();
	got++;
}

static void on_closed(struct ping_conn *c, int why)
{
	(void)c;
	ended = why;
}

static int trips(struct ht_loop *loop, struct ping_conn *c, uint32_t n)
{
	for (uint32_t end = got + n; got != end;) {
		struct ping_ping m = {0, got};
		uint32_t was = got;
		int err = ping_send_ping(c, &m);
		while (err >= 0 && got == was && !ended)
			err = ht_dispatch(loop, 20000);
		if (err < 0 || ended)
			return err < 0 ? err : ended;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct ping_handlers on = {.pong = on_pong, .closed = on_closed};
	struct ht_loop *loop = ht_loop_new();
	struct ping_conn *c;
	char b;
	int err;
	if (argc < 3 || loop == NULL || setenv("HARDTACK_MSG_DIR", argv[1], 1) != 0)
		return 2;
	if ((err = ping_connect(loop, "crowd", &on, NULL, &c)) == 0 && (err = trips(loop, c, 100)) == 0) {
		puts("ready");
		fflush(stdout);
		if (read(0, &b, 1) != 1)
			return 1;
		if ((err = trips(loop, c, (uint32_t)atol(argv[2]))) == 0) {
			puts("done");
			return 0;
		}
	}
	fprintf(stderr, "client: %s (%s)\n", ht_strerror(err), ht_detail());
	return 1;
}
