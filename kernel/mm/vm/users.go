package vm

// Users returns how many share the space.
func (s *Space) Users() int64 { return s.users.Load() }
