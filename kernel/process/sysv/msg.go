package sysv

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// maxBytes bounds the messages of all queues, and overhead is what one counts
// beyond its text: they are in the kernel's own heap. No process's end removes them, so
// they get a small part of a small machine.
const (
	maxBytes   = 16 << 20
	partOfAll  = 16
	overhead   = 64
	leastBytes = 256 << 10
)

func bytesOfAll() *accounts.Pool {
	n := int64(mem.Total()) * mem.PageSize / partOfAll
	if n == 0 { // a test
		n = maxBytes
	}
	return accounts.NewPool(min(max(n, leastBytes), maxBytes))
}

// message is one message of a queue.
type message struct {
	kind int64
	text []byte         // immutable
	user *accounts.User // who is charged; immutable
}

// cost is what the message counts for.
func (m *message) cost() int64 { return int64(len(m.text)) + overhead }

// queue is a message queue; guarded by queues.mu.
type queue struct {
	object
	list         []message
	used, limit  uint64 // bytes of text, and how many there may be
	stime, rtime int64
	lspid, lrpid int32
}

var (
	queues   = table[queue, *queue]{max: &settings.MsgMni, pool: accounts.NewPool(settings.MsgMni.Get())}
	allBytes = accounts.LatePool{Make: bytesOfAll} // of all queues; changed under queues.mu
)

// MsgGet is msgget(2).
func MsgGet(c *caller.Ctx, key int32, flags uint32) (int32, linux.Errno) {
	return queues.get(c, key, flags, func(*queue) linux.Errno { return 0 }, func(q *queue) linux.Errno {
		q.limit = uint64(settings.MsgMnb.Get())
		return 0
	})
}

// MsgSend is msgsnd(2); it keeps text.
func MsgSend(c *caller.Ctx, id int32, kind int64, text []byte, nowait bool) linux.Errno {
	if kind < 1 || int64(len(text)) > settings.MsgMax.Get() {
		return linux.EINVAL
	}
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.lookup(c, id, 0o222)
	if e != 0 {
		return e
	}
	n := uint64(len(text))
	m := message{kind, text, c.User()}
	//maxlive:loop 1 because only the first round waits in the queue
	for waiting := false; ; {
		c.Arm()
		if q.used+n <= q.limit && uint64(len(q.list)) < q.limit && allBytes.Get().Room(m.user, m.cost(), m.user.UID == 0) {
			break
		}
		if nowait {
			return linux.EAGAIN
		}
		if !waiting {
			waiting = true
			q.waiters.Add(&c.Entry, c, wait.In)
			defer q.waiters.Remove(&c.Entry)
		}
		// Other queues' bytes count too, and nobody tells of those: look again.
		deadline := int64(wait.NoDeadline)
		if q.used+n <= q.limit {
			deadline = wait.Now() + 10_000_000
		}
		if e := block(c, &queues.mu, &q.object, deadline); e != 0 && e != linux.EAGAIN {
			return e
		}
		if !c.Cred().MayIPC(&q.perm, 0o222) {
			return linux.EACCES
		}
	}
	q.list = append(q.list, m)
	q.used += n
	allBytes.Get().Force(m.user, m.cost())
	q.stime, q.lspid = now(), c.PID
	q.waiters.Notify(wait.In)
	return 0
}

// find returns the index of the message that msgrcv's type asks for, or -1.
func (q *queue) find(kind int64, except bool) int {
	best := -1
	for i, m := range q.list {
		switch {
		case kind == 0:
			return i
		case kind > 0 && (m.kind == kind) != except:
			return i
		case kind < 0 && (m.kind <= -kind || kind == -1<<63) && (best < 0 || m.kind < q.list[best].kind):
			best = i
		}
	}
	return best
}

// MsgReceive is msgrcv(2): the message's type and text, cut to size with
// MSG_NOERROR.
func MsgReceive(c *caller.Ctx, id int32, size uint64, kind int64, flags uint32) (int64, []byte, linux.Errno) {
	if size > 1<<63-1 {
		return 0, nil, linux.EINVAL
	}
	if flags&linux.MSG_COPY != 0 && flags&(linux.MSG_EXCEPT|linux.IPC_NOWAIT) != linux.IPC_NOWAIT {
		return 0, nil, linux.EINVAL
	}
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.lookup(c, id, 0o444)
	if e != 0 {
		return 0, nil, e
	}
	if flags&linux.MSG_COPY != 0 {
		return q.peek(size, kind, flags)
	}
	//maxlive:loop 1 because only the first round waits in the queue
	for waiting := false; ; {
		c.Arm()
		if i := q.find(kind, flags&linux.MSG_EXCEPT != 0); i >= 0 {
			m := q.list[i]
			if uint64(len(m.text)) > size {
				if flags&linux.MSG_NOERROR == 0 {
					return 0, nil, linux.E2BIG
				}
			}
			copy(q.list[i:], q.list[i+1:])
			q.list[len(q.list)-1] = message{}
			q.list = q.list[:len(q.list)-1]
			q.used -= uint64(len(m.text))
			allBytes.Get().Release(m.user, m.cost())
			q.rtime, q.lrpid = now(), c.PID
			q.waiters.Notify(wait.In)
			return m.kind, m.text[:min(uint64(len(m.text)), size)], 0
		}
		if flags&linux.IPC_NOWAIT != 0 {
			return 0, nil, linux.ENOMSG
		}
		if !waiting {
			waiting = true
			q.waiters.Add(&c.Entry, c, wait.In)
			defer q.waiters.Remove(&c.Entry)
		}
		if e := block(c, &queues.mu, &q.object, wait.NoDeadline); e != 0 {
			return 0, nil, e
		}
		if !c.Cred().MayIPC(&q.perm, 0o444) {
			return 0, nil, linux.EACCES
		}
	}
}

// peek is MSG_COPY: message number i, which stays in the queue. Unlike other
// messages it cannot be cut.
func (q *queue) peek(size uint64, i int64, flags uint32) (int64, []byte, linux.Errno) {
	if i < 0 || i >= int64(len(q.list)) {
		return 0, nil, linux.ENOMSG
	}
	m := q.list[i]
	switch {
	case uint64(len(m.text)) <= size:
		return m.kind, m.text, 0
	case flags&linux.MSG_NOERROR != 0:
		return 0, nil, linux.EINVAL
	}
	return 0, nil, linux.E2BIG
}

func (q *queue) stat() linux.MsqidDS {
	return linux.MsqidDS{Perm: q.perm, STime: q.stime, RTime: q.rtime, CTime: q.ctime,
		Used: q.used, Num: uint64(len(q.list)), MaxSize: q.limit, LSPID: q.lspid, LRPID: q.lrpid}
}

// MsgStat is IPC_STAT.
func MsgStat(c *caller.Ctx, id int32) (linux.MsqidDS, linux.Errno) {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.lookup(c, id, 0o444)
	if e != 0 {
		return linux.MsqidDS{}, e
	}
	return q.stat(), 0
}

// MsgStatIndex is MSG_STAT and, with anyone, MSG_STAT_ANY.
func MsgStatIndex(c *caller.Ctx, i int32, anyone bool) (int32, linux.MsqidDS, linux.Errno) {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.index(c, i, anyone)
	if e != 0 {
		return 0, linux.MsqidDS{}, e
	}
	return q.id, q.stat(), 0
}

// MsgChange is IPC_SET.
func MsgChange(c *caller.Ctx, id int32, uid, gid, mode uint32, limit uint64) linux.Errno {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.owned(c, id)
	if e != 0 {
		return e
	}
	if limit > uint64(settings.MsgMnb.Get()) && !c.Cred().Has(creds.CapSysResource) {
		return linux.EPERM
	}
	if e := q.set(uid, gid, mode); e != 0 {
		return e
	}
	q.limit = limit
	q.waiters.Notify(wait.In)
	return 0
}

// MsgRemove is IPC_RMID.
func MsgRemove(c *caller.Ctx, id int32) linux.Errno {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	q, e := queues.owned(c, id)
	if e != 0 {
		return e
	}
	for i := range q.list {
		allBytes.Get().Release(q.list[i].user, q.list[i].cost())
	}
	q.list = nil
	queues.remove(q)
	return 0
}

// MsgUsage returns the number of queues, the highest place in use, and the
// messages and bytes of text in all.
func MsgUsage() (n, highest, messages int, bytes uint64) {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	n, highest = queues.usage()
	for _, q := range queues.all {
		if q != nil {
			messages += len(q.list)
			bytes += q.used
		}
	}
	return n, highest, messages, bytes
}
