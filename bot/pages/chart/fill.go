package chart

// Fill draws how much of a limit is used, as a bar that is full at 1.
func Fill(share float64, class string) string {
	const w, h = 100, 6
	c := beginSmall("fill", w, h)
	c.rect("track", 0, 0, w, h, "")
	c.rect("used "+class, 0, 0, inside(share, 0, 1)*w, h, "")
	return c.end()
}
