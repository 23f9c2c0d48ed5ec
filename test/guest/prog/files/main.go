// Program files tests the file system calls on a tmpfs.
package main

import (
	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func main() {
	gt.Child("identity", identityChild)
	gt.Child("locker", lockerChild)
	gt.Main(
		gt.Test{Name: "open flags", Run: openFlags},
		gt.Test{Name: "read write seek", Run: readWriteSeek},
		gt.Test{Name: "append and shared offset", Run: appendOffset},
		gt.Test{Name: "positioned and vectored", Run: vectored},
		gt.Test{Name: "truncate and holes", Run: truncate},
		gt.Test{Name: "fallocate", Run: fallocate},
		gt.Test{Name: "unlinked but open", Run: unlinked},
		gt.Test{Name: "bad buffers", Run: badBuffers},
		gt.Test{Name: "bad descriptors", Run: badDescriptors},
		gt.Test{Name: "copy", Run: copies},
		gt.Test{Name: "rename", Run: rename},
		gt.Test{Name: "rename directories", Run: renameDirs},
		gt.Test{Name: "links", Run: links},
		gt.Test{Name: "symlinks", Run: symlinks},
		gt.Test{Name: "directories", Run: directories},
		gt.Test{Name: "getdents", Run: getdents},
		gt.Test{Name: "paths", Run: paths},
		gt.Test{Name: "at calls", Run: atCalls},
		gt.Test{Name: "stat", Run: stat},
		gt.Test{Name: "times", Run: times},
		gt.Test{Name: "modes and umask", Run: modes},
		gt.Test{Name: "permissions", Run: permissions},
		gt.Test{Name: "flock", Run: flock},
		gt.Test{Name: "record locks", Run: recordLocks},
		gt.Test{Name: "descriptor flags", Run: descriptorFlags},
		gt.Test{Name: "descriptor limits", Run: descriptorLimits},
		gt.Test{Name: "tmpfile", Run: tmpfile},
		gt.Test{Name: "memfd", Run: memfd},
		gt.Test{Name: "device files", Run: devices},
		gt.Test{Name: "proc self", Run: procSelf},
	)
}

// create makes a file with a text and closes it.
func create(t *gt.T, name, text string) {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
	t.Require("create "+name, err)
	_, err = unix.Write(fd, []byte(text))
	t.Require("write "+name, err)
	t.Require("close "+name, unix.Close(fd))
}

// open opens or ends the test.
func open(t *gt.T, name string, flags int) int {
	fd, err := unix.Open(name, flags, 0o644)
	t.Require("open "+name, err)
	return fd
}

// show prints a file's text.
func show(t *gt.T, name string) {
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		t.Err("show "+name, err)
		return
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Err("read "+name, err)
		return
	}
	t.Say("%s holds %q", name, buf[:n])
}
