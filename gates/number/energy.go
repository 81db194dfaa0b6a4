package number

// Joules is an energy in the unit that fits it, with three significant digits.
func Joules(joules float64) string {
	if !Finite(joules) || joules <= 0 {
		return Dash
	}
	scale, unit := 1e-6, "µJ"
	switch {
	case joules >= 0.9995:
		scale, unit = 1, "J"
	case joules >= 0.9995e-3:
		scale, unit = 1e-3, "mJ"
	}
	x := joules / scale
	if x < 1e-2 || x >= 1e5 {
		return Significant(x, 3) + string(NBSP) + unit
	}
	return Rounded(x, max(0, 2-leading(x, 3)), nil) + string(NBSP) + unit
}
