package sysctl

import (
	"math"
	"strconv"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
)

// vector is one number or several.
type vector struct {
	kind   kind
	n      int
	lo, hi int64
	get    func(v []int64)
	set    func(c *caller.Ctx, v []int64) linux.Errno // nil: read only
	whole  bool                                       // a wrong number spoils those before it

	mu sync.Mutex // makes a change one step
}

// Read gives all the text at once: behind the beginning there is nothing.
func (x *vector) Read(_ *caller.Ctx, most int, off int64) ([]byte, linux.Errno) {
	if off != 0 {
		return nil, 0
	}
	v := make([]int64, x.n)
	x.get(v)
	var b []byte
	for i, w := range v {
		if i > 0 {
			b = append(b, '\t')
		}
		if x.kind == kindUlong {
			b = strconv.AppendUint(b, uint64(w), 10)
		} else {
			b = strconv.AppendInt(b, w, 10)
		}
	}
	b = append(b, '\n')
	return b[:min(len(b), most)], 0
}

// Write takes as many numbers as there are and leaves the rest.
func (x *vector) Write(c *caller.Ctx, b []byte, off int64) (int, linux.Errno) {
	if x.set == nil {
		return 0, linux.EPERM
	}
	if len(b) == 0 || off != 0 && Strict.Get() == 1 {
		return len(b), 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	v := make([]int64, x.n)
	x.get(v)
	n, used, e := x.kind.parse(b, v, x.lo, x.hi)
	if x.kind == kindUint && e == 0 {
		used = len(b)
	}
	if n == 0 || e != 0 && x.whole {
		return 0, e
	}
	if err := x.set(c, v); err != 0 {
		return 0, err
	}
	return used, e
}

// one makes a file of a setting.
func one(k kind, name string, s *settings.Setting, lo, hi int64) File {
	return File{Name: name, Mode: 0o644, Value: &vector{kind: k, n: 1, lo: lo, hi: hi, whole: true,
		get: func(v []int64) { v[0] = s.Get() },
		set: func(_ *caller.Ctx, v []int64) linux.Errno { s.Set(v[0]); return 0 }}}
}

// Int is a number of 32 bits with a sign, from lo to hi.
func Int(name string, s *settings.Setting, lo, hi int64) File { return one(kindInt, name, s, lo, hi) }

// Uint is a number of 32 bits without a sign.
func Uint(name string, s *settings.Setting, lo, hi int64) File { return one(kindUint, name, s, lo, hi) }

// Ulong is a number of 64 bits without a sign; hi -1 is 2⁶⁴-1.
func Ulong(name string, s *settings.Setting, lo, hi int64) File {
	return one(kindUlong, name, s, lo, hi)
}

// Hook is a number of 32 bits that functions keep.
func Hook(name string, lo, hi int64, get func() int64, set func(c *caller.Ctx, v int64) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: hook(kindInt, lo, hi, get, set)}
}

// HookUlong is Hook with 64 bits and no sign.
func HookUlong(name string, lo, hi int64, get func() int64, set func(c *caller.Ctx, v int64) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: hook(kindUlong, lo, hi, get, set)}
}

// HookUint is Hook without a sign.
func HookUint(name string, lo, hi int64, get func() int64, set func(c *caller.Ctx, v int64) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: hook(kindUint, lo, hi, get, set)}
}

func hook(k kind, lo, hi int64, get func() int64, set func(c *caller.Ctx, v int64) linux.Errno) *vector {
	return &vector{kind: k, n: 1, lo: lo, hi: hi, whole: true,
		get: func(v []int64) { v[0] = get() },
		set: func(c *caller.Ctx, v []int64) linux.Errno { return set(c, v[0]) }}
}

// Ints is n numbers of 32 bits. Of a write that has a wrong number, those before it
// count.
func Ints(name string, n int, lo, hi int64, get func(v []int64), set func(c *caller.Ctx, v []int64) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: &vector{n: n, lo: lo, hi: hi, get: get, set: set}}
}

// IntsWhole is Ints of which a write with a wrong number changes nothing.
func IntsWhole(name string, n int, lo, hi int64, get func(v []int64), set func(c *caller.Ctx, v []int64) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: &vector{n: n, lo: lo, hi: hi, get: get, set: set, whole: true}}
}

// Numbers shows numbers that cannot be changed.
func Numbers(name string, n int, get func(v []int64)) File {
	return File{Name: name, Mode: 0o444, Value: &vector{kind: kindUlong, n: n, get: get}}
}

// Number shows a number that cannot be changed.
func Number(name string, get func() int64) File {
	return Numbers(name, 1, func(v []int64) { v[0] = get() })
}

// Any is the range of a number that Linux does not check.
const (
	MinInt = math.MinInt32
	MaxInt = math.MaxInt32
)

// Kept is a number that nothing here reads, since what it would tune is not here or
// works without; note says why keeping it is no lie.
func Kept(name string, value, lo, hi int64, note string) File {
	s := new(settings.Setting)
	s.Set(value)
	f := Int(name, s, lo, hi)
	f.Note = note
	return f
}

// KeptInts is Kept with several numbers.
func KeptInts(name string, lo, hi int64, note string, values ...int64) File {
	var mu sync.Mutex
	f := Ints(name, len(values), lo, hi, func(v []int64) {
		mu.Lock()
		copy(v, values)
		mu.Unlock()
	}, func(_ *caller.Ctx, v []int64) linux.Errno {
		mu.Lock()
		copy(values, v)
		mu.Unlock()
		return 0
	})
	f.Note = note
	return f
}

// Fixed is a number that Linux can change and that has one value here: another is
// refused (EINVAL).
func Fixed(name string, value int64, note string) File {
	f := Hook(name, value, value, func() int64 { return value }, func(*caller.Ctx, int64) linux.Errno { return 0 })
	f.Note = note
	return f
}
