package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg/internal/owndir"
)

// Where the server is. A server for all users is root's, at SystemPath. Who
// finds none there looks for one of his own user, in $XDG_RUNTIME_DIR/hardtack
// or else in a directory of his own in the temporary one, and if there is none
// either becomes it. PathVariable names another place, and then the only one.
//
// The right to be the server is a lock on the file beside the socket (.lock),
// which the kernel takes back when the process dies; the socket file itself may
// be stale. A second lock (.next) keeps programs from serving themselves while a
// server proper waits for one of them to give way.
const (
	SystemPath   = "/run/hardtack/names"
	PathVariable = "HARDTACK_NAMES"
)

// ErrNoServer: none runs, and none is to be started.
var ErrNoServer = errors.New("no name service runs")

// places lists the paths to try, the last one being where this user may serve.
func places(path string) []string {
	if path == "" {
		path = os.Getenv(PathVariable)
	}
	uid := os.Geteuid()
	switch {
	case path != "":
		return []string{path}
	case uid == 0:
		return []string{SystemPath}
	}
	return []string{SystemPath, filepath.Join(owndir.Default(), "names")}
}

// dialAt connects to the server of a path and makes sure whose it is: a name
// service can send a program anywhere, so it must be root's or the user's own.
func dialAt(path string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	cred, err := credentials(c)
	if err == nil && cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("%s is served by user %d, who is neither root nor the own user", path, cred.Uid)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// absent says whether a failed dial means that nobody serves there for us.
func absent(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOTDIR)
}

// errTaken: another process has the right to serve.
var errTaken = errors.New("the place is taken")

// serveAt becomes the server of a path, if no other process is.
func serveAt(path string, embedded bool) (*Server, error) {
	dirMode, mode := os.FileMode(0o700), os.FileMode(0o600)
	if os.Geteuid() == 0 && !embedded {
		dirMode, mode = 0o755, 0o666
	}
	dir := filepath.Dir(path)
	if dir == owndir.Default() {
		if err := owndir.Make(dir); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	if dir == filepath.Dir(SystemPath) && !embedded {
		if err := os.Chmod(dir, dirMode); err != nil {
			return nil, err
		}
	}
	if embedded {
		// Not when a server proper is waiting for the place.
		next, err := lockFile(path + ".next")
		if err != nil {
			return nil, err
		}
		defer next.Close()
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := listenAt(path, mode)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return serve(l, embedded, func() { lock.Close() }), nil
}

// lockFile holds a lock until the file is closed, or fails with errTaken.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// checkDir refuses a directory in which others could replace the socket.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory", dir)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is unknown", dir)
	}
	if int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d", dir, st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("%s can be written by others", dir)
	}
	return nil
}

// Listen becomes the machine's server: at path, or where PathVariable says, or
// at SystemPath for root and in the user's directory for others. A server that
// a program embeds gives way to it; another one is an error.
func Listen(ctx context.Context, path string) (*Server, error) {
	all := places(path)
	path = all[len(all)-1]
	var next *os.File
	defer func() {
		if next != nil {
			next.Close()
		}
	}()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		s, err := serveAt(path, false)
		if !errors.Is(err, errTaken) {
			return s, err
		}
		if next == nil {
			if next, err = lockFile(path + ".next"); err != nil && !errors.Is(err, errTaken) {
				return nil, err
			}
		}
		if err := askToYield(path); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, errTaken, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w: %w", path, errTaken, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// askToYield asks the server of a path to end. That it has ended, or is about to,
// is no error.
func askToYield(path string) error {
	conn, err := dialAt(path)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	// A server that does not answer is no server.
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return err
	}
	buf := make([]byte, maxPacket+1)
	for _, p := range []packet{greeting, {op: opYield}} {
		var remote *remoteError
		if _, err := ask(conn, p, buf); errors.As(err, &remote) {
			return err
		} else if err != nil {
			return nil
		}
	}
	return nil
}

// ask sends a packet on a connection that nobody else uses, and reads the answer
// into buf, of maxPacket+1 bytes.
func ask(conn *net.UnixConn, p packet, buf []byte) (packet, error) {
	if _, err := conn.Write(p.append(nil)); err != nil {
		return p, err
	}
	n, err := conn.Read(buf)
	if err != nil {
		return p, err
	}
	a, err := decode(buf[:n])
	if err == nil && a.op == opError {
		err = a.err()
	}
	return a, err
}
