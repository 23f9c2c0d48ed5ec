package proc

import "math/bits"

// candidate is a process that may die.
type candidate struct {
	p    *Process
	had  Holding
	adj  int64 // oom_score_adj
	kept int64 // bytes of files in memory and segments that its user has
}

// score is what a process holds, oom_score_adj counted in thousandths of all memory.
func (c *candidate) score(total int64) int64 { return max(c.had.All()+c.adj*total/1000, 1) }

// swarm is the processes of one user that hold about as much: between a power of two
// and the next.
type swarm struct {
	uid       uint32
	size      int
	most, sum int64 // of the scores
	kept      int64 // by the user
}

// weight is the most that one of them holds, and a quarter of what the others hold: a
// thousand small processes together weigh more than one that is larger than each. What the
// user keeps counts up to what the processes hold. Killing them does not free it, but it is
// why memory is short.
func (s *swarm) weight() int64 { return s.most + (s.sum-s.most)/4 + min(s.kept, s.sum) }

// blame is the weight used when no death frees much: the processes of a user who keeps a lot
// would go on to fill the rest.
func (s *swarm) blame() int64 { return s.weight() + s.kept }

// choose returns which candidates die to get so many bytes back: the biggest of the swarm
// that holds most, and so many more of it as are needed. Of equals the youngest is first.
func choose(list []candidate, total, bytes int64) (victims []int) {
	best := heaviest(list, total)
	if best == nil {
		return nil
	}
	for len(victims) < maxVictims && bytes > 0 {
		next, most := -1, int64(0)
		for i := range list {
			c := &list[i]
			s := c.score(total)
			if c.had.UID == best.uid && bits.Len64(uint64(s)) == best.size && s >= most && !c.taken() {
				next, most = i, s
			}
		}
		if next < 0 {
			break
		}
		bytes -= list[next].had.All()
		list[next].adj = taken
		victims = append(victims, next)
	}
	return victims
}

// taken is in place of the oom_score_adj of a candidate that is chosen.
const taken = 1 << 20

func (c *candidate) taken() bool { return c.adj == taken }

// heaviest finds the swarm that holds most. If even that is less than a sixteenth of all
// memory, what the users keep counts as well.
func heaviest(list []candidate, total int64) *swarm {
	swarms := map[[2]uint32]*swarm{}
	for i := range list {
		c := &list[i]
		n := c.score(total)
		size := bits.Len64(uint64(n))
		key := [2]uint32{c.had.UID, uint32(size)}
		s := swarms[key]
		if s == nil {
			s = &swarm{uid: c.had.UID, size: size, kept: c.kept}
			swarms[key] = s
		}
		s.most = max(s.most, n)
		s.sum += n
	}
	best := most(swarms, (*swarm).weight)
	if best != nil && best.sum < total/16 {
		best = most(swarms, (*swarm).blame)
	}
	return best
}

// most returns the swarm of which f is most; of equals the one with more, then the user
// with the higher number.
func most(swarms map[[2]uint32]*swarm, f func(*swarm) int64) (best *swarm) {
	for _, s := range swarms {
		if best == nil || f(s) > f(best) || f(s) == f(best) && s.uid > best.uid {
			best = s
		}
	}
	return best
}
