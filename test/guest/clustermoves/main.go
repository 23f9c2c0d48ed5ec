// Command clustermoves runs on a machine with several kernels, between which processors and
// memory move while programs run. By its name it is
//
//	first     process 1 of cluster 0: it asks for moves, and says what it sees
//	follows   process 1 of another one: tasks on all processors; it says how many there are
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/task"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "follows":
		follow()
	default:
		first()
	}
	fmt.Println("the end")
}

func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

const control = "/proc/hardtack/clusters"

// ask asks for something and says how that went.
func ask(what string) error {
	err := os.WriteFile(control, []byte(what), 0)
	fmt.Printf("%s: %v\n", what, err)
	return err
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

// here is what this kernel has.
func here() string {
	const cpu = "/sys/devices/system/cpu/"
	var set unix.CPUSet
	unix.SchedGetaffinity(0, &set)
	dirs, _ := filepath.Glob(cpu + "cpu[0-9]*")
	return fmt.Sprintf("online %s present %s possible %s, %d directories, nproc %d, cpuinfo %d", read(cpu+"online"), read(cpu+"present"),
		read(cpu+"possible"), len(dirs), set.Count(), strings.Count("\n"+read("/proc/cpuinfo"), "\nprocessor"))
}

// tasks sums on all processors until it is told to stop.
type tasks struct {
	rt   *task.Runtime
	rest atomic.Bool
	runs atomic.Int64
	bad  atomic.Int64
}

func start() *tasks {
	rt, err := task.New()
	if err != nil {
		fmt.Println("WRONG", err)
		os.Exit(1)
	}
	t := &tasks{rt: rt}
	go func() {
		for {
			if t.rest.Load() {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			got, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int { return fib(c, 20) })
			if err != nil || got != 6765 {
				t.bad.Add(1)
			}
			t.runs.Add(1)
		}
	}()
	return t
}

func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x, y := task.Join(c, fib, n-1, fib, n-2)
	return x + y
}

// workers waits until there are as many as processors, and says so.
func (t *tasks) workers(want int) {
	for range 6000 {
		if t.rt.Workers() == want && runtime.GOMAXPROCS(0) == want {
			runs := t.runs.Load()
			for range 6000 {
				if t.runs.Load() > runs+2 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			fmt.Printf("%d workers, %d Ps, wrong sums: %d, goes on: %v\n", want, want, t.bad.Load(), t.runs.Load() > runs+2)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("WRONG: %d workers and %d Ps, want %d\n", t.rt.Workers(), runtime.GOMAXPROCS(0), want)
}

// follow says whenever the number of processors has changed, and the tasks have followed.
func follow() {
	t := start()
	var last atomic.Int32
	l, err := net.Listen("tcp", "0.0.0.0:7000")
	if err != nil {
		fmt.Println("WRONG", err)
		return
	}
	go func() {
		for {
			if c, err := l.Accept(); err == nil {
				fmt.Fprintln(c, last.Load(), apart())
				c.Close()
			}
		}
	}()
	for {
		n := count()
		if int32(n) != last.Load() && t.rt.Workers() == n && runtime.GOMAXPROCS(0) == n {
			t.workers(n)
			fmt.Printf("now %s\n", here())
			last.Store(int32(n))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// apart says whether the kernel maps its own memory only.
func apart() bool {
	p := read("/proc/hardtack/protection")
	return strings.Contains(p, "foreign 0") && strings.Contains(p, "wrong 0")
}

// far waits until the tasks in cluster 1 have so many workers.
func far(want int) {
	n := -1
	for range 6000 {
		if c, err := net.DialTimeout("tcp", "10.0.3.2:7000", time.Second); err == nil {
			c.SetDeadline(time.Now().Add(10 * time.Second))
			fine := true
			fmt.Fscan(c, &n, &fine)
			c.Close()
			if !fine {
				fmt.Println("WRONG: cluster 1 maps memory that is not its own")
			}
		}
		if n == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("WRONG: cluster 1 has %d workers, want %d\n", n, want)
}

func count() int {
	var set unix.CPUSet
	unix.SchedGetaffinity(0, &set)
	return set.Count()
}

// events notes what the kernel tells of processors.
func events() func() string {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1})
	}
	if err != nil {
		fmt.Println("WRONG", err)
	}
	return func() string {
		var all []string
		b := make([]byte, 4096)
		for {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				return strings.Join(all, " ")
			}
			what, _, _ := strings.Cut(string(b[:n]), "\x00")
			all = append(all, strings.Replace(what, "/devices/system/cpu/", "", 1))
		}
	}
}

func first() {
	await(control, "1 running lives 1")
	await("/proc/hardtack/monitors", "1 cpus")
	t, uevents := start(), events()
	fmt.Println("at first", here())
	n := count()
	t.workers(n)
	for _, bad := range []string{"cores 1 0 0", "cores 0 0 1", "cores -1 0 1", "cores x 0 1", "cores 1 0 9", "cores 1 0 -1", "burn 1 0 1",
		"memory 3M 0 1", "memory 0 0 1", "memory 99999999999T 0 1"} {
		if err := os.WriteFile(control, []byte(bad), 0); err != syscall.EINVAL && !strings.Contains(fmt.Sprint(err), "invalid argument") {
			fmt.Printf("WRONG: %q: %v\n", bad, err)
		}
	}
	far(2)
	ask("cores 2 0 1")
	t.workers(n - 2)
	far(4)
	fmt.Println("events:", uevents())
	fmt.Println("then", here())
	if _, err := os.Stat(fmt.Sprintf("/sys/devices/system/cpu/cpu%d", n-1)); !os.IsNotExist(err) {
		fmt.Println("WRONG: a processor that has gone has a directory:", err)
	}
	ask(fmt.Sprintf("cores %d 0 1", n)) // more than there are
	t.workers(1)
	far(n + 1)
	await(control, "0 running lives 1 cpus 1 ")
	ask("cores 1 0 1") // the last
	fmt.Println(strings.TrimSpace(read("/proc/hardtack/moves")))
	ask("cores 2 1 0")
	t.workers(3)
	far(3)
	fmt.Println("later", here())
	// A cluster that ends gives back what it has borrowed.
	ask("kill 1")
	await(control, "1 was killed")
	await(control, fmt.Sprintf("0 running lives 1 cpus %d ", n))
	t.workers(n)
	ask("cores 1 0 1") // to none
	fmt.Println("back", here())
	// And one that has lent some starts without them.
	ask("restart 1")
	await(control, "1 running lives 2")
	await("/proc/hardtack/monitors", "1 cpus")
	ask("cores 1 1 0")
	t.workers(n + 1)
	ask("restart 1")
	await(control, "1 running lives 3")
	await("/proc/hardtack/monitors", "1 cpus")
	far(1)
	t.workers(n + 1)
	ask("cores 1 0 1")
	t.workers(n)
	far(2)
	memory()
	fmt.Println(read(control))
	fmt.Println("apart:", apart())
}

// total is MemTotal in MiB.
func total() int {
	var kb int
	_, rest, _ := strings.Cut(read("/proc/meminfo"), "MemTotal:")
	fmt.Sscan(rest, &kb)
	return kb >> 10
}

// memory moves memory to cluster 1 and back, and restarts that while it is away.
func memory() {
	before := total()
	gone := func(want int) {
		if got := before - total(); got != want {
			fmt.Printf("WRONG: %d MiB are gone, want %d\n", got, want)
		}
	}
	protected := func() {
		far(2)
		if !apart() {
			fmt.Println("WRONG", read("/proc/hardtack/protection"))
		}
	}
	for range 3 {
		ask("memory 32M 0 1")
		gone(32)
		fill()
		protected()
		ask("memory 32M 1 0")
		gone(0)
		fill()
		protected()
	}
	ask("memory 16M 0 1")
	ask("kill 1")
	await(control, "1 was killed")
	await(control, "1 was killed lives 3 cpus 0 memory 192 MiB")
	gone(0)
	ask("restart 1")
	await(control, "1 running lives 4")
	await("/proc/hardtack/monitors", "1 cpus")
	far(2)
	ask("memory 32M 1 0")
	gone(-32)
	ask("restart 1")
	await(control, "1 running lives 5")
	await("/proc/hardtack/monitors", "1 cpus")
	far(2)
	protected()
	fmt.Println(strings.Split(read(control), "\n")[1])
	ask("memory 32M 0 1")
	gone(0)
	ask("memory 1G 0 1") // all that can be spared
	fmt.Println(strings.TrimSpace(read("/proc/hardtack/moves")))
	fill()
	protected()
}

// fill writes to most of the memory that is free, and looks whether it stays.
func fill() {
	var kb int
	_, rest, _ := strings.Cut(read("/proc/meminfo"), "MemAvailable:")
	fmt.Sscan(rest, &kb)
	b, err := unix.Mmap(-1, 0, kb/4*3<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fmt.Println("WRONG", err)
		return
	}
	for i := 0; i < len(b); i += 4096 {
		b[i], b[i+1], b[i+2] = byte(i>>12), byte(i>>20), byte(i>>28)
	}
	for i := 0; i < len(b); i += 4096 {
		if b[i] != byte(i>>12) || b[i+1] != byte(i>>20) || b[i+2] != byte(i>>28) {
			fmt.Println("WRONG: memory has changed at", i)
			break
		}
	}
	unix.Munmap(b)
}
