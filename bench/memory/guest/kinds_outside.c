// Offenders who take what another kernel of the machine, or the host, is asked to keep too.
// They need a machine that has it: without, they get nothing.
#include "memory.h"
#include <sys/ioctl.h>

enum { clusterConnect = 0x40444801, clusterListen = 0x40444802, clusterAccept = 0x4803 }; // abi/cluster

struct address {
	uint32_t cluster;
	char name[64];
};

static struct address sinkName = {1, "sink"};

void sink(void)
{
	int l = open("/dev/cluster", O_RDWR);
	if (l >= 0 && ioctl(l, clusterListen, &sinkName) == 0)
		while (ioctl(l, clusterAccept, 0) >= 0 || errno == EINTR)
			;
	for (;;)
		pause();
}

// Channels to another kernel, full of bytes that nobody reads there.
static void channels(void)
{
	char *buf = emptyPages(65536);
	int full = 0;
	moreDescriptors();
	for (int fd; full < 20 && (fd = open("/dev/cluster", O_RDWR)) >= 0;) {
		if (ioctl(fd, clusterConnect, &sinkName) < 0) {
			close(fd);
			full++;
			nap(1);
			continue;
		}
		fcntl(fd, F_SETFL, O_NONBLOCK);
		for (int i = 0; i < 100 && write(fd, buf, 4096) > 0; i++)
			;
	}
}

// Open files of a folder that the host shares, with a page of each in memory.
static void shares(void)
{
	char name[64], *buf = emptyPages(4096);
	moreDescriptors();
	for (int i = 0; i < 1 << 20; i++) {
		snprintf(name, sizeof name, "/share/f.%d.%d", getpid(), i % 50);
		int fd = open(name, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return;
		if (i < 50)
			write(fd, buf, 4096);
		pread(fd, buf, 4096, 0);
	}
}

// Names that a shared folder does not have, and listings of it.
static void sharenames(void)
{
	char name[300];
	moreDescriptors();
	for (int i = 0; i < 1 << 20; i++) {
		snprintf(name, sizeof name, "/share/%0200d.%d", i, getpid());
		access(name, F_OK);
		if (i % 16 == 0 && open("/share", O_RDONLY | O_DIRECTORY) < 0)
			return;
	}
}

const struct kind outsideKinds[] = {
	{"channels", channels},
	{"shares", shares},
	{"sharenames", sharenames},
	{},
};
