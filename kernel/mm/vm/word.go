package vm

// cas32 returns the value found; equal to old means that new was stored.
func cas32(b []byte, old, new uint32) uint32 {
	for {
		if swap32(b, old, new) {
			return old
		}
		if v := load32(b); v != old {
			return v
		}
	}
}
