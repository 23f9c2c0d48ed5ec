package names

import (
	"container/list"
	"fmt"
	"strconv"
	"sync"

	"github.com/google/btree"
)

// store holds the entries and who waits for them. It knows connections only as
// owners, and tells them things through their outboxes.
type store struct {
	mu       sync.Mutex
	entries  *btree.BTreeG[*record] // by name
	classes  map[string]int         // entries of each class
	reserved map[string]*reservation
	waits    map[string]map[*request]struct{} // by name
	watches  map[*request]struct{}
	users    map[uint32]*user // those with anything here
	revision uint64
}

// record is an entry and the connection it lives with.
type record struct {
	Entry
	owner *owner
}

// reservation is a name whose entry has died.
type reservation struct {
	name string
	user *user
	at   *list.Element // in user.reserved
}

// user counts what one user holds.
type user struct {
	uid      uint32
	conns    int
	entries  int
	waits    int
	watches  int
	reserved list.List // of *reservation, oldest first
}

// owner is a connection, as the store sees it.
type owner struct {
	uid, pid uint32
	user     *user
	out      *outbox
	records  map[string]*record  // its entries; guarded by store.mu
	requests map[uint64]*request // its waits and watches; guarded by store.mu
	watches  int                 // of them; guarded by store.mu
	gone     bool                // guarded by store.mu
}

// request is a wait or a watch that is not finished.
type request struct {
	owner *owner
	id    uint64
	name  string // of a watch: the prefix
	watch bool
}

func newStore() *store {
	return &store{
		entries:  btree.NewG(16, func(a, b *record) bool { return a.Name < b.Name }),
		classes:  map[string]int{},
		reserved: map[string]*reservation{},
		waits:    map[string]map[*request]struct{}{},
		watches:  map[*request]struct{}{},
		users:    map[uint32]*user{},
	}
}

func (s *store) find(name string) (*record, bool) {
	return s.entries.Get(&record{Entry: Entry{Name: name}})
}

// join makes an owner of a new connection.
func (s *store) join(uid, pid uint32, out *outbox) (*owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[uid]
	if u == nil {
		u = &user{uid: uid}
		s.users[uid] = u
	}
	if u.conns >= maxUserConns {
		return nil, fmt.Errorf("%w: user %d has %d connections", ErrLimit, uid, u.conns)
	}
	u.conns++
	return &owner{
		uid: uid, pid: pid, user: u, out: out,
		records: map[string]*record{}, requests: map[uint64]*request{},
	}, nil
}

// leave ends everything of a connection that has ended.
func (s *store) leave(o *owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.gone = true
	for _, r := range o.requests {
		s.drop(r)
	}
	for _, r := range o.records {
		s.remove(r)
		s.reserve(r)
	}
	o.user.conns--
	s.forget(o.user)
}

// forget drops a user who has nothing left. Needs mu.
func (s *store) forget(u *user) {
	if u.conns == 0 && u.entries == 0 && u.reserved.Len() == 0 {
		delete(s.users, u.uid)
	}
}

// mayTake says whether o may set or delete a name. Needs mu.
func (s *store) mayTake(o *owner, name string) error {
	if o.uid == 0 {
		return nil
	}
	holder := o.uid
	if r, ok := s.find(name); ok {
		holder = r.UID
	} else if r, ok := s.reserved[name]; ok {
		holder = r.user.uid
	}
	if holder != o.uid {
		return fmt.Errorf("%w: %q belongs to user %d", ErrDenied, name, holder)
	}
	return nil
}

func (s *store) set(o *owner, name string, value []byte, flags Flags) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	if err := checkValue(value); err != nil {
		return Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if flags&Sequence != 0 {
		name = s.unique(name)
		if err := CheckName(name); err != nil {
			return Entry{}, err
		}
	}
	if err := s.mayTake(o, name); err != nil {
		return Entry{}, err
	}
	old, exists := s.find(name)
	if exists && flags&Replace == 0 {
		return Entry{}, fmt.Errorf("%w: %q was set by process %d", ErrExists, name, old.PID)
	}
	if !exists && o.user.entries >= maxUserEntries {
		return Entry{}, fmt.Errorf("%w: user %d has %d entries", ErrLimit, o.uid, o.user.entries)
	}
	if !exists && s.entries.Len() >= maxEntries {
		return Entry{}, fmt.Errorf("%w: there are %d entries", ErrLimit, s.entries.Len())
	}
	if (!exists || old.owner != o) && len(o.records) >= maxConnEntries {
		return Entry{}, fmt.Errorf("%w: process %d has %d entries", ErrLimit, o.pid, len(o.records))
	}
	if exists {
		s.unlink(old)
	}
	if r, ok := s.reserved[name]; ok {
		s.release(r)
	}
	s.revision++
	r := &record{Entry{Name: name, Value: value, Revision: s.revision, UID: o.uid, PID: o.pid}, o}
	s.entries.ReplaceOrInsert(r)
	o.records[name] = r
	o.user.entries++
	s.classes[Class(name)]++
	for w := range s.waits[name] {
		w.owner.out.put(packet{id: w.id, op: opEntry, entry: r.Entry})
		s.drop(w)
	}
	s.tell(opEntry, r.Entry)
	return r.Entry, nil
}

// unique appends a number. The revision is a new one with each change; only a
// name that somebody numbered himself can be in the way. Needs mu.
func (s *store) unique(name string) string {
	for n := s.revision + 1; ; n++ {
		numbered := name + "." + strconv.FormatUint(n, 10)
		_, taken := s.find(numbered)
		if _, kept := s.reserved[numbered]; !taken && !kept {
			return numbered
		}
	}
}

// unlink takes a record out of all tables, and tells nobody. Needs mu.
func (s *store) unlink(r *record) {
	s.entries.Delete(r)
	delete(r.owner.records, r.Name)
	r.owner.user.entries--
	class := Class(r.Name)
	if s.classes[class]--; s.classes[class] == 0 {
		delete(s.classes, class)
	}
}

// remove takes a record away. Needs mu.
func (s *store) remove(r *record) {
	s.unlink(r)
	s.revision++
	gone := r.Entry
	gone.Revision = s.revision
	s.tell(opGone, gone)
}

// reserve keeps the name of a record that has died for its user. Needs mu.
func (s *store) reserve(r *record) {
	u := r.owner.user
	if u.reserved.Len() >= MaxReserved || len(s.reserved) >= maxReserved {
		if u.reserved.Len() == 0 {
			return
		}
		s.release(u.reserved.Front().Value.(*reservation))
	}
	res := &reservation{name: r.Name, user: u}
	res.at = u.reserved.PushBack(res)
	s.reserved[r.Name] = res
}

// release makes a name free for everybody. Needs mu.
func (s *store) release(r *reservation) {
	r.user.reserved.Remove(r.at)
	delete(s.reserved, r.name)
	s.forget(r.user)
}

// tell shows all watchers a change. Needs mu.
func (s *store) tell(what op, e Entry) {
	for w := range s.watches {
		if len(e.Name) < len(w.name) || e.Name[:len(w.name)] != w.name {
			continue
		}
		if !w.owner.out.event(packet{id: w.id, op: what, entry: e}) {
			w.owner.out.put(failure(w.id, errLagged))
			s.drop(w)
		}
	}
}

func (s *store) get(name string) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.find(name); ok {
		return r.Entry, nil
	}
	return Entry{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

func (s *store) count(class string) (int, error) {
	if err := CheckName(class); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classes[class], nil
}

// list gives up to listBatch entries from a name on, and the name at which the
// next batch begins, "" after the last one.
func (s *store) list(prefix, from string) (batch []Entry, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.AscendGreaterOrEqual(&record{Entry: Entry{Name: from}}, func(r *record) bool {
		if len(r.Name) < len(prefix) || r.Name[:len(prefix)] != prefix {
			return false
		}
		if len(batch) == listBatch {
			next = r.Name
			return false
		}
		batch = append(batch, r.Entry)
		return true
	})
	return batch, next
}

func (s *store) delete(o *owner, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayTake(o, name); err != nil {
		return err
	}
	if r, ok := s.find(name); ok {
		s.remove(r)
		return nil
	}
	if r, ok := s.reserved[name]; ok {
		s.release(r)
		return nil
	}
	return fmt.Errorf("%w: %q", ErrNotFound, name)
}

// wait answers at once if the name exists, else later.
func (s *store) wait(o *owner, id uint64, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.find(name); ok {
		o.out.put(packet{id: id, op: opEntry, entry: r.Entry})
		return nil
	}
	if err := s.mayAsk(o, id); err != nil {
		return err
	}
	if n := len(o.requests) - o.watches; n >= maxConnWaits {
		return fmt.Errorf("%w: process %d has %d waits pending", ErrLimit, o.pid, n)
	}
	if o.user.waits >= maxUserWaits {
		return fmt.Errorf("%w: user %d has %d waits pending", ErrLimit, o.uid, o.user.waits)
	}
	r := &request{owner: o, id: id, name: name}
	o.requests[id] = r
	o.user.waits++
	if s.waits[name] == nil {
		s.waits[name] = map[*request]struct{}{}
	}
	s.waits[name][r] = struct{}{}
	return nil
}

// watch answers with the changes from now on, after telling
// the revision before the first of them. What exists already the client lists.
func (s *store) watch(o *owner, id uint64, prefix string) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAsk(o, id); err != nil {
		return err
	}
	if o.watches >= maxConnWatches || o.user.watches >= maxUserWatches {
		return fmt.Errorf("%w: %d watches of process %d, %d of user %d", ErrLimit, o.watches, o.pid, o.user.watches, o.uid)
	}
	r := &request{owner: o, id: id, name: prefix, watch: true}
	o.requests[id] = r
	o.watches++
	o.user.watches++
	s.watches[r] = struct{}{}
	o.out.put(packet{id: id, op: opOK, entry: Entry{Revision: s.revision}})
	return nil
}

// mayAsk refuses a request number that is in use, and owners that have left.
// Needs mu.
func (s *store) mayAsk(o *owner, id uint64) error {
	if o.gone {
		return ErrClosed
	}
	if _, ok := o.requests[id]; ok {
		return fmt.Errorf("%w: request number %d is in use", errProtocol, id)
	}
	return nil
}

// cancel ends a wait or a watch, if it has not ended.
func (s *store) cancel(o *owner, id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := o.requests[id]; ok {
		s.drop(r)
	}
}

// drop takes a request out of all tables. Needs mu.
func (s *store) drop(r *request) {
	delete(r.owner.requests, r.id)
	if r.watch {
		delete(s.watches, r)
		r.owner.watches--
		r.owner.user.watches--
		return
	}
	r.owner.user.waits--
	delete(s.waits[r.name], r)
	if len(s.waits[r.name]) == 0 {
		delete(s.waits, r.name)
	}
}
