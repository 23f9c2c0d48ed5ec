// Package named gives machines names. Each machine's own process keeps a folder of the
// user's with what the machine is (state.json), what it printed (log), a lock that it holds
// while it lives, and two sockets for the commands that look into the machine. There is no
// daemon.
//
// # Trust
//
// The folder of all machines is the user's alone; it is refused if it belongs to somebody
// else, is a symbolic link, or lets others in. The sockets check who is at the other end
// (package msg). What a guest says is never believed: see Copy.
package named

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// The states of a machine, as docker calls them.
const (
	Created    = "created"
	Up         = "running"
	Restarting = "restarting"
	Exited     = "exited"
	Dead       = "dead" // its process was killed
)

// State is what a machine is, as state.json and `hardtack inspect` have it.
type State struct {
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	PID        int       `json:"pid"`  // of the machine's process on the host
	QEMU       int       `json:"qemu"` // of the emulator, 0 if it does not run
	ExitCode   int       `json:"exitCode"`
	Error      string    `json:"error,omitempty"`
	Restarts   int       `json:"restarts"`
	Created    time.Time `json:"created"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished"`
	Root       string    `json:"root"`
	Image      string    `json:"image,omitempty"` // ID of the image of the cache that it runs
	Args       []string  `json:"args"`
	Env        []string  `json:"env"`
	Cwd        string    `json:"cwd"`
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	Groups     []uint32  `json:"groups"`
	Hostname   string    `json:"hostname"`
	CPUs       int       `json:"cpus"`
	Memory     int64     `json:"memory"`
	Accel      string    `json:"accelerator"`
	Ports      []string  `json:"ports"`
	Page       string    `json:"page,omitempty"` // where --ui serves it
	Restart    string    `json:"restart"`
	Detached   bool      `json:"detached"`
	AutoRemove bool      `json:"autoRemove"`
}

// Runs reports whether there is a machine to look into.
func (s *State) Runs() bool { return s.Status == Up }

const (
	stateFile = "state.json"
	lockFile  = "lock"
	logFile   = "log"
	stateMost = 1 << 20
)

// Base is the folder of the user's machines. It is made if make is set.
func Base(make bool) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("hardtack-%d", os.Geteuid()))
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		dir = filepath.Join(run, "hardtack")
	}
	if make {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("the folder of machines: %w", err)
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return dir, &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return "", fault.With(fault.Host, "%s is not a folder of your own with mode 0700: it is not used", dir)
	}
	return dir, nil
}

// CheckName refuses what is no name of a machine.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 63
	for i, r := range name {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (alnum || i > 0 && strings.ContainsRune("_.-", r))
	}
	if !ok {
		return fault.Bad("--name %q: want up to 63 letters, digits, dashes, dots and underscores, the first a letter or digit", name)
	}
	return nil
}

// Machine is the folder of one machine.
type Machine struct {
	Name string
	Dir  string
	lock *os.File // held by the machine's process
}

// Find returns the machine of a name, which need not be running.
func Find(name string) (*Machine, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	base, err := Base(false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m := &Machine{Name: name, Dir: filepath.Join(base, name)}
	if err != nil || !m.ours() {
		return nil, &Missing{name}
	}
	return m, nil
}

// Missing says that there is no machine of a name.
type Missing struct{ Name string }

func (e *Missing) Error() string {
	return fmt.Sprintf("there is no machine %q; hardtack ps -a lists those there are", e.Name)
}

// ours reports whether the folder is a machine's. Beside machines there are other folders of
// this command's, and sockets of programs.
func (m *Machine) ours() bool {
	st, err := os.Lstat(filepath.Join(m.Dir, lockFile))
	return err == nil && st.Mode().IsRegular()
}

// List returns all machines, in the order of their names.
func List() ([]*Machine, error) {
	base, err := Base(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, err
	}
	var list []*Machine
	for _, e := range entries {
		m := &Machine{Name: e.Name(), Dir: filepath.Join(base, e.Name())}
		if e.IsDir() && CheckName(m.Name) == nil && m.ours() {
			list = append(list, m)
		}
	}
	return list, nil
}

// whole is a lock of all of a file.
func whole(kind int16) *unix.Flock_t { return &unix.Flock_t{Type: kind} }

// Alive reports whether the machine's process holds its lock. Asking does not take it.
func (m *Machine) Alive() bool {
	f, err := os.OpenFile(filepath.Join(m.Dir, lockFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	l := whole(unix.F_WRLCK)
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, l) == nil && l.Type != unix.F_UNLCK
}

// ending is how long the process of a machine that has ended may take to go.
const ending = 5 * time.Second

// ends waits for the machine's process to go, and reports whether it has.
func (m *Machine) ends() bool {
	for end := time.Now().Add(ending); m.Alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// takeEnded is take, but waits for the process of a machine that has ended: those who waited
// for the end were told of it by that process.
func (m *Machine) takeEnded() error {
	for end := time.Now().Add(ending); ; time.Sleep(5 * time.Millisecond) {
		err := m.take()
		if !errors.Is(err, errTaken) || time.Now().After(end) {
			return err
		}
		if s, serr := m.State(); serr != nil || s.Status != Exited {
			return err
		}
	}
}

// take takes the lock of a machine's folder.
func (m *Machine) take() error {
	name := filepath.Join(m.Dir, lockFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, whole(unix.F_WRLCK)); err != nil {
		f.Close()
		return errTaken
	}
	var mine, there unix.Stat_t
	if unix.Fstat(int(f.Fd()), &mine) != nil || unix.Stat(name, &there) != nil || mine.Ino != there.Ino || mine.Dev != there.Dev {
		f.Close() // it was removed meanwhile
		return errTaken
	}
	m.lock = f
	return nil
}

var errTaken = errors.New("the name is taken")

// Create makes the folder of a new machine, which is this process's until it ends. What a
// machine left that nobody wanted to keep gives way.
func Create(name string) (*Machine, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	base, err := Base(true)
	if err != nil {
		return nil, err
	}
	m := &Machine{Name: name, Dir: filepath.Join(base, name)}
	err = os.Mkdir(m.Dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return Create(name) // the last machine has just taken the folder of all with it
	}
	if err == nil {
		if err = m.take(); errors.Is(err, errTaken) {
			return nil, taken(name, "runs")
		}
		return m, err
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if !m.ours() && os.Remove(m.Dir) == nil { // nobody's, and empty
		return Create(name)
	}
	if !m.ours() {
		return nil, fault.Bad("the name %q is not free: %s is no machine's", name, m.Dir)
	}
	if m.Alive() {
		return nil, taken(name, "runs")
	}
	if s, err := m.State(); err == nil && !s.AutoRemove {
		return nil, taken(name, "has ended; hardtack rm "+name+" removes it")
	}
	if err := m.take(); err != nil {
		return nil, taken(name, "runs")
	}
	if err := m.clean(); err != nil {
		m.lock.Close()
		return nil, err
	}
	return m, nil
}

func taken(name, how string) error {
	return fault.Bad("the name %q is taken by a machine that %s", name, how)
}

// clean removes what is in the folder but the lock.
func (m *Machine) clean() error {
	entries, err := os.ReadDir(m.Dir)
	for _, e := range entries {
		if e.Name() != lockFile && err == nil {
			err = os.RemoveAll(filepath.Join(m.Dir, e.Name()))
		}
	}
	return err
}

// Remove removes a machine that has ended, or this process's own.
func (m *Machine) Remove() error {
	if m.lock == nil {
		if err := m.takeEnded(); err != nil && errors.Is(err, errTaken) {
			return fault.With(fault.Host, "the machine %q runs; stop it first, or use rm -f", m.Name)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := os.RemoveAll(m.Dir)
	if base := filepath.Dir(m.Dir); strings.HasPrefix(filepath.Base(base), "hardtack-") {
		_ = os.Remove(base) // a folder in /tmp is not left behind, once it is empty
	}
	if m.lock != nil {
		m.lock.Close()
		m.lock = nil
	}
	return err
}

// Save writes the state, at once or not at all.
func (m *Machine) Save(s *State) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(m.Dir, stateFile)
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// State reads what a machine is. A machine whose process was killed is told from one that
// ended.
func (m *Machine) State() (*State, error) {
	alive := m.Alive() // before: a machine that ends now has written its state
	s := &State{Name: m.Name, Status: Created}
	f, err := os.OpenFile(filepath.Join(m.Dir, stateFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		st, serr := f.Stat()
		if serr != nil || !st.Mode().IsRegular() || st.Size() > stateMost {
			err = errors.New("it is no file of ours")
		} else {
			err = json.NewDecoder(f).Decode(s)
		}
	}
	switch {
	case err != nil && !alive:
		s = &State{Name: m.Name, Status: Dead, ExitCode: fault.Lost, Error: "its state cannot be read: " + err.Error()}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the state of %s: %w", m.Name, err)
	case !alive && s.Status != Exited:
		s.Status, s.ExitCode, s.Error, s.QEMU = Dead, 137, "its process was killed", 0
	}
	s.Name = m.Name
	return s, nil
}

// words are what generated names are made of.
var words = [2][]string{
	{"brisk", "calm", "deft", "eager", "fair", "glad", "hale", "keen", "lively", "mild", "neat", "plucky", "quiet", "spry", "steady", "trim"},
	{"anchor", "binnacle", "bosun", "capstan", "cutter", "davit", "dory", "galley", "halyard", "jetty", "ketch", "mast", "rudder", "schooner", "skiff", "tiller"},
}

// NewName is a name that no machine has now.
func NewName() string {
	n := uint32(time.Now().UnixNano()/1000) ^ uint32(os.Getpid())*2654435761
	for {
		n = n*1664525 + 1013904223
		name := fmt.Sprintf("%s_%s_%d", words[0][n>>8&15], words[1][n>>12&15], n>>16&1023)
		if _, err := Find(name); err != nil {
			return name
		}
	}
}

// Environ is the environment of a process that a machine's process starts itself anew in.
func Environ(name, value string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	return append(env, name+"="+value)
}
