package client

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
)

const (
	// tick is the longest time that a packet waits for others, so that packets leave in longer runs while frames are
	// sent.
	tick = time.Millisecond
	// minTick is the shortest time between two steps. At 240 Mbit/s the longest run of a pacer's tick, 16 packets of
	// 1,200 bytes, takes 0.6 ms.
	minTick = tick / 4
	// idleTick is the time between two steps if nothing is due.
	idleTick = time.Second
	// stampInterval is the least time between two packets whose departure times are requested from the kernel.
	stampInterval = 5 * time.Millisecond
)

// sendingPeer sends the packets that outlets have queued. transport.Peer implements it.
type sendingPeer interface {
	// SetECN sets the codepoint with which packets leave that are queued from now on.
	SetECN(ecn.Codepoint)
	Flush()
}

// twoRoutes is a sendingPeer with a second path to the server, if there is one. transport.Peer implements it.
type twoRoutes interface {
	// SecondRoute reports whether copies of packets can leave on a second path.
	SecondRoute() bool
	// PrimaryPath returns the number of the path on which every packet leaves.
	PrimaryPath() uint8
	// SetCopied sets whether packets that are queued from now on leave on both paths.
	SetCopied(bool)
	// SetDoubled sets whether packets that are queued from now on leave twice on the path of PrimaryPath.
	SetDoubled(bool)
}

// stamper requests the departure time of a packet from the kernel. transport.Peer implements it.
type stamper interface{ StampNext() }

// sending is the goroutine that writes the packets that are due. The slices are reused by the next step.
type sending struct {
	media *media
	due   []uplink.Outgoing
	// codepoint is the codepoint with which they leave.
	codepoint ecn.Codepoint
	// left are the traced frames whose last packets are among due. asked is the time of the last request for a
	// departure time.
	left  []*frametrace.Sent
	asked time.Time
}

func (s *sending) run() {
	timer := precise.NewTimer(tick)
	defer timer.Stop()
	for {
		wait, idle := s.step(time.Now(), s.media.peer.Load())
		if !s.rest(timer, wait, idle) {
			return
		}
	}
}

// rest sleeps until the next step. rest returns false when the session ends.
func (s *sending) rest(timer *precise.Timer, wait time.Duration, idle bool) bool {
	m := s.media
	if idle {
		timer.Reset(wait)
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.stopped:
			return false
		case <-m.lifetime.Done():
			return false
		}
		return true
	}
	// While packets are queued, new packets leave within a tick, in longer runs.
	end := time.Now().Add(wait)
	for come := m.wake; ; come = nil {
		timer.Reset(time.Until(end))
		select {
		case <-come:
			now := time.Now()
			end = now.Add(min(tick, end.Sub(now)))
		case <-timer.C:
			return true
		case <-m.stopped:
			return false
		case <-m.lifetime.Done():
			return false
		}
	}
}

// step writes the packets that are due. step returns the time until the next step, and reports whether nothing is
// queued.
func (s *sending) step(now time.Time, peer sendingPeer) (wait time.Duration, idle bool) {
	m := s.media
	routes, _ := peer.(twoRoutes)
	wait, idle = s.choose(now, routes)
	peer.SetECN(s.codepoint)
	copied, doubled := false, false
	for i := range s.due {
		o := &s.due[i]
		if o.Copied != copied {
			copied = o.Copied
			routes.SetCopied(copied)
		}
		if o.Doubled != doubled {
			doubled = o.Doubled
			routes.SetDoubled(doubled)
		}
		if o.Times != nil {
			s.stamp(o, peer)
		}
		o.Write()
	}
	if copied {
		routes.SetCopied(false)
	}
	if doubled {
		routes.SetDoubled(false)
	}
	if len(s.due) > 0 {
		peer.Flush()
	}
	for _, times := range s.left {
		m.tracing.Left(times)
	}
	clear(s.left)
	s.left = s.left[:0]
	clear(s.due)
	return wait, idle
}

// choose collects the packets that are due, and returns the same values as step. routes is nil if the peer never has a
// second path.
func (s *sending) choose(now time.Time, routes twoRoutes) (wait time.Duration, idle bool) {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	s.due = s.due[:0]
	if m.ended {
		// The session is being freed: its events and its peer are closed.
		return idleTick, true
	}
	// Without a connection there are no steps, even if a step has been due for long.
	estimates := m.connected && m.uplink.Estimates()
	if estimates {
		m.uplink.Step(now)
		m.weigh(now)
	}
	if routes != nil {
		m.uplink.SetRoutes(routes.SecondRoute(), routes.PrimaryPath(), now)
	}
	s.due, s.codepoint = m.uplink.Depart(now, s.due), m.uplink.ECN()
	s.reportDropped()
	next, waits := m.uplink.Due()
	wait = idleTick
	if waits {
		wait = min(wait, max(minTick, next.Sub(now)))
	}
	if estimates {
		wait = min(wait, max(tick, m.uplink.StepDue(now)))
	}
	return wait, !waits
}

// reportDropped reports dropped frames to publishers of real video, which then have to send a key frame.
func (s *sending) reportDropped() {
	for _, track := range s.media.uplink.CountDropped() {
		s.media.events.add(KeyFrameWanted(track))
	}
}

// stamp records the departure of a packet that is about to be handed to the socket. At most once per stampInterval,
// stamp also requests the kernel's departure time.
func (s *sending) stamp(o *uplink.Outgoing, peer sendingPeer) {
	now := time.Now()
	o.Times.Leaves(o.Mark, now)
	if kernel, ok := peer.(stamper); ok && o.Mark&frametrace.First != 0 && now.Sub(s.asked) >= stampInterval {
		s.asked = now
		kernel.StampNext()
	}
	if o.Mark&frametrace.Last != 0 {
		s.left = append(s.left, o.Times)
	}
}

// weigh decides which tracks are sent, and reports changes to the program and the server.
func (m *media) weigh(now time.Time) {
	changed, message := m.uplink.Weigh(now)
	if changed {
		m.events.add(Uplink{Estimate: m.uplink.Estimate(), GaveUp: m.uplink.GaveUp()})
	}
	if message != nil && !m.left {
		m.updates.SetUplink(message)
	}
}

// resendUplink sends the state of the uplink again, to a server that may not have received it.
func (m *media) resendUplink() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uplink.Resend()
}

// detach assigns a line to no track.
func (m *media) detach(mid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uplink.Attach(mid, nil, nil, 0, 0)
}

// carries reports whether frames of a track can be sent: the track is negotiated, and media flows. The caller holds the
// lock.
func (m *media) carries(p *uplink.Publication, track int) bool {
	return p.Negotiated(track) && m.connected && !m.ended
}

// enqueue queues a frame. The error wraps ErrNotConnected.
func (m *media) enqueue(f uplink.Frame) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.carries(f.Publication, f.Track) {
		return ErrNotConnected
	}
	if !f.Publication.Accepted(f.Track) {
		return fmt.Errorf("%w: the server does not accept %s",
			ErrNotConnected, f.Publication.Description().Codec.MIMEType)
	}
	m.uplink.Enqueue(f, time.Now())
	m.wakeSender()
	return nil
}

func (m *media) wakeSender() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
