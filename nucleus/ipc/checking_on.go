//go:build lockcheck

package ipc

const checking = true
