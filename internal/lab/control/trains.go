package control

// trains remembers which packets belonged to the latest probes.
type trains struct {
	latest [4]train
	count  int
}

// train are the transport-wide numbers of a probe.
type train struct {
	id          int
	first, last int64 // 0 while there are none
}

func (t *trains) begin(id int) {
	t.latest[t.count%len(t.latest)] = train{id: id}
	t.count++
}

// add takes the number of a packet that leaves with the latest probe.
func (t *trains) add(number int64) {
	r := &t.latest[(t.count-1)%len(t.latest)]
	if r.first == 0 {
		r.first = number
	}
	r.last = number
}

// of is the probe that a packet belonged to, 0 for none.
func (t *trains) of(number int64) int {
	for _, r := range t.latest {
		if r.first > 0 && number >= r.first && number <= r.last {
			return r.id
		}
	}
	return 0
}
