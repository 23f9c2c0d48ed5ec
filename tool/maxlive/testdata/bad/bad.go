// Package bad has what maxlive refuses. A comment "want" gives the error of its line.
package bad

type node struct{ next *node }

var sink any

//go:noinline
func EntryLoop(n int) *node {
	var head *node
	for range n { // want "loop without a bound"
		head = &node{head}
	}
	return head
}

//go:noinline
func EntryMake(n int) { sink = make([]byte, n) } // want "make of a slice of unknown length"

//go:noinline
func EntryAppend(s []int) { sink = append(s, 1) } // want "append to a slice of unknown length"

//go:noinline
func EntryMap(m map[int]int) { m[1] = 2 } // want "map of unknown length grows"

//go:noinline
func EntryString(s string) { sink = s + "x" } // want "sum of strings of unknown length"

//go:noinline
func EntryBytes(s string) { sink = []byte(s) } // want "conversion of a string of unknown length"

//go:noinline
func EntryChannel(n int) { sink = make(chan int, n) } // want "make of a channel of unknown length"

//go:noinline
func EntryDefer(n int) {
	for range n { // want "loop without a bound"
		defer func() { sink = new([100]int) }() // want "defer in a loop without a bound"
	}
}

//go:noinline
func EntryRecursion(n int) *node { // want "recursion without a bound"
	if n == 0 {
		return nil
	}
	return &node{EntryRecursion(n - 1)}
}

//go:noinline
func EntryDynamic(f func()) { f() } // want "call of a function that nothing is known of"

//go:noinline
func EntryGoto(n int) *node { // want "loop that a goto enters from outside"
	var head *node
	if n > 3 {
		goto inside
	}
again:
	n--
inside:
	head = &node{head}
	if n > 0 {
		goto again
	}
	return head
}

// EntryWrap counts in a type that wraps around: the condition always holds.
//
//go:noinline
func EntryWrap() *node {
	var head *node
	for i := uint8(0); i <= 255; i++ { // want "loop without a bound"
		head = &node{head}
	}
	return head
}

// EntryBack counts the wrong way.
//
//go:noinline
func EntryBack() *node {
	var head *node
	for i := 5; i < 10; i-- { // want "loop without a bound"
		head = &node{head}
	}
	return head
}

// EntryChanged changes the counter otherwise, too.
//
//go:noinline
func EntryChanged(n int) *node {
	var head *node
	for i := 0; i < 10; i++ { // want "loop without a bound"
		head = &node{head}
		if n > 5 {
			i = 0
		}
	}
	return head
}

//go:noinline
func EntryNeedless() *node {
	var head *node
	//maxlive:loop 5 because it is 5 // want "needless annotation: the bound is known"
	for range 5 {
		head = &node{head}
	}
	n := 0
	//maxlive:loop 5 because nothing needs it // want "needless annotation: no loop"
	n++
	_ = n
	return head
}

//go:noinline
func EntryFree(n int) (sum int) {
	//maxlive:loop 5 because it allocates nothing // want "needless annotation"
	for i := range n {
		sum += i
	}
	return sum
}

// EntryWords has an annotation without a reason.
//
//go:noinline
func EntryWords(n int) {
	sink = make([]byte, n) //maxlive:len 5 // want "does not say why" "make of a slice"
}

//go:noinline
func EntryKind(n int) {
	sink = make([]byte, n) //maxlive:length 5 because x // want "want //maxlive:KIND" "make of a slice"
}
