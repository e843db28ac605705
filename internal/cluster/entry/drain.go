package entry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// batchInterval is the time between two batches of moves. moveTime is the time in which all clients are asked to
	// move: each move costs the other nodes a join, which takes about 35 ms of a core.
	batchInterval = 100 * time.Millisecond
	moveTime      = 5 * time.Second
	// minBatch is the least number of clients in a batch.
	minBatch = 4
	// moveDeadline is the time for which this node keeps the session of a client that is asked to move, unless a drain
	// ends earlier.
	moveDeadline = 10 * time.Second
	// leaveInterval is the interval at which a drain looks for clients that have not left.
	leaveInterval = 20 * time.Millisecond
)

// Drain marks this node as draining, ends the websockets that it passes on, asks its clients to move to other nodes,
// and waits until those that follow have left, at most for moveDeadline and half of the context's time. The other
// clients stay.
func (e *Entry) Drain(ctx context.Context) {
	e.draining.Store(true)
	e.options.View.Drain()
	e.clients.EndPassages(signal.CodeDraining, "the server is about to stop")
	limit := moveDeadline
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	target := func(now time.Time, c signalling.Client) (cluster.Node, bool) {
		self := e.self()
		node, err := e.place(now, self, &sfu.JoinRequest{Join: &signal.Join{Moves: true}, Room: c.Room})
		return node, err == nil && node.URL != "" && node.Home != self.Home
	}
	moved := e.move(ctx, following(e.clients.Clients()), limit, target)
	e.log.Info("clients are asked to move to other nodes", zap.Int("clients", len(moved)),
		zap.Duration("at_most", limit))
	ticker := time.NewTicker(leaveInterval)
	defer ticker.Stop()
	for e.staying(moved) > 0 {
		select {
		case <-ctx.Done():
			e.log.Warn("clients have not moved in time", zap.Int("clients", e.staying(moved)),
				zap.Duration("limit", limit))
			return
		case <-ticker.C:
		}
	}
}

// staying returns the number of sessions that have a client on this node.
func (e *Entry) staying(sessions map[string]bool) (n int) {
	for _, c := range e.clients.Clients() {
		if sessions[c.Session] {
			n++
		}
	}
	return n
}

// Move asks the clients of a room on this node to move to another node. Move returns the number of clients that were
// asked, and of those that stay because they do not follow. The error wraps ErrNode, or sfu.ErrNotFound if the room is
// not on this node.
func (e *Entry) Move(ctx context.Context, room, node string) (moved, remaining int, err error) {
	self, nodes := e.self(), e.options.View.Nodes()
	at := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Home.Node == node })
	switch {
	case node == self.Home.Node:
		return 0, 0, fmt.Errorf("%w: %q is this node", ErrNode, node)
	case at < 0:
		return 0, 0, fmt.Errorf("%w: there is no node %q", ErrNode, node)
	case nodes[at].State != cluster.Alive:
		return 0, 0, fmt.Errorf("%w: %q does not answer", ErrNode, node)
	case nodes[at].Draining:
		return 0, 0, fmt.Errorf("%w: %q drains", ErrNode, node)
	case nodes[at].URL == "":
		return 0, 0, fmt.Errorf("%w: %q has no address for clients", ErrNode, node)
	case !slices.Contains(e.options.View.NodesOf(room), self.Home.Node):
		return 0, 0, fmt.Errorf("%w: room %q on this node", sfu.ErrNotFound, room)
	}
	clients := slices.DeleteFunc(e.clients.Clients(), func(c signalling.Client) bool {
		return c.Room != room
	})
	target := func(time.Time, signalling.Client) (cluster.Node, bool) { return nodes[at], true }
	told := e.move(ctx, following(slices.Clone(clients)), moveDeadline, target)
	e.log.Info("clients of a room are asked to move", zap.String("room", room), zap.String("node", node),
		zap.Int("clients", len(told)), zap.Int("remaining", len(clients)-len(told)))
	return len(told), len(clients) - len(told), ctx.Err()
}

// move asks clients to move to nodes, in batches. target returns the node for a client, false if there is none. move
// returns the sessions of the clients that were asked.
func (e *Entry) move(ctx context.Context, clients []signalling.Client, deadline time.Duration,
	target func(time.Time, signalling.Client) (cluster.Node, bool),
) map[string]bool {
	e.options.Rooms.TellSessions()
	end := time.Now().Add(deadline)
	moved := make(map[string]bool, len(clients))
	size := max(minBatch, (len(clients)*int(batchInterval)+int(moveTime)-1)/int(moveTime))
	ticker := time.NewTicker(batchInterval)
	defer ticker.Stop()
	for i, c := range clients {
		if i > 0 && i%size == 0 {
			select {
			case <-ctx.Done():
				return moved
			case <-ticker.C:
			}
		}
		now := time.Now()
		node, ok := target(now, c)
		if !ok || !e.ask(now, c, node, end.Sub(now)) {
			continue
		}
		moved[c.Session] = true
		e.counts.moved.Add(1)
	}
	return moved
}

// ask asks a client to move to a node, with the client's own ticket made one for the move.
func (e *Entry) ask(now time.Time, c signalling.Client, node cluster.Node, deadline time.Duration) bool {
	t, err := e.options.Sealer.Open(c.Ticket, now)
	if err != nil {
		e.log.Warn("a client is not asked to move: its ticket is not valid", zap.String("session", c.Session),
			zap.Error(err))
		return false
	}
	e.options.View.Share(c.Session, node.Home.Node)
	route := e.to(now, node, moveOf(t))
	return route.URL != "" && c.Outbox.Send(&signal.Moved{
		URL: route.URL, Ticket: route.Ticket, DeadlineMS: max(1, int(deadline.Milliseconds())), MakeBeforeBreak: true,
	})
}
