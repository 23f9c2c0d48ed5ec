package msg

import (
	"encoding/binary"
	"errors"
)

// Frames of the control channel. The first byte says which; numbers are little
// endian. What a frame must not be closes the connection.
const (
	frameHello   = 1  // greeting, from whoever dialled
	frameWelcome = 2  // greeting, from whoever accepted
	frameRefuse  = 3  // greeting with a reason instead of a token
	frameCaps    = 4  // what comes with the next message that has Caps set
	frameBulk    = 5  // id and length of a bulk pool, with its file
	frameBye     = 6  // nothing comes after what was sent before
	frameMove    = 7  // an address: please bind again there
	frameSlots   = 8  // messages, on links without common memory
	frameAck     = 9  // messages delivered, on links without common memory
	frameLeft    = 10 // the session has gone to another link; nothing more comes here
	frameBound   = 11 // from whoever dialled again: it has had the welcome
)

// ProtocolVersion is the version of the protocol that this package speaks; ends
// of different versions refuse each other with a *VersionError. What was added
// later within a version is a flag of the greeting, and is used only between two
// ends that both have it:
//
//	1  the first
//	   greetBound  frameBound: who dialled again says that it has the welcome
//	   greetHands  the processor is handed over by notifications
//	   greetCalls  messages 4001, a call failed, and 4002, a call was given up
//
// An end without greetCalls is never told that a call was given up; a call that
// fails closes its connection (ErrOldPeer).
const ProtocolVersion = 1

// Flags of a greeting.
const (
	greetFence = 1 // barriers of this end do not reach the peer
	greetBound = 2 // this end knows frameBound
	greetHands = 4 // this end's link is a Handing, and its kernel hands the processor over
	greetCalls = 8 // this end knows numFailed and numGivenUp
)

// Reasons in a refusal.
const (
	refuseMismatch = 1
	refuseSession  = 2
	refuseBusy     = 3
	refuseUser     = 4
	refuseVersion  = 5
)

// greeting is the first frame in each direction.
//
//	kind, version, flags, reason  one byte each
//	fingerprint, token            16 bytes each
//	delivered                     8 bytes: messages had so far in the session
//	name of the interface         the rest, at most 255 bytes
type greeting struct {
	kind, flags, reason byte
	fingerprint         Fingerprint
	token               token
	delivered           uint64
	name                string
}

const greetingBytes = 4 + 16 + 16 + 8

func (g *greeting) frame() []byte {
	b := make([]byte, greetingBytes, greetingBytes+len(g.name))
	b[0], b[1], b[2], b[3] = g.kind, ProtocolVersion, g.flags, g.reason
	copy(b[4:], g.fingerprint[:])
	copy(b[20:], g.token[:])
	binary.LittleEndian.PutUint64(b[36:], g.delivered)
	return append(b, g.name...)
}

func parseGreeting(b []byte) (g greeting, err error) {
	if len(b) < greetingBytes || len(b) > greetingBytes+255 || b[0] < frameHello || b[0] > frameRefuse {
		return g, &PeerError{"not a greeting"}
	}
	if b[1] != ProtocolVersion {
		return g, &VersionError{Ours: ProtocolVersion, Peers: int(b[1])}
	}
	g.kind, g.flags, g.reason = b[0], b[2], b[3]
	copy(g.fingerprint[:], b[4:])
	copy(g.token[:], b[20:])
	g.delivered = binary.LittleEndian.Uint64(b[36:])
	g.name = string(b[greetingBytes:])
	return g, nil
}

func bulkFrame(id uint32, n int) []byte {
	b := make([]byte, 9)
	b[0] = frameBulk
	binary.LittleEndian.PutUint32(b[1:], id)
	binary.LittleEndian.PutUint32(b[5:], uint32(n))
	return b
}

var errShort = errors.New("short frame")

func parseBulk(b []byte) (id uint32, n int, err error) {
	if len(b) != 9 {
		return 0, 0, errShort
	}
	id, n = binary.LittleEndian.Uint32(b[1:]), int(binary.LittleEndian.Uint32(b[5:]))
	if n < BulkBytes || n > 4*MaxBody || n%64 != 0 {
		return 0, 0, errors.New("impossible size")
	}
	return id, n, nil
}
