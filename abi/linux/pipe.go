package linux

// Pipes (include/uapi/linux/limits.h, fcntl.h, splice flags).
const (
	PIPE_BUF = 4096 // writes up to it are atomic

	F_SETPIPE_SZ = 1031
	F_GETPIPE_SZ = 1032

	SPLICE_F_MOVE     = 1
	SPLICE_F_NONBLOCK = 2
	SPLICE_F_MORE     = 4
	SPLICE_F_GIFT     = 8
	SPLICE_F_ALL      = 15

	FIONREAD = 0x541b // bytes that a read would find
)
