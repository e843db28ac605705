package relay

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
)

// Summary is the JSON object that volbridge --json prints.
type Summary struct {
	Seconds float64 `json:"seconds"`
	Client  uint32  `json:"client"`
	// Sessions is the number of sessions with the server.
	Sessions int64 `json:"sessions"`
	// FromConnector has the counters of the connector's input, ToConnector those of the output. Frames are tile frames.
	FromConnector bridge.InletCounts  `json:"from_connector"`
	ToConnector   bridge.OutletCounts `json:"to_connector"`
	// Received has the results of the tile frames that the server was to send. Complete frames were sent to the
	// connector or dropped, as counted below.
	Received client.FrameCounts `json:"received"`
	// Up is the time from the last datagram of a frame to its hand-over to the server's session. Down is the time from
	// the last packet of a frame until all its datagrams were sent to the connector.
	Up   distribution.Percentiles `json:"up_ms"`
	Down distribution.Percentiles `json:"down_ms"`
	// Transcoding has the time that transcoding adds to both directions and to audio; null if nothing is transcoded.
	Transcoding *TranscodingSummary `json:"transcoding"`
	// Dropped has the number of drops by reason.
	Dropped map[string]int64 `json:"dropped"`
	// Uplink counts frames that were handed over and not sent.
	Uplink UplinkSummary `json:"uplink"`
	// Redundancy has the packets on two network interfaces; null unless a packet has left or arrived on a second one.
	Redundancy *RedundancySummary `json:"redundancy"`
}

// RedundancySummary counts packets on two network interfaces.
type RedundancySummary struct {
	// Paths has the received packets by interface, in the order of --interfaces.
	Paths []PathSummary `json:"paths"`
	// Copied is the number of sent packets that left on the second interface, too. Outages counts the failures of the
	// first one that the server's reports have shown.
	Copied  uint64 `json:"packets_copied"`
	Outages uint64 `json:"outages"`
}

// PathSummary counts the received packets of one interface: those that no other interface had delivered before, the
// others, and those that no other interface has delivered.
type PathSummary struct {
	First    uint64 `json:"packets_first"`
	Repeated uint64 `json:"packets_repeated"`
	Only     uint64 `json:"packets_only"`
}

// TranscodingSummary has the time that transcoding adds to frames: Up from the connector, Down to the connector.
type TranscodingSummary struct {
	Up   distribution.Percentiles `json:"up_ms"`
	Down distribution.Percentiles `json:"down_ms"`
	// SoundUp and SoundDown are the times for audio, including the lookahead of the codecs.
	SoundUp   distribution.Percentiles `json:"sound_up_ms"`
	SoundDown distribution.Percentiles `json:"sound_down_ms"`
	// Concealed is the number of audio frames that were lost and concealed.
	Concealed int64 `json:"sound_frames_concealed"`
}

// UplinkSummary counts frames that the session took over and did not send: because no receiver takes them, because the
// uplink cannot carry them, or because they waited too long for the uplink.
type UplinkSummary struct {
	Paused  int64 `json:"frames_paused"`
	GivenUp int64 `json:"frames_given_up"`
	Dropped int64 `json:"frames_dropped"`
}

// counts has the counters of a bridge other than drops.
type counts struct {
	sessions int64
	outlet   bridge.OutletCounts
	uplink   client.UplinkCounts
	received client.FrameCounts
	// up is the time from the last datagram of a frame to its delivery to the client library. down is the time from the
	// last packet of a frame until all of it was sent to the connector.
	up, down distribution.Distribution
	// packed and unpacked are the times that transcoding adds to up and down, including queueing. audioUp and audioDown
	// are the times that transcoding adds to audio. concealed is the number of concealed audio frames.
	packed, unpacked   distribution.Distribution
	audioUp, audioDown distribution.Distribution
	concealed          int64
	redundancy         RedundancySummary
}

// add adds the counters of a session.
func (c *counts) add(session *client.Session) {
	uplink := session.Uplink().UplinkCounts
	c.uplink.Paused += uplink.Paused
	c.uplink.GivenUp += uplink.GivenUp
	c.uplink.Dropped += uplink.Dropped
	for _, tile := range session.Stats() {
		c.received.Expected += tile.Expected
		c.received.Complete += tile.Complete
		c.received.Undecodable += tile.Undecodable
		c.received.Missing += tile.Missing
		c.received.Overflowed += tile.Overflowed
		c.received.DroppedByServer += tile.DroppedByServer
		c.received.Refused += tile.Refused
	}
	c.redundancy.add(session.Redundancy())
}

// add adds the counters of a session.
func (r *RedundancySummary) add(stats client.RedundancyStats) {
	r.Outages += stats.Outages
	for _, copied := range stats.Copied {
		r.Copied += copied.Packets
	}
	if r.Paths == nil && stats.Received != nil {
		r.Paths = make([]PathSummary, len(stats.Received))
	}
	for i, path := range stats.Received {
		r.Paths[i].First += path.First
		r.Paths[i].Repeated += path.Repeated
		r.Paths[i].Only += path.Only
	}
}

// figures has the counts of a bridge. Its methods may be called by several goroutines.
type figures struct {
	mu     sync.Mutex
	counts counts
}

// update calls change with the counts, while no other goroutine uses them.
func (f *figures) update(change func(*counts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.counts)
}

// recordUp records the time of a frame from its last datagram to the hand-over to the server's session.
func (f *figures) recordUp(took time.Duration) { f.update(func(c *counts) { c.up.Add(took) }) }

// recordDown records the time of a frame from its last packet until all of it was sent to the connector.
func (f *figures) recordDown(took time.Duration) { f.update(func(c *counts) { c.down.Add(took) }) }

// summary returns the summary so far.
func (s *Relay) summary() Summary {
	b := Summary{
		Seconds: math.Round(time.Since(s.began).Seconds()*1000) / 1000,
		Client:  s.settings.client,
		Dropped: s.tally.Counts(),
	}
	s.figures.update(func(c *counts) {
		b.Sessions, b.ToConnector, b.Received = c.sessions, c.outlet, c.received
		b.Up, b.Down = c.up.Percentiles(), c.down.Percentiles()
		b.Uplink = UplinkSummary{Paused: c.uplink.Paused, GivenUp: c.uplink.GivenUp, Dropped: c.uplink.Dropped}
		if r := c.redundancy; r.Paths != nil || r.Copied > 0 {
			r.Paths = slices.Clone(r.Paths)
			b.Redundancy = &r
		}
		if s.settings.transcode {
			b.Transcoding = &TranscodingSummary{
				Up: c.packed.Percentiles(), Down: c.unpacked.Percentiles(),
				SoundUp: c.audioUp.Percentiles(), SoundDown: c.audioDown.Percentiles(),
				Concealed: c.concealed,
			}
		}
	})
	if s.local != nil {
		b.FromConnector = s.local.Counts()
		if n := s.local.Unsent(); n > 0 {
			b.Dropped[bridge.DropSocket.String()] += n
		}
	}
	return b
}

// watch logs drops every second, and other figures if configured, until the context ends.
func (s *Relay) watch(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	last := s.summary()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := s.summary()
		var fresh []any
		for d := range bridge.Reasons {
			if n := now.Dropped[d.String()] - last.Dropped[d.String()]; n > 0 {
				fresh = append(fresh, d.String(), n)
			}
		}
		if len(fresh) > 0 {
			s.log.Warn("dropped", fresh...)
		}
		if s.settings.level >= 1 {
			s.log.Info("figures",
				"frames from connector", now.FromConnector.Frames-last.FromConnector.Frames,
				"frames to connector", now.ToConnector.Frames-last.ToConnector.Frames,
				"sound from connector", now.FromConnector.AudioFrames-last.FromConnector.AudioFrames,
				"sound to connector", now.ToConnector.AudioFrames-last.ToConnector.AudioFrames)
		}
		last = now
	}
}
