/* The server of crowd in C: answers the pings of any number of connections. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "ping.h"

static void on_ping(struct ping_conn *c, const struct ping_ping *m)
{
	struct ping_pong pong = {m->client_id, m->msg_id};
	if (ping_send_pong(c, &pong) != 0)
		ping_close(c); /* the ring holds more than a client has under way */
}

int main(int argc, char **argv)
{
	static const struct ping_handlers on = {.ping = on_ping};
	struct ht_loop *loop = ht_loop_new();
	int err;
	if (argc < 2 || loop == NULL || setenv("HARDTACK_MSG_DIR", argv[1], 1) != 0)
		return 2;
	if ((err = ping_export(loop, "crowd", &on, NULL, NULL)) == 0) {
		puts("ready");
		fflush(stdout);
		while ((err = ht_dispatch(loop, -1)) >= 0)
			continue;
	}
	fprintf(stderr, "server: %s (%s)\n", ht_strerror(err), ht_detail());
	return 1;
}
