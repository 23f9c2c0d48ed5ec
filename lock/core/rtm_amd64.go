//go:build !race

package core

// Restricted transactional memory (Intel SDM volume 1, chapter 16). What a thread
// reads and writes between XBEGIN and XEND happens at once, or, when another
// thread touches the same lines, an interrupt comes, a cache is too small or the
// system is called, not at all: registers and memory are as they were at XBEGIN,
// and the thread goes on at the address that XBEGIN names, its status in EAX.

// xbegin begins a transaction that has *word in its read set, and returns Started
// if the word is 0. When the transaction aborts, at any time until xend, it returns
// again, from the same call, with the status; if the word was not 0 that is
// statusHeld.
//
// The return address and the frame of the caller are memory like any other: what
// the transaction did to them is undone too. A goroutine may even be switched in
// between; only the thread matters.
//
//go:noescape
func xbegin(word *uint32) uint32

// xend commits. Outside of a transaction it faults.
func xend()

// xtest tells whether the thread is in a transaction. It faults on processors
// without RTM.
func xtest() bool

// cpuid7 gives the highest basic leaf, and EBX and EDX of leaf 7.
func cpuid7() (maxLeaf, ebx, edx uint32)

// transactions tells whether hardware transactions work here: the processor has
// RTM (CPUID.7.0:EBX[11]), does not abort them all (EDX[11], RTM_ALWAYS_ABORT),
// and one of a few does commit: hypervisors and microcode leave the bit and take
// the transactions.
func transactions() bool {
	_, ebx, edx := cpuid7()
	if ebx>>11&1 == 0 || edx>>11&1 == 1 {
		return false
	}
	var word uint32
	for range 100 {
		if xbegin(&word) == Started {
			xend()
			return true
		}
	}
	return false
}
