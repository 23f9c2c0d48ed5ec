package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// peer is another way to send messages, that not every machine can build.
type peer struct {
	name  string
	build []string
	made  string // what is built
}

// The first build of iceoryx2 takes minutes; what is built is kept.
var peers = []peer{
	{"iceoryx2", []string{"cargo", "build", "--release", "--manifest-path", "bench/peers/iceoryx2/Cargo.toml", "--target-dir", "build/bench/msg/iceoryx2"}, "build/bench/msg/iceoryx2/release/peer"},
	{"grpc", []string{"go", "-C", "bench/peers/grpc", "build", "-o", "../../../build/bench/msg/grpc", "."}, "build/bench/msg/grpc"},
}

// buildPeers builds what it can into dir, and returns a line for each of the others.
func buildPeers(dir string) (missing map[string]string) {
	missing = make(map[string]string)
	for _, p := range peers {
		if err := p.make(dir); err != nil {
			missing[p.name] = strings.TrimSpace(err.Error())
			fmt.Fprintf(os.Stderr, "without %s: %v\n", p.name, err)
		}
	}
	return missing
}

func (p peer) make(dir string) error {
	if _, err := exec.LookPath(p.build[0]); err != nil {
		return err
	}
	if err := os.MkdirAll("build/bench/msg", 0o777); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, p.build[0], p.build[1:]...).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	made, err := filepath.Abs(p.made)
	if err != nil {
		return err
	}
	return os.Symlink(made, filepath.Join(dir, p.name))
}

// without leaves out the rows of programs that are missing.
func without(all []row, missing map[string]string) (some []row) {
	for _, r := range all {
		if _, no := missing[strings.Fields(r.theirs)[0]]; !no {
			some = append(some, r)
		}
	}
	return some
}
