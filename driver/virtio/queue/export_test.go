package queue

// StartAt makes the queue's indexes begin at n, to meet their wrap-around early.
func (q *Queue) StartAt(n uint16) {
	q.avail, q.published, q.told, q.used = n, n, n, n
	q.ring.publish(n, 0)
	q.EnableInterrupts(0)
}
