package sfu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// Errors of recordings.
var (
	// ErrNoRecorder reports that the server has no folder for recordings.
	ErrNoRecorder = errors.New("this server does not record: recordings.directory is empty")
	// ErrNotRecorded reports that the room is not recorded.
	ErrNotRecorded = errors.New("the room is not recorded")
)

// Recorder records rooms. The methods are safe for any goroutine and do not wait for the disk.
type Recorder interface {
	// Automatic returns the qualities in which every room is recorded, empty if rooms are recorded on request.
	Automatic() recording.Qualities
	// Start begins a recording of a room.
	Start(room string, now time.Time) Recording
}

// Recording is the recording of one room. The methods do not wait for the disk.
type Recording interface {
	// Publish adds a publication and returns its number in the recording.
	Publish(now time.Time, participant string, q recording.Qualities, d volumetric.Publication) uint32
	// Read begins or ends the reading of a track of a publication.
	Read(now time.Time, publication uint32, tile int, q volumetric.Quality, t *track.Track, on bool)
	// Unpublish ends a publication, whose tracks are still open.
	Unpublish(now time.Time, publication uint32)
	// Message records a message to the whole room. State sets the message of a key with which later files of the
	// recording begin, or removes the key and the keys below it.
	Message(now time.Time, m signal.Message)
	State(key string, m signal.Message)
	Stop(now time.Time, reason string)
}

// recordedRoom is the recording of a room. The recording is a receiver of the room's publications without a connection
// and without a limit of its rate.
type recordedRoom struct {
	Recording
	qualities recording.Qualities
	// automatic is set if the node records every room. since is the start in nanoseconds since 1970.
	automatic    bool
	since        int64
	publications map[*publication]*recordedPublication
}

// recordedPublication is a publication that is recorded: its number, and for each track whether it is read.
type recordedPublication struct {
	number uint32
	read   []bool
}

// The keys of the state of a recording. keyOf joins names, which cannot contain the separator.
func keyOf(identity string) string { return "participant\x00" + identity }

func poseKey(ref volumetric.PublicationRef) string {
	return keyOf(ref.Participant) + "\x00pose\x00" + ref.Publication
}

// recordsAutomatically reports whether all rooms are recorded and this room is not recorded yet.
func (r *Room) recordsAutomatically() bool {
	recorder := r.node.config.Recorder
	return recorder != nil && r.recorded == nil && recorder.Automatic() != ""
}

// recordAutomatically begins a recording if all rooms are recorded. Of several nodes, one records the room.
func (r *Room) recordAutomatically() {
	switch {
	case !r.recordsAutomatically():
	case r.span != nil:
		r.span.scheduleRecording()
	default:
		r.startRecording(r.node.config.Recorder.Automatic(), true)
	}
}

// isRecorded reports whether a node records the room.
func (r *Room) isRecorded() bool {
	if r.recorded != nil {
		return true
	}
	return r.span.recordedElsewhere()
}

// recordedElsewhere reports whether another node records the room.
func (s *span) recordedElsewhere() bool {
	if s == nil {
		return false
	}
	for _, e := range s.shared {
		if e.Recording != 0 {
			return true
		}
	}
	return false
}

// announceRecorded tells the participants whether the room is recorded, if that has changed.
func (r *Room) announceRecorded(before bool) {
	if now := r.isRecorded(); now != before {
		r.participants.broadcast(nil, func() signal.Message { return &signal.Recording{Active: now} })
	}
}

const (
	// automaticDelay is the time after which a node begins an automatic recording, if no other node records the room: a
	// node learns of the recordings of others within a beat and a round trip.
	automaticDelay = time.Second
	// automaticSpread is the maximum of the random time added, so that two nodes rarely begin together.
	automaticSpread = time.Second
)

// scheduleRecording begins an automatic recording later, if no other node then records the room.
func (s *span) scheduleRecording() {
	if !s.automatic.running() {
		s.automatic.set(s.room, automaticDelay+rand.N(automaticSpread), automaticRequest{})
	}
}

// automaticRequest begins an automatic recording.
type automaticRequest struct{}

// apply implements request. The request may have been stopped after it was queued.
func (automaticRequest) apply(r *Room) {
	if !r.span.automatic.running() {
		return
	}
	r.span.automatic.stop()
	if r.recordsAutomatically() && !r.span.recordedElsewhere() && len(r.participants) > 0 {
		r.startRecording(r.node.config.Recorder.Automatic(), true)
	}
}

// recordingChanged applies another node's part of the state of the room to the recordings of this node. If the node
// that recorded the room ends its recording or leaves, this node may continue, unless an operator has ended it.
func (r *Room) recordingChanged(e Shared, node string) {
	s := r.span
	switch {
	case e.Recording != 0:
		s.recorder = node
		r.stopLaterRecording(e.Recording, node)
	case s.recorder != node:
	case e.Ended:
		s.recorder = ""
		s.automatic.stop()
	default:
		s.recorder = ""
		s.scheduleRecording()
	}
}

// stopLaterRecording ends an automatic recording of this node if another node began to record earlier.
func (r *Room) stopLaterRecording(since int64, node string) {
	if c := r.recorded; c != nil && c.automatic && since < c.since {
		r.log.Info("another node records the room", zap.String("node", node))
		r.stopRecording("another node records the room")
	}
}

// startRecording begins a recording with the present participants, except those whose join is in progress.
func (r *Room) startRecording(q recording.Qualities, automatic bool) {
	before := r.isRecorded()
	r.recorded = &recordedRoom{
		Recording: r.node.config.Recorder.Start(r.name, r.now), qualities: q, automatic: automatic,
		since: r.now.UnixNano(), publications: make(map[*publication]*recordedPublication),
	}
	r.announceRecorded(before)
	if r.span != nil {
		r.span.recordingEnded = false
	}
	r.span.changedShared()
	r.emit(webhook.Event{Kind: webhook.RecordingStarted})
	r.recordMetadata()
	for _, p := range r.presences(nil) {
		if p.audience {
			continue
		}
		r.recordJoined(p)
		r.recordPublished(announced(p.publications))
		for _, publication := range p.publications {
			r.recordPose(publication, nil)
		}
	}
}

// stopRecording ends the recording, if there is one.
func (r *Room) stopRecording(reason string) {
	c := r.recorded
	if c == nil {
		return
	}
	for publication := range c.publications {
		r.recordUnpublished(publication)
	}
	c.Stop(r.now, reason)
	r.recorded = nil
	r.announceRecorded(true)
	r.span.changedShared()
	r.emit(webhook.Event{Kind: webhook.RecordingEnded, Reason: reason})
}

// stopForOperator ends the recording, if there is one. No other node continues the recording.
func (r *Room) stopForOperator(reason string) {
	if r.span != nil {
		r.span.recordingEnded = true
	}
	r.stopRecording(reason)
}

// recordMessage records a message to the whole room. The message must not be sent to a client.
func (r *Room) recordMessage(m signal.Message) {
	if r.recorded != nil {
		r.recorded.Message(r.now, m)
	}
}

// recordJoined records that a participant has joined. Publications are recorded separately.
func (r *Room) recordJoined(p *presence) {
	r.recordChange(p, joinedMessage(p))
}

// recordChange records a change of a participant. Later files of the recording begin with its present description.
func (r *Room) recordChange(p *presence, m signal.Message) {
	if r.recorded != nil {
		r.recorded.Message(r.now, m)
		r.recorded.State(keyOf(p.identity), joinedMessage(p))
	}
}

// joinedMessage describes a participant without its publications.
func joinedMessage(p *presence) signal.Message {
	m := &signal.ParticipantJoined{Participant: p.describe()}
	m.Participant.Publications = []volumetric.Publication{}
	return m
}

// recordMetadata records the metadata of the room, if there are any.
func (r *Room) recordMetadata() {
	if r.recorded != nil && r.metadata != nil {
		r.recorded.Message(r.now, &signal.Metadata{Metadata: r.metadata})
		r.recorded.State("metadata", &signal.Metadata{Metadata: r.metadata})
	}
}

// recordLeft records that a participant has left, and ends the recording with the last participant.
func (r *Room) recordLeft(p *presence, reason string) {
	if r.recorded == nil {
		return
	}
	if !p.audience {
		r.recorded.State(keyOf(p.identity), nil)
		r.recorded.Message(r.now, &signal.ParticipantLeft{Identity: p.identity, Reason: reason})
	}
	if len(r.participants) == 0 {
		r.stopRecording("the last participant has left")
	}
}

// recordPublished begins the recording of publications that are announced.
func (r *Room) recordPublished(publications []*publication) {
	c := r.recorded
	if c == nil {
		return
	}
	for _, p := range publications {
		if c.publications[p] != nil {
			continue
		}
		number := c.Publish(r.now, p.Ref.Participant, c.qualities, p.Description)
		c.publications[p] = &recordedPublication{number, make([]bool, len(p.Tracks))}
		r.readRecorded(p)
	}
}

// recordUnpublished ends the recording of a publication whose tracks are still open.
func (r *Room) recordUnpublished(p *publication) {
	c := r.recorded
	if c == nil || c.publications[p] == nil {
		return
	}
	recorded := c.publications[p]
	delete(c.publications, p)
	for i, read := range recorded.read {
		if read {
			p.Demand.Remove(recordedNeed(i))
		}
	}
	c.Unpublish(r.now, recorded.number)
	c.State(poseKey(p.Ref), nil)
	c.Message(r.now, &signal.Unpublished{PublicationRef: p.Ref})
}

// recordPose records a pose as it was sent, nil if none was sent. Later files of the recording begin with the latest
// pose and its boxes.
func (r *Room) recordPose(p *publication, sent signal.Message) {
	if r.recorded == nil || p.Place.Latest() == nil {
		return
	}
	latest := *p.Place.Latest()
	latest.Participant = p.Ref.Participant
	if sent == nil {
		first := latest
		sent = &first
	}
	r.recorded.Message(r.now, sent)
	r.recorded.State(poseKey(p.Ref), &latest)
}

// recordedNeed is the need of a recording for a track.
func recordedNeed(track int) demand.Need { return demand.Need{Tracks: [2]int{track, -1}, Near: -1} }

// readRecorded selects the tracks of a publication that are recorded, and asks the publisher for them.
func (r *Room) readRecorded(p *publication) {
	c := r.recorded
	if c == nil || c.publications[p] == nil {
		return
	}
	recorded, qualities := c.publications[p], len(p.Description.Qualities)
	every := c.qualities == recording.All || p.Description.Mode == volumetric.ModeDescriptions
	for i, t := range p.Tracks {
		tile, q := i/qualities, volumetric.Quality(i%qualities)
		wanted := every || q == p.Levels.Best(tile)
		if wanted == recorded.read[i] {
			continue
		}
		recorded.read[i] = wanted
		c.Read(r.now, recorded.number, tile, q, t, wanted)
		if wanted {
			p.Demand.Add(recordedNeed(i))
		} else {
			p.Demand.Remove(recordedNeed(i))
		}
	}
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
	case q.qualities == "" && r.recorded == nil:
		err = fmt.Errorf("%w: %q", ErrNotRecorded, r.name)
	case q.qualities == "":
		r.stopForOperator("an operator ended the recording")
	case r.recorded != nil && r.recorded.qualities == q.qualities:
		// The room is recorded as requested.
	default:
		r.stopForOperator("an operator changed the recorded qualities")
		r.startRecording(q.qualities, false)
	}
	q.result <- err
}

// StartRecording begins the recording of a room. A recording with other qualities is ended. The error wraps ErrNotFound
// or ErrNoRecorder.
func (n *Node) StartRecording(ctx context.Context, room string, q recording.Qualities) error {
	if !q.Valid() {
		return refuse(signal.CodeInvalid, "qualities are %.20q, expected %s or %s", q, recording.Best, recording.All)
	}
	return n.record(ctx, room, q)
}

// StopRecording ends the recording of a room. The error wraps ErrNotFound, ErrNoRecorder or ErrNotRecorded.
func (n *Node) StopRecording(ctx context.Context, room string) error { return n.record(ctx, room, "") }

func (n *Node) record(ctx context.Context, name string, q recording.Qualities) error {
	if n.config.Recorder == nil {
		return ErrNoRecorder
	}
	room := n.room(name)
	if room == nil {
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
