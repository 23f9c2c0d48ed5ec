package overlay

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hardtack/tool/fault"
)

// The kernel's TCP/IP stack is a module, gVisor's netstack. Changes to it are kept and
// applied like the runtime's topics, except that the module's version identifies the
// originals: go.sum has their checksums. New files are named after their package:
// _netstack/tcp_ack.go goes to pkg/tcpip/transport/tcp.
//
// The go command does not allow overlays of files in its module cache. The list therefore
// gives it another go.mod, which replaces the module by a folder whose files exist only
// in the list: those of the module cache and the patched ones. The folder itself must
// exist, because the go command starts the assembler in it.

// NetstackModule is the module that the patch is for, and its version.
const (
	NetstackModule  = "gvisor.dev/gvisor"
	NetstackVersion = "v0.0.0-20260905035102-160fafc42237"

	netstackFolder = "build/netstack" // in the main module; of empty folders
)

//go:embed netstack.patch all:_netstack
var netstack embed.FS

// netstackPackages maps the new files to their packages.
var netstackPackages = map[string]string{
	"tcp":   "pkg/tcpip/transport/tcp",
	"udp":   "pkg/tcpip/transport/udp",
	"ipv4":  "pkg/tcpip/network/ipv4",
	"ipv6":  "pkg/tcpip/network/ipv6",
	"stack": "pkg/tcpip/stack",

	"network": "pkg/tcpip/transport/internal/network",
}

// Netstack writes the patched files to dir and returns the list for "go build
// -overlay" there. root is the main module's folder, module that of the
// unchanged netstack, version its version.
func Netstack(dir, root, module, version string) (string, error) {
	if version != NetstackVersion {
		return "", fault.Bad("the changes to %s are made for %s, and this is %s", NetstackModule, NetstackVersion, version)
	}
	replace := map[string]string{}
	inModule := func(name string) string {
		return filepath.Join(root, filepath.FromSlash(netstackFolder), filepath.FromSlash(name))
	}
	err := fs.WalkDir(os.DirFS(module), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (name == "pkg" || strings.HasPrefix(name, "pkg/")) {
			return os.MkdirAll(inModule(name), 0o755)
		}
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(name, "_test.go") && (name == "go.mod" || strings.HasPrefix(name, "pkg/")) && !saves(name) {
			replace[inModule(name)] = filepath.Join(module, filepath.FromSlash(name))
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", NetstackModule, err)
	}
	content, err := patchedNetstack(module)
	if err != nil {
		return "", err
	}
	for name, data := range content {
		to := filepath.Join(dir, filepath.FromSlash(name))
		replace[inModule(name)] = to
		if err := writeFile(to, data); err != nil {
			return "", err
		}
	}
	mod := filepath.Join(root, "go.mod")
	text, err := os.ReadFile(mod)
	if err != nil {
		return "", err
	}
	replace[mod] = filepath.Join(dir, "go.mod")
	text = append(bytes.TrimRight(text, "\n"), "\n\nreplace "+NetstackModule+" => ./"+netstackFolder+"\n"...)
	if err := writeFile(replace[mod], text); err != nil {
		return "", err
	}
	list, err := listOf(replace)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, writeFile(name, list)
}

// saves reports whether a file is only there to save and restore a stack, which this kernel
// never does.
func saves(name string) bool {
	return strings.HasSuffix(name, "_state_autogen.go") || name == "pkg/tcpip/transport/tcp/endpoint_state.go"
}

// patchedNetstack makes the new content of each file, by its path in the module.
func patchedNetstack(module string) (map[string][]byte, error) {
	content := map[string][]byte{}
	entries, err := netstack.ReadDir("_netstack")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pkg, _, _ := strings.Cut(e.Name(), "_")
		to, ok := netstackPackages[pkg]
		if !ok {
			return nil, fmt.Errorf("_netstack/%s: no package %q", e.Name(), pkg)
		}
		if content[to+"/hardtack_"+e.Name()], err = netstack.ReadFile("_netstack/" + e.Name()); err != nil {
			return nil, err
		}
	}
	patch, err := netstack.ReadFile("netstack.patch")
	if err != nil {
		return nil, err
	}
	hunks, err := parsePatch(string(patch))
	if err != nil {
		return nil, fmt.Errorf("netstack.patch: %w", err)
	}
	for name, h := range hunks {
		data, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("a file of %s is missing: %w", NetstackModule, err)
		}
		if content[name], err = apply(data, h); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return content, nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
