package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/signal"
)

func TestConfigIsChecked(t *testing.T) {
	const url = "ws://localhost:8080"
	tests := []struct {
		name   string
		config Config
	}{
		{"no address", Config{}},
		{"no host", Config{URL: "ws:///v1"}},
		{"a page's address", Config{URL: "http://localhost:8080"}},
		{"not an address", Config{URL: "ws://[::1"}},
		{"a deadline in the past", Config{URL: url, Deadline: -time.Millisecond}},
		{"frames of less than nothing", Config{URL: url, FrameBytes: -1}},
		{"a frame that takes longer than its interval", Config{URL: url, Spread: 1.5}},
		{"a frame that leaves before it begins", Config{URL: url, Spread: -0.1}},
		{"an uplink of less than nothing", Config{URL: url, MaxUplink: -1}},
		{"an uplink that begins above its limit", Config{URL: url, MaxUplink: 1e6, StartUplink: 2e6}},
		{"an uplink too narrow for anything", Config{URL: url, MaxUplink: 10}},
		{"a form of feedback that nobody knows", Config{URL: url, Feedback: "remb"}},
		{"a congestion control that nobody knows", Config{URL: url, Controller: "bbr"}},
		{"a downlink of less than nothing", Config{URL: url, MaxBitrate: -1}},
		{"a downlink that begins with less than nothing", Config{URL: url, StartBitrate: -1}},
		{"a downlink that begins above its limit", Config{URL: url, MaxBitrate: 1e6, StartBitrate: 2e6}},
		{"unknown redundancy", Config{URL: url, Redundancy: "some"}},
		{"copies for one interface", Config{URL: url, Interfaces: []string{"lo"}, Redundancy: signal.RedundancyAll}},
		{"three interfaces", Config{URL: url, Interfaces: []string{"lo", "wlan0", "wwan0"}}},
		{"interfaces and TCP", Config{URL: url, Interfaces: []string{"lo"}, TCP: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Join(context.Background(), test.config); !errors.Is(err, ErrConfig) {
				t.Errorf("got %v, want an error around %v", err, ErrConfig)
			}
		})
	}
}

// TestUnusableInterface: Join fails before it connects.
func TestUnusableInterface(t *testing.T) {
	for _, names := range [][]string{{"lo", "lo"}, {"lo", "none-of-this-name"}} {
		config := Config{URL: "ws://localhost:1", Interfaces: names}
		if _, err := Join(context.Background(), config); !errors.Is(err, ErrInterface) {
			t.Errorf("interfaces %q: %v, expected %v", names, err, ErrInterface)
		}
	}
}

// TestMultipathIsRequested: only a client with two interfaces requests two paths.
func TestMultipathIsRequested(t *testing.T) {
	if m := (Config{Interfaces: []string{"wlan0"}}).multipath(); m != nil {
		t.Errorf("one interface requests %+v", m)
	}
	config := Config{Interfaces: []string{"wlan0", "wwan0"}, Redundancy: signal.RedundancyOff}
	if m := config.multipath(); m == nil || m.Redundancy != signal.RedundancyOff {
		t.Errorf("two interfaces request %+v", m)
	}
}

func TestConfigDefaults(t *testing.T) {
	c, err := Config{URL: "wss://sfu.example.org"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if c.Spread != 0.4 || c.Log == nil {
		t.Errorf("spread %g, log %v; want 0.4 and one that is silent", c.Spread, c.Log)
	}
	if c, err = (Config{URL: "ws://localhost", Spread: 1}).withDefaults(); err != nil || c.Spread != 1 {
		t.Errorf("got spread %g, %v; want 1, no error", c.Spread, err)
	}
}

func TestLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"ws://localhost:8080":             true,
		"ws://127.0.0.1:8080/":            true,
		"ws://[::1]:8080":                 true,
		"wss://sfu.example.org":           false,
		"ws://192.0.2.7:8080":             false,
		"ws://localhost.example.org:8080": false,
	} {
		if got := (Config{URL: url}).loopback(); got != want {
			t.Errorf("%s: loopback is %v, want %v", url, got, want)
		}
	}
}

func TestUplinkLimits(t *testing.T) {
	const near, far = "ws://localhost:8080", "ws://sfu.example.org"
	tests := []struct {
		config Config
		want   congestion.Limits
	}{
		{Config{URL: far}, congestion.Limits{Min: 500e3, Start: 2e6, Max: 1e9}},
		{Config{URL: near}, congestion.Limits{Min: 500e3, Start: 1e9, Max: 1e9}},
		{Config{URL: near, PacketConn: &net.UDPConn{}}, congestion.Limits{Min: 500e3, Start: 2e6, Max: 1e9}},
		{Config{URL: far, MaxUplink: 20e6, StartUplink: 10e6}, congestion.Limits{Min: 500e3, Start: 10e6, Max: 20e6}},
		{Config{URL: far, MaxUplink: 1e6}, congestion.Limits{Min: 500e3, Start: 1e6, Max: 1e6}},
		{Config{URL: far, MaxUplink: 200e3}, congestion.Limits{Min: 200e3, Start: 200e3, Max: 200e3}},
		{Config{URL: far, StartUplink: 2e9}, congestion.Limits{Min: 500e3, Start: 2e9, Max: 2e9}},
	}
	for _, test := range tests {
		if got := test.config.congestion().Limits(); got != test.want {
			t.Errorf("%+v: limits %+v, want %+v", test.config, got, test.want)
		}
	}
}
