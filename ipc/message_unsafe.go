package ipc

import (
	"strings"
	"syscall"
	"unsafe"

	"hardtack/abi/ipc"
)

// NewMessage makes a message with room for LongBytes and descriptors.
//
//go:noinline
func NewMessage() *Message { return &Message{buffer: onHeap()} }

// onHeap makes a buffer that does not move, as the caller's stack might: what a
// function that is not inlined returns is on the heap.
//
//go:noinline
func onHeap() *ipc.Buffer { return new(ipc.Buffer) }

// address is where the buffer is. The message keeps it alive.
func (m *Message) address() uint64 { return uint64(uintptr(unsafe.Pointer(m.buffer))) }

// short is the content of a short message as bytes.
func (m *Message) short() *[ShortBytes]byte {
	return (*[ShortBytes]byte)(unsafe.Pointer(&m.regs.More))
}

func makeEndpoint(fds *[2]int32, flags int) error {
	_, _, e := syscall.RawSyscall(ipc.Endpoint, uintptr(unsafe.Pointer(fds)), uintptr(flags), 0)
	return failure(e)
}

func hardtack(release string) bool { return strings.Contains(release, "hardtack") }
