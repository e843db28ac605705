package hardening

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tap counts the UDP datagrams that reach a host, with or without a receiving socket.
type tap struct {
	fd      int
	running sync.WaitGroup
	stopped atomic.Bool
	// datagrams counts all datagrams, media the datagrams in the RTP and RTCP range of RFC 7983, missed the datagrams
	// that did not fit the tap's buffer.
	datagrams, media, bytes, missed atomic.Int64
	// lastMedia is the arrival of the last media datagram, in nanoseconds since 1970.
	lastMedia atomic.Int64
}

const (
	// tapBuffer holds 100 ms of 40,000 datagrams per second at 1,000 bytes each of the kernel's memory.
	tapBuffer = 4 << 20
	// tapPoll is the interval at which the tap checks whether to end.
	tapPoll = 100 * time.Millisecond
	// Sizes of the headers of IPv4 without options and of UDP.
	ipHeader, udpHeader = 20, 8
)

// newTap opens a tap in a host's namespace. The socket is bound to IPv4 and therefore receives incoming packets only.
func (n *namespace) newTap() (*tap, error) {
	t := &tap{}
	protocol := uint16(unix.ETH_P_IP<<8&0xff00 | unix.ETH_P_IP>>8)
	err := n.call(func() (err error) {
		t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tap of %s: %w", n.name, err)
	}
	_ = unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer)
	timeout := unix.NsecToTimeval(int64(tapPoll))
	if err := unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		_ = unix.Close(t.fd)
		return nil, fmt.Errorf("tap of %s: %w", n.name, err)
	}
	t.running.Go(t.count)
	return t, nil
}

// count is the goroutine that reads the tap.
func (t *tap) count() {
	buffer := make([]byte, 128)
	for !t.stopped.Load() {
		size, _, err := unix.Recvfrom(t.fd, buffer, unix.MSG_TRUNC)
		if err != nil || size < ipHeader+udpHeader || buffer[9] != unix.IPPROTO_UDP {
			continue
		}
		header := int(buffer[0]&15)*4 + udpHeader
		t.datagrams.Add(1)
		t.bytes.Add(int64(size - header))
		if header < len(buffer) && header < size && buffer[header] >= 128 && buffer[header] <= 191 {
			t.media.Add(1)
			t.lastMedia.Store(time.Now().UnixNano())
		}
	}
}

// close ends the tap.
func (t *tap) close() {
	t.stopped.Store(true)
	t.running.Wait()
	if s, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		t.missed.Add(int64(s.Drops))
	}
	_ = unix.Close(t.fd)
}
