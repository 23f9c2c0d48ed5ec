package msg

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Directory is the resolver that needs no service: a service called name has a
// Unix socket of that name in a directory, and who may reach it is what the
// file system says. It knows the driver "unix" only, and cannot tell what
// interface a name speaks; the exchange of greetings does.
type Directory string

const socketSuffix = ".sock"

// path checks name, which is at most 80 letters, digits, dots, dashes and
// underscores, and is not only dots.
func (d Directory) path(name string) (string, error) {
	ok := name != "" && len(name) <= 80 && strings.Trim(name, ".") != ""
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if !ok {
		return "", fmt.Errorf("msg: a service cannot be called %q", name)
	}
	p := filepath.Join(string(d), name+socketSuffix)
	if len(p) > 107 {
		return "", fmt.Errorf("msg: %s is too long for the address of a socket", p)
	}
	return p, nil
}

// Place makes the directory, for its owner alone, if it is missing.
func (d Directory) Place(_ context.Context, name, scheme string) (string, error) {
	p, err := d.path(name)
	if err != nil || scheme != "unix" {
		return "", err
	}
	return p, os.MkdirAll(string(d), 0o700)
}

// Publish has nothing to do: the socket is the entry, and the driver refuses
// one that somebody listens on.
func (d Directory) Publish(context.Context, string, Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

// Resolve finds the socket.
func (d Directory) Resolve(ctx context.Context, name string, wait bool) (Endpoint, error) {
	p, err := d.path(name)
	if err != nil {
		return Endpoint{}, err
	}
	for {
		if _, err := os.Stat(p); err == nil {
			return Endpoint{Addrs: []string{"unix:" + p}}, nil
		} else if !os.IsNotExist(err) || !wait {
			return Endpoint{}, fmt.Errorf("%w: %s", ErrNoName, name)
		}
		select {
		case <-ctx.Done():
			return Endpoint{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
