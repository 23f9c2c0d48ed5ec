package rootfs

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"hardtack/tool/fault"
)

// bootName is the archive's first member. The kernel reads it before it
// unpacks the rest; it does not appear in the guest.
const bootName = ".hardtack/boot.json"

// bootMax bounds the record: a command line and an environment as large as
// Linux takes.
const bootMax = 2 << 20

// Boot is what the kernel is told about this boot.
type Boot struct {
	Args     []string `json:"args"` // Args[0] is a path of the root file system
	Env      []string `json:"env"`
	Cwd      string   `json:"cwd"`
	UID      uint32   `json:"uid"`
	GID      uint32   `json:"gid"`
	Groups   []uint32 `json:"groups"`
	User     string   `json:"user"` // as the user wrote it; UID, GID, Groups are what it means
	Terminal bool     `json:"terminal"`
	Rows     int      `json:"rows"`
	Cols     int      `json:"cols"`
	Hostname string   `json:"hostname"`
	Net      Net      `json:"net"`
	ReadOnly bool     `json:"readonly"` // the root file system, not what is mounted in it
	Tmpfs    []Tmpfs  `json:"tmpfs"`
	Reap     bool     `json:"reap"`  // process 1 is no init: the kernel collects children that it inherits
	Pprof    int      `json:"pprof"` // port of the kernel's own profiles, 0 for none
	Folders  []Folder `json:"folders,omitempty"`
}

// Folder is a folder of the host that the kernel mounts before it starts process 1.
type Folder struct {
	Tag      string `json:"tag"`
	Path     string `json:"path"` // absolute and clean
	ReadOnly bool   `json:"readonly"`
	Options  string `json:"options"` // of the mount
}

// Tmpfs is a file system in memory, mounted before process 1 starts.
type Tmpfs struct {
	Path    string `json:"path"`
	Options string `json:"options"` // as mount -o has them
}

// Net is the guest's network configuration.
type Net struct {
	Mode    string `json:"mode"` // dhcp, static, none
	Address string `json:"address"`
	Gateway string `json:"gateway"`
	DNS     string `json:"dns"`
	MTU     int    `json:"mtu,omitempty"` // 0: the card's own
}

func (b *Boot) encode() ([]byte, error) {
	var paths []string
	for _, f := range b.Folders {
		paths = append(paths, f.Path)
	}
	for _, list := range [][]string{b.Args, b.Env, {b.Cwd, b.Hostname}, paths} {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, fault.Bad("%q contains a zero byte", s)
			}
			if !utf8.ValidString(s) {
				return nil, fault.Bad("%q is not UTF-8, which is all that the boot record can carry", s)
			}
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if len(text) > bootMax {
		return nil, fault.Bad("command and environment are larger than %d MiB", bootMax>>20)
	}
	return text, nil
}
