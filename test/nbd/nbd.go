// Package nbd serves disks in memory to QEMU by the NBD protocol, and fails what it is
// told to fail: a program in the guest writes commands to a second, tiny disk, so that
// errors begin and end between two of its system calls.
//
// Exports: "data", the disk, and "control", which begins with ControlMagic; what is
// written at its beginning is a command, a line of text:
//
//	ok         all is well again
//	read       reads fail (EIO), as below
//	write      writes fail
//	flush      flushes fail
//	all        all of them fail: the disk is gone
//	data       writes fail that contain a block of 512 bytes that begins with Bad
//	slow N     each request of the disk takes N milliseconds
//	some N     one request in N fails, whichever it is
//	sectors A B  requests fail that touch a sector from A up to B
//	gone       the connections of the disk end, and there will be no other
//
// A third, "notes", takes what a program does to a disk whose every write is recorded:
// see record.go.
//
// What is written to the control disk from NotesAt on is the program's report: consoles
// mix programs' lines with the kernel's.
//
// The protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md,
// fixed newstyle negotiation with NBD_OPT_GO, simple replies.
package nbd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// ControlMagic is how the control disk begins.
const ControlMagic = "fault control\n"

// Bad is how a block begins that cannot be written while data errors are on.
const Bad = "BAD BLOCK"

// NotesAt is where the report begins.
const NotesAt = 4096

const controlSize = 64 << 10

// Server is a disk with its faults.
type Server struct {
	listener net.Listener
	working  sync.WaitGroup

	mu       sync.Mutex
	data     []byte                      // guarded by mu; the disk
	conns    map[net.Conn]bool           // guarded by mu
	mode     string                      // guarded by mu; the last command
	slow     time.Duration               // guarded by mu
	failures int                         // guarded by mu
	every    int                         // guarded by mu; one request in so many fails
	bad      [2]uint64                   // guarded by mu; the sectors that fail
	rng      *rand.Rand                  // guarded by mu
	record   bool                        // guarded by mu
	events   []Event                     // guarded by mu
	notes    [controlSize - NotesAt]byte // guarded by mu
}

// Listen serves data on a Unix socket until Close.
func Listen(path string, data []byte) (*Server, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, data: data, mode: "ok", conns: map[net.Conn]bool{}, rng: rand.New(rand.NewPCG(1, 2))}
	s.working.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.working.Go(func() {
				_ = s.serve(c) // it ends when QEMU does
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			})
		}
	})
	return s, nil
}

// Close ends the service; the disk's content is the caller's again.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.working.Wait()
}

// Failures is how many requests failed on command.
func (s *Server) Failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// Notes is the program's report: text up to the first zero.
func (s *Server) Notes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _, _ := bytes.Cut(s.notes[:], []byte{0})
	return string(text)
}

// Negotiation.
const (
	magicServer = 0x4e42444d41474943 // NBDMAGIC
	magicOption = 0x49484156454f5054 // IHAVEOPT
	magicReply  = 0x3e889045565a9

	optExportName = 1
	optAbort      = 2
	optGo         = 7
	repAck        = 1
	repInfo       = 3
	repUnknown    = 1<<31 + 6
	repUnsup      = 1<<31 + 1

	fixedNewstyle = 1
	noZeroes      = 2
	hasFlags      = 1
	sendFlush     = 4

	maxOption = 64 << 10
)

// put writes numbers in network order, and bytes.
func put(w io.Writer, values ...any) error {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.BigEndian, v); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// serve is one connection.
func (s *Server) serve(c net.Conn) error {
	if err := put(c, uint64(magicServer), uint64(magicOption), uint16(fixedNewstyle|noZeroes)); err != nil {
		return err
	}
	var flags uint32
	if err := binary.Read(c, binary.BigEndian, &flags); err != nil {
		return err
	}
	for {
		var o struct {
			Magic    uint64
			Opt, Len uint32
		}
		if err := binary.Read(c, binary.BigEndian, &o); err != nil {
			return err
		}
		if o.Magic != magicOption || o.Len > maxOption {
			return fmt.Errorf("an option with magic %#x, %d bytes", o.Magic, o.Len)
		}
		b := make([]byte, o.Len)
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		reply := func(kind uint32, data []byte) error {
			return put(c, uint64(magicReply), o.Opt, kind, uint32(len(data)), data)
		}
		switch o.Opt {
		case optGo:
			if len(b) < 6 || uint32(len(b)) < 6+binary.BigEndian.Uint32(b) {
				return fmt.Errorf("NBD_OPT_GO of %d bytes", len(b))
			}
			name := string(b[4 : 4+binary.BigEndian.Uint32(b)])
			size := uint64(len(s.data))
			switch name {
			case "data":
			case "control":
				size = controlSize
			case "notes":
				size = notesSize
			default:
				if err := reply(repUnknown, nil); err != nil {
					return err
				}
				continue
			}
			var info bytes.Buffer
			_ = put(&info, uint16(0), size, uint16(hasFlags|sendFlush)) // to memory
			if err := reply(repInfo, info.Bytes()); err != nil {
				return err
			}
			if err := reply(repAck, nil); err != nil {
				return err
			}
			return s.transmit(c, map[string]export{"data": s.disk, "control": s.control, "notes": s.note}[name], size)
		case optAbort:
			return reply(repAck, nil)
		case optExportName: // has no answer but an end
			return fmt.Errorf("NBD_OPT_EXPORT_NAME")
		default:
			if err := reply(repUnsup, nil); err != nil {
				return err
			}
		}
	}
}

// Transmission.
const (
	magicRequest = 0x25609513
	magicSimple  = 0x67446698

	cmdRead  = 0
	cmdWrite = 1
	cmdDisc  = 2
	cmdFlush = 3

	errIO    = 5
	errInval = 22
	errGone  = 1 << 31 // no answer

	maxRequest = 64 << 20
)

// export executes a request and returns its error.
type export func(kind uint16, off uint64, b []byte) uint32

// transmit answers requests one after another.
func (s *Server) transmit(c net.Conn, do export, size uint64) error {
	for {
		var r struct {
			Magic          uint32
			Flags, Type    uint16
			Handle, Offset uint64
			Len            uint32
		}
		if err := binary.Read(c, binary.BigEndian, &r); err != nil {
			return err
		}
		if r.Magic != magicRequest || r.Len > maxRequest {
			return fmt.Errorf("a request with magic %#x, %d bytes", r.Magic, r.Len)
		}
		if r.Type == cmdDisc {
			return nil
		}
		var b []byte
		if r.Type <= cmdWrite {
			b = make([]byte, r.Len)
		}
		if r.Type == cmdWrite {
			if _, err := io.ReadFull(c, b); err != nil {
				return err
			}
		}
		code := uint32(errInval)
		if r.Type == cmdFlush || r.Type <= cmdWrite && r.Offset <= size && uint64(r.Len) <= size-r.Offset {
			code = do(r.Type, r.Offset, b)
		}
		if code == errGone {
			return nil
		}
		if r.Type != cmdRead || code != 0 {
			b = nil
		}
		if err := put(c, uint32(magicSimple), code, r.Handle, b); err != nil {
			return err
		}
	}
}

// control executes a request of the control disk.
func (s *Server) control(kind uint16, off uint64, b []byte) uint32 {
	switch {
	case kind == cmdRead && off < uint64(len(ControlMagic)):
		copy(b, ControlMagic[off:])
	case kind == cmdWrite && off >= NotesAt:
		s.mu.Lock()
		defer s.mu.Unlock()
		copy(s.notes[off-NotesAt:], b)
	case kind == cmdWrite && off == 0:
		line, _, ok := bytes.Cut(b, []byte("\n"))
		s.mu.Lock()
		defer s.mu.Unlock()
		if !ok || !s.command(string(line)) {
			return errInval
		}
	}
	return 0
}

// disk executes a request of the disk.
func (s *Server) disk(kind uint16, off uint64, b []byte) uint32 {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == "gone" {
		return errGone
	}
	if s.fails(kind, off, b) {
		s.failures++
		return errIO
	}
	switch kind {
	case cmdRead:
		copy(b, s.data[off:])
	case cmdWrite:
		copy(s.data[off:], b)
	}
	s.keep(kind, off, b)
	return 0
}
