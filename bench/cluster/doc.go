// Package clusterbench measures several kernels in one machine beside one kernel: delays by
// another kernel's collector, starts, calls between monitors, messages, panics. It writes
// docs/bench/cluster.md and cluster.svg (`make bench-cluster`).
//
// It needs QEMU with plugins, and gcc: plugin/count.c counts the instructions of each
// processor by itself.
package clusterbench
