/*
 * names_peer hold NAME VALUE    sets a name until standard input ends
 * names_peer get NAME           prints what it says
 * names_peer wait NAME MS       the same, once it exists
 * names_peer count CLASS
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ht_names.h"

int main(int argc, char **argv)
{
	static struct ht_name entry;
	struct ht_names *n;
	uint64_t count = 0;
	char c;
	int err;
	if (argc < 3)
		return 2;
	if ((err = ht_names_open(NULL, &n)) != 0) {
		printf("open: %s\n", ht_strerror(err));
		return 1;
	}
	if (strcmp(argv[1], "hold") == 0 && argc > 3) {
		if ((err = ht_names_set(n, argv[2], argv[3], strlen(argv[3]), 0)) == 0) {
			puts("set");
			fflush(stdout);
			while (read(0, &c, 1) > 0)
				continue;
			err = ht_names_delete(n, argv[2]);
		}
	} else if (strcmp(argv[1], "get") == 0) {
		err = ht_names_get(n, argv[2], &entry);
	} else if (strcmp(argv[1], "wait") == 0 && argc > 3) {
		err = ht_names_wait_for(n, argv[2], atoi(argv[3]), &entry);
		if (err == HT_NO_NAME) { /* the connection is as good as before */
			if (ht_names_get(n, argv[2], &entry) != HT_NO_NAME)
				return 1;
		}
	} else {
		err = ht_names_count(n, argv[2], &count);
		printf("%llu\n", (unsigned long long)count);
	}
	if (err != 0)
		printf("%s (%s)\n", ht_strerror(err), ht_detail());
	else if (entry.nvalue > 0)
		printf("%.*s by %u\n", (int)entry.nvalue, (const char *)entry.value, entry.pid);
	ht_names_close(n);
	return 0;
}
