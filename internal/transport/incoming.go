package transport

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/udp"
)

// incoming opens what the remote peer sends. Packets may come by the socket and by ICE at the same time, so a mutex guards it.
type incoming struct {
	mu     sync.Mutex
	opener *srtp.Opener
	// info is that of the packet at hand. The sink is given a pointer to it.
	info PacketInfo
	// early are datagrams that have come before the keys; closed says that nothing is taken any more.
	early  [][]byte
	closed bool
}

// maxEarly bounds what waits for the keys. Who ends the handshake sends at once, while the other side still reads its last message: 256 packets are 20 ms at
// 120 Mbit/s. Without them a receiver would begin in the midst of a frame. With receiveBytes, beyond which none is kept, a peer that never ends the handshake holds
// 512 KiB; a datagram may have 64 KiB.
const maxEarly = 256

// receiveRun takes datagrams that came from the peer's address. Those that are not media go to ICE.
func (p *Peer) receiveRun(message udp.Message, socket *udp.Socket, now time.Time) {
	if route := p.route.Load(); route != nil && !route.apart && route.socket != socket && route.address == message.Peer {
		moved := *route
		moved.socket = socket
		p.route.CompareAndSwap(route, &moved)
	}
	p.incoming.mu.Lock()
	defer p.incoming.mu.Unlock()
	p.incoming.info = PacketInfo{At: now}
	if p.endpoint.stamping.Load() > 0 {
		p.incoming.info.Kernel, p.incoming.info.Hardware = stampTimes(message.Arrived)
	}
	for datagram := range message.Datagrams() {
		if !isMedia(datagram) {
			p.receiveControl(datagram, message.Peer, now)
			continue
		}
		p.receive(datagram)
	}
}

// receiveControl takes a datagram that is no media from the address that media goes to. DTLS records need no ICE.
func (p *Peer) receiveControl(datagram []byte, from netip.AddrPort, now time.Time) {
	if records := p.records.Load(); records != nil && isRecord(datagram) {
		mux := p.endpoint.mux
		switch {
		case !records.admits(now):
			mux.limited.Add(1)
			mux.floods.note(datagram, from)
		case !mux.records.TakeAll(from.Addr(), 1, now):
			// The peer is within its own bound: others have used up that of the address.
			mux.limited.Add(1)
		default:
			records.write(datagram)
		}
		return
	}
	p.endpoint.mux.deliverOne(datagram, from, now)
}

// receiveOne takes a datagram that came through ICE.
func (p *Peer) receiveOne(datagram []byte, now time.Time) {
	p.lockAndReceive(datagram, now)
	p.sink.Flush()
}

func (p *Peer) lockAndReceive(datagram []byte, now time.Time) {
	p.incoming.mu.Lock()
	defer p.incoming.mu.Unlock()
	p.incoming.info = PacketInfo{At: now}
	p.receive(datagram)
}

// receive opens one datagram of media and hands it to the sink with incoming.info, which the caller has set. A
// datagram that cannot be opened is dropped: it may be forged, repeated, or earlier than the keys. The caller holds
// the mutex, here and below.
func (p *Peer) receive(datagram []byte) {
	if p.incoming.opener == nil {
		if !p.incoming.closed && len(p.incoming.early) < maxEarly && len(datagram) <= receiveBytes {
			p.incoming.early = append(p.incoming.early, slices.Clone(datagram))
		}
		return
	}
	if isRTCP(datagram) {
		if compound, err := p.incoming.opener.OpenRTCP(datagram); err == nil {
			p.receiveRTCP(compound, p.incoming.info.At)
		}
		return
	}
	packet, err := p.incoming.opener.Open(datagram)
	if err != nil {
		if errors.Is(err, srtp.ErrTooManyStreams) {
			p.overflow()
		}
		return
	}
	// Open has found a whole header.
	p.sink.RTP(binary.BigEndian.Uint32(packet[8:]), packet, &p.incoming.info)
}

// overflow ends a connection whose remote peer uses more streams than anybody needs: each costs memory for as long as the connection lives. Closing waits for
// the caller, so another goroutine does it.
func (p *Peer) overflow() {
	if !p.overflowed.Swap(true) {
		go p.try(placeMedia, func() { _ = p.Close() })
	}
}

// rtcpHeader is the size in bytes of the header that all RTCP packets have (RFC 3550 section 6.4.1): version, type, length in words less one.
const rtcpHeader = 4

// receiveRTCP cuts a compound into its packets. What is left of one that is cut off is dropped.
func (p *Peer) receiveRTCP(compound []byte, now time.Time) {
	for len(compound) >= rtcpHeader {
		size := rtcpHeader + 4*int(binary.BigEndian.Uint16(compound[2:]))
		if size > len(compound) {
			return
		}
		p.sink.RTCP(compound[:size], now)
		compound = compound[size:]
	}
}

// openIncoming takes the keys: from here on packets are opened, those first that have come before.
func (p *Peer) openIncoming(opener *srtp.Opener) {
	if p.receiveEarly(opener) > 0 {
		p.sink.Flush()
	}
}

// receiveEarly takes the keys, and opens what has come before. It returns how many datagrams that are.
func (p *Peer) receiveEarly(opener *srtp.Opener) int {
	i := &p.incoming
	i.mu.Lock()
	defer i.mu.Unlock()
	early := i.early
	i.opener, i.early = opener, nil
	i.info = PacketInfo{At: time.Now()}
	for _, datagram := range early {
		p.receive(datagram)
	}
	return len(early)
}

// close makes everything that still comes be dropped.
func (i *incoming) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opener, i.early, i.closed = nil, nil, true
}
