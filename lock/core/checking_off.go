//go:build !lockcheck

package core

const checking = false
