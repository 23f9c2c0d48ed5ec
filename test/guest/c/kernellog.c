// The kernel's log: /dev/kmsg and syslog(2).
#include "gt.h"
#include <sys/klog.h>

static int mine(const char *text, const char *mark) { return strstr(text, mark) != NULL; }

// find reads records until one has the mark, and prints it without number and time.
static void find(int fd, const char *mark)
{
	char text[9000];
	for (;;) {
		ssize_t n = read(fd, text, sizeof text - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n < 0) {
			say("%s: not found: %s", mark, name_of(errno));
			return;
		}
		text[n] = 0;
		if (!mine(text, mark))
			continue;
		unsigned prio;
		unsigned long long number, at;
		char kind;
		int begin = 0;
		sscanf(text, "%u,%llu,%llu,%c;%n", &prio, &number, &at, &kind, &begin);
		char *end = strchr(text, '\n');
		say("%s: priority %u, %c, text %.*s|, ends %d", mark, prio, kind, (int)(end - text - begin), text + begin,
		    end == text + n - 1);
		return;
	}
}

// put writes one message by a descriptor of its own: Linux bounds how many one may write.
static long put(const char *text, size_t n)
{
	int w = open("/dev/kmsg", O_WRONLY);
	long rc = write(w, text, n);
	int was = errno;
	close(w);
	errno = was;
	return rc;
}

TEST(records, "what is written is read")
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	char line[1200];
	static const char *forms[] = {"gtmark plain\n", "<6>gtmark info\n", "<14>gtmark user info\n", "<30>gtmark daemon\n",
				      "<0>gtmark emergency\n", "<>gtmark empty\n", "<x>gtmark none\n", "<5gtmark open\n",
				      "gtmark back\\slash\ttab \303\244\n", "gtmark two\nlines\n", "<4095>gtmark large\n", "gtmark\n\n"};
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		lseek(fd, 0, SEEK_END);
		num("write", put(forms[i], strlen(forms[i])) == (ssize_t)strlen(forms[i]));
		find(fd, "gtmark");
	}
	// A message that does not end its line is not there until the next one begins.
	lseek(fd, 0, SEEK_END);
	put("gtmark unended", 14);
	find(fd, "gtmark");
	put("gtmark next\n", 12);
	find(fd, "gtmark"), find(fd, "gtmark");
	lseek(fd, 0, SEEK_END);
	num("nothing there", read(fd, line, sizeof line));
	struct pollfd p = {fd, POLLIN};
	num("poll", poll(&p, 1, 0));
	put("gtmark poll\n", 12);
	num("poll", poll(&p, 1, 1000));
	say("events %x", p.revents);
	num("too small", read(fd, line, 3));
	num("the next", read(fd, line, sizeof line));
	static char large[10000];
	memset(large, 'l', sizeof large);
	memcpy(large, "gtmark", 6);
	num("900 bytes", put(large, 900));
	num("10000 bytes", put(large, 10000));
	num("none", put("", 0));
	num("bad address", put((char *)1, 5));
	num("seek", lseek(fd, 5, SEEK_SET));
	num("seek", lseek(fd, 0, SEEK_CUR));
	num("seek", lseek(fd, 0, SEEK_SET));
	num("something there", read(fd, line, sizeof line) > 0);
	put("gtmark\n", 7);
	pid_t pid = fork();
	if (pid == 0) {
		int b = open("/dev/kmsg", O_RDONLY);
		lseek(b, 0, SEEK_END);
		num("waited", read(b, line, sizeof line) > 0);
		_exit(0);
	}
	settle(pid);
	put("gtmark wake\n", 12);
	status("reader", wait_for(pid));
}

TEST(calls, "syslog")
{
	static char text[1 << 20];
	num("size", klogctl(10, NULL, 0) > 4096);
	num("close", klogctl(0, NULL, 0)), num("open", klogctl(1, NULL, 0));
	err("unknown", klogctl(11, NULL, 0)), err("unknown", klogctl(-1, NULL, 0));
	err("no buffer", klogctl(3, NULL, 10)), err("negative", klogctl(3, text, -1)), num("none", klogctl(3, text, 0));
	err("bad address", klogctl(3, (char *)1, 100));
	err("level 0", klogctl(8, NULL, 0)), err("level 9", klogctl(8, NULL, 9));
	put("<14>gtmark one\n", 15), put("<14>gtmark two\n", 15);
	sleep_ms(50);
	long n = klogctl(3, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	num("all", mine(text, "gtmark one\n") && mine(text, "gtmark two\n"));
	char *at = strstr(text, "gtmark two");
	while (at && at > text && at[-1] != '\n')
		at--;
	num("priority", at && strncmp(at, "<14>", 4) == 0);
	num("little room", klogctl(3, text, 5));
	num("clear", klogctl(5, NULL, 0));
	num("after that", klogctl(3, text, sizeof text));
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	num("but here", read(fd, text, sizeof text) > 0);
	num("since then", lseek(fd, 0, SEEK_DATA));
	put("<14>gtmark three\n", 17);
	sleep_ms(50);
	n = klogctl(4, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	num("read and clear", mine(text, "gtmark three\n") && !mine(text, "gtmark two"));
	num("after that", klogctl(3, text, sizeof text));
	num("unread", klogctl(9, NULL, 0) > 0);
	IN_CHILD("a user", {
		setuid(1000);
		err("open", klogctl(1, NULL, 0)), err("clear", klogctl(5, NULL, 0)), err("unread", klogctl(9, NULL, 0));
		err("unknown", klogctl(11, NULL, 0)), err("level", klogctl(8, NULL, 5)), err("write", open("/dev/kmsg", O_WRONLY));
	});
}
