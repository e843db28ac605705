package hardening

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// flooded is the amount of traffic that a flood sent.
type flooded struct {
	packets, bytes int64
	lasted         time.Duration
}

// add adds another flood after the first.
func (f *flooded) add(other flooded) {
	f.packets, f.bytes, f.lasted = f.packets+other.packets, f.bytes+other.bytes, f.lasted+other.lasted
}

// rate returns datagrams per second.
func (f *flooded) rate() float64 { return float64(f.packets) / max(f.lasted.Seconds(), 1e-9) }

// megabits returns the rate of the datagrams' payload, in Mbit/s.
func (f *flooded) megabits() float64 { return 8e-6 * float64(f.bytes) / max(f.lasted.Seconds(), 1e-9) }

const (
	// flushes is the number of datagrams per system call (sendmmsg).
	flushes = 64
	// unlimited is the rate of a flood that sends as fast as one thread can.
	unlimited = 0
)

// flood sends datagrams to the server for a time, from each of the connections in turn. next writes the next datagram
// to the given buffer and returns its length. rate is in datagrams per second.
func flood(
	ctx context.Context, to netip.AddrPort, lasting time.Duration, rate int, next func([]byte) int,
	conns ...*net.UDPConn,
) (flooded, error) {
	var batches []*ipv4.PacketConn
	for _, conn := range conns {
		batches = append(batches, ipv4.NewPacketConn(conn))
	}
	messages := make([]ipv4.Message, flushes)
	buffers := make([][]byte, flushes)
	for i := range messages {
		buffers[i] = make([]byte, 2048)
		messages[i] = ipv4.Message{Buffers: [][]byte{nil}, Addr: net.UDPAddrFromAddrPort(to)}
	}
	var sent flooded
	began := time.Now()
	defer func() { sent.lasted = time.Since(began) }()
	for turn := 0; time.Since(began) < lasting && ctx.Err() == nil; turn++ {
		batch := batches[turn%len(batches)]
		due := flushes
		if rate != unlimited {
			if due = min(due, int(time.Since(began).Seconds()*float64(rate))-int(sent.packets)); due <= 0 {
				time.Sleep(time.Millisecond)
				continue
			}
		}
		for i := range due {
			messages[i].Buffers[0] = buffers[i][:next(buffers[i])]
		}
		for left := messages[:due]; len(left) > 0; {
			n, err := batch.WriteBatch(left, 0)
			if errors.Is(err, net.ErrClosed) {
				sent.lasted = time.Since(began)
				return sent, err
			}
			if err != nil && n <= 0 {
				// The socket reports an ICMP error for an earlier datagram: the server's port may be closed.
				n = 1
			}
			for _, m := range left[:n] {
				sent.packets++
				sent.bytes += int64(len(m.Buffers[0]))
			}
			left = left[n:]
		}
	}
	sent.lasted = time.Since(began)
	return sent, ctx.Err()
}

// spoofer sends datagrams with any source address.
type spoofer struct{ fd int }

// newSpoofer opens a raw socket in a host's namespace.
func (n *namespace) newSpoofer() (*spoofer, error) {
	s := &spoofer{}
	err := n.call(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("raw socket of %s: %w", n.name, err)
	}
	return s, nil
}

// send sends one datagram. The kernel sets the checksum and the length of the IP header; UDP needs no checksum over
// IPv4 (RFC 768).
func (s *spoofer) send(from, to netip.AddrPort, data []byte) error {
	packet := make([]byte, ipHeader+udpHeader, ipHeader+udpHeader+len(data))
	packet[0], packet[8], packet[9] = 0x45, 64, unix.IPPROTO_UDP
	source, target := from.Addr().As4(), to.Addr().As4()
	copy(packet[12:], source[:])
	copy(packet[16:], target[:])
	binary.BigEndian.PutUint16(packet[ipHeader:], from.Port())
	binary.BigEndian.PutUint16(packet[ipHeader+2:], to.Port())
	binary.BigEndian.PutUint16(packet[ipHeader+4:], uint16(udpHeader+len(data)))
	return unix.Sendto(s.fd, append(packet, data...), 0, &unix.SockaddrInet4{Addr: target})
}

func (s *spoofer) close() { _ = unix.Close(s.fd) }
