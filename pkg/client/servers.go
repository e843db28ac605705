package client

import (
	"net/url"
	"slices"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
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

// several reports whether there is a server besides the present one.
func (s *servers) several() bool {
	return slices.ContainsFunc(s.others, func(address string) bool { return address != s.present })
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
