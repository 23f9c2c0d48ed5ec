package inet

import (
	"math"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// cubic is what netstack begins with.
const cubic = "cubic"

var congestion atomic.Pointer[string]

// Congestion returns the congestion control of new sockets
// (net.ipv4.tcp_congestion_control).
func Congestion() string {
	if p := congestion.Load(); p != nil {
		return *p
	}
	return cubic
}

// SetCongestion changes it.
func SetCongestion(name string) linux.Errno {
	if name != cubic && name != "reno" {
		return linux.ENOENT
	}
	congestion.Store(&name)
	return 0
}

// tcpOptions are the options at IPPROTO_TCP.
type tcpOptions struct {
	nodelay, cork, quickack bool
	fastopenConnect, inq    bool
	idle, interval, count   int32 // keepalive
	userTimeout             int32 // milliseconds
	maxSeg, synCount        int32 // 0 for the default
	linger2, deferAccept    int32
	windowClamp, fastopen   int32
	notSentLowat            int32
	thinTimeouts, noCookie  bool
	saveSyn                 uint8
	fastopenKey             *[]byte // of one or two keys; nil for none
	txDelay                 int32   // only a queue of packets would look at it, and interfaces have none
	congestion              string
}

func (o *tcpOptions) init() {
	*o = tcpOptions{
		quickack: true, idle: int32(settings.KeepTime.Get()), interval: int32(settings.KeepInterval.Get()),
		count: int32(settings.KeepProbes.Get()), congestion: Congestion(),
	}
}

// applyAll tells a new endpoint what differs from the defaults.
func (o *tcpOptions) applyAll(ep tcpip.Endpoint) {
	so := ep.SocketOptions()
	if o.nodelay {
		so.SetDelayOption(false)
	}
	if o.cork {
		so.SetCorkOption(true)
	}
	if o.idle != linux.DefaultTCPKeepIdle {
		v := tcpip.KeepaliveIdleOption(seconds(o.idle))
		ep.SetSockOpt(&v)
	}
	if o.interval != linux.DefaultTCPKeepInterval {
		v := tcpip.KeepaliveIntervalOption(seconds(o.interval))
		ep.SetSockOpt(&v)
	}
	if o.count != linux.DefaultTCPKeepCount {
		ep.SetSockOptInt(tcpip.KeepaliveCountOption, int(o.count))
	}
	if o.userTimeout != 0 {
		v := tcpip.TCPUserTimeoutOption(time.Duration(o.userTimeout) * time.Millisecond)
		ep.SetSockOpt(&v)
	}
	if o.maxSeg != 0 {
		ep.SetSockOptInt(tcpip.MaxSegOption, int(o.maxSeg))
	}
	if o.synCount != 0 {
		ep.SetSockOptInt(tcpip.TCPSynCountOption, int(o.synCount))
	}
	if o.linger2 != 0 {
		v := o.lingerTimeout()
		ep.SetSockOpt(&v)
	}
	if o.congestion != cubic {
		v := tcpip.CongestionControlOption(o.congestion)
		ep.SetSockOpt(&v)
	}
}

// SetOpt is setsockopt(2).
func (s *TCP) SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	switch level {
	case linux.SOL_SOCKET:
		return s.setSocket(c, name, val)
	case linux.IPPROTO_IP, linux.IPPROTO_IPV6:
		return s.setIP(c, level, name, val)
	case linux.IPPROTO_TCP:
		return s.setTCP(c, name, val)
	}
	return linux.ENOPROTOOPT
}

// lingerTimeout is TCP_LINGER2 as netstack takes it.
func (o *tcpOptions) lingerTimeout() tcpip.TCPLingerTimeoutOption {
	return tcpip.TCPLingerTimeoutOption(seconds(o.linger2))
}

// setName sets an option whose value is a name.
func (s *TCP) setName(name int32, val []byte) linux.Errno {
	if len(val) < 1 {
		return linux.EINVAL
	}
	text := cstring(val[:min(len(val), linux.TCP_CA_NAME_MAX-1)])
	if name == linux.TCP_ULP || text != "cubic" && text != "reno" {
		return linux.ENOENT
	}
	s.opt.congestion = text
	v := tcpip.CongestionControlOption(text)
	return s.tell(&v)
}

func (s *TCP) setTCP(c *caller.Ctx, name int32, val []byte) linux.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == linux.TCP_REPAIR && !c.Cred().Has(creds.CapNetAdmin) && len(val) >= 4 {
		return linux.EPERM
	}
	return s.setHeld(name, val)
}

// setHeld is setTCP with mu held. (With as many returns as it has, a defer in it would
// cost a hundred instructions.)
func (s *TCP) setHeld(name int32, val []byte) linux.Errno {
	switch name {
	case linux.TCP_CONGESTION, linux.TCP_ULP:
		return s.setName(name, val)
	case linux.TCP_FASTOPEN_KEY:
		return s.setFastopenKey(val)
	}
	v, e := sock.Int(val)
	if e != 0 {
		return e
	}
	if name < 0 || int(name) >= len(tcpNumbers) || tcpNumbers[name].set == nil {
		return s.setTCPBool(name, v)
	}
	o := &tcpNumbers[name]
	if v < o.least || v > o.most {
		return linux.EINVAL
	}
	return o.set(s, v)
}

// tcpNumbers set the options of IPPROTO_TCP that are numbers, from least to most; called
// with mu held.
var tcpNumbers = [...]struct {
	least, most int32
	set         func(s *TCP, v int32) linux.Errno
}{
	linux.TCP_NODELAY:        {math.MinInt32, math.MaxInt32, (*TCP).setNoDelay},
	linux.TCP_CORK:           {math.MinInt32, math.MaxInt32, (*TCP).setCork},
	linux.TCP_QUICKACK:       {math.MinInt32, math.MaxInt32, func(s *TCP, v int32) linux.Errno { s.opt.quickack = v != 0; return 0 }},
	linux.TCP_KEEPIDLE:       {1, linux.TCP_MIN_KEEPALIVE_CLAMP, (*TCP).setKeepIdle},
	linux.TCP_KEEPINTVL:      {1, linux.TCP_MIN_KEEPALIVE_CLAMP, (*TCP).setKeepInterval},
	linux.TCP_KEEPCNT:        {1, linux.MAX_TCP_KEEPCNT, (*TCP).setKeepCount},
	linux.TCP_USER_TIMEOUT:   {0, math.MaxInt32, (*TCP).setUserTimeout},
	linux.TCP_MAXSEG:         {0, linux.TCP_MAX_WINDOW, (*TCP).setMaxSeg},
	linux.TCP_SYNCNT:         {1, linux.MAX_TCP_SYNCNT, (*TCP).setSynCount},
	linux.TCP_LINGER2:        {math.MinInt32, math.MaxInt32, (*TCP).setLinger2},
	linux.TCP_DEFER_ACCEPT:   {math.MinInt32, math.MaxInt32, (*TCP).setDeferAccept},
	linux.TCP_WINDOW_CLAMP:   {math.MinInt32, math.MaxInt32, (*TCP).setWindowClamp},
	linux.TCP_NOTSENT_LOWAT:  {math.MinInt32, math.MaxInt32, func(s *TCP, v int32) linux.Errno { s.opt.notSentLowat = v; return 0 }},
	linux.TCP_TIMESTAMP:      {math.MinInt32, math.MaxInt32, refused(linux.EPERM)}, // it wants TCP_REPAIR
	linux.TCP_SAVE_SYN:       {0, 2, (*TCP).setSaveSyn},
	linux.TCP_TX_DELAY:       {math.MinInt32, math.MaxInt32, func(s *TCP, v int32) linux.Errno { s.opt.txDelay = v; return 0 }},
	linux.TCP_REPAIR_OPTIONS: {math.MinInt32, math.MaxInt32, refused(linux.EINVAL)},
	linux.TCP_REPAIR_WINDOW:  {math.MinInt32, math.MaxInt32, refused(linux.EPERM)},
	linux.TCP_REPAIR:         {-1, 1, (*TCP).setRepair},
	linux.TCP_REPAIR_QUEUE:   {math.MinInt32, math.MaxInt32, refused(linux.EPERM)}, // likewise
	linux.TCP_QUEUE_SEQ:      {math.MinInt32, math.MaxInt32, (*TCP).setQueueSeq},
}

// setRepair is TCP_REPAIR of one with the capability: no connection can be taken apart, so
// that there is only the end of it.
func (s *TCP) setRepair(v int32) linux.Errno {
	switch {
	case s.state.Load() == stListening:
		return linux.EPERM
	case v == 1:
		return linux.ENOPROTOOPT
	}
	return 0
}

// setQueueSeq is TCP_QUEUE_SEQ, which wants one of TCP_REPAIR's queues.
func (s *TCP) setQueueSeq(int32) linux.Errno {
	if s.linuxState() != linux.TCP_CLOSE {
		return linux.EPERM
	}
	return linux.EINVAL
}

func (s *TCP) setNoDelay(v int32) linux.Errno {
	if s.opt.nodelay = v != 0; v != 0 {
		s.letLocal()
	}
	if p := s.ep.Load(); p != nil {
		p.SocketOptions().SetDelayOption(v == 0)
	}
	return 0
}

func (s *TCP) setCork(v int32) linux.Errno {
	s.opt.cork = v != 0
	if s.corked.Store(v != 0); v == 0 {
		s.letLocal()
	}
	if p := s.ep.Load(); p != nil {
		p.SocketOptions().SetCorkOption(v != 0)
	}
	return 0
}

func (s *TCP) setKeepIdle(v int32) linux.Errno {
	s.opt.idle = v
	x := tcpip.KeepaliveIdleOption(seconds(v))
	return s.tell(&x)
}

func (s *TCP) setKeepInterval(v int32) linux.Errno {
	s.opt.interval = v
	x := tcpip.KeepaliveIntervalOption(seconds(v))
	return s.tell(&x)
}

func (s *TCP) setKeepCount(v int32) linux.Errno {
	s.opt.count = v
	return s.tellInt(tcpip.KeepaliveCountOption, v)
}

func (s *TCP) setUserTimeout(v int32) linux.Errno {
	s.opt.userTimeout = v
	x := tcpip.TCPUserTimeoutOption(time.Duration(v) * time.Millisecond)
	return s.tell(&x)
}

// setMaxSeg takes 0 for the default.
func (s *TCP) setMaxSeg(v int32) linux.Errno {
	if v != 0 && v < header.TCPMinimumMSS {
		return linux.EINVAL
	}
	if s.opt.maxSeg = v; v == 0 {
		return 0
	}
	return s.tellInt(tcpip.MaxSegOption, v)
}

func (s *TCP) setSynCount(v int32) linux.Errno {
	s.opt.synCount = v
	return s.tellInt(tcpip.TCPSynCountOption, v)
}

func (s *TCP) setLinger2(v int32) linux.Errno {
	s.opt.linger2 = min(max(v, -1), linux.TCP_FIN_TIMEOUT_MAX)
	s.linger2.Store(s.opt.linger2)
	x := s.opt.lingerTimeout()
	return s.tell(&x)
}

func (s *TCP) setDeferAccept(v int32) linux.Errno {
	s.opt.deferAccept = secondsOf(retransmissions(v))
	s.deferAccept.Store(s.opt.deferAccept)
	return 0
}

func (s *TCP) setWindowClamp(v int32) linux.Errno {
	if v == 0 && s.linuxState() != linux.TCP_CLOSE {
		return linux.EINVAL
	}
	if v > 0 {
		v = max(v, linux.MinimumReceiveBuffer/2)
	}
	s.opt.windowClamp = v
	return s.tellInt(tcpip.TCPWindowClampOption, v)
}

// setTCPBool sets an option that takes 0 or 1, or TCP_FASTOPEN; called with mu held.
func (s *TCP) setTCPBool(name, v int32) linux.Errno {
	o := &s.opt
	state := s.linuxState()
	fresh := state == linux.TCP_CLOSE || state == linux.TCP_LISTEN
	switch name {
	case linux.TCP_FASTOPEN: // never used: clients fall back to the ordinary handshake
		if v < 0 || !fresh {
			return linux.EINVAL
		}
		o.fastopen = min(v, linux.SOMAXCONN)
		return 0
	case linux.TCP_FASTOPEN_CONNECT, linux.TCP_FASTOPEN_NO_COOKIE, linux.TCP_INQ,
		linux.TCP_THIN_LINEAR_TIMEOUTS, linux.TCP_THIN_DUPACK:
	default:
		return linux.ENOPROTOOPT
	}
	if v < 0 || v > 1 {
		return linux.EINVAL
	}
	switch name {
	case linux.TCP_FASTOPEN_CONNECT:
		if state != linux.TCP_CLOSE {
			return linux.EINVAL
		}
		o.fastopenConnect = v != 0
	case linux.TCP_FASTOPEN_NO_COOKIE:
		if !fresh {
			return linux.EINVAL
		}
		o.noCookie = v != 0
	case linux.TCP_INQ:
		o.inq = v != 0
		s.inq.Store(o.inq)
	case linux.TCP_THIN_LINEAR_TIMEOUTS:
		o.thinTimeouts = v != 0
	}
	return 0
}

// retransmissions returns how often a SYN is answered within so many seconds,
// and secondsOf how long so many answers take: TCP_DEFER_ACCEPT counts answers.
func retransmissions(seconds int32) int {
	if seconds <= 0 {
		return 0
	}
	n, timeout, period := 1, int32(1), int32(1)
	for seconds > period && n < 255 {
		n++
		timeout = min(timeout<<1, linux.TCP_RTO_MAX)
		period += timeout
	}
	return n
}

func secondsOf(n int) int32 {
	timeout, period := int32(1), int32(0)
	for ; n > 0; n-- {
		period += timeout
		timeout = min(timeout<<1, linux.TCP_RTO_MAX)
	}
	return period
}

func (s *TCP) tell(o tcpip.SettableSocketOption) linux.Errno {
	if p := s.ep.Load(); p != nil {
		return errno(p.SetSockOpt(o))
	}
	return 0
}

func (s *TCP) tellInt(o tcpip.SockOptInt, v int32) linux.Errno {
	if p := s.ep.Load(); p != nil {
		return errno(p.SetSockOptInt(o, int(v)))
	}
	return 0
}

func cstring(b []byte) string {
	for i, x := range b {
		if x == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// GetOpt is getsockopt(2).
func (s *TCP) GetOpt(_ *caller.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	switch level {
	case linux.SOL_SOCKET:
		if name == linux.SO_ACCEPTCONN {
			v := int32(0)
			if s.state.Load() == stListening {
				v = 1
			}
			return sock.PutInt(val, v), 0
		}
		return s.getSocket(name, val)
	case linux.IPPROTO_IP, linux.IPPROTO_IPV6:
		return s.getIP(level, name, val)
	case linux.IPPROTO_TCP:
		switch name {
		case linux.TCP_REPAIR, linux.TCP_REPAIR_QUEUE, linux.TCP_QUEUE_SEQ:
			return getRepair(name, val)
		case linux.TCP_INFO:
			return s.info(val), 0
		case linux.TCP_SAVED_SYN:
			return s.savedSyn(val)
		case linux.TCP_SAVE_SYN, linux.TCP_TX_DELAY, linux.TCP_FASTOPEN_KEY, linux.TCP_REPAIR_WINDOW:
			return s.getRareTCP(name, val)
		}
		return s.getTCP(name, val)
	}
	return 0, s.noLevel()
}

// KnowsOption reports whether setsockopt looks at the value of an option at all.
func (s *TCP) KnowsOption(level, name int32) bool {
	return level == linux.SOL_SOCKET || level == linux.IPPROTO_TCP || s.knowsIP(level, name)
}

// getRepair reads TCP_REPAIR, which is never on, and what needs it.
func getRepair(name int32, val []byte) (int, linux.Errno) {
	if name != linux.TCP_REPAIR {
		return 0, linux.EINVAL
	}
	return sock.PutInt(val, 0), 0
}

func (s *TCP) getTCP(name int32, val []byte) (int, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.opt
	v := int32(0)
	flag := func(b bool) {
		if b {
			v = 1
		}
	}
	switch name {
	case linux.TCP_NODELAY:
		flag(o.nodelay)
	case linux.TCP_CORK:
		flag(o.cork)
	case linux.TCP_QUICKACK:
		flag(o.quickack)
	case linux.TCP_KEEPIDLE:
		v = o.idle
	case linux.TCP_KEEPINTVL:
		v = o.interval
	case linux.TCP_KEEPCNT:
		v = o.count
	case linux.TCP_USER_TIMEOUT:
		v = o.userTimeout
	case linux.TCP_MAXSEG:
		v = int32(s.segment())
	case linux.TCP_SYNCNT:
		if v = o.synCount; v == 0 {
			v = int32(settings.SynRetries.Get())
		}
	case linux.TCP_LINGER2:
		if v = o.linger2; v == 0 {
			v = int32(settings.FinTimeout.Get())
		}
	case linux.TCP_DEFER_ACCEPT:
		v = o.deferAccept
	case linux.TCP_WINDOW_CLAMP:
		v = o.windowClamp
	case linux.TCP_FASTOPEN:
		v = o.fastopen
	case linux.TCP_FASTOPEN_CONNECT:
		flag(o.fastopenConnect)
	case linux.TCP_FASTOPEN_NO_COOKIE:
		flag(o.noCookie)
	case linux.TCP_THIN_LINEAR_TIMEOUTS:
		flag(o.thinTimeouts)
	case linux.TCP_THIN_DUPACK:
	case linux.TCP_TIMESTAMP:
		v = int32(wait.Now() / 1_000_000)
	case linux.TCP_ULP, linux.TCP_CC_INFO:
		return 0, 0
	case linux.TCP_NOTSENT_LOWAT:
		v = o.notSentLowat
	case linux.TCP_INQ:
		flag(o.inq)
	case linux.TCP_CONGESTION:
		var b [linux.TCP_CA_NAME_MAX]byte
		copy(b[:], o.congestion)
		return copy(val, b[:]), 0
	default:
		return 0, linux.ENOPROTOOPT
	}
	return sock.PutInt(val, v), 0
}

// segment is the size of the segments that the socket sends; called with mu held.
func (s *TCP) segment() int {
	own := int(s.opt.maxSeg)
	switch {
	case s.far.Load() != nil && own != 0:
		return min(own-12, loopbackMSS) // less the time stamps
	case s.far.Load() != nil:
		return loopbackMSS
	case own != 0:
		return own
	}
	return header.TCPDefaultMSS
}

// loopbackMSS is the segment size between sockets of this machine.
const loopbackMSS = 65483

// linuxState is the state of the connection in Linux's numbers.
func (s *TCP) linuxState() int {
	if s.far.Load() != nil {
		shut, fin := s.shut.Load(), s.fin.Load()
		switch {
		case s.cut.Load() || s.state.Load() == stClosed:
			return linux.TCP_CLOSE
		case shut&shutWr != 0 && fin:
			return linux.TCP_CLOSE
		case shut&shutWr != 0:
			return linux.TCP_FIN_WAIT2
		case fin:
			return linux.TCP_CLOSE_WAIT
		}
		return linux.TCP_ESTABLISHED
	}
	p := s.ep.Load()
	if s.state.Load() == stLate {
		return linux.TCP_SYN_SENT
	}
	if p == nil {
		return linux.TCP_CLOSE
	}
	switch tcp.EndpointState(p.State()) {
	case tcp.StateEstablished:
		return linux.TCP_ESTABLISHED
	case tcp.StateSynSent, tcp.StateConnecting:
		return linux.TCP_SYN_SENT
	case tcp.StateSynRecv:
		return linux.TCP_SYN_RECV
	case tcp.StateFinWait1:
		return linux.TCP_FIN_WAIT1
	case tcp.StateFinWait2:
		return linux.TCP_FIN_WAIT2
	case tcp.StateTimeWait:
		return linux.TCP_TIME_WAIT
	case tcp.StateCloseWait:
		return linux.TCP_CLOSE_WAIT
	case tcp.StateLastAck:
		return linux.TCP_LAST_ACK
	case tcp.StateListen:
		return linux.TCP_LISTEN
	case tcp.StateClosing:
		return linux.TCP_CLOSING
	}
	return linux.TCP_CLOSE
}

// Ioctl knows how much waits each way, and the requests about interfaces.
func (s *TCP) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case linux.SIOCINQ:
		n := 0
		if s.state.Load() == stListening {
			return 0, linux.EINVAL
		}
		if x := s.far.Load(); x != nil {
			n = s.in.NextLen()
			if s.shut.Load()&gateBit != 0 {
				most, _ := s.letThrough(x)
				n = min(n, most)
			}
		} else if p := s.ep.Load(); p != nil {
			v, err := p.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
			if err != nil {
				return 0, errno(err)
			}
			n = v
		}
		return sock.CopyOutInt(c, arg, int32(n))
	case linux.SIOCOUTQ, linux.SIOCOUTQNSD:
		n := 0
		if s.state.Load() == stListening {
			return 0, linux.EINVAL
		}
		if x := s.far.Load(); x != nil {
			n = x.unacknowledged()
		} else if p := s.ep.Load(); p != nil {
			n, _ = p.GetSockOptInt(tcpip.SendQueueSizeOption)
		}
		return sock.CopyOutInt(c, arg, int32(max(n, 0)))
	case linux.SIOCGSTAMP, linux.SIOCGSTAMPNS:
		return 0, linux.ENOENT
	case linux.SIOCATMARK:
		return sock.CopyOutInt(c, arg, b2i(s.far.Load() != nil && s.in.AtMark()))
	}
	return s.inetIoctl(c, cmd, arg)
}
