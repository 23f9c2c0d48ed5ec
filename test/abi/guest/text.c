// Results as text.
#include "abi.h"

const char *error_name(int error)
{
	const char *name = strerrorname_np(error);
	if (error == EAGAIN)
		return "EAGAIN";
	if (error == EOPNOTSUPP)
		return "EOPNOTSUPP";
	if (error == 524)
		return "ENOTSUPP";
	return name ? name : "E?";
}

// note_bytes shows a few bytes, and of more than those the number and a sum.
void note_bytes(const void *p, long n)
{
	const unsigned char *c = p;
	char text[128];
	unsigned sum = 2166136261u;
	int at = 0;
	if (n < 0)
		return;
	for (long i = 0; i < n; i++) {
		sum = (sum ^ c[i]) * 16777619u;
		if (i >= 16)
			continue;
		if (c[i] > ' ' && c[i] < 127 && !strchr("=|%,:\"", c[i]))
			at += sprintf(text + at, "%c", c[i]);
		else
			at += sprintf(text + at, "%%%02x", c[i]);
	}
	text[at] = 0;
	if (n <= 16)
		note("\"%s\"", text);
	else
		note("\"%s\"+%ld#%04x", text, n - 16, sum & 0xffff);
}

long invoke(long number, const long *arg)
{
	return syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
