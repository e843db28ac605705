package signalling

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestVR2GatherCandidates tells peers of candidates over UDP only, and only of those that are configured.
func TestVR2GatherCandidates(t *testing.T) {
	for _, c := range []struct {
		filter, candidate string
		kept              bool
	}{
		{"", "candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host", true},
		{"", "candidate:1 1 UDP 2130706431 10.8.0.1 7882 typ host", true},
		{"", "candidate:2 1 tcp 1671430143 10.8.0.1 7882 typ host tcptype passive", false},
		{"", "candidate:", false},
		{"", "", false},
		{"10.8.", "candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host", true},
		{"10.8.", "candidate:1 1 udp 2130706431 192.0.2.1 7882 typ srflx raddr 10.8.0.1 rport 7882", false},
	} {
		o := &vr2GatherOutbox{client: &vr2GatherClient{server: &VR2GatherServer{config: VR2GatherConfig{Candidates: c.filter}}}}
		if got := o.keeps(c.candidate); got != c.kept {
			t.Errorf("%q with filter %q: %t", c.candidate, c.filter, got)
		}
	}
}

// TestVR2GatherConfig finds the values that nobody can mean.
func TestVR2GatherConfig(t *testing.T) {
	if err := DefaultVR2GatherConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*VR2GatherConfig){
		"no room":            func(c *VR2GatherConfig) { c.DefaultRoom = "" },
		"no tiles":           func(c *VR2GatherConfig) { c.Tiles = 0 },
		"too many tiles":     func(c *VR2GatherConfig) { c.Tiles = volumetric.MaxTiles + 1 },
		"less than nothing":  func(c *VR2GatherConfig) { c.MinBitrate = -1 },
		"no qualities":       func(c *VR2GatherConfig) { c.Qualities = 0 },
		"too many qualities": func(c *VR2GatherConfig) { c.Qualities = volumetric.MaxQualities + 1 },
	} {
		c := DefaultVR2GatherConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
