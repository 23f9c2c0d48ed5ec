package vfs

import (
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

// What a Config is for: fsopen's makes a file system, which fsmount mounts, and fspick's
// changes a mounted one.
type configPhase int

const (
	configCreate  configPhase = iota // takes parameters
	configMount                      // has made its file system
	configChanged                    // what comes next is a change
	configChange                     // takes parameters of a change
	configFailed
)

// Config is the file of fsopen and fspick: parameters of a file system, and what it says
// of those that it refused.
//
// Lock order: mu, then those of the file system.
type Config struct {
	BaseOps
	Kind string // immutable

	mu      sync.Mutex
	phase   configPhase
	fs      *FileSystem // held; nil until it is made
	source  string
	options []string
	set     uint32   // MS_RDONLY and the like
	mask    uint32   // the flags that a parameter named
	log     []string // what a read returns
}

// maxConfig bounds the bytes of a configuration's options, and maxLog the messages kept.
const (
	maxConfig = 4096
	maxLog    = 8
)

// OpenConfig is fsopen; ENODEV for a kind of file system that nobody knows.
func OpenConfig(kind string) (*File, linux.Errno) {
	fsTypes.mu.Lock()
	_, ok := fsTypes.m[kind]
	fsTypes.mu.Unlock()
	if !ok {
		return nil, linux.ENODEV
	}
	return NewFile(&Config{Kind: kind}, linux.O_RDWR), 0
}

// PickConfig is fspick: it changes the file system that is mounted at p.
func PickConfig(p Path) (*File, linux.Errno) {
	m, e := p.MountPath()
	if e != 0 {
		return nil, e
	}
	if !p.tryHold() {
		return nil, linux.ENOENT
	}
	m.FS.Hold()
	p.unhold()
	return NewFile(&Config{Kind: m.FS.Type, phase: configChange, fs: m.FS, set: flagsOf(m.FS)}, linux.O_RDWR), 0
}

func flagsOf(fs *FileSystem) uint32 {
	if fs.ReadOnly() {
		return linux.MS_RDONLY
	}
	return 0
}

// Name is the text of /proc/self/fd/N.
func (x *Config) Name(*File) string { return "anon_inode:[fscontext]" }

// Release gives up the file system.
func (x *Config) Release(*File) {
	if x.fs != nil {
		x.fs.Drop()
	}
}

// Read returns the oldest message.
func (x *Config) Read(_ *caller.Ctx, _ *File, v *uio.Vec, _ int64) (int, linux.Errno) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.log) == 0 {
		return 0, linux.ENODATA
	}
	text := x.log[0]
	if len(text) > v.Len() {
		return 0, linux.EMSGSIZE
	}
	x.log = x.log[1:]
	return v.CopyOut([]byte(text))
}

// Write is not for programs.
func (x *Config) Write(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EINVAL
}

// refuse notes a message and returns EINVAL.
func (x *Config) refuse(text string) linux.Errno {
	if len(x.log) == maxLog {
		x.log = x.log[1:]
	}
	x.log = append(x.log, "e "+text+"\n")
	return linux.EINVAL
}

// commonFlags are the parameters that every file system has. A zero mask has no effect
// here.
var commonFlags = map[string]struct{ set, clear uint32 }{
	"dirsync": {set: linux.MS_DIRSYNC}, "lazytime": {set: linux.MS_LAZYTIME}, "mand": {set: linux.MS_MANDLOCK},
	"ro": {set: linux.MS_RDONLY}, "sync": {set: linux.MS_SYNCHRONOUS},
	"async": {clear: linux.MS_SYNCHRONOUS}, "nolazytime": {clear: linux.MS_LAZYTIME},
	"nomand": {clear: linux.MS_MANDLOCK}, "rw": {clear: linux.MS_RDONLY},
}

// Set is FSCONFIG_SET_STRING, or FSCONFIG_SET_FLAG if the parameter has no value.
func (x *Config) Set(key, value string, flag bool) linux.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next()
	if x.phase != configCreate && x.phase != configChange {
		return linux.EBUSY
	}
	if f, ok := commonFlags[key]; ok {
		x.set = x.set&^f.clear | f.set
		x.mask |= f.set | f.clear
		return 0
	}
	if key == "source" {
		return x.setSource(value, flag)
	}
	option := key
	if !flag {
		option += "=" + value
	}
	if strings.ContainsRune(option, ',') || len(strings.Join(x.options, ","))+len(option) >= maxConfig {
		return linux.EINVAL
	}
	if e := x.try(option); e == linux.EINVAL {
		return x.refuse(x.Kind + ": Unknown parameter '" + key + "'")
	}
	x.options = append(x.options, option)
	return 0
}

func (x *Config) setSource(value string, flag bool) linux.Errno {
	switch {
	case flag:
		return x.refuse("Non-string source")
	case x.source != "":
		return x.refuse("Multiple sources")
	}
	x.source = value
	return 0
}

// try asks the kind of file system whether it takes an option. One on a disk tells when
// it is mounted.
func (x *Config) try(option string) linux.Errno {
	if OnDevice(x.Kind) {
		return 0
	}
	_, e := MakeFS(x.Kind, "", option)
	return e
}

// next lets parameters be set again once a file system was mounted or changed.
func (x *Config) next() {
	if x.phase == configChanged {
		x.phase, x.options, x.mask, x.set = configChange, nil, 0, flagsOf(x.fs)
	}
}

// Create is FSCONFIG_CMD_CREATE, for one who may mount: whoever has the descriptor is not
// always who got it from fsopen. open opens file systems that are on a device; what it
// returns is held.
func (x *Config) Create(may bool, open func(source, options string, flags uint32) (*FileSystem, linux.Errno)) linux.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next()
	switch {
	case x.phase != configCreate:
		return linux.EBUSY
	case !may:
		return linux.EPERM
	}
	x.phase = configFailed
	options := strings.Join(x.options, ",")
	var fs *FileSystem
	var e linux.Errno
	if OnDevice(x.Kind) {
		if fs, e = open(x.source, options, x.set&linux.MS_RDONLY); e != 0 {
			return e
		}
	} else {
		if fs, e = MakeFS(x.Kind, x.source, options); e != 0 {
			return e
		}
		fs.Hold()
	}
	if x.mask&linux.MS_RDONLY != 0 && x.set&linux.MS_RDONLY != 0 {
		fs.SetReadOnly(true)
	}
	x.fs, x.phase = fs, configMount
	return 0
}

// Mount is fsmount: it makes a loose mount of the new file system.
func (x *Config) Mount(ns *Namespace, flags uint32) (*Mount, linux.Errno) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.fs == nil:
		return nil, linux.EINVAL
	case x.phase != configMount:
		return nil, linux.EBUSY
	}
	source := x.source
	if source == "" {
		source = "none"
	}
	m, e := ns.Loose(x.fs, x.fs.Root, source, flags)
	if e == 0 {
		x.phase = configChanged
	}
	return m, e
}

// Change is FSCONFIG_CMD_RECONFIGURE, for one who may mount.
func (x *Config) Change(may bool) linux.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next()
	if x.phase != configChange {
		return linux.EBUSY
	}
	x.phase = configFailed
	if !may {
		return linux.EPERM
	}
	ro := x.set&linux.MS_RDONLY != 0
	if ro && !x.fs.ReadOnly() && x.fs.Writers() > 0 {
		return linux.EBUSY
	}
	if e := Remount(x.fs, x.set&linux.MS_RDONLY, strings.Join(x.options, ",")); e != 0 {
		return e
	}
	if e := x.fs.SetReadOnly(ro); e != 0 {
		return e
	}
	x.phase = configChanged
	return 0
}
