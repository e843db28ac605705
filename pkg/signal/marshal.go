package signal

import (
	"encoding/json"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The methods below encode nil slices as empty lists. Readers in other languages iterate over lists
// and fail on null.

// MarshalJSON encodes the message without null lists.
func (m *Joined) MarshalJSON() ([]byte, error) {
	type plain Joined
	p := plain(*m)
	p.ICEServers, p.Participants = nonNil(p.ICEServers), nonNil(p.Participants)
	return json.Marshal(p)
}

// MarshalJSON encodes the server's description without null lists.
func (s ICEServer) MarshalJSON() ([]byte, error) {
	type plain ICEServer
	s.URLs = nonNil(s.URLs)
	return json.Marshal(plain(s))
}

// MarshalJSON encodes the participant without null lists.
func (p Participant) MarshalJSON() ([]byte, error) {
	type plain Participant
	p.Publications = nonNil(p.Publications)
	return json.Marshal(plain(p))
}

// MarshalJSON encodes the message without null lists.
func (m *Offer) MarshalJSON() ([]byte, error) {
	type plain Offer
	p := plain(*m)
	p.Media = nonNil(p.Media)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Assignments) MarshalJSON() ([]byte, error) {
	type plain Assignments
	p := plain(*m)
	p.Assignments = nonNil(p.Assignments)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Sending) MarshalJSON() ([]byte, error) {
	type plain Sending
	p := plain(*m)
	p.Slots = nonNil(p.Slots)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	p := plain(*m)
	p.Dropped = nonNil(p.Dropped)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *SetQuality) MarshalJSON() ([]byte, error) {
	type plain SetQuality
	p := plain(*m)
	p.Choices = nonNil(p.Choices)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Acknowledge) MarshalJSON() ([]byte, error) {
	type plain Acknowledge
	p := plain(*m)
	p.Slots = nonNil(p.Slots)
	return json.Marshal(p)
}

// MarshalJSON includes tile 0 for a line that names a track. Lines without a track have no tile.
func (m Media) MarshalJSON() ([]byte, error) {
	type plain Media
	if m.Publication == "" {
		return json.Marshal(plain(m))
	}
	return json.Marshal(struct {
		plain
		Tile int `json:"tile"`
	}{plain(m), m.Tile})
}

// MarshalJSON encodes the message without null lists.
func (m *Uplink) MarshalJSON() ([]byte, error) {
	type plain Uplink
	p := plain(*m)
	p.GaveUp = nonNil(p.GaveUp)
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Wanted) MarshalJSON() ([]byte, error) {
	type plain Wanted
	p := plain(*m)
	p.Publications = nonNil(p.Publications)
	return json.Marshal(p)
}

// MarshalJSON encodes the publication without null lists, with one list for each tile.
func (w WantedPublication) MarshalJSON() ([]byte, error) {
	type plain WantedPublication
	p := plain(w)
	p.Tiles = make([][]volumetric.Quality, len(w.Tiles))
	for i, qualities := range w.Tiles {
		p.Tiles[i] = nonNil(qualities)
	}
	return json.Marshal(p)
}

// MarshalJSON encodes the message without null lists.
func (m *Nodes) MarshalJSON() ([]byte, error) {
	type plain Nodes
	p := plain(*m)
	p.Nodes = nonNil(p.Nodes)
	return json.Marshal(p)
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
