package edge

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/test/traffic"
	"github.com/volsfu/volsfu/test/wait"
)

// stream sends numbered packets from a to b and counts what arrives.
type stream struct {
	*traffic.Train
	bed *bed
}

// newStream sends a packet per millisecond until stop or end.
func (b *bed) newStream() *stream {
	b.t.Helper()
	var from, to *net.UDPConn
	var err, err2 error
	source := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("a"), 5000))
	destination := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("b"), 6000))
	b.hosts["b"].Do(func() { to, err = net.ListenUDP("udp", destination) })
	b.hosts["a"].Do(func() { from, err2 = net.DialUDP("udp", source, destination) })
	if err := errors.Join(err, err2); err != nil {
		b.t.Fatal(err)
	}
	s, err := traffic.StartTrain(from, to, time.Millisecond, 200)
	if err != nil {
		b.t.Fatal(err)
	}
	return &stream{s, b}
}

// more waits until n more packets were sent.
func (s *stream) more(n int) {
	before, _ := s.Counts()
	wait.Until(s.bed.t, "packets are sent", func() bool {
		sent, _ := s.Counts()
		return sent >= before+n
	})
}

// end ends the stream.
func (s *stream) end() {
	s.bed.t.Helper()
	if _, err := s.Stop(0); err != nil {
		s.bed.t.Error(err)
	}
}

// stop ends the stream, and fails the test unless every packet arrived exactly once.
func (s *stream) stop() {
	s.bed.t.Helper()
	datagrams, err := s.Stop(2 * time.Second)
	if err != nil {
		s.bed.t.Error(err)
	}
	if lost, repeated := traffic.Tally(datagrams); lost != nil || repeated != nil || len(datagrams) == 0 {
		s.bed.t.Errorf("of %d packets, %d were lost, %v, and %d arrived more than once, %v", len(datagrams), len(lost),
			lost, len(repeated), repeated)
		return
	}
	s.bed.t.Logf("%d packets, none lost, none repeated", len(datagrams))
}
