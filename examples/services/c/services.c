/*
 * services in C; see ../main.go.
 *
 *	cc -static -Imsg/c -Iidl/metrics/c -Iidl/klog/c -Iidl/process/c -o services examples/services/c/services.c \
 *		msg/c/ht_*.c idl/metrics/c/metrics.c idl/klog/c/klog.c idl/process/c/process.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "klog.h"
#include "metrics.h"
#include "process.h"

static struct ht_loop *loop;
static int result; /* of the call that was answered last; 1 while none is */

static int die(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, ht_strerror(err), ht_detail());
	exit(1);
}

/* Waits for the answer to a call; sent is what sending it returned. */
static void await(const char *what, int sent)
{
	for (result = 1; sent == 0 && result > 0;)
		sent = ht_dispatch(loop, -1) < 0 ? HT_SYSTEM : 0;
	if (sent != 0 || result != 0)
		die(what, sent != 0 ? sent : result);
}

static void on_frames(struct metrics_conn *c, const struct metrics_frames_reply *r, int reason, void *arg)
{
	(void)c, (void)arg;
	if ((result = reason) == 0)
		printf("frames: %" PRIu64 " of %" PRIu64 " are free\n", r->unused, r->total);
}

static void show_frames(void)
{
	static const struct metrics_handlers on;
	const struct metrics_frames_call all = {0};
	struct metrics_conn *c;
	int err = metrics_connect(loop, "kernel:metrics", &on, NULL, &c);
	if (err != 0)
		die("metrics", err);
	await("frames", metrics_send_frames_call(c, &all, on_frames, NULL));
	metrics_close(c);
}

static void on_bounds(struct klog_conn *c, const struct klog_bounds_reply *r, int reason, void *arg)
{
	(void)c;
	if ((result = reason) == 0)
		*(uint64_t *)arg = r->next;
}

static void on_line(struct klog_conn *c, const struct klog_read_reply *r, int reason, void *arg)
{
	(void)c, (void)arg;
	if ((result = reason) == 0)
		printf("log: [%" PRIu64 ".%06" PRIu64 "] %.*s\n", r->at / 1000000000, r->at / 1000 % 1000000, (int)r->text.len, r->text.s);
}

static void show_log(void)
{
	static const struct klog_handlers on;
	const struct klog_bounds_call bounds = {0};
	struct klog_read_call newest = {0};
	struct klog_conn *c;
	int err = klog_connect(loop, "kernel:log", &on, NULL, &c);
	if (err != 0)
		die("log", err);
	await("bounds", klog_send_bounds_call(c, &bounds, on_bounds, &newest.from));
	newest.from--;
	await("read", klog_send_read_call(c, &newest, on_line, NULL));
	klog_close(c);
}

static void on_start(struct process_conn *c, const struct process_start_reply *r, int reason, void *arg)
{
	(void)c;
	if ((result = reason) == 0)
		*(uint32_t *)arg = r->process;
}

static void on_output(struct process_conn *c, const struct process_output_reply *r, int reason, void *arg)
{
	(void)c;
	if ((result = reason) == 0) {
		fwrite(r->bytes, 1, r->count, stdout);
		*(uint32_t *)arg = r->count;
	}
}

static void on_end(struct process_conn *c, const struct process_wait_reply *r, int reason, void *arg)
{
	(void)c, (void)arg;
	if ((result = reason) == 0)
		printf("process: status %u, signal %u\n", r->status, r->signal);
}

/* Has the kernel start a program, and shows what it writes and how it ends. */
static void run_program(char **args)
{
	static const struct process_handlers on;
	char words[6000];
	struct process_start_call start = {.arguments = (const uint8_t *)words};
	struct process_conn *c;
	uint32_t pid, count = 1;
	for (; *args != NULL; args++) {
		size_t n = strlen(*args) + 1;
		if (n > sizeof(words) - start.size)
			die("arguments", HT_TOO_LARGE);
		memcpy(words + start.size, *args, n);
		start.size += (uint32_t)n;
	}
	int err = process_connect(loop, "kernel:process", &on, NULL, &c);
	if (err != 0)
		die("process", err);
	await("start", process_send_start_call(c, &start, on_start, &pid));
	while (count > 0)
		await("output", process_send_output_call(c, &(struct process_output_call){pid}, on_output, &count));
	await("wait", process_send_wait_call(c, &(struct process_wait_call){pid}, on_end, NULL));
	process_close(c);
}

int main(int argc, char **argv)
{
	if ((loop = ht_loop_new()) == NULL)
		die("loop", HT_NO_MEMORY);
	show_frames();
	show_log();
	if (argc > 1)
		run_program(argv + 1);
	ht_loop_free(loop);
	return 0;
}
