// ioctl with the requests that any program may make of any file.
#include "files.h"
#include <linux/fs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/kd.h>
#include <termios.h>
#include <linux/fiemap.h>

struct request {
	const char *name;
	unsigned long number;
	int in; // what the argument points to, as an int
};

static const struct request requests[] = {
	{"FIOCLEX", FIOCLEX}, {"FIONCLEX", FIONCLEX}, {"FIONBIO", FIONBIO}, {"FIONBIO1", FIONBIO, 1}, {"FIOASYNC", FIOASYNC},
	{"FIOASYNC1", FIOASYNC, 1}, {"FIOQSIZE", FIOQSIZE}, {"FIONREAD", FIONREAD}, {"TIOCOUTQ", TIOCOUTQ}, {"SIOCOUTQNSD", SIOCOUTQNSD},
	{"FIBMAP", FIBMAP}, {"FIGETBSZ", FIGETBSZ}, {"FS_IOC_GETFLAGS", FS_IOC_GETFLAGS}, {"FS_IOC_SETFLAGS", FS_IOC_SETFLAGS},
	{"FS_IOC_GETVERSION", FS_IOC_GETVERSION}, {"FS_IOC_FSGETXATTR", FS_IOC_FSGETXATTR}, {"FS_IOC_FIEMAP", FS_IOC_FIEMAP},
	{"FIFREEZE+", 0xc0045800}, {"FICLONE", FICLONE, -1}, {"FITRIM+", 0x58ff}, {"FS_IOC_GETFSLABEL", FS_IOC_GETFSLABEL},
	{"TCGETS", TCGETS}, {"TCGETA", TCGETA}, {"TIOCGWINSZ", TIOCGWINSZ}, {"TIOCSWINSZ", TIOCSWINSZ}, {"TIOCGPGRP", TIOCGPGRP},
	{"TIOCSPGRP", TIOCSPGRP, 1}, {"TIOCGSID", TIOCGSID}, {"TIOCNOTTY", TIOCNOTTY}, {"TIOCGPTN", TIOCGPTN}, {"TIOCGPTLCK", TIOCGPTLCK},
	{"TIOCSPTLCK", TIOCSPTLCK, 0}, {"TIOCPKT", TIOCPKT, 0}, {"TIOCGPKT", TIOCGPKT}, {"TIOCEXCL", TIOCEXCL}, {"TIOCNXCL", TIOCNXCL},
	{"TIOCGEXCL", TIOCGEXCL}, {"TIOCGETD", TIOCGETD}, {"TIOCSETD", TIOCSETD, 0}, {"TIOCSETD99", TIOCSETD, 99}, {"TIOCMGET", TIOCMGET}, {"TIOCGSOFTCAR", TIOCGSOFTCAR},
	{"TIOCGSERIAL", TIOCGSERIAL}, {"TIOCGICOUNT", TIOCGICOUNT}, {"TIOCLINUX", TIOCLINUX}, {"TIOCCONS", TIOCCONS + 0x5400}, {"TIOCVHANGUP+", 0x54fe},
	{"TCGETX", TCGETX}, {"TIOCGRS485", TIOCGRS485}, {"TIOCSBRK", TIOCSBRK}, {"TIOCCBRK", TIOCCBRK}, {"TIOCGDEV", TIOCGDEV}, {"TIOCSIG", TIOCSIG},
	{"KDGKBTYPE", KDGKBTYPE}, {"KDGETMODE", KDGETMODE}, {"VT_GETSTATE", 0x5603},
	{"BLKGETSIZE", BLKGETSIZE}, {"BLKGETSIZE64", BLKGETSIZE64}, {"BLKSSZGET", BLKSSZGET}, {"BLKBSZGET", BLKBSZGET}, {"BLKROGET", BLKROGET},
	{"BLKRAGET", BLKRAGET}, {"BLKFLSBUF", BLKFLSBUF}, {"BLKPBSZGET", BLKPBSZGET}, {"BLKIOMIN", BLKIOMIN}, {"BLKALIGNOFF", BLKALIGNOFF}, {"BLKROTATIONAL", BLKROTATIONAL},
	{"SIOCATMARK", SIOCATMARK}, {"SIOCGPGRP", SIOCGPGRP}, {"SIOCSPGRP", SIOCSPGRP, 0}, {"FIOSETOWN", FIOSETOWN, 0}, {"FIOGETOWN", FIOGETOWN},
	{"SIOCGIFCONF", SIOCGIFCONF}, {"SIOCGIFNAME", SIOCGIFNAME}, {"SIOCGIFINDEX", SIOCGIFINDEX}, {"SIOCGIFFLAGS", SIOCGIFFLAGS},
	{"SIOCGIFADDR", SIOCGIFADDR}, {"SIOCGIFMTU", SIOCGIFMTU}, {"SIOCGIFHWADDR", SIOCGIFHWADDR}, {"SIOCGIFTXQLEN", SIOCGIFTXQLEN}, {"SIOCGIFNETMASK", SIOCGIFNETMASK}, {"SIOCGIFBRDADDR", SIOCGIFBRDADDR}, {"SIOCGIFMETRIC", SIOCGIFMETRIC},
	{"SIOCGARP", SIOCGARP}, {"SIOCGSTAMP", 0x8906}, {"SIOCGSTAMPNS", 0x8907}, {"SIOCETHTOOL", SIOCETHTOOL}, {"SIOCGIFMAP", SIOCGIFMAP},
	{"SIOCUNIXFILE", SIOCPROTOPRIVATE}, {"TFD_IOC_SET_TICKS", 0x40085400}, {"RNDGETENTCNT", 0x80045200}, {"RNDADDTOENTCNT", 0x40045201},
	{"NS_GET_USERNS", 0xb701}, {"NS_GET_PARENT", 0xb702}, {"NS_GET_NSTYPE", 0xb703}, {"NS_GET_OWNER_UID", 0xb704},
	{"0", 0}, {"-1", ~0ul}, {"high", 0x100005421ul},
};

static int skip(const char *name)
{
	return !strcmp(name, "FIFREEZE+") || !strcmp(name, "TIOCVHANGUP+");
}

static void request(subject *s, const struct request *r)
{
	int after;
	memset(buffer, 0, 512);
	memcpy(buffer, &r->in, 4);
	if (!strncmp(r->name, "SIOCGIF", 7) && strcmp(r->name, "SIOCGIFCONF"))
		strcpy(buffer, "lo"), strcmp(r->name, "SIOCGIFNAME") ? 0 : (*(int *)(buffer + 16) = 1);
	long arg = !strcmp(r->name, "FICLONE") ? -1 : P(buffer);
	result(S(ioctl, s->fd, r->number, arg));
	static const char *const shown[] = {"FIONREAD", "FIGETBSZ", "TIOCGPTLCK", "TIOCGPKT", "TIOCGEXCL", "TIOCGETD",
					    "SIOCATMARK", "FIOGETOWN", "FS_IOC_GETFLAGS", "BLKSSZGET", "BLKBSZGET", "SIOCOUTQNSD", "FIOQSIZE"};
	memcpy(&after, buffer, 4);
	for (unsigned i = 0; i < sizeof shown / sizeof *shown; i++)
		if (!strcmp(shown[i], r->name) && after != 0)
			note("%d", after);
}

// Each request is made of one and the same file, since few change it.
void call_ioctl(subject *s)
{
	if (want("%s", requests[0].name))
		for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++)
			if (!skip(requests[i].name)) {
				if (i > 0)
					another("%s", requests[i].name);
				request(s, &requests[i]);
			}
	if (want("%s-bad", requests[0].name))
		for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++)
			if (!skip(requests[i].name)) {
				if (i > 0)
					another("%s-bad", requests[i].name);
				result(S(ioctl, s->fd, requests[i].number, P(bad)));
			}
}

// call_ioctlbits asks for numbers that mostly nobody knows.
void call_ioctlbits(subject *s)
{
	EACH(type, 0, 255, "type") result(S(ioctl, s->fd, (unsigned long)type << 8 | 0x7f, P(bad)));
}
