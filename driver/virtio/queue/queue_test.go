package queue_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
	"hardtack/driver/virtio/softdev"
)

type kicks struct{ f func() }

func (k kicks) Notify(int) { k.f() }

func pair(tb testing.TB, size int, o queue.Options, start uint16, notify func()) (*queue.Queue, *softdev.Ring, driver.DMA) {
	tb.Helper()
	m := softdev.NewMachine()
	mem, _ := m.AllocDMA(driver.Pages(queue.Bytes(size, o)))
	q, err := queue.New(mem, size, o, 0, kicks{notify})
	if err != nil {
		tb.Fatal(err)
	}
	desc, avail, used := q.Layout()
	dev := softdev.NewRing(m, size, desc, avail, used, o.EventIndex)
	q.StartAt(start)
	dev.StartAt(start)
	data, _ := m.AllocDMA(16)
	return q, dev, data
}

// Whatever the order of requests and completions, each comes back once, with
// its own token, bytes and length, and descriptors are neither lost nor doubled.
func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 1 << rapid.IntRange(1, 6).Draw(t, "log size")
		o := queue.Options{EventIndex: rapid.Bool().Draw(t, "event"), Indirect: rapid.Bool().Draw(t, "indirect")}
		start := rapid.SampledFrom([]uint16{0, 65500, 65535}).Draw(t, "start")
		kicked := true // the device looks at the queue at least once
		q, dev, data := pair(&testing.T{}, size, o, start, func() { kicked = true })

		type request struct {
			segs    int // descriptors
			in      uint32
			payload uint32
			head    uint16
		}
		open := map[uint32]*request{} // by token
		var taken []uint32            // tokens that the device has
		var published, seen int       // requests
		done := map[uint32]uint32{}   // token to written
		token := uint32(rand.Uint32())
		added := 0

		deviceTakes := func() {
			for {
				r, ok := dev.Next()
				if !ok {
					if !dev.WantNotify() {
						kicked = false
						return
					}
					continue
				}
				tok := binary.LittleEndian.Uint32(r.Bytes())
				req := open[tok]
				if req == nil {
					t.Fatalf("device sees request %d that is not open", tok)
				}
				var in uint32
				for _, s := range r.In {
					in += uint32(len(s))
				}
				if in != req.in || len(r.Bytes()) != int(req.payload) {
					t.Fatalf("device sees %d+%d bytes, want %d+%d", len(r.Bytes()), in, req.payload, req.in)
				}
				req.head = r.Head
				taken = append(taken, tok)
				seen++
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				nOut := rapid.IntRange(1, 4).Draw(t, "out")
				nIn := rapid.IntRange(0, 3).Draw(t, "in")
				token++
				r := &request{segs: nOut + nIn}
				// The buffers of this request: 64 bytes each, from a place of its own.
				var out, in []queue.Segment
				off := (added % 128) * 512
				for i := range nOut {
					n := uint32(4 + i)
					out = append(out, queue.Segment{Phys: data.Phys + uint64(off+64*i), Len: n})
					r.payload += n
				}
				for i := range nIn {
					in = append(in, queue.Segment{Phys: data.Phys + uint64(off+256+64*i), Len: 10})
					r.in += 10
				}
				indirect := o.Indirect && r.segs >= 3
				if indirect {
					r.segs = 1
				}
				free := q.Free()
				if len(open) >= 128 {
					return // no buffer of its own
				}
				binary.LittleEndian.PutUint32(data.Virt[off:], token)
				open[token] = r
				if !q.Add(token, out, in) {
					delete(open, token)
					if free >= r.segs {
						t.Fatalf("no room for %d with %d free", r.segs, free)
					}
					return
				}
				added++
				if q.Free() != free-r.segs {
					t.Fatalf("free went from %d to %d for %d", free, q.Free(), r.segs)
				}
			},
			"publish": func(t *rapid.T) {
				q.Publish()
				published = added
				if published > seen && !kicked {
					t.Fatal("the device sleeps and was not notified")
				}
			},
			"device takes": func(t *rapid.T) {
				if kicked {
					deviceTakes()
				}
			},
			"device completes": func(t *rapid.T) {
				n := rapid.IntRange(0, len(taken)).Draw(t, "n")
				for range n {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
					tok := taken[i]
					taken = append(taken[:i], taken[i+1:]...)
					w := uint32(rapid.IntRange(0, int(open[tok].in)).Draw(t, "written"))
					done[tok] = w
					dev.Push(open[tok].head, w)
				}
				dev.Flush()
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(0, 8).Draw(t, "n") {
					tok, w, ok := q.Pop()
					if !ok {
						if len(done) != 0 || q.More() || q.Err() != nil {
							t.Fatalf("%d completions, Pop has none (%v)", len(done), q.Err())
						}
						return
					}
					want, finished := done[tok]
					if !finished || w != want {
						t.Fatalf("token %d, %d bytes; finished %v, want %d", tok, w, finished, want)
					}
					delete(done, tok)
					delete(open, tok)
				}
			},
			"": func(t *rapid.T) {
				used := 0
				for _, r := range open {
					used += r.segs
				}
				if q.Free() != size-used || q.Pending() != len(open) {
					t.Fatalf("free %d pending %d, want %d and %d", q.Free(), q.Pending(), size-used, len(open))
				}
			},
		})
	})
}

// A device that writes nonsense breaks the queue, and nothing else.
func TestHostileDevice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := queue.Options{EventIndex: rapid.Bool().Draw(t, "event"), Indirect: rapid.Bool().Draw(t, "indirect")}
		q, dev, data := pair(&testing.T{}, 8, o, rapid.SampledFrom([]uint16{0, 65533}).Draw(t, "start"), func() {})
		open := map[uint32]uint32{} // token to writable bytes
		token := uint32(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				token++
				n := rapid.IntRange(1, 4).Draw(t, "segs")
				var in []queue.Segment
				for range n {
					in = append(in, queue.Segment{Phys: data.Phys, Len: 100})
				}
				if q.Add(token, nil, in) {
					open[token] = uint32(100 * n)
				}
				q.Publish()
			case 1:
				for slot := range uint16(8) {
					dev.Poke(slot, uint32(rapid.IntRange(-2, 9).Draw(t, "id")), uint32(rapid.IntRange(-1, 500).Draw(t, "len")))
				}
			case 2:
				dev.PokeIndex(uint16(rapid.IntRange(65530, 65530+16).Draw(t, "index")))
			case 3:
				for range 20 {
					tok, w, ok := q.Pop()
					if !ok {
						break
					}
					room, isOpen := open[tok]
					if !isOpen || w > room {
						t.Fatalf("Pop gave token %d with %d bytes; open %v, room %d", tok, w, isOpen, room)
					}
					delete(open, tok)
				}
			}
			if q.Free() < 0 || q.Free() > 8 || q.Pending() != len(open) {
				t.Fatalf("free %d, pending %d of %d", q.Free(), q.Pending(), len(open))
			}
		}
	})
}

func TestHostileCases(t *testing.T) {
	for name, lie := range map[string]func(q *queue.Queue, dev *softdev.Ring, head uint16){
		"index ahead":   func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.Push(head, 1); dev.PokeIndex(2) },
		"index behind":  func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.PokeIndex(65535) },
		"unknown id":    func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.Push(7, 1); dev.Flush() },
		"huge id":       func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.Poke(0, 1<<31, 1); dev.PokeIndex(1) },
		"too long":      func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.Push(head, 101); dev.Flush() },
		"middle of one": func(q *queue.Queue, dev *softdev.Ring, head uint16) { dev.Push(head+1, 1); dev.Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			q, dev, data := pair(t, 8, queue.Options{}, 0, func() {})
			s := queue.Segment{Phys: data.Phys, Len: 50}
			q.Add(1, nil, []queue.Segment{s, s})
			q.Publish()
			r, _ := dev.Next()
			lie(q, dev, r.Head)
			if tok, n, ok := q.Pop(); ok || q.Err() == nil {
				t.Errorf("Pop gave %d, %d, %v; Err %v", tok, n, ok, q.Err())
			}
			if q.Add(2, nil, []queue.Segment{s}) {
				t.Error("a broken queue takes requests")
			}
		})
	}
}

// Two sides that sleep unless told: a lost notification or interrupt hangs.
func TestNoLostWakeups(t *testing.T) {
	for _, event := range []bool{false, true} {
		t.Run(fmt.Sprintf("event index %v", event), func(t *testing.T) {
			const total = 30000
			notify, interrupt := make(chan struct{}, 1), make(chan struct{}, 1)
			ring := func(c chan struct{}) {
				select {
				case c <- struct{}{}:
				default:
				}
			}
			q, dev, data := pair(t, 16, queue.Options{EventIndex: event}, 65000, func() { ring(notify) })
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { // the device
				for done := 0; done < total; {
					r, ok := dev.Next()
					if !ok {
						if dev.WantNotify() {
							continue
						}
						select {
						case <-notify:
						case <-stop:
							return
						}
						continue
					}
					dev.Push(r.Head, r.Fill([]byte{1, 2, 3}))
					done++
					if (rand.IntN(3) == 0 || done == total || !dev.WantNotify()) && dev.Flush() {
						ring(interrupt)
					}
				}
			})
			timeout := time.After(2 * time.Minute)
			in := []queue.Segment{{Phys: data.Phys, Len: 8}}
			for sent, got := 0, 0; got < total; {
				q.DisableInterrupts()
				for {
					_, n, ok := q.Pop()
					if !ok {
						break
					}
					if n != 3 {
						t.Fatalf("%d bytes", n)
					}
					got++
				}
				for sent < total && q.Add(0, nil, in) {
					sent++
					if rand.IntN(2) == 0 {
						q.Publish()
					}
				}
				q.Publish()
				if got == total {
					break
				}
				delay := uint16(rand.IntN(q.Pending()))
				if q.EnableInterrupts(delay) {
					continue
				}
				select {
				case <-interrupt:
				case <-timeout:
					close(stop)
					t.Fatalf("hangs after %d of %d (%v)", got, total, q.Err())
				}
			}
			close(stop)
			wg.Wait()
		})
	}
}

func TestNewRefuses(t *testing.T) {
	mem := driver.DMA{Virt: make([]byte, 64)}
	for _, size := range []int{0, 1, 3, 65536, -4} {
		if _, err := queue.New(mem, size, queue.Options{}, 0, nil); err == nil {
			t.Errorf("size %d was accepted", size)
		}
	}
	if _, err := queue.New(mem, 8, queue.Options{}, 0, nil); err == nil {
		t.Error("too little memory was accepted")
	}
}

func BenchmarkRequest(b *testing.B) {
	q, dev, data := pair(b, 256, queue.Options{EventIndex: true}, 0, func() {})
	in := []queue.Segment{{Phys: data.Phys, Len: 8}}
	for b.Loop() {
		q.Add(0, nil, in)
		q.Publish()
		dev.Push(0, 3) // the first descriptor is free every time
		dev.Flush()
		q.Pop()
	}
}

// A device asks for word of the request that it gets next, and the driver does not see
// that in time: the next request makes up for it, once.
func TestLateNotification(t *testing.T) {
	for _, start := range []uint16{0, 65533} {
		kicked := 0
		q, dev, data := pair(t, 8, queue.Options{EventIndex: true}, start, func() { kicked++ })
		publish := func(requests, notifications int, what string) {
			t.Helper()
			before := kicked
			for range requests {
				if !q.Add(0, []queue.Segment{{Phys: data.Phys, Len: 4}}, nil) {
					t.Fatal("no room")
				}
			}
			q.Publish()
			if kicked-before != notifications {
				t.Errorf("start %d: %s: %d notifications, want %d", start, what, kicked-before, notifications)
			}
		}
		take := func(n int) {
			for range n {
				r, ok := dev.Next()
				if !ok {
					t.Fatal("no request")
				}
				dev.Push(r.Head, 0)
			}
			dev.Flush()
			for _, _, ok := q.Pop(); ok; _, _, ok = q.Pop() {
			}
		}
		publish(2, 1, "the device waits")
		publish(2, 0, "the device is at work")
		take(4)
		publish(1, 0, "the device has not asked")
		dev.WantNotifyFrom(start + 4) // and goes to sleep
		publish(1, 1, "the device asked for the request before")
		publish(1, 0, "the device was told")
		take(3)
		dev.WantNotify()
		publish(1, 1, "the device waits again")
		if q.Late() != 1 {
			t.Errorf("start %d: %d late, want 1", start, q.Late())
		}
		take(1)
		// However many requests the device takes unasked, what it asks is seen.
		for i := range 3 * 65536 / 8 {
			dev.WantNotifyFrom(start + uint16(8*i) - 100)
			publish(8, 0, "the device polls")
			take(8)
		}
		dev.WantNotify()
		publish(1, 1, "the device polled and waits")
	}
}
