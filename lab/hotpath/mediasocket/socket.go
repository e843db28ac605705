// Package mediasocket is the UDP socket of a client that loads a server. A Socket sends RTP in runs, shows received RTP
// and RTCP to an observer before the peer connection, and can count media in the kernel instead of receiving media.
package mediasocket

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// MaxRun is the number of packets in one segmented send: 43 packets of 1,200 bytes and more stay below the 65,507 bytes
// of a datagram's payload, with room for longer headers.
const MaxRun = 43

// MaxRunBytes is the payload of the longest UDP datagram over IPv4.
const MaxRunBytes = 65507

// RTPHeader is the size of an RTP header without extensions (RFC 3550 section 5.1).
const RTPHeader = 12

// BufferBytes is the size of a socket's buffers, which have room for two frames of 2 MB. The packets of a frame cost
// the kernel twice their size.
const BufferBytes = 16 << 20

// SampleInterval is the number of packets of which Sample receives one, a power of two.
const SampleInterval = 32

// Socket is a client's UDP socket, one per peer connection. Written RTP is queued until flush and leaves in segmented
// sends; received RTP and RTCP are passed to an observer first. The socket does not accept UDP_GRO: a run sent by the
// server arrives as single packets.
type Socket struct {
	*net.UDPConn
	// observe is called with received RTP and RTCP and reports whether the peer connection needs the packet. Reading
	// goroutine only.
	observe func(packet []byte, at time.Time) bool

	// counting is set by CountOnly.
	counting atomic.Bool

	mu sync.Mutex
	// run holds queued packets of one size for one address. The last packet may be shorter.
	run     []byte
	size    int
	packets int
	to      netip.AddrPort
	control []byte
}

// Open opens a socket on loopback.
func Open(observe func(packet []byte, at time.Time) bool) (*Socket, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open client socket: %w", err)
	}
	udp.EnlargeBuffers(conn, BufferBytes, BufferBytes)
	return &Socket{UDPConn: conn, observe: observe, run: make([]byte, 0, MaxRunBytes)}, nil
}

// Stamp makes the socket pass the kernel's arrival times of packets to the observer. Before, and on other systems than
// Linux, the times are those of reading.
func (s *Socket) Stamp() error { return stampArrivals(s) }

// Dropped returns the number of packets that the kernel has dropped at a socket, or 0 if the kernel does not report the
// number.
func Dropped(conn *net.UDPConn) int {
	drops, _ := udp.ReceiveDrops(conn)
	return int(drops)
}

// CountOnly makes the socket count media as dropped from now on, instead of receiving media. Its drops then no longer
// mean a full buffer.
func (s *Socket) CountOnly() error {
	err := CountMedia(s)
	s.counting.Store(err == nil)
	return err
}

// Sample is CountOnly except for one of SampleInterval packets of a stream, which are received.
func (s *Socket) Sample() error {
	err := SampleMedia(s)
	s.counting.Store(err == nil)
	return err
}

// Counting reports whether the socket counts media instead of receiving media.
func (s *Socket) Counting() bool { return s.counting.Load() }

// IsMedia reports whether a packet is RTP or RTCP, and not STUN or DTLS (RFC 7983).
func IsMedia(packet []byte) bool { return len(packet) >= RTPHeader && packet[0]>>6 == 2 }

// IsControl reports whether a packet of media is RTCP (RFC 5761 section 4).
func IsControl(packet []byte) bool { return packet[1] >= 192 && packet[1] <= 223 }

// ReadFromAddrPort implements ice.AddrPortReaderWriter. It returns packets that the peer connection needs and discards
// the others.
func (s *Socket) ReadFromAddrPort(buffer []byte) (int, netip.AddrPort, error) {
	for {
		n, from, at, err := s.readStamped(buffer)
		if err != nil || !IsMedia(buffer[:n]) || s.observe(buffer[:n], at) {
			return n, from, err
		}
	}
}

// ReadFrom implements net.PacketConn.
func (s *Socket) ReadFrom(buffer []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromAddrPort(buffer)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo implements net.PacketConn.
func (s *Socket) WriteTo(packet []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("write to %v: %w", to, net.InvalidAddrError("expected a UDP address"))
	}
	return s.WriteToAddrPort(packet, address.AddrPort())
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. RTP is queued until flush.
func (s *Socket) WriteToAddrPort(packet []byte, to netip.AddrPort) (int, error) {
	if !IsMedia(packet) || IsControl(packet) {
		return s.WriteToUDPAddrPort(packet, to)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packets > 0 && (to != s.to || len(packet) > s.size || len(s.run)%s.size != 0) {
		if err := s.send(); err != nil {
			return 0, err
		}
	}
	if s.packets == 0 {
		s.size, s.to = len(packet), to
	}
	s.run = append(s.run, packet...)
	s.packets++
	if s.packets == MaxRun || len(s.run)+s.size > MaxRunBytes {
		if err := s.send(); err != nil {
			return 0, err
		}
	}
	return len(packet), nil
}

// Flush sends the queued packets.
func (s *Socket) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send()
}

// send sends the run, in one call if the system supports segmentation.
func (s *Socket) send() error {
	if s.packets == 0 {
		return nil
	}
	err := s.sendRun()
	s.run, s.packets = s.run[:0], 0
	if err != nil {
		return fmt.Errorf("send run: %w", err)
	}
	return nil
}

// sendSingly sends the run packet by packet.
func (s *Socket) sendSingly() error {
	for begin := 0; begin < len(s.run); begin += s.size {
		if _, err := s.WriteToUDPAddrPort(s.run[begin:min(begin+s.size, len(s.run))], s.to); err != nil {
			return err
		}
	}
	return nil
}
