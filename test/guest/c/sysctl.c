// /proc/sys: how numbers and texts are read and written, and that they are obeyed.
// Every test puts back what it changes. On Linux, numbers of a namespace are those of
// a new one; where a number is the whole machine's, on which other programs run,
// Linux's answers are recorded here.
#include "gt.h"
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/utsname.h>

static char *path_of(const char *name)
{
	static char path[128];
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	return path;
}

static char *value_of(const char *name)
{
	static char text[4200];
	int fd = open(path_of(name), O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	for (char *p = text; *p; p++)
		if (*p == '\t')
			*p = '|';
	return text;
}

static long set(const char *name, const char *text, off_t at)
{
	int fd = open(path_of(name), O_WRONLY);
	if (fd < 0)
		return -1;
	long n = at ? pwrite(fd, text, strlen(text), at) : write(fd, text, strlen(text));
	int e = errno;
	close(fd);
	errno = e;
	return n;
}

static void put_back(const char *name, const char *was)
{
	char text[256];
	snprintf(text, sizeof text, "%s", was);
	for (char *p = text; *p; p++)
		if (*p == '|')
			*p = '\t';
	set(name, text, 0);
}

#define KEEP(name) char *was = strdup(value_of(name))

// own gives the test namespaces of its own, where there are any.
static void own(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return;
	struct ifreq lo = {"lo"};
	lo.ifr_flags = IFF_UP;
	ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo);
}

// recorded prints what Linux answers, on Linux.
static int recorded(const char *answers)
{
	struct utsname u;
	uname(&u);
	if (strstr(u.release, "hardtack"))
		return 0;
	char *copy = strdup(answers);
	for (char *l = strtok(copy, "\n"); l; l = strtok(NULL, "\n"))
		say("%s", l);
	return 1;
}

TEST(integers, "integers")
{
	const char *name = "fs/lease-break-time";
	KEEP(name);
	static const char *const tries[] = {"7", " 8\n", "\t9 \n", "10x", "11 12", "0x1f", "010", "08", "+3", "-", "-4", "", " ", "\n", "2147483647",
		"2147483648", "-2147483648", "-2147483649", "99999999999999999999", "000000000000000000005", "5\0", "6,7", "3\v", "3\r\n", "1e3", "0x", "0xg"};
	set(name, "1", 0);
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		long n = set(name, tries[i], 0);
		say("%zu: %ld %s, now %s", i, n, n < 0 ? name_of(errno) : "", value_of(name));
	}
	say("at 1: %ld, now %s", set(name, "77", 1), value_of(name));
	put_back(name, was);
}

TEST(ranges, "ranges")
{
	static const struct { const char *name, *text; } tries[] = {
		{"vm/swappiness", "201"}, {"vm/swappiness", "-1"}, {"vm/overcommit_memory", "3"}, {"fs/protected_hardlinks", "2"},
		{"kernel/sysctl_writes_strict", "2"}, {"kernel/pid_max", "300"}, {"kernel/threads-max", "0"}, {"fs/suid_dumpable", "3"},
		{"net/core/somaxconn", "-1"}, {"net/ipv4/ip_default_ttl", "0"}, {"net/ipv4/ip_default_ttl", "256"}, {"net/ipv4/tcp_syn_retries", "0"},
		{"net/ipv4/tcp_syn_retries", "128"}, {"net/ipv4/ip_local_port_range", "2 1"}, {"net/ipv4/ip_local_port_range", "0 70000"},
		{"net/core/rmem_max", "1"}, {"net/core/wmem_default", "100"}, {"fs/nr_open", "1"}, {"fs/inotify/max_user_watches", "-1"},
		{"kernel/msgmax", "-5"}, {"kernel/shmmni", "40000"}, {"vm/dirty_ratio", "101"}, {"vm/drop_caches", "0"}, {"vm/max_map_count", "-1"},
		{"net/ipv4/tcp_congestion_control", "nonsense"}, {"net/ipv4/tcp_sack", "256"}, {"net/ipv4/ping_group_range", "-1 5"}, {"vm/panic_on_oom", "x"},
	};
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		long n = set(tries[i].name, tries[i].text, 0);
		say("%s %s: %ld %s", tries[i].name, tries[i].text, n, n < 0 ? name_of(errno) : "");
	}
}

TEST(vectors, "vectors")
{
	const char *name = "kernel/sem";
	own();
	KEEP(name);
	static const char *const tries[] = {"32000 1024000000 500 32000", "250", "251\t900000", "252 x", "x 1", "253 2 3 40000", "32000 1024000000 500 32000 9"};
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		long n = set(name, tries[i], 0);
		say("%zu: %ld %s, now %s", i, n, n < 0 ? name_of(errno) : "", value_of(name));
	}
	put_back(name, was);
}

TEST(reading, "reading in pieces")
{
	char b[64] = "";
	int fd = must(open("/proc/sys/kernel/sem", O_RDONLY), "sem");
	num("3 bytes", read(fd, b, 3));
	num("and then", read(fd, b, 64));
	num("at 1", pread(fd, b, 64, 1));
	num("no byte", pread(fd, b, 0, 0));
	num("end", lseek(fd, 0, SEEK_END));
	num("before the end", lseek(fd, -1, SEEK_END));
	num("data", lseek(fd, 0, SEEK_DATA));
	close(fd);
	fd = must(open("/proc/sys/kernel/ostype", O_RDONLY), "ostype");
	num("2 bytes", read(fd, b, 2));
	num("the rest", read(fd, b, 64));
	say("%.*s", 3, b);
	num("all but the newline", pread(fd, b, 5, 0));
	num("the newline", pread(fd, b, 9, 5));
	num("behind", pread(fd, b, 9, 6));
	struct stat st;
	fstat(fd, &st);
	say("mode %o size %ld links %ld", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	struct pollfd p = {fd, POLLIN | POLLOUT | POLLPRI, 0};
	poll(&p, 1, 0);
	say("poll %x", p.revents);
	int ep = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN};
	err("epoll", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

TEST(rights, "rights")
{
	static const char *const names[] = {"vm/drop_caches", "kernel/ostype", "kernel/cap_last_cap", "fs/file-nr", "net/ipv4/route/flush"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat st = {0};
		stat(path_of(names[i]), &st);
		int r = open(path_of(names[i]), O_RDONLY);
		say("%s: mode %o, read %s", names[i], st.st_mode, r < 0 ? name_of(errno) : "ok");
		int w = open(path_of(names[i]), O_WRONLY);
		say("%s: write %s", names[i], w < 0 ? name_of(errno) : "ok");
	}
	int fd = open(path_of("vm/swappiness"), O_WRONLY);
	IN_CHILD("another user", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		err("through root's descriptor", write(fd, "60", 2));
		err("open to write", open(path_of("vm/swappiness"), O_WRONLY));
		err("open to read", open(path_of("vm/swappiness"), O_RDONLY));
		err("drop_caches", open(path_of("vm/drop_caches"), O_WRONLY));
	});
}

TEST(name, "host name")
{
	own();
	KEEP("kernel/hostname");
	int fd = must(open(path_of("kernel/hostname"), O_RDONLY), "hostname");
	struct pollfd p = {fd, POLLIN | POLLPRI, 0};
	poll(&p, 1, 0);
	say("before: %x", p.revents);
	num("set", set("kernel/hostname", "one.example\nignored", 0));
	say("now %s", value_of("kernel/hostname"));
	poll(&p, 1, 0);
	say("after: %x", p.revents);
	poll(&p, 1, 0);
	say("again: %x", p.revents);
	err("sethostname", sethostname("two", 3));
	poll(&p, 1, 0);
	say("after: %x", p.revents);
	num("at 3", set("kernel/hostname", "fold", 3));
	say("now %s", value_of("kernel/hostname"));
	num("at 30", set("kernel/hostname", "x", 30));
	say("now %s", value_of("kernel/hostname"));
	char longname[80];
	memset(longname, 'h', 79);
	longname[79] = 0;
	num("long", set("kernel/hostname", longname, 0));
	say("now %zu bytes", strlen(value_of("kernel/hostname")));
	sethostname(was, strlen(was));
}

// The numbers are obeyed.

TEST(pipes, "pipe sizes")
{
	if (recorded("set: 5\nnow 131072\n131072: 131072\n131073: -1 EPERM\na user: exit 0\nsmall: 1\nnow 4096\na new one: 4096\nsmaller: 8192\na user: exit 0"))
		return;
	KEEP("fs/pipe-max-size");
	int p[2];
	must(pipe(p), "pipe");
	num("set", set("fs/pipe-max-size", "70000", 0));
	say("now %s", value_of("fs/pipe-max-size"));
	IN_CHILD("a user", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		num("131072", fcntl(p[0], F_SETPIPE_SZ, 131072));
		num("131073", fcntl(p[0], F_SETPIPE_SZ, 131073));
	});
	num("small", set("fs/pipe-max-size", "1", 0));
	say("now %s", value_of("fs/pipe-max-size"));
	IN_CHILD("a user", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		int q[2];
		must(pipe(q), "pipe");
		num("a new one", fcntl(q[0], F_GETPIPE_SZ));
		num("smaller", fcntl(p[0], F_SETPIPE_SZ, 8192));
	});
	put_back("fs/pipe-max-size", was);
}

TEST(objects, "System V limits")
{
	own();
	KEEP("kernel/msgmax");
	struct { long kind; char text[300]; } m = {1};
	int q = must(msgget(IPC_PRIVATE, 0600), "msgget");
	set("kernel/msgmax", "100", 0);
	err("100 bytes", msgsnd(q, &m, 100, IPC_NOWAIT));
	err("101 bytes", msgsnd(q, &m, 101, IPC_NOWAIT));
	struct msginfo info;
	msgctl(q, IPC_INFO, (struct msqid_ds *)&info);
	say("msgmax %d", info.msgmax);
	msgctl(q, IPC_RMID, NULL);
	put_back("kernel/msgmax", was);
	was = strdup(value_of("kernel/msgmnb"));
	set("kernel/msgmnb", "50", 0);
	q = must(msgget(IPC_PRIVATE, 0600), "msgget");
	err("30 bytes", msgsnd(q, &m, 30, IPC_NOWAIT));
	err("30 more", msgsnd(q, &m, 30, IPC_NOWAIT));
	msgctl(q, IPC_RMID, NULL);
	put_back("kernel/msgmnb", was);
	was = strdup(value_of("kernel/shmmax"));
	set("kernel/shmmax", "8192", 0);
	int id = err("8192 bytes", shmget(IPC_PRIVATE, 8192, 0600));
	shmctl(id, IPC_RMID, NULL);
	err("8193 bytes", shmget(IPC_PRIVATE, 8193, 0600));
	set("kernel/shmmax", was, 0);
	was = strdup(value_of("kernel/sem"));
	set("kernel/sem", "5 32000 3 128", 0);
	err("5 semaphores", semget(IPC_PRIVATE, 5, 0600));
	err("6 semaphores", semget(IPC_PRIVATE, 6, 0600));
	id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf ops[4] = {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}};
	err("3 operations", semop(id, ops, 3));
	err("4 operations", semop(id, ops, 4));
	put_back("kernel/sem", was);
}

TEST(descriptors, "nr_open")
{
	if (recorded("more: EPERM\nas many: ok\nthe last: 2047\none more: -1 EBADF\nthe last again: 2046\nbelow: 1023\nunshare: ok\nfork: EMFILE\nlimits: exit 0"))
		return;
	KEEP("fs/nr_open");
	IN_CHILD("limits", {
		struct rlimit l = {4096, 4096};
		set("fs/nr_open", "2048", 0);
		err("more", setrlimit(RLIMIT_NOFILE, &l));
		l.rlim_cur = l.rlim_max = 2048;
		err("as many", setrlimit(RLIMIT_NOFILE, &l));
		num("the last", dup2(1, 2047));
		num("one more", dup2(1, 2048));
		set("fs/nr_open", "1024", 0);
		num("the last again", dup2(1, 2046));
		num("below", dup2(1, 1023));
		err("unshare", unshare(CLONE_FILES));
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		err("fork", pid);
	});
	put_back("fs/nr_open", was);
}

TEST(watches, "inotify and epoll limits")
{
	if (recorded("instances: 2\nwatches: 3\nfirst: ok\nsecond: ok\nthird: EMFILE\nd0: ok\nd1: ok\nd2: ok\nd3: ENOSPC\nd4: ENOSPC\n5 events, the last 4000\na user: exit 0"))
		return;
	KEEP("fs/inotify/max_user_instances");
	char *watches = strdup(value_of("fs/inotify/max_user_watches")), *events = strdup(value_of("fs/inotify/max_queued_events"));
	set("fs/inotify/max_user_instances", "2", 0);
	set("fs/inotify/max_user_watches", "3", 0);
	set("fs/inotify/max_queued_events", "4", 0);
	say("instances: %s", value_of("user/max_inotify_instances"));
	say("watches: %s", value_of("user/max_inotify_watches"));
	IN_CHILD("a user", {
		for (int i = 0; i < 5; i++) {
			char d[8];
			snprintf(d, sizeof d, "d%d", i);
			mkdir(d, 0777);
		}
		if (setresuid(4711, 4711, 4711) < 0)
			fatal("setresuid");
		int in = inotify_init1(IN_NONBLOCK);
		err("first", in);
		err("second", inotify_init());
		err("third", inotify_init());
		for (int i = 0; i < 5; i++) {
			char d[8];
			snprintf(d, sizeof d, "d%d", i);
			err(d, inotify_add_watch(in, d, IN_ALL_EVENTS));
		}
		for (int i = 0; i < 6; i++) {
			close(open("d0", O_RDONLY | O_DIRECTORY));
			close(open("d1", O_RDONLY | O_DIRECTORY));
		}
		char b[4096];
		ssize_t n = read(in, b, sizeof b);
		int all = 0;
		uint32_t last = 0;
		for (char *p = b; p < b + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len)
			all++, last = ((struct inotify_event *)p)->mask;
		say("%d events, the last %x", all, last);
	});
	put_back("fs/inotify/max_user_instances", was);
	put_back("fs/inotify/max_user_watches", watches);
	put_back("fs/inotify/max_queued_events", events);
}

TEST(maps, "vm.max_map_count and overcommit")
{
	if (recorded("about 280: 1, ENOMEM\nmappings: exit 0\nguessing: ENOMEM\nalways: ok"))
		return;
	KEEP("vm/max_map_count");
	set("vm/max_map_count", "300", 0);
	IN_CHILD("mappings", {
		int n = 0;
		while (n < 1000 && mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
			n++;
		say("about 280: %d, %s", n > 250 && n < 300, name_of(errno));
	});
	put_back("vm/max_map_count", was);
	was = strdup(value_of("vm/overcommit_memory"));
	size_t huge = (size_t)1 << 44;
	set("vm/overcommit_memory", "0", 0);
	err("guessing", mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
	set("vm/overcommit_memory", "1", 0);
	void *p = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err("always", p == MAP_FAILED ? -1 : 0);
	if (p != MAP_FAILED)
		munmap(p, huge);
	put_back("vm/overcommit_memory", was);
}

TEST(buffers, "buffers of sockets")
{
	if (recorded("net/core/rmem_default: 150000\nnet/core/wmem_default: 160000\nlarge: 800000\ntoo large: 1000000"))
		return;
	static const struct { const char *name, *value; int level, option; } tries[] = {
		{"net/core/rmem_default", "150000", SOL_SOCKET, SO_RCVBUF}, {"net/core/wmem_default", "160000", SOL_SOCKET, SO_SNDBUF},
	};
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		KEEP(tries[i].name);
		set(tries[i].name, tries[i].value, 0);
		int s = socket(AF_INET, SOCK_DGRAM, 0), v = 0;
		socklen_t n = sizeof v;
		getsockopt(s, tries[i].level, tries[i].option, &v, &n);
		say("%s: %d", tries[i].name, v);
		put_back(tries[i].name, was);
	}
	int s = socket(AF_INET, SOCK_DGRAM, 0), v;
	socklen_t n = sizeof v;
	char *was = strdup(value_of("net/core/rmem_max"));
	set("net/core/rmem_max", "500000", 0);
	v = 400000;
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, sizeof v);
	getsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, &n);
	say("large: %d", v);
	v = 600000;
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, sizeof v);
	getsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, &n);
	say("too large: %d", v);
	put_back("net/core/rmem_max", was);
}

TEST(sockets, "sockets")
{
	own();
	static const struct { const char *name, *value; int option; } tcp[] = {
		{"net/ipv4/tcp_keepalive_time", "1234", TCP_KEEPIDLE}, {"net/ipv4/tcp_keepalive_intvl", "12", TCP_KEEPINTVL},
		{"net/ipv4/tcp_keepalive_probes", "4", TCP_KEEPCNT}, {"net/ipv4/tcp_syn_retries", "3", TCP_SYNCNT},
		{"net/ipv4/tcp_fin_timeout", "33", TCP_LINGER2},
	};
	for (size_t i = 0; i < sizeof tcp / sizeof *tcp; i++) {
		KEEP(tcp[i].name);
		num(tcp[i].name, set(tcp[i].name, tcp[i].value, 0));
		int s = socket(AF_INET, SOCK_STREAM, 0), v = 0;
		socklen_t n = sizeof v;
		getsockopt(s, IPPROTO_TCP, tcp[i].option, &v, &n);
		say("%s: %d", tcp[i].name, v);
		put_back(tcp[i].name, was);
	}
	KEEP("net/ipv4/ip_default_ttl");
	set("net/ipv4/ip_default_ttl", "77", 0);
	int s = socket(AF_INET, SOCK_DGRAM, 0), v = 0;
	socklen_t n = sizeof v;
	getsockopt(s, IPPROTO_IP, IP_TTL, &v, &n);
	say("TTL %d", v);
	put_back("net/ipv4/ip_default_ttl", was);
	was = strdup(value_of("net/unix/max_dgram_qlen"));
	set("net/unix/max_dgram_qlen", "4", 0);
	int p[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p), "socketpair");
	int sent = 0;
	while (sent < 50 && send(p[0], "x", 1, 0) == 1)
		sent++;
	say("%d messages between two that are connected", sent);
	struct sockaddr_un to = {AF_UNIX, "receiver"};
	int r = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), w = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	must(bind(r, (void *)&to, sizeof to), "bind");
	must(connect(w, (void *)&to, sizeof to), "connect");
	for (sent = 0; sent < 50 && send(w, "x", 1, 0) == 1;)
		sent++;
	say("%d messages, %s", sent, name_of(errno));
	struct pollfd full = {w, POLLOUT};
	say("poll %d", poll(&full, 1, 0));
	char one;
	recv(r, &one, 1, 0);
	say("poll %d", poll(&full, 1, 0));
	num("and one", send(w, "x", 1, 0));
	put_back("net/unix/max_dgram_qlen", was);
}

TEST(ports, "ports")
{
	own();
	KEEP("net/ipv4/ip_unprivileged_port_start");
	set("net/ipv4/ip_unprivileged_port_start", "700", 0);
	IN_CHILD("a user", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		struct sockaddr_in a = {AF_INET, htons(699), {htonl(INADDR_LOOPBACK)}};
		err("699", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a));
		a.sin_port = htons(700);
		err("700", bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a));
		err("700 of UDP", bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)&a, sizeof a));
	});
	put_back("net/ipv4/ip_unprivileged_port_start", was);
	was = strdup(value_of("net/ipv4/ip_local_port_range"));
	num("range", set("net/ipv4/ip_local_port_range", "40000 40009", 0));
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	bind(l, (void *)&a, sizeof a);
	listen(l, 20);
	getsockname(l, (void *)&a, &n);
	say("bound within: %d", ntohs(a.sin_port) >= 40000 && ntohs(a.sin_port) <= 40009);
	int c = socket(AF_INET, SOCK_STREAM, 0);
	err("connect", connect(c, (void *)&a, sizeof a));
	getsockname(c, (void *)&a, &n);
	say("connected within: %d", ntohs(a.sin_port) >= 40000 && ntohs(a.sin_port) <= 40009);
	put_back("net/ipv4/ip_local_port_range", was);
	was = strdup(value_of("net/ipv6/bindv6only"));
	set("net/ipv6/bindv6only", "1", 0);
	int v = 0, s = socket(AF_INET6, SOCK_STREAM, 0);
	n = sizeof v;
	getsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &v, &n);
	say("V6ONLY %d", v);
	put_back("net/ipv6/bindv6only", was);
	was = strdup(value_of("net/ipv4/ping_group_range"));
	set("net/ipv4/ping_group_range", "1 0", 0);
	err("ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	set("net/ipv4/ping_group_range", "0 100", 0);
	err("ping of group 0", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	put_back("net/ipv4/ping_group_range", was);
}

static int answered(void)
{
	int s = must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "raw");
	struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	unsigned char echo[8] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0};
	must(sendto(s, echo, 8, 0, (void *)&a, sizeof a), "sendto");
	struct timeval wait = {0, 200000};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	unsigned char b[128];
	for (ssize_t n; (n = recv(s, b, sizeof b, 0)) >= 28;)
		if (b[20] == 0)
			return close(s), 1;
	close(s);
	return 0;
}

TEST(echo, "echo")
{
	own();
	KEEP("net/ipv4/icmp_echo_ignore_all");
	set("net/ipv4/icmp_echo_ignore_all", "0", 0);
	say("answered: %d", answered());
	set("net/ipv4/icmp_echo_ignore_all", "1", 0);
	say("answered: %d", answered());
	put_back("net/ipv4/icmp_echo_ignore_all", was);
}

TEST(keys, "the process that Ctrl-Alt-Del goes to")
{
	KEEP("kernel/cad_pid");
	say("%s", was);
	char self[16];
	snprintf(self, sizeof self, "%d", getpid());
	num("itself", set("kernel/cad_pid", self, 0) == (long)strlen(self));
	num("is it", atoi(value_of("kernel/cad_pid")) == getpid());
	err("none", set("kernel/cad_pid", "4194303", 0));
	err("zero", set("kernel/cad_pid", "0", 0));
	err("negative", set("kernel/cad_pid", "-5", 0));
	err("a word", set("kernel/cad_pid", "x", 0));
	put_back("kernel/cad_pid", was);
	say("%s", value_of("kernel/cad_pid"));
	IN_CHILD("a stranger", {
		if (setresuid(1000, 1000, 1000) < 0)
			fatal("setresuid");
		err("open", open(path_of("kernel/cad_pid"), O_RDONLY));
	});
}
