package client

import "time"

const (
	// silentAfter is the time without a packet or a message, while media is expected, after which the client asks the
	// server for a reply.
	silentAfter = 600 * time.Millisecond
	// quietAfter is the same time while no media is expected. The questions about the server's clock come every two
	// seconds, so that a quiet session rarely sends an additional question.
	quietAfter = 2500 * time.Millisecond
	// replyWithin is the least time after which the client then resumes on another server, quietReplyWithin the least
	// time while no media is expected. A packet of TCP that is lost is repeated after 200 ms at least.
	replyWithin      = 300 * time.Millisecond
	quietReplyWithin = time.Second
	// maxPatience bounds the factor by which the time for a reply grows.
	maxPatience = 32
	// expectMedia is the time for which media is expected after a packet. A pause of all publishers lasts longer.
	expectMedia = 10 * time.Second
	// silenceInterval is the time between two steps. A step that is lateStep after the one before is late: the process
	// was stopped, and packets may wait to be read.
	silenceInterval = 100 * time.Millisecond
	lateStep        = 1500 * time.Millisecond
)

// silence detects a server that neither sends nor replies. It is pure: time is an argument of the methods. The web
// client has the same rules (clients/web/src/signal/silence.ts). testdata/failover.json tests both.
type silence struct {
	// rtt and deviation are the smoothed round-trip time of the websocket and its mean deviation (RFC 6298).
	rtt, deviation time.Duration
	// extra is by how much the factor of the time for a reply exceeds one.
	extra int
	// asked is the time of the question, zero for none. repeated is set if a late step has repeated the question.
	asked    time.Time
	repeated bool
	stepped  time.Time
}

// verdict is the result of a step of silence.
type verdict int

const (
	// verdictNone: nothing is to be done.
	verdictNone verdict = iota
	// verdictAsk: a question is sent to the server.
	verdictAsk
	// verdictLeave: the session continues on another server.
	verdictLeave
)

// measured adds a round-trip time of the websocket.
func (s *silence) measured(rtt time.Duration) {
	switch {
	case rtt < 0:
	case s.rtt == 0:
		s.rtt, s.deviation = rtt, rtt/2
	default:
		s.deviation += ((s.rtt - rtt).Abs() - s.deviation) / 4
		s.rtt += (rtt - s.rtt) / 8
	}
}

// returned records that the session has returned to the server that it had left: the server was alive.
func (s *silence) returned() { s.extra = min(2*s.extra+1, maxPatience-1) }

// reply returns the time that a server has for its reply.
func (s *silence) reply(expected bool) time.Duration {
	least := replyWithin
	if !expected {
		least = quietReplyWithin
	}
	return max(least, 2*s.rtt+4*s.deviation) * time.Duration(1+s.extra)
}

// step returns the verdict at a time. received is the time when something has arrived last. expected reports whether
// media is expected, several whether there is another server.
func (s *silence) step(now, received time.Time, expected, several bool) verdict {
	late := !s.stepped.IsZero() && now.Sub(s.stepped) > lateStep
	s.stepped = now
	after := silentAfter
	if !expected {
		after = quietAfter
	}
	switch {
	case !several || now.Sub(received) < after:
		s.asked, s.repeated = time.Time{}, false
		return verdictNone
	case s.asked.IsZero(), late && !s.repeated:
		s.repeated = s.repeated || !s.asked.IsZero()
		s.asked = now
		return verdictAsk
	case now.Sub(s.asked) < s.reply(expected):
		return verdictNone
	}
	s.asked, s.repeated = time.Time{}, false
	return verdictLeave
}
