/*
 * The name service, for C programs: who has which name, and what is said there.
 *
 * The service is the one that Go programs run themselves and `hardtack names
 * serve` runs; a C program does not run it. It is looked for at $HARDTACK_NAMES,
 * else at /run/hardtack/names, else in $XDG_RUNTIME_DIR/hardtack or the user's
 * directory among the temporary ones. What this program sets is gone when the
 * connection is closed or the program ends, and when the service itself ends
 * before it: then calls return HT_PEER_GONE, and the program may open it again.
 *
 * Calls wait for their answer. A connection belongs to one thread at a time.
 */
#ifndef HT_NAMES_H
#define HT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "ht_msg.h"

/* Bytes at most. */
enum { HT_NAMES_NAME = 255, HT_NAMES_VALUE = 4096 };

/* Flags of ht_names_set. */
enum {
	HT_NAMES_REPLACE = 1, /* it may be set already, by this user */
	HT_NAMES_SEQUENCE = 2 /* a point and a number are appended, which make the name unique */
};

struct ht_name {
	char name[HT_NAMES_NAME + 1];
	uint8_t value[HT_NAMES_VALUE];
	size_t nvalue;
	uint64_t revision;
	uint32_t uid, pid; /* of who set it */
};

struct ht_names;

/* Connects to the service; path is NULL for where it usually is. HT_NO_NAME: none runs. */
int ht_names_open(const char *path, struct ht_names **n);
void ht_names_close(struct ht_names *n);

/* Sets name to so many bytes of value. HT_TAKEN: somebody has it; HT_REFUSED: it is another user's. */
int ht_names_set(struct ht_names *n, const char *name, const void *value, size_t nvalue, unsigned flags);

/* Finds name. HT_NO_NAME: nobody has it. */
int ht_names_get(struct ht_names *n, const char *name, struct ht_name *entry);

/* Waits for name, so many ms, or for ever if that is negative. HT_NO_NAME: it did not come. */
int ht_names_wait_for(struct ht_names *n, const char *name, int timeout, struct ht_name *entry);

/* Counts the entries of a class: those whose names are that, or that with a point and a number behind it. */
int ht_names_count(struct ht_names *n, const char *class, uint64_t *count);

/* Gives up a name. */
int ht_names_delete(struct ht_names *n, const char *name);

#endif
