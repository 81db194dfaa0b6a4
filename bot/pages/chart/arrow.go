package chart

import "math"

// arrow draws a line between two spots with a head at its end. It leaves the spots visible, and spots that nearly touch have none.
func (c *canvas) arrow(class string, x1, y1, x2, y2 float64) {
	const spot, head = 5, 6
	long := math.Hypot(x2-x1, y2-y1)
	if !(long > 2*spot+head) {
		return
	}
	ux, uy := (x2-x1)/long, (y2-y1)/long
	x2, y2 = x2-spot*ux, y2-spot*uy
	c.line(class, x1+spot*ux, y1+spot*uy, x2, y2)
	t := trail{canvas: c}
	t.to("M", x2-head*ux+head/2*uy, y2-head*uy-head/2*ux)
	t.to("L", x2, y2)
	t.to("L", x2-head*ux-head/2*uy, y2-head*uy+head/2*ux)
	t.draw(class)
}
