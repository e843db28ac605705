package puppet

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Config has the settings of a puppet.
type Config struct {
	// URL is the server's address, as ws://host:port.
	URL string
	// Token is the access token, if the server requires one.
	Token string
	// Media replaces the UDP socket unless nil. The puppet closes Media.
	Media net.PacketConn
	// Answer replaces the answer to an offer; if the result is false, the puppet does not answer. If Answer is nil, the
	// puppet answers correctly.
	Answer func(offer *signal.Offer, answer string) (string, bool)
	// RTP and RTCP, if not nil, get every packet that arrives. The packet is valid during the call.
	RTP  func(ssrc uint32, packet []byte)
	RTCP func(packet []byte)
}

// Puppet is one client.
type Puppet struct {
	config   Config
	life     *life
	conn     *websocket.Conn
	endpoint *transport.Endpoint
	peer     *transport.Peer
	// ended is closed when the websocket has ended, stop when the puppet is closed.
	ended   chan struct{}
	stop    chan struct{}
	closing sync.Once
	running sync.WaitGroup
	writing sync.Mutex

	mu          sync.Mutex
	deaf        chan struct{}
	counts      map[signal.Type]int
	errors      []*signal.Error
	farewell    *signal.Closing
	pending     map[string]chan signal.Message
	requests    int
	lines       map[Track]*Line
	slots       map[string]Slot
	candidates  []string
	lastOffer   *signal.Offer
	isConnected bool
}

// Timeouts are generous: timeouts only end tests that hang.
const patience = 30 * time.Second

// Dial opens a puppet's websocket and media socket. No message is sent yet.
func Dial(config Config) (*Puppet, error) {
	p := &Puppet{
		config:  config,
		life:    newLife(),
		ended:   make(chan struct{}),
		stop:    make(chan struct{}),
		counts:  make(map[signal.Type]int),
		pending: make(map[string]chan signal.Message),
		lines:   make(map[Track]*Line),
		slots:   make(map[string]Slot),
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	messages := make(chan signal.Message)
	p.running.Add(2)
	go p.read(messages)
	go p.act(messages)
	return p, nil
}

// open creates the parts of a puppet.
func (p *Puppet) open() error {
	media := p.config.Media
	if media == nil {
		var err error
		if media, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return fmt.Errorf("listen for media: %w", err)
		}
	}
	var err error
	if p.endpoint, err = transport.Attach(transport.ClientConfig(), &mortalPacketConn{media, p.life}); err != nil {
		_ = media.Close()
		return err
	}
	if p.peer, err = p.endpoint.NewPeer(sink{Puppet: p}); err != nil {
		_ = p.endpoint.Close()
		return err
	}
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: p.dialTCP}
	if p.conn, _, err = dialer.Dial(p.config.URL+signal.Path, p.header()); err != nil {
		_ = p.peer.Close()
		_ = p.endpoint.Close()
		return fmt.Errorf("connect to %s: %w", p.config.URL, err)
	}
	return nil
}

// header returns the header of the websocket's request.
func (p *Puppet) header() http.Header {
	if p.config.Token == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + p.config.Token}}
}

func (p *Puppet) dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &mortalConn{conn, p.life}, nil
}

// Join sends a join and waits for the reply. From then on the puppet negotiates.
func (p *Puppet) Join(join *signal.Join) (*signal.Joined, error) {
	reply, err := p.Request(join)
	if err != nil {
		return nil, err
	}
	joined, ok := reply.(*signal.Joined)
	if !ok {
		return nil, fmt.Errorf("reply to join is %T", reply)
	}
	return joined, nil
}

// Request sends a message and waits for the reply. An error of the server is a *signal.Error.
func (p *Puppet) Request(m signal.Message) (signal.Message, error) {
	p.mu.Lock()
	p.requests++
	id := strconv.Itoa(p.requests)
	reply := make(chan signal.Message, 1)
	p.pending[id] = reply
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.pending, id)
		p.mu.Unlock()
	}()
	m.Head().ID = id
	if err := p.Send(m); err != nil {
		return nil, err
	}
	var r signal.Message
	select {
	case r = <-reply:
	case <-p.ended:
		// The reply may have arrived just before the end.
		select {
		case r = <-reply:
		default:
			return nil, fmt.Errorf("the websocket ended before the reply to %T", m)
		}
	case <-time.After(patience):
		return nil, fmt.Errorf("no reply to %T", m)
	}
	if refused, ok := r.(*signal.Error); ok {
		return nil, refused
	}
	return r, nil
}

// Send sends a message.
func (p *Puppet) Send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	return p.Write(websocket.TextMessage, data)
}

// Write sends one websocket frame with any content.
func (p *Puppet) Write(kind int, data []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return p.conn.WriteMessage(kind, data)
}

// WriteBytes writes bytes, which need not form a websocket frame, to the websocket's TCP connection.
func (p *Puppet) WriteBytes(data []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.conn.NetConn().Write(data)
	return err
}

// WriteRTCP sends RTCP packets as one compound, well formed or not.
func (p *Puppet) WriteRTCP(packets ...rtcp.Packet) error { return p.peer.WriteRTCP(packets) }

// Deafen makes the puppet stop reading the websocket.
func (p *Puppet) Deafen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf == nil {
		p.deaf = make(chan struct{})
	}
}

// Die stops the puppet's TCP and UDP without closing either. The sockets stay open until Close.
func (p *Puppet) Die() { p.life.over.Store(true) }

// Hang closes the websocket's TCP connection without leaving.
func (p *Puppet) Hang() { _ = p.conn.Close() }

// Ended is closed when the websocket has ended.
func (p *Puppet) Ended() <-chan struct{} { return p.ended }

// Close frees the puppet's resources, without leaving. Further calls have no effect.
func (p *Puppet) Close() { p.closing.Do(p.close) }

func (p *Puppet) close() {
	close(p.stop)
	p.mu.Lock()
	if p.deaf != nil {
		close(p.deaf)
	}
	p.mu.Unlock()
	p.life.free()
	_ = p.conn.Close()
	p.running.Wait()
	_ = p.peer.Close()
	_ = p.endpoint.Close()
}

// Count returns the number of received messages of a type.
func (p *Puppet) Count(t signal.Type) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[t]
}

// Errors returns the errors that the server sent outside of replies.
func (p *Puppet) Errors() []*signal.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errors)
}

// Closing returns the server's close message, or nil.
func (p *Puppet) Closing() *signal.Closing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.farewell
}

// Candidates returns the server's candidates so far, from descriptions and messages.
func (p *Puppet) Candidates() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.candidates)
}

// LastOffer returns the latest offer, or nil before the first.
func (p *Puppet) LastOffer() *signal.Offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastOffer
}

// Connected reports whether media flows.
func (p *Puppet) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isConnected
}

// Slots returns the media lines on which the server sends, with the content.
func (p *Puppet) Slots() []Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.slots))
}

// Line returns the line on which a track of the puppet is sent, or nil.
func (p *Puppet) Line(t Track) *Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[t]
}

// sink implements transport.Sink for the puppet.
type sink struct {
	transport.NoOpSink
	*Puppet
}

// RTP implements transport.Sink.
func (s sink) RTP(ssrc uint32, packet []byte, _ *transport.PacketInfo) {
	if s.config.RTP != nil {
		s.config.RTP(ssrc, packet)
	}
}

// RTCP implements transport.Sink.
func (s sink) RTCP(packet []byte, _ time.Time) {
	if s.config.RTCP != nil {
		s.config.RTCP(packet)
	}
}
