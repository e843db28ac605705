package paper003

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/lab/topology"
)

// passage is the way of a TCP segment from the server's interfaces to the viewer's network stack, with times since the
// start of the run. A segment that is lost leaves and arrives again; the passage is from the first departure of its
// first byte to the first arrival.
type passage struct{ left, arrived time.Duration }

const (
	// tapBuffer holds 100 ms of 40,000 packets per second at 1,000 bytes each of the kernel's memory.
	tapBuffer = 4 << 20
	// tapPoll is the interval at which a tap checks whether to end.
	tapPoll = 100 * time.Millisecond
	// tapBytes are the bytes of a frame that are read: the headers of Ethernet, of a copy, and of the TCP segment.
	tapBytes = 256
)

// tap records when the TCP segments with payload from the server to the viewer first pass the interfaces of a host: as
// they leave, or behind the receiver of an edge.
type tap struct {
	fd       int
	outgoing bool
	from, to netip.Addr
	running  sync.WaitGroup
	stopped  atomic.Bool
	seen     map[uint32]time.Time // by sequence number
}

// openTap starts a tap on a host.
func openTap(n *topology.Network, host string, outgoing bool) (*tap, error) {
	t := &tap{outgoing: outgoing, from: n.Address(HostServer), to: n.Address(HostViewer), seen: map[uint32]time.Time{}}
	every := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
	if err := n.Inside(host, func() (err error) {
		t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, every)
		return err
	}); err != nil {
		return nil, fmt.Errorf("packet socket on %s: %w", host, err)
	}
	_ = unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer)
	timeout := unix.NsecToTimeval(int64(tapPoll))
	if err := errors.Join(unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket on %s: %w", host, err), unix.Close(t.fd))
	}
	t.running.Go(t.read)
	return t, nil
}

// read is the goroutine that reads the socket.
func (t *tap) read() {
	frame, control := make([]byte, tapBytes), make([]byte, 128)
	for !t.stopped.Load() {
		size, length, _, from, err := unix.Recvmsg(t.fd, frame, control, 0)
		link, ok := from.(*unix.SockaddrLinklayer)
		if err != nil || !ok || (link.Pkttype == unix.PACKET_OUTGOING) != t.outgoing {
			continue
		}
		sequence, ok := segment(frame[:size], t.from, t.to)
		if _, known := t.seen[sequence]; !ok || known {
			continue
		}
		if at, ok := stamp(control[:length]); ok {
			t.seen[sequence] = at
		}
	}
}

// stamp returns the kernel's time of a packet from the control messages of the socket.
func stamp(control []byte) (time.Time, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:]))),
				true
		}
	}
	return time.Time{}, false
}

// stop ends the tap, whose records belong to the caller afterwards.
func (t *tap) stop() {
	t.stopped.Store(true)
	t.running.Wait()
}

// close stops the tap and closes the socket.
func (t *tap) close() {
	t.stop()
	_ = unix.Close(t.fd)
}

// Sizes of headers in bytes: of Ethernet, of IPv4 and TCP without options, and of UDP.
const etherHeader, ipHeader, tcpHeader, udpHeader = 14, 20, 20, 8

// segment returns the sequence number of the TCP segment with payload between two addresses in a frame, also of one in
// a copy of an edge.
func segment(frame []byte, from, to netip.Addr) (sequence uint32, ok bool) {
	if len(frame) < etherHeader || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IP {
		return 0, false
	}
	packet := frame[etherHeader:]
	if len(packet) >= ipHeader+udpHeader && packet[0] == 0x45 && packet[9] == unix.IPPROTO_UDP {
		packet = packet[ipHeader+udpHeader:]
		if _, err := wire.ParseHeader(packet); err != nil {
			return 0, false
		}
		packet = packet[wire.HeaderSize:]
	}
	if len(packet) < ipHeader+tcpHeader || packet[0] != 0x45 || packet[9] != unix.IPPROTO_TCP ||
		netip.AddrFrom4([4]byte(packet[12:])) != from || netip.AddrFrom4([4]byte(packet[16:])) != to {
		return 0, false
	}
	headers := ipHeader + int(packet[ipHeader+12]>>4)*4
	if int(binary.BigEndian.Uint16(packet[2:])) <= headers {
		return 0, false
	}
	return binary.BigEndian.Uint32(packet[ipHeader+4:]), true
}

// passages returns the passages between two taps that have ended, in the order of departure.
func passages(left, arrived *tap, began time.Time) (list []passage) {
	began = began.Round(0) // the stamps of the kernel are of the real-time clock
	for sequence, at := range left.seen {
		if end, ok := arrived.seen[sequence]; ok {
			list = append(list, passage{at.Sub(began), end.Sub(began)})
		}
	}
	slices.SortFunc(list, func(a, b passage) int { return int(a.left - b.left) })
	return list
}
