package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// statistics are the counts of a session, which all its connections share.
type statistics struct{ path *path }

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
func (s statistics) Stats() []TileStats {
	m := s.path.media()
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
func (s statistics) ECN() ECNCounts {
	m := s.path.media()
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
func (s statistics) Uplink() UplinkStats {
	m := s.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	rtt, loss := m.uplink.Path()
	return UplinkStats{
		Estimate: m.uplink.Estimate(), RTT: rtt, Loss: loss, GaveUp: m.uplink.GaveUp(),
		UplinkCounts: UplinkCounts(m.uplink.Counts()),
	}
}

// PathCounts counts the packets that arrived on one path.
type PathCounts struct {
	// First counts packets that no other path had delivered before, Repeated packets that another path had delivered.
	First, Repeated uint64
	// Only counts packets that no other path has delivered. Packets in transit on the other path are included.
	Only uint64
}

// CopyCounts counts packets and their bytes on the wire.
type CopyCounts struct{ Packets, Bytes uint64 }

// RedundancyStats describes the use of a second path since the beginning of the session.
type RedundancyStats struct {
	// Received counts the packets that arrived on each path, in the order of Config.Interfaces. It is nil if no packet
	// has arrived on a second path.
	Received []PathCounts
	// Sent counts the packets that were sent while a second path could carry copies, and Copied their copies, by
	// reason: "audio", "lowest_quality", "frame_end", "repair" and "other".
	Sent   CopyCounts
	Copied map[string]CopyCounts
	// Outages counts the outages of the first path that the server's reports have shown.
	Outages uint64
}

// Redundancy returns the use of a second path.
func (s statistics) Redundancy() RedundancyStats {
	m := s.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := m.uplink.Copies()
	stats := RedundancyStats{
		Sent: CopyCounts(copies.Sent), Copied: make(map[string]CopyCounts), Outages: copies.Outages,
	}
	for class, count := range copies.Copied {
		stats.Copied[redundancy.Class(class).String()] = CopyCounts(count)
	}
	if paths, used := m.downlink.Paths(); used {
		for path, counts := range paths {
			other := paths[len(paths)-1-path]
			stats.Received = append(stats.Received, PathCounts{
				First: counts.First, Repeated: counts.Repeated, Only: counts.First - min(counts.First, other.Repeated),
			})
		}
	}
	return stats
}

// EncryptionStats counts the encrypted frames and packets of other participants.
type EncryptionStats struct {
	// Opened counts the frames and packets that were decrypted.
	Opened uint64 `json:"opened"`
	// Refused counts the frames and packets that were not delivered, by reason.
	Refused e2ee.Refusals `json:"refused"`
}

// Encryption returns the counts of encrypted frames and packets.
func (s statistics) Encryption() EncryptionStats {
	m := s.path.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	opened, refused := m.downlink.Encryption()
	return EncryptionStats{Opened: opened, Refused: refused}
}
