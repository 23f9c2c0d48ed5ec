package sock

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/net/bpf"
)

// SetSocketOpt is setsockopt at SOL_SOCKET; ENOPROTOOPT for what it does not know.
func (b *Base) SetSocketOpt(c *caller.Ctx, name int32, val []byte) linux.Errno {
	o := &b.Opt
	if name == linux.SO_BINDTODEVICE {
		return b.bindToDevice(c, val)
	}
	v, e := Int(val)
	if e != 0 {
		return e
	}
	for i := range boolOptions {
		if x := &boolOptions[i]; x.name == name {
			return b.setBool(c, x.bit, v)
		}
	}
	for i := range rareInts {
		if rareInts[i].name == name {
			return o.setRareInt(c, i, v)
		}
	}
	if name < 0 || int(name) >= len(socketOptions) || socketOptions[name] == nil {
		return linux.ENOPROTOOPT
	}
	return socketOptions[name](b, c, name, v, val)
}

// socketOptions set the options of SOL_SOCKET that are neither booleans nor plain
// numbers: v is the value as a number, val all of it.
var socketOptions = [...]func(b *Base, c *caller.Ctx, name, v int32, val []byte) linux.Errno{
	linux.SO_LINGER:           func(b *Base, _ *caller.Ctx, _, _ int32, val []byte) linux.Errno { return b.Opt.setLinger(val) },
	linux.SO_RCVTIMEO:         setTimeout,
	linux.SO_SNDTIMEO:         setTimeout,
	linux.SO_RCVTIMEO_NEW:     setTimeout,
	linux.SO_SNDTIMEO_NEW:     setTimeout,
	linux.SO_RCVBUF:           setBuffer,
	linux.SO_RCVBUFFORCE:      setBuffer,
	linux.SO_SNDBUF:           setBuffer,
	linux.SO_SNDBUFFORCE:      setBuffer,
	linux.SO_RCVLOWAT:         setLowat,
	linux.SO_PRIORITY:         setPriority,
	linux.SO_MARK:             setMark,
	linux.SO_TIMESTAMP:        setTimestamp,
	linux.SO_TIMESTAMPNS:      setTimestamp,
	linux.SO_TIMESTAMP_NEW:    setTimestamp,
	linux.SO_TIMESTAMPNS_NEW:  setTimestamp,
	linux.SO_TIMESTAMPING:     (*Base).timestamping,
	linux.SO_TIMESTAMPING_NEW: (*Base).timestamping,
	linux.SO_ATTACH_FILTER:    setFilter,
	linux.SO_DETACH_FILTER:    func(b *Base, _ *caller.Ctx, _, _ int32, _ []byte) linux.Errno { return b.Opt.detachFilter() },
	linux.SO_MAX_PACING_RATE:  setPacing,

	linux.SO_DETACH_REUSEPORT_BPF: detachReusePort,
	linux.SO_TXTIME:               func(b *Base, c *caller.Ctx, _, _ int32, val []byte) linux.Errno { return b.Opt.setTxtime(c, val) },
	linux.SO_BUF_LOCK:             setBufLock,
	linux.SO_RESERVE_MEM:          setReserve,
	linux.SO_PEEK_OFF:             func(*Base, *caller.Ctx, int32, int32, []byte) linux.Errno { return linux.EOPNOTSUPP },
	linux.SO_BINDTOIFINDEX:        setInterface,
	linux.SO_BSDCOMPAT:            setNothing,
	linux.SO_CNX_ADVICE:           setNothing,
}

func setTimeout(b *Base, _ *caller.Ctx, name, _ int32, val []byte) linux.Errno {
	return b.Opt.setTimeout(name, val)
}

func setBuffer(b *Base, c *caller.Ctx, name, v int32, _ []byte) linux.Errno {
	o := &b.Opt
	force := name == linux.SO_RCVBUFFORCE || name == linux.SO_SNDBUFFORCE
	if force && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	if name == linux.SO_RCVBUF || name == linux.SO_RCVBUFFORCE {
		o.RcvBuf.Store(bufferSize(v, &settings.RmemMax, linux.MinimumReceiveBuffer, force))
		o.BufSet.Or(1)
		return 0
	}
	o.SndBuf.Store(bufferSize(v, &settings.WmemMax, linux.MinimumSendBuffer, force))
	o.BufSet.Or(2)
	return 0
}

func setLowat(b *Base, _ *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	switch {
	case v < 0:
		v = 1<<31 - 1
	case v == 0:
		v = 1
	}
	b.Opt.RcvLowat.Store(v)
	return 0
}

func setPriority(b *Base, c *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	if (v < 0 || v > 6) && !c.Cred().Has(creds.CapNetRaw) && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	b.Opt.Priority.Store(v)
	return 0
}

func setMark(b *Base, c *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	if !c.Cred().Has(creds.CapNetRaw) && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	b.Opt.Mark.Store(v)
	return 0
}

func setTimestamp(b *Base, _ *caller.Ctx, name, v int32, _ []byte) linux.Errno {
	b.Opt.setTimestamp(name, v != 0)
	return 0
}

func (b *Base) timestamping(_ *caller.Ctx, name, v int32, val []byte) linux.Errno {
	return b.setTimestamping(name, v, val)
}

func setFilter(b *Base, c *caller.Ctx, _, _ int32, val []byte) linux.Errno {
	if !b.Filters {
		return linux.ENOPROTOOPT
	}
	return b.Opt.attachFilter(c, val)
}

func setPacing(b *Base, _ *caller.Ctx, _, v int32, val []byte) linux.Errno {
	rate := uint64(uint32(v))
	if v == -1 {
		rate = ^uint64(0)
	}
	if len(val) >= 8 {
		rate = Uint64(val)
	}
	b.Opt.setRare(func(r *rareOptions) { r.pacing = rate })
	return 0
}

func setBufLock(b *Base, _ *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	if v&^(linux.SOCK_SNDBUF_LOCK|linux.SOCK_RCVBUF_LOCK) != 0 {
		return linux.EINVAL
	}
	b.Opt.BufSet.Store(uint32(v&1<<1 | v>>1))
	return 0
}

// setReserve refuses: SO_RESERVE_MEM needs a memory control group.
func setReserve(_ *Base, _ *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	if v < 0 {
		return linux.EINVAL
	}
	return linux.EOPNOTSUPP
}

// setInterface keeps SO_BINDTOIFINDEX, as on Linux, for families that have no interfaces.
func setInterface(b *Base, c *caller.Ctx, _, v int32, _ []byte) linux.Errno {
	switch {
	case b.Opt.BindToDevice.Load() != 0 && !c.Cred().Has(creds.CapNetRaw):
		return linux.EPERM
	case v < 0:
		return linux.EINVAL
	}
	b.Opt.BindToDevice.Store(v)
	return 0
}

// bindToDevice is SO_BINDTODEVICE, with a name, of families that have no interfaces: kept
// as setInterface does.
func (b *Base) bindToDevice(c *caller.Ctx, val []byte) linux.Errno {
	name, _, _ := strings.Cut(string(val[:min(len(val), linux.IFNAMSIZ-1)]), "\x00")
	index := int32(0)
	if name != "" {
		if index = DeviceIndex.Call(name); index == 0 {
			return linux.ENODEV
		}
	}
	return setInterface(b, c, 0, index, nil)
}

// PutName is the value of SO_PEERNAME.
func PutName(val []byte, a *Addr) (int, linux.Errno) {
	if a.Len < len(val) {
		return 0, linux.EINVAL
	}
	return copy(val, a.Bytes()), 0
}

func setNothing(*Base, *caller.Ctx, int32, int32, []byte) linux.Errno { return 0 }

// setBool sets a boolean option.
func (b *Base) setBool(c *caller.Ctx, bit uint32, v int32) linux.Errno {
	o := &b.Opt
	switch bit {
	case Debug:
		if v != 0 && !c.Cred().Has(creds.CapNetAdmin) {
			return linux.EACCES
		}
	case ReusePort:
		if v != 0 && !b.isInet() {
			return linux.EOPNOTSUPP
		}
	case LockFilter:
		if v == 0 && o.Has(LockFilter) {
			return linux.EPERM
		}
	case ZeroCopy:
		if !b.isInet() || b.Type == linux.SOCK_RAW || b.Type == linux.SOCK_DGRAM && b.Protocol != linux.IPPROTO_UDP {
			return linux.EOPNOTSUPP
		}
		if v != 0 && v != 1 {
			return linux.EINVAL
		}
	}
	o.Set(bit, v != 0)
	return 0
}

// unconnected reports whether the socket has no connection, as its file tells.
func (b *Base) unconnected() bool {
	f := b.File()
	if f == nil {
		return true
	}
	s, ok := f.Ops.(Socket)
	return ok && s.PeerAddr(new(Addr)) != 0
}

func (b *Base) isInet() bool { return b.Domain == linux.AF_INET || b.Domain == linux.AF_INET6 }

func (o *Options) setRareInt(c *caller.Ctx, i int, v int32) linux.Errno {
	x := &rareInts[i]
	if x.name == linux.SO_PREFER_BUSY_POLL {
		v = b2i(v != 0)
	}
	if x.admin && v > o.getRare().ints[i] && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	if v < x.least || v > x.most {
		return linux.EINVAL
	}
	if x.name == linux.SO_TXREHASH && v == -1 {
		v = 1 // net.core.txrehash
	}
	o.setRare(func(r *rareOptions) { r.ints[i] = v })
	return 0
}

func (o *Options) setLinger(val []byte) linux.Errno {
	if len(val) < linux.SizeofLinger {
		return linux.EINVAL
	}
	on, _ := Int(val)
	sec, _ := Int(val[4:])
	if on == 0 {
		if l := o.Linger.Swap(0); l != 0 {
			o.setRare(func(r *rareOptions) { r.linger = l - 1 })
		}
		return 0
	}
	if sec < 0 || sec == 1<<31-1 {
		sec = 1<<31 - 2
	}
	o.Linger.Store(sec + 1)
	return 0
}

// setTimestamp sets one of the four options of which the last set counts.
func (o *Options) setTimestamp(name int32, on bool) {
	if !on {
		o.Set(Timestamp|TimestampNS, false)
		return
	}
	o.Set(TimestampNew, name == linux.SO_TIMESTAMP_NEW || name == linux.SO_TIMESTAMPNS_NEW)
	o.Set(TimestampNS, name == linux.SO_TIMESTAMPNS || name == linux.SO_TIMESTAMPNS_NEW)
	o.Set(Timestamp, true)
}

// Bits of SO_TIMESTAMPING.
const (
	StampTxSoftware = 1 << 1
	StampRxSoftware = 1 << 3
	StampSoftware   = 1 << 4
	StampOptID      = 1 << 7
	StampTxSched    = 1 << 8
	StampTx         = StampTxSoftware | StampTxSched // stamps of what is sent
	StampOptTSOnly  = 1 << 11
	stampOptStats   = 1 << 12
	stampBindPHC    = 1 << 15
)

func (b *Base) setTimestamping(name, v int32, val []byte) linux.Errno {
	o := &b.Opt
	switch {
	case v&^linux.SOF_TIMESTAMPING_MASK != 0,
		v&StampOptID != 0 && b.isInet() && b.Type == linux.SOCK_STREAM && o.Timestamping()&StampOptID == 0 && b.unconnected(),
		v&stampOptStats != 0 && v&StampOptTSOnly == 0:
		return linux.EINVAL
	case v&stampBindPHC != 0:
		return linux.EOPNOTSUPP
	}
	o.setRare(func(r *rareOptions) {
		r.stamping[0] = v
		if len(val) == linux.SizeofTimestamping {
			r.stamping[1], _ = Int(val[4:])
		}
	})
	o.Set(TimestampNew, name == linux.SO_TIMESTAMPING_NEW)
	return 0
}

func (o *Options) setTxtime(c *caller.Ctx, val []byte) linux.Errno {
	if len(val) != linux.SizeofTxtime {
		return linux.EINVAL
	}
	clock, _ := Int(val)
	flags, _ := Int(val[4:])
	if flags&^linux.SOF_TXTIME_MASK != 0 {
		return linux.EINVAL
	}
	if clock != linux.CLOCK_MONOTONIC && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	o.Set(Txtime, true)
	o.setRare(func(r *rareOptions) { copy(r.txtime[:], val) })
	return 0
}

// attachFilter is SO_ATTACH_FILTER with a struct sock_fprog.
func (o *Options) attachFilter(c *caller.Ctx, val []byte) linux.Errno {
	p, e := o.ReadProgram(c, val)
	if e != 0 {
		return e
	}
	o.setRare(func(r *rareOptions) { r.filter = p })
	return 0
}

// ReadProgram reads a filter that a struct sock_fprog names.
func (o *Options) ReadProgram(c *caller.Ctx, val []byte) (*bpf.Program, linux.Errno) {
	if len(val) != linux.SizeofSockFprog {
		return nil, linux.EINVAL
	}
	n, at := int(val[0])|int(val[1])<<8, Uint64(val[8:])
	if o.Has(LockFilter) {
		return nil, linux.EPERM
	}
	if n == 0 || n > bpf.MaxLen || at == 0 {
		return nil, linux.EINVAL
	}
	b := make([]byte, n*linux.SizeofSockFilter)
	if _, e := c.Mem.CopyIn(b, uio.Addr(at)); e != 0 {
		return nil, e
	}
	return bpf.New(b)
}

func (o *Options) detachFilter() linux.Errno {
	if o.Has(LockFilter) {
		return linux.EPERM
	}
	if o.Filter() == nil {
		return linux.ENOENT
	}
	o.setRare(func(r *rareOptions) { r.filter = nil })
	return 0
}

// getFilter is SO_GET_FILTER: the length counts instructions.
func (o *Options) getFilter(val []byte) (int, linux.Errno) {
	p := o.Filter()
	if p == nil {
		return 0, 0
	}
	n := p.Len()
	if len(val) == 0 {
		return n, 0
	}
	if len(val) < n {
		return 0, linux.EINVAL
	}
	return n, 0
}

// FilterText returns the program that SO_GET_FILTER copies out.
func (o *Options) FilterText() []byte {
	if p := o.Filter(); p != nil {
		return p.Bytes()
	}
	return nil
}

// bufferSize doubles what a program asks for, within the limits (unless it is
// forced), as Linux does.
func bufferSize(v int32, limit *settings.Setting, least int32, force bool) int32 {
	switch {
	case force:
		v = min(max(v, 0), 1<<30-1)
	case v < 0 || int64(v) > limit.Get():
		v = int32(limit.Get())
	}
	return max(2*v, least)
}

func (o *Options) setTimeout(name int32, val []byte) linux.Errno {
	if len(val) < 16 {
		return linux.EINVAL
	}
	sec, usec := int64(Uint64(val)), int64(Uint64(val[8:]))
	if usec < 0 || usec >= 1_000_000 {
		return linux.EDOM
	}
	ns := int64(0)
	switch {
	case sec < 0:
		ns = 1 // do not wait (0 would be for ever)
	case sec < 1<<33:
		ns = sec*1_000_000_000 + usec*1000
	}
	if name == linux.SO_RCVTIMEO || name == linux.SO_RCVTIMEO_NEW {
		o.RcvTimeo.Store(ns)
	} else {
		o.SndTimeo.Store(ns)
	}
	return 0
}

// GetSocketOpt is getsockopt at SOL_SOCKET for what a Base knows itself.
func (b *Base) GetSocketOpt(name int32, val []byte) (int, linux.Errno) {
	o := &b.Opt
	for i := range boolOptions {
		if x := &boolOptions[i]; x.name == name {
			return PutInt(val, b2i(o.Has(x.bit))), 0
		}
	}
	for i := range rareInts {
		if x := &rareInts[i]; x.name == name && !x.hidden {
			return PutInt(val, o.getRare().ints[i]), 0
		}
	}
	v := int32(0)
	switch name {
	case linux.SO_TYPE:
		v = b.Type
	case linux.SO_DOMAIN:
		v = b.Domain
	case linux.SO_PROTOCOL:
		v = b.Protocol
	case linux.SO_ERROR:
		v = int32(b.TakeError())
	case linux.SO_SNDBUF:
		v = o.SndBuf.Load()
	case linux.SO_RCVBUF:
		v = o.RcvBuf.Load()
	case linux.SO_RCVLOWAT:
		v = o.RcvLowat.Load()
	case linux.SO_SNDLOWAT:
		v = 1
	case linux.SO_PRIORITY:
		v = o.Priority.Load()
	case linux.SO_MARK:
		v = o.Mark.Load()
	case linux.SO_BINDTOIFINDEX:
		v = o.BindToDevice.Load()
	case linux.SO_TIMESTAMP:
		v = b2i(o.Has(Timestamp) && !o.Has(TimestampNew) && !o.Has(TimestampNS))
	case linux.SO_TIMESTAMPNS:
		v = b2i(o.Has(TimestampNS) && !o.Has(TimestampNew))
	case linux.SO_TIMESTAMP_NEW:
		v = b2i(o.Has(Timestamp) && o.Has(TimestampNew))
	case linux.SO_TIMESTAMPNS_NEW:
		v = b2i(o.Has(TimestampNS) && o.Has(TimestampNew))
	case linux.SO_BUF_LOCK:
		set := int32(o.BufSet.Load())
		v = set>>1&1 | set&1<<1
	case linux.SO_BPF_EXTENSIONS:
		v = bpf.Extensions
	case linux.SO_PEEK_OFF:
		return 0, linux.EOPNOTSUPP
	case linux.SO_ACCEPTCONN, linux.SO_BSDCOMPAT, linux.SO_INCOMING_NAPI_ID, linux.SO_RESERVE_MEM:
	default:
		return b.getLong(name, val)
	}
	return PutInt(val, v), 0
}

// getLong answers for what is not an int.
func (b *Base) getLong(name int32, val []byte) (int, linux.Errno) {
	o := &b.Opt
	var buf [linux.SizeofMeminfo]byte
	n := 8
	switch name {
	case linux.SO_LINGER:
		if l := o.Linger.Load(); l != 0 {
			PutInt(buf[:], 1)
			PutInt(buf[4:], l-1)
		} else {
			PutInt(buf[4:], o.getRare().linger)
		}
	case linux.SO_RCVTIMEO, linux.SO_RCVTIMEO_NEW:
		return putTimeval(val, o.RcvTimeo.Load()), 0
	case linux.SO_SNDTIMEO, linux.SO_SNDTIMEO_NEW:
		return putTimeval(val, o.SndTimeo.Load()), 0
	case linux.SO_TIMESTAMPING, linux.SO_TIMESTAMPING_NEW:
		if r := o.getRare(); name == linux.SO_TIMESTAMPING || o.Has(TimestampNew) {
			PutInt(buf[:], r.stamping[0])
			PutInt(buf[4:], r.stamping[1])
		}
	case linux.SO_MAX_PACING_RATE:
		rate := o.getRare().pacing
		if len(val) < 8 {
			return PutInt(val, int32(uint32(min(rate, 1<<32-1)))), 0
		}
		PutUint64(buf[:], rate)
	case linux.SO_TXTIME:
		copy(buf[:], o.getRare().txtime[:])
	case linux.SO_COOKIE:
		if len(val) < 8 {
			return 0, linux.EINVAL
		}
		PutUint64(buf[:], b.Ino)
	case linux.SO_NETNS_COOKIE:
		if len(val) != 8 {
			return 0, linux.EINVAL
		}
		PutUint64(buf[:], 1)
	case linux.SO_MEMINFO:
		PutInt(buf[4:], o.RcvBuf.Load())
		PutInt(buf[12:], o.SndBuf.Load())
		n = linux.SizeofMeminfo
	case linux.SO_GET_FILTER:
		return o.getFilter(val)
	case linux.SO_BINDTODEVICE:
		if s := DeviceName.Call(o.BindToDevice.Load()); s != "" {
			//maxlive:len 16 because an interface's name has at most IFNAMSIZ bytes
			return copy(val, s+"\x00"), 0
		}
		return 0, 0
	default:
		return 0, linux.ENOPROTOOPT
	}
	return copy(val, buf[:n]), 0
}

func putTimeval(val []byte, ns int64) int {
	var b [16]byte
	PutUint64(b[:], uint64(ns/1_000_000_000))
	PutUint64(b[8:], uint64(ns%1_000_000_000/1000))
	return copy(val, b[:])
}

// detachReusePort is SO_DETACH_REUSEPORT_BPF: no program can be attached.
func detachReusePort(b *Base, _ *caller.Ctx, _, _ int32, _ []byte) linux.Errno {
	if b.Opt.Has(ReusePort) {
		return linux.ENOENT
	}
	return linux.EINVAL
}
