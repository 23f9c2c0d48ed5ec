package netbench

import (
	"slices"
	"strings"
	"testing"
)

func TestShares(t *testing.T) {
	const traces = `File: kernel.elf
Type: cpu
-----------+-------------------------------------------------------
      2s   hardtack/arch/amd64.userReturn
-----------+-------------------------------------------------------
    10ms   runtime.mallocgc (inline)
             gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*sender).sendData
             hardtack/kernel/net/inet.(*TCP).send
-----------+-------------------------------------------------------
    20ms   hardtack/driver/virtio/net.(*rxQueue).poll
             hardtack/nucleus.RunPending
-----------+-------------------------------------------------------
    10ms   runtime.futex
             runtime.mcall
`
	got, err := shares([]byte(traces))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(layers)+1)
	want[0], want[3], want[len(layers)] = 0.5, 0.25, 0.25
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := shares([]byte("nothing")); err == nil {
		t.Error("an empty profile is taken")
	}
	text := layersTable(map[string][]float64{"rx64": got})
	if !strings.Contains(text, "| packet received, 64 B (UDP) | 50 | 0 | 0 | 25 | 0 | 0 | 0 | 0 | 25 |") {
		t.Error(text)
	}
}
