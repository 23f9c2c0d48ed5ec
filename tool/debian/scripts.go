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

// scriptsOf lists which of them a package has.
func scriptsOf(file string) (list []string, err error) {
	plain, err := unpackMember(file, "control.tar")
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(list)
			return list, nil
		}
		if err != nil {
			return nil, fault.Bad("damaged package: %v", err)
		}
		if name := path.Base(h.Name); h.Typeflag == tar.TypeReg && slices.Contains(installScripts, name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
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
func notRun(w io.Writer, debs []deb, scripts [][]string) {
	var list []string
	for i, d := range debs {
		if len(scripts[i]) > 0 && !replaced(d.Package) {
			list = append(list, fmt.Sprintf("%s (%s)", d.Package, strings.Join(scripts[i], ", ")))
		}
	}
	if w != nil && len(list) > 0 {
		fmt.Fprintf(w, "maintainer scripts that were not run: %s\n", strings.Join(list, ", "))
	}
}
