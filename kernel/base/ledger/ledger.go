// Package ledger says what kernel memory lives because of whom.
//
// Nothing is counted while programs run. What a process reaches (its descriptors, its
// mappings, its threads) is added up when somebody asks, and each object says then what
// it takes, in bytes of its size class. What no process reaches (files in memory, System
// V objects, files under way in messages) is added up by the package that keeps it, for
// the user that it lives for. So a sum cannot drift from what is there, and system calls
// pay nothing for it.
//
// An object that several refer to is shared evenly: each is charged for its references'
// part.
package ledger

import "strconv"

// Kind is a kind of what takes memory.
type Kind uint8

// Kinds. Those from Tables on are page frames, Stacks is the stacks of goroutines, and all
// others are in the kernel's heap.
const (
	Processes   Kind = iota // processes and threads, with names and limits
	Signals                 // pending signals and what handles them
	Timers                  // timers of processes and timerfds
	Descriptors             // descriptor tables
	Files                   // open files
	Names                   // names and inodes
	Mappings                // mappings of address spaces
	Pipes                   // pipes, but not their pages
	Sockets                 // sockets, but not what waits in them
	Messages                // what waits in sockets
	Flight                  // files under way in messages
	Epoll                   // epoll instances and their entries
	Inotify                 // inotify instances, watches and queues
	Locks                   // file locks
	SysV                    // System V objects, but not their pages
	Endpoints               // message endpoints, partners and buffers
	Texts                   // texts of /proc kept by open files
	Stacks                  // stacks of goroutines
	Tables                  // page tables
	Pages                   // pages of address spaces
	PipePages               // pages of pipes
	FilePages               // pages of files in memory and of shared memory
	Kinds                   // how many there are
)

var names = [Kinds]string{"processes", "signals", "timers", "descriptors", "files", "names", "mappings", "pipes", "sockets",
	"messages", "flight", "epoll", "inotify", "locks", "sysv", "endpoints", "texts", "stacks", "tables", "pages", "pipepages", "filepages"}

// String is the kind's name in /proc/hardtack/ledger.
func (k Kind) String() string { return names[k] }

// Sum is bytes of each kind.
type Sum [Kinds]int64

// Add adds bytes of a kind.
func (s *Sum) Add(k Kind, bytes int64) { s[k] += bytes }

// AddPart adds a share of another sum: part of whole.
func (s *Sum) AddPart(o *Sum, part, whole int64) {
	whole = max(whole, part, 1)
	for k, n := range o {
		if n != 0 {
			s[k] += n * part / whole
		}
	}
}

// AddScaled adds another sum, of a sample: of part things of whole.
func (s *Sum) AddScaled(o *Sum, whole, part int64) {
	for k, n := range o {
		if n != 0 {
			s[k] += n * whole / max(part, 1)
		}
	}
}

// AddSum adds another sum.
func (s *Sum) AddSum(o *Sum) {
	for k, n := range o {
		s[k] += n
	}
}

// Heap returns the bytes that are in the kernel's heap.
func (s *Sum) Heap() int64 { return s.between(0, Stacks) }

// Frames returns the bytes of page frames.
func (s *Sum) Frames() int64 { return s.between(Tables, Kinds) }

// Kernel returns everything but the pages of address spaces.
func (s *Sum) Kernel() int64 { return s.All() - s[Pages] }

// All returns all bytes.
func (s *Sum) All() int64 { return s.between(0, Kinds) }

func (s *Sum) between(first, end Kind) (n int64) {
	for _, v := range s[first:end] {
		n += v
	}
	return n
}

// Append writes the total and the kinds that are not zero.
func (s *Sum) Append(b []byte) []byte {
	b = strconv.AppendInt(append(b, "total "...), s.All(), 10)
	for k, n := range s {
		if n != 0 {
			b = append(append(append(b, ' '), names[k]...), ' ')
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return b
}

// Charge adds to what a user has, and a process of that user if pid names one.
type Charge func(pid int32, uid uint32, k Kind, bytes int64)

// All charges all kinds of a sum.
func (c Charge) All(pid int32, uid uint32, s *Sum) {
	for k, n := range s {
		if n != 0 {
			c(pid, uid, Kind(k), n)
		}
	}
}

// Keeper is a package that keeps what no process reaches: it charges all of that.
type Keeper func(charge Charge)

// keepers are set once, before programs run.
var keepers []Keeper

// SetKeepers says who keeps what no process reaches.
func SetKeepers(k ...Keeper) { keepers = k }

// Account is whose a sum of what is kept is: a user's, or a process's of a user.
type Account struct {
	PID int32 // 0 for a user
	UID uint32
}

// Kept adds up what the keepers have. A charge to a process that does not exist, or is
// another user's by now, is for the user.
func Kept(exists func(Account) bool) map[Account]*Sum {
	sums := map[Account]*Sum{}
	charge := func(pid int32, uid uint32, k Kind, bytes int64) {
		a := Account{pid, uid}
		s := sums[a]
		if s == nil {
			if pid != 0 && !exists(a) {
				a.PID = 0
				s = sums[a]
			}
			if s == nil {
				s = new(Sum)
				sums[a] = s
			}
		}
		s.Add(k, bytes)
	}
	for _, k := range keepers {
		k(charge)
	}
	return sums
}
