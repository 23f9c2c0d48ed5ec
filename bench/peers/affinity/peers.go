// Package peers keeps the versions of two programs that others wrote, measured
// by bench/affinity because of what they do with channels. They are built as
// they are, with and without the overlay.
//
//   - scc (boyter/scc): counts lines of code; a pipeline of three channels
//     between walkers, readers and counters.
//   - nsqd (nsqio/nsq): a message queue; its own benchmarks put messages from
//     many goroutines into one channel that a pump empties.
package peers

import _ "github.com/nsqio/nsq/nsqd"
