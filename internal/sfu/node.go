package sfu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrNotFound reports that there is no such room, or no participant with the name in the room.
var ErrNotFound = errors.New("not found")

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
	losses dataflow.LossCounters
	// connect makes a peer connection for a participant. connect is newConnection except in tests.
	connect func(*Room, *participant) (*connection, error)
	// exclusions are the bans and revoked tokens.
	exclusions admission.Exclusions

	rooms *directory.Directory[*Room]
}

// NewNode returns a node without rooms. The caller owns the endpoint and the engine.
func NewNode(
	config Config, endpoint *transport.Endpoint, engine *forward.Engine, metrics Metrics, log *zap.Logger,
) (*Node, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		config:   config,
		endpoint: endpoint,
		engine:   engine,
		metrics:  metrics,
		log:      log,
		connect:  newConnection,
	}
	n.rooms = newDirectory(n)
	return n, nil
}

// maker makes the rooms of a node.
type maker struct{ node *Node }

func newDirectory(n *Node) *directory.Directory[*Room] {
	c := &n.config
	return directory.New[*Room](directory.Config{
		Rooms: c.Rooms, AutoCreate: c.AutoCreate,
		Bearers: admission.Limits{Rooms: c.BearerRooms, Places: c.BearerPlaces},
	}, n.metrics, maker{n})
}

// Make implements directory.Maker.
func (m maker) Make(name string, settings *admission.RoomSettings) *Room {
	r := newRoom(m.node, name)
	if settings != nil {
		r.settings = settings
		r.census.Store(&census{})
	}
	return r
}

// Run implements directory.Maker.
func (m maker) Run(r *Room, end <-chan struct{}) {
	r.span.tell(roomevent.Entered{})
	m.node.running.Add(1)
	go r.run(end)
}

// Exited implements directory.Maker.
func (m maker) Exited(r *Room) { r.span.exited() }

// HasSession reports whether a session lives: its client is in a room, or its place is kept for its return.
func (n *Node) HasSession(session string) bool {
	_, lives := n.rooms.RoomOf(session)
	return lives
}

// RefuseJoins refuses joins from now on, and ends rooms without participants. Participants resume their sessions.
func (n *Node) RefuseJoins() { n.rooms.RefuseJoins() }

// forget ends the session of a participant and its place. forget is called by the room's goroutine.
func (n *Node) forget(p *participant) {
	n.rooms.Forget(p.Session)
	n.rooms.Leave(p.room, p.bearer)
}

// Join adds a client to a room or resumes its session. If there is no error, the reply is in the outbox when Join
// returns.
func (n *Node) Join(q JoinRequest) (*Session, *signal.Error) {
	if refused := n.exclusions.Refuse(q.Room, q.Identity, q.Token, time.Now()); refused != nil {
		return nil, refused
	}
	result := make(chan joinResult, 1)
	if q.Join.Resume != nil && (q.Adopt == nil || n.HasSession(q.Adopt.Session)) {
		room, lives := n.rooms.RoomOf(q.Join.Resume.Session)
		if !lives || room.name != q.Room {
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
	if q.Watched != "" {
		if _, exists := n.rooms.Room(q.Room); !exists {
			return nil, notWatchable(&q)
		}
	}
	room, err := n.rooms.Enter(q.Room, q.Bearer)
	if err != nil {
		return nil, err
	}
	room.post(joinRequest{q, publications, result})
	r, answered := await(context.Background(), room, result)
	if !answered {
		r.err = n.rooms.Ended()
	}
	if r.err != nil {
		n.rooms.Leave(room, q.Bearer)
	}
	return r.session, r.err
}

// checkJoin checks the publications of a join. A join that continues a session of another node has the requests and the
// publications of the session's record. A record whose publications exceed the limits of this node is lost.
func (n *Node) checkJoin(q *JoinRequest) ([]checked, *signal.Error) {
	if q.Adopt == nil || q.Adopt.Record == nil {
		return n.config.check(q.Grants, nil, q.Join.Publications)
	}
	join := q.Adopt.Record.RestoredJoin(q.Join)
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

// sessionExpired returns the error for a session that has ended or that the client may not resume.
func sessionExpired() *signal.Error {
	return signal.Errorf(signal.CodeResume,
		"the session has expired, or the resume secret is invalid: join again without resume")
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
	case <-n.rooms.Empty():
	case <-ctx.Done():
		n.toAll(endRequest{})
	}
	n.running.Wait()
}

func (n *Node) toAll(q request) {
	for _, room := range n.rooms.Named("") {
		room.post(q)
	}
}

// Withheld returns the number of publications that were not sent to clients because their protocol cannot carry them.
func (n *Node) Withheld() uint64 { return n.withheld.Load() }

// CloseRoom removes all participants from a room, and ends a room of the API. The error wraps ErrNotFound if the room
// does not exist.
func (n *Node) CloseRoom(ctx context.Context, room string) error {
	n.tell(room, roomevent.Close{})
	switch exists, ended := n.rooms.Release(room); {
	case !exists:
		return fmt.Errorf("%w: room %q", ErrNotFound, room)
	case ended:
		return nil
	}
	return n.removeFrom(ctx, room, removeRequest{code: signal.CodeClosed, reason: closedReason})
}

func (n *Node) removeFrom(ctx context.Context, name string, q removeRequest) error {
	room, exists := n.rooms.Room(name)
	if !exists {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan bool, 1)
	q.result = result
	room.post(q)
	found, answered := await(ctx, room, result)
	if found {
		return nil
	}
	if err := ctx.Err(); err != nil && !answered {
		return err
	}
	if q.identity == "" {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	return fmt.Errorf("%w: %q in room %q", ErrNotFound, q.identity, name)
}

// Bans returns the bans in force.
func (n *Node) Bans() []admission.Ban { return n.exclusions.Bans(time.Now()) }

// Unban ends a ban. The error wraps ErrNotFound if there is none.
func (n *Node) Unban(room, identity string) error {
	if !n.exclusions.Unban(room, identity, time.Now()) {
		return fmt.Errorf("%w: a ban of %q in room %q", ErrNotFound, identity, room)
	}
	return nil
}

// Revoke revokes a token by its id and ends the sessions of the token with the code revoked. When the server knows the
// expiry of the token, the revocation lasts until then; otherwise it lasts for the given time, or for
// admission.DefaultRevocation if the time is 0. The error wraps admission.ErrExclusion or admission.ErrFull.
func (n *Node) Revoke(id string, lasts time.Duration) error {
	if err := admission.CheckRevocation(id, lasts); err != nil {
		return err
	}
	if lasts == 0 {
		lasts = admission.DefaultRevocation
	}
	now := time.Now()
	if err := n.exclusions.Revoke(id, now.Add(lasts), now); err != nil {
		return err
	}
	// A join that has not seen the revocation is already in its room's channel, before this request.
	n.toAll(revokedRequest{id})
	return nil
}

// Revoked reports whether a token is revoked.
func (n *Node) Revoked(t admission.Token) bool { return n.exclusions.Revoked(t, time.Now()) }

// Revocations returns the revocations in force.
func (n *Node) Revocations() []admission.Revocation { return n.exclusions.Revocations(time.Now()) }

// Restore ends the revocation of a token. The error wraps ErrNotFound if the token is not revoked.
func (n *Node) Restore(id string) error {
	if !n.exclusions.Restore(id, time.Now()) {
		return fmt.Errorf("%w: a revocation of token %q", ErrNotFound, id)
	}
	return nil
}

// revokedRequest removes the participants whose token was revoked.
type revokedRequest struct{ id string }

// apply implements request.
func (q revokedRequest) apply(r *Room) {
	for _, p := range r.participants.others(nil) {
		if p.token.ID == q.id && r.node.exclusions.Revoked(p.token, r.now) {
			p.log.Info("the participant's token was revoked", zap.String("token_id", q.id))
			r.expel(p, signal.CodeRevoked, "an operator revoked the token")
		}
	}
}

// Kick removes a participant from a room; the client does not return by itself. If ban is greater than 0, the identity
// and the participant's token are excluded from the room for that time, even if the participant is not present. The
// error wraps ErrNotFound if there is no such participant and no ban, or admission.ErrExclusion or admission.ErrFull.
func (n *Node) Kick(ctx context.Context, room, identity string, ban time.Duration) error {
	if identity == "" {
		return fmt.Errorf("%w: a participant without a name", ErrNotFound)
	}
	q := removeRequest{identity: identity, code: signal.CodeKicked, reason: kickedReason}
	if ban != 0 {
		if err := admission.CheckBan(room, identity, ban); err != nil {
			return err
		}
		now := time.Now()
		q.until = now.Add(ban)
		err := n.exclusions.Ban(admission.Ban{Room: room, Identity: identity, Until: q.until}, now)
		if err != nil {
			return err
		}
	}
	// The room looks for the participant before the other nodes are told. After the home has removed the participant,
	// the room does not find the participant.
	err := n.removeFrom(ctx, room, q)
	n.tell(room, roomevent.Kick{Identity: identity, Until: q.until})
	if ban != 0 && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
