package acpi

import "bytes"

// AML opcodes (section 20.2) of the constants read here.
const (
	amlZero    = 0x00
	amlOne     = 0x01
	amlName    = 0x08
	amlByte    = 0x0a
	amlWord    = 0x0b
	amlDWord   = 0x0c
	amlString  = 0x0d
	amlQWord   = 0x0e
	amlBuffer  = 0x11
	amlPackage = 0x12
	amlExt     = 0x5b
	amlDevice  = 0x82 // after amlExt
	amlOnes    = 0xff
)

// S5 returns the sleep types for PM1a (or SleepControl) and PM1b that power the
// machine off.
func (t *Tables) S5() (a, b uint8, ok bool) {
	for _, code := range t.aml() {
		p, found := object(code, "_S5_")
		if !found || len(p) == 0 || p[0] != amlPackage {
			continue
		}
		body, ok := pkg(p[1:])
		if !ok || len(body) < 1 || body[0] == 0 {
			continue
		}
		n := body[0]
		x, rest, ok := integer(body[1:])
		if !ok {
			continue
		}
		var y uint64
		if n >= 2 {
			y, _, _ = integer(rest)
		}
		return uint8(x & 7), uint8(y & 7), true
	}
	return 0, 0, false
}

// object returns what follows Name(name, …) in code, with or without a root
// prefix.
func object(code []byte, name string) ([]byte, bool) {
	for from := 0; ; {
		i := bytes.Index(code[from:], []byte(name))
		if i < 0 {
			return nil, false
		}
		i += from
		if i >= 1 && code[i-1] == amlName || i >= 2 && code[i-1] == '\\' && code[i-2] == amlName {
			return code[i+len(name):], true
		}
		from = i + 1
	}
}

// pkg decodes a PkgLength at the start of b and returns the bytes that it covers,
// without the PkgLength itself.
func pkg(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	extra := int(b[0] >> 6)
	if len(b) < 1+extra {
		return nil, false
	}
	n := int(b[0] & 0x3f)
	if extra > 0 {
		n = int(b[0] & 0x0f)
		for i := range extra {
			n |= int(b[1+i]) << (4 + 8*i)
		}
	}
	if n < 1+extra || n > len(b) {
		return nil, false
	}
	return b[1+extra : n], true
}

// integer decodes a constant and returns what follows it.
func integer(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	width := 0
	switch b[0] {
	case amlZero, amlOne:
		return uint64(b[0]), b[1:], true
	case amlOnes:
		return ^uint64(0), b[1:], true
	case amlByte:
		width = 1
	case amlWord:
		width = 2
	case amlDWord:
		width = 4
	case amlQWord:
		width = 8
	default:
		return 0, nil, false
	}
	if len(b) < 1+width {
		return 0, nil, false
	}
	for i := width; i > 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, b[1+width:], true
}

// Resource is a device's memory and interrupt.
type Resource struct {
	Base, Size uint64
	GSI        uint32
	Level      bool
	ActiveLow  bool
}

// Devices returns the resources of all devices with a hardware identifier, as far as
// their _HID and _CRS are constants ("LNRO0005" is a virtio-mmio transport).
func (t *Tables) Devices(hid string) []Resource {
	want := append(append([]byte{amlName, '_', 'H', 'I', 'D', amlString}, hid...), 0)
	var list []Resource
	for _, code := range t.aml() {
		for i := 0; i+2 < len(code); i++ {
			if code[i] != amlExt || code[i+1] != amlDevice {
				continue
			}
			body, ok := pkg(code[i+2:])
			if !ok || !bytes.Contains(body, want) {
				continue
			}
			// A device may contain others: the search continues right after its
			// opcode, and only the innermost device counts.
			if bytes.Contains(body, []byte{amlExt, amlDevice}) {
				continue
			}
			if r, ok := deviceResource(body); ok {
				list = append(list, r)
			}
		}
	}
	return list
}

// Resource descriptors (section 6.4) of constant addresses and interrupts.
const (
	resMemory32Fixed = 0x86
	resInterrupt     = 0x89
	resEnd           = 0x79
)

func deviceResource(body []byte) (r Resource, ok bool) {
	p, found := object(body, "_CRS")
	if !found || len(p) == 0 || p[0] != amlBuffer {
		return r, false
	}
	b, ok := pkg(p[1:])
	if !ok {
		return r, false
	}
	if _, b, ok = integer(b); !ok { // the buffer's size
		return r, false
	}
	memory, interrupt := false, false
	for len(b) > 0 && b[0] != resEnd {
		if b[0]&0x80 == 0 { // small: the length is in the tag
			n := 1 + int(b[0]&7)
			if n > len(b) {
				break
			}
			b = b[n:]
			continue
		}
		if len(b) < 3 {
			break
		}
		n := 3 + int(le.Uint16(b[1:]))
		if n > len(b) {
			break
		}
		switch {
		case b[0] == resMemory32Fixed && n >= 12 && !memory:
			memory = true
			r.Base, r.Size = uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:]))
		case b[0] == resInterrupt && n >= 9 && b[4] >= 1 && !interrupt:
			interrupt = true
			r.GSI = le.Uint32(b[5:])
			r.Level = b[3]&2 == 0
			r.ActiveLow = b[3]&4 != 0
		}
		b = b[n:]
	}
	return r, memory && interrupt
}
