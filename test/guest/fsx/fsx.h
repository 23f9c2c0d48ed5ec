// fsx does random operations on files and keeps an exact model of their bytes and
// sizes. See main.c for the options.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST = 256 * 1024, // bytes of a file
	CHUNK = 80 * 1024, // bytes of an operation
	PAGE = 4096,
	SECTOR = 512,
	FILES = 3,    // of a worker
	WORKERS = 16, // at most
	REGION = 48 * 1024,
	LOGGED = 32, // last operations of a file that are kept
};

// model is what a file must hold. Models are in memory that all processes share, so
// that they outlive the processes of a round.
typedef struct {
	char name[32];
	long size;
	unsigned number; // operations so far
	int again;       // how often it has been created
	struct logged {
		const char *what;
		unsigned number;
		long off, n, from, size, result;
		int error;
	} log[LOGGED];
	unsigned char data[MOST + CHUNK]; // zeros from size on
} model;

// file is a worker's open file.
typedef struct {
	model *m;
	int fd, direct, append; // direct is -1 where there is no O_DIRECT
	unsigned char *map;     // MOST bytes, shared
	int anonymous;          // it has lost its name
} file;

typedef struct {
	uint64_t rng;
	int number;
	file own[FILES];
	file region, locked, chaos;
	unsigned char *a, *b; // CHUNK bytes each, aligned
	int pipe[2];
	file *at; // what the present operation is about
} worker;

struct options {
	const char *dir, *device, *type, *data, *control, *notes, *without, *below;
	uint64_t seed;
	long ops, seconds;
	int rounds, processes, threads, full, lenient;
};
extern struct options opt;

struct shared {
	atomic_int failed;
	atomic_ulong done; // operations
	atomic_ulong steps; // of all, while they work
	const char *volatile now[WORKERS]; // what each is about
	atomic_ulong refused;
	model files[WORKERS * FILES + 3];
};
extern struct shared *shared;

// util.c
unsigned long rnd(worker *w, unsigned long n);
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void wrong(worker *w, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void fill(unsigned char *p, long off, long n, unsigned tag);
void compare(worker *w, file *f, const unsigned char *got, long off, long n, const char *what);
long now_ms(void);
void drop_caches(void);
int guarded(void (*run)(void *), void *arg); // 0, or 1 after SIGBUS

// file.c
void open_file(worker *w, file *f, int flags);
void close_file(file *f);
void load(worker *w, file *f, const unsigned char *map, long off, long n, const char *what);
void check_file(worker *w, file *f);

// ops.c
void step(worker *w, file *f);
void step_region(worker *w, file *f);
void step_locked(worker *w, file *f);
void step_chaos(worker *w, file *f); // chaos.c

// notes.c: what is told to the host of a disk that will lose its power
enum { NOTE_WRITE = 1, NOTE_ZERO, NOTE_SIZE, NOTE_COPY, NOTE_SYNC, NOTE_SYNCED, NOTE_RENAME };
void note(worker *w, file *f, int kind, long off, long n, unsigned tag, file *from, long from_off);

// faults.c
int faults_main(void);
