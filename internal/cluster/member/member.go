package member

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/session"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/process"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// retryInterval is the time until events are offered again to a room that had no place for them.
const retryInterval = 20 * time.Millisecond

// Place is the place of panics while a message or an event of another node is applied.
const Place = "cluster"

// subjectOfAll is the subject of messages for all nodes.
const subjectOfAll = "all"

// Rooms are the rooms of this node. sfu.Node implements Rooms.
type Rooms interface {
	// Remote is sfu.Node.Remote.
	Remote(room, node string, e roomevent.Event) bool
}

// Messages carry messages between nodes. fabric.Fabric implements Messages.
type Messages interface {
	Publish(subject string, data []byte) error
	Subscribe(subject string) error
	Unsubscribe(subject string)
	Notify() <-chan struct{}
	Messages() []fabric.Message
	Connected() bool
	RoutePort() int
	Stats() fabric.Stats
	Close()
}

// Trunks carry media between nodes. trunk.Host implements Trunks.
type Trunks interface {
	Connect(node string, to netip.AddrPort)
	Disconnect(node string)
	Offer(room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track)
	Withdraw(room string, ref volumetric.PublicationRef, id uint64)
	SetRates(room string, ref volumetric.PublicationRef, id uint64, rates []volumetric.Bitrate)
	SetGaveUp(room string, ref volumetric.PublicationRef, id uint64, tiles []allocate.QualitySet)
	Mirror(node, room string, ref volumetric.PublicationRef, id uint64, qualities int, tracks []*track.Track)
	Unmirror(node, room string, ref volumetric.PublicationRef, id uint64)
	Take(node, room string, ref volumetric.PublicationRef, id uint64, d trunk.Demand)
	Send(node string, payload []byte) error
	Step(now time.Time) []trunk.Event
	Notify() <-chan struct{}
	Links() []trunk.LinkState
	Stats() trunk.Stats
	Close()
}

// Options are the parts of a server that its Member needs.
type Options struct {
	Certificate *certificate.Node
	// Address is the local address of trunks, Host the host at which other nodes reach it.
	Address netip.AddrPort
	Host    string
	// Guard confines a panic to the message or the event of another node that caused the panic.
	Guard *panics.Guard
	// Loopback restricts the embedded NATS server to this host.
	Loopback bool
	// ResumeGrace is the time for which participants of a dead node keep their places.
	ResumeGrace time.Duration
	// Rooms is the maximum number of rooms, for the load of this node, 0 for no limit.
	Rooms int
	Log   *zap.Logger
}

// Member is this server as a node of a cluster. The methods are safe for concurrent use, except Serve and Close.
type Member struct {
	options Options
	log     *zap.Logger
	fabric  Messages
	self    cluster.Self
	config  Config
	started bool
	end     chan struct{}
	ended   sync.WaitGroup

	// queue has the events of the rooms, directory the state of the cluster, and view a copy of the nodes and counters.
	*queue
	*directory
	*view

	// The goroutine owns the rest.
	trunks   Trunks
	links    links
	rooms    *rooms
	payloads *payloads
	load     load
	// processorTime returns the processor time that the process has used.
	processorTime func() time.Duration
	status        cluster.Status
	// invalid counts messages that cannot be decoded.
	invalid uint64
}

// Open connects to the other nodes. Other nodes learn of this one when Serve is called.
func Open(c Config, o Options) (*Member, error) {
	address, err := fabric.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	messages, err := fabric.Open(fabric.Config{Address: address, Cluster: o.Certificate.Cluster,
		Node: o.Certificate.Name, TLS: o.Certificate.TLS(), Loopback: o.Loopback}, o.Log)
	if err != nil {
		return nil, err
	}
	m := newMember(o, messages, o.Certificate.Name, uint64(time.Now().UnixMicro()))
	m.config = c
	for _, subject := range []string{subjectOfAll, subjectOfNode(m.self.Name)} {
		if err := m.fabric.Subscribe(subject); err != nil {
			m.fabric.Close()
			return nil, err
		}
	}
	return m, nil
}

func newMember(o Options, messages Messages, name string, incarnation uint64) *Member {
	m := &Member{
		options: o, log: o.Log, fabric: messages, end: make(chan struct{}),
		self:  cluster.Self{Name: name, Incarnation: incarnation},
		queue: newQueue(), directory: &directory{node: name},
		view:  &view{fabric: messages, certificate: o.Certificate},
		links: links{make(map[string]*link)}, load: load{cores: runtime.GOMAXPROCS(0), rooms: o.Rooms},
		processorTime: process.Time,
	}
	m.own.Home = cluster.Home{Node: name, Incarnation: incarnation}
	return m
}

func subjectOfNode(name string) string { return "node." + name }

func subjectOfRoom(room string) string { return "room." + cluster.RoomKey(room) }

// Serve begins to share the rooms of this node. The description is that of this node for others; its region is that of
// the certificate.
func (m *Member) Serve(rooms Rooms, engine *forward.Engine, description cluster.Description) error {
	description.Region = m.options.Certificate.Region
	host, err := trunk.Listen(trunk.Config{
		Node: m.self.Name, Incarnation: m.self.Incarnation, Address: m.options.Address,
		Certificate: m.options.Certificate.Certificate, Verify: m.options.Certificate.Verify, Guard: m.options.Guard,
		Region: m.options.Certificate.Region, Fanout: m.config.Fanout, Limits: m.config.Limits,
	}, engine)
	if err != nil {
		return err
	}
	description.Trunk = net.JoinHostPort(m.options.Host, strconv.Itoa(int(host.Address().Port())))
	if err := m.begin(time.Now(), rooms, host, description); err != nil {
		host.Close()
		return err
	}
	m.started = true
	m.ended.Go(m.run)
	m.log.Info("node of a cluster", zap.String("node", m.self.Name),
		zap.String("cluster", m.options.Certificate.Cluster), zap.String("region", description.Region),
		zap.Int("route_port", m.fabric.RoutePort()))
	return nil
}

// begin creates the state of a node without rooms.
func (m *Member) begin(now time.Time, receiver Rooms, trunks Trunks, description cluster.Description) error {
	m.self.Description = description
	if err := m.self.Validate(); err != nil {
		return fmt.Errorf("description of this node: %w", err)
	}
	m.trunks = trunks
	m.payloads = &payloads{directory: m.directory, trunks: trunks, log: m.log, outboxes: make(map[string]*outbox)}
	m.rooms = &rooms{
		directory: m.directory, fabric: m.fabric, trunks: trunks, payloads: m.payloads, receiver: receiver,
		guard: m.options.Guard, log: m.log, entered: make(map[string]*room),
	}
	m.directory.mu.Lock()
	m.replica = cluster.New(cluster.Config{ResumeGrace: m.options.ResumeGrace}, m.self, now)
	m.sessions = session.New(m.own.Home, m.options.ResumeGrace)
	m.directory.mu.Unlock()
	m.copyView(now)
	return nil
}

// Drain publishes that this node accepts no new participants.
func (m *Member) Drain() {
	m.view.drain()
	m.queue.drain()
}

// Connected reports whether this node's NATS server is reachable.
func (m *Member) Connected() bool { return m.fabric.Connected() }

// RoutePort returns the port of the embedded NATS server for other nodes, 0 if there is none.
func (m *Member) RoutePort() int { return m.fabric.RoutePort() }

// Close leaves the cluster. The rooms should have ended before.
func (m *Member) Close() {
	close(m.end)
	m.ended.Wait()
	if m.started {
		now := time.Now()
		m.directory.mu.Lock()
		m.perform(now)
		m.sendSessions(now)
		m.replica.Stop(now)
		m.send(now)
		m.directory.mu.Unlock()
		m.trunks.Close()
	}
	m.fabric.Close()
}

// run owns the replica until Close.
func (m *Member) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.end:
			return
		case <-m.filled:
		case <-m.fabric.Notify():
		case <-m.trunks.Notify():
		case <-timer.C:
		}
		timer.Reset(time.Until(m.step(time.Now())))
	}
}

// step processes what has arrived and what is due, and returns the time of the next step. Messages of nodes precede
// those of trunks, so that a data message finds its sender, and both precede the judgement of silent nodes.
func (m *Member) step(now time.Time) time.Time {
	m.directory.mu.Lock()
	m.receive(now)
	m.applyEvents(now)
	m.stepTrunks(now)
	m.perform(now)
	m.replica.Step(now)
	m.applyEvents(now)
	m.connect(now)
	m.payloads.flush(now)
	m.sendSessions(now)
	m.send(now)
	next := m.replica.Wake()
	retry := m.sessions.Waiting()
	m.directory.mu.Unlock()
	retry = m.rooms.deliver(now) || m.payloads.waiting() || retry
	m.copyView(now)
	if later := now.Add(retryInterval); retry && later.Before(next) {
		next = later
	}
	return next
}

// perform writes what the rooms of this node have published to the replica and the trunks.
func (m *Member) perform(now time.Time) {
	t := m.queue.take()
	m.rooms.dropped += t.dropped
	for _, e := range t.events {
		if e.event != nil {
			m.rooms.write(now, e.room, e.event)
		}
	}
	for _, s := range t.shares {
		if sending, ok := m.sessions.Share(s.session, s.node); ok {
			m.replica.SendSession(sending.Nodes, sending.Record)
		}
	}
	participants := m.rooms.participants()
	status := cluster.Status{Draining: t.draining, Rooms: len(m.rooms.entered), Participants: participants}
	m.load.measure(now, m.processorTime())
	status.Load, status.JoinLoad = m.load.total(len(m.rooms.entered), participants)
	m.replica.SetStatus(now, status)
	m.status, m.directory.draining = status, t.draining
}

// receive passes the messages of other nodes to the replica. Errors of the replica are in its counters.
func (m *Member) receive(now time.Time) {
	for _, received := range m.fabric.Messages() {
		message, err := cluster.Decode(received.Data)
		if err == nil && message.Node != received.Sender {
			err = fmt.Errorf("%w: the node is %q, expected the sender %q", cluster.ErrMessage, message.Node,
				received.Sender)
		}
		if err != nil {
			m.invalid++
			m.log.Debug("invalid message of a node", zap.String("subject", received.Subject), zap.Error(err))
			continue
		}
		m.options.Guard.Try(Place, func() { _ = m.replica.Receive(now, message) })
	}
}

// send sends the messages of the replica. A message that cannot be sent is lost, and repaired by later ones.
func (m *Member) send(now time.Time) {
	var encoded *cluster.Message
	var data []byte
	for _, out := range m.replica.Messages(now) {
		if out.Message != encoded {
			// A record of a session has several receivers.
			var err error
			if data, err = out.Message.Encode(); err != nil {
				m.log.Error("a message for other nodes cannot be encoded", zap.Error(err))
				continue
			}
			encoded = out.Message
		}
		subject := subjectOfAll
		switch {
		case out.Room != "":
			subject = subjectOfRoom(out.Room)
		case out.Node != "":
			subject = subjectOfNode(out.Node)
		}
		_ = m.fabric.Publish(subject, data)
	}
}

// copyView copies the state for other goroutines, if the copy is old.
func (m *Member) copyView(now time.Time) {
	nodes, trunks := m.view.due(now)
	if !nodes {
		return
	}
	var links []trunk.LinkState
	var stats trunk.Stats
	if trunks {
		links, stats = m.trunks.Links(), m.trunks.Stats()
	}
	others, counters, sessions := m.replica.Nodes(), m.replica.Counters(), m.sessions.Counts()
	v := m.view
	v.mu.Lock()
	defer v.mu.Unlock()
	draining := v.own.Draining
	v.nodes, v.counts.Replica, v.counts.Sessions = others, counters, sessions
	v.counts.Invalid, v.counts.Lost, v.counts.Dropped = m.invalid+m.rooms.invalid, m.payloads.lost, m.rooms.dropped
	if trunks {
		v.trunks, v.counts.Trunk = links, stats
	}
	v.own = cluster.Node{Home: v.own.Home, Description: m.self.Description, Status: m.status,
		Version: cluster.Version, State: cluster.Alive, Beat: now}
	v.own.Draining = draining
}
