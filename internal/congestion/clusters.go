package congestion

// Clusters tell in which probe a packet was sent, by transport-wide numbers: of as many probes as are measured at a time. Times do not tell, since a history of
// what was sent may keep them less exactly than the beginning of a probe is known. The zero value knows of none. Numbers are above 0.
type Clusters struct {
	latest [trains]clusterNumbers
	newest int
}

// clusterNumbers are the numbers sent in a probe, from first to last. While there are none both are 0.
type clusterNumbers struct {
	id          int
	first, last int64
}

// Begin makes the packets that are sent from now on those of a cluster.
func (c *Clusters) Begin(id int) {
	c.newest = (c.newest + 1) % trains
	c.latest[c.newest] = clusterNumbers{id: id}
}

// Sent takes the number of a packet that is sent in the newest cluster.
func (c *Clusters) Sent(number int64) {
	n := &c.latest[c.newest]
	if n.first == 0 {
		n.first = number
	}
	n.last = number
}

// Of is the ID of the cluster that a packet was sent in, 0 for none.
func (c *Clusters) Of(number int64) int {
	for i := range c.latest {
		if n := &c.latest[i]; number >= n.first && number <= n.last {
			return n.id
		}
	}
	return 0
}
