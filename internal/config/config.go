package config

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/cluster/member"
	"github.com/volsfu/volsfu/internal/dialect/vr2gather"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/iceservers"
	"github.com/volsfu/volsfu/internal/recorder"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/internal/webhook"
)

// Config is the configuration of volsfu serve.
type Config struct {
	// ICEServers is read by iceservers.Parse.
	ICEServers []string `yaml:"ice_servers" secret:"true" help:"STUN and TURN servers for clients, see operations.md"`

	Server     Server            `yaml:"server" help:"process and listener of signalling and pages"`
	Media      transport.Config  `yaml:"media" help:"port of all media"`
	TURN       turnserver.Config `yaml:"turn" help:"relay to the media port for clients behind strict firewalls"`
	Forward    forward.Config    `yaml:"forward" help:"packet path: caches, writers, repair"`
	Rooms      sfu.Config        `yaml:"rooms" help:"limits of rooms, joining and leaving"`
	Recordings recorder.Config   `yaml:"recordings" help:"recordings of rooms on the disk of the server"`
	Signalling signalling.Config `yaml:"signalling" help:"limits of websockets and their messages"`
	VR2Gather  vr2gather.Config  `yaml:"vr2gather" help:"dialect of VR2Gather's original peers"`
	Auth       auth.Config       `yaml:"auth" help:"tokens; without --dev a key is required"`
	Admin      admin.Config      `yaml:"admin" help:"operators' listener"`
	Webhooks   webhook.Config    `yaml:"webhooks" help:"events of rooms, posted to a backend"`
	Cluster    member.Config     `yaml:"cluster" help:"rooms over several servers, see cluster.md"`
	Log        Log               `yaml:"log" help:"logging"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Server:     DefaultServer(),
		Media:      transport.DefaultConfig(),
		TURN:       turnserver.DefaultConfig(),
		Forward:    forward.DefaultConfig(),
		Rooms:      sfu.DefaultConfig(),
		Recordings: recorder.DefaultConfig(),
		Signalling: signalling.DefaultConfig(),
		VR2Gather:  vr2gather.DefaultConfig(),
		Auth:       auth.DefaultConfig(),
		Admin:      admin.DefaultConfig(),
		Webhooks:   webhook.Config{},
		Cluster:    member.DefaultConfig(),
		Log:        DefaultLog(),
	}
}

// loopback is the listening address of a server with --dev.
const loopback = "127.0.0.1"

// Settle derives values from others after all are loaded: frames may be as large as clients are told, the cache of a
// track holds one, and with --dev, addresses without a host become loopback addresses.
func (c *Config) Settle() {
	c.Forward.MaxFrameBytes = c.Rooms.FrameBytes
	// A frame of 16 MiB occupies 25 MB.
	c.Forward.TrackCacheBytes = max(c.Forward.TrackCacheBytes, 2*int64(c.Rooms.FrameBytes))
	if !c.Server.Dev {
		return
	}
	if host, port, err := net.SplitHostPort(c.Server.Listen); err == nil && host == "" {
		c.Server.Listen = net.JoinHostPort(loopback, port)
	}
	if host, port, err := net.SplitHostPort(c.Admin.Listen); err == nil && host == "" {
		c.Admin.Listen = net.JoinHostPort(loopback, port)
	}
	if address, err := netip.ParseAddr(c.Media.Address); err == nil && address.IsUnspecified() {
		c.Media.Address = loopback
	}
	if host, port, err := net.SplitHostPort(c.TURN.Listen); err == nil && host == "" {
		c.TURN.Listen = net.JoinHostPort(loopback, port)
	}
}

// Validate reports invalid ICE servers, and contradictions between sections. Each section validates its own keys.
func (c Config) Validate() error {
	if _, err := iceservers.Parse(c.ICEServers); err != nil {
		return fmt.Errorf("%w of ice_servers: %w", ErrValue, err)
	}
	if !c.Server.Dev {
		return nil
	}
	media := net.JoinHostPort(c.Media.Address, "0")
	for key, address := range map[string]string{"server.listen": c.Server.Listen, "admin.listen": c.Admin.Listen,
		"media.address": media, "turn.listen": c.TURN.Listen} {
		if host, _, err := net.SplitHostPort(address); err == nil && !isLoopback(host) {
			return fmt.Errorf("%w of %s: %q, expected a loopback address under --dev, which admits every client",
				ErrValue, key, host)
		}
	}
	return nil
}

// isLoopback reports whether host is a loopback address, or "localhost", the only name that always is one.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
