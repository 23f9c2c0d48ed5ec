package maxlive

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// loop is a natural loop: the blocks from which its header can be reached again.
type loop struct {
	header *ssa.BasicBlock
	blocks map[*ssa.BasicBlock]bool
	parent *loop
	depth  int // 1 is outermost

	// entries is the most often that the header runs each time the loop is entered;
	// check says that the last of them only finds that the loop is done.
	entries uint64
	check   bool
	known   bool
	asked   bool // an annotation was looked for
}

// loops finds a function's loops. wild is a block that a goto enters sideways, so that
// its loop has more than one header.
func loops(fn *ssa.Function) (byBlock map[*ssa.BasicBlock]*loop, list []*loop, wild *ssa.BasicBlock) {
	byHeader := map[*ssa.BasicBlock]*loop{}
	order := postorder(fn)
	index := make(map[*ssa.BasicBlock]int, len(order))
	for i, b := range order {
		index[b] = i
	}
	for _, b := range order {
		for _, s := range b.Succs {
			switch {
			case s.Dominates(b):
				l := byHeader[s]
				if l == nil {
					l = &loop{header: s, blocks: map[*ssa.BasicBlock]bool{s: true}}
					byHeader[s] = l
					list = append(list, l)
				}
				l.grow(b)
			case index[s] >= index[b]:
				wild = s
			}
		}
	}
	slices.SortFunc(list, func(a, b *loop) int { return len(a.blocks) - len(b.blocks) })
	byBlock = map[*ssa.BasicBlock]*loop{}
	for i, l := range list {
		for b := range l.blocks {
			if byBlock[b] == nil {
				byBlock[b] = l
			}
		}
		for _, m := range list[i+1:] {
			if m.blocks[l.header] {
				l.parent = m
				break
			}
		}
	}
	for _, l := range list {
		for p := l; p != nil; p = p.parent {
			l.depth++
		}
	}
	return byBlock, list, wild
}

func (l *loop) grow(b *ssa.BasicBlock) {
	if l.blocks[b] {
		return
	}
	l.blocks[b] = true
	for _, p := range b.Preds {
		l.grow(p)
	}
}

// postorder lists the blocks that can be reached, successors first.
func postorder(fn *ssa.Function) []*ssa.BasicBlock {
	var order []*ssa.BasicBlock
	seen := map[*ssa.BasicBlock]bool{}
	var visit func(*ssa.BasicBlock)
	visit = func(b *ssa.BasicBlock) {
		if seen[b] {
			return
		}
		seen[b] = true
		for _, s := range b.Succs {
			visit(s)
		}
		order = append(order, b)
	}
	if len(fn.Blocks) > 0 {
		visit(fn.Blocks[0])
	}
	return order
}

// within says whether l is m or inside it; every loop is within none at all.
func (l *loop) within(m *loop) bool {
	for ; l != m; l = l.parent {
		if l == nil {
			return false
		}
	}
	return true
}

// checksFirst says whether the header decides on each iteration.
func (l *loop) checksFirst() bool {
	_, isIf := l.header.Instrs[len(l.header.Instrs)-1].(*ssa.If)
	if !isIf {
		return false
	}
	for _, s := range l.header.Succs {
		if !l.blocks[s] {
			return true
		}
	}
	return false
}

// setRuns gives the loop the bound that its body runs n times.
func (l *loop) setRuns(n uint64) {
	l.check = l.checksFirst()
	l.entries, l.known = n, true
	if l.check {
		l.entries++
	}
}

// derive finds a bound from a condition that every iteration meets and that counts.
func (l *loop) derive() {
	for b := range l.blocks {
		cond, ok := b.Instrs[len(b.Instrs)-1].(*ssa.If)
		if !ok || l.blocks[b.Succs[0]] == l.blocks[b.Succs[1]] || !l.everyTime(b) {
			continue
		}
		n, ok := trips(l, cond.Cond, l.blocks[b.Succs[0]])
		if !ok {
			continue
		}
		entries := n + 1 // also where the condition comes after the body
		if !l.known || entries < l.entries {
			l.entries, l.known, l.check = entries, true, b == l.header
		}
	}
}

// everyTime says whether every iteration passes through b.
func (l *loop) everyTime(b *ssa.BasicBlock) bool {
	for _, p := range l.header.Preds {
		if l.blocks[p] && !b.Dominates(p) {
			return false
		}
	}
	return true
}
