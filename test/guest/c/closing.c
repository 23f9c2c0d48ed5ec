// Calls that wait while another thread closes their descriptor, and what they leave
// behind.
#include "gt.h"
#include <pthread.h>

static int fd;

static void *wait_for_lock(void *result)
{
	struct flock l = {.l_type = F_WRLCK};
	*(int *)result = fcntl(fd, F_SETLKW, &l) < 0 ? errno : 0;
	return NULL;
}

// locked says what lock somebody else sees on the file.
static void locked(const char *what)
{
	IN_CHILD(what, {
		int f = open("f", O_RDWR);
		struct flock l = {.l_type = F_WRLCK};
		must(fcntl(f, F_GETLK, &l), "F_GETLK");
		say(l.l_type == F_UNLCK ? "free" : "locked");
	});
}

// hold starts a process that holds a lock on the file until go is written to.
static pid_t hold(int go[2])
{
	must(pipe(go), "pipe");
	pid_t holder = FORK({
		struct flock l = {.l_type = F_WRLCK};
		char c;
		must(fcntl(open("f", O_RDWR), F_SETLK, &l), "F_SETLK");
		close(go[1]);
		read(go[0], &c, 1);
	});
	until(({ struct flock l = {.l_type = F_WRLCK}; int f = open("f", O_RDWR); fcntl(f, F_GETLK, &l); close(f); l.l_type != F_UNLCK; }));
	return holder;
}

TEST(record_locks, "a lock that comes after the close")
{
	must(close(open("f", O_RDWR | O_CREAT, 0600)), "open");
	int go[2];
	pid_t holder = hold(go);
	locked("held");
	IN_CHILD("waiter", {
		pthread_t t;
		int result = -1;
		fd = open("f", O_RDWR);
		pthread_create(&t, NULL, wait_for_lock, &result);
		settle_threads();
		err("close", close(fd));
		write(go[1], "x", 1);
		pthread_join(t, NULL);
		say("the lock: %s", name_of(result));
		locked("while it lives");
	});
	status("holder", wait_for(holder));
	locked("after its end");
}

TEST(replaced, "a lock that comes after a dup2 over the descriptor")
{
	must(close(open("f", O_RDWR | O_CREAT, 0600)), "open");
	must(close(open("g", O_RDWR | O_CREAT, 0600)), "open");
	int go[2];
	pid_t holder = hold(go);
	IN_CHILD("waiter", {
		pthread_t t;
		int result = -1;
		fd = open("f", O_RDWR);
		pthread_create(&t, NULL, wait_for_lock, &result);
		settle_threads();
		num("dup2", dup2(open("g", O_RDWR), fd) == fd);
		write(go[1], "x", 1);
		pthread_join(t, NULL);
		say("the lock: %s", name_of(result));
		locked("while it lives");
	});
	status("holder", wait_for(holder));
	locked("after its end");
}
