package fuzz

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed guest/calls.def
var definitions string

// ownBase is the number of the first of Hardtack's own calls.
const ownBase = 0x48540000

var definition = regexp.MustCompile(`^(CALL|OWN|LEFT)\((\d+), (\w+)(?:, "([^"]*)")?(?:, "([^"]*)")?\)$`)

// callNames are the names of the calls that calls.def describes or leaves out.
func callNames() (map[uint64]string, error) {
	names := map[uint64]string{}
	for i, line := range strings.Split(definitions, "\n") {
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		m := definition.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("calls.def:%d: %q", i+1, line)
		}
		if m[1] == "LEFT" && m[4] == "" {
			return nil, fmt.Errorf("calls.def:%d: no reason", i+1)
		}
		n, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil {
			return nil, err
		}
		if m[1] == "OWN" {
			n += ownBase
		}
		if names[n] != "" {
			return nil, fmt.Errorf("calls.def:%d: call %d twice", i+1, n)
		}
		names[n] = m[3]
	}
	return names, nil
}
