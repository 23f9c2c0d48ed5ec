package ump

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg/lmp"
)

// Hands implements msg.Handing, as do the others here.
func (l *link) Hands() bool { return lmp.Here() }

// Hand gives the peer this end's place, once.
func (l *link) Hand() bool {
	if l.place.Load() != nil {
		return true
	}
	if l.noPlace.Load() {
		return false
	}
	p, err := l.givePlace()
	if err != nil {
		l.noPlace.Store(true) // out of notifications or descriptors: the futex will do
		return false
	}
	l.place.Store(p)
	if l.closed.Load() {
		p.Close()
	}
	return true
}

func (l *link) givePlace() (*lmp.Place, error) {
	p, err := lmp.NewPlace()
	if err != nil {
		return nil, err
	}
	f, err := p.File()
	if err != nil {
		p.Close()
		return nil, err
	}
	defer f.Close()
	l.sending.Lock()
	defer l.sending.Unlock()
	err = withFD(f, func(fd int) error {
		return l.send(context.Background(), []byte{framePlace}, unix.UnixRights(fd))
	})
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// takePlace takes up the peer's place, and closes f. A second one comes when the
// peer's end has moved.
func (l *link) takePlace(f *os.File) error {
	defer f.Close()
	p, err := lmp.Open(f)
	if err != nil {
		return err
	}
	if old := l.theirs.Swap(p); old != nil {
		old.Close()
	}
	if l.closed.Load() {
		p.Close()
	}
	return nil
}

// Await sleeps at this end's place.
func (l *link) Await(d time.Duration) {
	if p := l.place.Load(); p != nil {
		p.Await(d)
	}
}

// Rouse wakes the peer at its place.
func (l *link) Rouse() {
	if p := l.theirs.Load(); p != nil {
		p.Rouse()
		return
	}
	l.Wake() // it has not come yet, or came to who had this end before
}

func (l *link) closePlaces() {
	if p := l.place.Load(); p != nil {
		p.Close()
	}
	if p := l.theirs.Load(); p != nil {
		p.Close()
	}
}
