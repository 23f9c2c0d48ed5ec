package ump

import (
	"os"
	"strings"
	"sync"
	"time"

	"hardtack/ipc"
)

// Hardtack is the Kernel of programs.
type Hardtack struct{}

// Here implements Kernel, as do the others. With several processors the nucleus hands
// a thread that was woken to Go's scheduler at once, since another processor may be
// idle; then the futex is as quick.
func (Hardtack) Here() bool { return here() }

var here = sync.OnceValue(func() bool {
	if !ipc.Here() {
		return false
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	return err != nil || !strings.ContainsAny(string(online), ",-")
})

func (Hardtack) New() (int, error) {
	n, err := ipc.NewNotification(ipc.CloseOnExec)
	return int(n), err
}

func (Hardtack) Signal(fd int) error { return ipc.Notification(fd).Signal(1) }

func (Hardtack) Wait(fd int, d time.Duration) error {
	limit := ipc.Forever
	if d > 0 {
		limit = ipc.After(d)
	}
	_, err := ipc.Notification(fd).Wait(limit)
	return err
}
