package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hardtack/tool/fault"
)

// Folder is a folder of the host that the guest sees at a path of its own, by 9P.
type Folder struct {
	Host     string // absolute
	Guest    string // absolute and clean
	ReadOnly bool
	Cache    string // none or loose
	Mapped   bool   // owners and modes are kept in extended attributes
	Make     bool   // Host is made if it does not exist
}

// maxFolders bounds the folders of a machine: microvm has 32 places for virtio devices,
// and others need some.
const maxFolders = 16

// ParseVolume reads HOST:GUEST[:OPTIONS], as docker's -v: options are ro, rw, and those
// of ParseMount that choose a cache or a way to keep owners.
func ParseVolume(s string) (Folder, error) {
	f := Folder{Cache: "none", Make: true}
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return f, fault.Bad("--volume %q: want HOST:GUEST or HOST:GUEST:ro", s)
	}
	f.Host, f.Guest = parts[0], parts[1]
	if f.Host != "." && f.Host != ".." && !strings.HasPrefix(f.Host, "/") && !strings.HasPrefix(f.Host, "./") && !strings.HasPrefix(f.Host, "../") {
		return f, fault.Bad("--volume %q: the host's folder must be absolute, or begin with ./ or ../: there are no named volumes", s)
	}
	if len(parts) == 3 {
		for option := range strings.SplitSeq(parts[2], ",") {
			switch key, value, _ := strings.Cut(option, "="); {
			case option == "ro":
				f.ReadOnly = true
			case option == "rw":
				f.ReadOnly = false
			case f.setOption(key, value):
			default:
				return f, fault.Bad("--volume %q: unknown option %q; there are ro, rw, cache=none|loose and owners=host|mapped", s, option)
			}
		}
	}
	return f, f.complete("--volume", s)
}

// ParseMount reads type=bind,source=HOST,target=GUEST[,readonly], as docker's --mount.
// Unlike -v it does not make the host's folder.
func ParseMount(s string) (Folder, error) {
	f := Folder{Cache: "none"}
	kind := ""
	for option := range strings.SplitSeq(s, ",") {
		key, value, has := strings.Cut(option, "=")
		switch key {
		case "type":
			kind = value
		case "source", "src":
			f.Host = value
		case "target", "destination", "dst":
			f.Guest = value
		case "readonly", "ro":
			switch {
			case !has || value == "true" || value == "1":
				f.ReadOnly = true
			case value == "false" || value == "0":
				f.ReadOnly = false
			default:
				return f, fault.Bad("--mount %q: %s: want true or false", s, option)
			}
		default:
			if !f.setOption(key, value) {
				return f, fault.Bad("--mount %q: unknown option %q; there are type, source, target, readonly, cache=none|loose and owners=host|mapped", s, option)
			}
		}
	}
	if kind != "bind" {
		return f, fault.Bad("--mount %q: type=%s: only type=bind is there", s, kind)
	}
	if f.Host == "" || f.Guest == "" {
		return f, fault.Bad("--mount %q: want type=bind,source=HOST,target=GUEST", s)
	}
	return f, f.complete("--mount", s)
}

// setOption sets what both flags know.
func (f *Folder) setOption(key, value string) bool {
	switch key + "=" + value {
	case "cache=none", "cache=loose":
		f.Cache = value
	case "owners=host", "owners=mapped":
		f.Mapped = value == "mapped"
	default:
		return false
	}
	return true
}

// complete makes paths absolute and clean.
func (f *Folder) complete(flag, s string) error {
	if !strings.HasPrefix(f.Guest, "/") {
		return fault.Bad("%s %q: the guest's path %q must be absolute", flag, s, f.Guest)
	}
	if f.Guest = path.Clean(f.Guest); f.Guest == "/" {
		return fault.Bad("%s %q: the guest's path cannot be /; --root takes a disk for that", flag, s)
	}
	host, err := filepath.Abs(f.Host)
	if err != nil {
		return fault.Bad("%s %q: %v", flag, s, rootCause(err))
	}
	f.Host = host
	return nil
}

// prepare makes the host's folder where that is asked for, and refuses what cannot be
// shared.
func (f *Folder) prepare() error {
	st, err := os.Stat(f.Host)
	if errors.Is(err, fs.ErrNotExist) && f.Make {
		if err = os.MkdirAll(f.Host, 0o755); err == nil {
			st, err = os.Stat(f.Host)
		}
	}
	if err != nil {
		return fault.Bad("the folder %s cannot be shared: %v", f.Host, rootCause(err))
	}
	if !st.IsDir() {
		return fault.Bad("%s cannot be shared: only folders can, and this is a file", f.Host)
	}
	return nil
}

// Prepare makes the folders that are missing; it is for a machine that is about to start.
func (c *Config) Prepare() error {
	for i := range c.Folders {
		if err := c.Folders[i].prepare(); err != nil {
			return err
		}
	}
	return nil
}

// checkFolders refuses what QEMU or the guest could not do.
func (c *Config) checkFolders() error {
	if len(c.Folders) > maxFolders {
		return fault.Bad("%d folders: a machine has at most %d", len(c.Folders), maxFolders)
	}
	seen := map[string]bool{}
	for _, f := range c.Folders {
		if seen[f.Guest] {
			return fault.Bad("two folders for %s of the guest", f.Guest)
		}
		seen[f.Guest] = true
	}
	return nil
}

// Tag is the name of folder i by which the guest mounts it.
func (c *Config) Tag(i int) string { return fmt.Sprintf("folder%d", i) }

// folderArgs are QEMU's arguments for the folders. QEMU serves them itself: with
// security_model=none it makes files as who runs it, and what it may not do (change an
// owner) it leaves out.
func (c *Config) folderArgs(bus string) (args []string) {
	for i, f := range c.Folders {
		fsdev := fmt.Sprintf("local,id=%s,path=%s,multidevs=remap,security_model=", c.Tag(i), strings.ReplaceAll(f.Host, ",", ",,"))
		if f.Mapped {
			fsdev += "mapped-xattr"
		} else {
			fsdev += "none"
		}
		if f.ReadOnly {
			fsdev += ",readonly=on"
		}
		args = append(args, "-fsdev", fsdev, "-device", fmt.Sprintf("virtio-9p-%s,fsdev=%s,mount_tag=%s", bus, c.Tag(i), c.Tag(i)))
	}
	return args
}
