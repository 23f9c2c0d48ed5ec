package pci

import "sync"

// messages are the messages that functions interrupt by, with the addresses that their
// drivers chose.
var messages struct {
	mu  sync.Mutex
	all []message
}

type message struct {
	home, now uint64
	set       func(addr uint64)
}

func noteMessage(addr uint64, set func(addr uint64)) {
	messages.mu.Lock()
	messages.all = append(messages.all, message{addr, addr, set})
	messages.mu.Unlock()
}

// Steer has all message interrupts go to other addresses, that is, processors: to says where
// those go that their driver sends to home.
func Steer(to func(home uint64) uint64) {
	messages.mu.Lock()
	defer messages.mu.Unlock()
	for i := range messages.all {
		m := &messages.all[i]
		if addr := to(m.home); addr != m.now {
			m.now = addr
			m.set(addr)
		}
	}
}
