package main

import (
	_ "hardtack/kernel/sock/netlink" // AF_NETLINK
	_ "hardtack/kernel/sock/procnet" // /proc/net
)
