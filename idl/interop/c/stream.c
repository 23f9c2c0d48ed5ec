/*
 * Numbered messages of all sizes in both directions, while the connection is bound again.
 *
 *   stream server NAME N EVERY
 *   stream client NAME N EVERY    ends when N messages went each way
 *   stream survive NAME 0 0       serves one connection after the other, whose ends are killed
 *
 * After EVERY messages received, on average, the program asks for a new bind; 0: never.
 * With STREAM_NAMES set, the name is looked up in the name service. Whoever survives answers each line of
 * its input with the number of connections it has, how many have ended, why the last did, and how
 * many descriptors it has and memory files it has mapped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ht_names.h"
#include "shapes.h"

static long wanted, every, sent, got, binds;
static int ended, reason, surviving;
static struct shapes_conn *conn;
static char text[6000];

static void die(const char *what, int err)
{
	fprintf(stderr, "%s after %ld sent, %ld received: %s (%s)\n", what, sent, got, ht_strerror(err), ht_detail());
	exit(1);
}

/* Message i: some come with a file, some are in bulk memory, some take a few slots. */
enum kind { FILE_OF, BULK, LONG, SHORT };

static enum kind kind_of(long i) { return i % 97 == 0 ? FILE_OF : i % 50 == 0 ? BULK : i % 7 == 3 ? LONG : SHORT; }

static size_t length_of(long i) { return kind_of(i) == BULK ? 700 + (size_t)i % 5000 : 20 + (size_t)i % 300; }

static int send_one(struct shapes_conn *c, long i)
{
	char number[24];
	int err, fd;
	snprintf(number, sizeof(number), "%ld", i);
	switch (kind_of(i)) {
	case FILE_OF: {
		if ((fd = memfd_create("number", MFD_CLOEXEC)) < 0 || write(fd, number, strlen(number)) < 0)
			return HT_SYSTEM;
		struct shapes_caps m = {.first = {.kind = HT_CAP_FILE, .fd = fd}};
		err = shapes_send_caps(c, &m);
		close(fd);
		return err;
	}
	case BULK:
	case LONG: {
		struct shapes_texts m = {.unbound = {text, (uint32_t)length_of(i)}, .heading = ht_text(number)};
		return shapes_send_texts(c, &m);
	}
	default: {
		struct shapes_ask m = {(uint64_t)i};
		return shapes_send_ask(c, &m);
	}
	}
}

static void received(struct shapes_conn *c, enum kind kind, long number)
{
	if (number != got || (kind != kind_of(got) && (kind != LONG || kind_of(got) != BULK))) {
		fprintf(stderr, "message %ld of kind %d instead of %ld\n", number, kind, got);
		exit(1);
	}
	got++;
	if (every > 0 && got < wanted && rand() % every == 0 && ht_rebind(shapes_raw(c), "") == 0)
		binds++;
}

static void on_ask(struct shapes_conn *c, const struct shapes_ask *m) { received(c, SHORT, (long)m->type); }

static void on_texts(struct shapes_conn *c, const struct shapes_texts *m)
{
	if (m->unbound.len != length_of(got) || memcmp(m->unbound.s, text, m->unbound.len) != 0) {
		fprintf(stderr, "text of %u bytes instead of %zu\n", m->unbound.len, length_of(got));
		exit(1);
	}
	received(c, LONG, atol(m->heading.s));
}

static void on_caps(struct shapes_conn *c, const struct shapes_caps *m)
{
	char number[24] = "";
	if (m->first.kind != HT_CAP_FILE || pread(m->first.fd, number, sizeof(number) - 1, 0) <= 0)
		die("no file", HT_BAD_CAP);
	close(m->first.fd);
	received(c, FILE_OF, atol(number));
}

static void on_closed(struct shapes_conn *c, int why)
{
	ended++;
	reason = why;
	if (c == conn)
		conn = NULL;
}

static void more(struct shapes_conn *c)
{
	for (int i = 0; i < 200 && sent < wanted; i++) {
		int err = send_one(c, sent);
		if (err == HT_FULL || (err == HT_PEER_GONE && surviving))
			return;
		if (err != 0)
			die("sending", err);
		sent++;
	}
}

static void accepted(struct shapes_conn *c)
{
	conn = c;
	sent = got = 0;
}

static long lines_with(const char *path, const char *word)
{
	char line[600];
	long n = 0;
	FILE *f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, word) != NULL;
	if (f != NULL)
		fclose(f);
	return n;
}

static long descriptors(void)
{
	long n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

/* Answers who asks how it is; false at the end of the input. */
static bool asked(struct ht_loop *loop)
{
	struct pollfd p = {0, POLLIN, 0};
	char b[64];
	if (poll(&p, 1, 0) <= 0)
		return true;
	ssize_t n = read(0, b, sizeof(b));
	for (ssize_t i = 0; i < n; i++) {
		if (b[i] == '\n')
			printf("%zu connections, %d ended, the last: %s; %ld descriptors, %ld memory files\n", ht_loop_conns(loop), ended,
				ht_strerror(reason), descriptors(), lines_with("/proc/self/maps", "hardtack-msg"));
	}
	fflush(stdout);
	return n > 0;
}

int main(int argc, char **argv)
{
	static const struct shapes_handlers on = {.ask = on_ask, .texts = on_texts, .caps = on_caps, .room = more, .closed = on_closed};
	struct ht_loop *loop = ht_loop_new();
	struct ht_names *names = NULL;
	int err;
	if (argc < 5 || loop == NULL)
		return 2;
	memset(text, 'x', sizeof(text));
	wanted = atol(argv[3]);
	every = atol(argv[4]);
	srand((unsigned)getpid());
	if (getenv("STREAM_NAMES") != NULL) {
		if ((err = ht_names_open(NULL, &names)) != 0)
			die("name service", err);
		ht_loop_names(loop, names);
	}
	surviving = strcmp(argv[1], "survive") == 0;
	if (surviving)
		wanted = LONG_MAX;
	if (surviving || strcmp(argv[1], "server") == 0) {
		if ((err = shapes_export(loop, argv[2], &on, NULL, accepted)) != 0)
			die("export", err);
		puts("ready");
		fflush(stdout);
	} else if ((err = shapes_connect(loop, argv[2], &on, NULL, &conn)) != 0) {
		die("connect", err);
	}
	while (surviving && asked(loop)) {
		if (conn != NULL)
			more(conn);
		if ((err = ht_dispatch(loop, 1)) < 0)
			die("dispatch", err);
	}
	while (!surviving && !ended && (got < wanted || sent < wanted || argv[1][0] == 's')) {
		if (conn != NULL)
			more(conn);
		/* Who has something to send does not wait. */
		if ((err = ht_dispatch(loop, conn != NULL && sent < wanted ? 1 : 20000)) < 0)
			die("dispatch", err);
	}
	if (!surviving && ended && (got < wanted || sent < wanted || reason != HT_PEER_CLOSED))
		die("ended", reason);
	ht_loop_free(loop);
	if (names != NULL)
		ht_names_close(names);
	printf("%ld and %ld messages\n", sent, got);
	fprintf(stderr, "%ld binds\n", binds);
	return 0;
}
