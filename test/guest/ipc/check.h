// What the tests of Hardtack's own calls share. Linux cannot be asked what is right
// here, so each test says itself what it expects.
#pragma once
#include "../c/gt.h" // first: it asks for GNU's extensions

#include "../../../msg/c/ht_ipc.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// is ends the process as failed unless a call gives what it must.
#define is(expression, want)                                                                        \
	({                                                                                          \
		long is_got = (long)(expression), is_want = (long)(want);                           \
		if (is_got != is_want) {                                                            \
			say("line %d: " #expression ": %ld, not %ld", __LINE__, is_got, is_want);   \
			_exit(97);                                                                  \
		}                                                                                   \
		is_got;                                                                             \
	})

// good ends the process as failed if a call fails, and gives its result.
#define good(expression)                                                                     \
	({                                                                                   \
		long good_got = (long)(expression);                                          \
		if (good_got < 0) {                                                          \
			say("line %d: " #expression ": %ld", __LINE__, good_got);            \
			_exit(97);                                                           \
		}                                                                            \
		good_got;                                                                    \
	})

#define NOW HT_IPC_NOW
#define FOREVER HT_IPC_FOREVER

// in gives the deadline some milliseconds from now.
__attribute__((unused)) static uint64_t in(long ms)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec + (uint64_t)ms * 1000000;
}

// ended waits for children and fails if one did not exit with 0.
#define ended(pid) is(wait_for(pid), 0)

// killed waits for a child that was killed.
__attribute__((unused)) static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	is(wait_for(pid), SIGKILL);
}

typedef struct {
	int recv, send;
} endpoint;

__attribute__((unused)) static endpoint new_endpoint(void)
{
	int fds[2];
	good(ht_ipc_endpoint(fds, 0));
	return (endpoint){fds[0], fds[1]};
}

__attribute__((unused)) static struct ht_message word(uint64_t v) { return (struct ht_message){.words = {v}, .info = ht_ipc_info(8, 0)}; }

// content fills a message of n bytes that follow from seed, right tells whether it is one.
__attribute__((unused)) static uint8_t *bytes_of(struct ht_message *m, unsigned n)
{
	return n > HT_IPC_SHORT ? m->buffer->data : (uint8_t *)m->words;
}

__attribute__((unused)) static void content(struct ht_message *m, unsigned n, unsigned seed)
{
	uint8_t *p = bytes_of(m, n);
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
	m->info = ht_ipc_info(n, 0);
}

__attribute__((unused)) static void right(struct ht_message *m, unsigned n, unsigned seed)
{
	is(m->info, ht_ipc_info(n, 0));
	uint8_t *p = bytes_of(m, n);
	for (unsigned i = 0; i < n; i++)
		is(p[i], (uint8_t)(seed * 31 + i * 7 + (i >> 8)));
}
