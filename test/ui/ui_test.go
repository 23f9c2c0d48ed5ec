// Package ui looks at the page of "hardtack run --ui" in a browser, with a machine that has
// something to do, and keeps pictures of it in docs. It needs Chromium, which is large, so it
// runs only where HARDTACK_UI is set: make ui-test.
package ui

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// browser is a Chromium that is driven by its DevTools protocol over pipes
// (https://chromedevtools.github.io/devtools-protocol/).
type browser struct {
	t       *testing.T
	in      io.Writer
	session string

	mu     sync.Mutex
	last   int                  // guarded by mu
	waits  map[int]chan message // guarded by mu
	errors []string             // what the page complained of; guarded by mu
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Sess   string          `json:"sessionId,omitempty"`
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	name, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is not installed; on Debian: apt-get install chromium")
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		ourOut.Close()
		stop()
		_ = cmd.Wait() // it was killed
		ourIn.Close()
	})
	b := &browser{t: t, in: ourOut, waits: map[int]chan message{}}
	go b.listen(ourIn)
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.call("Target.getTargets", nil, &targets)
	for _, x := range targets.TargetInfos {
		if x.Type == "page" {
			var got struct{ SessionID string }
			b.call("Target.attachToTarget", map[string]any{"targetId": x.TargetID, "flatten": true}, &got)
			b.session = got.SessionID
		}
	}
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// listen reads what the browser says: JSON, each with a zero byte behind it.
func (b *browser) listen(r io.Reader) {
	d := json.NewDecoder(zeroless{r})
	for {
		var m message
		if d.Decode(&m) != nil {
			return
		}
		b.mu.Lock()
		switch c := b.waits[m.ID]; {
		case m.ID != 0 && c != nil:
			delete(b.waits, m.ID)
			c <- m
		case m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded" && bytes.Contains(m.Params, []byte(`"error"`)):
			b.errors = append(b.errors, string(m.Params))
		}
		b.mu.Unlock()
	}
}

// zeroless reads spaces in place of zero bytes.
type zeroless struct{ io.Reader }

func (z zeroless) Read(p []byte) (int, error) {
	n, err := z.Reader.Read(p)
	for i := range p[:n] {
		if p[i] == 0 {
			p[i] = ' '
		}
	}
	return n, err
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	c := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waits[id] = c
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if b.session != "" {
		text, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": b.session})
	}
	if params == nil {
		text = bytes.Replace(text, []byte(`"params":null`), []byte(`"params":{}`), 1)
	}
	b.mu.Unlock()
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	select {
	case m := <-c:
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval evaluates JavaScript in the page.
func (b *browser) eval(script string) string {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", script, out.ExceptionDetails)
	}
	return fmt.Sprint(out.Result.Value)
}

// await waits until a script says true.
func (b *browser) await(what, script string) {
	b.t.Helper()
	for end := time.Now().Add(3 * time.Minute); b.eval(script) != "true"; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("the page does not show %s: %s", what, b.eval("document.body.innerText"))
		}
	}
}

// picture keeps what the page shows.
func (b *browser) picture(name string, width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.eval("dispatchEvent(new Event('resize'))")
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(name, data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestPage(t *testing.T) {
	pictures := os.Getenv("HARDTACK_UI")
	if pictures == "" {
		t.Skip("HARDTACK_UI is not set: see make ui-test")
	}
	if !filepath.IsAbs(pictures) {
		pictures = t.TempDir()
	}
	m := startMachine(t)
	b := startBrowser(t)
	b.call("Page.navigate", map[string]any{"url": m.page}, nil)
	b.await("the page", `document.readyState === "complete" && typeof samples === "object"`)
	b.await("the machine", `document.getElementById("state").textContent === "running" && document.getElementById("name").textContent === "ui-test"`)
	b.await("system calls", `samples.length > 10 && samples.at(-1).calls.length > 3 && document.querySelectorAll("#calls tbody tr").length > 3`)
	b.await("Redis", `[...document.querySelectorAll("#processes td")].some(td => td.textContent === "redis-server")`)
	b.await("connections", `[...document.querySelectorAll("#connections tr")].some(tr => tr.textContent.includes("established") && tr.textContent.includes(":6379"))`)
	b.await("the network", `samples.some(s => s.networks.some(n => n.name === "eth0" && n.in > 1000 && n.out > 1000))`)
	b.await("the disk", `samples.some(s => s.disks.some(d => d.name === "vda" && d.written > 0))`)
	b.await("latencies", `samples.some(s => s.latencies.length > 3) && samples.some(s => s.cpus.length === 2 && s.cpus[0] > 0.02)`)
	b.eval(`[...document.querySelectorAll("#calls tbody tr")].find(tr => tr.textContent.includes("read")).click()`)
	b.await("a call's latency", `document.getElementById("latency-of").textContent.includes("read")`)
	b.eval(`document.getElementById("latency-all").click()`)
	b.eval(`document.getElementById("flame-go").click()`)
	b.await("the flame graph", `document.querySelectorAll("#flame div").length > 10 && flame.time > 0`)
	b.await("two minutes of samples or so", fmt.Sprintf(`samples.length > %d`, m.samples))
	// Canvases are not empty: they have many colors.
	for _, id := range []string{"cpus", "latency", "memory", "heap", "network"} {
		b.await("a picture in "+id, fmt.Sprintf(`(() => { const c = document.getElementById(%q), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, s = new Set();
			for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size > 4; })()`, id))
	}
	b.picture(filepath.Join(t.TempDir(), "first.png"), 1280, 900) // of the width that is wanted
	height := b.eval(`document.documentElement.scrollHeight`)
	var h int
	fmt.Sscan(height, &h)
	b.picture(filepath.Join(pictures, "ui.png"), 1280, max(min(h, 2600), 900))
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	b.picture(filepath.Join(pictures, "ui-dark.png"), 1280, 1000)
	m.end()
	b.await("the end", `document.getElementById("state").className.includes("down")`)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		if !strings.Contains(e, "ERR_CONNECTION_REFUSED") && !strings.Contains(e, "ERR_INCOMPLETE_CHUNKED") && !strings.Contains(e, "ERR_CONNECTION_RESET") {
			t.Errorf("the page complains: %s", e)
		}
	}
}

// machine is one with Redis, which has work from the host, and a disk that is written to.
type machine struct {
	page    string
	samples int
	end     func()
}

func startMachine(t *testing.T) machine {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	tool := filepath.Join(repo, "bin", "hardtack")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(tool, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("hardtack %s: %v: %s", args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	root := filepath.Join(dir, "root.tar")
	run("image", "debian", "--minimal", "-o", root, "redis-server", "busybox-static")
	empty := filepath.Join(dir, "empty.tar")
	if err := os.WriteFile(empty, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dir, "data.img")
	run("image", "disk", "-o", disk, "--size", "64M", empty)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(at)
	run("run", "-d", "--name", "ui-test", "--memory", "256M", "--cpus", "2", "-p", port+":6379", "--ui", ":0", "--disk", disk, root, "--",
		"/usr/bin/redis-server", "--protected-mode", "no", "--save", "")
	t.Cleanup(func() { _ = exec.Command(tool, "rm", "-f", "ui-test").Run() })
	run("exec", "ui-test", "/bin/busybox", "sh", "-c", "/bin/busybox mkdir -p /data && /bin/busybox mount -t ext4 /dev/vda /data")
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() {
		_ = exec.CommandContext(ctx, tool, "exec", "ui-test", "/bin/busybox", "sh", "-c",
			"while :; do /bin/busybox dd if=/dev/zero of=/data/x bs=64k count=40 conv=fsync 2>/dev/null; /bin/busybox ls -lR /usr/share >/dev/null; /bin/busybox sleep 2; done").Run()
	}()
	var failed atomic.Int64
	for range 6 {
		go load(ctx, at, &failed)
	}
	samples := 20
	if os.Getenv("HARDTACK_UI") != "1" {
		samples = 100
	}
	return machine{page: run("inspect", "--format", "{{.Page}}", "ui-test"), samples: samples, end: func() {
		stop()
		run("stop", "-t", "1", "ui-test")
	}}
}

// load sets and gets keys, more for some seconds and less for others.
func load(ctx context.Context, at string, failed *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", at)
		if err != nil {
			failed.Add(1)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		buf := make([]byte, 64<<10)
		value := strings.Repeat("x", 900)
		for i := 0; ctx.Err() == nil; i++ {
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := fmt.Fprintf(c, "SET key%d %s\r\n", i%3000, value); err != nil {
				break
			}
			if _, err := c.Read(buf); err != nil {
				break
			}
			if time.Now().Unix()/10%3 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		c.Close()
	}
}
