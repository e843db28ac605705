package interop

import (
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
)

var (
	bridgeFrames = flag.Int("bridge.frames", 200, "frames that bridges carry each way in TestBridge")
	bridgeRate   = flag.Int("bridge.rate", 30, "frames per second of each connector in TestBridge")
)

// bridgeFrameBytes is the size of the frames.
const bridgeFrameBytes = 100_000

// TestBridge has volbridge stand between stand-ins for VR2Gather's connector and a server.
func TestBridge(t *testing.T) {
	long.Test(t)
	tools := buildBridgeTools(t)
	t.Run("frames each way", func(t *testing.T) { bridgeEachWay(t, tools) })
	t.Run("ready datagram lost", func(t *testing.T) { bridgeReadyLost(t, tools) })
	t.Run("garbage", func(t *testing.T) { bridgeGarbage(t, tools) })
	t.Run("qualities", func(t *testing.T) { bridgeQualities(t, tools) })
	t.Run("bridge killed", func(t *testing.T) { bridgeKilled(t, tools) })
	t.Run("server restarts", func(t *testing.T) { bridgeServerRestarts(t, tools) })
}

// openConference starts a server that listens at an address.
func openConference(t *testing.T, listen string) *testbed.Conference {
	t.Helper()
	config := testbed.ConferenceConfig()
	config.Server.Listen = listen
	conference, err := testbed.NewConference(config, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return conference
}

// side is a connector with its bridge.
type side struct {
	bridge    *bridgeProcess
	connector *standIn
}

// openSides starts two connectors, each with its bridge, and waits until frames flow in both directions. The parameter
// more has further arguments of each bridge.
func openSides(t *testing.T, tools bridgeTools, url string, tiles, qualities int, more ...[]string) [2]side {
	t.Helper()
	var sides [2]side
	for i := range sides {
		port := portPair(t)
		var arguments []string
		if i < len(more) {
			arguments = more[i]
		}
		sides[i] = side{startBridge(t, tools, url, port, i+1, tiles, qualities, arguments...),
			startConnector(t, tools, port, i+1)}
		sides[i].connector.say("listen")
	}
	meet(t, sides, tiles, qualities)
	return sides
}

// meet lets both sides send until each has received frames of the other. The first frames define the bridge's
// publications, and are not forwarded.
func meet(t *testing.T, sides [2]side, tiles, qualities int) {
	t.Helper()
	for i := range sides {
		from, to := sides[i].connector, sides[1-i].connector
		eventually(t, "the bridge has found the connector", func() bool { return from.count("ready") == 1 })
		before := to.count("received")
		eventually(t, fmt.Sprintf("connector %d has heard of the other", 2-i), func() bool {
			done := from.count("done tiles")
			from.say("tiles 1 2000 10000 %d %d", tiles, qualities)
			eventually(t, "a frame is sent", func() bool { return from.count("done tiles") > done })
			return to.count("received") > before
		})
	}
}

// settle waits until no more frames arrive, and returns the total number of frames of a kind.
func settle(t *testing.T, kind string, to, from *standIn, want int) int {
	t.Helper()
	// 3 s in looks, so that a stall of this program is no silence.
	const quiet = 300
	came, _ := to.heard(kind, from)
	for looks := 0; came < want && looks < quiet; looks++ {
		time.Sleep(10 * time.Millisecond)
		if now, _ := to.heard(kind, from); now != came {
			came, looks = now, 0
		}
	}
	return came
}

// bridgeEachWay sends frames and sound in both directions at once. No frame may be changed or lost without being
// counted: a busy machine may drop some, which is an error only if the test needs the exact number.
func bridgeEachWay(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	sides := openSides(t, tools, conference.Server.URL(), 1, 1)
	const sounds, soundBytes, soundMicroseconds = 100, 2000, 20_000
	var before [2]int
	for i := range sides {
		before[i], _ = sides[1-i].connector.heard("tile", sides[i].connector)
		sides[i].connector.say("audio 5 %d %d", soundBytes, soundMicroseconds)
	}
	for _, s := range sides {
		s.connector.say("tiles %d %d %d 1 1", *bridgeFrames, bridgeFrameBytes, 1_000_000 / *bridgeRate)
	}
	for i := range sides {
		from := sides[i].connector
		for end := time.Now().Add(time.Duration(*bridgeFrames)*time.Second/time.Duration(*bridgeRate) +
			patience); from.count("sent") < *bridgeFrames; {
			if time.Now().After(end) {
				t.Fatalf("connector %d is still sending", i+1)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	var came [2]int
	for i := range sides {
		came[i] = settle(t, "tile", sides[1-i].connector, sides[i].connector, before[i]+*bridgeFrames) - before[i]
		sides[i].connector.say("audio %d %d %d", sounds, soundBytes, soundMicroseconds)
	}
	for i := range sides {
		heard := sides[1-i].connector
		eventually(t, "sound arrives", func() bool {
			n,
				_ := heard.heard("audio", sides[i].connector)
			return n >= sounds/2
		})
	}
	var summaries [2]*bridgeSummary
	for i := range sides {
		summaries[i] = sides[i].bridge.stop()
	}
	measureBridges(t, summaries)
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "bridge.frames" })
	for i := range sides {
		from, to := sides[i].connector, sides[1-i].connector
		lost := *bridgeFrames - came[i]
		refused := to.refused()
		counted := summaries[i].lost() + summaries[1-i].lost() + int64(len(refused))
		t.Logf("connector %d: %d of %d frames of %d bytes arrived; %d frames are counted as lost on the way", i+1,
			came[i], *bridgeFrames, bridgeFrameBytes, counted)
		for _, kind := range []string{"tile", "audio"} {
			_, wrong := to.wrong(kind, from)
			measured(t, claim.Exactly(fmt.Sprintf("%s frames that differ from those that connector %d sent", kind, i+1),
				int64(wrong), "", 0))
		}
		arrived := fmt.Sprintf("tile frames of connector %d that arrived at the other, of %d", i+1, *bridgeFrames)
		if asked {
			measured(t, claim.Exactly(arrived, int64(came[i]), "", int64(*bridgeFrames)))
		} else {
			measured(t, claim.Information(arrived, float64(came[i]), ""))
		}
		for _, text := range refused {
			if !strings.HasSuffix(text, "incomplete") || asked {
				t.Errorf("connector %d: %s", 2-i, text)
			}
		}
		if int64(lost) > counted || asked && lost > 0 || came[i] == 0 {
			t.Errorf("%d of %d frames of connector %d did not arrive, %d are counted as lost", lost, *bridgeFrames,
				i+1, counted)
		}
	}
}

// bridgeReadyLost loses the first ready datagrams.
func bridgeReadyLost(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	port := portPair(t)
	// At first there is no listener, and sent data is lost. Then there is a listener that does not answer.
	b := startBridge(t, tools, conference.Server.URL(), port, 1, 1, 1)
	deaf, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := deaf.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	datagram := make([]byte, vr2gather.MaxDatagram)
	for range 3 {
		n, from, err := deaf.ReadFromUDP(datagram)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := vr2gather.ParseDatagram(datagram[:n]); err != nil || n != vr2gather.DatagramSize ||
			d.Type != vr2gather.DatagramReady || !from.IP.IsLoopback() {
			t.Fatalf("%d bytes from %v, expected a ready datagram: %v", n, from, err)
		}
	}
	_ = deaf.Close()
	connector := startConnector(t, tools, port, 1)
	connector.say("listen")
	eventually(t, "the bridge has found the connector", func() bool { return connector.count("ready") == 1 })
	connector.say("tiles 3 2000 10000 1 1")
	eventually(t, "frames are sent", func() bool { return connector.count("done tiles") == 1 })
	eventually(t, "the bridge is in the room", func() bool { return participants(t, conference) == 1 })
	s := b.stop()
	if s.Sessions != 1 {
		t.Errorf("summary is %+v, expected one session", s)
	}
	measured(t, claim.Exactly("frames that came through a bridge whose first three ready datagrams were lost",
		int64(s.FromConnector.Frames), "", 3))
}

// participants returns the number of participants in the bridges' room.
func participants(t *testing.T, conference *testbed.Conference) int {
	t.Helper()
	peer, err := conference.Join(t.Context(), testbed.Part{Room: "vr2gather", Identity: "witness"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Session.Close() }()
	return len(peer.Session.Participants())
}

// bridgeGarbage sends invalid data from a connector, and valid data from another address. Frames continue.
func bridgeGarbage(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	sides := openSides(t, tools, conference.Server.URL(), 2, 1)
	const garbage, foreign = 40, 5
	from, to := sides[0].connector, sides[1].connector
	from.say("garbage %d", garbage)
	eventually(t, "garbage is sent", func() bool { return from.count("done garbage") == 1 })
	bridgePort := strings.TrimPrefix(sides[0].bridge.cmd.Args[2], ":")
	stranger, err := net.Dial("udp4", "127.0.0.1:"+bridgePort)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	for number := range uint32(foreign) {
		p := vr2gather.Packet{Kind: volumetric.KindVideo, Frame: 1000 + number, Length: 4, Data: []byte("evil")}
		datagram, err := vr2gather.AppendPacketDatagram(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.Write(datagram); err != nil {
			t.Fatal(err)
		}
	}
	meet(t, sides, 2, 1)
	if _, wrong := to.wrong("tile", from); wrong > 0 || len(to.refused()) > 0 {
		t.Errorf("%d frames differ from the sent ones, and %q could not be used", wrong, to.refused())
	}
	dropped := sides[0].bridge.stop().Dropped
	sides[1].bridge.stop()
	malformed := dropped["malformed_datagrams"] + dropped["malformed_packets"]
	measured(t, claim.Exactly("datagrams of garbage that were counted and dropped", malformed, "", garbage))
	measured(t, claim.Exactly("datagrams of strangers that were counted and dropped", dropped["foreign_datagrams"],
		"", foreign))
}

// bridgeQualities lets one connector choose the qualities that it receives, as VR2Gather does: without a client number.
func bridgeQualities(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	sides := openSides(t, tools, conference.Server.URL(), 1, 3)
	from, to := sides[0].connector, sides[1].connector
	from.say("tiles 1000000 3000 30000 1 3")
	for _, choice := range []struct{ text, want string }{{"0,2", "2"}, {"0,0", "0"}, {"1,1;", "1"}, {"77,2;0,9", "1"},
		{"0,2", "2"}} {
		to.say("control %s", choice.text)
		before := to.count("received")
		eventually(t, "quality "+choice.want,
			func() bool { return to.latest() == choice.want && to.count("received") > before+5 })
	}
	to.say("control 0,-1")
	eventually(t, "nothing comes", func() bool {
		before := to.count("received")
		time.Sleep(500 * time.Millisecond)
		return to.count("received") == before
	})
	to.say("control 0,1")
	eventually(t, "quality 1", func() bool { return to.latest() == "1" })
	if refused := to.refused(); len(refused) > 0 {
		t.Errorf("%q could not be used", refused)
	}
	sides[0].bridge.stop()
	if dropped := sides[1].bridge.stop().Dropped; dropped["choices_ignored"] != 2 {
		t.Errorf("dropped %v, expected 2 choices of missing tiles", dropped)
	}
}

// bridgeKilled replaces a killed bridge by another one, between connectors that continue.
func bridgeKilled(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	sides := openSides(t, tools, conference.Server.URL(), 1, 1)
	killed := sides[0].bridge
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-killed.ended
	port, err := strconv.Atoi(strings.TrimPrefix(killed.cmd.Args[2], ":"))
	if err != nil {
		t.Fatal(err)
	}
	sides[0].bridge = startBridge(t, tools, conference.Server.URL(), port, 1, 1, 1)
	meet(t, sides, 1, 1)
	for i, s := range sides {
		if refused := s.connector.refused(); len(refused) > 0 {
			t.Errorf("connector %d: %q could not be used", i+1, refused)
		}
		s.bridge.stop()
	}
}

// bridgeServerRestarts stops and restarts the server.
func bridgeServerRestarts(t *testing.T, tools bridgeTools) {
	conference := openConference(t, "127.0.0.1:0")
	url := conference.Server.URL()
	sides := openSides(t, tools, url, 1, 1)
	conference.Close()
	conference = openConference(t, strings.TrimPrefix(url, "ws://"))
	defer conference.Close()
	meet(t, sides, 1, 1)
	for i, s := range sides {
		if refused := s.connector.refused(); len(refused) > 0 {
			t.Errorf("%q could not be used", refused)
		}
		if n := s.bridge.stop().Sessions; n < 2 {
			t.Errorf("bridge %d had %d sessions, expected another after the server's end", i+1, n)
		}
	}
}
