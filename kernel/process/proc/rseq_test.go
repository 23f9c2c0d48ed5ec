package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// TestRestartSequence looks at critical sections of all kinds: where the thread goes on, whether the
// section is forgotten, and what is not allowed.
func TestRestartSequence(t *testing.T) {
	const start, size, signature = 0x400000, 0x10, 0x53053053
	type section struct {
		version, flags    uint32
		start, size, stop uint64
	}
	good := section{0, 0, start, size, 0}
	handlerThread(t, func(c *Thread, stack uint64) {
		area, at := stack-65536, stack-65536+64
		code := stack - 65536 + 4096
		good.stop = code + 4
		put := func(addr uint64, words ...uint64) {
			for i, w := range words {
				c.Space.StoreU64(uio.Addr(addr+8*uint64(i)), w)
			}
		}
		if e := c.Rseq(uio.Addr(area), sizeofRseq, 0, signature); e != 0 {
			t.Fatalf("rseq: %v", e)
		}
		for _, x := range []struct {
			name   string
			rip    uint64
			at     uint64
			s      section
			flags  uint64
			sig    uint32
			ok     bool
			aborts bool
			left   bool // rseq_cs stays
		}{
			{"no section", start, 0, good, 0, signature, true, false, true},
			{"at its start", start, at, good, 0, signature, true, true, false},
			{"at its last instruction", start + size - 1, at, good, 0, signature, true, true, false},
			{"behind it", start + size, at, good, 0, signature, true, false, false},
			{"before it", start - 1, at, good, 0, signature, true, false, false},
			{"another signature", start, at, good, 0, 1, false, false, true},
			{"a version", start, at, section{1, 0, start, size, good.stop}, 0, signature, false, false, true},
			{"a flag", start, at, section{0, 1, start, size, good.stop}, 0, signature, false, false, true},
			{"a flag, outside", start - 1, at, section{0, 1, start, size, good.stop}, 0, signature, true, false, false},
			{"the area's flag", start, at, good, 1, signature, false, false, true},
			{"handler inside", start, at, section{0, 0, code, size, good.stop}, 0, signature, false, false, true},
			{"the kernel's", start, at, section{0, 0, linux.TaskSize, size, good.stop}, 0, signature, false, false, true},
			{"too long", start, at, section{0, 0, start, linux.TaskSize, good.stop}, 0, signature, false, false, true},
			{"around the end", start, at, section{0, 0, start, ^uint64(0) - start + 1, good.stop}, 0, signature, false, false, true},
			{"handler in the kernel", start, at, section{0, 0, start, size, linux.TaskSize}, 0, signature, false, false, true},
			{"nothing mapped", start, 8, good, 0, signature, false, false, true},
			{"a section of the kernel", start, 1 << 63, good, 0, signature, false, false, true},
		} {
			put(area+rseqSection, x.at, x.flags)
			put(at, uint64(x.s.flags)<<32|uint64(x.s.version), x.s.start, x.s.size, x.s.stop)
			put(code, uint64(x.sig))
			c.User.RIP = x.rip
			ok := c.restart()
			want := x.rip
			if x.aborts {
				want = good.stop
			}
			left, _ := c.Space.LoadU64(uio.Addr(area + rseqSection))
			if ok != x.ok || c.User.RIP != want || (left == x.at) != x.left {
				t.Errorf("%s: %v, goes on at %#x, section %#x", x.name, ok, c.User.RIP, left)
			}
		}
		put(area+rseqSection, 0)
		if e := c.Rseq(uio.Addr(area), sizeofRseq, rseqUnregister, signature); e != 0 || c.User.Sequences.Load() != 0 {
			t.Errorf("unregister: %v", e)
		}
	})
}
