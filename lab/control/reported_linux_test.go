package control

import (
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestMarksAreReported: the marks that DualPI2 makes on the links of a publisher and of a receiver are those that the
// server and the receiver count, and those that the receiver reports. The network cards coalesce.
func TestMarksAreReported(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	access, err := netem.ParseProfile("delay=5ms,rate=8Mbit,queue=dualpi2:200ms")
	if err != nil {
		t.Fatal(err)
	}
	layout := topology.Star(hostServer, map[string]topology.Link{hostPublisher: topology.Duplex(access),
		hostReceiver: topology.Duplex(access)})
	layout.IPv6 = true
	for name := range layout.Hosts {
		layout.Hosts[name] = forwarding
	}
	n := topologytest.Start(t, layout)
	places := make(map[string]*namespace.Namespace)
	for name := range layout.Hosts {
		places[name] = behind(t, n, name)
	}
	for family, address := range map[string]netip.Addr{"IPv4": n.Address(hostServer), "IPv6": n.Address6(hostServer)} {
		t.Run(family, func(t *testing.T) { marksAreReported(t, n, places, address) })
	}
}

func marksAreReported(t *testing.T, n *topology.Network, places map[string]*namespace.Namespace, address netip.Addr) {
	var conference *testbed.Conference
	var err error
	places[hostServer].Do(func() {
		c := testbed.ConferenceConfig()
		c.Server.Listen, c.Media.Address = netip.AddrPortFrom(address, 0).String(), address.String()
		conference, err = testbed.NewConference(c, nil, zap.NewNop())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conference.Close()
	n.Restart()
	join := func(host string, part testbed.Part) (peer *testbed.Peer) {
		t.Helper()
		part.Room, part.Identity, part.Feedback = liveRoom, host, client.FeedbackCCFB
		places[host].Do(func() { peer, err = conference.Join(t.Context(), part) })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-peer.Connected:
		case <-time.After(patience):
			t.Fatalf("%s did not connect", host)
		}
		return peer
	}
	receiver := join(hostReceiver, testbed.Part{Receive: true})
	// Three qualities of 2, 4 and 8 Mbit/s in media: the links are busy.
	publisher := join(hostPublisher, testbed.Part{Seed: 1, Loads: []testbed.Load{{Name: livePublication, Tiles: 2,
		Qualities: 3, FrameBytes: 16_000, Step: 2, Variation: 0.2, Rate: frameRate}}})
	made := func(host string, way topology.Way) topology.WireStatistics {
		s := n.Statistics()
		return s.Wire(host, way)
	}
	wait.Until(t, "both links have marked", func() bool {
		return made(hostPublisher, topology.Forth).Marked > 10 && made(hostReceiver, topology.Back).Marked > 10
	})
	publisher.StopPublishing()
	var facts string
	wait.Until(t, "the counts of marks agree", func() bool {
		up := made(hostPublisher, topology.Forth).Marked + made(hostReceiver, topology.Forth).Marked
		down := made(hostReceiver, topology.Back)
		counted, _ := conference.Server.Codepoints()
		got, reported := receiver.Session.ECN(), conference.Server.Stats().TransportMarked
		// The server's reports to the receiver may be marked, too, and are not RTP.
		others := down.Classes.L4S.Packets - got.ECT1 - got.CE
		facts = fmt.Sprintf("made %d and %d, counted %d and %d, reported %d; %d packets to the receiver were not RTP",
			up, down.Marked, counted[ecn.CE], got.CE, reported, others)
		return counted[ecn.CE] == up && got.CE <= down.Marked && down.Marked <= got.CE+others && reported == got.CE
	})
	t.Log(facts)
}
