// Package failover chooses the servers on which a client joins, and on which its session continues if a server fails,
// sends the client away or refuses the session.
//
// Silence and Round are pure. Servers stores the servers and makes the attempts. The owner serialises all calls, unless
// the comment of a method states otherwise.
package failover

import "time"

const (
	// SilentAfter is the time without a packet or a message, while media is expected, after which the client asks the
	// server for a reply.
	SilentAfter = 600 * time.Millisecond
	// quietAfter is the same time while no media is expected. The questions about the server's clock come every two
	// seconds, so that a quiet session rarely sends an additional question.
	quietAfter = 2500 * time.Millisecond
	// ReplyWithin is the least time after which the client then resumes on another server, quietReplyWithin the least
	// time while no media is expected. A packet of TCP that is lost is repeated after 200 ms at least.
	ReplyWithin      = 300 * time.Millisecond
	quietReplyWithin = time.Second
	// maxPatience bounds the factor by which the time for a reply grows.
	maxPatience = 32
	// ExpectMedia is the time for which media is expected after a packet. A pause of all publishers lasts longer.
	ExpectMedia = 10 * time.Second
	// SilenceInterval is the time between two steps. A step that is lateStep after the one before is late: the process
	// was stopped, and packets may wait to be read.
	SilenceInterval = 100 * time.Millisecond
	lateStep        = 1500 * time.Millisecond
	// nextServer is the least limit of an attempt of the first round if there are several servers.
	nextServer = 1200 * time.Millisecond
)

// Silence detects a server that neither sends nor replies. It is pure: time is an argument of the methods. The web
// client has the same rules (clients/web/src/signal/silence.ts). pkg/client/testdata/failover.json tests both.
type Silence struct {
	// rtt and deviation are the smoothed round-trip time of the websocket and its mean deviation (RFC 6298).
	rtt, deviation time.Duration
	// extra is by how much the factor of the time for a reply exceeds one.
	extra int
	// asked is the time of the question, zero for none. repeated is set if a late step has repeated the question.
	asked    time.Time
	repeated bool
	stepped  time.Time
}

// Verdict is the result of a step of Silence.
type Verdict int

const (
	// VerdictNone: nothing is to be done.
	VerdictNone Verdict = iota
	// VerdictAsk: a question is sent to the server.
	VerdictAsk
	// VerdictLeave: the session continues on another server.
	VerdictLeave
)

// Measured adds a round-trip time of the websocket.
func (s *Silence) Measured(rtt time.Duration) {
	switch {
	case rtt < 0:
	case s.rtt == 0:
		s.rtt, s.deviation = rtt, rtt/2
	default:
		s.deviation += ((s.rtt - rtt).Abs() - s.deviation) / 4
		s.rtt += (rtt - s.rtt) / 8
	}
}

// Returned records that the session has returned to the server that it had left: the server was alive.
func (s *Silence) Returned() { s.extra = min(2*s.extra+1, maxPatience-1) }

// reply returns the time that a server has for its reply.
func (s *Silence) reply(expected bool) time.Duration {
	least := ReplyWithin
	if !expected {
		least = quietReplyWithin
	}
	return max(least, 2*s.rtt+4*s.deviation) * time.Duration(1+s.extra)
}

// Step returns the verdict at a time. received is the time when something has arrived last. expected reports whether
// media is expected, several whether there is another server.
func (s *Silence) Step(now, received time.Time, expected, several bool) Verdict {
	late := !s.stepped.IsZero() && now.Sub(s.stepped) > lateStep
	s.stepped = now
	after := SilentAfter
	if !expected {
		after = quietAfter
	}
	switch {
	case !several || now.Sub(received) < after:
		s.asked, s.repeated = time.Time{}, false
		return VerdictNone
	case s.asked.IsZero(), late && !s.repeated:
		s.repeated = s.repeated || !s.asked.IsZero()
		s.asked = now
		return VerdictAsk
	case now.Sub(s.asked) < s.reply(expected):
		return VerdictNone
	}
	s.asked, s.repeated = time.Time{}, false
	return VerdictLeave
}

// AttemptTime returns the limit of an attempt of the first round if there are several servers: TCP, TLS 1.3, the
// upgrade and the join take four round trips, TLS 1.2 one more, and TCP repeats a lost SYN after one second.
func (s *Silence) AttemptTime() time.Duration { return max(nextServer, time.Second+5*s.rtt) }
