package sfu

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// connection is one participant's peer connection. Its goroutine owns the peer's negotiation and the table of lines; the room's goroutine
// uses ingress and receiver, whose methods are safe for it.
type connection struct {
	room     *Room
	owner    *participant
	peer     *transport.Peer
	ingress  *forward.Ingress
	receiver *forward.Receiver
	// data is what the client publishes over data channels, nil where it has none, and chunks what it is sent over such, nil where it takes media lines.
	data     *dataLines
	chunks   *forward.ChunkSender
	commands *commandList

	lines  lineTable
	wanted wantedLines
	// channels is how many slots are data channels, renames how many lines have been renamed.
	channels, renames int
	// offer is the number of the last offer; awaiting says that its answer has not come.
	offer    int
	awaiting bool
	restart  bool

	// The room's goroutine owns the timers, and over, which says that the client has ended the connection.
	answerTimer, connectTimer timer
	over                      bool
}

// mediaSink hands what arrives to the data plane: what a publisher sends or says to the ingress, what a receiver says to the receiver.
type mediaSink struct {
	ingress  *forward.Ingress
	receiver *forward.Receiver
	data     *dataLines
	chunks   *forward.ChunkSender
}

// Data implements transport.Sink.
func (s *mediaSink) Data(label string, message []byte, now time.Time) {
	if s.data != nil {
		s.data.take(label, message, now)
	}
}

// Acknowledged implements transport.Sink. What the client acknowledges of what it is sent over data channels stands
// for reports of arrivals.
func (s *mediaSink) Acknowledged(now time.Time) {
	if s.chunks == nil {
		return
	}
	for _, report := range s.chunks.Acknowledged(now) {
		s.receiver.RTCP(report, now)
	}
}

// RTP implements transport.Sink.
func (s *mediaSink) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	s.ingress.RTP(ssrc, packet, info)
}

// Flush implements transport.Sink.
func (s *mediaSink) Flush() { s.ingress.Flush() }

// Signal implements transport.Sink.
func (s *mediaSink) Signal() { s.ingress.Signal() }

// Sent implements transport.Sink.
func (s *mediaSink) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	s.receiver.PacketSent(ssrc, sequence, kernel, hardware)
}

// RTCP implements transport.Sink. Sender reports (RFC 3550 type 200) speak of what the client sends; they may carry report blocks, too.
func (s *mediaSink) RTCP(packet []byte, now time.Time) {
	const senderReport = 200
	if packet[1] == senderReport {
		s.ingress.RTCP(packet, now)
	}
	s.receiver.RTCP(packet, now)
}

// newConnection makes a peer connection for a participant and starts its goroutine.
func newConnection(room *Room, owner *participant) (*connection, error) {
	sink := &mediaSink{}
	peer, err := room.node.endpoint.NewPeer(sink)
	if err != nil {
		return nil, err
	}
	sink.ingress = room.node.engine.NewIngress(mediaPeer{peer})
	sink.receiver = room.node.engine.NewReceiver(mediaPeer{peer}, owner.deadline)
	if !owner.profile.parity {
		sink.receiver.SendBare()
	}
	if owner.byData {
		sink.data = newDataLines(owner.log, room.node.config.FrameBytes)
	}
	if owner.takesChunks {
		sink.chunks = sink.receiver.NewChunkSender(room.node.config.FrameBytes, peer.AddChannel(paddingLabel))
	}
	if owner.byData || owner.takesChunks {
		peer.AddData()
	}
	c := &connection{
		data:     sink.data,
		chunks:   sink.chunks,
		room:     room,
		owner:    owner,
		peer:     peer,
		ingress:  sink.ingress,
		receiver: sink.receiver,
		commands: newCommandList(),
	}
	room.node.running.Add(1)
	go c.run()
	return c, nil
}

// errPanicked ends a connection of which a goroutine panicked.
var errPanicked = errors.New("internal error of the server")

// run is the connection's goroutine.
func (c *connection) run() {
	defer c.room.node.running.Done()
	defer c.room.node.config.Guard.Recover(placeConnection, func() { c.room.post(connectionFailed{c, errPanicked}) })
	defer c.close()
	var events []forward.Event
	for {
		select {
		case <-c.room.done:
			// The room has ended. If its goroutine panicked, the room may have forgotten this connection.
			return
		case <-c.commands.notify:
			for _, command := range c.commands.take() {
				if _, end := command.(closeCommand); end {
					return
				}
				c.execute(command)
			}
			if err := c.negotiate(); err != nil {
				c.room.post(connectionFailed{c, err})
			}
		case <-c.peer.Notify():
			for _, event := range c.peer.Events() {
				c.room.post(peerEvent{c, event})
			}
		case <-c.receiver.Notify():
			events = c.receiver.TakeEvents(events[:0])
			if len(events) > 0 {
				c.room.post(slotEvents{c, append([]forward.Event(nil), events...)})
			}
		case <-c.receiver.FrameTimesReady():
			if times := c.receiver.TakeFrameTimes(nil); len(times) > 0 {
				c.room.post(frameTimes{c, times})
			}
		}
	}
}

// dismiss ends the connection. The room calls it; the timers would hold everything that the connection has until they ran out.
func (c *connection) dismiss() {
	c.answerTimer.stop()
	c.connectTimer.stop()
	c.commands.add(closeCommand{})
}

// close frees the data plane first, so that nothing is written to a closed peer. The peer is closed also if that
// panics: readers of sockets would go on to bring its packets.
func (c *connection) close() {
	defer func() {
		if err := c.peer.Close(); err != nil {
			c.owner.log.Warn("peer connection did not close cleanly", errorField(err))
		}
	}()
	defer c.ingress.Close()
	c.receiver.Close()
}

func (c *connection) execute(command command) {
	switch m := command.(type) {
	case linesCommand:
		c.wanted = m.wanted
	case restartCommand:
		c.restart = true
	case answerCommand:
		c.answered(m)
	case candidateCommand:
		if err := c.peer.AddCandidate(m.candidate); err != nil {
			c.room.post(requestFailed{c, m.id, signal.CodeInvalidSDP, err.Error()})
		}
	default:
		panic(fmt.Sprintf("command %T is not known to a connection", command))
	}
}

// answered applies the client's answer and tells the room which streams come on which track.
func (c *connection) answered(m answerCommand) {
	if !c.awaiting || m.offer != c.offer {
		c.room.post(requestFailed{c, m.id, signal.CodeUnexpectedAnswer, fmt.Sprintf("no offer %d waits for an answer", m.offer)})
		return
	}
	streams, err := c.peer.Answered(m.sdp)
	if err != nil {
		c.room.post(requestFailed{c, m.id, signal.CodeInvalidSDP, err.Error()})
		if errors.Is(err, transport.ErrSpent) {
			c.room.post(connectionFailed{c, err})
		}
		return
	}
	c.awaiting = false
	published := make(map[publishedTrack]transport.Streams)
	for _, l := range c.lines.publish {
		if s, ok := streams[l.line.MID()]; ok && l.track != nil && l.offered {
			published[*l.track] = s
		}
	}
	c.room.post(answerTaken{c, published})
}

// negotiate brings the lines to what is wanted and offers them, unless an offer is under way or nothing has changed.
func (c *connection) negotiate() error {
	if c.awaiting {
		return nil
	}
	lacking, changed := c.lines.reconcilePublish(c.wanted.publish)
	changed = changed || c.renames != c.wanted.renames
	c.renames = c.wanted.renames
	for _, track := range lacking {
		line, err := c.peer.AddReceiving(track.kind)
		if err != nil {
			return err
		}
		c.lines.publish = append(c.lines.publish, &publishLine{line: line, kind: track.kind, track: &track})
	}
	if c.chunks != nil {
		c.addChannels()
	}
	for kind, wanted := range map[volumetric.Kind]int{volumetric.KindVideo: c.wanted.slots, volumetric.KindAudio: c.wanted.audioSlots} {
		if kind == volumetric.KindVideo && c.chunks != nil {
			continue
		}
		for n := c.lines.countSlots(kind); n < wanted; n++ {
			line, err := c.peer.AddSending(kind, fmt.Sprintf("%s-slot-%d", kind, n))
			if err != nil {
				return err
			}
			c.lines.slots = append(c.lines.slots, &slotLine{line: line, kind: kind})
			changed = true
		}
	}
	// A client that has nothing but data channels needs an offer for them.
	first := c.offer == 0 && (c.data != nil || c.chunks != nil)
	if !changed && !c.restart && !first {
		return nil
	}
	return c.makeOffer()
}

// makeOffer offers the lines as they are and tells the room of new slots.
func (c *connection) makeOffer() error {
	sdp, err := c.peer.Offer(c.restart && c.offer > 0)
	if err != nil {
		return err
	}
	c.restart = false
	c.offer++
	c.awaiting = true
	made := offerMade{connection: c, offer: &signal.Offer{Offer: c.offer, SDP: sdp, Media: c.lines.media()}}
	for _, l := range c.lines.slots {
		if !l.told {
			l.told = true
			made.slots = append(made.slots, subscriber.Line{MID: l.line.MID(), Kind: l.kind, Outlet: l.line.Outlet})
		}
	}
	c.room.post(made)
	return nil
}
