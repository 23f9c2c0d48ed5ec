// Package repairman predicts how many cores one lock carries, by the machine
// repairman model of queueing theory: n cores compute for a think time of a on
// average, then want the lock, which serves one at a time for s on average; both
// times are exponentially distributed. (The machines break down and wait for the one
// man who repairs them.)
//
// Elphinstone, Zarrabi, Danis, Shen, Heiser, An evaluation of coarse-grained locking
// for multicore microkernels, 2016, section 4, is where it is used for a kernel's
// big lock; Kleinrock, Queueing systems, volume 2, 1976, 4.12, has the knee.
//
// Times are in any one unit, throughput is operations in that unit.
package repairman

import "math"

// Model is a lock and its load.
type Model struct {
	Service float64 // average time that the lock is held for one operation
	Think   float64 // average time that a core computes between its operations
}

// State is the steady state with n cores.
type State struct {
	Cores      int
	Throughput float64 // operations in the unit of time
	Queue      float64 // cores that hold the lock or wait for it
	Busy       float64 // part of the time that the lock is held
	Wait       float64 // from the wish for the lock to its release
}

// At is the steady state with n >= 1 cores, by mean value analysis (Reiser,
// Lavenberg, 1980): a core that comes finds as many at the lock as there are on
// average with one core less. It gives what the probabilities do, without their
// factorials.
func (m Model) At(n int) State {
	var s State
	for i := 1; i <= n; i++ {
		s = m.next(s)
	}
	return s
}

// Curve is the steady states for 1 to n cores.
func (m Model) Curve(n int) []State {
	out := make([]State, 0, n)
	var s State
	for range n {
		s = m.next(s)
		out = append(out, s)
	}
	return out
}

func (m Model) next(s State) State {
	wait := m.Service * (1 + s.Queue)
	x := float64(s.Cores+1) / (wait + m.Think)
	return State{Cores: s.Cores + 1, Throughput: x, Queue: x * wait, Busy: x * m.Service, Wait: wait}
}

// Probabilities are those of 0 to n cores at the lock: equation 3 of the paper,
// P(k) = P(0) (s/a)^k n!/(n-k)!, computed by logarithms.
func (m Model) Probabilities(n int) []float64 {
	log := make([]float64, n+1)
	top := 0.0
	for k := 1; k <= n; k++ {
		log[k] = log[k-1] + math.Log(m.Service/m.Think*float64(n-k+1))
		top = max(top, log[k])
	}
	sum := 0.0
	for k := range log {
		log[k] = math.Exp(log[k] - top)
		sum += log[k]
	}
	for k := range log {
		log[k] /= sum
	}
	return log
}

// Knee is the number of cores at which the lock would just be busy all the time if
// nobody ever waited: (s + a) / s. Below it throughput grows nearly with the cores,
// above it hardly.
func (m Model) Knee() float64 { return (m.Service + m.Think) / m.Service }

// Carries is the largest number of cores, up to limit, whose throughput is at least
// the given part of as many times that of one core.
func (m Model) Carries(efficiency float64, limit int) int {
	one, n := m.At(1).Throughput, 0
	for _, s := range m.Curve(limit) {
		if s.Throughput < efficiency*one*float64(s.Cores)*(1-1e-12) {
			break
		}
		n = s.Cores
	}
	return n
}
