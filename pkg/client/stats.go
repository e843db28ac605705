package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FrameCounts counts the frames of one tile while the tile was on. Each expected frame is counted in exactly one of the
// other counts after its deadline. Frames before their deadline are in none.
type FrameCounts struct {
	// Expected counts the frame numbers from the first frame received to the last, except the frames of times when the
	// tile was off. These frames are subtracted once the deadline of the first frame after them has passed.
	Expected int64 `json:"frames_expected"`
	// Complete counts frames that were delivered.
	Complete int64 `json:"frames_complete"`
	// Undecodable counts frames of which packets arrived and which were not complete by the deadline.
	Undecodable int64 `json:"frames_undecodable"`
	// Missing counts frames of which no packet arrived.
	Missing int64 `json:"frames_missing"`
	// Overflowed counts complete frames, and packets of tracks without payload v1, that the program did not read in
	// time.
	Overflowed int64 `json:"frames_overflowed"`
	// DroppedByServer counts whole frames that the server dropped.
	DroppedByServer int64 `json:"frames_dropped_by_server"`
	// Refused counts complete frames that were not decrypted. Session.Encryption has the reasons.
	Refused int64 `json:"frames_refused"`
}

// TileStats are the counts of one received tile since the beginning of the session.
type TileStats struct {
	// Track names the tile. In volumetric.ModeDescriptions its quality names the description. In other modes the
	// quality is volumetric.QualityOff.
	Track volumetric.TrackRef
	FrameCounts
	// Packets counts received RTP packets, retransmissions included, and Bytes the bytes of their payloads.
	Packets, Bytes uint64
	// Lost counts packets that did not arrive when they were due. Recovered counts the lost packets that arrived later,
	// by retransmission or because the publisher sent them late. Spared counts the lost packets that never arrived and
	// were not needed, because parity completed their frame.
	Lost, Recovered, Spared uint64
	// Replaced counts the source packets that parity replaced in completed frames: packets that were lost or arrived
	// too late.
	Replaced uint64
	// Gaps counts sequence numbers that the media stream skipped at first, Repeats packets that arrived again on the
	// media stream. Retransmissions have a separate stream and are in neither count.
	Gaps, Repeats uint64
	// Requests counts packets requested by NACK, repeated requests included.
	Requests uint64
}

// Stats returns the counts of the last 4096 received tiles, sorted by name.
func (s *Session) Stats() []TileStats {
	m := s.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []TileStats
	for _, t := range m.downlink.Stats() {
		list = append(list, TileStats{
			Track:       t.Track,
			FrameCounts: FrameCounts(t.Frames),
			Packets:     t.Packets,
			Bytes:       t.Bytes,
			Lost:        t.NACKs.Recovered + t.NACKs.Lost + t.NACKs.Spared,
			Recovered:   t.NACKs.Recovered,
			Spared:      t.NACKs.Spared,
			Replaced:    t.Replaced,
			Gaps:        t.Gaps,
			Repeats:     t.Repeats,
			Requests:    t.NACKs.Asked,
		})
	}
	return list
}

// ECNCounts counts the received RTP packets by ECN codepoint (RFC 3168) since the beginning of the session. CE packets
// were marked by a queue.
type ECNCounts struct{ NotECT, ECT0, ECT1, CE uint64 }

// ECN returns the codepoints of the received packets.
func (s *Session) ECN() ECNCounts {
	m := s.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.downlink.Codepoints()
	return ECNCounts{NotECT: counts[ecn.NotECT], ECT0: counts[ecn.ECT0], ECT1: counts[ecn.ECT1], CE: counts[ecn.CE]}
}

// UplinkStats describes the use of the uplink. The counts are of frames of one tile at one quality, since the beginning
// of the session.
type UplinkStats struct {
	// Estimate is the estimated rate of the uplink, 0 until the server has reported.
	Estimate volumetric.Bitrate
	// RTT is the round-trip time of packets, Loss the share of lost packets over the last seconds.
	RTT  time.Duration
	Loss float64
	// GaveUp are the tracks that are not sent for lack of bandwidth.
	GaveUp []signal.OwnTrack
	UplinkCounts
}

// UplinkCounts counts frames that were written and not sent, bytes that were sent in addition to frames, and reports
// that were not read.
type UplinkCounts struct {
	// Paused counts frames of tracks without receivers, GivenUp frames of tracks that the uplink cannot carry.
	Paused, GivenUp int64
	// Dropped counts frames that waited too long for the uplink.
	Dropped int64
	// ProbeBytes counts the bytes of repeated packets that were sent to probe the uplink.
	ProbeBytes int64
	// ReportsDropped counts the server's reports of arrivals beyond 1,000 per second.
	ReportsDropped int64
}

// Uplink returns the state of the uplink.
func (s *Session) Uplink() UplinkStats {
	m := s.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	rtt, loss := m.uplink.Path()
	return UplinkStats{
		Estimate: m.uplink.Estimate(), RTT: rtt, Loss: loss, GaveUp: m.uplink.GaveUp(),
		UplinkCounts: UplinkCounts(m.uplink.Counts()),
	}
}
