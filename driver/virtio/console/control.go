package console

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ControlPort is the name of the port that the host's command line talks to the
// kernel on. Both sides send lines:
//
//	host:   winsize ROWS COLS   the terminal's size, at the start and when it changes
//	        eof                 the console's input has ended
//	        signal NAME         a signal for process 1 (TERM, INT …, or a number)
//	        freeze              keep all programs out of user mode
//	        thaw                let them go on
//	        renew SEED NS NAME MAC
//	                            this machine is a copy now: let programs go on as another
//	                            one, with 64 bytes of entropy in hexadecimal, the time,
//	                            a host name and the address of its network card
//	kernel: ready               the console reads its input
//	        frozen              no program runs
//	        exit STATUS         process 1 has ended; the machine goes off
//	        panic TEXT          the kernel has given up
//	        cover KIND BASE64   part of what a kernel built with --cover has counted:
//	                            KIND is meta or counters
//	        cover end           that was all of it
const ControlPort = "hardtack.control"

// SeedBytes is how much entropy a copy of a machine is given.
const SeedBytes = 64

// lineMax bounds a line; longer ones are dropped whole.
const lineMax = 1024

// Control is the kernel's end of the control channel.
type Control struct {
	// What the host's lines cause; called one at a time. Nil ones are ignored.
	WinSize func(rows, cols uint16)
	EOF     func()
	Signal  func(name string)
	Freeze  func(on bool)
	Renew   func(seed []byte, now int64, name string, mac [6]byte)

	port *Port  // set by Attach
	line []byte // the receiver's; the beginning of a line
	long bool   // the receiver's; the line is too long
}

// Attach connects the channel to its port.
func (c *Control) Attach(d *Device) { c.port = d.Port(ControlPort) }

// Receive takes bytes from the host.
func (c *Control) Receive(b []byte) {
	for {
		part, rest, end := bytes.Cut(b, []byte("\n"))
		if c.long = c.long || len(c.line)+len(part) > lineMax; !c.long {
			c.line = append(c.line, part...)
		}
		if !end {
			return
		}
		if !c.long {
			c.hear(strings.Fields(string(c.line)))
		}
		c.line, c.long = c.line[:0], false
		b = rest
	}
}

func (c *Control) hear(words []string) {
	switch {
	case len(words) == 3 && words[0] == "winsize" && c.WinSize != nil:
		rows, err1 := strconv.ParseUint(words[1], 10, 16)
		cols, err2 := strconv.ParseUint(words[2], 10, 16)
		if err1 == nil && err2 == nil {
			c.WinSize(uint16(rows), uint16(cols))
		}
	case len(words) == 1 && words[0] == "eof" && c.EOF != nil:
		c.EOF()
	case len(words) == 2 && words[0] == "signal" && c.Signal != nil:
		c.Signal(words[1])
	case len(words) == 1 && (words[0] == "freeze" || words[0] == "thaw") && c.Freeze != nil:
		c.Freeze(words[0] == "freeze")
	case len(words) == 5 && words[0] == "renew" && c.Renew != nil:
		seed, err1 := hex.DecodeString(words[1])
		now, err2 := strconv.ParseInt(words[2], 10, 64)
		mac, err3 := hex.DecodeString(words[4])
		if err1 == nil && err2 == nil && err3 == nil && len(seed) == SeedBytes && len(mac) == 6 {
			c.Renew(seed, now, words[3], [6]byte(mac))
		}
	}
}

// Frozen tells the host that no program runs.
func (c *Control) Frozen() error { return c.say("frozen\n") }

// Ready tells the host that the console reads its input.
func (c *Control) Ready() error { return c.say("ready\n") }

// Exit tells the host how process 1 ended, and waits until it knows.
func (c *Control) Exit(status uint8) error {
	if err := c.say(fmt.Sprintf("exit %d\n", status)); err != nil {
		return err
	}
	return c.port.Drain(time.Second)
}

// Cover gives the host the files that Go's coverage tools read.
func (c *Control) Cover(meta, counters []byte) error {
	const part = 24 << 10
	for _, f := range []struct {
		kind string
		data []byte
	}{{"meta", meta}, {"counters", counters}} {
		for b := range slices.Chunk(f.data, part) {
			if err := c.say("cover " + f.kind + " " + base64.StdEncoding.EncodeToString(b) + "\n"); err != nil {
				return err
			}
		}
	}
	return c.say("cover end\n")
}

func (c *Control) say(line string) error {
	if c == nil || c.port == nil {
		return errGone
	}
	_, err := c.port.Write([]byte(line))
	return err
}
