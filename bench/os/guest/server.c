// Rows with a server in the guest beside the client: Redis and NGINX. The
// servers are running already (init started them); a unit is one request as
// the whole machine sees it, client included.
#define _GNU_SOURCE
#include "osbench.h"

#include <sys/wait.h>

enum { redis_port = 6379, http_port = 80, depth = 16 };

static int redis_at = redis_port; // the server that redis calls

static void put(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t k = write(fd, p, len);
		check(k, "write to the server");
		p += k, len -= (size_t)k;
	}
}

// expect reads exactly len bytes of answers and compares the first with want.
static void expect(int fd, size_t len, const char *want)
{
	static char buf[65536];
	size_t got = 0;
	while (got < len) {
		ssize_t k = read(fd, buf + got, len - got);
		check(k, "read from the server");
		if (k == 0)
			errno = EPIPE, die("the server closed");
		got += (size_t)k;
	}
	if (memcmp(buf, want, strlen(want)) != 0) {
		fprintf(stderr, "osbench: the server answered %.60s\n", buf);
		exit(1);
	}
}

static void redis(long n, int pipelined)
{
	static const char set[] = "*3\r\n$3\r\nSET\r\n$9\r\nkey:00001\r\n$3\r\nxxx\r\n";
	char batch[sizeof set * depth];
	size_t len = 0;
	for (int i = 0; i < pipelined; i++)
		memcpy(batch + len, set, sizeof set - 1), len += sizeof set - 1;
	int fd = tcp_connect(NULL, redis_at);
	check(fd, "connect to redis");
	start();
	for (long i = 0; i < n; i++) {
		put(fd, batch, len);
		expect(fd, (size_t)pipelined * 5, "+OK\r\n");
	}
	stop();
	close(fd);
}

static void redis_row(long n) { redis(n, 1); }
static void redis16_row(long n) { redis(n, depth); }

// http_get sends one request and reads its answer: headers up to the empty
// line, then Content-Length bytes.
static void http_get(int fd, const char *request)
{
	static char buf[65536];
	size_t got = 0;
	char *body;
	put(fd, request, strlen(request));
	do {
		ssize_t k = read(fd, buf + got, sizeof buf - 1 - got);
		check(k, "read from nginx");
		if (k == 0)
			errno = EPIPE, die("nginx closed");
		got += (size_t)k;
		buf[got] = 0;
		body = strstr(buf, "\r\n\r\n");
	} while (!body);
	char *field = strstr(buf, "Content-Length: ");
	if (strncmp(buf, "HTTP/1.1 200", 12) != 0 || !field) {
		fprintf(stderr, "osbench: nginx answered %.60s\n", buf);
		exit(1);
	}
	size_t want = (size_t)(body + 4 - buf) + strtoul(field + 16, NULL, 10);
	while (got < want) {
		ssize_t k = read(fd, buf, sizeof buf - 1);
		check(k, "read from nginx");
		if (k == 0)
			errno = EPIPE, die("nginx closed");
		got += (size_t)k;
	}
}

static void nginx_row(long n)
{
	int fd = tcp_connect(NULL, http_port);
	check(fd, "connect to nginx");
	start();
	for (long i = 0; i < n; i++) {
		// NGINX closes a connection after keepalive_requests (1000).
		if (i % 900 == 899) {
			close(fd);
			fd = tcp_connect(NULL, http_port);
			check(fd, "connect to nginx");
		}
		http_get(fd, "GET /index.html HTTP/1.1\r\nHost: guest\r\n\r\n");
	}
	stop();
	close(fd);
}

static void nginxconn_row(long n)
{
	start();
	for (long i = 0; i < n; i++) {
		int fd = tcp_connect(NULL, http_port);
		check(fd, "connect to nginx");
		http_get(fd, "GET /index.html HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n");
		close(fd);
	}
	stop();
}

const bench server_benches[] = {
	{"redis", redis_row, 1},
	{"redis16", redis16_row, depth},
	{"nginx", nginx_row, 1},
	{"nginxconn", nginxconn_row, 1},
	{NULL, NULL, 0},
};

// load NAME CLIENTS SERVERS REQUESTS: that many clients of a row, each a process, send requests
// at the same time. Those of Redis are spread over servers at successive ports. Prints the time
// for a request, of all of them together.
int load_main(int argc, char **argv)
{
	enum { REPS = 5 };
	if (argc < 5)
		errno = EINVAL, die("load NAME CLIENTS SERVERS REQUESTS");
	const bench *b = server_benches;
	int clients = atoi(argv[2]), servers = atoi(argv[3]);
	long each = atol(argv[4]);
	while (b->name && strcmp(b->name, argv[1]) != 0)
		b++;
	if (!b->name || clients < 1 || servers < 1)
		errno = EINVAL, die(argv[1]);
	double least = 0, per[REPS];
	for (int r = 0; r < REPS; r++) {
		uint64_t t = now();
		for (int i = 0; i < clients; i++) {
			pid_t pid = fork();
			check(pid, "fork");
			if (pid == 0) {
				redis_at = redis_port + i % servers;
				b->run(each);
				_exit(0);
			}
		}
		for (int i = 0, st; i < clients; i++) {
			check(wait(&st), "wait");
			if (st != 0)
				errno = EPIPE, die("a client failed");
		}
		per[r] = (double)(now() - t) / (double)(clients * each * b->batch);
		least = r == 0 || per[r] < least ? per[r] : least;
		for (int i = r; i > 0 && per[i] < per[i - 1]; i--) {
			double x = per[i];
			per[i] = per[i - 1], per[i - 1] = x;
		}
	}
	printf("%s-%d %ld %.1f %.1f\n", b->name, servers, clients * each * b->batch, per[REPS / 2], least);
	return 0;
}
