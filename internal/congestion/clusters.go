package congestion

// Clusters maps packet numbers to the probe cluster in which the packet was sent. It remembers as many clusters as are
// measured at once. Send times cannot replace it, because a send history may store times with less precision than the
// start of a probe. The zero value has no clusters. Packet numbers are greater than 0.
type Clusters struct {
	latest [trains]clusterNumbers
	newest int
}

// clusterNumbers is the range of packet numbers of one cluster. Both ends are 0 while the range is empty.
type clusterNumbers struct {
	id          int
	first, last int64
}

// Begin starts the cluster id.
func (c *Clusters) Begin(id int) {
	c.newest = (c.newest + 1) % trains
	c.latest[c.newest] = clusterNumbers{id: id}
}

// Sent adds a packet number to the newest cluster.
func (c *Clusters) Sent(number int64) {
	n := &c.latest[c.newest]
	if n.first == 0 {
		n.first = number
	}
	n.last = number
}

// Of returns the ID of the cluster in which a packet was sent, or 0.
func (c *Clusters) Of(number int64) int {
	for i := range c.latest {
		if n := &c.latest[i]; number >= n.first && number <= n.last {
			return n.id
		}
	}
	return 0
}
