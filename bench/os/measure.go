package osbench

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"
)

// A Bench runs everything for one or both systems.
type Bench struct {
	Dirs    Dirs
	Linux   LinuxKernel
	Machine string // microvm or q35
	Systems []OS
	Reps    int           // repetitions of what takes time on the wall
	Load    time.Duration // length of one load from the host
	Log     func(format string, args ...any)
	Kernel  string // of Hardtack; empty for bin/kernel.elf
}

// Instructions are guest instructions per operation: row → system → figure.
type Instructions map[string]map[OS]Result

// Times are repeated figures of one row: system → one figure a repetition.
type Times map[string]map[OS][]float64

func (t Times) add(name string, system OS, figure float64) {
	if t[name] == nil {
		t[name] = map[OS][]float64{}
	}
	t[name][system] = append(t[name][system], figure)
}

// Median of some figures; zero of none.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return s[len(s)/2]
}

// CountInstructions measures the rows of the table on one CPU that counts
// instructions. The figures repeat to some tenths of a percent, so one boot a
// system and group is enough.
func (b *Bench) CountInstructions() (Instructions, error) {
	servers, err := Servers(b.Dirs)
	if err != nil {
		return nil, err
	}
	all := Instructions{}
	for _, group := range []struct {
		commands string
		servers  bool
	}{{MicroCommands, false}, {ServerCommands, true}} {
		root, err := Programs(b.Dirs, group.commands)
		if err != nil {
			return nil, err
		}
		if group.servers {
			root.Merge(servers)
		}
		for _, system := range b.Systems {
			b.Log("%v: counting instructions, servers %v", system, group.servers)
			m, err := Boot{OS: system, Root: root, CPUs: 1, Memory: "512M", ICount: true, Kernel: b.Kernel,
				Machine: b.Machine, Timeout: 10 * time.Minute}.Start(b.Dirs, b.Linux)
			if err != nil {
				return nil, err
			}
			results, err := m.Wait()
			if err != nil {
				b.Log("%v: %v", system, err)
			}
			for _, r := range results {
				// The boot of the machine without the servers counts: the
				// other unpacks them.
				if r.Name == "boot" && group.servers {
					continue
				}
				if all[r.Name] == nil {
					all[r.Name] = map[OS]Result{}
				}
				all[r.Name][system] = r
			}
		}
	}
	return all, nil
}

// freePort asks the host for one.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// forwards picks ports of the host that lead to the servers, one for each
// client (see Load.Run): host → guest, and the other way.
func forwards() (ports map[int]int, host map[int][]int, err error) {
	ports, host = map[int]int{}, map[int][]int{}
	for _, guest := range []int{6379, 80} {
		for range Clients(guest) {
			p, err := freePort()
			if err != nil {
				return nil, nil, err
			}
			ports[p], host[guest] = guest, append(host[guest], p)
		}
	}
	return ports, host, nil
}

// waitServers waits until both servers answer.
func waitServers(m *Machine, host map[int][]int) error {
	if err := m.WaitPort(host[6379][0], "PING\r\n", time.Minute); err != nil {
		return err
	}
	return m.WaitPort(host[80][0], "GET / HTTP/1.0\r\n\r\n", time.Minute)
}

// A served machine has answering servers.
type served struct {
	system OS
	*Machine
	host map[int][]int
}

// serve boots a machine with the servers.
func (b *Bench) serve(system OS, root Tree) (s served, err error) {
	ports, host, err := forwards()
	if err != nil {
		return s, err
	}
	m, err := Boot{OS: system, Root: root, CPUs: 1, Memory: "512M", Machine: b.Machine,
		Ports: ports, Timeout: 15 * time.Minute}.Start(b.Dirs, b.Linux)
	if err != nil {
		return s, err
	}
	if err := waitServers(m, host); err != nil {
		m.Stop()
		return s, err
	}
	return served{system, m, host}, nil
}

// loadServers has clients of the host load all systems' servers, the systems in
// turn and all booted: what the host does meanwhile hits them alike.
func (b *Bench) loadServers(root Tree, times Times) error {
	var machines []served
	defer func() {
		for _, m := range machines {
			m.Stop()
		}
	}()
	for _, system := range b.Systems {
		m, err := b.serve(system, root)
		if err != nil {
			return fmt.Errorf("%v: %w", system, err)
		}
		machines = append(machines, m)
	}
	for _, load := range Loads {
		for round := range loadRounds + 1 {
			for _, m := range machines {
				if err := b.loadOnce(m, load, round == 0, times); err != nil {
					return fmt.Errorf("%v: %w", m.system, err)
				}
			}
		}
	}
	return nil
}

// loadRounds is how many turns the systems take at each load in a repetition.
const loadRounds = 4

// loadOnce is one system's turn; the first is for warming up.
func (b *Bench) loadOnce(m served, load Load, warm bool, times Times) error {
	before, err := m.Cost()
	if err != nil {
		return err
	}
	n, took, err := load.Run(m.host[load.Port], b.Load/loadRounds)
	if err != nil || warm {
		return err
	}
	after, err := m.Cost()
	if err != nil {
		return err
	}
	rate, cost := float64(n)/took.Seconds(), after.Sub(before)
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	b.Log("%v: %s %.0f/s, µs a request: guest %.1f, devices %.1f, client %.1f",
		m.system, load.Name, rate, each(cost.VCPU), each(cost.Main), each(cost.Client))
	times.add(load.Name, m.system, rate)
	times.add(load.Name+" guest", m.system, each(cost.VCPU))
	times.add(load.Name+" devices", m.system, each(cost.Main))
	return nil
}

// Count runs commands on CPUs that count instructions, on each system.
func (b *Bench) Count(cpus int, commands string, more ...Tree) (Instructions, error) {
	root, err := Programs(b.Dirs, commands)
	if err != nil {
		return nil, err
	}
	for _, t := range more {
		root.Merge(t)
	}
	all := Instructions{}
	for _, system := range b.Systems {
		m, err := Boot{OS: system, Root: root, CPUs: cpus, Memory: "512M", ICount: true, Kernel: b.Kernel,
			Machine: b.Machine, Timeout: 10 * time.Minute}.Start(b.Dirs, b.Linux)
		if err != nil {
			return nil, err
		}
		results, err := m.Wait()
		if err != nil {
			return nil, fmt.Errorf("%v: %w", system, err)
		}
		for _, r := range results {
			if all[r.Name] == nil {
				all[r.Name] = map[OS]Result{}
			}
			all[r.Name][system] = r
		}
	}
	return all, nil
}

// TakeServed has clients on the host load servers beside what the commands start.
func (b *Bench) TakeServed(commands string) (Times, error) {
	times := Times{}
	servers, err := Servers(b.Dirs)
	if err != nil {
		return nil, err
	}
	root, err := Programs(b.Dirs, commands+HostCommands)
	if err != nil {
		return nil, err
	}
	root.Merge(servers)
	for range b.Reps {
		if err := b.loadServers(root, times); err != nil {
			return times, err
		}
	}
	return times, nil
}

// TakeTimes measures what the clock on the wall shows, the two systems in turn.
func (b *Bench) TakeTimes() (Times, error) {
	times := Times{}
	servers, err := Servers(b.Dirs)
	if err != nil {
		return nil, err
	}
	serving, err := Programs(b.Dirs, HostCommands)
	if err != nil {
		return nil, err
	}
	serving.Merge(servers)
	spinning, err := Programs(b.Dirs, SpinCommands)
	if err != nil {
		return nil, err
	}
	for rep := range b.Reps {
		b.Log("requests from the host, repetition %d", rep+1)
		if err := b.loadServers(serving, times); err != nil {
			b.Log("%v", err)
		}
		for _, system := range b.Systems {
			m, err := Boot{OS: system, Root: spinning, CPUs: 2, Memory: "512M", Machine: b.Machine,
				Timeout: 3 * time.Minute}.Start(b.Dirs, b.Linux)
			if err != nil {
				return nil, err
			}
			results, err := m.Wait()
			if err != nil {
				b.Log("%v: %v", system, err)
			}
			for _, r := range results {
				switch r.Name {
				case "spin1", "spin2":
					times.add(r.Name, system, r.Median)
				case "delay":
					times.add("delay", system, r.Minimum) // the worst
				case "boot":
					times.add("boottime", system, float64(m.Booted().Milliseconds()))
				}
			}
		}
	}
	return times, nil
}

// HostCores says how much two spinning threads do against one on this machine:
// near 2 means that both cores are really there.
func HostCores() float64 {
	spin := func(n int) float64 {
		stop := time.Now().Add(200 * time.Millisecond)
		done := make(chan int, n)
		for range n {
			go func() {
				count, x := 0, uint64(1)
				for time.Now().Before(stop) {
					for range 20000 {
						x = x*6364136223846793005 + 1
					}
					count++
				}
				if x == 0 {
					count++
				}
				done <- count
			}()
		}
		total := 0
		for range n {
			total += <-done
		}
		return float64(total)
	}
	one := spin(1)
	if one == 0 {
		return 0
	}
	return spin(2) / one
}

// format writes a figure with digits that mean something.
func format(f float64) string {
	switch {
	case f == 0:
		return "—"
	case f >= 1e8:
		return strconv.FormatFloat(f/1e9, 'f', 2, 64) + " G"
	case f >= 1e3:
		s := strconv.FormatFloat(f, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
