package sfu

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/resumption"
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
	Record *resumption.Record
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

func (f feed) unmirrored() Unmirrored { return Unmirrored{Ref: f.ref, Node: f.node, ID: f.id} }

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
		return nil, nil, refuse(signal.CodeLimit,
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
	r.Remove(&m.Presence)
	for _, publication := range m.Publications {
		if d := m.find(publication.Ref.Publication); d.bound {
			s.endLater(m.feed(d))
		}
		publication.Levels.GiveUp(make([]allocate.QualitySet, len(publication.Description.Tiles)))
		for i, t := range publication.Tracks {
			publication.Levels.SetMeter(i, t)
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
	if p.asked.multipath != nil {
		publication.Demand.ReportLowest()
	}
}

// release makes a local participant, whose session continues on another node, a mirror. The tracks and the slots of
// others stay. The client's websocket, peer connection and slots end later.
func (s *span) release(p *participant, node string, state Presence) {
	r := s.room
	for _, publication := range slices.Clone(p.Publications) {
		if publication.Silent {
			r.unpublish(p, publication, false)
		}
	}
	r.emitMoved(p)
	m := &mirror{Presence: p.Presence, node: node, shown: true, received: p.data.Received.Last()}
	p.Publications = nil
	released := Released{Identity: p.Identity, Session: p.Session, Epoch: p.epoch}
	for _, publication := range m.Publications {
		m.remotes = append(m.remotes, &remotePublication{
			checked: checked{publication.Description, publication.Encoded}, rates: publication.Levels.Measured(),
			former: true,
		})
		released.Publications = append(released.Publications, Unpublished{Ref: publication.Ref, ID: publication.ID})
		publication.Levels.SetMeasured(publication.Levels.Measured())
		r.demands.end(publication.Demand)
		publication.Demand.Relay(&r.demands.unsettled)
	}
	s.mirrors[m.Identity] = m
	r.exit(p)
	r.Add(&m.Presence)
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
	r.participants.askForTimes()
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
		e.Publications = slices.DeleteFunc(e.Publications, func(p Unpublished) bool {
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
