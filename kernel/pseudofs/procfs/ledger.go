package procfs

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// ledgerEntry is /proc/hardtack/ledger: a row for each process, then one for each user
// with what lives because of no process. A user sees its own rows, and
// CAP_SYS_ADMIN all.
var ledgerEntry = &entry{mode: 0o444, read: func(*about) ([]byte, linux.Errno) { return nil, 0 },
	open: func(n *node) vfs.Ops { return &ledgerText{n: n} }}

// ledgerText is an open ledger. A read adds up a few processes, and the next goes on
// behind them. What is kept by others is added up at the beginning.
type ledgerText struct {
	vfs.BaseOps
	n *node

	holds atomic.Int64 // bytes of what it keeps

	mu    sync.Mutex
	pos   int64                          // offset of what comes next; guarded by mu
	rest  []byte                         // made and not read yet; guarded by mu
	pid   int32                          // the next process; guarded by mu
	kept  map[ledger.Account]*ledger.Sum // no row shows it yet; guarded by mu
	asker asker                          // whose rows they are; guarded by mu
	all   bool                           // all processes are done; guarded by mu
}

// ledgerPiece is how much goes into one read.
const ledgerPiece = 4096

// Read gives what the last read left, or a piece.
func (t *ledgerText) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := asker{c.PID, c.Cred()}
	if off == 0 || off != t.pos || who != t.asker {
		t.asker = who
		t.seek(off)
	}
	if len(t.rest) == 0 {
		t.rest = t.piece()
	}
	n, e := v.CopyOut(t.rest)
	t.pos += int64(n)
	if t.rest = bytes.Clone(t.rest[n:]); n > 0 {
		e = 0
	}
	t.holds.Store(ledger.Size(int64(cap(t.rest))) + ledger.Map[ledger.Account, *ledger.Sum](len(t.kept)) +
		int64(len(t.kept))*ledger.Of[ledger.Sum]())
	return n, e
}

// seek goes from the beginning to an offset; called with mu held.
func (t *ledgerText) seek(off int64) {
	t.pos, t.rest, t.pid, t.all = 0, nil, 1, false
	t.kept = ledger.Kept(func(a ledger.Account) bool {
		p := proc.Lookup(a.PID)
		return p != nil && p.UID() == a.UID
	})
	maps.DeleteFunc(t.kept, func(a ledger.Account, _ *ledger.Sum) bool { return !t.shows(a.UID) })
	for t.pos < off {
		b := t.piece()
		if len(b) == 0 {
			break
		}
		n := min(off-t.pos, int64(len(b)))
		t.pos, t.rest = t.pos+n, b[n:]
	}
	t.pos = off
}

// shows reports whether the asker may see a user's rows; called with mu held.
func (t *ledgerText) shows(uid uint32) bool {
	return t.asker.cred.UID == uid || t.asker.cred.Has(creds.CapSysAdmin)
}

// piece makes some more rows; called with mu held.
func (t *ledgerText) piece() (b []byte) {
	if !t.all {
		t.all = true
		proc.EachFrom(t.pid, func(p *proc.Process) bool {
			if len(b) >= ledgerPiece {
				t.pid, t.all = p.PID, false
				return false
			}
			if t.shows(p.UID()) {
				b = t.process(b, p)
			}
			return true
		})
		return b
	}
	order := slices.SortedFunc(maps.Keys(t.kept), func(x, y ledger.Account) int { return cmp.Compare(x.UID, y.UID) })
	for _, a := range order {
		if len(b) >= ledgerPiece {
			break
		}
		b = append(strconv.AppendUint(append(b, "user "...), uint64(a.UID), 10), ' ')
		b = append(t.kept[a].Append(b), '\n')
		delete(t.kept, a)
	}
	return b
}

// process writes the row of a process; called with mu held.
func (t *ledgerText) process(b []byte, p *proc.Process) []byte {
	sum := p.Ledger()
	a := ledger.Account{PID: p.PID, UID: p.UID()}
	if k := t.kept[a]; k != nil {
		sum.AddSum(k)
		delete(t.kept, a)
	}
	b = strconv.AppendInt(append(b, "process "...), int64(p.PID), 10)
	b = append(strconv.AppendUint(append(b, " user "...), uint64(a.UID), 10), ' ')
	return append(sum.Append(b), '\n')
}

// Seek moves in the text.
func (t *ledgerText) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return t.n.e.seek(f, off, whence)
}

// Holds adds the file with the rows that it has not shown. It takes no lock: a read of the
// ledger may ask for it.
func (t *ledgerText) Holds(s *ledger.Sum) {
	s.Add(ledger.Texts, ledger.Of[ledgerText]()+t.holds.Load())
}
