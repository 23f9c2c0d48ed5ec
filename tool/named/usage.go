package named

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/idl/live"
	proto "hardtack/idl/machine"
	"hardtack/tool/fault"
)

// Usage is what a machine uses. Sizes are in bytes.
type Usage struct {
	Name      string  `json:"name"`
	Percent   float64 `json:"cpuPercent"`      // of one of the host's processors, since the usage before or the start
	Processor uint64  `json:"cpuNanoseconds"`  // of the emulator so far
	Resident  uint64  `json:"hostMemory"`      // of the emulator
	Logged    uint64  `json:"log"`             // bytes in the log's last file
	CPUs      uint32  `json:"cpus"`            // of the guest
	Memory    uint64  `json:"guestMemory"`     // that it has
	Used      uint64  `json:"guestMemoryUsed"` // for anything
	Heap      uint64  `json:"kernelHeap"`      // in use
	Processes uint32  `json:"processes"`

	at time.Time
}

// Usage asks what the machine uses.
func (m *Machine) Usage(ctx context.Context, before Usage) (u Usage, err error) {
	c, done, err := m.Control(ctx)
	if err != nil {
		return u, err
	}
	defer done()
	host, err := c.Usage(ctx, proto.UsageCall{})
	if err != nil {
		return u, err
	}
	look, leave, err := m.Look(ctx)
	if err != nil {
		return u, err
	}
	defer leave()
	guest, err := look.Health(ctx, live.HealthCall{})
	if err != nil {
		return u, err
	}
	u = Usage{Name: m.Name, Processor: host.Processor, Resident: host.Resident, Logged: host.Logged,
		CPUs: guest.Processors, Memory: guest.Memory, Used: guest.Memory - min(guest.Unused, guest.Memory), Heap: guest.Heap,
		Processes: guest.Processes, at: time.Now()}
	since := before.at
	if since.IsZero() {
		if s, err := m.State(); err == nil {
			since = s.Started
		}
	}
	if d := u.at.Sub(since); d > 0 && !since.IsZero() && u.Processor >= before.Processor {
		u.Percent = 100 * float64(u.Processor-before.Processor) / float64(d)
	}
	return u, nil
}

// End ends a machine at once, even one whose process does not answer.
func (m *Machine) End(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := m.Stop(limit, int(unix.SIGKILL), 0); err == nil {
		for m.Alive() && limit.Err() == nil {
			time.Sleep(time.Millisecond) // it is on its last lines
		}
		if !m.Alive() {
			return nil
		}
	}
	// The process that holds the lock is the machine's, whatever the state says.
	s, err := m.State()
	if err == nil && s.PID > 1 && m.Alive() {
		err = unix.Kill(s.PID, unix.SIGKILL)
	}
	for range 1000 {
		if !m.Alive() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fault.With(fault.Host, "the machine %q does not end: %v", m.Name, err)
}
