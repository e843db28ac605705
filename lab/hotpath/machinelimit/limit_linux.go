package machinelimit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// bench holds the sockets of the limit's measurement: the sender, a socket that only counts like the measured
// receivers, a socket that is read packet by packet, and a socket that accepts runs.
type bench struct {
	sender                  *net.UDPConn
	unread, single, whole   *net.UDPConn
	toUnread, toOne, toRuns netip.AddrPort
	batch                   *ipv4.PacketConn
	messages                []ipv4.Message
	run                     []byte
	control                 []byte
}

// batchPackets is the number of packets per recvmmsg.
const batchPackets = 64

func newBench() (*bench, error) {
	b := &bench{run: make([]byte, 0, mediasocket.MaxRunBytes), control: mediasocket.SegmentControl(nil, sealedBytes)}
	for _, conn := range []**net.UDPConn{&b.sender, &b.unread, &b.single, &b.whole} {
		opened, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			b.close()
			return nil, err
		}
		*conn = opened
	}
	udp.EnlargeBuffers(b.sender, mediasocket.BufferBytes, mediasocket.BufferBytes)
	udp.EnlargeBuffers(b.single, mediasocket.BufferBytes, mediasocket.BufferBytes)
	udp.EnlargeBuffers(b.whole, mediasocket.BufferBytes, mediasocket.BufferBytes)
	if err := errors.Join(acceptRuns(b.whole), mediasocket.CountMedia(b.unread)); err != nil {
		b.close()
		return nil, err
	}
	address := func(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }
	b.toUnread, b.toOne, b.toRuns = address(b.unread), address(b.single), address(b.whole)
	b.batch, b.messages = ipv4.NewPacketConn(b.single), make([]ipv4.Message, batchPackets)
	for i := range b.messages {
		b.messages[i].Buffers = [][]byte{make([]byte, sealedBytes)}
	}
	return b, nil
}

// acceptRuns makes a socket return packets sent in runs, or merged by the network card, as runs (UDP_GRO).
func acceptRuns(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) })
	return errors.Join(err, failed)
}

func (b *bench) close() {
	for _, conn := range []*net.UDPConn{b.sender, b.unread, b.single, b.whole} {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// onThread runs a function and returns the CPU time of its thread, user and system.
func onThread(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadTime()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := threadTime()
	return after - before, err
}

// threadTime returns the thread's user and system time. The clock counts nanoseconds; getrusage may count the system's
// ticks of 4 ms.
func threadTime() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		return 0, err
	}
	return time.Duration(now.Nano()), nil
}

// sendRuns seals packets and sends them in runs.
func (b *bench) sendRuns(to netip.AddrPort, packets int) error {
	s, err := newSealer()
	if err != nil {
		return err
	}
	for sent := 0; sent < packets; sent += mediasocket.MaxRun {
		b.run = b.run[:0]
		for range mediasocket.MaxRun {
			b.run = s.seal(b.run)
		}
		if _, _, err := b.sender.WriteMsgUDPAddrPort(b.run, b.control, to); err != nil {
			return fmt.Errorf("segmented send: %w", err)
		}
	}
	return nil
}

func (b *bench) sealSegmented() (time.Duration, int, error) {
	took, err := onThread(func() error { return b.sendRuns(b.toUnread, sendRound) })
	return took, sendRound, err
}

func (b *bench) plainSend() (time.Duration, int, error) {
	packet := make([]byte, sealedBytes)
	took, err := onThread(func() error {
		for range sendRound {
			if _, err := b.sender.WriteToUDPAddrPort(packet, b.toUnread); err != nil {
				return err
			}
		}
		return nil
	})
	return took, sendRound, err
}

// fill sends a round to a socket and returns the number of packets that the socket's buffer accepted.
func (b *bench) fill(conn *net.UDPConn, to netip.AddrPort) (*sealer, int, error) {
	s, err := newSealer()
	if err != nil {
		return nil, 0, err
	}
	before := mediasocket.Dropped(conn)
	err = b.sendRuns(to, receiveRound)
	return s, receiveRound - (mediasocket.Dropped(conn) - before), err
}

// receive empties a buffer packet by packet. Filling the buffer does not count.
func (b *bench) receive() (time.Duration, int, error) {
	s, packets, err := b.fill(b.single, b.toOne)
	if err != nil {
		return 0, 0, err
	}
	took, err := onThread(func() error {
		for left := packets; left > 0; {
			n, err := b.batch.ReadBatch(b.messages, 0)
			if err != nil {
				return err
			}
			for i := range b.messages[:n] {
				if err := s.open(b.messages[i].Buffers[0][:b.messages[i].N]); err != nil {
					return err
				}
			}
			left -= n
		}
		return nil
	})
	return took, packets, err
}

// coalesced empties a buffer run by run.
func (b *bench) coalesced() (time.Duration, int, error) {
	s, packets, err := b.fill(b.whole, b.toRuns)
	if err != nil {
		return 0, 0, err
	}
	buffer, control := make([]byte, mediasocket.MaxRunBytes), make([]byte, unix.CmsgSpace(4))
	took, err := onThread(func() error {
		for left := packets; left > 0; {
			n, _, _, _, err := b.whole.ReadMsgUDPAddrPort(buffer, control)
			if err != nil {
				return err
			}
			for begin := 0; begin < n; begin += sealedBytes {
				if err := s.open(buffer[begin:min(begin+sealedBytes, n)]); err != nil {
					return err
				}
				left--
			}
		}
		return nil
	})
	return took, packets, err
}
