package nvme

import (
	"sync/atomic"
	"unsafe"
)

// loadStatus reads the last dword of a completion, which the controller writes
// last, and returns its upper half: status and phase. Later loads see data at least as new.
func loadStatus(cqe []byte) uint16 {
	return uint16(atomic.LoadUint32((*uint32)(unsafe.Pointer(&cqe[12]))) >> 16)
}
