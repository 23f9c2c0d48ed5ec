package msg_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hardtack/msg"
	"hardtack/msg/internal/owndir"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be several users")
	}
}

// sharedDir is a directory of a user that others can pass through.
func sharedDir(t *testing.T, uid int) string {
	t.Helper()
	base, err := os.MkdirTemp("", "msg-users-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir := filepath.Join(base, "d")
	for _, err := range []error{os.Chmod(base, 0o755), os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), os.Chown(dir, uid, uid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A service of another user is refused unless that user is named, and so is a client.
func TestUsers(t *testing.T) {
	needRoot(t)
	const server, client = 4001, 4002
	ctx, dir := timeLimit(t), sharedDir(t, server)
	o := &msg.Options{Resolver: msg.Directory(dir)}
	dial := func(users ...int) error {
		o.Users = users
		c, err := msg.Connect(ctx, "bank", msg.TestIface, o)
		if err == nil {
			c.Close()
		}
		return err
	}
	var user *msg.UserError
	// Root dials the service of a user, and a user that of another.
	s := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^TestServeBank$")
	s.Env = append(os.Environ(), "MSG_TEST_BANK="+dir)
	s.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: server, Gid: server}}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { s.Process.Kill(); s.Wait() }()
	if err := dial(); !errors.As(err, &user) || !errors.Is(err, fs.ErrPermission) || user.UID != server {
		t.Errorf("root, unnamed: %v", err)
	}
	if err := dial(server); err != nil {
		t.Errorf("root, named: %v", err)
	}
	if err := dial(msg.AnyUser); err != nil {
		t.Errorf("root, any: %v", err)
	}
	for uid, want := range map[uint32]string{client: "served", 4003: "does not serve"} {
		out, err := asUserTest(t, uid, "^TestDialBank$", "MSG_TEST_DIAL="+dir)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("user %d: %v\n%s", uid, err, out)
		}
	}
}

func asUserTest(t *testing.T, uid uint32, run string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", run)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestServeBank is a process of TestUsers: it serves user 4002 until it is killed.
func TestServeBank(t *testing.T) {
	dir := os.Getenv("MSG_TEST_BANK")
	if dir == "" {
		t.Skip("part of TestUsers")
	}
	ctx := timeLimit(t)
	s, err := msg.Export(ctx, "bank", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir), Users: []int{4002}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		if c, err := s.Accept(ctx); err == nil {
			c.Close()
		}
	}
}

// TestDialBank is a process of TestUsers: it says how the service answers.
func TestDialBank(t *testing.T) {
	dir := os.Getenv("MSG_TEST_DIAL")
	if dir == "" {
		t.Skip("part of TestUsers")
	}
	_, err := msg.Connect(timeLimit(t), "bank", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir), Users: []int{4001}})
	if err == nil {
		t.Log("served")
	} else if errors.Is(err, fs.ErrPermission) {
		t.Log(err)
	} else {
		t.Error(err)
	}
}

// A directory that others can write to, or that is a link, is not trusted with names.
func TestUnsafeDirectory(t *testing.T) {
	ctx, base := timeLimit(t), t.TempDir()
	good, open, link := filepath.Join(base, "good"), filepath.Join(base, "open"), filepath.Join(base, "link")
	for _, err := range []error{os.Mkdir(good, 0o700), os.Mkdir(open, 0o777), os.Chmod(open, 0o777), os.Symlink(good, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{open, link} {
		o := &msg.Options{Resolver: msg.Directory(dir), Wait: 10 * time.Second}
		if _, err := msg.Export(ctx, "bank", msg.TestIface, o); !errors.Is(err, owndir.ErrUnsafe) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("serving in %s: %v", dir, err)
		}
		start := time.Now()
		if _, err := msg.Connect(ctx, "bank", msg.TestIface, o); !errors.Is(err, owndir.ErrUnsafe) || !errors.Is(err, fs.ErrPermission) || time.Since(start) > 5*time.Second {
			t.Errorf("looking in %s: %v after %v", dir, err, time.Since(start))
		}
	}
	// The default directory is made for its user alone, and refused if it is not.
	t.Setenv("HARDTACK_MSG_DIR", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", base)
	def := owndir.Default()
	s, err := msg.Export(ctx, "bank", msg.TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if info, err := os.Lstat(def); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info, err)
	}
	if err := os.Chmod(def, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := msg.Export(ctx, "bank", msg.TestIface, nil); !errors.Is(err, owndir.ErrUnsafe) {
		t.Errorf("a default directory that others can enter: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(def, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(def, 4001, 4001); err != nil {
			t.Fatal(err)
		}
		if _, err := msg.Export(ctx, "bank", msg.TestIface, nil); !errors.Is(err, owndir.ErrUnsafe) {
			t.Errorf("a default directory of another user: %v", err)
		}
		var user *msg.UserError
		os.WriteFile(filepath.Join(def, "bank.sock"), nil, 0o600)
		if _, err := msg.Connect(ctx, "bank", msg.TestIface, nil); !errors.As(err, &user) || user.UID != 4001 {
			t.Errorf("names in a directory of another user: %v", err)
		}
	}
}

// Connect waits no longer than it is told, and says what it waited for.
func TestConnectGivesUp(t *testing.T) {
	dir := t.TempDir()
	o := &msg.Options{Resolver: msg.Directory(dir), Wait: 50 * time.Millisecond}
	_, err := msg.Connect(context.Background(), "nobody", msg.TestIface, o)
	if !errors.Is(err, msg.ErrNoName) || !strings.Contains(err.Error(), "nobody.sock") {
		t.Errorf("no name: %v", err)
	}
	o.Wait = -1
	if _, err := msg.Connect(context.Background(), "nobody", msg.TestIface, o); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("no name, no wait: %v", err)
	}
	o.Wait = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := msg.Connect(ctx, "nobody", msg.TestIface, o); !errors.Is(err, msg.ErrNoName) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no name, and no time: %v", err)
	}
	// A socket file at which nobody listens.
	if err := os.WriteFile(filepath.Join(dir, "dead.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Wait = 50 * time.Millisecond
	if _, err := msg.Connect(context.Background(), "dead", msg.TestIface, o); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("nobody listens: %v", err)
	}
}
