/*
 * pingpong in C; see ../main.go. An event-driven program sets handlers and lets the
 * library call them.
 *
 *	cc -Imsg/c -Iidl/ping/c examples/pingpong/c/pingpong.c idl/ping/c/ping.c msg/c/ht_*.c -o pingpong
 *	./pingpong serve &
 *	./pingpong ping 100000
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ping.h"

static const char name[] = "pingpong";

static int die(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	return 1;
}

/* The server: an answer to each ping. */
static void on_ping(struct ping_conn *c, const struct ping_ping *m)
{
	struct ping_pong pong = {m->client_id, m->msg_id};

	/* A client has one ping under way, for which there is room. */
	if (ping_send_pong(c, &pong) != 0)
		ping_close(c);
}

static int serve(struct ht_loop *loop)
{
	static const struct ping_handlers on = {.ping = on_ping};
	int err = ping_export(loop, name, &on, NULL, NULL);

	if (err != 0)
		return die(name, err);
	printf("serving %s\n", name);
	fflush(stdout);
	while ((err = ht_dispatch(loop, -1)) >= 0)
		;
	return die("dispatch", err);
}

/* The client: each pong is answered with the next ping. */
static uint32_t sent, total;
static int result = -1;

static void next(struct ping_conn *c)
{
	struct ping_ping ping = {(uint32_t)getpid(), sent};
	int err;

	if (sent == total) {
		result = 0;
	} else if ((err = ping_send_ping(c, &ping)) != 0) {
		result = die("ping", err);
	}
	sent++;
}

static void on_pong(struct ping_conn *c, const struct ping_pong *m)
{
	if (m->client_id != (uint32_t)getpid() || m->msg_id != sent - 1) {
		fprintf(stderr, "pong %u in answer to ping %u\n", m->msg_id, sent - 1);
		result = 1;
		return;
	}
	next(c);
}

static void on_closed(struct ping_conn *c, int reason)
{
	(void)c;
	result = die("closed", reason);
}

static int run(struct ht_loop *loop)
{
	static const struct ping_handlers on = {.pong = on_pong, .closed = on_closed};
	struct ping_conn *c;
	struct timespec a, b;
	int err = ping_connect(loop, name, &on, NULL, &c);

	if (err != 0)
		return die(name, err);
	clock_gettime(CLOCK_MONOTONIC, &a);
	next(c);
	while (result < 0)
		if ((err = ht_dispatch(loop, -1)) < 0)
			return die("dispatch", err);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (result == 0)
		printf("%u round trips, %.0fns each\n", total,
			((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (total ? total : 1));
	return result;
}

int main(int argc, char **argv)
{
	struct ht_loop *loop = ht_loop_new();
	int status = 2;

	if (loop == NULL)
		return die("loop", HT_NO_MEMORY);
	if (argc == 2 && strcmp(argv[1], "serve") == 0) {
		status = serve(loop);
	} else if (argc == 3 && strcmp(argv[1], "ping") == 0) {
		total = (uint32_t)strtoul(argv[2], NULL, 10);
		status = run(loop);
	} else {
		fprintf(stderr, "usage: pingpong serve | ping N\n");
	}
	ht_loop_free(loop);
	return status;
}
