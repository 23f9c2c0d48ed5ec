package task

import (
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// machine is what the process may use.
type machine struct {
	cpus  []int // online, in the cpuset and in the affinity mask
	quota int   // cores' worth of time, rounded up; 0 for no limit
}

// look asks the kernel. The affinity mask that it reports has neither the cores
// that are offline nor those outside of the cpuset.
func look() machine {
	var m machine
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err == nil {
		for c := 0; c < len(set)*64; c++ {
			if set.IsSet(c) {
				m.cpus = append(m.cpus, c)
			}
		}
	}
	if len(m.cpus) == 0 { // more cores than the mask holds
		for c := range runtime.NumCPU() {
			m.cpus = append(m.cpus, c)
		}
	}
	m.quota = quota.now()
	return m
}

func (m machine) same(o machine) bool { return m.quota == o.quota && slices.Equal(m.cpus, o.cpus) }

func (m machine) cores() int {
	if m.quota > 0 {
		return min(len(m.cpus), m.quota)
	}
	return len(m.cpus)
}

// tellGo lets the Go runtime follow at once what it would find out within a
// second, unless somebody has set another number of processors.
func (m machine) tellGo(before int) {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == before && len(m.cpus) != before {
		runtime.SetDefaultGOMAXPROCS()
	}
}

// cgroupDirs are the process's control group and those around it, in the unified
// hierarchy; empty where there is none.
func cgroupDirs() []string {
	const root = "/sys/fs/cgroup"
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			var dirs []string
			for p = path.Clean("/" + p); ; p = path.Dir(p) {
				dirs = append(dirs, path.Join(root, p))
				if p == "/" {
					return dirs
				}
			}
		}
	}
	return nil
}

// quota keeps what the groups' cpu.max say. The files are watched, and read again
// when somebody has written one; where they cannot be watched, at each look.
var quota quotaWatch

type quotaWatch struct {
	files   []string // immutable after notices.once
	watched bool     // immutable after notices.once
	cores   atomic.Int32
}

func (q *quotaWatch) now() int {
	changes.once.Do(changes.start)
	if !q.watched && len(q.files) > 0 {
		return readQuota(q.files)
	}
	return int(q.cores.Load())
}

func (q *quotaWatch) read() { q.cores.Store(int32(readQuota(q.files))) }

// readQuota is the least limit among the files, in whole cores; 0 for none.
func readQuota(files []string) int {
	least := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // the group has gone
		}
		if n := parseQuota(string(data)); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// parseQuota reads "max 100000" or "150000 100000": 0 for no limit, else the
// number of cores, rounded up.
func parseQuota(s string) int {
	f := strings.Fields(s)
	if len(f) != 2 {
		return 0
	}
	limit, err1 := strconv.Atoi(f[0])
	period, err2 := strconv.Atoi(f[1])
	if err1 != nil || err2 != nil || limit <= 0 || period <= 0 {
		return 0
	}
	return (limit + period - 1) / period
}

// bind binds the calling thread to a core, as far as the kernel lets it.
func bind(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set) == nil
}
