//go:build !amd64

package core

// MessageCall answers that there is no such call.
func MessageCall(r *MessageRegs) { r.Info = ^uint64(38 - 1) } // -ENOSYS

// MessageCallBlocking is MessageCall.
func MessageCallBlocking(r *MessageRegs) { MessageCall(r) }
