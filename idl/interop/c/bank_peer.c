/*
 * bank_peer serve NAME    answers calls, some with errors, until its first connection ends
 * bank_peer calls NAME    makes calls that fail, and checks how
 * bank_peer late NAME     makes as many calls as there is room for, which nobody answers in time
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bank.h"

static int ended, reason, waiting;

static void must(const char *what, int err, int want)
{
	if (err == want)
		return;
	fprintf(stderr, "%s: %s, not %s (%s)\n", what, ht_strerror(err), ht_strerror(want), ht_detail());
	exit(1);
}

static void on_closed(struct bank_conn *c, int why)
{
	(void)c;
	ended = 1;
	reason = why;
}

static void on_open(struct bank_conn *c, uint32_t call, const struct bank_open_call *m)
{
	struct bank_open_reply r = {m->owner.len};
	if (m->owner.len == 0)
		must("open", bank_fail(c, call, HT_CODE_FAILED, "an account wants an owner"), 0);
	else
		must("open", bank_send_open_reply(c, call, &r), 0);
}

static void on_withdraw(struct bank_conn *c, uint32_t call, const struct bank_withdraw_call *m)
{
	struct bank_withdraw_reply r = {100 - m->cents};
	char text[2000];
	if (m->account == 0) {
		must("withdraw", bank_fail(c, call, BANK_ERROR_NO_ACCOUNT, NULL), 0);
	} else if (m->cents > 100) {
		memset(text, 'x', sizeof(text));
		text[sizeof(text) - 1] = 0;
		must("withdraw", bank_fail(c, call, BANK_ERROR_NOT_ENOUGH, text), 0);
	} else {
		must("withdraw", bank_send_withdraw_reply(c, call, &r), 0);
	}
}

static void on_statement(struct bank_conn *c, uint32_t call, const struct bank_statement_call *m)
{
	char *text = calloc(1, m->account + 1);
	struct bank_statement_reply r = {{text, (uint32_t)m->account}};
	must("statement", bank_send_statement_reply(c, call, &r), m->account > 2000 ? HT_TOO_LARGE : 0);
	free(text);
}

static void on_receipt(struct bank_conn *c, uint32_t call, const struct bank_receipt_call *m)
{
	(void)m;
	struct bank_receipt_reply r = {{.kind = HT_CAP_FILE, .fd = -1}};
	must("receipt", bank_send_receipt_reply(c, call, &r), HT_BAD_CAP);
}

/* Calls to watch are not answered. The client hears of each that it gives up. */
static void on_given_up(struct bank_conn *c, uint32_t call)
{
	struct bank_changed m = {call, 1};
	int err = bank_send_changed(c, &m);
	must("changed", err == HT_PEER_CLOSED ? 0 : err, 0);
}

static void on_watch(struct bank_conn *c, uint32_t call, const struct bank_watch_call *m)
{
	struct bank_changed changed = {call, m->account};
	int err = bank_send_changed(c, &changed);
	must("changed", err == HT_PEER_CLOSED ? 0 : err, 0);
}

struct want {
	const char *what;
	uint32_t code; /* 0: it succeeds */
	const char *text;
};

static void check(struct bank_conn *c, bool reply, int why, struct want *w)
{
	waiting--;
	must(w->what, why, w->code == 0 ? 0 : HT_CALL_FAILED);
	if (reply != (w->code == 0)) {
		fprintf(stderr, "%s: a reply and a reason\n", w->what);
		exit(1);
	}
	const struct ht_error *e = ht_call_error(bank_raw(c));
	if (w->code != 0 && (e->code != w->code || strcmp(e->text.s, w->text) != 0 || strlen(e->text.s) != e->text.len)) {
		fprintf(stderr, "%s: %u \"%s\"\n", w->what, e->code, e->text.s);
		exit(1);
	}
}

static void opened(struct bank_conn *c, const struct bank_open_reply *r, int why, void *w) { check(c, r != NULL, why, w); }
static void withdrawn(struct bank_conn *c, const struct bank_withdraw_reply *r, int why, void *w) { check(c, r != NULL, why, w); }
static void stated(struct bank_conn *c, const struct bank_statement_reply *r, int why, void *w) { check(c, r != NULL, why, w); }
static void seen(struct bank_conn *c, const struct bank_watch_reply *r, int why, void *w) { check(c, r != NULL, why, w); }
static void watched(struct bank_conn *c, const struct bank_watch_reply *r, int why, void *w)
{
	(void)w;
	(void)c;
	if (r == NULL)
		must("the last call", why, HT_CLOSED_HERE);
}

/* Calls that are given up, before they are answered and after. */
static void give_up(struct bank_conn *c, struct ht_loop *loop)
{
	struct want canceled = {"given up", HT_CODE_CANCELED, "the call was given up"}, fine = {"withdraw", 0, ""};
	/* The service in Go answers the second when it has begun with watch. */
	struct bank_withdraw_call some = {7, 30}, after = {8, 30};
	struct bank_watch_call w = {2};
	for (int round = 0; round < 50; round++) {
		waiting = 3;
		must("watch", bank_send_watch_call(c, &w, seen, &canceled), 0);
		uint32_t watch = ht_last_call(bank_raw(c));
		must("withdraw", bank_send_withdraw_call(c, &some, withdrawn, &canceled), 0);
		must("give up", ht_call_cancel(bank_raw(c), ht_last_call(bank_raw(c))), 0);
		must("withdraw", bank_send_withdraw_call(c, &after, withdrawn, &fine), 0);
		while (waiting > 1) {
			int err = ht_dispatch(loop, 20000);
			if (err <= 0 || ended) {
				fprintf(stderr, "after a call was given up: %s (%s)\n", ht_strerror(ended ? reason : err), ht_detail());
				exit(1);
			}
		}
		must("give up", ht_call_cancel(bank_raw(c), watch), 0);
		if (waiting != 0) {
			fprintf(stderr, "a call that was given up is left\n");
			exit(1);
		}
		must("give up what has ended", ht_call_cancel(bank_raw(c), watch), 0);
	}
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

/* Calls whose time is over end in the order of their times, and no earlier; others are not touched. */
static void time_out(struct bank_conn *c, struct ht_loop *loop)
{
	enum { CALLS = 4 };
	static const int ms[CALLS] = {30, 10, 20, 5};
	struct want late = {"in time", HT_CODE_TIMED_OUT, "the time for the call is over"}, fine = {"withdraw", 0, ""};
	struct bank_watch_call w = {3};
	struct bank_withdraw_call some = {7, 30};
	double begun = now_ms();
	waiting = CALLS + 1;
	for (int i = 0; i < CALLS; i++) {
		must("watch", bank_send_watch_call(c, &w, seen, &late), 0);
		ht_call_timeout(bank_raw(c), ht_last_call(bank_raw(c)), i == 3 ? 20000 : ms[i]);
	}
	ht_call_timeout(bank_raw(c), ht_last_call(bank_raw(c)), ms[3]); /* instead of what it had */
	must("withdraw", bank_send_withdraw_call(c, &some, withdrawn, &fine), 0);
	ht_call_timeout(bank_raw(c), ht_last_call(bank_raw(c)), 20000);
	while (waiting > 0) {
		int err = ht_dispatch(loop, -1);
		int over = 0;
		for (int i = 0; i < CALLS; i++)
			over += now_ms() - begun >= ms[i];
		if (err <= 0 || ended || waiting < CALLS - over) {
			fprintf(stderr, "%d calls wait when %d are over: %s (%s)\n", waiting, over, ht_strerror(ended ? reason : err), ht_detail());
			exit(1);
		}
	}
	if (now_ms() - begun >= 20000) {
		fprintf(stderr, "calls with little time took %.0f ms\n", now_ms() - begun);
		exit(1);
	}
	ht_call_timeout(bank_raw(c), ht_last_call(bank_raw(c)), 0); /* it has ended */
}

/* Calls end in time also when there is no room to tell the peer, which hears of it later. */
static int flood(struct bank_conn *c, struct ht_loop *loop)
{
	struct want late = {"in time", HT_CODE_TIMED_OUT, "the time for the call is over"};
	struct bank_watch_call w = {3};
	int sent = 0, err;
	while ((err = bank_send_watch_call(c, &w, seen, &late)) != HT_FULL || sent == 0) {
		if (err == 0) {
			ht_call_timeout(bank_raw(c), ht_last_call(bank_raw(c)), 20);
			sent++;
		} else if (err != HT_FULL || ht_dispatch(loop, 20000) < 0) {
			return 1;
		}
	}
	for (waiting = sent; waiting > 0;)
		must("dispatch", ht_dispatch(loop, -1) > 0 ? 0 : HT_SYSTEM, 0);
	printf("late %d\n", sent);
	fflush(stdout);
	/* The service begins; it can answer this only when it knows what was given up. */
	struct want fine = {"withdraw", 0, ""};
	struct bank_withdraw_call some = {7, 30};
	waiting = 1;
	while ((err = bank_send_withdraw_call(c, &some, withdrawn, &fine)) == HT_FULL)
		must("dispatch", ht_dispatch(loop, 20000) > 0 ? 0 : HT_SYSTEM, 0);
	must("withdraw", err, 0);
	while (waiting > 0)
		must("dispatch", ht_dispatch(loop, 20000) > 0 && !ended ? 0 : HT_SYSTEM, 0);
	bank_close(c);
	ht_loop_free(loop);
	puts("answered");
	return 0;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	return 1;
}

int main(int argc, char **argv)
{
	const struct bank_handlers on = {
		.open_call = on_open, .withdraw_call = on_withdraw, .statement_call = on_statement, .receipt_call = on_receipt,
		.watch_call = on_watch, .given_up = on_given_up, .closed = on_closed,
	};
	struct ht_loop *loop = ht_loop_new();
	int err;
	if (argc < 3 || loop == NULL)
		return 2;
	if (strcmp(argv[1], "serve") == 0) {
		if ((err = bank_export(loop, argv[2], &on, NULL, NULL)) != 0)
			return fail(argv[2], err);
		puts("ready");
		fflush(stdout);
		while (!ended) {
			if ((err = ht_dispatch(loop, -1)) < 0)
				return fail("dispatch", err);
		}
		ht_loop_free(loop);
		printf("ended %s\n", ht_strerror(reason));
		return 0;
	}
	/* The text of a declared error is what the service says. */
	struct want all[] = {
		{"open", 0, ""}, {"open without owner", HT_CODE_FAILED, "an account wants an owner"}, {"withdraw", 0, ""},
		{"of no account", BANK_ERROR_NO_ACCOUNT, argc > 3 ? argv[3] : ""}, {"statement", 0, ""},
		{"a long statement", HT_CODE_TOO_LARGE, argc > 4 ? argv[4] : "message too large"},
	};
	struct bank_conn *c;
	if ((err = bank_connect(loop, argv[2], &on, NULL, &c)) != 0)
		return fail(argv[2], err);
	if (strcmp(argv[1], "late") == 0)
		return flood(c, loop);
	for (int round = 0; round < 200; round++) {
		struct bank_open_call with = {ht_text("me")}, without = {ht_text("")};
		struct bank_withdraw_call some = {7, 30}, none = {0, 30};
		struct bank_statement_call s = {7}, longer = {2001};
		waiting = 6;
		must("open", bank_send_open_call(c, &with, opened, &all[0]), 0);
		must("open", bank_send_open_call(c, &without, opened, &all[1]), 0);
		must("withdraw", bank_send_withdraw_call(c, &some, withdrawn, &all[2]), 0);
		must("withdraw", bank_send_withdraw_call(c, &none, withdrawn, &all[3]), 0);
		must("statement", bank_send_statement_call(c, &s, stated, &all[4]), 0);
		must("statement", bank_send_statement_call(c, &longer, stated, &all[5]), 0);
		while (waiting > 0)
			if ((err = ht_dispatch(loop, 20000)) <= 0 || ended)
				return fail("dispatch", ended ? reason : err);
	}
	give_up(c, loop);
	time_out(c, loop);
	struct bank_watch_call w = {1};
	must("watch", bank_send_watch_call(c, &w, watched, NULL), 0);
	bank_close(c);
	ht_loop_free(loop);
	puts("checked");
	return 0;
}
