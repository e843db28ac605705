// Package carry transports packets between a producer and a consumer: over UDP sockets without encryption, or over a
// WebRTC peer connection. It owns sockets, peer connections and the goroutines that read from them.
package carry

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/direct/stream"
)

// Taker receives datagrams.
type Taker interface {
	// Datagram receives a datagram that arrived with a codepoint. The datagram is valid during the call and may be
	// modified.
	Datagram(datagram []byte, from netip.AddrPort, codepoint ecn.Codepoint, now time.Time)
}

// socketBuffer is the requested buffer size for each direction, in bytes: four frames of 400 kB. Such a frame has 350
// packets, for which the kernel uses 2,300 bytes each, 0.8 MB.
const socketBuffer = 4 << 20

// maxRun is the longest run that is passed to the kernel in one call, in bytes. It is below the 65,507 bytes of a
// datagram.
const maxRun = 64_000

// UDP is the socket of one side. Its methods are safe for concurrent use.
type UDP struct {
	port *udp.Port
	peer atomic.Pointer[netip.AddrPort]
	// arrived is the codepoint of the latest RTP packet, an ecn.Codepoint.
	arrived atomic.Uint32

	mu       sync.Mutex
	buffer   []byte
	messages []udp.Message
}

// OpenUDP opens a socket on an address. The system chooses the port.
func OpenUDP(address netip.Addr) (*UDP, error) {
	port, err := udp.Listen(udp.Config{Address: netip.AddrPortFrom(address, 0), ReceiveBuffer: socketBuffer,
		SendBuffer: socketBuffer})
	if err != nil {
		return nil, err
	}
	return &UDP{port: port}, nil
}

// Port returns the port of the socket.
func (u *UDP) Port() uint16 { return u.port.Address().Port() }

// Aim sets the destination.
func (u *UDP) Aim(peer netip.AddrPort) { u.peer.Store(&peer) }

// Aimed reports whether there is a destination.
func (u *UDP) Aimed() bool { return u.peer.Load() != nil }

// Run reads until the socket is closed, which is not an error.
func (u *UDP) Run(t Taker) error {
	inbox := udp.NewInbox()
	for {
		if err := u.port.Sockets()[0].Receive(inbox); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		now := time.Now()
		for _, m := range inbox.Messages() {
			if isRTP(m.Data) {
				u.arrived.Store(uint32(m.ECN))
			}
			for datagram := range m.Datagrams() {
				t.Datagram(datagram, m.Peer, m.ECN, now)
			}
		}
	}
}

// Send sends packets of a stream in as few system calls as possible. Without a destination, the packets are lost.
func (u *UDP) Send(packets []stream.Packet) {
	u.mu.Lock()
	defer u.mu.Unlock()
	peer := u.peer.Load()
	if peer == nil {
		return
	}
	u.buffer, u.messages = u.buffer[:0], u.messages[:0]
	need := 0
	for i := range packets {
		need += packets[i].Header.MarshalSize() + len(packets[i].Payload)
	}
	if cap(u.buffer) < need {
		u.buffer = make([]byte, 0, need)
	}
	for i := range packets {
		begin, header := len(u.buffer), packets[i].Header.MarshalSize()
		u.buffer = u.buffer[:begin+header]
		if _, err := packets[i].Header.MarshalTo(u.buffer[begin:]); err != nil {
			u.buffer = u.buffer[:begin]
			continue
		}
		u.buffer = append(u.buffer, packets[i].Payload...)
		u.add(*peer, u.buffer[begin:], packets[i].ECN)
	}
	// The only error is that of a closed socket.
	_ = u.port.Sockets()[0].Send(u.messages)
}

// add appends a datagram, which directly follows the previous one in memory, to the run of the previous datagram if all
// datagrams of the run have equal length and the same codepoint, and this one is not longer. Otherwise it starts a new
// run.
func (u *UDP) add(peer netip.AddrPort, datagram []byte, codepoint ecn.Codepoint) {
	if n := len(u.messages); n > 0 {
		m := &u.messages[n-1]
		if len(m.Data)%m.Segment == 0 && len(datagram) <= m.Segment && len(m.Data)+len(datagram) <= maxRun &&
			m.ECN == codepoint {
			m.Data = m.Data[:len(m.Data)+len(datagram)]
			return
		}
	}
	u.messages = append(u.messages, udp.Message{Peer: peer, Data: datagram, Segment: len(datagram), ECN: codepoint})
}

// SendOne sends one RTCP packet immediately, as ECT(1) while RTP arrives as ECT(1) or CE, like a peer connection.
func (u *UDP) SendOne(datagram []byte) {
	peer := u.peer.Load()
	if peer == nil {
		return
	}
	m := udp.Message{Peer: *peer, Data: datagram}
	if ecn.Codepoint(u.arrived.Load()).L4S() {
		m.ECN = ecn.ECT1
	}
	_ = u.port.Sockets()[0].Send([]udp.Message{m})
}

// isRTP reports whether a datagram is RTP and not RTCP (RFC 5761 section 4).
func isRTP(datagram []byte) bool {
	return len(datagram) >= 12 && datagram[0]>>6 == 2 && (datagram[1] < 192 || datagram[1] > 223)
}

// Close closes the socket.
func (u *UDP) Close() error { return u.port.Close() }
