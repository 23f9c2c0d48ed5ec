package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
	"hardtack/tool/source"
)

// imageNames completes the names of images, and IDs where there is no name.
func imageNames(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if store, err := source.DefaultStore(); err == nil {
		list, _ := store.List(cmd.Context())
		for _, i := range list {
			if i.Name == "" {
				names = append(names, shortID(i.ID))
			} else {
				names = append(names, i.Familiar())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func shortID(h v1.Hash) string { return h.Hex[:min(12, len(h.Hex))] }

func newImagePull() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "pull [flags] REF...",
		Short: "Bring images of registries to the cache",
		Long: `Bring images of registries to the cache, for "hardtack run". The registry is asked what
the name stands for now; layers that are there are not brought again.`,
		Example:           "  hardtack image pull redis:7\n  hardtack run redis:7",
		Args:              atLeast(1, "a REF"),
		ValidArgsFunction: imageNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := source.DefaultStore()
			if err != nil {
				return err
			}
			return eachName(cmd, args, func(ref string) error {
				shown := func() {}
				if !quiet {
					shown = showProgress(store, os.Stderr)
				}
				i, err := store.Pull(cmd.Context(), ref)
				shown()
				if err != nil {
					return err
				}
				if !quiet {
					fmt.Println("Digest: " + i.Digest.String())
				}
				_, err = fmt.Println(i.Familiar())
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the name only")
	return cmd
}

// eachName does something to each name and goes on after an error. The last error is
// returned, those before are printed.
func eachName(cmd *cobra.Command, names []string, do func(string) error) (last error) {
	for _, name := range names {
		if err := do(name); err != nil {
			if last != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.CommandPath(), last)
			}
			last = err
		}
	}
	return last
}

// imageRow is an image as ls shows it, with docker's names of the columns.
type imageRow struct {
	Repository   string
	Tag          string
	Digest       string
	ID           string
	CreatedAt    string
	CreatedSince string
	Size         string
}

func newImageRow(i *source.Stored, whole bool) imageRow {
	r := imageRow{Digest: i.Digest.String(), ID: i.ID.String(), CreatedAt: "N/A", CreatedSince: "N/A", Size: size(uint64(i.Size))}
	r.Repository, r.Tag = i.Split()
	if !whole {
		r.ID = shortID(i.ID)
	}
	if at := i.Config.Created.Time; at.Unix() > 0 {
		r.CreatedAt, r.CreatedSince = at.UTC().Format(time.RFC3339), ago(at)+" ago"
	}
	return r
}

func newImageLS() *cobra.Command {
	var quiet, digests, whole, asJSON bool
	var format string
	cmd := &cobra.Command{
		Use:     "ls [flags] [NAME]",
		Aliases: []string{"list"},
		Short:   "List the images of the cache",
		Long: `List the images of the cache, the newest first, or those of one NAME: a repository, with
or without a tag. SIZE is that of the compressed files; images that share layers each
count them. With --format there are .Repository, .Tag, .Digest, .ID, .CreatedAt,
.CreatedSince and .Size.`,
		Args:              atMostOne("a NAME at most"),
		ValidArgsFunction: imageNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := source.DefaultStore()
			if err != nil {
				return err
			}
			list, err := store.List(cmd.Context())
			if err != nil {
				return err
			}
			var rows []imageRow
			for _, i := range list {
				r := newImageRow(i, whole)
				if len(args) > 0 && args[0] != r.Repository && args[0] != r.Repository+":"+r.Tag {
					continue
				}
				// One image may have several names, but -q prints an ID once.
				if quiet && slices.ContainsFunc(rows, func(other imageRow) bool { return other.ID == r.ID }) {
					continue
				}
				rows = append(rows, r)
			}
			if quiet {
				format = "{{.ID}}"
			}
			head, line := "REPOSITORY\tTAG\tIMAGE ID\tCREATED\tSIZE", func(r imageRow) string {
				return strings.Join([]string{r.Repository, r.Tag, r.ID, r.CreatedSince, r.Size}, "\t")
			}
			if digests {
				head, line = "REPOSITORY\tTAG\tDIGEST\tIMAGE ID\tCREATED\tSIZE", func(r imageRow) string {
					return strings.Join([]string{r.Repository, r.Tag, r.Digest, r.ID, r.CreatedSince, r.Size}, "\t")
				}
			}
			return printRows(os.Stdout, rows, format, asJSON, head, line)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "IDs only")
	cmd.Flags().BoolVar(&digests, "digests", false, "a column of digests, too")
	cmd.Flags().BoolVar(&whole, "no-trunc", false, "whole IDs")
	cmd.Flags().StringVar(&format, "format", "", "print each by this Go `template`, as in '{{.Repository}}:{{.Tag}}'")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return cmd
}

// imageUsers are the machines that run an image.
func imageUsers(id v1.Hash) (names []string, err error) {
	list, err := named.List()
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		s, err := m.State()
		if err == nil && s.Image == id.String() && s.Status != named.Exited && s.Status != named.Dead {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

func newImageRM() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "rm [flags] IMAGE...",
		Aliases: []string{"remove"},
		Short:   "Remove images from the cache",
		Long: `Remove images from the cache, by name or ID. A name is taken from its image; the image
goes with its last name, and layers go that no other image has. An image that a machine
runs is removed with -f only, and so is, by its ID, one with several names. A machine that
runs has its own copy of the files and goes on.`,
		Args:              atLeast(1, "an IMAGE"),
		ValidArgsFunction: imageNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := source.DefaultStore()
			if err != nil {
				return err
			}
			return eachName(cmd, args, func(what string) error { return removeImage(cmd.Context(), store, what, force) })
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "remove an image that is used, and all names of one")
	return cmd
}

func removeImage(ctx context.Context, store *source.Store, what string, force bool) error {
	found, err := store.Find(ctx, what)
	if err != nil {
		return err
	}
	if len(found) > 1 && !force {
		return fault.With(fault.Host, "the image %s has %d names: remove those, or use -f", what, len(found))
	}
	users, err := imageUsers(found[0].ID)
	if err != nil {
		return err
	}
	if len(users) > 0 && !force {
		return fault.With(fault.Host, "the image %s is run by the machine %s: stop it first, or use -f", what, strings.Join(users, ", "))
	}
	gone, err := store.Remove(ctx, found)
	if err != nil {
		return err
	}
	for _, i := range found {
		if i.Name != "" {
			fmt.Println("Untagged: " + i.Familiar())
		}
	}
	for _, id := range gone {
		fmt.Println("Deleted: " + id.String())
	}
	return nil
}

// imageAbout is what inspect prints, with docker's names.
type imageAbout struct {
	ID           string `json:"Id"`
	RepoTags     []string
	RepoDigests  []string
	Created      time.Time
	Architecture string
	Os           string
	Size         int64
	Config       v1.Config
	RootFS       struct {
		Type   string
		Layers []string
	}
	Machines []string // that run it
}

func newImageInspect() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:               "inspect [flags] IMAGE...",
		Short:             "Print what images are, as JSON",
		Long:              "Print what images of the cache are, as JSON: docker's fields, and the machines that run them.",
		Args:              atLeast(1, "an IMAGE"),
		ValidArgsFunction: imageNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := source.DefaultStore()
			if err != nil {
				return err
			}
			rows := []*imageAbout{}
			err = eachName(cmd, args, func(what string) error {
				a, err := aboutImage(cmd.Context(), store, what)
				if err == nil {
					rows = append(rows, a)
				}
				return err
			})
			if format != "" {
				return errors.Join(printRows(os.Stdout, rows, format, false, "", nil), err)
			}
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", "  ")
			return errors.Join(e.Encode(rows), err)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "", "print each by this Go `template`, as in '{{.Config.Cmd}}', or json")
	return cmd
}

func aboutImage(ctx context.Context, store *source.Store, what string) (*imageAbout, error) {
	found, err := store.Find(ctx, what)
	if err != nil {
		return nil, err
	}
	i := found[0]
	a := &imageAbout{ID: i.ID.String(), RepoTags: []string{}, RepoDigests: []string{}, Created: i.Config.Created.Time,
		Architecture: i.Config.Architecture, Os: i.Config.OS, Size: i.Size, Config: i.Config.Config, Machines: []string{}}
	a.RootFS.Type = i.Config.RootFS.Type
	for _, d := range i.Config.RootFS.DiffIDs {
		a.RootFS.Layers = append(a.RootFS.Layers, d.String())
	}
	all, err := store.Find(ctx, i.ID.Hex) // all names of it
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		repository, tag := other.Split()
		if tag != "<none>" {
			a.RepoTags = append(a.RepoTags, repository+":"+tag)
		}
		if digest := repository + "@" + other.Digest.String(); other.Name != "" && !slices.Contains(a.RepoDigests, digest) {
			a.RepoDigests = append(a.RepoDigests, digest)
		}
	}
	users, err := imageUsers(i.ID)
	a.Machines = append(a.Machines, users...)
	return a, err
}
