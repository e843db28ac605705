package sfu

import (
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/frametimes"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// DataLosses returns the numbers of data messages of other nodes that were not delivered.
func (n *Node) DataLosses() dataflow.Losses { return n.losses.Read() }

// dataCopied carries a data message from the message channel of a connection.
type dataCopied struct {
	*connection
	message *signal.Data
}

// DataCopied implements peer.Owner.
func (c *connection) DataCopied(m *signal.Data) { c.room.post(dataCopied{c, m}) }

// apply implements request.
func (q dataCopied) apply(r *Room) {
	if !q.present() {
		return
	}
	if q.message.Lossy {
		r.lossyRequested(q.owner, q.message)
		return
	}
	r.span.stateChanged(q.owner)
	for _, m := range q.owner.data.Received.Copied(q.message) {
		q.owner.reply(m.ID, r.forwardData(q.owner, m))
	}
}

// data handles a data message from the websocket. A message that came over the message channel before is answered only
// then.
func (q messageRequest) data(r *Room, m *signal.Data) {
	p := q.participant
	if m.Lossy {
		r.lossyRequested(p, m)
		return
	}
	// The client repeats the messages that the server has not received, so missed messages are those that the client
	// has given up.
	ready, _ := p.data.Received.Ordered(m)
	for _, m := range ready {
		p.reply(m.ID, r.forwardData(p, m))
	}
}

// lossyRequested handles a lossy data message. A message that is older than another of its topic is dropped.
func (r *Room) lossyRequested(p *participant, m *signal.Data) {
	// The server sets the sender of messages. All messages of a client have one sender.
	m.Participant = ""
	newer, err := p.data.Received.Newer(m)
	switch {
	case err != nil:
		p.reply(m.ID, signal.Errorf(signal.CodeLimit, "the limit is %d topics of lossy messages of one participant",
			signal.MaxTopics))
	case newer:
		p.reply(m.ID, r.forwardData(p, m))
	default:
		p.reply(m.ID, nil)
	}
}

// forwardData forwards a data message to its recipients. If some of the named recipients are not in the room, the
// others receive the message, and the error names the first who does not.
func (r *Room) forwardData(p *participant, m *signal.Data) *signal.Error {
	if !p.grants.Data {
		return signal.Errorf(signal.CodeForbidden, "the participant has no permission to send data messages")
	}
	if refused := p.data.Allow(r.now, m); refused != nil {
		return refused
	}
	recipients, missing := r.recipients(p, m.To)
	if refused := r.deliver(p.Identity, recipients, m); refused != nil {
		return refused
	}
	return missing
}

// deliver sends a message of the named sender to recipients. The sender is empty for the operator.
func (r *Room) deliver(sender string, recipients []*participant, m *signal.Data) *signal.Error {
	if !r.deliveries.AllowN(r.now, len(recipients)+r.span.recipients(m.To)) {
		return signal.Errorf(signal.CodeLimit, "the limit of this room is %d deliveries of data messages per second",
			dataflow.DeliveryRate)
	}
	seq := m.Seq
	if m.Lossy {
		seq = r.nextLossy(sender)
	}
	r.fanOut(sender, recipients, m, seq)
	r.span.sent(sender, m, seq)
	return nil
}

// fanOut records a message of the named sender and sends it to recipients. seq is the number of a lossy message.
func (r *Room) fanOut(sender string, recipients []*participant, m *signal.Data, seq int64) {
	if len(m.To) == 0 {
		r.recorder.current.Data(r.now, &signal.Data{
			Participant: sender, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary,
		})
	}
	for _, recipient := range recipients {
		if !recipient.profile.TakesData {
			continue
		}
		recipient.receiveData(&signal.Data{
			Seq: seq, Participant: sender, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary,
		})
	}
}

// noAnswerRetryMS is the time after which a request about a participant whose home does not answer may succeed: the
// session continues on another node within a second or two.
const noAnswerRetryMS = 2000

// noAnswer returns the error of a request about a participant whose home does not answer.
func noAnswer(identity string) *signal.Error {
	refused := signal.Errorf(signal.CodeInternal, "the server of participant %q does not answer", identity)
	refused.RetryAfterMS = noAnswerRetryMS
	return refused
}

// receiveData sends a data message to the client. A reliable message goes over the websocket, and is copied to the
// message channel if it fits in a packet. A lossy message goes over the message channel, or over the websocket if the
// channel is not open or too slow.
func (p *participant) receiveData(m *signal.Data) {
	copies := p.connection.Messages
	if m.Lossy {
		if copies != nil {
			if text, err := signal.Encode(m); err == nil && copies.Send(text) {
				return
			}
		}
		p.send(m)
		return
	}
	p.data.Sent.Number(m)
	p.room.span.stateChanged(p)
	if copies != nil && m.Size() <= signal.MaxCopyBytes {
		signal.Share(m)
		if text, err := signal.Encode(m); err == nil && len(text) <= signal.MaxCopyBytes {
			copies.SendTwice(text)
		}
	}
	p.send(m)
}

// repeatData repeats the reliable messages after a number to a client that has resumed.
func (p *participant) repeatData(received *int64) {
	if received == nil {
		return
	}
	for _, m := range p.data.Sent.After(*received) {
		p.send(m)
	}
}

// pose stores the pose of an object and forwards the pose.
func (q messageRequest) pose(r *Room, m *signal.Pose) *signal.Error {
	p := q.participant
	publication := p.Publication(m.Publication)
	if publication == nil {
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q", m.Publication)
	}
	if !publication.Fits(m) {
		return signal.Errorf(signal.CodeInvalid, "the pose has %d boxes, expected none or %d, one for each tile",
			len(m.Boxes), len(publication.Description.Tiles))
	}
	if publication.Place.Take(m) {
		r.scheduler.Changes.Motion++
	}
	r.forwardPose(publication)
	return nil
}

// forwardPose sends the pose of an object to the others. If the last pose was sent too recently, the pose is sent
// later.
func (r *Room) forwardPose(p *presence.Publication) {
	if due := p.Place.Due(); r.now.Before(due) {
		r.wakeBy(due)
		return
	}
	next := p.Place.Next(p.Ref.Participant, r.now)
	r.participants.broadcast(r.participants[p.Ref.Participant], next)
	r.recorder.current.Posed(r.now, p, next())
	r.span.posed(p, "")
}

// sendPoses sends a new participant the latest poses of the others' objects.
func (p *participant) sendPoses() {
	for _, publication := range p.room.present.PublishedByOthers(&p.Presence) {
		if latest := publication.Place.Latest(); latest != nil {
			pose := *latest
			pose.Participant = publication.Ref.Participant
			p.send(&pose)
		}
	}
}

// requestTimes handles a message that requests times of frames or ends the request. A change may cause a message to
// every publisher.
func (q messageRequest) requestTimes(r *Room, m *signal.Trace) *signal.Error {
	p := q.participant
	if wanted := m.FrameTimes && p.receive; wanted != p.frameTimes.Wanted {
		if refused := p.chargeChange(); refused != nil {
			return refused
		}
	}
	r.traceRequested(p, m.FrameTimes)
	return nil
}

// traceRequested handles a receiver's request for times of frames.
func (r *Room) traceRequested(p *participant, wanted bool) {
	p.trace(wanted && p.receive)
	r.participants.askForTimes(r.span)
}

// trace starts or stops the tracing of the frames sent to the participant.
func (p *participant) trace(wanted bool) {
	p.frameTimes.Wanted = wanted
	p.connection.Receiver.TraceFrames(wanted)
}

// askForTimes tells publishers, and through the span the homes of others, whether another participant wants the times
// of their frames, if that has changed.
func (m members) askForTimes(s *span) {
	wanted := 0
	for _, p := range m {
		if p.frameTimes.Wanted {
			wanted++
		}
	}
	for _, p := range m {
		others := wanted
		if p.frameTimes.Wanted {
			others--
		}
		if asked := others > 0; p.profile.Traces && len(p.Publications) > 0 && p.frameTimes.Asked != asked {
			p.frameTimes.Asked = asked
			p.room.span.stateChanged(p)
			p.send(&signal.Trace{FrameTimes: asked})
		}
	}
	s.trace(wanted > 0)
}

// sendTrace repeats the request for times to a resumed participant.
func (p *participant) sendTrace() {
	if p.frameTimes.Asked {
		p.send(&signal.Trace{FrameTimes: true})
	}
}

// forwardTimes forwards the times of a publisher's frames to participants that asked for times, within the rate limit.
// Tracks that the publisher does not publish are ignored, and so are all messages of a client without publications.
func (q messageRequest) forwardTimes(r *Room, m *signal.FrameTimes) {
	p := q.participant
	if len(p.Publications) == 0 {
		return
	}
	passed := p.frameTimes.Limit(r.now, &p.Presence, m)
	for _, other := range r.participants.others(p) {
		if !other.frameTimes.Wanted || other.outbox == nil {
			continue
		}
		passed.Prepare()
		other.send(passed)
		p.frameTimes.Sent()
	}
}

// frameTimes has the times of frames that were sent to a connection's receiver.
type frameTimes struct {
	*connection
	frames []egress.FrameTimes
}

// apply implements request.
func (q frameTimes) apply(r *Room) {
	p := q.owner
	if !q.present() || !p.frameTimes.Wanted {
		return
	}
	clock := r.node.clock()
	for frames := q.frames; len(frames) > 0; {
		n := min(len(frames), signal.MaxFrameTimes)
		p.send(clock.Message(p.subscriber.Slots, frames[:n]))
		frames = frames[n:]
	}
}

// clock returns the clock of this node as clients see it.
func (n *Node) clock() frametimes.Clock {
	return frametimes.Clock{Source: signal.ClockSource(n.config.ClockSource), Ahead: n.config.ClockOffset}
}
