// Command follow checks that package task follows processors that go and come, and masks
// that others set, in guests only. It prints what the frame of test/guest/c prints of a test.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "mask" {
		if err := maskAll(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if _, err := os.Stat("/guesttest"); err != nil {
		fmt.Println("--- FAIL: not in a guest:", err)
		os.Exit(1)
	}
	status := 0
	for _, test := range []struct {
		name string
		run  func(*crew) error
	}{
		{"a run of tasks follows the processors", processors},
		{"several runs follow the masks that others set", masks},
		{"nothing is lost while processors go and come", storm},
	} {
		fmt.Println("=== RUN  ", test.name)
		if err := with(test.run); err != nil {
			fmt.Printf("--- FAIL: %s: %v\n", test.name, err)
			status = 1
			continue
		}
		fmt.Println("--- PASS:", test.name)
	}
	os.Exit(status)
}

// with runs a test beside a crew at work.
func with(test func(*crew) error) error {
	c, err := newCrew()
	if err != nil {
		return err
	}
	err = test(c)
	if e := c.end(); err == nil {
		err = e
	}
	return err
}

// processors turns each processor but the first off, from the last on, and on again.
func processors(c *crew) error {
	n := runtime.NumCPU()
	fmt.Println("    all:", c.follows(n))
	for cpu := n - 1; cpu > 0; cpu-- {
		fmt.Printf("    %d off: %v, %s\n", cpu, turn(cpu, "0"), c.follows(cpu))
	}
	for cpu := 1; cpu < n; cpu++ {
		fmt.Printf("    %d on: %v, %s\n", cpu, turn(cpu, "1"), c.follows(cpu+1))
	}
	return nil
}

// masks has another process bind all threads of this one, as taskset -ap does.
func masks(c *crew) error {
	n := runtime.NumCPU()
	last := n - 1
	for _, set := range [][]int{{0}, {0, last}, {last}, all(n)} {
		if err := fromOutside(set); err != nil {
			return err
		}
		fmt.Printf("    on %v: %s\n", set, c.follows(len(set)))
	}
	// The processors of a mask go and come, too.
	if err := fromOutside([]int{0, last}); err != nil {
		return err
	}
	fmt.Printf("    on %v, %d off: %v, %s\n", []int{0, last}, last, turn(last, "0"), c.follows(1))
	fmt.Printf("    on: %v, %s\n", turn(last, "1"), c.follows(2))
	if err := fromOutside(all(n)); err != nil {
		return err
	}
	fmt.Println("    all:", c.follows(n))
	return nil
}

// storm turns processors off and on, and changes the mask, without waiting for anybody.
func storm(c *crew) error {
	n := runtime.NumCPU()
	for round := range 20 {
		cpu := 1 + round%(n-1)
		if err := turn(cpu, "0"); err != nil {
			return err
		}
		if round%5 == 4 {
			if err := fromOutside([]int{0}); err != nil {
				return err
			}
		}
		c.some()
		if err := turn(cpu, "1"); err != nil {
			return err
		}
		if round%5 == 4 {
			if err := fromOutside(all(n)); err != nil {
				return err
			}
		}
	}
	fmt.Println("    afterwards:", c.follows(n))
	c.stolen()
	fmt.Println("    tasks are stolen")
	return nil
}

func turn(cpu int, to string) error {
	return os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(to), 0)
}

func all(n int) (set []int) {
	for cpu := range n {
		set = append(set, cpu)
	}
	return set
}

// follows waits until all runtimes, and Go's, have so many workers.
func (c *crew) follows(want int) string {
	for range 1000 {
		if c.have(want) && runtime.GOMAXPROCS(0) == want {
			return "follows"
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Sprintf("has %d and %d workers and %d Ps", c.runtimes[0].Workers(), c.runtimes[1].Workers(), runtime.GOMAXPROCS(0))
}

func (c *crew) have(want int) bool {
	for _, rt := range c.runtimes {
		if rt.Workers() != want {
			return false
		}
	}
	return true
}

// stolen waits until a task has been stolen in each runtime since.
func (c *crew) stolen() {
	for _, rt := range c.runtimes {
		for before := rt.Stats().Steals; rt.Stats().Steals == before; {
			time.Sleep(time.Millisecond)
		}
	}
}

// some waits until each of the crew has ended a run since.
func (c *crew) some() {
	for i := range c.done {
		for before := c.done[i].Load(); c.done[i].Load() == before && !c.failed.Load(); {
			time.Sleep(time.Millisecond)
		}
	}
}
