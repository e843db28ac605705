package sfu

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Adoption is a session of another node that a client continues on this node.
type Adoption struct {
	// Session and Secret are those of the former home.
	Session, Secret string
	// Epoch counts the homes of the session, this node included, from 0.
	Epoch  uint64
	Record *SessionRecord
}

// formerConnection is the time for which the former home keeps the peer connection of a participant that has moved. The
// client sends on both connections until the trunk from the next home feeds the tracks.
const formerConnection = 2 * time.Second

// adoptable returns the mirror whose session a client continues on this node, nil if there is none.
func (s *span) adoptable(q *JoinRequest) *mirror {
	if s == nil || q.Adopt == nil {
		return nil
	}
	if m := s.mirrors[q.Identity]; m != nil && m.shown && m.session == q.Adopt.Session {
		return m
	}
	return nil
}

// adopt makes the mirror of a session the state of a local participant. The tracks, the slots of others and the pose of
// each publication stay.
func (s *span) adopt(m *mirror, p *participant) {
	r := s.room
	delete(s.mirrors, m.identity)
	for _, publication := range m.publications {
		m.unbind(s, m.find(publication.Ref.Publication))
		publication.Levels.GiveUp(make([]allocate.QualitySet, len(publication.Description.Tiles)))
		for i, t := range publication.Tracks {
			publication.Levels.SetMeter(i, t)
		}
		publication.Demand.Adopt()
		p.suppress(publication)
	}
	session := p.session
	p.presence = m.presence
	p.session = session
	r.scheduler.Changes.Offered++
	p.log.Info("participant moved to this node", zap.String("from", m.node))
}

// suppress lets the publisher pause tracks of a publication, if it can.
func (p *participant) suppress(publication *publication) {
	if !p.pauses {
		return
	}
	publication.Demand.Suppress(p.room.node.config.Suppression, &p.room.unsettled, p.room.now)
	if p.asked.multipath != nil {
		publication.Demand.ReportLowest()
	}
}

// release makes a local participant, whose session continues on another node, a mirror. The tracks and the slots of
// others stay. The client's websocket ends, and its peer connection ends later.
func (s *span) release(p *participant, node string, state Presence) {
	r := s.room
	for _, publication := range slices.Clone(p.publications) {
		if publication.silent {
			r.unpublish(p, publication, false)
		}
	}
	m := &mirror{presence: p.presence, node: node, shown: true}
	p.publications = nil
	for _, publication := range m.publications {
		m.told = append(m.told, &told{
			checked: checked{publication.Description, publication.encoded}, rates: publication.Levels.Measured(),
		})
		publication.Levels.Tell(publication.Levels.Measured())
		r.endDemand(publication.Demand)
		publication.Demand.Relay(&r.unsettled)
	}
	s.mirrors[m.identity] = m
	p.subscriber.Slots.Release()
	delete(r.participants, p.identity)
	r.census.Store(r.participants.census())
	p.gone = true
	p.trace(false)
	p.connection.answerTimer.stop()
	p.connection.connectTimer.stop()
	// The room may end before the connection.
	time.AfterFunc(formerConnection, func() { p.connection.Do(peer.Close{}) })
	r.node.forget(p)
	r.participants.askForTimes()
	m.update(s, state)
	p.log.Info("participant moved to another node", zap.String("to", node))
	if p.outbox != nil {
		p.outbox.Close(signal.CodeReplaced, "the session continued on another server")
	}
}
