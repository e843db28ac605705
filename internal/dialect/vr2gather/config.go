package vr2gather

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid configuration of the VR2Gather dialect")

// Config configures whether VR2Gather peers may connect and which rooms they enter.
type Config struct {
	Enabled bool `yaml:"enabled" help:"accept VR2Gather peers at /websocket and /r/ROOM/websocket"`
	// RequireToken: unmodified VR2Gather peers cannot send a token. If no token is required, rooms are open to every
	// client that reaches the listener.
	RequireToken bool `yaml:"require_token" help:"require a token of peers (Authorization: Bearer or ?access_token=)"`
	// DefaultRoom and RoomByHost set the room of /websocket.
	DefaultRoom string `yaml:"default_room" help:"room of peers that connect at /websocket"`
	RoomByHost  bool   `yaml:"room_by_host" help:"use the HTTP Host (host:port) as the room of /websocket"`
	Tiles       int    `yaml:"tiles" help:"tiles of a peer that does not state its number of tiles"`
	Qualities   int    `yaml:"qualities" help:"qualities of a peer that does not state its number of qualities"`
	// MinBitrate: VR2Gather peers were made for a server that sends everything, and cannot report the capacity of their
	// links.
	MinBitrate volumetric.Bitrate `yaml:"min_bps" help:"minimum and initial estimate of a peer's link, bit/s"`
	Candidates string             `yaml:"candidates" help:"text in the address of candidates for peers; empty: all"`
}

// DefaultConfig returns a configuration that disables the dialect.
func DefaultConfig() Config {
	return Config{RequireToken: true, DefaultRoom: "vr2gather", Tiles: 1, Qualities: 1, MinBitrate: 12_500_000}
}

// Validate returns an error that names the first wrong key.
func (c Config) Validate() error {
	if err := volumetric.ValidateName("default_room", c.DefaultRoom); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.Tiles < 1 || c.Tiles > volumetric.MaxTiles || c.Qualities < 1 || c.Qualities > volumetric.MaxQualities {
		return fmt.Errorf("%w: tiles is %d and qualities is %d: expected 1 to %d, and 1 to %d",
			ErrConfig, c.Tiles, c.Qualities, volumetric.MaxTiles, volumetric.MaxQualities)
	}
	if c.MinBitrate < 0 {
		return fmt.Errorf("%w: min_bps is %d: expected 0 or more", ErrConfig, c.MinBitrate)
	}
	return nil
}
