package entry

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// moveLifetime is the validity of tickets for a move: the client follows at once.
	moveLifetime = time.Minute
	// returnTime is the time within which a client that was sent to the home of its session, and is here again, has not
	// reached the home: a timeout of the connection and some round trips.
	returnTime = 3 * time.Second
	// maxReturned bounds the memory for such clients.
	maxReturned = 1 << 12
)

// Route implements signalling.Cluster.
func (e *Entry) Route(q *sfu.JoinRequest) (signalling.Route, *signal.Error) {
	now := time.Now()
	var route signalling.Route
	var refused *signal.Error
	if q.Join.Resume != nil {
		route, refused = e.resume(now, q)
	} else {
		route, refused = e.join(now, q)
	}
	switch {
	case refused != nil || route.Node == "":
	case route.Moves(q.Join):
		e.counts.moved.Add(1)
	default:
		e.counts.proxied.Add(1)
	}
	return route, refused
}

// join decides about a join without a session.
func (e *Entry) join(now time.Time, q *sfu.JoinRequest) (signalling.Route, *signal.Error) {
	self := e.self()
	if q.Join.Ticket != "" {
		t, refused := e.open(now, q.Join.Ticket, q)
		switch {
		case refused != nil:
			return signalling.Route{}, refused
		case t.Kind != ticket.Entry:
			return signalling.Route{}, e.refuse(errors.New("the ticket is not one for a join"))
		case t.Home == self.Home.Node && !self.Draining:
			return signalling.Route{}, nil
		}
	}
	node, err := e.place(now, self, q)
	switch {
	case errors.Is(err, placement.ErrFull):
		e.counts.full.Add(1)
		return signalling.Route{}, &signal.Error{
			Code: signal.CodeLimit, Message: err.Error(), RetryAfterMS: int(placement.RetryAfter.Milliseconds()),
		}
	case node.Home == self.Home:
		return signalling.Route{}, nil
	}
	return e.to(now, node, ticket.Ticket{Kind: ticket.Entry, Room: q.Room, Identity: q.Identity}), nil
}

// resume decides about a resume.
func (e *Entry) resume(now time.Time, q *sfu.JoinRequest) (signalling.Route, *signal.Error) {
	resume, self := q.Join.Resume, e.self()
	t, refused := e.open(now, resume.Secret, q)
	switch {
	case refused != nil:
		return signalling.Route{}, refused
	case t.Kind != ticket.Resume && t.Kind != ticket.Move || t.Session != resume.Session:
		return signalling.Route{}, e.refuse(errors.New("the ticket is not one for this session"))
	case e.options.Rooms.HasSession(t.Session):
		return e.resumeHere(now, self, t, q), nil
	}
	home := cluster.Home{Node: t.Home, Incarnation: t.Incarnation}
	known, state, found := e.options.View.Session(q.Room, t.Session)
	switch {
	case t.Kind == ticket.Move && t.Home == self.Home.Node && !self.Draining:
		return e.adopt(q, t, state), nil
	case found && state.Epoch >= t.Epoch:
		home, t.Epoch = known, state.Epoch
	}
	if home == self.Home {
		return signalling.Route{}, e.refuse(errors.New("the session has ended"))
	}
	nodes := e.options.View.Nodes()
	alive := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Home == home && usable(n, q.Join) })
	again := q.Join.Moves && e.isBack(now, t.Session)
	switch {
	case alive >= 0 && !again:
		e.sent(now, q)
		return e.pass(nodes[alive], resume.Secret), nil
	case self.Draining:
		if node, err := e.place(now, self, q); err == nil && node.Home != self.Home {
			return e.to(now, node, moveOf(t)), nil
		}
	case len(state.State) == 0 && !again:
		if node, found := e.keeper(nodes, self, home.Node, t, q.Join); found {
			e.sent(now, q)
			return e.to(now, node, moveOf(t)), nil
		}
	}
	return e.adopt(q, t, state), nil
}

// keeper returns a node that should have the record of a session of which this node has none.
func (e *Entry) keeper(
	nodes []cluster.Node, self cluster.Node, home string, t ticket.Ticket, join *signal.Join,
) (cluster.Node, bool) {
	keepers := e.options.View.Keepers(home, t.Room, t.Session)
	if slices.Contains(keepers, self.Home.Node) {
		return cluster.Node{}, false
	}
	for _, name := range keepers {
		at := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Home.Node == name && usable(n, join) })
		if at >= 0 {
			return nodes[at], true
		}
	}
	return cluster.Node{}, false
}

// resumeHere decides about a resume of a session of this node. If this node drains, clients that follow are moved.
func (e *Entry) resumeHere(now time.Time, self cluster.Node, t ticket.Ticket, q *sfu.JoinRequest) signalling.Route {
	if self.Draining && q.Join.Moves && !e.isBack(now, t.Session) {
		if node, err := e.place(now, self, q); err == nil && node.Home != self.Home && node.URL != "" {
			e.options.View.Share(t.Session, node.Home.Node)
			e.sent(now, q)
			return e.to(now, node, moveOf(t))
		}
	}
	q.Join.Resume.Secret = t.Secret
	e.counts.resumed.Add(1)
	return signalling.Route{Epoch: t.Epoch}
}

// adopt makes this node the home of a session. state is that of the session as this node knows it.
func (e *Entry) adopt(q *sfu.JoinRequest, t ticket.Ticket, state sfu.SessionState) signalling.Route {
	if !q.Join.Resume.NewConnection {
		return signalling.Route{Reconnect: true, Grace: e.options.ResumeGrace}
	}
	adoption := &sfu.Adoption{Session: t.Session, Secret: t.Secret, Epoch: max(t.Epoch, state.Epoch) + 1}
	if len(state.State) > 0 {
		record, err := sfu.DecodeSessionRecord(state.State)
		if err != nil {
			e.log.Error("the record of a session is not valid; the session continues without its state",
				zap.String("session", t.Session), zap.Error(err))
		} else {
			adoption.Record = record
		}
	}
	granted := grantsOf(t.Grants)
	q.Grants.Publish = q.Grants.Publish && granted.Publish
	q.Grants.Subscribe = q.Grants.Subscribe && granted.Subscribe
	q.Grants.Data = q.Grants.Data && granted.Data
	q.Grants.Admin = q.Grants.Admin && granted.Admin
	q.Join.Resume.Secret, q.Adopt = t.Secret, adoption
	e.counts.adopted.Add(1)
	e.log.Info("session of another node continues here", zap.String("session", t.Session),
		zap.String("participant", q.Identity), zap.String("from", t.Home), zap.Bool("restored", adoption.Record != nil))
	return signalling.Route{Epoch: adoption.Epoch}
}

// open opens the ticket of a request, and compares the ticket's names with those of the request.
func (e *Entry) open(now time.Time, text string, q *sfu.JoinRequest) (ticket.Ticket, *signal.Error) {
	t, err := e.options.Sealer.Open(text, now)
	switch {
	case err != nil:
		return ticket.Ticket{}, e.refuse(err)
	case t.Room != q.Room || t.Identity != q.Identity:
		return ticket.Ticket{}, e.refuse(fmt.Errorf("the ticket is for %q in room %q", t.Identity, t.Room))
	}
	return t, nil
}

// refuse returns the error for a ticket that is not valid.
func (e *Entry) refuse(reason error) *signal.Error {
	if errors.Is(reason, ticket.ErrExpired) {
		e.counts.expired.Add(1)
	} else {
		e.counts.ticket.Add(1)
	}
	return &signal.Error{
		Code: signal.CodeResume, Message: "session expired or invalid resume secret; rejoin: " + reason.Error(),
	}
}

// self returns this node. The cluster learns of a drain later than Entry.
func (e *Entry) self() cluster.Node {
	self := e.options.View.Self()
	self.Draining = self.Draining || e.draining.Load()
	return self
}

// usable reports whether clients can be sent to another node. A suspected node does not answer the clients that come
// from it either.
func usable(n cluster.Node, join *signal.Join) bool {
	return n.State == cluster.Alive && !n.Draining && (n.Proxy != "" || join.Moves && n.URL != "")
}

// place chooses a node for a participant among the nodes that accept clients. The error is placement.ErrFull.
func (e *Entry) place(now time.Time, self cluster.Node, q *sfu.JoinRequest) (cluster.Node, error) {
	region := q.Join.Region
	if region == "" {
		region = self.Region
	}
	nodes := slices.DeleteFunc(slices.Clone(e.options.View.Nodes()), func(n cluster.Node) bool {
		return !usable(n, q.Join)
	})
	if !self.Draining {
		self.Beat = now
		nodes = append(nodes, self)
	}
	if len(nodes) == 0 {
		// This node refuses the join with the reason, or ends before the client has one.
		return self, nil
	}
	return e.choose(now, q.Room, region, nodes)
}

// choose chooses among nodes for a room, and counts the join.
func (e *Entry) choose(now time.Time, room, region string, nodes []cluster.Node) (cluster.Node, error) {
	having := e.options.View.NodesOf(room)
	candidates := make([]placement.Node, len(nodes))
	for i, n := range nodes {
		candidates[i] = placement.Node{Name: n.Home.Node, Region: n.Region, Load: n.Load, PerJoin: n.JoinLoad,
			Reported: n.Beat, HasRoom: slices.Contains(having, n.Home.Node)}
	}
	e.mu.Lock()
	chosen, err := e.placement.Choose(now, room, region, candidates)
	e.mu.Unlock()
	if err != nil {
		return cluster.Node{}, err
	}
	return nodes[slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Home.Node == chosen.Name })], nil
}

// moveOf returns the ticket with which the session of a ticket continues on another node.
func moveOf(t ticket.Ticket) ticket.Ticket {
	t.Kind = ticket.Move
	return t
}

// to returns the route to another node, with a ticket for that node.
func (e *Entry) to(now time.Time, node cluster.Node, t ticket.Ticket) signalling.Route {
	t.Home, t.Incarnation, t.Expires = node.Home.Node, node.Incarnation, now.Add(moveLifetime)
	text, err := e.options.Sealer.Seal(t, now)
	if err != nil {
		// The names of a join are shorter than the limit of a ticket.
		e.log.Error("a client is passed on without a ticket", zap.String("node", node.Home.Node), zap.Error(err))
		node.URL = ""
	}
	return e.pass(node, text)
}

// pass returns the route to another node with a ticket that the client has.
func (e *Entry) pass(node cluster.Node, text string) signalling.Route {
	return signalling.Route{Node: node.Home.Node, URL: node.URL, Proxy: node.Proxy, Ticket: text}
}

// sent remembers that a client is sent to another node with its session. Clients that are passed on come again for a
// new connection after the other node was reached.
func (e *Entry) sent(now time.Time, q *sfu.JoinRequest) {
	if !q.Join.Moves {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.returned) >= maxReturned {
		for session, at := range e.returned {
			if now.Sub(at) > returnTime {
				delete(e.returned, session)
			}
		}
	}
	if len(e.returned) < maxReturned {
		e.returned[q.Join.Resume.Session] = now
	}
}

// isBack reports whether the client of a session was sent to another node a short time ago, and forgets that.
func (e *Entry) isBack(now time.Time, session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, found := e.returned[session]
	delete(e.returned, session)
	return found && now.Sub(at) <= returnTime
}
