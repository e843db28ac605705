package main_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestTwoInterfaces: two programs in C use two interfaces each, with copies of all packets. Both count the
// arrivals on each interface, and frames continue without the first interface.
func TestTwoInterfaces(t *testing.T) {
	long.Test(t)
	const address = "10.9.9.1"
	here, there := namespace.New(t), namespace.New(t)
	namespace.TwoCables(t, here, there, address)
	program := compile(t, filepath.Join("testdata", "peer.c"))
	settings := testbed.ConferenceConfig()
	// The websockets use the other cable.
	settings.Server.Listen, settings.Admin.Listen, settings.Media.Address = "10.9.1.1:0", "", address
	token, err := testbed.RequireToken(&settings)
	if err != nil {
		t.Fatal(err)
	}
	var conference *testbed.Conference
	there.Do(func() { conference, err = testbed.NewConference(settings, nil, zap.NewNop()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conference.Close)
	enter := func(identity string) *peer {
		return startBy(t, func(c *exec.Cmd) (err error) {
			here.Do(func() { err = c.Start() })
			return err
		}, program, conference.Server.URL(), "room", identity, token, "n0,n1")
	}
	carol, dave := enter("carol"), enter("dave")
	dave.await("both interfaces carry packets", func() bool {
		dave.ask("statistics", "statistics ")
		paths, copied := dave.paths()
		return copied > 50 && paths[0].First+paths[0].Repeated > 50 && paths[1].First+paths[1].Repeated > 50
	})
	here.Run(t, "ip link set n0 down")
	from := dave.lineCount()
	dave.await("frames arrive without the first interface", func() bool {
		return dave.said(from, "frame carol body ") >= 3*enough
	})
	for _, p := range []*peer{carol, dave} {
		p.finish()
	}
}

// pathCounts are the counts of one interface in the statistics.
type pathCounts struct {
	First    uint64 `json:"packets_first"`
	Repeated uint64 `json:"packets_repeated"`
}

// paths returns the counts of the peer's last statistics.
func (p *peer) paths() (paths [2]pathCounts, copied uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		text, found := strings.CutPrefix(line, "statistics ")
		if !found {
			continue
		}
		var statistics struct {
			Totals struct {
				Paths         [2]pathCounts `json:"paths"`
				PacketsCopied uint64        `json:"packets_copied"`
			} `json:"totals"`
		}
		if err := json.Unmarshal([]byte(text), &statistics); err != nil {
			p.t.Fatal(fmt.Errorf("statistics: %w: %s", err, text))
		}
		paths, copied = statistics.Totals.Paths, statistics.Totals.PacketsCopied
	}
	return paths, copied
}
