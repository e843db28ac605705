package sfu

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/resumption"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// record returns the state of the participant's session.
func (p *participant) record() *resumption.Record {
	c := &resumption.Record{
		Join: signal.Join{
			Version: signal.Version, Room: p.room.name, Identity: p.Identity, Receive: p.asked.receive,
			ReceiveData: p.asked.receiveData, DataChannel: p.asked.publishData,
			MessageChannel: p.asked.messageChannel, Multipath: p.asked.multipath, Pauses: p.pauses,
			DeadlineMS: int(p.deadline.Milliseconds()), BitrateLimits: p.limits, FrameTimes: p.tracing.Wanted,
		},
		Joined: p.joined, Permissions: p.permissions, Attributes: p.Attributes, Muted: p.Mutings(),
		Viewpoint: p.viewpoint, Arrangement: p.arrangement, Traced: p.tracing.Asked,
		DataReceived: p.data.Received.Last(), DataSent: p.data.Sent.Last(),
	}
	for _, publication := range p.Publications {
		c.Join.Publications = append(c.Join.Publications, publication.Description)
		if pose := publication.Place.Latest(); pose != nil {
			c.Poses = append(c.Poses, *pose)
		}
	}
	c.Choices = p.subscriber.Choices.Stored()
	return c
}

const (
	// recordInterval is the minimum interval of the records of one session, except its first: two per second.
	recordInterval = 500 * time.Millisecond
	// viewpointInterval is the minimum time from a record to one that a change of the viewpoint causes. Headsets send
	// 20 viewpoints per second, also on their next node: the records of 1,000 sessions are 34 per second.
	viewpointInterval = 30 * time.Second
)

// saving is the state of the records of one session.
type saving struct {
	// pending is set while the record may have changed. hash is that of the last record, 0 before the first.
	pending bool
	hash    uint64
	// saved is the time of the last record. later is set if only the viewpoint has changed since.
	saved time.Time
	later bool
}

// unsaved are the participants of a room whose records may have changed. All are saved together, so that the room wakes
// twice per second for any number of participants.
type unsaved struct {
	participants []*participant
	// due is the time from which all are saved, first is set if one of them has no record.
	due   time.Time
	first bool
}

// recordSeed is the seed of the hashes of records.
var recordSeed = maphash.MakeSeed()

// stateChanged notes that the record of a session may have changed. stateChanged does nothing without a cluster.
func (s *span) stateChanged(p *participant) {
	if s == nil || !p.profile.Resumes {
		return
	}
	if p.saving.later = false; p.saving.pending {
		return
	}
	p.saving.pending = true
	s.unsaved.participants = append(s.unsaved.participants, p)
	s.unsaved.first = s.unsaved.first || p.saving.hash == 0
}

// looked sets the viewpoint in the record of a session. Only the first viewpoint is told soon.
func (s *span) looked(p *participant, m *signal.Viewpoint) {
	if s == nil {
		return
	}
	first := p.viewpoint == nil
	p.viewpoint = m
	if !p.saving.pending {
		s.stateChanged(p)
		p.saving.later = !first
	}
}

// due reports whether the record is told when the room saves its records.
func (v *saving) due(now time.Time) bool {
	return !v.later || now.Sub(v.saved) >= viewpointInterval
}

// changesState reports whether a message of a client changes the record of its session, other than by its viewpoint.
func changesState(m signal.Message) bool {
	switch m := m.(type) {
	case *signal.SetQuality, *signal.Arrange, *signal.SetLimits, *signal.Trace, *signal.Publish, *signal.Unpublish:
		return true
	case *signal.Data:
		return !m.Lossy
	}
	return false
}

// save tells the records that are due.
func (s *span) save() {
	if s == nil || len(s.unsaved.participants) == 0 {
		return
	}
	u, r := &s.unsaved, s.room
	due := !r.now.Before(u.due)
	if !due {
		r.wakeBy(u.due)
	}
	if !due && !u.first {
		return
	}
	u.participants = slices.DeleteFunc(u.participants, func(p *participant) bool {
		switch {
		case p.gone:
		case due && p.saving.due(r.now) || p.saving.hash == 0:
			s.saveNow(p)
		default:
			return false
		}
		p.saving.pending = false
		return true
	})
	u.first = false
	if due {
		u.due = r.now.Add(recordInterval)
		if len(u.participants) > 0 {
			r.wakeBy(u.due)
		}
	}
}

// saveNow tells the record of a session, if the record has changed.
func (s *span) saveNow(p *participant) {
	state, err := json.Marshal(p.record())
	if err != nil {
		p.log.Error("the state of the session cannot be encoded for other nodes", errorField(err))
		return
	}
	if len(state) > resumption.MaxRecordBytes {
		p.warnOnce("the session cannot continue with its state on another node: the state is too large",
			zap.Int("bytes", len(state)), zap.Int("limit", resumption.MaxRecordBytes))
		state = nil
	}
	p.saving.saved, p.saving.later = s.room.now, false
	// A hash of 0 means that there is no record.
	if hash := maphash.Bytes(recordSeed, state) | 1; hash != p.saving.hash {
		p.saving.hash = hash
		s.tell(SessionState{Identity: p.Identity, Session: p.Session, Epoch: p.epoch, State: state})
	}
}

// saveRequest tells the records of all sessions of a room at once.
type saveRequest struct{}

// apply implements request.
func (saveRequest) apply(r *Room) {
	r.span.unsaved.due = time.Time{}
	for _, p := range r.participants {
		r.span.stateChanged(p)
	}
}

// TellSessions tells the other nodes the present states of all sessions, before clients are asked to move.
func (n *Node) TellSessions() { n.toAll(saveRequest{}) }

// begin sets the state of a participant that continues a session of another node. m is the mirror of the session, nil
// if this node has none. begin precedes the peer connection.
func (a *Adoption) begin(p *participant, m *mirror, resume *signal.ResumeRequest) {
	p.Session, p.former, p.epoch = a.Session, a.Secret, a.Epoch
	received, sent := int64(0), int64(0)
	if m != nil {
		p.epoch = max(p.epoch, m.state.Epoch+1)
		p.joined = m.state.Joined
		received = m.received
	}
	// Without a record the client may send times of frames or not.
	p.tracing.Asked = true
	if c := a.Record; c != nil {
		p.joined = c.Joined
		received, sent = max(received, c.DataReceived), c.DataSent
		p.tracing.Asked = c.Traced
		restore(p, c)
	}
	if resume != nil && resume.DataReceived != nil {
		sent = *resume.DataReceived
	}
	p.data.Continue(received, sent, p.epoch)
}

// restore sets the state of a participant, except publications, from a record.
func restore(p *participant, c *resumption.Record) {
	r := p.room
	p.permissions = c.Permissions
	p.grants = p.granted.with(p.permissions)
	p.receive = p.asked.receive && p.grants.Subscribe
	p.useDataChannels()
	if attributes, bytes, refused := mergeAttributes("attributes", nil, c.Attributes); refused == nil {
		p.Attributes, p.AttributesBytes = attributes, bytes
	}
	if _, kept := p.subscriber.Choices.SetAll(c.AllChoices()); !kept {
		p.log.Warn("the quality choices of the session exceed the limit of this node",
			zap.Int("limit", r.node.config.ChoicesPerParticipant))
	}
	if p.viewpoint = c.Viewpoint; p.viewpoint != nil {
		p.subscriber.Look(r.now, subscriber.ViewpointOf(p.viewpoint, r.now), r.node.config.AllocationInterval)
	}
	p.arrangement = c.Arrangement
	p.subscriber.Arrange(c.Arrangement)
}
