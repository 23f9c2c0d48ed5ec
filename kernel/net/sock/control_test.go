package sock

import (
	"reflect"
	"testing"

	"hardtack/kernel/fs/vfs"
)

// A message's ancillary part is used again: nothing of it may stay. The large fields are
// looked at only where another says that they were used.
func TestControlClear(t *testing.T) {
	typ := reflect.TypeFor[Control]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		var c Control
		// What is there only with its HasX is set with it.
		if has := reflect.ValueOf(&c).Elem().FieldByName("Has" + name); has.IsValid() {
			has.SetBool(true)
		}
		switch f := reflect.ValueOf(&c).Elem().Field(i); {
		case f.CanInt():
			f.SetInt(1)
		case f.CanUint():
			f.SetUint(1)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case name == "Rights":
			c.Rights = []*vfs.File{nil}
		case name == "Cred":
			c.Cred.PID = 1
		case name == "Aux":
			c.Aux[0] = 1
		case name == "OrigDst":
			c.OrigDst.Len = 1
		case name == "Error":
			c.Error.Errno = 1
		case name == "PktInfo":
			c.PktInfo.Index = 1
		default:
			t.Fatal("a field of a kind that the test does not know:", name)
		}
		if c.clear(); !reflect.DeepEqual(c, Control{}) {
			t.Error("clear leaves", name)
		}
	}
}
