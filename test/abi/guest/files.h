// The calls of the table of files, by what they are about.
#pragma once
#include "kinds.h"

int varies(subject *s); // what is read differs between machines or runs

#define CALLER(name) void name(subject *s)
CALLER(call_read); CALLER(call_write); CALLER(call_pread); CALLER(call_pwrite); CALLER(call_readv); CALLER(call_writev);
CALLER(call_preadv2); CALLER(call_pwritev2); CALLER(call_lseek); CALLER(call_getdents); CALLER(call_ftruncate);
CALLER(call_fallocate); CALLER(call_sync); CALLER(call_readahead); CALLER(call_fadvise);
CALLER(call_splice_in); CALLER(call_splice_out); CALLER(call_tee); CALLER(call_vmsplice); CALLER(call_sendfile_in);
CALLER(call_sendfile_out); CALLER(call_copy_in); CALLER(call_copy_out);
CALLER(call_fstat); CALLER(call_statx); CALLER(call_fstatfs); CALLER(call_fchmod); CALLER(call_fchown);
CALLER(call_utimens); CALLER(call_getxattr); CALLER(call_setxattr); CALLER(call_listxattr); CALLER(call_removexattr);
CALLER(call_fcntl); CALLER(call_setfl); CALLER(call_owner); CALLER(call_pipesize); CALLER(call_seals); CALLER(call_lease); CALLER(call_flock);
CALLER(call_posixlock); CALLER(call_ofdlock); CALLER(call_dup); CALLER(call_closerange); CALLER(call_poll); CALLER(call_select); CALLER(call_epoll);
CALLER(call_epollwait); CALLER(call_mmap); CALLER(call_mapped); CALLER(call_ioctl); CALLER(call_ioctlbits);
CALLER(call_at); CALLER(call_linkat); CALLER(call_execveat); CALLER(call_watch); CALLER(call_handle); CALLER(call_fchdir);
CALLER(call_bind); CALLER(call_listen); CALLER(call_accept); CALLER(call_connect); CALLER(call_send); CALLER(call_recv);
CALLER(call_names); CALLER(call_shutdown); CALLER(call_sockopt); CALLER(call_fdcalls); CALLER(call_reopen); CALLER(call_fdinfo);
