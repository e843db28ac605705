package edge

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/test/wait"
)

// stream sends numbered packets from a to b and counts what arrives.
type stream struct {
	bed      *bed
	from, to *net.UDPConn
	sent     uint64
	mu       sync.Mutex
	arrived  map[uint64]int
	done     chan struct{}
	// sending and receiving end with the goroutines.
	sending, receiving sync.WaitGroup
}

// newStream sends a packet per millisecond until stop.
func (b *bed) newStream() *stream {
	b.t.Helper()
	s := &stream{bed: b, arrived: map[uint64]int{}, done: make(chan struct{})}
	var err, err2 error
	from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("a"), 5000))
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("b"), 6000))
	b.hosts["b"].Do(func() { s.to, err = net.ListenUDP("udp", to) })
	b.hosts["a"].Do(func() { s.from, err2 = net.DialUDP("udp", from, to) })
	if err := errors.Join(err, err2); err != nil {
		b.t.Fatal(err)
	}
	// Packets wait here while the goroutine that reads them waits for a processor.
	udp.EnlargeBuffers(s.to, 4<<20, 0)
	s.receiving.Go(s.receive)
	s.sending.Go(s.send)
	return s
}

func (s *stream) receive() {
	data := make([]byte, 2048)
	for {
		n, err := s.to.Read(data)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.arrived[binary.BigEndian.Uint64(data[:n])]++
		s.mu.Unlock()
	}
}

func (s *stream) send() {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	data := make([]byte, 200)
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			binary.BigEndian.PutUint64(data, s.sent)
			if _, err := s.from.Write(data); err != nil {
				s.bed.t.Errorf("packet %d was not sent: %v", s.sent, err)
			}
			s.mu.Lock()
			s.sent++
			s.mu.Unlock()
		}
	}
}

// count returns the packets sent so far.
func (s *stream) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// more waits until n more packets were sent.
func (s *stream) more(n uint64) {
	until := s.count() + n
	wait.Until(s.bed.t, "packets are sent", func() bool { return s.count() >= until })
}

// end ends the stream.
func (s *stream) end() {
	_ = s.to.Close()
	s.receiving.Wait()
	_ = s.from.Close()
}

// stop ends the stream, and fails the test unless every packet arrived exactly once.
func (s *stream) stop() {
	s.bed.t.Helper()
	close(s.done)
	s.sending.Wait()
	judge := func() (lost, repeated []uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.sent {
			switch n := s.arrived[i]; {
			case n == 0:
				lost = append(lost, i)
			case n > 1:
				repeated = append(repeated, i)
			}
		}
		return lost, repeated
	}
	end := time.Now().Add(2 * time.Second)
	for lost, _ := judge(); lost != nil && time.Now().Before(end); lost, _ = judge() {
		time.Sleep(10 * time.Millisecond)
	}
	s.end()
	if lost, repeated := judge(); lost != nil || repeated != nil || s.sent == 0 {
		s.bed.t.Errorf("of %d packets, %d were lost, %v, and %d arrived more than once, %v", s.sent, len(lost), lost,
			len(repeated), repeated)
		return
	}
	s.bed.t.Logf("%d packets, none lost, none repeated", s.sent)
}
