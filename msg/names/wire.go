package names

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Requests and answers are packets of a SOCK_SEQPACKET Unix socket: the kernel
// keeps their borders, and a C program needs one recv for an answer. All have
// this form, little endian:
//
//	 0  u64  id        chosen by the client; the answer has the same
//	 8  u8   op        what is asked or answered, below
//	 9  u8   arg       request: Flags; answer opError: the code
//	10  u16  name length
//	12  u32  value length
//	16  u64  revision  answers; 0 in requests (opCancel: the id to end)
//	24  u32  uid       answers; 0 in requests
//	28  u32  pid       answers; 0 in requests
//	32  name, value; nothing after them
//
// The first packet of a client is opHello with the protocol's version in
// revision; the server answers opOK with its version there, its pid, and in arg
// whether it is embedded. A packet that breaks these rules ends the connection
// with an opError that says why; a request that cannot be fulfilled is answered
// with opError and changes nothing.
const (
	wireVersion = 1
	headerSize  = 32

	// MaxName is the longest name in bytes, MaxValue the longest value.
	MaxName  = 255
	MaxValue = 4096

	maxPacket = headerSize + MaxName + MaxValue
)

// What one connection and one user may hold. A connection is a process, so its
// bounds are for a large program; the user's bound the server's memory, whatever
// he does: 32,768 entries of at most 4.5 KiB (144 MiB if all values had full
// length; real ones have 100 B), 65,536 waits of 0.5 KiB (32 MiB), 1,024 watches
// with 1,024 events of 0.1 KiB (100 MiB), 16,384 connections of 24 KiB.
const (
	maxConnEntries = 16384  // entries of one connection
	maxConnWaits   = 16384  // waits that one connection has pending
	maxConnWatches = 64     // watches of one connection
	maxConnEvents  = 1024   // events that wait for one connection to read them
	maxConnAnswers = 64     // answers that do, before its requests wait
	maxUserConns   = 16384  // connections of one user
	maxUserEntries = 32768  // entries of one user
	maxUserWaits   = 65536  // waits of one user
	maxUserWatches = 1024   // watches of one user
	maxEntries     = 262144 // entries of all users, who may be as many as they have sub-uids
	maxReserved    = 65536  // names without entry of all users

	// MaxReserved is how many names without entry are kept for one user.
	MaxReserved = 4096

	listBatch = 256 // entries that a listing takes at a time, between which others have their turn
)

type op uint8

const (
	opHello  op = iota + 1
	opSet       // name, value, Flags → opEntry
	opGet       // name → opEntry
	opWait      // name → opEntry, when it exists
	opCount     // class in name → opOK, the count in revision
	opList      // prefix in name → opEntry for each, opOK
	opWatch     // prefix in name → opOK, then opEntry and opGone as it happens
	opDelete    // name → opOK
	opCancel    // ends the wait or watch with the id in revision → opOK
	opYield     // an embedded server ends → opOK
)

const (
	opOK    op = 0x81 + iota
	opEntry    // name, value, revision, uid, pid
	opGone     // the same, of an entry that was
	opError    // code in arg, words in value
)

type code uint8

const (
	codeInvalid code = iota + 1
	codeNotFound
	codeExists
	codeDenied
	codeLimit
	codeLagged // a watch was ended: its events were not read in time
	codeProtocol
)

// errLagged makes the client watch again.
var errLagged = errors.New("watch: too slow")

var errProtocol = errors.New("name service: protocol error")

// codes pairs each code with its error.
var codes = map[code]error{
	codeInvalid:  ErrInvalid,
	codeNotFound: ErrNotFound,
	codeExists:   ErrExists,
	codeDenied:   ErrDenied,
	codeLimit:    ErrLimit,
	codeLagged:   errLagged,
	codeProtocol: errProtocol,
}

func codeOf(err error) code {
	for c, e := range codes {
		if errors.Is(err, e) {
			return c
		}
	}
	return codeInvalid
}

// remoteError is an error that the server told: its words, and what it is.
type remoteError struct {
	words string
	kind  error
}

func (e *remoteError) Error() string { return e.words }
func (e *remoteError) Unwrap() error { return e.kind }

// packet is a request or an answer. The slices of a decoded one are its own.
type packet struct {
	id    uint64
	op    op
	arg   uint8
	entry Entry
}

func (p *packet) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.id)
	b = append(b, byte(p.op), p.arg)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.entry.Name)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.entry.Value)))
	b = binary.LittleEndian.AppendUint64(b, p.entry.Revision)
	b = binary.LittleEndian.AppendUint32(b, p.entry.UID)
	b = binary.LittleEndian.AppendUint32(b, p.entry.PID)
	b = append(b, p.entry.Name...)
	return append(b, p.entry.Value...)
}

// decode reads what a peer sent, who may send anything.
func decode(b []byte) (packet, error) {
	if len(b) < headerSize {
		return packet{}, fmt.Errorf("%w: a packet of %d bytes, the header has %d", errProtocol, len(b), headerSize)
	}
	nameLen := int(binary.LittleEndian.Uint16(b[10:]))
	valueLen := int(binary.LittleEndian.Uint32(b[12:]))
	rest := b[headerSize:]
	if nameLen > MaxName || valueLen > MaxValue || nameLen+valueLen != len(rest) {
		return packet{}, fmt.Errorf("%w: lengths %d and %d in a packet with %d bytes for both", errProtocol, nameLen, valueLen, len(rest))
	}
	p := packet{
		id:  binary.LittleEndian.Uint64(b),
		op:  op(b[8]),
		arg: b[9],
		entry: Entry{
			Name:     string(rest[:nameLen]),
			Revision: binary.LittleEndian.Uint64(b[16:]),
			UID:      binary.LittleEndian.Uint32(b[24:]),
			PID:      binary.LittleEndian.Uint32(b[28:]),
		},
	}
	if valueLen > 0 {
		p.entry.Value = append([]byte(nil), rest[nameLen:]...)
	}
	return p, nil
}

// checkRequest says what a request has that it must not have.
func (p *packet) checkRequest() error {
	e := &p.entry
	if p.op < opHello || p.op > opYield {
		return fmt.Errorf("%w: request %#x is unknown", errProtocol, uint8(p.op))
	}
	if e.UID != 0 || e.PID != 0 || e.Revision != 0 && p.op != opHello && p.op != opCancel {
		return fmt.Errorf("%w: request %d says what only answers say", errProtocol, p.op)
	}
	if len(e.Value) > 0 && p.op != opSet {
		return fmt.Errorf("%w: request %d with a value", errProtocol, p.op)
	}
	if p.arg != 0 && (p.op != opSet || Flags(p.arg)&^allFlags != 0) {
		return fmt.Errorf("%w: request %d with flags %#x", errProtocol, p.op, p.arg)
	}
	if e.Name != "" && (p.op == opHello || p.op == opCancel || p.op == opYield) {
		return fmt.Errorf("%w: request %d with a name", errProtocol, p.op)
	}
	return nil
}

func failure(id uint64, err error) packet {
	words := err.Error()
	if len(words) > MaxValue {
		words = words[:MaxValue]
	}
	return packet{id: id, op: opError, arg: uint8(codeOf(err)), entry: Entry{Value: []byte(words)}}
}

// err is the error in an answer of kind opError.
func (p *packet) err() error {
	kind, ok := codes[code(p.arg)]
	if !ok {
		kind = errProtocol
	}
	return &remoteError{words: string(p.entry.Value), kind: kind}
}
