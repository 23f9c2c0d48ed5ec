// Calls that wait, for the table of signals.
#pragma once
#include "abi.h"

typedef struct {
	int fd[4];
	int word; // a futex, or an identifier
	pid_t other;
	struct timespec left; // what a call says was left
} wait_state;

typedef struct {
	const char *name;
	void (*set_up)(wait_state *w);       // in the parent, before
	long (*call)(wait_state *w);         // in the child: it waits
	void (*release)(wait_state *w);      // in the parent: what ends the wait
} blocking;

extern const blocking blocking_calls[];
