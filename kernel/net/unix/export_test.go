package unix

// InFlight returns how many files are under way.
func InFlight() int { return int(inFlight.Used()) }
