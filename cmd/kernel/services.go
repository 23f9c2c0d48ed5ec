package main

import (
	"context"
	"errors"
	"slices"

	"hardtack/abi/boot"
	"hardtack/idl/clusters"
	proto "hardtack/idl/monitor"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/service"
	"hardtack/nucleus"
)

// startServices makes what programs can call by typed channels (/dev/kernel).
func (k *kernel) startServices(root *vfs.FSContext) {
	root = root.Clone()
	for _, s := range []struct {
		name  string
		start func() error
	}{
		{"process", func() error { return service.ServePrograms(root) }}, {"log", service.ServeLog}, {"names", service.ServeNames},
		{"metrics", serveMetrics}, {"clusters", k.serveClusters},
	} {
		if err := service.Add(s.name, s.start); err != nil {
			warn("%v", err)
		}
	}
}

func (k *kernel) serveClusters() error {
	s, err := clusters.Export(context.Background(), "clusters", service.Options())
	if err != nil {
		return err
	}
	return service.Serve("clusters", s.Accept, func(ctx context.Context, x *service.Client, c *clusters.Conn) {
		c.Serve(ctx, overview{k, x})
	})
}

// overview serves idl/clusters.if to one client.
type overview struct {
	k *kernel
	x *service.Client
}

func (o overview) admin() bool { return o.x.Cred.Has(creds.CapSysAdmin) }

func (o overview) List(context.Context, clusters.ListCall) (out clusters.ListReply, err error) {
	out.Own = uint32(nucleus.ClusterIndex())
	if m := o.k.others.monitor; m != nil {
		for i := range boot.MaxClusters {
			if _, err := m.Peer(i); err == nil {
				out.Others = append(out.Others, uint32(i))
			}
		}
	}
	return out, nil
}

func (o overview) Health(ctx context.Context, in clusters.HealthCall) (out clusters.HealthReply, err error) {
	var h proto.HealthReply
	switch m := o.k.others.monitor; {
	case in.Cluster == uint32(nucleus.ClusterIndex()):
		h = host{o.k, &o.k.estate}.Health()
		if !o.admin() {
			h.Heap, h.Collections = 0, 0
		}
	case !o.admin():
		return out, clusters.ErrRefused
	case m == nil || in.Cluster >= boot.MaxClusters:
		return out, clusters.ErrNoCluster
	default:
		c, err := m.Peer(int(in.Cluster))
		if err != nil {
			return out, clusters.ErrNoCluster
		}
		ctx, cancel := context.WithTimeout(ctx, monitorsTime)
		defer cancel()
		if h, err = c.Health(ctx, proto.HealthCall{}); errors.Is(err, context.DeadlineExceeded) {
			return out, clusters.ErrBusy
		} else if err != nil {
			return out, clusters.ErrNoCluster
		}
	}
	return clusters.HealthReply{Processors: h.Processors, Memory: h.Memory, Unused: h.Unused, Processes: h.Processes,
		Heap: h.Heap, Collections: h.Collections}, nil
}

func (o overview) Change(_ context.Context, in clusters.ChangeCall) (out clusters.ChangeReply, err error) {
	if !o.admin() {
		return out, clusters.ErrRefused
	}
	if nucleus.ClusterIndex() != 0 {
		return out, clusters.ErrFirst
	}
	i := slices.IndexFunc(o.k.others.all, func(c *otherCluster) bool { return uint32(c.index) == in.Cluster })
	if i < 0 {
		return out, clusters.ErrNoCluster
	}
	what := map[clusters.Action]string{clusters.ActionStop: "stop", clusters.ActionKill: "kill", clusters.ActionRestart: "restart"}[in.What]
	select {
	case o.k.others.all[i].ask <- what:
		return out, nil
	default:
		return out, clusters.ErrBusy
	}
}
