/* The kernel's services from C: what is long, many at a time, given up, refused or cut off. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusters.h"
#include "klog.h"
#include "metrics.h"
#include "names.h"
#include "process.h"

static struct ht_loop *loop;
static int got;         /* answers */
static int reason_was;  /* of the last one, */
static uint32_t code;   /* and of its failure */
static int closed_with; /* why a connection ended */

static void wrong(const char *what, int v)
{
	printf("WRONG C client: %s: %d (%s, %s)\n", what, v, ht_strerror(v), ht_detail());
	exit(1);
}

static void must(const char *what, int err)
{
	if (err != 0)
		wrong(what, err);
}

static void await(int n)
{
	while (got < n) {
		int err = ht_dispatch(loop, -1);
		if (err < 0)
			wrong("dispatch", err);
	}
}

/* Each done of a call notes how it ended, and goes on with what is its. */
static void note(struct ht_conn *c, int reason)
{
	got++;
	reason_was = reason;
	code = reason == HT_CALL_FAILED ? ht_call_error(c)->code : 0;
}

static uint32_t pid;

static void on_start(struct process_conn *c, const struct process_start_reply *r, int reason, void *arg)
{
	(void)arg;
	note(process_raw(c), reason);
	pid = r != NULL ? r->process : 0;
}

static uint8_t text[64 << 10];
static uint32_t text_n, last_n;

static void on_output(struct process_conn *c, const struct process_output_reply *r, int reason, void *arg)
{
	(void)arg;
	note(process_raw(c), reason);
	last_n = r != NULL ? r->count : 0;
	if (r != NULL && text_n + last_n <= sizeof(text)) {
		memcpy(text + text_n, r->bytes, last_n);
		text_n += last_n;
	}
}

static uint8_t status, ended_by;

static void on_wait(struct process_conn *c, const struct process_wait_reply *r, int reason, void *arg)
{
	(void)arg;
	note(process_raw(c), reason);
	if (r != NULL) {
		status = r->status;
		ended_by = r->signal;
	}
}

static void on_signal(struct process_conn *c, const struct process_signal_reply *r, int reason, void *arg)
{
	(void)r, (void)arg;
	note(process_raw(c), reason);
}

static struct process_conn *new_process(void)
{
	static const struct process_handlers on;
	struct process_conn *c;
	must("connect to process", process_connect(loop, "kernel:process", &on, NULL, &c));
	return c;
}

static void start(struct process_conn *c, const char *args, size_t n)
{
	static uint8_t environment[6000] = "LONG=";
	memset(environment + 5, 'x', sizeof(environment) - 6);
	struct process_start_call m = {.size = (uint32_t)n, .arguments = (const uint8_t *)args, .bytes = sizeof(environment), .environment = environment};
	got = 0;
	must("start", process_send_start_call(c, &m, on_start, NULL));
	await(1);
}

/* A program with as many arguments as a message takes says them; another sleeps, and a wait is given up. */
static void programs(void)
{
	static char args[6000] = "/runner\0say\0";
	struct process_conn *c = new_process();
	memset(args + 12, 'y', sizeof(args) - 13);
	start(c, args, sizeof(args));
	must("start of say", reason_was);
	do {
		got = 0;
		must("output", process_send_output_call(c, &(struct process_output_call){pid}, on_output, NULL));
		await(1);
		must("output", reason_was);
	} while (last_n > 0);
	if (text_n != sizeof(args) - 13 + 3 || text[0] != 'y' || memcmp(text + text_n - 3, " 0\n", 3) != 0)
		wrong("text", (int)text_n);
	got = 0;
	must("wait", process_send_wait_call(c, &(struct process_wait_call){pid}, on_wait, NULL));
	await(1);
	if (reason_was != 0 || status != 7 || ended_by != 0)
		wrong("end", status);

	start(c, "/runner\0sleep", 14);
	must("start of sleep", reason_was);
	got = 0;
	must("wait", process_send_wait_call(c, &(struct process_wait_call){pid}, on_wait, NULL));
	ht_call_timeout(process_raw(c), ht_last_call(process_raw(c)), 1);
	await(1);
	if (reason_was != HT_CALL_FAILED || code != HT_CODE_TIMED_OUT)
		wrong("wait with a limit", reason_was);
	got = 0;
	must("wait", process_send_wait_call(c, &(struct process_wait_call){pid}, on_wait, NULL));
	must("cancel", ht_call_cancel(process_raw(c), ht_last_call(process_raw(c))));
	if (got != 1 || reason_was != HT_CALL_FAILED || code != HT_CODE_CANCELED)
		wrong("wait given up", reason_was);
	must("signal", process_send_signal_call(c, &(struct process_signal_call){pid, 9}, on_signal, NULL));
	must("wait", process_send_wait_call(c, &(struct process_wait_call){pid}, on_wait, NULL));
	await(3);
	if (reason_was != 0 || ended_by != 9)
		wrong("end by a signal", ended_by);
	start(c, "/none", 6);
	if (reason_was != HT_CALL_FAILED || code != PROCESS_ERROR_NO_PROGRAM)
		wrong("no program", reason_was);
	process_close(c);
}

static uint64_t execs;

static void on_calls(struct metrics_conn *c, const struct metrics_calls_reply *r, int reason, void *arg)
{
	note(metrics_raw(c), reason);
	*(uint32_t *)arg = r != NULL ? r->next : 0;
	for (uint32_t i = 0; r != NULL && i < r->count; i++) {
		if (r->counts[i].name.len == 6 && memcmp(r->counts[i].name.s, "execve", 6) == 0)
			execs += r->counts[i].calls;
	}
}

static void on_latencies(struct metrics_conn *c, const struct metrics_latencies_reply *r, int reason, void *arg)
{
	(void)arg;
	note(metrics_raw(c), reason);
	if (r == NULL || r->count == 0 || r->found[0].count == 0)
		wrong("latencies", reason);
}

/* The longest answers: tables, many of them asked for at once. */
static void figures(void)
{
	static const struct metrics_handlers on;
	struct metrics_conn *c;
	uint32_t place = 0;
	must("connect to metrics", metrics_connect(loop, "kernel:metrics", &on, NULL, &c));
	do {
		got = 0;
		must("calls", metrics_send_calls_call(c, &(struct metrics_calls_call){place}, on_calls, &place));
		await(1);
		must("calls", reason_was);
	} while (place != 0);
	if (execs == 0)
		wrong("no execve was counted", 0);
	got = 0;
	for (int i = 0; i < 25; i++)
		must("latencies", metrics_send_latencies_call(c, &(struct metrics_latencies_call){0}, on_latencies, NULL));
	await(25);
	metrics_close(c);
}

/* Many calls: what has no room is sent when there is some. */
enum { MANY = 3000 };
static int looks, rooms;

static void on_look(struct names_conn *c, const struct names_look_reply *r, int reason, void *arg)
{
	(void)r, (void)arg;
	note(names_raw(c), reason);
	if (reason != HT_CALL_FAILED || code != NAMES_ERROR_NO_NAME)
		wrong("look", reason);
}

static void more(struct names_conn *c)
{
	static const struct names_look_call m = {.name = {"a-name-that-is-longer-than-what-fits-into-one-slot-of-a-ring", 60}};
	int err = 0;
	while (looks < MANY && (err = names_send_look_call(c, &m, on_look, NULL)) == 0)
		looks++;
	if (err != 0 && err != HT_FULL)
		wrong("look", err);
	rooms += err == HT_FULL;
}

static void many(void)
{
	static const struct names_handlers on = {.room = more};
	struct names_conn *c;
	must("connect to names", names_connect(loop, "kernel:names", &on, NULL, &c));
	got = 0;
	more(c);
	await(MANY);
	if (rooms == 0)
		wrong("there was always room", looks);
	names_close(c);
}

static void on_publish(struct names_conn *c, const struct names_publish_reply *r, int reason, void *arg)
{
	(void)r, (void)arg;
	note(names_raw(c), reason);
}

static char found[65];

static void on_found(struct names_conn *c, const struct names_look_reply *r, int reason, void *arg)
{
	(void)arg;
	note(names_raw(c), reason);
	if (r != NULL && r->found.count == 1 && r->found.process == (uint32_t)getpid())
		snprintf(found, sizeof(found), "%.*s", (int)r->found.addresses[0].len, r->found.addresses[0].s);
}

/* A name, and its end with its connection. */
static void name(void)
{
	static const struct names_handlers on;
	struct names_conn *c;
	const names_address_t address = ht_text("unix:/tmp/x");
	struct names_publish_call m = {.name = ht_text("in-c"), .interface_name = ht_text("none"), .count = 1, .addresses = &address};
	must("connect to names", names_connect(loop, "kernel:names", &on, NULL, &c));
	got = 0;
	must("publish", names_send_publish_call(c, &m, on_publish, NULL));
	await(1); /* calls of a connection run beside each other */
	must("publish", reason_was);
	must("look", names_send_look_call(c, &(struct names_look_call){ht_text("in-c")}, on_found, NULL));
	await(2);
	if (reason_was != 0 || strcmp(found, "unix:/tmp/x") != 0)
		wrong("look", reason_was);
	names_close(c);
}

static void on_write(struct klog_conn *c, const struct klog_write_reply *r, int reason, void *arg)
{
	(void)r, (void)arg;
	note(klog_raw(c), reason);
}

static void on_health(struct clusters_conn *c, const struct clusters_health_reply *r, int reason, void *arg)
{
	(void)arg;
	note(clusters_raw(c), reason);
	if (r == NULL || r->memory == 0 || r->processors == 0)
		wrong("health", reason);
}

/* A line of the log is answered or refused (others have written some), a kernel is well. */
static void others(void)
{
	static const struct klog_handlers on;
	static const struct clusters_handlers on_too;
	struct klog_conn *k;
	struct clusters_conn *c;
	must("connect to log", klog_connect(loop, "kernel:log", &on, NULL, &k));
	must("connect to clusters", clusters_connect(loop, "kernel:clusters", &on_too, NULL, &c));
	got = 0;
	must("write", klog_send_write_call(k, &(struct klog_write_call){6, ht_text("from C")}, on_write, NULL));
	await(1);
	if (reason_was != 0 && (reason_was != HT_CALL_FAILED || code != KLOG_ERROR_BUSY))
		wrong("write", reason_was);
	must("health", clusters_send_health_call(c, &(struct clusters_health_call){0}, on_health, NULL));
	await(2);
	klog_close(k);
	clusters_close(c);
}

static void on_closed(struct names_conn *c, int reason)
{
	(void)c;
	closed_with = reason;
}

static void on_late(struct klog_conn *c, const struct klog_read_reply *r, int reason, void *arg)
{
	(void)c, (void)r, (void)arg;
	got++;
	reason_was = reason;
}

/* What is refused, what cannot be done, and what ends. */
static void refusals(void)
{
	static const struct klog_handlers wrong_one;
	static const struct names_handlers on = {.closed = on_closed};
	struct klog_conn *k;
	struct names_conn *c;
	struct ht_end *end;
	int err = klog_connect(loop, "kernel:names", &wrong_one, NULL, &k);
	if (err != HT_MISMATCH)
		wrong("another interface", err);
	if ((err = klog_connect(loop, "kernel:none", &wrong_one, NULL, &k)) != HT_NO_NAME)
		wrong("no service", err);
	if ((err = klog_connect(loop, "kernel:../null", &wrong_one, NULL, &k)) != HT_BAD_NAME)
		wrong("a path", err);
	must("connect to names", names_connect(loop, "kernel:names", &on, NULL, &c));
	if ((err = ht_detach(names_raw(c), &end)) != HT_BAD_CAP)
		wrong("an end that moves", err);
	if ((err = ht_rebind(names_raw(c), "")) != HT_BAD_NAME)
		wrong("a new bind", err);
	/* Nonsense in the device ends the connection. */
	for (int fd = 3; fd < 64; fd++) {
		char path[32], to[64] = "";
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, to, sizeof(to) - 1) > 0 && strstr(to, "kernel/names") != NULL && write(fd, "\377\377\377\377", 4) != 4)
			wrong("write", errno);
	}
	while (closed_with == 0)
		if ((err = ht_dispatch(loop, -1)) < 0)
			wrong("dispatch", err);
	if (closed_with != HT_PEER_GONE && closed_with != HT_PEER_CLOSED)
		wrong("the end", closed_with);
	/* A call that is never answered ends with its connection. */
	must("connect to log", klog_connect(loop, "kernel:log", &wrong_one, NULL, &k));
	got = 0;
	must("read", klog_send_read_call(k, &(struct klog_read_call){UINT64_MAX}, on_late, NULL));
	klog_close(k);
	ht_dispatch(loop, 0);
	if (got != 1 || reason_was != HT_CLOSED_HERE)
		wrong("a call at the end", reason_was);
	for (int i = 0; i < 500; i++) { /* more than there may be at a time */
		static const struct names_handlers none;
		if ((err = names_connect(loop, "kernel:names", &none, NULL, &c)) != 0) {
			i--;
			if (err != HT_SYSTEM)
				wrong("one of many", err);
		} else {
			names_close(c);
		}
		ht_dispatch(loop, 0);
	}
}

int main(void)
{
	if ((loop = ht_loop_new()) == NULL)
		wrong("loop", HT_NO_MEMORY);
	programs();
	figures();
	many();
	name();
	others();
	refusals();
	ht_loop_free(loop);
	puts("right");
	return 0;
}
