package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/direct/producer"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/direct/rendezvous"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/direct/stream"
	"github.com/volsfu/volsfu/internal/transport"
)

// tell tells the consumer of the frames sent, and people what happens.
func (s *directSender) tell(ctx context.Context, outlet producer.Outlet) {
	ticker, lines := time.NewTicker(tellInterval), time.NewTicker(lineInterval)
	defer ticker.Stop()
	defer lines.Stop()
	before, at := s.books.Report(), time.Now()
	for {
		select {
		case <-ticker.C:
			s.tellSent()
		case now := <-lines.C:
			report := s.books.Report()
			_, _ = fmt.Fprintln(s.console, directLine(&report, &before, now.Sub(at), outlet.Estimate()))
			before, at = report, now
		case <-ctx.Done():
			s.tellSent()
			return
		}
	}
}

func (s *directSender) tellSent() {
	if list := s.untold.take(); len(list) > 0 {
		// Where this fails the connection is gone, which its reader tells.
		_ = s.conn.Send(rendezvous.Message{Type: rendezvous.TypeSent, Sent: list})
	}
}

// Datagram implements carry.Taker: greetings say where the consumer is, which must be where its websocket comes from; the rest are its reports.
func (s *directSender) Datagram(datagram []byte, from netip.AddrPort, now time.Time) {
	if from.Addr().Unmap() != s.conn.Remote() || !stream.IsRTCP(datagram) {
		return
	}
	if len(datagram) < 8 || binary.BigEndian.Uint32(datagram[4:]) != s.other.SSRC {
		return
	}
	if !s.udp.Aimed() {
		s.udp.Aim(from)
		close(s.aimed)
	}
	for _, packet := range stream.Compound(datagram) {
		s.RTCP(packet, now)
	}
}

// RTCP takes one RTCP packet of the consumer.
func (s *directSender) RTCP(packet []byte, now time.Time) {
	outlet := s.outlet.Load()
	if outlet == nil {
		return
	}
	rtt := time.Duration(0)
	if s.peer != nil {
		rtt = s.peer.RTT()
	}
	outlet.RTCP(packet, now, rtt)
}

// directReports is the sink of the producer's peer connection. The consumer sends RTCP only.
type directReports struct {
	transport.NoOpSink
	sender *directSender
}

// RTCP implements transport.Sink.
func (r directReports) RTCP(packet []byte, now time.Time) { r.sender.RTCP(packet, now) }
