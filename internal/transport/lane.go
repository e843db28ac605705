package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// lanePrefix is the start of the DTLS application protocol of a lane (ALPN, RFC 7301). The number of the lane follows.
const lanePrefix = "volsfu-trunk-"

// Lane is one lane. After Handshake and Start the methods are safe for any goroutine. A Lane implements forward.Peer,
// except for Post.
type Lane struct {
	port   *LanePort
	remote netip.AddrPort
	client bool
	number int
	// proven is set if the remote server receives at its address. A dialed address is proven.
	proven atomic.Bool
	// opening is set while the lane counts in LanePort.opening. The mutex of the port guards it.
	opening bool

	path     path
	outbox   outbox
	incoming incoming
	records  *secure.Records
	// conn is set by Handshake, beside which Close may read it. The mutex guards conn until then.
	mu      sync.Mutex
	conn    *dtls.Conn
	opener  func()
	sink    atomic.Pointer[Sink]
	closing sync.Once
	closed  chan struct{}
	// received is the time at which the last authenticated packet arrived, in nanoseconds since LanePort.started by the
	// monotonic clock. It is 0 before the first packet.
	received atomic.Int64
}

func (p *LanePort) newLane(remote netip.AddrPort, socket *udp.Socket) *Lane {
	l := &Lane{port: p, remote: remote, closed: make(chan struct{})}
	l.path.route.Store(&peerRoute{socket: socket, address: remote})
	l.outbox.path = &l.path
	l.records = secure.NewRecords(laneSender{l, socket})
	l.incoming.overflow, l.incoming.arrivedAs = l.Close, l.outbox.setRTCP
	return l
}

// laneSender sends DTLS records to the address of a lane.
type laneSender struct {
	lane   *Lane
	socket *udp.Socket
}

// Write implements secure.Sender. DTLS sends a ServerHello only after a ClientHello with the cookie that was sent to
// the remote address (RFC 6347 section 4.2.1).
func (s laneSender) Write(record []byte) (int, error) {
	if !s.lane.proven.Load() && secure.IsServerHello(record) {
		s.lane.port.prove(s.lane)
	}
	return len(record), s.socket.Send([]udp.Message{{Peer: s.lane.remote, Data: record, Segment: len(record)}})
}

// LocalAddr implements secure.Sender.
func (s laneSender) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(s.lane.port.port.Address())
}

// RemoteAddr implements secure.Sender.
func (s laneSender) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(s.lane.remote) }

// Handshake opens the lane, and returns the name of the remote server. The packets of the remote server wait for Start.
// After an error the lane is closed.
func (l *Lane) Handshake(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, laneHandshake)
	defer cancel()
	defer l.port.opened(l)
	protocols := []string{lanePrefix + strconv.Itoa(l.number)}
	if !l.client {
		protocols = protocols[:0]
		for number := range MaxLanes {
			protocols = append(protocols, lanePrefix+strconv.Itoa(number))
		}
	}
	conn, err := secure.Handshake(ctx, l.records, l.client, []dtls.Option{
		dtls.WithCertificates(*l.port.config.Certificate()),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM),
		// Verify checks the chain and the name. The name need not be that of a host.
		dtls.WithInsecureSkipVerify(true),
		dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) (err error) {
			name, err = l.port.config.Verify(raw)
			return err
		}),
		dtls.WithSupportedProtocols(protocols...),
		dtls.WithLoggerFactory(l.port.logs),
		dtls.WithFlightInterval(secure.FlightInterval),
		// A server that starts is reached within one interval.
		dtls.WithDisableRetransmitBackoff(true),
		dtls.WithReplayProtectionWindow(64),
	})
	l.records.Finish()
	if err == nil {
		err = l.keep(conn)
	}
	if err == nil {
		err = l.derive(name)
	}
	if err != nil {
		l.Close()
		return name, fmt.Errorf("%w: %w", ErrLane, err)
	}
	return name, nil
}

// keep keeps the connection of a handshake, or closes the connection if the lane has been closed meanwhile.
func (l *Lane) keep(conn *dtls.Conn) error {
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	select {
	case <-l.closed:
		_ = conn.Close()
		return errors.New("the lane was closed during the handshake")
	default:
		return nil
	}
}

// derive derives the keys and reads the number of an accepted lane.
func (l *Lane) derive(name string) error {
	state, ok := l.conn.ConnectionState()
	if !ok || name == "" {
		return errors.New("the remote server has no certificate")
	}
	var number int
	if _, err := fmt.Sscanf(state.NegotiatedProtocol, lanePrefix+"%d", &number); err != nil {
		return fmt.Errorf("the remote server has the protocol %q, expected %s0 to %d", state.NegotiatedProtocol,
			lanePrefix, MaxLanes-1)
	}
	if !l.client {
		l.number = number
	}
	sealer, opener, err := secure.DeriveContexts(l.conn, l.client, DefaultConfig().ReplayWindow)
	if err != nil {
		return err
	}
	l.outbox.open(sealer)
	l.opener = func() { l.incoming.open(opener) }
	return nil
}

// Start passes the packets of the remote server to the sink, beginning with those that arrived since the handshake.
func (l *Lane) Start(sink Sink) {
	l.incoming.mu.Lock()
	l.incoming.sink = laneSink{sink, l}
	l.incoming.mu.Unlock()
	l.sink.Store(&sink)
	l.opener()
}

// laneSink records that packets have arrived.
type laneSink struct {
	Sink
	lane *Lane
}

// RTP implements Sink.
func (s laneSink) RTP(ssrc uint32, packet []byte, info *PacketInfo) {
	s.lane.setReceived(info.At)
	s.Sink.RTP(ssrc, packet, info)
}

// RTCP implements Sink.
func (s laneSink) RTCP(packet []byte, now time.Time) {
	s.lane.setReceived(now)
	s.Sink.RTCP(packet, now)
}

// receiveRun processes datagrams from the lane's address. While the address may be forged, only datagrams that open a
// handshake are read, so that such a lane keeps no packets.
func (l *Lane) receiveRun(message udp.Message, now time.Time) {
	l.incoming.mu.Lock()
	defer l.incoming.mu.Unlock()
	l.incoming.info = PacketInfo{At: now, ECN: message.ECN}
	l.incoming.info.Kernel, l.incoming.info.Hardware = stampTimes(message.Arrived)
	for datagram := range message.Datagrams() {
		switch {
		case !l.proven.Load():
			if secure.IsClientHello(datagram) && l.records.Admits(now) {
				l.records.Write(datagram)
			}
		case isMedia(datagram):
			l.incoming.receive(datagram)
		case secure.IsRecord(datagram) && l.records.Admits(now):
			l.records.Write(datagram)
		}
	}
}

// flush ends a batch of packets.
func (l *Lane) flush() {
	if sink := l.sink.Load(); sink != nil {
		(*sink).Flush()
	}
}

// Read reads a DTLS record of application data. The error is not nil once the lane has ended.
func (l *Lane) Read(b []byte) (int, error) {
	n, err := l.conn.Read(b)
	if err == nil {
		l.setReceived(time.Now())
	}
	return n, err
}

// Control returns the DTLS connection for application data. Reading from it counts for LastReceived.
func (l *Lane) Control() net.Conn { return laneControl{l.conn, l} }

type laneControl struct {
	*dtls.Conn
	lane *Lane
}

// Read implements net.Conn.
func (c laneControl) Read(b []byte) (int, error) { return c.lane.Read(b) }

// LastReceived returns the time at which the last authenticated packet of the remote server arrived, zero before the
// first.
func (l *Lane) LastReceived() time.Time {
	if at := l.received.Load(); at != 0 {
		return l.port.started.Add(time.Duration(at))
	}
	return time.Time{}
}

func (l *Lane) setReceived(at time.Time) { l.received.Store(int64(at.Sub(l.port.started))) }

// Traffic are counts of RTP packets and their bytes as they are sent over UDP.
type Traffic struct{ Packets, Bytes uint64 }

// Add adds other counts.
func (t *Traffic) Add(other Traffic) {
	t.Packets += other.Packets
	t.Bytes += other.Bytes
}

func (t *Traffic) count(bytes int) {
	t.Packets++
	t.Bytes += uint64(bytes)
}

// Traffic returns the counts of authenticated packets that have arrived and of packets that were sent.
func (l *Lane) Traffic() (received, sent Traffic) {
	l.incoming.mu.Lock()
	received = l.incoming.received
	l.incoming.mu.Unlock()
	l.outbox.mu.Lock()
	defer l.outbox.mu.Unlock()
	return received, l.outbox.sent
}

// Number returns the number of the lane between the two servers, 0 to MaxLanes-1.
func (l *Lane) Number() int { return l.number }

// Remote returns the address of the remote server.
func (l *Lane) Remote() netip.AddrPort { return l.remote }

// SetRTT adds a measured round-trip time.
func (l *Lane) SetRTT(took time.Duration) { l.path.rtt.add(took) }

// RTT implements forward.Peer.
func (l *Lane) RTT() time.Duration { return l.path.rtt.value() }

// Post hands the queued packets to the batch. Without a batch they are sent at once.
func (l *Lane) Post(batch *Batch) { l.outbox.post(batch) }

// SetECN implements forward.Peer.
func (l *Lane) SetECN(codepoint ecn.Codepoint) { l.outbox.ecn.Store(uint32(codepoint)) }

// Blocked implements forward.Peer.
func (l *Lane) Blocked(now time.Time) bool { return l.path.blocked(now) }

// WriteRTCP implements forward.Peer.
func (l *Lane) WriteRTCP(packets []rtcp.Packet) error { return l.outbox.writeRTCP(packets) }

// TransportSequenceID implements forward.Peer: packets carry no header extension.
func (l *Lane) TransportSequenceID() uint8 { return 0 }

// ReportsByStream implements forward.Peer: both sides report by RFC 8888, with the ECN field.
func (l *Lane) ReportsByStream() bool { return true }

// AcceptsReportsByStream implements forward.Peer.
func (l *Lane) AcceptsReportsByStream() bool { return true }

// Fail implements forward.Peer.
func (l *Lane) Fail() { l.Close() }

// Done is closed when the lane has ended.
func (l *Lane) Done() <-chan struct{} { return l.closed }

// Close ends the lane. Other calls have no effect afterwards. Close does not wait for the sink.
func (l *Lane) Close() {
	l.closing.Do(func() {
		l.port.remove(l)
		close(l.closed)
		go func() {
			defer l.port.ending.Done()
			l.mu.Lock()
			conn := l.conn
			l.mu.Unlock()
			if conn != nil {
				// The alert informs the remote server, if it arrives.
				_ = conn.Close()
			}
			_ = l.records.Close()
			l.outbox.discard()
			l.incoming.close()
		}()
	})
}

// LaneOutlet is one outgoing RTP stream of a lane. It implements egress.Outlet. All codecs have the same payload types,
// because both servers know the codec of a track from its description.
type LaneOutlet struct {
	lane                 *Lane
	ssrc, retransmission uint32
}

// The payload types of all packets of lanes, and of their retransmissions.
const (
	lanePayloadType    = 96
	laneRetransmission = 97
)

// NewOutlet returns an outgoing stream. Audio has no stream for retransmissions: retransmission is 0.
func (l *Lane) NewOutlet(ssrc, retransmission uint32) *LaneOutlet {
	return &LaneOutlet{l, ssrc, retransmission}
}

// Queue queues a packet, which leaves with the next Post of the lane.
func (o *LaneOutlet) Queue(header *rtp.Header, payload []byte) error {
	return o.lane.outbox.queue(header, payload)
}

// SSRC returns the SSRC of the stream.
func (o *LaneOutlet) SSRC() uint32 { return o.ssrc }

// RetransmissionSSRC returns the SSRC of the RTX stream (RFC 4588), 0 if there is none.
func (o *LaneOutlet) RetransmissionSSRC() uint32 { return o.retransmission }

// PayloadType returns the payload types of a media type and of its retransmissions.
func (o *LaneOutlet) PayloadType(string) (media, retransmission uint8, ok bool) {
	if o.retransmission == 0 {
		return lanePayloadType, 0, true
	}
	return lanePayloadType, laneRetransmission, true
}
