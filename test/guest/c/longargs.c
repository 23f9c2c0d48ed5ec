// Argument lists and environments of all lengths reach the next program unchanged.
#include "gt.h"

extern char **environ;

// A string of n bytes that depends on its number.
static char *text(int number, int n)
{
	char *s = malloc(n + 1);
	for (int i = 0; i < n; i++)
		s[i] = 'a' + (i * 7 + number) % 26;
	s[n] = 0;
	return s;
}

static char **list(const char *first, const char *second, int count, int length)
{
	char **v = calloc(count + 3, sizeof *v);
	int n = 0;
	if (first)
		v[n++] = (char *)first;
	if (second)
		v[n++] = (char *)second;
	for (int i = 0; i < count; i++)
		v[n++] = text(i, length < 0 ? i * 37 % 5000 : length);
	return v;
}

static unsigned sum(char **v)
{
	unsigned h = 1;
	for (; *v; v++) {
		for (char *s = *v; *s; s++)
			h = h * 31 + *s;
		h = h * 31 + 1;
	}
	return h;
}

static int count(char **v)
{
	int n = 0;
	while (v[n])
		n++;
	return n;
}

// The strings of arguments and environment follow each other.
static int adjacent(char **argv)
{
	char *at = argv[0];
	for (int i = 0; argv[i]; i++) {
		if (argv[i] != at)
			return 0;
		at += strlen(at) + 1;
	}
	for (int i = 0; environ[i]; i++) {
		if (environ[i] != at)
			return 0;
		at += strlen(at) + 1;
	}
	return 1;
}

// The program that is started says what it got.
__attribute__((constructor)) static void check(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "check") != 0)
		return;
	static char buf[1 << 16];
	long all = 0, n;
	int fd = open("/proc/self/cmdline", O_RDONLY);
	while ((n = read(fd, buf, sizeof buf)) > 0)
		all += n;
	say("got %d arguments %08x, environment of %d %08x, adjacent %d, cmdline %ld", argc, sum(argv + 1), count(environ),
	    sum(environ), adjacent(argv), all);
	_exit(0);
}

static char *none[] = {NULL};

static void start(const char *program, char **argv, char **envp)
{
	int st;
	say("%d arguments %08x, environment of %d %08x", count(argv), sum(argv + 1), count(envp), sum(envp));
	pid_t pid = fork();
	if (pid == 0) {
		execve(program, argv, envp);
		say("errno %d", errno);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	say("status %d", st);
}

// me is this program by a name of fixed length.
static const char *me(void)
{
	char self[4096] = {0};
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || symlink(self, "me") < 0)
		say("no name for the program: errno %d", errno);
	return "./me";
}

TEST(small, "short lists")
{
	const char *p = me();
	start(p, list("x", "check", 0, 0), none);
	start(p, list("x", "check", 100, 50), list(NULL, NULL, 100, 50));
	start(p, list("x", "check", 3, 10), list(NULL, NULL, 300, -1));
}

TEST(edges, "around the length at which pages take over")
{
	const char *p = me();
	for (int n = 300; n <= 450; n += 7)
		start(p, list("x", "check", n, 75), list(NULL, NULL, 3, 10));
	for (int n = 4090; n <= 4100; n++)
		start(p, list("x", "check", 8, n), list(NULL, NULL, 8, n));
}

TEST(lengths, "strings of all lengths")
{
	const char *p = me();
	start(p, list("x", "check", 100, 4095), list(NULL, NULL, 100, 4096));
	start(p, list("x", "check", 300, -1), list(NULL, NULL, 300, -1));
	start(p, list("x", "check", 15, 131071), none);
	start(p, list("x", "check", 0, 0), list(NULL, NULL, 15, 131071));
	start(p, list(text(3, 131071), "check", 3, 131071), list(NULL, NULL, 3, 131071));
	start(p, list("x", "check", 50000, 1), none);
	start(p, list("x", "check", 50000, 0), list(NULL, NULL, 10000, 0));
}

TEST(toomuch, "too much")
{
	const char *p = me();
	start(p, list("x", "check", 1, 131072), none);
	start(p, list(text(3, 131072), "check", 0, 0), none);
	start(p, list("x", "check", 17, 131071), none);
	start(p, list("x", "check", 8, 131071), list(NULL, NULL, 8, 131071));
	start(p, list("x", "check", 300000, 0), none);
}

TEST(fault, "a bad pointer late in the list")
{
	const char *p = me();
	char **v = list("x", "check", 100, 4000), *bad[] = {"x", "check", (char *)1, NULL};
	if (fork() == 0) {
		v[90] = (char *)1;
		execve(p, v, none);
		say("errno %d", errno);
		execve(p, bad, none);
		say("errno %d", errno);
		_exit(0);
	}
	wait(NULL);
}

TEST(script, "a script with a long list")
{
	me();
	int fd = open("script", O_CREAT | O_WRONLY | O_TRUNC, 0755);
	dprintf(fd, "#!./me check\n");
	close(fd);
	start("./script", list("x", "y", 200, 3000), list(NULL, NULL, 10, 3000));
	start("./script", list("x", "y", 2, 3), list(NULL, NULL, 10, 3000));
}
