package vr2gather

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid configuration of VR2Gather's dialect")

// Config configures whether VR2Gather peers may connect and which rooms they enter.
type Config struct {
	Enabled bool `yaml:"enabled" help:"let VR2Gather's own peers connect, at /websocket and /r/ROOM/websocket"`
	// RequireToken: unmodified VR2Gather peers cannot send a token. If no token is required, rooms are open to every
	// client that reaches the listener.
	RequireToken bool `yaml:"require_token" help:"ask them for an access token, as Authorization: Bearer or ?access_token=; the peers that VR2Gather ships have none"`
	// DefaultRoom and RoomByHost set the room of /websocket.
	DefaultRoom string `yaml:"default_room" help:"room of those that connect at /websocket"`
	RoomByHost  bool   `yaml:"room_by_host" help:"make the room of those that connect at /websocket the HTTP Host, as host:port, in place of the default room"`
	Tiles       int    `yaml:"tiles" help:"tiles of a peer that does not tell how many it has"`
	Qualities   int    `yaml:"qualities" help:"qualities of a peer that does not tell how many it has"`
	// MinBitrate: VR2Gather peers were made for a server that sends everything, and cannot report the capacity of their
	// links.
	MinBitrate volumetric.Bitrate `yaml:"min_bps" help:"what the links of such peers are known to carry, in bit/s, at most rooms.claimed_min_bps: where estimates of them begin, and stay above"`
	Candidates string             `yaml:"candidates" help:"tell such peers only the server's ICE candidates whose address contains this text; empty is all of them"`
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
