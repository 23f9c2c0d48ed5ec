package task

// word is a worker's deque in one integer: the frames [0, tail) have been
// stolen, [tail, split) are shared and may be stolen, [split, top) are private.
// Every change of either bound is one compare-and-swap (or a store while
// tail == split, when no thief may change it), so the history of a deque is the
// sequence of its words and nothing needs a fence of its own.
//
//	thief   tail  := tail + 1      when tail < split
//	owner   split := larger        share
//	owner   split := smaller       take back, never below tail
//	owner   tail, split := i, i    when frame i, stolen, is done; tail = split = i+1
//
// The word says all about which frames may be touched by whom, therefore a word
// that comes back to an old value means what it meant before: a thief whose
// compare-and-swap succeeds late steals the frame that is there now, and reads
// it only afterwards.
type word uint64

func pack(tail, split uint32) word { return word(tail)<<32 | word(split) }

func (w word) tail() uint32  { return uint32(w >> 32) }
func (w word) split() uint32 { return uint32(w) }

// steal is a thief's step: the word after taking the oldest shared frame i.
func (w word) steal() (next word, i uint32, ok bool) {
	if w.tail() >= w.split() {
		return w, 0, false
	}
	return pack(w.tail()+1, w.split()), w.tail(), true
}

// share is the owner's step that shares the older half of its private frames,
// at least one; top is the first free frame.
func (w word) share(top uint32) (next word, ok bool) {
	private := top - w.split()
	if top <= w.split() {
		return w, false
	}
	return pack(w.tail(), w.split()+(private+1)/2), true
}

// takeBack is the owner's step to own frame i, which is shared or stolen. It
// keeps the younger half of what is left before i, so that the frames below are
// not fetched back one at a time.
func (w word) takeBack(i uint32) (next word, ok bool) {
	if w.tail() > i {
		return w, false
	}
	return pack(w.tail(), w.tail()+(i-w.tail())/2), true
}

// release is the owner's step after the stolen frame i is done and no frame
// above it is in use.
func (w word) release(i uint32) word { return pack(i, i) }
