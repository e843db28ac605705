package relay

import (
	"context"
	"math"
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
	// Uplink counts frames that were handed over and not sent: because no receiver takes them, because the uplink
	// cannot carry them, or because they waited too long for the uplink.
	Uplink UplinkSummary `json:"uplink"`
}

type TranscodingSummary struct {
	Up   distribution.Percentiles `json:"up_ms"`
	Down distribution.Percentiles `json:"down_ms"`
	// SoundUp and SoundDown are the times for audio, including the lookahead of the codecs.
	SoundUp   distribution.Percentiles `json:"sound_up_ms"`
	SoundDown distribution.Percentiles `json:"sound_down_ms"`
	// Concealed is the number of audio frames that were lost and concealed.
	Concealed int64 `json:"sound_frames_concealed"`
}

type UplinkSummary struct {
	Paused  int64 `json:"frames_paused"`
	GivenUp int64 `json:"frames_given_up"`
	Dropped int64 `json:"frames_dropped"`
}

// add adds the counters of a session.
func (f *figures) add(session *client.Session) {
	counts := session.Uplink().UplinkCounts
	f.uplink.Paused += counts.Paused
	f.uplink.GivenUp += counts.GivenUp
	f.uplink.Dropped += counts.Dropped
	for _, tile := range session.Stats() {
		f.received.Expected += tile.Expected
		f.received.Complete += tile.Complete
		f.received.Undecodable += tile.Undecodable
		f.received.Missing += tile.Missing
		f.received.Overflowed += tile.Overflowed
		f.received.DroppedByServer += tile.DroppedByServer
	}
}

// summary returns the summary so far.
func (s *Relay) summary() Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Summary{
		Seconds:     math.Round(time.Since(s.began).Seconds()*1000) / 1000,
		Client:      s.settings.client,
		Sessions:    s.figures.sessions,
		ToConnector: s.figures.outlet,
		Received:    s.figures.received,
		Up:          s.figures.up.Percentiles(),
		Down:        s.figures.down.Percentiles(),
		Dropped:     s.tally.Counts(),
		Uplink: UplinkSummary{Paused: s.figures.uplink.Paused, GivenUp: s.figures.uplink.GivenUp,
			Dropped: s.figures.uplink.Dropped},
	}
	if s.settings.transcode {
		b.Transcoding = &TranscodingSummary{
			Up: s.figures.packed.Percentiles(), Down: s.figures.unpacked.Percentiles(),
			SoundUp: s.figures.audioUp.Percentiles(), SoundDown: s.figures.audioDown.Percentiles(),
			Concealed: s.figures.concealed,
		}
	}
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
