//go:build !amd64

package core

// Syscall answers that there is no such call.
func Syscall(r *Registers) { r.RAX = ^uint64(38 - 1) } // -ENOSYS

// SyscallBlocking is Syscall.
func SyscallBlocking(r *Registers) { Syscall(r) }
