package main

import (
	"bytes"
	"os"
	"sort"
	"strings"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func devices(t *gt.T) {
	buf := bytes.Repeat([]byte{7}, 100)
	for _, name := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		fd := open(t, name, unix.O_RDWR)
		n, err := unix.Read(fd, buf)
		t.Say("%s read %d zero %v %s", name, n, n <= 0 || bytes.Count(buf[:n], []byte{0}) == n, gt.Name(err))
		n, err = unix.Write(fd, buf)
		t.Say("%s write %d %s", name, n, gt.Name(err))
		unix.Close(fd)
	}
	for _, name := range []string{"/dev/random", "/dev/urandom"} {
		fd := open(t, name, unix.O_RDWR)
		a, b := make([]byte, 32), make([]byte, 32)
		n, err := unix.Read(fd, a)
		t.Say("%s read %d %s", name, n, gt.Name(err))
		unix.Read(fd, b)
		t.Say("two reads differ: %v", !bytes.Equal(a, b))
		n, err = unix.Write(fd, buf)
		t.Say("%s write %d %s", name, n, gt.Name(err))
		unix.Close(fd)
	}
	if unix.Geteuid() == 0 {
		t.Err("mknod", unix.Mknod("null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		fd, err := unix.Open("null", unix.O_WRONLY, 0)
		t.Err("open it", err)
		n, err := unix.Write(fd, buf)
		t.Say("write %d %s", n, gt.Name(err))
		unix.Close(fd)
		t.Err("a node without driver", unix.Mknod("odd", unix.S_IFCHR|0o666, int(unix.Mkdev(250, 99))))
		_, err = unix.Open("odd", unix.O_RDONLY, 0)
		t.Err("open it", err)
	}
	fd := open(t, "/dev/zero", unix.O_RDWR)
	m, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	t.Err("mmap /dev/zero", err)
	if err == nil {
		m[5000] = 1
		t.Say("%d %d", m[0], m[5000])
		unix.Munmap(m)
	}
	unix.Close(fd)
}

func procSelf(t *gt.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Err(name, err)
		}
		return string(b)
	}
	link, err := os.Readlink("/proc/self")
	t.Say("self is a number: %v %s", strings.Trim(link, "0123456789") == "" && link != "", gt.Name(err))
	t.Say("comm %q", read("/proc/self/comm"))
	cmdline := strings.Split(read("/proc/self/cmdline"), "\x00")
	t.Say("cmdline %d parts, ends in files: %v", len(cmdline), strings.HasSuffix(cmdline[0], "files"))
	exe, err := os.Readlink("/proc/self/exe")
	t.Say("exe ends in files: %v %s", strings.HasSuffix(exe, "files"), gt.Name(err))
	cwd, _ := os.Readlink("/proc/self/cwd")
	wd, _ := os.Getwd()
	t.Say("cwd agrees: %v", cwd == wd)
	root, _ := os.Readlink("/proc/self/root")
	t.Say("root %q", root)
	fields := map[string]string{}
	for _, line := range strings.Split(read("/proc/self/status"), "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	for _, name := range []string{"Name", "Umask", "Uid", "Gid"} {
		t.Say("status %s %q", name, fields[name])
	}
	for _, name := range []string{"Pid", "PPid", "Tgid", "VmRSS", "VmSize", "Threads", "State"} {
		t.Say("status has %s: %v", name, fields[name] != "")
	}
	stat := read("/proc/self/stat")
	after := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	t.Say("stat has %d fields after the name", len(after))
	t.Say("statm has %d fields", len(strings.Fields(read("/proc/self/statm"))))
	maps := read("/proc/self/maps")
	t.Say("maps name the stack %v, the program %v", strings.Contains(maps, "[stack]"), strings.Contains(maps, "/files"))
	t.Say("environ %v", strings.Contains(read("/proc/self/environ"), "PATH=/bin:/usr/bin\x00"))
	create(t, "opened", "via proc")
	fd := open(t, "opened", unix.O_RDONLY)
	unix.Dup2(fd, 77)
	target, err := os.Readlink("/proc/self/fd/77")
	t.Say("fd 77 is %q %s", strings.TrimPrefix(target, wd), gt.Name(err))
	t.Say("read through it: %q", read("/proc/self/fd/77"))
	unix.Unlink("opened")
	target, _ = os.Readlink("/proc/self/fd/77")
	t.Say("unlinked it is %q", strings.TrimPrefix(target, wd))
	t.Say("still read: %q", read("/proc/self/fd/77"))
	info := read("/proc/self/fdinfo/77")
	t.Say("fdinfo has pos and flags: %v", strings.Contains(info, "pos:") && strings.Contains(info, "flags:"))
	var p [2]int
	unix.Pipe(p[:])
	unix.Dup2(p[0], 78)
	target, _ = os.Readlink("/proc/self/fd/78")
	t.Say("a pipe is %q", strings.Trim(target, "0123456789[]"))
	for _, fd := range []int{fd, p[0], p[1], 77, 78} {
		unix.Close(fd)
	}
	entries, err := os.ReadDir("/proc/self/task")
	t.Say("it has tasks: %v %s", len(entries) > 0, gt.Name(err))
	_, err = os.ReadDir("/proc/999999")
	t.Err("a missing process", err)
	t.Err("unlink in /proc", unix.Unlink("/proc/self/comm"))
	_, err = unix.Open("/proc/nothing", unix.O_RDONLY, 0)
	t.Err("missing in /proc", err)
	for _, name := range []string{"meminfo", "cpuinfo", "uptime", "loadavg", "stat", "mounts", "version", "filesystems", "self/mounts",
		"self/mountinfo", "self/limits", "sys/kernel/osrelease", "sys/kernel/hostname", "sys/kernel/random/uuid", "sys/kernel/pid_max",
		"sys/fs/file-max", "sys/net/core/somaxconn", "sys/vm/overcommit_memory"} {
		t.Say("%s has text: %v", name, len(read("/proc/"+name)) > 0)
	}
	var keys []string
	for _, line := range strings.Split(read("/proc/meminfo"), "\n") {
		name, _, _ := strings.Cut(line, ":")
		switch name {
		case "MemTotal", "MemFree", "MemAvailable", "Cached", "Shmem":
			keys = append(keys, name)
		}
	}
	sort.Strings(keys)
	t.Say("meminfo %q", keys)
}
