package client

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// planInterval is how often the tracks are weighed against the estimate, which changes with reports, every 25 ms at most.
	planInterval = 25 * time.Millisecond
	// wantFactor is how much more is probed for than what tracks take: what it takes for one that was given up to return, and the share that is left free.
	wantFactor = planMargin / planShare * 1.05
	// gaveUpInterval and estimateInterval are the least times between two words to the server: about what was given up, and about a rate that has changed by
	// estimateChange.
	gaveUpInterval   = 100 * time.Millisecond
	estimateInterval = time.Second
	estimateChange   = 0.1
)

// UplinkStats say how the way to the server is used. Counts are of frames of one tile at one quality, since the beginning of the session.
type UplinkStats struct {
	// Estimate is what the uplink carries, 0 as long as the server has not reported.
	Estimate volumetric.Bitrate
	// RTT is the round-trip time of packets, Loss the share of those that were lost over the last seconds.
	RTT  time.Duration
	Loss float64
	// GaveUp are the tracks that are not sent for want of bandwidth.
	GaveUp []signal.OwnTrack
	UplinkCounts
}

// UplinkCounts count frames that were written and not sent, and what was sent beside frames.
type UplinkCounts struct {
	// Paused frames are of tracks that nobody takes, GivenUp frames of tracks that the uplink cannot carry.
	Paused, GivenUp int64
	// Dropped frames waited for too long for those before them, and were left out whole.
	Dropped int64
	// ProbeBytes were sent only to learn what the uplink carries, and were repetitions of packets.
	ProbeBytes int64
}

// Uplink tells how the way to the server is used.
func (s *Session) Uplink() UplinkStats {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	path, counts := m.uplink.sender.Stats(), m.counts
	counts.ProbeBytes += m.uplink.probeBytes
	return UplinkStats{
		Estimate: m.uplink.estimate(), RTT: path.RTT, Loss: path.Loss, GaveUp: m.gaveUp(), UplinkCounts: counts,
	}
}

// weigh decides which tracks are sent, and what is probed for.
func (m *media) weigh(now time.Time) {
	if now.Sub(m.planned) < planInterval {
		return
	}
	m.planned = now
	m.uplink.sender.Consult(now)
	m.list()
	changed := m.plan.step(now, planShare*float64(m.uplink.sender.Limit()), m.tracks)
	total := 0.0
	for i, t := range m.tracks {
		ref := m.owners[i]
		ref.publisher.tracks[ref.track].gaveUp = t.gaveUp
		if t.wanted || t.gaveUp {
			total += t.rate
		}
	}
	m.uplink.sender.Want(volumetric.Bitrate(wantFactor*total), now)
	if changed {
		m.untold = true
		m.session.events.tell(Uplink{Estimate: m.uplink.estimate(), GaveUp: m.gaveUp()})
	}
	m.tellUplink(now)
}

// list lists all tracks in the order of their worth.
func (m *media) list() {
	m.tracks, m.owners = m.tracks[:0], m.owners[:0]
	most := 0
	for _, p := range m.publishers {
		most = max(most, len(p.publication.Qualities))
	}
	for quality := range most {
		for i, p := range m.publishers {
			if quality >= len(p.publication.Qualities) {
				continue
			}
			for tile := range p.publication.Tiles {
				track := p.index(tile, volumetric.Quality(quality))
				state := &p.tracks[track]
				m.tracks = append(m.tracks, planTrack{
					publication: i,
					rate:        p.rate(track),
					kept:        quality == 0 || p.publication.Kind == volumetric.KindAudio,
					wanted:      !state.unwanted,
					gaveUp:      state.gaveUp,
				})
				m.owners = append(m.owners, ownTrack{p, track})
			}
		}
	}
}

// gaveUp names the tracks that were given up.
func (m *media) gaveUp() []signal.OwnTrack {
	var list []signal.OwnTrack
	for _, p := range m.publishers {
		for track := range p.tracks {
			if p.tracks[track].gaveUp {
				list = append(list, p.own(track))
			}
		}
	}
	return list
}

// own names a track.
func (p *Publisher) own(track int) signal.OwnTrack {
	qualities := len(p.publication.Qualities)
	return signal.OwnTrack{Publication: p.publication.Name, Tile: track / qualities, Quality: volumetric.Quality(track % qualities)}
}

// tellUplink tells the server what it has to know, when it is time to.
func (m *media) tellUplink(now time.Time) {
	estimate := m.uplink.estimate()
	since := now.Sub(m.told)
	moved := math.Abs(float64(estimate-m.toldEstimate)) > estimateChange*float64(m.toldEstimate)
	due := m.untold && since >= gaveUpInterval || moved && since >= estimateInterval
	if !due || len(m.publishers) == 0 {
		return
	}
	gaveUp := m.gaveUp()
	if len(gaveUp) > signal.MaxGaveUp {
		gaveUp = gaveUp[:signal.MaxGaveUp]
	}
	m.untold, m.told, m.toldEstimate = false, now, estimate
	m.session.updates.SetUplink(&signal.Uplink{Estimate: min(estimate, signal.MaxBitrate), GaveUp: gaveUp})
}

// tellAgain makes the uplink's state be told anew, to a server that may not have got it.
func (m *media) tellAgain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told, m.untold = time.Time{}, true
}

// countDropped counts the frames that were dropped. The publisher of real video has to send a key frame then.
func (m *media) countDropped() {
	for _, d := range m.uplink.dropped {
		m.counts.Dropped++
		if !d.publisher.publication.Codec.Is(volumetric.MIMEVolumetric) {
			m.session.events.tell(KeyFrameWanted(d.publisher.own(d.track)))
		}
	}
	clear(m.uplink.dropped)
	m.uplink.dropped = m.uplink.dropped[:0]
}
