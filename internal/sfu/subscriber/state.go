package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// State is the state of a receiver: its path and its slots.
type State struct {
	// Known is set if there is an estimate. Target is the rate of the decided qualities, Wanted the rate with an
	// unlimited budget.
	Known    bool               `json:"known"`
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	Target   volumetric.Bitrate `json:"target_bps"`
	Wanted   volumetric.Bitrate `json:"wanted_bps"`
	Sent     volumetric.Bitrate `json:"sent_bps"`
	// RTT and QueueDelay are in milliseconds. Loss and Parity are shares of 0 to 1.
	RTT        float64 `json:"rtt_ms"`
	QueueDelay float64 `json:"queue_delay_ms"`
	Loss       float64 `json:"loss"`
	Parity     float64 `json:"parity"`
	// L4S is the state of L4S. CEShare is the mean share of packets marked ECN-CE while the rate follows marks, 0 to 1.
	L4S     string  `json:"l4s"`
	CEShare float32 `json:"ce_share"`
	// Viewpoint is set if the receiver reports its viewpoint.
	Viewpoint bool        `json:"viewpoint"`
	Slots     []SlotState `json:"slots"`
	// History has one sample per second of the last minutes, the oldest first. History is left out unless requested.
	History []Sample `json:"history,omitempty"`
}

// SlotState is the state of one slot with a target.
type SlotState struct {
	MID         string             `json:"mid"`
	Participant string             `json:"participant"`
	Publication string             `json:"publication"`
	Tile        int                `json:"tile"`
	Quality     volumetric.Quality `json:"quality"`
	Reason      signal.Reason      `json:"reason"`
	// The counts begin with the creation of the slot.
	Packets         uint64 `json:"packets"`
	Frames          uint64 `json:"frames"`
	Octets          uint64 `json:"bytes"`
	Retransmissions uint64 `json:"retransmissions"`
	// FractionLost is the loss of this slot in the receiver's last report, 0 to 1.
	FractionLost float64 `json:"fraction_lost"`
}

// State returns the state of the receiver. State includes the history if past is set.
func (s *Subscriber) State(past bool) *State {
	path := s.link.Path()
	state := &State{
		Known: path.Known, Estimate: path.Estimate, Target: s.last.rate, Wanted: s.last.wanted, Sent: path.Sent,
		RTT: inMilliseconds(path.RTT), QueueDelay: inMilliseconds(path.QueueDelay), Loss: path.Loss,
		Parity: s.link.ParityShare(), L4S: path.L4S.String(), CEShare: path.Alpha, Viewpoint: s.Looks(),
		Slots: []SlotState{},
	}
	for _, slot := range s.Slots.all {
		if slot.Target != nil {
			state.Slots = append(state.Slots, slot.state())
		}
	}
	if past {
		state.History = s.history.all()
	}
	return state
}

func (s *Slot) state() SlotState {
	tile := s.Target.Tile
	state := SlotState{
		MID: s.MID, Participant: tile.Participant, Publication: tile.Publication, Tile: tile.Tile, Quality: s.Showing,
		Reason: s.Reason,
	}
	if f, ok := s.Output.(*egress.Slot); ok {
		stats := f.Stats()
		state.Packets, state.Frames, state.Octets = stats.Packets, stats.Frames, stats.Octets
		state.Retransmissions, state.FractionLost = stats.Retransmissions, stats.FractionLost
	}
	return state
}

// Sample adds a sample to the receiver's history if one is due.
func (s *Subscriber) Sample(now time.Time) {
	if s.history.due(now) {
		s.history.note(now, s.link.Path(), s.last.rate)
	}
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
