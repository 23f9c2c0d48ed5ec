package msg

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"hardtack/msg/internal/owndir"
)

// Options of Export, Connect and Pair. The zero value of each field is the
// default.
type Options struct {
	Resolver Resolver // names; the directory of sockets
	// Users may be at the other end, as clients of Export and as services of Connect
	// and Dial, beside this process's own user and root; AnyUser allows all. It
	// concerns ends on this machine.
	Users []int
	// Wait is how long Connect waits for a name that nobody has yet, or at which
	// nobody answers; 30 s. Less than 0: not at all.
	Wait    time.Duration
	Schemes []string // drivers to listen on, the best first; UMP
	Pages   int      // pages of 4 KiB a ring, 1 to 8; 1, that is 60 slots
	// Rings to time when this end dials, of which the fastest is kept: where memory
	// lies matters on some machines. 8 cost a millisecond or two; 1 times none.
	Try     int
	MaxBody int // longest body in bytes; MaxBody
	// Spin is how long to poll before parking. 0 adapts that to what comes,
	// up to 50 µs; less than 0 never polls.
	Spin time.Duration
	// Inline has Serve run handlers where messages are received, one at a time, not each
	// on a goroutine of its own. They must not wait.
	Inline bool
	// Calls bounds how many calls of a connection Serve answers at a time; as many more may
	// wait. Beyond them nothing is received. 0 is 256, and 4096 may wait.
	Calls int
	// Grace is how long a session outlives a link that may come back; 10 s.
	Grace time.Duration
	// Buffer is the capacity of Go channels in the channel form; 64.
	Buffer int
}

func (o *Options) fill() (Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	if f.Resolver == nil {
		f.Resolver = DefaultResolver()
	}
	needValue(f.Resolver, "Resolver of the Options")
	if len(f.Schemes) == 0 {
		f.Schemes = []string{"unix"}
	}
	if f.Pages == 0 {
		f.Pages = 1
	}
	if f.MaxBody == 0 {
		f.MaxBody = MaxBody
	}
	if f.Grace == 0 {
		f.Grace = 10 * time.Second
	}
	if f.Buffer == 0 {
		f.Buffer = 64
	}
	if f.Wait == 0 {
		f.Wait = 30 * time.Second
	}
	switch {
	case f.Pages < 1 || f.Pages > 8:
		return f, fmt.Errorf("msg: rings of %d pages, not 1 to 8", f.Pages)
	case f.Try < 0 || f.Try > 64:
		return f, fmt.Errorf("msg: %d rings to try, not 1 to 64", f.Try)
	case f.MaxBody < SlotBytes || f.MaxBody > MaxBody:
		return f, fmt.Errorf("msg: longest body %d, not %d to %d", f.MaxBody, SlotBytes, MaxBody)
	case f.Grace < 0 || f.Buffer < 0 || f.Calls < 0:
		return f, errors.New("msg: negative options")
	}
	return f, nil
}

func (o *Options) rings(i *Interface) Rings {
	r := Rings{Pages: o.Pages, Try: o.Try}
	for k := range i.Messages {
		r.Long = r.Long || i.Messages[k].Max >= BulkBytes
	}
	return r
}

var drivers struct {
	sync.Mutex
	m map[string]Driver
	r Resolver
}

// Register makes a driver known. Packages of drivers do so when initialised;
// a later one of the same scheme replaces the earlier.
func Register(d Driver) {
	if d == nil {
		panic("msg: Register of a nil Driver")
	}
	needValue(d, "Driver to Register")
	drivers.Lock()
	defer drivers.Unlock()
	if drivers.m == nil {
		drivers.m = make(map[string]Driver)
	}
	drivers.m[d.Scheme()] = d
}

// SetResolver replaces what Options without a Resolver use.
func SetResolver(r Resolver) {
	if r != nil {
		needValue(r, "Resolver")
	}
	drivers.Lock()
	defer drivers.Unlock()
	drivers.r = r
}

// DefaultResolver is the resolver that is used if none is given: what
// SetResolver said, or the directory of sockets.
func DefaultResolver() Resolver {
	drivers.Lock()
	defer drivers.Unlock()
	if drivers.r == nil {
		return Directory(defaultDirectory())
	}
	return drivers.r
}

func driver(scheme string) (Driver, error) {
	drivers.Lock()
	defer drivers.Unlock()
	if d := drivers.m[scheme]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("%w %q; its package must be imported", errNoDriver, scheme)
}

var errNoDriver = errors.New("msg: no driver for")

// scheme is what stands before the colon.
func scheme(addr string) string { s, _, _ := strings.Cut(addr, ":"); return s }

func defaultDirectory() string {
	if d := os.Getenv("HARDTACK_MSG_DIR"); d != "" {
		return d
	}
	return owndir.Default()
}
