package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
)

// Cluster is the cluster of this server from the view of operators. The methods are safe for concurrent use.
type Cluster interface {
	// Self returns the name of this node.
	Self() string
	// Nodes returns all nodes, this one included, in the order of names. Nodes does not wait for other nodes.
	Nodes() []NodeState
	// Do sends a request to the API of another node (API.ForNodes). URL has a path and a query only. Do ends with the
	// context of the request.
	Do(node string, r *http.Request) (*http.Response, error)
	// Move begins to send the participants that this node has in a room to another node. Move returns the number of
	// participants whose clients are asked, and of those whose clients do not follow. Errors wrap ErrUnsuitable, or
	// sfu.ErrNotFound if the room is not on this node.
	Move(room, node string) (moved, remaining int, err error)
}

// Errors about nodes.
var (
	// ErrNode: the node does not exist or is dead.
	ErrNode = errors.New("no such node")
	// ErrUnsuitable: the node cannot take participants at present.
	ErrUnsuitable = errors.New("unsuitable node")
	// errAlone: the request needs a cluster.
	errAlone = errors.New("this server runs alone, without --cluster")
	// errNodes: nodes did not answer or have failed.
	errNodes = errors.New("not done on all nodes")
)

// NodeState is the state of a node in the view of the node that replies.
type NodeState struct {
	Name   string `json:"name"`
	Region string `json:"region,omitempty"`
	// Self is set for the node that replies.
	Self bool `json:"self,omitempty"`
	// URL is the node's address for clients.
	URL   string   `json:"url,omitempty"`
	State NodeLife `json:"state"`
	// Draining is set if the node refuses new participants and stops when all have left.
	Draining bool `json:"draining,omitempty"`
	// Load is the used share of the node's capacity, 0 to 1.
	Load         float64 `json:"load"`
	Rooms        int     `json:"rooms"`
	Participants int     `json:"participants"`
	// Version is that of the messages between nodes, Started the time when the node's process began.
	Version int       `json:"version"`
	Started time.Time `json:"started"`
	// Beat is the time of the node's last heartbeat.
	Beat time.Time `json:"beat"`
	// Trunk is the trunk to the node, nil if there is none.
	Trunk *TrunkState `json:"trunk,omitempty"`
}

// NodeLife is the state of a node by its heartbeats and its trunk.
type NodeLife string

// The states. A suspected node sends no heartbeats, a dead node does not answer on its trunk either.
const (
	NodeAlive     NodeLife = "alive"
	NodeSuspected NodeLife = "suspected"
	NodeDead      NodeLife = "dead"
)

// TrunkState is the state of the trunk to a node.
type TrunkState struct {
	Lanes     int     `json:"lanes"`
	RoundTrip float64 `json:"rtt_ms"`
	// Estimate is the estimated rate to the node in bit/s, 0 while unknown.
	Estimate float64 `json:"estimate_bps"`
	// Silent is set if no packet has arrived for half a second.
	Silent bool `json:"silent,omitempty"`
}

// Room is the state of a room. In a cluster, the participants are those of all nodes.
type Room struct {
	sfu.RoomState
	// Nodes are the nodes that have the room, empty without a cluster.
	Nodes        []string      `json:"nodes,omitempty"`
	Participants []Participant `json:"participants"`
}

// Participant is the state of a participant.
type Participant struct {
	sfu.ParticipantState
	// Node is the participant's home, empty without a cluster.
	Node string `json:"node,omitempty"`
}

// Failure is a node that did not answer.
type Failure struct {
	Node  string `json:"node"`
	Error string `json:"error"`
}

// roomsOn returns the rooms of a node.
func roomsOn(node string, states []sfu.RoomState) []Room {
	rooms := make([]Room, len(states))
	for i, state := range states {
		rooms[i] = Room{RoomState: state, Participants: make([]Participant, len(state.Participants))}
		if node != "" {
			rooms[i].Nodes = []string{node}
		}
		for j, p := range state.Participants {
			rooms[i].Participants[j] = Participant{p, node}
		}
	}
	return rooms
}

// merge joins the parts that nodes have of the same rooms, in the order of the nodes. Settings and metadata are those
// of the first node that has any.
func merge(parts [][]Room) []Room {
	rooms := []Room{}
	at := map[string]int{}
	for _, part := range parts {
		for _, room := range part {
			i, ok := at[room.Name]
			if !ok {
				at[room.Name] = len(rooms)
				rooms = append(rooms, room)
				continue
			}
			all := &rooms[i]
			all.Nodes = append(all.Nodes, room.Nodes...)
			all.Participants = append(all.Participants, room.Participants...)
			all.Recorded = all.Recorded || room.Recorded
			if all.Settings == nil {
				all.Settings = room.Settings
			}
			if len(all.Metadata) == 0 {
				all.Metadata = room.Metadata
			}
		}
	}
	slices.SortFunc(rooms, func(a, b Room) int { return strings.Compare(a.Name, b.Name) })
	for i := range rooms {
		slices.Sort(rooms[i].Nodes)
		slices.SortStableFunc(rooms[i].Participants, func(a, b Participant) int {
			return strings.Compare(a.Identity, b.Identity)
		})
	}
	return rooms
}

// self returns the name of this node, empty without a cluster.
func (a *API) self() string {
	if a.cluster == nil {
		return ""
	}
	return a.cluster.Self()
}

// view returns the named room, or all rooms if the name is empty. In a cluster, the rooms are those of all nodes, and
// failures are the nodes whose parts are missing. The error is that of this node.
func (a *API) view(ctx context.Context, room string, past bool) (rooms []Room, failures []Failure, err error) {
	if a.cluster == nil {
		states, err := a.states(ctx, room, past)
		return roomsOn("", states), nil, err
	}
	self := a.cluster.Self()
	var others []string
	for _, node := range a.cluster.Nodes() {
		switch {
		case node.Name == self:
		case node.State == NodeDead:
			failures = append(failures, Failure{node.Name, "the node is dead"})
		default:
			others = append(others, node.Name)
		}
	}
	path := "rooms"
	if past {
		path += "?past=1"
	}
	if room != "" {
		path = roomPath(path, room)
	}
	replies := a.nodes.askAll(ctx, others, request{method: http.MethodGet, path: path})
	states, err := a.states(ctx, room, past)
	if err != nil {
		return nil, nil, err
	}
	parts := [][]Room{roomsOn(self, states)}
	for reply := range replies {
		part, err := reply.rooms(room != "")
		if err != nil {
			failures = append(failures, Failure{reply.node, err.Error()})
			continue
		}
		parts = append(parts, roomsOn(reply.node, part))
	}
	slices.SortFunc(failures, func(a, b Failure) int { return strings.Compare(a.Node, b.Node) })
	return merge(parts), failures, nil
}

// listNodes replies with the nodes of the cluster.
func (a *API) listNodes(w http.ResponseWriter, _ *http.Request) {
	if a.cluster == nil {
		a.fail(w, errAlone)
		return
	}
	reply(w, http.StatusOK, map[string][]NodeState{"nodes": a.cluster.Nodes()})
}

// drainNode drains a node.
func (a *API) drainNode(w http.ResponseWriter, r *http.Request) {
	if a.cluster == nil {
		a.fail(w, errAlone)
		return
	}
	name := r.PathValue("node")
	if name == a.cluster.Self() {
		a.drain(w, r)
		return
	}
	if _, err := a.nodeNamed(name); err != nil {
		a.fail(w, err)
		return
	}
	answer := a.nodes.ask(r.Context(), name, request{method: http.MethodPost, path: "drain"})
	if answer.ok() {
		a.done(r, "drain of a node asked for", zap.String("node", name))
	}
	a.pass(w, answer)
}

// nodeNamed returns a node that is not dead. Errors wrap ErrNode.
func (a *API) nodeNamed(name string) (NodeState, error) {
	nodes := a.cluster.Nodes()
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = node.Name
		if node.Name != name {
			continue
		}
		if node.State == NodeDead {
			return node, fmt.Errorf("%w: node %q is dead", ErrNode, name)
		}
		return node, nil
	}
	return NodeState{}, fmt.Errorf("%w: %.80q, expected one of %s", ErrNode, name, strings.Join(names, ", "))
}

// moveBody is the body of a request to move a room.
type moveBody struct {
	// Node is the node to which the participants go.
	Node string `json:"node"`
	// From is the node whose participants are moved; all nodes if empty.
	From string `json:"from"`
}

// MoveState is the result of moving a room.
type MoveState struct {
	// Moved is the number of clients that are asked to move, Remaining that of clients that do not follow.
	Moved     int       `json:"moved"`
	Remaining int       `json:"remaining"`
	Failed    []Failure `json:"failed,omitempty"`
}

// move sends the participants of a room to a node: those of all nodes, or of one.
func (a *API) move(w http.ResponseWriter, r *http.Request) {
	if a.cluster == nil {
		a.fail(w, errAlone)
		return
	}
	room := r.PathValue("room")
	var body moveBody
	err := read(w, r, &body)
	var from []string
	if err == nil {
		from, err = a.sources(body)
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	q := request{
		method: http.MethodPost, path: roomPath("rooms", room) + "/move", body: encoded(moveBody{Node: body.Node}),
		remote: r.RemoteAddr,
	}
	var total MoveState
	var failed []result
	found := false
	for answer := range a.nodes.askAll(r.Context(), from, q) {
		var part MoveState
		switch {
		case answer.status == http.StatusMisdirectedRequest:
		case answer.ok() && answer.decode(&part) == nil:
			total.Moved, total.Remaining = total.Moved+part.Moved, total.Remaining+part.Remaining
			found = true
		default:
			total.Failed = append(total.Failed, answer.failure())
			failed = append(failed, answer)
		}
	}
	switch {
	case !found && len(failed) > 0:
		a.pass(w, failed[0])
		return
	case !found:
		a.fail(w, fmt.Errorf("%w: room %q on %s", sfu.ErrNotFound, room, strings.Join(from, ", ")))
		return
	}
	slices.SortFunc(total.Failed, func(a, b Failure) int { return strings.Compare(a.Node, b.Node) })
	a.done(r, "clients of a room are asked to move", zap.String("room", room), zap.String("node", body.Node), zap.Int("moved", total.Moved),
		zap.Int("remaining", total.Remaining))
	reply(w, http.StatusOK, total)
}

// sources returns the nodes whose participants a request moves. Errors wrap ErrNode or errBody.
func (a *API) sources(body moveBody) ([]string, error) {
	if body.Node == "" {
		return nil, fmt.Errorf("%w: node is missing, expected the name of the node that takes the participants",
			errBody)
	}
	_, err := a.nodeNamed(body.Node)
	switch {
	case err != nil:
		return nil, err
	case body.From == body.Node:
		return nil, fmt.Errorf("%w: node and from are both %q", errBody, body.Node)
	case body.From != "":
		_, err := a.nodeNamed(body.From)
		return []string{body.From}, err
	}
	return slices.DeleteFunc(a.nodes.answering(), func(node string) bool { return node == body.Node }), nil
}
