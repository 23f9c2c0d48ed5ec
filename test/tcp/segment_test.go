package tcp

import (
	"fmt"
	"strconv"
	"strings"
)

const tcpSize = 20

// The flags' letters, by bit.
const letters = "FSRPAUEW"

const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
	flagURG
)

// A segment is what the scripts say and the traces show of one.
type segment struct {
	flags    byte
	seq, ack uint32
	window   uint16
	urgent   uint16
	options  []byte
	data     []byte
}

func flagsOf(s string) (f byte, err error) {
	for _, r := range s {
		at := strings.IndexRune(letters, r)
		if at < 0 && r != '-' {
			return 0, fmt.Errorf("no flag %q", r)
		}
		if at >= 0 {
			f |= 1 << at
		}
	}
	return f, nil
}

func (s *segment) bytes(from, to uint16) []byte {
	o := s.options
	for len(o)%4 != 0 {
		o = append(o, 0)
	}
	b := be.AppendUint16(nil, from)
	b = be.AppendUint16(b, to)
	b = be.AppendUint32(b, s.seq)
	b = be.AppendUint32(b, s.ack)
	b = append(b, byte((tcpSize+len(o))/4)<<4, s.flags)
	b = be.AppendUint16(b, s.window)
	b = append(b, 0, 0)
	b = be.AppendUint16(b, s.urgent)
	return append(append(b, o...), s.data...)
}

func parseSegment(b []byte) (s segment, ok bool) {
	off := int(b[12]>>4) * 4
	if off < tcpSize || off > len(b) {
		return s, false
	}
	return segment{b[13], be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint16(b[14:]), be.Uint16(b[18:]), b[tcpSize:off], b[off:]}, true
}

// option is one of a segment's.
type option struct {
	kind byte
	data []byte
}

func (s *segment) optionList() (all []option) {
	for o := s.options; len(o) > 0 && o[0] != 0; {
		if o[0] == 1 {
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			return append(all, option{255, o})
		}
		all = append(all, option{o[0], o[2:o[1]]})
		o = o[o[1]:]
	}
	return all
}

// timestamps are the segment's two.
func (s *segment) timestamps() (value, echo uint32, ok bool) {
	for _, o := range s.optionList() {
		if o.kind == 8 && len(o.data) == 8 {
			return be.Uint32(o.data), be.Uint32(o.data[4:]), true
		}
	}
	return 0, 0, false
}

// setOption adds one that a script names, as mss=1460.
func (s *segment) setOption(key, value string, now, echo uint32) (bool, error) {
	n, err := strconv.Atoi(value)
	if value == "" {
		n, err = 0, nil
	}
	switch key {
	case "mss":
		s.options = append(s.options, 2, 4, byte(n>>8), byte(n))
	case "ws":
		s.options = append(s.options, 3, 3, byte(n))
	case "sack":
		s.options = append(s.options, 4, 2)
	case "ts": // n: how much older than now
		s.options = append(s.options, 8, 10)
		s.options = be.AppendUint32(s.options, now-uint32(n))
		s.options = be.AppendUint32(s.options, echo)
	case "hex":
		var raw []byte
		if _, err = fmt.Sscanf(value, "%x", &raw); err == nil {
			s.options = append(s.options, raw...)
		}
	default:
		return false, nil
	}
	return true, err
}
