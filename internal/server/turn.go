package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/iceservers"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/pkg/signal"
)

// selfTestTime bounds the self-test of TURN.
const selfTestTime = 5 * time.Second

// iceServers returns the function that gives the client of a session its ICE servers: the server's own TURN first, then
// the configured ones.
func (s *Server) iceServers(configured []string) (func(session string) []signal.ICEServer, error) {
	external, err := iceservers.Parse(configured)
	if err != nil {
		return nil, fmt.Errorf("ice_servers: %w", err)
	}
	return func(session string) (servers []signal.ICEServer) {
		now := time.Now()
		if s.turn != nil {
			if own := s.turn.ICEServer(session, now); len(own.URLs) > 0 {
				servers = append(servers, own)
			}
		}
		for _, server := range external {
			servers = append(servers, server.For(session, now))
		}
		return servers
	}, nil
}

// relayedAddress returns the address from which the media port receives what a relayed address sends.
func (s *Server) relayedAddress(told netip.AddrPort) (netip.AddrPort, bool) {
	if s.turn == nil {
		return netip.AddrPort{}, false
	}
	return s.turn.RelayedAddress(told)
}

// startTURN starts the TURN server if clients can reach it over UDP and TCP or over TLS.
func (s *startup) startTURN() error {
	c := s.config.TURN
	if c.Listen == "" && (!c.TLS || s.tls == nil) {
		return nil
	}
	turn, err := turnserver.Start(turnserver.Options{
		Config: c, Media: s.endpoint, HasSession: s.node.HasSession, Guard: s.guard, Failed: s.fail,
	})
	if err != nil {
		return err
	}
	s.turn = turn
	return metrics.Register(s.registry, turnReadings(turn, s.turnWorks)...)
}

// turnResult is the result of the self-test of TURN.
type turnResult struct{ err error }

// turnWorks reports whether the self-test of TURN has succeeded.
func (s *Server) turnWorks() bool {
	result := s.turnTest.Load()
	return result != nil && result.err == nil
}

// turnState returns the state of TURN, nil without a TURN server.
func (s *Server) turnState() *admin.TURNState {
	if s.turn == nil {
		return nil
	}
	state := &admin.TURNState{URLs: s.turn.URLs()}
	if result := s.turnTest.Load(); result != nil {
		state.Tested = true
		if result.err != nil {
			state.Error = result.err.Error()
		}
	}
	return state
}

// toldAddresses returns the addresses of the media port that clients are told.
func (s *Server) toldAddresses() []string {
	told := []string{}
	for _, address := range s.endpoint.Addresses() {
		told = append(told, address.String())
	}
	return told
}

// servesTURN reports whether clients use TURN over TLS on the listener of signalling.
func (s *Server) servesTURN() bool { return s.turn != nil && s.config.TURN.TLS && s.tls != nil }

// turnReadings returns the readings of the TURN server.
func turnReadings(turn *turnserver.Server, works func() bool) []metrics.Reading {
	gauge := func(name string, value func() int) metrics.Reading {
		return metrics.Reading{Name: name, Value: func() float64 { return float64(value()) }}
	}
	count := func(name, label string, value func(turnserver.Stats) uint64) metrics.Reading {
		return metrics.Counted(name, label, func() uint64 { return value(turn.Stats()) })
	}
	readings := []metrics.Reading{
		gauge(metrics.TURNAllocations, func() int { return turn.Stats().Allocations }),
		gauge(metrics.TURNConnections, func() int { return turn.Stats().Connections }),
		gauge(metrics.TURNWorks, func() int {
			if works() {
				return 1
			}
			return 0
		}),
		count(metrics.TURNPackets, "up", func(s turnserver.Stats) uint64 { return s.PacketsUp }),
		count(metrics.TURNPackets, "down", func(s turnserver.Stats) uint64 { return s.PacketsDown }),
		count(metrics.TURNBytes, "up", func(s turnserver.Stats) uint64 { return s.BytesUp }),
		count(metrics.TURNBytes, "down", func(s turnserver.Stats) uint64 { return s.BytesDown }),
	}
	for _, reason := range turnserver.Reasons() {
		readings = append(readings,
			count(metrics.TURNRefused, reason, func(s turnserver.Stats) uint64 { return s.Refused[reason] }))
	}
	return readings
}

// announceAddresses logs the addresses that clients are told, and tests the TURN server in a goroutine.
func (s *Server) announceAddresses() {
	for _, err := range s.endpoint.SilentSTUNServers() {
		s.log.Warn("a STUN server of media.stun_servers has reported no address: clients outside this host's networks "+
			"are not told its address", zap.Error(err))
	}
	protocols := "udp"
	if s.endpoint.AcceptsTCP() {
		protocols = "udp and tcp"
	}
	told := s.toldAddresses()
	for i := range told {
		told[i] += " " + protocols
	}
	fields := []zap.Field{zap.Strings("media", told)}
	if s.turn != nil {
		fields = append(fields, zap.Strings("turn", s.turn.URLs()))
	}
	s.log.Info("clients are told these addresses", fields...)
	if s.turn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), selfTestTime)
	tested := make(chan struct{})
	go func() {
		defer close(tested)
		defer cancel()
		s.testTURN(ctx)
	}()
	s.endTURNTest = func() {
		cancel()
		<-tested
	}
}

// testTURN tests the TURN server and logs the result.
func (s *Server) testTURN(ctx context.Context) {
	urls := s.turn.LocalURLs()
	if s.turn.ServesTLS() {
		urls = append(urls, "turns:"+strings.TrimPrefix(s.URL(), "wss://")+"?transport=tcp")
	}
	err := s.turn.SelfTest(ctx, urls, s.endpoint)
	s.turnTest.Store(&turnResult{err})
	if err != nil {
		if !s.stopping.Load() {
			s.log.Error("TURN does not work: clients that need a relay cannot join", zap.Error(err))
		}
		return
	}
	s.log.Info("TURN works: a packet has passed through it to the media port on each URL", zap.Strings("tested", urls))
}

// listenerPort returns the port of a TCP listener.
func listenerPort(listener net.Listener) uint16 {
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		return address.AddrPort().Port()
	}
	return 0
}
