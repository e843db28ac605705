package paper001

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/experiment"
)

// volsfuUnpaced names volsfu sending frames at once, as the TCP transports do, and as the paper's server does, which has neither pacing nor estimation. By default
// volsfu spreads a frame over 0.4 of its interval, 27 ms at 15 frames per second, so that narrow queues lose nothing of it.
const volsfuUnpaced = "volsfu-unpaced"

// unpacedSpread is the part of a frame's interval over which its publisher sends it where volsfu is not paced, since 0 stands for the default: 1.3 ms at 15
// frames per second. Not less, since a frame of level 9 is 200 packets, and the receiver's socket has the system's buffer, which holds about 90 of them
// (212,992 bytes, of which Linux charges some 2,300 for each): the receiver has to read while they come.
const unpacedSpread = "0.02"

// unpacedUplink is the estimate that its publishers begin with, and keep while they send far less: on another host they would begin with 2 Mbit/s, and 2.5 times what
// they find spreads a frame of level 7 over 7 ms all the same. 2.5 times 100 Mbit/s take 0.7 ms for it, less than the spread.
const unpacedUplink = "100Mbit"

// system is what carries frames, and the flags of vollab peer that make it so.
type system struct {
	transport     baseline.Transport
	server, sends []string // flags of the server, and of those who publish
}

// unpaced is volsfu without pacing; more are flags of its server.
func unpaced(more ...string) system {
	return system{transport: baseline.Volsfu, server: append([]string{"--pacing", "off"}, more...), sends: []string{"--spread", unpacedSpread, "--uplink", unpacedUplink}}
}

// note tells the report how frames are paced, which decides on the latency of short frames.
func (s *system) note(o *experiment.Outcome) {
	switch {
	case s.transport != baseline.Volsfu:
	case len(s.sends) > 0:
		o.Note("volsfu-unpaced is volsfu with its server's pacing off, and with publishers that send a frame within %s of its interval and take the way to the server "+
			"to carry %s/s until it tells otherwise. The TCP baselines do not pace either, nor does the paper's server.", unpacedSpread, unpacedUplink)
	default:
		o.Note("volsfu by default spreads a frame over 0.4 of its interval, so that bursts lose nothing in narrow queues: its last packet leaves 27 ms after the first at 15 " +
			"frames per second, 13 ms at 30, until its estimates let it leave sooner.")
	}
}

// segmented are the flags of a publisher whose segments have a length.
func segmented(s system, length time.Duration) []string {
	if s.transport != baseline.DASH {
		return nil
	}
	return []string{"--segment", length.String()}
}

// wrongSegment tells whether a system does not take segments of a length.
func wrongSegment(s system, length time.Duration) bool {
	return length < 0 || length > 0 && s.transport != baseline.DASH
}

func errSegment(length time.Duration) error {
	return fmt.Errorf("segment: expected 0 or more, and more only of dash, got %v", length)
}

// noteSegment tells the report how long segments are, which decides on when another quality begins.
func (s *system) noteSegment(o *experiment.Outcome, length time.Duration) {
	switch {
	case s.transport != baseline.DASH:
	case length == 0:
		o.Note("dash with a segment of 0 has segments of one frame each. Segments are sent and received while they come into being, whatever their length.")
	default:
		o.Note("dash with a segment of %v sends and receives it while it comes into being; another quality begins with the next one.", length)
	}
}

// oneWay are the systems that carry a session's frames one way.
var oneWay = map[string]system{
	string(baseline.DirectTCP): {transport: baseline.DirectTCP},
	string(baseline.Reflector): {transport: baseline.Reflector},
	string(baseline.Websocket): {transport: baseline.Websocket},
	string(baseline.DASH):      {transport: baseline.DASH},
	string(baseline.Pion):      {transport: baseline.Pion},
	string(baseline.Volsfu):    {transport: baseline.Volsfu},
	volsfuUnpaced:              unpaced(),
}

// bothWays are those of a dance: TCP that switches, DASH, and volsfu with what its server asks publishers for, warm being everything, as in the paper.
var bothWays = map[string]system{
	"direct-tcp":        {transport: baseline.TCPSwitching},
	"dash":              {transport: baseline.DASH},
	"volsfu-warm":       {transport: baseline.Volsfu, server: asks(demand.Warm)},
	"volsfu-neighbours": {transport: baseline.Volsfu, server: asks(demand.Neighbours)},
	"volsfu-strict":     {transport: baseline.Volsfu, server: asks(demand.Strict)},
	volsfuUnpaced:       unpaced(asks(demand.Warm)...),
}

func asks(policy demand.Policy) []string { return []string{"--suppression", string(policy)} }
