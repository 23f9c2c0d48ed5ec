package nbd

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// client is QEMU's side of an export.
type client struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, path, export string) *client {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	x := &client{t, c}
	if b := x.read(18); string(b[:16]) != "NBDMAGICIHAVEOPT" {
		t.Fatalf("greeting %q", b)
	}
	x.send(uint32(3))
	x.send(uint64(magicOption), uint32(5), uint32(3), []byte("xyz")) // something it does not know
	if kind, _ := x.reply(); kind != repUnsup {
		t.Fatalf("an unknown option: %#x", kind)
	}
	x.send(uint64(magicOption), uint32(optGo), uint32(6+len(export)), uint32(len(export)), []byte(export), uint16(0))
	for kind := uint32(0); kind != repAck; {
		var data []byte
		switch kind, data = x.reply(); kind {
		case repInfo:
			if len(data) != 12 || binary.BigEndian.Uint16(data[10:]) != hasFlags|sendFlush {
				t.Fatalf("info %x", data)
			}
		case repAck:
		default:
			return nil
		}
	}
	return x
}

func (c *client) send(values ...any) {
	c.t.Helper()
	if err := put(c, values...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read(n int) []byte {
	c.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *client) reply() (kind uint32, data []byte) {
	h := c.read(20)
	if binary.BigEndian.Uint64(h) != magicReply {
		c.t.Fatalf("reply %x", h)
	}
	return binary.BigEndian.Uint32(h[12:]), c.read(int(binary.BigEndian.Uint32(h[16:])))
}

// do sends a request; n is the length of a read, data that of a write.
func (c *client) do(kind uint16, off uint64, n int, data []byte) (code uint32, got []byte) {
	c.t.Helper()
	c.send(uint32(magicRequest), uint16(0), kind, uint64(0x1234), off, uint32(max(n, len(data))), data)
	h := c.read(16)
	if binary.BigEndian.Uint32(h) != magicSimple || binary.BigEndian.Uint64(h[8:]) != 0x1234 {
		c.t.Fatalf("answer %x", h)
	}
	if code = binary.BigEndian.Uint32(h[4:]); code == 0 {
		got = c.read(n)
	}
	return code, got
}

// TestFaults: commands make the requests fail that they name, and no others.
func TestFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	data := make([]byte, 1<<20)
	s, err := Listen(path, data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if dial(t, path, "other") != nil {
		t.Error("there is another export")
	}
	d, control := dial(t, path, "data"), dial(t, path, "control")
	if _, b := control.do(cmdRead, 0, 512, nil); !bytes.HasPrefix(b, []byte(ControlMagic)) {
		t.Errorf("the control disk begins with %q", b[:16])
	}
	good, bad := bytes.Repeat([]byte("good"), 256), make([]byte, 1024)
	copy(bad[512:], Bad)
	for _, c := range []struct {
		command                 string
		read, write, bad, flush uint32
	}{
		{"ok", 0, 0, 0, 0}, {"read", errIO, 0, 0, 0}, {"write", 0, errIO, errIO, 0}, {"flush", 0, 0, 0, errIO},
		{"data", 0, 0, errIO, 0}, {"all", errIO, errIO, errIO, errIO}, {"slow 1", 0, 0, 0, 0},
		{"sectors 9 10", errIO, errIO, errIO, 0}, {"sectors 10 11", 0, 0, 0, 0}, {"sectors 0 8", 0, 0, 0, 0}, {"some 1", errIO, errIO, errIO, errIO},
		{"ok", 0, 0, 0, 0},
	} {
		block := make([]byte, 512)
		copy(block, c.command+"\n")
		if code, _ := control.do(cmdWrite, 0, 0, block); code != 0 {
			t.Fatalf("%s: %d", c.command, code)
		}
		if code, _ := d.do(cmdWrite, 4096, 0, bad); code != c.bad {
			t.Errorf("%s: a bad block: %d", c.command, code)
		}
		if code, _ := d.do(cmdWrite, 4096, 0, good); code != c.write {
			t.Errorf("%s: write: %d", c.command, code)
		}
		code, b := d.do(cmdRead, 4096, 1024, nil)
		if code != c.read || code == 0 && !bytes.Equal(b, good) {
			t.Errorf("%s: read: %d", c.command, code)
		}
		if code, _ := d.do(cmdFlush, 0, 0, nil); code != c.flush {
			t.Errorf("%s: flush: %d", c.command, code)
		}
	}
	if code, _ := control.do(cmdWrite, NotesAt, 0, []byte("a report\x00")); code != 0 || s.Notes() != "a report" {
		t.Errorf("the report: %d, %q", code, s.Notes())
	}
	if s.Failures() != 16 {
		t.Errorf("%d failures", s.Failures())
	}
	if code, _ := control.do(cmdWrite, 0, 0, []byte("nonsense\n")); code != errInval {
		t.Errorf("an unknown command: %d", code)
	}
	if code, _ := d.do(cmdRead, 1<<20-512, 1024, nil); code != errInval {
		t.Errorf("beyond the end: %d", code)
	}
	if code, _ := control.do(cmdWrite, 0, 0, []byte("gone\n")); code != 0 {
		t.Fatalf("gone: %d", code)
	}
	d.send(uint32(magicRequest), uint16(0), uint16(cmdRead), uint64(1), uint64(0), uint32(512))
	if n, err := d.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a disk that is gone answered %d bytes, %v", n, err)
	}
}

// TestCut: what was flushed is there, of the rest whole sectors or nothing, and no note.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s, err := Listen(path, make([]byte, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Record()
	d, notes := dial(t, path, "data"), dial(t, path, "notes")
	sectors := func(b byte) []byte { return bytes.Repeat([]byte{b}, 4096) }
	notes.do(cmdWrite, 4096, 0, sectors('n'))
	d.do(cmdWrite, 0, 0, sectors('a'))
	d.do(cmdFlush, 0, 0, nil)
	d.do(cmdWrite, 0, 0, sectors('b'))
	d.do(cmdWrite, 8192, 0, sectors('c'))
	events := s.Events()
	if len(events) != 5 || !events[0].Note || len(events[0].Data) != noteSize || !events[2].Flush {
		t.Fatalf("%d events: %v", len(events), events)
	}
	seen := map[string]int{}
	for seed := range uint64(300) {
		disk := NewCutter(make([]byte, 64<<10), events, seed).Cut(len(events))
		var state []byte
		for i := 0; i < 24; i++ {
			sector := disk[i*512:][:512]
			if !bytes.Equal(sector, bytes.Repeat(sector[:1], 512)) {
				t.Fatal("half a sector")
			}
			state = append(state, sector[0])
		}
		if bytes.ContainsAny(state[:8], "\x00cn") || bytes.ContainsAny(state[8:], "abn") {
			t.Fatalf("seed %d: %q", seed, state)
		}
		seen[string(state)]++
	}
	if len(seen) < 20 {
		t.Errorf("only %d states", len(seen))
	}
}
