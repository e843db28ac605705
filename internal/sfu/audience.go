package sfu

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// announcedParticipants is the number of participants of all nodes from which participants that may not publish are
	// not announced.
	announcedParticipants = 100
	// audienceInterval is the minimum interval of messages with the size of the audience.
	audienceInterval = time.Second
)

// audience is the state of the messages with the number of participants that are not announced.
type audience struct {
	// sent is the number last sent. changed is set if the number may be another, which is sent from the time next.
	sent    int
	changed bool
	next    time.Time
}

// announceJoined announces a participant without its publications, or counts it.
func (r *Room) announceJoined(p *presence, except *participant) {
	if p.audience {
		r.audienceChanged()
		return
	}
	r.participants.share(except, &signal.ParticipantJoined{Participant: p.describe()})
	r.recordJoined(p)
}

// announceLeft announces the end of a participant.
func (r *Room) announceLeft(p *presence, except *participant, reason string) {
	if p.audience {
		r.audienceChanged()
	} else {
		r.participants.share(except, &signal.ParticipantLeft{Identity: p.identity, Reason: reason})
	}
	r.recordLeft(p, reason)
}

// leaveAudience announces a participant that was not announced before.
func (r *Room) leaveAudience(p *presence) {
	if p.audience {
		p.audience = false
		r.announceJoined(p, r.participants[p.identity])
		r.audienceChanged()
	}
}

// audienceChanged sends the number of participants that are not announced, now or at the end of the interval.
func (r *Room) audienceChanged() {
	r.audience.changed = true
	r.sendAudience()
}

// sendAudience sends the number if a change is due.
func (r *Room) sendAudience() {
	a := &r.audience
	switch {
	case !a.changed:
	case r.now.Before(a.next):
		r.wakeBy(a.next)
	default:
		a.changed = false
		if n := r.audienceSize(); n != a.sent {
			a.sent, a.next = n, r.now.Add(audienceInterval)
			r.participants.share(nil, &signal.Audience{Count: n})
		}
	}
}

// welcomeAudience sends a new participant the number last sent to the others, if there is an audience.
func (r *Room) welcomeAudience(p *participant) {
	if r.audience.sent > 0 {
		p.send(&signal.Audience{Count: r.audience.sent})
	}
}
