package osbench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Cost is the processor time that a machine and its client took. Unlike a
// rate it hardly depends on what else the host does, and it distinguishes where
// the time goes: VCPU is the guest's code as TCG runs it, with the devices'
// registers; Main is QEMU's main thread, which is the network card, the user
// network and its sockets; Client is the program that drives the load.
type Cost struct {
	VCPU, Main, Client time.Duration
}

// Sub is what came between two readings.
func (c Cost) Sub(d Cost) Cost {
	return Cost{c.VCPU - d.VCPU, c.Main - d.Main, c.Client - d.Client}
}

// emulator returns the process id of the QEMU at or below a process.
func emulator(pid int) (int, error) {
	if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil {
		return 0, err
	} else if strings.HasPrefix(string(comm), "qemu-system") {
		return pid, nil
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				if found, err := emulator(child); err == nil {
					return found, nil
				}
			}
		}
	}
	return 0, fmt.Errorf("no QEMU below process %d", pid)
}

// cost returns the processor time taken since the machine and this program
// started. QEMU's threads must have names (debug-threads=on).
func cost(qemu int) (c Cost, err error) {
	dir := fmt.Sprintf("/proc/%d/task", qemu)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return c, err
	}
	for _, t := range tasks {
		comm, err := os.ReadFile(filepath.Join(dir, t.Name(), "comm"))
		if err != nil {
			continue // it ended
		}
		took, err := threadTime(filepath.Join(dir, t.Name()))
		if err != nil {
			continue
		}
		switch {
		case t.Name() == strconv.Itoa(qemu):
			c.Main += took
		case strings.HasPrefix(string(comm), "CPU ") || strings.Contains(string(comm), "/TCG"):
			c.VCPU += took
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return c, err
	}
	c.Client = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return c, nil
}

// threadTime is the processor time of one thread: nanoseconds where the host's
// kernel counts them, else ticks of 10 ms.
func threadTime(dir string) (time.Duration, error) {
	if data, err := os.ReadFile(filepath.Join(dir, "schedstat")); err == nil {
		if f := strings.Fields(string(data)); len(f) > 0 {
			if ns, err := strconv.ParseInt(f[0], 10, 64); err == nil && ns > 0 {
				return time.Duration(ns), nil
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold anything; utime and stime are the 12th
	// and 13th fields behind it.
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("%s/stat is too short", dir)
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%s/stat cannot be read", dir)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
