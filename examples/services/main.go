// Command services asks the Hardtack kernel that it runs under, by typed channels: it tells how the
// kernel and its clusters are, and takes a name; as root it also shows the newest line of the log. It runs a
// program, if one is named:
//
//	# services /bin/busybox uname -a
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"hardtack/idl/clusters"
	"hardtack/idl/klog"
	"hardtack/idl/metrics"
	"hardtack/idl/names"
	"hardtack/idl/process"
	"hardtack/msg/kernel"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	for _, show := range []func(context.Context) error{showClusters, showFrames, showName, showLog} {
		if err := show(ctx); err != nil {
			log.Fatal(err)
		}
	}
	if len(os.Args) > 1 {
		if err := runProgram(ctx, os.Args[1:]); err != nil {
			log.Fatal(err)
		}
	}
}

func showClusters(ctx context.Context) error {
	conn, err := clusters.Connect(ctx, "clusters", kernel.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	c := clusters.NewClient(conn, nil)
	list, err := c.List(ctx, clusters.ListCall{})
	if err != nil {
		return err
	}
	for _, n := range append([]uint32{list.Own}, list.Others...) {
		h, err := c.Health(ctx, clusters.HealthCall{Cluster: n})
		if errors.Is(err, clusters.ErrRefused) { // of other kernels only the administrator hears
			fmt.Printf("cluster %d: %v\n", n, err)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Printf("cluster %d: %d processors, %d MiB, %d processes\n", n, h.Processors, h.Memory>>20, h.Processes)
	}
	return nil
}

func showFrames(ctx context.Context) error {
	conn, err := metrics.Connect(ctx, "metrics", kernel.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := metrics.NewClient(conn, nil).Frames(ctx, metrics.FramesCall{})
	if err == nil {
		fmt.Printf("frames: %d of %d are free\n", f.Unused, f.Total)
	}
	return err
}

// showName takes a name, which is gone when the connection ends.
func showName(ctx context.Context) error {
	conn, err := names.Connect(ctx, "names", kernel.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	c := names.NewClient(conn, nil)
	if _, err := c.Publish(ctx, names.PublishCall{Name: "example", Addresses: []names.Address{"unix:/tmp/example"}}); err != nil {
		return err
	}
	e, err := c.Look(ctx, names.LookCall{Name: "example"})
	if err == nil {
		fmt.Printf("name: %s is user %d's, at %s\n", e.Found.Name, e.Found.User, e.Found.Addresses[0])
	}
	return err
}

func showLog(ctx context.Context) error {
	conn, err := klog.Connect(ctx, "log", kernel.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	c := klog.NewClient(conn, nil)
	b, err := c.Bounds(ctx, klog.BoundsCall{})
	if errors.Is(err, klog.ErrRefused) { // kernel.dmesg_restrict
		fmt.Println("log:", err)
		return nil
	}
	if err != nil || b.Next == b.Oldest {
		return err
	}
	m, err := c.Read(ctx, klog.ReadCall{From: b.Next - 1})
	if err == nil {
		fmt.Printf("log: [%d.%06d] %s\n", m.At/1e9, m.At/1000%1e6, m.Text)
	}
	return err
}

// runProgram has the kernel start a program, and shows what it writes and how it ends.
func runProgram(ctx context.Context, args []string) error {
	conn, err := process.Connect(ctx, "process", kernel.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	c := process.NewClient(conn, nil)
	p, err := c.Start(ctx, process.StartCall{Arguments: words(args), Environment: words(os.Environ())})
	if err != nil {
		return err
	}
	for {
		out, err := c.Output(ctx, process.OutputCall{Process: p.Process})
		if err != nil {
			return err
		}
		if len(out.Bytes) == 0 {
			break
		}
		os.Stdout.Write(out.Bytes)
	}
	end, err := c.Wait(ctx, process.WaitCall{Process: p.Process})
	if err == nil {
		fmt.Printf("process: status %d, signal %d\n", end.Status, end.Signal)
	}
	return err
}

// words ends each word with a zero byte.
func words(list []string) []byte {
	return []byte(strings.Join(list, "\x00") + "\x00")
}
