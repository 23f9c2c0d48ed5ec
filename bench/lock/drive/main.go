// Command drive measures one thing on pinned threads and prints a line of JSON. It
// is built once for each concurrency control of the nucleus (package nucleus/ipc);
// command report runs it.
//
//	drive ipc [-cores 1] [-delay CYCLES] [-entry] [-windows 15] [-window 20ms]
//	drive locks [-what counter] [-cores 2] …
//
// -fifo runs the threads with real-time priority (root), and threads that pause on the
// processors without any: no other program runs.
//
// ipc: on each core a client calls a server of the same core, endlessly, by the real
// nucleus code; before each operation they compute for an exponentially distributed
// time of -delay cycles on average. -entry makes a Linux
// system call before each operation, to stand for entry to and exit from a kernel.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/internal/report"
	"hardtack/lock"
	"hardtack/lock/core"
	"hardtack/nucleus/ipc"
)

// Output is what is printed.
type Output struct {
	Control      string
	Transactions bool
	PerSecond    float64              // cycles
	Windows      map[string][]float64 // operations in a window over its cycles
	Processor    map[string][]float64 // processor time of an operation, ns, of all threads that work
}

var (
	cores   = flag.Int("cores", 1, "cores, or threads")
	delay   = flag.Float64("delay", 0, "average delay in cycles")
	entry   = flag.Bool("entry", false, "a system call before each operation")
	windows = flag.Int("windows", 15, "how many windows are measured")
	window  = flag.Duration("window", 20*time.Millisecond, "length of a window")
	fifo    = flag.Bool("fifo", false, "real-time priority")
	what    = flag.String("what", "counter", "locks: counter, buckets, readers, or exchange: a locked instruction alone")
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("want ipc or locks"))
	}
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(max(*cores, runtime.NumCPU()) + 1) // one for this goroutine
	runtime.LockOSThread()
	if err := priority(20); err != nil {
		fail(err)
	}
	out := Output{Control: ipc.Control(), Transactions: lock.Transactions(), PerSecond: rate()}
	var err error
	switch os.Args[1] {
	case "ipc":
		err = out.measureIPC()
	case "locks":
		err = out.measureLocks()
	default:
		err = fmt.Errorf("%s: want ipc or locks", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "drive:", err)
	os.Exit(1)
}

// rate is the frequency of the time stamp counter.
func rate() float64 {
	t, c := time.Now(), core.Cycles()
	time.Sleep(50 * time.Millisecond)
	return float64(core.Cycles()-c) / time.Since(t).Seconds()
}

// pin keeps the calling goroutine on a processor for good.
func pin(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu % runtime.NumCPU())
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	return priority(10)
}

// priority gives the calling thread a real-time priority, if they are wanted.
func priority(p uint32) error {
	if !*fifo {
		return nil
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: p}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("real-time priority %d: %w", p, err)
	}
	return nil
}

// sleep waits in the system, not in the Go runtime, whose timers need a thread that
// the workers may keep off.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&ts, &ts) == unix.EINTR {
	}
}

// count is a worker's operations so far, on a line of its own.
type count struct {
	_ [128]byte
	n uint64
	_ [128]byte
}

// measure runs the workers and looks at their counts at the end of each window.
// work does some operations, a batch, and tells how many. The figures go to name.
func (o *Output) measure(name string, n int, work func(worker int) func() int) error {
	counts, spent := make([]count, n), make([]time.Duration, n)
	var stop, ready atomic.Uint32
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			if err := pin(w); err != nil {
				failed.Store(&err)
			}
			batch := work(w)
			c := &counts[w].n
			total, begun := uint64(0), report.SpentByThread()
			ready.Add(1)
			for stop.Load() == 0 {
				total += uint64(batch())
				lock.StoreRelease64(c, total)
			}
			spent[w] = report.SpentByThread() - begun
		})
	}
	if *fifo {
		keepOff(n, &wg, &stop, &failed)
	}
	for ready.Load() != uint32(n) {
		sleep(time.Millisecond)
	}
	sum := func() (s uint64, at uint64) {
		for i := range counts {
			s += atomic.LoadUint64(&counts[i].n)
		}
		return s, core.Cycles()
	}
	o.watch(name, sum)
	stop.Store(1)
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	all := time.Duration(0)
	for _, d := range spent {
		all += d
	}
	done, _ := sum()
	o.Processor[name] = append(o.Processor[name], float64(all.Nanoseconds())/float64(done))
	return nil
}

// keepOff has threads of ours spin on the processors from n on.
func keepOff(n int, wg *sync.WaitGroup, stop *atomic.Uint32, failed *atomic.Pointer[error]) {
	// The other processors may be hyperthreads of the same cores: keep others off
	// them too.
	for w := n; w < runtime.NumCPU(); w++ {
		wg.Go(func() {
			if err := pin(w); err != nil {
				failed.Store(&err)
			}
			for stop.Load() == 0 {
				core.Pause(1000)
			}
		})
	}
}

// watch notes how much is done in each window; sum returns all that was done, and when.
func (o *Output) watch(name string, sum func() (done, at uint64)) {
	sleep(*window) // warm
	if o.Windows == nil {
		o.Windows, o.Processor = map[string][]float64{}, map[string][]float64{}
	}
	before, since := sum()
	for left, tries := *windows, 0; left > 0 && tries < 200**windows; tries++ {
		sleep(*window)
		now, at := sum()
		if now != before { // else the processor was somebody else's all the time
			left--
			o.Windows[name] = append(o.Windows[name], float64(now-before)/float64(at-since))
		}
		before, since = now, at
	}
}

func (o *Output) measureIPC() error {
	n := new(ipc.Nucleus)
	if err := n.Init(*cores); err != nil {
		return err
	}
	pairs, err := startPairs(n)
	if err != nil {
		return err
	}
	return o.measure("ipc", *cores, func(w int) func() int {
		core, p := uint32(w), pairs[w]
		random := rand.New(rand.NewPCG(uint64(w), 5))
		var drawn [4096]float64
		sum := 0.0
		for i := range drawn {
			drawn[i] = random.ExpFloat64()
			sum += drawn[i]
		}
		delays := make([]uint64, len(drawn))
		for i := range delays { // so few are 2 % off their average
			delays[i] = uint64(drawn[i] * *delay * float64(len(drawn)) / sum)
		}
		at := 0
		info := ipc.MakeInfo(32, 0)
		batch := 256
		if *delay > 0 {
			batch = 16
		}
		return func() int {
			for range batch {
				if *delay > 0 {
					at = (at + 1) % len(delays)
					spin(delays[at])
				}
				if *entry {
					enter()
				}
				fx := n.Call(core, p.ep, 0, info, ipc.Forever)
				if fx.Run != p.server {
					panic("the server does not run")
				}
				if *delay > 0 {
					at = (at + 1) % len(delays)
					spin(delays[at])
				}
				if *entry {
					enter()
				}
				fx = n.ReplyRecv(core, n.Result(fx.Run).Token, info, p.ep, ipc.Forever)
				if fx.Run != p.client {
					panic("the client does not run")
				}
			}
			return 2 * batch
		}
	})
}

// pair is a client and a server on one core.
type pair struct {
	ep             ipc.ID
	client, server uint32
}

// startPairs makes a pair for each core.
func startPairs(n *ipc.Nucleus) ([]pair, error) {
	pairs := make([]pair, *cores)
	for c := range uint32(*cores) {
		p := &pairs[c]
		p.ep, _ = n.NewEndpoint(0)
		server, _ := n.NewThread(0, c)
		client, _ := n.NewThread(0, c)
		// Started by their own core, so that nobody needs an interrupt.
		n.Start(c, server)
		n.Yield(c)
		n.Recv(c, p.ep, ipc.Forever)
		fx, err := n.Start(c, client)
		if err != 0 {
			return nil, err
		}
		p.client, p.server = fx.Run, uint32(server)&0xffff
	}
	return pairs, nil
}

// spin computes for some cycles. It does not pause: a hyperthread sees a busy core.
func spin(cycles uint64) {
	for from := core.Cycles(); core.Cycles()-from < cycles; {
	}
}

func enter() { syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0) }

// guarded is a lock with a counter on a line of its own and buckets.
type guarded struct {
	_       [128]byte
	counter uint64
	_       [128]byte
	buckets [4096]struct {
		n uint64
		_ [56]byte
	}
}

const lockBatch = 512

// exchanges are loops that tell what a locked instruction costs by what is before it,
// in pairs, without and with it.
func exchanges() []contender {
	var word struct {
		_ [128]byte
		w uint32
		_ [128]byte
	}
	x := uint64(1)
	multiply := func() {
		for range 10 {
			x = x*0x9e3779b97f4a7c15 + 1
		}
	}
	var all []contender
	for _, v := range []struct {
		name   string
		before func()
	}{{"nothing", func() {}}, {"multiplications", multiply}, {"system call", enter},
		{"system call, multiplications", func() { enter(); multiply() }}} {
		for _, locked := range []bool{false, true} {
			name := v.name
			if locked {
				name += ", exchange"
			}
			all = append(all, contender{name, func(int) func() int {
				return func() int {
					for range lockBatch {
						v.before()
						if locked {
							atomic.SwapUint32(&word.w, 1)
						}
					}
					return lockBatch
				}
			}})
		}
	}
	if core.Transactions() {
		free := new([128]uint32) // one that nobody sets
		all = append(all, contender{"transaction", func(int) func() int {
			return func() int {
				for range lockBatch {
					if core.Begin(&free[64]) == core.Started {
						core.End()
					}
				}
				return lockBatch
			}
		}})
	}
	return all
}

// contender is one of those that are measured one after the other, window by window,
// so that all meet the same neighbours.
type contender struct {
	name string
	work func(worker int) func() int
}

// empty is what readers read.
var empty uint64

func (o *Output) measureLocks() error {
	var mutex struct {
		_ [128]byte
		sync.Mutex
		_ [128]byte
	}
	var rw struct {
		_ [128]byte
		sync.RWMutex
		_ [128]byte
	}
	var clh lock.CLH
	var ticket struct {
		_ [128]byte
		lock.Ticket
		_ [128]byte
	}
	var elided lock.Elided
	var big lock.BigReader
	data := new(guarded)
	exclusive := func(name string, l sync.Locker) contender {
		return contender{name, func(w int) func() int { return section(l, data, w) }}
	}
	all := []contender{exclusive("sync.Mutex", &mutex.Mutex), exclusive("Elided", &elided), exclusive("CLH", &clh), exclusive("Ticket", &ticket.Ticket)}
	switch *what {
	case "exchange":
		all = exchanges()
	case "readers":
		all = []contender{
			{"RWMutex.RLock", func(int) func() int {
				return func() int {
					for range lockBatch {
						rw.RLock()
						x := empty
						rw.RUnlock()
						_ = x
					}
					return lockBatch
				}
			}},
			{"BigReader", func(int) func() int {
				r := big.NewReader()
				return func() int {
					for range lockBatch {
						r.Lock()
						x := empty
						r.Unlock()
						_ = x
					}
					return lockBatch
				}
			}},
		}
	}
	rounds := *windows
	*windows = 1
	for range rounds {
		for _, c := range all {
			if err := o.measure(c.name, *cores, c.work); err != nil {
				return err
			}
		}
	}
	return nil
}

// section is the critical sections of one worker, by the kind of *what. The switch
// on the lock's type keeps calls direct.
func section(l sync.Locker, data *guarded, w int) func() int {
	x := uint64(w)*0x9e3779b97f4a7c15 + 1
	slot := func() *uint64 {
		if *what == "buckets" {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			// Each worker has half of the buckets: truly disjoint data.
			return &data.buckets[x%2048*2+uint64(w%2)].n
		}
		return &data.counter
	}
	switch l := l.(type) {
	case *sync.Mutex:
		return func() int {
			for range lockBatch {
				p := slot()
				l.Lock()
				*p++
				l.Unlock()
			}
			return lockBatch
		}
	case *lock.Elided:
		return func() int {
			for range lockBatch {
				p := slot()
				l.Lock()
				*p++
				l.Unlock()
			}
			return lockBatch
		}
	case *lock.CLH:
		return func() int {
			for range lockBatch {
				p := slot()
				l.Lock()
				*p++
				l.Unlock()
			}
			return lockBatch
		}
	case *lock.Ticket:
		return func() int {
			for range lockBatch {
				p := slot()
				l.Lock()
				*p++
				l.Unlock()
			}
			return lockBatch
		}
	}
	panic("no such lock")
}
