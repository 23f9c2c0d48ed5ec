// Package affinity shows and sets the channel-aware scheduling of a program that was
// built by "hardtack go".
//
//	hardtack go build -o server ./cmd/server
//
// The program needs no change. It imports this package only to inspect its channels, or
// to change the policy:
//
//	for _, c := range affinity.Channels() {
//		log.Printf("%s:%d: %.0f uses a second, %.0f %% from another core", c.File, c.Line, c.PerSecond, 100*c.Share)
//	}
//	err := affinity.SetPolicy(affinity.Off)
//
// In a program built by plain go, the package compiles and reports that it is not
// Available: lists are empty, and setting returns ErrNotBuilt. No function blocks, and
// all may be called from any goroutine. The guide docs/guides/affinity.md has programs to
// copy.
//
// # How channels are counted
//
// A channel counts its messages. Each message is two touches: the sender and the receiver
// each take the channel's lock once. How many touches came from another P than the one
// before (cross), and how many of the latter found somebody waiting (contended), is
// estimated from samples of 32 touches in a row. The counts end with the channel. Every
// 256 to 4096 touches (the latter with the policy off), or when a larger buffer has gone
// round, they are added to a table of 1023 entries, which Channels reads. A channel with
// fewer touches is not in the table, and one that was quiet for four periods is removed.
// Count reads one channel exactly.
package affinity

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"time"
)

// Policy says what is done with what the channels count.
type Policy uint32

const (
	Off     Policy = iota // counts only
	Process               // a majority of busy channels puts the process on one core
	Node                  // the same, on the cores that share a last-level cache
	Group                 // goroutines of one conversation share a P while that is faster
)

var policyNames = [...]string{"off", "process", "node", "group"}

// String is the policy's name as HARDTACK_AFFINITY takes it.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("Policy(%d)", uint32(p))
}

// ParsePolicy reads a name: off, process, node or group.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("affinity: no policy %q: want off, process, node or group", name)
}

// ErrNotBuilt is what setting gives in a program that was built by go alone.
var ErrNotBuilt = errors.New("affinity: this program was not built by \"hardtack go\"")

// Available tells whether the program was built by "hardtack go".
func Available() bool { return hooks.settings != nil }

// Settings are what HARDTACK_AFFINITY and the like set at the start.
type Settings struct {
	Policy  Policy
	Period  time.Duration // between votes, and the shortest hold of a group's decision; 1ms to 1h
	Touches int64         // in a period, above which a channel votes for fewer cores; at least 1
}

// Get gives the settings; the zero Settings if not Available.
func Get() Settings {
	if !Available() {
		return Settings{}
	}
	p, period, touches := hooks.settings()
	return Settings{Policy(p), time.Duration(period), touches}
}

// Set changes the settings from now on. Binding to cores ends within a period
// of a change to another policy, groups scatter at once.
func Set(s Settings) error {
	if int(s.Policy) >= len(policyNames) {
		return fmt.Errorf("affinity: no policy %d", uint32(s.Policy))
	}
	if s.Period < time.Millisecond || s.Period > time.Hour {
		return fmt.Errorf("affinity: period %v: want 1ms to 1h", s.Period)
	}
	if s.Touches < 1 {
		return fmt.Errorf("affinity: %d touches: want at least 1", s.Touches)
	}
	if !Available() {
		return ErrNotBuilt
	}
	hooks.setSettings(uint32(s.Policy), int64(s.Period), s.Touches)
	return nil
}

// SetPolicy changes the policy alone.
func SetPolicy(p Policy) error {
	if !Available() {
		return ErrNotBuilt
	}
	s := Get()
	s.Policy = p
	return Set(s)
}

// Channel is one channel that the table knows.
type Channel struct {
	Addr      uintptr // of the channel, as %p prints it
	Func      string  // where it was made; empty if not in the program's main part
	File      string
	Line      int
	Cap       int // in elements
	ElemSize  int // in bytes
	Touches   uint64
	Cross     uint64  // from another P than the touch before, estimated
	Contended uint64  // of Cross, with somebody waiting, estimated
	PerSecond float64 // touches, since the Meter's last look at this channel; 0 at the first
	Share     float64 // Cross / Touches, since then; over its life at the first
	Group     uint32  // the conversation it belongs to, 0 for none
	Together  bool    // the group is kept on one P now
}

// A Meter turns counts into rates. Its zero value is ready; one Meter serves
// one reader at a time.
type Meter struct {
	when time.Time
	last map[uintptr]runtimeChannel
	buf  []runtimeChannel
}

// Channels gives the channels that were busy lately, in no order.
func (m *Meter) Channels() []Channel {
	if !Available() {
		return nil
	}
	if m.buf == nil {
		m.buf = make([]runtimeChannel, 1023)
	}
	raw := m.buf[:hooks.channels(m.buf)]
	now := time.Now()
	took := now.Sub(m.when).Seconds()
	out := make([]Channel, 0, len(raw))
	next := make(map[uintptr]runtimeChannel, len(raw))
	for _, r := range raw {
		c := Channel{Addr: r.Addr, Cap: int(r.Cap), ElemSize: int(r.Elem), Touches: r.Touches, Cross: r.Cross,
			Contended: r.Contends, Group: r.Group, Together: r.Together != 0}
		was, known := m.last[r.Addr]
		known = known && was.Site == r.Site && was.Touches <= r.Touches && was.Cross <= r.Cross
		if !known {
			was = runtimeChannel{}
		}
		if n := r.Touches - was.Touches; n > 0 {
			c.Share = float64(r.Cross-was.Cross) / float64(n)
			if known && took > 0 {
				c.PerSecond = float64(n) / took
			}
		}
		if r.Site != 0 {
			frames := runtime.CallersFrames([]uintptr{r.Site})
			f, _ := frames.Next()
			c.Func, c.File, c.Line = f.Function, f.File, f.Line
		}
		next[r.Addr] = r
		out = append(out, c)
	}
	m.when, m.last = now, next
	return out
}

var shared struct {
	sync.Mutex
	Meter
}

// Channels is Meter.Channels of a Meter that the program shares.
func Channels() []Channel {
	shared.Lock()
	defer shared.Unlock()
	return shared.Channels()
}

// Count gives the touches of one channel, and an estimate of how many of them
// were cross. Operations that passed no message (a select that found nothing,
// receiving from a closed channel) do not count. Both wrap at 2³². The count of a
// channel with a buffer begins again when it lost its place in the table to
// another. It is an error if c is no channel or nil.
func Count(c any) (touches, cross uint32, err error) {
	v := reflect.ValueOf(c)
	if v.Kind() != reflect.Chan || v.IsNil() {
		return 0, 0, fmt.Errorf("affinity: Count of %T: want a channel that was made", c)
	}
	if !Available() {
		return 0, 0, ErrNotBuilt
	}
	t, x, _ := hooks.count(v.UnsafePointer())
	runtime.KeepAlive(c)
	return t, x, nil
}

// Kind is what was decided.
type Kind uint32

const (
	Gathered  Kind = iota + 1 // a group was measured and is better together
	Scattered                 // a group was measured and is better scattered
	Pinned                    // the vote passed: the process is bound to fewer cores
	Unpinned                  // the vote failed: it has all its cores again
	Refused                   // the kernel refused the mask
)

var kindNames = [...]string{"", "gathered", "scattered", "pinned", "unpinned", "refused"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint32(k))
}

// Decision is one decision. For Gathered and Scattered A and B are the best
// touches a second scattered and together; for the others the channels that
// voted yes, and all that voted.
type Decision struct {
	When  int64 // nanoseconds of the runtime's clock
	Kind  Kind
	Group uint32
	A, B  uint64
}

// Decisions gives those taken from number from on (0 at first), at most the
// last 256, and the number to ask with next.
func Decisions(from uint64) ([]Decision, uint64) {
	if !Available() {
		return nil, from
	}
	buf := make([]runtimeEvent, 256)
	n, next := hooks.events(from, buf)
	out := make([]Decision, n)
	for i, e := range buf[:n] {
		out[i] = Decision{e.when, Kind(e.kind), e.group, e.a, e.b}
	}
	return out, next
}
