package ump

import (
	"time"

	"hardtack/ipc"
)

// Hardtack is the Kernel of programs.
type Hardtack struct{}

// Here implements Kernel, as do the others.
func (Hardtack) Here() bool { return ipc.Here() }

func (Hardtack) New() (int, error) {
	n, err := ipc.NewNotification(ipc.CloseOnExec)
	return int(n), err
}

// Signal says that the caller will wait soon: who is woken then waits for that on this
// processor, for some microseconds, and runs there at once. If the caller does something
// else it runs where there is room.
func (Hardtack) Signal(fd int) error { return ipc.Notification(fd).SignalSoon(1) }

func (Hardtack) Wait(fd int, d time.Duration) error {
	limit := ipc.Forever
	if d > 0 {
		limit = ipc.After(d)
	}
	_, err := ipc.Notification(fd).Wait(limit)
	return err
}
