// Command programs holds the programs of bench/affinity: what goroutines do to
// each other over channels, and what they do without. They are ordinary Go, are
// built once by go and once by "hardtack go", and print one figure a line:
//
//	NAME VALUE UNIT
//
// "s" and "ns" are better when small, "/s" when large.
//
//	programs hotpotato [-players 8] [-hops 1000000] [-work 200]
//	programs many [-producers 8] [-cap 128] [-messages 2000000]
//	programs pipeline [-stages 4] [-cap 64] [-items 500000] [-spin 0]
//	programs pool [-workers 8] [-jobs 300000] [-spin 200]
//	programs regex [-mib 535] [-workers 8] [-file FILE]
//	programs parallel [-goroutines 8] [-units 4000]
//	programs mixed [-producers 8] [-messages 1000000] [-units 2000]
//	programs semaphore [-goroutines 300] [-tokens 8] [-jobs 600000] [-spin 200]
//	programs churn [-rounds 1000000] [-spin 300]
//	programs bound [as mixed]
//	programs phases [-talk 1500ms] [-steps 150]
//	programs cores
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// A program has flags of its own, and a body that runs once they are parsed.
type program struct {
	name  string
	flags func(*flag.FlagSet) (run func() error)
}

var programs = []program{
	{"hotpotato", hotpotato}, {"many", many}, {"pipeline", pipeline}, {"pool", pool},
	{"regex", regex}, {"parallel", parallel}, {"mixed", mixed}, {"phases", phases},
	{"bound", bound}, {"cores", cores}, {"semaphore", semaphore}, {"churn", churn},
}

func main() {
	if len(os.Args) > 1 {
		for _, p := range programs {
			if p.name != os.Args[1] {
				continue
			}
			f := flag.NewFlagSet(p.name, flag.ExitOnError)
			run := p.flags(f)
			f.Parse(os.Args[2:])
			if f.NArg() > 0 {
				fmt.Fprintf(os.Stderr, "programs %s: unexpected %q\n", p.name, f.Arg(0))
				os.Exit(2)
			}
			if err := run(); err != nil {
				fmt.Fprintf(os.Stderr, "programs %s: %v\n", p.name, err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprint(os.Stderr, "usage: programs NAME [FLAG...]; names:")
	for _, p := range programs {
		fmt.Fprint(os.Stderr, " ", p.name)
	}
	fmt.Fprintln(os.Stderr)
	os.Exit(2)
}

func perOp(name string, took time.Duration, ops int) {
	fmt.Printf("%s %.3f ns\n", name, float64(took.Nanoseconds())/float64(ops))
}

func seconds(name string, took time.Duration) {
	fmt.Printf("%s %.6f s\n", name, took.Seconds())
}

// positive checks the numbers of a program, given as name, value, name, value …
func positive(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if n := pairs[i+1].(int); n < 1 {
			return fmt.Errorf("-%s %d: want at least 1", pairs[i], n)
		}
	}
	return nil
}
