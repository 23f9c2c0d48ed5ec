// Package servers keeps the versions of servers that others wrote, whose own benchmarks
// bench/affinity runs, with and without the overlay: programs for which the policies
// are not made, and which must not pay for them.
//
//   - nats-server (nats-io/nats-server): publishers and subscribers over connections.
//   - etcd's store (go.etcd.io/etcd): writes to the key-value store, watchers over channels.
package servers

import (
	_ "github.com/nats-io/nats-server/v2/test"
	_ "go.etcd.io/etcd/server/v3/storage/mvcc"
)
