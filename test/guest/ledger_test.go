package guest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// growth is a line of test/guest/ledger: by how much the heap and the ledger grew while a
// kind of object was there, and what was left of that afterwards.
type growth struct {
	kind               string
	heap, ledger       int64
	stacks, charged    int64
	leftHeap, leftMore int64
	each               int64
}

const (
	// ledgerSlack is what heap and ledger may differ by, one in so many, and
	// ledgerNoise beyond that: a timer, a cache, a name table.
	ledgerSlack = 33
	ledgerNoise = 8 << 10
	// Go's runtime keeps what it made for a goroutine for the next one. How many have ended before
	// depends on how late ended processes let go of theirs, so on the host's load.
	ledgerRuntime   = 160 << 10
	goroutineRecord = 512
	// The processes of the storm are stopped at arbitrary points, also within system calls,
	// and heap and ledger were seen to differ by 7 % then, in both directions. The check
	// that everything is released afterwards is as strict as elsewhere.
	stormSlack, stormNoise = 8, 320 << 10
	// ledgerLeft is what may be left of heap and ledger.
	ledgerLeft = 96 << 10
)

// remain are kinds that leave an array, or the runtime's records, in the test program's
// own process or in the runtime for the next time.
var remain = map[string]bool{"dups": true, "mappings": true, "sharedmaps": true,
	"processes": true, "threads": true}

// TestLedger compares what /proc/hardtack/ledger tells with the kernel's live heap, for
// each kind of object, and in a storm of processes that fork and die.
func TestLedger(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "ledger"), filepath.Join(repo, "test", "guest", "ledger", "ledger.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "ledger")
	out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--memory", "512M", "--cpus", "2"}, "/ledger")
	if err != nil || !strings.Contains(out, "ledger: ok") {
		t.Fatalf("%v\n%s", err, tail(out, 30))
	}
	kinds := 0
	for line := range strings.Lines(out) {
		var g growth
		if n, _ := fmt.Sscanf(line, "%s grown %d %d stacks %d %d left %d %d each %d", &g.kind, &g.heap, &g.ledger, &g.stacks,
			&g.charged, &g.leftHeap, &g.leftMore, &g.each); n != 8 {
			continue
		}
		kinds++
		t.Logf("%-16s heap %8d ledger %8d ratio %.3f each %d", g.kind, g.heap, g.ledger, float64(g.ledger)/float64(g.heap), g.each)
		g.check(t)
	}
	if kinds < 60 {
		t.Errorf("the program told of %d kinds:\n%s", kinds, tail(out, 30))
	}
}

func (g *growth) check(t *testing.T) {
	slack := max(g.heap/ledgerSlack, ledgerNoise)
	reused := int64(0) // of what the ledger counts, and the heap had before
	switch g.kind {
	case "storm":
		slack = g.heap/stormSlack + stormNoise
	case "processes", "execs", "threads", "timers", "timerfds": // Go's records of goroutines, its tables of timers
		slack = max(g.heap/ledgerSlack, ledgerRuntime)
		reused = g.heap / max(g.each, 1) * goroutineRecord
	}
	if d := g.ledger - g.heap; d > max(slack, reused) || -d > slack {
		t.Errorf("%s: the heap grew by %d bytes, the ledger by %d", g.kind, g.heap, g.ledger)
	}
	if g.heap < 8*ledgerNoise {
		if g.kind != "inotifies" && g.kind != "eventsread" { // a user has few
			t.Errorf("%s: the heap grew by %d bytes: too little to compare", g.kind, g.heap)
		}
	}
	if g.kind == "eventsread" && g.each > 8<<10 {
		t.Errorf("a queue with one event keeps %d bytes", g.each)
	}
	left := int64(ledgerLeft)
	if g.kind == "storm" {
		left += ledgerRuntime // what Go keeps of its goroutines
	}
	if !remain[g.kind] && (g.leftHeap > left || g.leftMore > ledgerLeft) {
		t.Errorf("%s: %d bytes of the heap and %d of the ledger are left", g.kind, g.leftHeap, g.leftMore)
	}
}
