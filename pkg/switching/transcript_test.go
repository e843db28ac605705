package switching

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts runs the transcripts in testdata: lines of input, each followed by the expected
// output, indented and marked "=>".
//
//	slot sequence=N timestamp=N [clock=HZ] [cut=DURATION]
//	track NAME group=N [key]                      key: decoding begins at key frames only
//	at DURATION                                   sets the time
//	select NAME|off
//	parity SHARE
//	NAME #SEQUENCE FRAME.INDEX/PACKETS            a packet of payload v1; INDEX may be a range as in 0-2;
//	                                              timestamp 3000 × FRAME
//	NAME #SEQUENCE FRAME.INDEX/SOURCE+PARITY      the same, if some of the frame's packets are parity
//	NAME #SEQUENCE tTIMESTAMP [key] [marker] [last] a foreign packet; opens if its timestamp is the newest
//	  … [capture=DURATION] [opens|late]           for both; opens or does not open, whatever its age
//	end NAME #SEQUENCE FRAME.INDEX/PACKETS        ends the frame of this packet
//	overrun | skip | resolve NUMBER | map NAME TIMESTAMP | state
//
// resolve prints the packet that the number stands for, and whether the packet has the marker if
// another packet is the last of its frame.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, "testdata/*.txt", play)
}

// stage is the state of a transcript.
type stage struct {
	t      *testing.T
	s      *Switcher
	now    time.Time
	out    bytes.Buffer
	names  []string
	tracks []*actor
	// ending reports that the frames of packets are to be ended.
	ending bool
}

// actor is a track with the state of its reader.
type actor struct {
	source Source
	seen   bool
	frame  int64
	newest uint32
}

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func play(t *testing.T, story string) string {
	st := &stage{t: t, now: dawn}
	in := bufio.NewScanner(strings.NewReader(story))
	for n := 1; in.Scan(); n++ {
		line := in.Text()
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "=>" {
			continue
		}
		fmt.Fprintln(&st.out, line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := st.do(words[0], words[1:]); err != nil {
			t.Fatalf("line %d: %q: %v", n, line, err)
		}
	}
	return st.out.String()
}

func (st *stage) do(verb string, args []string) error {
	if st.s == nil && verb != "slot" {
		return fmt.Errorf("expected slot first")
	}
	switch verb {
	case "slot":
		return st.slot(args)
	case "track":
		a := &actor{source: Source{Track: TrackID(len(st.tracks) + 1)}}
		for _, arg := range args[1:] {
			key, value, _ := strings.Cut(arg, "=")
			switch key {
			case "group":
				a.source.Group = uint64(number(st.t, value))
			case "key":
				a.source.NeedsKey = true
			default:
				return fmt.Errorf("unknown word %q", arg)
			}
		}
		st.names, st.tracks = append(st.names, args[0]), append(st.tracks, a)
	case "at":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		st.now = dawn.Add(d)
	case "select":
		if args[0] == "off" {
			st.s.Select(Source{}, st.now)
			return nil
		}
		a, err := st.actor(args[0])
		if err != nil {
			return err
		}
		st.s.Select(a.source, st.now)
	case "overrun":
		st.s.Overrun(st.now)
	case "skip":
		st.s.Skip(st.now)
	case "end":
		st.ending = true
		defer func() { st.ending = false }()
		return st.packets(args[0], args[1:])
	case "parity":
		share, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return err
		}
		st.s.SetParity(share)
	case "resolve":
		st.resolve(args[0])
	case "map":
		return st.mapTimestamp(args)
	case "state":
		st.state()
	default:
		return st.packets(verb, args)
	}
	return nil
}

func (st *stage) slot(args []string) error {
	var cfg Config
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "sequence":
			cfg.FirstSequence = uint16(number(st.t, value))
		case "timestamp":
			cfg.FirstTimestamp = uint32(number(st.t, value))
		case "clock":
			cfg.ClockRate = uint32(number(st.t, value))
		case "cut":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			cfg.CutAfter = d
		default:
			return fmt.Errorf("unknown word %q", arg)
		}
	}
	st.s = New(cfg)
	return nil
}

func (st *stage) actor(name string) (*actor, error) {
	for i, n := range st.names {
		if n == name {
			return st.tracks[i], nil
		}
	}
	return nil, fmt.Errorf("unknown verb or track %q", name)
}

func (st *stage) name(track TrackID) string {
	if track == 0 {
		return "off"
	}
	return st.names[track-1]
}

func (st *stage) resolve(arg string) {
	track, sequence, ok := st.s.Resolve(uint16(number(st.t, arg)))
	if !ok {
		fmt.Fprintln(&st.out, "  => nothing")
		return
	}
	base, ok := st.s.ResolveTimestamp(uint16(number(st.t, arg)), 0)
	if !ok {
		st.t.Errorf("Resolve(%s) is ok, ResolveTimestamp is not", arg)
	}
	line := fmt.Sprintf("  => %s #%d, timestamps %+d", st.name(track), sequence, int32(base))
	marker, ok := st.s.ResolveMarker(uint16(number(st.t, arg)), &Packet{Framed: true, Sequence: sequence})
	if !ok {
		st.t.Errorf("Resolve(%s) is ok, ResolveMarker is not", arg)
	}
	if marker {
		line += ", marker"
	}
	fmt.Fprintln(&st.out, line)
}

func (st *stage) mapTimestamp(args []string) error {
	a, err := st.actor(args[0])
	if err != nil {
		return err
	}
	if ts, ok := st.s.MapTimestamp(a.source.Track, uint32(number(st.t, args[1]))); ok {
		fmt.Fprintf(&st.out, "  => t%d\n", ts)
	} else {
		fmt.Fprintln(&st.out, "  => nothing")
	}
	return nil
}

func (st *stage) state() {
	line := "active " + st.name(st.s.Active().Track)
	if src, ok := st.s.Pending(); ok {
		line += ", pending " + st.name(src.Track)
	}
	fmt.Fprintln(&st.out, "  =>", line)
}

// packets parses a line such as "low #100 7.0-2/3".
func (st *stage) packets(name string, args []string) error {
	a, err := st.actor(name)
	if err != nil {
		return err
	}
	if len(args) < 2 || args[0][0] != '#' {
		return fmt.Errorf("expected #SEQUENCE and a frame")
	}
	p := Packet{Track: a.source.Track, Sequence: number(st.t, args[0][1:])}
	opens, late := false, false
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "key":
			p.Key = true
		case "marker":
			p.Marker = true
		case "opens":
			opens = true
		case "last":
			p.Last = true
		case "late":
			late = true
		case "capture":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			p.Capture = dawn.Add(d)
		default:
			return fmt.Errorf("unknown word %q", arg)
		}
	}
	if timestamp, foreign := strings.CutPrefix(args[1], "t"); foreign {
		p.Timestamp = uint32(number(st.t, timestamp))
		p.Opens = opens || !late && (!a.seen || int32(p.Timestamp-a.newest) > 0)
		if p.Opens {
			a.seen, a.newest = true, p.Timestamp
		}
		st.give(&p)
		return nil
	}
	return st.framed(a, p, args[1], opens, late)
}

func (st *stage) framed(a *actor, p Packet, frame string, opens, late bool) error {
	f, rest, ok := strings.Cut(frame, ".")
	indices, packets, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return fmt.Errorf("expected FRAME.INDEX/PACKETS, got %q", frame)
	}
	from, to, isRange := strings.Cut(indices, "-")
	if !isRange {
		to = from
	}
	first, last := number(st.t, from), number(st.t, to)
	if source, parity, has := strings.Cut(packets, "+"); has {
		p.SourcePackets = int(number(st.t, source))
		packets = fmt.Sprint(number(st.t, source) + number(st.t, parity))
	}
	p.Framed, p.Key, p.Frame, p.FramePackets = true, true, number(st.t, f), int(number(st.t, packets))
	p.FrameStart = p.Sequence - first
	p.Timestamp = uint32(p.Frame * 3000)
	for i := first; i <= last; i++ {
		p.Sequence = p.FrameStart + i
		p.Last = i == int64(p.FramePackets)-1
		p.Opens = opens || !late && (!a.seen || p.Frame > a.frame)
		if p.Opens {
			a.seen, a.frame = true, p.Frame
		}
		st.give(&p)
	}
	return nil
}

func (st *stage) give(p *Packet) {
	if st.ending {
		first, last, begun := st.s.Planned(p)
		if !st.s.End(p, st.now) {
			fmt.Fprintf(&st.out, "  => nothing to end, begun %t\n", begun)
			return
		}
		fmt.Fprintf(&st.out, "  => ended, planned %d to %d, ended %t\n", first, last, st.s.Ended(p))
		return
	}
	v := st.s.Packet(p, st.now)
	line := v.Action.String()
	if v.Action == Forward {
		line += fmt.Sprintf(" %d t%d", v.Sequence, v.Timestamp)
	}
	if v.Marker {
		line += " marker"
	}
	if v.Switched {
		line += " switched"
	}
	if v.WantKey {
		line += " wantkey"
	}
	fmt.Fprintln(&st.out, "  =>", line)
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("expected a number, got %q", s)
	}
	return n
}
