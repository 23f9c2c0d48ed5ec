package lockmap

import (
	"go/ast"
	"go/token"
	"slices"
)

// target is what a break or a continue leaves.
type target struct {
	label           string
	loop            bool
	breaks, repeats *state
}

// walker follows one function.
type walker struct {
	a       *analysis
	f       *function
	targets []*target
	label   string // of the next loop or switch
	left    *state // where the function returns; nil: nowhere yet
	wild    bool   // it has a goto: no order of its lines is known
}

// mark notes that lines run in states.
func (w *walker) mark(from, to token.Pos, states ...*state) {
	for _, s := range states {
		if !s.locked() {
			continue
		}
		first, last := w.a.fset.Position(from).Line, w.a.fset.Position(to).Line
		for n := first; n <= last; n++ {
			w.f.file.held[n] = true
		}
		return
	}
}

// simple is a statement or expression without branches.
func (w *walker) simple(n ast.Node, s *state) *state {
	before := s.clone()
	s = w.effects(n, s)
	w.mark(n.Pos(), n.End(), before, s)
	return s
}

func (w *walker) block(list []ast.Stmt, s *state) *state {
	for _, x := range list {
		s = w.stmt(x, s)
	}
	return s
}

func (w *walker) stmt(x ast.Stmt, s *state) *state {
	if s == nil { // behind a return: only a goto comes here
		w.wild = true
		s = newState()
	}
	switch x := x.(type) {
	case nil, *ast.EmptyStmt:
		return s
	case *ast.BlockStmt:
		return w.block(x.List, s)
	case *ast.IfStmt:
		return w.ifStmt(x, s)
	case *ast.ForStmt:
		return w.loop(x, x.Cond, x.Post, x.Body, w.optional(x.Init, s))
	case *ast.RangeStmt:
		clear(s.unless) // its variables may have the names
		return w.loop(x, x.X, nil, x.Body, w.simple(x.X, s))
	case *ast.SwitchStmt:
		s = w.optional(x.Init, s)
		if x.Tag != nil {
			s = w.simple(x.Tag, s)
		}
		return w.clauses(x.Body, s)
	case *ast.TypeSwitchStmt:
		return w.clauses(x.Body, w.simple(x.Assign, w.optional(x.Init, s)))
	case *ast.SelectStmt:
		return w.clauses(x.Body, s)
	case *ast.LabeledStmt:
		w.label = x.Label.Name
		return w.stmt(x.Stmt, s)
	case *ast.BranchStmt:
		return w.branch(x, s)
	case *ast.ReturnStmt:
		w.leave(w.simple(x, s))
		return nil
	case *ast.DeferStmt:
		before := s.clone()
		s = w.deferred(x.Call, s)
		w.mark(x.Pos(), x.End(), before, s)
		return s
	case *ast.GoStmt: // what it calls runs on a stack of its own
		w.mark(x.Pos(), x.End(), s)
		if lit, ok := x.Call.Fun.(*ast.FuncLit); ok {
			w.a.follow(&function{file: w.f.file, typ: lit.Type, body: lit.Body})
		}
		for _, arg := range x.Call.Args {
			s = w.effects(arg, s)
		}
		return s
	case *ast.ExprStmt:
		s = w.simple(x, s)
		if isPanic(x.X) {
			return nil
		}
		return s
	case *ast.AssignStmt:
		s = w.simple(x, s)
		s.lose(x.Lhs)
		w.assigned(x, s)
		return s
	}
	if _, ok := x.(*ast.DeclStmt); ok {
		clear(s.unless)
	}
	return w.simple(x, s) // IncDec, Send, Decl
}

func (w *walker) optional(x ast.Stmt, s *state) *state {
	if x == nil {
		return s
	}
	return w.stmt(x, s)
}

func (w *walker) leave(s *state) { w.left = join(w.left, s) }

func (w *walker) ifStmt(x *ast.IfStmt, s *state) *state {
	s = w.optional(x.Init, s)
	before := s.clone()
	yes, no := w.cond(x.Cond, s)
	w.mark(x.Cond.Pos(), x.Cond.End(), before, yes, no)
	yes = w.block(x.Body.List, yes)
	if x.Else != nil {
		no = w.stmt(x.Else, no)
	}
	return join(yes, no)
}

// cond returns the states in which a condition is true and false.
func (w *walker) cond(x ast.Expr, s *state) (yes, no *state) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.cond(x.X, s)
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			yes, no = w.cond(x.X, s)
			return no, yes
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.NEQ, token.EQL:
			if yes, no, ok := failed(x, s); ok {
				return yes, no
			}
		case token.LAND:
			y1, n1 := w.cond(x.X, s)
			y2, n2 := w.cond(x.Y, y1)
			return y2, join(n1, n2)
		case token.LOR:
			y1, n1 := w.cond(x.X, s)
			y2, n2 := w.cond(x.Y, n1)
			return join(y1, y2), n2
		}
	case *ast.CallExpr:
		if k, ok := tried(x); ok {
			yes, no = s.clone(), s.clone()
			yes.acquire(k)
			return yes, no
		}
	}
	s = w.effects(x, s)
	return s, s.clone()
}

// loop follows a body until nothing changes. x is the whole statement.
func (w *walker) loop(x ast.Stmt, cond ast.Expr, post ast.Stmt, body *ast.BlockStmt, s *state) *state {
	t := &target{label: w.label, loop: true}
	w.label = ""
	w.targets = append(w.targets, t)
	_, isRange := x.(*ast.RangeStmt)
	for {
		yes, no := s.clone(), s.clone()
		switch {
		case isRange:
			w.mark(x.Pos(), body.Lbrace, s)
		case cond != nil:
			yes, no = w.cond(cond, s.clone())
			w.mark(cond.Pos(), cond.End(), s, yes, no)
		default:
			no = nil
		}
		end := join(w.block(body.List, yes), t.repeats)
		if post != nil && end != nil {
			end = w.stmt(post, end)
		}
		next := join(s, end)
		if same(s, next) {
			w.targets = w.targets[:len(w.targets)-1]
			return join(no, t.breaks)
		}
		s = next
	}
}

// clauses follows the cases of a switch or select.
func (w *walker) clauses(body *ast.BlockStmt, s *state) *state {
	t := &target{label: w.label}
	w.label = ""
	w.targets = append(w.targets, t)
	var out, through *state
	full := false
	for _, c := range body.List {
		var list []ast.Stmt
		in := s.clone()
		switch c := c.(type) {
		case *ast.CaseClause:
			for _, e := range c.List {
				in = w.simple(e, in)
			}
			// What an earlier case's expression did, did happen.
			s = join(s, in)
			full = full || c.List == nil
			list = c.Body
		case *ast.CommClause:
			in = w.optional(c.Comm, in)
			full = true
			list = c.Body
		}
		in = join(in, through)
		through = nil
		if n := len(list); n > 0 {
			if b, ok := list[n-1].(*ast.BranchStmt); ok && b.Tok == token.FALLTHROUGH {
				through = w.block(list[:n-1], in)
				continue
			}
		}
		out = join(out, w.block(list, in))
	}
	w.targets = w.targets[:len(w.targets)-1]
	if !full {
		out = join(out, s)
	}
	return join(out, t.breaks)
}

func (w *walker) branch(x *ast.BranchStmt, s *state) *state {
	if x.Tok == token.GOTO {
		w.wild = true
		w.leave(s)
		return nil
	}
	w.mark(x.Pos(), x.End(), s)
	for _, t := range slices.Backward(w.targets) {
		if x.Label != nil && t.label != x.Label.Name || x.Label == nil && x.Tok == token.CONTINUE && !t.loop {
			continue
		}
		if x.Tok == token.CONTINUE {
			t.repeats = join(t.repeats, s)
		} else {
			t.breaks = join(t.breaks, s)
		}
		return nil
	}
	w.wild = true // a break out of a labelled block
	w.leave(s)
	return nil
}

func isPanic(x ast.Expr) bool {
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}
