package udp

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	// takenStamps are the timestamps that a socket takes: arrivals of datagrams, in software and in hardware, and
	// departures of selected datagrams.
	takenStamps = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE |
		unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE
	// askedStamps are the timestamps requested by a control message of a sent datagram.
	askedStamps = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE
	// departedLength is the number of departure timestamps read at a time.
	departedLength = 16
	// departedHead is the number of bytes read of each: headers of Ethernet (14 bytes), IP (40 at most, without
	// options) and UDP (8), and the reported start of the datagram.
	departedHead = 96
	// maxAwaited bounds the outstanding timestamps, and maxMisses the failed reads for them: a device may not report
	// any.
	maxAwaited = 64
	maxMisses  = 1000
)

// TakeStamps enables timestamps of arriving datagrams, and of those sent with Message.Stamped. It reports whether the
// kernel supports them.
func (s *Socket) TakeStamps(on bool) bool {
	// Package net's poller mistakes a timestamp in the error queue for an error.
	if _, ok := s.closer.(*watched); !ok {
		return false
	}
	flags := 0
	if on {
		flags = takenStamps
	}
	// Kernels before 5.1 do not have the option.
	taken := setInt(&s.kernel, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags) == nil
	s.kernel.stamping.Store(on && taken)
	if !on {
		s.kernel.awaited.Store(0)
	}
	return taken
}

// departedBatch reads the error queue, in which the kernel stores the timestamps of sent datagrams, each with the
// datagram.
type departedBatch struct {
	headers  [departedLength]unix.Mmsghdr
	vectors  [departedLength]unix.Iovec
	controls [departedLength]controlRoom
	heads    [departedLength][departedHead]byte
	// awaited counts outstanding timestamps; misses counts failed reads.
	awaited *atomic.Int32
	misses  int
	count   int
}

// read reads the available timestamps, if any is awaited.
func (d *departedBatch) read(fd uintptr) {
	d.count = 0
	if d.awaited.Load() <= 0 {
		return
	}
	for i := range d.headers {
		d.vectors[i].Base = &d.heads[i][0]
		d.vectors[i].SetLen(departedHead)
		header := &d.headers[i].Hdr
		header.Iov = &d.vectors[i]
		header.SetIovlen(1)
		header.Control = (*byte)(unsafe.Pointer(&d.controls[i]))
		header.SetControllen(controlSpace)
		header.Flags = 0
	}
	n, _, err := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&d.headers[0])), departedLength,
		unix.MSG_DONTWAIT|unix.MSG_ERRQUEUE, 0, 0)
	if err != 0 || n == 0 {
		if d.misses++; d.misses == maxMisses {
			d.misses = 0
			d.awaited.Store(0)
		}
		return
	}
	d.misses = 0
	d.count = int(n)
	d.awaited.Add(-int32(n))
}

// take appends the departures that were read.
func (d *departedBatch) take(dst []Departure) []Departure {
	for i := range d.headers[:d.count] {
		facts := parseControls(d.controls[i].bytes(int(d.headers[i].Hdr.Controllen)))
		peer, data, ok := parseSent(d.heads[i][:min(int(d.headers[i].Len), departedHead)])
		if !ok || facts.stamp == (Stamp{}) {
			continue
		}
		departure := Departure{Peer: peer, Stamp: facts.stamp}
		copy(departure.Head[:], data)
		dst = append(dst, departure)
	}
	d.count = 0
	return dst
}

// bytes returns the first n bytes.
func (c *controlRoom) bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c)), controlSpace)[:min(max(n, 0), controlSpace)]
}

// controlFacts is the content of control messages.
type controlFacts struct {
	// segment is the datagram length of a coalesced message, or 0 for a single datagram.
	segment int
	ecn     ecn.Codepoint
	stamp   Stamp
}

// parseControls parses control messages.
func parseControls(b []byte) (facts controlFacts) {
	const head = unix.SizeofCmsghdr
	for len(b) >= head {
		header := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
		length := int(header.Len)
		if length < head || length > len(b) {
			return facts
		}
		data := b[head:length]
		switch {
		case header.Level == unix.SOL_UDP && header.Type == unix.UDP_GRO && len(data) >= 4:
			facts.segment = int(int32(binary.NativeEndian.Uint32(data)))
		case header.Level == unix.SOL_IP && header.Type == unix.IP_TOS && len(data) >= 1:
			facts.ecn = ecn.Codepoint(data[0] & codepointMask)
		case header.Level == unix.SOL_IPV6 && header.Type == unix.IPV6_TCLASS && len(data) >= 4:
			facts.ecn = ecn.Codepoint(binary.NativeEndian.Uint32(data) & codepointMask)
		case header.Level == unix.SOL_SOCKET && header.Type == unix.SO_TIMESTAMPING_NEW && len(data) >= 48:
			// Three times of seconds and nanoseconds: software, an obsolete one, and hardware.
			facts.stamp = Stamp{Kernel: nanoseconds(data), Hardware: nanoseconds(data[32:])}
		}
		b = b[min(unix.CmsgSpace(length-head), len(b)):]
	}
	return facts
}

// nanoseconds parses a time of day.
func nanoseconds(b []byte) int64 {
	return int64(binary.NativeEndian.Uint64(b))*1e9 + int64(binary.NativeEndian.Uint64(b[8:]))
}

// Offsets and sizes in the headers of a packet (RFC 791, RFC 8200, RFC 768) and of Ethernet.
const (
	etherSize, etherType = 14, 12
	typeIPv4, typeIPv6   = 0x0800, 0x86dd
	ipv6Size, udpSize    = 40, 8
	protocolUDP          = 17
)

// parseSent returns the destination and the payload of a packet as passed to the device, with or without the Ethernet
// header.
func parseSent(packet []byte) (peer netip.AddrPort, data []byte, ok bool) {
	if len(packet) >= etherSize {
		if kind := binary.BigEndian.Uint16(packet[etherType:]); kind == typeIPv4 || kind == typeIPv6 {
			if peer, data, ok = parseIP(packet[etherSize:]); ok {
				return peer, data, ok
			}
		}
	}
	return parseIP(packet)
}

func parseIP(packet []byte) (peer netip.AddrPort, data []byte, ok bool) {
	if len(packet) == 0 {
		return netip.AddrPort{}, nil, false
	}
	var address netip.Addr
	size := 0
	switch packet[0] >> 4 {
	case 4:
		if size = int(packet[0]&15) * 4; size < 20 || len(packet) < size || packet[9] != protocolUDP {
			return netip.AddrPort{}, nil, false
		}
		address = netip.AddrFrom4([4]byte(packet[16:20]))
	case 6:
		if size = ipv6Size; len(packet) < size || packet[6] != protocolUDP {
			return netip.AddrPort{}, nil, false
		}
		address = netip.AddrFrom16([16]byte(packet[24:40])).Unmap()
	default:
		return netip.AddrPort{}, nil, false
	}
	if len(packet) < size+udpSize {
		return netip.AddrPort{}, nil, false
	}
	return netip.AddrPortFrom(address, binary.BigEndian.Uint16(packet[size+2:])), packet[size+udpSize:], true
}

// stampRefused reports whether an error may be caused by the request for timestamps.
func stampRefused(err syscall.Errno) bool { return err == unix.EINVAL || err == unix.EPERM }
