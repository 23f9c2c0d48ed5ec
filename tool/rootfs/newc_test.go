package rootfs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var roomy = Budget{Bytes: 1 << 30, Entries: 1 << 20}

// plainEntry is what the simplest reader of the format finds: an oracle that
// shares nothing with the package.
type plainEntry struct {
	name            string
	ino, mode       uint64
	uid, gid, nlink uint64
	major, minor    uint64
	data            []byte
	dataAt          int
}

func plainRead(t interface{ Fatalf(string, ...any) }, b []byte) []plainEntry {
	var all []plainEntry
	for at := 0; ; {
		if at+110 > len(b) || string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at %d of %d", at, len(b))
		}
		var f [13]uint64
		for i := range f {
			f[i], _ = strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 64)
		}
		name := string(b[at+110 : at+110+int(f[11])])
		if !strings.HasSuffix(name, "\x00") {
			t.Fatalf("name %q has no end", name)
		}
		name = name[:strings.IndexByte(name, 0)]
		dataAt := (at + 110 + int(f[11]) + 3) / 4 * 4
		if name == "TRAILER!!!" {
			return all
		}
		all = append(all, plainEntry{
			name: name, ino: f[0], mode: f[1], uid: f[2], gid: f[3], nlink: f[4],
			major: f[9], minor: f[10], data: b[dataAt : dataAt+int(f[6])], dataAt: dataAt,
		})
		at = (dataAt + int(f[6]) + 3) / 4 * 4
	}
}

// genTree draws a tree with files of sizes around a page, links and devices.
func genTree(t *rapid.T) *Tree {
	tree := New(roomy)
	dirs := []string{""}
	var files []string
	name := rapid.StringMatching(`[a-zA-Z0-9._-]{1,40}`).Filter(func(s string) bool { return strings.Trim(s, ".") != "" })
	for range rapid.IntRange(0, 30).Draw(t, "files") {
		full := path.Join(rapid.SampledFrom(dirs).Draw(t, "dir"), name.Draw(t, "name"))
		if _, err := tree.Lookup(full, false); err == nil {
			continue
		}
		n := &Inode{
			Mode: rapid.Uint32Range(0, 0o7777).Draw(t, "perm"), UID: rapid.Uint32().Draw(t, "uid"),
			GID: rapid.Uint32().Draw(t, "gid"), Mtime: int64(rapid.Uint32().Draw(t, "mtime")),
		}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			n.Mode |= Dir
			dirs = append(dirs, full)
		case 1:
			n.Mode |= Symlink
			n.Target = name.Draw(t, "target")
		case 2:
			n.Mode |= Char
			n.Major, n.Minor = 1, 3
			full = "dev/" + strings.ReplaceAll(full, "/", "_")
		case 3:
			if len(files) > 0 {
				if err := tree.Link(full, rapid.SampledFrom(files).Draw(t, "linked")); err != nil {
					t.Fatal(err)
				}
			}
			continue
		default:
			n.Mode |= Regular
			size := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 100, 4095, 4096, 4097, 8192, 10000}).Draw(t, "size")
			n.Data = Bytes(bytes.Repeat([]byte{byte(size), 'x', byte(len(files))}, size)[:size])
			files = append(files, full)
		}
		if err := tree.Put(full, n); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestInitrd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := genTree(t)
		boot := &Boot{Args: []string{"/init", rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(t, "arg")}}
		var out bytes.Buffer
		if err := tree.WriteInitrd(&out, boot); err != nil {
			t.Fatal(err)
		}
		entries := plainRead(t, out.Bytes())

		// The boot record is first and whole.
		if entries[0].name != ".hardtack/boot.json" || entries[0].mode&TypeMask != Regular {
			t.Fatalf("first entry %q", entries[0].name)
		}
		var got Boot
		if err := json.Unmarshal(entries[0].data, &got); err != nil || !slices.Equal(got.Args, boot.Args) {
			t.Fatalf("boot record %s: %v", entries[0].data, err)
		}

		// Every file is there as it was, directories first, pages aligned.
		seen := map[string]bool{"": true}
		content := map[uint64][]byte{}
		count := map[uint64]uint64{}
		inode := map[uint64]*Inode{}
		for _, e := range entries[1:] {
			name := strings.TrimPrefix(e.name, ".")
			if e.name != "." {
				name = e.name
			}
			if dir, _ := path.Split(name); !seen[strings.TrimSuffix(dir, "/")] {
				t.Fatalf("%q comes before its directory", name)
			}
			seen[name] = true
			n, err := tree.Lookup(name, false)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if e.mode != uint64(n.Mode) || e.uid != uint64(n.UID) || e.gid != uint64(n.GID) || e.major != uint64(n.Major) || e.minor != uint64(n.Minor) {
				t.Fatalf("%q: attributes %+v of %+v", name, e, n)
			}
			if old := inode[e.ino]; old != nil && old != n {
				t.Fatalf("%q shares a number with another file", name)
			}
			inode[e.ino] = n
			count[e.ino]++
			switch n.Type() {
			case Regular:
				if len(e.data) >= 4096 && e.dataAt%4096 != 0 {
					t.Fatalf("%q: %d bytes at %d", name, len(e.data), e.dataAt)
				}
				content[e.ino] = append(content[e.ino], e.data...)
			case Symlink:
				if string(e.data) != n.Target {
					t.Fatalf("%q -> %q", name, e.data)
				}
			}
		}
		err := tree.Walk(func(name string, _ *Inode) error {
			if !seen[name] {
				return fmt.Errorf("%q is missing", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries[1:] {
			n := inode[e.ino]
			if n.Type() != Dir && e.nlink != count[e.ino] {
				t.Fatalf("%q: %d links, %d names", e.name, e.nlink, count[e.ino])
			}
			if n.Type() == Regular {
				want, _ := io.ReadAll(n.Data.Open())
				if !bytes.Equal(content[e.ino], want) {
					t.Fatalf("%q: content differs", e.name)
				}
			}
		}
	})
}

// image is a tree as text, to compare.
func image(t interface{ Fatal(...any) }, tree *Tree) string {
	var b strings.Builder
	number := map[*Inode]int{}
	err := tree.Walk(func(name string, n *Inode) error {
		if number[n] == 0 {
			number[n] = len(number) + 1
		}
		data, err := io.ReadAll(n.Data.Open())
		fmt.Fprintf(&b, "%q #%d %o %d:%d %d %d,%d %q %x\n", name, number[n], n.Mode, n.UID, n.GID, n.Mtime, n.Major, n.Minor, n.Target, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

// TestRoundTrip writes trees in both formats and reads them back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := genTree(t)
		want := image(t, tree)
		var cpio, tar, again bytes.Buffer
		if err := tree.WriteInitrd(&cpio, &Boot{}); err != nil {
			t.Fatal(err)
		}
		if err := tree.WriteTar(&tar); err != nil {
			t.Fatal(err)
		}
		if err := tree.WriteTar(&again); err != nil || !bytes.Equal(tar.Bytes(), again.Bytes()) {
			t.Fatal("the same tree gives different tars")
		}
		fromCPIO := New(roomy)
		if err := fromCPIO.ReadCPIO(section(cpio.Bytes())); err != nil {
			t.Fatal(err)
		}
		if got := image(t, fromCPIO); got != want {
			t.Fatalf("cpio:\n%s\nwant:\n%s", got, want)
		}
		fromTar := New(roomy)
		if err := fromTar.ReadTar(section(tar.Bytes())); err != nil {
			t.Fatal(err)
		}
		// A tar has links' permissions as they always are.
		if got := image(t, fromTar); normal(got) != normal(want) {
			t.Fatalf("tar:\n%s\nwant:\n%s", got, want)
		}
	})
}

// normal drops the permissions of symbolic links.
func normal(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		f := strings.Fields(l)
		if len(f) > 2 && strings.HasPrefix(f[2], "12") {
			f[2] = "120777"
			lines[i] = strings.Join(f, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// TestDamagedArchives cuts and flips archives everywhere: an error that is the
// user's, or a tree, but no crash.
func TestDamagedArchives(t *testing.T) {
	tree := New(roomy)
	for name, n := range map[string]*Inode{
		"bin":      {Mode: Dir | 0o755},
		"bin/sh":   {Mode: Regular | 0o755, Data: Bytes(bytes.Repeat([]byte("x"), 5000))},
		"dev/null": {Mode: Char | 0o666, Major: 1, Minor: 3},
		"link":     {Mode: Symlink | 0o777, Target: "bin"},
	} {
		if err := tree.Put(name, n); err != nil {
			t.Fatal(err)
		}
	}
	var cpio, tar bytes.Buffer
	if err := tree.WriteInitrd(&cpio, &Boot{}); err != nil {
		t.Fatal(err)
	}
	if err := tree.WriteTar(&tar); err != nil {
		t.Fatal(err)
	}
	readers := map[string]func([]byte) error{
		"cpio": func(b []byte) error { return New(roomy).ReadCPIO(section(b)) },
		"tar":  func(b []byte) error { return New(roomy).ReadTar(section(b)) },
	}
	archives := map[string][]byte{"cpio": cpio.Bytes(), "tar": tar.Bytes()}
	for _, kind := range slices.Sorted(maps.Keys(archives)) {
		t.Run(kind, func(t *testing.T) {
			whole, read := archives[kind], readers[kind]
			if err := read(whole); err != nil {
				t.Fatal(err)
			}
			if err := read(whole[:len(whole)/2]); err == nil || status(err) != 2 {
				t.Errorf("half of it: %v", err)
			}
			rapid.Check(t, func(t *rapid.T) {
				b := bytes.Clone(whole)
				for range rapid.IntRange(1, 4).Draw(t, "flips") {
					b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "value")
				}
				b = b[:rapid.IntRange(0, len(b)).Draw(t, "cut")]
				if err := read(b); err != nil && status(err) != 2 {
					t.Fatalf("not the user's error: %v", err)
				}
			})
		})
	}
}
