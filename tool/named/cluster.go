package named

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"hardtack/idl/live"
	"hardtack/tool/cluster"
	"hardtack/tool/fault"
)

// clustersFile is where a machine's first kernel tells of the others and is asked for them.
const clustersFile = "/proc/hardtack/clusters"

// movesFile is where it tells how requests to move went.
const movesFile = "/proc/hardtack/moves"

// Clusters returns a line for each of the machine's kernels.
func (m *Machine) Clusters(ctx context.Context) ([]byte, error) {
	c, done, err := m.Look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := c.Read(ctx, live.ReadCall{Path: clustersFile})
	if err == nil && out.Errno != 0 {
		err = m.noClusters(syscall.Errno(out.Errno))
	}
	return out.Data, err
}

// Cluster is one of the machine's kernels.
type Cluster struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	Lives  int    `json:"lives"` // how often it was started
	CPUs   int    `json:"cpus"`
	Memory int64  `json:"memory"` // in bytes
}

// ParseClusters reads the lines of Clusters.
func ParseClusters(text []byte) (list []Cluster, err error) {
	for line := range strings.Lines(string(text)) {
		var c Cluster
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		state, rest, ok := strings.Cut(rest, " lives ")
		c.State = state
		if _, err := fmt.Sscanf(number+" "+rest, "%d %d cpus %d memory %d MiB", &c.Number, &c.Lives, &c.CPUs, &c.Memory); err != nil || !ok {
			return nil, fault.With(fault.Host, "the machine says of its kernels what nobody understands: %q", line)
		}
		c.Memory <<= 20
		list = append(list, c)
	}
	return list, nil
}

func (m *Machine) noClusters(e syscall.Errno) error {
	if e == syscall.ENOENT {
		return fault.With(fault.Host, "the machine %q has one kernel; see hardtack run --cluster", m.Name)
	}
	return fmt.Errorf("the machine %q: %w", m.Name, e)
}

// AskCluster asks the machine's first kernel to stop, kill or restart another one.
func (m *Machine) AskCluster(ctx context.Context, what string, number int) error {
	c, done, err := m.Look(ctx)
	if err != nil {
		return err
	}
	defer done()
	out, err := c.Write(ctx, live.WriteCall{Path: clustersFile, Data: fmt.Appendf(nil, "%s %d", what, number)})
	if err != nil {
		return err
	}
	switch e := syscall.Errno(out.Errno); e {
	case 0:
		return nil
	case syscall.EINVAL:
		return fault.With(fault.Host, "the machine %q has no cluster %d", m.Name, number)
	case syscall.EBUSY:
		return fault.With(fault.Host, "cluster %d of the machine %q is busy with what was asked before", number, m.Name)
	default:
		return m.noClusters(e)
	}
}

// Move has the machine's first kernel move processors ("cores", a number) or memory ("memory", a size)
// from one of its kernels to another, and waits until that is done.
func (m *Machine) Move(ctx context.Context, what, much string, from, to int) error {
	c, done, err := m.Look(ctx)
	if err != nil {
		return err
	}
	defer done()
	text := fmt.Sprintf("%s %s %d %d", what, much, from, to)
	out, err := c.Write(ctx, live.WriteCall{Path: clustersFile, Data: []byte(text)})
	if err != nil || out.Errno == 0 {
		return err
	}
	switch e := syscall.Errno(out.Errno); e {
	case syscall.ENOENT:
		return m.noClusters(e)
	case syscall.EINVAL:
		return fault.With(fault.Host, "the machine %q has no such clusters, or %q is not a number of processors or a size in whole pieces of 2M", m.Name, much)
	default:
		list, err := c.Read(ctx, live.ReadCall{Path: movesFile})
		if why := cluster.LastMove(list.Data, text); err == nil && list.Errno == 0 && why != "" {
			return fault.With(fault.Host, "the machine %q: %s", m.Name, why)
		}
		return m.noClusters(e)
	}
}
