// Command cluster runs on a machine with two kernels and tries what keeps them apart.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	switch os.Args[0] {
	case "/other":
		fmt.Println("cluster 1 runs")
		reach()
		time.Sleep(time.Hour)
	case "/reaches":
		await("monitors", "cpus")
		fmt.Println("cluster 1 reaches cluster 0")
	case "/awaits":
		await("clusters", "1 exited 0")
		fmt.Println("cluster 1 has ended")
	case "/panics":
		fmt.Println("cluster 1 panics")
		write("oops", "lock")
	case "/hangs":
		if strings.Contains(read("protection"), "foreign 0") {
			fmt.Println("cluster 1 is to hang")
		}
		go write("oops", "hang")
		for { // the processor that is left has not much to do, and never waits for the other one
			time.Sleep(time.Second)
		}
	case "/ticks":
		for {
			fmt.Println("tick")
			time.Sleep(500 * time.Millisecond)
		}
	case "/survivor":
		await("clusters", "1 hangs")
		await("clusters", "1 running lives 2")
		await("clusters", "2 running lives 1")
		await("monitors", "2 cpus")
		fmt.Println("cluster 0 goes on")
	case "/many":
		n := 0
		fmt.Sscan(os.Args[1], &n)
		for i := 1; i < n; i++ {
			await("clusters", fmt.Sprintf("\n%d running lives 1 cpus 1 ", i))
			await("monitors", fmt.Sprintf("%d cpus 1 ", i))
		}
		reach()
		fmt.Println(n, "clusters run")
	case "/bystander":
		if len(os.Args) > 1 {
			await("clusters", "lives "+os.Args[1])
		}
		await("clusters", "1 panicked")
		fmt.Println("cluster 0 goes on")
	default:
		first()
	}
}

// write writes to a file of the kernel's.
func write(name, text string) error { return os.WriteFile("/proc/hardtack/"+name, []byte(text), 0) }

func read(name string) string {
	b, err := os.ReadFile("/proc/hardtack/" + name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// reach tries to read the other cluster's memory in the kernel's direct map.
func reach() {
	fmt.Println("reaching out:", write("oops", "foreign"))
	_, foreign, _ := strings.Cut(read("protection"), "foreign ")
	foreign, _, _ = strings.Cut(foreign, "\n")
	fmt.Println("foreign pages:", foreign)
}

// await waits until a file has a text.
func await(name, text string) {
	for range 6000 {
		if strings.Contains(read(name), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("%s lacks %q:\n%s\n", name, text, read(name))
}

// first is process 1 of cluster 0.
func first() {
	reach()
	await("clusters", "1 running lives 1")
	await("monitors", "1 cpus")
	fmt.Println("cluster 0 reaches cluster 1")
	for _, bad := range []string{"", "kill", "kill 2", "kill 0", "kill x", "burn 1"} {
		if err := write("clusters", bad); err == nil {
			fmt.Printf("%q was taken\n", bad)
		}
	}
	for i, how := range []string{"kill", "stop", "restart"} {
		if err := write("clusters", how+" 1"); err != nil {
			fmt.Println(how, err)
		}
		switch how {
		case "kill":
			await("clusters", "1 was killed")
		case "stop":
			await("clusters", "1 exited 0")
		}
		if how != "restart" {
			write("clusters", "restart 1")
		}
		await("clusters", fmt.Sprintf("1 running lives %d", i+2))
		await("monitors", "1 cpus")
		fmt.Println(how, "and again")
	}
	restarts := 10
	if len(os.Args) > 1 {
		fmt.Sscan(os.Args[1], &restarts)
	}
	before := frames()
	for i := range restarts {
		if i == 700 { // caches are full
			before = frames()
		}
		write("clusters", "restart 1")
		await("clusters", fmt.Sprintf("1 running lives %d", i+5))
	}
	if after := frames(); after < before-256 {
		fmt.Printf("%d restarts took %d frames\n", restarts, before-after)
	} else {
		fmt.Printf("%d restarts, frames free before %d and after %d\n", restarts, before, after)
	}
	fmt.Println("the end")
}

// frames is how many frames of memory are free when the kernel's garbage has been collected.
func frames() (n int) {
	for range 2 {
		write("heap", "1")
		time.Sleep(100 * time.Millisecond) // what has ended goes
	}
	b := []byte(read("frames"))
	fmt.Sscanf(string(b[bytes.Index(b, []byte("free")):]), "free %d", &n)
	return n
}
