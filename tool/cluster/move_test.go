package cluster

import (
	"strings"
	"testing"
)

func TestParseMove(t *testing.T) {
	for text, want := range map[string]move{
		"cores 2 --from 0 --to 1":        {"cores", "2", 0, 1},
		"cores --from=3 2 --to 1":        {"cores", "2", 3, 1},
		"memory --from 0 --to 15 32M":    {"memory", "32M", 0, 15},
		"cores 2 --from 0":               {},
		"cores --from 0 --to 1":          {},
		"cores 2 3 --from 0 --to 1":      {},
		"cores 2 --from x --to 1":        {},
		"cores 2 --from -1 --to 1":       {},
		"memory 32M --from 0 --to 1 --x": {},
	} {
		m, ok := parseMove(strings.Fields(text))
		if ok != (want != move{}) || ok && m != want {
			t.Errorf("%q: %+v, %v", text, m, ok)
		}
	}
}
