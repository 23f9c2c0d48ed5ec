package disktest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/disk/blockdev"
)

func fill(b [][]byte, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []byte
	for _, p := range b {
		for i := 0; i+8 <= len(p); i += 8 {
			binary.LittleEndian.PutUint64(p[i:], r.Uint64())
		}
		all = append(all, p...)
	}
	return all
}

func each(t *testing.T, f func(t *testing.T, w *wiring)) {
	for i := range wirings {
		t.Run(wirings[i].name, func(t *testing.T) {
			t.Parallel()
			w := wirings[i]
			f(t, &w)
		})
	}
}

func TestIdentity(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		r := w.start(t, image(t), "")
		l := r.limits
		if l.Sectors != diskSize/512 || l.LogicalBlock != 512 || r.dev.Serial() != "s1" || !l.WriteCache || l.ReadOnly || l.FUA != w.fua {
			t.Errorf("%+v, serial %q", l, r.dev.Serial())
		}
		if strings.HasPrefix(w.name, "virtio") && l.MaxWriteZeroes == 0 || l.MaxDiscard == 0 {
			t.Errorf("no discard or zeroes: %+v", l)
		}
		if w.name == "ahci" && l.Depth != 32 {
			t.Errorf("%d commands at a time", l.Depth)
		}
	})
}

func TestBlocksOf4KiB(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		if w.name == "ahci" {
			t.Skip("QEMU has no such disk")
		}
		w.device += ",logical_block_size=4096,physical_block_size=4096"
		file := image(t)
		r := w.start(t, file, "")
		if r.limits.LogicalBlock != 4096 || r.limits.Sectors != diskSize/512 {
			t.Fatalf("%+v", r.limits)
		}
		b, segs := r.memory(8192, 4096)
		want := fill(b, 1)
		r.must(&blockdev.Command{Op: blockdev.Write, Sector: 80, Sectors: 16, Data: segs})
		r.must(&blockdev.Command{Op: blockdev.Flush})
		if got, _ := os.ReadFile(file); !bytes.Equal(got[80*512:][:8192], want) {
			t.Error("the file differs")
		}
	})
}

// Random reads and writes on all queues, many at a time, against the file.
func TestTransfers(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		file := image(t)
		r := w.start(t, file, "")
		rnd := rand.New(rand.NewPCG(1, 2))
		want := make([]byte, diskSize)
		type job struct {
			c    *blockdev.Command
			b    [][]byte
			done <-chan struct{}
		}
		memory, segs := r.memory(1<<20, 4096)
		for round := range 12 {
			// Each job has a part of the disk and of the memory of its own.
			var jobs []job
			for page, slot := 0, 0; ; slot++ {
				pages := 1 + rnd.IntN(min(r.limits.MaxSegments, 24))
				if page+pages > len(segs) {
					break
				}
				j := job{b: memory[page : page+pages]}
				data := append([]blockdev.Segment(nil), segs[page:page+pages]...)
				bytes := pages * 4096
				if rnd.IntN(3) == 0 { // not all of the last page
					cut := 512 * rnd.IntN(8)
					data[pages-1].Len -= uint32(cut)
					bytes -= cut
				}
				j.c = &blockdev.Command{Op: blockdev.Op(round % 2), Sector: uint64(slot*200 + rnd.IntN(8)), Sectors: uint32(bytes / 512), Data: data}
				if j.c.Op == blockdev.Write {
					all := fill(j.b, rnd.Uint64())
					copy(want[j.c.Sector*512:], all[:bytes])
					j.c.FUA = w.fua && rnd.IntN(2) == 0
				} else {
					for _, b := range j.b {
						clear(b)
					}
				}
				page += pages
				jobs = append(jobs, j)
			}
			for i := range jobs {
				jobs[i].done = r.submit(i%r.limits.Queues, jobs[i].c)
			}
			for _, j := range jobs {
				r.wait(j.done, j.c)
				if j.c.Err != 0 {
					t.Fatalf("%v at %d: %v", j.c.Op, j.c.Sector, j.c.Err)
				}
				if j.c.Op == blockdev.Read {
					got := bytes.Join(j.b, nil)[:j.c.Sectors*512]
					if !bytes.Equal(got, want[j.c.Sector*512:][:len(got)]) {
						t.Fatalf("read of %d sectors at %d differs", j.c.Sectors, j.c.Sector)
					}
				}
			}
		}
		r.must(&blockdev.Command{Op: blockdev.Flush})
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the file differs (%v)", err)
		}
		if n := r.strays.Load(); n != 0 {
			t.Errorf("%d completions too many", n)
		}
	})
}

func TestDiscardAndZeroes(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		file := image(t)
		r := w.start(t, file, "")
		b, segs := r.memory(64<<10, 4096)
		want := fill(b, 3)
		r.must(&blockdev.Command{Op: blockdev.Write, Sector: 1024, Sectors: 128, Data: segs[:16]})
		r.must(&blockdev.Command{Op: blockdev.Discard, Sector: 1024, Sectors: 64})
		if r.limits.MaxWriteZeroes > 0 {
			for i, keep := range []bool{true, false} {
				r.must(&blockdev.Command{Op: blockdev.WriteZeroes, NoUnmap: keep, Sector: uint64(1096 + 8*i), Sectors: 8})
				clear(want[(72+8*i)*512:][:4096])
			}
		}
		r.must(&blockdev.Command{Op: blockdev.Flush})
		got, _ := os.ReadFile(file)
		if !bytes.Equal(got[(1024+64)*512:][:64*512], want[64*512:]) {
			t.Error("what was not discarded differs")
		}
		if !bytes.Equal(got[1024*512:][:64*512], make([]byte, 64*512)) {
			t.Error("what was discarded is there (the file can have holes)")
		}
	})
}

func TestReadOnly(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		if w.name == "ahci" {
			t.Skip("QEMU has no such disk")
		}
		r := w.start(t, image(t), ",readonly=on")
		_, segs := r.memory(4096, 4096)
		r.must(&blockdev.Command{Op: blockdev.Read, Sectors: 8, Data: segs})
		if w.name != "nvme" && !r.limits.ReadOnly {
			t.Error("it says that it can be written")
		}
		if err := r.do(&blockdev.Command{Op: blockdev.Write, Sectors: 8, Data: segs}); err == nil {
			t.Error("it was written")
		}
	})
}

// The error is that of the command that causes it, among others under way, and
// afterwards all goes on.
func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		file := image(t)
		r := w.start(t, file, blkdebug(file, "inject-error.0.event=none,inject-error.0.iotype=write,inject-error.0.sector=804,inject-error.0.errno=5,inject-error.0.once=off"))
		b, segs := r.memory(128<<10, 4096)
		want := fill(b, 4)
		for range 3 {
			var cmds []*blockdev.Command
			var done []<-chan struct{}
			for i := range 32 {
				c := &blockdev.Command{Op: blockdev.Write, Sector: uint64(i * 100), Sectors: 8, Data: segs[i : i+1]}
				cmds = append(cmds, c)
				done = append(done, r.submit(i%r.limits.Queues, c))
			}
			for i, c := range cmds {
				r.wait(done[i], c)
				if wrong := c.Sector <= 804 && 804 < c.Sector+8; wrong != (c.Err == linux.EIO) || !wrong && c.Err != 0 {
					t.Errorf("write at %d: %v", c.Sector, c.Err)
				}
			}
		}
		r.must(&blockdev.Command{Op: blockdev.Flush})
		got, _ := os.ReadFile(file)
		for i := range 32 {
			if i != 8 && !bytes.Equal(got[i*100*512:][:4096], want[i*4096:][:4096]) {
				t.Errorf("write %d is not in the file", i)
			}
		}
		read, into := r.memory(4096, 4096)
		r.must(&blockdev.Command{Op: blockdev.Read, Sector: 900, Sectors: 8, Data: into})
		if !bytes.Equal(read[0], want[9*4096:][:4096]) {
			t.Error("read after errors differs")
		}
	})
}

func TestFlushFails(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		file := image(t)
		r := w.start(t, file, blkdebug(file, "inject-error.0.event=none,inject-error.0.iotype=flush,inject-error.0.errno=5,inject-error.0.once=on"))
		_, segs := r.memory(4096, 4096)
		r.must(&blockdev.Command{Op: blockdev.Write, Sectors: 8, Data: segs})
		if err := r.do(&blockdev.Command{Op: blockdev.Flush}); err != linux.EIO {
			t.Errorf("flush: %v", err)
		}
		r.must(&blockdev.Command{Op: blockdev.Write, Sectors: 8, Data: segs})
		r.must(&blockdev.Command{Op: blockdev.Flush})
	})
}

// A reset with commands under way: none of them completes, and the device works.
func TestReset(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		file := image(t)
		// So slow that commands are under way for a second and a half.
		r := w.start(t, file, ",throttling.iops-total=10")
		_, segs := r.memory(256<<10, 4096)
		for i := range 16 {
			c := &blockdev.Command{Op: blockdev.Write, Sector: uint64(i * 8), Sectors: 8, Data: segs[i : i+1]}
			r.submit(i%r.limits.Queues, c)
		}
		start := time.Now()
		if err := r.dev.Reset(); err != nil {
			t.Fatal(err)
		}
		t.Logf("reset took %v", time.Since(start))
		r.mu.Lock()
		left := len(r.waiting)
		clear(r.waiting)
		r.mu.Unlock()
		if left == 0 {
			t.Skip("the machine was so slow that nothing was under way")
		}
		b, into := r.memory(4096, 4096)
		want := fill(b, 5)
		r.must(&blockdev.Command{Op: blockdev.Write, Sector: 800, Sectors: 8, Data: into})
		clear(b[0])
		r.must(&blockdev.Command{Op: blockdev.Read, Sector: 800, Sectors: 8, Data: into})
		if !bytes.Equal(b[0], want) {
			t.Error("read after a reset differs")
		}
		if n := r.strays.Load(); n != 0 {
			t.Errorf("%d completions of commands from before the reset", n)
		}
	})
}

// A device that is pulled out: Reset says so and nothing hangs.
func TestPulledOut(t *testing.T) {
	each(t, func(t *testing.T, w *wiring) {
		r := w.start(t, image(t), "")
		_, segs := r.memory(4096, 4096)
		r.must(&blockdev.Command{Op: blockdev.Write, Sectors: 8, Data: segs})
		r.p.pulled.Store(true)
		r.dev.Submit(0, []*blockdev.Command{{Op: blockdev.Write, Sectors: 8, Data: segs}})
		if err := r.dev.Reset(); err == nil {
			t.Error("a device that is not there was reset")
		}
		if n := r.dev.Submit(0, []*blockdev.Command{{Op: blockdev.Write, Sectors: 8, Data: segs}}); n != 0 {
			t.Error("a device that is not there takes commands")
		}
	})
}
