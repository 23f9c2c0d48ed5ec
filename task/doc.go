// Package task runs divide-and-conquer code on all cores: a task spawns others,
// which idle workers steal, and waits for them. A spawn that nobody steals costs
// a few nanoseconds and no allocation. Workers follow the cores that the process
// may use while they come and go.
//
// The guide docs/guides/task.md has programs to copy, and explains which function to use.
//
// # Two forms
//
// The ordinary form takes any function of a Ctx and an argument:
//
//	func fib(c task.Ctx, n int) int {
//		if n < 2 {
//			return n
//		}
//		x := task.Spawn(c, fib, n-1)
//		y := fib(c, n-2)
//		return x.Sync(c) + y
//	}
//
//	v, err := task.Run(ctx, func(c task.Ctx) int { return fib(c, 30) })
//
// Children that are not synced are waited for when the task ends. Join does the
// spawn, the call and the Sync of this fib in one:
//
//	x, y := task.Join(c, fib, n-2, fib, n-1)
//
// On top of it are For, Reduce, Sort and Invoke, and Group, whose inlet is called for
// each finished child and which can abort the rest. A spawn and its Sync cost some four
// nanoseconds, about as much as two calls of a function; Join costs three. It costs a few
// nanoseconds more if the function spawned at one depth of the stack differs each time,
// as a new closure does.
//
// The fast form is for hot recursion. A function gets the Frame that is free on
// its worker's stack; Fork spawns there, by a number from Register; Mine tells
// whether the task is still the caller's, to be run by an ordinary call:
//
//	func fib(f *task.Frame, n int) int {
//		if n < 2 {
//			return n
//		}
//		f.Fork(fibID, uint64(n-1))
//		y := fib(f.Next(), n-2)
//		if f.Mine() {
//			return fib(f, n-1) + y
//		}
//		return int(f.Join()) + y
//	}
//
// Its spawns are two stores, two loads and a compare, its tasks take integers
// only, and must be joined in the reverse order of their forks. A spawn costs two
// nanoseconds or less. Go's compiler does not make a loop of the last call, as C's
// do; written as one (see the example of Fork) it takes two thirds of the time.
//
// # Rules for tasks
//
// Only the task that a Ctx, Child or Frame was given to may use it, and only until that
// task returns. Violations that are detected panic with ErrForeign or ErrSynced; with
// WithChecks, or its environment variable, all are detected.
//
// A task may block: see Block. A panic in a child comes out of Try as a *Panic
// with the stacks of child and parent, wherever the child ran, and so does a
// panic out of Run. Sync and Join pass it on: as a *Panic when the child was
// stolen, as the panic that it is when the parent ran the child by a call, since
// there is nothing between them that could change it (a deferred function for
// each child makes it a third slower); errors.Is and errors.As see the same in
// both, if the value is an error. A parent that panics waits for the children that
// others have begun and drops the rest. When a Run's context ends, or a
// Group is aborted, Spawn and Fork unwind the running tasks by a panic of a
// private type that ends at the Run or Group.
//
// # The deque
//
// Each worker has a stack of Frames, one a cache line, used like the call stack
// that it mirrors. Its word holds two bounds (see word.go):
//
//	[0, tail) stolen   [tail, split) shared   [split, top) private
//
// All other workers steal at tail, by a compare-and-swap on the word. The owner
// moves split with one too, but spawns and syncs above split touch the word
// neither for reading nor for writing: only w.split, its own copy. top is no
// variable at all in the fast form, it is the callee's argument.
//
// A thief that finds nothing shared rings: it sets a flag and makes w.limit 0.
// Each spawn compares its frame's address with limit, which otherwise is the end
// of the stack, and so one compare finds an overflow, a hungry thief, an aborted
// group, a removed core and a tracer. The worker then shares the older half of
// its private frames, the big tasks.
//
// # Order of memory accesses
//
// Everything uses sync/atomic; nothing is weaker than Go's memory model allows.
//
//   - Owner to thief: the owner writes a frame, then moves split past it by a
//     compare-and-swap; the thief reads the frame after a compare-and-swap on
//     the same word that saw that split.
//   - Thief to owner: the thief writes the result, then adds done to the frame's
//     state; the owner reads the result after it has loaded done.
//   - Reuse: the owner writes into a frame again only when it is private: taken
//     back by a compare-and-swap (no thief can steal it any more) or released
//     after done. A thief's last access is the one that adds done.
//   - A word that comes back to an old value means the same again, since thieves
//     read frames after their compare-and-swap, never before.
//   - Sleeping: a worker makes its seat free, then looks for shared frames; an
//     owner shares, then looks for free seats. Both are sequentially consistent,
//     so one sees the other and no wake-up is lost.
//
// # Joins
//
// A worker whose child was stolen helps: it steals from the thief, and from no
// one else. While the thief is busy with the child, all it has to give are the
// child's own descendants: it began either with an empty stack or in a join of
// its own, where everything older on its stack had been stolen already. So a
// join runs its own children's work only, and a lock that is held across it
// cannot be wanted by what runs there. With nothing to help, the worker yields,
// then sleeps until the thief is done and lets another use its seat.
//
// # Locks
//
// Runtime.mu guards who has which seat and is taken on the slow ways only: to
// sleep, wake, change the number of workers, begin and end a Run. A Group's mu
// is held while its inlet runs; Runtime.mu may be taken inside of it, not the
// other way round. A tracer's locks and a clock's are innermost.
package task
