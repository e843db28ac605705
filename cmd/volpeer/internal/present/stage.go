package present

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Stage shows and plays everything that one participant publishes.
type Stage struct {
	deadline time.Duration
	delay    *Delay
	acts     map[string]*act
}

// act is one publication: a video player or audio.
type act struct {
	interval time.Duration
	player   *Player
	audio    *Audio
}

// Showing is a frame that a publication shows from now on.
type Showing struct {
	Publication string
	Shown
	// Skew is the delay of the displayed frame relative to the sound. Heard is set if the participant has audio at that
	// time.
	Skew  time.Duration
	Heard bool
}

// NewStage returns the stage of a participant whose frames are repaired until the deadline after the first packet.
func NewStage(deadline time.Duration) *Stage {
	return &Stage{deadline: deadline, delay: NewDelay(deadline), acts: make(map[string]*act)}
}

// Add adds a publication. A publication of the same name is replaced.
func (s *Stage) Add(p *volumetric.Publication) {
	a := &act{}
	if p.Kind == volumetric.KindAudio {
		a.audio = &Audio{}
	} else {
		a.player = NewPlayer(p.Mode, s.deadline)
		a.interval = usualInterval
		if p.FrameRate > 0 {
			a.interval = time.Duration(float64(time.Second) / p.FrameRate)
		}
	}
	s.acts[p.Name] = a
	s.changed(p.Name)
}

// Remove removes a publication.
func (s *Stage) Remove(name string) {
	delete(s.acts, name)
	s.changed(name)
}

// changed discards the observations of a publication.
func (s *Stage) changed(name string) {
	s.delay.forget(name)
	s.delay.interval = 0
	for _, a := range s.acts {
		s.delay.interval = max(s.delay.interval, a.interval)
	}
}

// Empty reports whether the participant publishes nothing.
func (s *Stage) Empty() bool { return len(s.acts) == 0 }

// Player returns the player of a publication, or nil if there is none.
func (s *Stage) Player(publication string) *Player {
	if a := s.acts[publication]; a != nil {
		return a.player
	}
	return nil
}

// Decoded adds a decoded tile of a publication.
func (s *Stage) Decoded(publication string, arrival Arrival) {
	if p := s.Player(publication); p != nil {
		s.play(arrival.Decoded)
		p.Decoded(arrival)
		p.observe(publication, s.delay)
	}
}

// Heard adds an audio packet with capture time, duration and arrival time.
func (s *Stage) Heard(publication string, capture time.Time, duration time.Duration, arrival time.Time) {
	a := s.acts[publication]
	if a == nil || a.audio == nil {
		return
	}
	s.play(arrival)
	s.delay.observe(publication, arrival.Sub(capture), arrival.Sub(capture))
	a.audio.Arrived(capture, duration, arrival, s.delay.At(arrival))
}

// play plays the audio that is due. play is called before every operation that can change the delay.
func (s *Stage) play(now time.Time) {
	for _, a := range s.acts {
		if a.audio != nil {
			a.audio.Step(now, s.delay.At(now))
		}
	}
}

// Step plays and shows everything that is due.
func (s *Stage) Step(now time.Time) []Showing {
	s.play(now)
	delay := s.delay.At(now)
	var list []Showing
	for _, name := range slices.Sorted(maps.Keys(s.acts)) {
		player := s.acts[name].player
		if player == nil {
			continue
		}
		shown, ok := player.Step(now, delay)
		if !ok {
			continue
		}
		showing := Showing{Publication: name, Shown: shown}
		if heard, ok := s.heardAt(shown.Capture); ok {
			showing.Skew, showing.Heard = now.Sub(heard), true
		}
		list = append(list, showing)
	}
	return list
}

// heardAt returns the time at which the participant's sound captured at the given time is audible.
func (s *Stage) heardAt(capture time.Time) (time.Time, bool) {
	for _, name := range slices.Sorted(maps.Keys(s.acts)) {
		if audio := s.acts[name].audio; audio != nil {
			if at, ok := audio.PlayedAt(capture); ok {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// Next returns the time at which Step has a frame to show if nothing else arrives. Next returns false if no frame is
// waiting.
func (s *Stage) Next(now time.Time) (next time.Time, ok bool) {
	delay := s.delay.At(now)
	for _, a := range s.acts {
		if a.player == nil {
			continue
		}
		if at, waits := a.player.Next(delay); waits && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok
}

// Delay returns the playout delay at now.
func (s *Stage) Delay(now time.Time) time.Duration { return s.delay.At(now) }
