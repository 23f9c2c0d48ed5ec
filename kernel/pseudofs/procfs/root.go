package procfs

import (
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
)

// root is /proc.
var root = &entry{mode: 0o555}

func fillRoot() {
	root.kids = append([]*entry{
		{name: "self", mode: 0o777, link: func(x *about) (string, linux.Errno) {
			if x.c.PID == 0 {
				return "", linux.ENOENT
			}
			return itoa(x.c.PID), 0
		}},
		{name: "thread-self", mode: 0o777, link: func(x *about) (string, linux.Errno) {
			if x.c.PID == 0 {
				return "", linux.ENOENT
			}
			return itoa(x.c.PID) + "/task/" + itoa(x.c.TID), 0
		}},
		{name: "mounts", mode: 0o777, link: func(*about) (string, linux.Errno) { return "self/mounts", 0 }},
		{name: "net", mode: 0o777, link: func(*about) (string, linux.Errno) { return "self/net", 0 }},
		{name: "bus", mode: 0o555},
		{name: "driver", mode: 0o555},
		{name: "fs", mode: 0o555},
	}, systemFiles...)
	root.find = func(x *about, name string) (*entry, *about) {
		if pid, ok := parseNumber(name); ok {
			if p := proc.Lookup(pid); p != nil {
				return processDir, &about{p: p}
			}
			if t := proc.ByTID(pid); t != nil {
				return processDir, &about{p: t.Process(), t: t}
			}
			return nil, nil
		}
		if name == "net" {
			return nil, nil // is a link
		}
		return findRegistered(&about{}, name)
	}
	root.list = func(x *about, emit func(string, *entry, *about) bool) {
		for _, name := range registeredNames("") {
			if name == "net" {
				continue
			}
			if e, y := findRegistered(&about{}, name); e != nil && !emit(name, e, y) {
				return
			}
		}
		var pids []int32
		proc.Each(func(p *proc.Process) bool {
			pids = append(pids, p.PID)
			return true
		})
		sortNumbers(pids)
		for _, pid := range pids {
			if !emit(itoa(pid), processDir, nil) {
				return
			}
		}
	}
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }

// parseNumber reads a number without sign or leading zeros.
func parseNumber(s string) (int32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || s[0] == '+' || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return int32(n), true
}
