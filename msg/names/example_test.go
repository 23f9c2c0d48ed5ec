package names_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"hardtack/msg/names"
)

// open opens a name service that only this example sees. Programs leave Options.Path
// out, and share the user's.
func open() (names.Directory, func()) {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	dir, err := names.Open(context.Background(), names.Options{Path: filepath.Join(folder, "names")})
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() {
		dir.Close()
		os.RemoveAll(folder)
	}
}

// An entry is there as long as the process that set it.
func Example() {
	ctx := context.Background()
	dir, end := open()
	defer end()
	if _, err := dir.Set(ctx, "printer", []byte("second floor"), 0); err != nil {
		log.Fatal(err)
	}
	entry, err := dir.Get(ctx, "printer")
	fmt.Println(string(entry.Value), err)

	_, err = dir.Get(ctx, "scanner")
	fmt.Println(errors.Is(err, names.ErrNotFound))
	// Output:
	// second floor <nil>
	// true
}

// Workers of one kind get names of their own, and can be counted.
func ExampleSequence() {
	ctx := context.Background()
	dir, end := open()
	defer end()
	for _, place := range []string{"cellar", "attic"} {
		if _, err := dir.Set(ctx, "worker", []byte(place), names.Sequence); err != nil {
			log.Fatal(err)
		}
	}
	n, err := dir.Count(ctx, "worker")
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// Whoever watches is told what there is, and then every change.
func ExampleDirectory() {
	ctx := context.Background()
	dir, end := open()
	defer end()
	if _, err := dir.Set(ctx, "shop.tea", []byte("open"), 0); err != nil {
		log.Fatal(err)
	}
	watch, err := dir.Watch(ctx, "shop.")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Close()
	for range 3 {
		event, err := watch.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		switch event.Kind {
		case names.Put:
			fmt.Println(event.Entry.Name, "is", string(event.Entry.Value))
		case names.Synced: // all that was there has been told
			if err := dir.Delete(ctx, "shop.tea"); err != nil {
				log.Fatal(err)
			}
		case names.Gone:
			fmt.Println(event.Entry.Name, "is gone")
		}
	}
	// Output:
	// shop.tea is open
	// shop.tea is gone
}
