package named

import (
	"reflect"
	"testing"
)

func TestParseClusters(t *testing.T) {
	list, err := ParseClusters([]byte("0 running lives 1 cpus 2 memory 256 MiB\n1 exited 3 lives 12 cpus 1 memory 64 MiB\n"))
	want := []Cluster{{0, "running", 1, 2, 256 << 20}, {1, "exited 3", 12, 1, 64 << 20}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range []string{"x running lives 1 cpus 2 memory 256 MiB\n", "0 running\n", "\n"} {
		if list, err := ParseClusters([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, list)
		}
	}
}
