package trunk

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// mediaShare is the share of the estimate that media may use. The rest is for headers, retransmissions and parity.
	mediaShare = 0.9
	// returnShare is the share of the estimate below which a masked track returns, so that a track at the limit does
	// not come and go.
	returnShare = 0.75
	// wantShare is the share of the wanted rate that the tracks need. The estimate is probed up to 0.95 of the wanted
	// rate, and all masked tracks return before: 0.95 / wantShare exceeds 1 / returnShare.
	wantShare = 0.7
	// maskAfter is the number of decisions in a row that mask a track. The estimate of a trunk that begins doubles
	// within 100 ms, and the rate of a track varies with its frames.
	maskAfter = 3
)

// meter measures the rate of a track.
type meter interface {
	// Rate returns the bit rate of the RTP payload, in bit/s. Rate returns false if too few packets have arrived.
	Rate() (volumetric.Bitrate, bool)
	// Steady returns the time for which frames have arrived without a pause.
	Steady() time.Duration
}

// rateOf returns the rate of a track for decisions about masks: the measured rate, and until the measurement counts the
// rate that the home of the publication has announced, 0 for unknown.
func rateOf(m meter, announced volumetric.Bitrate) volumetric.Bitrate {
	if rate, known := m.Rate(); known && m.Steady() >= track.SteadyAfter {
		return rate
	}
	return announced
}

// candidate is a track that the other node takes, or that is masked.
type candidate struct {
	publication publication
	track       int
	audio       bool
	quality     int
	rate        volumetric.Bitrate
	masked      bool
}

// fit marks the tracks that the estimate does not carry: audio comes first, then the qualities from the lowest on, and
// within a quality the tracks of the lowest rate. One track of video is always carried. Without packets there are no
// reports, and the estimate stays as it is. Audio is no padding for the probes that raise it.
func fit(candidates []candidate, estimate volumetric.Bitrate) {
	slices.SortFunc(candidates, func(a, b candidate) int {
		class := func(c candidate) int {
			if c.audio {
				return -1
			}
			return c.quality
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.rate, b.rate),
			cmp.Compare(a.publication.Room, b.publication.Room),
			cmp.Compare(a.publication.ID, b.publication.ID), cmp.Compare(a.track, b.track))
	})
	carried := alwaysCarried(candidates)
	var used float64
	for i := range candidates {
		c := &candidates[i]
		share := mediaShare
		if c.masked {
			share = returnShare
		}
		c.masked = i != carried && used+float64(c.rate) > share*float64(estimate)
		if !c.masked {
			used += float64(c.rate)
		}
	}
}

// alwaysCarried returns the index of the track of video that every estimate carries, -1 if no track of video has a
// rate. The first track that is not masked comes before those that are: tracks of similar rates must not replace each
// other.
func alwaysCarried(candidates []candidate) int {
	first := -1
	for i := range candidates {
		switch c := &candidates[i]; {
		case c.audio || c.rate == 0:
		case !c.masked:
			return i
		case first < 0:
			first = i
		}
	}
	return first
}
