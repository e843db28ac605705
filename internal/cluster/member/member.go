package member

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// retryInterval is the time until events are offered again to a room that had no place for them.
	retryInterval = 20 * time.Millisecond
	// toldLimit is the number of waiting events of this node's rooms from which poses and data messages are dropped.
	toldLimit = 8192
	// backlogLimit is the number of events of other nodes that wait for one room. Later events are dropped.
	backlogLimit = 1 << 16
)

// subjectOfAll is the subject of messages for all nodes.
const subjectOfAll = "all"

// Rooms are the rooms of this node. sfu.Node implements Rooms.
type Rooms interface {
	// Remote is sfu.Node.Remote.
	Remote(room, node string, e sfu.Event) bool
}

// Options are the parts of a server that its Member needs.
type Options struct {
	Certificate *certificate.Node
	// Address is the local address of trunks, Host the host at which other nodes reach it.
	Address netip.AddrPort
	Host    string
	// Guard confines panics to one trunk.
	Guard *panics.Guard
	// Loopback restricts the embedded NATS server to this host.
	Loopback bool
	// ResumeGrace is the time for which participants of a dead node keep their places.
	ResumeGrace time.Duration
	Log         *zap.Logger
}

// Member is this server as a node of a cluster. The methods are safe for concurrent use, except Serve and Close.
type Member struct {
	options Options
	log     *zap.Logger
	fabric  *fabric.Fabric
	self    cluster.Self
	started bool
	end     chan struct{}
	ended   sync.WaitGroup

	// mu guards what the rooms have told and the goroutine has not processed.
	mu   sync.Mutex
	told []localEvent
	// waiting has an entry if there are told events or a new status.
	waiting  chan struct{}
	draining bool
	// view and counts are the latest of the goroutine.
	view   []cluster.Node
	counts Counts
	having map[string][]string

	// The goroutine owns the rest.
	rooms    Rooms
	trunks   *trunk.Host
	replica  *cluster.Replica
	sessions map[place]string
	// entered has the rooms of this node, each with the ids of the publications of other nodes.
	entered map[string]map[volumetric.PublicationRef]uint64
	// backlog has the events of other nodes for which a room had no place, in their order.
	backlog map[string][]remoteEvent
}

// place is the place of a participant.
type place struct{ room, identity string }

// localEvent is an event that a room of this node told, remoteEvent one of another node for a room of this node.
type localEvent struct {
	room  string
	event sfu.Event
}

type remoteEvent struct {
	node  string
	event sfu.Event
}

// Counts are numbers of events since Open.
type Counts struct {
	// Fabric and Replica are those of the parts. Invalid counts messages that are none, Refused refused certificates,
	// Dropped events for rooms and of rooms that were dropped because too many waited.
	Fabric           fabric.Stats
	Replica          cluster.Counters
	Invalid, Dropped uint64
	Refused          uint64
}

// Open connects to the other nodes. Other nodes learn of this one when Serve is called.
func Open(c Config, o Options) (*Member, error) {
	address, err := fabric.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	m := &Member{
		options: o, log: o.Log, end: make(chan struct{}), waiting: make(chan struct{}, 1),
		sessions: make(map[place]string), entered: make(map[string]map[volumetric.PublicationRef]uint64),
		backlog: make(map[string][]remoteEvent),
		self:    cluster.Self{Name: o.Certificate.Name, Incarnation: uint64(time.Now().UnixMicro())},
	}
	m.fabric, err = fabric.Open(fabric.Config{Address: address, Cluster: o.Certificate.Cluster,
		Node: o.Certificate.Name, TLS: o.Certificate.TLS(), Loopback: o.Loopback}, o.Log)
	if err != nil {
		return nil, err
	}
	for _, subject := range []string{subjectOfAll, subjectOfNode(m.self.Name)} {
		if err := m.fabric.Subscribe(subject); err != nil {
			m.fabric.Close()
			return nil, err
		}
	}
	return m, nil
}

func subjectOfNode(name string) string { return "node." + name }

func subjectOfRoom(room string) string { return "room." + cluster.RoomKey(room) }

// Serve begins to share the rooms of this node. The description is that of this node for others; its region is that of
// the certificate.
func (m *Member) Serve(rooms Rooms, engine *forward.Engine, description cluster.Description) error {
	description.Region = m.options.Certificate.Region
	m.self.Description = description
	var err error
	m.trunks, err = trunk.Listen(trunk.Config{
		Node: m.self.Name, Incarnation: m.self.Incarnation, Address: m.options.Address,
		Certificate: m.options.Certificate.Certificate, Verify: m.options.Certificate.Verify, Guard: m.options.Guard,
	}, engine)
	if err != nil {
		return err
	}
	m.self.Trunk = net.JoinHostPort(m.options.Host, strconv.Itoa(int(m.trunks.Address().Port())))
	if err := m.self.Validate(); err != nil {
		m.trunks.Close()
		return fmt.Errorf("description of this node: %w", err)
	}
	m.rooms = rooms
	m.replica = cluster.New(cluster.Config{ResumeGrace: m.options.ResumeGrace}, m.self, time.Now())
	m.started = true
	m.ended.Go(m.run)
	m.log.Info("node of a cluster", zap.String("node", m.self.Name),
		zap.String("cluster", m.options.Certificate.Cluster), zap.String("region", description.Region),
		zap.Int("route_port", m.fabric.RoutePort()))
	return nil
}

// Tell implements sfu.Cluster.
func (m *Member) Tell(room string, e sfu.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.told) >= toldLimit {
		switch e.(type) {
		case sfu.Posed, sfu.Sent:
			m.counts.Dropped++
			return
		}
	}
	m.told = append(m.told, localEvent{room, e})
	m.signal()
}

// signal wakes the goroutine. The caller holds the mutex.
func (m *Member) signal() {
	select {
	case m.waiting <- struct{}{}:
	default:
	}
}

// Drain tells other nodes that this one accepts no new participants.
func (m *Member) Drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
	m.signal()
}

// Nodes returns the other nodes in the order of their names.
func (m *Member) Nodes() []cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

// Counts returns the counts.
func (m *Member) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	c.Fabric, c.Refused = m.fabric.Stats(), m.options.Certificate.Refused()
	return c
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
		m.perform(time.Now())
		m.replica.Stop(time.Now())
		m.send(time.Now())
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
		case <-m.waiting:
		case <-m.fabric.Notify():
		case <-m.trunks.Notify():
		case <-timer.C:
		}
		now := time.Now()
		m.receive(now)
		m.stepTrunks(now)
		m.perform(now)
		m.replica.Step(now)
		m.send(now)
		m.deliver()
		m.publish()
		next := m.replica.Wake()
		if retry := now.Add(retryInterval); len(m.backlog) > 0 && retry.Before(next) {
			next = retry
		}
		timer.Reset(time.Until(next))
	}
}

// receive passes the messages of other nodes to the replica. Errors of the replica are in its counters.
func (m *Member) receive(now time.Time) {
	invalid := uint64(0)
	for _, received := range m.fabric.Messages() {
		message, err := cluster.Decode(received.Data)
		if err != nil {
			invalid++
			m.log.Debug("invalid message of a node", zap.String("subject", received.Subject), zap.Error(err))
			continue
		}
		_ = m.replica.Receive(now, message)
	}
	if invalid > 0 {
		m.mu.Lock()
		m.counts.Invalid += invalid
		m.mu.Unlock()
	}
}

// send sends the messages of the replica. A message that cannot be sent is lost, and repaired by later ones.
func (m *Member) send(now time.Time) {
	for _, out := range m.replica.Messages(now) {
		data, err := out.Message.Encode()
		if err != nil {
			m.log.Error("a message for other nodes cannot be encoded", zap.Error(err))
			continue
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

// publish makes the state of the replica available to other goroutines.
func (m *Member) publish() {
	nodes, counters := m.replica.Nodes(), m.replica.Counters()
	having := map[string][]string{}
	for room := range m.entered {
		having[room] = append(m.replica.NodesOf(room), m.self.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view, m.counts.Replica = nodes, counters
	m.having = having
}
