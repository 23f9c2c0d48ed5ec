package debian

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"hardtack/tool/fault"
)

// installScripts are the maintainer scripts that dpkg runs when it installs a package
// (deb-postinst(5), deb-preinst(5)).
var installScripts = []string{"preinst", "postinst"}

// members are the files of a package's control.tar: what dpkg is told of it, with the
// maintainer scripts.
type members map[string][]byte

// membersMax bounds them.
const membersMax = 64 << 20

func membersOf(file string) (members, error) {
	plain, err := unpackMember(file, "control.tar")
	if err != nil {
		return nil, err
	}
	m, total := members{}, int64(0)
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fault.Bad("damaged package: %v", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if total += h.Size; total > membersMax {
			return nil, fault.Bad("damaged package: control.tar has more than %d MiB", membersMax>>20)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fault.Bad("damaged package: %v", err)
		}
		m[path.Base(h.Name)] = text
	}
}

// scripts lists which of installScripts a package has.
func (m members) scripts() (list []string) {
	for _, name := range installScripts {
		if _, ok := m[name]; ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// replaced reports whether finish.go does what a package's scripts would have done.
func replaced(name string) bool {
	_, a := accounts[name]
	_, b := owned[name]
	_, c := copies[name]
	_, d := links[name]
	return a || b || c || d
}

// notRun says which scripts were not run, and nothing was done in their place.
func notRun(w io.Writer, packages []unpacked) {
	var list []string
	for _, p := range packages {
		if s := p.control.scripts(); len(s) > 0 && !replaced(p.Package) {
			list = append(list, fmt.Sprintf("%s (%s)", p.Package, strings.Join(s, ", ")))
		}
	}
	if w != nil && len(list) > 0 {
		fmt.Fprintf(w, "maintainer scripts that were not run: %s\n", strings.Join(list, ", "))
	}
}
