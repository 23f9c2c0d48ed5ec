package ipc

import (
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"testing"

	"hardtack/abi/linux"
)

// Integers and fixed arrays only, and one table of pointers that operations read but
// do not write: what the nucleus may hold with interrupts off.
func TestNoPointers(t *testing.T) {
	var look func(typ reflect.Type, path string)
	look = func(typ reflect.Type, path string) {
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				if path == "Nucleus" && i == 0 && typ.Field(i).Name == "regs" {
					continue
				}
				look(typ.Field(i).Type, path+"."+typ.Field(i).Name)
			}
		case reflect.Array:
			look(typ.Elem(), path+"[]")
		case reflect.Bool, reflect.Int, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		default:
			t.Errorf("%s is a %v", path, typ)
		}
	}
	look(reflect.TypeFor[Nucleus](), "Nucleus")
	look(reflect.TypeFor[Effects](), "Effects")
	look(reflect.TypeFor[Dropped](), "Dropped")
}

func TestNoAllocation(t *testing.T) {
	n := newNucleus(t, 1)
	ep, client, server := pair(t, n, 0)
	note, _ := n.NewNotification(0)
	clock := uint64(1)
	allocs := testing.AllocsPerRun(100, func() {
		n.Call(0, ep, 1, MakeInfo(500, 2), clock+100)
		n.Thread(server).Came = 0
		n.ReplyRecv(0, n.Result(server).Token, MakeInfo(40, 1), ep, clock+100)
		n.Thread(client).Came = 0
		n.Signal(0, note, 1)
		n.Wait(0, note, Now)
		n.SignalWait(0, note, 1, note, Now)
		n.Yield(0)
		id, _ := n.NewThread(0, 0)
		n.Start(0, id)
		n.DestroyThread(0, id)
		clock++
		n.Tick(0, clock)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if n.Result(client).Err != 0 || n.Result(server).Err != 0 {
		t.Errorf("client %+v, server %+v", n.Result(client), n.Result(server))
	}
}

func TestTables(t *testing.T) {
	n := newNucleus(t, 1)
	var threads, ends, notes []ID
	for {
		id, err := n.NewThread(0, 0)
		if err == linux.ENFILE {
			break
		}
		threads = append(threads, id)
	}
	for {
		id, err := n.NewEndpoint(0)
		if err == linux.ENFILE {
			break
		}
		ends = append(ends, id)
	}
	for {
		id, err := n.NewNotification(0)
		if err == linux.ENFILE {
			break
		}
		notes = append(notes, id)
	}
	if len(threads) != MaxThreads-1 || len(ends) != MaxEndpoints-1 || len(notes) != MaxNotifications-1 {
		t.Errorf("%d threads, %d endpoints, %d notifications", len(threads), len(ends), len(notes))
	}
	// A name is stale once its object is gone, also when the place is used again.
	old := ends[17]
	if _, err := n.DestroyEndpoint(0, old); err != 0 {
		t.Error(err)
	}
	id, err := n.NewEndpoint(0)
	if err != 0 || id == old || id.index() != old.index() {
		t.Errorf("%#x after %#x: %v", id, old, err)
	}
	if _, err := n.DestroyEndpoint(0, old); err != linux.EBADF {
		t.Errorf("a stale name: %v", err)
	}
}

func TestWrongCores(t *testing.T) {
	for _, cores := range []int{0, -1, MaxCores + 1} {
		if new(Nucleus).Init(cores) == nil {
			t.Errorf("%d cores are accepted", cores)
		}
	}
	if Control() == "none" && new(Nucleus).Init(2) == nil {
		t.Error("two cores without concurrency control")
	}
}

// script is a conversation in which one party dies after some step. Each step is
// done by a named thread if that is the core's current one.
type script struct {
	t     *testing.T
	n     *Nucleus
	ids   map[string]ID
	names map[uint32]string
	runs  uint32
	err   map[string][]Errno
}

func newScript(t *testing.T, names ...string) *script {
	s := &script{t: t, n: newNucleus(t, 1), ids: map[string]ID{}, names: map[uint32]string{}, err: map[string][]Errno{}}
	for _, name := range names {
		id, _ := s.n.NewThread(0, 0)
		s.ids[name], s.names[id.index()] = id, name
		fx, err := s.n.Start(0, id)
		if err != 0 {
			t.Fatal(err)
		}
		s.runs = fx.Run
	}
	return s
}

// on does a step of a thread: it yields until that is current. It tells whether the
// thread is there and ready.
func (s *script) on(name string, f func()) bool {
	id := s.ids[name]
	t := s.n.Thread(id.index())
	if !t.exists || t.generation != id.generation() || t.where.state() != Ready {
		return false
	}
	for s.n.Current(0) != id.index() {
		s.n.Yield(0)
	}
	f()
	return true
}

// Death of either party after every step of a call that carries descriptors, with
// ten more callers in the queue: what the others see.
func TestDeaths(t *testing.T) {
	const callers = 10
	for _, victim := range []string{"client", "server"} {
		for after := 0; ; after++ {
			names := []string{"server", "client"}
			for i := range callers {
				names = append(names, fmt.Sprint("caller", i))
			}
			s := newScript(t, names...)
			n := s.n
			ep, _ := n.NewEndpoint(0)
			var tokens []Token
			var dropped []uint64
			done := 0
			var steps []func()
			recv := func() {
				s.on("server", func() { n.Recv(0, ep, Forever) })
			}
			steps = append(steps, recv, func() {
				s.on("client", func() {
					copy(n.Thread(s.ids["client"].index()).Out[:], []uint64{71, 72})
					n.Call(0, ep, 0, MakeInfo(8, 2), Forever)
				})
			})
			for i := range callers {
				steps = append(steps, func() {
					s.on(fmt.Sprint("caller", i), func() { n.Call(0, ep, uint64(i+1), 0, Forever) })
				})
			}
			for range callers + 1 { // the server receives all calls before it answers any
				steps = append(steps, func() {
					s.on("server", func() {
						i := s.ids["server"].index()
						if tok := n.Result(i).Token; tok != 0 && !slices.Contains(tokens, tok) {
							tokens = append(tokens, tok)
						}
						if n.Thread(i).Came == 0 {
							n.Recv(0, ep, Now)
							if tok := n.Result(i).Token; tok != 0 {
								tokens = append(tokens, tok)
							}
						}
						n.Thread(i).Came = 0
					})
				})
			}
			steps = append(steps, func() {
				for _, tok := range tokens {
					s.on("server", func() {
						if n.Reply(0, tok, 0); n.Result(s.ids["server"].index()).Err == 0 {
							done++
						}
					})
				}
			})
			if after > len(steps) {
				break
			}
			for i, step := range steps {
				if i == after {
					_, d, err := n.DestroyThread(0, s.ids[victim])
					if err != 0 {
						t.Fatal(err)
					}
					dropped = d.Descriptors[:d.N]
				}
				step()
			}
			// The endpoint goes, as when its last descriptor is closed.
			n.DestroyEndpoint(0, ep)
			for _, name := range names {
				id := s.ids[name]
				th := n.Thread(id.index())
				if name == victim && after < len(steps) {
					if th.exists && th.generation == id.generation() {
						t.Errorf("%s after %d steps: it lives", victim, after)
					}
					continue
				}
				if th.where.state() != Ready {
					t.Errorf("%s dies after %d steps: %s is still %v", victim, after, name, th.where.state())
				}
				err := n.Result(id.index()).Err
				switch {
				case victim == "server" && name != "server" && after < len(steps)-1 && err != linux.EPIPE && err != 0:
					t.Errorf("server dies after %d steps: %s gets %v", after, name, err)
				case victim == "server" && name != "server" && after < len(steps)-1 && err == 0 && after > 1 && name == "client":
					t.Errorf("server dies after %d steps: the client's call succeeded", after)
				case victim == "client" && name != "server" && err != 0:
					t.Errorf("client dies after %d steps: %s gets %v", after, name, err)
				}
			}
			if victim == "client" && after <= len(steps)-1 && done != callers {
				t.Errorf("client dies after %d steps: %d replies, want %d", after, done, callers)
			}
			if after == len(steps) && done != callers+1 {
				t.Errorf("nobody dies: %d replies, want %d", done, callers+1)
			}
			// Descriptors: in the message of a client that dies with it, or with the
			// server that has received them and not yet taken.
			for _, d := range dropped {
				if d != 71 && d != 72 {
					t.Errorf("%s dies after %d steps: dropped %v", victim, after, dropped)
				}
			}
		}
	}
}

func TestTimeouts(t *testing.T) {
	s := newScript(t, "a", "b", "c")
	n := s.n
	ep, _ := n.NewEndpoint(0)
	note, _ := n.NewNotification(0)
	a, b, c := s.ids["a"].index(), s.ids["b"].index(), s.ids["c"].index()
	s.on("a", func() { n.Recv(0, ep, 10) })
	s.on("b", func() { n.Wait(0, note, 20) })
	if n.NextDeadline(0) > 10 {
		t.Errorf("earliest deadline %d", n.NextDeadline(0))
	}
	n.Tick(0, 9)
	if n.Thread(a).where.state() != Receiving {
		t.Error("woken too early")
	}
	n.Tick(0, 10)
	if n.Thread(a).where.state() != Ready || n.Result(a).Err != linux.ETIMEDOUT || n.Thread(b).where.state() != Waiting {
		t.Errorf("a %v %v, b %v", n.Thread(a).where.state(), n.Result(a).Err, n.Thread(b).where.state())
	}
	// The deadline of a call runs on while the server works.
	s.on("a", func() { n.Recv(0, ep, Forever) })
	s.on("c", func() { n.Call(0, ep, 0, 0, 30) })
	tok := n.Result(a).Token
	n.Tick(0, 40)
	if n.Result(c).Err != linux.ETIMEDOUT || n.Result(b).Err != linux.ETIMEDOUT {
		t.Errorf("c %v, b %v", n.Result(c).Err, n.Result(b).Err)
	}
	s.on("a", func() { n.Reply(0, tok, 0) })
	if n.Result(a).Err != linux.EPIPE {
		t.Errorf("a reply to one that waits no longer: %v", n.Result(a).Err)
	}
	if n.Tick(0, 1000); n.NextDeadline(0) != Forever {
		t.Errorf("deadline %d left", n.NextDeadline(0))
	}
}

// The other concurrency controls: the tests once more.
func TestControls(t *testing.T) {
	if testing.Short() || Control() != "big" {
		t.Skip("builds the package three times")
	}
	for _, tag := range []string{"nucleus_none", "nucleus_fine", "nucleus_rtm"} {
		out, err := exec.Command("go", "test", "-count=1", "-tags", tag, ".").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", tag, err, out)
		}
	}
}
