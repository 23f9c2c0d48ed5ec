// Command figures is what a measured machine runs: it prints its figures and marks, for
// the plugin that counts instructions, where they begin and end.
//
//	figures speed CONTENDER PROGRAM N REPS   a program of bench/task, on all processors
//	figures parts CONTENDER PROGRAM N        the same on one worker, counted by address
//	figures messages ROUNDS TRIPS            a message's way, by the kind of receiver
//	figures stages TRIPS                     round trips between two run-times, by address
//	figures removal REPS TRIPS               the second processor goes meanwhile
//	figures run POLICY COMMAND…              a program with a policy of package affinity
//	figures log POLICY COMMAND…              the same; its log is printed
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	taskbench "hardtack/bench/task"
	"hardtack/task"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("figures: failed:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want a command; see the source")
	}
	switch numbers := integers(args); args[0] {
	case "speed":
		return taskbench.Each(args[1], args[2], numbers[3], 0, numbers[4], within(begin, end))
	case "parts":
		return taskbench.Each(args[1], args[2], numbers[3], 1, 1, within(countOn, countOff))
	case "messages":
		all, err := taskbench.Messages(numbers[1], numbers[2])
		for i, l := range all {
			fmt.Printf("message%d %d %.1f %.1f\n", i, numbers[2], l.Median, l.Min)
		}
		return err
	case "stages":
		const otherRunTime = 2
		trips := taskbench.Kinds[otherRunTime].Trips
		if _, err := trips(100); err != nil {
			return err
		}
		var err error
		within(countOn, countOff)(func() { _, err = trips(numbers[1]) })
		return err
	case "removal":
		return removal(numbers[1], numbers[2])
	case "run":
		return program(args[1], args[2:], "")
	case "log":
		return program(args[1], args[2:], "/tmp/log")
	}
	return fmt.Errorf("no command %q", args[0])
}

// integers are the arguments that are numbers, and 0 for the others.
func integers(args []string) []int {
	all := make([]int, max(len(args), 5))
	for i, s := range args {
		all[i], _ = strconv.Atoi(s)
	}
	return all
}

// removal prints each message's time around the removal, in microseconds.
func removal(reps, trips int) error {
	plug := func(to string) error { return os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte(to), 0) }
	failed := make(chan error, reps)
	r, err := taskbench.Remove(trips, reps, func(*task.Runtime) { failed <- plug("0") }, func(rt *task.Runtime) error {
		if err := <-failed; err != nil {
			return err
		}
		return plug("1")
	})
	if err != nil {
		return err
	}
	fmt.Printf("removal %d %.2f %.2f\n", r.At, r.During, r.Before)
	for i, us := range r.Trips {
		if i >= r.At-100 && i < r.At+100 {
			fmt.Printf("trip %d %.2f %.2f\n", i, us, us)
		}
	}
	return nil
}

// program runs a program with a policy; "go" is for one that unmodified Go built.
func program(policy string, command []string, log string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+policy)
	if log != "" {
		os.Remove(log)
		cmd.Env = append(cmd.Env, "HARDTACK_AFFINITY_LOG="+log)
	}
	if policy == "go" {
		cmd.Env = os.Environ()
	}
	var out []byte
	var err error
	start := time.Now()
	within(begin, end)(func() { out, err = cmd.CombinedOutput() })
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", command, err, out)
	}
	fmt.Printf("took 1 %.3f %.3f\n", time.Since(start).Seconds(), 0.0)
	if log == "" {
		return nil
	}
	text, err := os.ReadFile(log)
	for line := range strings.Lines(string(text)) {
		fmt.Print("log ", line)
	}
	return err
}
