package entry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
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

// Drain marks this node as draining, ends the websockets that it proxies, makes its clients continue on other nodes,
// and waits until those that follow the message Moved have left, at most for moveDeadline and half of the context's
// time. Clients that join or return meanwhile are asked, too. Without another node, all clients stay.
func (e *Entry) Drain(ctx context.Context) {
	e.draining.Store(true)
	e.options.View.Drain()
	e.clients.EndProxies(signal.CodeDraining)
	limit := moveDeadline
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := e.newDeparture(time.Now().Add(limit), func(now time.Time, c signalling.Client) (cluster.Node, error) {
		return e.place(now, c.Room, "", ways{moved: c.Moves, proxied: true})
	})
	e.log.Info("clients are asked to move to other nodes", zap.Int("clients", len(e.clients.Clients())),
		zap.Duration("at_most", limit))
	ticker := time.NewTicker(leaveInterval)
	defer ticker.Stop()
	for {
		staying := d.step(time.Now(), e.clients.Clients())
		if staying == 0 {
			return
		}
		select {
		case <-ctx.Done():
			e.log.Warn("clients have not moved in time", zap.Int("clients", staying), zap.Duration("limit", limit))
			return
		case <-ticker.C:
		}
	}
}

// departure makes clients continue on other nodes, in batches. It is stepped with the time.
type departure struct {
	entry *Entry
	// end is the time until which this node keeps the sessions of the clients.
	end time.Time
	// target returns the node for a client.
	target func(time.Time, signalling.Client) (cluster.Node, error)
	// asked are the sessions of the clients that were asked, size is the number of clients in a batch, next the time of
	// the next batch. alone is set if no other node accepted clients at the latest batch.
	asked map[string]bool
	size  int
	next  time.Time
	alone bool
}

func (e *Entry) newDeparture(
	end time.Time, target func(time.Time, signalling.Client) (cluster.Node, error),
) *departure {
	e.options.Rooms.TellSessions()
	return &departure{entry: e, end: end, target: target, asked: make(map[string]bool), size: minBatch}
}

// step asks a batch of clients if one is due. If all nodes are full, a later batch asks these clients again. step
// returns the number of clients that are going to leave: those that follow the message Moved and have not left, and
// those that are not asked yet, unless no other node accepts clients.
func (d *departure) step(now time.Time, clients []signalling.Client) (staying int) {
	waiting := slices.DeleteFunc(slices.Clone(clients), func(c signalling.Client) bool { return d.asked[c.Session] })
	if !now.Before(d.next) {
		d.size = max(d.size, (len(waiting)*int(batchInterval)+int(moveTime)-1)/int(moveTime))
		d.next, d.alone = now.Add(batchInterval), false
		for _, c := range waiting[:min(d.size, len(waiting))] {
			node, err := d.target(now, c)
			if d.alone = errors.Is(err, errNone); d.alone {
				break
			}
			if err == nil && d.entry.send(now, c, node, d.end.Sub(now)) {
				d.asked[c.Session] = true
			}
		}
	}
	for _, c := range clients {
		if d.asked[c.Session] && c.Moves || !d.asked[c.Session] && !d.alone {
			staying++
		}
	}
	return staying
}

// send makes a client continue on a node: by the message Moved, or if the client does not follow, by a new connection,
// whose resume this node sends to the other node. send reports whether the client was asked.
func (e *Entry) send(now time.Time, c signalling.Client, node cluster.Node, deadline time.Duration) bool {
	t, err := e.options.Sealer.Open(c.Ticket, now)
	if err != nil && !errors.Is(err, ticket.ErrExpired) {
		e.log.Error("a client is not asked to move: its ticket is not valid", zap.String("session", c.Session),
			zap.Error(err))
		return true
	}
	e.options.View.Share(c.Session, node.Home.Node)
	if !c.Moves || node.URL == "" {
		c.Outbox.Close(signal.CodeConnection, "the session continues on another server with a new peer connection")
		return true
	}
	route := e.to(now, node, moveOf(t))
	if route.URL == "" || !c.Outbox.Send(&signal.Moved{
		URL: route.URL, Ticket: route.Ticket, DeadlineMS: max(1, int(deadline.Milliseconds())), MakeBeforeBreak: true,
	}) {
		return false
	}
	e.counts.moved.Add(1)
	return true
}

// Move begins to ask the clients of a room on this node to move to another node, in the goroutine of the Entry. Move
// returns the number of clients that are asked, and of those that stay because they do not follow. The error wraps
// ErrNode, or sfu.ErrNotFound if the room is not on this node.
func (e *Entry) Move(room, node string) (moved, remaining int, err error) {
	self := e.self()
	to, found := find(e.others(), func(n cluster.Node) bool { return n.Home.Node == node })
	switch {
	case node == self.Home.Node:
		return 0, 0, fmt.Errorf("%w: %q is this node", ErrNode, node)
	case !found:
		return 0, 0, fmt.Errorf("%w: there is no node %q", ErrNode, node)
	case !slices.Contains(e.options.View.NodesOf(room), self.Home.Node):
		return 0, 0, fmt.Errorf("%w: room %q on this node", sfu.ErrNotFound, room)
	}
	if err := (ways{moved: true}).check(to); err != nil {
		return 0, 0, err
	}
	clients := ofRoom(e.clients.Clients(), room)
	followers := following(clients)
	d := e.newDeparture(time.Now().Add(moveDeadline), func(time.Time, signalling.Client) (cluster.Node, error) {
		return to, nil
	})
	sessions := make(map[string]bool, len(followers))
	for _, c := range followers {
		sessions[c.Session] = true
	}
	if !e.start(func() { e.depart(d, sessions) }) {
		return 0, 0, fmt.Errorf("%w: node %q is about to stop", ErrNode, self.Home.Node)
	}
	e.log.Info("clients of a room are asked to move", zap.String("room", room), zap.String("node", node),
		zap.Int("clients", len(followers)), zap.Int("remaining", len(clients)-len(followers)))
	return len(followers), len(clients) - len(followers), nil
}

// depart is the goroutine that asks the clients of sessions to move, until all were asked or the time of d is over.
func (e *Entry) depart(d *departure, sessions map[string]bool) {
	ticker := time.NewTicker(batchInterval)
	defer ticker.Stop()
	for {
		now := time.Now()
		clients := slices.DeleteFunc(e.clients.Clients(), func(c signalling.Client) bool {
			return !sessions[c.Session] || d.asked[c.Session]
		})
		if d.step(now, clients) == 0 || now.After(d.end) {
			return
		}
		select {
		case <-e.closed:
			return
		case <-ticker.C:
		}
	}
}

// ofRoom returns the clients of a room.
func ofRoom(clients []signalling.Client, room string) []signalling.Client {
	return slices.DeleteFunc(slices.Clone(clients), func(c signalling.Client) bool { return c.Room != room })
}

// following returns the clients that follow the message Moved.
func following(clients []signalling.Client) []signalling.Client {
	return slices.DeleteFunc(slices.Clone(clients), func(c signalling.Client) bool { return !c.Moves })
}
