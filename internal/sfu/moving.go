package sfu

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/sessionrecord"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Adoption is a session of another node that a client continues on this node.
type Adoption struct {
	// Session and Secret are those of the former home.
	Session, Secret string
	// Epoch counts the homes of the session, this node included, from 0.
	Epoch uint64
	// Record is the state of the session, nil if the state is lost.
	Record *sessionrecord.Record
}

const (
	// formerFeed is the time for which the trunk to a former home may feed the tracks of a participant that has moved:
	// that home has withdrawn the publications before.
	formerFeed = formerConnection + releaseAfter
	// formerConnection bounds the time for which the former home keeps the peer connection of a participant that has
	// moved, with its slots. The client sends and receives on both connections until the next home and the trunk have
	// taken over, and then closes the former websocket.
	formerConnection = 10 * time.Second
	// releaseAfter is the time from the end of the former websocket to the end of the place: the other nodes have the
	// participant's present home within two beats and a round trip.
	releaseAfter = 2 * time.Second
)

// completeAfter is the time in which a client whose state is lost publishes its publications again: some round trips.
const completeAfter = 2 * time.Second

// completeRequest tells that a participant has published its publications again.
type completeRequest struct{ participant *participant }

// apply implements request.
func (q completeRequest) apply(r *Room) { r.span.completed(q.participant) }

// feed is the delivery of a publication by the trunk to a home.
type feed struct {
	ref  volumetric.PublicationRef
	node string
	id   uint64
}

func (f feed) unmirrored() roomevent.Unmirrored {
	return roomevent.Unmirrored{Ref: f.ref, Node: f.node, ID: f.id}
}

// feedEnd ends the feed of a former home.
type feedEnd struct{ feed feed }

// apply implements request.
func (q *feedEnd) apply(r *Room) {
	if s := r.span; s.ending[q.feed] == q {
		delete(s.ending, q.feed)
		s.tell(q.feed.unmirrored())
	}
}

// endLater ends the feed of a former home some time after the publisher has moved.
func (s *span) endLater(f feed) {
	end := &feedEnd{f}
	s.ending[f] = end
	s.room.after(formerFeed, end)
}

// adoptable returns the mirror whose session a client continues on this node, nil if there is none.
func (s *span) adoptable(q *JoinRequest) *mirror {
	if s == nil || q.Adopt == nil {
		return nil
	}
	if m := s.mirrors[q.Identity]; m != nil && m.shown && m.Session == q.Adopt.Session {
		return m
	}
	return nil
}

// adopted returns the publications that a join adds to those of the mirror whose session the join continues, nil for
// none, and the names of publications that the join replaces. The mirror's publications are later than those of a
// record.
func (r *Room) adopted(
	m *mirror, q *JoinRequest, asked []checked,
) (added []checked, replaced []string, _ *signal.Error) {
	if m == nil {
		return asked, nil, nil
	}
	if q.Adopt.Record != nil {
		return nil, nil, nil
	}
	for _, c := range asked {
		present := m.Publication(c.Name)
		if present != nil && sameDescription(&present.Description, &c.Publication) {
			continue
		}
		if added = append(added, c); present != nil {
			replaced = append(replaced, c.Name)
		}
	}
	if len(added) == 0 {
		return nil, nil, nil
	}
	count := len(m.Publications) - len(replaced) + len(added)
	if limit := r.node.config.PublicationsPerParticipant; count > limit {
		return nil, nil, signal.Errorf(signal.CodeLimit,
			"the limit is %d publications per participant (rooms.publications_per_participant)", limit)
	}
	if refused := r.settings.CheckPublications(count); refused != nil {
		return nil, nil, refused
	}
	return added, replaced, r.checkDescriptions(m.Identity, m.DescribedBytes()+encodedBytes(added))
}

// sameDescription reports whether two descriptions have the same JSON. A description of another node has been decoded
// once more than that of a client, and may differ in empty lists.
func sameDescription(a, b *volumetric.Publication) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && bytes.Equal(one, other)
}

// adopt makes the mirror of a session the state of a local participant. The tracks, the slots of others and the pose of
// each publication stay. If lost is set, the client publishes its publications again.
func (s *span) adopt(m *mirror, p *participant, lost bool) {
	r := s.room
	delete(s.mirrors, m.Identity)
	r.present.Remove(&m.Presence)
	for _, publication := range m.Publications {
		if d := m.find(publication.Ref.Publication); d.bound {
			s.endLater(m.feed(d))
		}
		publication.Levels.GiveUp(make([]allocate.QualitySet, len(publication.Description.Tiles)))
		for i, t := range publication.Tracks {
			publication.Levels.SetMeter(i, t)
			// The trunk feeds only the tracks that this node takes. A track that it does not feed begins here with the
			// first packet of the publisher's own connection, which takes over no other.
			t.TakeOver()
		}
		publication.Demand.Adopt()
		publication.Unconfirmed = lost
		p.suppress(publication)
	}
	session := p.Session
	p.Presence = m.Presence
	p.Session, p.Detached = session, false
	r.scheduler.Changes.Offered++
	p.log.Info("participant moved to this node", zap.String("from", m.node))
}

// suppress lets the publisher pause tracks of a publication, if it can.
func (p *participant) suppress(publication *presence.Publication) {
	if !p.pauses {
		return
	}
	publication.Demand.Suppress(p.room.node.config.Suppression, &p.room.demands.unsettled, p.room.now)
	if p.epoch > 0 && !p.complete {
		// The receivers of other nodes still take the tracks from the former home.
		publication.Demand.KeepAll(p.room.now)
	}
	if p.asked.multipath != nil {
		publication.Demand.ReportLowest()
	}
}

// release makes a local participant, whose session continues on another node, a mirror. The tracks and the slots of
// others stay. The client's websocket, peer connection and slots end later.
func (s *span) release(p *participant, node string, state roomevent.Participant) {
	r := s.room
	for _, publication := range slices.Clone(p.Publications) {
		if publication.Silent {
			r.unpublish(p, publication, false)
		}
	}
	r.emitMoved(p)
	m := &mirror{
		Presence: p.Presence, node: node, shown: true, received: p.data.Received.Last(), offers: p.offers,
	}
	p.Publications = nil
	released := roomevent.Released{Identity: p.Identity, Session: p.Session, Epoch: p.epoch}
	for _, publication := range m.Publications {
		m.remotes = append(m.remotes, &remotePublication{
			checked: checked{publication.Description, publication.Encoded}, rates: publication.Levels.Measured(),
			former: true,
		})
		released.Publications = append(released.Publications, roomevent.Unpublished{
			Ref: publication.Ref, ID: publication.ID,
		})
		publication.Levels.SetMeasured(publication.Levels.Measured())
		r.demands.end(publication.Demand)
		publication.Demand.Relay(&r.demands.unsettled)
	}
	s.mirrors[m.Identity] = m
	r.exit(p)
	r.present.Add(&m.Presence)
	r.census.Store(r.participants.census())
	p.gone = true
	p.trace(false)
	p.connection.answerTimer.stop()
	p.connection.connectTimer.stop()
	s.releasing[p] = released
	if p.outbox != nil {
		r.after(formerConnection, releasedRequest{p})
	} else {
		r.after(releaseAfter, releasedRequest{p})
	}
	if len(r.participants) == 0 {
		r.recorder.stop("the last participant has moved to another node")
	}
	r.node.rooms.Forget(p.Session)
	r.participants.askForTimes(r.span)
	m.update(s, state)
	p.log.Info("participant moved to another node", zap.String("to", node))
}

// releasedRequest ends the place of a participant that has moved.
type releasedRequest struct{ participant *participant }

// apply implements request.
func (q releasedRequest) apply(r *Room) { r.span.released(q.participant) }

// released ends the place of a participant that has moved. Until then the room does not end, and the tracks of the
// participant's slots stay. The session may have returned.
func (s *span) released(moved *participant) {
	e, pending := s.releasing[moved]
	if !pending {
		return
	}
	delete(s.releasing, moved)
	for _, other := range s.releasing {
		// The session has returned and moved again, and its last connection to this node still feeds the publications.
		e.Publications = slices.DeleteFunc(e.Publications, func(p roomevent.Unpublished) bool {
			return slices.Contains(other.Publications, p)
		})
	}
	moved.subscriber.Slots.Release()
	moved.dismiss()
	if p := s.room.participants[e.Identity]; p == nil || p.Session != e.Session {
		s.tell(e)
	}
	s.room.node.rooms.Leave(s.room, moved.bearer)
}

// dismiss ends the websocket and the peer connection of a participant that has moved.
func (p *participant) dismiss() {
	if p.outbox != nil {
		p.outbox.Close(signal.CodeReplaced, "the session continued on another server")
	}
	p.connection.dismiss()
}

// leftFormer notes that the client of a participant that has moved has ended its former websocket.
func (s *span) leftFormer(p *participant, o Outbox) {
	if s == nil || p.outbox != o {
		return
	}
	if _, pending := s.releasing[p]; pending {
		p.outbox = nil
		s.room.after(releaseAfter, releasedRequest{p})
	}
}

// releaseAll ends the places of all participants that have moved.
func (s *span) releaseAll() {
	if s == nil {
		return
	}
	for p := range s.releasing {
		s.released(p)
	}
}

// record returns the state of the participant's session.
func (p *participant) record() *sessionrecord.Record {
	c := &sessionrecord.Record{
		Join: signal.Join{
			Version: signal.Version, Room: p.room.name, Identity: p.Identity, Receive: p.asked.receive,
			ReceiveData: p.asked.receiveData, DataChannel: p.asked.publishData,
			MessageChannel: p.asked.messageChannel, Multipath: p.asked.multipath, Pauses: p.pauses,
			DeadlineMS: int(p.deadline.Milliseconds()), BitrateLimits: p.limits, FrameTimes: p.frameTimes.Wanted,
		},
		Joined: p.joined, Permissions: p.permissions, Attributes: p.Attributes, Muted: p.Mutings(),
		Viewpoint: p.viewpoint, Arrangement: p.arrangement, Traced: p.frameTimes.Asked,
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
	if len(state) > sessionrecord.MaxRecordBytes {
		p.warnOnce("the session cannot continue with its state on another node: the state is too large",
			zap.Int("bytes", len(state)), zap.Int("limit", sessionrecord.MaxRecordBytes))
		state = nil
	}
	p.saving.saved, p.saving.later = s.room.now, false
	// A hash of 0 means that there is no record.
	if hash := maphash.Bytes(recordSeed, state) | 1; hash != p.saving.hash {
		p.saving.hash = hash
		s.tell(roomevent.SessionState{Identity: p.Identity, Session: p.Session, Epoch: p.epoch, State: state})
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
	p.frameTimes.Asked = true
	if c := a.Record; c != nil {
		p.joined = c.Joined
		received, sent = max(received, c.DataReceived), c.DataSent
		p.frameTimes.Asked = c.Traced
		restore(p, c)
	}
	if resume != nil && resume.DataReceived != nil {
		sent = *resume.DataReceived
	}
	p.data.Continue(received, sent, p.epoch)
}

// restore sets the state of a participant, except publications, from a record.
func restore(p *participant, c *sessionrecord.Record) {
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
		p.subscriber.Look(r.now, r.node.config.viewpoint(p.viewpoint, r.now), r.node.config.AllocationInterval)
	}
	p.arrangement = c.Arrangement
	p.subscriber.Arrange(c.Arrangement)
}
