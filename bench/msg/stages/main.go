// Command stages says where the time of a round trip of 56 bytes goes, from stamps
// that both ends take on the way and the message carries back.
//
//	stages [-n 200000] CPU CPU
//
// It prints a line for each stage, its median in nanoseconds and its name, and at
// last the round trip without stamps. What reading the clock costs is taken off
// each stage. The clock is CLOCK_MONOTONIC, which processors share.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/msg/trip"
	"hardtack/msg"
	_ "hardtack/msg/ump"
)

// full is the number of the message of 56 bytes: its eight-byte fields are when
// the server saw it, had decoded it, had encoded the answer, and others.
const full, size = 2, 56

var names = []string{
	"client encodes",
	"client publishes",
	"to the server, until it notices",
	"server decodes",
	"server encodes",
	"server publishes; to the client, until it notices",
	"client decodes",
}

func main() {
	n := flag.Int("n", 200000, "how many round trips")
	flag.Parse()
	if err := run(*n, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

func run(n int, args []string) error {
	var cpus [2]int
	if len(args) != 2 {
		return fmt.Errorf("usage: stages CPU CPU")
	}
	for i := range cpus {
		var err error
		if cpus[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	if dir := os.Getenv("STAGES_DIR"); dir != "" {
		if err := pinned(cpus[1]); err != nil {
			return err
		}
		return serve(dir)
	}
	if err := pinned(cpus[0]); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kid := exec.Command("/proc/self/exe", os.Args[1:]...)
	kid.Env = append(os.Environ(), "STAGES_DIR="+dir, "STAGES_PINNED=")
	kid.Stderr = os.Stderr
	kid.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := kid.Start(); err != nil {
		return err
	}
	defer func() { kid.Process.Kill(); kid.Wait() }()
	return client(dir, n)
}

// pinned runs this program again with all its threads on one processor.
func pinned(cpu int) error {
	if os.Getenv("STAGES_PINNED") == "1" {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	os.Setenv("STAGES_PINNED", "1")
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

func options(dir string) *msg.Options {
	return &msg.Options{Resolver: msg.Directory(dir), Spin: 100 * time.Millisecond}
}

func serve(dir string) error {
	ctx := context.Background()
	s, err := trip.Export(ctx, "stages", options(dir))
	if err != nil {
		return err
	}
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	var m [size / 8]uint64
	for {
		_, body, err := c.Next(ctx)
		if err != nil {
			return nil // the client has closed
		}
		stamped := body[size-1] != 0
		if stamped {
			m[0] = uint64(nanotime())
		}
		for i := 3; i < len(m); i++ {
			m[i] = binary.LittleEndian.Uint64(body[8*i:])
		}
		if stamped {
			m[1] = uint64(nanotime())
		}
		slot, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		for i := range m {
			binary.LittleEndian.PutUint64(slot[8*i:], m[i])
		}
		if stamped {
			binary.LittleEndian.PutUint64(slot[16:], uint64(nanotime()))
		}
		c.Commit(full, size)
	}
}

func client(dir string, n int) error {
	ctx := context.Background()
	c, err := trip.Connect(ctx, "stages", options(dir))
	if err != nil {
		return err
	}
	defer c.Close()
	stages := make([][]float64, len(names))
	var m [size / 8]uint64
	do := func(n int, stamped bool) error {
		var t [5]int64
		m[6] = 0
		if stamped {
			m[6] = 1 << 56
		}
		for i := range n {
			m[3] = uint64(i)
			if stamped {
				t[0] = nanotime()
			}
			slot, err := c.Begin(ctx)
			if err != nil {
				return err
			}
			for i := range m {
				binary.LittleEndian.PutUint64(slot[8*i:], m[i])
			}
			if stamped {
				t[1] = nanotime()
			}
			c.Commit(full, size)
			if stamped {
				t[2] = nanotime()
			}
			_, body, err := c.Next(ctx)
			if err != nil {
				return err
			}
			if stamped {
				t[3] = nanotime()
			}
			for i := range m {
				m[i] = binary.LittleEndian.Uint64(body[8*i:])
			}
			if m[3] != uint64(i) {
				return fmt.Errorf("answer %d to %d", m[3], i)
			}
			if stamped {
				t[4] = nanotime()
				at := [...]int64{t[0], t[1], t[2], int64(m[0]), int64(m[1]), int64(m[2]), t[3], t[4]}
				for k := range stages {
					stages[k] = append(stages[k], float64(at[k+1]-at[k]))
				}
			}
		}
		return nil
	}
	if err := do(n/10, false); err != nil {
		return err
	}
	start := nanotime()
	if err := do(n, false); err != nil {
		return err
	}
	whole := float64(nanotime()-start) / float64(n)
	for k := range stages {
		stages[k] = make([]float64, 0, n)
	}
	if err := do(n, true); err != nil {
		return err
	}
	clock := clockCost()
	for k, name := range names {
		slices.Sort(stages[k])
		fmt.Printf("%.1f %s\n", stages[k][n/2]-clock, name)
	}
	fmt.Printf("%.1f round trip without stamps\n", whole)
	return nil
}

// clockCost is what reading the clock adds between two readings.
func clockCost() float64 {
	const n = 100000
	start := nanotime()
	for range n {
		nanotime()
	}
	return float64(nanotime()-start) / n
}
