// Leases (F_SETLEASE), their signals and who waits for them; F_NOTIFY of directories.
#include "gt.h"

#define MY_SIGNAL (SIGRTMIN + 3)

static const char *kind(int k)
{
	return k == F_RDLCK ? "read" : k == F_WRLCK ? "write" : k == F_UNLCK ? "none" : name_of(errno);
}

static void make(const char *name)
{
	close(must(open(name, O_CREAT | O_RDWR, 0644), name));
}

static long lease(int fd, int k) { return fcntl(fd, F_SETLEASE, k); }

// rests waits until a process sleeps or has ended.
static void rests(pid_t pid)
{
	char path[64], state[64] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	for (long long end = now_ms() + 10000; now_ms() < end; sleep_ms(2)) {
		int fd = open(path, O_RDONLY);
		ssize_t n = read(fd, state, sizeof state - 1);
		close(fd);
		if (n > 0 && strstr(state, ") Z"))
			return;
		if (n > 0 && strstr(state, ") S")) {
			settle(pid);
			return;
		}
	}
}

// taken prints the signals that have come, at most ms milliseconds later.
static void taken(const char *what, int ms)
{
	sigset_t set;
	siginfo_t info;
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	sigemptyset(&set), sigaddset(&set, SIGIO), sigaddset(&set, MY_SIGNAL);
	int sig = sigtimedwait(&set, &info, &ts);
	if (sig == SIGIO)
		say("%s: SIGIO, code %d", what, info.si_code);
	else if (sig == MY_SIGNAL)
		say("%s: the signal, code %d, band %lx, descriptor %d", what, info.si_code, (long)info.si_band, info.si_fd);
	else
		say("%s: no signal", what);
}

static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set), sigaddset(&set, SIGIO), sigaddset(&set, MY_SIGNAL), sigprocmask(SIG_BLOCK, &set, NULL);
}

TEST(given, "who gets a lease")
{
	make("f");
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};
	static const char *names[] = {"read", "write", "both"};
	for (int m = 0; m < 3; m++)
		for (int other = -1; other < 3; other++) {
			int fd = open("f", modes[m]), fd2 = other >= 0 ? open("f", modes[other]) : -1;
			long r = lease(fd, F_RDLCK), e = errno, is = fcntl(fd, F_GETLEASE);
			long w = lease(fd, F_WRLCK), e2 = errno, is2 = fcntl(fd, F_GETLEASE);
			say("opened to %s, beside %s: read %s (%s), write %s (%s)", names[m], other < 0 ? "none" : names[other], r ? name_of(e) : "ok", kind(is), w ? name_of(e2) : "ok", kind(is2));
			err("none", lease(fd, F_UNLCK)), say("%s", kind(fcntl(fd, F_GETLEASE)));
			close(fd), close(fd2);
		}
	int fd = open("f", O_RDONLY), dup_fd = dup(fd), other = open("f", O_RDONLY), path = open("f", O_PATH), dir = open(".", O_RDONLY), p[2], null = open("/dev/null", O_RDWR);
	must(pipe(p), "pipe");
	err("none of none", lease(fd, F_UNLCK)), err("bad kind", lease(fd, 7)), err("negative kind", lease(fd, -1));
	err("O_PATH", lease(path, F_RDLCK)), err("a directory", lease(dir, F_RDLCK)), err("a pipe", lease(p[0], F_RDLCK)), err("a device", lease(null, F_RDLCK)), err("nothing", lease(99, F_RDLCK));
	say("%s %s", kind(fcntl(p[0], F_GETLEASE)), kind(fcntl(dir, F_GETLEASE)));
	err("F_GETLEASE of O_PATH", fcntl(path, F_GETLEASE));
	err("two readers", lease(fd, F_RDLCK)), err("the other", lease(other, F_RDLCK)), err("to write", lease(fd, F_WRLCK));
	say("%s %s %s", kind(fcntl(fd, F_GETLEASE)), kind(fcntl(dup_fd, F_GETLEASE)), kind(fcntl(other, F_GETLEASE)));
	close(fd), say("after one close: %s", kind(fcntl(dup_fd, F_GETLEASE))), close(dup_fd), say("the other's: %s", kind(fcntl(other, F_GETLEASE)));
	IN_CHILD("child", say("in a child: %s", kind(fcntl(other, F_GETLEASE))); err("given up there", lease(other, F_UNLCK)));
	say("after that: %s", kind(fcntl(other, F_GETLEASE)));
	close(other), close(path);
	fd = open("f", O_RDONLY);
	IN_CHILD("not the owner", setresuid(1000, 1000, 1000); err("read", lease(fd, F_RDLCK)); err("none", lease(fd, F_UNLCK)); say("%s", kind(fcntl(fd, F_GETLEASE))));
	chown("f", 1000, 1000);
	IN_CHILD("the owner", setresuid(1000, 1000, 1000); err("read", lease(fd, F_RDLCK)); err("none", lease(fd, F_UNLCK)));
	err("write, while nobody else has it", lease(fd, F_WRLCK));
	num("owner", fcntl(fd, F_GETOWN) == getpid());
	lease(fd, F_UNLCK), num("owner later", fcntl(fd, F_GETOWN));
}

// What a second process does while a lease is held, and what comes of it.
TEST(broken, "what breaks a lease")
{
	static const struct {
		const char *what;
		int kind, flags;
	} opens[] = {{"open to read, read lease", F_RDLCK, O_RDONLY}, {"open to write, read lease", F_RDLCK, O_WRONLY}, {"open to read, write lease", F_WRLCK, O_RDONLY}, {"open to write, write lease", F_WRLCK, O_RDWR},
		{"O_PATH", F_WRLCK, O_PATH}, {"O_NONBLOCK to read", F_WRLCK, O_RDONLY | O_NONBLOCK}, {"O_NONBLOCK to write", F_RDLCK, O_WRONLY | O_NONBLOCK}, {"O_TRUNC", F_RDLCK, O_WRONLY | O_TRUNC}, {"O_CREAT", F_WRLCK, O_CREAT | O_RDONLY}};
	block_signals();
	make("f");
	for (int s = 0; s < 2; s++)
		for (int i = 0; i < (int)(sizeof opens / sizeof *opens); i++) {
			int fd = open("f", O_RDONLY);
			if (s)
				fcntl(fd, F_SETSIG, MY_SIGNAL);
			must(lease(fd, opens[i].kind), "lease");
			pid_t p = FORK(exit(open("f", opens[i].flags, 0600) < 0 ? errno : 0));
			rests(p);
			taken(opens[i].what, 50);
			say("now %s", kind(fcntl(fd, F_GETLEASE)));
			err("lowered", lease(fd, F_RDLCK));
			rests(p), say("now %s", kind(fcntl(fd, F_GETLEASE)));
			err("given up", lease(fd, F_UNLCK));
			status("the opener", wait_for(p));
			close(fd);
		}
	int fd = open("f", O_RDONLY);
	struct {
		const char *what;
		void (*run)(void);
	} calls[] = {{"truncate", ({ void run(void) { must(truncate("f", 0), "truncate"); } run; })}, {"stat", ({ void run(void) { struct stat st; must(stat("f", &st), "stat"); } run; })}, {"chmod", ({ void run(void) { must(chmod("f", 0600), "chmod"); } run; })},
		{"rename", ({ void run(void) { must(rename("f", "g"), "rename"); rename("g", "f"); } run; })}, {"link", ({ void run(void) { must(link("f", "h"), "link"); unlink("h"); } run; })}, {"exec", ({ void run(void) { chmod("f", 0755); execl("./f", "f", NULL); exit(errno); } run; })}};
	for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
		err("lease", lease(fd, F_WRLCK));
		pid_t p = FORK(calls[i].run());
		rests(p), taken(calls[i].what, 30), say("now %s", kind(fcntl(fd, F_GETLEASE)));
		lease(fd, F_UNLCK), status(calls[i].what, wait_for(p));
	}
	err("lease", lease(fd, F_WRLCK));
	pid_t p = FORK(open("f", O_RDONLY); say("opened"));
	rests(p), taken("killed meanwhile", 50), kill(p, SIGKILL), status("killed", wait_for(p));
	say("still to be %s", kind(fcntl(fd, F_GETLEASE)));
	p = FORK(close(fd); exit(open("f", O_WRONLY) < 0 ? errno : 0));
	rests(p), taken("a second one", 50), say("now %s", kind(fcntl(fd, F_GETLEASE)));
	err("lowered while a writer waits", lease(fd, F_RDLCK)), say("now %s", kind(fcntl(fd, F_GETLEASE)));
	close(fd), status("closed", wait_for(p));
}

TEST(notified, "F_NOTIFY")
{
	block_signals();
	mkdir("d", 0755), mkdir("d/sub", 0755), mkdir("e", 0755), make("d/f");
	static const struct {
		const char *what;
		int mask;
	} masks[] = {{"access", DN_ACCESS}, {"modify", DN_MODIFY}, {"create", DN_CREATE}, {"delete", DN_DELETE}, {"rename", DN_RENAME}, {"attrib", DN_ATTRIB}};
	for (int m = 0; m < 6; m++) {
		int d = open("d", O_RDONLY), f = open("d/f", O_RDWR);
		char c;
		struct stat st;
		fcntl(d, F_SETSIG, MY_SIGNAL);
		say("%s", masks[m].what);
		err("F_NOTIFY", fcntl(d, F_NOTIFY, masks[m].mask | DN_MULTISHOT));
#define SEE(what, ...) (void)(__VA_ARGS__), taken(what, 25)
		SEE("write", write(f, "x", 1)); SEE("read", pread(f, &c, 1, 0)); SEE("truncate", truncate("d/f", 5)); SEE("chmod", chmod("d/f", 0600)); SEE("create", close(creat("d/n", 0600))); SEE("rename", rename("d/n", "d/m"));
		SEE("move away", rename("d/m", "e/m")); SEE("move here", rename("e/m", "d/m")); SEE("unlink", unlink("d/m")); SEE("mkdir", mkdir("d/k", 0700)); SEE("rmdir", rmdir("d/k")); SEE("stat", stat("d/f", &st)); SEE("open", close(open("d/f", O_RDONLY)));
		SEE("chmod of the directory", chmod("d", 0711)); SEE("in a directory below", close(creat("d/sub/x", 0600))); SEE("link", link("d/f", "d/l")); SEE("unlink of it", unlink("d/l"));
		unlink("d/sub/x"), close(f), close(d);
		taken("late", 5);
	}
	int d = open("d", O_RDONLY), f = open("d/f", O_RDWR);
	err("a file", fcntl(f, F_NOTIFY, DN_ACCESS)), err("nothing of a file", fcntl(f, F_NOTIFY, 0)), err("bad descriptor", fcntl(99, F_NOTIFY, DN_ACCESS));
	err("once", fcntl(d, F_NOTIFY, DN_MODIFY)), num("owner", fcntl(d, F_GETOWN) == getpid());
	SEE("first", write(f, "x", 1)); SEE("second", write(f, "x", 1));
	err("modify", fcntl(d, F_NOTIFY, DN_MODIFY | DN_MULTISHOT)), err("and create", fcntl(d, F_NOTIFY, DN_CREATE));
	SEE("write", write(f, "x", 1)); SEE("create", close(creat("d/n", 0600)));
	err("no more", fcntl(d, F_NOTIFY, 0));
	SEE("write", write(f, "x", 1));
	int d2 = dup(d);
	err("again", fcntl(d, F_NOTIFY, DN_MODIFY | DN_MULTISHOT)), close(d2);
	SEE("after the close of another descriptor", write(f, "x", 1));
}
