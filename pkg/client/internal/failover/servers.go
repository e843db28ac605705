package failover

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

// Waits between rounds of attempts: the first round is made at once, then the wait doubles up to two seconds.
const (
	FirstRetry = 100 * time.Millisecond
	LastRetry  = 2 * time.Second
)

// Joiner joins, or resumes a session, on the server with an address.
type Joiner interface {
	Join(ctx context.Context, address string, join *signal.Join) (*signalling.Conn, *signal.Joined, error)
}

// Servers are the server of a session, and the others on which the session may continue.
type Servers struct {
	// secure is set if the program has named a server with TLS. The session then continues only on such servers.
	secure bool
	// present is the server of the session, others are those on which it may continue, in the order of preference.
	present string
	others  []string
	joiner  Joiner
}

// NewServers returns the servers of a session that begins on the server with an address.
func NewServers(address string, joiner Joiner) *Servers {
	u, err := url.Parse(address)
	return &Servers{secure: err == nil && u.Scheme == "wss", present: address, joiner: joiner}
}

// Allows reports whether the client connects to an address that a server has named. The client's token is not sent
// without TLS if it was sent with TLS before. Any goroutine may call Allows.
func (s *Servers) Allows(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && !s.secure)
}

// Present returns the address of the server of the session.
func (s *Servers) Present() string { return s.present }

// Continue records that the session continues on a server, which has named nodes.
func (s *Servers) Continue(address string, nodes []signal.NodeAddress) {
	s.present = address
	s.Set(nodes)
}

// Set replaces the other servers.
func (s *Servers) Set(nodes []signal.NodeAddress) {
	s.others = s.others[:0]
	for _, n := range nodes[:min(len(nodes), maxServers)] {
		if s.Allows(n.URL) && !slices.Contains(s.others, n.URL) {
			s.others = append(s.others, n.URL)
		}
	}
}

// Several reports whether there is a server besides the present one.
func (s *Servers) Several() bool {
	return slices.ContainsFunc(s.others, func(address string) bool { return address != s.present })
}

// Candidates returns the servers of one round of attempts. silent reports that the present server is not expected to
// reply: it is the last of the round then.
func (s *Servers) Candidates(silent bool) []string {
	others := slices.DeleteFunc(slices.Clone(s.others), func(address string) bool { return address == s.present })
	if silent {
		return append(others, s.present)
	}
	return append([]string{s.present}, others...)
}

// Attempt is an attempt to join or to resume.
type Attempt struct {
	// Address is that of the server.
	Address string
	Join    *signal.Join
	// Limit bounds the attempt on each server, 0 for none.
	Limit time.Duration
	// Present is the address of the server that has the session's peer connection, empty if none has. Unused is set if
	// the connection is not in use. If the client is sent to Present, it keeps a connection that is in use.
	Present string
	Unused  bool
}

// Outcome is the result of an attempt: the server that has replied or failed, and the websocket to that server.
type Outcome struct {
	Address string
	Conn    *signalling.Conn
	Joined  *signal.Joined
	Err     error
}

// Follow makes an attempt on a server, and on the servers to which that server sends the client: at most maxMoves, and
// only those that Allows permits. The attempt's join has the ticket for the last of them. Any goroutine may call
// Follow.
func (s *Servers) Follow(ctx context.Context, a Attempt) Outcome {
	for moves := 0; ; moves++ {
		result := Outcome{Address: a.Address}
		result.Conn, result.Joined, result.Err = s.try(ctx, a)
		var moved *signalling.MovedError
		if moves == maxMoves || !errors.As(result.Err, &moved) || !s.Allows(moved.Moved.URL) {
			return result
		}
		a.Address = moved.Moved.URL
		if a.Join.Resume == nil {
			a.Join.Ticket = moved.Moved.Ticket
			continue
		}
		a.Join.Resume.Secret = moved.Moved.Ticket
		if a.Address == a.Present {
			a.Join.Resume.NewConnection = a.Unused
		}
	}
}

// try makes an attempt on one server.
func (s *Servers) try(ctx context.Context, a Attempt) (*signalling.Conn, *signal.Joined, error) {
	if a.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Limit)
		defer cancel()
	}
	return s.joiner.Join(ctx, a.Address, a.Join)
}

// Join joins on the present server, or on the server to which that server sends the client. If that server cannot be
// reached, the present one is asked again: it knows the failure after a while.
func (s *Servers) Join(ctx context.Context, join *signal.Join) (*signalling.Conn, *signal.Joined, error) {
	for moves, wait := 0, FirstRetry; ; moves, wait = moves+1, min(2*wait, LastRetry) {
		join.Ticket = ""
		result := s.Follow(ctx, Attempt{Address: s.present, Join: join})
		var moved *signalling.MovedError
		var refused *signal.Error
		switch err := result.Err; {
		case err == nil:
			s.Continue(result.Address, result.Joined.Nodes)
			return result.Conn, result.Joined, nil
		case moves == maxMoves, join.Ticket == "", ctx.Err() != nil, errors.As(err, &refused), errors.As(err, &moved):
			return nil, nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, result.Err
		}
	}
}
