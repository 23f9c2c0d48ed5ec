// Program pipeslots tests how much a pipe holds: it has a number of buffers of a page
// each, and what is written shares a buffer only where it fits behind the last bytes.
#include "gt.h"

static char page_of[20 * 4096] __attribute__((aligned(4096)));

static void open_pipe(int p[2], int flags) { must(pipe2(p, flags | O_NONBLOCK), "pipe2"); }

static int held(int fd)
{
	int n = -1;
	must(ioctl(fd, FIONREAD, &n), "FIONREAD");
	return n;
}

static int writable(int fd)
{
	struct pollfd f = {fd, POLLOUT, 0};
	return poll(&f, 1, 0) == 1 && f.revents & POLLOUT;
}

// fill writes n bytes again and again until the pipe refuses.
static void fill(const char *what, int p[2], size_t n)
{
	int count = 0;
	ssize_t k = 0, last = 0;
	while (count < 100000 && (k = write(p[1], page_of, n)) > 0)
		count++, last = k;
	say("%s: %d times, last %zd, then %s; held %d, writable %d", what, count, last, name_of(errno), held(p[0]), writable(p[1]));
}

static void take(int p[2], size_t n)
{
	ssize_t k = read(p[0], page_of, n);
	say("read %zu: %zd; held %d, writable %d", n, k, held(p[0]), writable(p[1]));
}

static void put(int p[2], size_t n)
{
	ssize_t k = write(p[1], page_of, n);
	say("write %zu: %zd %s; held %d, writable %d", n, k, k < 0 ? name_of(errno) : "ok", held(p[0]), writable(p[1]));
}

static void done(int p[2])
{
	close(p[0]);
	close(p[1]);
}

TEST(filling, "how much fits")
{
	static const int sizes[] = {1, 2, 3, 7, 100, 1000, 1365, 1366, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 5000, 6000, 8191, 8192, 8193, 12289, 65535, 65536, 65537, 81920};
	for (int direct = 0; direct < 2; direct++)
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			int p[2];
			char what[40];
			open_pipe(p, direct ? O_DIRECT : 0);
			snprintf(what, sizeof what, "%s of %d", direct ? "packets" : "writes", sizes[i]);
			fill(what, p, (size_t)sizes[i]);
			take(p, 1);
			put(p, 1);
			take(p, 4095);
			put(p, 1);
			put(p, 4096);
			take(p, 4096);
			put(p, 100);
			take(p, 70000);
			take(p, 70000);
			done(p);
		}
}

TEST(merging, "what shares a buffer")
{
	int p[2];
	open_pipe(p, 0);
	put(p, 4096);
	put(p, 1);
	put(p, 4095);
	put(p, 2);
	take(p, 1);
	put(p, 4095);
	put(p, 5000);
	put(p, 8192 + 10);
	must(fcntl(p[1], F_SETFL, O_NONBLOCK | O_DIRECT), "F_SETFL");
	put(p, 10);
	put(p, 5000);
	put(p, 1);
	must(fcntl(p[1], F_SETFL, O_NONBLOCK), "F_SETFL");
	put(p, 1);
	put(p, 1);
	for (int i = 0; i < 14; i++)
		take(p, i % 3 ? 4000 : 100);
	done(p);
	open_pipe(p, 0);
	put(p, 6);
	put(p, 2);
	must(fcntl(p[1], F_SETFL, O_NONBLOCK | O_DIRECT), "F_SETFL");
	put(p, 5000);
	take(p, 3);
	take(p, 100);
	take(p, 6000);
	take(p, 6000);
	take(p, 6000);
	done(p);
}

TEST(sizes, "F_SETPIPE_SZ with packets in it")
{
	static const int to[] = {0, 1, 4096, 4097, 8192, 16384, 20000, 65536, 65537, 1 << 20, 1 << 17, 4096};
	for (int n = 0; n < 12; n += 3)
		for (int direct = 0; direct < 2; direct++) {
			int p[2];
			open_pipe(p, direct ? O_DIRECT : 0);
			for (int i = 0; i < n; i++)
				must(write(p[1], page_of, 100), "write");
			for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
				int rc = fcntl(p[1], F_SETPIPE_SZ, to[i]);
				say("%d %s, to %d: %d %s, now %d, held %d, writable %d", n, direct ? "packets" : "writes", to[i], rc, rc < 0 ? name_of(errno) : "ok",
				    fcntl(p[0], F_GETPIPE_SZ), held(p[0]), writable(p[1]));
			}
			fill("then", p, 1000);
			take(p, 150);
			take(p, 100000);
			done(p);
		}
}

TEST(splicing, "splice and vmsplice take buffers of their own")
{
	static const int parts[] = {1, 100, 4095, 4096, 4097, 10000};
	int file = open("file", O_CREAT | O_RDWR, 0600), p[2];
	must(write(file, page_of, sizeof page_of), "write");
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		for (int at = 0; at < 5000; at += 2100) {
			open_pipe(p, 0);
			loff_t off = at;
			ssize_t k;
			int count = 0;
			while (count < 100 && (k = splice(file, &off, p[1], NULL, (size_t)parts[i], 0)) > 0)
				count++;
			say("file from %d by %d: %d times, then %s; held %d, offset %lld", at, parts[i], count, name_of(k < 0 ? errno : 0), held(p[0]), (long long)off);
			take(p, 50);
			put(p, 50);
			take(p, 100000);
			done(p);
			open_pipe(p, 0);
			count = 0;
			struct iovec v = {page_of + at, (size_t)parts[i]};
			while (count < 100 && (k = vmsplice(p[1], &v, 1, SPLICE_F_NONBLOCK)) > 0)
				count++;
			say("memory at %d, %d: %d times, then %s; held %d", at, parts[i], count, name_of(k < 0 ? errno : 0), held(p[0]));
			take(p, 50);
			put(p, 50);
			take(p, 100000);
			done(p);
		}
	open_pipe(p, 0);
	struct iovec v[20];
	for (int i = 0; i < 20; i++)
		v[i] = (struct iovec){page_of + 4000 * i, (size_t)(i * 37 % 300)};
	num("twenty parts", vmsplice(p[1], v, 20, SPLICE_F_NONBLOCK));
	num("again", vmsplice(p[1], v, 20, SPLICE_F_NONBLOCK));
	take(p, 100000);
	done(p);
}

TEST(between, "tee and splice between pipes")
{
	static const int amounts[] = {1, 50, 150, 4096, 5000, 70000};
	for (int move = 0; move < 2; move++)
		for (int direct = 0; direct < 2; direct++)
			for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
				int p[2], q[2];
				open_pipe(p, direct ? O_DIRECT : 0);
				open_pipe(q, 0);
				for (int k = 0; k < 7; k++)
					must(write(p[1], page_of, (size_t)(100 + 1000 * k)), "write");
				for (int k = 0; k < 4; k++) {
					ssize_t n = move ? splice(p[0], NULL, q[1], NULL, (size_t)amounts[i], SPLICE_F_NONBLOCK)
							 : tee(p[0], q[1], (size_t)amounts[i], SPLICE_F_NONBLOCK);
					say("%s %s by %d: %zd %s; held %d and %d", move ? "move" : "tee", direct ? "packets" : "writes", amounts[i], n, n < 0 ? name_of(errno) : "ok", held(p[0]), held(q[0]));
					put(q, 10);
				}
				fill("then", q, 5);
				take(q, 30);
				take(q, 5000);
				take(q, 100000);
				take(p, 100000);
				done(p);
				done(q);
			}
}
