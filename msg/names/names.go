// Package names is the name service: it says where a service is to be bound.
//
// An entry maps a name to a value of at most MaxValue bytes, which the service
// does not look into (package msg keeps addresses there). Processes of a
// machine share one server over a Unix socket; who finds none serves himself
// (place.go), and when he dies another takes over. package msg/nats keeps the
// same directory in a key-value bucket, for machines that share a NATS server.
//
// What a server promises:
//
//   - An entry lives as long as the connection that set it, that is, as long as
//     the process. The kernel closes the socket of a killed process, so the end
//     is noticed at once, without heartbeats.
//   - A name belongs to the user who took it first, by the credentials that the
//     kernel gives for the connection. It stays his when the entry dies, until
//     he deletes it, so that nobody can slip in while a service restarts. (A
//     user keeps at most MaxReserved such names, and loses the oldest.)
//   - Requests carry numbers and are answered in any order: one connection
//     serves all goroutines of a process, and one that waits hinders none.
//   - Watchers see the entries that exist, then every change in order of
//     revision, with successive changes of one name folded if they are slow.
//   - Everything is bounded, per connection and per user (wire.go).
//
// A Client outlives servers: when the connection ends it finds or starts
// another server, sets its entries again, and repeats what was not answered.
//
// Lock order: store.mu before outbox.mu; Watch.mu before Client.mu.
package names

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// An Entry is one name and what is known of it. Entries do not change: setting
// a name again makes a new one.
type Entry struct {
	Name     string
	Value    []byte // not to be changed
	Revision uint64 // counts all changes of the server; larger is later
	UID      uint32 // the user whose process set it; NoUser between machines
	PID      uint32 // the process, in the server's numbering; 0 between machines
}

// NoUser is the UID of an entry from another machine, where users are others.
const NoUser = ^uint32(0)

// Flags of Set.
type Flags uint8

const (
	// Replace allows that the name has an entry of the same user, which the new
	// one takes the place of.
	Replace Flags = 1 << iota
	// Sequence appends "." and a number that makes the name unique.
	Sequence

	allFlags = Replace | Sequence
)

// A Directory is a name service, on this machine (Client) or between machines
// (nats.Bucket). Its methods may be called from many goroutines at once.
type Directory interface {
	// Set makes an entry that lives until it is deleted, the directory is
	// closed, or the process ends. It returns the entry as it was made.
	Set(ctx context.Context, name string, value []byte, flags Flags) (Entry, error)
	// Get finds an entry, or fails with ErrNotFound.
	Get(ctx context.Context, name string) (Entry, error)
	// WaitFor is Get for a name that may yet come.
	WaitFor(ctx context.Context, name string) (Entry, error)
	// Count counts the entries of a class; see Class.
	Count(ctx context.Context, class string) (int, error)
	// List gives the entries whose names begin with prefix, in order of names.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Watch follows the entries whose names begin with prefix.
	Watch(ctx context.Context, prefix string) (Watcher, error)
	// Delete takes the entry away and frees the name for other users.
	Delete(ctx context.Context, name string) error
	Close() error
}

// A Watcher gives events one by one.
type Watcher interface {
	// Next waits for the next event.
	Next(ctx context.Context) (Event, error)
	Close() error
}

// An Event is what a watcher is told.
type Event struct {
	Kind  EventKind
	Entry Entry // for Gone: the entry that was; for Synced: none
}

// EventKind says what happened.
type EventKind uint8

const (
	// Put: the entry exists, newly or with a new value.
	Put EventKind = iota + 1
	// Gone: it was deleted, or its owner died.
	Gone
	// Synced: everything that existed when the watch began was told. It comes
	// once.
	Synced
)

func (k EventKind) String() string {
	switch k {
	case Put:
		return "put"
	case Gone:
		return "gone"
	case Synced:
		return "synced"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// The errors of requests; the text of what is returned says more.
var (
	ErrNotFound = errors.New("no such name")
	ErrExists   = errors.New("the name is taken")
	ErrDenied   = errors.New("the name belongs to another user")
	ErrInvalid  = errors.New("invalid request")
	ErrLimit    = errors.New("limit reached")
	ErrClosed   = errors.New("name service: closed")
)

// Class is the name without a number at its end: "worker" for "worker.7", and
// for "worker" itself.
func Class(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || i == len(name)-1 {
		return name
	}
	for _, c := range []byte(name[i+1:]) {
		if c < '0' || c > '9' {
			return name
		}
	}
	return name[:i]
}

// CheckName says what is wrong with a name: it has 1 to MaxName letters,
// digits, and any of "-_/.", with no dot at either end and no two in a row.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the name is empty", ErrInvalid)
	}
	if err := checkPrefix(name); err != nil {
		return err
	}
	if name[len(name)-1] == '.' {
		return fmt.Errorf("%w: name %q ends with a dot", ErrInvalid, name)
	}
	return nil
}

// checkPrefix is CheckName for what a name may begin with.
func checkPrefix(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%w: a name has at most %d bytes, this one has %d", ErrInvalid, MaxName, len(name))
	}
	for i, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '/':
		case c == '.':
			if i == 0 || name[i-1] == '.' {
				return fmt.Errorf("%w: name %q has a dot before nothing", ErrInvalid, name)
			}
		default:
			return fmt.Errorf("%w: name %q: byte %#x is none of the letters, digits and ./_-", ErrInvalid, name, c)
		}
	}
	return nil
}

func checkValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: a value has at most %d bytes, this one has %d", ErrInvalid, MaxValue, len(value))
	}
	return nil
}
