package volumetric

import "fmt"

// PublicationRef names a publication within a room.
type PublicationRef struct {
	Participant string `json:"participant"`
	Publication string `json:"publication"`
}

// TileRef names one tile of a publication within a room. It is what a slot is assigned to in ModeAlternatives.
type TileRef struct {
	PublicationRef
	Tile int `json:"tile"`
}

// TrackRef names one incoming RTP stream within a room: one tile at one quality. It is what a slot is assigned to in ModeDescriptions.
type TrackRef struct {
	TileRef
	Quality Quality `json:"quality"`
}

// String prints the reference for logs.
func (r PublicationRef) String() string { return r.Participant + "/" + r.Publication }

// String prints the reference for logs.
func (r TileRef) String() string { return fmt.Sprintf("%s/%d", r.PublicationRef, r.Tile) }

// String prints the reference for logs.
func (r TrackRef) String() string { return fmt.Sprintf("%s/%d", r.TileRef, r.Quality) }
