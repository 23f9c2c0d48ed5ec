// Package lockbench measures the locks of package lock beside those of package sync,
// and the nucleus core (package nucleus/ipc) under its concurrency controls, on
// threads that are pinned to processors. Command drive in its folder does one
// measurement; it is built once for each control.
package lockbench
