package entry

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// View is the cluster as this node knows it. The methods are safe for concurrent use and do not wait for other nodes.
type View interface {
	// Self returns this node with its present load.
	Self() cluster.Node
	// Nodes returns the other nodes, dead ones included.
	Nodes() []cluster.Node
	// NodesOf returns the names of the nodes that have a room, this node included, in any order.
	NodesOf(room string) []string
	// Session returns the home and the state of a session, of those that this node knows with the highest epoch. State
	// is empty if this node has no record of the session.
	Session(room, session string) (cluster.Home, roomevent.SessionState, bool)
	// Keepers returns the nodes besides the home that should have the record of a session, in the order of preference.
	// The nodes are alive and do not drain.
	Keepers(home, room, session string) []string
	// Share sends the record of a session of this node to a node, unless the node has the record.
	Share(session, node string)
	// Drain marks this node as draining for the other nodes.
	Drain()
}

// Rooms are the rooms of this node. sfu.Node implements Rooms.
type Rooms interface {
	HasSession(session string) bool
	// TellSessions passes the present state of all sessions to the cluster.
	TellSessions()
}

// Clients are the clients that are connected to this node. signalling.Server implements Clients.
type Clients interface {
	Clients() []signalling.Client
	Proxies() signalling.Proxies
	EndProxies(code signal.Code)
}

// Options are the parts of a server that its Entry needs.
type Options struct {
	View   View
	Rooms  Rooms
	Sealer *ticket.Sealer
	// Dial connects to another node, at its address for other nodes.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// ResumeGrace is the time for which a session without a websocket is kept.
	ResumeGrace time.Duration
	Log         *zap.Logger
}

// Entry decides where clients join. Entry implements signalling.Cluster. The methods are safe for concurrent use,
// except Serve and Close.
type Entry struct {
	options Options
	log     *zap.Logger
	clients Clients
	// closed is closed by end. ended counts the goroutines.
	closed chan struct{}
	end    func()
	ended  sync.WaitGroup
	// draining is set when this node accepts no more sessions.
	draining atomic.Bool
	counts   counters
	// same are the nodes with the address of this node for clients, for the goroutine of run.
	same map[cluster.Home]bool

	mu sync.Mutex
	// ending is set by Close: no goroutine starts afterwards.
	ending    bool
	placement placement.Placement
	// returned has the times at which clients were sent to other nodes with their session, by session.
	returned map[string]time.Time
	lists    lists
}

// counters are the atomic form of Counts.
type counters struct {
	moved, proxied, adopted, resumed, full, ticket, expired atomic.Uint64
}

// Refused counts refused joins by cause: all nodes were full, the ticket was not valid or had expired, or the node to
// which the client's websocket is proxied was not reached.
type Refused struct{ Full, Ticket, Unreachable, Expired uint64 }

// Counts are numbers of joins since the start.
type Counts struct {
	// Moved counts clients that were sent to another node, at a join, a resume or during the session. Proxied counts
	// joins and resumes whose websockets were proxied. Adopted counts sessions of other nodes that this node has taken
	// over, Resumed resumes of sessions of this node.
	Moved, Proxied, Adopted, Resumed uint64
	Refused                          Refused
}

// New returns an Entry. Serve must be called before the first join.
func New(o Options) *Entry {
	closed := make(chan struct{})
	return &Entry{
		options: o, log: o.Log, returned: make(map[string]time.Time), lists: newLists(),
		closed: closed, end: sync.OnceFunc(func() { close(closed) }),
	}
}

// Serve starts the goroutine that sends the message Nodes. Close stops the goroutine. After Close, Serve starts none.
func (e *Entry) Serve(clients Clients) {
	e.clients = clients
	e.start(e.run)
}

// start starts a goroutine. start returns false after Close.
func (e *Entry) start(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending {
		e.ended.Go(f)
	}
	return !e.ending
}

// Close stops the goroutines of Serve and of Move.
func (e *Entry) Close() {
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	e.end()
	e.ended.Wait()
}

// Counts returns the counts.
func (e *Entry) Counts() Counts {
	c := &e.counts
	return Counts{
		Moved: c.moved.Load(), Proxied: c.proxied.Load(), Adopted: c.adopted.Load(), Resumed: c.resumed.Load(),
		Refused: Refused{
			Full: c.full.Load(), Ticket: c.ticket.Load(), Expired: c.expired.Load(),
			Unreachable: e.clients.Proxies().Unreachable,
		},
	}
}

// Dial implements signalling.Cluster.
func (e *Entry) Dial(ctx context.Context, node string) (net.Conn, error) {
	return e.options.Dial(ctx, node)
}

// Welcome implements signalling.Cluster.
func (e *Entry) Welcome(joined *signal.Joined, grants sfu.Grants, epoch uint64) {
	now, self := time.Now(), e.options.View.Self()
	text, err := e.options.Sealer.Seal(ticket.Ticket{
		Kind: ticket.Resume, Session: joined.Session, Secret: joined.Resume.Secret,
		Room: joined.Room, Identity: joined.Identity, Grants: bitsOf(grants),
		Home: self.Home.Node, Incarnation: self.Incarnation, Epoch: epoch, Expires: now.Add(ticket.Lifetime),
	}, now)
	if err != nil {
		e.log.Error("a client gets no ticket and cannot resume its session", zap.String("session", joined.Session),
			zap.Error(err))
	} else {
		joined.Resume.Secret = text
	}
	nodes := e.alternatives(e.others(), self, joined.Room, joined.Session)
	joined.Nodes = nodes
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists.sessions[joined.Session] = list{keyOf(nodes), now}
}

// bitsOf and grantsOf convert grants.
func bitsOf(g sfu.Grants) (bits ticket.Grants) {
	for _, grant := range []struct {
		granted bool
		bit     ticket.Grants
	}{{g.Publish, ticket.Publish}, {g.Subscribe, ticket.Subscribe}, {g.Data, ticket.Data}, {g.Admin, ticket.Admin}} {
		if grant.granted {
			bits |= grant.bit
		}
	}
	return bits
}

func grantsOf(bits ticket.Grants) sfu.Grants {
	return sfu.Grants{Publish: bits&ticket.Publish != 0, Subscribe: bits&ticket.Subscribe != 0,
		Data: bits&ticket.Data != 0, Admin: bits&ticket.Admin != 0}
}
