package sfu

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RoomState is what goes on in a room at one instant. Its slices are sorted by name, slots by line.
type RoomState struct {
	Name         string             `json:"name"`
	Participants []ParticipantState `json:"participants"`
}

// ParticipantState is one participant of a room.
type ParticipantState struct {
	Identity string `json:"identity"`
	// Joined is when the participant's websocket was opened. Connected says that media can flow, Present that the
	// websocket lives: who comes back within the time of grace is not present meanwhile.
	Joined    time.Time `json:"joined"`
	Connected bool      `json:"connected"`
	Present   bool      `json:"present"`
	// VR2Gather says that the participant speaks VR2Gather's dialect.
	VR2Gather bool `json:"vr2gather,omitempty"`
	// TokenID is the id of the token, by which it may be revoked; empty without one.
	TokenID string `json:"token_id,omitempty"`
	// Publications are what the participant publishes.
	Publications []PublicationState `json:"publications"`
	// Reception is what the participant is sent, nil where it takes nothing.
	Reception *subscriber.State `json:"reception,omitempty"`
}

// PublicationState is one publication, as it was announced and as it is.
type PublicationState struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Mode      string   `json:"mode"`
	Codec     string   `json:"codec"`
	Tiles     int      `json:"tiles"`
	Qualities []string `json:"qualities"`
	// Rates are what each track takes, in bit/s, by tile and quality; 0 where it has been silent. Paused are those
	// that the publisher was told not to send.
	Rates  [][]volumetric.Bitrate `json:"rates_bps"`
	Paused [][]bool               `json:"paused"`
}

// RoomSummary is how much goes on in a room.
type RoomSummary struct {
	Name         string `json:"name"`
	Participants int    `json:"participants"`
	Publications int    `json:"publications"`
}

// Summaries lists rooms by name: the named one, or all of them if the name is empty. It asks no room's goroutine.
func (n *Node) Summaries(name string) []RoomSummary {
	list := []RoomSummary{}
	for _, room := range n.named(name) {
		if c := room.census.Load(); c != nil {
			list = append(list, RoomSummary{room.name, c.participants, c.publications})
		}
	}
	slices.SortFunc(list, func(a, b RoomSummary) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// describeRequest asks a room for its state.
type describeRequest struct {
	past   bool
	result chan<- RoomState
}

// apply implements request.
func (q describeRequest) apply(r *Room) {
	state := RoomState{Name: r.name, Participants: []ParticipantState{}}
	for _, p := range r.participants.others(nil) {
		state.Participants = append(state.Participants, p.state(q.past))
	}
	q.result <- state
}

// Describe asks each room for its state: the named one, or all where the name is empty. past asks for the history of
// receivers, too. Rooms that end meanwhile are left out.
func (n *Node) Describe(ctx context.Context, name string, past bool) ([]RoomState, error) {
	states := []RoomState{}
	for _, room := range n.named(name) {
		result := make(chan RoomState, 1)
		room.post(describeRequest{past, result})
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

func (p *participant) state(past bool) ParticipantState {
	state := ParticipantState{
		Identity: p.identity, Joined: p.joined, Connected: p.connected, Present: p.outbox != nil,
		VR2Gather:    p.profile.Converted,
		TokenID:      p.token.ID,
		Publications: []PublicationState{},
	}
	for _, publication := range p.publications {
		state.Publications = append(state.Publications, publication.state())
	}
	if p.receive {
		state.Reception = p.subscriber.State(past)
	}
	return state
}

func (p *publication) state() PublicationState {
	d := &p.Description
	state := PublicationState{
		Name: d.Name, Kind: string(d.Kind), Mode: string(d.Mode), Codec: d.Codec.MIMEType, Tiles: len(d.Tiles),
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
