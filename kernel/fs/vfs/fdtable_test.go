package vfs_test

import (
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

// counted is a file that tells when it ends.
type counted struct {
	vfs.BaseOps
	ended *int
}

func (c counted) Release(*vfs.File) { *c.ended++ }

// Random use of two tables, one a fork of the other, against maps.
func TestFDTable(t *testing.T) {
	c := caller.NewKernelCtx()
	type fd struct {
		f  *vfs.File
		ce bool
	}
	rapid.Check(t, func(t *rapid.T) {
		ended, made := 0, 0
		tables := []*vfs.FDTable{vfs.NewFDTable(&creds.RootCred)}
		models := []map[int32]fd{{}}
		const limit = 300
		file := func() *vfs.File {
			made++
			return vfs.NewFile(counted{ended: &ended}, 0)
		}
		pick := func(t *rapid.T) int { return rapid.IntRange(0, len(tables)-1).Draw(t, "table") }
		number := rapid.Custom(func(t *rapid.T) int32 {
			return rapid.SampledFrom([]int32{0, 1, 2, 63, 64, 130, 299, 300, -1, 1 << 20}).Draw(t, "fd")
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k, ce := pick(t), rapid.Bool().Draw(t, "cloexec")
				low := rapid.SampledFrom([]int{0, 0, 5, 64, 290, 400}).Draw(t, "min")
				f := file()
				got, e := tables[k].Add(f, low, limit, ce)
				want := int32(low)
				for models[k][want].f != nil {
					want++
				}
				if want >= limit {
					if e != linux.EMFILE {
						t.Fatal(got, e)
					}
					f.Put()
					return
				}
				if e != 0 || got != want {
					t.Fatalf("%d %v, want %d", got, e, want)
				}
				models[k][got] = fd{f, ce}
			},
			"replace": func(t *rapid.T) {
				k, at := pick(t), number.Draw(t, "at")
				f := file()
				e := tables[k].Replace(c, at, f, limit, false)
				if at < 0 || at >= limit {
					if e != linux.EBADF {
						t.Fatal(e)
					}
					f.Put()
					return
				}
				if e != 0 {
					t.Fatal(e)
				}
				models[k][at] = fd{f, false}
			},
			"close": func(t *rapid.T) {
				k, at := pick(t), number.Draw(t, "at")
				e := tables[k].Close(c, at)
				if (e == 0) != (models[k][at].f != nil) {
					t.Fatal(at, e)
				}
				delete(models[k], at)
			},
			"close range": func(t *rapid.T) {
				k, lo, n := pick(t), rapid.IntRange(0, 310).Draw(t, "lo"), rapid.IntRange(0, 100).Draw(t, "n")
				tables[k].CloseRange(c, lo, lo+n, false)
				for at := range models[k] {
					if int(at) >= lo && int(at) <= lo+n {
						delete(models[k], at)
					}
				}
			},
			"exec": func(t *rapid.T) {
				k := pick(t)
				tables[k].CloseExec(c)
				for at, x := range models[k] {
					if x.ce {
						delete(models[k], at)
					}
				}
			},
			"fork": func(t *rapid.T) {
				if len(tables) == 3 {
					return
				}
				k := pick(t)
				n, e := tables[k].Fork()
				if e != 0 {
					t.Fatal(e)
				}
				tables = append(tables, n)
				m := map[int32]fd{}
				for at, x := range models[k] {
					m[at] = x
				}
				models = append(models, m)
			},
			"": func(t *rapid.T) {
				alive := map[*vfs.File]bool{}
				for k, m := range models {
					n, last := 0, int32(-1)
					tables[k].Each(func(at int32, f *vfs.File) bool {
						if m[at].f != f || at <= last {
							t.Fatalf("descriptor %d", at)
						}
						last = at
						n++
						alive[f] = true
						return true
					})
					if n != len(m) {
						t.Fatalf("%d descriptors, want %d", n, len(m))
					}
					for at, x := range m {
						if ce, e := tables[k].CloseOnExec(at); e != 0 || ce != x.ce {
							t.Fatal(at, ce, e)
						}
					}
				}
				if made-ended < len(alive) {
					t.Fatal("a file ended too early")
				}
			},
		})
		for _, x := range tables {
			x.Release(c)
		}
		if ended > made {
			t.Fatalf("%d made, %d ended", made, ended)
		}
	})
}

// A high descriptor must not cost a table up to it.
func TestHighDescriptorIsCheap(t *testing.T) {
	c := caller.NewKernelCtx()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var tables [16]*vfs.FDTable
	for i := range tables {
		tables[i] = vfs.NewFDTable(&creds.RootCred)
		tables[i].Replace(c, vfs.MaxFDs-1, vfs.NewFile(vfs.BaseOps{}, 0), vfs.MaxFDs, false)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 16; n > 200<<10 {
		t.Fatal(n, "bytes a table")
	}
	for _, x := range tables {
		x.Release(c)
	}
}

// Look-ups run beside opens, closes and growth; nothing is used after its end.
func TestFDTableRace(t *testing.T) {
	table := vfs.NewFDTable(&creds.RootCred)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			c := caller.NewKernelCtx()
			for i := range 2000 {
				fd, e := table.Add(vfs.NewFile(vfs.BaseOps{}, 0), (i*37+w)%500, 1000, false)
				if e != 0 {
					t.Error(e)
					return
				}
				table.Close(c, fd)
			}
		})
		wg.Go(func() {
			for i := range 20000 {
				get := table.Get
				if i&1 != 0 {
					get = func(fd int32) *vfs.File { f, _ := table.Hold(fd); return f }
				}
				if f := get(int32(i % 512)); f != nil {
					if f.Refs() < 1 {
						t.Error("a file without references")
					}
					f.Put()
				}
			}
		})
	}
	wg.Wait()
}

// A user cannot multiply a large table through forks, and pays for what it has; who
// has little still gets more.
func TestTablesAreCharged(t *testing.T) {
	const user = 4711
	c := caller.NewKernelCtx()
	f := vfs.NewFile(vfs.BaseOps{}, 0)
	big := vfs.NewFDTable(&creds.Cred{UID: user})
	for i := range int32(1 << 18) {
		f.Get()
		if e := big.Replace(c, i, f, vfs.MaxFDs, i%3 == 0); e != 0 {
			t.Fatal(i, e)
		}
	}
	all := []*vfs.FDTable{big}
	e := linux.Errno(0)
	for len(all) < 100 && e == 0 {
		var n *vfs.FDTable
		if n, e = big.Fork(); e == 0 {
			all = append(all, n)
		}
	}
	if e != linux.ENOMEM || len(all) < 3 {
		t.Fatal(len(all), "tables, then", e)
	}
	other := vfs.NewFDTable(&creds.Cred{UID: user + 1})
	f.Get()
	if e := other.Replace(c, 1000, f, vfs.MaxFDs, false); e != 0 {
		t.Fatal("another user:", e)
	}
	all[1].SetOwner(&creds.Cred{UID: user + 1})
	for _, x := range append(all, other) {
		x.Release(c)
	}
	f.Put()
	again := vfs.NewFDTable(&creds.Cred{UID: user})
	var list []*vfs.FDTable
	for range 200 {
		g := vfs.NewFile(vfs.BaseOps{}, 0)
		if e := again.Replace(c, 5000, g, vfs.MaxFDs, false); e != 0 {
			t.Fatal(e)
		}
		x, e := again.Fork()
		if e != 0 {
			t.Fatal("charges were left:", e)
		}
		list = append(list, x)
	}
	for _, x := range append(list, again) {
		x.Release(c)
	}
}

// A fork costs what is open now, not what once was.
func TestForkAfterClosing(t *testing.T) {
	c := caller.NewKernelCtx()
	tab := vfs.NewFDTable(&creds.RootCred)
	ended := 0
	f := vfs.NewFile(counted{ended: &ended}, 0)
	if _, e := tab.Add(f, 0, 1<<20, false); e != 0 {
		t.Fatal(e)
	}
	for range 5000 {
		f.Get()
		if _, e := tab.Add(f, 0, 1<<20, false); e != 0 {
			t.Fatal(e)
		}
	}
	tab.CloseRange(c, 1, vfs.MaxFDs-1, false)
	n, e := tab.Fork()
	if e != 0 || n.Size() > 64 {
		t.Errorf("%v, a table of %d", e, n.Size())
	}
	n.Release(c)
	tab.Release(c)
	if ended != 1 {
		t.Errorf("the file ended %d times", ended)
	}
}
