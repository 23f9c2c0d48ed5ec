//go:build nucleus_rtm

package ipc

import "hardtack/nucleus/control"

// Without the instructions the tests run the other way, the queue lock.
func init() { control.WithoutTransactions = true }
