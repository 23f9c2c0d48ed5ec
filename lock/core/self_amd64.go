package core

// Self tells goroutines apart: it is the same number in all calls by one goroutine,
// and no two that live at the same time have the same. It is the address of the
// runtime's description of the goroutine, which thread-local storage holds (see
// the runtime's HACKING.md on getg).
func Self() uintptr
