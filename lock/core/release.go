package core

// Stores with release meaning. What was written before the store is seen by
// whoever loads the new value with atomic.Load*. Unlike atomic.Store* they
// order nothing after them: a later load may be performed first, so that a
// thread that publishes and then looks for a sleeper needs a barrier between.
//
// On amd64 the store is a plain MOV, as its memory model allows (Intel SDM
// volume 3A, 8.2.2: stores are not reordered with earlier loads or stores);
// atomic.Store* is an XCHG there, which waits until the store buffer has
// drained, 40 ns when another core holds the line. Elsewhere, and under the
// race detector, they are atomic.Store*.
