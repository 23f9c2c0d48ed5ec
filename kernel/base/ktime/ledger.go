package ktime

// alarmBytes is what an alarm takes: the runtime's timer, its function, and its place in
// the runtime's heap of timers.
const alarmBytes = 112 + 32 + 16

// Held returns what the timer keeps beside itself.
func (t *Timer) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alarm == nil {
		return 0
	}
	return alarmBytes
}
