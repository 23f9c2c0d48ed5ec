package ktime

// alarmBytes is what an alarm takes: the runtime's timer and its function.
const alarmBytes = 112 + 24

// Held returns what the timer keeps beside itself.
func (t *Timer) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alarm == nil {
		return 0
	}
	return alarmBytes
}
