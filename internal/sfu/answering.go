package sfu

import (
	"strings"

	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// RestartICE is the request of a client that offers to restart ICE, with the client's new credentials. The reply is an
// Answer with the id of the request.
type RestartICE struct {
	// Candidate makes RestartICE a message, and has its head. Its other fields are empty.
	signal.Candidate
	Ufrag, Password string
}

// Answer is the server's answer to a client that offers.
type Answer struct{ signal.Answer }

// OfferAnswered implements peer.Owner.
func (c *connection) OfferAnswered(answered *peer.Answered) { c.room.post(offerAnswered{c, answered}) }

// offerAnswered has the argument of OfferAnswered.
type offerAnswered struct {
	*connection
	answered *peer.Answered
}

// apply implements request.
func (q offerAnswered) apply(r *Room) {
	if !q.present() {
		return
	}
	p, a := q.owner, q.answered
	for _, publication := range p.Publications {
		for quality, t := range publication.Tracks {
			track := trackOf(publication, 0, quality)
			if streams, ok := a.Streams[track]; ok {
				q.Ingress.Bind(streams.SSRC, streams.Retransmission, t)
			} else if name, ok := a.Names[track]; ok {
				q.Ingress.BindByName(a.Extensions, name, t)
			}
		}
	}
	p.subscriber.Slots.Add(a.Lines)
	told := p.subscriber.Slots.Assign()
	p.send(&Answer{signal.Answer{Header: signal.Header{ID: a.ID}, SDP: a.SDP}})
	p.openSlots()
	p.sendAssignments(told)
	if !p.connected && !q.connectTimer.running() {
		q.connectTimer.set(r, r.node.config.ConnectTimeout, connectOverdue{q.connection})
	}
	p.refresh(r.now)
}

// acknowledgeUnnamed records the assignments of lines without names as known to a client that acknowledges none.
func (p *participant) acknowledgeUnnamed(told []signal.Assignment) {
	if p.profile.Named != nil {
		return
	}
	for _, a := range told {
		p.subscriber.Slots.Acknowledge(signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
	}
}

// checkWatched returns an error if the participant that a client asks to watch publishes nothing that the client can
// receive.
func (q *JoinRequest) checkWatched(r *Room) *signal.Error {
	watched := r.Get(q.Watched)
	if watched == nil || len(watched.Publications) == 0 {
		return notWatchable(q)
	}
	var reasons []string
	for _, publication := range presence.Audible(presence.Announced(watched.Publications)) {
		reason := ""
		if q.Profile.Withheld != nil {
			reason = q.Profile.Withheld(&publication.Description)
		}
		if reason == "" {
			return nil
		}
		reasons = append(reasons, publication.Ref.Publication+": "+reason)
	}
	if len(reasons) == 0 {
		return refuse(signal.CodeNotFound, "%q has muted all its publications", q.Watched)
	}
	return refuse(signal.CodeInvalidSDP, "no publication of %q can be received with this offer (%s)", q.Watched,
		strings.Join(reasons, "; "))
}

func notWatchable(q *JoinRequest) *signal.Error {
	return refuse(signal.CodeNotFound, "%q publishes nothing in room %q", q.Watched, q.Room)
}
