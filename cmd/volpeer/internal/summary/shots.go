package summary

// shotCounter counts frame numbers, each once however often and in whatever order it comes.
type shotCounter struct {
	shots  int64
	newest int64
	// seen has a bit for each of the newest 64 numbers, the lowest for newest itself.
	seen uint64
}

func (c *shotCounter) count(number int64) {
	behind := c.newest - number
	switch {
	case c.shots == 0, behind <= -64, behind >= 64:
		// The first, or so far from the others that they are no longer looked for.
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
