package ump

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Hands implements msg.Handing, as do the others here.
func (l *link) Hands() bool { return handsOver() }

// Hand gives the peer this end's place, once.
func (l *link) Hand() bool {
	if l.place.Load() != nil {
		return true
	}
	if l.noPlace.Load() {
		return false
	}
	p, err := l.givePlace()
	if err == errSending {
		return false // another time
	}
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

// errSending: somebody else is sending a frame, and the peer may not take it.
var errSending = errors.New("ump: the link is busy")

// givePlace makes a place and gives it to the peer, without waiting.
func (l *link) givePlace() (*Place, error) {
	if !l.sending.tryLock() {
		return nil, errSending
	}
	defer l.sending.unlock()
	p, err := newPlace()
	if err != nil {
		return nil, err
	}
	f, err := p.File()
	if err != nil {
		p.Close()
		return nil, err
	}
	defer f.Close()
	err = withFD(f, func(fd int) error {
		return l.send(atOnce, []byte{framePlace}, unix.UnixRights(fd))
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
	p, err := openPlace(f)
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
	l.Wake() // it has not come yet, or came to whoever had this end before
}

func (l *link) closePlaces() {
	if p := l.place.Load(); p != nil {
		p.Close()
	}
	if p := l.theirs.Load(); p != nil {
		p.Close()
	}
}
