package adaptation

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/testbed"
)

// stage is a server with a receiver on the same host, and a publisher on the same host or behind a link.
type stage struct {
	conference *testbed.Conference
	// The publisher's media cross the network, and its signalling crosses the relay. Both are nil if the publisher is
	// on the server's host.
	emulation *testbed.Emulation
	relay     *testbed.Relay
	rtt       time.Duration
}

// newStage starts a server. The publisher is a round trip of rtt away, or on the same host if rtt is 0.
func newStage(c config.Config, rtt time.Duration, seed uint64) (*stage, error) {
	s := &stage{rtt: rtt}
	var err error
	if rtt == 0 {
		s.conference, err = testbed.NewConference(c, nil, zap.NewNop())
		return s, err
	}
	if s.emulation, err = testbed.NewEmulation(c, seed); err != nil {
		return nil, err
	}
	s.conference = s.emulation.Conference
	if s.relay, err = testbed.NewRelay(strings.TrimPrefix(s.conference.Server.URL(), "ws://"), rtt/2); err != nil {
		s.emulation.Close()
		return nil, err
	}
	return s, nil
}

// publish joins the publisher.
func (s *stage) publish(ctx context.Context, part testbed.Part) (*testbed.Peer, error) {
	if s.emulation == nil {
		return s.conference.Join(ctx, part)
	}
	part.URL = "ws://" + s.relay.Address()
	access := netem.DefaultConfig()
	access.Delay = s.rtt / 2
	peer, _, err := s.emulation.JoinOver(ctx, access, part)
	return peer, err
}

// receive joins the receiver.
func (s *stage) receive(ctx context.Context, part testbed.Part) (*testbed.Peer, error) {
	if s.emulation == nil {
		return s.conference.Join(ctx, part)
	}
	peer, _, err := s.emulation.JoinOver(ctx, netem.DefaultConfig(), part)
	return peer, err
}

// close ends all parts.
func (s *stage) close() {
	if s.emulation == nil {
		s.conference.Close()
		return
	}
	s.emulation.Close()
	s.relay.Close()
}
