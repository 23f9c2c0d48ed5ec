// Package syscall is the system call table. Each handler reads like its manual page
// (decode, act, copy out, undo on failure); each topic has a file.
package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

// Args are the six argument registers of a call, unchecked.
type Args [6]uint64

// Int returns argument i as a C int.
func (a *Args) Int(i int) int32 { return int32(a[i]) }

// Uint returns argument i as a C unsigned int.
func (a *Args) Uint(i int) uint32 { return uint32(a[i]) }

// Addr returns argument i as a user address.
func (a *Args) Addr(i int) uio.Addr { return uio.Addr(a[i]) }

// Handler carries out one call.
type Handler func(t *proc.Thread, a *Args) (uint64, linux.Errno)

// Call is one row of the table.
type Call struct {
	Num    int
	Name   string
	Handle Handler
	// Coverage says what works: "works", or "works except …". It is published
	// in docs/syscalls.md, which a test compares with this table.
	Coverage string
}

// TableSize bounds the call numbers; larger ones are ENOSYS.
const TableSize = 512

// topics are the handlers, a slice a file.
var topics = [][]Call{
	handleCalls,
	procCalls,
	execCalls,
	signalCalls,
	futexCalls,
	credCalls,
	schedCalls,
	schedAttrCalls,
	inspectCalls,
	numaCalls,
	miscCalls,
	prctlCalls,
	pipeCalls,
	spliceCalls,
	pollCalls,
	epollCalls,
	eventCalls,
	timeCalls,
	timerCalls,
	ttyCalls,
	mmCalls,
	mmRareCalls,
	shmCalls,
	sysvCalls,
	fileCalls,
	transferCalls,
	fdCalls,
	openCalls,
	pathCalls,
	statCalls,
	fsInfoCalls,
	dirCalls,
	fcntlCalls,
	mountCalls,
	mountTreeCalls,
	fsConfigCalls,
	syslogCalls,
	xattrCalls,
	inotifyCalls,
	socketCalls,
	messageCalls,
}

var table [TableSize]*Call

func fillTable() {
	for _, topic := range topics {
		for i := range topic {
			c := &topic[i]
			if table[c.Num] != nil {
				panic("syscall: " + c.Name + " is listed twice")
			}
			table[c.Num] = c
		}
	}
}

// NumberOf returns the number of a call by its name.
func NumberOf(name string) (nr int, ok bool) {
	for _, c := range table {
		if c != nil && c.Name == name {
			return c.Num, true
		}
	}
	return 0, false
}

// Lookup returns the row of a call number, or nil.
func Lookup(num uint64) *Call {
	if num >= TableSize {
		return nil
	}
	return table[num]
}
