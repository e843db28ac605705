package redundancy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts plays the stories of testdata. Lines that begin with > are output. The other lines are a time in ms
// and what happens then:
//
//	mode auto|all               the mode of the Selector, at 0 only
//	path N KEY=VALUE ...        delay and jitter in ms, rate in Mbit/s, loss in percent of both directions of a path
//	audio                       begins a stream of audio: 200 bytes every 20 ms
//	tile CLASS COUNT            begins a tile of the class: 30 frames per second of COUNT packets of 1,200 bytes
//	stop                        ends all streams
//	show                        shows what was copied since the last show, and the second path
//	end
//
// The output has the beginning and the end of outages, and changes of the state of the second path.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, "testdata/*.txt", func(t *testing.T, story string) string {
		s := &teller{t: t, mode: redundancy.Auto}
		for i := range s.links {
			s.links[i] = netem.DefaultConfig()
		}
		for line := range strings.Lines(story) {
			switch {
			case strings.HasPrefix(line, ">"):
			case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
				s.out.WriteString(line)
			default:
				s.perform(line)
			}
		}
		return s.out.String()
	})
}

// teller plays one transcript.
type teller struct {
	t      *testing.T
	out    strings.Builder
	mode   redundancy.Mode
	links  [redundancy.Paths]netem.Config
	world  *world
	shown  redundancy.Stats
	state  redundancy.State
	outage bool
}

// perform advances to the time of a line and does what it says.
func (s *teller) perform(line string) {
	words := strings.Fields(line)
	ms, err := strconv.Atoi(words[0])
	if err != nil || len(words) < 2 {
		s.t.Fatalf("%q: expected a time and an action", line)
	}
	if ms > 0 && s.world == nil {
		s.begin()
	}
	for s.world != nil && s.world.now.Before(start.Add(time.Duration(ms)*time.Millisecond)) {
		s.world.step()
		s.watch()
	}
	s.out.WriteString(line)
	switch args := words[2:]; words[1] {
	case "mode":
		if s.mode, err = redundancy.ParseMode(args[0]); err != nil {
			s.t.Fatal(err)
		}
	case "path":
		s.path(args)
	case "audio":
		s.begin()
		s.world.add(&stream{class: redundancy.Audio, every: 20 * time.Millisecond, count: 1, size: 200})
	case "tile":
		s.begin()
		class := map[string]redundancy.Class{"lowest": redundancy.Lowest, "other": redundancy.Other}[args[0]]
		count, err := strconv.Atoi(args[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.world.add(&stream{
			class: class, every: time.Second / 30, spread: 13 * time.Millisecond, count: count, size: 1200,
		})
	case "stop":
		for _, stream := range s.world.streams {
			stream.next, stream.queued = stream.next.Add(time.Hour), nil
		}
	case "show":
		s.show()
	case "end":
	default:
		s.t.Fatalf("%q: unknown action", line)
	}
}

// begin makes the world, once.
func (s *teller) begin() {
	if s.world != nil {
		return
	}
	s.world = newWorld(s.t, redundancy.New(s.mode, start), 0, s.links[:]...)
	s.world.began = func(stranded int) { s.tell("outage begins, %d packets are retransmitted", stranded) }
}

// path changes a path.
func (s *teller) path(args []string) {
	number, err := strconv.Atoi(args[0])
	if err != nil || number >= redundancy.Paths {
		s.t.Fatalf("path %q: expected 0 or 1", args[0])
	}
	c := &s.links[number]
	for _, pair := range args[1:] {
		key, text, _ := strings.Cut(pair, "=")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		switch key {
		case "delay":
			c.Delay = time.Duration(value * float64(time.Millisecond))
		case "jitter":
			c.Jitter = time.Duration(value * float64(time.Millisecond))
		case "rate":
			c.RateBPS = int(value * 1e6)
		case "loss":
			c.Loss = value / 100
		default:
			s.t.Fatalf("%q: unknown key", pair)
		}
	}
	if s.world != nil {
		s.world.impair(number, *c)
	}
}

// watch shows changes.
func (s *teller) watch() {
	if _, outage := s.world.selector.Outage(); outage != s.outage {
		s.outage = outage
		if !outage {
			s.tell("outage ends")
		}
	}
	if state := s.world.selector.Second().State; state != s.state {
		s.state = state
		s.tell("second path is %v at %.1f Mbit/s", state, s.world.selector.Second().Rate/1e6)
	}
}

// show shows the copies since the last call.
func (s *teller) show() {
	stats, text := s.world.selector.Stats(), ""
	for class, copied := range stats.Copied {
		if n := copied.Packets - s.shown.Copied[class].Packets; n > 0 {
			text += fmt.Sprintf(" %v %d", redundancy.Class(class), n)
		}
	}
	second := s.world.selector.Second()
	s.tell("copied%s of %d; second path %.1f Mbit/s, loss %.0f %%, queue %v, behind %v", text,
		stats.Sent.Packets-s.shown.Sent.Packets, second.Rate/1e6, 100*second.Loss, second.Queue.Round(time.Millisecond),
		second.Behind.Round(time.Millisecond))
	s.shown = stats
}

func (s *teller) tell(format string, args ...any) {
	at := s.world.now.Sub(start).Milliseconds()
	fmt.Fprintf(&s.out, "> %d %s\n", at, fmt.Sprintf(format, args...))
}
