// watched runs a program while the calls of another process are traced: a child that sleeps.
//
//	watched PROGRAM [ARG...]
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	int fd = open("/proc/hardtack/trace", O_RDWR);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	char row[32];
	int n = snprintf(row, sizeof row, "pid %d\n", child);
	if (fd < 0 || child < 0 || write(fd, row, (size_t)n) != n) {
		fprintf(stderr, "watched: %s\n", strerror(errno));
		return 1;
	}
	execv(argv[1], argv + 1); // the trace stays open
	fprintf(stderr, "watched: %s: %s\n", argv[1], strerror(errno));
	return 1;
}
