package wait

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGroups pushes and pops threads with masks at random: a processor always gets the first
// of those that may run on it, and wanted says for which processors some wait.
func TestGroups(t *testing.T) {
	defer SetProcessors(1)
	for _, n := range []int{2, 5, 64} {
		SetProcessors(n)
		rng := rand.New(rand.NewPCG(uint64(n), 2))
		masks := []uint64{0}
		for range 12 { // with one for each set, and so no set without a group
			masks = append(masks, rng.Uint64()&everyCPU(), 1<<rng.IntN(n))
		}
		var model []*Turn
		drop := func(x *Turn) { model = slices.DeleteFunc(model, func(o *Turn) bool { return o == x }) }
		first := func(cpu int) (first *Turn) {
			for _, x := range model {
				if x.mayRun(cpu) && (first == nil || x.realTime > 0 && first.realTime == 0 ||
					(x.realTime > 0) == (first.realTime > 0) && x.before(first)) {
					first = x
				}
			}
			return first
		}
		for range 20000 {
			cpu := rng.IntN(n)
			switch k := rng.IntN(100); {
			case k < 45:
				want := first(cpu)
				if got := popTurn(cpu, false); got != want {
					t.Fatalf("%d CPUs: CPU %d got %+v, want %+v", n, cpu, got, want)
				}
				drop(want)
			case k < 60 && len(model) > 0:
				allow(model[rng.IntN(len(model))], masks[rng.IntN(len(masks))])
			default:
				x := &Turn{Key: 1 + rng.Int64N(50), Weight: 1, Place: Arrive()}
				allow(x, masks[rng.IntN(len(masks))])
				if rng.IntN(4) == 0 {
					x.realTime = 1 + rng.Int32N(3)
				}
				pushTurn(x)
				model = append(model, x)
			}
			want, fair := uint64(0), int64(0)
			for _, x := range model {
				want |= x.allowed
				if x.realTime == 0 && x.mayRun(cpu) {
					fair = lesser(fair, x.key)
				}
			}
			if w := wanted.Load(); w != want {
				t.Fatalf("%d CPUs: wanted are %#x, want %#x", n, w, want)
			}
			if least := turnQueue.leastFairOn(cpu); least != fair {
				t.Fatalf("%d CPUs: CPU %d has least key %d, want %d", n, cpu, least, fair)
			}
		}
		for cpu := 0; len(model) > 0; cpu = (cpu + 1) % n {
			drop(popTurn(cpu, false))
		}
		if wanted.Load() != 0 || turnQueue.weight.Load() != 0 {
			t.Fatalf("%#x are wanted, and a weight of %d is left", wanted.Load(), turnQueue.weight.Load())
		}
	}
}

// TestManySets has threads of more sets wait than there are groups: each still gets only its
// own processors, and all get their turn.
func TestManySets(t *testing.T) {
	defer SetProcessors(1)
	SetProcessors(64)
	var all []*Turn
	for i := range 10 * maxSets {
		x := &Turn{Key: 1, Weight: 1}
		allow(x, 3<<(i%63)|1<<(i*7%64))
		pushTurn(x)
		all = append(all, x)
	}
	alone := 0
	for _, x := range all {
		if bits.OnesCount64(x.group.cpus.Load()) == 1 {
			alone++
		}
	}
	if alone == 0 {
		t.Error("there was a group for each set")
	}
	left := len(all)
	for cpu := range 64 {
		for x := popTurn(cpu, false); x != nil; x = popTurn(cpu, false) {
			if left--; !x.mayRun(cpu) {
				t.Errorf("CPU %d got a thread of %#x", cpu, x.allowed)
			}
		}
	}
	if left != 0 {
		t.Errorf("%d never had their turn", left)
	}
}

// mayRun reports whether the thread may run on a processor.
func (t *Turn) mayRun(cpu int) bool { return t.allowed == 0 || t.allowed>>cpu&1 != 0 }
