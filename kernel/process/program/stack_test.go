package program

import (
	"testing"

	"hardtack/kernel/base/creds"
)

func TestStackLayout(t *testing.T) {
	l := stackLayout{argv: []string{"a", ""}, env: []string{"X=1"}, name: "/bin/a", aux: auxiliary{cred: &creds.RootCred}}
	for offset := uint64(0); offset < 64; offset += 16 {
		var img Image
		x := l.build(0x7ffff000, [16]byte{1, 2, 3}, offset, &img)
		if x.sp%16 != 0 || img.StackTop != x.sp || x.sp+uint64(len(x.words)) > x.stringsAt-offset || x.stringsAt+uint64(len(x.strings)) != 0x7ffff000 {
			t.Errorf("%#x %#x %d %d", x.sp, x.stringsAt, len(x.words), len(x.strings))
		}
		if img.ArgStart != x.stringsAt || img.ArgEnd-img.ArgStart != 3 || img.EnvEnd-img.EnvStart != 4 || img.ArgEnd != img.EnvStart {
			t.Errorf("%+v", img)
		}
		if string(x.strings) != "a\x00\x00X=1\x00/bin/a\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
			t.Errorf("%q", x.strings)
		}
	}
}
