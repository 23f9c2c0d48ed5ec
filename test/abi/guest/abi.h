// What the parts of abi share. Cases are not listed anywhere: a table's function
// names them one after another with CASE, and the runner calls it once for each.
#pragma once
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What a case works on: a descriptor, the other end where it has one, and more.
typedef struct {
	int fd, peer, more;
	int nofile; // the descriptor is no open file
} subject;

typedef struct {
	const char *name;
	void (*make)(subject *s);
} kind;

typedef struct {
	const char *name;
	void (*run)(subject *s);
	int users; // user 1000 makes the call too
	int each;  // a process for each kind: the call changes its caller
} call;

// A table is each call on each kind.
typedef struct {
	const char *name;
	const kind *kinds;
	const call *calls;
	void (*before)(subject *s);
	void (*after)(subject *s); // tells what else has changed
} table;

extern const table files_table, paths_table, integers_table, options_table, sockets_table;
void make_buffers(void);
void run_table(const table *t, const char *only_call, const char *only_kind);
void signals_run(const char *only);

// In a table's function.
int want(const char *format, ...) __attribute__((format(printf, 1, 2)));
void want_prefix(const char *prefix); // of the names to come
long result(long rc);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_bytes(const void *p, long n);
void another(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define CASE(...) if (want(__VA_ARGS__))

// EACH has a result for each number, all on one subject, for calls that leave it as it is.
#define EACH(i, from, to, name)                                       \
	if (want(name "%d", from))                                    \
		for (int i = from; i <= (to); i++)                    \
			if (i != (from) && (another(name "%d", i), 0)) \
				;                                     \
			else

const char *error_name(int error);

// Each argument as a long, as the kernel gets it.
long invoke(long number, const long *arg);
#define S(call, ...) invoke(SYS_##call, (const long[6]){__VA_ARGS__})
#define P(pointer) ((long)(pointer))

#define BUFFER 65536
extern char *buffer;     // BUFFER bytes
extern char *bad;        // a page that is not there
extern int as_user;      // the case runs as this user
extern char work[];      // the directory of the cases, in memory
extern char work_disk[]; // the one on ext4
extern char work_ro[];   // one on a file system that is read-only

void must(long rc, const char *what); // a kind cannot be made
void as_root(void);
void as_case(void);
