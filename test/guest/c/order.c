// Program order tests calls that have two reasons to fail, or nothing to do: which answer
// Linux gives.
#include "gt.h"

#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define HIGH ((void *)-4096L) // beyond user memory
#define BAD ((void *)8)

TEST(nothing, "ranges of no length beyond user memory")
{
	unsigned char v;
	err("mprotect", mprotect(HIGH, 0, PROT_READ));
	err("mlock", mlock(HIGH, 0));
	err("munlock", munlock(HIGH, 0));
	err("msync", msync(HIGH, 0, MS_SYNC));
	err("madvise", madvise(HIGH, 0, MADV_NORMAL));
	err("munmap", munmap(HIGH, 0));
	err("mincore", mincore(HIGH, 0, &v));
	err("mincore at the end", mincore((void *)(1UL << 47), 0, &v));
	err("mprotect of a page", mprotect(HIGH, 4096, PROT_READ));
	err("mlock of a page", mlock(HIGH, 4096));
}

TEST(descriptors, "descriptors of another kind")
{
	int p[2], file = open("file", O_CREAT | O_RDWR, 0600), path = open("file", O_PATH);
	char text[8];
	struct iovec one = {text, 1};
	must(pipe(p), "pipe");
	num("vmsplice of nothing", vmsplice(file, &one, 0, 0));
	num("vmsplice, bad vector", vmsplice(file, BAD, 1, 0));
	num("vmsplice", vmsplice(file, &one, 1, 0));
	num("sendfile, bad offset", sendfile(1000, p[0], BAD, 1));
	num("splice, bad offset", splice(p[0], NULL, 1000, NULL, 1, 0));
	num("splice to a file, bad offset", splice(p[0], NULL, file, BAD, 1, 0));
	num("writev to a path", writev(path, BAD, 1));
	num("readv of a path, too many", readv(path, &one, 5000));
	num("pwritev to a pipe, bad vector", pwritev(p[1], BAD, 1, 0));
	err("connect, bad address", connect(file, BAD, 16));
	err("connect, long address", connect(file, (void *)text, 1000));
	int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
	err("getsockopt of a strange level", getsockopt(unix_socket, IPPROTO_IP, 1, text, BAD));
	err("setsockopt of one", setsockopt(unix_socket, IPPROTO_IP, 1, BAD, 4));
	err("tcp, getsockopt of a strange level", getsockopt(tcp, 99, 1, text, BAD));
	err("tcp, setsockopt of one", setsockopt(tcp, 99, 1, BAD, 4));
	char name[32];
	struct stat st;
	static const int how[] = {O_RDONLY, O_WRONLY, O_RDWR, O_PATH};
	for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
		snprintf(name, sizeof name, "/proc/self/fd/%d", open("file", how[i]));
		must(lstat(name, &st), "lstat");
		say("open %#x: link of mode %o", how[i], st.st_mode);
	}
}

TEST(readonly, "names on a file system that is mounted for reading only")
{
	must(mkdir("d", 0700), "mkdir");
	must(mount("none", "d", "tmpfs", 0, NULL), "mount");
	close(open("d/file", O_CREAT | O_RDWR, 0600));
	must(mkdir("d/dir", 0700), "mkdir");
	must(mount(NULL, "d", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), "remount");
	err("unlink", unlink("d/file"));
	err("unlink of none", unlink("d/none"));
	err("unlink of a directory", unlink("d/dir"));
	err("rmdir", rmdir("d/dir"));
	err("rmdir of none", rmdir("d/none"));
	err("rmdir of a file", rmdir("d/file"));
	err("rmdir of .", rmdir("d/."));
	err("rename", rename("d/file", "d/other"));
	err("rename of none", rename("d/none", "d/other"));
	err("mkdir", mkdir("d/new", 0700));
	err("mkdir of what is there", mkdir("d/dir", 0700));
	err("symlink", symlink("x", "d/file"));
	must(umount("d"), "umount");
}

TEST(connections, "connected sockets")
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	char text[8];
	must(bind(listener, (void *)&a, sizeof a), "bind");
	must(listen(listener, 5), "listen");
	must(getsockname(listener, (void *)&a, &n), "getsockname");
	must(connect(client, (void *)&a, sizeof a), "connect");
	int server = must(accept(listener, NULL, NULL), "accept");
	num("receive nothing of nothing", recv(server, text, 0, MSG_DONTWAIT));
	num("read nothing", read(server, text, 0));
	num("receive nothing of a listener", recv(listener, text, 0, MSG_DONTWAIT));
	must(send(client, "abc", 3, 0), "send");
	num("receive all", recv(server, text, 3, MSG_PEEK | MSG_WAITALL));
	num("receive nothing of something", recv(server, text, 0, MSG_DONTWAIT));
	a.sin_family = 99;
	err("connect again to another family", connect(client, (void *)&a, sizeof a));
	err("with a short address", connect(client, (void *)&a, 4));
	err("of a listener", connect(listener, (void *)&a, sizeof a));
	close(client);
	num("receive the rest", recv(server, text, 8, MSG_WAITALL));
	num("receive nothing at the end", recv(server, text, 0, 0));
}

static void script(const char *what, const char *text, size_t n)
{
	unlink("script");
	int f = open("script", O_CREAT | O_WRONLY, 0700);
	must(write(f, text, n), "write");
	close(f);
	char *argv[] = {"script", NULL};
	err(what, execve("script", argv, NULL));
}

TEST(scripts, "scripts without an interpreter")
{
	script("#!", "#!", 2);
	script("#! and a line", "#!\n", 3);
	script("#! and a space", "#! ", 3);
	script("#!, a space and a line", "#! \n", 4);
	script("#! and zero", "#!\0/bin/sh\n", 11);
	script("zero without a line", "#!\0/bin/sh", 10);
	script("none", "#!/none\n", 8);
	script("none without a line", "#!/none", 7);
	script("a directory", "#!.\n", 4);
	script("itself", "#!script\n", 9);
	char text[300];
	memset(text, ' ', sizeof text);
	memcpy(text, "#!", 2);
	script("spaces", text, sizeof text);
	memset(text + 2, 'a', sizeof text - 2);
	script("a long name", text, sizeof text);
}
