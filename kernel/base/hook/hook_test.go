package hook

import "testing"

func TestOneProvider(t *testing.T) {
	h := Default(func() int { return 1 })
	if n := h.Call(); n != 1 {
		t.Errorf("the default gives %d", n)
	}
	h.Set(func() int { return 2 })
	if n := h.Call(); n != 2 {
		t.Errorf("what was set gives %d", n)
	}
	defer func() {
		if recover() == nil || h.Call() != 2 {
			t.Error("a second provider is taken")
		}
	}()
	h.Set(func() int { return 3 })
}
