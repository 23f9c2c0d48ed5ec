package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/repairman"
)

func newModel() *cobra.Command {
	var o modelOptions
	cmd := &cobra.Command{
		Use:   "model [flags] [FILE.csv]",
		Short: "Predict how many cores one lock can carry",
		Long: `Fit the machine repairman model to measured throughput, and print what it predicts:
how long one operation holds the lock (service time), the time between two operations
of a core (think time), how well the two explain the measurements (R²), the knee, and
for each number of cores the throughput and how many cores are at the lock.

FILE.csv has a header line and one line per measurement; "-" reads standard input:

  cores,throughput
  1,410000
  2,790000
  4,1390000

throughput is in operations per second. A column delay, in the unit of time, tells
loads apart whose think times are known except for an overhead common to all. One
service time and that overhead are then fitted to all loads or, with --service-from
DELAY, to the measurements with that delay only, and the others are predicted. With
--transfer, delays have no overhead; instead, the extra cost of a lock that comes from
another core is fitted. A single core never pays that cost, so one service time for few
and many cores can be too simple. Other columns, and lines that begin with #, are
ignored.

Times are in ns, or with --ghz in cycles of that clock. With --service and --think
nothing is fitted, and the command shows the model alone.

The model assumes that operations come at random, independent times, and that the cost
of the lock does not grow with the number of waiters.`,
		Example: `  hardtack model -o lock.svg throughput.csv
  hardtack model --ghz 2 --transfer docs/bench/lock.csv
  hardtack model --ghz 2 --service 358 --think 2000 --cores 28`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fault.Bad("want one FILE.csv; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.given = f.Changed("service") || f.Changed("think")
			o.from = f.Changed("service-from")
			if o.given == (len(args) == 1) {
				return fault.Bad("want FILE.csv, or --service and --think; see %s --help", cmd.CommandPath())
			}
			if f.Changed("ghz") && !(o.ghz > 0 && o.ghz < 1000) {
				return fault.Bad("--ghz %v: want the clock's rate", o.ghz)
			}
			if o.given && o.transfer {
				return fault.Bad("--transfer is fitted to a FILE.csv")
			}
			return o.run(cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "also draw measurements and curves into this `file` (SVG)")
	f.IntVar(&o.cores, "cores", 0, "predict up to `N` cores (default: twice those measured, at least 16)")
	f.Float64Var(&o.ghz, "ghz", 0, "times are in cycles of a clock with this `rate`")
	f.Float64Var(&o.efficiency, "efficiency", 0.9, "the lock carries n cores if they are this `part` of n times as fast as one")
	f.Float64Var(&o.service, "service", 0, "service `time`, instead of measurements")
	f.Float64Var(&o.think, "think", 0, "think `time`, instead of measurements")
	f.Float64Var(&o.serviceFrom, "service-from", 0, "fit only the measurements with this `delay`")
	f.BoolVar(&o.transfer, "transfer", false, "fit the extra cost of an operation whose lock comes from another core")
	return cmd
}

type modelOptions struct {
	output                                       string
	cores                                        int
	ghz, efficiency, service, think, serviceFrom float64
	given, from, transfer                        bool
}

func (o *modelOptions) run(w io.Writer, args []string) error {
	switch {
	case !(o.efficiency > 0 && o.efficiency <= 1):
		return fault.Bad("--efficiency %v: want a part between 0 and 1", o.efficiency)
	case o.cores < 0 || o.cores > repairman.MaxCores:
		return fault.Bad("--cores %d: want 1 to %d", o.cores, repairman.MaxCores)
	case o.given && !(o.service > 0 && o.service < 1e18 && o.think > 0 && o.think < 1e18):
		return fault.Bad("--service %v --think %v: want both, above 0", o.service, o.think)
	}
	r := repairman.Report{Unit: "ns", PerSecond: 1e9, Cores: o.cores, Efficiency: o.efficiency}
	if o.ghz > 0 {
		r.Unit, r.PerSecond = "cycles", o.ghz*1e9
	}
	title := "The model"
	if o.given {
		r.Loads = []repairman.Load{{Model: repairman.Model{Service: o.service, Think: o.think}}}
	} else {
		points, name, err := o.read(args[0], r.PerSecond)
		if err != nil {
			return err
		}
		title = name
		if err := o.fit(w, &r, points, name); err != nil {
			return err
		}
	}
	if r.Cores == 0 {
		r.Cores = 16
		for _, l := range r.Loads {
			for _, p := range l.Points {
				r.Cores = min(max(r.Cores, 2*p.Cores), repairman.MaxCores)
			}
		}
	}
	if err := r.Text(w); err != nil {
		return err
	}
	if o.output != "" {
		return r.SVG(o.output, title)
	}
	return nil
}

func (o *modelOptions) read(name string, perSecond float64) ([]repairman.Point, string, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, "", fault.Bad("%v", err)
		}
		defer f.Close()
		in = f
	} else {
		name = "standard input"
	}
	points, err := repairman.ReadCSV(in, perSecond)
	if err != nil {
		return nil, "", fault.Bad("%s: %v", name, err)
	}
	return points, name, nil
}

func (o *modelOptions) fit(w io.Writer, r *repairman.Report, points []repairman.Point, name string) error {
	series := repairman.Series(points)
	loose := func(f repairman.Fit) {
		if f.Loose {
			fmt.Fprintln(w, "Nobody waits in these measurements: the service time could as well be less.")
		}
	}
	if len(series) == 1 && points[0].Delay == 0 {
		if o.from {
			return fault.Bad("--service-from: %s has no delays", name)
		}
		if o.transfer {
			return fault.Bad("--transfer: %s has no delays", name)
		}
		fit, err := repairman.Least(points)
		if err != nil {
			return fault.Bad("%s: %v", name, err)
		}
		loose(fit)
		r.Loads = []repairman.Load{{Model: fit.Model, Points: points}}
		return nil
	}
	basis := points
	if o.from {
		basis = nil
		for _, s := range series {
			if s[0].Delay == o.serviceFrom {
				basis = s
			}
		}
		if basis == nil {
			return fault.Bad("--service-from %v: %s has no measurement with this delay", o.serviceFrom, name)
		}
	}
	fitted := repairman.Delays
	if o.transfer {
		fitted = repairman.Transfers
	}
	fit, err := fitted(basis)
	if err != nil {
		return fault.Bad("%s: %v", name, err)
	}
	loose(fit)
	fmt.Fprintf(w, "service time %.4g %s, ", fit.Service, r.Unit)
	if o.transfer {
		fmt.Fprintf(w, "%.4g more from another core; ", fit.Transfer)
	} else {
		fmt.Fprintf(w, "think time delay + %.4g %s; ", fit.Think, r.Unit)
	}
	fmt.Fprintf(w, "R² %.4f over all %d measurements\n\n", repairman.R2(points, fit.With), len(points))
	for _, s := range series {
		r.Loads = append(r.Loads, repairman.Load{Name: fmt.Sprintf("delay %v", s[0].Delay), Model: fit.With(s[0]), Points: s})
	}
	return nil
}
