// Command disk checks a disk as programs see it. It is process 1 of a guest:
//
//	disk [-n PROCESSES] [-blocks N] [-lost BLOCK] [-noflush] DEVICE
//
// Some processes at once write the first N blocks of 4 KiB, neighbours by
// different processes, past the cache and through it, whole and in pieces, and
// read them back. What block b holds follows from b (Pattern), so that the host
// can compare the image. With -lost the write of a block is expected to fail:
// its writer must hear EIO and the others nothing. With -noflush the first
// flush is expected to fail.
//
// The last line is "disk: ok" if all was right.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hardtack/test/guest/disk/pattern"
)

var (
	processes = flag.Int("n", 4, "processes")
	blocks    = flag.Int("blocks", 1024, "blocks of 4 KiB")
	lost      = flag.Int("lost", -1, "block that cannot be written")
	noFlush   = flag.Bool("noflush", false, "the first flush fails")
	child     = flag.Int("child", -1, "be this process")
)

func main() {
	flag.Parse()
	if *child >= 0 {
		check(writer(flag.Arg(0), *child))
		return
	}
	check(run(flag.Arg(0)))
	fmt.Println("disk: ok")
}

func check(err error) {
	if err != nil {
		fmt.Println("disk: FAIL:", err)
		os.Exit(1)
	}
}

func run(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := properties(f, device); err != nil {
		return err
	}
	if *noFlush {
		if _, err := f.WriteAt(make([]byte, pattern.Size), 0); err != nil {
			return err
		}
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			return fmt.Errorf("fsync with a flush that fails: %v", err)
		}
	}
	var children []*exec.Cmd
	for i := range *processes {
		args := append([]string{"-child", strconv.Itoa(i)}, os.Args[1:]...)
		c := exec.Command("/proc/self/exe", args...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return err
		}
		children = append(children, c)
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	// Everything again, from the disk: the cache is dropped.
	if err := unix.IoctlSetInt(int(f.Fd()), unix.BLKFLSBUF, 0); err != nil {
		return fmt.Errorf("BLKFLSBUF: %w", err)
	}
	buf := make([]byte, 64*pattern.Size)
	for b := 0; b < *blocks; b += 64 {
		n := min(64, *blocks-b)
		if _, err := f.ReadAt(buf[:n*pattern.Size], int64(b)*pattern.Size); err != nil {
			return fmt.Errorf("read of block %d: %w", b, err)
		}
		for i := range n {
			if b+i != *lost && !bytes.Equal(buf[i*pattern.Size:][:pattern.Size], pattern.Block(b+i)) {
				return fmt.Errorf("block %d differs", b+i)
			}
		}
	}
	return figures(device)
}

// properties compares what the device file tells with /sys and /proc.
func properties(f *os.File, device string) error {
	size, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKGETSIZE64) // 64 bits, as an int here
	if err != nil {
		return fmt.Errorf("BLKGETSIZE64: %w", err)
	}
	sector, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET)
	if err != nil || sector != 512 {
		return fmt.Errorf("BLKSSZGET: %d, %v", sector, err)
	}
	end, err := f.Seek(0, 2)
	if err != nil || end != int64(size) {
		return fmt.Errorf("the end is at %d (%v), the size %d", end, err, size)
	}
	name := strings.TrimPrefix(device, "/dev/")
	text, err := os.ReadFile("/sys/class/block/" + name + "/size")
	if err != nil || strings.TrimSpace(string(text)) != strconv.FormatInt(int64(size)/512, 10) {
		return fmt.Errorf("/sys says %q, %v", text, err)
	}
	text, err = os.ReadFile("/proc/partitions")
	if err != nil || !strings.Contains(string(text), fmt.Sprintf(" %d %s\n", size/1024, name)) {
		return fmt.Errorf("/proc/partitions: %q, %v", text, err)
	}
	if _, err := f.WriteAt([]byte{1}, end); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("write at the end: %v", err)
	}
	if n, err := f.ReadAt(make([]byte, 1), end); n != 0 || err == nil {
		return fmt.Errorf("read at the end: %d, %v", n, err)
	}
	g, err := os.OpenFile(device, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer g.Close()
	if _, err := g.WriteAt(make([]byte, 100), 0); !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("direct write of 100 bytes: %v", err)
	}
	return nil
}

// figures checks whether the reads and writes were counted.
func figures(device string) error {
	name := strings.TrimPrefix(device, "/dev/")
	disk := name
	if _, err := os.Stat("/sys/block/" + disk); err != nil {
		disk = strings.TrimSuffix(strings.TrimRight(name, "0123456789"), "p")
	}
	text, err := os.ReadFile("/sys/block/" + disk + "/stat")
	if err != nil {
		return err
	}
	f := strings.Fields(string(text))
	if len(f) != 17 {
		return fmt.Errorf("/sys/block/%s/stat has %d figures", disk, len(f))
	}
	for _, i := range []int{2, 6} { // sectors
		if n, _ := strconv.Atoi(f[i]); n < *blocks*8 {
			return fmt.Errorf("figure %d of %q is less than %d", i, text, *blocks*8)
		}
	}
	return nil
}

// writer is one of the processes: it has every n-th block.
func writer(device string, me int) error {
	cached, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	direct, err := os.OpenFile(device, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(me), 1))
	var mine []int
	for b := me; b < *blocks; b += *processes {
		mine = append(mine, b)
	}
	aligned, err := unix.Mmap(-1, 0, pattern.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	expectLost := false
	for _, i := range r.Perm(len(mine)) {
		b := mine[i]
		at := int64(b) * pattern.Size
		data := pattern.Block(b)
		switch r.IntN(4) {
		case 0, 1:
			copy(aligned, data)
			if _, err = direct.WriteAt(aligned, at); b == *lost {
				if !errors.Is(err, syscall.EIO) {
					return fmt.Errorf("direct write of the lost block: %v", err)
				}
				err = nil
			}
		case 2:
			_, err = cached.WriteAt(data, at)
			expectLost = expectLost || b == *lost
		case 3: // in pieces, the last first
			cut := 1 + r.IntN(pattern.Size-1)
			if _, err = cached.WriteAt(data[cut:], at+int64(cut)); err == nil {
				_, err = cached.WriteAt(data[:cut], at)
			}
			expectLost = expectLost || b == *lost
		}
		if err != nil {
			return fmt.Errorf("write of block %d: %w", b, err)
		}
		// One of those that are there already.
		j := r.IntN(len(mine))
		if j == i && b != *lost {
			if _, err := cached.ReadAt(aligned, at); err != nil || !bytes.Equal(aligned, data) {
				return fmt.Errorf("block %d read at once differs (%v)", b, err)
			}
		}
	}
	if err := syncAll(cached, expectLost); err != nil {
		return err
	}
	return readAgain(r, mine, cached, direct, aligned)
}

// syncAll flushes the cache; expectLost says that a block of it is lost.
func syncAll(cached *os.File, expectLost bool) error {
	err := cached.Sync()
	if expectLost && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("fsync after a lost write: %v", err)
	}
	if err != nil && *lost < 0 {
		return fmt.Errorf("fsync: %w", err)
	}
	return nil
}

// readAgain reads all blocks of this process again, in any order, through either file.
func readAgain(r *rand.Rand, mine []int, cached, direct *os.File, aligned []byte) error {
	for _, i := range r.Perm(len(mine)) {
		b := mine[i]
		f := cached
		if r.IntN(2) == 0 {
			f = direct
		}
		if _, err := f.ReadAt(aligned, int64(b)*pattern.Size); err != nil {
			return fmt.Errorf("read of block %d: %w", b, err)
		}
		if b != *lost && !bytes.Equal(aligned, pattern.Block(b)) {
			return fmt.Errorf("block %d differs", b)
		}
	}
	return nil
}
