package sfu

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Session is one client's place in a room over one websocket. The methods are safe for concurrent use.
type Session struct {
	room        *Room
	participant *participant
	outbox      Outbox
}

// Handle handles a message that was read at the given time. Replies are sent to the outbox. Handle blocks while the
// queue of the room is full.
func (s *Session) Handle(m signal.Message, at time.Time) {
	s.room.post(messageRequest{participant: s.participant, outbox: s.outbox, message: m, at: at})
}

// Choose handles quality choices of another protocol in the same way.
func (s *Session) Choose(c Chooser, at time.Time) {
	s.room.post(chooseRequest{participant: s.participant, outbox: s.outbox, chooser: c, at: at})
}

// Detach reports that the websocket has ended. The participant may resume within the grace time.
func (s *Session) Detach() {
	s.room.post(detachRequest{participant: s.participant, outbox: s.outbox})
}

// messageRequest carries a message of a joined client.
type messageRequest struct {
	participant *participant
	outbox      Outbox
	message     signal.Message
	// at is the time when the message was read from the websocket.
	at time.Time
}

// apply implements request.
func (q messageRequest) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	// A client that sends a message has read the reply to its join.
	p.former = ""
	id := q.message.Head().ID
	switch m := q.message.(type) {
	case *signal.Publish:
		p.reply(id, q.publish(r, m))
	case *signal.Unpublish:
		p.reply(id, q.unpublish(r, m))
	case *signal.Answer:
		p.connection.Do(peer.Answer{ID: id, Offer: m.Offer, SDP: m.SDP})
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		p.connection.Do(peer.AddCandidate{ID: id, Candidate: candidate})
	case *RestartICE:
		p.connection.Do(peer.RestartRemote{ID: id, Ufrag: m.Ufrag, Password: m.Password})
	case *signal.SetQuality:
		p.reply(id, q.choose(r, m))
	case *signal.Acknowledge:
		p.reply(id, q.acknowledge(m))
	case *signal.Viewpoint:
		q.look(r, m)
		p.reply(id, nil)
	case *signal.Pose:
		p.reply(id, q.pose(r, m))
	case *signal.Arrange:
		q.arrange(r, m)
		p.reply(id, nil)
	case *signal.SetLimits:
		p.limits = m.BitrateLimits
		p.limitBitrate()
		p.reply(id, nil)
	case *signal.Uplink:
		p.reply(id, q.reportUplink(r, m))
	case *signal.Trace:
		p.reply(id, q.requestTimes(r, m))
	case *signal.Data:
		q.data(r, m)
	case *signal.Attributes, *signal.Metadata, *signal.Mute, *signal.SetPermissions:
		p.reply(id, change{r, p}.request(m))
	case *signal.FrameTimes:
		q.forwardTimes(r, m)
		p.reply(id, nil)
	case *signal.Time:
		q.answerTime(r, m)
	case *signal.Leave:
		q.leave(r)
	case *signal.Join:
		p.reply(id, signal.Errorf(signal.CodeAlreadyJoined, "this connection has already joined"))
	default:
		p.reply(id, signal.Errorf(signal.CodeUnknownType, "a client may not send messages of type %q",
			q.message.Head().Type))
	}
	if changesState(q.message) {
		r.span.stateChanged(p)
	}
}

// look stores the viewpoint of the client, and decides again if the viewpoint has moved far enough.
func (q messageRequest) look(r *Room, m *signal.Viewpoint) {
	p := q.participant
	r.span.looked(p, m)
	viewpoint := r.node.config.viewpoint(m, q.at)
	if p.subscriber.Look(r.now, viewpoint, r.node.config.AllocationInterval) && p.receives() {
		p.decide()
	}
}

// arrange stores where the client sees the objects that have no pose.
func (q messageRequest) arrange(r *Room, m *signal.Arrange) {
	p := q.participant
	if r.span != nil {
		p.arrangement = m.Objects
	}
	p.subscriber.Arrange(m.Objects)
}

// answerTime replies with the times of the server's clock when the message was read and when the reply is written.
func (q messageRequest) answerTime(r *Room, m *signal.Time) {
	config := &r.node.config
	q.participant.send(&signal.TimeReply{
		Header: signal.Header{ID: m.ID}, T0: m.T0, T1: config.clock(q.at), T2: config.clock(time.Now()),
	})
}

// leave ends the session of the client.
func (q messageRequest) leave(r *Room) {
	p := q.participant
	// A reply that finds the queue full clears p.outbox.
	outbox := p.outbox
	p.reply(q.message.Head().ID, nil)
	r.remove(p, "left")
	outbox.Close("", "left")
}

// chargeChange charges a change of which others are notified, and returns an error if the client makes such changes too
// often.
func (p *participant) chargeChange() *signal.Error {
	if p.publishing.AllowN(p.room.now, 1) {
		return nil
	}
	return signal.Errorf(signal.CodeLimit,
		"the limit of publications, mutings and requests for times of frames together is %g per second and %d at once",
		p.room.node.config.PublishRate, p.publishing.Burst())
}

func (q messageRequest) publish(r *Room, m *signal.Publish) *signal.Error {
	p := q.participant
	if refused := p.chargeChange(); refused != nil {
		return refused
	}
	if former := p.Publication(m.Publication.Name); former != nil && former.Unconfirmed {
		former.Unconfirmed = false
		if sameDescription(&former.Description, &m.Publication) {
			return nil
		}
		r.unpublish(p, former, true)
	}
	if err := r.publish(p, m.Publication); err != nil {
		return err
	}
	added := p.Publication(m.Publication.Name)
	r.participants.share(p, &signal.Published{Participant: p.Identity, Publication: added.Description})
	r.announce(&p.Presence, []*presence.Publication{added})
	r.span.published(added)
	r.participants.askForTimes(r.span)
	p.updateLines()
	return nil
}

func (q messageRequest) unpublish(r *Room, m *signal.Unpublish) *signal.Error {
	p := q.participant
	publication := p.Publication(m.Publication)
	if publication == nil {
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q", m.Publication)
	}
	r.unpublish(p, publication, true)
	p.log.Info("unpublished", zap.String("publication", m.Publication))
	return nil
}

// choose applies all choices of a message or none.
func (q messageRequest) choose(r *Room, m *signal.SetQuality) *signal.Error {
	p := q.participant
	for _, choice := range m.Choices {
		if publication := r.present.Publication(choice.PublicationRef); publication != nil {
			if err := subscriber.CheckChoice(choice, &publication.Description); err != nil {
				return signal.Errorf(signal.CodeNotFound, "%v", err)
			}
		}
	}
	changed, kept := p.subscriber.Choices.SetAllFor(m.Choices, r.present.Has)
	if !kept {
		return signal.Errorf(signal.CodeLimit,
			"the limit is %d stored quality choices of one participant", r.node.config.ChoicesPerParticipant)
	}
	if changed {
		p.refresh(q.at)
	}
	return nil
}

// acknowledge opens slots whose present assignment the client knows. Older generations are ignored, because a newer
// assignment is already sent.
func (q messageRequest) acknowledge(m *signal.Acknowledge) *signal.Error {
	p := q.participant
	opened := false
	defer func() {
		if opened {
			p.refresh(q.at)
		}
	}()
	for _, known := range m.Slots {
		ready, found := p.subscriber.Slots.Acknowledge(known)
		if !found {
			return signal.Errorf(signal.CodeNotFound, "there is no slot %q with generation %d", known.MID,
				known.Generation)
		}
		opened = opened || ready
	}
	return nil
}

// Choosable is a publication whose qualities a client may choose.
type Choosable struct {
	volumetric.PublicationRef
	// Number is the publisher's number.
	Number uint32
	// Tiles is the number of tiles, Highest the highest quality.
	Tiles   int
	Highest volumetric.Quality
}

// Chooser converts a message of another protocol to quality choices. A Chooser is called by the room's goroutine.
type Chooser interface {
	// Choose returns choices for the publications, and warnings, each of which is logged once.
	Choose([]Choosable) (choices []signal.Choice, warnings []string)
}

// chooseRequest carries a Chooser of a client.
type chooseRequest struct {
	participant *participant
	outbox      Outbox
	chooser     Chooser
	at          time.Time
}

// apply implements request.
func (q chooseRequest) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	choices, warnings := q.chooser.Choose(r.choosable(p))
	for _, warning := range warnings {
		p.warnOnce(warning)
	}
	changed, kept := p.subscriber.Choices.SetAllFor(choices, r.present.Has)
	switch {
	case !kept:
		p.warnOnce("quality choices of the client exceed the limit",
			zap.Int("limit", r.node.config.ChoicesPerParticipant))
	case changed:
		p.refresh(q.at)
	}
}
