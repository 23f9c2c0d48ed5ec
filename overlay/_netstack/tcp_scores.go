package tcp

import (
	"github.com/google/btree"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// sackNodes are the free nodes of all scoreboards: most connections never need one.
var sackNodes = btree.NewFreeListG[header.SACKBlock](btree.DefaultFreeListSize)
