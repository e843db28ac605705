package sfu

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RoomState is the state of a room at one instant. Participants and publications are sorted by name, slots by line.
type RoomState struct {
	Name string `json:"name"`
	// ID identifies one room of the name, from its start to its end.
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Settings are those of the API, nil if there are none.
	Settings     *admission.RoomSettings `json:"settings,omitempty"`
	Participants []ParticipantState      `json:"participants"`
	// Recorded is set if the room is recorded.
	Recorded bool `json:"recorded,omitempty"`
}

// ParticipantState is the state of one participant of a room.
type ParticipantState struct {
	Identity string `json:"identity"`
	// Joined is the time when the participant's websocket was opened. Connected is set if media can flow. Present is
	// set if the websocket is open; Joined is not set during the grace time.
	Joined    time.Time `json:"joined"`
	Connected bool      `json:"connected"`
	Present   bool      `json:"present"`
	// VR2Gather is set if the participant uses the VR2Gather dialect.
	VR2Gather bool `json:"vr2gather,omitempty"`
	// Protocol is the participant's protocol, WHIP or WHEP. It is empty for the others.
	Protocol string `json:"protocol,omitempty"`
	// TokenID is the id of the token, by which the token may be revoked. TokenID is empty if there is none.
	TokenID string `json:"token_id,omitempty"`
	// Attributes describe the participant. Permissions are those of its token and of the operator together.
	Attributes  map[string]string  `json:"attributes,omitempty"`
	Permissions signal.Permissions `json:"permissions"`
	// ECN counts the participant's packets of the last second, nil if the participant sent none.
	ECN *ECNState `json:"ecn,omitempty"`
	// Publications are the participant's publications.
	Publications []PublicationState `json:"publications"`
	// Reception is the state of the participant as a receiver, nil if the participant receives nothing.
	Reception *subscriber.State `json:"reception,omitempty"`
}

// ECNState has the numbers of packets by ECN codepoint.
type ECNState struct {
	NotECT uint64 `json:"not_ect"`
	ECT0   uint64 `json:"ect0"`
	ECT1   uint64 `json:"ect1"`
	CE     uint64 `json:"ce"`
}

// PublicationState is the description and the state of one publication.
type PublicationState struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Mode      string   `json:"mode"`
	Codec     string   `json:"codec"`
	Tiles     int      `json:"tiles"`
	Qualities []string `json:"qualities"`
	// Rates are the bit rates of tracks in bit/s, by tile and quality; 0 if a track has been silent. Paused has the
	// tracks that the publisher was asked to pause.
	Rates  [][]volumetric.Bitrate `json:"rates_bps"`
	Paused [][]bool               `json:"paused"`
	// Muted is the muting of the publication, nil if it is not muted.
	Muted *signal.MuteState `json:"muted,omitempty"`
}

// RoomSummary has the numbers of participants and publications of a room.
type RoomSummary struct {
	Name         string `json:"name"`
	Participants int    `json:"participants"`
	Publications int    `json:"publications"`
}

// Summaries returns the rooms sorted by name: only the named room, or all rooms if name is empty. Summaries reads
// counters and does not wait for rooms.
func (n *Node) Summaries(name string) []RoomSummary {
	list := []RoomSummary{}
	for _, room := range n.rooms.Named(name) {
		if c := room.census.Load(); c != nil {
			list = append(list, RoomSummary{room.name, c.participants, c.publications})
		}
	}
	slices.SortFunc(list, func(a, b RoomSummary) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// statesRequest asks a room for its state.
type statesRequest struct {
	past   bool
	result chan<- RoomState
}

// apply implements request.
func (q statesRequest) apply(r *Room) {
	state := RoomState{
		Name: r.name, ID: r.room.ID, Metadata: r.metadata, Settings: r.settings, Participants: []ParticipantState{},
		Recorded: r.recorder.current != nil,
	}
	for _, p := range r.participants.others(nil) {
		state.Participants = append(state.Participants, participantState(p, q.past))
	}
	q.result <- state
}

// States returns the states of the named room, or of all rooms if name is empty. If past is set, the states include
// the history of receivers. Rooms that end during the call are left out.
func (n *Node) States(ctx context.Context, name string, past bool) ([]RoomState, error) {
	states := []RoomState{}
	for _, room := range n.rooms.Named(name) {
		result := make(chan RoomState, 1)
		room.post(statesRequest{past, result})
		state, answered := await(ctx, room, result)
		if answered {
			states = append(states, state)
		} else if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(states, func(a, b RoomState) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}

func participantState(p *participant, past bool) ParticipantState {
	state := ParticipantState{
		Identity: p.Identity, Joined: p.joined, Connected: p.connected, Present: p.outbox != nil,
		VR2Gather:    p.profile.Converted,
		TokenID:      p.token.ID,
		Attributes:   p.Attributes,
		Permissions:  p.grants.permissions(),
		ECN:          ecnState(p.connection.Ingress.Codepoints()),
		Publications: []PublicationState{},
	}
	for _, publication := range p.Publications {
		state.Publications = append(state.Publications, publicationState(publication))
	}
	if p.profile.Offers {
		state.Protocol = p.profile.Name
	}
	if p.receive {
		state.Reception = p.subscriber.State(past)
	}
	return state
}

// ecnState returns nil if there are no packets.
func ecnState(c ingress.Codepoints) *ECNState {
	if _, any := c.Codepoint(); !any {
		return nil
	}
	return &ECNState{NotECT: c[ecn.NotECT], ECT0: c[ecn.ECT0], ECT1: c[ecn.ECT1], CE: c[ecn.CE]}
}

func publicationState(p *presence.Publication) PublicationState {
	d := &p.Description
	state := PublicationState{
		Name: d.Name, Kind: string(d.Kind), Mode: string(d.Mode), Codec: d.Codec.MIMEType, Tiles: len(d.Tiles),
	}
	if p.Muted() {
		mute := p.Mute
		state.Muted = &mute
	}
	for _, q := range d.Qualities {
		state.Qualities = append(state.Qualities, q.Name)
	}
	for tile := range d.Tiles {
		rates, paused := make([]volumetric.Bitrate, len(d.Qualities)), make([]bool, len(d.Qualities))
		for q := range d.Qualities {
			rates[q], _ = p.Tracks[tile*len(d.Qualities)+q].Rate()
			paused[q] = p.Demand.Paused(tile, volumetric.Quality(q))
		}
		state.Rates, state.Paused = append(state.Rates, rates), append(state.Paused, paused)
	}
	return state
}
