package lockbench

import (
	"strings"
	"testing"
	"time"

	"hardtack/tool/repairman"
)

// One short measurement of each kind, and the figures make sense.
func TestDrive(t *testing.T) {
	b := Bench{Dir: t.TempDir(), Log: t.Logf}
	if err := b.build("big"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ipc", "-windows", "3", "-window", "2ms"},
		{"ipc", "-windows", "3", "-window", "2ms", "-entry", "-delay", "500", "-cores", "2"},
		{"locks", "-windows", "2", "-window", "2ms", "-what", "buckets", "-cores", "2"},
		{"locks", "-windows", "2", "-window", "2ms", "-what", "readers"},
		{"locks", "-windows", "2", "-window", "2ms", "-what", "exchange"},
	} {
		out, err := b.drive("big", args...)
		if err != nil {
			t.Fatal(args, err)
		}
		if out.Control != "big" || out.PerSecond < 1e6 || len(out.Windows) == 0 {
			t.Errorf("%v: %+v", args, out)
		}
		for name, windows := range out.Windows {
			for _, w := range windows {
				if w <= 0 || w > 10 {
					t.Errorf("%v: %s did %v operations a cycle", args, name, w)
				}
			}
		}
	}
	if _, err := b.drive("big", "nonsense"); err == nil || !strings.Contains(err.Error(), "want ipc or locks") {
		t.Errorf("%v", err)
	}
}

// Each row of the page has its median, its least and its processor time.
func TestRows(t *testing.T) {
	b := Bench{Dir: t.TempDir(), Rounds: 1, Window: time.Millisecond, Log: t.Logf}
	r, err := b.Run()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range Controls {
		if r.Missing[c] != "" {
			continue
		}
		want = append(want, "bare "+c, "entry "+c)
		if c != "none" {
			want = append(want, "pairs 1 "+c, "pairs 2 "+c, "delay 1 "+c, "delay 2 "+c)
		}
	}
	for _, l := range []string{"sync.Mutex", "Elided", "CLH", "Ticket"} {
		want = append(want, "alone "+l, "counter "+l, "buckets "+l)
	}
	for _, key := range append(want, "readers RWMutex.RLock", "readers BigReader", "after nothing", "after system call, exchange") {
		if r.Cells[key].Min() <= 0 || r.Processor[key].Min() <= 0 {
			t.Errorf("%s: %v, processor time %v", key, r.Cells[key], r.Processor[key])
		}
	}
	page, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "—") {
		t.Errorf("a figure is missing:\n%s", page)
	}
}

func TestPage(t *testing.T) {
	r := &Result{CPU: "a processor", Rounds: 1, PerSecond: 2e9, Missing: map[string]string{"rtm": "none here"}, Cells: map[string]Cell{}}
	for _, c := range []string{"none", "big", "fine"} {
		r.Cells["bare "+c], r.Cells["entry "+c] = Cell{30, 40, 50}, Cell{300}
		for _, n := range []string{"1", "2"} {
			r.Cells["pairs "+n+" "+c], r.Cells["delay "+n+" "+c] = Cell{300}, Cell{300}
		}
	}
	r.Cells["readers RWMutex.RLock"], r.Cells["readers BigReader"] = Cell{80}, Cell{10}
	r.Cells["after system call"], r.Cells["after system call, exchange"] = Cell{300}, Cell{360}
	r.ByRound, r.Processor = r.Cells, map[string]Cell{"bare none": {36, 35}, "entry big": {450}, "entry none": {310, 300}}
	for _, d := range Delays {
		for n := 1; n <= 2; n++ {
			r.Points = append(r.Points, repairman.Point{Cores: n, Delay: float64(d),
				Throughput: repairman.Model{Service: 50, Think: float64(d), Transfer: 80}.At(n).Throughput})
		}
	}
	page, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| big / none, with a system call for entry and exit | ≤ 1.05 | 1, met | 1.5 |",
		"| fine, independent pairs: two cores / one | ≥ 1.9 | 1, **missed** |  |", "not measured: none here",
		"| RWMutex.RLock / BigReader, two readers | ≥ 8 | 8, met |  |", "| none | 40 (30) | 35 |", "| system call | 300 (300) | 360 (360) | 60 |", "service time 50 cycles,\ntransfer 80, R² 1.0000"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	points, err := repairman.ReadCSV(strings.NewReader(r.CSV()), r.PerSecond)
	if err != nil || len(points) != len(r.Points) {
		t.Errorf("%d points, %v", len(points), err)
	}
	if err := r.Write(t.TempDir()); err != nil {
		t.Error(err)
	}
}
