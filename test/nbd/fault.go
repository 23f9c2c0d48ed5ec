package nbd

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// command does what a line of the control disk says; false: it is none. mu is held.
func (s *Server) command(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	slow, every, bad, err := 0, 0, [2]uint64{}, error(nil)
	switch word {
	case "ok", "read", "write", "flush", "all", "data", "gone":
	case "slow":
		_, err = fmt.Sscan(rest, &slow)
	case "some":
		if _, err = fmt.Sscan(rest, &every); every < 1 {
			return false
		}
	case "sectors":
		_, err = fmt.Sscan(rest, &bad[0], &bad[1])
	default:
		return false
	}
	if err != nil || s.mode == "gone" {
		return false
	}
	s.mode, s.slow, s.every, s.bad = word, time.Duration(slow)*time.Millisecond, every, bad
	return true
}

// fails says whether a request fails; mu is held.
func (s *Server) fails(kind uint16, off uint64, b []byte) bool {
	switch s.mode {
	case "all":
		return true
	case "read":
		return kind == cmdRead
	case "write":
		return kind == cmdWrite
	case "flush":
		return kind == cmdFlush
	case "some":
		return s.rng.IntN(s.every) == 0
	case "sectors":
		return kind != cmdFlush && off/512 < s.bad[1] && (off+uint64(len(b))+511)/512 > s.bad[0]
	case "data":
		for i := 0; kind == cmdWrite && i+512 <= len(b); i += 512 {
			if bytes.HasPrefix(b[i:], []byte(Bad)) {
				return true
			}
		}
	}
	return false
}
