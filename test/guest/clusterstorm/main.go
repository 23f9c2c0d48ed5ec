// Command clusterstorm runs on a machine with several kernels: for so many seconds it starts
// and kills programs in other clusters, moves processors and memory to and fro, and ends
// clusters at random, all at once. Then everything must be back where it was. By its name it is
//
//	storm   process 1 of cluster 0; its argument is how many seconds
//	work    a program that keeps a kernel busy for a moment
//	greedy  a program that takes all memory that it gets
package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const control = "/proc/hardtack/clusters"

func main() {
	switch filepath.Base(os.Args[0]) {
	case "work":
		work()
	case "greedy":
		greedy()
	default:
		storm()
	}
}

// work maps and touches memory, makes pipes and a child.
func work() {
	if len(os.Args) > 1 {
		return
	}
	for range 20 {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			os.Exit(3)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		unix.Munmap(b)
		if r, w, err := os.Pipe(); err == nil {
			w.Write(make([]byte, 4096))
			r.Close()
			w.Close()
		}
	}
	exec.Command("/work", "child").Run()
	os.Exit(7)
}

// greedy has children that all take memory until they are killed.
func greedy() {
	if len(os.Args) == 1 {
		for range 4 {
			exec.Command("/greedy", "child").Start()
		}
	}
	for {
		b, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			continue
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
}

func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// A state is one line of the kernel's book.
type state struct {
	how          string
	lives        int
	cpus, memory int
}

func states() (all []state) {
	for line := range strings.Lines(read(control)) {
		before, after, ok := strings.Cut(line, " lives ")
		_, how, _ := strings.Cut(before, " ")
		s := state{how: how}
		if n, err := fmt.Sscanf(after, "%d cpus %d memory %d MiB", &s.lives, &s.cpus, &s.memory); !ok || n != 3 {
			wrong("a line of the book: %q, %v", line, err)
		}
		all = append(all, s)
	}
	return all
}

func wrong(format string, args ...any) { fmt.Printf("WRONG: "+format+"\n", args...) }

func ask(format string, args ...any) error {
	return os.WriteFile(control, fmt.Appendf(nil, format, args...), 0)
}

// running waits until all clusters do.
func running() []state {
	for range 12000 {
		all, up := states(), true
		for i, s := range all {
			if s.how != "running" {
				up = false
				if s.how != "starting" && s.how != "restarts" {
					ask("restart %d", i)
				}
			}
		}
		if monitors := read("/proc/hardtack/monitors"); up && strings.Count(monitors, " cpus ") == len(all)-1 {
			return all
		}
		time.Sleep(20 * time.Millisecond)
	}
	wrong("the clusters do not run:\n%s\n%s", read(control), read("/proc/hardtack/monitors"))
	return states()
}

// counts are what the storm did.
var counts struct{ programs, killed, lost, refused, cores, coresRefused, memory, memoryRefused, ends atomic.Int64 }

func storm() {
	seconds := 5
	if len(os.Args) > 1 {
		fmt.Sscan(os.Args[1], &seconds)
	}
	before := running()
	var frames [4]int
	for i := range frames {
		if i > 0 {
			rage(before, time.Duration(seconds)*time.Second/time.Duration(len(frames)-1))
		}
		frames[i] = free()
	}
	c := &counts
	fmt.Printf("programs %d killed %d lost %d not started %d; cores moved %d refused %d; memory moved %d refused %d; ends %d\n", c.programs.Load(), c.killed.Load(),
		c.lost.Load(), c.refused.Load(), c.cores.Load(), c.coresRefused.Load(), c.memory.Load(), c.memoryRefused.Load(), c.ends.Load())
	// Each part fills caches, the first ones most.
	fmt.Printf("frames free before, and after each part: %v\n", frames)
	if got := frames[len(frames)-1]; got < frames[2]-512 {
		wrong("%d frames are lost\n%s\n%s", frames[2]-got, read("/proc/hardtack/frames"), read("/proc/hardtack/heap"))
	}
	if len(os.Args) > 2 {
		exhaust()
	}
	fmt.Println("the end")
}

// rage is a part of the storm; afterwards everything is where it was.
func rage(before []state, length time.Duration) {
	n := len(before)
	stop := make(chan struct{})
	over := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	var all sync.WaitGroup
	each := func(do func(r *rand.Rand)) {
		seed := rand.Uint64()
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for !over() {
				do(r)
			}
		})
	}
	for range 2 {
		each(func(r *rand.Rand) { program(r, 1+r.IntN(n-1)) })
	}
	each(func(r *rand.Rand) {
		count(ask("cores %d %d %d", 1+r.IntN(2), r.IntN(n), r.IntN(n)), &counts.cores, &counts.coresRefused)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	})
	each(func(r *rand.Rand) {
		count(ask("memory %dM %d %d", 2+2*r.IntN(12), r.IntN(n), r.IntN(n)), &counts.memory, &counts.memoryRefused)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	})
	each(func(r *rand.Rand) {
		time.Sleep(time.Duration(200+r.IntN(800)) * time.Millisecond)
		if ask("%s %d", []string{"kill", "restart", "stop"}[r.IntN(3)], 1+r.IntN(n-1)) == nil {
			counts.ends.Add(1)
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		for i, s := range states() {
			if strings.HasPrefix(s.how, "exited") || s.how == "was killed" {
				ask("restart %d", i)
			}
		}
	})
	time.Sleep(length)
	close(stop)
	all.Wait()
	compare(before)
}

// compare has all clusters end, start, and get back what they had, and looks whether they have it.
func compare(before []state) {
	n := len(before)
	for i := 1; i < n; i++ {
		ask("kill %d", i)
	}
	after := running()
	home(before, after)
	after = states()
	for i := range before {
		if after[i].cpus != before[i].cpus || after[i].memory != before[i].memory {
			wrong("cluster %d had %d processors and %d MiB, and has %d and %d", i, before[i].cpus, before[i].memory, after[i].cpus, after[i].memory)
		}
	}
	for line := range strings.Lines(read("/proc/hardtack/monitors")) {
		var index, cpus int
		if fmt.Sscanf(line, "%d cpus %d", &index, &cpus); index < n && cpus != before[index].cpus {
			wrong("by the book cluster %d has %d processors, by its monitor %d", index, before[index].cpus, cpus)
		}
	}
	if p := read("/proc/hardtack/protection"); !strings.Contains(p, "foreign 0") || !strings.Contains(p, "wrong 0") {
		wrong("%s", p)
	}
	for i := 1; i < n; i++ {
		program(rand.New(rand.NewPCG(1, 1)), i)
	}
}

func count(err error, done, refused *atomic.Int64) {
	if err == nil {
		done.Add(1)
	} else {
		refused.Add(1)
	}
}

// program runs one in a cluster, and kills it at times.
func program(r *rand.Rand, cluster int) {
	c := exec.Command("/sbin/cluster", "run", fmt.Sprint(cluster), "--", "/work")
	var out bytes.Buffer
	c.Stderr = &out
	counts.programs.Add(1)
	if err := c.Start(); err != nil {
		wrong("%v", err)
		return
	}
	if r.IntN(4) == 0 {
		time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		c.Process.Signal([]os.Signal{unix.SIGTERM, unix.SIGKILL}[r.IntN(2)])
		counts.killed.Add(1)
		c.Wait()
		return
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			wrong("a program in cluster %d does not end", cluster)
		}
	}()
	c.Wait()
	close(done)
	switch code := c.ProcessState.ExitCode(); code {
	case 7:
	case 255:
		counts.lost.Add(1)
	case 127, 3:
		counts.refused.Add(1)
	default:
		counts.refused.Add(1)
		fmt.Printf("a program in cluster %d ended with %d: %s\n", cluster, code, out.String())
	}
}

// home has everything go back where it was. What had been lent by a cluster that has ended
// stays with a running borrower. While clusters that have just started get what is theirs,
// which takes long on a busy machine, all other moves are refused.
func home(want, have []state) {
	for i := range want {
		for tries := 0; have[i].cpus < want[i].cpus || have[i].memory < want[i].memory; tries++ {
			if tries == 6000 {
				wrong("not all goes home:\n%s", read("/proc/hardtack/moves"))
				return
			}
			if tries > 20 {
				time.Sleep(20 * time.Millisecond)
			}
			for j := range want {
				if k := min(want[i].cpus-have[i].cpus, have[j].cpus-want[j].cpus); k > 0 {
					ask("cores %d %d %d", k, j, i)
				}
				if k := min(want[i].memory-have[i].memory, have[j].memory-want[j].memory); k > 0 {
					ask("memory %dM %d %d", k, j, i)
				}
			}
			have = states()
		}
	}
}

// free is how many frames are free when garbage has been collected, with those of this process, whose
// heap grows by some in each part.
func free() (n int) {
	for range 2 {
		os.WriteFile("/proc/hardtack/heap", []byte("1"), 0)
		time.Sleep(50 * time.Millisecond)
	}
	_, rest, _ := strings.Cut(read("/proc/hardtack/frames"), "free ")
	fmt.Sscan(rest, &n)
	_, rest, _ = strings.Cut(read("/proc/self/statm"), " ")
	var own int
	fmt.Sscan(rest, &own)
	return n + own
}

// exhaust has a cluster run out of memory while programs go on in the others.
func exhaust() {
	c := exec.Command("/sbin/cluster", "run", "1", "--", "/greedy")
	if err := c.Start(); err != nil {
		wrong("%v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	n := 0
	for began := time.Now(); ; n++ {
		program(rand.New(rand.NewPCG(1, 1)), 2)
		select {
		case err := <-ended:
			fmt.Printf("the greedy program ended: %v\n", err)
			ended <- err
		default:
			if time.Since(began) < 10*time.Second || n < 20 {
				continue
			}
		}
		break
	}
	if s := states()[2]; s.how != "running" || counts.refused.Load() < 0 {
		wrong("cluster 2 %s", s.how)
	}
	fmt.Printf("%d programs ran in cluster 2 while cluster 1 was out of memory; cluster 1 %s\n", n, states()[1].how)
	ask("kill 1")
	<-ended
	running()
	program(rand.New(rand.NewPCG(1, 1)), 1)
}
