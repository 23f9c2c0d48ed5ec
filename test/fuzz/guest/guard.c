// What user 1000 must not reach, and the people who notice if it does: a process of
// root's with a secret, one of another user's that works, files, a set-user-id program.
#include "fuzz.h"

#include <dirent.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>

volatile uint64_t *progress; // of the witness, and what went wrong for it
pid_t guard_pid, witness_pid;
static struct stat canary_before;
static const char canary[] = "what root wrote\n";

// The secret is nowhere in the program: it comes about in the guard.
static volatile uint64_t half = 0x5ec2e7f00dfeed01, other_half = 0xa4b1c3d5e7f90213;

int secret_in(const void *at, size_t len)
{
	const uint64_t *w = at;
	for (size_t i = 0; i < len / 8; i++)
		if ((w[i] ^ half) == other_half)
			return 1;
	return 0;
}

// keep_secret is the guard: it leaves the secret in memory, files, pipes and sockets
// that it frees, and keeps some.
static _Noreturn void keep_secret(void)
{
	static uint64_t kept[4 * page / 8];
	for (;;) {
		uint64_t *w = mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t i = 0; w != MAP_FAILED && i < 16 * page / 8; i++)
			w[i] = half ^ other_half;
		for (size_t i = 0; i < sizeof kept / 8; i++)
			kept[i] = half ^ other_half;
		int fd[2];
		if (w != MAP_FAILED) {
			int file = open("/root/secret", O_CREAT | O_RDWR | O_TRUNC, 0600);
			if (file >= 0 && write(file, w, 16 * page) < 0)
				progress[3]++;
			if (file >= 0)
				close(file);
			if (pipe2(fd, O_NONBLOCK) == 0) {
				if (write(fd[1], w, 4 * page) < 0)
					progress[3]++;
				close(fd[0]), close(fd[1]);
			}
			if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0) {
				if (write(fd[1], w, 2 * page) < 0)
					progress[3]++;
				close(fd[0]), close(fd[1]);
			}
			munmap(w, 16 * page);
		}
		progress[2]++;
		usleep(3000);
	}
}

static const char *const attempts[] = {"", "a pipe", "writing to a pipe", "opening its file", "writing to its file", "a child", "waiting for its child"};

// attempt notes what did not work for the witness, and why.
static int attempt(int what, int ok)
{
	if (!ok)
		progress[5] = what, progress[6] = errno;
	return ok;
}

// complaint is what went wrong for the witness last.
const char *complaint(void)
{
	static char text[96];
	if (progress[1] == 0 || progress[5] == 0 || progress[5] >= sizeof attempts / sizeof attempts[0])
		return "nothing failed";
	snprintf(text, sizeof text, "%s: %s", attempts[progress[5]], strerror((int)progress[6]));
	return text;
}

// bear_witness is a user's process that does ordinary work and counts it.
static _Noreturn void bear_witness(void)
{
	static uint64_t own[page / 8];
	char name[64], b[8];
	snprintf(name, sizeof name, "/tmp/witness/%d", getpid());
	for (size_t i = 0; i < page / 8; i++)
		own[i] = 0x1001 * i;
	for (;;) {
		int fd[2], status;
		int ok = attempt(1, pipe(fd) == 0);
		if (ok) {
			ok = attempt(2, write(fd[1], "hello", 6) == 6 && read(fd[0], b, 6) == 6 && memcmp(b, "hello", 6) == 0);
			close(fd[0]), close(fd[1]);
		}
		int file = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
		ok &= attempt(3, file >= 0) && attempt(4, write(file, "mine", 4) == 4 && pread(file, b, 4, 0) == 4 && memcmp(b, "mine", 4) == 0);
		if (file >= 0)
			close(file);
		pid_t pid = fork();
		if (pid == 0)
			_exit(7);
		ok &= attempt(5, pid > 0) && attempt(6, waitpid(pid, &status, 0) == pid && status == 7 << 8);
		for (size_t i = 0; i < page / 8; i++)
			if (own[i] != 0x1001 * i)
				progress[4]++;
		progress[ok ? 0 : 1]++;
		usleep(2000);
	}
}

// suid_main runs as root because the file says so; whoever executes it must not get at
// it. It tells in a file of root's.
int suid_main(void)
{
	static volatile uint64_t own[64];
	const char *wrong = getauxval(AT_SECURE) != 1 ? "AT_SECURE is not set" : prctl(PR_GET_DUMPABLE) == 1 ? "it is dumpable" : NULL;
	for (int i = 0; i < 64; i++)
		own[i] = 0xabcd0000UL + (unsigned)i;
	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < 64; i++)
			if (own[i] != 0xabcd0000UL + (unsigned)i)
				wrong = "its memory was changed";
		sched_yield();
	}
	if (wrong) {
		int fd = open("/report", O_WRONLY | O_APPEND);
		if (fd < 0 || write(fd, wrong, strlen(wrong)) < 0 || write(fd, "\n", 1) < 0)
			return 1;
	}
	return 0;
}

static pid_t start(uid_t uid, void (*body)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	setsid();
	if (uid != 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		_exit(1);
	body();
	_exit(1);
}

static void put(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, mode);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
		fail("%s cannot be made: %m", name);
	close(fd);
}

static void copy_self(const char *to)
{
	static char b[1 << 16];
	int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0700);
	ssize_t n;
	while ((n = read(in, b, sizeof b)) > 0)
		if (write(out, b, (size_t)n) != n)
			fail("%s cannot be written: %m", to);
	if (in < 0 || out < 0 || fchmod(out, 04755) < 0)
		fail("%s cannot be made: %m", to);
	close(in), close(out);
}

void set_scene(void)
{
	mkdir("/root", 0755);
	put("/root/canary", canary, 0644);
	put("/report", "", 0600);
	copy_self("/suid");
	mkdir("/tmp/witness", 0700);
	if (chown("/tmp/witness", witness, witness) < 0)
		fail("chown: %m");
	stat("/root/canary", &canary_before);
	progress = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	guard_pid = start(0, (void (*)(void))keep_secret);
	witness_pid = start(witness, (void (*)(void))bear_witness);
}

// ids reads a process's users and capabilities; 0: it is gone, or dead.
static int ids(const char *pid, unsigned *real, unsigned *effective, unsigned long *caps)
{
	char name[64], text[2048];
	snprintf(name, sizeof name, "/proc/%s/status", pid);
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *u = strstr(text, "\nUid:"), *c = strstr(text, "\nCapEff:");
	return !strstr(text, "\nState:\tZ") && u && c && sscanf(u, "\nUid: %u %u", real, effective) == 2 && sscanf(c, "\nCapEff: %lx", caps) == 1;
}

// look_around looks for a process that came from user 1000 and is more than that. All
// but the parent, the guard and the witness (and its children) do, while user 1000's
// children are the only ones that run.
void look_around(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		int pid = atoi(e->d_name);
		unsigned real, effective;
		unsigned long caps;
		if (pid <= 0 || pid == parent_pid || pid == guard_pid || !ids(e->d_name, &real, &effective, &caps) || real == witness)
			continue;
		char name[64], exe[64] = "";
		snprintf(name, sizeof name, "/proc/%d/exe", pid);
		if (readlink(name, exe, sizeof exe - 1) > 0 && strcmp(exe, "/suid") == 0)
			continue;
		// Again, since what was read may be of different processes of one number.
		if (getpgid(pid) == getpgid(0) || !ids(e->d_name, &real, &effective, &caps) || real == witness)
			continue;
		if (real != user || effective != user || caps != 0)
			fail("process %d has uid %u, effective %u, capabilities %lx", pid, real, effective, caps);
	}
	if (d)
		closedir(d);
}

static const char *changed(void)
{
	struct stat st;
	char b[64] = "";
	int fd = open("/root/canary", O_RDONLY);
	if (fd < 0 || read(fd, b, sizeof b) < 0 || strcmp(b, canary) != 0)
		return "root's file has another content";
	close(fd);
	if (stat("/root/canary", &st) < 0 || st.st_nlink != 1)
		return "root's file has another name";
	if (st.st_mode != canary_before.st_mode || st.st_uid != 0 || st.st_mtim.tv_nsec != canary_before.st_mtim.tv_nsec)
		return "root's file was changed";
	DIR *d = opendir("/root");
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, "canary") != 0 && strcmp(e->d_name, "secret") != 0)
			return "there is something new in root's directory";
	if (d)
		closedir(d);
	if (stat("/report", &st) == 0 && st.st_size != 0)
		return "the set-user-id program saw a breach (/report)";
	return NULL;
}

// end_scene ends guard and witness, and returns what user 1000 has done.
const char *end_scene(void)
{
	int status;
	const char *what = changed();
	if (waitpid(guard_pid, &status, WNOHANG) == guard_pid)
		what = "root's process is dead";
	if (waitpid(witness_pid, &status, WNOHANG) == witness_pid)
		what = "the other user's process is dead";
	if (progress[4] != 0)
		what = "the other user's memory was changed";
	kill(guard_pid, SIGKILL), kill(witness_pid, SIGKILL);
	waitpid(guard_pid, NULL, 0), waitpid(witness_pid, NULL, 0);
	unlink("/root/secret"), unlink("/suid");
	return what;
}
