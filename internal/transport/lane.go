package transport

import (
	"context"
	"crypto/tls"
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
	"github.com/pion/logging"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// A lane is a connection between two servers that know each other's addresses and certificates: DTLS and SRTP on UDP,
// without ICE and without descriptions. The dialing side has a socket of its own for each lane. The accepting side
// tells lanes apart by the remote address.

// MaxLanes bounds the lanes between two servers.
const MaxLanes = 4

// ErrLane is wrapped with the reason why a lane was not opened.
var ErrLane = errors.New("lane was not opened")

// lanePrefix is the start of the DTLS application protocol of a lane (ALPN, RFC 7301). The number of the lane follows.
const lanePrefix = "volsfu-trunk-"

const (
	// laneHandshakes bounds the handshakes of accepted lanes at once. Every server of a cluster of 64 nodes may dial
	// all its lanes at the same time.
	laneHandshakes = 64 * MaxLanes
	// laneHandshake is the maximum duration of a handshake: 100 repetitions of a flight.
	laneHandshake = 10 * time.Second
)

// laneOpenings limits the accepted lanes of one address: three attempts per second with all lanes.
var laneOpenings = ratelimit.Rate{PerSecond: 3 * MaxLanes, Burst: 4 * MaxLanes}

// LaneConfig is the configuration of a LanePort.
type LaneConfig struct {
	// Certificate returns the certificate of this server. It is read for each handshake.
	Certificate func() *tls.Certificate
	// Verify returns the name in the certificate of the remote server, or an error if the certificate is not valid.
	Verify func(raw [][]byte) (name string, err error)
	// Accepts is set if remote servers may dial this port.
	Accepts bool
}

// LanePort is a UDP port for lanes. Its methods are safe for concurrent use.
type LanePort struct {
	port     *udp.Port
	config   LaneConfig
	logs     logging.LoggerFactory
	accepted chan *Lane
	openings *ratelimit.SharedSources
	readers  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// opening counts the accepted lanes whose handshake has not ended.
	opening int
	// lanes are replaced, never changed, because all readers look at them.
	lanes atomic.Pointer[map[netip.AddrPort]*Lane]

	untimely atomic.Uint64
}

// NewLanePort starts to read a port. Close closes the port.
func NewLanePort(port *udp.Port, config LaneConfig) *LanePort {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	p := &LanePort{port: port, config: config, logs: logs, accepted: make(chan *Lane, laneHandshakes),
		openings: ratelimit.NewSharedSources(laneOpenings.PerSecond, laneOpenings.Burst)}
	p.lanes.Store(&map[netip.AddrPort]*Lane{})
	for _, socket := range port.Sockets() {
		socket.TakeStamps(true)
		p.readers.Go(func() { p.read(socket) })
	}
	return p
}

// Address returns the local address of the port.
func (p *LanePort) Address() netip.AddrPort { return p.port.Address() }

// Accepted returns the lanes that remote servers have begun to open. The receiver calls Handshake. Close closes the
// channel.
func (p *LanePort) Accepted() <-chan *Lane { return p.accepted }

// Ignored returns the number of datagrams of addresses without a lane that did not open one.
func (p *LanePort) Ignored() uint64 { return p.untimely.Load() }

// Dial returns a lane to an address. The caller calls Handshake.
func (p *LanePort) Dial(to netip.AddrPort, number int) (*Lane, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	l := p.newLane(to, p.port.Sockets()[0])
	l.client, l.number = true, number
	if !p.add(l) {
		return nil, fmt.Errorf("%w: the port is closed", ErrLane)
	}
	return l, nil
}

// Close closes the port and its lanes, and waits for the goroutines that read the port.
func (p *LanePort) Close() error {
	p.mu.Lock()
	before := p.closed
	p.closed = true
	p.mu.Unlock()
	for _, l := range *p.lanes.Load() {
		l.Close()
	}
	err := p.port.Close()
	p.readers.Wait()
	if !before {
		close(p.accepted)
	}
	return err
}

// read is the goroutine of one socket.
func (p *LanePort) read(socket *udp.Socket) {
	inbox := udp.NewInbox()
	var touched []*Lane
	for socket.Receive(inbox) == nil {
		now := time.Now()
		for _, message := range inbox.Messages() {
			l := (*p.lanes.Load())[message.Peer]
			if l == nil {
				if l = p.accept(message, socket, now); l == nil {
					continue
				}
			}
			l.receiveRun(message, now)
			if len(touched) == 0 || touched[len(touched)-1] != l {
				touched = append(touched, l)
			}
		}
		for _, l := range touched {
			l.flush()
		}
		clear(touched)
		touched = touched[:0]
	}
}

// accept returns a lane for the first datagram of an address, nil if the datagram does not open a lane.
func (p *LanePort) accept(message udp.Message, socket *udp.Socket, now time.Time) *Lane {
	if !p.config.Accepts || !secure.OpensHandshake(message.Data) || !p.openings.TakeAll(message.Peer.Addr(), 1, now) {
		p.untimely.Add(uint64(message.Count()))
		return nil
	}
	l := p.newLane(message.Peer, socket)
	if !p.add(l) {
		p.untimely.Add(uint64(message.Count()))
		return nil
	}
	return l
}

// add adds a lane to those that the port reads, and passes an accepted lane to Accepted. add reports whether there was
// room.
func (p *LanePort) add(l *Lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !l.client && p.opening >= laneHandshakes {
		return false
	}
	if !l.client {
		// The channel has room for all lanes that are opening.
		select {
		case p.accepted <- l:
			p.opening++
			l.opening = true
		default:
			return false
		}
	}
	p.change(func(lanes map[netip.AddrPort]*Lane) { lanes[l.remote] = l })
	return true
}

// opened records the end of the handshake of a lane.
func (p *LanePort) opened(l *Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.opening {
		l.opening = false
		p.opening--
	}
}

// remove removes a lane, unless its address has another lane by now.
func (p *LanePort) remove(l *Lane) {
	p.opened(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	if (*p.lanes.Load())[l.remote] == l {
		p.change(func(lanes map[netip.AddrPort]*Lane) { delete(lanes, l.remote) })
	}
}

// change replaces the lanes by a changed copy. The caller holds the mutex.
func (p *LanePort) change(f func(map[netip.AddrPort]*Lane)) {
	old := *p.lanes.Load()
	lanes := make(map[netip.AddrPort]*Lane, len(old)+1)
	for address, l := range old {
		lanes[address] = l
	}
	f(lanes)
	p.lanes.Store(&lanes)
}

// Lane is one lane. After Handshake and Start the methods are safe for any goroutine. A Lane implements forward.Peer,
// except for Post.
type Lane struct {
	port   *LanePort
	remote netip.AddrPort
	client bool
	number int
	// opening is set while the lane counts as opening. The mutex of the port guards it.
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
	// heard is the time at which the last authenticated packet arrived, in nanoseconds since 1970.
	heard atomic.Int64
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

// Write implements secure.Sender.
func (s laneSender) Write(record []byte) (int, error) {
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

// Start passes the packets of the remote server to the sink from now on, beginning with those that wait.
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
	s.lane.heard.Store(info.At.UnixNano())
	s.Sink.RTP(ssrc, packet, info)
}

// RTCP implements Sink.
func (s laneSink) RTCP(packet []byte, now time.Time) {
	s.lane.heard.Store(now.UnixNano())
	s.Sink.RTCP(packet, now)
}

// receiveRun processes datagrams from the lane's address.
func (l *Lane) receiveRun(message udp.Message, now time.Time) {
	l.incoming.mu.Lock()
	defer l.incoming.mu.Unlock()
	l.incoming.info = PacketInfo{At: now, ECN: message.ECN}
	l.incoming.info.Kernel, l.incoming.info.Hardware = stampTimes(message.Arrived)
	for datagram := range message.Datagrams() {
		switch {
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
		l.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// Control returns the DTLS connection for application data. Reading from it counts as hearing the remote server.
func (l *Lane) Control() net.Conn { return laneControl{l.conn, l} }

type laneControl struct {
	*dtls.Conn
	lane *Lane
}

// Read implements net.Conn.
func (c laneControl) Read(b []byte) (int, error) { return c.lane.Read(b) }

// Heard returns the time at which the last authenticated packet of the remote server arrived, zero before the first.
func (l *Lane) Heard() time.Time {
	if at := l.heard.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
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
		close(l.closed)
		l.port.remove(l)
		go func() {
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
