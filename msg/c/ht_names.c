/* The name service, asked from C. The packets are described in Go's msg/names/wire.go. */
#define _GNU_SOURCE
#include "ht_names.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ht_int.h"

enum { HEADER = 32, VERSION = 1, ANSWER_MS = 10000 };
enum { OP_HELLO = 1, OP_SET, OP_GET, OP_WAIT, OP_COUNT, OP_LIST, OP_WATCH, OP_DELETE, OP_CANCEL };
enum { OP_OK = 0x81, OP_ENTRY, OP_GONE, OP_ERROR };

struct ht_names {
	int sock;
	uint64_t id; /* of the last request */
	uint8_t packet[HEADER + HT_NAMES_NAME + HT_NAMES_VALUE];
};

static int failed(const uint8_t *p, size_t nvalue)
{
	/* By the codes of errors: invalid, not found, exists, denied, limit, lagged, protocol. */
	static const int reasons[] = {0, HT_BAD_NAME, HT_NO_NAME, HT_TAKEN, HT_REFUSED, HT_REFUSED, HT_REFUSED, HT_BAD_PEER};
	ht_note("%.*s", (int)nvalue, (const char *)p + HEADER + ht_get16(p + 10));
	return p[9] >= 1 && p[9] < sizeof(reasons) / sizeof(*reasons) ? reasons[p[9]] : HT_BAD_PEER;
}

static int ask(struct ht_names *n, int op, unsigned arg, const char *name, const void *value, size_t nvalue, uint64_t revision)
{
	uint8_t *p = n->packet;
	size_t len = strlen(name);
	if (len > HT_NAMES_NAME)
		return HT_BAD_NAME;
	if (nvalue > HT_NAMES_VALUE)
		return HT_TOO_LARGE;
	memset(p, 0, HEADER);
	ht_put64(p, ++n->id);
	p[8] = (uint8_t)op;
	p[9] = (uint8_t)arg;
	ht_put16(p + 10, (uint16_t)len);
	ht_put32(p + 12, (uint32_t)nvalue);
	ht_put64(p + 16, revision);
	memcpy(p + HEADER, name, len);
	if (nvalue > 0)
		memcpy(p + HEADER + len, value, nvalue);
	while (send(n->sock, p, HEADER + len + nvalue, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? HT_PEER_GONE : ht_fail_system("name service");
	}
	return 0;
}

/* Waits for the answer to the request with that number. until is in ns; HT_FULL: it has not come. */
static int answer(struct ht_names *n, uint64_t id, int64_t until, struct ht_name *entry)
{
	uint8_t *p = n->packet;
	for (;;) {
		struct pollfd at = {n->sock, POLLIN, 0};
		int64_t left = until == INT64_MAX ? -1 : (until - ht_now_ns() + 999999) / 1000000;
		int got = poll(&at, 1, until == INT64_MAX ? -1 : left < 0 ? 0 : left > 1000000000 ? 1000000000 : (int)left);
		if (got < 0 && errno != EINTR)
			return ht_fail_system("poll");
		if (got <= 0) {
			if (until != INT64_MAX && ht_now_ns() >= until)
				return HT_FULL;
			continue;
		}
		ssize_t len = recv(n->sock, p, sizeof(n->packet), MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (len <= 0)
			return HT_PEER_GONE;
		if (len < HEADER)
			return ht_wrong("name service: a short packet");
		size_t nname = ht_get16(p + 10), nvalue = ht_get32(p + 12);
		if (nname > HT_NAMES_NAME || nvalue > HT_NAMES_VALUE || HEADER + nname + nvalue != (size_t)len)
			return ht_wrong("name service: wrong lengths");
		if (p[8] == OP_ERROR && (ht_get64(p) == id || ht_get64(p) == 0))
			return failed(p, nvalue);
		if (ht_get64(p) != id) /* to a request that was given up */
			continue;
		if (p[8] != OP_OK && p[8] != OP_ENTRY)
			return ht_wrong("name service: no answer");
		if (entry == NULL)
			return 0;
		memcpy(entry->name, p + HEADER, nname);
		entry->name[nname] = 0;
		memcpy(entry->value, p + HEADER + nname, nvalue);
		entry->nvalue = nvalue;
		entry->revision = ht_get64(p + 16);
		entry->uid = ht_get32(p + 24);
		entry->pid = ht_get32(p + 28);
		return 0;
	}
}

static int call(struct ht_names *n, int op, unsigned arg, const char *name, const void *value, size_t nvalue, uint64_t revision,
	struct ht_name *entry)
{
	int err = ask(n, op, arg, name, value, nvalue, revision);
	if (err == 0)
		err = answer(n, n->id, ht_now_ns() + (int64_t)ANSWER_MS * 1000000, entry);
	return err == HT_FULL ? HT_PEER_GONE : err;
}

/* A name service can send a program anywhere, so it must be root's or the user's own. */
static int dial(const char *path, struct ht_names **out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sock, err = ht_dial(path, &sock);
	if (err != 0)
		return err;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || (cred.uid != 0 && cred.uid != geteuid())) {
		close(sock);
		ht_note("%s is served by another user", path);
		return HT_REFUSED;
	}
	struct ht_names *n = calloc(1, sizeof(*n));
	if (n == NULL) {
		close(sock);
		return HT_NO_MEMORY;
	}
	n->sock = sock;
	if ((err = call(n, OP_HELLO, 0, "", NULL, 0, VERSION, NULL)) != 0) {
		ht_names_close(n);
		return err;
	}
	*out = n;
	return 0;
}

int ht_names_open(const char *path, struct ht_names **n)
{
	static const char system_path[] = "/run/hardtack/names";
	char own[108];
	const char *e;
	if (path == NULL && ((path = getenv("HARDTACK_NAMES")) == NULL || *path == 0)) {
		int err = dial(system_path, n);
		if (err == 0 || geteuid() == 0)
			return err;
		int k;
		if ((e = getenv("XDG_RUNTIME_DIR")) != NULL && *e)
			k = snprintf(own, sizeof(own), "%s/hardtack/names", e);
		else
			k = snprintf(own, sizeof(own), "%s/hardtack-%u/names", (e = getenv("TMPDIR")) != NULL && *e ? e : "/tmp", (unsigned)geteuid());
		if (k < 0 || k >= (int)sizeof(own))
			return HT_BAD_NAME;
		path = own;
	}
	return dial(path, n);
}

void ht_names_close(struct ht_names *n)
{
	close(n->sock);
	free(n);
}

int ht_names_set(struct ht_names *n, const char *name, const void *value, size_t nvalue, unsigned flags)
{
	return call(n, OP_SET, flags & 3, name, value, nvalue, 0, NULL);
}

int ht_names_get(struct ht_names *n, const char *name, struct ht_name *entry)
{
	return call(n, OP_GET, 0, name, NULL, 0, 0, entry);
}

int ht_names_wait_for(struct ht_names *n, const char *name, int timeout, struct ht_name *entry)
{
	int err = ask(n, OP_WAIT, 0, name, NULL, 0, 0);
	uint64_t id = n->id;
	if (err == 0)
		err = answer(n, id, timeout < 0 ? INT64_MAX : ht_now_ns() + (int64_t)timeout * 1000000, entry);
	if (err != HT_FULL)
		return err;
	err = call(n, OP_CANCEL, 0, "", NULL, 0, id, NULL);
	return err == 0 ? HT_NO_NAME : err;
}

int ht_names_count(struct ht_names *n, const char *class, uint64_t *count)
{
	int err = call(n, OP_COUNT, 0, class, NULL, 0, 0, NULL);
	if (err == 0)
		*count = ht_get64(n->packet + 16);
	return err;
}

int ht_names_delete(struct ht_names *n, const char *name) { return call(n, OP_DELETE, 0, name, NULL, 0, 0, NULL); }
