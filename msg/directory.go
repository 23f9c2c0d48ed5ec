package msg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hardtack/msg/internal/owndir"
)

// Directory is the resolver that needs no service: a service called name has a
// Unix socket of that name in a directory. It knows the driver "unix" only, and
// cannot tell what interface a name speaks; the exchange of greetings does.
//
// Names are the directory's owner's: it must not be a symbolic link, nobody else may
// write to it, and Options.Users says whether its owner is trusted. Who may reach a
// service is what the file system says; a directory that Place makes is its owner's
// alone.
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
	if d == Directory(owndir.Default()) {
		return p, owndir.Make(string(d))
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", err
	}
	uid, err := owndir.Owner(string(d))
	if err == nil && uid != os.Geteuid() && uid != 0 {
		err = fmt.Errorf("%w: %s belongs to user %d", owndir.ErrUnsafe, d, uid)
	}
	return p, err
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
		uid, err := owndir.Owner(string(d))
		if err == nil {
			_, err = os.Stat(p)
		}
		switch {
		case err == nil:
			return Endpoint{Addrs: []string{"unix:" + p}, Owner: uid}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return Endpoint{}, fmt.Errorf("msg: %s: %w", name, err)
		case !wait:
			return Endpoint{}, fmt.Errorf("%w: %s (there is no %s)", ErrNoName, name, p)
		}
		select {
		case <-ctx.Done():
			return Endpoint{}, fmt.Errorf("%w: %s (there is no %s): %w", ErrNoName, name, p, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
