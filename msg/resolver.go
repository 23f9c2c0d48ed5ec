package msg

import "context"

// Endpoint is where a service can be reached.
type Endpoint struct {
	Interface   string // its name
	Fingerprint Fingerprint
	Addrs       []string // the best first; scheme and colon in front
	// Owner is the user who has the name on this machine, and so the one, beside root,
	// who may serve it. 0, which is also root, says nothing about who serves.
	Owner int
}

// Resolver turns names into endpoints: the name service, or the directory of
// sockets that is used when none is set.
type Resolver interface {
	// Place says where a service called name should listen: the hint for the
	// driver of that scheme, or "" for no wish. An error refuses the name.
	Place(ctx context.Context, name, scheme string) (hint string, err error)
	// Publish makes name known. It lasts until withdraw is called or the
	// process ends. A name that is taken gives an error that wraps ErrTaken.
	Publish(ctx context.Context, name string, e Endpoint) (withdraw func() error, err error)
	// Resolve finds name, waiting for it to appear if wait is set. Without,
	// an unknown name gives an error that wraps ErrNoName.
	Resolve(ctx context.Context, name string, wait bool) (Endpoint, error)
}
