package stats

// Offsets shows the resampled quantiles, as ascending log distances from the
// estimate, to the tests that compare them with plain resampling.
func (d *Distribution) Offsets() []float64 { return d.offsets }
