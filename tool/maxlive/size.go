package maxlive

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
)

// classes are the size classes of the toolchain's allocator: what an object of a size
// takes of the heap.
type classes struct {
	sizes  []uint64 // by class; class 0 is none
	page   uint64
	header uint64 // of objects that hold pointers and are larger than headerMin
	tiny   uint64
}

const (
	headerMin = 512       // objects up to this size keep their pointer bits in the span
	maxTrip   = 1 << 40   // a loop with more iterations has no useful bound
	overflow  = 1 << 62   // a bound that stopped growing
	maxBytes  = 1<<31 - 1 // a larger object has no useful bound
)

// readClasses reads the size classes from the source of the toolchain at root.
func readClasses(root string) (*classes, error) {
	name := filepath.Join(root, "src", "internal", "runtime", "gc", "sizeclasses.go")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		return nil, err
	}
	c := &classes{header: 8, tiny: 16}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		switch v := spec.Values[0].(type) {
		case *ast.CompositeLit:
			if spec.Names[0].Name != "SizeClassToSize" {
				break
			}
			for _, e := range v.Elts {
				n, _ := strconv.ParseUint(e.(*ast.BasicLit).Value, 0, 64)
				c.sizes = append(c.sizes, n)
			}
		case *ast.BasicLit:
			n, _ := strconv.ParseUint(v.Value, 0, 64)
			switch spec.Names[0].Name {
			case "PageShift":
				c.page = 1 << n
			case "TinySize":
				c.tiny = n
			}
		}
		return true
	})
	if len(c.sizes) != largeClass+numClasses || c.page == 0 {
		return nil, fmt.Errorf("%s: %d size classes, want %d", name, len(c.sizes), numClasses)
	}
	return c, nil
}

// round returns the class of an object of n bytes and what it takes. Class 0 is that
// of large objects, in whole pages.
func (c *classes) round(n uint64, pointers bool) (class int, size uint64) {
	if n == 0 {
		return 0, 0
	}
	if !pointers && n < c.tiny {
		n = c.tiny // a block that several small objects may share lives as long as one does
	}
	return c.fit(n, pointers)
}

// fit is round without the blocks of small objects.
func (c *classes) fit(n uint64, pointers bool) (class int, size uint64) {
	top := c.sizes[len(c.sizes)-1]
	if pointers && n > headerMin && n <= top-c.header {
		n += c.header
	} else if pointers && n > top-c.header {
		n = max(n, top+1)
	}
	for i, s := range c.sizes[1:] {
		if n <= s {
			return i + 1, s
		}
	}
	return largeClass, (n + c.page - 1) / c.page * c.page
}

// Coordinates of a Vector.
const (
	largeClass = 0
	numClasses = 68 // checked against the toolchain's
	stacks     = numClasses
	total      = numClasses + 1
	dimensions = numClasses + 2
)

// Vector is a number of bytes for each size class, for the stacks of goroutines, and in
// all. The sum of the classes may be above the total: each is the most on any path.
type Vector [dimensions]uint64

// Total is the bytes of all classes that may be live at the same time.
func (v *Vector) Total() uint64 { return v[total] }

func (v *Vector) zero() bool { return *v == Vector{} }

func (v *Vector) add(w *Vector) {
	for i, n := range w {
		if n != 0 {
			v[i] = satAdd(v[i], n)
		}
	}
}

func (v *Vector) max(w *Vector) {
	for i, n := range w {
		if n > v[i] {
			v[i] = n
		}
	}
}

func (v *Vector) times(n uint64) Vector {
	var out Vector
	for i, x := range v {
		if x != 0 {
			out[i] = satMul(x, n)
		}
	}
	return out
}

// less is v-w where that is positive.
func (v *Vector) less(w *Vector) Vector {
	var out Vector
	for i := range v {
		if v[i] > w[i] {
			out[i] = v[i] - w[i]
		}
	}
	return out
}

func satAdd(a, b uint64) uint64 { return min(a+b, overflow) } // both are at most overflow

func satMul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return overflow
	}
	return min(lo, overflow)
}

// object is the vector of n objects of size bytes.
func (c *classes) object(size uint64, pointers bool, n uint64) Vector {
	var v Vector
	class, bytes := c.round(size, pointers)
	v[class] = satMul(bytes, n)
	v[total] = v[class]
	return v
}

// stack is the vector of a goroutine's stack.
func stack(bytes uint64) Vector {
	var v Vector
	v[stacks], v[total] = bytes, bytes
	return v
}

// growth is what appends of one element each allocate on their way from nothing to n
// elements, with all that they leave behind.
func (c *classes) growth(elem, n uint64, pointers bool) Vector {
	var v Vector
	if elem == 0 {
		return v
	}
	for size := uint64(0); size < n; {
		size = c.nextCap(elem, size, size+1, pointers)
		o := c.object(size*elem, pointers, 1)
		v.add(&o)
	}
	return v
}

// growthAny is the same for appends of any number of elements to a slice of any
// capacity: from the last one backwards, each had the most that fits before the next.
func (c *classes) growthAny(elem, n uint64, pointers bool) Vector {
	v := c.step(elem, n, pointers)
	if elem == 0 || n < 2 {
		return v
	}
	for size := n - 1; size > 0; {
		o := c.object(size*elem, pointers, 1)
		v.add(&o)
		if size <= 512 {
			size /= 2
		} else {
			size = (4*size - 3*256) / 5
		}
	}
	return v
}

// step is the most that one growth to at most n elements allocates: from just below.
func (c *classes) step(elem, n uint64, pointers bool) Vector {
	if elem == 0 || n == 0 {
		return Vector{}
	}
	size := max(n, c.nextCap(elem, n-1, n, pointers))
	return c.object(size*elem, pointers, 1)
}

// nextCap is the capacity that the runtime gives a slice that grows.
func (c *classes) nextCap(elem, old, need uint64, pointers bool) uint64 {
	size := old
	switch {
	case need > 2*old:
		size = need
	case old < 256:
		size = 2 * old
	default:
		for size < need {
			size += (size + 3*256) >> 2
		}
	}
	if size > math.MaxInt64/elem {
		return size
	}
	_, bytes := c.fit(size*elem, pointers)
	if pointers && size*elem > headerMin && bytes <= c.sizes[len(c.sizes)-1] {
		bytes -= c.header
	}
	return max(bytes/elem, size)
}
