package ext4

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hardtack/abi/linux"
)

// A disk by mke2fs -d is read like the directory that it was made from.
func TestInterop(t *testing.T) {
	dir := scratch(t)
	src := filepath.Join(dir, "src")
	must(t, os.MkdirAll(src+"/a/b/c", 0o755))
	rng := rand.New(rand.NewPCG(8, 8))
	want := map[string][]byte{}
	for i := range 400 {
		p := fmt.Sprintf("/%s/f%d", []string{"a", "a/b", "a/b/c"}[i%3], i)
		data := make([]byte, rng.IntN(30000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		must(t, os.WriteFile(src+p, data, 0o640))
		want[p] = data
	}
	must(t, os.Symlink(strings.Repeat("long/", 30), src+"/a/long"))
	must(t, os.Symlink("short", src+"/a/short"))
	m := mke2fs(t, "64M", "-d", src)
	fs := mount(t, m)
	got := map[string]found{}
	root, err := fs.Root()
	must(t, err)
	must(t, walkTree(fs, root, "/", got))
	for p, data := range want {
		if !bytes.Equal(got[p].data, data) {
			t.Fatalf("%s differs", p)
		}
	}
	if got["/a/long"].target != strings.Repeat("long/", 30) || got["/a/short"].target != "short" {
		t.Fatal("a symbolic link differs")
	}
	// And the other way: what we write, debugfs reads.
	mine := map[string][]byte{}
	for i := range 40 {
		p := fmt.Sprintf("/a/new%d", i)
		data := bytes.Repeat([]byte{byte(i + 1)}, rng.IntN(100000))
		in := newFile(t, fs, p)
		_, err := fs.WriteAt(in, data, 0)
		must(t, err)
		must(t, fs.Setxattr(in, "user.number", []byte(fmt.Sprint(i)), 0))
		must(t, fs.Put(in))
		mine[p] = data
	}
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
	file := filepath.Join(dir, "disk")
	m.save(t, file)
	out := filepath.Join(dir, "out")
	must(t, os.Mkdir(out, 0o755))
	if b, err := exec.Command(tool(t, "debugfs"), "-R", "rdump /a "+out, file).CombinedOutput(); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, b)
	}
	for _, all := range []map[string][]byte{want, mine} {
		for p, data := range all {
			if b, err := os.ReadFile(out + p); err != nil || !bytes.Equal(b, data) {
				t.Fatalf("debugfs reads %s otherwise (%v)", p, err)
			}
		}
	}
	b, err := exec.Command(tool(t, "debugfs"), "-R", "ea_get /a/new7 user.number", file).CombinedOutput()
	if err != nil || !strings.Contains(string(b), `"7"`) && !strings.Contains(string(b), "7\n") {
		t.Fatalf("debugfs: %v\n%s", err, b)
	}
}

func TestFeatures(t *testing.T) {
	for _, x := range []struct {
		feature, name string
		readable      bool
	}{{"meta_bg,^resize_inode", "meta_bg", false}, {"inline_data", "inline_data", false}, {"casefold", "casefold", false},
		{"quota", "quota", true}, {"project", "project", true}, {"bigalloc", "bigalloc", false}, {"mmp", "mmp", false},
		{"ea_inode", "ea_inode", false}, {"encrypt", "encrypt", false}, {"verity", "verity", true}} {
		m := mke2fs(t, "32M", "-O", x.feature)
		_, err := Mount(m, Options{})
		if err == nil || !strings.Contains(err.Error(), x.name) {
			t.Errorf("%s: %v", x.name, err)
		}
		_, err = Mount(m, Options{ReadOnly: true})
		if (err == nil) != x.readable {
			t.Errorf("%s, to be read: %v", x.name, err)
		}
	}
	if _, err := Mount(mke2fs(t, "32M", "-O", "^has_journal"), Options{}); Errno(err) != linux.EROFS {
		t.Errorf("without a journal: %v", err)
	}
	if _, err := Mount(newMemDisk(1<<20), Options{}); Errno(err) != linux.EINVAL {
		t.Errorf("an empty disk: %v", err)
	}
}

// The hashes are Linux's: debugfs computes the same.
func TestHashes(t *testing.T) {
	debugfs := tool(t, "debugfs")
	s := &super{}
	for i := range s.hashSeed {
		s.hashSeed[i] = le.Uint32([]byte("\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0")[4*i:])
	}
	for v, alg := range []string{"legacy", "half_md4", "tea"} {
		for _, n := range []int{1, 3, 4, 15, 16, 17, 31, 32, 33, 63, 64, 100, 255} {
			name := slices.Repeat([]byte("name-with.sömething"), 20)[:n]
			major, minor, _ := hashName(s, uint8(v), name)
			out, err := exec.Command(debugfs, "-R", fmt.Sprintf("dx_hash -h %s -s 12345678-9abc-def0-1234-56789abcdef0 %s", alg, name)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if want := fmt.Sprintf("is 0x%x (minor 0x%x)", major, minor); !strings.Contains(string(out), want) &&
				!strings.Contains(string(out), fmt.Sprintf("is 0x%08x (minor 0x%08x)", major, minor)) {
				t.Fatalf("%s of %q: %s; debugfs says %s", alg, name, want, out)
			}
		}
	}
}

// A log that another program wrote is replayed: debugfs puts the difference of two
// disks into the first one's journal, with each form of checksums and of tags.
func TestForeignLog(t *testing.T) {
	debugfs := tool(t, "debugfs")
	for _, x := range []struct{ features, open string }{
		{"64bit,metadata_csum", "jo -c -v 3"}, {"64bit,metadata_csum", "jo -c -v 2"}, {"^64bit,^metadata_csum", "jo"}, {"64bit,^metadata_csum", "jo"},
		{"^64bit,metadata_csum", "jo -c -v 3"}, {"^64bit,metadata_csum", "jo -c -v 2"},
	} {
		t.Run(x.features+" "+x.open, func(t *testing.T) {
			dir := scratch(t)
			old := mke2fs(t, "16M", "-b", "1024", "-O", x.features)
			after := old.clone()
			fs := mount(t, after)
			logged := map[uint64]bool{}
			for _, r := range fs.j.log.runs {
				for i := range r.n {
					logged[r.blk+i] = true
				}
			}
			workout(t, fs)
			must(t, fs.Unmount())
			var blocks []string
			var data []byte
			p, q := make([]byte, 1024), make([]byte, 1024)
			for blk := uint64(2); blk < uint64(old.size/1024); blk++ {
				must(t, old.ReadAt([]Transfer{{int64(blk) * 1024, p}}))
				must(t, after.ReadAt([]Transfer{{int64(blk) * 1024, q}}))
				switch {
				case bytes.Equal(p, q) || logged[blk]:
				case len(blocks) < 300: // the tables, which come first, and some data
					blocks, data = append(blocks, fmt.Sprint(blk)), append(data, q...)
				default: // the log is not so large
					must(t, old.WriteAt([]Transfer{{int64(blk) * 1024, q}}, false))
				}
			}
			file, content := filepath.Join(dir, "disk"), filepath.Join(dir, "blocks")
			old.save(t, file)
			must(t, os.WriteFile(content, data, 0o600))
			// A transaction that a second one revokes in part, and all again.
			half := strings.Join(blocks[:150], ",")
			script := fmt.Sprintf("%s\njw -b %s /dev/zero\njw -r %s\njw -b %s %s\njc\n",
				x.open, half, half, strings.Join(blocks, ","), content)
			cmd := filepath.Join(dir, "cmd")
			must(t, os.WriteFile(cmd, []byte(script), 0o600))
			if out, err := exec.Command(debugfs, "-w", "-f", cmd, file).CombinedOutput(); err != nil {
				t.Fatalf("debugfs: %v\n%s", err, out)
			}
			m := loadDisk(t, file)
			s, _, err := readSuper(m)
			must(t, err)
			if s.incompat&incompatRecover == 0 {
				t.Fatal("debugfs left no log to replay")
			}
			fs = mount(t, m)
			got, want := map[string]found{}, map[string]found{}
			for _, y := range []struct {
				m   *memDisk
				out map[string]found
			}{{m, got}, {after, want}} {
				if y.m != m {
					fs = mount(t, y.m)
				}
				root, err := fs.Root()
				must(t, err)
				must(t, walkTree(fs, root, "/", y.out))
				must(t, fs.Put(root))
				must(t, fs.Unmount())
			}
			if len(want) < 100 || len(got) != len(want) {
				t.Fatalf("%d names, want %d", len(got), len(want))
			}
			for p, f := range want {
				if !bytes.Equal(got[p].data, f.data) || got[p].target != f.target {
					t.Fatalf("%s differs", p)
				}
			}
			wantClean(t, m)
		})
	}
}
