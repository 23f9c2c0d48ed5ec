// What root's children may do to everybody is put right: mounts, and the modes and
// owners of what others use.
#include "fuzz.h"

#include <sys/mount.h>

enum { table_size = 1 << 16 };

static char before[table_size], now[table_size]; // /proc/self/mounts

// A line of a mount table.
typedef struct {
	char source[256], at[4096], type[32], options[512];
} mounted;

static void read_table(char *to)
{
	static int fd = -1; // /proc itself may be unmounted
	if (fd < 0)
		fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, k;
	while (fd >= 0 && n < table_size - 1 && (k = pread(fd, to + n, (size_t)(table_size - 1 - n), n)) > 0)
		n += k;
	to[n] = 0;
}

// plain undoes the table's escapes: "\012" is a line's end.
static void plain(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3])
			*to++ = (char)strtol((char[]){s[1], s[2], s[3], 0}, NULL, 8), s += 3;
		else
			*to++ = *s;
	}
	*to = 0;
}

// parse takes a line apart and returns the next one; NULL: there was none.
static const char *parse(const char *line, mounted *m)
{
	if (sscanf(line, "%255s %4095s %31s %511s", m->source, m->at, m->type, m->options) != 4)
		return NULL;
	plain(m->source), plain(m->at);
	return strchr(line, '\n') ? strchr(line, '\n') + 1 : "";
}

// count tells how many lines of a table are of a place, or are the same as m.
static int count(const char *table, const mounted *m, int same)
{
	static mounted x;
	int n = 0;
	while (table && (table = parse(table, &x)))
		n += strcmp(x.at, m->at) == 0 && (!same || (strcmp(x.type, m->type) == 0 && strcmp(x.options, m->options) == 0));
	return n;
}

// put_mount mounts what is mounted no more, or with other options.
static void put_mount(const mounted *m, unsigned long flags)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} names[] = {{"ro", MS_RDONLY}, {"nosuid", MS_NOSUID}, {"nodev", MS_NODEV}, {"noexec", MS_NOEXEC}, {"noatime", MS_NOATIME}};
	char options[512], data[512] = "", *save;
	strcpy(options, m->options);
	for (char *o = strtok_r(options, ",", &save); o; o = strtok_r(NULL, ",", &save)) {
		for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
			if (strcmp(o, names[i].name) == 0)
				flags |= names[i].flag;
		if (strchr(o, '=')) {
			if (data[0])
				strcat(data, ",");
			strcat(data, o);
		}
	}
	mount(m->source, m->at, m->type, flags, data[0] ? data : NULL);
}

static int childrens(const char *at) { return strncmp(at, "/tmp/fuzz/", 10) == 0 || strncmp(at, "/disk/", 6) == 0; }

// right_mounts makes the table what it was at the first call; mounts in the children's
// own directories stay unless all is set.
void right_mounts(int all)
{
	static mounted m;
	if (!before[0]) {
		read_table(before);
		return;
	}
	read_table(now);
	for (const char *line = now; (line = parse(line, &m));)
		if ((all || !childrens(m.at)) && count(now, &m, 0) > count(before, &m, 0) && count(now, &m, 1) > count(before, &m, 1))
			umount2(m.at, MNT_DETACH | UMOUNT_NOFOLLOW);
	read_table(now);
	for (const char *line = before; (line = parse(line, &m));) {
		if (count(now, &m, 0) == 0)
			put_mount(&m, 0);
		else if (count(now, &m, 1) == 0)
			put_mount(&m, MS_REMOUNT);
	}
}

// right_modes gives what everybody uses its mode and owner back, and those who run
// beside the children their priority.
void right_modes(void)
{
	static const char *const names[] = {
		"/", "/tmp", "/tmp/fuzz", "/tmp/witness", "/disk", "/dev", "/dev/null", "/dev/zero", "/dev/full", "/dev/ptmx", "/dev/tty", "/dev/pts",
		"/proc", "/sys", "/fuzz",
	};
	enum { many = sizeof names / sizeof names[0] };
	static struct stat was[many];
	for (int i = 0; i < many; i++) {
		struct stat st;
		if (stat(names[i], &st) < 0 && (!S_ISDIR(was[i].st_mode) || mkdir(names[i], 0700) < 0 || stat(names[i], &st) < 0))
			continue;
		if (was[i].st_mode == 0)
			was[i] = st;
		if (st.st_uid != was[i].st_uid || st.st_gid != was[i].st_gid)
			chown(names[i], was[i].st_uid, was[i].st_gid);
		if (st.st_mode != was[i].st_mode)
			chmod(names[i], was[i].st_mode & 07777);
	}
	const pid_t pids[] = {0, guard_pid, witness_pid};
	for (int i = 0; i < 3; i++)
		setpriority(PRIO_PROCESS, pids[i], 0);
}
