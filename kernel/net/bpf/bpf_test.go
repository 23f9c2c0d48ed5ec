package bpf

import (
	"encoding/binary"
	"testing"

	"hardtack/abi/linux"
)

func text(code ...instruction) []byte {
	var b []byte
	for _, i := range code {
		b = binary.LittleEndian.AppendUint16(b, i.code)
		b = append(b, i.jt, i.jf)
		b = binary.LittleEndian.AppendUint32(b, i.k)
	}
	return b
}

const (
	ret   = classRET
	retOf = classRET | retA
	ldB   = classLD | modeABS | sizeB
	ldH   = classLD | modeABS | sizeH
	ldW   = classLD | modeABS
	jeq   = classJMP | jumpEq
)

func TestRun(t *testing.T) {
	k := &Packet{Data: []byte{0x45, 1, 2, 3, 4, 5, 6, 7}, Network: []byte{9, 8}, Protocol: 0x0800, IfIndex: 3}
	for _, x := range []struct {
		name string
		code []instruction
		want uint32
	}{
		{"constant", []instruction{{ret, 0, 0, 7}}, 7},
		{"byte", []instruction{{ldB, 0, 0, 3}, {retOf, 0, 0, 0}}, 3},
		{"half", []instruction{{ldH, 0, 0, 2}, {retOf, 0, 0, 0}}, 0x0203},
		{"word", []instruction{{ldW, 0, 0, 4}, {retOf, 0, 0, 0}}, 0x04050607},
		{"beyond the end", []instruction{{ldW, 0, 0, 5}, {ret, 0, 0, 1}}, 0},
		{"length", []instruction{{classLD | modeLEN, 0, 0, 0}, {retOf, 0, 0, 0}}, 8},
		{"network header", []instruction{{ldB, 0, 0, network + 1}, {retOf, 0, 0, 0}}, 8},
		{"protocol", []instruction{{ldW, 0, 0, ancillary}, {retOf, 0, 0, 0}}, 0x0800},
		{"interface", []instruction{{ldW, 0, 0, ancillary + adIfIndex}, {retOf, 0, 0, 0}}, 3},
		{"header length", []instruction{{classLDX | modeMSH | sizeB, 0, 0, 0}, {classMSC | miscTXA, 0, 0, 0}, {retOf, 0, 0, 0}}, 20},
		{"indirect", []instruction{{classLDX, 0, 0, 2}, {classLD | modeIND | sizeB, 0, 0, 1}, {retOf, 0, 0, 0}}, 3},
		{"jump", []instruction{{ldB, 0, 0, 1}, {jeq, 1, 0, 1}, {ret, 0, 0, 5}, {ret, 0, 0, 6}}, 6},
		{"no jump", []instruction{{ldB, 0, 0, 1}, {jeq, 1, 0, 2}, {ret, 0, 0, 5}, {ret, 0, 0, 6}}, 5},
		{"memory", []instruction{{classLD, 0, 0, 4}, {classST, 0, 0, 15}, {classLD, 0, 0, 1}, {classLD | modeMEM, 0, 0, 15}, {retOf, 0, 0, 0}}, 4},
		{"division by X of 0", []instruction{{classLDX, 0, 0, 0}, {classALU | opDiv | srcX, 0, 0, 0}, {ret, 0, 0, 1}}, 0},
		{"arithmetic", []instruction{{classLD, 0, 0, 10}, {classALU | opMul, 0, 0, 3}, {classALU | opSub, 0, 0, 1}, {classALU | opMod, 0, 0, 8}, {retOf, 0, 0, 0}}, 5},
	} {
		p, e := New(text(x.code...))
		if e != 0 {
			t.Errorf("%s: %v", x.name, e)
			continue
		}
		if got := p.Run(k); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, code := range map[string][]instruction{
		"nothing":                {},
		"no return":              {{classLD, 0, 0, 1}},
		"jump beyond the end":    {{jeq, 1, 0, 0}, {ret, 0, 0, 0}},
		"jump always beyond":     {{classJMP, 0, 0, 1}, {ret, 0, 0, 0}},
		"jump backwards":         {{classJMP, 0, 0, 0xffffffff}, {ret, 0, 0, 0}},
		"division by 0":          {{classALU | opDiv, 0, 0, 0}, {ret, 0, 0, 0}},
		"shift by 32":            {{classALU | opLsh, 0, 0, 32}, {ret, 0, 0, 0}},
		"memory beyond the end":  {{classST, 0, 0, 16}, {ret, 0, 0, 0}},
		"memory never stored":    {{classLD | modeMEM, 0, 0, 0}, {ret, 0, 0, 0}},
		"memory stored one way":  {{jeq, 0, 1, 0}, {classST, 0, 0, 0}, {classLD | modeMEM, 0, 0, 0}, {ret, 0, 0, 0}},
		"unknown code":           {{0xffff, 0, 0, 0}, {ret, 0, 0, 0}},
		"unknown ancillary load": {{ldW, 0, 0, 0xffffffff}, {ret, 0, 0, 0}},
		"return X":               {{classRET | srcX, 0, 0, 0}},
	} {
		if _, e := New(text(code...)); e != linux.EINVAL {
			t.Errorf("%s: %v", name, e)
		}
	}
	if _, e := New(make([]byte, (MaxLen+1)*linux.SizeofSockFilter)); e != linux.EINVAL {
		t.Errorf("too long: %v", e)
	}
}

// FuzzProgram runs what New accepts: it must end and never fail.
func FuzzProgram(f *testing.F) {
	f.Add(text(instruction{ldB, 0, 0, 3}, instruction{retOf, 0, 0, 0}), []byte{1, 2, 3})
	f.Fuzz(func(_ *testing.T, program, data []byte) {
		if p, e := New(program); e == 0 {
			p.Run(&Packet{Data: data, Network: data, Link: data})
		}
	})
}
