package main

import (
	"sort"

	"github.com/spf13/pflag"

	"hardtack/tool/machine"
	"hardtack/tool/rootfs"
)

// folderFlags are the flags that share folders of the host.
type folderFlags struct{ volumes, mounts []string }

func (f *folderFlags) define(fl *pflag.FlagSet) {
	fl.StringArrayVarP(&f.volumes, "volume", "v", nil, "share a `folder` of the host: HOST:GUEST[:ro][,cache=none|loose][,owners=host|mapped] (repeatable; HOST is absolute or begins with ./, and is made if it does not exist)")
	fl.StringArrayVar(&f.mounts, "mount", nil, "share a folder as `type`=bind,source=HOST,target=GUEST[,readonly][,cache=none|loose][,owners=host|mapped] (repeatable; HOST must exist)")
}

// set gives the machine its folders, and makes those of -v that are missing unless the
// machine will not run.
func (f *folderFlags) set(cfg *machine.Config, dryRun bool) error {
	for _, s := range f.volumes {
		folder, err := machine.ParseVolume(s)
		if err != nil {
			return err
		}
		cfg.Folders = append(cfg.Folders, folder)
	}
	for _, s := range f.mounts {
		folder, err := machine.ParseMount(s)
		if err != nil {
			return err
		}
		cfg.Folders = append(cfg.Folders, folder)
	}
	if dryRun {
		return nil
	}
	return cfg.Prepare()
}

// record is what the kernel is told of the folders. One that another is mounted in
// comes first.
func (f *folderFlags) record(cfg *machine.Config) (list []rootfs.Folder) {
	for i, x := range cfg.Folders {
		list = append(list, rootfs.Folder{Tag: cfg.Tag(i), Path: x.Guest, ReadOnly: x.ReadOnly, Options: "cache=" + x.Cache})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}
