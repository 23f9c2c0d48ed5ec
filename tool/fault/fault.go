// Package fault gives errors the exit status of the command that meets them.
//
// There are three kinds of errors: bad input from the user (Bad), an end of the machine
// with its own status (With), and errors of the host (any other error, status 1).
package fault

import (
	"errors"
	"fmt"
)

// The exit statuses of the command line. A guest's own status passes through
// unchanged, so these are only a promise together with a line on stderr.
const (
	OK      = 0
	Host    = 1   // the host failed: no space, no permission, a tool missing
	Input   = 2   // bad input: flags, images, programs, a busy port
	Panic   = 70  // the guest kernel panicked
	Lost    = 71  // the machine ended without reporting a status
	Timeout = 124 // --timeout ran out
)

type coded struct {
	status int
	err    error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// Bad is an error of the user's input: exit status 2.
func Bad(format string, args ...any) error { return With(Input, format, args...) }

// With is an error with an exit status of its own.
func With(status int, format string, args ...any) error {
	return &coded{status, fmt.Errorf(format, args...)}
}

// Status is the exit status an error asks for; 0 for nil, 1 where it asks for none.
func Status(err error) int {
	if err == nil {
		return OK
	}
	var c *coded
	if errors.As(err, &c) {
		return c.status
	}
	return Host
}
