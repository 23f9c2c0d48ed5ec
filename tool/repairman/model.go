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
// On a real machine a lock costs more when another core had it last: its cache lines,
// and those of what it guards, have to come. A core alone never pays that (footnote 1
// of the paper), so one service time fits either few cores or many. Model.Transfer is
// that cost; without it the model is the paper's.
//
// Times are in any one unit, throughput is operations in that unit.
package repairman

// Model is a lock and its load.
type Model struct {
	Service float64 // average time that the lock is held for one operation
	Think   float64 // average time that a core computes between its operations
	// Transfer is what Service is more when another core had the lock before: always
	// if somebody waits when the lock is released, and one time in n less than always
	// if a core of n finds it free.
	Transfer float64
}

// service is the average time of an operation with k of n cores at the lock.
func (m Model) service(k, n int) float64 {
	switch {
	case n == 1:
		return m.Service
	case k == 1:
		return m.Service + m.Transfer*float64(n-1)/float64(n)
	}
	return m.Service + m.Transfer
}

// State is the steady state with n cores.
type State struct {
	Cores      int
	Throughput float64 // operations in the unit of time
	Queue      float64 // cores that hold the lock or wait for it
	Busy       float64 // part of the time that the lock is held
	Wait       float64 // from the wish for the lock to its release
}

// At is the steady state with n >= 1 cores. The wait is by Little's law: all cores
// either wait, are served or think.
func (m Model) At(n int) State {
	p := m.Probabilities(n)
	s := State{Cores: n, Busy: 1 - p[0]}
	for k := 1; k <= n; k++ {
		s.Throughput += p[k] / m.service(k, n)
		s.Queue += p[k] * float64(k)
	}
	s.Wait = s.Queue / s.Throughput
	return s
}

// Curve is the steady states for 1 to n cores.
func (m Model) Curve(n int) []State {
	out := make([]State, n)
	for i := range out {
		out[i] = m.At(i + 1)
	}
	return out
}

// leastThink is the least part of the service time that a core thinks: the model has
// no state for a core that does not.
const leastThink = 1e-9

// Probabilities are those of 0 to n cores at the lock. Each state is entered as often
// as it is left, which is equation 1 of the paper: P(k) = P(k-1) (n-k+1) s(k)/a.
func (m Model) Probabilities(n int) []float64 {
	think := max(m.Think, leastThink*m.Service)
	p := make([]float64, n+1)
	p[0] = 1
	sum := 1.0
	for k := 1; k <= n; k++ {
		p[k] = p[k-1] * m.service(k, n) / think * float64(n-k+1)
		if sum += p[k]; sum > 1e100 { // the terms grow like factorials
			for i := range k + 1 {
				p[i] /= sum
			}
			sum = 1
		}
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// Knee is the number of cores at which the lock would just be busy all the time if
// nobody ever waited: (s + a) / s, a transfer included. Below it throughput grows nearly with the cores,
// above it hardly.
func (m Model) Knee() float64 {
	s := m.Service + m.Transfer
	return (s + m.Think) / s
}

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
