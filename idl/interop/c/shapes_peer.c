/*
 * shapes_peer echo NAME     sends back each message as it came, answers calls, and ends when its
 *                           first connection does
 * shapes_peer serve NAME    the same, and does not end
 * shapes_peer calls NAME N  makes N calls, many at a time, and checks the replies
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shapes.h"

static int ended, reason, failed;

static void on_closed(struct shapes_conn *c, int why)
{
	(void)c;
	ended = 1;
	reason = why;
}

#define ECHO(name)                                                                                                     \
	static void echo_##name(struct shapes_conn *c, const struct shapes_##name *m)                                      \
	{                                                                                                                  \
		int err = shapes_send_##name(c, m);                                                                            \
		if (err != 0) {                                                                                                \
			fprintf(stderr, #name ": %s\n", ht_strerror(err));                                                         \
			failed = 1;                                                                                                \
		}                                                                                                              \
	}

ECHO(nothing)
ECHO(scalars)
ECHO(arrays)
ECHO(texts)
ECHO(nested)
ECHO(ask)
ECHO(answer)
ECHO(region)
ECHO(msg)

static void echo_caps(struct shapes_conn *c, const struct shapes_caps *m)
{
	int err = shapes_send_caps(c, m);
	if (err != 0) {
		fprintf(stderr, "caps: %s\n", ht_strerror(err));
		failed = 1;
	}
	const struct ht_cap all[] = {m->first, m->second, m->more[0], m->more[1], m->more[2]};
	for (size_t i = 0; i < 5; i++) {
		if (all[i].kind == HT_CAP_FILE) /* an end is gone once it was sent */
			ht_caps_close(&all[i], 1);
	}
}

static void on_read_block(struct shapes_conn *c, uint32_t call, const struct shapes_read_block_call *m)
{
	uint8_t buffer[2] = {(uint8_t)m->lba, (uint8_t)(m->lba >> 8)};
	struct shapes_read_block_reply r = {.buffer = buffer, .buffer_size = 2, .err = m->lba};
	if (shapes_send_read_block_reply(c, call, &r) != 0)
		failed = 1;
}

static void on_ping(struct shapes_conn *c, uint32_t call, const struct shapes_ping_call *m)
{
	(void)m;
	struct shapes_msg between = {ht_text("between")};
	struct shapes_ping_reply r = {0};
	if (shapes_send_msg(c, &between) != 0 || shapes_send_ping_reply(c, call, &r) != 0)
		failed = 1;
}

static void on_look_up(struct shapes_conn *c, uint32_t call, const struct shapes_look_up_call *m)
{
	struct shapes_look_up_reply r = {.seg = {.note = m->name, .memory = {.kind = HT_CAP_FILE, .fd = 1}}, .found = m->id};
	if (shapes_send_look_up_reply(c, call, &r) != 0)
		failed = 1;
}

static long sent, answered, wanted;

static void on_reply(struct shapes_conn *c, const struct shapes_read_block_reply *r, int why, void *arg)
{
	(void)c;
	uint32_t lba = (uint32_t)(uintptr_t)arg;
	if (r == NULL || r->err != lba || r->buffer_size != 2 || r->buffer[0] != (uint8_t)lba || r->buffer[1] != (uint8_t)(lba >> 8)) {
		fprintf(stderr, "call %u: %s\n", lba, r == NULL ? ht_strerror(why) : "wrong reply");
		exit(1);
	}
	answered++;
}

static void send_more(struct shapes_conn *c)
{
	while (sent < wanted && sent - answered < 500) {
		struct shapes_read_block_call m = {(uint32_t)sent};
		int err = shapes_send_read_block_call(c, &m, on_reply, (void *)(uintptr_t)sent);
		if (err == HT_FULL)
			return;
		if (err != 0) {
			fprintf(stderr, "call: %s\n", ht_strerror(err));
			exit(1);
		}
		sent++;
	}
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	return 1;
}

int main(int argc, char **argv)
{
	const struct shapes_handlers on = {
		.nothing = echo_nothing, .scalars = echo_scalars, .arrays = echo_arrays, .texts = echo_texts, .caps = echo_caps,
		.nested = echo_nested, .ask = echo_ask, .answer = echo_answer, .region = echo_region, .msg = echo_msg,
		.read_block_call = on_read_block, .ping_call = on_ping, .look_up_call = on_look_up, .room = send_more, .closed = on_closed,
	};
	struct ht_loop *loop = ht_loop_new();
	int err;
	if (argc < 3 || loop == NULL)
		return 2;
	bool serves = strcmp(argv[1], "serve") == 0;
	if (serves || strcmp(argv[1], "echo") == 0) {
		if ((err = shapes_export(loop, argv[2], &on, NULL, NULL)) != 0)
			return fail(argv[2], err);
		puts("ready");
		fflush(stdout);
		while (!ended || serves) {
			if ((err = ht_dispatch(loop, -1)) < 0)
				return fail("dispatch", err);
		}
		ht_loop_free(loop);
		printf("ended %s\n", ht_strerror(reason));
		return failed;
	}
	struct shapes_conn *c;
	wanted = argc > 3 ? atol(argv[3]) : 1000;
	if ((err = shapes_connect(loop, argv[2], &on, NULL, &c)) != 0)
		return fail(argv[2], err);
	while (answered < wanted) {
		send_more(c);
		if ((err = ht_dispatch(loop, 20000)) <= 0 || ended)
			return fail("dispatch", ended ? reason : err);
	}
	shapes_close(c);
	ht_loop_free(loop);
	printf("%ld calls\n", answered);
	return failed;
}
