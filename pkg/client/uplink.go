package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// unreportedGrace is how long the first rate holds without any report: ten times the longest interval between two of them at 50 ms. A server that numbers
	// packets and never reports limits nothing.
	unreportedGrace = time.Second
	// probeTimeout ends a cluster for which there was nothing to send.
	probeTimeout = 200 * time.Millisecond
	// probeIdle is the silence after which there is nothing to probe with: what was sent before does not show whether the path still carries it.
	probeIdle = 500 * time.Millisecond
)

// uplink estimates what the way to the server carries. It is pure, stepped with now, and belongs to media's lock.
//
// Until the first report nothing is known: the first rate holds for unreportedGrace from the first packet on, then there is no limit.
type uplink struct {
	estimator congestion.Estimator
	// began is when the first packet left, latest when the latest did.
	began, latest time.Time
	reported      bool

	// cluster is the probe under way, of ID 0 for none, and what it has sent since it began.
	cluster        congestion.ProbeCluster
	clusterBegan   time.Time
	clusterBytes   int
	clusterPackets int
	// clusters are the latest probes. All that leaves while one is under way is of it.
	clusters congestion.Clusters
}

func newUplink(config congestion.Config, now time.Time) uplink {
	return uplink{estimator: congestion.New(congestion.GCC, config, now)}
}

// sent takes note of a packet that leaves, with its transport-wide number and its size on the wire.
func (u *uplink) sent(now time.Time, number int64, size int) {
	if u.began.IsZero() {
		u.began = now
	}
	u.latest = now
	u.estimator.Sent(now, size)
	if u.cluster.ID != 0 {
		u.clusterBytes += size
		u.clusterPackets++
		u.clusters.Sent(number)
	}
}

// report takes what the server said of packets.
func (u *uplink) report(now time.Time, results []congestion.PacketResult) {
	if len(results) == 0 {
		return
	}
	u.reported = true
	for i := range results {
		results[i].Probe = u.clusters.Of(results[i].Sequence)
	}
	u.estimator.Report(now, results)
}

// step lets time pass, and begins and ends probes.
func (u *uplink) step(now time.Time) {
	if next := u.estimator.Next(); !next.IsZero() && !now.Before(next) {
		u.estimator.Step(now)
	}
	if c := u.cluster; c.ID != 0 {
		whole := u.clusterBytes >= c.MinBytes && u.clusterPackets >= c.MinPackets
		if whole || now.Sub(u.clusterBegan) > c.Duration+probeTimeout {
			u.cluster = congestion.ProbeCluster{}
		}
	}
	if u.cluster.ID != 0 || u.latest.IsZero() || now.Sub(u.latest) > probeIdle {
		return
	}
	if c, ok := u.estimator.Probe(now); ok {
		u.cluster, u.clusterBegan, u.clusterBytes, u.clusterPackets = c, now, 0, 0
		u.clusters.Begin(c.ID)
	}
}

// want says what would be sent if there were no limit.
func (u *uplink) want(now time.Time, rate volumetric.Bitrate) {
	u.estimator.Want(now, rate)
}

// probe is how many bytes are to leave by now for the cluster under way. Time that passes until the next tick is paid in advance, since packets of this
// tick fill it.
func (u *uplink) probe(now time.Time) (bytes int, ok bool) {
	if u.cluster.ID == 0 {
		return 0, false
	}
	elapsed := now.Sub(u.clusterBegan) + tick
	due := int(float64(u.cluster.Rate) / 8 * elapsed.Seconds())
	return max(0, due-u.clusterBytes), true
}

// rate is what may be sent, 0 for no limit.
func (u *uplink) rate(now time.Time) volumetric.Bitrate {
	if u.unlimited(now) {
		return 0
	}
	return u.estimator.Estimate()
}

// path is what the pacer goes by.
func (u *uplink) path(now time.Time) pacing.Path {
	if u.unlimited(now) {
		return pacing.Path{}
	}
	stats := u.estimator.Stats()
	return stats.Path()
}

// unlimited tells whether reports have been awaited for long enough.
func (u *uplink) unlimited(now time.Time) bool {
	return !u.reported && !u.began.IsZero() && now.Sub(u.began) >= unreportedGrace
}

// estimate is what is known, 0 for nothing.
func (u *uplink) estimate() volumetric.Bitrate {
	if !u.reported {
		return 0
	}
	return u.estimator.Estimate()
}

// next is when step is due, the zero time while nothing is sent.
func (u *uplink) next() time.Time { return u.estimator.Next() }
