package cluster

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// packet is an RTP packet on a cable. The headers of SRTP are not encrypted.
type packet struct {
	at       time.Time
	from, to netip.AddrPort
	ssrc     uint32
	sequence uint16
	bytes    int
}

// tap records the RTP packets on one cable, in both directions. Runs of segments (UDP_SEGMENT) are recorded as the
// packets that they stand for.
type tap struct {
	fd      int
	running sync.WaitGroup
	stopped atomic.Bool

	mu      sync.Mutex
	packets []packet
}

const (
	// tapBuffer is the size of the kernel's buffer, 100 ms of 200 Mbit/s with the kernel's overhead.
	tapBuffer = 32 << 20
	// tapPoll is the interval at which the tap checks whether to end.
	tapPoll = 100 * time.Millisecond
	// tapSnapshot fits the longest run of segments.
	tapSnapshot = 1 << 17
	// Sizes of struct virtio_net_hdr, which precedes each packet (packet(7), PACKET_VNET_HDR), and of the headers of
	// Ethernet, IPv4 without options, UDP and RTP.
	virtioHeader, ethernetHeader, ipHeader, udpHeader, rtpHeader = 10, 14, 20, 8, 12
)

// newTap opens a tap at the end of a cable that is in this process's namespace.
func newTap(s segment, host int) (*tap, error) {
	device, err := net.InterfaceByName(s.cable(host))
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
	t := &tap{}
	if t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("tap of %s: %w", device.Name, err)
	}
	timeout := unix.NsecToTimeval(int64(tapPoll))
	for _, err := range []error{
		unix.SetsockoptInt(t.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
		unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index}),
	} {
		if err != nil {
			_ = unix.Close(t.fd)
			return nil, fmt.Errorf("tap of %s: %w", device.Name, err)
		}
	}
	t.running.Go(t.read)
	return t, nil
}

// read is the goroutine that reads the tap.
func (t *tap) read() {
	buffer, control := make([]byte, tapSnapshot), make([]byte, 128)
	for !t.stopped.Load() {
		size, controlSize, _, _, err := unix.Recvmsg(t.fd, buffer, control, 0)
		if err != nil {
			continue
		}
		at := stamped(control[:controlSize])
		t.mu.Lock()
		t.packets = appendPackets(t.packets, buffer[:size], at)
		t.mu.Unlock()
	}
}

// stamped returns the kernel's time of a packet, the present time without one.
func stamped(control []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
				seconds, rest := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
				return time.Unix(int64(seconds), int64(rest))
			}
		}
	}
	return time.Now()
}

// appendPackets appends the RTP packets of one read of a tap.
func appendPackets(list []packet, data []byte, at time.Time) []packet {
	if len(data) < virtioHeader+ethernetHeader+ipHeader+udpHeader {
		return list
	}
	segmentBytes := int(binary.NativeEndian.Uint16(data[4:]))
	ethernet := data[virtioHeader:]
	ip := ethernet[ethernetHeader:]
	if binary.BigEndian.Uint16(ethernet[12:]) != unix.ETH_P_IP || ip[9] != unix.IPPROTO_UDP {
		return list
	}
	header := int(ip[0]&15) * 4
	if header < ipHeader || len(ip) < header+udpHeader {
		return list
	}
	udp := ip[header:]
	p := packet{at: at,
		from: netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:16])), binary.BigEndian.Uint16(udp)),
		to:   netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:20])), binary.BigEndian.Uint16(udp[2:]))}
	body := udp[udpHeader:]
	if segmentBytes == 0 {
		segmentBytes = len(body)
	}
	for len(body) > 0 {
		datagram := body[:min(segmentBytes, len(body))]
		body = body[len(datagram):]
		// RTP is 128 to 191 in the first byte (RFC 7983), and not 192 to 223 in the second, which is RTCP (RFC 5761).
		if len(datagram) < rtpHeader || datagram[0]>>6 != 2 || datagram[1] >= 192 && datagram[1] <= 223 {
			continue
		}
		p.sequence, p.ssrc = binary.BigEndian.Uint16(datagram[2:]), binary.BigEndian.Uint32(datagram[8:])
		p.bytes = len(datagram)
		list = append(list, p)
	}
	return list
}

// since returns the packets from a time on that are chosen.
func (t *tap) since(from time.Time, chosen func(*packet) bool) (list []packet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.packets {
		if p := &t.packets[i]; !p.at.Before(from) && chosen(p) {
			list = append(list, *p)
		}
	}
	return list
}

// close ends the tap, and returns the number of packets that did not fit its buffer.
func (t *tap) close() (missed int) {
	t.stopped.Store(true)
	t.running.Wait()
	if s, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		missed = int(s.Drops)
	}
	_ = unix.Close(t.fd)
	return missed
}
