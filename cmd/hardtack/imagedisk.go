package main

import (
	"context"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hardtack/tool/disk"
	"hardtack/tool/fault"
	"hardtack/tool/machine"
	"hardtack/tool/rootfs"
)

func newImageDisk() *cobra.Command {
	var out, label, size string
	cmd := &cobra.Command{
		Use:   "disk -o DISK [--size SIZE] ROOT",
		Short: "A bootable disk from a root file system",
		Long: `Make a disk with an ext4 file system that holds ROOT: a directory, a tar (also
.gz, .zst), a cpio archive in newc format, or an OCI image, as for "hardtack run".
Neither root nor mke2fs is needed. The file system is written by the ext4 code of
Hardtack's kernel; Linux can mount it.

Owners, modes, times, extended attributes with access control lists, hard and
symbolic links, device nodes and holes are kept. The files of a directory keep
their owners on the host. /dev, /proc, /sys, /run and /tmp are created if they
are missing. An image's command, environment, working directory and user
are kept in /` + disk.ConfigName + ` for "hardtack run --root".

DISK is a new file, which takes space only for its contents, or a block device,
which is used whole unless SIZE is given.`,
		Example: `  hardtack image debian -o root.tar bash coreutils && hardtack image disk -o root.img --size 4G root.tar
  hardtack run --root root.img -- /bin/bash`,
		Args: exactly(1, "one root file system"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return fault.Bad("-o is missing: name the disk to make")
			}
			if out == "-" {
				return fault.Bad("-o -: a disk cannot be written to standard output")
			}
			if len(label) > 16 || strings.ContainsRune(label, 0) {
				return fault.Bad("--label %q: want at most 16 bytes", label)
			}
			bytes := int64(0)
			if size != "" {
				var err error
				if bytes, err = machine.ParseSize("--size", size, 8<<20); err != nil {
					return err
				}
			}
			return writeDisk(cmd.Context(), out, bytes, label, args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "write the disk to this `file` (required)")
	fl.StringVar(&size, "size", "", "the disk's `size`, as in 512M or 4G (default 4G, or all of a block device)")
	fl.StringVar(&label, "label", "", "the file system's `name`")
	return cmd
}

// defaultDisk is a disk's size unless the user says another.
const defaultDisk = 4 << 30

func writeDisk(ctx context.Context, out string, size int64, label, root string) error {
	t, stop := newTidy()
	defer stop()
	if err := t.dir(); err != nil {
		return err
	}
	tree, _, err := openRoot(ctx, root, pullNever, rootfs.Budget{Bytes: math.MaxInt64 / unpackedMax, Entries: math.MaxInt32, Disk: true})
	if err != nil {
		return err
	}
	return t.create(out, func(tmp string) error {
		f, err := os.OpenFile(tmp, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		o := disk.Options{Label: label, Zeroed: info.Mode().IsRegular()}
		if o.Zeroed {
			if size == 0 {
				size = defaultDisk
			}
			if err := f.Truncate(size); err != nil {
				return err
			}
		} else if size, err = deviceSize(f, size); err != nil {
			return err
		}
		if err := disk.Write(f, size, tree, o); err != nil {
			if s := fault.Status(err); s != fault.Host {
				return fault.With(s, "%s: %w", out, err)
			}
			return err
		}
		return f.Close()
	})
}

// unpackedMax keeps multiples of a budget in an int64.
const unpackedMax = 16

// deviceSize is how much of a block device is used.
func deviceSize(f *os.File, want int64) (int64, error) {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeDevice == 0 || info.Mode()&os.ModeCharDevice != 0 {
		return 0, fault.Bad("-o %s: neither a file nor a block device", f.Name())
	}
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if want > have {
		return 0, fault.Bad("-o %s: it has %d MiB, --size says %d", f.Name(), have>>20, want>>20)
	}
	if want == 0 {
		want = have
	}
	return want, nil
}
