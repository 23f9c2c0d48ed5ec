package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

// Messages through sockets. (Ancillary data is in control.go.)
var messageCalls = []Call{
	{linux.SYS_sendto, "sendto", sysSendto, "works; MSG_OOB on TCP only between sockets of this machine; MSG_ZEROCOPY copies, and reports that it did"},
	{linux.SYS_recvfrom, "recvfrom", sysRecvfrom, "works; MSG_OOB on TCP only between sockets of this machine; network errors are queued (MSG_ERRQUEUE) for UDP only"},
	{linux.SYS_sendmsg, "sendmsg", sysSendmsg, "works; MSG_OOB on TCP only between sockets of this machine; MSG_ZEROCOPY copies, and reports that it did"},
	{linux.SYS_recvmsg, "recvmsg", sysRecvmsg, "works; MSG_OOB on TCP only between sockets of this machine; network errors are queued (MSG_ERRQUEUE) for UDP only"},
	{linux.SYS_sendmmsg, "sendmmsg", sysSendmmsg, "works"},
	{linux.SYS_recvmmsg, "recvmmsg", sysRecvmmsg, "works"},
}

// sysSendto is sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len).
func sysSendto(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	m := sock.GetMsg(&t.Vec)
	m.Flags, m.FS = a.Int(3), t.FS
	if a[4] != 0 {
		e = readAddr(t, a.Addr(4), a.Int(5), &m.From)
		m.To = &m.From
	}
	n := 0
	if e == 0 {
		n, e = s.Send(&t.Ctx, f, m)
	}
	sock.PutMsg(m)
	f.Put()
	return uint64(n), e
}

// sysRecvfrom is recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len).
func sysRecvfrom(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	m := sock.GetMsg(&t.Vec)
	m.Flags, m.WantFrom = a.Int(3), a[4] != 0
	n, e := s.Recv(&t.Ctx, f, m)
	dropRights(m)
	if e == 0 && m.WantFrom {
		e = writeAddr(t, a.Addr(4), a.Addr(5), &m.From)
	}
	sock.PutMsg(m)
	f.Put()
	return uint64(n), e
}

// dropRights closes files for which the program has no room.
func dropRights(m *sock.Msg) {
	for _, f := range m.Rights {
		f.Put()
	}
	m.Rights = nil
}

// msghdr is struct msghdr.
type msghdr struct {
	name       uio.Addr
	nameLen    int32
	iov        uio.Addr
	iovLen     uint64
	control    uio.Addr
	controlLen uint64
}

func readMsghdr(t *proc.Thread, addr uio.Addr) (h msghdr, e linux.Errno) {
	b, e := readUser(t, addr, linux.SizeofMsghdr)
	if e != 0 {
		return h, e
	}
	u := binary.LittleEndian.Uint64
	h = msghdr{
		name: uio.Addr(u(b)), nameLen: int32(u(b[8:])), iov: uio.Addr(u(b[16:])), iovLen: u(b[24:]),
		control: uio.Addr(u(b[32:])), controlLen: u(b[40:]),
	}
	if h.name == 0 {
		h.nameLen = 0
	}
	if h.nameLen < 0 {
		return h, linux.EINVAL
	}
	if h.iovLen > linux.UIO_MAXIOV {
		return h, linux.EMSGSIZE
	}
	return h, 0
}

// initVec makes the message's iovecs the thread's Vec.
func (h *msghdr) initVec(t *proc.Thread) linux.Errno {
	return initVec(t, h.iov, h.iovLen)
}

// sysSendmsg is sendmsg(int fd, const struct msghdr *msg, int flags).
func sysSendmsg(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	n, e := sendMessage(t, f, s, a.Addr(1), a.Int(2))
	f.Put()
	return uint64(n), e
}

func sendMessage(t *proc.Thread, f *vfs.File, s sock.Socket, addr uio.Addr, flags int32) (n int, e linux.Errno) {
	h, e := readMsghdr(t, addr)
	if e != 0 {
		return 0, e
	}
	m := sock.GetMsg(&t.Vec)
	defer sock.PutMsg(m)
	m.Flags, m.FS = flags, t.FS
	if h.nameLen > 0 {
		if e := readAddr(t, h.name, min(h.nameLen, linux.SizeofSockaddrSpace), &m.From); e != 0 {
			return 0, e
		}
		m.To = &m.From
	}
	if e := readControl(t, s.SockBase(), h.control, h.controlLen, m); e != 0 {
		dropRights(m)
		return 0, e
	}
	if e = h.initVec(t); e == 0 {
		n, e = s.Send(&t.Ctx, f, m)
	}
	dropRights(m) // what Send did not take
	return n, e
}

// sysRecvmsg is recvmsg(int fd, struct msghdr *msg, int flags).
func sysRecvmsg(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	n, e := receiveMessage(t, f, s, a.Addr(1), a.Int(2))
	f.Put()
	return uint64(n), e
}

func receiveMessage(t *proc.Thread, f *vfs.File, s sock.Socket, addr uio.Addr, flags int32) (int, linux.Errno) {
	h, e := readMsghdr(t, addr)
	if e != 0 {
		return 0, e
	}
	if e := h.initVec(t); e != 0 {
		return 0, e
	}
	m := sock.GetMsg(&t.Vec)
	defer sock.PutMsg(m)
	m.Flags, m.WantFrom = flags, h.name != 0
	m.TTL, m.TOS = -1, -1
	n, e := s.Recv(&t.Ctx, f, m)
	if e != 0 {
		dropRights(m)
		return 0, e
	}
	if m.WantFrom {
		if _, e := t.Mem.CopyOut(h.name, m.From.B[:min(int(h.nameLen), m.From.Len)]); e != 0 {
			dropRights(m)
			return 0, e
		}
		if e := writeU32(t, addr+8, uint32(m.From.Len)); e != 0 {
			dropRights(m)
			return 0, e
		}
	}
	used, e := writeControl(t, s, h.control, h.controlLen, m)
	if e != 0 {
		return 0, e
	}
	out := uint32(m.OutFlags) | uint32(flags)&linux.MSG_CMSG_CLOEXEC
	if e := writeWords(t, addr+40, int64(used), int64(out)); e != 0 {
		return 0, e
	}
	return n, 0
}

// sysSendmmsg is sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags).
func sysSendmmsg(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	addr := a.Addr(1)
	count := min(a.Uint(2), linux.UIO_MAXIOV)
	done := uint64(0)
	for ; done < uint64(count); done++ {
		var n int
		if n, e = sendNext(t, f, s, addr, a.Int(3)); e != 0 {
			break
		}
		if e = writeU32(t, addr+linux.SizeofMsghdr, uint32(n)); e != 0 {
			break
		}
		addr += linux.SizeofMmsghdr
	}
	if done > 0 {
		return done, 0
	}
	return 0, e
}

// sendNext sends one of the messages of a sendmmsg.
//
//maxlive:point because each message reserves for itself
func sendNext(t *proc.Thread, f *vfs.File, s sock.Socket, addr uio.Addr, flags int32) (int, linux.Errno) {
	t.ReserveNext(linux.SYS_sendmsg)
	return sendMessage(t, f, s, addr, flags)
}

// receiveNext receives one of the messages of a recvmmsg.
//
//maxlive:point because each message reserves for itself
func receiveNext(t *proc.Thread, f *vfs.File, s sock.Socket, addr uio.Addr, flags int32) (int, linux.Errno) {
	t.ReserveNext(linux.SYS_recvmsg)
	return receiveMessage(t, f, s, addr, flags)
}

// sysRecvmmsg is recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout).
func sysRecvmmsg(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	limit, e := limitTimespec(t, a.Addr(4))
	if e != 0 {
		return 0, e
	}
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	addr, flags := a.Addr(1), a.Int(3)
	count := min(a.Uint(2), linux.UIO_MAXIOV)
	done := uint64(0)
	for done < uint64(count) {
		var n int
		if n, e = receiveNext(t, f, s, addr, flags&^linux.MSG_WAITFORONE); e != 0 {
			break
		}
		if e = writeU32(t, addr+linux.SizeofMsghdr, uint32(n)); e != 0 {
			break
		}
		done++
		addr += linux.SizeofMmsghdr
		if flags&linux.MSG_WAITFORONE != 0 {
			flags |= linux.MSG_DONTWAIT
		}
		// As Linux: the time limit is looked at after each message.
		if limit.poll || limit.deadline != 0 && limit.left() == 0 {
			break
		}
	}
	if done > 0 {
		if a[4] != 0 {
			if e := writeTimespec(t, a.Addr(4), linux.NsecToTimespec(limit.left())); e != 0 {
				return 0, e
			}
		}
		return done, 0
	}
	return 0, e
}
