package guest

import (
	"encoding/json"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Totals are the counts of a session. Each frame counted is of one tile at one quality. volsfu.h
// explains the counts.
type Totals struct {
	FramesComplete        uint64 `json:"frames_complete"`
	FramesQueued          uint64 `json:"frames_queued"`
	FramesTaken           uint64 `json:"frames_taken"`
	FramesHeld            uint64 `json:"frames_held"`
	FramesDropped         uint64 `json:"frames_dropped"`
	FramesUndecodable     uint64 `json:"frames_undecodable"`
	FramesMissing         uint64 `json:"frames_missing"`
	FramesDroppedByServer uint64 `json:"frames_dropped_by_server"`
	Packets               uint64 `json:"packets"`
	PacketsLost           uint64 `json:"packets_lost"`
	PacketsRecovered      uint64 `json:"packets_recovered"`
	Bytes                 uint64 `json:"bytes"`
	PacketsIgnored        uint64 `json:"packets_ignored"`

	FramesWritten  uint64             `json:"frames_written"`
	FramesPaused   uint64             `json:"frames_paused"`
	FramesGivenUp  uint64             `json:"frames_given_up"`
	FramesLeftOut  uint64             `json:"frames_left_out"`
	UplinkEstimate volumetric.Bitrate `json:"uplink_estimate"`
	RoundTripUS    int64              `json:"round_trip_us"`
	UplinkLoss     float64            `json:"uplink_loss"`

	EventsDropped uint64 `json:"events_dropped"`

	Paths         [client.MaxInterfaces]PathTotals `json:"paths"`
	PacketsCopied uint64                           `json:"packets_copied"`
	Outages       uint64                           `json:"outages"`

	FramesRefused uint64 `json:"frames_refused"`
}

// PathTotals are the counts of the packets received on one network interface.
type PathTotals struct {
	First    uint64 `json:"packets_first"`
	Repeated uint64 `json:"packets_repeated"`
	Only     uint64 `json:"packets_only"`
}

// Totals returns the counts.
func (g *Guest) Totals() Totals {
	return g.totals(g.session.Stats(), g.session.Uplink(), g.session.Redundancy())
}

func (g *Guest) totals(tiles []client.TileStats, uplink client.UplinkStats, paths client.RedundancyStats) Totals {
	waiting := g.frames.queue.Counts()
	t := Totals{
		FramesComplete: waiting.Taken + waiting.Dropped + waiting.Waiting,
		FramesQueued:   waiting.Waiting,
		FramesTaken:    waiting.Taken,
		FramesHeld:     uint64(g.frames.holds()),
		FramesDropped:  waiting.Dropped,
		PacketsIgnored: g.ignored.Load(),
		FramesWritten:  g.written.Load(),
		FramesPaused:   uint64(uplink.Paused),
		FramesGivenUp:  uint64(uplink.GivenUp),
		FramesLeftOut:  uint64(uplink.Dropped),
		UplinkEstimate: uplink.Estimate,
		RoundTripUS:    uplink.RTT.Microseconds(),
		UplinkLoss:     uplink.Loss,
		EventsDropped:  g.events.queue.Counts().Dropped,
		Outages:        paths.Outages,
	}
	for i, path := range paths.Received {
		t.Paths[i] = PathTotals(path)
	}
	for _, copied := range paths.Copied {
		t.PacketsCopied += copied.Packets
	}
	for _, tile := range tiles {
		// Frames dropped by the session never reached the queue.
		t.FramesComplete += uint64(tile.Overflowed)
		t.FramesDropped += uint64(tile.Overflowed)
		t.FramesUndecodable += uint64(tile.Undecodable)
		t.FramesMissing += uint64(tile.Missing)
		t.FramesDroppedByServer += uint64(tile.DroppedByServer)
		t.FramesRefused += uint64(tile.Refused)
		t.Packets += tile.Packets
		t.PacketsLost += tile.Lost
		t.PacketsRecovered += tile.Recovered
		t.Bytes += tile.Bytes
	}
	return t
}

// statistics contains the counts in JSON.
type statistics struct {
	Totals Totals            `json:"totals"`
	Tiles  []tileStatistics  `json:"tiles"`
	GaveUp []signal.OwnTrack `json:"gave_up"`
}

type tileStatistics struct {
	volumetric.TrackRef
	client.FrameCounts
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"`
	Lost      uint64 `json:"packets_lost"`
	Recovered uint64 `json:"packets_recovered"`
	Replaced  uint64 `json:"packets_replaced"`
	Requests  uint64 `json:"packets_requested"`
}

// Statistics returns the counts as JSON, including those of each received tile.
func (g *Guest) Statistics() ([]byte, error) {
	tiles, uplink := g.session.Stats(), g.session.Uplink()
	s := statistics{
		Totals: g.totals(tiles, uplink, g.session.Redundancy()), Tiles: []tileStatistics{},
		GaveUp: []signal.OwnTrack{},
	}
	for _, tile := range tiles {
		s.Tiles = append(s.Tiles, tileStatistics{
			TrackRef:    tile.Track,
			FrameCounts: tile.FrameCounts,
			Packets:     tile.Packets,
			Bytes:       tile.Bytes,
			Lost:        tile.Lost,
			Recovered:   tile.Recovered,
			Replaced:    tile.Replaced,
			Requests:    tile.Requests,
		})
	}
	s.GaveUp = append(s.GaveUp, uplink.GaveUp...)
	return json.Marshal(s)
}

// room contains the participants in JSON.
type room struct {
	Room         string               `json:"room"`
	Identity     string               `json:"identity"`
	Participants []signal.Participant `json:"participants"`
}

// Room returns the participants of the room and their publications as JSON.
func (g *Guest) Room() ([]byte, error) {
	return json.Marshal(
		room{Room: g.session.Room(), Identity: g.session.Identity(), Participants: g.session.Participants()},
	)
}
