// The table of files: each kind of descriptor with each call that takes one.
#include "files.h"

// What a call may change without saying so.
static struct state {
	long pos, flags;
	struct stat st;
	int stat;
} was;

static void look(int fd, struct state *now)
{
	now->pos = S(lseek, fd, 0, SEEK_CUR);
	now->flags = S(fcntl, fd, F_GETFL);
	now->stat = fstat(fd, &now->st);
}

static void before(subject *s)
{
	if (!s->nofile)
		look(s->fd, &was);
}

// restore gives a file that others use its rights back.
static void restore(int fd, const struct stat *now)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (now->st_uid != was.st.st_uid || now->st_gid != was.st.st_gid)
		chown(path, was.st.st_uid, was.st.st_gid);
	if (now->st_mode != was.st.st_mode)
		chmod(path, was.st.st_mode & 07777);
}

static void after(subject *s)
{
	struct state now;
	if (s->nofile)
		return;
	look(s->fd, &now);
	if (now.pos != was.pos && (now.pos > 1L << 40 || (now.pos > 64 && varies(s))))
		note("pos:far");
	else if (now.pos != was.pos)
		note("pos:%ld", now.pos);
	if (now.flags != was.flags)
		note("flags:%lo", now.flags);
	if (now.stat != 0 || was.stat != 0)
		return;
	if (now.st.st_size != was.st.st_size)
		note("size:%ld", (long)now.st.st_size);
	if (now.st.st_mode != was.st.st_mode)
		note("mode:%o", now.st.st_mode);
	if (now.st.st_uid != was.st.st_uid || now.st.st_gid != was.st.st_gid)
		note("owner:%d:%d", now.st.st_uid, now.st.st_gid);
	restore(s->fd, &now.st);
	if (now.st.st_nlink != was.st.st_nlink)
		note("links:%ld", (long)now.st.st_nlink);
}

static const call calls[] = {
	{"read", call_read}, {"write", call_write}, {"pread", call_pread}, {"pwrite", call_pwrite},
	{"readv", call_readv}, {"writev", call_writev}, {"preadv2", call_preadv2}, {"pwritev2", call_pwritev2},
	{"lseek", call_lseek}, {"getdents", call_getdents}, {"ftruncate", call_ftruncate, 1}, {"fallocate", call_fallocate, 1},
	{"sync", call_sync}, {"readahead", call_readahead}, {"fadvise", call_fadvise, 1},
	{"splice-in", call_splice_in}, {"splice-out", call_splice_out}, {"tee", call_tee}, {"vmsplice", call_vmsplice},
	{"sendfile-in", call_sendfile_in}, {"sendfile-out", call_sendfile_out}, {"copy-in", call_copy_in}, {"copy-out", call_copy_out},
	{"fstat", call_fstat}, {"statx", call_statx}, {"fstatfs", call_fstatfs}, {"fchmod", call_fchmod, 1}, {"fchown", call_fchown, 1},
	{"utimens", call_utimens, 1}, {"getxattr", call_getxattr, 1}, {"setxattr", call_setxattr, 1}, {"listxattr", call_listxattr},
	{"removexattr", call_removexattr, 1}, {"fcntl", call_fcntl, 1}, {"setfl", call_setfl, 1}, {"owner", call_owner, 1},
	{"pipesize", call_pipesize, 1}, {"seals", call_seals}, {"lease", call_lease, 1}, {"flock", call_flock}, {"posixlock", call_posixlock}, {"ofdlock", call_ofdlock},
	{"dup", call_dup}, {"closerange", call_closerange}, {"poll", call_poll}, {"select", call_select}, {"epoll", call_epoll},
	{"epollwait", call_epollwait}, {"mmap", call_mmap, 1}, {"mapped", call_mapped}, {"ioctl", call_ioctl},
	{"ioctlbits", call_ioctlbits}, {"at", call_at, 1}, {"linkat", call_linkat, 1}, {"execveat", call_execveat, 1}, {"watch", call_watch, 1},
	{"handle", call_handle, 1}, {"fchdir", call_fchdir, 1}, {"bind", call_bind}, {"listen", call_listen}, {"accept", call_accept},
	{"connect", call_connect}, {"send", call_send}, {"recv", call_recv}, {"names", call_names}, {"shutdown", call_shutdown},
	{"sockopt", call_sockopt}, {"fdcalls", call_fdcalls, 1}, {"reopen", call_reopen, 1}, {"fdinfo", call_fdinfo},
	{},
};

const table files_table = {"files", file_kinds, calls, before, after};
