package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// fromOutside has another process bind this one's threads to processors.
func fromOutside(set []int) error {
	args := []string{"mask", strconv.Itoa(os.Getpid())}
	for _, cpu := range set {
		args = append(args, strconv.Itoa(cpu))
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stderr = os.Stdout
	return cmd.Run()
}

// maskAll binds every thread of a process, until there is none that has another mask:
// a thread that is started meanwhile has its creator's.
func maskAll(pid string, cpus []string) error {
	var set unix.CPUSet
	for _, s := range cpus {
		cpu, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		set.Set(cpu)
	}
	for changed := true; changed; {
		changed = false
		tasks, err := os.ReadDir(filepath.Join("/proc", pid, "task"))
		if err != nil {
			return err
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			var now unix.CPUSet
			if unix.SchedGetaffinity(tid, &now) != nil || now == set {
				continue // it has ended, or is bound
			}
			if err := unix.SchedSetaffinity(tid, &set); err == nil {
				changed = true
			} else if err != unix.ESRCH {
				return fmt.Errorf("thread %d: %w", tid, err)
			}
		}
	}
	return nil
}
