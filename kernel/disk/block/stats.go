package block

import (
	"fmt"

	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

// kinds of operations that are counted; WriteZeroes counts as a write.
const kinds = 5

// figures are counts of one part in one queue.
type figures struct {
	done, merges, sectors [kinds]uint64
	nanos                 [kinds]int64
}

func (f *figures) count(r *Request, now int64) {
	f.done[r.Op]++
	f.sectors[r.Op] += uint64(r.Sectors)
	f.nanos[r.Op] += now - r.started
}

// part returns the figures that a request counts for; mu is held.
func (q *queue) part(r *Request) *figures {
	if int(r.part) >= len(q.stats) {
		q.stats = append(q.stats, make([]figures, int(r.part)+1-len(q.stats))...)
	}
	return &q.stats[r.part]
}

// Stats are the figures of a disk or partition since boot.
type Stats struct{ Reads, Writes, Discards, Flushes OpStats }

// OpStats are those of one kind of operation; a merged request counts in both.
type OpStats struct {
	Done, Merged, Sectors uint64
	Millis                int64
}

// Stats sums the figures of a part, or of all for the whole disk.
func (p *Part) Stats() (s Stats) {
	var sum figures
	for i := range p.Disk.queues {
		q := &p.Disk.queues[i]
		q.mu.Lock()
		for n := range q.stats {
			if p.Number != 0 && n != p.Number {
				continue
			}
			f := &q.stats[n]
			for k := range kinds {
				sum.done[k] += f.done[k]
				sum.merges[k] += f.merges[k]
				sum.sectors[k] += f.sectors[k]
				sum.nanos[k] += f.nanos[k]
			}
		}
		q.mu.Unlock()
	}
	of := func(ops ...blockdev.Op) (o OpStats) {
		for _, op := range ops {
			o.Done += sum.done[op]
			o.Merged += sum.merges[op]
			o.Sectors += sum.sectors[op]
			o.Millis += sum.nanos[op] / 1e6
		}
		return o
	}
	return Stats{of(blockdev.Read), of(blockdev.Write, blockdev.WriteZeroes), of(blockdev.Discard), of(blockdev.Flush)}
}

// busyMillis is how long the disk had requests.
func (d *Disk) busyMillis() int64 {
	n := d.busy.Load()
	if d.inflight.Load() > 0 {
		n += wait.Now() - d.busyFrom.Load()
	}
	return n / 1e6
}

// StatText is the 17 figures of a line of /proc/diskstats, and of a disk's stat.
func (p *Part) StatText() string {
	s := p.Stats()
	inflight := p.Disk.inflight.Load()
	if p.Number != 0 {
		inflight = 0 // counted by disk
	}
	all := s.Reads.Millis + s.Writes.Millis + s.Discards.Millis + s.Flushes.Millis
	return fmt.Sprintf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d",
		s.Reads.Done, s.Reads.Merged, s.Reads.Sectors, s.Reads.Millis,
		s.Writes.Done, s.Writes.Merged, s.Writes.Sectors, s.Writes.Millis,
		inflight, p.Disk.busyMillis(), all,
		s.Discards.Done, s.Discards.Merged, s.Discards.Sectors, s.Discards.Millis,
		s.Flushes.Done, s.Flushes.Millis)
}
