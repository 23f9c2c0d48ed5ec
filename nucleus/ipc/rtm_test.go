//go:build nucleus_rtm

package ipc

// Without the instructions the tests run the other way, the queue lock.
func init() { withoutTransactions = true }
