// Package imports holds the directions of the project's imports: folders
// depend towards abi, nothing depends on cmd.
package imports

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"
)

// may lists for each folder which other folders of ours its packages may
// import, besides the folder itself. The longest matching prefix counts. A
// folder that is missing here fails the test: new rooms are entered on purpose.
var may = map[string][]string{
	"abi":             {},
	"arch":            {"abi"},
	"lock":            {"abi"},
	"ext4":            {"abi"},
	"nucleus":         {"abi", "arch", "lock"},
	"driver":          {"abi"},
	"driver/virtio":   {"abi", "driver", "lock", "kernel/disk/blockdev", "kernel/net/netdev"},
	"driver/ahci":     {"abi", "driver", "kernel/disk/blockdev"},
	"driver/disktest": {"abi", "driver", "kernel/disk/blockdev"},
	"driver/nvme":     {"abi", "driver", "kernel/disk/blockdev"},
	"driver/e1000":    {"abi", "driver", "driver/virtio", "kernel/net/netdev"},
	"ipc":             {"abi", "lock"},
	"msg":             {"abi", "ipc", "lock"},
	"idl":             {"msg"},
	"task":            {"lock", "msg"},
	"live":            {"msg"},
	"monitor":         {"idl", "msg"},

	// The wings of the kernel, the lowest first.
	"kernel/base":          {"abi", "nucleus"},
	"kernel/fs":            {"abi", "kernel/base"},
	"kernel/reserve":       {"abi", "kernel/base"},
	"kernel/mm":            {"abi", "nucleus", "kernel/base", "kernel/fs"},
	"kernel/disk":          {"abi", "ext4", "lock", "kernel/disk/blockdev", "kernel/base", "kernel/fs", "kernel/mm"},
	"kernel/disk/blockdev": {"abi"}, // what a driver implements
	"kernel/share":         {"abi", "kernel/base", "kernel/fs", "kernel/mm"},
	"kernel/net":           {"abi", "lock", "kernel/net/netdev", "kernel/base", "kernel/fs", "kernel/mm"},
	"kernel/net/netdev":    {"abi"}, // what a driver implements
	"kernel/process":       {"abi", "lock", "nucleus", "kernel/base", "kernel/fs", "kernel/mm", "kernel/reserve"},
	"kernel/fd":            {"abi", "idl", "monitor", "msg", "kernel/base", "kernel/fs", "kernel/process"},
	"kernel/tty":           {"abi", "kernel/base", "kernel/fs"},
	"kernel/pseudofs":      {"abi", "kernel/disk", "kernel/base", "kernel/fs", "kernel/mm", "kernel/net", "kernel/process", "kernel/fd"},
	"kernel/service":       {"abi", "idl", "msg", "kernel/base", "kernel/fs", "kernel/process", "kernel/fd"},
	"kernel/syscall":       {"abi", "nucleus", "kernel"},
	"kernel/trace":         {"abi", "kernel"},

	"overlay":      {"tool/fault"},
	"affinity":     {},
	"tool":         {"abi", "tool"},
	"tool/machine": {"abi", "live", "tool"},
	"tool/named":   {"abi", "idl", "live", "msg", "tool"},
	"tool/cluster": {"abi", "idl", "msg"},
	"tool/image":   {"abi", "overlay", "tool"},
	"tool/watch":   {"abi", "idl", "live", "msg", "tool"},
	"tool/disk":    {"abi", "ext4", "kernel/disk/partition", "tool"},
	"tool/msgtop":  {"msg", "tool"},
	"tool/names":   {"msg", "tool"},
	"examples":     {"idl", "msg"},
	"bench":        {"abi", "affinity", "idl", "ipc", "lock", "msg", "nucleus/ipc", "overlay", "task", "tool", "bench", "ext4", "kernel/fs/tmpfs", "kernel/fs/vfs"},
	"test":         {"abi", "driver", "driver/virtio", "tool", "test", "bench/os", "ext4"},
	"cmd/cluster":  {"tool"},
	"cmd/hardtack": {"abi", "overlay", "tool", "bench", "ext4"},
	"cmd/kernel":   {"abi", "arch", "nucleus", "driver", "idl", "kernel", "live", "monitor", "msg"},

	"test/guest/clusterrings": {"abi", "idl", "msg"},
	"test/guest/clusterrun":   {"idl", "msg"},
	"test/guest/services":     {"idl", "msg"},
	"test/guest/clustermoves": {"task"},
}

const module = "hardtack/"

func folder(pkg string) string {
	best := ""
	for f := range may {
		if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > len(best) {
			best = f
		}
	}
	return best
}

func TestImportDirections(t *testing.T) {
	out, err := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	packages := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages++
		from := strings.TrimPrefix(p.ImportPath, module)
		room := folder(from)
		if room == "" {
			t.Errorf("%s: no folder of this name is in the list", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || folder(to) == room {
				continue
			}
			allowed := false
			for _, f := range may[room] {
				if to == f || strings.HasPrefix(to, f+"/") {
					allowed = true
				}
			}
			if !allowed {
				t.Errorf("%s must not import %s (folder %s)", from, to, room)
			}
		}
	}
	if packages < 20 {
		t.Fatalf("only %d packages listed", packages)
	}
}

// unsafe stays in accessors.
func TestUnsafeFiles(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	accessors := 0
	for _, file := range strings.Fields(string(out)) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if imp.Path.Value != `"unsafe"` {
				continue
			}
			accessors++
			if !strings.HasSuffix(file, "_unsafe.go") {
				t.Errorf("%s imports unsafe but is not called *_unsafe.go", file)
			}
		}
	}
	if accessors == 0 {
		t.Error("no file imports unsafe: the search is broken")
	}
}
