package rival

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/udp"
)

// socketBuffer is the requested size of the buffers of a socket, in bytes: 40 ms at 300 Mbit/s, for which the kernel
// counts about 2,300 bytes for each segment of 1,500.
const socketBuffer = 4 << 20

// Sink receives the segments of Senders, and acknowledges each batch of segments as soon as the batch is read.
type Sink struct {
	port *udp.Port
	done chan struct{}

	mu      sync.Mutex
	counts  udp.CodepointCounts
	bytes   uint64
	unknown uint64
	failure error
}

// Listen opens a Sink on an address; port 0 lets the system choose. The error names the address.
func Listen(address netip.AddrPort) (*Sink, error) {
	port, err := udp.Listen(udp.Config{Address: address, ReceiveBuffer: socketBuffer, SendBuffer: socketBuffer})
	if err != nil {
		return nil, err
	}
	s := &Sink{port: port, done: make(chan struct{})}
	go s.run()
	return s, nil
}

// Address returns the address on which the Sink listens.
func (s *Sink) Address() netip.AddrPort { return s.port.Address() }

// Close ends the Sink and waits for its goroutine. It returns the error that ended the socket before, if any.
func (s *Sink) Close() error {
	err := s.port.Close()
	<-s.done
	return errors.Join(err, s.failure)
}

// Failed is closed when the Sink has ended.
func (s *Sink) Failed() <-chan struct{} { return s.done }

// run acknowledges segments until the socket is closed.
func (s *Sink) run() {
	defer close(s.done)
	inbox := udp.NewInbox()
	var list []acknowledgement
	var datagram []byte
	for {
		if err := s.port.Sockets()[0].Receive(inbox); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.failure = fmt.Errorf("receive segments: %w", err)
			}
			return
		}
		for _, m := range inbox.Messages() {
			list = s.read(&m, list[:0])
			for rest := list; len(rest) > 0; {
				n := min(len(rest), maxAckEntries)
				datagram = appendAcknowledgements(datagram[:0], rest[:n])
				rest = rest[n:]
				// The only error is that of a closed socket, which the next Receive returns, too.
				_ = s.port.Sockets()[0].Send([]udp.Message{{Peer: m.Peer, Data: datagram}})
			}
		}
	}
}

// read counts the segments of a message, and appends their acknowledgements to list.
func (s *Sink) read(m *udp.Message, list []acknowledgement) []acknowledgement {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range m.Datagrams() {
		number, ok := parseSegment(d)
		if !ok {
			s.unknown++
			continue
		}
		s.counts[m.ECN]++
		s.bytes += uint64(len(d) + headerBytes(m.Peer.Addr()))
		list = append(list, acknowledgement{number, m.ECN})
	}
	return list
}

// headerBytes returns the size of the headers of IP and UDP.
func headerBytes(peer netip.Addr) int {
	if peer.Unmap().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// SinkSummary has the counts of a Sink.
type SinkSummary struct {
	// Segments and Bytes count received segments, with the headers of IP and UDP.
	Segments uint64 `json:"segments"`
	Bytes    uint64 `json:"bytes"`
	// NotECT, ECT1, ECT0 and CE count the segments by codepoint.
	NotECT uint64 `json:"not_ect"`
	ECT1   uint64 `json:"ect1"`
	ECT0   uint64 `json:"ect0"`
	CE     uint64 `json:"ce"`
	// Unknown counts datagrams that were not segments.
	Unknown uint64 `json:"unknown"`
}

// Summary returns the counts so far.
func (s *Sink) Summary() *SinkSummary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &SinkSummary{Segments: s.counts.Sum(), Bytes: s.bytes, NotECT: s.counts[ecn.NotECT],
		ECT1: s.counts[ecn.ECT1], ECT0: s.counts[ecn.ECT0], CE: s.counts[ecn.CE], Unknown: s.unknown}
}
