package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FrameCounts counts the frames of one tile while the tile was on. Each expected frame is counted under exactly
// one of the others once its time is over, except those that are still on their way.
type FrameCounts struct {
	// Expected are the frame numbers from the first frame seen to the last, without those of times when the tile was
	// off: it falls by these once the deadline of the first frame after them is over.
	Expected int64 `json:"frames_expected"`
	// Complete frames were handed over.
	Complete int64 `json:"frames_complete"`
	// Undecodable frames came in part, and were not complete by the deadline.
	Undecodable int64 `json:"frames_undecodable"`
	// Missing frames did not come at all.
	Missing int64 `json:"frames_missing"`
	// Overflowed frames were complete, but the program did not read them in time.
	Overflowed int64 `json:"frames_overflowed"`
	// DroppedByServer frames were dropped whole by the server.
	DroppedByServer int64 `json:"frames_dropped_by_server"`
}

// TileStats are the counts of one received tile since the beginning of the session.
type TileStats struct {
	// Track names the tile. Its quality is volumetric.QualityOff, but in volumetric.ModeDescriptions it names the
	// description.
	Track volumetric.TrackRef
	FrameCounts
	// Packets and Bytes are RTP packets received, retransmissions included, and the bytes of their payloads.
	Packets, Bytes uint64
	// Lost packets did not come when they were due; Recovered ones of them came later, by retransmission or since the
	// publisher had owed them. Spared ones of them never came, and were not needed: their frame was complete without
	// them, by parity.
	Lost, Recovered, Spared uint64
	// Replaced are the source packets that parity made up for, of frames that were completed: they were lost, or came
	// too late to matter.
	Replaced uint64
	// Gaps are sequence numbers that the media stream left out for the time being, Repeats packets that came on it
	// again. Retransmissions have a stream of their own and count as neither.
	Gaps, Repeats uint64
	// Requests are packets asked for by NACK, repeats included.
	Requests uint64
}

// Stats returns the counts of every tile that was received, sorted by name, of the last 4096 tiles.
func (s *Session) Stats() []TileStats {
	m := s.media
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

// UplinkStats describes the use of the uplink. Counts are of frames of one tile at one quality, since the
// beginning of the session.
type UplinkStats struct {
	// Estimate is the estimated rate of the uplink, 0 until the server has reported.
	Estimate volumetric.Bitrate
	// RTT is the round-trip time of packets, Loss the share of those that were lost over the last seconds.
	RTT  time.Duration
	Loss float64
	// GaveUp are the tracks that are not sent for lack of bandwidth.
	GaveUp []signal.OwnTrack
	UplinkCounts
}

// UplinkCounts counts frames that were written and not sent, and bytes that were sent beside frames.
type UplinkCounts struct {
	// Paused frames are of tracks without receivers, GivenUp frames of tracks that the uplink cannot carry.
	Paused, GivenUp int64
	// Dropped frames waited for the uplink for too long.
	Dropped int64
	// ProbeBytes are the bytes of repeated packets that were sent to probe the uplink.
	ProbeBytes int64
}

// Uplink returns the state of the uplink.
func (s *Session) Uplink() UplinkStats {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	rtt, loss := m.uplink.Path()
	return UplinkStats{
		Estimate: m.uplink.Estimate(), RTT: rtt, Loss: loss, GaveUp: m.uplink.GaveUp(),
		UplinkCounts: UplinkCounts(m.uplink.Counts()),
	}
}
