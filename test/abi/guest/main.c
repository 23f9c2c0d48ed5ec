// abi makes system calls from tables and prints what each gives: the same binary
// on Linux and on Hardtack, where it is process 1.
//
//	abi [TABLE [CALL [KIND]]]
//
// A line "@ TABLE CALL" begins a call. Each line below has the kinds of subject
// that answered the same, and behind the bar their results, CASE=RESULT.
#include "abi.h"
#include <sys/reboot.h>

void set_up(void);

static const table *const tables[] = {&files_table, &sockets_table, &options_table, &paths_table, &integers_table};

static int selected(const char *name, const char *only)
{
	return !only || !*only || !strcmp(name, only);
}

static int work_on(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
		if (selected(tables[i]->name, only))
			run_table(tables[i], argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
	if (selected("signals", only))
		signals_run(argc > 2 ? argv[2] : NULL);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	make_buffers();
	set_up();
	pid_t worker = fork();
	if (worker == 0) {
		setsid(); // without a terminal
		exit(work_on(argc, argv));
	}
	for (;;) {
		int status;
		pid_t pid = wait(&status);
		if (pid == worker || (pid < 0 && errno == ECHILD)) {
			printf("abi: %s\n", pid == worker && status == 0 ? "done" : "broken");
			break;
		}
	}
	printf("init: done\n"); // for bench/os
	fflush(stdout);
	if (getpid() == 1) {
		sync();
		reboot(RB_AUTOBOOT);
	}
	return 0;
}
