package hotpath

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// maxRun is the number of packets in one segmented send: 43 packets of 1,200 bytes and more stay below the 65,507 bytes
// of a datagram's payload, with room for longer headers.
const maxRun = 43

// maxRunBytes is the payload of the longest UDP datagram over IPv4.
const maxRunBytes = 65507

// socketBytes holds two frames of 2 MB, whose packets cost the kernel twice their size.
const socketBytes = 16 << 20

// socket is a client's UDP socket, one per peer connection. Written RTP is queued until flush and leaves in segmented
// sends; received RTP and RTCP are passed to an observer first. The socket does not accept UDP_GRO: a run sent by the
// server arrives as single packets.
type socket struct {
	*net.UDPConn
	// observe is called with received RTP and RTCP and reports whether the peer connection needs the packet. Reading
	// goroutine only.
	observe func(packet []byte, at time.Time) bool

	// counting is set once the socket counts and drops media. Drops of the socket then no longer mean a full buffer.
	counting atomic.Bool

	mu sync.Mutex
	// run holds queued packets of one size for one address. The last packet may be shorter.
	run     []byte
	size    int
	packets int
	to      netip.AddrPort
	control []byte
}

// openSocket opens a socket on loopback.
func openSocket(observe func(packet []byte, at time.Time) bool) (*socket, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open client socket: %w", err)
	}
	udp.EnlargeBuffers(conn, socketBytes, socketBytes)
	return &socket{UDPConn: conn, observe: observe, run: make([]byte, 0, maxRunBytes)}, nil
}

// dropped returns the number of packets that the kernel has dropped at a socket, or 0 if the kernel does not report the
// number.
func dropped(conn *net.UDPConn) int {
	drops, _ := udp.ReceiveDrops(conn)
	return int(drops)
}

// isMedia distinguishes RTP and RTCP from STUN and DTLS (RFC 7983), isControl RTCP from RTP (RFC 5761 section 4).
func isMedia(packet []byte) bool { return len(packet) >= rtpHeader && packet[0]>>6 == 2 }

func isControl(packet []byte) bool { return packet[1] >= 192 && packet[1] <= 223 }

// ReadFromAddrPort implements ice.AddrPortReaderWriter. It returns packets that the peer connection needs and discards
// the others.
func (s *socket) ReadFromAddrPort(buffer []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := s.ReadFromUDPAddrPort(buffer)
		if err != nil || !isMedia(buffer[:n]) || s.observe(buffer[:n], time.Now()) {
			return n, from, err
		}
	}
}

// ReadFrom implements net.PacketConn.
func (s *socket) ReadFrom(buffer []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromAddrPort(buffer)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo implements net.PacketConn.
func (s *socket) WriteTo(packet []byte, to net.Addr) (int, error) {
	address, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("write to %v: %w", to, net.InvalidAddrError("expected a UDP address"))
	}
	return s.WriteToAddrPort(packet, address.AddrPort())
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. RTP is queued until flush.
func (s *socket) WriteToAddrPort(packet []byte, to netip.AddrPort) (int, error) {
	if !isMedia(packet) || isControl(packet) {
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
	if s.packets == maxRun || len(s.run)+s.size > maxRunBytes {
		if err := s.send(); err != nil {
			return 0, err
		}
	}
	return len(packet), nil
}

// flush sends the queued packets.
func (s *socket) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send()
}

// send sends the run, in one call if the system supports segmentation.
func (s *socket) send() error {
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
func (s *socket) sendSingly() error {
	for begin := 0; begin < len(s.run); begin += s.size {
		if _, err := s.WriteToUDPAddrPort(s.run[begin:min(begin+s.size, len(s.run))], s.to); err != nil {
			return err
		}
	}
	return nil
}
