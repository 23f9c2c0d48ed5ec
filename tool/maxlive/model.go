package maxlive

import (
	"bufio"
	"fmt"
	"go/types"
	"os"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// model is what is known of a function without looking into it.
type model struct {
	lasting, transient uint64 // bytes, of one object
	sudogs             uint64 // records of goroutines that wait
	keeps              bool   // it may keep its arguments
	appends            int64  // bytes that it appends to the first slice that it is given
	grows              bool
	copies             bool // it makes one copy more of each text or slice that it is given
	table              bool // it may grow a table of the runtime, which is not counted
	point              bool // of reservation: it is looked into, but callers do not count it
	reason             string
	used               bool
}

// builtinModels are functions of the runtime, and those that reach it by linkname. What
// is not listed and has no body in Go or assembly has no bound.
const builtinModels = `
runtime.KeepAlive 0 0
slices.choosePivotCmpFunc 0 0
slices.choosePivotOrdered 0 0
sort.choosePivot 0 0
sort.choosePivot_func 0 0
slices.breakPatternsCmpFunc 0 0
slices.breakPatternsOrdered 0 0
sort.breakPatterns 0 0
sort.breakPatterns_func 0 0
(*crypto/internal/fips140/sha256.Digest).Sum 0 0 appends=32
strings.Clone 0 0 copies
slices.Delete 0 0 appends=0
(runtime.Cleanup).Stop 0 0
runtime/debug.FreeOSMemory 0 0
internal/stringslite.Clone 0 0 copies
bytes.Clone 0 0 copies
slices.Clone 0 0 copies
strconv.ParseInt 64 0 copies
strconv.ParseUint 64 0 copies
strconv.ParseBool 64 0 copies
strconv.Atoi 64 0 copies
strconv.AppendInt 0 0 appends=65
strconv.AppendUint 0 0 appends=65
strconv.AppendBool 0 0 appends=5
strconv.FormatInt 65 0
strconv.FormatUint 65 0
strconv.Itoa 24 0
(encoding/binary.littleEndian).AppendUint16 0 0 appends=2
(encoding/binary.littleEndian).AppendUint32 0 0 appends=4
(encoding/binary.littleEndian).AppendUint64 0 0 appends=8
(encoding/binary.bigEndian).AppendUint16 0 0 appends=2
(encoding/binary.bigEndian).AppendUint32 0 0 appends=4
(encoding/binary.bigEndian).AppendUint64 0 0 appends=8
(*sync.Pool).Get 0 0 table
sync.OnceFunc 512 0 keeps
sync.OnceValue 512 0 keeps
sync.OnceValues 512 0 keeps
io.Copy 0 32768
io.CopyN 32 32768
io.CopyBuffer 0 32768
(*sync.Pool).Put 4480 0 keeps table
errors.Is 0 0
errors.As 0 0
errors.Unwrap 0 0
runtime.Gosched 0 0
runtime.GC 0 0
runtime.Callers 0 0
runtime.Caller 0 0
runtime.NumCPU 0 0
runtime.NumGoroutine 0 0
runtime.GOMAXPROCS 0 0
runtime.ReadMemStats 0 0
runtime.LockOSThread 0 0
runtime.UnlockOSThread 0 0
runtime.Goexit 0 0
sync.runtime_Semacquire 0 0 sudogs=1
sync.runtime_SemacquireWaitGroup 0 0 sudogs=1
sync.runtime_SemacquireRWMutexR 0 0 sudogs=1
sync.runtime_SemacquireRWMutex 0 0 sudogs=1
sync.runtime_Semrelease 0 0
sync.runtime_notifyListAdd 0 0
sync.runtime_notifyListWait 0 0 sudogs=1
sync.runtime_notifyListNotifyAll 0 0
sync.runtime_notifyListNotifyOne 0 0
sync.runtime_notifyListCheck 0 0
sync.runtime_procPin 0 0
sync.runtime_procUnpin 0 0
sync.runtime_registerPoolCleanup 0 0
sync.runtime_LoadAcquintptr 0 0
sync.runtime_StoreReluintptr 0 0
sync.runtime_randn 0 0
sync.throw 0 0
sync.fatal 0 0
sync/atomic.runtime_procPin 0 0
sync/atomic.runtime_procUnpin 0 0
internal/sync.runtime_SemacquireMutex 0 0 sudogs=1
internal/sync.runtime_Semrelease 0 0
internal/sync.runtime_canSpin 0 0
internal/sync.runtime_doSpin 0 0
internal/sync.runtime_nanotime 0 0
internal/sync.runtime_rand 0 0
internal/sync.throw 0 0
internal/sync.fatal 0 0
internal/synctest.IsInBubble 0 0
internal/poll.runtime_Semacquire 0 0 sudogs=1
internal/poll.runtime_Semrelease 0 0
time.now 0 0
time.runtimeNow 0 0
time.runtimeNano 0 0
time.Sleep 112 0 table
time.newTimer 112 0 keeps table
time.stopTimer 0 0
time.resetTimer 0 0 table
math/rand.runtime_rand 0 0
math/rand/v2.runtime_rand 0 0
os.runtime_args 0 0
internal/godebug.setUpdate 0 0 keeps
internal/godebug.registerMetric 0 0 keeps
internal/godebug.write 0 0
hash/maphash.runtime_rand 0 0
hash/maphash.runtime_memhash 0 0
sync/atomic.StorePointer 0 0 keeps
sync/atomic.SwapPointer 0 0 keeps
sync/atomic.CompareAndSwapPointer 0 0 keeps
sync/atomic.LoadPointer 0 0
runtime.nanotime 0 0
runtime.cputicks 0 0
runtime.procyield 0 0
runtime.procPin 0 0
runtime.procUnpin 0 0
runtime.gopark 0 0
runtime.goready 0 0
runtime.goyield 0 0
runtime.casgstatus 0 0
runtime.runqput 0 0
runtime.runqempty 0 0
runtime.wakep 0 0
runtime.semacquire 0 0 sudogs=1
runtime.semrelease 0 0
runtime.entersyscall 0 0
runtime.exitsyscall 0 0
runtime.Version 0 0
runtime.GOROOT 0 0
syscall.runtime_entersyscall 0 0
syscall.runtime_exitsyscall 0 0
syscall.Getpagesize 0 0
time.runtimeIsBubbled 0 0
internal/synctest.isAssociated 0 0
internal/synctest.disassociate 0 0
internal/abi.FuncPCABI0 0 0
internal/abi.FuncPCABIInternal 0 0
internal/runtime/sys.GetCallerPC 0 0
internal/runtime/sys.GetCallerSP 0 0
crypto/internal/fips140.getIndicator 0 0
crypto/internal/fips140.setIndicator 0 0
crypto/fips140.isBypassed 0 0
crypto/fips140.setBypass 0 0
crypto/fips140.unsetBypass 0 0
weak.runtime_makeStrongFromWeak 0 0
weak.runtime_registerWeakPointer 16 0
runtime.internal_weak_runtime_registerWeakPointer 16 0
runtime.AddCleanup 128 0 keeps
`

// readModels reads lines "NAME LASTING TRANSIENT [sudogs=N] [keeps] [table] [because REASON]".
func readModels(text string, into map[string]*model, reasons bool) error {
	s := bufio.NewScanner(strings.NewReader(text))
	for n := 1; s.Scan(); n++ {
		head, reason, _ := strings.Cut(s.Text(), " because ")
		words := strings.Fields(head)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		m := &model{reason: strings.TrimSpace(reason)}
		if len(words) == 2 && words[1] == "point" && m.reason != "" {
			m.point = true
			into[words[0]] = m
			continue
		}
		bad := len(words) < 3 || reasons && m.reason == ""
		for i, w := range words[1:] {
			value, isSudogs := strings.CutPrefix(w, "sudogs=")
			value, isAppends := strings.CutPrefix(value, "appends=")
			v, err := strconv.ParseUint(value, 0, 40)
			switch {
			case w == "keeps" && i >= 2:
				m.keeps = true
			case w == "copies" && i >= 2:
				m.copies = true
			case w == "table" && i >= 2:
				m.table = true
			case err != nil:
				bad = true
			case i == 0:
				m.lasting = v
			case i == 1:
				m.transient = v
			case isSudogs:
				m.sudogs = v
			case isAppends:
				m.appends, m.grows = int64(v), true
			default:
				bad = true
			}
		}
		if bad {
			return fmt.Errorf("line %d: want NAME LASTING TRANSIENT [sudogs=N] [keeps] because REASON", n)
		}
		into[words[0]] = m
	}
	return s.Err()
}

// models are the built-in ones and those of a file.
func models(name string) (map[string]*model, error) {
	all := map[string]*model{}
	if err := readModels(builtinModels, all, false); err != nil {
		return nil, err
	}
	for _, m := range all {
		m.used = true
	}
	if name == "" {
		return all, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := readModels(string(text), all, true); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// modelOf is the model of a function, or of the one of the runtime that it stands for.
func (a *Analysis) modelOf(fn *ssa.Function) *model {
	if m := a.models[nameOf(fn)]; m != nil && !m.point {
		return m
	}
	if obj := fn.Object(); obj != nil && len(fn.Blocks) == 0 {
		return a.models[a.linknames[obj.Pos()]]
	}
	return nil
}

// cost is the cost that a model tells.
func (m *model) cost(a *Analysis) Cost {
	var c Cost
	if m.copies {
		c.Ret = a.classes.object(m.lasting, true, 1)
		c.Peak = c.Ret
		return c
	}
	c.Heap = a.classes.object(m.lasting, true, 1)
	c.Peak = c.Heap
	t := a.classes.object(m.transient, true, 1)
	c.Peak.add(&t)
	w := a.classes.object(a.runtimeSize("sudog"), true, m.sudogs)
	c.Peak.add(&w)
	return c
}

// summary is how arguments flow through a function that is known by a model.
func (m *model) summary(fn *ssa.Function) *flowSummary {
	if m.keeps {
		return opaque(fn)
	}
	if m.copies {
		return fresh(fn)
	}
	if m.grows {
		s := fresh(fn)
		if i := slicePlace(fn); i >= 0 {
			s.direct[i], s.shared[i] = resultBit, resultBit
		}
		return s
	}
	return borrowing(fn)
}

// copyCost is what a call of a function that copies its arguments needs.
func (f *function) copyCost(call ssa.CallInstruction, g *function) Cost {
	cost := g.cost
	for _, v := range call.Common().Args {
		elem := uint64(1)
		if s, ok := v.Type().Underlying().(*types.Slice); ok {
			elem = uint64(sizes.Sizeof(s.Elem()))
		} else if !isString(v.Type()) {
			continue
		}
		s := site{instr: call}
		top, ok := lenUpper(v, 0)
		n := f.count(&s, "copy of unknown length", call.Pos(), top, ok)
		if s.need != "" {
			f.cause(s.need, "", call.Pos())
		}
		o := f.a.classes.object(satMul(n, elem), !isString(v.Type()) && hasPointers(v.Type().Underlying().(*types.Slice).Elem()), 1)
		cost.Ret.add(&o)
		cost.Peak.add(&o)
	}
	return cost
}

// slicePlace is the first parameter that is a slice, or -1.
func slicePlace(fn *ssa.Function) int {
	for i, p := range fn.Params {
		if isSlice(p.Type()) {
			return i
		}
	}
	return -1
}

// extends says whether a call appends to a slice that it is given: which, and how much.
func (f *function) extends(call *ssa.Call) (to ssa.Value, more int64, ok bool) {
	if b, isBuiltin := call.Call.Value.(*ssa.Builtin); isBuiltin {
		if b.Name() != "append" {
			return nil, 0, false
		}
		more, ok := lenUpper(call.Call.Args[1], 0)
		if !ok {
			more = -1
		}
		return call.Call.Args[0], more, true
	}
	fn := call.Call.StaticCallee()
	if fn == nil || !isSlice(call.Type()) {
		return nil, 0, false
	}
	m := f.a.modelOf(fn)
	if m == nil || !m.grows {
		return nil, 0, false
	}
	i := slicePlace(fn)
	if i < 0 || i >= len(call.Call.Args) {
		return nil, 0, false
	}
	if more = m.appends; more == 0 {
		return call.Call.Args[i], 0, true
	}
	for _, a := range call.Call.Args[i+1:] { // what it is given comes on top
		if isString(a.Type()) || isSlice(a.Type()) {
			n, known := lenUpper(a, 0)
			if !known {
				return call.Call.Args[i], -1, true
			}
			more += n
		}
	}
	return call.Call.Args[i], more, true
}

// sudogs is what a goroutine needs to wait at a channel operation: a record for each
// channel. The runtime keeps a store of them; the bound is for when that is empty.
func (a *Analysis) sudogs(in ssa.Instruction) Vector {
	n := uint64(1)
	if s, ok := in.(*ssa.Select); ok {
		if !s.Blocking {
			return Vector{}
		}
		n = uint64(len(s.States))
	}
	return a.classes.object(a.runtimeSize("sudog"), true, n)
}

// runtimeSize is the size of a type of the runtime, as this toolchain has it.
func (a *Analysis) runtimeSize(name string) uint64 { return a.sizeOf("runtime", name) }

func (a *Analysis) sizeOf(path, name string) uint64 {
	key := path + "." + name
	if n, ok := a.known[key]; ok {
		return n
	}
	n := uint64(0)
	if p := a.packages[path]; p != nil {
		if obj := p.Scope().Lookup(name); obj != nil {
			if _, ok := obj.(*types.TypeName); ok {
				n = uint64(sizes.Sizeof(obj.Type()))
			}
		}
	}
	if n == 0 {
		a.problems = append(a.problems, Problem{Text: "the toolchain has no type " + key})
	}
	a.known[key] = n
	return n
}
