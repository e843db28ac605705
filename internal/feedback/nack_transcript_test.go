package feedback

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// start is the start of virtual time.
var start = time.Unix(1_795_188_600, 0)

func after(d time.Duration) time.Time { return start.Add(d) }

// TestNACKTranscripts plays testdata/nack. Times are milliseconds. Input:
//
//	config KEY=VALUE…   changes the configuration: reorder, tries, missing, deadline
//	12 receive 1 2 5-9  packets arrive; their kinds are printed unless they are in order
//	12 expect 9         the newest frame ends with this number
//	12 hold 5           the numbers from this one on wait for their frame's end
//	12 release
//	12 spare 5 9        these are not needed
//	12 due rtt=20       calls Due once
//	150 until rtt=20    steps the generator whenever it is due, until then
//	12 forget
//	stats
func TestNACKTranscripts(t *testing.T) {
	playTranscripts(t, "testdata/nack/*.txt", func(*testing.T) player { return newNACKPlayer() })
}

type nackPlayer struct {
	cfg NACKConfig
	g   *NACKGenerator
	lines
}

func newNACKPlayer() *nackPlayer {
	cfg := DefaultConfig().NACK
	return &nackPlayer{cfg: cfg, g: NewNACKGenerator(cfg)}
}

func (p *nackPlayer) play(fields []string) error {
	switch fields[0] {
	case "config":
		return p.configure(fields[1:])
	case "stats":
		s := p.g.Stats()
		line := fmt.Sprintf("  missing %d reordered %d recovered %d lost %d asked %d repeats %d old %d", s.Missing,
			s.Reordered, s.Recovered, s.Lost,
			s.Asked, s.Repeats, s.Old)
		if s.Spared > 0 {
			line += fmt.Sprintf(" spared %d", s.Spared)
		}
		p.line(line)
		return nil
	}
	ms, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return err
	}
	now := after(time.Duration(ms * float64(time.Millisecond)))
	switch fields[1] {
	case "receive":
		return p.receive(fields[2:], now)
	case "expect":
		upTo, err := strconv.ParseInt(fields[2], 10, 64)
		p.g.Expect(upTo, now)
		return err
	case "hold":
		from, err := strconv.ParseInt(fields[2], 10, 64)
		p.g.Hold(from)
		return err
	case "release":
		p.g.Release()
		return nil
	case "spare":
		var first, last int64
		_, err := fmt.Sscan(strings.Join(fields[2:], " "), &first, &last)
		p.g.Spare(first, last)
		return err
	case "forget":
		p.g.Forget()
		return nil
	case "due", "until":
		var rtt int
		if _, err := fmt.Sscanf(strings.Join(fields[2:], ""), "rtt=%d", &rtt); err != nil {
			return err
		}
		if fields[1] == "due" {
			p.step(now, time.Duration(rtt)*time.Millisecond, "  ")
			return nil
		}
		return p.until(now, time.Duration(rtt)*time.Millisecond)
	}
	return fmt.Errorf("unknown command %q", fields[1])
}

func (p *nackPlayer) configure(fields []string) error {
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		switch key {
		case "reorder":
			p.cfg.ReorderPackets = n
		case "tries":
			p.cfg.QuickTries = n
		case "missing":
			p.cfg.MaxMissing = n
		case "deadline":
			p.cfg.Deadline = time.Duration(n) * time.Millisecond
		default:
			return fmt.Errorf("unknown key %q", key)
		}
	}
	p.g = NewNACKGenerator(p.cfg)
	return nil
}

func (p *nackPlayer) receive(ranges []string, now time.Time) error {
	for _, r := range ranges {
		first, last, found := strings.Cut(r, "-")
		if !found {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return err
		}
		to, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return err
		}
		for sequence := from; sequence <= to; sequence++ {
			if arrival := p.g.Received(sequence, now); arrival != InOrder {
				p.line(fmt.Sprintf("  %d %s", sequence,
					[...]string{Reordered: "reordered", Recovered: "recovered", Old: "old"}[arrival]))
			}
		}
	}
	return nil
}

func (p *nackPlayer) until(end time.Time, rtt time.Duration) error {
	for range 1000 {
		next := p.g.Next()
		if next.IsZero() || next.After(end) {
			if !next.IsZero() {
				p.line("  next " + milliseconds(next))
			}
			return nil
		}
		p.step(next, rtt, "  "+milliseconds(next)+" ")
	}
	return fmt.Errorf("the generator wants to be stepped without end")
}

func (p *nackPlayer) step(now time.Time, rtt time.Duration, indent string) {
	ask, lost := p.g.Due(now, rtt, nil, nil)
	if len(ask) > 0 {
		p.line(indent + "ask " + numbers(ask))
	}
	if len(lost) > 0 {
		p.line(indent + "lost " + numbers(lost))
	}
}

func milliseconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.Sub(start).Microseconds())/1000, 'f', -1, 64)
}

// numbers prints ascending numbers with ranges.
func numbers(sequences []int64) string {
	var parts []string
	for i := 0; i < len(sequences); {
		j := i
		for j+1 < len(sequences) && sequences[j+1] == sequences[j]+1 {
			j++
		}
		part := strconv.FormatInt(sequences[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(sequences[j], 10)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, " ")
}
