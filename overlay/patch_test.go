package overlay

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const before = "one\ntwo\nthree\nfour\nfive\n"

func TestApplyExactly(t *testing.T) {
	files, err := parsePatch("About it.\n\n--- a/x/y.go\n+++ b/x/y.go\n@@ -2,2 +2,3 @@\n two\n+2.5\n three\n@@ -5 +6 @@ five\n-five\n+FIVE\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := apply([]byte(before), files["x/y.go"])
	if err != nil || string(got) != "one\ntwo\n2.5\nthree\nfour\nFIVE\n" {
		t.Fatalf("%q, %v", got, err)
	}
	// One line more above, and nothing fits: there is no looking around.
	if _, err := apply([]byte("zero\n"+before), files["x/y.go"]); err == nil {
		t.Error("a patch applied at another line")
	}
	if _, err := apply([]byte("one\ntwo\n"), files["x/y.go"]); err == nil {
		t.Error("a patch applied past the end")
	}
}

func TestEditsThatMeet(t *testing.T) {
	h := []hunk{{start: 2, old: []string{"two\n", "three\n"}, new: []string{"2\n"}}, {start: 3, old: []string{"three\n"}, new: []string{"3\n"}}}
	if _, err := apply([]byte(before), h); err == nil || !strings.Contains(err.Error(), "meet") {
		t.Errorf("error %v", err)
	}
}

func TestParseBad(t *testing.T) {
	head := "--- a/f\n+++ b/f\n"
	for name, bad := range map[string]string{
		"nothing":         "words\n",
		"no file":         "@@ -1 +1 @@\n-a\n+b\n",
		"other file":      "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
		"outside":         "--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-a\n+b\n",
		"twice":           head + "@@ -1 +1 @@\n-a\n+b\n" + head + "@@ -3 +3 @@\n-a\n+b\n",
		"no numbers":      head + "@@ -a +1 @@\n-a\n+b\n",
		"short":           head + "@@ -1,2 +1 @@\n-a\n+b\n",
		"context missing": head + "@@ -1,0 +1,1 @@\n+b\n",
		"odd line":        head + "@@ -1,2 +1,2 @@\n-a\n*b\n",
		"rest":            head + "@@ -1 +1 @@\n-a\n+b\nrest\n",
	} {
		if _, err := parsePatch(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What is cut out of a text and put in its place comes back by the patch.
func TestApplyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"})
		old := rapid.SliceOfN(line, 1, 30).Draw(t, "old")
		var want, hunks = "", []hunk(nil)
		for i := 0; i < len(old); {
			n := min(rapid.IntRange(1, 4).Draw(t, "n"), len(old)-i)
			if rapid.Bool().Draw(t, "edit") {
				put := rapid.SliceOfN(line, 0, 4).Draw(t, "new")
				hunks = append(hunks, hunk{i + 1, old[i : i+n], put})
				want += strings.Join(put, "")
			} else {
				want += strings.Join(old[i:i+n], "")
			}
			i += n
		}
		got, err := apply([]byte(strings.Join(old, "")), hunks)
		if err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	})
}

func FuzzParsePatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+b\n")
	f.Add("@@ -1,999999999 +1 @@\n")
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		files, err := parsePatch(s)
		if err != nil {
			return
		}
		for _, h := range files {
			apply([]byte(before), h)
		}
	})
}
