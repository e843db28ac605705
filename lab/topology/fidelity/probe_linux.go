package fidelity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/lab/topology"
)

const (
	port         = 9000     // on hosts without other programs
	udpHeaders   = 20 + 8   // IPv4 and UDP
	receiveBytes = 32 << 20 // of a socket's buffer, for a second of packets
	// quiet is the time without arrivals after which a receiver ends, longer than all delays and queues here.
	quiet = 400 * time.Millisecond
)

// probe is a socket of a host.
type probe struct{ fd int }

// openProbe opens a socket on a host. kind and protocol are the arguments of socket(2).
func openProbe(n *topology.Network, host string, kind, protocol int) (*probe, error) {
	p := &probe{}
	err := n.Inside(host, func() (err error) {
		p.fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("socket on %s: %w", host, err)
	}
	timeout := unix.NsecToTimeval(int64(quiet))
	for _, set := range []func() error{
		func() error { return unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes) },
		func() error { return unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) },
		func() error { return unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_RECVTOS, 1) },
		func() error { return unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout) },
		func() error { return unix.Bind(p.fd, address(n, host)) },
	} {
		if err := set(); err != nil {
			p.close()
			return nil, fmt.Errorf("socket on %s: %w", host, err)
		}
	}
	return p, nil
}

func (p *probe) close() { _ = unix.Close(p.fd) }

// setECN makes the socket send packets with a codepoint.
func (p *probe) setECN(codepoint ecn.Codepoint) error {
	if err := unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_TOS, int(codepoint)); err != nil {
		return fmt.Errorf("codepoint of a socket: %w", err)
	}
	return nil
}

func address(n *topology.Network, host string) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: n.Address(host).As4()}
}

// arrival is a packet that arrived.
type arrival struct {
	number uint64
	at     int64 // by the kernel's clock, in nanoseconds since 1970
	ecn    ecn.Codepoint
}

// receive receives packets until no packet has arrived for quiet. The number of each packet is in the payload after
// skip bytes.
func (p *probe) receive(expected, skip int) ([]arrival, error) {
	arrivals := make([]arrival, 0, expected)
	buffer, control := make([]byte, 2048), make([]byte, 256)
	for {
		count, controls, _, _, err := unix.Recvmsg(p.fd, buffer, control, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			return arrivals, nil
		}
		if err != nil {
			return arrivals, fmt.Errorf("receive: %w", err)
		}
		if count < skip+8 {
			continue
		}
		a := arrival{number: binary.BigEndian.Uint64(buffer[skip:])}
		if err := a.read(control[:controls]); err != nil {
			return arrivals, err
		}
		arrivals = append(arrivals, a)
	}
}

// errStamp reports that the kernel did not provide a packet's arrival time.
var errStamp = errors.New("a packet without the kernel's timestamp")

// read reads the time and the codepoint from the control messages of a packet.
func (a *arrival) read(control []byte) error {
	for len(control) > 0 {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return fmt.Errorf("control message: %w", err)
		}
		switch {
		case header.Level == unix.SOL_SOCKET && header.Type == unix.SCM_TIMESTAMPNS && len(data) >= 16:
			a.at = int64(binary.NativeEndian.Uint64(data))*int64(time.Second) +
				int64(binary.NativeEndian.Uint64(data[8:]))
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_TOS && len(data) >= 1:
			a.ecn = ecn.Codepoint(data[0] & 3)
		}
		control = rest
	}
	if a.at == 0 {
		return errStamp
	}
	return nil
}

// departure is when a packet was handed to the kernel: between two times, in nanoseconds since 1970.
type departure struct{ before, after int64 }

// send sends packets evenly at an interval and returns their departures. The number of a packet follows the first skip
// bytes of the payload.
func (p *probe) send(to unix.Sockaddr, payload []byte, skip, count int, interval time.Duration,
	prepare func(payload []byte, number uint64)) ([]departure, error) {
	type outcome struct {
		departures []departure
		err        error
	}
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// Timer slack of 1 ns; 0 restores the thread's initial value.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }()
		departures := make([]departure, 0, count)
		if err := unix.Connect(p.fd, to); err != nil {
			done <- outcome{nil, fmt.Errorf("connect: %w", err)}
			return
		}
		epoch, began := time.Now(), clockNow(unix.CLOCK_MONOTONIC)
		for number := range count {
			due := time.Duration(number) * interval
			if ahead := due - time.Since(epoch); ahead > 0 {
				sleepUntil(began+int64(due), ahead)
			}
			binary.BigEndian.PutUint64(payload[skip:], uint64(number))
			if prepare != nil {
				prepare(payload, uint64(number))
			}
			before := time.Now().UnixNano()
			if err := p.write(payload); err != nil {
				done <- outcome{departures, fmt.Errorf("send: %w", err)}
				return
			}
			departures = append(departures, departure{before, time.Now().UnixNano()})
		}
		done <- outcome{departures, nil}
	}()
	o := <-done
	return o.departures, o.err
}

// clockNow reads a clock.
func clockNow(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(fmt.Sprintf("fidelity: a clock of every Linux system cannot be read: %v", err))
	}
	return t.Nano()
}

// write sends a packet by a system call that bypasses Go's scheduler, because the call does not block and informing the
// scheduler would take longer.
func (p *probe) write(payload []byte) error {
	_, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(p.fd), uintptr(unsafe.Pointer(unsafe.SliceData(payload))),
		uintptr(len(payload)), unix.MSG_DONTWAIT, 0, 0)
	switch err {
	case 0:
		return nil
	case unix.EAGAIN, unix.EINTR:
		return unix.Send(p.fd, payload, 0)
	}
	return err
}

// shortSleep bounds a sleep that bypasses Go's scheduler: an operation that stops all goroutines may have to wait for
// the sleep.
const shortSleep = 300 * time.Microsecond

// sleepUntil waits for a time of the monotonic clock, which is ahead away.
func sleepUntil(at int64, ahead time.Duration) {
	t := unix.NsecToTimespec(at)
	if ahead <= shortSleep {
		_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
			uintptr(unsafe.Pointer(&t)), 0, 0, 0)
		return
	}
	for errors.Is(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil), unix.EINTR) {
	}
}

// echoRequest completes an ICMP echo request (RFC 792) with its checksum.
func echoRequest(payload []byte, number uint64) {
	payload[0], payload[1] = 8, 0
	binary.BigEndian.PutUint16(payload[6:], uint16(number))
	payload[2], payload[3] = 0, 0
	sum := uint32(0)
	for i := 0; i+1 < len(payload); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(payload[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(payload[2:], ^uint16(sum))
}
