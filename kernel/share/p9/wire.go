package p9

import "encoding/binary"

// Types of requests in 9P2000.L; a reply's is one more. Of 9P2000 there are version,
// attach, flush, walk, read, write and clunk.
const (
	rlerror      = 7
	tstatfs      = 8
	tlopen       = 12
	tlcreate     = 14
	tsymlink     = 16
	tmknod       = 18
	treadlink    = 22
	tgetattr     = 24
	tsetattr     = 26
	txattrwalk   = 30
	txattrcreate = 32
	treaddir     = 40
	tfsync       = 50
	tlink        = 70
	tmkdir       = 72
	trenameat    = 74
	tunlinkat    = 76
	tversion     = 100
	tattach      = 104
	tflush       = 108
	twalk        = 110
	tread        = 116
	twrite       = 118
	tclunk       = 120
)

const (
	headerSize = 7 // size[4] type[1] tag[2]
	qidSize    = 13
	// overhead is what a message needs beside the data of a read or a write.
	overhead = 24
	noTag    = 1<<16 - 1
	// NoFID is the number that no file has.
	NoFID = 1<<32 - 1
)

var le = binary.LittleEndian

// encoder writes a request. What does not fit is left out, and full is set.
type encoder struct {
	b    []byte
	n    int
	full bool
}

// room returns the next n bytes, nil where they do not fit.
func (e *encoder) room(n int) []byte {
	if n > len(e.b)-e.n {
		e.full = true
		return nil
	}
	e.n += n
	return e.b[e.n-n : e.n]
}

func (e *encoder) u8(v uint8) {
	if b := e.room(1); b != nil {
		b[0] = v
	}
}

func (e *encoder) u16(v uint16) {
	if b := e.room(2); b != nil {
		le.PutUint16(b, v)
	}
}

func (e *encoder) u32(v uint32) {
	if b := e.room(4); b != nil {
		le.PutUint32(b, v)
	}
}

func (e *encoder) u64(v uint64) {
	if b := e.room(8); b != nil {
		le.PutUint64(b, v)
	}
}

func (e *encoder) str(s string) {
	if len(s) > 1<<16-1 {
		e.full = true
		return
	}
	e.u16(uint16(len(s)))
	copy(e.room(len(s)), s)
}

// decoder reads a reply. After the first thing that is not there all others are zero, and
// bad is set.
type decoder struct {
	b    []byte
	bad  bool
	lost bool // there is no reply, and one may come
}

// take returns the next n bytes, nil where there are fewer.
func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) u8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if b := d.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// str reads a text of at most a length.
func (d *decoder) str(most int) string {
	n := int(d.u16())
	if n > most {
		d.bad = true
	}
	return string(d.take(n)) //maxlive:len 4096 because no text of the protocol may be longer
}

// QID is what a server knows a file by.
type QID struct {
	Type    uint8
	Version uint32
	Path    uint64
}

func (d *decoder) qid() QID { return QID{d.u8(), d.u32(), d.u64()} }
