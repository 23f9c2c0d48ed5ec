package ipc

import "hardtack/abi/linux"

// NewThread makes a stopped thread of a core.
func (n *Nucleus) NewThread(core, home uint32) (ID, Errno) {
	if home >= n.ncores {
		return 0, linux.EINVAL
	}
	id, err := ID(0), Errno(linux.ENFILE)
	n.control.enterAlone(core)
	for i := 1; i < MaxThreads; i++ {
		if t := &n.threads[i]; !t.exists {
			begin := Stopped
			if n.loose {
				begin = Ready
			}
			t.check(begin)
			t.exists, t.where, t.core = true, at(begin, 0), uint16(home)
			t.generation++
			t.result, t.Came = Result{}, 0
			n.used = max(n.used, uint32(i)+1)
			id, err = makeID(i, t.generation), 0
			break
		}
	}
	n.control.leaveAlone(core)
	return id, err
}

func makeID(index int, generation uint64) ID { return ID(uint64(index) | generation<<16) }

// Start makes a stopped thread ready.
func (n *Nucleus) Start(core uint32, id ID) (Effects, Errno) {
	in := n.control.enter(core)
	var fx Effects
	t, i, err := n.threadOf(id)
	if err == 0 {
		t.lock.acquire()
		if t.where == at(Stopped, 0) {
			t.check(Ready)
			t.where = at(Ready, 0)
		} else {
			err = linux.EBUSY
		}
		t.lock.release()
	}
	if err == 0 {
		fx.IPI = n.wake(core, i)
	}
	fx.Run = n.running(core)
	n.control.leave(core, in)
	return fx, err
}

// Move gives a stopped thread another core.
func (n *Nucleus) Move(core uint32, id ID, home uint32) Errno {
	if home >= n.ncores {
		return linux.EINVAL
	}
	n.control.enterAlone(core)
	t, i, err := n.threadOf(id)
	if err == 0 && t.where != at(Stopped, 0) {
		err = linux.EBUSY
	}
	if err == 0 {
		if t.hasTimer {
			n.removeTimer(uint32(t.core), i)
		}
		t.core = uint16(home)
	}
	n.control.leaveAlone(core)
	return err
}

// Dropped is the descriptors that a destroyed thread had: those of a message that
// it had not sent, and those received that it had not taken.
type Dropped struct {
	Descriptors [2 * MaxDescriptors]uint64
	N           int
}

func (d *Dropped) add(v *[MaxDescriptors]uint64, n int) {
	for i := range min(n, MaxDescriptors) {
		d.Descriptors[d.N%len(d.Descriptors)] = v[i]
		d.N++
	}
}

// DestroyThread ends a thread, whatever it does. Callers whose calls it has received
// get EPIPE. If it is the current thread of another core that core gets an
// interrupt, and the nucleus has forgotten the thread there already.
func (n *Nucleus) DestroyThread(core uint32, id ID) (Effects, Dropped, Errno) {
	n.control.enterAlone(core)
	fx, dropped, err := n.destroyThread(core, id)
	n.control.leaveAlone(core)
	return fx, dropped, err
}

func (n *Nucleus) destroyThread(core uint32, id ID) (fx Effects, dropped Dropped, err Errno) {
	t, i, err := n.threadOf(id)
	if err != 0 {
		fx.Run = n.running(core)
		return fx, dropped, err
	}
	home := uint32(t.core)
	switch t.where.state() {
	case Ready:
		if c := n.core(home); c.current == uint32(i) {
			c.current = 0
			if home != core {
				fx.IPI = 1 << home
			}
		} else {
			n.remove(&c.run, i)
		}
	case Sending:
		dropped.add(&t.Out, t.info.Descriptors())
	}
	if o := n.waitsAt(t.where); o != nil {
		n.remove(&o.queue, i)
	}
	dropped.add(&t.In, int(t.Came))
	if t.hasTimer {
		n.removeTimer(home, i)
	}
	t.check(Free)
	t.exists, t.where, t.deadline, t.Came = false, at(Free, 0), 0, 0
	for k := range n.threads {
		if c := &n.threads[k]; c.where == at(Replying, i) {
			unblock(c, Result{Err: linux.EPIPE})
			fx.IPI |= n.wake(core, uint16(k))
		}
	}
	fx.Run = n.running(core)
	return fx, dropped, 0
}

// NewEndpoint makes an endpoint.
func (n *Nucleus) NewEndpoint(core uint32) (ID, Errno) {
	id, err := ID(0), Errno(linux.ENFILE)
	n.control.enterAlone(core)
	for i := 1; i < MaxEndpoints; i++ {
		if e := &n.endpoints[i]; !e.exists {
			id, err = e.begin(i), 0
			break
		}
	}
	n.control.leaveAlone(core)
	return id, err
}

// DestroyEndpoint ends an endpoint. Whoever waits there gets EPIPE.
func (n *Nucleus) DestroyEndpoint(core uint32, id ID) (fx Effects, err Errno) {
	n.control.enterAlone(core)
	e, _, err := n.endpoint(id)
	if err == 0 {
		fx.IPI = n.end(core, &e.object)
	}
	fx.Run = n.running(core)
	n.control.leaveAlone(core)
	return fx, err
}

// NewNotification makes a notification without bits.
func (n *Nucleus) NewNotification(core uint32) (ID, Errno) {
	id, err := ID(0), Errno(linux.ENFILE)
	n.control.enterAlone(core)
	for i := 1; i < MaxNotifications; i++ {
		if o := &n.notifications[i]; !o.exists {
			o.bits = 0
			id, err = o.begin(i), 0
			break
		}
	}
	n.control.leaveAlone(core)
	return id, err
}

// DestroyNotification ends a notification. Whoever waits for it gets EPIPE.
func (n *Nucleus) DestroyNotification(core uint32, id ID) (fx Effects, err Errno) {
	n.control.enterAlone(core)
	o, _, err := n.notification(id)
	if err == 0 {
		fx.IPI = n.end(core, &o.object)
	}
	fx.Run = n.running(core)
	n.control.leaveAlone(core)
	return fx, err
}

// begin makes the object at a place exist, under a new id.
func (o *object) begin(i int) ID {
	o.exists = true
	o.generation++
	return makeID(i, o.generation)
}

// end ends an object, and wakes all that wait there with EPIPE.
func (n *Nucleus) end(core uint32, o *object) (ipi uint64) {
	o.exists = false
	for o.queue.head != 0 {
		i := o.queue.head
		n.remove(&o.queue, i)
		unblock(n.thread(i), Result{Err: linux.EPIPE})
		ipi |= n.wake(core, i)
	}
	return ipi
}
