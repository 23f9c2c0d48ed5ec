package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hardtack/ext4"
	"hardtack/tool/disk"
	"hardtack/tool/fault"
)

// Exit statuses of fsck are e2fsck's.
const (
	fsckErrors = 4  // errors are on the disk
	fsckFailed = 8  // the disk could not be examined
	fsckUsage  = 16 // flags or arguments
)

func newFsck() *cobra.Command {
	var part int
	var replay, write, verbose bool
	cmd := &cobra.Command{
		Use:   "fsck [-v] [--replay [--write]] DISK",
		Short: "Check the file system of a disk",
		Long: `Check the ext4 file system of a disk: a raw image or a block device. The command
repairs nothing and, without --write, writes nothing. It prints one line per
problem on standard output.

A disk that was not unmounted cleanly has changes in its journal that are not yet
in place. The command says so, and checks the disk without them. With --replay it
checks the disk as the next mount will leave it. --replay --write changes the
disk: it replays the journal, finishes deleting the files that were being deleted,
and marks the disk clean. The disk must not be mounted.

Exit status, as for e2fsck -fn:
  0    the file system is clean
  4    it has errors
  8    it could not be examined: no such file, not ext4, unknown features
  16   bad flags or arguments`,
		Example: `  hardtack fsck root.img
  hardtack fsck -v --part 1 /dev/sdb
  hardtack fsck --replay --write root.img`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.With(fsckUsage, "want one disk; see %s --help", cmd.CommandPath())
			}
			if part < 0 {
				return fault.With(fsckUsage, "--part %d: want the number of a partition", part)
			}
			if write && !replay {
				return fault.With(fsckUsage, "--write needs --replay")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := disk.Open(args[0], part, write)
			if err != nil {
				return fault.With(fsckFailed, "%w", err)
			}
			defer d.Close()
			c := fsck{out: cmd.OutOrStdout(), warn: cmd.ErrOrStderr(), name: args[0], verbose: verbose, replay: replay, write: write}
			return c.run(d)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.With(fsckUsage, "%v; see %s --help", err, cmd.CommandPath())
	})
	fl := cmd.Flags()
	fl.IntVar(&part, "part", 0, "the `number` of the partition (default: the disk has no partitions)")
	fl.BoolVar(&replay, "replay", false, "replay the journal, in memory, and check the result")
	fl.BoolVar(&write, "write", false, "with --replay: replay the journal on the disk")
	fl.BoolVarP(&verbose, "verbose", "v", false, "print more about the file system")
	return cmd
}

// fsck is one check.
type fsck struct {
	out, warn              io.Writer
	name                   string
	verbose, replay, write bool
}

func (c *fsck) run(dev ext4.BlockDevice) error {
	if c.replay && !c.write {
		dev = disk.Overlay(dev)
	}
	fs, err := ext4.Mount(dev, ext4.Options{ReadOnly: true, NoLoad: true})
	if err != nil && ext4.Errno(err) != damaged {
		return fault.With(fsckFailed, "%s: %w", c.name, err)
	}
	var info ext4.Info
	if err == nil {
		info = fs.Info()
		if info.Recover && c.replay {
			if fs, err = ext4.Mount(dev, ext4.Options{}); err == nil {
				err = fs.Unmount()
			}
			if err != nil {
				fmt.Fprintf(c.out, "%s: the journal: %v\n", c.name, err)
				return exitStatus(fsckErrors)
			}
		} else if info.Recover {
			fmt.Fprintf(c.warn, "%s: it was not unmounted; the journal is not replayed (--replay does that, in memory)\n", c.name)
		}
	}
	found := 0
	_, err = ext4.Check(dev, func(problem string) {
		if problem != ext4.NotReplayed {
			found++
			fmt.Fprintf(c.out, "%s: %s\n", c.name, problem)
		}
	})
	if err != nil {
		return fault.With(fsckFailed, "%s: %w", c.name, err)
	}
	if info.BlockSize > 0 {
		c.describe(dev, info)
	}
	if found > 0 {
		fmt.Fprintf(c.out, "%s: %d problems\n", c.name, found)
		return exitStatus(fsckErrors)
	}
	return nil
}

// damaged is the error of what cannot be right.
const damaged = 117 // EUCLEAN

// describe prints the summary.
func (c *fsck) describe(dev ext4.BlockDevice, before ext4.Info) {
	i := before
	if fs, err := ext4.Mount(dev, ext4.Options{ReadOnly: true, NoLoad: true}); err == nil {
		i = fs.Info()
	}
	if c.verbose {
		last, u := "never", before.UUID
		if !before.LastMounted.IsZero() {
			last = before.LastMounted.UTC().Format(time.DateTime)
		}
		for _, l := range [][2]string{
			{"label", before.Label}, {"UUID", fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])},
			{"features", strings.Join(before.Features, " ")},
			{"made", before.Made.UTC().Format(time.DateTime)}, {"last mounted", last},
			{"blocks", fmt.Sprintf("%d of %d bytes, %d free", i.Blocks, i.BlockSize, i.FreeBlocks)},
			{"inodes", fmt.Sprintf("%d of %d bytes, %d free", i.Inodes, i.InodeSize, i.FreeInodes)},
			{"groups", fmt.Sprint(i.Groups)},
		} {
			fmt.Fprintf(c.out, "%-13s %s\n", l[0], l[1])
		}
	}
	fmt.Fprintf(c.out, "%s: %d/%d files, %d/%d blocks\n", c.name, i.Inodes-i.FreeInodes, i.Inodes, i.Blocks-i.FreeBlocks, i.Blocks)
}
