package sfu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/roomrecording"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// Errors of recordings.
var (
	// ErrNoRecorder reports that the server has no folder for recordings.
	ErrNoRecorder = errors.New("this server does not record: recordings.directory is empty")
	// ErrNotRecorded reports that the room is not recorded.
	ErrNotRecorded = errors.New("the room is not recorded")
)

// roomRecorder begins and ends the recordings of one room. If the room has several nodes, one of them records
// automatically. The room's goroutine owns the recorder.
type roomRecorder struct {
	room *Room
	// current is the recording, nil if this node does not record the room.
	current *roomrecording.Recording
	// node is the last other node that recorded the room.
	node string
	// delayed begins an automatic recording after the time in which the node learns of recordings of others.
	delayed timer
	// ended is set if an operator has ended a recording of the room on any node, until the next one begins.
	ended bool
}

const (
	// automaticDelay is the time after which a node begins an automatic recording, if no other node records the room: a
	// node learns of the recordings of others within a beat and a round trip.
	automaticDelay = time.Second
	// automaticSpread is the maximum of the random time added, so that two nodes rarely begin together.
	automaticSpread = time.Second
)

// wanted returns the qualities in which the room is recorded automatically, empty if it is recorded already or only on
// request, or if an operator has ended a recording of the room.
func (c *roomRecorder) wanted() recording.Qualities {
	recorder := c.room.node.config.Recorder
	if recorder == nil || c.current != nil || c.ended {
		return ""
	}
	return recorder.Automatic()
}

// automatic begins a recording if all rooms are recorded. If the room may have other nodes, the recording begins later,
// if no other node then records the room.
func (c *roomRecorder) automatic() {
	qualities := c.wanted()
	switch {
	case qualities == "":
	case c.room.span == nil:
		c.start(qualities, true)
	default:
		c.schedule()
	}
}

func (c *roomRecorder) schedule() {
	if !c.delayed.running() {
		c.delayed.set(c.room, automaticDelay+rand.N(automaticSpread), automaticRequest{})
	}
}

// automaticRequest begins an automatic recording.
type automaticRequest struct{}

// apply implements request. The request may have been stopped after it was queued.
func (automaticRequest) apply(r *Room) {
	c := &r.recorder
	if !c.delayed.running() {
		return
	}
	c.delayed.stop()
	if qualities := c.wanted(); qualities != "" && !c.elsewhere() && len(r.participants) > 0 {
		c.start(qualities, true)
	}
}

// active reports whether a node records the room.
func (c *roomRecorder) active() bool { return c.current != nil || c.elsewhere() }

// elsewhere reports whether another node records the room.
func (c *roomRecorder) elsewhere() bool {
	if c.room.span == nil {
		return false
	}
	for _, e := range c.room.span.shared {
		if e.Recording != 0 {
			return true
		}
	}
	return false
}

// announce tells the participants whether the room is recorded, if that has changed.
func (c *roomRecorder) announce(before bool) {
	if now := c.active(); now != before {
		c.room.participants.broadcast(nil, func() signal.Message { return &signal.Recording{Active: now} })
	}
}

// follow applies another node's part of the state of the room to the recordings of this node. If the node that recorded
// the room ends its recording or leaves, this node may continue, unless an operator has ended it: then no node begins a
// recording automatically.
func (c *roomRecorder) follow(e roomevent.Shared, node string) {
	switch {
	case e.Recording != 0:
		c.node = node
		c.setEnded(false)
		c.yield(e.Recording, node)
	case e.Ended:
		if c.node == node {
			c.node = ""
		}
		c.delayed.stop()
		c.setEnded(c.current == nil)
	case c.node == node:
		c.node = ""
		c.schedule()
	}
}

// setEnded sets ended and tells the other nodes, of which one may enter the room when the others have left.
func (c *roomRecorder) setEnded(ended bool) {
	if c.ended != ended {
		c.ended = ended
		c.room.span.changedShared()
	}
}

// yield ends an automatic recording of this node if another node began to record earlier.
func (c *roomRecorder) yield(since int64, node string) {
	if c.current != nil && c.current.Automatic && since < c.current.Since {
		c.room.log.Info("another node records the room", zap.String("node", node))
		c.stop("another node records the room")
	}
}

// start begins a recording with the present participants, except those whose join is in progress.
func (c *roomRecorder) start(q recording.Qualities, automatic bool) {
	r, before := c.room, c.active()
	c.current = roomrecording.Begin(r.now, r.node.config.Recorder.Start(r.name, r.now), q, automatic)
	c.ended = false
	c.announce(before)
	r.span.changedShared()
	r.emit(webhook.Event{Kind: webhook.RecordingStarted})
	c.current.Metadata(r.now, r.metadata)
	for _, p := range r.present.Others(nil) {
		if p.Audience {
			continue
		}
		c.current.Joined(r.now, p)
		c.current.Published(r.now, presence.Announced(p.Publications))
		for _, publication := range p.Publications {
			c.current.Posed(r.now, publication, nil)
		}
	}
}

// stop ends the recording, if there is one.
func (c *roomRecorder) stop(reason string) {
	r, current := c.room, c.current
	if current == nil {
		return
	}
	current.Stop(r.now, reason)
	c.current = nil
	c.announce(true)
	r.span.changedShared()
	r.emit(webhook.Event{Kind: webhook.RecordingEnded, Reason: reason})
}

// stopForOperator ends the recording, if there is one. No other node continues the recording.
func (c *roomRecorder) stopForOperator(reason string) {
	c.ended = true
	c.stop(reason)
}

// recordRequest begins or ends the recording of a room. Empty qualities end the recording.
type recordRequest struct {
	qualities recording.Qualities
	result    chan<- error
}

// apply implements request.
func (q recordRequest) apply(r *Room) {
	var err error
	switch {
	case q.qualities == "" && r.recorder.current == nil:
		err = fmt.Errorf("%w: %q", ErrNotRecorded, r.name)
	case q.qualities == "":
		r.recorder.stopForOperator("an operator ended the recording")
	case r.recorder.current != nil && r.recorder.current.Qualities == q.qualities:
		// The room is recorded as requested.
	default:
		r.recorder.stopForOperator("an operator changed the recorded qualities")
		r.recorder.start(q.qualities, false)
	}
	q.result <- err
}

// StartRecording begins the recording of a room. A recording with other qualities is ended. The error wraps ErrNotFound
// or ErrNoRecorder.
func (n *Node) StartRecording(ctx context.Context, room string, q recording.Qualities) error {
	if !q.Valid() {
		return signal.Errorf(signal.CodeInvalid, "qualities are %.20q, expected %s or %s", q, recording.Best,
			recording.All)
	}
	return n.record(ctx, room, q)
}

// StopRecording ends the recording of a room. The error wraps ErrNotFound, ErrNoRecorder or ErrNotRecorded.
func (n *Node) StopRecording(ctx context.Context, room string) error { return n.record(ctx, room, "") }

func (n *Node) record(ctx context.Context, name string, q recording.Qualities) error {
	if n.config.Recorder == nil {
		return ErrNoRecorder
	}
	room, exists := n.rooms.Room(name)
	if !exists {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan error, 1)
	room.post(recordRequest{q, result})
	err, answered := await(ctx, room, result)
	switch {
	case answered:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
}
