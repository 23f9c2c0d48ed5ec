// Package followbench runs packages task and affinity in machines, on Hardtack and on
// Debian's Linux, with the same binaries, and draws the figures of the two papers that
// they follow: a task parallel run-time for Barrelfish (2014), figures 5.3 to 5.5, 5.7
// and 5.9 to 5.11, and channel-aware scheduling in the Go runtime, figures 1 to 5.
//
// A machine may have more processors than the host. So what is compared are instructions,
// which a plugin of the emulator counts for each virtual processor (bench/cluster/plugin).
package followbench
