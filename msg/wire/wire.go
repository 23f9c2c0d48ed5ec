// Package wire is what the generated packages encode and decode messages of
// changing length with. Messages whose fields all have one length do not need
// it.
//
// A Reader takes a body apart from front to back. It does not trust the body:
// each length is loaded once, and compared with the interface's limit and with
// what is left before anything is allocated. The first mistake is kept and makes
// all that follows read as zero, so that a decoder need look only at the end.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"hardtack/msg"
)

// Errval is an error's number, as in Barrelfish; 0 says that all went well.
type Errval uint32

// Iref is a reference to an interface that somebody exports.
type Iref uint64

// ErrNil says that a message to send was nil.
var ErrNil = errors.New("msg: no message")

// BadValue is what is wrong with a body of the right length whose fields cannot
// all have their values.
const BadValue = "a value that its type does not have"

// TooLarge is the error for a message that has a length over its limit.
func TooLarge(name string) error {
	return fmt.Errorf("%w: a length in %s is over its limit", msg.ErrTooLarge, name)
}

// Reader decodes one body.
type Reader struct {
	b    []byte
	caps []msg.Cap // not taken yet
	bad  string    // the first mistake
	show bool      // for people only: the caps did not come
}

// NewReader reads body, with which caps came.
func NewReader(body []byte, caps []msg.Cap) Reader { return Reader{b: body, caps: caps} }

// NewFormatReader reads body for people; what its caps are is not known.
func NewFormatReader(body []byte) Reader { return Reader{b: body, show: true} }

// Done is the mistake, if there was one: anything left over is one too.
func (r *Reader) Done(name string) error {
	switch {
	case r.bad != "":
	case len(r.b) > 0:
		r.bad = fmt.Sprintf("%d bytes left over", len(r.b))
	case len(r.caps) > 0:
		r.bad = fmt.Sprintf("%d caps left over", len(r.caps))
	default:
		return nil
	}
	return msg.BadBody(name, r.bad)
}

// Fail keeps a mistake, if it is the first.
func (r *Reader) Fail(bad string) {
	if r.bad == "" {
		r.bad = bad
	}
	r.b = nil
}

// Take takes n bytes, in place; nil if there are fewer.
func (r *Reader) Take(n int) []byte {
	if len(r.b) < n {
		r.Fail("too short")
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// Uint8 takes a byte.
func (r *Reader) Uint8() uint8 {
	if len(r.b) < 1 {
		r.Fail("too short")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// Uint16 takes two bytes.
func (r *Reader) Uint16() uint16 {
	if len(r.b) < 2 {
		r.Fail("too short")
		return 0
	}
	v := binary.LittleEndian.Uint16(r.b)
	r.b = r.b[2:]
	return v
}

// Uint32 takes four bytes.
func (r *Reader) Uint32() uint32 {
	if len(r.b) < 4 {
		r.Fail("too short")
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// Uint64 takes eight bytes.
func (r *Reader) Uint64() uint64 {
	if len(r.b) < 8 {
		r.Fail("too short")
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// Bool takes a byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	v := r.Uint8()
	if v > 1 {
		r.Fail("a bool that is neither 0 nor 1")
	}
	return v == 1
}

// Enum takes four bytes that must be below n.
func (r *Reader) Enum(n uint32) uint32 {
	v := r.Uint32()
	if v >= n {
		r.Fail(fmt.Sprintf("the value %d of an enumeration of %d", v, n))
		return 0
	}
	return v
}

// Count takes a length: at most limit elements of at least each bytes.
func (r *Reader) Count(limit, each int) int {
	n := r.Uint32()
	switch {
	case uint64(n) > uint64(limit):
		r.Fail(fmt.Sprintf("a length of %d, the limit is %d", n, limit))
	case uint64(n)*uint64(each) > uint64(len(r.b)):
		r.Fail(fmt.Sprintf("a length of %d with %d bytes left", n, len(r.b)))
	default:
		return int(n)
	}
	return 0
}

// Bytes takes a length of at most limit and as many bytes, in place.
func (r *Reader) Bytes(limit int) []byte { return r.Take(r.Count(limit, 1)) }

// Text takes the same as a string of its own.
func (r *Reader) Text(limit int) string { return string(r.Bytes(limit)) }

// Cap takes a byte and what came for it: a message's caps come one for each
// field, those with nothing in them too, or not at all if all are so.
func (r *Reader) Cap() msg.Cap {
	kind := r.Uint8()
	var c msg.Cap
	if len(r.caps) > 0 {
		c, r.caps = r.caps[0], r.caps[1:]
	}
	if c.Kind() != kind && !r.show {
		r.Fail(fmt.Sprintf("a cap of kind %d where kind %d came", kind, c.Kind()))
		return msg.Cap{}
	}
	return c
}

// Resize returns a slice of n elements, s if it has the room.
func Resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}
