package trace

import "hardtack/abi/linux"

// structure writes a structure in user memory, or its address if that cannot be read.
func (c *call) structure(a *arg, i int, v uint64) {
	if v == 0 && a.op != opSignal && a.op != opFutex && a.op != opSocketOption {
		c.text("NULL")
		return
	}
	switch a.op {
	case opStat:
		c.stat(v)
	case opStatus:
		c.status(v)
	case opRemains:
		if c.err == 0 {
			c.pointer(v) // nothing remains
			return
		}
		c.timespecs(v, 1, "tv_nsec")
	case opTimespec:
		c.timespecs(v, 1, "tv_nsec")
	case opTimeval:
		c.timespecs(v, 1, "tv_usec")
	case opTimes:
		c.timespecs(v, 2, "tv_nsec")
	case opItimerspec:
		c.itimerspec(v)
	case opPair:
		c.pair(v)
	case opInt:
		c.int32At(v)
	case opAddress:
		c.addressArg(a, i, v)
	case opIovec:
		c.iovec(v, c.args[a.ref], a.after)
	case opMessage:
		c.message(v, a.after)
	case opSigset:
		c.sigset(v)
	case opSigaction:
		c.sigaction(v)
	case opSignal:
		c.signal(v)
	case opPolls:
		c.polls(v, c.args[a.ref], "events", 4)
	case opEpollEvent:
		c.epollEvents(v, 1, false)
	case opEpollEvents:
		c.epollEvents(v, c.length(a), true)
	case opFutex:
		c.choice(v&0x7f, futexNames)
		if v&0x80 != 0 {
			c.text("_PRIVATE")
		}
		if v&0x100 != 0 {
			c.text("|FUTEX_CLOCK_REALTIME")
		}
	case opSocketOption:
		c.socketOption(v)
	case opLimits:
		c.limits(v)
	}
}

func (c *call) stat(addr uint64) {
	b := c.load(addr, 144)
	if b == nil {
		c.pointer(addr)
		return
	}
	mode, size, rdev := uint64(le.Uint32(b[24:])), le.Uint64(b[48:]), le.Uint64(b[40:])
	c.text("{st_mode=")
	c.choice(mode&linux.S_IFMT, kindNames)
	c.byte('|')
	c.octal(mode &^ linux.S_IFMT)
	if t := mode & linux.S_IFMT; t == linux.S_IFCHR || t == linux.S_IFBLK {
		c.text(", st_rdev=makedev(")
		c.hex(uint64(linux.Major(rdev)))
		c.text(", ")
		c.hex(uint64(linux.Minor(rdev)))
		c.text("), ...}")
		return
	}
	c.text(", st_size=")
	c.unsigned(size)
	c.text(", ...}")
}

// status writes what wait4 tells.
func (c *call) status(addr uint64) {
	b := c.load(addr, 4)
	if b == nil || c.ret == 0 {
		c.pointer(addr)
		return
	}
	s := uint64(le.Uint32(b))
	switch sig := s & 0x7f; {
	case sig == 0:
		c.text("[{WIFEXITED(s) && WEXITSTATUS(s) == ")
		c.unsigned(s >> 8 & 0xff)
	case s == 0xffff:
		c.text("[{WIFCONTINUED(s)")
	case s&0xff == 0x7f:
		c.text("[{WIFSTOPPED(s) && WSTOPSIG(s) == ")
		c.signal(s >> 8 & 0xff)
	default:
		c.text("[{WIFSIGNALED(s) && WTERMSIG(s) == ")
		c.signal(sig)
	}
	c.text("}]")
}

// timespecs writes one or two pairs of seconds and a part of a second.
func (c *call) timespecs(addr uint64, n int, part string) {
	b := c.load(addr, 16*n)
	if b == nil {
		c.pointer(addr)
		return
	}
	if n > 1 {
		c.byte('[')
	}
	for i := range n {
		if i > 0 {
			c.text(", ")
		}
		c.timespec(b[16*i:], part)
	}
	if n > 1 {
		c.byte(']')
	}
}

func (c *call) timespec(b []byte, part string) {
	nsec := le.Uint64(b[8:])
	switch nsec {
	case linux.UTIME_NOW:
		c.text("UTIME_NOW")
		return
	case linux.UTIME_OMIT:
		c.text("UTIME_OMIT")
		return
	}
	c.text("{tv_sec=")
	c.signed(int64(le.Uint64(b)))
	c.text(", ")
	c.text(part)
	c.byte('=')
	c.signed(int64(nsec))
	c.byte('}')
}

func (c *call) itimerspec(addr uint64) {
	b := c.load(addr, 32)
	if b == nil {
		c.pointer(addr)
		return
	}
	c.text("{it_interval=")
	c.timespec(b, "tv_nsec")
	c.text(", it_value=")
	c.timespec(b[16:], "tv_nsec")
	c.byte('}')
}

func (c *call) pair(addr uint64) {
	b := c.load(addr, 8)
	if b == nil {
		c.pointer(addr)
		return
	}
	c.byte('[')
	c.signed(int64(int32(le.Uint32(b))))
	c.text(", ")
	c.signed(int64(int32(le.Uint32(b[4:]))))
	c.byte(']')
}

// iovec writes a list of buffers; after a call that has filled them, its result says how far.
func (c *call) iovec(addr, n uint64, after bool) {
	left := ^uint64(0)
	if after {
		left = c.ret
	}
	c.byte('[')
	for i := range min(n, itemsShown) {
		b := c.load(addr+16*i, 16)
		if b == nil {
			c.pointer(addr + 16*i)
			break
		}
		base, size := le.Uint64(b), le.Uint64(b[8:])
		if i > 0 {
			c.text(", ")
		}
		if c.full() {
			break
		}
		c.text("{iov_base=")
		shown := min(size, left)
		c.buffer(base, shown)
		left -= shown
		c.text(", iov_len=")
		c.unsigned(size)
		c.byte('}')
	}
	if n > itemsShown || c.full() {
		c.text(", ...")
	}
	c.byte(']')
}

func (c *call) message(addr uint64, after bool) {
	b := c.load(addr, 56)
	if b == nil {
		c.pointer(addr)
		return
	}
	name, nameLen, iov, n := le.Uint64(b), le.Uint32(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	controlLen, flags := le.Uint64(b[40:]), le.Uint32(b[48:])
	c.text("{msg_name=")
	c.address(name, int(nameLen))
	c.text(", msg_namelen=")
	c.unsigned(uint64(nameLen))
	c.text(", msg_iov=")
	c.iovec(iov, n, after)
	c.text(", msg_iovlen=")
	c.unsigned(n)
	c.text(", msg_controllen=")
	c.unsigned(controlLen)
	c.text(", msg_flags=")
	if flags == 0 {
		c.byte('0')
	} else {
		c.flags(uint64(flags), msgNames)
	}
	c.byte('}')
}

// sigset writes the signals of a set, or those that are missing if these are fewer.
func (c *call) sigset(addr uint64) {
	b := c.load(addr, 8)
	if b == nil {
		c.pointer(addr)
		return
	}
	c.signals(le.Uint64(b))
}

func (c *call) signals(m uint64) {
	n := 0
	for i := range 64 {
		n += int(m >> i & 1)
	}
	if n > 32 {
		c.byte('~')
		m = ^m
	}
	c.byte('[')
	first := true
	for i := range uint64(64) {
		if m>>i&1 == 0 {
			continue
		}
		if !first {
			c.byte(' ')
		}
		first = false
		if i+1 < uint64(len(signalNames)) && signalNames[i+1] != "" {
			c.text(signalNames[i+1][3:])
		} else {
			c.text("RT_")
			c.unsigned(i + 1 - 32)
		}
	}
	c.byte(']')
}

func (c *call) sigaction(addr uint64) {
	b := c.load(addr, 32)
	if b == nil {
		c.pointer(addr)
		return
	}
	handler, flags, restorer, mask := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	c.text("{sa_handler=")
	switch handler {
	case 0:
		c.text("SIG_DFL")
	case 1:
		c.text("SIG_IGN")
	default:
		c.hex(handler)
	}
	c.text(", sa_mask=")
	c.signals(mask)
	c.text(", sa_flags=")
	if flags == 0 {
		c.byte('0')
	} else {
		c.flags(flags, saNames)
	}
	if flags&linux.SA_RESTORER != 0 {
		c.text(", sa_restorer=")
		c.pointer(restorer)
	}
	c.byte('}')
}

// polls writes struct pollfds; at is where in them the events are that are meant.
func (c *call) polls(addr, n uint64, field string, at int) {
	c.byte('[')
	first := true
	for i := range min(n, itemsShown) {
		b := c.load(addr+8*i, 8)
		if b == nil {
			c.pointer(addr + 8*i)
			break
		}
		events := uint64(le.Uint16(b[at:]))
		if at == 6 && events == 0 {
			continue
		}
		if !first {
			c.text(", ")
		}
		first = false
		c.text("{fd=")
		c.signed(int64(int32(le.Uint32(b))))
		c.text(", ")
		c.text(field)
		c.byte('=')
		if events == 0 {
			c.byte('0')
		} else {
			c.flags(events, pollNames)
		}
		c.byte('}')
	}
	if n > itemsShown {
		c.text(", ...")
	}
	c.byte(']')
}

func (c *call) epollEvents(addr, n uint64, list bool) {
	if list {
		c.byte('[')
	}
	for i := range min(n, itemsShown) {
		b := c.load(addr+12*i, 12)
		if b == nil {
			c.pointer(addr + 12*i)
			break
		}
		if i > 0 {
			c.text(", ")
		}
		c.text("{events=")
		if e := uint64(le.Uint32(b)); e == 0 {
			c.byte('0')
		} else {
			c.flags(e, epollNames)
		}
		c.text(", data={u32=")
		c.unsigned(uint64(le.Uint32(b[4:])))
		c.text(", u64=")
		c.unsigned(le.Uint64(b[4:]))
		c.text("}}")
	}
	if n > itemsShown {
		c.text(", ...")
	}
	if list {
		c.byte(']')
	}
}

// socketOption writes the level (argument 1) and the option, which depends on it.
func (c *call) socketOption(v uint64) {
	c.choice(v, levelNames)
	c.text(", ")
	switch option := c.args[2]; v {
	case linux.SOL_SOCKET:
		c.choice(option, socketNames)
	case linux.IPPROTO_TCP:
		c.choice(option, tcpNames)
	default:
		c.unsigned(option)
	}
}

func (c *call) limits(addr uint64) {
	b := c.load(addr, 16)
	if b == nil {
		c.pointer(addr)
		return
	}
	c.text("{rlim_cur=")
	c.limit(le.Uint64(b))
	c.text(", rlim_max=")
	c.limit(le.Uint64(b[8:]))
	c.byte('}')
}

func (c *call) limit(v uint64) {
	switch {
	case v == ^uint64(0):
		c.text("RLIM64_INFINITY")
	case v > 1024 && v%1024 == 0:
		c.unsigned(v / 1024)
		c.text("*1024")
	default:
		c.unsigned(v)
	}
}
