package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stamps requests all timestamps. Timestamps of sent packets are reported with a packet number instead of the packet.
const stamps = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE |
	unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE |
	unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE |
	unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY

// patience bounds the wait for a timestamp of a sent packet. A receiver checks at this interval whether it must end.
const patience = 20 * time.Millisecond

// openSocket opens a socket whose packets the kernel stamps.
func openSocket() (int, error) {
	fd, err := stampedSocket()
	if err != nil {
		return -1, err
	}
	if err := awaitStamps(); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func stampedSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamps); err != nil {
		return -1, errors.Join(fmt.Errorf("stamps of the kernel: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// maxStampDelay bounds the wait of awaitStamps. A kernel that has not begun by then counts as not stamping.
const maxStampDelay = 5 * time.Second

// awaitStamps waits until the kernel stamps received packets. The caller has a socket that requests timestamps. When
// the first such socket of the machine opens, Linux enables the timestamps of received packets in a work queue
// (net_enable_timestamp in net/core/dev.c), which may take longer than a whole measurement on a busy machine.
func awaitStamps() (err error) {
	fd, err := stampedSocket()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	oob := make([]byte, 512)
	for deadline := time.Now().Add(maxStampDelay); time.Now().Before(deadline); {
		if err := unix.Sendto(fd, []byte{0}, 0, self); err != nil {
			return fmt.Errorf("send over loopback: %w", err)
		}
		// On loopback, the packet is in the receive queue when Sendto returns.
		_, oobn, _, _, err := unix.Recvmsg(fd, make([]byte, 1), oob, unix.MSG_DONTWAIT)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return fmt.Errorf("receive over loopback: %w", err)
		}
		if software, _, _, err := parseStamps(oob[:max(0, oobn)]); err != nil || software != 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Send sends packets, and waits for the stamps of each before the next.
func Send(ctx context.Context, p Plan) (departures []Departure, err error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	fd, err := openSocket()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(p.To.Port()),
		Addr: p.To.Addr().Unmap().As4()}); err != nil {
		return nil, fmt.Errorf("connect to %v: %w", p.To, err)
	}
	buffer := make([]byte, MaxSize)
	for begin := time.Now(); len(departures) < p.Count; {
		due := begin.Add(time.Duration(len(departures)) * p.Interval)
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return departures, ctx.Err()
		}
		d := Departure{Sequence: uint32(len(departures)), Size: p.Size, Sent: time.Now().UnixNano()}
		if _, err := unix.Write(fd, payload(buffer, d.Sequence, p.Size)); err != nil {
			return departures, fmt.Errorf("send to %v: %w", p.To, err)
		}
		if err := collect(fd, &d); err != nil {
			return departures, err
		}
		shift(&d.Sent, &d.Software)
		departures = append(departures, d)
	}
	return departures, nil
}

// collect reads the timestamps of the last sent packet: the kernel's, and the network card's if it arrives in time.
func collect(fd int, d *Departure) error {
	oob := make([]byte, 512)
	for deadline := time.Now().Add(patience); d.Software == 0 || d.Hardware == 0; {
		left := time.Until(deadline)
		if left <= 0 || d.Software != 0 && left < patience-time.Millisecond {
			return nil
		}
		// Waiting for input reports the error queue, too.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, 1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for stamps: %w", err)
		}
		if n <= 0 {
			continue
		}
		_, oobn, _, _, err := unix.Recvmsg(fd, nil, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read stamps: %w", err)
		}
		software, hardware, id, err := parseStamps(oob[:oobn])
		if err != nil {
			return err
		}
		// A late stamp of an earlier packet is useless.
		if id != d.Sequence {
			continue
		}
		if software != 0 {
			d.Software = software
		}
		if hardware != 0 {
			d.Hardware = hardware
		}
	}
	return nil
}

// parseStamps reads the timestamps in control messages, and the number of their packet, 0 without a number.
func parseStamps(oob []byte) (software, hardware int64, id uint32, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%w: control messages: %w", ErrProbe, err)
	}
	// struct scm_timestamping has three struct timespec: the kernel's, an obsolete one, and the card's. struct
	// sock_extended_err has the number in ee_data, its last four bytes.
	const timespecSize = int(unsafe.Sizeof(unix.Timespec{}))
	const errorData = 12
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPING &&
			len(m.Data) >= 3*timespecSize:
			software, hardware = timespec(m.Data), timespec(m.Data[2*timespecSize:])
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR && len(m.Data) >= errorData+4:
			id = binary.NativeEndian.Uint32(m.Data[errorData:])
		}
	}
	return software, hardware, id, nil
}

// timespec reads a struct timespec as nanoseconds.
func timespec(data []byte) int64 {
	half := int(unsafe.Sizeof(unix.Timespec{})) / 2
	return word(data[:half])*int64(time.Second) + word(data[half:2*half])
}

// word reads a number of four or eight bytes.
func word(data []byte) int64 {
	if len(data) == 4 {
		return int64(int32(binary.NativeEndian.Uint32(data)))
	}
	return int64(binary.NativeEndian.Uint64(data))
}

// Receive receives packets until the expected number has arrived, no packet has arrived for idle after the first, or
// the context ends, which is not an error. listening is called with the address.
func Receive(ctx context.Context, at netip.AddrPort, expected int, idle time.Duration,
	listening func(netip.AddrPort)) (arrivals []Arrival, err error) {
	if !at.Addr().Unmap().Is4() || expected < 1 || expected > maxPackets || idle <= 0 {
		return nil, fmt.Errorf("%w: at %v for %d packets, %v, expected an IPv4 address, 1 to %d, and a time", ErrProbe,
			at, expected, idle, maxPackets)
	}
	fd, err := openSocket()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().Unmap().As4()}); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", at, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("listen at %v: %w", at, err)
	}
	if bound, ok := name.(*unix.SockaddrInet4); ok {
		listening(netip.AddrPortFrom(netip.AddrFrom4(bound.Addr), uint16(bound.Port)))
	}
	timeout := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", at, err)
	}
	buffer, oob := make([]byte, MaxSize), make([]byte, 512)
	var last time.Time
	for len(arrivals) < expected && ctx.Err() == nil && (last.IsZero() || time.Since(last) < idle) {
		n, oobn, _, _, err := unix.Recvmsg(fd, buffer, oob, 0)
		now := time.Now()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return arrivals, fmt.Errorf("receive: %w", err)
		}
		a, ok, err := arrived(buffer[:n], oob[:oobn], now)
		if err != nil {
			return arrivals, err
		}
		if ok {
			arrivals, last = append(arrivals, a), now
		}
	}
	return arrivals, nil
}

// arrived reads a packet with its control messages.
func arrived(data, oob []byte, now time.Time) (a Arrival, ok bool, err error) {
	a.Received = now.UnixNano()
	if a.Sequence, a.Size, ok = parsePayload(data); !ok {
		return a, false, nil
	}
	a.Software, a.Hardware, _, err = parseStamps(oob)
	shift(&a.Software, &a.Received)
	return a, true, err
}
