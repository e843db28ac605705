package signalling

import (
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Cluster decides which node handles a client. The methods are safe for concurrent use. Only Dial waits for other
// nodes.
type Cluster interface {
	// Route returns the node that handles a join. The client's token and the names of the join are checked before.
	//
	// The secret of a resume is a ticket. Route compares the kind, session, room and identity of the ticket with the
	// request, so that a ticket gives no right that the token does not give. If this node has the session, Route
	// replaces the ticket in q.Join.Resume by the secret of the session on this node. If this node takes over the
	// session, Route also sets q.Adopt, and removes the grants from q that the ticket does not have. A join with
	// Join.Ticket for this node is handled by this node. The text of an error is sent to the client.
	Route(q *sfu.JoinRequest) (Route, *signal.Error)
	// Welcome completes the reply to a join that this node has accepted: the other nodes, and a ticket in place of the
	// resume secret. grants are those of the client's token, epoch is that of the route. Welcome is called by the
	// goroutine of the room, without a lock of this package.
	Welcome(joined *signal.Joined, grants sfu.Grants, epoch uint64)
	// IsNode reports whether pages with an origin are those of another node, at its address for clients.
	IsNode(origin string) bool
	// Dial connects to the handler Server.Proxied of another node. Dial waits for the node, at most until the context
	// ends, and returns an error if the certificate is that of another node.
	Dial(ctx context.Context, node string) (net.Conn, error)
}

// Route is the way of a join.
type Route struct {
	// Node is the name of another node that handles the join, empty if this node handles the join.
	Node string
	// URL is Node's address for clients, as in signal.NodeAddress. If URL is empty, the websocket is proxied.
	URL string
	// Ticket is the ticket with which the client joins or resumes on Node.
	Ticket string
	// Epoch counts the homes of the session that this node resumes or takes over, from 0.
	Epoch uint64
	// Reconnect reports that this node takes over the session of a resume, which needs a new peer connection. Grace is
	// the time for which the session is kept for it.
	Reconnect bool
	Grace     time.Duration
}

// Moves reports whether a client is sent to the node of the route by the message Moved. Otherwise its websocket is
// proxied to the node.
func (r *Route) Moves(join *signal.Join) bool { return join.Moves && r.URL != "" }

// SetCluster makes the server a node of a cluster. SetCluster is called before the first request.
func (s *Server) SetCluster(c Cluster) {
	s.cluster = c
	s.clients = make(map[*client]Client)
	s.proxies.entry = make(map[*client]struct{})
}

// Client is a client that has joined on this node.
type Client struct {
	Room, Identity, Session string
	// Ticket is the resume ticket in the client's latest joined.
	Ticket string
	// Moves reports that the client follows the message Moved.
	Moves bool
	// Outbox has the messages for the client.
	Outbox sfu.Outbox
}

// Clients returns the clients that have joined on this node, in any order. Without a cluster, Clients returns nil.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.clients))
}

// enter registers a client before the reply to its join is sent, so that a drain does not miss a client that knows that
// it has joined.
func (s *Server) enter(c *client, entered Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = entered
}

// exit ends the registration of a client.
func (s *Server) exit(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// welcomer completes the reply to a join. enter is set at the join and registers the client.
type welcomer struct {
	cluster Cluster
	grants  sfu.Grants
	epoch   uint64
	enter   func(*signal.Joined)
}

// route decides which node handles a join. handled reports that the client needs no place on this node. open reports
// whether such a client may send more messages.
func (c *client) route(request *sfu.JoinRequest, data []byte) (handled, open bool) {
	join := request.Join
	if c.proxied && join.Resume == nil {
		// The node to which the client is connected has chosen this node.
		return false, true
	}
	route, refused := c.server.cluster.Route(request)
	switch {
	case refused != nil:
		return true, c.refuseJoin(join.ID, refused)
	case route.Node == "" && route.Reconnect && !join.Resume.NewConnection:
		c.reconnect(request, route)
		return true, false
	case route.Node == "":
		c.outbox.welcome.epoch = route.Epoch
		return false, true
	case c.proxied:
		return true, c.refuseJoin(join.ID, &signal.Error{
			Code: signal.CodeInternal, Message: "the session has moved to another node", RetryAfterMS: retryAfterMS,
		})
	case route.Moves(join):
		c.outbox.Send(&signal.Moved{Header: signal.Header{ID: join.ID}, URL: route.URL, Ticket: route.Ticket})
		c.outbox.Close("", "")
		return true, false
	default:
		return true, c.proxyTo(join.ID, data, route)
	}
}

// reconnect makes a client resume once more, with a new peer connection. The client's ticket remains valid. An error in
// place of the two messages would end the session of clients that know only one server.
func (c *client) reconnect(request *sfu.JoinRequest, route Route) {
	resume := request.Join.Resume
	joined := &signal.Joined{
		Header: signal.Header{ID: request.Join.ID}, Version: signal.Version, Room: request.Room,
		Identity: request.Identity, Session: resume.Session, Resumed: true,
		Participants: []signal.Participant{}, ICEServers: []signal.ICEServer{},
		Resume: signal.ResumeGrant{Secret: resume.Secret, GraceMS: int(route.Grace.Milliseconds())},
	}
	c.outbox.welcome = nil
	c.outbox.Send(joined)
	c.outbox.Close(signal.CodeConnection, "the session continues on another server with a new peer connection")
}
