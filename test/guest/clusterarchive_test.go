package guest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Two kernels share the pages of the boot archive's files, and what one writes the other does not see.
func TestClusterArchive(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	names := []string{"writes", "keeps", "subject", "cut", "emptied", "removed"}
	for _, name := range names {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clusterarchive"); err != nil {
			t.Fatal(err)
		}
	}
	tool, root := command(t, repo, dir), guestRoot(t, dir, names...)
	flags := []string{"--cluster", "cpus=1,memory=160M", "--cluster", "cpus=1,memory=96M,init=/writes"}
	out, err := inGuest(t, tool, root, 10*time.Minute, flags, "/keeps")
	out = strings.ReplaceAll(out, "\r", "")
	sums := regexp.MustCompile("sum [0-9a-f]{8}").FindAllString(out, -1)
	if err != nil || len(sums) != 3 || sums[0] != sums[1] || sums[0] != sums[2] || strings.Contains(out, "WRONG") ||
		!strings.Contains(out, "foreign pages: 0\n") || !strings.Contains(out, "kept\n") {
		t.Errorf("%v %v\n%s", err, sums, tail(out, 100))
	}
}
