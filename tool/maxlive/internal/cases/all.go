package cases

// All are the functions by name.
var All = map[string]func() any{
	"New": New, "Stack": Stack, "Scratch": Scratch, "Escaping": Escaping, "Branches": Branches, "Worst": Worst,
	"Reuse": Reuse, "List": List, "Counted": Counted, "Array": Array, "Iterations": Iterations, "Forever": Forever,
	"Early": Early, "Nested": Nested, "Grow": Grow, "Two": Two, "Annotated": Annotated, "Length": Length,
	"Masked": Masked, "Recursive": Recursive, "Even": Even, "Map": Map, "Table": Table, "Hint": Hint,
	"Channel": Channel, "Closure": Closure, "ByValue": ByValue, "Method": Method, "Boxed": Boxed, "Small": Small,
	"Variadic": Variadic, "Dynamic": Dynamic, "Deferred": Deferred, "Concat": Concat, "Builder": Builder,
	"Field": Field, "Large": Large, "Header": Header, "Started": Started, "Panics": Panics,
	"Generic": Generic, "Sum": Sum,
}
