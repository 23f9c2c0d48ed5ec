package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// A snapshot is a folder: what the machine is (snapshot.json), the state of its processors
// and devices as QEMU writes it, its memory as a sparse file, and its disks.
const (
	snapshotJSON  = "snapshot.json"
	snapshotState = "state"
	snapshotRAM   = "memory"

	// SnapshotFormat changes whenever the kernel's or the host's side of a copy does.
	SnapshotFormat = 1

	snapshotMost = 1 << 20 // of snapshot.json
)

// Snapshot is a saved machine.
type Snapshot struct {
	Format  int             `json:"format"`
	ID      string          `json:"id"` // also at the end of the memory's file
	Created time.Time       `json:"created"`
	QEMU    string          `json:"qemu"`
	Kernel  string          `json:"kernel"` // hash of its file
	Accel   string          `json:"accelerator"`
	Machine string          `json:"machine"`
	CPUs    int             `json:"cpus"`
	Memory  int64           `json:"memory"`
	NoNet   bool            `json:"noNet"`
	Disks   []SnapshotDisk  `json:"disks"`
	State   string          `json:"state"`       // hash of the state's file
	Guest   json.RawMessage `json:"guest"`       // what the command knows of the guest
	Paused  time.Duration   `json:"nanoseconds"` // that the machine stood still for

	dir string
}

// SnapshotDisk is a disk of a saved machine. One that is read-only stays where it is.
type SnapshotDisk struct {
	File     string    `json:"file"`
	Driver   string    `json:"driver"`
	ReadOnly bool      `json:"readOnly"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Savable says why a machine of this configuration cannot be saved, or returns nil.
func (c *Config) Savable() error {
	switch {
	case c.From != nil:
		return fault.Bad("the machine is a copy itself: its memory is not in a file of its own; fork what it was made of again")
	case len(c.Folders) > 0:
		return fault.Bad("the machine shares a folder of the host, whose open files cannot be saved")
	case c.ICount:
		return fault.Bad("the machine counts instructions (--icount), which a copy could not go on with")
	case c.Clusters:
		return fault.Bad("the machine has several kernels; each would have to be told that it is a copy")
	case c.NIC != "" && c.NIC != NICVirtio:
		return fault.Bad("the machine's network card (--nic %s) would have to be set up anew in a copy, which its driver cannot do", c.NIC)
	case c.Net.Kind == NetTap || c.Net.Kind == NetPasst:
		return fault.Bad("the machine's network is of its own (--net %s), which a copy could not have, too", c.Net.Kind)
	case c.Netdev != "":
		return fault.Bad("the machine's network is of its own (--netdev), which a copy could not have, too")
	case len(c.QEMUArgs) > 0:
		return fault.Bad("the machine has devices of its own (--qemu-arg), which are not known here")
	}
	return nil
}

// ramFile makes the file in memory that is the machine's RAM.
func ramFile(size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "guest")
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// freezing is how long the kernel may take until no program runs.
const freezing = 10 * time.Second

// Save writes a snapshot of the machine into a new folder. The machine stands still while its
// state and what has changed of its memory are written; before, its memory is copied once.
func (r *Running) Save(ctx context.Context, dir string, guest any) (snap *Snapshot, err error) {
	c := r.s.cfg
	if err := c.Savable(); err != nil {
		return nil, err
	}
	if r.s.monitor == nil || r.s.ram == nil {
		return nil, fault.With(fault.Host, "it was started without -d or --name; its memory is in no file")
	}
	if !r.ctl.isReady() {
		return nil, fault.With(fault.Host, "it is still starting")
	}
	r.saveMu.Lock()
	defer r.saveMu.Unlock()
	s := &Snapshot{Format: SnapshotFormat, ID: rand.Text(), Created: time.Now(), Accel: c.Accel, Machine: c.Machine,
		CPUs: c.CPUs, Memory: c.Memory, NoNet: c.NoNet, dir: dir}
	if s.Guest, err = json.Marshal(guest); err != nil {
		return nil, err
	}
	if s.Kernel, err = hashFile(c.Kernel); err != nil {
		return nil, err
	}
	if s.QEMU, err = r.s.monitor.version(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	ram, err := newCopying(r.s.ram, filepath.Join(dir, snapshotRAM), c.Memory, s.ID)
	if err != nil {
		return nil, err
	}
	defer ram.close()
	if err := ram.pass(); err != nil {
		return nil, err
	}
	if err := r.whileStill(ctx, s, ram); err != nil {
		return nil, err
	}
	if s.State, err = hashFile(filepath.Join(dir, snapshotState)); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(filepath.Join(dir, snapshotJSON), append(text, '\n'), 0o600)
}

// whileStill does what must be done while the machine stands still, and has it go on.
func (r *Running) whileStill(ctx context.Context, s *Snapshot, ram *copying) error {
	m := r.s.monitor
	if err := m.ignoreShared(); err != nil {
		return err
	}
	state, err := os.OpenFile(filepath.Join(s.dir, snapshotState), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	select {
	case <-r.ctl.frozen: // of a try that was given up
	default:
	}
	begun := time.Now()
	defer func() { s.Paused = time.Since(begun) }()
	r.ctl.say("freeze")
	defer r.ctl.say("thaw")
	limit := time.NewTimer(freezing)
	defer limit.Stop()
	select {
	case <-r.ctl.frozen:
	case <-limit.C:
		return fault.With(fault.Host, "the machine's kernel did not hold its programs in time: it is too old, or too busy")
	case <-r.Done:
		return fault.With(fault.Host, "the machine has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := m.do("stop", nil, nil, nil); err != nil {
		return err
	}
	copied := make(chan error, 1)
	go func() {
		err := ram.pass()
		if err == nil {
			err = s.copyDisks(r.s.cfg.Disks)
		}
		copied <- err
	}()
	err = m.save(state)
	if cerr := <-copied; err == nil {
		err = cerr
	}
	if cerr := m.do("cont", nil, nil, nil); err == nil {
		err = cerr
	}
	return err
}

// save has QEMU write a stopped machine's state to a file.
func (m *monitor) save(state *os.File) error {
	if err := m.do("getfd", map[string]string{"fdname": "state"}, state, nil); err != nil {
		return err
	}
	if err := m.do("migrate", map[string]string{"uri": "fd:state"}, nil, nil); err != nil {
		return err
	}
	return m.await()
}

// await waits for the end of a migration.
func (m *monitor) await() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(500 * time.Microsecond) {
		if over, err := m.migrated(); over || err != nil {
			return err
		}
	}
	return errors.New("QEMU does not come to an end with the machine's state")
}

// restore has a QEMU that waits for it take a snapshot's state, which stands at a descriptor.
func (m *monitor) restore(fd int) error {
	if err := m.ignoreShared(); err != nil {
		return err
	}
	if err := m.do("migrate-incoming", map[string]string{"uri": fmt.Sprintf("fd:%d", fd)}, nil, nil); err != nil {
		return err
	}
	if err := m.await(); err != nil {
		return err
	}
	return m.do("cont", nil, nil, nil) // it stood still when it was saved
}

// copying is the copy of a machine's memory to a file.
type copying struct {
	from     *os.File
	to       *os.File
	src, dst []byte
	written  int64 // bytes, of all passes
}

func newCopying(ram *os.File, name string, size int64, id string) (c *copying, err error) {
	c = &copying{from: ram}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.to, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if _, err = c.to.WriteAt([]byte(id), size); err != nil {
		return nil, err
	}
	if c.src, err = unix.Mmap(int(ram.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if c.dst, err = unix.Mmap(int(c.to.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return c, nil
}

func (c *copying) close() {
	if c.src != nil {
		_ = unix.Munmap(c.src)
	}
	if c.dst != nil {
		_ = unix.Munmap(c.dst)
	}
	if c.to != nil {
		c.to.Close()
	}
}

// pass copies the pages that differ. What was never touched is a hole in the memory's file.
func (c *copying) pass() error {
	const page = 4096
	for at := int64(0); at < int64(len(c.src)); {
		start, err := unix.Seek(int(c.from.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		} else if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		end, err := unix.Seek(int(c.from.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		for p := start; p < end; p += page {
			if !bytes.Equal(c.dst[p:p+page], c.src[p:p+page]) {
				copy(c.dst[p:p+page], c.src[p:p+page])
				c.written += page
			}
		}
		at = end
	}
	return nil
}

// copyDisks copies disks that can be written, as quickly as the host's file system can.
func (s *Snapshot) copyDisks(disks []Disk) error {
	for i, d := range disks {
		name, err := filepath.Abs(d.File)
		if err != nil {
			return err
		}
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		x := SnapshotDisk{File: name, Driver: d.Driver, ReadOnly: d.ReadOnly, Size: st.Size(), Modified: st.ModTime()}
		if !d.ReadOnly {
			if !st.Mode().IsRegular() {
				return fault.Bad("the disk %s is no file: it cannot be copied", name)
			}
			x.File = fmt.Sprintf("disk%d", i)
			if err := copySparse(name, filepath.Join(s.dir, x.File), st.Size()); err != nil {
				return err
			}
		}
		s.Disks = append(s.Disks, x)
	}
	return nil
}

func copySparse(from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	if err := out.Truncate(size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		} else if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
	return nil
}

func hashFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// OpenSnapshot reads a snapshot and refuses what is none, or not all of one.
func OpenSnapshot(dir string) (*Snapshot, error) {
	s := &Snapshot{dir: dir}
	bad := func(format string, args ...any) (*Snapshot, error) {
		return nil, fault.Bad("the snapshot %s: %s", dir, fmt.Sprintf(format, args...))
	}
	f, err := os.Open(filepath.Join(dir, snapshotJSON))
	if errors.Is(err, fs.ErrNotExist) {
		return bad("there is none; hardtack snapshot makes one")
	} else if err != nil {
		return bad("%v", rootCause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, snapshotMost))
	if err != nil {
		return bad("%v", rootCause(err))
	}
	if err := json.Unmarshal(text, s); err != nil {
		return bad("%s: %v", snapshotJSON, err)
	}
	if s.Format != SnapshotFormat {
		return bad("it was made by another version of this command: its format is %d, not %d", s.Format, SnapshotFormat)
	}
	if s.Memory < MinMemory || s.CPUs < 1 || s.CPUs > MaxCPUs || (s.Machine != MicroVM && s.Machine != Q35) || (s.Accel != KVM && s.Accel != TCG) {
		return bad("%s describes no machine", snapshotJSON)
	}
	if sum, err := hashFile(filepath.Join(dir, snapshotState)); err != nil {
		return bad("%v", rootCause(err))
	} else if sum != s.State {
		return bad("the state of its devices is not what was saved: the file is cut off or another one's")
	}
	if err := s.checkMemory(); err != nil {
		return bad("%v", err)
	}
	for i, d := range s.Disks {
		if err := s.checkDisk(i, d); err != nil {
			return bad("%v", err)
		}
	}
	return s, nil
}

// checkMemory looks for the snapshot's name behind the memory.
func (s *Snapshot) checkMemory() error {
	f, err := os.Open(filepath.Join(s.dir, snapshotRAM))
	if err != nil {
		return rootCause(err)
	}
	defer f.Close()
	id := make([]byte, len(s.ID)+1)
	if n, err := f.ReadAt(id, s.Memory); !errors.Is(err, io.EOF) || string(id[:n]) != s.ID {
		return errors.New("its memory is not what was saved: the file is cut off or another snapshot's")
	}
	return nil
}

func (s *Snapshot) checkDisk(i int, d SnapshotDisk) error {
	if !d.ReadOnly && d.File != fmt.Sprintf("disk%d", i) {
		return fmt.Errorf("%s describes no machine", snapshotJSON)
	}
	st, err := os.Stat(s.diskFile(d))
	switch {
	case err != nil:
		return fmt.Errorf("the disk %s: %w", d.File, rootCause(err))
	case st.Size() != d.Size || d.ReadOnly && !st.ModTime().Equal(d.Modified):
		return fmt.Errorf("the disk %s has changed since", d.File)
	}
	return nil
}

func (s *Snapshot) diskFile(d SnapshotDisk) string {
	if d.ReadOnly {
		return d.File
	}
	return filepath.Join(s.dir, d.File)
}

// CheckKernel refuses a kernel that is not the snapshot's: the one that runs is in its memory.
func (s *Snapshot) CheckKernel(name string) error {
	sum, err := hashFile(name)
	if err == nil && sum != s.Kernel {
		return fault.Bad("the snapshot %s was made with another kernel than %s", s.dir, name)
	}
	return err
}

// Configure makes a configuration that of a copy.
func (s *Snapshot) Configure(c *Config) {
	c.From = s
	c.Accel, c.Machine, c.CPUs, c.Memory, c.NoNet = s.Accel, s.Machine, s.CPUs, s.Memory, s.NoNet
	for _, d := range s.Disks {
		c.Disks = append(c.Disks, Disk{File: s.diskFile(d), Driver: d.Driver, ReadOnly: d.ReadOnly, Overlay: !d.ReadOnly})
	}
}

// Renewal is what makes a copy another machine.
type Renewal struct {
	Hostname string
}

// line is what the kernel is told.
func (n *Renewal) line() string {
	var b [64 + 3]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return fmt.Sprintf("renew %x %d %s 525400%x", b[:64], time.Now().UnixNano(), n.Hostname, b[64:])
}
