package sock

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// Options are the options of SOL_SOCKET that every socket keeps. All are
// atomic: the data path reads them without a lock.
type Options struct {
	bits               atomic.Uint32
	RcvTimeo, SndTimeo atomic.Int64 // nanoseconds; 0 for none
	RcvBuf, SndBuf     atomic.Int32 // bytes as getsockopt shows them (doubled)
	RcvLowat           atomic.Int32
	Linger             atomic.Int32 // seconds+1; 0 is off
	Priority, Mark     atomic.Int32
	BufSet             atomic.Uint32 // bit 0: RcvBuf was set by the program, bit 1: SndBuf
	BindToDevice       atomic.Int32  // interface index; 0 for any
}

// Boolean options, by bit.
const (
	Debug uint32 = 1 << iota
	ReuseAddr
	DontRoute
	Broadcast
	KeepAlive
	OOBInline
	NoCheck
	ReusePort
	PassCred
	Timestamp
	TimestampNS
	PassSec
)

var boolOptions = [...]struct {
	name int32
	bit  uint32
}{
	{linux.SO_DEBUG, Debug}, {linux.SO_REUSEADDR, ReuseAddr}, {linux.SO_DONTROUTE, DontRoute},
	{linux.SO_BROADCAST, Broadcast}, {linux.SO_KEEPALIVE, KeepAlive}, {linux.SO_OOBINLINE, OOBInline},
	{linux.SO_NO_CHECK, NoCheck}, {linux.SO_REUSEPORT, ReusePort}, {linux.SO_PASSCRED, PassCred},
	{linux.SO_TIMESTAMP, Timestamp}, {linux.SO_TIMESTAMPNS, TimestampNS},
}

func (o *Options) init() {
	o.RcvBuf.Store(linux.DefaultSocketBuffer)
	o.SndBuf.Store(linux.DefaultSocketBuffer)
	o.RcvLowat.Store(1)
}

// Has reports whether a boolean option is on.
func (o *Options) Has(bit uint32) bool { return o.bits.Load()&bit != 0 }

// Set switches a boolean option.
func (o *Options) Set(bit uint32, on bool) {
	if on {
		o.bits.Or(bit)
	} else {
		o.bits.And(^bit)
	}
}

// Inherit copies what an accepted connection takes over from its listener.
func (o *Options) Inherit(from *Options) {
	o.bits.Store(from.bits.Load())
	o.RcvTimeo.Store(from.RcvTimeo.Load())
	o.SndTimeo.Store(from.SndTimeo.Load())
	o.RcvBuf.Store(from.RcvBuf.Load())
	o.SndBuf.Store(from.SndBuf.Load())
	o.RcvLowat.Store(from.RcvLowat.Load())
	o.Linger.Store(from.Linger.Load())
	o.Priority.Store(from.Priority.Load())
	o.Mark.Store(from.Mark.Load())
	o.BufSet.Store(from.BufSet.Load())
	o.BindToDevice.Store(from.BindToDevice.Load())
}

// SetSocketOpt is setsockopt at SOL_SOCKET; ENOPROTOOPT for what it does not know.
func (b *Base) SetSocketOpt(c *kern.Ctx, name int32, val []byte) linux.Errno {
	o := &b.Opt
	switch name {
	case linux.SO_LINGER:
		if len(val) < linux.SizeofLinger {
			return linux.EINVAL
		}
		on, _ := Int(val)
		sec, _ := Int(val[4:])
		switch {
		case on == 0:
			o.Linger.Store(0)
		case sec < 0 || sec > 1<<20:
			o.Linger.Store(1 << 20)
		default:
			o.Linger.Store(sec + 1)
		}
		return 0
	case linux.SO_RCVTIMEO, linux.SO_SNDTIMEO, linux.SO_RCVTIMEO_NEW, linux.SO_SNDTIMEO_NEW:
		return o.setTimeout(name, val)
	case linux.SO_TYPE, linux.SO_PROTOCOL, linux.SO_DOMAIN, linux.SO_ERROR, linux.SO_ACCEPTCONN,
		linux.SO_PEERCRED, linux.SO_PEERGROUPS, linux.SO_SNDLOWAT, linux.SO_PEERSEC:
		return linux.ENOPROTOOPT
	case linux.SO_ATTACH_FILTER, linux.SO_BINDTODEVICE:
		return linux.ENOPROTOOPT
	}
	v, e := Int(val)
	if e != 0 {
		return e
	}
	for _, x := range boolOptions {
		if x.name == name {
			if x.bit == Debug && v != 0 && !c.Cred().Has(kern.CapNetAdmin) {
				return linux.EACCES
			}
			o.Set(x.bit, v != 0)
			if x.bit == Timestamp && v != 0 {
				o.Set(TimestampNS, false)
			} else if x.bit == TimestampNS && v != 0 {
				o.Set(Timestamp, false)
			}
			return 0
		}
	}
	switch name {
	case linux.SO_RCVBUF, linux.SO_RCVBUFFORCE:
		if name == linux.SO_RCVBUFFORCE && !c.Cred().Has(kern.CapNetAdmin) {
			return linux.EPERM
		}
		o.RcvBuf.Store(bufferSize(v, linux.MinimumReceiveBuffer))
		o.BufSet.Or(1)
	case linux.SO_SNDBUF, linux.SO_SNDBUFFORCE:
		if name == linux.SO_SNDBUFFORCE && !c.Cred().Has(kern.CapNetAdmin) {
			return linux.EPERM
		}
		o.SndBuf.Store(bufferSize(v, linux.MinimumSendBuffer))
		o.BufSet.Or(2)
	case linux.SO_RCVLOWAT:
		switch {
		case v < 0:
			v = 1 << 30
		case v == 0:
			v = 1
		}
		o.RcvLowat.Store(v)
	case linux.SO_PRIORITY:
		if (v < 0 || v > 6) && !c.Cred().Has(kern.CapNetAdmin) {
			return linux.EPERM
		}
		o.Priority.Store(v)
	case linux.SO_MARK:
		if !c.Cred().Has(kern.CapNetAdmin) {
			return linux.EPERM
		}
		o.Mark.Store(v)
	case linux.SO_INCOMING_CPU:
	default:
		return linux.ENOPROTOOPT
	}
	return 0
}

// bufferSize doubles what a program asks for, within the limits, as Linux does.
func bufferSize(v int32, least int32) int32 {
	if v < 0 || v > linux.DefaultSocketBuffer {
		v = linux.DefaultSocketBuffer
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
	for _, x := range boolOptions {
		if x.name == name {
			return PutInt(val, b2i(o.Has(x.bit))), 0
		}
	}
	switch name {
	case linux.SO_TYPE:
		return PutInt(val, b.Type), 0
	case linux.SO_DOMAIN:
		return PutInt(val, b.Domain), 0
	case linux.SO_PROTOCOL:
		return PutInt(val, b.Protocol), 0
	case linux.SO_ERROR:
		return PutInt(val, int32(b.TakeError())), 0
	case linux.SO_SNDBUF:
		return PutInt(val, o.SndBuf.Load()), 0
	case linux.SO_RCVBUF:
		return PutInt(val, o.RcvBuf.Load()), 0
	case linux.SO_RCVLOWAT:
		return PutInt(val, o.RcvLowat.Load()), 0
	case linux.SO_SNDLOWAT:
		return PutInt(val, 1), 0
	case linux.SO_PRIORITY:
		return PutInt(val, o.Priority.Load()), 0
	case linux.SO_MARK:
		return PutInt(val, o.Mark.Load()), 0
	case linux.SO_INCOMING_CPU:
		return PutInt(val, -1), 0
	case linux.SO_ACCEPTCONN:
		return PutInt(val, 0), 0
	case linux.SO_LINGER:
		var b [8]byte
		if l := o.Linger.Load(); l != 0 {
			PutInt(b[:], 1)
			PutInt(b[4:], l-1)
		}
		return copy(val, b[:]), 0
	case linux.SO_RCVTIMEO, linux.SO_RCVTIMEO_NEW:
		return putTimeval(val, o.RcvTimeo.Load()), 0
	case linux.SO_SNDTIMEO, linux.SO_SNDTIMEO_NEW:
		return putTimeval(val, o.SndTimeo.Load()), 0
	case linux.SO_BINDTODEVICE:
		return 0, 0
	}
	return 0, linux.ENOPROTOOPT
}

func putTimeval(val []byte, ns int64) int {
	var b [16]byte
	PutUint64(b[:], uint64(ns/1_000_000_000))
	PutUint64(b[8:], uint64(ns%1_000_000_000/1000))
	return copy(val, b[:])
}

// Uint64 decodes a little-endian number.
func Uint64(b []byte) uint64 {
	_ = b[7]
	v := uint64(0)
	for i := 7; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// PutUint64 encodes one.
func PutUint64(b []byte, v uint64) {
	for i := range b[:8] {
		b[i] = byte(v >> (8 * i))
	}
}

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
