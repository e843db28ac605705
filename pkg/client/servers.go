package client

import (
	"net/url"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// silentAfter is the time without a packet or a message, while media is expected, after which the client asks the
	// server for a reply. replyWithin is the time after which the client then resumes on another server.
	silentAfter = 600 * time.Millisecond
	replyWithin = 300 * time.Millisecond
	// expectMedia is the time for which media is expected after a packet. A pause of all publishers lasts longer.
	expectMedia = 10 * time.Second
	// silenceInterval is the time between two checks.
	silenceInterval = 100 * time.Millisecond
	// maxMoves is the maximum number of servers that a client is sent to in succession.
	maxMoves = 8
	// maxServers bounds the stored servers.
	maxServers = 64
)

// servers are the servers on which a session may continue. servers belongs to the goroutine of control.
type servers struct {
	// secure is set if the program has named a server with TLS. The session then continues only on such servers.
	secure bool
	// present is the server of the session, others are those on which it may continue, in the order of preference.
	present string
	others  []string
}

func newServers(address string) servers {
	u, err := url.Parse(address)
	return servers{secure: err == nil && u.Scheme == "wss", present: address}
}

// allows reports whether the client connects to an address that a server has named. The client's token is not sent
// without TLS if it was sent with TLS before.
func (s *servers) allows(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && !s.secure)
}

// set replaces the other servers.
func (s *servers) set(nodes []signal.NodeAddress) {
	s.others = s.others[:0]
	for _, n := range nodes[:min(len(nodes), maxServers)] {
		if s.allows(n.URL) && !slices.Contains(s.others, n.URL) {
			s.others = append(s.others, n.URL)
		}
	}
}

// candidates returns the servers of one round of attempts. silent reports that the present server is not expected to
// reply: it is the last of the round then.
func (s *servers) candidates(silent bool) []string {
	others := slices.DeleteFunc(slices.Clone(s.others), func(address string) bool { return address == s.present })
	if silent {
		return append(others, s.present)
	}
	return append([]string{s.present}, others...)
}

// silence detects a server that neither sends nor replies.
type silence struct{ asked time.Time }

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

// step returns the verdict at a time. heard is the time when something has arrived last. expected reports whether media
// is expected.
func (s *silence) step(now, heard time.Time, expected bool) verdict {
	switch {
	case !expected || now.Sub(heard) < silentAfter:
		s.asked = time.Time{}
		return verdictNone
	case s.asked.IsZero():
		s.asked = now
		return verdictAsk
	case now.Sub(s.asked) < replyWithin:
		return verdictNone
	default:
		s.asked = time.Time{}
		return verdictLeave
	}
}
