package linux

// Flags of epoll_create1(2) and events of epoll_ctl(2)
// (include/uapi/linux/eventpoll.h). The readiness bits are wait.Events.
const (
	EPOLL_CLOEXEC = O_CLOEXEC

	EPOLL_CTL_ADD = 1
	EPOLL_CTL_DEL = 2
	EPOLL_CTL_MOD = 3

	EPOLLEXCLUSIVE = 1 << 28
	EPOLLWAKEUP    = 1 << 29
	EPOLLONESHOT   = 1 << 30
	EPOLLET        = 1 << 31
)

// SizeofEpollEvent is the packed struct epoll_event of x86-64: u32 events, u64 data.
const SizeofEpollEvent = 12

// SizeofPollFd is struct pollfd: int fd, short events, short revents.
const SizeofPollFd = 8

// FD_SETSIZE is the number of bits of fd_set in C libraries; select itself takes more.
const FD_SETSIZE = 1024
