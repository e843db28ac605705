package transport

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/transport/icemux"
)

// incoming opens what the remote peer sends. Packets may come by the socket and by ICE at the same time, so a mutex
// guards it.
type incoming struct {
	sink Sink
	// overflow ends a connection whose remote peer uses more streams than anybody needs.
	overflow func()

	mu     sync.Mutex
	opener *srtp.Opener
	// info is that of the packet at hand. The sink is given a pointer to it.
	info PacketInfo
	// early are datagrams that have come before the keys; closed says that nothing is taken any more.
	early  [][]byte
	closed bool
}

// maxEarly bounds what waits for the keys. Who ends the handshake sends at once, while the other side still reads its
// last message: 256 packets are 20 ms at 120 Mbit/s. Without them a receiver would begin in the midst of a frame. With
// receiveBytes, beyond which none is kept, a peer that never ends the handshake holds 512 KiB; a datagram may have 64
// KiB.
const maxEarly = 256

// receiveBytes is above the largest datagram that comes through ICE.
const receiveBytes = icemux.MaxDatagram

// receiveOne takes one datagram of media.
func (i *incoming) receiveOne(datagram []byte, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.info = PacketInfo{At: now}
	i.receive(datagram)
}

// receive opens one datagram of media and hands it to the sink with info, which the caller has set. A datagram that
// cannot be opened is dropped: it may be forged, repeated, or earlier than the keys. The caller holds the mutex, here
// and below.
func (i *incoming) receive(datagram []byte) {
	if i.opener == nil {
		if !i.closed && len(i.early) < maxEarly && len(datagram) <= receiveBytes {
			i.early = append(i.early, slices.Clone(datagram))
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
		if errors.Is(err, srtp.ErrTooManyStreams) {
			i.overflow()
		}
		return
	}
	// Open has found a whole header.
	i.sink.RTP(binary.BigEndian.Uint32(packet[8:]), packet, &i.info)
}

// rtcpHeader is the size in bytes of the header that all RTCP packets have (RFC 3550 section 6.4.1): version, type,
// length in words less one.
const rtcpHeader = 4

// receiveRTCP cuts a compound into its packets. What is left of one that is cut off is dropped.
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

// open takes the keys: from here on packets are opened, those first that have come before.
func (i *incoming) open(opener *srtp.Opener) {
	if i.receiveEarly(opener) > 0 {
		i.sink.Flush()
	}
}

// receiveEarly takes the keys, and opens what has come before. It returns how many datagrams that are.
func (i *incoming) receiveEarly(opener *srtp.Opener) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	early := i.early
	i.opener, i.early = opener, nil
	i.info = PacketInfo{At: time.Now()}
	for _, datagram := range early {
		i.receive(datagram)
	}
	return len(early)
}

// close makes everything that still comes be dropped.
func (i *incoming) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opener, i.early, i.closed = nil, nil, true
}
