// Command cmd makes the kernel image without the hardtack command.
package main

import (
	"flag"
	"fmt"
	"os"

	"hardtack/tool/image"
)

func main() {
	out := flag.String("o", "kernel.elf", "the image's path")
	debug := flag.String("debug", "", "also keep the linked program here, for gdb")
	stock := flag.Bool("stock", false, "leave Go's runtime as it is")
	flag.Parse()
	if err := image.Build(image.Options{Out: *out, Debug: *debug, Stock: *stock}); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}
