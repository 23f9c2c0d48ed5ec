package mem

import "hardtack/kernel/base/ledger"

// Bytes returns what the register takes beside itself.
func (m *Mappings) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.many != nil {
		return ledger.Map[Mapper, int](len(m.many))
	}
	return ledger.Array[mapped](cap(m.few))
}
