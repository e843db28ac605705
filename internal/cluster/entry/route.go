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
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/sessionrecord"
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
	node, err := e.place(now, q.Room, q.Join.Region, waysOf(q))
	switch {
	case errors.Is(err, placement.ErrFull):
		e.counts.full.Add(1)
		return signalling.Route{}, &signal.Error{
			Code: signal.CodeLimit, Message: err.Error(), RetryAfterMS: int(placement.RetryAfter.Milliseconds()),
		}
	case err != nil || node.Home == self.Home:
		// If no node accepts clients, this node refuses the join with the reason.
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
		return e.resumeHere(now, t, q), nil
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
	nodes := e.others()
	alive, isAlive := find(nodes, func(n cluster.Node) bool { return n.Home == home && waysOf(q).check(n) == nil })
	again := q.Join.Moves && e.isBack(now, t.Session)
	switch {
	case isAlive && !again:
		e.sent(now, q)
		return routeTo(alive, resume.Secret), nil
	case self.Draining:
		if node, err := e.place(now, q.Room, q.Join.Region, waysOf(q)); err == nil {
			return e.to(now, node, moveOf(t)), nil
		}
	case len(state.State) == 0 && !again:
		if node, found := e.keeper(nodes, self, home.Node, t, waysOf(q)); found {
			e.sent(now, q)
			return e.to(now, node, moveOf(t)), nil
		}
	}
	return e.adopt(q, t, state), nil
}

// keeper returns a node that should have the record of a session of which this node has none.
func (e *Entry) keeper(
	nodes []cluster.Node, self cluster.Node, home string, t ticket.Ticket, by ways,
) (cluster.Node, bool) {
	keepers := e.options.View.Keepers(home, t.Room, t.Session)
	if slices.Contains(keepers, self.Home.Node) {
		return cluster.Node{}, false
	}
	for _, name := range keepers {
		node, found := find(nodes, func(n cluster.Node) bool { return n.Home.Node == name && by.check(n) == nil })
		if found {
			return node, true
		}
	}
	return cluster.Node{}, false
}

// resumeHere decides about a resume of a session of this node. If this node drains, the session continues on another
// node: at once if the client asks for a new connection, or follows the message Moved. The client keeps its connection
// to this node otherwise, until the drain asks for another one. A client that is back did not reach the other node.
func (e *Entry) resumeHere(now time.Time, t ticket.Ticket, q *sfu.JoinRequest) signalling.Route {
	leaves := q.Join.Moves && !e.isBack(now, t.Session) || !q.Join.Moves && q.Join.Resume.NewConnection
	if e.self().Draining && leaves {
		if node, err := e.place(now, q.Room, q.Join.Region, waysOf(q)); err == nil {
			e.options.View.Share(t.Session, node.Home.Node)
			e.sent(now, q)
			return e.to(now, node, moveOf(t))
		}
	}
	q.Join.Resume.Secret = t.Secret
	e.counts.resumed.Add(1)
	epoch := t.Epoch
	if _, state, found := e.options.View.Session(q.Room, t.Session); found {
		// The client may repeat a ticket of a former home.
		epoch = max(epoch, state.Epoch)
	}
	return signalling.Route{Epoch: epoch}
}

// adopt makes this node the home of a session. state is that of the session as this node knows it.
func (e *Entry) adopt(q *sfu.JoinRequest, t ticket.Ticket, state roomevent.SessionState) signalling.Route {
	if !q.Join.Resume.NewConnection {
		return signalling.Route{Reconnect: true, Grace: e.options.ResumeGrace}
	}
	adoption := &sfu.Adoption{Session: t.Session, Secret: t.Secret, Epoch: max(t.Epoch, state.Epoch) + 1}
	if len(state.State) > 0 {
		record, err := sessionrecord.Decode(state.State)
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
	if errors.Is(err, ticket.ErrExpired) && t.Kind == ticket.Resume && e.options.Rooms.HasSession(t.Session) {
		// The session is longer than the validity of tickets. Its secret decides.
		err = nil
	}
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
	return signal.Errorf(signal.CodeResume,
		"the session has expired, or the resume secret is invalid (%v): join again without resume", reason)
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
		e.log.Error("a client is sent to another node without a ticket", zap.String("node", node.Home.Node),
			zap.Error(err))
		node.URL = ""
	}
	return routeTo(node, text)
}

// routeTo returns the route to another node with a ticket.
func routeTo(node cluster.Node, text string) signalling.Route {
	return signalling.Route{Node: node.Home.Node, URL: node.URL, Ticket: text}
}

// waysOf returns the ways of a client to another node.
func waysOf(q *sfu.JoinRequest) ways { return ways{moved: q.Join.Moves, proxied: true} }

// sent remembers that a client is sent to another node with its session. Clients whose websocket is proxied come again
// for a new connection after the other node was reached.
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
