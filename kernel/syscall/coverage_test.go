package syscall

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hardtack/abi/ipc"
)

var update = flag.Bool("update", false, "write docs/syscalls.md")

const coverageFile = "../../docs/syscalls.md"

// numbers returns every call number that Linux has, with its name.
func numbers(t *testing.T) map[int]string {
	f, err := parser.ParseFile(token.NewFileSet(), "../../abi/linux/sysno.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[int]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := strings.CutPrefix(s.Names[0].Name, "SYS_"); ok && len(s.Values) == 1 {
			nr, err := strconv.Atoi(s.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names[nr] = name
		}
		return true
	})
	return names
}

// differences are those that test/abi finds, by kind; its list has each.
const differences = `
## Where answers differ

` + "`test/abi` compares generated cases with the answers of Linux 6.1; `test/abi/testdata/known`" + `
lists each difference. They are of these kinds:

- Two errors at once: if a call has two reasons to fail, it may report the other one. Most
  are bad addresses and lengths together with a descriptor that does not support the call,
  and unknown flags.
- Absent calls give ENOSYS before any other error.
- Features that are absent: unknown address families, socket options and ioctl requests are
  refused as unknown.
- Splice and sendfile move bytes of a few files (devices, /proc) that Linux refuses.
- /proc and /sys: seeking, polling and writing of some files; permissions of links in
  /proc/PID/fd; statx masks and attributes.
- /proc lacks what the kernel does not know: kallsyms, ioports, timer_list, net/{rt6_stats,stat,rt_acct},
  sys/fs/{dentry-state,inode-nr,inode-state}, /proc/PID/stack, autogroup and patch_state. net/igmp says NONE for the querier: no IGMP
  is sent or answered. iomem does not tell what devices decode. tty/drivers has no pty_master, which has no numbers here; sysfs lacks numastat; wchan is always 0. clear_refs
  does not support soft-dirty pages (EINVAL). /proc/pressure takes no triggers (EOPNOTSUPP), and its
  figures for the CPUs are estimates: the sum of the times that threads waited for a CPU. cancelled_write_bytes of /proc/PID/io is 0. There are no namespaces but the
  first of each kind, which /proc/PID/ns shows and setns enters.
- Sockets: some options that Linux stores without effect are refused; default buffer sizes;
  what is reported about a connection whose peer is gone. A filter that is attached to a
  connection within the machine holds back what it refuses, and judges what waits as one
  segment. IP_RECVFRAGSIZE never reports a size.
- rtnetlink refuses with a number only, without the text that Linux sends (NETLINK_EXT_ACK).
- inotify takes watches of pipes, sockets and eventfds through /proc/PID/fd, and nothing is told of
  them. A file that has lost its last name tells of its end when it is closed, even if it was
  opened by another name.
- CLOCK_MONOTONIC does not follow the frequency that adjtimex sets.
- Access control lists and attributes of devices, pipes and sockets.
- Numbers: limits, policies and prctl options that do not exist here; bounds of addresses.
`

// coverage is the text that docs/syscalls.md must hold.
func coverage(names map[int]string) []byte {
	var b bytes.Buffer
	works := 0
	for nr := range names {
		if table[nr] != nil {
			works++
		}
	}
	fmt.Fprintf(&b, `# System calls

Of the %d system calls of Linux 6.1 on x86-64, %d are here. Calls that are not
listed as working give ENOSYS; unknown flags give EINVAL. This page is generated from the
table in kernel/syscall (go test ./kernel/syscall -run Coverage -update); a test compares
them.

| number | call | coverage |
| --- | --- | --- |
`, len(names), works)
	nrs := make([]int, 0, len(names))
	for nr := range names {
		nrs = append(nrs, nr)
	}
	slices.Sort(nrs)
	for _, nr := range nrs {
		text := "ENOSYS"
		if c := table[nr]; c != nil {
			text = c.Coverage
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", nr, names[nr], text)
	}
	b.WriteString(differences)
	fmt.Fprintf(&b, `
## Hardtack's own

Endpoints and notifications; registers, errors and limits are in the package comment of
abi/ipc. Linux answers ENOSYS.

| number | call | what it does |
| --- | --- | --- |
`)
	for _, c := range []struct {
		nr         uint32
		name, does string
	}{
		{ipc.Send, "send", "sends a message, and waits until it is received"},
		{ipc.Recv, "recv", "receives a message"},
		{ipc.Call, "call", "sends a message, and waits for the reply"},
		{ipc.Reply, "reply", "replies to a call"},
		{ipc.ReplyRecv, "reply_recv", "replies to a call, and receives"},
		{ipc.Signal, "signal", "sets bits of a notification"},
		{ipc.Wait, "wait", "takes the bits of a notification, and waits until there are some"},
		{ipc.SignalWait, "signal_wait", "sets bits of one notification, and waits at another"},
		{ipc.Endpoint, "endpoint", "makes an endpoint: two descriptors, to receive and to send"},
		{ipc.Mint, "mint", "makes another sending descriptor, with a badge"},
		{ipc.Notification, "notification", "makes a notification"},
	} {
		fmt.Fprintf(&b, "| %#x | %s | %s |\n", c.nr, c.name, c.does)
	}
	return b.Bytes()
}

func TestCoverage(t *testing.T) {
	names := numbers(t)
	for nr, c := range table {
		if c == nil {
			continue
		}
		if c.Num != nr || c.Handle == nil || c.Coverage == "" {
			t.Errorf("row %d: %+v", nr, c)
		}
		if names[nr] != c.Name {
			t.Errorf("call %d is %q in the table and %q in abi/linux", nr, c.Name, names[nr])
		}
		if !strings.HasPrefix(c.Coverage, "works") && !strings.HasPrefix(c.Coverage, "as ") {
			t.Errorf("%s: coverage %q does not say what works", c.Name, c.Coverage)
		}
	}
	want := coverage(names)
	if *update {
		if err := os.WriteFile(coverageFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/syscalls.md differs from the table; run go test ./kernel/syscall -run Coverage -update")
	}
}

func TestMissingCalls(t *testing.T) {
	for nr, h := range handlers {
		if table[nr] == nil {
			if _, e := h(nil, nil); e != 38 {
				t.Errorf("call %d: %v", nr, e)
			}
		}
	}
}
