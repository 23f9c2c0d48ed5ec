package sock

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/net/bpf"
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
	rare               atomic.Pointer[rareOptions]
}

// rareOptions are what few programs set; immutable, each change makes a copy.
type rareOptions struct {
	ints     [len(rareInts)]int32
	pacing   uint64   // SO_MAX_PACING_RATE
	txtime   [8]byte  // struct sock_txtime
	linger   int32    // l_linger while SO_LINGER is off
	stamping [2]int32 // struct so_timestamping
	filter   *bpf.Program
}

var noRareOptions = rareOptions{ints: [len(rareInts)]int32{0, 0, 0, -1, 1}, pacing: ^uint64(0)}

// rareInts are options that are kept for getsockopt: nothing in this kernel
// depends on them. The bounds are those of setsockopt.
var rareInts = [...]struct {
	name, least, most int32
	admin             bool // more than the present value needs CAP_NET_ADMIN
	hidden            bool // getsockopt does not know it
}{
	{name: linux.SO_BUSY_POLL, most: 1<<31 - 1, admin: true},
	{name: linux.SO_PREFER_BUSY_POLL, most: 1, admin: true},
	{name: linux.SO_BUSY_POLL_BUDGET, most: 65535, admin: true, hidden: true},
	{name: linux.SO_INCOMING_CPU, least: -1 << 31, most: 1<<31 - 1},
	{name: linux.SO_TXREHASH, least: -1, most: 1},
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
	Timestamp    // a time goes with what is received
	TimestampNS  // as a timespec
	TimestampNew // with 64 bits on every machine
	PassSec
	RxqOvfl
	WifiStatus
	NoFCS
	LockFilter
	SelectErrQueue
	ZeroCopy
	RcvMark
	Txtime
)

var boolOptions = [...]struct {
	name int32
	bit  uint32
}{
	{linux.SO_DEBUG, Debug}, {linux.SO_REUSEADDR, ReuseAddr}, {linux.SO_DONTROUTE, DontRoute},
	{linux.SO_BROADCAST, Broadcast}, {linux.SO_KEEPALIVE, KeepAlive}, {linux.SO_OOBINLINE, OOBInline},
	{linux.SO_NO_CHECK, NoCheck}, {linux.SO_REUSEPORT, ReusePort}, {linux.SO_PASSCRED, PassCred},
	{linux.SO_PASSSEC, PassSec}, {linux.SO_RXQ_OVFL, RxqOvfl}, {linux.SO_WIFI_STATUS, WifiStatus},
	{linux.SO_NOFCS, NoFCS}, {linux.SO_LOCK_FILTER, LockFilter}, {linux.SO_SELECT_ERR_QUEUE, SelectErrQueue},
	{linux.SO_ZEROCOPY, ZeroCopy}, {linux.SO_RCVMARK, RcvMark},
}

func (o *Options) init() {
	o.RcvBuf.Store(int32(settings.RmemDefault.Get()))
	o.SndBuf.Store(int32(settings.WmemDefault.Get()))
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

func (o *Options) getRare() *rareOptions {
	if r := o.rare.Load(); r != nil {
		return r
	}
	return &noRareOptions
}

// setRare changes rare options: no change by another thread is lost.
func (o *Options) setRare(change func(*rareOptions)) {
	for {
		old := o.rare.Load()
		r := *o.getRare()
		change(&r)
		if o.rare.CompareAndSwap(old, &r) {
			return
		}
	}
}

// Timestamping returns SO_TIMESTAMPING's flags.
func (o *Options) Timestamping() int32 {
	if r := o.rare.Load(); r != nil {
		return r.stamping[0]
	}
	return 0
}

// PacingRate is SO_MAX_PACING_RATE.
func (o *Options) PacingRate() uint64 { return o.getRare().pacing }

// Filter returns the program that looks at what comes in; nil for none.
func (o *Options) Filter() *bpf.Program {
	if r := o.rare.Load(); r != nil {
		return r.filter
	}
	return nil
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
	if r := from.rare.Load(); r != nil {
		o.rare.Store(r)
	}
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
