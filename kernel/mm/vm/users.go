package vm

// Users returns how many threads have the space.
func (s *Space) Users() int64 { return s.users.Load() & (looker - 1) }
