package sfu

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Metrics counts events of the control plane.
type Metrics interface {
	// Rooms and Participants set the present numbers.
	Rooms(int)
	Participants(int)
	// ParticipantConnected records the time from the opening of the websocket to the connected peer.
	ParticipantConnected(time.Duration)
	// SignallingError counts an error that was sent to a client.
	SignallingError(signal.Code)
	// TracksPaused changes the present number of paused tracks by difference. Suppressed counts bits that publishers
	// did not send because of pauses.
	TracksPaused(difference int)
	Suppressed(bits float64)
	// Allocated records the duration and the budget of one allocation. Decided counts a decision that changed a slot.
	Allocated(time.Duration, volumetric.Bitrate)
	Decided(signal.Reason)
}

// Node has all rooms of one server. The methods are safe for concurrent use.
type Node struct {
	config   Config
	endpoint *transport.Endpoint
	engine   *forward.Engine
	metrics  Metrics
	log      *zap.Logger
	// running counts the goroutines of rooms and connections.
	running sync.WaitGroup
	// withheld counts publications that were not sent to clients because the protocol cannot carry them.
	withheld atomic.Uint64
	// losses counts data messages of other nodes that were not delivered.
	losses dataLosses
	// connect makes a peer connection for a participant. connect is newConnection except in tests.
	connect func(*Room, *participant) (*connection, error)
	// exclusions are the bans and revoked tokens.
	exclusions admission.Exclusions

	mu       sync.Mutex
	rooms    map[string]*occupied
	sessions map[string]*Room
	// holdings are the rooms and places of each bearer.
	holdings *admission.Holdings
	gc       gcTrigger
	draining bool
	// empty is closed when the last room ends during a drain.
	empty chan struct{}
}

// occupied is a room with at least one participant or join in progress, or one that the API has created.
type occupied struct {
	room *Room
	// members counts participants and joins in progress, places the same for each bearer. The room ends with the last
	// member, or emptyTimeout later.
	members int
	places  map[admission.Bearer]int
	// opener is the bearer that opened the room, empty for a room of the API.
	opener admission.Bearer
	end    chan struct{}
	// emptyTimeout is the time for which the room remains without members, 0 for a room of which the API has no
	// settings. timer ends the room then. vacancy counts the times without members.
	emptyTimeout time.Duration
	timer        *time.Timer
	vacancy      int
}

// NewNode returns a node without rooms. The caller owns the endpoint and the engine.
func NewNode(
	config Config, endpoint *transport.Endpoint, engine *forward.Engine, metrics Metrics, log *zap.Logger,
) (*Node, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Node{
		config:   config,
		endpoint: endpoint,
		engine:   engine,
		metrics:  metrics,
		log:      log,
		rooms:    make(map[string]*occupied),
		sessions: make(map[string]*Room),
		holdings: admission.NewHoldings(admission.Limits{Rooms: config.BearerRooms, Places: config.BearerPlaces}),
		connect:  newConnection,
		empty:    make(chan struct{}),
	}, nil
}

// Join adds a client to a room or resumes its session. If there is no error, the reply is in the outbox when Join
// returns.
func (n *Node) Join(q JoinRequest) (*Session, *signal.Error) {
	if refused := n.exclusions.Refuse(q.Room, q.Identity, q.Token, time.Now()); refused != nil {
		return nil, refused
	}
	result := make(chan joinResult, 1)
	if q.Join.Resume != nil && (q.Adopt == nil || n.HasSession(q.Adopt.Session)) {
		room := n.roomOf(q.Join.Resume.Session)
		if room == nil || room.name != q.Room {
			return nil, sessionExpired()
		}
		room.post(resumeRequest{q, result})
		if r, answered := await(context.Background(), room, result); answered {
			return r.session, r.err
		}
		return nil, sessionExpired()
	}
	publications, err := n.checkJoin(&q)
	if err != nil {
		return nil, err
	}
	if q.Watched != "" && n.room(q.Room) == nil {
		return nil, notWatchable(&q)
	}
	room, err := n.enter(q.Room, q.Bearer)
	if err != nil {
		return nil, err
	}
	room.post(joinRequest{q, publications, result})
	r, answered := await(context.Background(), room, result)
	if !answered {
		r.err = n.ended()
	}
	if r.err != nil {
		n.leave(room, q.Bearer)
	}
	return r.session, r.err
}

// checkJoin checks the publications of a join. A join that continues a session of another node has the requests and the
// publications of the session's record. A record whose publications exceed the limits of this node is lost.
func (n *Node) checkJoin(q *JoinRequest) ([]checked, *signal.Error) {
	if q.Adopt == nil || q.Adopt.Record == nil {
		return n.config.check(q.Grants, nil, q.Join.Publications)
	}
	join := q.Adopt.Record.restoredJoin(q.Join)
	// A participant that may not publish is told of the end of its publications after the join.
	publications, refused := n.config.check(Grants{Publish: true}, nil, join.Publications)
	if refused == nil {
		q.Join = join
		return publications, nil
	}
	n.log.Warn("the state of a session of another node exceeds the limits of this node",
		zap.String("participant", q.Identity), errorField(refused))
	adoption := *q.Adopt
	adoption.Record, q.Adopt = nil, &adoption
	return n.config.check(q.Grants, nil, q.Join.Publications)
}

// ended returns the answer to a join whose room has ended without an answer: the server stops, or the room's goroutine
// has panicked.
func (n *Node) ended() *signal.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.draining {
		return refuse(signal.CodeDraining, "the server is about to stop")
	}
	return refuse(signal.CodeInternal, "internal error of the server: the room has ended")
}

// sessionExpired returns the error for a session that has ended or that the client may not resume.
func sessionExpired() *signal.Error {
	return refuse(signal.CodeResume, "session expired or invalid resume secret; rejoin")
}

// await waits for the answer of a room to a request. await returns false if the room or the context ended without an
// answer. If the room has ended after its answer, the answer counts, for example after the removal of the last
// participant.
func await[T any](ctx context.Context, room *Room, result <-chan T) (T, bool) {
	select {
	case said := <-result:
		return said, true
	case <-room.done:
	case <-ctx.Done():
	}
	select {
	case said := <-result:
		return said, true
	default:
		var nothing T
		return nothing, false
	}
}

// enter finds or opens a room for a bearer and counts a member.
func (n *Node) enter(name string, b admission.Bearer) (*Room, *signal.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.draining {
		return nil, refuse(signal.CodeDraining, "the server is about to stop")
	}
	o, ok := n.rooms[name]
	switch {
	case !ok && !n.config.AutoCreate:
		return nil, refuse(signal.CodeNotFound,
			"there is no room %q, and joins do not create rooms (rooms.auto_create)", name)
	case !ok && len(n.rooms) >= n.config.Rooms:
		return nil, refuse(signal.CodeLimit, "the server has the maximum of %d rooms (rooms.rooms)", n.config.Rooms)
	}
	if refused := n.holdings.Hold(b, !ok); refused != nil {
		return nil, refused
	}
	if !ok {
		o = n.open(name, b, nil)
	}
	o.stopTimer()
	o.members++
	o.places[b]++
	return o.room, nil
}

// leave releases a bearer's place in a room and ends the room with the last member.
func (n *Node) leave(room *Room, b admission.Bearer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.rooms[room.name]
	if o == nil || o.room != room {
		// The room was dropped, together with its places.
		return
	}
	n.holdings.Release(b, 1, 0)
	o.members--
	if o.places[b]--; o.places[b] == 0 {
		delete(o.places, b)
	}
	switch {
	case o.members > 0:
	case o.emptyTimeout > 0 && !n.draining:
		n.vacate(o)
	default:
		n.remove(o)
		room.end()
	}
}

// drop removes a room whose goroutine has ended by a panic, and releases the members' places.
func (n *Node) drop(room *Room) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.rooms[room.name]
	if o == nil || o.room != room {
		return
	}
	for b, places := range o.places {
		n.holdings.Release(b, places, 0)
	}
	n.remove(o)
}

// remove ends a room. The caller holds the node's mutex, and emits the end of the room.
func (n *Node) remove(o *occupied) {
	o.stopTimer()
	close(o.end)
	delete(n.rooms, o.room.name)
	o.room.span.exited()
	n.holdings.Release(o.opener, 0, 1)
	n.metrics.Rooms(len(n.rooms))
	if n.draining && len(n.rooms) == 0 {
		close(n.empty)
	}
}

// remember registers a session, so that the client can resume the session.
func (n *Node) remember(p *participant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sessions[p.session] = p.room
	n.metrics.Participants(len(n.sessions))
}

// forget ends a session. forget is called by the room's goroutine.
func (n *Node) forget(p *participant) {
	n.endSession(p.session)
	n.leave(p.room, p.bearer)
}

func (n *Node) endSession(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sessions, session)
	n.metrics.Participants(len(n.sessions))
	if n.gc.left(len(n.sessions)) {
		time.AfterFunc(collectDelay, runtime.GC)
	}
}

func (n *Node) roomOf(session string) *Room {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sessions[session]
}

// HasSession reports whether a session lives: its client is in a room, or its place is kept for its return.
func (n *Node) HasSession(session string) bool { return n.roomOf(session) != nil }

// iceServers returns the ICE servers for the client of a session.
func (n *Node) iceServers(session string) []signal.ICEServer {
	servers := []signal.ICEServer{}
	if urls := n.endpoint.STUNServers(); len(urls) > 0 {
		servers = append(servers, signal.ICEServer{URLs: urls})
	}
	if n.config.ICEServers != nil {
		servers = append(servers, n.config.ICEServers(session)...)
	}
	return servers
}

// drainRequest announces the drain to all participants of a room.
type drainRequest struct{ grace time.Duration }

// apply implements request.
func (q drainRequest) apply(r *Room) {
	r.drained = time.Now().Add(q.grace)
	r.participants.broadcast(nil, func() signal.Message { return r.draining() })
}

// draining returns the message that announces the drain and the remaining time.
func (r *Room) draining() signal.Message {
	left := max(0, time.Until(r.drained))
	return &signal.Closing{
		Code: signal.CodeDraining, Message: "the server is about to stop", GraceMS: int(left.Milliseconds()),
	}
}

// endRequest removes all participants from a room.
type endRequest struct{}

// apply implements request.
func (endRequest) apply(r *Room) {
	r.ending = true
	for _, p := range r.participants.others(nil) {
		r.expel(p, signal.CodeDraining, "the server is stopping")
	}
	r.span.releaseAll()
}

// Drain refuses joins, announces the drain to all participants, and waits until they have left or the context ends.
// Then it removes the remaining participants. Drain returns when every goroutine of the node has ended.
func (n *Node) Drain(ctx context.Context, grace time.Duration) {
	n.RefuseJoins()
	n.toAll(drainRequest{grace})
	select {
	case <-n.empty:
	case <-ctx.Done():
		n.toAll(endRequest{})
	}
	n.running.Wait()
}

// RefuseJoins refuses joins from now on, and ends rooms without participants. Participants resume their sessions.
func (n *Node) RefuseJoins() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.draining {
		return
	}
	n.draining = true
	if len(n.rooms) == 0 {
		close(n.empty)
	}
	for _, o := range n.rooms {
		if o.members == 0 {
			n.remove(o)
			o.room.end()
		}
	}
}

func (n *Node) toAll(q request) {
	for _, room := range n.named("") {
		room.post(q)
	}
}

// room returns the room with a name, nil if there is none.
func (n *Node) room(name string) *Room {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.rooms[name]; o != nil {
		return o.room
	}
	return nil
}

// named returns the room with a name, or all rooms if the name is empty.
func (n *Node) named(name string) []*Room {
	n.mu.Lock()
	defer n.mu.Unlock()
	var rooms []*Room
	for _, o := range n.rooms {
		if name == "" || o.room.name == name {
			rooms = append(rooms, o.room)
		}
	}
	return rooms
}

// Withheld returns the number of publications that were not sent to clients because their protocol cannot carry them.
func (n *Node) Withheld() uint64 { return n.withheld.Load() }
