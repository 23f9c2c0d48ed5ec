// protect is process 1 of a machine of which the test wants to know how it is
// protected: what the kernel says of it, and what a program sees.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sgdt(void)
{
	struct __attribute__((packed)) { uint16_t limit; uint64_t base; } t = {0};
	__asm__ volatile("sgdt %0" : "=m"(t));
	printf("base %llx, ", (unsigned long long)t.base);
}

static void sidt(void)
{
	struct __attribute__((packed)) { uint16_t limit; uint64_t base; } t = {0};
	__asm__ volatile("sidt %0" : "=m"(t));
	printf("base %llx, ", (unsigned long long)t.base);
}

static void read_text(void) { printf("%x, ", *(volatile int *)0xffffffff80201000); }
static void write_text(void) { *(volatile int *)0xffffffff80201000 = 0; }
static void call_text(void) { ((void (*)(void))0xffffffff80201000)(); }
static void read_direct(void) { printf("%x, ", *(volatile int *)0xffff800000100000); }
static void read_port(void) { uint8_t v; __asm__ volatile("inb $0x70, %0" : "=a"(v)); }
static void clear_if(void) { __asm__ volatile("cli"); }

static void try(const char *name, void (*what)(void))
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		what();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%s: signal %d\n", name, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void file(const char *name)
{
	char b[4096];
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, b, sizeof b);
	if (n < 0)
		printf("%s: %s\n", name, strerror(errno));
	else
		printf("%.*s", (int)n, b);
	close(fd);
}

static void random_numbers(void)
{
	uint64_t a[4], b[4];
	ssize_t n = getrandom(a, sizeof a, 0); // waits until they cannot be guessed
	printf("getrandom: %zd\n", n);
	int fd = open("/dev/random", O_RDWR | O_NONBLOCK);
	n = read(fd, b, sizeof b);
	printf("/dev/random: %zd, written %zd\n", n, write(fd, a, sizeof a));
	n = 0;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			n += a[i] == b[j];
	printf("equal: %zd\n", n);
	printf("numbers %016llx%016llx\n", (unsigned long long)a[0], (unsigned long long)a[1]);
}

// Addresses of ten runs of one program.
static void addresses(void)
{
	for (int i = 0; i < 10; i++) {
		fflush(stdout);
		if (fork() == 0) {
			execl("/protect", "protect", "address", NULL);
			_exit(1);
		}
		wait(NULL);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		int here;
		printf("address %p %p\n", (void *)&here, sbrk(0));
		return 0;
	}
	mount("proc", "/proc", "proc", 0, "");
	random_numbers();
	file("/proc/hardtack/protection");
	addresses();
	try("sgdt", sgdt);
	try("sidt", sidt);
	try("read text", read_text);
	try("write text", write_text);
	try("call text", call_text);
	try("read direct", read_direct);
	try("in", read_port);
	try("cli", clear_if);
	if (fork() == 0) {
		setuid(1000);
		file("/proc/hardtack/protection");
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	printf("protect: done\n");
	return 0;
}
