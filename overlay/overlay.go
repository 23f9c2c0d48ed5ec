// Package overlay changes the Go runtime of a build without a fork: small
// patches against the pinned Go's own files, and files that are wholly ours,
// handed to the toolchain by "go build -overlay".
//
// The topics are affinity, with which "hardtack go" builds any program
// (channel-aware scheduling), allocated, ran and collector, with which the kernel is built
// (the bytes that each goroutine has allocated, the time for which it has run, marking in
// small pieces), and locks and sites, with which kernels for tests are built (the order of locks,
// checked; where goroutines allocate).
//
// A topic is one patch in patches/ and the files it names in topics below;
// _runtime/ holds those files, those of another package than runtime in a folder of
// its name (the underscore keeps them from being a package
// of this module). Only edits are kept here. At build time Go's files are read
// from the GOROOT that will build, must have the sums in go<version>.sums, and
// every hunk must match at its very line: a patch applies exactly or not at all.
//
// The patched files and the list for -overlay are kept in the user's cache
// directory, under the Go version and a hash of all that went in.
package overlay

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"hardtack/tool/fault"
)

// Version is the Go release that the patches are made for.
const Version = "go1.26.8"

//go:embed go1.26.8.sums
var sums string

//go:embed patches all:_runtime
var files embed.FS

// topics names the new files of each topic; patches/<topic>.patch has its edits.
var topics = map[string][]string{
	"allocated": {"allocated_unsafe.go"},
	"collector": {"collector_unsafe.go"},
	"locks":     {"locks_unsafe.go", "sync/locks.go"},
	"ran":       {"ran_unsafe.go"},
	"sites":     {"sites_unsafe.go"},
	"turns":     {"turns_unsafe.go"},
	"affinity":  {"affinity.go", "affinity_touch.go", "affinity_group.go", "affinity_pin.go", "affinity_unsafe.go", "affinity_default.go"},
}

// Topics lists what Options.Topics may name.
func Topics() []string {
	var names []string
	for t := range topics {
		names = append(names, t)
	}
	sort.Strings(names)
	return names
}

// Policies are the values of Options.Policy, by their numbers in the runtime.
var Policies = []string{"off", "process", "node", "group"}

// Toolchain is the Go that builds.
type Toolchain struct {
	Version string // as go env GOVERSION
	Root    string // GOROOT
	OS      string // GOOS
	Arch    string // GOARCH
}

// Options say what to build in.
type Options struct {
	Topics []string // none: affinity
	Policy string   // of a program without HARDTACK_AFFINITY in its environment; none: off
	Cache  string   // directory of the cache; none: the user's
}

// Overlay is a prepared change.
type Overlay struct {
	List    string   // the file for -overlay
	Files   []string // what is replaced or new, below GOROOT/src, sorted
	Changed bool     // it was written now, not found in the cache
}

// Check tells whether the patches fit a toolchain.
func Check(t Toolchain) error {
	if t.Version != Version {
		return fault.Bad("the overlay is made for %s, and this is %s; set GOTOOLCHAIN=%s", Version, t.Version, Version)
	}
	if t.OS != "linux" || t.Arch != "amd64" && t.Arch != "arm64" {
		return fault.Bad("the overlay is for linux on amd64 and arm64, not for %s/%s", t.OS, t.Arch)
	}
	return nil
}

// Prepare patches the toolchain's files into the cache and gives the list for
// "go build -overlay". The same input gives the same files; it may run in
// several processes at once.
func Prepare(t Toolchain, o Options) (*Overlay, error) {
	if err := Check(t); err != nil {
		return nil, err
	}
	content, err := o.generate(t.Root)
	if err != nil {
		return nil, err
	}
	if o.Cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no place for the patched files: %w", err)
		}
		o.Cache = filepath.Join(user, "hardtack", "overlay")
	}
	if o.Cache, err = filepath.Abs(o.Cache); err != nil {
		return nil, err
	}
	return write(filepath.Join(o.Cache, t.Version+"-"+hash(t.Root, content)), t.Root, content)
}

// generate makes the new content of each file, by its path below GOROOT/src.
func (o Options) generate(root string) (map[string][]byte, error) {
	if len(o.Topics) == 0 {
		o.Topics = []string{"affinity"}
	}
	if o.Policy == "" {
		o.Policy = Policies[0]
	}
	if !slices.Contains(Policies, o.Policy) {
		return nil, fault.Bad("no policy %q: want %s", o.Policy, strings.Join(Policies, ", "))
	}
	content := map[string][]byte{}
	hunks := map[string][]hunk{}
	seen := map[string]bool{}
	for _, topic := range o.Topics {
		if seen[topic] {
			continue
		}
		seen[topic] = true
		names, ok := topics[topic]
		if !ok {
			return nil, fault.Bad("no topic %q: want %s", topic, strings.Join(Topics(), ", "))
		}
		for _, name := range names {
			data, err := files.ReadFile("_runtime/" + name)
			if err != nil {
				return nil, err
			}
			if name == "affinity_default.go" {
				data = bytes.Replace(data, []byte("= affOff"), fmt.Appendf(nil, "= %d // %s", slices.Index(Policies, o.Policy), o.Policy), 1)
			}
			dir, base := path.Split(name)
			if dir == "" {
				dir = "runtime"
			}
			content[path.Join(dir, "hardtack_"+base)] = data
		}
		patch, err := files.ReadFile("patches/" + topic + ".patch")
		if err != nil {
			return nil, err
		}
		more, err := parsePatch(string(patch))
		if err != nil {
			return nil, fmt.Errorf("%s.patch: %w", topic, err)
		}
		for name, h := range more {
			hunks[name] = append(hunks[name], h...)
		}
	}
	for name, h := range hunks {
		data, err := original(root, name)
		if err != nil {
			return nil, err
		}
		if content[name], err = apply(data, h); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return content, nil
}

// original reads a file of Go and checks that it is the one the patches know.
func original(root, name string) ([]byte, error) {
	path := filepath.Join(root, "src", filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a source file of Go is missing: %w", err)
	}
	for _, line := range strings.Split(sums, "\n") {
		sum, file, _ := strings.Cut(line, "  ")
		if file != name {
			continue
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
			return nil, fault.Bad("%s is not the one of %s: this Go has been changed, and the overlay does not fit it", path, Version)
		}
		return data, nil
	}
	return nil, fmt.Errorf("%s.sums has no sum of %s", Version, name)
}

func hash(root string, content map[string][]byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", root)
	for _, name := range sorted(content) {
		fmt.Fprintf(h, "%q %d\n", name, len(content[name]))
		h.Write(content[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func sorted(content map[string][]byte) []string {
	names := make([]string, 0, len(content))
	for name := range content {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// write puts the files in place where they are missing or not what they should
// be, each by renaming, the list last.
func write(dir, root string, content map[string][]byte) (*Overlay, error) {
	o := &Overlay{List: filepath.Join(dir, "overlay.json"), Files: sorted(content)}
	replace := map[string]string{}
	put := func(path string, data []byte) error {
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
			return nil
		}
		o.Changed = true
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
		if err != nil {
			return err
		}
		_, err = tmp.Write(data)
		if e := tmp.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.Rename(tmp.Name(), path)
		}
		if err != nil {
			os.Remove(tmp.Name())
		}
		return err
	}
	for _, name := range o.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := put(path, content[name]); err != nil {
			return nil, fmt.Errorf("writing the patched files: %w", err)
		}
		replace[filepath.Join(root, "src", filepath.FromSlash(name))] = path
	}
	list, err := listOf(replace)
	if err != nil {
		return nil, err
	}
	if err := put(o.List, list); err != nil {
		return nil, fmt.Errorf("writing the patched files: %w", err)
	}
	return o, nil
}

// Join writes one list for -overlay that holds all that the given lists hold. What
// two of them replace is an error.
func Join(name string, lists ...string) error {
	all := map[string]string{}
	for _, from := range lists {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		var list struct{ Replace map[string]string }
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		for file, by := range list.Replace {
			if _, twice := all[file]; twice {
				return fmt.Errorf("two lists replace %s", file)
			}
			all[file] = by
		}
	}
	data, err := listOf(all)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// listOf is the text of a list for -overlay.
func listOf(replace map[string]string) ([]byte, error) {
	data, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	return append(data, '\n'), err
}
