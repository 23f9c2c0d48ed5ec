package graph

// All are the cases by name.
var All = map[string]func() any{
	"Slice": Slice, "Variable": Variable, "Map": Map, "Field": Field, "Pool": Pool, "Once": Once,
	"Argument": Argument, "Interface": Interface, "Made": Made, "Sorted": Sorted, "Printed": Printed,
	"Stringer": Stringer, "Number": Number, "Clone": Clone, "Removed": Removed, "Pointed": Pointed, "Checked": Checked,
	"Provided": Provided, "Standard": Standard, "Nobody": Nobody,
}
