//go:build !nucleus_none && !nucleus_fine && !nucleus_rtm && !nucleus_queue

package control

// Name is the control's, as hardtack build --control has it.
const Name = "big"

// alwaysQueue: also on virtual cores.
const alwaysQueue = false
