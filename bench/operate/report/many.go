package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// manyCopies is how many copies of a machine with Redis run at a time.
const manyCopies = 50

// many starts copies of a snapshot and has each answer while all run. It measures how long
// that takes, the host's memory of all, with what they share, and what they compute when
// nobody asks for anything.
func (b *bench) many(snap string) error {
	b.Log("copies, %d at a time", manyCopies)
	var ports []int
	begun := time.Now()
	for i := range manyCopies {
		port, err := freePort()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("copy%d", i)
		defer b.hardtack("rm", "-f", name)
		if _, err := b.hardtack("fork", snap, "--name", name, "-p", fmt.Sprintf("%d:6379", port)); err != nil {
			return err
		}
		ports = append(ports, port)
	}
	for i, port := range ports {
		if err := answer(port); err != nil {
			return err
		}
		if err := setAndGet(port, fmt.Sprint("copy ", i)); err != nil {
			return err
		}
	}
	b.add("many start", ms(time.Since(begun)))
	memory, before, err := b.ofAll()
	if err != nil {
		return err
	}
	idle := 10 * time.Second
	time.Sleep(idle)
	_, after, err := b.ofAll()
	b.add("many memory", memory)
	b.add("many idle", (after-before).Seconds()/idle.Seconds()*100)
	return err
}

// setAndGet asks a Redis whether it keeps what it is told, and nothing of another one.
func setAndGet(port int, text string) error {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET k\r\nSET k \"%s\"\r\nGET k\r\n", text); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for _, want := range []string{"$-1", "+OK", fmt.Sprintf("$%d", len(text)), text} {
		line, err := in.ReadString('\n')
		if got := strings.TrimRight(line, "\r\n"); err != nil || got != want {
			return fmt.Errorf("%s answers %q, want %q: %v", text, got, want, err)
		}
	}
	return nil
}

// ofAll is the memory in MiB and the processor time of all copies: of their QEMUs and of
// the commands that attend to them. What several share is counted once.
func (b *bench) ofAll() (memory float64, processor time.Duration, err error) {
	for i := range manyCopies {
		out, err := b.hardtack("inspect", "--format", "{{.PID}} {{.QEMU}}", fmt.Sprint("copy", i))
		if err != nil {
			return 0, 0, err
		}
		for pid := range strings.FieldsSeq(string(out)) {
			text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
			if err != nil {
				return 0, 0, err
			}
			for line := range strings.Lines(string(text)) {
				if w := strings.Fields(line); w[0] == "Pss:" {
					kib, err := strconv.ParseFloat(w[1], 64)
					if err != nil {
						return 0, 0, err
					}
					memory += kib / 1024
				}
			}
			stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
			if err != nil {
				return 0, 0, err
			}
			f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			for _, at := range []int{11, 12} { // utime and stime, in hundredths of a second
				ticks, err := strconv.ParseInt(f[at], 10, 64)
				if err != nil {
					return 0, 0, err
				}
				processor += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return memory, processor, nil
}
