package msg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// What the byte of a cap field says.
const (
	CapNone = iota // nothing
	CapFile        // a file descriptor
	CapEnd         // an end of a connection
)

// Cap is the value of a cap field: a file, a channel end, or nothing. Sending
// one leaves the file open; a channel end is moved: it can no longer be used
// here. A received one is the receiver's to close;
// a file that was received is called by the field of the message that it came in.
type Cap struct {
	File *os.File
	End  *End
}

// Kind is CapNone, CapFile or CapEnd.
func (c Cap) Kind() byte {
	switch {
	case c.End != nil:
		return CapEnd
	case c.File != nil:
		return CapFile
	}
	return CapNone
}

// Close closes what the cap holds.
func (c Cap) Close() error {
	switch c.Kind() {
	case CapFile:
		return c.File.Close()
	case CapEnd:
		return c.End.Close()
	}
	return nil
}

// CloseCaps closes what caps hold. An end that was sent is closed already.
func CloseCaps(caps []Cap) { closeAll(caps) }

// A caps frame is the kind, the number of caps, the 64-bit number of the
// message, and for each cap its kind, how many files are its, and the 16-bit
// length of its state and the state, which a file has none of.

func capsFrame(seq uint64, caps []Cap) (frame []byte, files []*os.File, err error) {
	if len(caps) > MaxCaps {
		return nil, nil, fmt.Errorf("%w: %d caps, the limit is %d", ErrTooLarge, len(caps), MaxCaps)
	}
	frame = binary.LittleEndian.AppendUint64([]byte{frameCaps, byte(len(caps))}, seq)
	for _, k := range caps {
		var state []byte
		own := 0
		switch k.Kind() {
		case CapFile:
			files, own = append(files, k.File), 1
		case CapEnd:
			if k.End.files == nil {
				return nil, nil, errors.New("msg: the channel end was sent before")
			}
			state, own = k.End.marshal(), len(k.End.files)
			files = append(files, k.End.files...)
		}
		frame = append(frame, k.Kind(), byte(own))
		frame = binary.LittleEndian.AppendUint16(frame, uint16(len(state)))
		frame = append(frame, state...)
	}
	return frame, files, nil
}

// parseCaps takes a frame apart. Without an error the files belong to the caps.
func parseCaps(b []byte, files []*os.File) (seq uint64, caps []Cap, err error) {
	if len(b) < 10 || b[1] > MaxCaps {
		return 0, nil, errShort
	}
	n := int(b[1])
	seq, b = binary.LittleEndian.Uint64(b[2:]), b[10:]
	for range n {
		if len(b) < 4 {
			return 0, nil, errShort
		}
		kind, own, state := b[0], int(b[1]), int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; state > len(b) || own > len(files) {
			return 0, nil, errShort
		}
		var k Cap
		switch {
		case kind == CapNone && own == 0 && state == 0:
		case kind == CapFile && own == 1 && state == 0:
			k.File = files[0]
		case kind == CapEnd && own > 0:
			if k.End, err = unmarshalEnd(b[:state], files[:own]); err != nil {
				return 0, nil, err
			}
		default:
			return 0, nil, fmt.Errorf("a cap of kind %d with %d files", kind, own)
		}
		caps, b, files = append(caps, k), b[state:], files[own:]
	}
	if len(b) > 0 || len(files) > 0 {
		return 0, nil, errors.New("more than its caps")
	}
	return seq, caps, nil
}
