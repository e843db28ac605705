package congestion

import "time"

const (
	// A train gives a rate once so much of it has been received, in packets and in bytes.
	minTrainShare = 0.8
	// maxTrainTime is the longest that a train may take, at either end.
	maxTrainTime = time.Second
	// maxTrainGain is how much faster than it was sent a train may arrive: what is beyond was held up on the way and then sent in one go.
	maxTrainGain = 2
	// A train that arrives at less than this share of the rate that it was sent at has found the capacity, and the estimate goes to a share of that, so that
	// it does not overuse at once.
	unsaturated = 0.9
	saturation  = 0.95
	// sameSend is within what packets count as sent at once. Pacers work in ticks of up to 2 ms, so that a train of 15 ms is 8 runs of packets; if only
	// its last packet were left out, and not the last run, a path that delivers runs as they were sent would be found an eighth faster than the probe was.
	sameSend = 500 * time.Microsecond
	// trains is how many clusters are measured at a time: two at the start, and more only where one follows another within a round trip.
	trains = 4
)

// train is what has been received of a probe cluster.
type train struct {
	cluster                   ProbeCluster
	packets, bytes            int
	firstSent, lastSent       time.Duration
	firstArrived, lastArrived time.Duration
	lastSentSize, firstSize   int  // of what was sent at lastSent, and of the packet that arrived first
	counted                   bool // among those measured
}

// trainRates measures the rates at which probe clusters arrived, as libwebrtc does.
type trainRates struct {
	trains [trains]train // of cluster n at n mod trains
}

// expect begins a cluster.
func (t *trainRates) expect(c ProbeCluster) { t.trains[c.ID%trains] = train{cluster: c} }

// add takes a received packet of a cluster. It returns the rate once the cluster gives one, and the cluster; every further packet makes it more exact.
func (t *trainRates) add(id int, sent, arrived time.Duration, size int) (float64, ProbeCluster, bool) {
	if id <= 0 || t.trains[id%trains].cluster.ID != id {
		return 0, ProbeCluster{}, false
	}
	r := &t.trains[id%trains]
	r.add(sent, arrived, size)
	rate, ok := r.rate()
	return rate, r.cluster, ok
}

func (r *train) add(sent, arrived time.Duration, size int) {
	if r.packets == 0 {
		r.firstSent, r.lastSent, r.lastSentSize = sent, sent, size
		r.firstArrived, r.lastArrived, r.firstSize = arrived, arrived, size
	}
	switch {
	case r.packets == 0 || sent < r.lastSent:
	case sent < r.lastSent+sameSend:
		r.lastSentSize += size
	default:
		r.lastSent, r.lastSentSize = sent, size
	}
	r.packets++
	r.bytes += size
	r.firstSent = min(r.firstSent, sent)
	if arrived < r.firstArrived {
		r.firstArrived, r.firstSize = arrived, size
	}
	r.lastArrived = max(r.lastArrived, arrived)
}

// rate leaves out what was sent last on the sending side and the first packet on the receiving side: their own time is not within the interval.
func (r *train) rate() (float64, bool) {
	if float64(r.packets) < minTrainShare*float64(r.cluster.MinPackets) || float64(r.bytes) < minTrainShare*float64(r.cluster.MinBytes) {
		return 0, false
	}
	sending, receiving := r.lastSent-r.firstSent, r.lastArrived-r.firstArrived
	if sending <= 0 || receiving <= 0 || sending > maxTrainTime || receiving > maxTrainTime {
		return 0, false
	}
	sent := float64(r.bytes-r.lastSentSize) * 8 / sending.Seconds()
	received := float64(r.bytes-r.firstSize) * 8 / receiving.Seconds()
	switch {
	case received > maxTrainGain*sent:
		return 0, false
	case received < unsaturated*sent:
		return saturation * received, true
	}
	return min(sent, received), true
}
