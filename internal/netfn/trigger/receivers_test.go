package trigger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/transcript"
)

// TestReceivers plays transcripts of servers with several receivers. A line "set 1,2 sent=100 lost=5" states how much
// the counts of receivers 1 and 2 grow per step, and their queue in ms; "late=3" are packets that were reported as lost
// and arrive. "gone 1" ends a receiver; "run 1000" steps until 1,000 ms and prints the orders.
func TestReceivers(t *testing.T) {
	transcript.PlaySteps(t, "testdata/receivers/*.txt", func(t *testing.T) func([]string) string {
		s := &server{t: t, receivers: make(map[uint64]*growth)}
		return func(words []string) string {
			s.out.Reset()
			s.play(words[0], words[1:])
			return s.out.String()
		}
	})
}

var troubles = map[Cause]string{Losses: "losses", Delays: "delays", Silence: "silence"}

// server has receivers whose counts grow evenly.
type server struct {
	t         *testing.T
	out       strings.Builder
	now       int
	trigger   Receivers
	receivers map[uint64]*growth
}

// growth is a reception, and how much it grows per step. late are the packets of a step that were reported as lost.
type growth struct {
	total, step Reception
	late        uint64
}

func (s *server) play(verb string, words []string) {
	switch verb {
	case "set":
		for name := range strings.SplitSeq(words[0], ",") {
			number := uint64(s.number(name))
			if s.receivers[number] == nil {
				s.receivers[number] = &growth{total: Reception{Receiver: number}}
			}
			for _, word := range words[1:] {
				s.set(s.receivers[number], word)
			}
		}
	case "gone":
		delete(s.receivers, uint64(s.number(words[0])))
	case "run":
		for until := s.number(words[0]); s.now < until; {
			s.now += int(ReceptionInterval / time.Millisecond)
			s.step()
		}
	default:
		s.t.Fatalf("%q is no line", verb)
	}
}

func (s *server) set(g *growth, word string) {
	name, text, _ := strings.Cut(word, "=")
	value := uint64(s.number(text))
	switch name {
	case "sent":
		g.step.Sent = value
	case "reports":
		g.step.Reports = value
	case "lost":
		g.step.Lost = value
	case "late":
		g.late = value
	case "requested":
		g.step.Requested = value
	case "keys":
		g.step.KeyFrames = value
	case "queue":
		g.total.QueueDelay = time.Duration(value) * time.Millisecond
	case "again":
		g.total = Reception{Receiver: g.total.Receiver}
	default:
		s.t.Fatalf("%q is no count", name)
	}
}

func (s *server) step() {
	var receptions []Reception
	for _, number := range slices.Sorted(maps.Keys(s.receivers)) {
		g := s.receivers[number]
		g.total.Sent += g.step.Sent
		g.total.Reports += g.step.Reports
		g.total.Requested += g.step.Requested
		g.total.KeyFrames += g.step.KeyFrames
		if g.step.Reports > 0 {
			g.total.Lost += g.step.Lost - g.late
			g.total.Arrived += g.step.Sent - g.step.Lost + g.late
		}
		receptions = append(receptions, g.total)
	}
	if cause := s.trigger.Step(receptions, at(s.now)); cause != Nothing {
		hop := s.trigger.Hop()
		fmt.Fprintf(&s.out, "%d: %s, %d of %d\n", s.now, troubles[cause], hop.Troubled, hop.Active)
	}
}

func (s *server) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// FuzzReceivers checks that no sequence of counts makes the trigger fail, fire more often than its interval allows, or
// count more receivers in trouble than there are.
func FuzzReceivers(f *testing.F) {
	f.Add([]byte{1, 10, 1, 9, 1, 0, 0, 0, 2, 30, 0, 3, 0, 0, 255, 255, 255, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() uint64 {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return uint64(b)
		}
		var trigger Receivers
		var now, last time.Duration
		fired := false
		for len(data) > 0 {
			now += ReceptionInterval
			var receptions []Reception
			for number := range next() % 4 {
				receptions = append(receptions, Reception{Receiver: number, Sent: next() << next() % 40,
					Reports: next(), Arrived: next(), Lost: next(), Requested: next(), KeyFrames: next(),
					QueueDelay: time.Duration(next()) * time.Millisecond})
			}
			cause := trigger.Step(receptions, now)
			if hop := trigger.Hop(); hop.Troubled > hop.Active || hop.Active > len(receptions) {
				t.Fatalf("%d of %d receivers are in trouble, and there are %d", hop.Troubled, hop.Active,
					len(receptions))
			}
			if cause == Nothing {
				continue
			}
			if fired && now-last < renewAfter {
				t.Fatalf("orders at %v and %v", last, now)
			}
			last, fired = now, true
		}
	})
}
