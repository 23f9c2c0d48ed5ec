package ipv6

// Rediscover forgets what routers have said, as when the link comes up, and asks them.
func (e *endpoint) Rediscover() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.ndp.cleanupState()
	e.mu.ndp.startSolicitingRouters()
}
