package osbench

import "hardtack/bench/internal/chart"

// SVG draws the ratios of the instruction table: shorter than Linux's line is
// better. Rows without both figures are left out.
func (r *Report) SVG(name string) error {
	c := chart.Ratios{Title: "Guest instructions, Hardtack / Linux", Unit: "ratio (1 is Linux)"}
	for _, row := range Rows {
		f := r.Instructions[row.Name]
		if f[OnHardtack].Median != 0 && f[OnLinux].Median != 0 {
			c.Add(row.Title, f[OnHardtack].Median/f[OnLinux].Median)
		}
	}
	return c.Save(name)
}
