package playback

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/timeline"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Counts are the results of a replay.
type Counts struct {
	// Seconds is the duration of the recorded part that was replayed.
	Seconds      float64 `json:"seconds"`
	Participants int     `json:"participants"`
	Publications int     `json:"publications"`
	// Frames counts frames, and units of other codecs such as packets of audio, that were handed over for sending.
	Frames int64 `json:"frames"`
	Bytes  int64 `json:"bytes"`
	// Unsent counts frames whose participant was not connected, Unwanted frames that no receiver took or that the
	// uplink could not carry, and Repeated frames of a capture that another quality had replayed.
	Unsent   int64 `json:"frames_unsent"`
	Unwanted int64 `json:"frames_unwanted"`
	Repeated int64 `json:"frames_repeated"`
	// Messages counts data messages that were handed over for sending, and MessagesUnsent those of the server's
	// operator and of participants who were not in the room.
	Messages       int64 `json:"messages"`
	MessagesUnsent int64 `json:"messages_unsent"`
	// Lost are the losses of the recording, and Damage the damage of its files.
	Lost   recording.Lost   `json:"recording_lost"`
	Damage recording.Damage `json:"damage"`
}

// stage plays a recording. It is owned by the goroutine of play; each performer has a goroutine.
type stage struct {
	script *timeline.Timeline
	// speed is the ratio of the recorded time to the time of the replay. keepTimes keeps the recorded capture times in
	// the frames.
	speed     float64
	keepTimes bool
	// newPerformer returns a performer for a recorded participant.
	newPerformer func(identity string) *performer
	log          *slog.Logger

	performers map[string]*performer
	// arriving are performers whose publications are still being collected before they join.
	arriving map[*performer][]*recording.Publication
	// leaving are participants whose leaving has been read, and is not due yet.
	leaving      map[string]bool
	publications map[uint32]*playing
	running      sync.WaitGroup
	counts       Counts

	// base is the time of the replay at which the recorded time first is due.
	base, first time.Time
}

// playing is the state of a recorded publication.
type playing struct {
	*recording.Publication
	performer *performer
	// newest is, for each tile, the number of the newest frame that was replayed, if any.
	newest map[int]uint32
	// captures are the capture times in the replay of the latest frame numbers: all tiles and qualities of a number
	// have one capture time.
	captures map[uint32]time.Time
	// anchors are the recorded capture times of the first units of the tracks, with their timestamps.
	anchors map[timeline.Track]anchor
}

type anchor struct {
	capture   time.Time
	timestamp uint32
}

func newStage(source timeline.Source, log *slog.Logger, newPerformer func(string) *performer) *stage {
	return &stage{
		script: timeline.New(source), speed: 1, newPerformer: newPerformer, log: log,
		performers: make(map[string]*performer), arriving: make(map[*performer][]*recording.Publication),
		leaving: make(map[string]bool), publications: make(map[uint32]*playing),
	}
}

// play plays until the recording or the context ends. Neither is an error.
func (s *stage) play(ctx context.Context) error {
	defer s.running.Wait()
	defer s.leaveAll()
	if err := s.fill(ctx); err != nil {
		return err
	}
	for _, p := range s.performers {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return nil
		}
	}
	s.base = time.Now()
	for {
		r, due, ok := s.script.Next()
		if !ok {
			return nil
		}
		if s.first.IsZero() {
			s.first = due
		}
		if !peer.SleepUntil(ctx, s.present(due)) {
			return nil
		}
		s.counts.Seconds = max(s.counts.Seconds, due.Sub(s.first).Seconds())
		s.perform(ctx, r)
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
}

// present converts a recorded time to the time of the replay.
func (s *stage) present(t time.Time) time.Time {
	return s.base.Add(time.Duration(float64(t.Sub(s.first)) / s.speed))
}

// fill reads ahead and lets new participants join.
func (s *stage) fill(ctx context.Context) error {
	err := s.script.Fill(s.ahead)
	for p, publications := range s.arriving {
		s.running.Go(func() {
			if err := p.run(ctx, publications); err != nil && ctx.Err() == nil {
				p.log.Error("the participant has left", "error", err)
			}
		})
	}
	clear(s.arriving)
	return err
}

// ahead takes a record that was read ahead.
func (s *stage) ahead(r recording.Record) {
	switch r := r.(type) {
	case *recording.Message:
		switch m := decode(r).(type) {
		case *signal.ParticipantJoined:
			if s.performers[m.Participant.Identity] == nil {
				s.enter(m.Participant.Identity)
			}
		case *signal.ParticipantLeft:
			s.leaving[m.Identity] = true
		}
	case *recording.Publication:
		if !s.leaving[r.Participant] {
			s.publish(r)
		}
	}
}

// decode returns the message of a record, nil if this program does not know it.
func decode(r *recording.Message) signal.Message {
	m, err := signal.DecodeFromServer(r.Text)
	if err != nil {
		return nil
	}
	return m
}

// enter makes a performer, who joins when the records ahead have been read.
func (s *stage) enter(identity string) *performer {
	p := s.newPerformer(identity)
	s.performers[identity] = p
	s.arriving[p] = nil
	s.counts.Participants++
	return p
}

// publish publishes a recorded publication. Publications repeat at the beginning of each segment.
func (s *stage) publish(r *recording.Publication) {
	if s.publications[r.ID] != nil {
		return
	}
	p := s.performers[r.Participant]
	if p == nil {
		p = s.enter(r.Participant)
	}
	s.publications[r.ID] = &playing{
		Publication: r, performer: p, newest: make(map[int]uint32), captures: make(map[uint32]time.Time),
		anchors: make(map[timeline.Track]anchor),
	}
	s.counts.Publications++
	if _, ok := s.arriving[p]; ok {
		s.arriving[p] = append(s.arriving[p], r)
		return
	}
	p.publish(r)
}

// perform plays a record that is due.
func (s *stage) perform(ctx context.Context, r recording.Record) {
	switch r := r.(type) {
	case *recording.Publication:
		s.publish(r)
	case *recording.Lost:
		s.counts.Lost = *r
	case *recording.Message:
		s.message(r)
	case *recording.Frame:
		if p := s.publications[r.Publication]; p != nil {
			s.frame(p, r)
		}
	case *recording.Unit:
		if p := s.publications[r.Publication]; p != nil {
			s.unit(p, r)
		}
	}
}

// message plays a message.
func (s *stage) message(r *recording.Message) {
	switch m := decode(r).(type) {
	case *signal.ParticipantJoined:
		p := s.performers[m.Participant.Identity]
		if p == nil {
			p = s.enter(m.Participant.Identity)
		}
		p.setAttributes(m.Participant.Attributes)
	case *signal.ParticipantLeft:
		delete(s.leaving, m.Identity)
		if p := s.performers[m.Identity]; p != nil {
			close(p.steps)
			delete(s.performers, m.Identity)
		}
	case *signal.Unpublished:
		if p := s.performers[m.Participant]; p != nil {
			p.unpublish(m.Publication)
		}
	case *signal.Pose:
		if p := s.performers[m.Participant]; p != nil {
			p.pose(m)
		}
	case *signal.Data:
		p := s.performers[m.Participant]
		if p == nil || !p.send(m) {
			s.counts.MessagesUnsent++
			return
		}
		s.counts.Messages++
	case *signal.Attributes:
		if p := s.performers[m.Participant]; p != nil {
			p.setAttributes(m.Attributes)
		}
	case *signal.Metadata:
		// A change needs the grant admin, which all participants of a replay have or none.
		for _, identity := range slices.Sorted(maps.Keys(s.performers)) {
			s.performers[identity].setMetadata(m.Metadata)
			return
		}
	}
}

// frame plays a frame.
func (s *stage) frame(p *playing, f *recording.Frame) {
	quality := f.Quality
	if single(p.Publication) {
		newest, any := p.newest[f.Tile]
		if any && int32(f.Number-newest) <= 0 {
			s.counts.Repeated++
			return
		}
		p.newest[f.Tile], quality = f.Number, 0
	}
	out := client.OutgoingFrame{Number: f.Number, Capture: s.capture(p, f), Codec: f.Codec, Data: f.Data}
	if s.keepTimes || p.Description.Encryption != "" {
		out.Stamp = f.Capture
	}
	s.write(p, len(f.Data), func(to *client.Publisher) (bool, error) { return to.WriteFrame(f.Tile, quality, out) })
}

// keptCaptures is the number of frame numbers whose capture times are kept: those of a second at 90 frames per second.
const keptCaptures = 96

// capture returns the capture time of a frame in the replay.
func (s *stage) capture(p *playing, f *recording.Frame) time.Time {
	if at, ok := p.captures[f.Number]; ok {
		return at
	}
	at := s.present(plausible(payload.TimeFromNTP64(f.Capture), f.At))
	p.captures[f.Number] = at
	if len(p.captures) > keptCaptures {
		for number := range p.captures {
			if int32(f.Number-number) > keptCaptures/2 || int32(f.Number-number) < -keptCaptures/2 {
				delete(p.captures, number)
			}
		}
	}
	return at
}

// maxTransit is the longest time from capture to arrival that is believed: clocks of publishers may be wrong.
const maxTransit = 10 * time.Second

// plausible returns a recorded capture time, or the arrival if the capture time is unknown or cannot be true.
func plausible(capture, arrival time.Time) time.Time {
	if d := arrival.Sub(capture); capture.IsZero() || d > maxTransit || d < -maxTransit {
		return arrival
	}
	return capture
}

// unit plays the packets of a frame of another codec.
func (s *stage) unit(p *playing, u *recording.Unit) {
	track := timeline.Track{Publication: u.Publication, Tile: u.Tile, Quality: int(u.Quality)}
	quality := u.Quality
	if single(p.Publication) {
		quality = 0
	}
	from, ok := p.anchors[track]
	rate := int64(p.Description.Codec.ClockRate)
	capture := from.capture.Add(time.Duration(int64(int32(u.Timestamp-from.timestamp)) * int64(time.Second) / rate))
	if !ok || plausible(capture, u.At) != capture {
		capture = plausible(payload.TimeFromNTP64(u.Capture), u.At)
	}
	// The anchor moves along, because timestamps wrap around.
	p.anchors[track] = anchor{capture, u.Timestamp}
	size := 0
	for _, packet := range u.Payloads {
		size += len(packet)
	}
	s.write(p, size, func(to *client.Publisher) (bool, error) {
		return to.WritePackets(u.Tile, quality, s.present(capture), u.Payloads)
	})
}

// write hands a frame over to the client of its participant and counts it.
func (s *stage) write(p *playing, size int, write func(*client.Publisher) (bool, error)) {
	to := p.performer.publisher(p.ID)
	if to == nil {
		s.counts.Unsent++
		return
	}
	switch taken, err := write(to); {
	case taken:
		s.counts.Frames++
		s.counts.Bytes += int64(size)
	case err == nil:
		s.counts.Unwanted++
	case errors.Is(err, client.ErrNotConnected):
		s.counts.Unsent++
	default:
		s.counts.Unsent++
		s.log.Warn("a frame could not be sent", "publication", p.Ref().String(), "error", err)
	}
}

// leaveAll lets all participants leave.
func (s *stage) leaveAll() {
	for _, p := range s.performers {
		close(p.steps)
	}
	clear(s.performers)
}
