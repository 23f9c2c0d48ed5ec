// Program process tests fork, exec, wait, process groups and sessions.
#include "gt.h"

#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

static int last(int argc, char **argv)
{
	return argc > 0 ? atoi(argv[argc - 1]) : 0;
}

int child_main(int argc, char **argv)
{
	if (strcmp(argv[0], "child-args") == 0) {
		extern char **environ;
		for (int i = 1; i < argc; i++)
			say("argument %d %.40s, %zu bytes", i, argv[i], strlen(argv[i]));
		for (char **e = environ; *e; e++)
			say("environment %.60s", *e);
		say("stack aligned %d", (uintptr_t)__builtin_frame_address(0) % 16 == 0);
		say("page size %lu, clock ticks %lu", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK));
		say("ids %lu %lu, secure %lu", getauxval(AT_UID), getauxval(AT_EUID), getauxval(AT_SECURE));
		say("phdr %d, phnum %d, phent %lu, entry %d", getauxval(AT_PHDR) != 0, getauxval(AT_PHNUM) > 2, getauxval(AT_PHENT), getauxval(AT_ENTRY) != 0);
		say("random %d, vdso %d, platform %s, execfn %d", getauxval(AT_RANDOM) != 0, getauxval(AT_SYSINFO_EHDR) != 0,
		    (char *)getauxval(AT_PLATFORM), getauxval(AT_EXECFN) != 0);
		return 7;
	}
	if (strcmp(argv[0], "child-state") == 0) {
		// What exec keeps and what it resets.
		struct sigaction sa;
		sigset_t set;
		sigaction(SIGUSR1, NULL, &sa);
		say("a handler becomes default: %d", sa.sa_handler == SIG_DFL);
		sigaction(SIGUSR2, NULL, &sa);
		say("ignored stays: %d", sa.sa_handler == SIG_IGN);
		sigprocmask(SIG_SETMASK, NULL, &set);
		say("the mask stays: %d", sigismember(&set, SIGTERM));
		sigpending(&set);
		say("pending stays: %d", sigismember(&set, SIGTERM));
		stack_t st;
		sigaltstack(NULL, &st);
		say("no alternate stack: %d", st.ss_flags == SS_DISABLE);
		say("descriptors 50: %d, 51: %d", fcntl(50, F_GETFD), fcntl(51, F_GETFD));
		say("same process: %d", getpid() == last(argc, argv));
		char name[16] = "";
		prctl(PR_GET_NAME, name);
		say("name %s", name);
		return 0;
	}
	if (strcmp(argv[0], "child-thread") == 0)
		return getpid() == syscall(SYS_gettid) ? 5 : 6;
	return 1;
}

TEST(statuses, "exit statuses")
{
	IN_CHILD("0", _exit(0));
	IN_CHILD("255", _exit(255));
	IN_CHILD("256 is 0", _exit(256));
	IN_CHILD("-1 is 255", _exit(-1));
	IN_CHILD("SIGKILL", raise(SIGKILL));
	IN_CHILD("SIGTERM", raise(SIGTERM));
	IN_CHILD("SIGCHLD is ignored", raise(SIGCHLD));
	IN_CHILD("SIGABRT", abort());
	IN_CHILD("exit of the first thread alone", syscall(SYS_exit, 3));
	num("no children", wait(NULL));
}

TEST(waiting, "wait variants")
{
	siginfo_t info = {0};
	struct rusage ru;
	int st;
	pid_t a = FORK(_exit(11)), b = FORK(_exit(22)), c = FORK(pause());
	must(waitid(P_PID, (id_t)a, &info, WEXITED | WNOWAIT), "waitid");
	say("waitid NOWAIT: pid %d code %d status %d signo %d", info.si_pid == a, info.si_code, info.si_status, info.si_signo == SIGCHLD);
	must(waitid(P_PID, (id_t)a, &info, WEXITED), "waitid");
	say("waitid: pid %d status %d", info.si_pid == a, info.si_status);
	err("again", waitid(P_PID, (id_t)a, &info, WEXITED));
	say("wait4: %d", wait4(b, &st, 0, &ru) == b);
	status("b", st);
	say("usage is filled: %d", ru.ru_maxrss >= 0);
	say("nohang: %d", waitpid(c, &st, WNOHANG));
	info.si_pid = 77;
	say("waitid nohang: %d, pid %d", waitid(P_ALL, 0, &info, WEXITED | WNOHANG), info.si_pid);
	kill(c, SIGUSR1);
	must(waitid(P_ALL, 0, &info, WEXITED), "waitid");
	say("killed: code %d status %d", info.si_code == CLD_KILLED, info.si_status == SIGUSR1);
	err("a stranger", waitpid(1, &st, 0));
	err("bad options", waitpid(-1, &st, 0x10000));
	err("waitid without a state", waitid(P_ALL, 0, &info, 0));
	err("waitid of a bad kind", waitid(99, 0, &info, WEXITED));
	a = FORK(_exit(0));
	err("status to a wild pointer", syscall(SYS_wait4, a, 8, 0, 0));
	err("the child is gone then", waitpid(a, &st, 0));
}

TEST(stopping, "stop and continue")
{
	int st;
	volatile int *n = shared(4096);
	pid_t pid = FORK(for (;;) n[0]++);
	until(n[0] > 0);
	kill(pid, SIGSTOP);
	must(waitpid(pid, &st, WUNTRACED), "waitpid");
	status("child", st);
	int at = n[0];
	sleep_ms(30);
	say("it stands: %d", at == n[0]);
	say("not reported twice: %d", waitpid(pid, &st, WUNTRACED | WNOHANG));
	kill(pid, SIGCONT);
	must(waitpid(pid, &st, WCONTINUED), "waitpid");
	status("child", st);
	say("it runs: %d", until(n[0] != at));
	kill(pid, SIGTSTP);
	must(waitpid(pid, &st, WUNTRACED), "waitpid");
	status("child", st);
	kill(pid, SIGTERM);
	say("a stopped one keeps the signal: %d", waitpid(pid, &st, WNOHANG));
	kill(pid, SIGCONT);
	status("then", wait_for(pid));
	pid = FORK(for (;;) n[0]++);
	kill(pid, SIGSTOP);
	waitpid(pid, &st, WUNTRACED);
	kill(pid, SIGKILL);
	status("SIGKILL needs no continue", wait_for(pid));
}

TEST(orphans, "orphans and subreapers")
{
	int fd[2];
	must(pipe(fd), "pipe");
	must(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
	IN_CHILD("parent", {
		pid_t parent = getpid();
		FORK({
			close(fd[0]);
			until(getppid() != parent);
			must(write(fd[1], "o", 1), "write");
			_exit(42);
		});
	});
	char c;
	must(read(fd[0], &c, 1), "read");
	int st;
	must(wait(&st), "wait");
	status("the orphan is ours now", st);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	pid_t pid = FORK({
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	});
	kill(pid, SIGTERM);
	wait_for(pid);
	// The parent's death sends the signal that the child asked for.
	close(fd[0]), close(fd[1]);
	must(pipe(fd), "pipe");
	int ready[2];
	must(pipe(ready), "pipe");
	IN_CHILD("parent", {
		FORK({
			close(fd[0]);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			must(write(ready[1], "r", 1), "write");
			pause();
		});
		must(read(ready[0], &c, 1), "read");
	});
	close(fd[1]);
	say("the child died with it: %zd", read(fd[0], &c, 1));
}

TEST(zombies, "SIGCHLD ignored")
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 20; i++)
		FORK(_exit(1));
	num("wait", wait(NULL));
	signal(SIGCHLD, SIG_DFL);
	struct sigaction sa = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
	sigaction(SIGCHLD, &sa, NULL);
	FORK(_exit(1));
	num("with NOCLDWAIT", wait(NULL));
}

TEST(groups, "process groups")
{
	int st;
	pid_t a = FORK(pause()), b = FORK(pause()), c = FORK(pause());
	err("a leads a group", setpgid(a, a));
	err("b joins", setpgid(b, a));
	say("getpgid %d %d", getpgid(a) == a, getpgid(b) == a);
	err("a missing group", setpgid(c, 999999));
	err("a stranger", setpgid(1, 1));
	err("a negative group", setpgid(c, -1));
	err("no such process", setpgid(999999, 0));
	err("kill the group", kill(-a, SIGUSR2));
	for (int i = 0; i < 2; i++)
		must(waitpid(-a, &st, 0), "waitpid"), status("member", st);
	err("the group is gone", kill(-a, 0));
	err("and empty", waitpid(-a, &st, 0));
	say("c lives: %d", kill(c, 0));
	kill(c, SIGKILL);
	wait_for(c);
	say("our own group: %d", getpgrp() == getpid());
	IN_CHILD("a child of ours", say("inherits it: %d", getpgrp() == getppid()));
	IN_CHILD("a session", {
		say("setsid gives its pid: %d", setsid() == getpid());
		say("sid %d, pgid %d", getsid(0) == getpid(), getpgrp() == getpid());
		err("again", setsid());
		err("a leader cannot move", setpgid(0, getppid()));
		pid_t k = FORK(pause());
		err("a child into another session's group", setpgid(k, getppid()));
		kill(k, SIGKILL);
	});
	err("a group leader cannot make a session", setsid());
	int fd[2];
	must(pipe2(fd, O_CLOEXEC), "pipe2");
	pid_t d = FORK({
		char *argv[] = {"/proc/self/exe", "child-args", NULL};
		close(1), must(open("/dev/null", O_WRONLY), "open");
		execv("/proc/self/exe", argv);
	});
	char end;
	close(fd[1]);
	must(read(fd[0], &end, 1), "read"); // the end: it has executed
	err("after exec it is too late", setpgid(d, d));
	wait_for(d);
}

TEST(exec, "exec: arguments, environment, vector")
{
	char *env[] = {"A=1", "LONG=xyz", NULL};
	char *huge = malloc(100001);
	memset(huge, 'h', 100000), huge[100000] = 0;
	IN_CHILD("child", {
		char *argv[] = {"name", "child-args", "one", "", "three words here", huge, NULL};
		execve("/proc/self/exe", argv, env);
		fatal("execve");
	});
	char *enormous = malloc(200001);
	memset(enormous, 'h', 200000), enormous[200000] = 0;
	char *argv[] = {"name", enormous, NULL};
	err("an argument over 128 KiB", execve("/proc/self/exe", argv, env));
	char **many = calloc(100001, sizeof *many);
	for (int i = 0; i < 100000; i++)
		many[i] = huge + 99900;
	err("too many in all", execve("/proc/self/exe", many, env));
	argv[1] = "short";
	err("missing", execve("none", argv, env));
	err("a directory", execve(".", argv, env));
	int fd = open("text", O_CREAT | O_WRONLY, 0755);
	must(write(fd, "just text\n", 10), "write");
	err("being written", execve("text", argv, env));
	close(fd);
	err("no format", execve("text", argv, env));
	chmod("text", 0644);
	err("not executable", execve("text", argv, env));
	close(open("empty", O_CREAT | O_WRONLY, 0755));
	err("empty", execve("empty", argv, env));
	err("wild path", syscall(SYS_execve, 8, argv, env));
	err("wild arguments", syscall(SYS_execve, "/proc/self/exe", 8, env));
	char *wild[] = {(char *)8, NULL};
	err("a wild argument", execve("/proc/self/exe", wild, env));
	err("a wild variable", execve("/proc/self/exe", argv + 2, wild));
}

TEST(exec_state, "exec: what is kept")
{
	IN_CHILD("child", {
		sigset_t set;
		char pid[20];
		signal(SIGUSR1, (void (*)(int))0x1000);
		signal(SIGUSR2, SIG_IGN);
		sigemptyset(&set), sigaddset(&set, SIGTERM);
		sigprocmask(SIG_SETMASK, &set, NULL);
		raise(SIGTERM);
		static char stack[65536];
		stack_t st = {.ss_sp = stack, .ss_size = sizeof stack};
		sigaltstack(&st, NULL);
		dup2(1, 50), dup2(1, 51);
		fcntl(51, F_SETFD, FD_CLOEXEC);
		prctl(PR_SET_NAME, "other");
		snprintf(pid, sizeof pid, "%d", getpid());
		char *argv[] = {"x", "child-state", pid, NULL}, *env[] = {NULL};
		symlink("/proc/self/exe", "prog");
		execve("/proc/self/exe", argv, env);
	});
}

static void *exec_here(void *arg)
{
	(void)arg;
	char *argv[] = {"x", "child-thread", NULL};
	execv("/proc/self/exe", argv);
	return NULL;
}

static void *forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

TEST(exec_threads, "exec in a thread")
{
	IN_CHILD("it becomes the process", {
		pthread_t a, b;
		pthread_create(&a, NULL, forever, NULL);
		pthread_create(&b, NULL, exec_here, NULL);
		for (;;)
			pause();
	});
	IN_CHILD("exit_group ends all threads", {
		pthread_t a;
		pthread_create(&a, NULL, forever, NULL);
		_exit(9);
	});
	IN_CHILD("a thread's fault ends all", {
		pthread_t a;
		pthread_create(&a, NULL, (void *(*)(void *))0x10, NULL);
		pause();
	});
}

static void script(const char *name, const char *text, size_t len)
{
	int fd = (int)must(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755), "open");
	must(write(fd, text, len), "write");
	close(fd);
}

TEST(scripts, "interpreter scripts")
{
	char self[PATH_MAX], text[PATH_MAX + 100];
	ssize_t n = must(readlink("/proc/self/exe", self, sizeof self - 1), "readlink");
	self[n] = 0;
	char *argv[] = {"zero", "arg one", NULL}, *env[] = {"E=v", NULL};
	int len = snprintf(text, sizeof text, "#!%s child-args\nrest", self);
	script("s1", text, (size_t)len);
	IN_CHILD("one", execve("./s1", argv, env));
	len = snprintf(text, sizeof text, "#! \t%s   child-args  two words \t\n", self);
	script("s2", text, (size_t)len);
	// The interpreter sees one argument only, so the name does not match.
	IN_CHILD("blanks and two words", execve("./s2", argv, env), _exit(50));
	script("s3", "#!/none/such\n", 13);
	err("missing interpreter", execve("./s3", argv, env));
	script("s4", "#!\n", 3);
	err("no interpreter", execve("./s4", argv, env));
	script("l0", "#!./l1\n", 7), script("l1", "#!./l2\n", 7), script("l2", "#!./l3\n", 7);
	script("l3", "#!./l4\n", 7), script("l4", "#!./l5\n", 7), script("l5", "#!./l6\n", 7), script("l6", text, (size_t)len);
	err("too many levels", execve("./l0", argv, env));
	script("loop", "#!./loop\n", 9);
	err("a loop", execve("./loop", argv, env));
}

// A minimal program that exits with 9, with a header to damage.
typedef struct {
	Elf64_Ehdr e;
	Elf64_Phdr p[2];
	unsigned char code[12];
} tiny_elf;

static tiny_elf tiny(void)
{
	tiny_elf t = {0};
	memcpy(t.e.e_ident, ELFMAG, SELFMAG);
	t.e.e_ident[EI_CLASS] = ELFCLASS64;
	t.e.e_ident[EI_DATA] = ELFDATA2LSB;
	t.e.e_ident[EI_VERSION] = EV_CURRENT;
	t.e.e_type = ET_EXEC;
	t.e.e_machine = EM_X86_64;
	t.e.e_version = EV_CURRENT;
	t.e.e_entry = 0x400000 + offsetof(tiny_elf, code);
	t.e.e_phoff = offsetof(tiny_elf, p);
	t.e.e_ehsize = sizeof t.e;
	t.e.e_phentsize = sizeof t.p[0];
	t.e.e_phnum = 1;
	t.p[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000, .p_paddr = 0x400000,
			      .p_filesz = sizeof t, .p_memsz = sizeof t, .p_align = 4096};
	memcpy(t.code, "\xb8\xe7\x00\x00\x00\xbf\x09\x00\x00\x00\x0f\x05", 12); // exit_group(9)
	return t;
}

// run_elf runs a file. A kernel may find some faults before it gives up the old
// program, or only after: both are a refusal.
static void run_elf(const char *what, tiny_elf t, size_t len)
{
	unlink("elf");
	script("elf", (char *)&t, len);
	char *argv[] = {"elf", NULL};
	pid_t pid = FORK({
		execve("./elf", argv, argv + 1);
		_exit(errno == ENOEXEC || errno == ENOMEM || errno == EINVAL ? 77 : 78);
	});
	int st = wait_for(pid);
	if (st == 77 << 8 || st == SIGSEGV)
		say("%s: refused", what);
	else
		status(what, st);
}

TEST(elf, "ELF files")
{
	tiny_elf t = tiny();
	run_elf("good", t, sizeof t);
#define BROKEN(what, change) t = tiny(), change, run_elf(what, t, sizeof t)
	BROKEN("another machine", t.e.e_machine = EM_AARCH64);
	BROKEN("a relocatable", t.e.e_type = ET_REL);
	BROKEN("no headers", t.e.e_phnum = 0);
	BROKEN("headers of a bad size", t.e.e_phentsize = 20);
	BROKEN("headers beyond the end", t.e.e_phoff = 1 << 20);
	BROKEN("headers far beyond", t.e.e_phoff = 1UL << 63);
	BROKEN("many headers", t.e.e_phnum = 65535);
	BROKEN("more file than memory", t.p[0].p_memsz = 10);
	BROKEN("a segment in the kernel", t.p[0].p_vaddr = 0xffffffff80200000);
	BROKEN("a segment that is too large", t.p[0].p_memsz = 1UL << 47);
	BROKEN("a segment that wraps", t.p[0].p_memsz = ~0UL);
	BROKEN("entry in the kernel", t.e.e_entry = 0xffffffff80200000);
	BROKEN("entry outside", t.e.e_entry = 0x500000);
	BROKEN("not executable memory", t.p[0].p_flags = PF_R);
	BROKEN("unaligned offset", t.p[0].p_offset = 100);
	BROKEN("an interpreter that is missing", (t.e.e_phnum = 2, t.p[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = offsetof(tiny_elf, code), .p_filesz = 2}));
	t = tiny();
	run_elf("cut in the headers", t, 80);
	run_elf("cut in the first header", t, 30);
}

TEST(vforks, "vfork and clone")
{
	volatile int *n = shared(4096);
	int local = 1;
	pid_t pid = vfork();
	if (pid == 0) {
		n[0] = 1;
		_exit(33);
	}
	say("the child ran first: %d", n[0]);
	status("vfork", wait_for(pid));
	pid = vfork();
	if (pid == 0) {
		char *argv[] = {"/proc/self/exe", "child-thread", NULL};
		execv(argv[0], argv);
		_exit(1);
	}
	status("vfork and exec", wait_for(pid));
	pid = (pid_t)syscall(SYS_clone, SIGURG, 0, NULL, NULL, 0);
	if (pid == 0)
		_exit(4);
	int st;
	num("another exit signal needs __WALL", waitpid(pid, &st, 0));
	say("with it: %d", waitpid(pid, &st, __WALL) == pid);
	err("CLONE_THREAD without VM", syscall(SYS_clone, CLONE_THREAD | SIGCHLD, 0, NULL, NULL, 0));
	err("CLONE_SIGHAND without VM", syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, NULL, NULL, 0));
	int parent_tid = 0;
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, &parent_tid, (int *)n, 0);
	if (pid == 0)
		_exit(*n == getpid() ? 1 : 2);
	status("child's word", wait_for(pid));
	say("parent's word %d", parent_tid == pid);
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_FS | SIGCHLD, 0, NULL, NULL, 0);
	if (pid == 0) {
		mkdir("sub", 0755);
		_exit(chdir("sub") | (dup2(1, 60) != 60));
	}
	status("shared files", wait_for(pid));
	char cwd[PATH_MAX];
	say("its descriptor is ours: %d, its directory too: %d", fcntl(60, F_GETFD), strstr(getcwd(cwd, sizeof cwd), "/sub") != NULL);
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} args = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD};
	int pidfd = -1;
	args.pidfd = (uint64_t)(uintptr_t)&pidfd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(local);
	say("clone3 with a pidfd: %d", pidfd >= 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	say("it polls: %d", poll(&p, 1, 5000));
	siginfo_t info;
	must(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), "waitid");
	say("status %d", info.si_status);
	err("clone3 too small", syscall(SYS_clone3, &args, 8));
	err("clone3 wild", syscall(SYS_clone3, 8, sizeof args));
	args.flags = 1UL << 60;
	err("clone3 unknown flag", syscall(SYS_clone3, &args, sizeof args));
}

TEST(many, "many processes")
{
	pid_t pids[200];
	for (int i = 0; i < 200; i++)
		pids[i] = FORK(_exit(i));
	int wrong = 0;
	for (int i = 199; i >= 0; i--) {
		int st = wait_for(pids[i]);
		wrong += WEXITSTATUS(st) != i;
	}
	say("200 children, %d wrong", wrong);
	int *depth = shared(4096);
	IN_CHILD("a chain", {
		for (int i = 0; i < 50; i++) {
			pid_t p = FORK({ (*depth)++; continue; });
			_exit(WEXITSTATUS(wait_for(p)));
		}
		_exit(17);
	});
	say("depth %d", *depth);
	IN_CHILD("limited", {
		if (setgid(4321) || setuid(4321))
			_exit(0);
		struct rlimit rl = {20, 20};
		setrlimit(RLIMIT_NPROC, &rl);
		int got = 0;
		pid_t p;
		while ((p = fork()) > 0 && got < 100)
			got++;
		if (p == 0)
			pause();
		say("forks until %s: at most the limit %d", name_of(errno), got <= 20);
		kill(0, SIGKILL);
	});
}

TEST(kills, "kill")
{
	pid_t pid = FORK(pause());
	err("signal 0", kill(pid, 0));
	err("bad signal", kill(pid, 65));
	err("negative signal", kill(pid, -1));
	err("no process", kill(999999, SIGTERM));
	err("the smallest number", kill(INT_MIN, SIGTERM));
	err("tgkill of another group", (long)syscall(SYS_tgkill, getpid(), pid, 0));
	err("tgkill 0", syscall(SYS_tgkill, 0, pid, 0));
	err("tkill", syscall(SYS_tkill, pid, 0));
	err("tkill -1", syscall(SYS_tkill, -1, 0));
	IN_CHILD("as another user", {
		if (setgid(1000) || setuid(1000))
			_exit(0);
		err("kill root's", kill(pid, SIGTERM));
		err("but a zombie of one's own", kill(getpid(), 0));
	});
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	err("pidfd_open", fd);
	err("pidfd_send_signal", syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
	status("child", wait_for(pid));
	err("a zombie is gone after wait", kill(pid, 0));
	err("pidfd of it", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	pid = FORK(_exit(0));
	siginfo_t info;
	must(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), "waitid");
	err("a zombie takes signals", kill(pid, SIGKILL));
	status("and keeps its status", wait_for(pid));
}
