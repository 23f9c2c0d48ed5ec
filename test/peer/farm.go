package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	osbench "hardtack/bench/os"
	"hardtack/ext4"
)

// farm is an image file that holds many disks, each from a multiple of stride on,
// and room for Linux's report behind them.
type farm struct {
	file   *os.File
	stride int64
	count  int
}

// reportMax is the room for a report in bytes.
const reportMax = 64 << 20

// newFarm makes an image for count disks of at most stride bytes.
func newFarm(name string, count int, stride int64) (*farm, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	fm := &farm{file: f, stride: stride, count: count}
	return fm, f.Truncate(fm.report() + reportMax)
}

func (f *farm) report() int64 { return f.stride * int64(f.count) }

// disk is one disk of the image, as a device.
func (f *farm) disk(i int) ext4.BlockDevice {
	return ext4.NewFileDevice(window{f.file, f.stride * int64(i)}, f.stride)
}

// window is a file from an offset on; nothing need be durable.
type window struct {
	f    *os.File
	base int64
}

func (w window) ReadAt(p []byte, off int64) (int, error)  { return w.f.ReadAt(p, w.base+off) }
func (w window) WriteAt(p []byte, off int64) (int, error) { return w.f.WriteAt(p, w.base+off) }
func (w window) Sync() error                              { return nil }

// put copies a disk's file into the image.
func (f *farm) put(i int, name string) error {
	src, err := os.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if info.Size() > f.stride {
		return fmt.Errorf("%s has %d bytes, a place has %d", name, info.Size(), f.stride)
	}
	return copySparse(f.file, f.stride*int64(i), io.NewSectionReader(src, 0, info.Size()))
}

// get copies a disk out of the image.
func (f *farm) get(i int, name string) error {
	dst, err := os.Create(name)
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := dst.Truncate(f.stride); err != nil {
		return err
	}
	return copySparse(dst, 0, io.NewSectionReader(f.file, f.stride*int64(i), f.stride))
}

// copySparse copies what is not zeros.
func copySparse(dst io.WriterAt, at int64, src io.Reader) error {
	b, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(src, b)
		if n > 0 && !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := dst.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fsck asks e2fsck about a disk of the image; "" is clean.
func (f *farm) fsck(i int, scratch string) (string, error) {
	name := filepath.Join(scratch, "fsck")
	if err := f.get(i, name); err != nil {
		return "", err
	}
	defer os.Remove(name)
	out, err := exec.Command(e2fs("e2fsck"), "-fn", name).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v\n%s", err, out), nil
	}
	return "", nil
}

// e2fs is a program of e2fsprogs, which may be beside the path.
func e2fs(name string) string {
	for _, dir := range []string{"/sbin", "/usr/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return name
}

// linuxPeer is Debian's kernel with our program.
type linuxPeer struct {
	dirs    osbench.Dirs
	kernel  osbench.LinuxKernel
	program []byte
}

func newLinux(scratch string) (*linuxPeer, error) {
	dirs, err := osbench.FindDirs()
	if err != nil {
		return nil, err
	}
	kernel, err := osbench.Linux(dirs)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(scratch, "peer")
	cc := exec.Command("gcc", "-static", "-O2", "-Wall", "-o", out, filepath.Join(dirs.Repo, "test/peer/guest/peer.c"))
	if text, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, text)
	}
	program, err := os.ReadFile(out)
	return &linuxPeer{dirs, kernel, program}, err
}

// command is a line for peer.c about count disks from first on.
func (f *farm) command(what string, first, count int, more ...any) string {
	return fmt.Sprintln(append([]any{"/bench/peer", what, "/dev/vda", first, count, f.stride, f.report()}, more...)...)
}

// start boots Linux with the image and a command.
func (l *linuxPeer) start(f *farm, command string) (*osbench.Machine, error) {
	root, err := osbench.Programs(l.dirs, command)
	if err != nil {
		return nil, err
	}
	root.Add("bench/peer", 0o755, l.program)
	return osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: 1, Memory: "512M", Machine: "microvm",
		Disk: f.file.Name(), Driver: "virtio", Timeout: 20 * time.Minute}.Start(l.dirs, l.kernel)
}

// boot boots Linux for a command and waits for its end. A machine that ends before
// its console shows a line has not come to the command: it is booted again.
func (l *linuxPeer) boot(f *farm, command string) (*osbench.Machine, error) {
	var ends error
	for range 3 {
		m, err := l.start(f, command)
		if err != nil {
			return nil, err
		}
		if _, err = m.Wait(); err == nil || m.Output() != "" {
			return m, err
		}
		ends = errors.Join(ends, err)
	}
	return nil, ends
}

// run boots Linux for a command and returns the lists that it made, by disk.
func (l *linuxPeer) run(f *farm, what string, first, count int, more ...any) (map[int]string, error) {
	m, err := l.boot(f, f.command(what, first, count, more...))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(m.Output(), "peer "+what+" ok") {
		return nil, fmt.Errorf("no end of %s on Linux:\n%s", what, m.Output())
	}
	var length [8]byte
	if _, err := f.file.ReadAt(length[:], f.report()); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > reportMax-8 {
		return nil, fmt.Errorf("a report of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := f.file.ReadAt(text, f.report()+8); err != nil {
		return nil, err
	}
	parts := map[int]*strings.Builder{}
	for line := range strings.Lines(string(text)) {
		disk := 0
		if _, err := fmt.Sscan(line, &disk); err != nil {
			return nil, fmt.Errorf("report: %q", line)
		}
		if parts[disk] == nil {
			parts[disk] = new(strings.Builder)
		}
		parts[disk].WriteString(line)
	}
	lists := map[int]string{}
	for disk, b := range parts {
		lists[disk] = b.String()
	}
	return lists, nil
}
