package sfu

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Outbox takes messages for one client's websocket. It never blocks.
type Outbox interface {
	// Send queues a message. It reports false where the client does not read and the queue is full.
	Send(signal.Message) bool
	// Close ends the websocket once what is queued is written, with the reason. More calls do nothing.
	Close(code signal.Code, reason string)
}

// Grants are what a participant may do.
type Grants struct {
	Publish   bool
	Subscribe bool
}

// participant is somebody in a room. It belongs to the room's goroutine.
type participant struct {
	room     *Room
	identity string
	session  string
	// secret is what the client needs to resume. former is the one before, empty once the client has shown that it
	// has got the present one.
	secret, former string

	grants Grants
	// bearer is the holder of the place from the join on, whatever token resumes the session. token is that of the
	// last join or return.
	bearer admission.Bearer
	token  admission.Token
	// asked is what the client asked for when it joined, whether its token granted that or not. receive says that it
	// takes publications of others.
	asked   wishes
	receive bool
	// deadline is how long the client repairs a frame, 0 where it leaves that to the server.
	deadline time.Duration
	// pauses says that the client stops the tracks that it is not asked for.
	pauses bool
	// byData says that the client publishes frames over data channels.
	byData bool
	// takesChunks says that the client takes frames over data channels.
	takesChunks bool
	// profile is that of the client's protocol.
	profile *Profile
	// number is the number by which clients that know participants by numbers know it, if numbered is set.
	number   uint32
	numbered bool
	log      *zap.Logger
	// warned are the warnings that were logged once.
	warned map[string]bool
	// outbox is nil while the websocket is broken; detachments counts how often that happened, so that a grace timer
	// knows its own.
	outbox      Outbox
	detachments int

	connection *connection
	connected  bool
	// arrived says that the participant has been connected once.
	arrived bool
	// pendingOffer is the offer that waits for an answer.
	pendingOffer *signal.Offer

	publications []*publication
	// publishing limits how often others have to be told of new publications.
	publishing *rate.Limiter
	subscriber *subscriber.Subscriber
	tracing    tracing
	joined     time.Time
	limitTold  bool
	gone       bool
}

// wishes are what a client asks for in its join: to receive, and to do that, or to publish, over data channels.
type wishes struct{ receive, receiveData, publishData bool }

// errorField is the log field of an error.
func errorField(err error) zap.Field { return zap.Error(err) }

func isPublication(p *publication) func(*publication) bool {
	return func(other *publication) bool { return other == p }
}

// refuse makes the error of a request.
func refuse(code signal.Code, format string, arguments ...any) *signal.Error {
	return &signal.Error{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// send queues a message for the client. A client that does not read loses its websocket and may resume.
func (p *participant) send(m signal.Message) {
	if p.outbox == nil || p.outbox.Send(m) {
		return
	}
	p.log.Warn("client does not read its messages")
	p.outbox.Close(signal.CodeSlowReader, "messages were not read in time")
	p.detached()
}

// reply answers a request with OK, or with its error.
func (p *participant) reply(id string, err *signal.Error) {
	if err != nil {
		err.ID = id
		p.room.node.metrics.SignallingError(err.Code)
		p.send(err)
		return
	}
	if id != "" {
		p.send(&signal.OK{Header: signal.Header{ID: id}})
	}
}

// detached keeps the participant for the grace time after its websocket broke.
func (p *participant) detached() {
	p.outbox = nil
	p.detachments++
	grace := p.room.node.config.ResumeGrace
	if !p.profile.Resumes {
		grace = 0
	}
	p.room.after(grace, graceOver{p, p.detachments})
}

func (p *participant) publication(name string) *publication {
	for _, publication := range p.publications {
		if publication.Description.Name == name {
			return publication
		}
	}
	return nil
}

// describe is how others see the participant.
func (p *participant) describe() signal.Participant {
	d := signal.Participant{Identity: p.identity, Publications: []volumetric.Publication{}}
	for _, publication := range announced(p.publications) {
		d.Publications = append(d.Publications, publication.Description)
	}
	return d
}

// subscribe wants slots for publications of others. They are wanted together, so that together they cost one offer at
// most.
func (p *participant) subscribe(publications []*publication) {
	publications = p.readable(publications)
	if !p.receive || len(publications) == 0 {
		return
	}
	for _, publication := range publications {
		p.subscriber.Slots.Want(publication.Publication)
	}
	p.tellAssignments(p.subscriber.Slots.Assign())
	p.updateLines()
}

// unsubscribe frees the slots of a publication that ends; others that wait get them.
func (p *participant) unsubscribe(publication *publication) {
	slots := p.subscriber.Slots
	told, renames := slots.Drop(publication.Publication), slots.Renames()
	p.tellAssignments(append(told, slots.Assign()...))
	if slots.Renames() != renames {
		p.updateLines()
	}
}

func (p *participant) tellAssignments(told []signal.Assignment) {
	if len(told) > 0 {
		p.subscriber.Invalidate()
		if !p.profile.Acknowledges {
			p.openSlots()
			defer p.refresh(p.room.now)
		}
		p.subscriber.Expect()
		p.send(&signal.Assignments{Assignments: told})
	}
}

// carriesByData reports whether a publication of the participant's comes over a data channel.
func (p *participant) carriesByData(publication *publication) bool {
	return p.byData && peer.CarriedByData(&publication.Description)
}

// attachData has frames that come over data channels go to the publication's tracks, if it is such a one.
func (p *participant) attachData(publication *publication) {
	if p.carriesByData(publication) {
		p.connection.AttachData(publication.Publication)
	}
}

// updateLines tells the connection which lines it shall have. Slots are added some more than needed, so that the next
// publication finds idle ones and costs no offer.
func (p *participant) updateLines() {
	var wanted peer.Lines
	for _, publication := range p.publications {
		if p.carriesByData(publication) {
			continue
		}
		for tile := range publication.Description.Tiles {
			for q := range publication.Description.Qualities {
				wanted.Publish = append(wanted.Publish, peer.Track{
					ID:          publication.id,
					Publication: publication.Description.Name,
					Kind:        publication.Description.Kind,
					Tile:        tile,
					Quality:     volumetric.Quality(q),
				})
			}
		}
	}
	if p.receive {
		config := p.room.node.config
		wanted.Slots = p.slotCount(volumetric.KindVideo, config.SpareSlots)
		wanted.AudioSlots = p.slotCount(volumetric.KindAudio, config.SpareAudioSlots)
		wanted.Renames = p.subscriber.Slots.Renames()
	}
	p.connection.Do(peer.SetLines{Lines: wanted})
}

// spareShare makes the spare slots of a large room a quarter of the needed ones: each publication that comes costs a
// receiver an offer of all its lines where no slot is idle, so that the offers to a receiver in a room that fills
// grow with the logarithm of its size only.
const spareShare = 4

// slotCount is how many slots of a kind the connection shall have. Where the limit leaves publications without slots
// the client is told once.
func (p *participant) slotCount(kind volumetric.Kind, spare int) int {
	slots := p.subscriber.Slots
	needed, present := slots.Needed(kind), slots.Count(kind)
	limit := p.room.node.config.MaxSlots
	if p.profile.Named != nil {
		if needed = slots.NamedCount(kind); needed > limit {
			p.warnOnce("not every publication finds a line", zap.Int("needed", needed), zap.Int("limit", limit))
		}
		return min(needed, limit)
	}
	if needed > limit && !p.limitTold {
		p.limitTold = true
		p.log.Warn("not every publication finds a slot", zap.Int("needed", needed), zap.Int("limit", limit))
		p.send(refuse(signal.CodeLimit, "%d slots are needed, %d are the limit: some publications are not sent",
			needed, limit))
	}
	if needed <= present && present > 0 {
		return present
	}
	return min(needed+max(spare, needed/spareShare), limit)
}

// warnOnce logs a warning, once for each text.
func (p *participant) warnOnce(text string, fields ...zap.Field) {
	if p.warned[text] {
		return
	}
	if p.warned == nil {
		p.warned = make(map[string]bool)
	}
	p.warned[text] = true
	p.log.Warn(text, append(fields, zap.String("repeated", "not logged again"))...)
}
