// What the parts of the program share.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	maxRounds = 1 << 18,
	maxFailures = 16,
};

// failure counts one kind of failed call of the well-behaved program.
struct failure {
	char call[16];
	int error;
	int count;
};

// slow is a step of a round: what it does, how long it took and when it began.
struct slow {
	char step[16];
	uint32_t micros, round;
	int64_t at;
};

// shared is what processes tell process 1; its pages are there from the beginning.
struct shared {
	_Atomic int rounds;
	_Atomic int stop;
	uint32_t micros[maxRounds]; // the time of each round
	_Atomic int64_t running;    // when the round under way began; 0 for none
	struct slow slow;           // the longest step of the worst round
	struct failure failures[maxFailures];
	_Atomic int kills;         // of the offenders' processes
	_Atomic int64_t firstKill; // microseconds of the monotonic clock
};

extern struct shared *shared;

// kind is a way to use up memory. take returns when it gets no more.
struct kind {
	const char *name;
	void (*take)(void);
};

extern const struct kind memoryKinds[], fileKinds[], socketKinds[], descriptorKinds[], processKinds[], manyKinds[], nameKinds[], callKinds[], moreKinds[], outsideKinds[];

int64_t now(void); // microseconds of the monotonic clock
void nap(int ms);
void become(int uid);
void behave(int number); // the well-behaved program; it does not return
void offend(const struct kind *k);
void ended(int st);
void *emptyPages(size_t size);
void moreDescriptors(void);
void sink(void); // process 1 of a second kernel: it takes channels and reads nothing
