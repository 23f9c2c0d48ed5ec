package msg

import (
	"errors"
	"fmt"
)

// Errors of connections; what a method returns may wrap them.
var (
	// ErrClosed: this end was closed.
	ErrClosed = errors.New("msg: connection closed")
	// ErrPeerClosed: the other end has closed, after all that it had sent was
	// received.
	ErrPeerClosed = errors.New("msg: closed by the peer")
	// ErrPeerGone: the other end died or could not be reached again in time.
	// Messages that it had not acknowledged may or may not have arrived.
	ErrPeerGone = errors.New("msg: the peer is gone")
	// ErrTooLarge: a message is longer than its interface or the connection
	// allows. Nothing was sent.
	ErrTooLarge = errors.New("msg: message too large")
	// ErrNoCaps: the transport cannot pass descriptors. Nothing was sent.
	ErrNoCaps = errors.New("msg: this transport passes no descriptors")
	// ErrTaken: the name belongs to somebody else.
	ErrTaken = errors.New("msg: name taken")
	// ErrNoFrame is Notifier.TryRecv's.
	ErrNoFrame = errors.New("msg: no frame")
	// ErrOldPeer: a call failed, and the program at the other end was built before
	// calls could. The connection is closed.
	ErrOldPeer = errors.New("msg: the peer speaks a protocol without error replies")
	// ErrGivenUp is context.Cause of a handler's context when its caller has given
	// the call up.
	ErrGivenUp = errors.New("msg: the caller gave the call up")
	// ErrNoName: nobody has that name.
	ErrNoName = errors.New("msg: no such name")
)

// VersionError: the two ends speak different versions of the protocol. See
// ProtocolVersion.
type VersionError struct{ Ours, Peers int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("msg: this end speaks version %d of the protocol, the peer version %d: build both from versions that go together", e.Ours, e.Peers)
}

// MismatchError: the two ends were generated from different interfaces.
type MismatchError struct {
	OurName, PeerName string
	Ours, Peers       Fingerprint
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("msg: interface mismatch: this end speaks %q (%v), the peer %q (%v)", e.OurName, e.Ours, e.PeerName, e.Peers)
}

// PeerError: the peer broke the protocol, and the connection was closed.
type PeerError struct{ Reason string }

func (e *PeerError) Error() string { return "msg: the peer broke the protocol: " + e.Reason }

// BadBody is what a decoder returns to say that a body is not one of message
// name; the connection is closed with it as the reason.
func BadBody(name, what string) error { return &PeerError{Reason: name + ": " + what} }
