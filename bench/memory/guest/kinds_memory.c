// Offenders that use address space, pages and System V objects.
#include "memory.h"
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { chunk = 1 << 20 };

// Mappings that cannot become one.
static void mappings(void)
{
	for (int i = 0; mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED; i++)
		;
}

// One page in each 2 MiB: a page table for each.
static void tables(void)
{
	size_t size = 1UL << 40;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	for (size_t at = 0; at < size; at += 2 << 20)
		*(volatile char *)(p + at);
}

// Reads 16 TiB, which have page tables and no pages of their own.
static void readall(void)
{
	size_t size = 16UL << 40;
	char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	for (size_t at = 0; at < size; at += 4096)
		*(volatile char *)(p + at);
}

static void touch(int flags)
{
	for (char *p; (p = mmap(NULL, chunk, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) != MAP_FAILED;)
		for (int i = 0; i < chunk; i += 4096)
			p[i] = 1;
}

static void anonymous(void) { touch(MAP_PRIVATE); }
static void sharedpages(void) { touch(MAP_SHARED); }

static void memfds(void)
{
	char *buf = emptyPages(chunk);
	for (int fd; (fd = memfd_create("m", 0)) >= 0;)
		for (int i = 0; i < 64 && write(fd, buf, chunk) > 0; i++)
			;
}

static void shm(void)
{
	for (int id; (id = shmget(IPC_PRIVATE, 4 * chunk, IPC_CREAT | 0600)) >= 0;) {
		char *p = shmat(id, NULL, 0);
		if (p == (char *)-1)
			return;
		for (int i = 0; i < 4 * chunk; i += 4096)
			p[i] = 1;
		shmdt(p);
	}
}

static void msgs(void)
{
	struct {
		long type;
		char text[1024];
	} m = {.type = 1};
	for (int id; (id = msgget(IPC_PRIVATE, IPC_CREAT | 0600)) >= 0;)
		while (msgsnd(id, &m, sizeof m.text, IPC_NOWAIT) == 0)
			;
}

static void sems(void)
{
	while (semget(IPC_PRIVATE, 250, IPC_CREAT | 0600) >= 0)
		;
}

const struct kind memoryKinds[] = {
	{"mappings", mappings},
	{"tables", tables},
	{"readall", readall},
	{"anonymous", anonymous},
	{"shared", sharedpages},
	{"memfds", memfds},
	{"sysvshm", shm},
	{"sysvmsg", msgs},
	{"sysvsem", sems},
	{NULL, NULL},
};
