// beside CPUS PROGRAM: runs a program while processors other than the first go and come, and
// prints how it ended. Fails if a processor does not go or come, or if the program takes minutes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int set(int cpu, const char *to)
{
	char path[80];

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
	int fd = open(path, O_WRONLY);
	int n = write(fd, to, 1);
	close(fd);
	return n == 1;
}

int main(int argc, char **argv)
{
	int cpus = atoi(argv[1]), status;
	time_t start = time(NULL);
	pid_t pid = fork();

	if (!pid) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	for (int i = 0; waitpid(pid, &status, WNOHANG) != pid; i++) {
		int cpu = 1 + i % (cpus - 1);
		int off = set(cpu, "0");
		usleep(500 + rand() % 3000);
		int on = set(cpu, "1");
		usleep(rand() % 3000);
		if (!off || !on || time(NULL) - start > 560) {
			printf("processor %d: off %d, on %d, after %ld s\n", cpu, off, on, (long)(time(NULL) - start));
			kill(pid, SIGKILL);
			return 1;
		}
	}
	printf("%s: status %#x\n", argv[2], status);
	return status != 0;
}
