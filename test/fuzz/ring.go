// Package fuzz runs the fuzzer of system calls. Its program is in guest/; calls.def
// there says what each call's arguments look like.
package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

const (
	pageSize  = 4096
	ringCalls = 63
	notYet    = -1000000
)

// ring is what a worker keeps of its last calls, a page (guest/fuzz.h).
type ring struct {
	Magic                      [8]byte
	Seed, Child, Worker, Count uint64
	PID, UID                   int32
	_                          [2]uint64
	Call                       [ringCalls]struct {
		Number uint64
		Args   [6]uint64
		Result int64
	}
}

var magic = []byte("HTFUZZ01")

// rings finds the rings in a machine's memory.
func rings(memory io.Reader) ([]ring, error) {
	var found []ring
	page := make([]byte, pageSize)
	for {
		if _, err := io.ReadFull(memory, page); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return found, err
		}
		if !bytes.HasPrefix(page, magic) {
			continue
		}
		var r ring
		if _, err := binary.Decode(page, binary.LittleEndian, &r); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
}

// lastCalls tells, from a file with a machine's memory, what the workers did last.
func lastCalls(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	all, err := rings(f)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", errors.New("the memory has no ring")
	}
	names, err := callNames()
	if err != nil {
		return "", err
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Child < all[j].Child || all[i].Child == all[j].Child && all[i].Worker < all[j].Worker
	})
	b := new(strings.Builder)
	for _, r := range all {
		fmt.Fprintf(b, "seed %d, child %d, worker %d, pid %d, uid %d, %d calls\n", r.Seed, r.Child, r.Worker, r.PID, r.UID, r.Count)
		for n := r.Count - min(r.Count, 12); n < r.Count; n++ {
			c := r.Call[n%ringCalls]
			name := names[c.Number]
			if name == "" {
				name = fmt.Sprint(c.Number)
			}
			fmt.Fprintf(b, "\t%s(%#x, %#x, %#x, %#x, %#x, %#x) = ", name, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
			if c.Result == notYet {
				fmt.Fprintln(b, "…")
			} else {
				fmt.Fprintln(b, c.Result)
			}
		}
	}
	return b.String(), nil
}
