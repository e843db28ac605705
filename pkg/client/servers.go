package client

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
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

// attempt is an attempt to join or to resume.
type attempt struct {
	// address is that of the server.
	address string
	join    *signal.Join
	// limit bounds the attempt on each server, 0 for none.
	limit time.Duration
}

// joined is the result of an attempt: the server that has replied or failed, and the websocket to that server.
type joined struct {
	address string
	conn    *signalling.Conn
	reply   *signal.Joined
	err     error
}

// follow makes an attempt on a server, and on the servers to which that server sends the client: at most maxMoves, and
// only those that allows permits. The attempt's join has the ticket for the last of them. A client that resumes on
// present, where its session is, keeps its connection; unused is set if that is not in use.
func (s *Session) follow(ctx context.Context, a attempt, present string, unused bool) joined {
	for moves := 0; ; moves++ {
		result := joined{address: a.address}
		result.conn, result.reply, result.err = s.joinOn(ctx, a)
		var moved *signalling.MovedError
		if moves == maxMoves || !errors.As(result.err, &moved) || !s.servers.allows(moved.Moved.URL) {
			return result
		}
		a.address = moved.Moved.URL
		if a.join.Resume == nil {
			a.join.Ticket = moved.Moved.Ticket
			continue
		}
		a.join.Resume.Secret = moved.Moved.Ticket
		if a.address == present {
			a.join.Resume.NewConnection = unused
		}
	}
}

// joinOn makes an attempt on one server.
func (s *Session) joinOn(ctx context.Context, a attempt) (*signalling.Conn, *signal.Joined, error) {
	if a.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.limit)
		defer cancel()
	}
	return signalling.Join(ctx, s.config.signalling(a.address), a.join)
}
