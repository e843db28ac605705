package paths

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts plays testdata/observer and testdata/selector. Times are milliseconds. Each player's comment
// describes its lines.
func TestTranscripts(t *testing.T) {
	for part, begin := range map[string]func(l *line) func(l *line){
		"observer": newObserverPlayer, "selector": newSelectorPlayer,
	} {
		t.Run(part, func(t *testing.T) {
			transcript.PlaySteps(t, "testdata/"+part+"/*.txt", func(t *testing.T) func([]string) string {
				var play func(*line)
				return func(words []string) string {
					l := &line{t: t, words: words}
					if play == nil {
						play = begin(l)
					} else {
						play(l)
					}
					return l.out.String()
				}
			})
		})
	}
}

// line is an input line.
type line struct {
	t     *testing.T
	words []string
	out   strings.Builder
}

func (l *line) printf(format string, arguments ...any) {
	fmt.Fprintf(&l.out, format+"\n", arguments...)
}

func (l *line) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		l.t.Fatalf("%v: %v", l.words, err)
	}
	return n
}

func (l *line) time(text string) time.Duration {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		l.t.Fatalf("%v: %v", l.words, err)
	}
	return time.Duration(f * float64(ms))
}

// set reads a set as its String, "0+2".
func (l *line) set(text string) Set {
	var s Set
	if text == "none" {
		return 0
	}
	for name := range strings.SplitSeq(text, "+") {
		s |= of(l.number(name))
	}
	return s
}

// newObserverPlayer plays
//
//	observer DEADLINE
//	packet NUMBER SENT SET PATH=DELAY…   a number that leaves on SET at SENT, with the delay of each copy that arrives
//	packets FIRST COUNT EVERY SENT SET PATH=DELAY…   the same for COUNT numbers, EVERY ms
//	beat PATH SENT DELAY
//	divisor D | lost | epoch E
//	report AT                            prints the report
//	due AT
//
// The clocks differ by 7 s. Samples are added in the order of the lines, not of their arrival.
func newObserverPlayer(l *line) func(*line) {
	o := NewObserver(0, l.time(l.words[1]))
	epoch := uint16(1)
	add := func(l *line, number int, sent time.Duration, set Set, copies []string) {
		for _, c := range copies {
			path, delay, ok := strings.Cut(c, "=")
			if !ok {
				l.t.Fatalf("%v: %q is no copy", l.words, c)
			}
			o.Add(Sample{Epoch: epoch, Number: uint32(number), Path: uint8(l.number(path)), Set: set,
				Sent: uint32((sent + 7*time.Second) / time.Microsecond), Arrived: sent + l.time(delay)})
		}
	}
	return func(l *line) {
		switch w := l.words; w[0] {
		case "packet":
			add(l, l.number(w[1]), l.time(w[2]), l.set(w[3]), w[4:])
		case "packets":
			for i := range l.number(w[2]) {
				add(l, l.number(w[1])+i, l.time(w[4])+time.Duration(i)*l.time(w[3]), l.set(w[5]), w[6:])
			}
		case "beat":
			sent := l.time(w[2])
			o.Beat(uint8(l.number(w[1])), uint32((sent+7*time.Second)/time.Microsecond), sent+l.time(w[3]))
		case "divisor":
			o.SetDivisor(uint32(l.number(w[1])))
		case "lost":
			o.Lost()
		case "epoch":
			epoch = uint16(l.number(w[1]))
		case "due":
			l.printf("%t", o.Due(l.time(w[1])))
		case "report":
			o.Due(l.time(w[1]))
			printReport(l, o.Report(l.time(w[1])))
		default:
			l.t.Fatalf("%v is no line of an observer", w)
		}
	}
}

func printReport(l *line, r wire.Report) {
	newest := "none"
	if r.Seen {
		newest = fmt.Sprint((r.Newest-7_000_000)/1000, " ms")
	}
	l.printf("serial %d epoch %d newest %s: %d numbers, %d missed, %d slow", r.Serial, r.Epoch, newest, r.Numbers,
		r.Missed, r.Slow)
	for i, p := range r.Paths {
		if p != (wire.PathReport{}) {
			l.printf("path %d: %d copies, %d in time, %d slow, %d lost, %d/%d hellos, delay %.1f, spread %.1f", i,
				p.Copies, p.InTime, p.Slow, p.Lost, p.BeatsInTime, p.Beats, float64(p.Delay)/10, float64(p.Spread)/10)
		}
	}
	for _, row := range r.Rows {
		l.printf("%v > %v: %d/%d", Set(row.Sent), Set(row.InTime), row.Short, row.Long)
	}
}

// newSelectorPlayer plays
//
//	selector PATHS DEADLINE
//	report AT SENT>INTIME=SHORT/LONG… [pN=COPIES/INTIME/SLOW/LOST/SPREAD] [bN=INTIME/BEATS]
//	repeat UNTIL EVERY                   repeats the last report
//	start AT | stop AT | available AT SET
//	serial N                             the next report has the serial
//	paths                                prints the states
//
// After each line but paths, the changes and a changed decision are printed. Without pN, the entry of a path in SENT is
// that of the rows.
func newSelectorPlayer(l *line) func(*line) {
	s := NewSelector(Config{Paths: l.number(l.words[1]), Deadline: l.time(l.words[2])})
	var serial uint32
	var last wire.Report
	decision := Decision{}
	show := func(l *line, now time.Duration) {
		d := s.Step(now)
		for _, c := range s.Changes() {
			verb := "leaves"
			if c.Joined {
				verb = "joins"
			}
			l.printf("%v: path %d %s, because %v", c.At, c.Path, verb, c.Reason)
		}
		if d != decision {
			l.printf("%v: set %v, probes %v of 1/%d", now, d.Set, d.Probes, d.Divisor)
		}
		decision = d
	}
	apply := func(l *line, now time.Duration) {
		serial++
		last.Serial = serial
		s.Apply(&last, now)
		show(l, now)
	}
	now := time.Duration(0)
	show(l, 0)
	return func(l *line) {
		switch w := l.words; w[0] {
		case "report":
			now = l.time(w[1])
			last = readReport(l)
			apply(l, now)
		case "repeat":
			for until, every := l.time(w[1]), l.time(w[2]); now < until; {
				now += every
				apply(l, now)
			}
		case "start":
			now = l.time(w[1])
			s.Start(now)
			show(l, now)
		case "stop":
			now = l.time(w[1])
			s.Stop(now)
			show(l, now)
		case "available":
			now = l.time(w[1])
			s.Available(l.set(w[2]), now)
			show(l, now)
		case "serial":
			serial = uint32(l.number(w[1])) - 1
		case "paths":
			for i, p := range s.Paths() {
				l.printf("path %d: %v since %v, because %v: in time %.3f, only %.3f, loss %.3f, delay %v", i, p.State,
					p.Since, p.Reason, p.InTime, p.Only, p.Loss, p.Delay)
			}
		default:
			l.t.Fatalf("%v is no line of a selector", w)
		}
	}
}

func readReport(l *line) wire.Report {
	var r wire.Report
	for _, word := range l.words[2:] {
		name, value, _ := strings.Cut(word, "=")
		var n []int
		for text := range strings.SplitSeq(value, "/") {
			n = append(n, l.number(text))
		}
		switch sent, inTime, isRow := strings.Cut(name, ">"); {
		case isRow:
			row := wire.Row{Sent: uint8(l.set(sent)), InTime: uint8(l.set(inTime)), Short: uint16(n[0]),
				Long: uint16(n[1])}
			r.Rows = append(r.Rows, row)
			for i := range r.Paths {
				if p := &r.Paths[i]; Set(row.Sent).Has(i) {
					p.Copies += row.Long
					if Set(row.InTime).Has(i) {
						p.InTime += row.Long
					} else {
						p.Slow += row.Long
					}
				}
			}
		case name[0] == 'p':
			p := &r.Paths[l.number(name[1:])]
			p.Copies, p.InTime, p.Slow = uint16(n[0]), uint16(n[1]), uint16(n[2])
			p.Lost, p.Spread = uint16(n[3]), uint16(n[4]*10)
		case name[0] == 'b':
			p := &r.Paths[l.number(name[1:])]
			p.BeatsInTime, p.Beats = uint8(n[0]), uint8(n[1])
		}
	}
	return r
}
