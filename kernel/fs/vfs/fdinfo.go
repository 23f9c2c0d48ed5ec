package vfs

import "io"

// Informer adds lines to /proc/PID/fdinfo/N (an epoll's items, a timer's setting).
type Informer interface {
	FDInfo(f *File, w io.Writer)
}
