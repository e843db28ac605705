package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// announcedParticipants is the number of participants of all nodes from which participants that may not publish are
	// not announced.
	announcedParticipants = 100
	// audienceInterval is the minimum interval of messages with the size of the audience.
	audienceInterval = time.Second
)

// audience announces the participants of a room to its local participants: by name, or by the number of those that may
// not publish. The room's goroutine owns the audience.
type audience struct {
	room *Room
	// sent is the number last sent. changed is set if the number may be another, which is sent from the time next.
	sent    int
	changed bool
	next    time.Time
}

// joined announces a participant without its publications, or counts it.
func (a *audience) joined(p *presence.Presence, except *participant) {
	r := a.room
	if p.Audience {
		a.change()
		return
	}
	r.participants.share(except, &signal.ParticipantJoined{Participant: p.Describe()})
	r.recorder.current.Joined(r.now, p)
}

// left announces the end of a participant.
func (a *audience) left(p *presence.Presence, except *participant, reason string) {
	r := a.room
	if p.Audience {
		a.change()
	} else {
		r.participants.share(except, &signal.ParticipantLeft{Identity: p.Identity, Reason: reason})
	}
	r.recorder.current.Left(r.now, p, reason)
	if len(r.participants) == 0 {
		r.recorder.stop("the last participant has left")
	}
}

// name announces a participant that was not announced before.
func (a *audience) name(p *presence.Presence) {
	if p.Audience {
		p.Audience = false
		a.joined(p, a.room.participants[p.Identity])
		a.change()
	}
}

// change sends the number of participants that are not announced, now or at the end of the interval.
func (a *audience) change() {
	a.changed = true
	a.send()
}

// send sends the number if a change is due.
func (a *audience) send() {
	r := a.room
	switch {
	case !a.changed:
	case r.now.Before(a.next):
		r.wakeBy(a.next)
	default:
		a.changed = false
		if n := r.AudienceSize(); n != a.sent {
			a.sent, a.next = n, r.now.Add(audienceInterval)
			r.participants.share(nil, &signal.Audience{Count: n})
		}
	}
}

// welcome sends a new participant the number last sent to the others, if there is an audience.
func (a *audience) welcome(p *participant) {
	if a.sent > 0 {
		p.send(&signal.Audience{Count: a.sent})
	}
}
