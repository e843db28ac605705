// Package carry moves packets between a producer and a consumer: over a UDP socket of each side as they are, or over a
// WebRTC peer connection, encrypted. It owns sockets, peer connections, and the goroutines that read them.
package carry

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/direct/stream"
)

// Taker takes what comes.
type Taker interface {
	// Datagram takes a datagram, which is valid and may be changed until it returns.
	Datagram(datagram []byte, from netip.AddrPort, now time.Time)
}

// socketBuffer is asked for each direction, in bytes: a frame of 400 kB is 350 packets, which cost the kernel 2,300
// bytes each, 0.8 MB; four of them.
const socketBuffer = 4 << 20

// maxRun is the longest run that is handed to the kernel at once, in bytes: below the 65,507 of a datagram.
const maxRun = 64_000

// UDP is one side's socket. Its methods are safe for concurrent use.
type UDP struct {
	port *udp.Port
	peer atomic.Pointer[netip.AddrPort]

	mu       sync.Mutex
	buffer   []byte
	messages []udp.Message
}

// OpenUDP opens a socket on an address, on a port of the system's choice.
func OpenUDP(address netip.Addr) (*UDP, error) {
	port, err := udp.Listen(udp.Config{Address: netip.AddrPortFrom(address, 0), ReceiveBuffer: socketBuffer,
		SendBuffer: socketBuffer})
	if err != nil {
		return nil, err
	}
	return &UDP{port: port}, nil
}

// Port is the socket's number.
func (u *UDP) Port() uint16 { return u.port.Address().Port() }

// Aim says where to send from now on.
func (u *UDP) Aim(peer netip.AddrPort) { u.peer.Store(&peer) }

// Aimed tells whether there is anywhere to send to.
func (u *UDP) Aimed() bool { return u.peer.Load() != nil }

// Run reads until the socket is closed, which is no error.
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
			for datagram := range m.Datagrams() {
				t.Datagram(datagram, m.Peer, now)
			}
		}
	}
}

// Send sends packets of a stream, in as few calls as the system lets. Without an aim they are lost, as on any way.
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
		u.add(*peer, u.buffer[begin:])
	}
	// The only error is that of a closed socket.
	_ = u.port.Sockets()[0].Send(u.messages)
}

// add puts a datagram, which follows the one before in memory, into the run of that one, if it is no longer and that
// one was as long as all before.
func (u *UDP) add(peer netip.AddrPort, datagram []byte) {
	if n := len(u.messages); n > 0 {
		m := &u.messages[n-1]
		if len(m.Data)%m.Segment == 0 && len(datagram) <= m.Segment && len(m.Data)+len(datagram) <= maxRun {
			m.Data = m.Data[:len(m.Data)+len(datagram)]
			return
		}
	}
	u.messages = append(u.messages, udp.Message{Peer: peer, Data: datagram, Segment: len(datagram)})
}

// SendOne sends one datagram at once.
func (u *UDP) SendOne(datagram []byte) {
	if peer := u.peer.Load(); peer != nil {
		_ = u.port.Sockets()[0].Send([]udp.Message{{Peer: *peer, Data: datagram}})
	}
}

// Close closes the socket.
func (u *UDP) Close() error { return u.port.Close() }
