package trigger

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts plays testdata. Lines, with times in ms:
//
//	request AT                                a request, for the trigger of the paper
//	requests FIRST EVERY COUNT
//	sent AT PACKETS                           packets sent so far
//	report AT NEWEST NUMBERS MISSED SLOW [SAMPLING]
//	flow FROM TO                              until TO, every 10 ms 10 packets more and a report of 50 ms ago
//	sending FROM TO                           the same without reports
//	serial N                                  the next report has the serial
//	step AT                                   prints the cause, unless it is Nothing
//
// The lines flow and sending print each cause.
func TestTranscripts(t *testing.T) {
	transcript.PlaySteps(t, "testdata/*.txt", func(t *testing.T) func([]string) string {
		p := &player{t: t, trouble: NewTrouble()}
		return func(words []string) string {
			p.out.Reset()
			p.play(words[0], p.numbers(words[1:]))
			return p.out.String()
		}
	})
}

type player struct {
	t       *testing.T
	out     strings.Builder
	trouble *Trouble
	paper   Paper
	packets uint64
	serial  uint32
}

func (p *player) numbers(words []string) []int {
	var n []int
	for _, word := range words {
		i, err := strconv.Atoi(word)
		if err != nil {
			p.t.Fatal(err)
		}
		n = append(n, i)
	}
	return n
}

func (p *player) play(verb string, n []int) {
	switch verb {
	case "request":
		p.show(n[0], p.paper.Request(at(n[0])))
	case "requests":
		for i := range n[2] {
			p.show(n[0]+i*n[1], p.paper.Request(at(n[0]+i*n[1])))
		}
	case "sent":
		p.packets = uint64(n[1])
		p.trouble.Sent(p.packets, at(n[0]))
	case "report":
		r := wire.Report{Seen: true, Newest: uint32(n[1] * 1000), Numbers: uint16(n[2]), Missed: uint16(n[3]),
			Slow: uint16(n[4])}
		if len(n) > 5 {
			r.Sampling = uint8(n[5])
		}
		p.apply(r, n[0])
	case "flow", "sending":
		for now := n[0]; now < n[1]; now += 10 {
			p.packets += 10
			p.trouble.Sent(p.packets, at(now))
			if verb == "flow" {
				p.apply(wire.Report{Seen: true, Newest: uint32((now - 50) * 1000), Numbers: 100}, now)
			}
			p.show(now, p.trouble.Step(at(now)))
		}
	case "serial":
		p.serial = uint32(n[0]) - 1
	case "step":
		p.show(n[0], p.trouble.Step(at(n[0])))
	default:
		p.t.Fatalf("%q is no line", verb)
	}
}

func (p *player) apply(r wire.Report, now int) {
	p.serial++
	r.Serial = p.serial
	p.trouble.Apply(&r, at(now))
}

func (p *player) show(now int, cause Cause) {
	if cause != Nothing {
		fmt.Fprintf(&p.out, "%d: start, because %v\n", now, cause)
	}
}

func at(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// FuzzTrouble checks that no sequence of counts, reports and times makes the trigger fail or fire more often than its
// interval allows.
func FuzzTrouble(f *testing.F) {
	f.Add([]byte{0, 10, 1, 0, 2, 30, 0, 3, 0, 0, 255, 255, 255, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		trouble := NewTrouble()
		var now, last time.Duration
		fired := false
		for len(data) > 0 {
			now += time.Duration(next()) * time.Millisecond
			switch next() % 3 {
			case 0:
				trouble.Sent(uint64(next())<<next(), now)
			default:
				trouble.Apply(&wire.Report{Serial: uint32(next()), Seen: next()&1 == 0,
					Newest: uint32(next()) << next(), Numbers: uint16(next()), Missed: uint16(next()),
					Slow: uint16(next()), Sampling: uint8(next() & 15)}, now)
			}
			if trouble.Step(now) != Nothing {
				if fired && now-last < againAfter {
					t.Fatalf("events at %v and %v", last, now)
				}
				last, fired = now, true
			}
		}
	})
}
