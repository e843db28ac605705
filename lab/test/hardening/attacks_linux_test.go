// Package hardening runs the attacks of package lab/hardening for some seconds each.
package hardening

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hardening"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// TestAttacksOnANetwork attacks the server's program on a network of namespaces, for a few seconds per attack. The test
// does not check that every frame is in time, which also depends on the machine: vollab check hardening does. The
// limits of processor time, memory and log are at least twice the normal use of the server, and below its use without
// its defences.
func TestAttacksOnANetwork(t *testing.T) {
	long.Test(t)
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces require root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("skipped: a bridge between network namespaces requires ip, of Debian's package iproute2: %v", err)
	}
	options := hardening.DefaultOptions()
	options.Server = program.Static().Path(t, "volsfu")
	options.OneServer = true
	options.Flood, options.After, options.Return = 3*time.Second, time.Second, time.Second
	// Floods have their effect immediately.
	floods := options
	floods.Flood, floods.After, floods.Return = 1500*time.Millisecond, 0, 0
	// bound limits the figures of all lines whose names have the given suffix.
	type bound struct {
		name        string
		least, most float64
	}
	const (
		memory    = "server's memory, grown at most"
		processor = "server's processor time beyond the quiet server's"
		lost      = "innocents' frames lost"
		// latency is the median, in milliseconds. Without an attack the median is 4 to 6 ms.
		latency = "latency p50"
	)
	tests := []struct {
		attack  string
		options hardening.Options
		bounds  []bound
	}{
		// A full socket sends nothing for three seconds, which is the kernel's timeout for a neighbour. Most frames are
		// lost then, and count with their deadline of 2 s.
		{"neighbours", options, []bound{{"tile, mean", 15, 1000}, {latency, 0, 1000}}},
		{"vanishing", options, []bound{{"tile, mean", 15, 1000}, {latency, 0, 1000}}},
		{"bystander", options, []bound{{"per answer", 0, 100}, {"beside one reply each", -100, 100}}},
		{"alerts", options, []bound{{"sessions resumed", 0, 0}}},
		{"hijack", options, []bound{{"sessions resumed", 0, 0}}},
		{"silence", options, []bound{{"toward the silent receiver after 6 s", 0, 0}}},
		{"records", floods, []bound{{"fragment: " + lost, 0, 40}, {"in session: " + lost, 0, 40}}},
		{"replay", floods, []bound{{memory, -100, 64}, {processor, -100, 25}}},
		{"messages", floods, []bound{{memory, -100, 16}, {processor, -100, 25}}},
		{"sctp", floods, []bound{
			{memory, -100, 64},
			{"fragments, full speed: " + processor, -100, 25}, {"channels, full speed: " + processor, -100, 25},
		}},
		{"joins", floods, []bound{
			{"joins refused", 0, 120}, {"logged for one address", 0, 20}, {processor, -100, 10},
		}},
		// Each attack of all at once has to have happened.
		{"everything", floods, []bound{
			{"attack: STUN requests replayed", 1, math.Inf(1)}, {"attack: handshake messages", 1, math.Inf(1)},
			{"attack: joins refused", 1, math.Inf(1)}, {"attack: ICE-TCP connections", 1, math.Inf(1)},
		}},
	}
	// The decoders have no network: package lab/hardening and test/browser test them.
	tested := map[string]bool{"decoders": true}
	for _, test := range tests {
		tested[test.attack] = true
	}
	for _, name := range hardening.Names() {
		if !tested[name] {
			t.Errorf("the attack %s is not tested", name)
		}
	}
	// These attacks send little and mostly wait, and their bounds are counts that do not depend on the load of the
	// machine. They run at the same time, each on a network of its own, after the others.
	waiting := []string{"bystander", "alerts", "hijack", "silence"}
	for _, test := range tests {
		t.Run(test.attack, func(t *testing.T) {
			if slices.Contains(waiting, test.attack) {
				t.Parallel()
			}
			lines, err := hardening.Named(test.attack, test.options, lab.Progress{}).Run(t.Context())
			if errors.Is(err, hardening.ErrPrivileges) {
				t.Skipf("skipped: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range append(test.bounds, bound{"times the server has ended", 0, 0}) {
				found := false
				for _, l := range lines {
					if !strings.HasSuffix(l.Name, b.name) {
						continue
					}
					found = true
					t.Log(l)
					if l.Figure < b.least || l.Figure > b.most {
						t.Errorf("%s: %v, expected %v to %v", l.Name, l.Value(), b.least, b.most)
					}
				}
				if !found {
					t.Errorf("no figure whose name ends with %q in %v", b.name, lines)
				}
			}
		})
	}
}
