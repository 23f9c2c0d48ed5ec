package proc

import "hardtack/kernel/fs/vfs"

// MoveDirs gives every thread whose root or working directory is from the directory to
// instead, as pivot_root does.
func MoveDirs(from, to vfs.Path) {
	moved := map[*vfs.FSContext]bool{}
	Each(func(p *Process) bool {
		var list []*vfs.FSContext
		p.mu.Lock()
		for _, t := range p.threads {
			if f := t.FS; f != nil && !moved[f] && f.TryShare() {
				moved[f] = true
				list = append(list, f)
			}
		}
		p.mu.Unlock()
		for _, f := range list {
			f.Move(from, to)
			f.Release()
		}
		return true
	})
}
