package member

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
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
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// retryInterval is the time until events are offered again to a room that had no place for them.
	retryInterval = 20 * time.Millisecond
	// toldLimit is the number of waiting events of this node's rooms from which poses and lossy data messages are
	// dropped.
	toldLimit = 8192
	// publishInterval is the minimum time between two copies of the state for other goroutines, half of the interval of
	// beats. statsInterval is that of the trunks' counters.
	publishInterval = 100 * time.Millisecond
	statsInterval   = time.Second
)

// Place is the place of panics while a message or an event of another node is applied.
const Place = "cluster"

// subjectOfAll is the subject of messages for all nodes.
const subjectOfAll = "all"

// Rooms are the rooms of this node. sfu.Node implements Rooms.
type Rooms interface {
	// Remote is sfu.Node.Remote.
	Remote(room, node string, e sfu.Event) bool
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
	Take(node, room string, ref volumetric.PublicationRef, id uint64, tiles []allocate.QualitySet, near []bool,
		parity float64)
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
	// fanout is Config.Fanout.
	fanout  int
	started bool
	end     chan struct{}
	ended   sync.WaitGroup

	// mu guards what the rooms have told and the goroutine has not processed. latest has the index in told of the
	// latest state of a publication.
	mu     sync.Mutex
	told   []localEvent
	latest map[latestKey]int
	shares []share
	// waiting has an entry if there are told events or a new status.
	waiting  chan struct{}
	draining bool
	// view, own, links and counts are the latest of the goroutine.
	view   []cluster.Node
	own    cluster.Node
	trunk  []trunk.LinkState
	counts Counts

	// state guards replica and sessions. The goroutine alone changes them.
	state    sync.RWMutex
	replica  *cluster.Replica
	sessions *session.Store

	// The goroutine owns the rest.
	rooms    Rooms
	trunks   Trunks
	links    links
	outboxes map[string]*outbox
	load     load
	// processorTime returns the processor time that the process has used.
	processorTime func() time.Duration
	status        cluster.Status
	// entered has the rooms of this node. bans are told to the rooms with the next delivery.
	entered map[string]*room
	bans    []cluster.Banned
	lost    Lost
	// invalid and dropped are those of Counts.
	invalid, dropped uint64
	// nodesChanged is set if the nodes differ from view. published and counted are the times of the last copies.
	nodesChanged       bool
	published, counted time.Time
}

// localEvent is an event that a room of this node told.
type localEvent struct {
	room  string
	event sfu.Event
}

// latestKey identifies a state of a publication in told, of which only the latest counts.
type latestKey struct {
	room string
	kind reflect.Type
	node string
	ref  volumetric.PublicationRef
	id   uint64
}

// share is a session whose record a node receives before the session moves there.
type share struct{ session, node string }

// Counts are numbers of events since Open.
type Counts struct {
	// Fabric, Replica, Trunk and Sessions are those of the parts. Invalid counts messages that cannot be decoded,
	// Refused refused certificates, Dropped events for rooms and of rooms that were dropped because too many waited,
	// Lost data messages that did not reach a node.
	Fabric           fabric.Stats
	Replica          cluster.Counters
	Trunk            trunk.Stats
	Sessions         session.Counts
	Invalid, Dropped uint64
	Refused          uint64
	Lost             Lost
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
	m.fanout = c.Fanout
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
		options: o, log: o.Log, fabric: messages, end: make(chan struct{}), waiting: make(chan struct{}, 1),
		self: cluster.Self{Name: name, Incarnation: incarnation}, latest: make(map[latestKey]int),
		links: links{make(map[string]*link)}, outboxes: make(map[string]*outbox), entered: make(map[string]*room),
		load: load{cores: runtime.GOMAXPROCS(0), rooms: o.Rooms}, processorTime: process.Time,
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
		Region: m.options.Certificate.Region, Fanout: m.fanout,
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
func (m *Member) begin(now time.Time, rooms Rooms, trunks Trunks, description cluster.Description) error {
	m.self.Description = description
	if err := m.self.Validate(); err != nil {
		return fmt.Errorf("description of this node: %w", err)
	}
	m.rooms, m.trunks = rooms, trunks
	m.state.Lock()
	m.replica = cluster.New(cluster.Config{ResumeGrace: m.options.ResumeGrace}, m.self, now)
	m.sessions = session.New(m.own.Home, m.options.ResumeGrace)
	m.state.Unlock()
	m.publish(now)
	return nil
}

// Tell implements sfu.Cluster.
func (m *Member) Tell(room string, e sfu.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := latestKey{room: room, kind: reflect.TypeOf(e)}
	switch e := e.(type) {
	case sfu.Posed:
		key.ref, key.node = e.Ref, e.Node
	case sfu.Rates:
		key.ref, key.id = e.Ref, e.ID
	case sfu.GaveUp:
		key.ref, key.id = e.Ref, e.ID
	case sfu.Take:
		key.ref, key.node, key.id = e.Ref, e.Node, e.ID
	case sfu.Sent:
		if len(m.told) >= toldLimit && e.Data.Lossy {
			m.counts.Dropped++
			return
		}
	}
	if key.ref.Participant != "" {
		if at, ok := m.latest[key]; ok {
			m.told[at].event = nil
		}
		m.latest[key] = len(m.told)
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
	m.own.Draining = true
	m.signal()
}

// Share sends the record of a session of this node to a node, before the session moves there.
func (m *Member) Share(session, node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares = append(m.shares, share{session, node})
	m.signal()
}

// Self returns this node as the others see it. Before Serve, only the name and the incarnation are set, and this node
// knows no rooms, sessions and other nodes.
func (m *Member) Self() cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

// Nodes returns the other nodes in the order of their names. The caller does not change the list.
func (m *Member) Nodes() []cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

// NodesOf returns the names of the nodes that have a room and are not dead, this node included.
func (m *Member) NodesOf(room string) []string {
	m.state.RLock()
	defer m.state.RUnlock()
	if m.replica == nil {
		return nil
	}
	nodes := m.replica.NodesOf(room)
	if m.replica.Has(room) {
		nodes = append(nodes, m.self.Name)
	}
	return nodes
}

// Session returns the home of a session and its latest state. If this node has the room but no record, the home and the
// epoch are those of the participant, and the state is empty. Session returns false for sessions that this node does
// not know and for those that have ended.
func (m *Member) Session(room, session string) (cluster.Home, sfu.SessionState, bool) {
	m.state.RLock()
	defer m.state.RUnlock()
	if m.replica == nil {
		return cluster.Home{}, sfu.SessionState{}, false
	}
	home, record, found := m.sessions.Get(session)
	if found && record.Room != room {
		found = false
	}
	state := sfu.SessionState{Identity: record.Identity, Session: session, Epoch: record.Epoch, State: record.State}
	if !found {
		state = sfu.SessionState{Session: session}
	}
	if claim, known := m.replica.Claim(room, session); known && (!found || claim.Participant.Epoch >= record.Epoch) {
		if !found || claim.Home != home {
			home = claim.Home
		}
		state.Identity, state.Epoch = claim.Participant.Identity, claim.Participant.Epoch
		found = true
	}
	return home, state, found
}

// Keepers returns the names of the nodes that keep the record of a session of a home, this node included: the nodes
// that have the room and the first two in the ranking of the session, without the home and without nodes that drain or
// do not answer.
func (m *Member) Keepers(home, room, session string) []string {
	m.state.RLock()
	defer m.state.RUnlock()
	if m.replica == nil {
		return nil
	}
	return m.keepers(home, room, session)
}

// keepers is Keepers. The caller holds the state.
func (m *Member) keepers(home, room, id string) []string {
	return m.keepersAmong(m.candidates(home), home, room, id)
}

// candidates returns the other nodes that may keep records of a home: those that are alive and do not drain.
func (m *Member) candidates(home string) (nodes []string) {
	for _, n := range m.replica.Nodes() {
		if n.State == cluster.Alive && !n.Draining && n.Home.Node != home {
			nodes = append(nodes, n.Home.Node)
		}
	}
	return nodes
}

// keepersAmong is keepers among the candidates of the home.
func (m *Member) keepersAmong(nodes []string, home, room, id string) []string {
	inRoom := slices.DeleteFunc(m.replica.NodesOf(room), func(name string) bool {
		return !slices.Contains(nodes, name)
	})
	if home != m.self.Name && !m.status.Draining {
		nodes = append(slices.Clip(nodes), m.self.Name)
		if m.replica.Has(room) {
			inRoom = append(inRoom, m.self.Name)
		}
	}
	return session.Keepers(id, inRoom, nodes)
}

// keepersOfOwn returns a function that returns the keepers of sessions of this node. The candidates are the same for
// all sessions of a step.
func (m *Member) keepersOfOwn() func(room, session string) []string {
	var nodes []string
	known := false
	return func(room, session string) []string {
		if !known {
			nodes, known = m.candidates(m.self.Name), true
		}
		return m.keepersAmong(nodes, m.self.Name, room, session)
	}
}

// Trunks returns the state of the trunks, which is at most a second old. The caller does not change the list.
func (m *Member) Trunks() []trunk.LinkState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trunk
}

// Counts returns the counts.
func (m *Member) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	c.Fabric = m.fabric.Stats()
	if m.options.Certificate != nil {
		c.Refused = m.options.Certificate.Refused()
	}
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
		now := time.Now()
		m.state.Lock()
		m.perform(now)
		m.sendSessions(now)
		m.replica.Stop(now)
		m.send(now)
		m.state.Unlock()
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
		timer.Reset(time.Until(m.step(time.Now())))
	}
}

// step processes what has arrived and what is due, and returns the time of the next step. Messages of nodes precede
// those of trunks, so that a data message finds its sender, and both precede the judgement of silent nodes.
func (m *Member) step(now time.Time) time.Time {
	m.state.Lock()
	m.receive(now)
	m.applyEvents(now)
	m.stepTrunks(now)
	m.perform(now)
	m.replica.Step(now)
	m.applyEvents(now)
	m.connect(now)
	m.flushOutboxes(now)
	m.sendSessions(now)
	m.send(now)
	next := m.replica.Wake()
	retry := m.sessions.Waiting()
	m.state.Unlock()
	retry = m.deliver(now) || retry
	for _, o := range m.outboxes {
		retry = retry || !o.empty()
	}
	m.publish(now)
	if later := now.Add(retryInterval); retry && later.Before(next) {
		next = later
	}
	return next
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

// sendSessions queues records of sessions for their keepers.
func (m *Member) sendSessions(now time.Time) {
	rooms, nodes := m.replica.Regrouped()
	if nodes {
		m.sessions.Check()
	} else {
		m.sessions.CheckRooms(rooms)
	}
	for _, s := range m.sessions.Step(now, m.keepersOfOwn()) {
		m.replica.SendSession(s.Nodes, s.Record)
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

// publish makes the state available to other goroutines.
func (m *Member) publish(now time.Time) {
	if !m.nodesChanged && now.Sub(m.published) < publishInterval {
		return
	}
	m.nodesChanged, m.published = false, now
	var trunks []trunk.LinkState
	var stats trunk.Stats
	counted := now.Sub(m.counted) >= statsInterval
	if counted {
		m.counted, trunks, stats = now, m.trunks.Links(), m.trunks.Stats()
	}
	nodes, counters, sessions := m.replica.Nodes(), m.replica.Counters(), m.sessions.Counts()
	m.mu.Lock()
	defer m.mu.Unlock()
	dropped := m.counts.Dropped
	m.view, m.counts.Replica, m.counts.Sessions = nodes, counters, sessions
	m.counts.Invalid, m.counts.Lost, m.counts.Dropped = m.invalid, m.lost, dropped+m.dropped
	m.dropped = 0
	if counted {
		m.trunk, m.counts.Trunk = trunks, stats
	}
	m.own = cluster.Node{Home: m.own.Home, Description: m.self.Description, Status: m.status,
		Version: cluster.Version, State: cluster.Alive, Beat: now}
	m.own.Draining = m.draining
}
