package codepoints

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
)

// Protocol is the protocol of a datagram of a peer connection.
type Protocol int

// The protocols, by the first bytes of a datagram (RFC 7983, RFC 5761 section 4). DTLS includes data channels.
const (
	RTP Protocol = iota
	RTCP
	STUN
	DTLS
	Other
	protocols
)

// String returns the name of the protocol.
func (p Protocol) String() string { return [...]string{"RTP", "RTCP", "STUN", "DTLS", "other"}[p] }

// protocolOf returns the protocol of a datagram.
func protocolOf(datagram []byte) Protocol {
	switch {
	case len(datagram) < 2:
	case datagram[0] < 4:
		return STUN
	case datagram[0] >= 20 && datagram[0] < 64:
		return DTLS
	case datagram[0] >= 128 && datagram[0] < 192 && datagram[1] >= 192 && datagram[1] < 224:
		return RTCP
	case datagram[0] >= 128 && datagram[0] < 192:
		return RTP
	}
	return Other
}

// Flow is the source and the destination port of a datagram.
type Flow struct{ From, To uint16 }

// Back returns the flow of the other direction.
func (f Flow) Back() Flow { return Flow{f.To, f.From} }

// Counts counts the datagrams of one flow. A segmented run, which has one codepoint, counts as one datagram.
type Counts struct {
	// Protocols are by protocol and codepoint.
	Protocols [protocols][4]int
	// Payloads are those of RTP packets, by payload type and codepoint. Of a run it is the payload type of the first
	// packet.
	Payloads [128][4]int
}

// Of returns the number of datagrams of a protocol.
func (c *Counts) Of(p Protocol) int {
	n := c.Protocols[p]
	return n[0] + n[1] + n[2] + n[3]
}

// String lists the counts of protocols that are not 0.
func (c *Counts) String() string {
	var list []string
	for p, counts := range c.Protocols {
		for codepoint, n := range counts {
			if n > 0 {
				list = append(list, fmt.Sprintf("%d %v as %v", n, Protocol(p), ecn.Codepoint(codepoint)))
			}
		}
	}
	return strings.Join(list, ", ")
}

// Tap counts the UDP datagrams on the loopback interface, of both address families. Its methods are safe for concurrent
// use.
type Tap struct {
	fd      int
	running sync.WaitGroup
	stopped atomic.Bool

	mu    sync.Mutex
	flows map[Flow]*Counts
}

const (
	// tapBuffer is the receive buffer in bytes: of 20,000 datagrams per second 100 ms, at 2,000 bytes each.
	tapBuffer = 4 << 20
	// tapPoll is the interval at which the tap checks whether to end.
	tapPoll = 50 * time.Millisecond
)

// Listen returns a Tap, which ends with the test. It skips the test if the process may not open packet sockets.
func Listen(t testing.TB) *Tap {
	t.Helper()
	tap := &Tap{flows: make(map[Flow]*Counts)}
	every := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
	var err error
	if tap.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, every); err != nil {
		t.Skipf("skipped: counting codepoints takes a packet socket, which takes root: %v", err)
	}
	loopback, err := net.InterfaceByName("lo")
	if err == nil {
		err = unix.Bind(tap.fd, &unix.SockaddrLinklayer{Protocol: uint16(every), Ifindex: loopback.Index})
	}
	timeout := unix.NsecToTimeval(int64(tapPoll))
	if err == nil {
		err = unix.SetsockoptTimeval(tap.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	}
	if err != nil {
		_ = unix.Close(tap.fd)
		t.Fatalf("the packet socket: %v", err)
	}
	_ = unix.SetsockoptInt(tap.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer)
	tap.running.Go(tap.read)
	t.Cleanup(func() {
		tap.stopped.Store(true)
		tap.running.Wait()
		_ = unix.Close(tap.fd)
	})
	return tap
}

// read is the goroutine that reads the socket.
func (t *Tap) read() {
	buffer := make([]byte, 128)
	for !t.stopped.Load() {
		size, from, err := unix.Recvfrom(t.fd, buffer, 0)
		// Every packet of the loopback interface passes the socket twice.
		if link, ok := from.(*unix.SockaddrLinklayer); err == nil && ok && link.Pkttype == unix.PACKET_OUTGOING {
			t.count(buffer[:size])
		}
	}
}

// count counts an IP packet.
func (t *Tap) count(packet []byte) {
	codepoint, datagram, ok := parse(packet)
	if !ok {
		return
	}
	flow := Flow{binary.BigEndian.Uint16(datagram), binary.BigEndian.Uint16(datagram[2:])}
	protocol := protocolOf(datagram[udpHeader:])
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.flows[flow]
	if counts == nil {
		counts = &Counts{}
		t.flows[flow] = counts
	}
	counts.Protocols[protocol][codepoint]++
	if protocol == RTP {
		counts.Payloads[datagram[udpHeader+1]&127][codepoint]++
	}
}

// Sizes of the headers of UDP and of IPv6, in bytes.
const udpHeader, ipv6Header = 8, 40

// parse returns the codepoint and the UDP datagram of an IP packet. ok is false for other protocols than UDP.
func parse(packet []byte) (codepoint ecn.Codepoint, datagram []byte, ok bool) {
	if len(packet) < ipv6Header {
		return 0, nil, false
	}
	header := 0
	switch packet[0] >> 4 {
	case 4:
		if packet[9] != unix.IPPROTO_UDP {
			return 0, nil, false
		}
		header, codepoint = int(packet[0]&15)*4, ecn.Codepoint(packet[1]&3)
	case 6:
		if packet[6] != unix.IPPROTO_UDP {
			return 0, nil, false
		}
		header, codepoint = ipv6Header, ecn.Codepoint(packet[1]>>4&3)
	}
	if header == 0 || len(packet) < header+udpHeader {
		return 0, nil, false
	}
	return codepoint, packet[header:], true
}

// Flow returns the counts of a flow so far.
func (t *Tap) Flow(f Flow) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if counts := t.flows[f]; counts != nil {
		return *counts
	}
	return Counts{}
}

// Flows returns the flows from or to a port.
func (t *Tap) Flows(port uint16) (flows []Flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.flows {
		if f.From == port || f.To == port {
			flows = append(flows, f)
		}
	}
	return flows
}
