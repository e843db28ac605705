package sfu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
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
	return signal.Errorf(signal.CodeResume, "session expired or invalid resume secret; rejoin")
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

// RoomState is the state of a room at one instant. Participants and publications are sorted by name, slots by line.
type RoomState struct {
	Name string `json:"name"`
	// ID identifies one room of the name, from its start to its end.
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Settings are those of the API, nil if there are none.
	Settings     *admission.RoomSettings `json:"settings,omitempty"`
	Participants []ParticipantState      `json:"participants"`
	// Recorded is set if the room is recorded.
	Recorded bool `json:"recorded,omitempty"`
}

// ParticipantState is the state of one participant of a room.
type ParticipantState struct {
	Identity string `json:"identity"`
	// Joined is the time when the participant's websocket was opened. Connected is set if media can flow. Present is
	// set if the websocket is open; Joined is not set during the grace time.
	Joined    time.Time `json:"joined"`
	Connected bool      `json:"connected"`
	Present   bool      `json:"present"`
	// VR2Gather is set if the participant uses the VR2Gather dialect.
	VR2Gather bool `json:"vr2gather,omitempty"`
	// Protocol is the participant's protocol, WHIP or WHEP. It is empty for the others.
	Protocol string `json:"protocol,omitempty"`
	// TokenID is the id of the token, by which the token may be revoked. TokenID is empty if there is none.
	TokenID string `json:"token_id,omitempty"`
	// Attributes describe the participant. Permissions are those of its token and of the operator together.
	Attributes  map[string]string  `json:"attributes,omitempty"`
	Permissions signal.Permissions `json:"permissions"`
	// ECN counts the participant's packets of the last second, nil if the participant sent none.
	ECN *ECNState `json:"ecn,omitempty"`
	// Publications are the participant's publications.
	Publications []PublicationState `json:"publications"`
	// Reception is the state of the participant as a receiver, nil if the participant receives nothing.
	Reception *subscriber.State `json:"reception,omitempty"`
}

// ECNState has the numbers of packets by ECN codepoint.
type ECNState struct {
	NotECT uint64 `json:"not_ect"`
	ECT0   uint64 `json:"ect0"`
	ECT1   uint64 `json:"ect1"`
	CE     uint64 `json:"ce"`
}

// PublicationState is the description and the state of one publication.
type PublicationState struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Mode      string   `json:"mode"`
	Codec     string   `json:"codec"`
	Tiles     int      `json:"tiles"`
	Qualities []string `json:"qualities"`
	// Rates are the bit rates of tracks in bit/s, by tile and quality; 0 if a track has been silent. Paused has the
	// tracks that the publisher was asked to pause.
	Rates  [][]volumetric.Bitrate `json:"rates_bps"`
	Paused [][]bool               `json:"paused"`
	// Muted is the muting of the publication, nil if it is not muted.
	Muted *signal.MuteState `json:"muted,omitempty"`
}

// RoomSummary has the numbers of participants and publications of a room.
type RoomSummary struct {
	Name         string `json:"name"`
	Participants int    `json:"participants"`
	Publications int    `json:"publications"`
}

// Summaries returns the rooms sorted by name: only the named room, or all rooms if name is empty. Summaries reads
// counters and does not wait for rooms.
func (n *Node) Summaries(name string) []RoomSummary {
	list := []RoomSummary{}
	for _, room := range n.rooms.Named(name) {
		if c := room.census.Load(); c != nil {
			list = append(list, RoomSummary{room.name, c.participants, c.publications})
		}
	}
	slices.SortFunc(list, func(a, b RoomSummary) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// describeRequest asks a room for its state.
type describeRequest struct {
	past   bool
	result chan<- RoomState
}

// apply implements request.
func (q describeRequest) apply(r *Room) {
	state := RoomState{
		Name: r.name, ID: r.room.ID, Metadata: r.metadata, Settings: r.settings, Participants: []ParticipantState{},
		Recorded: r.recorder.current != nil,
	}
	for _, p := range r.participants.others(nil) {
		state.Participants = append(state.Participants, p.state(q.past))
	}
	q.result <- state
}

// Describe returns the states of the named room, or of all rooms if name is empty. If past is set, the states include
// the history of receivers. Rooms that end during the call are left out.
func (n *Node) Describe(ctx context.Context, name string, past bool) ([]RoomState, error) {
	states := []RoomState{}
	for _, room := range n.rooms.Named(name) {
		result := make(chan RoomState, 1)
		room.post(describeRequest{past, result})
		state, answered := await(ctx, room, result)
		if answered {
			states = append(states, state)
		} else if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(states, func(a, b RoomState) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}

func (p *participant) state(past bool) ParticipantState {
	state := ParticipantState{
		Identity: p.Identity, Joined: p.joined, Connected: p.connected, Present: p.outbox != nil,
		VR2Gather:    p.profile.Converted,
		TokenID:      p.token.ID,
		Attributes:   p.Attributes,
		Permissions:  p.grants.permissions(),
		ECN:          ecnState(p.connection.Ingress.Codepoints()),
		Publications: []PublicationState{},
	}
	for _, publication := range p.Publications {
		state.Publications = append(state.Publications, publicationState(publication))
	}
	if p.profile.Offers {
		state.Protocol = p.profile.Name
	}
	if p.receive {
		state.Reception = p.subscriber.State(past)
	}
	return state
}

// ecnState returns nil if there are no packets.
func ecnState(c ingress.Codepoints) *ECNState {
	if _, any := c.Codepoint(); !any {
		return nil
	}
	return &ECNState{NotECT: c[ecn.NotECT], ECT0: c[ecn.ECT0], ECT1: c[ecn.ECT1], CE: c[ecn.CE]}
}

func publicationState(p *presence.Publication) PublicationState {
	d := &p.Description
	state := PublicationState{
		Name: d.Name, Kind: string(d.Kind), Mode: string(d.Mode), Codec: d.Codec.MIMEType, Tiles: len(d.Tiles),
	}
	if p.Muted() {
		mute := p.Mute
		state.Muted = &mute
	}
	for _, q := range d.Qualities {
		state.Qualities = append(state.Qualities, q.Name)
	}
	for tile := range d.Tiles {
		rates, paused := make([]volumetric.Bitrate, len(d.Qualities)), make([]bool, len(d.Qualities))
		for q := range d.Qualities {
			rates[q], _ = p.Tracks[tile*len(d.Qualities)+q].Rate()
			paused[q] = p.Demand.Paused(tile, volumetric.Quality(q))
		}
		state.Rates, state.Paused = append(state.Rates, rates), append(state.Paused, paused)
	}
	return state
}
