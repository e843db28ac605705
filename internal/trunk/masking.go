package trunk

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// fitInterval is the interval of decisions about masks.
	fitInterval = 100 * time.Millisecond
	// While the tracks that are taken need less than spareShare of the estimate, or before the first estimate, the
	// interval of computations of their rate is scanTime for each publication that is taken, at most maxScanInterval:
	// BenchmarkRooms.
	spareShare      = 0.5
	scanTime        = time.Millisecond
	maxScanInterval = time.Second
)

// masking masks the tracks that the estimates of the lanes do not carry.
type masking struct {
	catalog *catalog
	origin  *origin
	lanes   *lanes
	// stepped is the time of the last decision.
	stepped time.Time
	// scanned is the time of the last computation of rate and masked: the rate of the tracks that the other node takes
	// and of those that are masked, and whether there are masked ones.
	scanned time.Time
	rate    volumetric.Bitrate
	masked  bool
}

// step states the wanted rate and decides when a decision is due. step returns the publications whose masks have
// changed.
func (m *masking) step(now time.Time) (changed []publication) {
	if now.Sub(m.stepped) < fitInterval {
		return nil
	}
	m.stepped = now
	estimate, known := m.lanes.estimate()
	interval := min(time.Duration(len(m.origin.takes))*scanTime, maxScanInterval)
	spare := !m.masked && (!known || float64(m.rate) <= spareShare*float64(estimate))
	if !spare || now.Sub(m.scanned) >= interval {
		m.scanned = now
		m.rate, m.masked = m.wanted()
	}
	m.lanes.want(volumetric.Bitrate(float64(m.rate) / wantShare))
	if !known {
		return nil
	}
	if !m.masked && float64(m.rate) <= mediaShare*float64(estimate) {
		m.origin.allFit()
		return nil
	}
	candidates := m.candidates()
	fit(candidates, estimate)
	for _, c := range candidates {
		if m.origin.fits(c.publication, c.track, !c.masked) {
			changed = append(changed, c.publication)
		}
	}
	return changed
}

// wanted returns the rate of the tracks that the other node takes and of those that are masked, and whether a track is
// masked.
func (m *masking) wanted() (rate volumetric.Bitrate, masked bool) {
	m.eachCandidate(func(_ publication, _ int, r volumetric.Bitrate) { rate += r })
	for _, t := range m.origin.takes {
		masked = masked || len(t.masked) > 0
	}
	return rate, masked
}

// candidates returns the tracks that the other node takes, and those that are masked.
func (m *masking) candidates() (candidates []candidate) {
	m.eachCandidate(func(p publication, track int, rate volumetric.Bitrate) {
		pub := m.catalog.publications[p]
		candidates = append(candidates, candidate{p, track, pub.audio[track], track % pub.qualities, rate,
			m.origin.takes[p].masked[track]})
	})
	return candidates
}

// eachCandidate calls a function with each track that the other node takes or that is masked, and its rate.
func (m *masking) eachCandidate(f func(p publication, track int, rate volumetric.Bitrate)) {
	for p, t := range m.origin.takes {
		pub := m.catalog.publications[p]
		if pub == nil {
			continue
		}
		for track := range t.candidates(pub.qualities, len(pub.tracks)) {
			source := pub.tracks[track]
			if source == nil {
				continue
			}
			var announced volumetric.Bitrate
			if track < len(pub.rates) {
				announced = pub.rates[track]
			}
			f(p, track, rateOf(source, announced))
		}
	}
}
