package volumetric

import "fmt"

// PublicationRef names a publication within a room.
type PublicationRef struct {
	Participant string `json:"participant"`
	Publication string `json:"publication"`
}

// TileRef names one tile of a publication within a room. In ModeAlternatives a slot is assigned to
// a TileRef.
type TileRef struct {
	PublicationRef
	Tile int `json:"tile"`
}

// TrackRef names one incoming RTP stream within a room: one tile at one quality. In
// ModeDescriptions a slot is assigned to a TrackRef.
type TrackRef struct {
	TileRef
	Quality Quality `json:"quality"`
}

// String returns the reference for logs.
func (r PublicationRef) String() string { return r.Participant + "/" + r.Publication }

// String returns the reference for logs.
func (r TileRef) String() string { return fmt.Sprintf("%s/%d", r.PublicationRef, r.Tile) }

// String returns the reference for logs.
func (r TrackRef) String() string { return fmt.Sprintf("%s/%d", r.TileRef, r.Quality) }
