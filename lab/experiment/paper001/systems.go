package paper001

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/experiment"
)

// volsfuUnpaced is the name of volsfu if it sends frames at once, like the TCP transports and the paper's server, which
// has neither pacing nor estimation. By default volsfu spreads a frame over 0.4 of its interval, 27 ms at 15 frames per
// second, to avoid losses in short queues.
const volsfuUnpaced = "volsfu-unpaced"

// unpacedSpread is the share of a frame's interval over which a publisher sends the frame if volsfu is not paced: 1.3
// ms at 15 frames per second. 0 would select the default. A smaller value would lose packets: a frame of level 9 is 200
// packets, and the receiver's socket has the system's buffer, which holds about 90 packets (212,992 bytes, of which
// Linux charges some 2,300 for each). The receiver must therefore read during the arrival.
const unpacedSpread = "0.02"

// unpacedUplink is the initial estimate of publishers without pacing, which they keep while they send far less. On
// another host they would start at 2 Mbit/s, and 2.5 times the estimate would still spread a frame of level 7 over 7
// ms. At 2.5 times 100 Mbit/s the frame takes 0.7 ms, less than the spread.
const unpacedUplink = "100Mbit"

// system is a transport with the flags of vollab peer that configure the transport.
type system struct {
	transport     baseline.Transport
	server, sends []string // flags of the server, and of publishers
}

// unpaced returns volsfu without pacing. more has additional flags of the server.
func unpaced(more ...string) system {
	return system{transport: baseline.Volsfu, server: append([]string{"--pacing", "off"}, more...),
		sends: []string{"--spread", unpacedSpread, "--uplink", unpacedUplink}}
}

// note adds a note on the pacing of frames, which determines the latency of short frames.
func (s *system) note(o *experiment.Outcome) {
	switch {
	case s.transport != baseline.Volsfu:
	case len(s.sends) > 0:
		o.Note("volsfu-unpaced is volsfu with its server's pacing off, and with publishers that send a frame within "+
			"%s of its interval and assume %s/s on the path to the server until they have an estimate. The TCP "+
			"baselines do not pace either, nor does the paper's server.", unpacedSpread, unpacedUplink)
	default:
		o.Note("By default, volsfu spreads a frame over 0.4 of its interval, so that bursts cause no losses in short " +
			"queues: its last packet leaves 27 ms after the first at 15 frames per second and 13 ms at 30, until the " +
			"estimates allow less.")
	}
}

// segmented returns the flags of a publisher with a segment length.
func segmented(s system, length time.Duration) []string {
	if s.transport != baseline.DASH {
		return nil
	}
	return []string{"--segment", length.String()}
}

// wrongSegment reports whether a system does not accept a segment length.
func wrongSegment(s system, length time.Duration) bool {
	return length < 0 || length > 0 && s.transport != baseline.DASH
}

func errSegment(length time.Duration) error {
	return fmt.Errorf("segment: expected 0, or more for dash, got %v", length)
}

// noteSegment adds a note on the length of segments, which determines when another quality begins.
func (s *system) noteSegment(o *experiment.Outcome, length time.Duration) {
	switch {
	case s.transport != baseline.DASH:
	case length == 0:
		o.Note("dash with a segment of 0 has segments of one frame each. Segments of every length are sent and " +
			"received while they are produced.")
	default:
		o.Note("dash with a segment of %v sends and receives the segment while it is produced; another quality begins "+
			"with the next segment.", length)
	}
}

// oneWay are the systems of one-way sessions.
var oneWay = map[string]system{
	string(baseline.DirectTCP): {transport: baseline.DirectTCP},
	string(baseline.Reflector): {transport: baseline.Reflector},
	string(baseline.Websocket): {transport: baseline.Websocket},
	string(baseline.DASH):      {transport: baseline.DASH},
	string(baseline.Pion):      {transport: baseline.Pion},
	string(baseline.Volsfu):    {transport: baseline.Volsfu},
	volsfuUnpaced:              unpaced(),
}

// bothWays are the systems of a dance: TCP that switches, DASH, and volsfu with a policy of its server's demand. The
// policy warm requests everything, as in the paper.
var bothWays = map[string]system{
	"direct-tcp":        {transport: baseline.TCPSwitching},
	"dash":              {transport: baseline.DASH},
	"volsfu-warm":       {transport: baseline.Volsfu, server: asks(demand.Warm)},
	"volsfu-neighbours": {transport: baseline.Volsfu, server: asks(demand.Neighbours)},
	"volsfu-strict":     {transport: baseline.Volsfu, server: asks(demand.Strict)},
	volsfuUnpaced:       unpaced(asks(demand.Warm)...),
}

func asks(policy demand.Policy) []string { return []string{"--suppression", string(policy)} }
