package names

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"hardtack/msg"
)

// Resolver makes directories the resolver of package msg. The first is this
// machine's; further ones are between machines, and get and give only addresses
// that other machines can use. A name is looked for in all, and the first
// directory that has it counts.
//
// An endpoint is kept as text: the interface's name, its fingerprint in hex and
// the addresses, the best first, each in a line.
func Resolver(local Directory, between ...Directory) msg.Resolver {
	return &resolver{append([]Directory{local}, between...)}
}

type resolver struct{ dirs []Directory }

// Place implements msg.Resolver: drivers choose addresses themselves, which are
// free then, and the entry says where they are.
func (r *resolver) Place(_ context.Context, name, scheme string) (string, error) {
	return "", CheckName(name)
}

// Publish implements msg.Resolver.
func (r *resolver) Publish(ctx context.Context, name string, e msg.Endpoint) (withdraw func() error, err error) {
	var set []Directory
	withdraw = func() error {
		var errs []error
		for _, d := range set {
			// What is gone already need not be withdrawn.
			if err := d.Delete(context.Background(), name); err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrClosed) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	for i, d := range r.dirs {
		there := e
		if i > 0 {
			if there.Addrs = remote(e.Addrs); len(there.Addrs) == 0 {
				continue
			}
		}
		_, err := d.Set(ctx, name, FormatEndpoint(there), 0)
		if errors.Is(err, ErrExists) || errors.Is(err, ErrDenied) {
			err = fmt.Errorf("%w: %w", msg.ErrTaken, err)
		}
		if err != nil {
			withdraw()
			return nil, err
		}
		set = append(set, d)
	}
	return withdraw, nil
}

// Resolve implements msg.Resolver.
func (r *resolver) Resolve(ctx context.Context, name string, wait bool) (msg.Endpoint, error) {
	for i, d := range r.dirs {
		e, err := d.Get(ctx, name)
		if err == nil {
			return parseEntry(e, i > 0)
		}
		if !errors.Is(err, ErrNotFound) {
			return msg.Endpoint{}, err
		}
	}
	if !wait {
		return msg.Endpoint{}, fmt.Errorf("%w: %s", msg.ErrNoName, name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type found struct {
		e   Entry
		far bool
		err error
	}
	first := make(chan found, len(r.dirs))
	for i, d := range r.dirs {
		go func() {
			e, err := d.WaitFor(ctx, name)
			first <- found{e, i > 0, err}
		}()
	}
	f := <-first
	if f.err != nil && ctx.Err() != nil {
		return msg.Endpoint{}, fmt.Errorf("%w: %s: %w", msg.ErrNoName, name, f.err)
	}
	if f.err != nil {
		return msg.Endpoint{}, f.err
	}
	return parseEntry(f.e, f.far)
}

// remote picks the addresses that mean something on other machines.
func remote(addrs []string) (far []string) {
	for _, a := range addrs {
		if strings.HasPrefix(a, "nats:") {
			far = append(far, a)
		}
	}
	return far
}

// FormatEndpoint is the value of an endpoint's entry.
func FormatEndpoint(e msg.Endpoint) []byte {
	return []byte(e.Interface + "\n" + e.Fingerprint.String() + "\n" + strings.Join(e.Addrs, "\n") + "\n")
}

// ParseEndpoint reads what FormatEndpoint wrote. Anybody may have written it.
func ParseEndpoint(value []byte) (msg.Endpoint, error) {
	lines := strings.Split(strings.TrimSuffix(string(value), "\n"), "\n")
	if len(lines) < 3 || len(lines) > 18 {
		return msg.Endpoint{}, fmt.Errorf("%w: the value is not an endpoint", ErrInvalid)
	}
	e := msg.Endpoint{Interface: lines[0], Addrs: lines[2:]}
	if n, err := hex.Decode(e.Fingerprint[:], []byte(lines[1][:min(len(lines[1]), 2*len(e.Fingerprint))])); err != nil || n != len(e.Fingerprint) || len(lines[1]) != 2*n {
		return msg.Endpoint{}, fmt.Errorf("%w: fingerprint %q in an endpoint", ErrInvalid, lines[1])
	}
	return e, nil
}

func parseEntry(e Entry, far bool) (msg.Endpoint, error) {
	ep, err := ParseEndpoint(e.Value)
	if err != nil {
		return ep, fmt.Errorf("%s: %w", e.Name, err)
	}
	if !far && e.UID != NoUser {
		ep.Owner = int(e.UID)
	}
	if far {
		if ep.Addrs = remote(ep.Addrs); len(ep.Addrs) == 0 {
			return ep, fmt.Errorf("%w: %s has no address for other machines", msg.ErrNoName, e.Name)
		}
	}
	return ep, nil
}
