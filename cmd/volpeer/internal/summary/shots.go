package summary

// shotCounter counts distinct frame numbers, in any order of arrival.
type shotCounter struct {
	shots  int64
	newest int64
	// seen is a bit mask of the newest 64 numbers. The lowest bit is newest.
	seen uint64
}

func (c *shotCounter) count(number int64) {
	behind := c.newest - number
	switch {
	case c.shots == 0, behind <= -64, behind >= 64:
		// This is the first number, or a number too far from the others to be in the mask.
		c.newest, c.seen = number, 1
	case behind < 0:
		c.newest, c.seen = number, c.seen<<-behind|1
	case c.seen>>behind&1 == 1:
		return
	default:
		c.seen |= 1 << behind
	}
	c.shots++
}
