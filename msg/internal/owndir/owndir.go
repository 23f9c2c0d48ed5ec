// Package owndir says whether a directory of sockets can be trusted: where others can
// put a socket, or take the directory's place, they can serve under any name.
package owndir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrUnsafe: others than the owner can change what is in the directory. It is an
// fs.ErrPermission, which callers of package msg can look for.
var ErrUnsafe error = unsafeError{}

type unsafeError struct{}

func (unsafeError) Error() string        { return "not a directory to trust" }
func (unsafeError) Is(target error) bool { return target == fs.ErrPermission }

// Owner returns the user a directory belongs to. One that is a symbolic link, or that
// others can write to, gives an error that wraps ErrUnsafe.
func Owner(dir string) (uid int, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return -1, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return -1, fmt.Errorf("%w: the owner of %s is unknown", ErrUnsafe, dir)
	case !info.IsDir():
		return -1, fmt.Errorf("%w: %s is no directory, but %v", ErrUnsafe, dir, info.Mode().Type())
	case info.Mode().Perm()&0o022 != 0:
		return -1, fmt.Errorf("%w: %s can be written to by others (mode %04o)", ErrUnsafe, dir, info.Mode().Perm())
	}
	return int(st.Uid), nil
}

// Make makes a directory for this user alone, with its parents, or makes sure that the
// one that is there belongs to this user and can be entered by nobody else.
func Make(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	uid, err := Owner(dir)
	if err != nil {
		return err
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, not to user %d", ErrUnsafe, dir, uid, os.Geteuid())
	}
	if info, err := os.Lstat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s can be entered by others (chmod 700)", ErrUnsafe, dir)
	}
	return nil
}

// Default is where a user's sockets are: $XDG_RUNTIME_DIR/hardtack, or else a
// directory named after the user in the one for temporary files.
func Default() string {
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return filepath.Join(d, "hardtack")
	}
	return filepath.Join(os.TempDir(), "hardtack-"+strconv.Itoa(os.Geteuid()))
}
