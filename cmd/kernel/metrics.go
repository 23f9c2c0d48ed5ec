package main

import (
	"context"
	"runtime"

	"hardtack/idl/metrics"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/service"
	"hardtack/kernel/syscall"
	"hardtack/nucleus"
)

func serveMetrics() error {
	s, err := metrics.Export(context.Background(), "metrics", service.Options())
	if err != nil {
		return err
	}
	return service.Serve("metrics", s.Accept, func(ctx context.Context, x *service.Client, c *metrics.Conn) {
		c.Serve(ctx, figures{x})
	})
}

// figures serves idl/metrics.if to one client, with the rights of the files in /proc/hardtack.
type figures struct{ x *service.Client }

func (f figures) admin() error {
	if !f.x.Cred.Has(creds.CapSysAdmin) {
		return metrics.ErrRefused
	}
	return nil
}

func (f figures) Frames(context.Context, metrics.FramesCall) (metrics.FramesReply, error) {
	m := nucleus.MemoryInfo()
	return metrics.FramesReply{Total: uint64(m.Total), Unused: uint64(m.Free), Kernel: uint64(m.Kernel), Reserve: uint64(m.Reserve)}, nil
}

func (f figures) Heap(context.Context, metrics.HeapCall) (out metrics.HeapReply, err error) {
	if err := f.admin(); err != nil {
		return out, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return metrics.HeapReply{Alive: m.HeapAlloc, InUse: m.HeapInuse, Released: m.HeapReleased, Objects: m.HeapObjects, Stacks: m.StackInuse,
		Allocated: m.TotalAlloc, NextCollection: m.NextGC, Collections: m.NumGC, Paused: m.PauseTotalNs}, nil
}

func (f figures) Processors(context.Context, metrics.ProcessorsCall) (out metrics.ProcessorsReply, err error) {
	if err := f.admin(); err != nil {
		return out, err
	}
	out.Now = uint64(clocks.Monotonic())
	for i := range min(nucleus.NumCPU(), 64) {
		out.Idle = append(out.Idle, uint64(nucleus.CPUIdled(i)))
	}
	return out, nil
}

func (f figures) Interrupts(context.Context, metrics.InterruptsCall) (out metrics.InterruptsReply, err error) {
	for i := range min(nucleus.NumCPU(), 64) {
		out.Processors = append(out.Processors, uint64(nucleus.CPUInterrupts(i)))
	}
	for i := range 256 {
		n, ok := nucleus.IRQCount(i)
		if !ok {
			break
		}
		out.Lines = append(out.Lines, uint64(n))
	}
	return out, nil
}

// part is what an answer has of a list, from place on, and where the next one goes on.
func part[T any](all []T, place uint32, most int) (some []T, next uint32) {
	if uint64(place) >= uint64(len(all)) {
		return nil, 0
	}
	end := min(int(place)+most, len(all))
	if end < len(all) {
		next = uint32(end)
	}
	return all[place:end], next
}

func (f figures) Calls(_ context.Context, in metrics.CallsCall) (out metrics.CallsReply, err error) {
	if err := f.admin(); err != nil {
		return out, err
	}
	some, next := part(syscall.Counts(), in.Place, 64)
	for _, c := range some {
		out.Counts = append(out.Counts, metrics.CallCount{Name: c.Name, Calls: c.Calls, Time: c.Nsec, Bytes: c.Bytes})
	}
	out.Next = next
	return out, nil
}

func (f figures) Latencies(_ context.Context, in metrics.LatenciesCall) (out metrics.LatenciesReply, err error) {
	if err := f.admin(); err != nil {
		return out, err
	}
	some, next := part(syscall.Latencies(), in.Place, 16)
	for _, l := range some {
		found := metrics.Latency{Name: l.Name, Time: l.Nsec}
		for i, n := range l.Calls[:min(len(l.Calls), 40)] {
			found.Buckets = append(found.Buckets, metrics.Bucket{Below: l.Below[i], Calls: n})
		}
		out.Found = append(out.Found, found)
	}
	out.Next = next
	return out, nil
}
