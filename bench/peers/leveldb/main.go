// Command leveldb runs the six suites of figure 4.1 of the thesis "Porting Go to the Barrelfish OS" with goleveldb: the
// same binary on Linux and on Hardtack.
//
//	leveldb [-n 1000000] [-compress=false] [-gc=false] DIRECTORY|memory
//
// Keys are 16 bytes, values 100 that compress to half, requests come from one
// goroutine, GOMAXPROCS is one; batches are of one pair, in batchwrite of 1,000. With
// the collector off it runs once between the suites. A suite prints `NAME n mean
// p99`, in microseconds.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
)

const valueSize = 100

type bench struct {
	n      int
	where  string
	opts   *opt.Options
	db     *leveldb.DB
	rng    *rand.Rand
	values []byte // values are in it at any offset
	took   []float64
	suites int
}

func main() {
	n := flag.Int("n", 1000000, "pairs of a suite")
	compress := flag.Bool("compress", true, "compress with Snappy")
	gc := flag.Bool("gc", true, "leave the collector on")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	if !*gc {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(math.MaxInt64)
	}
	b := &bench{n: *n, where: flag.Arg(0), opts: &opt.Options{Compression: opt.NoCompression}, rng: rand.New(rand.NewPCG(301, 1))}
	if *compress {
		b.opts.Compression = opt.SnappyCompression
	}
	// Pieces of 100 bytes, the second half of each the same as the first.
	for range 1 << 12 {
		half := make([]byte, valueSize/2)
		for i := range half {
			half[i] = ' ' + byte(b.rng.Uint32N(95))
		}
		b.values = append(append(b.values, half...), half...)
	}
	b.took = make([]float64, 0, *n)
	if err := b.run(); err != nil {
		fmt.Println("leveldb:", err)
		os.Exit(1)
	}
}

func (b *bench) run() error {
	order := b.rng.Perm(b.n)
	for _, s := range []struct {
		name  string
		fresh bool // begins with an empty database
		batch int  // 0: reads
		key   func(i int) int
	}{
		{"fillseq", true, 1, func(i int) int { return i }},
		{"fillrandom", true, 1, func(i int) int { return order[i] }},
		{"overwrite", false, 1, func(i int) int { return order[len(order)-1-i] }},
		{"batchwrite", true, 1000, func(i int) int { return i }},
		{"readseq", false, 0, nil},
		{"readrandom", false, 0, func(i int) int { return order[i] }},
	} {
		if s.fresh {
			if err := b.open(); err != nil {
				return err
			}
		}
		runtime.GC()
		b.took = b.took[:0]
		var err error
		switch {
		case s.batch > 0:
			err = b.write(s.batch, s.key)
		case s.key == nil:
			err = b.readAll()
		default:
			err = b.read(s.key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		sum := 0.0
		for _, t := range b.took {
			sum += t
		}
		slices.Sort(b.took)
		fmt.Printf("%s %d %.3f %.3f\n", s.name, b.n, sum/float64(b.n), b.took[len(b.took)*99/100])
	}
	return b.db.Close()
}

// open begins with an empty database.
func (b *bench) open() (err error) {
	if b.db != nil {
		if err := b.db.Close(); err != nil {
			return err
		}
	}
	if b.where == "memory" {
		b.db, err = leveldb.Open(storage.NewMemStorage(), b.opts)
		return err
	}
	b.suites++
	if b.suites > 1 {
		if err := os.RemoveAll(b.dir(b.suites - 1)); err != nil {
			return err
		}
	}
	b.db, err = leveldb.OpenFile(b.dir(b.suites), b.opts)
	return err
}

func (b *bench) dir(i int) string { return filepath.Join(b.where, fmt.Sprint("db", i)) }

func key(i int) []byte {
	k := make([]byte, 16)
	copy(k, "key-----")
	binary.BigEndian.PutUint64(k[8:], uint64(i))
	return k
}

func (b *bench) value() []byte {
	return b.values[int(b.rng.Uint32N(1<<12-1))*valueSize:][:valueSize]
}

func (b *bench) timed(f func() error) error {
	start := time.Now()
	err := f()
	b.took = append(b.took, float64(time.Since(start))/1e3)
	return err
}

func (b *bench) write(batch int, of func(int) int) error {
	var w leveldb.Batch
	for i := 0; i < b.n; i += batch {
		w.Reset()
		for j := i; j < min(i+batch, b.n); j++ {
			w.Put(key(of(j)), b.value())
		}
		if err := b.timed(func() error { return b.db.Write(&w, nil) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) readAll() error {
	it := b.db.NewIterator(nil, nil)
	defer it.Release()
	found := 0
	for more := true; more; {
		if err := b.timed(func() error {
			if more = it.Next(); more {
				found++
				_, _ = it.Key(), it.Value()
			}
			return it.Error()
		}); err != nil {
			return err
		}
	}
	if found != b.n {
		return fmt.Errorf("%d pairs, not %d", found, b.n)
	}
	return nil
}

func (b *bench) read(of func(int) int) error {
	for i := range b.n {
		k := key(of(i))
		if err := b.timed(func() error {
			v, err := b.db.Get(k, nil)
			if err == nil && len(v) != valueSize {
				err = fmt.Errorf("a value of %d bytes", len(v))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
