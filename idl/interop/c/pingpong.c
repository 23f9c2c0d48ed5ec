/*
 * pingpong server NAME [CONNECTIONS]   answers pings, and ends after so many connections have
 * pingpong client NAME N               sends N pings one after the other and checks the pongs
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ping.h"

static int ended, reason;

static void on_ping(struct ping_conn *c, const struct ping_ping *m)
{
	struct ping_pong pong = {m->client_id, m->msg_id};
	if (ping_send_pong(c, &pong) != 0)
		ping_close(c); /* the ring holds more than a client has under way */
}

static void on_closed(struct ping_conn *c, int why)
{
	(void)c;
	ended++;
	reason = why;
}

static long got;
static uint32_t expect;

static void on_pong(struct ping_conn *c, const struct ping_pong *m)
{
	(void)c;
	if (m->client_id != (uint32_t)getpid() || m->msg_id != expect++) {
		fprintf(stderr, "pong %u %u, expected %u\n", m->client_id, m->msg_id, expect - 1);
		exit(1);
	}
	got++;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	return 1;
}

int main(int argc, char **argv)
{
	struct ht_loop *loop = ht_loop_new();
	if (argc < 3 || loop == NULL)
		return 2;
	if (strcmp(argv[1], "server") == 0) {
		const struct ping_handlers on = {.ping = on_ping, .closed = on_closed};
		int want = argc > 3 ? atoi(argv[3]) : 0;
		int err = ping_export(loop, argv[2], &on, NULL, NULL);
		if (err != 0)
			return fail(argv[2], err);
		puts("ready");
		fflush(stdout);
		while (want == 0 || ended < want) {
			if ((err = ht_dispatch(loop, -1)) < 0)
				return fail("dispatch", err);
		}
		ht_loop_free(loop);
		printf("ended %s\n", ht_strerror(reason));
		return 0;
	}
	const struct ping_handlers on = {.pong = on_pong, .closed = on_closed};
	long n = argc > 3 ? atol(argv[3]) : 1000;
	struct ping_conn *c;
	int err = ping_connect(loop, argv[2], &on, NULL, &c);
	if (err != 0)
		return fail(argv[2], err);
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++) {
		struct ping_ping m = {(uint32_t)getpid(), (uint32_t)i};
		if ((err = ping_send_ping(c, &m)) != 0)
			return fail("send", err);
		while (got == i) {
			if ((err = ht_dispatch(loop, 20000)) < 0)
				return fail("dispatch", err);
			if (ended || (err == 0 && got == i))
				return fail("no pong", reason);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	ping_close(c);
	ht_loop_free(loop);
	printf("%ld round trips, %.0f ns each\n", got,
		((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
	return 0;
}
