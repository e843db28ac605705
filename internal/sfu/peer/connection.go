package peer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// PanicPlace is the name of a connection's goroutine in Config.Guard.
const PanicPlace = "connection"

// Owner handles the events of a connection. The connection's goroutine calls the methods, which may wait for the
// owner's goroutine. The goroutine that calls Connection.Do must not call them.
type Owner interface {
	// OfferMade passes an offer to send, and the lines in the offer for new slots.
	OfferMade(*signal.Offer, []subscriber.Line)
	// OfferRepeated passes the offer of the command Repeat once more, nil if that offer awaits no answer.
	OfferRepeated(*signal.Offer)
	// AnswerTaken reports that the client's answer was applied, with the streams of each track.
	AnswerTaken(map[Track]transport.Streams)
	// OfferAnswered passes the answer to the offer of a client that offers.
	OfferAnswered(*Answered)
	// ChannelsMade passes data channels for new slots.
	ChannelsMade([]subscriber.Line)
	// RequestFailed reports that the request with the given id failed.
	RequestFailed(id string, code signal.Code, message string)
	// ConnectionFailed reports that the connection cannot continue.
	ConnectionFailed(error)
	// PeerEvent passes a change of state or a candidate.
	PeerEvent(transport.Event)
	// SlotEvents passes events of slots in the data plane.
	SlotEvents([]egress.Event)
	// DataCopied passes a data message from the message channel. The channel's goroutine calls DataCopied.
	DataCopied(*signal.Data)
	// FrameTimes passes the times of frames that were sent to the receiver.
	FrameTimes([]egress.FrameTimes)
	// Done is closed when the owner has ended.
	Done() <-chan struct{}
}

// Config describes the connection of a participant.
type Config struct {
	// Deadline is the time in which the client repairs a frame, 0 if the server decides.
	Deadline time.Duration
	// Parity is set if the client reads parity packets.
	Parity bool
	// PublishesByData is set if the client publishes frames over data channels, TakesChunks if the client receives
	// frames over data channels.
	PublishesByData, TakesChunks bool
	// Messages is set if data messages are copied over data channels.
	Messages bool
	// Multipath is the client's request for media on several network interfaces, nil if it has one.
	Multipath *signal.Multipath
	// Offer is the offer of a client that offers. If Offer is nil, the server offers.
	Offer *description.Description
	// FrameBytes is the maximum size of a frame in bytes.
	FrameBytes int
	// Guard confines a panic in the connection's goroutine to the connection. If Guard is nil, a panic ends the
	// program.
	Guard *panics.Guard
	// Running counts the connection's goroutine.
	Running *sync.WaitGroup
	Log     *zap.Logger
}

// hasDataChannels reports whether the first offer has a line for data channels.
func (c *Config) hasDataChannels() bool { return c.PublishesByData || c.TakesChunks || c.Messages }

// Connection is one participant's peer connection. The goroutine owns the negotiation and the table of lines.
type Connection struct {
	// Ingress and Receiver are the connection's parts in the data plane. The owner may call their methods.
	Ingress  *ingress.Ingress
	Receiver *egress.Receiver
	// Messages sends copies of data messages, nil if the client receives none.
	Messages *datachannels.Copies

	owner  Owner
	config Config
	peer   *transport.Peer
	// data receives the frames of a client that publishes over data channels, nil for other clients. chunks sends the
	// frames to a client that receives over data channels, nil for other clients.
	data     *dataLines
	chunks   *frames.Sender
	commands commandList

	lines  lineTable
	wanted Lines
	// channels is the number of slots that are data channels, renames the number of renamed lines.
	channels, renames int
	// offer is the number of the last offer. awaiting is set until the offer is answered.
	offer    int
	awaiting bool
	restart  bool
	// answered is set once the client's offer was answered.
	answered bool
}

// New returns a peer connection and starts its goroutine, which ends with the command Close or with the owner.
func New(endpoint *transport.Endpoint, engine *forward.Engine, config Config, owner Owner) (*Connection, error) {
	sink := &mediaSink{}
	peer, err := endpoint.NewPeer(sink)
	if err != nil {
		return nil, err
	}
	sink.ingress = engine.NewIngress(mediaPeer{peer})
	sink.receiver = engine.NewReceiver(mediaPeer{peer}, config.Deadline)
	if !config.Parity {
		sink.receiver.SendBare()
	}
	if config.PublishesByData {
		sink.data = newDataLines(&config, peer, owner)
	}
	if config.TakesChunks {
		sink.chunks = frames.NewSender(sink.receiver, config.FrameBytes, peer.AddChannel(paddingLabel))
	}
	var copies *datachannels.Copies
	if config.Messages {
		copies = peer.AddCopies(signal.MessageChannel)
		sink.messages = newMessages(owner)
	}
	if config.hasDataChannels() {
		peer.AddData()
	}
	if config.Multipath != nil {
		mode, err := redundancy.ParseMode(string(config.Multipath.Redundancy))
		if err != nil {
			panic("signalling accepts the names of modes only: " + err.Error())
		}
		peer.UseAllPairs()
		sink.receiver.SetRedundancy(mode)
	}
	c := &Connection{
		Ingress: sink.ingress, Receiver: sink.receiver, owner: owner, config: config, peer: peer,
		Messages: copies, data: sink.data, chunks: sink.chunks, commands: newCommandList(),
	}
	config.Running.Add(1)
	go c.run()
	return c, nil
}

// Do queues a command for the connection. Do does not wait.
func (c *Connection) Do(command Command) { c.commands.add(command) }

// ErrPanicked reports that a goroutine of the connection panicked.
var ErrPanicked = errors.New("internal error of the server")

// run is the connection's goroutine.
func (c *Connection) run() {
	defer c.config.Running.Done()
	defer c.config.Guard.Recover(PanicPlace, func() { c.owner.ConnectionFailed(ErrPanicked) })
	defer c.close()
	var events []egress.Event
	for {
		select {
		case <-c.owner.Done():
			// If the owner's goroutine panicked, the owner may have lost its reference to this connection.
			return
		case <-c.commands.notify:
			for _, command := range c.commands.take() {
				if _, end := command.(Close); end {
					return
				}
				c.execute(command)
			}
			if err := c.negotiate(); err != nil {
				c.owner.ConnectionFailed(err)
			}
		case <-c.peer.Notify():
			for _, event := range c.peer.Events() {
				c.owner.PeerEvent(event)
			}
		case <-c.Receiver.Notify():
			events = c.Receiver.TakeEvents(events[:0])
			if len(events) > 0 {
				c.owner.SlotEvents(append([]egress.Event(nil), events...))
			}
		case <-c.Receiver.FrameTimesReady():
			if times := c.Receiver.TakeFrameTimes(nil); len(times) > 0 {
				c.owner.FrameTimes(times)
			}
		}
	}
}

// close ends the data plane first, so that nothing is written to a closed peer. The peer is closed even if the data
// plane panics. Otherwise the readers of sockets would continue to deliver its packets.
func (c *Connection) close() {
	defer func() {
		if err := c.peer.Close(); err != nil {
			c.config.Log.Warn("peer connection did not close cleanly", zap.Error(err))
		}
	}()
	defer c.Ingress.Close()
	if c.data != nil {
		c.data.close()
	}
	c.Receiver.Close()
}

func (c *Connection) execute(command Command) {
	switch m := command.(type) {
	case SetLines:
		c.wanted = m.Lines
	case RestartRemote:
		c.restartRemote(m)
	case Repeat:
		c.repeat(m)
	case Restart:
		c.restart = true
	case Answer:
		c.takeAnswer(m)
	case AddCandidate:
		if err := c.peer.AddCandidate(m.Candidate); err != nil {
			c.owner.RequestFailed(m.ID, signal.CodeInvalidSDP, err.Error())
		}
	default:
		panic(fmt.Sprintf("unknown command %T", command))
	}
}

// repeat passes the offer to the owner again, if the offer awaits an answer. The lines have not changed since the offer
// was made. A later offer is passed to the owner by OfferMade only.
func (c *Connection) repeat(m Repeat) {
	if !c.awaiting || m.Offer != c.offer {
		c.owner.OfferRepeated(nil)
		return
	}
	c.owner.OfferRepeated(&signal.Offer{Offer: c.offer, SDP: c.peer.LastOffer(), Media: c.lines.media()})
}

// takeAnswer applies the client's answer and reports the streams of each track to the owner.
func (c *Connection) takeAnswer(m Answer) {
	if !c.awaiting || m.Offer != c.offer {
		c.owner.RequestFailed(m.ID, signal.CodeUnexpectedAnswer,
			fmt.Sprintf("offer %d does not await an answer", m.Offer))
		return
	}
	streams, err := c.peer.Answered(m.SDP)
	if err != nil {
		c.owner.RequestFailed(m.ID, signal.CodeInvalidSDP, err.Error())
		if errors.Is(err, transport.ErrSpent) {
			c.owner.ConnectionFailed(err)
		}
		return
	}
	c.awaiting = false
	published := make(map[Track]transport.Streams)
	for _, l := range c.lines.publish {
		if s, ok := streams[l.line.MID()]; ok && l.track != nil && l.offered {
			published[*l.track] = s
		}
	}
	c.owner.AnswerTaken(published)
}

// negotiate updates the lines and offers them, unless an offer is pending or nothing has changed.
func (c *Connection) negotiate() error {
	if c.config.Offer != nil {
		return c.answerOffer()
	}
	if c.awaiting {
		return nil
	}
	lacking, changed := c.lines.reconcilePublish(c.wanted.Publish)
	changed = changed || c.renames != c.wanted.Renames
	c.renames = c.wanted.Renames
	for _, track := range lacking {
		line, err := c.peer.AddReceiving(track.Kind)
		if err != nil {
			return err
		}
		c.lines.publish = append(c.lines.publish, &publishLine{line: line, kind: track.Kind, track: &track})
	}
	if c.chunks != nil {
		c.addChannels()
	}
	slots := map[volumetric.Kind]int{volumetric.KindVideo: c.wanted.Slots, volumetric.KindAudio: c.wanted.AudioSlots}
	for kind, wanted := range slots {
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
	// A client with only data channels needs an offer for their line.
	first := c.offer == 0 && c.config.hasDataChannels()
	if !changed && !c.restart && !first {
		return nil
	}
	return c.makeOffer()
}

// makeOffer offers the present lines and passes new slots to the owner.
func (c *Connection) makeOffer() error {
	sdp, err := c.peer.Offer(c.restart && c.offer > 0)
	if err != nil {
		return err
	}
	c.restart = false
	c.offer++
	c.awaiting = true
	offer := &signal.Offer{Offer: c.offer, SDP: sdp, Media: c.lines.media()}
	var made []subscriber.Line
	for _, l := range c.lines.slots {
		if !l.told {
			l.told = true
			made = append(made, subscriber.Line{MID: l.line.MID(), Kind: l.kind, Outlet: l.line.Outlet})
		}
	}
	c.owner.OfferMade(offer, made)
	return nil
}
