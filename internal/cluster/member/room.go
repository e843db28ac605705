package member

import (
	"reflect"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// roomData is the number of data messages for one room that wait: two seconds of what a trunk carries.
	roomData = 4096
	// roomStates is the number of states of publications (demand, rates, qualities) that wait for one room: those of
	// the publications that a node may take.
	roomStates = 1 << 14
	// roomFrames is the number of frames of one publication whose times in other nodes wait for one room: two seconds
	// of the frames of one publisher whose times are passed on.
	roomFrames = 4096
	// unknownSender is the time for which a data message waits for the join of its sender. A trunk may be faster than
	// NATS.
	unknownSender = time.Second
)

// room is a room of this node: what other nodes have received of the room's participants, and what the room has
// received of the participants of other nodes.
type room struct {
	name string

	// local are the participants of this node by identity. offered and mirrored are the publications that the trunks
	// have, of this node and of others.
	local    map[string]*local
	offered  map[publication]bool
	mirrored map[mirrored]bool

	// known are the participants of other nodes as the room knows them. changed are the identities whose claims may
	// differ, in their order, with the reason if the claim is gone.
	known   map[string]*known
	changed []string
	reasons map[string]string
	// orders are events that are passed in their order. states are whole states of which the latest counts, by key, in
	// the order of keys. poses are the latest poses, data the data messages.
	orders []remoteEvent
	states map[stateKey]roomevent.Event
	keys   []stateKey
	poses  map[volumetric.PublicationRef]remoteEvent
	data   []waitingData
}

// local is a participant of this node. refused is set if a tombstone covers the session: others do not see the
// participant, which the room removes.
type local struct {
	session string
	epoch   uint64
	refused bool
}

// publication identifies a publication of this node.
type publication struct {
	ref volumetric.PublicationRef
	id  uint64
}

// mirrored identifies a publication of another node.
type mirrored struct {
	publication
	node string
}

// known is a participant of another node as the room knows it.
type known struct {
	home  cluster.Home
	state roomevent.Participant
	// completed is set once the state was passed after all publications of the home.
	completed    bool
	detached     bool
	publications map[string]knownPublication
}

// knownPublication is a publication as the home has published it at an epoch of the session.
type knownPublication struct {
	cluster.Publication
	home  cluster.Home
	epoch uint64
}

// stateKey identifies a state: its kind, the node from which it comes, and the publication.
type stateKey struct {
	kind reflect.Type
	node string
	ref  volumetric.PublicationRef
}

// remoteEvent is an event of another node.
type remoteEvent struct {
	node  string
	event roomevent.Event
}

// waitingData is a data message of another node. It waits for its sender until a time.
type waitingData struct {
	node  string
	sent  roomevent.Sent
	until time.Time
}

func newRoom(name string) *room {
	return &room{
		name: name, local: map[string]*local{}, offered: map[publication]bool{}, mirrored: map[mirrored]bool{},
		known: map[string]*known{}, reasons: map[string]string{}, states: map[stateKey]roomevent.Event{},
		poses: map[volumetric.PublicationRef]remoteEvent{},
	}
}

// change notes that the claim of an identity may have changed. reason is that of a departure.
func (r *room) change(identity, reason string) {
	if _, waits := r.reasons[identity]; !waits {
		r.changed = append(r.changed, identity)
	}
	if r.reasons[identity] == "" || reason != "" {
		r.reasons[identity] = reason
	}
}

// order adds an event that is passed in its order.
func (r *room) order(node string, e roomevent.Event) {
	r.orders = append(r.orders, remoteEvent{node, e})
}

// state replaces a state of a publication, or of a node if ref is empty. A later state is passed after those that were
// there before. state reports false if too many states wait.
func (r *room) state(node string, ref volumetric.PublicationRef, e roomevent.Event) bool {
	key := stateKey{reflect.TypeOf(e), node, ref}
	if _, waits := r.states[key]; waits {
		r.keys = slices.DeleteFunc(r.keys, func(k stateKey) bool { return k == key })
	} else if len(r.states) >= roomStates {
		return false
	}
	r.states[key] = e
	r.keys = append(r.keys, key)
	return true
}

// relayed adds times of frames to those of the publication that wait. relayed reports false if too many wait.
func (r *room) relayed(node string, e roomevent.Relayed) bool {
	key := stateKey{reflect.TypeOf(e), node, e.Ref}
	if waiting, ok := r.states[key].(roomevent.Relayed); ok && waiting.ID == e.ID {
		if len(waiting.Frames) >= roomFrames {
			return false
		}
		e.Frames = append(waiting.Frames, e.Frames...)
		e.Bound, e.Uncertainty = max(e.Bound, waiting.Bound), max(e.Uncertainty, waiting.Uncertainty)
	}
	return r.state(node, e.Ref, e)
}

// exited ends the demand of a node.
func (r *room) exited(node string) {
	take := reflect.TypeFor[roomevent.Take]()
	r.keys = slices.DeleteFunc(r.keys, func(k stateKey) bool {
		ended := k.node == node && k.kind == take
		if ended {
			delete(r.states, k)
		}
		return ended
	})
	r.state(node, volumetric.PublicationRef{}, roomevent.Exited{})
}

// pose replaces the latest pose of an object.
func (r *room) pose(node string, e roomevent.Posed) bool {
	if _, waits := r.poses[e.Ref]; !waits && len(r.poses) >= roomStates {
		return false
	}
	r.poses[e.Ref] = remoteEvent{node, e}
	return true
}

// receive adds a data message of another node. If too many wait, the first lossy one is dropped, or the message itself.
// receive reports whether none was dropped.
func (r *room) receive(now time.Time, node string, e roomevent.Sent) bool {
	full := len(r.data) >= roomData
	if full {
		lossy := slices.IndexFunc(r.data, func(d waitingData) bool { return d.sent.Data.Lossy })
		if lossy < 0 || e.Data.Lossy {
			return false
		}
		r.data = slices.Delete(r.data, lossy, lossy+1)
	}
	r.data = append(r.data, waitingData{node, e, now.Add(unknownSender)})
	return !full
}

// waiting reports whether something waits for the room.
func (r *room) waiting() bool {
	return len(r.orders)+len(r.changed)+len(r.states)+len(r.poses)+len(r.data) > 0
}

// deliver passes what waits to the room, until the room has no place. pass reports false if there is none; winner
// returns the present claim of an identity, and false if the claim is that of this node or if there is none.
func (r *room) deliver(now time.Time, pass func(node string, e roomevent.Event) bool,
	winner func(identity string) (cluster.Claim, bool)) {
	for len(r.orders) > 0 {
		if !pass(r.orders[0].node, r.orders[0].event) {
			return
		}
		r.orders = r.orders[1:]
	}
	for len(r.changed) > 0 {
		identity := r.changed[0]
		if !r.update(identity, pass, winner) {
			return
		}
		delete(r.reasons, identity)
		r.changed = r.changed[1:]
	}
	for len(r.keys) > 0 {
		key := r.keys[0]
		if !pass(key.node, r.states[key]) {
			return
		}
		delete(r.states, key)
		r.keys = r.keys[1:]
	}
	if r.deliverData(now, pass) {
		for ref, e := range r.poses {
			if !pass(e.node, e.event) {
				return
			}
			delete(r.poses, ref)
		}
	}
}

// deliverData passes the data messages whose senders the room knows, and those that have waited for the sender. The
// room drops and counts the latter.
func (r *room) deliverData(now time.Time, pass func(string, roomevent.Event) bool) bool {
	full := false
	r.data = slices.DeleteFunc(r.data, func(d waitingData) bool {
		if full || d.sent.From != "" && r.known[d.sent.From] == nil && now.Before(d.until) {
			return false
		}
		full = !pass(d.node, d.sent)
		return !full
	})
	return !full
}

// update passes the difference between the present claim of an identity and what the room knows. update reports false
// if the room has no place for all of it.
func (r *room) update(identity string, pass func(string, roomevent.Event) bool,
	winner func(string) (cluster.Claim, bool)) bool {
	claim, remote := winner(identity)
	t := r.known[identity]
	if t != nil && (!remote || t.state.Session != claim.Participant.Session) {
		reason := r.reasons[identity]
		if reason == "" {
			reason = string(cluster.LeftReplaced)
		}
		if !pass(t.home.Node, roomevent.Left{Identity: identity, Session: t.state.Session, Reason: reason}) {
			return false
		}
		delete(r.known, identity)
		t = nil
	}
	if !remote {
		return true
	}
	if t == nil {
		t = &known{publications: map[string]knownPublication{}}
	}
	return t.follow(claim, func(e roomevent.Event) bool {
		if !pass(claim.Home.Node, e) {
			return false
		}
		r.known[identity] = t
		return true
	})
}

// follow passes the difference to a claim of the same session. At a new home the state comes first, so that the
// publications belong to the home, and once more after the publications, since Participant.Complete then ends those of
// the former home that the new home does not have.
func (t *known) follow(claim cluster.Claim, pass func(roomevent.Event) bool) bool {
	state := stateOf(claim)
	moved := t.home != claim.Home || t.state.Epoch != state.Epoch
	if moved || t.detached && !claim.Detached || !reflect.DeepEqual(t.state, state) {
		if !pass(roomevent.Present{Participant: state}) {
			return false
		}
	}
	t.home, t.state, t.detached = claim.Home, state, t.detached && claim.Detached
	t.completed = t.completed && !moved && state.Complete
	identity := claim.Participant.Identity
	named := make(map[string]bool, len(claim.Publications))
	for _, p := range claim.Publications {
		name := p.Description.Name
		named[name] = true
		before, known := t.publications[name]
		if known && before.home == t.home && before.epoch == state.Epoch && before.ID == p.ID &&
			reflect.DeepEqual(before.Description, p.Description) {
			continue
		}
		if !pass(publishedOf(identity, p)) {
			return false
		}
		t.publications[name] = knownPublication{p, t.home, state.Epoch}
	}
	if claim.Participant.Epoch == 0 || state.Complete {
		for name, p := range t.publications {
			if named[name] {
				continue
			}
			ref := volumetric.PublicationRef{Participant: identity, Publication: name}
			if !pass(roomevent.Unpublished{Ref: ref, ID: p.ID}) {
				return false
			}
			delete(t.publications, name)
		}
	}
	if state.Complete && !t.completed {
		if !pass(roomevent.Present{Participant: state}) {
			return false
		}
		t.completed = true
	}
	if claim.Detached && !t.detached {
		if !pass(roomevent.Detached{Identity: identity}) {
			return false
		}
		t.detached = true
	}
	return true
}

// stateOf returns the state of the participant of a claim.
func stateOf(claim cluster.Claim) roomevent.Participant {
	p := claim.Participant
	var muted []signal.MuteState
	for i := range claim.Publications {
		if publication := &claim.Publications[i]; publication.OwnMuted || publication.OperatorMuted {
			muted = append(muted, muteOf(publication))
		}
	}
	return roomevent.Participant{Identity: p.Identity, Session: p.Session, Epoch: p.Epoch, Joined: p.Joined,
		Live: p.Live, Complete: p.Complete, Audience: p.Audience, Attributes: p.Attributes, Muted: muted,
		Permissions: p.Permissions, Number: p.Number}
}

func muteOf(p *cluster.Publication) signal.MuteState {
	return signal.MuteState{Publication: p.Description.Name, Own: p.OwnMuted, Operator: p.OperatorMuted}
}

func publishedOf(identity string, p cluster.Publication) roomevent.Published {
	return roomevent.Published{
		Ref: volumetric.PublicationRef{Participant: identity, Publication: p.Description.Name}, ID: p.ID,
		Description: p.Description, Mute: muteOf(&p),
	}
}
