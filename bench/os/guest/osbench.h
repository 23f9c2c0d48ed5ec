// Shared declarations of osbench, the program that measures one operating
// system from user mode. It is C on purpose: it is the reference, and no
// language runtime may stand between the loop and the system call.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

// A bench runs its operation n times and returns the units it took. Set-up
// belongs before the call of start() and tear-down after the call of stop().
typedef struct {
	const char *name;
	void (*run)(long n);
	long batch; // operations one iteration stands for (pages, pipelined requests)
} bench;

void start(void);
void stop(void);
void took(uint64_t units); // instead of start and stop
uint64_t now(void);

_Noreturn void die(const char *what);
void pin(int cpu);
void check(long rc, const char *what);

extern const bench micro_benches[], ipc_benches[], server_benches[];

int tcp_listen(int port);
int tcp_connect(const char *addr, int port);
void wait_port(int port, int seconds);

int spin_main(int argc, char **argv);
int delay_main(int argc, char **argv);
int shares_main(int argc, char **argv);
int talk_main(int argc, char **argv);
int hack_main(int argc, char **argv);
int online_main(void);
int crowd_main(void);
int urgent_main(int argc, char **argv);
int load_main(int argc, char **argv);
