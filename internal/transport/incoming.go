package transport

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/transport/icemux"
)

// incoming decrypts the packets of the remote peer. Packets may arrive from the socket and from ICE at the same time,
// so a mutex guards incoming.
type incoming struct {
	sink Sink
	// overflow ends a connection whose remote peer uses too many streams.
	overflow func()
	// arrivedAs receives the codepoint of each RTP packet that differs from that of the packet before.
	arrivedAs func(ecn.Codepoint)
	// paths counts the packets of a peer that reads all its candidate pairs by path. It is nil for other peers.
	paths *[MaxPaths]pathCounts

	mu     sync.Mutex
	opener *srtp.Opener
	// received counts the decrypted RTP packets.
	received Traffic
	// info describes the packet being processed. The sink receives a pointer to info.
	info PacketInfo
	// second is set while packets from the second route are processed.
	second bool
	// ecn is the codepoint of the last RTP packet.
	ecn ecn.Codepoint
	// early are the datagrams that arrived before the keys. closed is set once datagrams are dropped.
	early  []earlyDatagram
	closed bool
}

// earlyDatagram is a datagram that arrived before the keys, and its codepoint.
type earlyDatagram struct {
	data []byte
	ecn  ecn.Codepoint
}

// maxEarly bounds the datagrams that wait for the keys. The side that finishes the handshake sends at once, while the
// other side still reads the last message: 256 packets are 20 ms at 120 Mbit/s. Without these packets a receiver would
// begin in the middle of a frame. Datagrams above receiveBytes are not kept, though a datagram may have 64 KiB. A peer
// that never finishes the handshake therefore holds at most 512 KiB.
const maxEarly = 256

// receiveBytes is above the largest datagram that passes through ICE.
const receiveBytes = icemux.MaxDatagram

// receiveOne processes one datagram of media.
func (i *incoming) receiveOne(datagram []byte, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.info, i.second = PacketInfo{At: now}, false
	i.receive(datagram)
}

// receive decrypts one datagram of media and hands the packet to the sink with info, which the caller has set. A
// datagram that cannot be decrypted is dropped. Such a datagram may be forged or repeated. Before the keys are there,
// datagrams are kept. The caller of receive and receiveRTCP holds the mutex.
func (i *incoming) receive(datagram []byte) {
	if i.opener == nil {
		if !i.closed && len(i.early) < maxEarly && len(datagram) <= receiveBytes {
			i.early = append(i.early, earlyDatagram{slices.Clone(datagram), i.info.ECN})
		}
		return
	}
	if isRTCP(datagram) {
		if compound, err := i.opener.OpenRTCP(datagram); err == nil {
			i.receiveRTCP(compound, i.info.At)
		}
		return
	}
	packet, err := i.opener.Open(datagram)
	if err != nil {
		switch {
		case errors.Is(err, srtp.ErrTooManyStreams):
			i.overflow()
		case i.paths != nil && errors.Is(err, srtp.ErrReplayed):
			i.receiveRepeat(datagram)
		}
		return
	}
	i.received.count(len(datagram))
	if i.paths != nil {
		i.paths[i.info.Path].first.Add(1)
	}
	// Copies leave as Not-ECT.
	if i.info.ECN != i.ecn && !i.second {
		i.ecn = i.info.ECN
		i.arrivedAs(i.ecn)
	}
	// Open has checked that the header is complete.
	i.sink.RTP(binary.BigEndian.Uint32(packet[8:]), packet, &i.info)
}

// receiveRepeat hands the second copy of a packet to the sink. A packet that the remote peer did not send, or that is
// older than the replay window, is dropped.
func (i *incoming) receiveRepeat(datagram []byte) {
	if !i.opener.Repeats(datagram) {
		return
	}
	i.paths[i.info.Path].repeated.Add(1)
	// The header is not encrypted.
	i.sink.Repeated(binary.BigEndian.Uint32(datagram[8:]), binary.BigEndian.Uint16(datagram[2:]), &i.info)
}

// countPaths sets the counts by path.
func (i *incoming) countPaths(counts *[MaxPaths]pathCounts) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.paths = counts
}

// rtcpHeader is the size in bytes of the header of all RTCP packets (RFC 3550 section 6.4.1): version, type, and length
// in words minus one.
const rtcpHeader = 4

// receiveRTCP splits a compound into its packets. A truncated packet is dropped.
func (i *incoming) receiveRTCP(compound []byte, now time.Time) {
	for len(compound) >= rtcpHeader {
		size := rtcpHeader + 4*int(binary.BigEndian.Uint16(compound[2:]))
		if size > len(compound) {
			return
		}
		i.sink.RTCP(compound[:size], now)
		compound = compound[size:]
	}
}

// open sets the keys. Packets are decrypted from now on, beginning with the early ones.
func (i *incoming) open(opener *srtp.Opener) {
	if i.receiveEarly(opener) > 0 {
		i.sink.Flush()
	}
}

// receiveEarly sets the keys and decrypts the early datagrams. receiveEarly returns the number of these datagrams.
func (i *incoming) receiveEarly(opener *srtp.Opener) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	early := i.early
	i.opener, i.early = opener, nil
	i.info, i.second = PacketInfo{At: time.Now()}, false
	for _, datagram := range early {
		i.info.ECN = datagram.ecn
		i.receive(datagram.data)
	}
	return len(early)
}

// close drops everything that arrives from now on.
func (i *incoming) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opener, i.early, i.closed = nil, nil, true
}
