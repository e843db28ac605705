package vr2gather

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrTrack reports that the name of a track is neither video_CLIENT_TILE_QUALITY, video_CLIENT_TILE
// nor audio_CLIENT.
var ErrTrack = errors.New("malformed VR2Gather track name")

// audioStream is the stream id of every audio track.
const audioStream = "99"

// Track is the information in the name of a track: its id in a session description, "a=msid:STREAM
// TRACK".
type Track struct {
	// Kind is volumetric.KindVideo or volumetric.KindAudio.
	Kind volumetric.Kind
	// Client is the publisher's id.
	Client uint32
	// Tile is 0 for audio.
	Tile int
	// Quality is the quality that a publisher sends. Quality is volumetric.QualityOff, which is not part of the name,
	// for a track towards a receiver, because such a track carries different qualities over time. Quality is 0 for
	// audio.
	Quality volumetric.Quality
}

// ParseTrack parses the id of a track. The error wraps ErrTrack if the id has another form, or if a
// number exceeds volumetric.MaxTiles or MaxQualities.
func ParseTrack(id string) (Track, error) {
	parts := strings.Split(id, "_")
	t := Track{Kind: volumetric.Kind(parts[0])}
	limits := []uint64{1 << 32, volumetric.MaxTiles, volumetric.MaxQualities}
	switch fields := len(parts) - 1; {
	case t.Kind == volumetric.KindAudio && fields == 1:
	case t.Kind == volumetric.KindVideo && (fields == 2 || fields == 3):
	default:
		return Track{}, fmt.Errorf(
			"%w: %.64q, expected video_CLIENT_TILE_QUALITY, video_CLIENT_TILE or audio_CLIENT",
			ErrTrack,
			id,
		)
	}
	var numbers [3]uint64
	for i, part := range parts[1:] {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || n >= limits[i] {
			return Track{}, fmt.Errorf("%w: %.64q has %.20q, expected a number below %d", ErrTrack, id, part, limits[i])
		}
		numbers[i] = n
	}
	t.Client, t.Tile, t.Quality = uint32(numbers[0]), int(numbers[1]), volumetric.Quality(numbers[2])
	if len(parts) == 3 {
		t.Quality = volumetric.QualityOff
	}
	return t, nil
}

// ID returns the id of the track.
func (t Track) ID() string {
	switch {
	case t.Kind == volumetric.KindAudio:
		return fmt.Sprintf("audio_%d", t.Client)
	case t.Quality < 0:
		return fmt.Sprintf("video_%d_%d", t.Client, t.Tile)
	default:
		return fmt.Sprintf("video_%d_%d_%d", t.Client, t.Tile, t.Quality)
	}
}

// StreamID returns the id of the stream to which the track belongs, for a publication with the
// given number of tiles.
func (t Track) StreamID(tiles int) string {
	switch {
	case t.Kind == volumetric.KindAudio:
		return audioStream
	case t.Quality < 0:
		return strconv.Itoa(t.Tile)
	default:
		return strconv.Itoa(int(t.Quality)*tiles + t.Tile)
	}
}
