package congestion

import "time"

const (
	// The rate of a train is known when this share of its packets and of its bytes has been received.
	minTrainShare = 0.8
	// maxTrainTime bounds the duration of a train, at either end.
	maxTrainTime = time.Second
	// maxTrainGain bounds the ratio of arrival rate to send rate. A faster train was held up on the way and then
	// delivered at once.
	maxTrainGain = 2
	// A train that arrives at less than unsaturated of its send rate has found the capacity. The estimate is then
	// saturation of the arrival rate, so that it does not overuse the path at once.
	unsaturated = 0.9
	saturation  = 0.95
	// sameSend is the time within which packets count as sent at once. Pacers have ticks of up to 2 ms, so a train of
	// 15 ms is 8 runs of packets. If only the last packet were excluded, and not the last run, a path that delivers
	// runs as they were sent would be measured an eighth faster than the probe was.
	sameSend = 500 * time.Microsecond
	// trains is the number of clusters measured at a time: two at the start, and more only if one follows another
	// within a round trip.
	trains = 4
)

// train is the received part of a probe cluster.
type train struct {
	cluster                   ProbeCluster
	packets, bytes            int
	firstSent, lastSent       time.Duration
	firstArrived, lastArrived time.Duration
	lastSentSize, firstSize   int  // bytes sent at lastSent, and the size of the packet that arrived first
	counted                   bool // included in ProbesMeasured
}

// trainRates measures the arrival rates of probe clusters, as libwebrtc does.
type trainRates struct {
	trains [trains]train // cluster n is at index n mod trains
}

// expect begins a cluster.
func (t *trainRates) expect(c ProbeCluster) { t.trains[c.ID%trains] = train{cluster: c} }

// add adds a received packet of a cluster. When enough has been received it returns the rate in bit/s, the cluster and
// true. Each further packet makes the rate more precise.
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

// rate excludes the bytes sent last at the sender and the first packet at the receiver, because their own transmission
// time is not within the interval.
func (r *train) rate() (float64, bool) {
	if float64(r.packets) < minTrainShare*float64(r.cluster.MinPackets) ||
		float64(r.bytes) < minTrainShare*float64(r.cluster.MinBytes) {
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
