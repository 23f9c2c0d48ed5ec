//go:build !lockcheck

package ipc

const checking = false
