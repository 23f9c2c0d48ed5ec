package ledger

import (
	"math/bits"
	"reflect"
	"sort"
	"sync"
)

// classes are the sizes that Go's allocator gives out; larger objects are whole pages.
var classes = [...]int64{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
	288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792,
	2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376, 6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240,
	10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264, 28672, 32768}

const (
	largest = 32768 - header // the largest object that has a class
	goPage  = 8192
	tiny    = 16
	// Objects with pointers that are larger than headerFrom have a header of their own.
	header     = 8
	headerFrom = 512
)

// Size returns what n bytes without pointers take of the heap. Several tiny objects share
// a block, which lives as long as any of them.
func Size(n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case n < tiny:
		return tiny
	}
	return class(n)
}

// sizePointers returns what n bytes with pointers among them take.
func sizePointers(n int64) int64 {
	if n > headerFrom && n <= largest {
		n += header
	}
	return class(n)
}

// class returns the size class of n bytes, or their pages.
func class(n int64) int64 {
	if n > largest {
		return (n + goPage - 1) &^ (goPage - 1)
	}
	return classes[sort.Search(len(classes), func(i int) bool { return classes[i] >= n })]
}

// Of returns what a T takes that is allocated by itself.
func Of[T any]() int64 { return sizeOf(reflect.TypeFor[T](), 1) }

// Array returns what an array of n T takes.
func Array[T any](n int) int64 { return sizeOf(reflect.TypeFor[T](), n) }

// OfPointer returns what the object takes that p, a pointer in an interface, points to:
// all of it, if p is where the object begins. Anything else takes nothing.
func OfPointer(p any) int64 {
	if t := reflect.TypeOf(p); t != nil && t.Kind() == reflect.Pointer {
		return sizeOf(t.Elem(), 1)
	}
	return 0
}

func sizeOf(t reflect.Type, n int) int64 {
	size := int64(t.Size()) * int64(n)
	if size > 0 && (size < tiny || size > headerFrom) && hasPointers(t) {
		return sizePointers(size)
	}
	return Size(size)
}

// havePointers is what hasPointers has found, by type. A process has tens of thousands of
// objects of few types, and to look into a type takes thousands of instructions.
var havePointers sync.Map

// hasPointers is pointers, but remembers.
func hasPointers(t reflect.Type) bool {
	if yes, ok := havePointers.Load(t); ok {
		return yes.(bool)
	}
	yes := pointers(t)
	havePointers.Store(t, yes)
	return yes
}

// pointers reports whether the collector has to look into a T.
func pointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && pointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if pointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return t.Kind() > reflect.Complex128
}

// Parts of Go's maps: a map of up to eight has one group, a larger one has tables of
// groups, which are at most seven eighths full and split in two at tableMax.
const (
	mapBytes   = 48
	tableBytes = 32
	groupSlots = 8
	tableMax   = 1024
)

// Map returns what a map takes that holds n and never held more. It is exact up to
// seven eighths of tableMax and about right beyond.
func Map[K comparable, V any](n int) int64 {
	slot := reflect.TypeFor[struct {
		k K
		v V
	}]()
	group := func(groups int) int64 {
		size := int64(groups) * groupSlots * int64(1+slot.Size())
		if pointers(slot) {
			return sizePointers(size)
		}
		return Size(size)
	}
	switch {
	case n == 0:
		return mapBytes
	case n <= groupSlots:
		return mapBytes + group(1)
	}
	slots := 1 << bits.Len(uint((n*8+6)/7-1))
	tables := max(slots/tableMax, 1)
	each := tableBytes + group(slots/tables/groupSlots)
	return mapBytes + Array[*int](tables) + int64(tables)*each
}

// Peak is the most entries that a map has had, which is what it takes memory for: Go's maps
// do not shrink. Its owner makes a new map when the last entry of a large one goes.
type Peak int

// Note notes how many entries there are, after one has come.
func (p *Peak) Note(n int) {
	if n > int(*p) {
		*p = Peak(n)
	}
}

// Max returns the peak, or n if that is more.
func (p *Peak) Max(n int) int { return max(int(*p), n) }

// Empty reports whether a new map is due, after an entry has gone and n are left.
func (p *Peak) Empty(n int) bool {
	if n > 0 || *p <= groupSlots {
		return false
	}
	*p = 0
	return true
}
