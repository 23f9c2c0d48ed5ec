package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	ourISN  = 0xfffffc00 // numbers wrap soon
	patient = 10 * time.Second
)

// peer is a connection that a script plays.
type peer struct {
	c             *cable
	address       [4]byte
	local, remote uint16
	next          uint32 // of ours
	known         bool   // the guest's numbers
	isn, theirs   uint32 // the guest's first, and the next that we expect
	sentTS, hadTS bool   // whose SYN had timestamps
	clock, echo   uint32
	window        uint16
	left          int // of the guest's window when it was last said, in bytes
	scale         int
	lastAck       uint32
	heard         []heard
	trace         strings.Builder
}

type heard struct {
	segment
	tos byte
}

// take keeps a segment of the guest's.
func (p *peer) take(tos byte, to [4]byte, b []byte) {
	if to != p.address || be.Uint16(b[2:]) != p.local || p.remote != 0 && be.Uint16(b) != p.remote {
		return
	}
	s, ok := parseSegment(b)
	if !ok {
		fmt.Fprintf(&p.trace, "< malformed % x\n", b)
		return
	}
	p.remote = be.Uint16(b)
	p.heard = append(p.heard, heard{s, tos})
}

// run plays a script and returns its trace: the script's lines with what came after each.
func run(c *cable, port uint16, script string) (string, error) {
	p := &peer{c: c, address: ourIP, local: port, remote: port, next: ourISN, clock: 1000, window: 65535}
	c.segments = p.take
	defer func() { c.segments = nil }()
	for number, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fmt.Fprintf(&p.trace, "%s\n", line)
		if err := p.line(strings.ReplaceAll(line, "PORT", strconv.Itoa(int(port)))); err != nil {
			return p.trace.String(), fmt.Errorf("line %d, %s: %w", number+1, line, err)
		}
	}
	_, err := c.ask(patient, "reset")
	if err == nil {
		err = c.fence(patient)
	}
	return p.trace.String(), err
}

func (p *peer) line(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case ">":
		return p.send(strings.Fields(rest))
	case "<": // so many segments, and no matter when
		n := 1
		if rest != "" {
			n, _ = strconv.Atoi(rest)
		}
		for range n {
			if err := p.expect(); err != nil {
				return err
			}
		}
	case "acked": // acknowledgements, until the last byte that we sent
		return p.acknowledged()
	case "fence", "pause": // what comes until the guest has seen all; and in so many milliseconds
		if verb == "pause" {
			ms, err := strconv.Atoi(rest)
			if err != nil {
				return err
			}
			if err := p.c.until(time.Duration(ms)*time.Millisecond, func() bool { return false }); !errors.Is(err, errQuiet) {
				return err
			}
		}
		if err := p.c.fence(patient); err != nil {
			return err
		}
		p.show(len(p.heard))
	case ":":
		answer, err := p.c.ask(patient, rest)
		fmt.Fprintf(&p.trace, "  = %s\n", answer)
		return err
	case "open": // the guest accepts one; the words are our SYN's options
		if rest == "" {
			rest = "mss=1460 sack ts ws=7"
		}
		for _, l := range []string{fmt.Sprintf(": listen 1 %d", p.remote), "> S " + rest, "<", "> A", ": accept 0 1"} {
			if err := p.line(l); err != nil {
				return err
			}
		}
	case "dial": // the guest opens a connection
		p.remote = 0
		answer, err := p.c.ask(patient, fmt.Sprintf("dial 0 %d", p.local))
		fmt.Fprintf(&p.trace, "  = %s\n", answer)
		return err
	case "other": // another connection, to the same port of the guest's
		p.local++
		p.next, p.known, p.sentTS, p.hadTS, p.heard, p.scale = ourISN, false, false, false, nil, 0
	case "again": // the same one, from the start
		p.next, p.known, p.sentTS, p.hadTS, p.heard, p.scale = 1<<20, false, false, false, nil, 0
		if n, err := strconv.Atoi(rest); err == nil {
			p.next = ourISN + uint32(n)
		}
	case "fill": // segments of so many bytes until the guest's window is shut
		return p.fill(rest)
	default:
		return fmt.Errorf("no verb %s", verb)
	}
	return nil
}

// expect shows one segment.
func (p *peer) expect() error {
	err := p.c.until(patient, func() bool { return len(p.heard) > 0 })
	if errors.Is(err, errQuiet) {
		p.trace.WriteString("  < nothing\n")
		return nil
	}
	if err == nil {
		p.show(1)
	}
	return err
}

// acknowledged waits for all that we sent to be acknowledged, and shows whether it was and
// what came beside bare acknowledgements.
func (p *peer) acknowledged() error {
	for p.lastAck != p.next {
		err := p.c.until(patient, func() bool { return len(p.heard) > 0 })
		if errors.Is(err, errQuiet) {
			fmt.Fprintf(&p.trace, "  < only %d were acknowledged\n", p.lastAck-ourISN)
			return nil
		}
		if err != nil {
			return err
		}
		h := p.heard[0]
		if h.flags&^flagPSH == flagACK && len(h.data) == 0 {
			p.note(h)
			p.heard = p.heard[1:]
		} else {
			p.show(1)
		}
	}
	fmt.Fprintf(&p.trace, "  < all %d acknowledged\n", p.lastAck-ourISN)
	return nil
}

// send builds a segment from its words.
func (p *peer) send(words []string) error {
	if len(words) == 0 {
		return errors.New("flags are missing")
	}
	flags, err := flagsOf(words[0])
	if err != nil {
		return err
	}
	p.clock++
	s := segment{flags: flags, seq: p.next, ack: p.theirs, window: p.window}
	if flags&flagACK == 0 {
		s.ack = 0
	}
	moves, bad, tos, noTS, spoil := true, false, 0, false, 0
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "seq": // from our first number; with a sign from the next
			moves = false
			s.seq = ourISN + uint32(n)
			if value[0] == '+' || value[0] == '-' {
				s.seq = p.next + uint32(n)
			}
		case "ack":
			s.ack = p.isn + uint32(n)
			if value[0] == '+' || value[0] == '-' {
				s.ack = p.theirs + uint32(n)
			}
		case "len":
			s.data = make([]byte, n)
			for i := range s.data {
				s.data[i] = byte('a' + (int(s.seq-ourISN)+i)%26)
			}
		case "text":
			s.data = []byte(value)
		case "win":
			s.window = uint16(n)
		case "urg":
			s.urgent = uint16(n)
		case "sum":
			bad = true
		case "tos":
			tos = n
		case "nots":
			noTS = true
		case "offset": // the header's length in words
			spoil = n
		case "block": // a SACK block, in the guest's numbers
			var from, to uint32
			if _, err := fmt.Sscanf(value, "%d-%d", &from, &to); err != nil {
				return err
			}
			s.options = append(s.options, 5, 10)
			s.options = be.AppendUint32(s.options, p.isn+from)
			s.options = be.AppendUint32(s.options, p.isn+to)
		default:
			if key == "ts" {
				noTS = true
				p.sentTS = p.sentTS || flags&flagSYN != 0
			}
			if known, err := s.setOption(key, value, p.clock, p.echo); err != nil || !known {
				return fmt.Errorf("word %s: %w", w, err)
			}
		}
	}
	if p.sentTS && p.hadTS && !noTS && flags&flagSYN == 0 {
		s.setOption("ts", "", p.clock, p.echo)
	}
	if moves {
		p.next += uint32(len(s.data)) + uint32(flags>>1&1) + uint32(flags&1)
	}
	b := s.bytes(p.local, p.remote)
	if spoil > 0 {
		b[12] = byte(spoil) << 4
	}
	packet := p.c.packet(p.address, byte(tos), protoTCP, 16, b)
	if bad {
		packet[ipSize+16] ^= 0x55
	}
	p.c.write(typeIPv4, packet)
	return nil
}

// fill sends until the guest's window has no room for another segment.
func (p *peer) fill(words string) error {
	size, err := strconv.Atoi(words)
	if err != nil {
		return err
	}
	for sent := 0; sent < 1<<20; sent += size {
		if err := p.send([]string{"A", "len=" + words}); err != nil {
			return err
		}
		err := p.c.until(patient, func() bool {
			for _, h := range p.heard {
				p.note(h)
			}
			p.heard = nil
			return p.lastAck == p.next || p.left < size
		})
		if errors.Is(err, errQuiet) {
			p.trace.WriteString("  < no acknowledgement\n")
			return nil
		}
		if err != nil {
			return err
		}
		if p.left < size {
			p.trace.WriteString("  < shut\n")
			return nil
		}
	}
	p.trace.WriteString("  < never shut\n")
	return nil
}

// note follows the guest's numbers.
func (p *peer) note(h heard) {
	s := h.segment
	if s.flags&flagSYN != 0 {
		if !p.known || s.seq != p.isn {
			p.isn, p.known = s.seq, true
			p.theirs = s.seq
		}
		for _, o := range s.optionList() {
			if o.kind == 3 && len(o.data) == 1 {
				p.scale = int(o.data[0])
			}
		}
	}
	if value, _, ok := s.timestamps(); ok {
		p.echo = value
		p.hadTS = p.hadTS || s.flags&flagSYN != 0
	}
	if s.flags&flagACK != 0 && s.flags&flagRST == 0 {
		p.lastAck = s.ack
		scale := p.scale
		if s.flags&flagSYN != 0 {
			scale = 0
		}
		p.left = int(s.window)<<scale - int(p.next-s.ack)
	}
	end := s.seq + uint32(len(s.data)) + uint32(s.flags>>1&1) + uint32(s.flags&1)
	if int32(end-p.theirs) > 0 && s.seq == p.theirs {
		p.theirs = end
	}
}

// show writes the first segments that came to the trace.
func (p *peer) show(n int) {
	for _, h := range p.heard[:n] {
		p.note(h)
		p.trace.WriteString("  < " + p.describe(h) + "\n")
	}
	p.heard = p.heard[n:]
}

// describe is a segment with numbers that count from the first ones. A window and a scale
// differ between kernels and say only whether there is room; PSH is left out.
func (p *peer) describe(h heard) string {
	s := h.segment
	var b bytes.Buffer
	for i, l := range letters {
		if s.flags&(1<<i) != 0 && l != 'P' {
			b.WriteRune(l)
		}
	}
	if s.flags == 0 {
		b.WriteByte('-')
	}
	seq := int32(s.seq - p.isn)
	if !p.known {
		seq = int32(s.seq) // an answer to what belongs to no connection
	}
	if seq < 1<<20 && seq > -1<<20 {
		fmt.Fprintf(&b, " seq %d", seq)
	} else {
		b.WriteString(" seq of nothing before")
	}
	if s.flags&flagACK != 0 {
		fmt.Fprintf(&b, " ack %d", int32(s.ack-ourISN))
	}
	if len(s.data) > 0 {
		fmt.Fprintf(&b, " len %d", len(s.data))
	}
	if s.window == 0 && s.flags&flagRST == 0 {
		b.WriteString(" win 0")
	}
	if s.flags&flagURG != 0 {
		fmt.Fprintf(&b, " urg %d", s.urgent)
	}
	for _, o := range s.optionList() {
		b.WriteString(p.option(s, o))
	}
	if h.tos&3 != 0 {
		fmt.Fprintf(&b, " ecn %d", h.tos&3)
	}
	return b.String()
}

func (p *peer) option(s segment, o option) string {
	switch {
	case o.kind == 2 && len(o.data) == 2:
		return fmt.Sprintf(" mss %d", be.Uint16(o.data))
	case o.kind == 3 && len(o.data) == 1:
		return " ws"
	case o.kind == 4:
		return " sack"
	case o.kind == 5 && len(o.data)%8 == 0:
		text := ""
		for d := o.data; len(d) > 0; d = d[8:] {
			text += fmt.Sprintf(" block %d-%d", int32(be.Uint32(d)-ourISN), int32(be.Uint32(d[4:])-ourISN))
		}
		return text
	case o.kind == 8 && len(o.data) == 8:
		switch echo := be.Uint32(o.data[4:]); {
		case echo == p.clock:
			return " ts"
		case echo == 0:
			return " ts 0"
		default:
			return fmt.Sprintf(" ts -%d", p.clock-echo)
		}
	}
	return fmt.Sprintf(" option %d % x", o.kind, o.data)
}
