package config

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/dialect/vr2gather"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/internal/transport"
)

// Config is the configuration of volsfu serve.
type Config struct {
	Server     Server            `yaml:"server" help:"the process, and its listener for signalling, viewer and console"`
	Media      transport.Config  `yaml:"media" help:"the one port of all media"`
	Forward    forward.Config    `yaml:"forward" help:"the packet path: caches, writers, repair"`
	Rooms      sfu.Config        `yaml:"rooms" help:"limits of rooms, and how participants come and go"`
	Signalling signalling.Config `yaml:"signalling" help:"what a client may do on its websocket"`
	VR2Gather  vr2gather.Config  `yaml:"vr2gather" help:"the dialect of VR2Gather's own peers"`
	Auth       auth.Config       `yaml:"auth" help:"who may come in; without --dev there has to be a key"`
	Admin      admin.Config      `yaml:"admin" help:"the operators' listener"`
	Log        Log               `yaml:"log" help:"what is logged to standard error"`
}

// DefaultConfig is what holds where nothing else is said.
func DefaultConfig() Config {
	return Config{
		Server:     DefaultServer(),
		Media:      transport.DefaultConfig(),
		Forward:    forward.DefaultConfig(),
		Rooms:      sfu.DefaultConfig(),
		Signalling: signalling.DefaultConfig(),
		VR2Gather:  vr2gather.DefaultConfig(),
		Auth:       auth.DefaultConfig(),
		Admin:      admin.DefaultConfig(),
		Log:        DefaultLog(),
	}
}

// loopback is where a server under --dev listens.
const loopback = "127.0.0.1"

// Settle derives values from others once all are loaded: under --dev, addresses that name no host become loopback's.
func (c *Config) Settle() {
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
}

// Validate reports what sections contradict each other. What concerns one section only is that section's.
func (c Config) Validate() error {
	if !c.Server.Dev {
		return nil
	}
	media := net.JoinHostPort(c.Media.Address, "0")
	for key, address := range map[string]string{"server.listen": c.Server.Listen, "admin.listen": c.Admin.Listen, "media.address": media} {
		if host, _, err := net.SplitHostPort(address); err == nil && !isLoopback(host) {
			return fmt.Errorf("%w of %s: %q, expected a loopback address under --dev, which lets everybody in", ErrValue, key, host)
		}
	}
	return nil
}

// isLoopback takes addresses, and the one name that means one everywhere. Other names may resolve to anything.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
