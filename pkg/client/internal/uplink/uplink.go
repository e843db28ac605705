// Package uplink sends the frames of a client's publications to the server. It assigns frames to lines, paces packets,
// estimates the rate of the uplink, and decides which tracks are given up if the uplink cannot carry all wanted tracks.
//
// An Uplink is pure: it has no goroutine, no socket and no timer. Time is an argument of the methods. The owner
// serialises all calls, including the methods of a Publication unless their comments state otherwise.
package uplink

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// PlanInterval is the least time between two decisions about the tracks. The estimate changes with reports, at most
	// every 25 ms.
	PlanInterval = 25 * time.Millisecond
	// wantFactor is the ratio of the rate to probe for and the rate of the tracks: enough for a track that was given up
	// to return, and for the share that is kept free.
	wantFactor = planMargin / planShare * 1.05
	// gaveUpInterval and estimateInterval are the least times between two messages to the server: about the tracks that
	// were given up, and about an estimate that has changed by estimateChange.
	gaveUpInterval   = 100 * time.Millisecond
	estimateInterval = time.Second
	estimateChange   = 0.1
)

// Uplink sends over one peer connection at a time. Counts outlive a connection.
type Uplink struct {
	pacing pacing.Plan
	clock  *hostclock.Clock
	queue  queue
	// counts has the probe bytes and the dropped reports of former connections only, copied the copies of former
	// connections.
	counts Counts
	// inherited are the counts of another uplink that are in counts.
	inherited Counts
	copied    redundancy.Stats
	mode      redundancy.Mode
	// publications are the publications with lines, sorted by name. plan decides which tracks are sent, last at
	// planned. tracks and owners are the slices of the plan.
	publications []*Publication
	plan         plan
	planned      time.Time
	tracks       []planTrack
	owners       []ownTrack
	// told is the time of the last message to the server, toldEstimate the estimate in it. untold is set if tracks were
	// given up or restored since.
	told         time.Time
	toldEstimate volumetric.Bitrate
	untold       bool
	// lines are keyed by mid and by SSRC.
	lines      map[string]*line
	lineBySSRC map[uint32]*line
}

// Counts counts frames that were written and not sent, bytes that were sent in addition to frames, and reports that
// were not read. client.UplinkCounts describes the fields.
type Counts struct {
	Paused, GivenUp int64
	Dropped         int64
	ProbeBytes      int64
	ReportsDropped  int64
}

// New returns an uplink without lines. plan determines the spread of the packets of a frame. clock converts capture
// times to the server's time.
func New(plan pacing.Plan, clock *hostclock.Clock, now time.Time) *Uplink {
	u := &Uplink{pacing: plan, clock: clock}
	u.clear(now)
	return u
}

// Reset removes the lines and the queued frames, because the peer connection is replaced.
func (u *Uplink) Reset(now time.Time) {
	for _, l := range u.lines {
		l.release()
	}
	u.clear(now)
}

func (u *Uplink) clear(now time.Time) {
	u.lines, u.lineBySSRC = make(map[string]*line), make(map[uint32]*line)
	u.counts, u.copied = u.Counts(), u.Copies().Stats
	u.queue = newQueue(u.pacing, now)
	u.publications, u.plan, u.planned = nil, plan{}, time.Time{}
}

// Inherit continues the counts of the uplink to another server. Add adds later counts.
func (u *Uplink) Inherit(former *Uplink) {
	u.counts, u.copied = former.Counts(), former.Copies().Stats
	u.inherited = u.counts
}

// Add adds what the former uplink has counted since Inherit.
func (u *Uplink) Add(former *Uplink) {
	more, before := former.Counts(), u.inherited
	u.counts.Paused += more.Paused - before.Paused
	u.counts.GivenUp += more.GivenUp - before.GivenUp
	u.counts.Dropped += more.Dropped - before.Dropped
	u.counts.ProbeBytes += more.ProbeBytes - before.ProbeBytes
	u.counts.ReportsDropped += more.ReportsDropped - before.ReportsDropped
	u.inherited = more
}

// Number sets the negotiated form of the server's reports, and starts the estimate with the first one: by SSRC and
// sequence number (RFC 8888), or by the number in the header extension with the given identifier, 0 for none.
func (u *Uplink) Number(extension uint8, byStream bool, config congestion.Config, now time.Time) {
	if byStream {
		extension = 0
	}
	u.queue.number(extension, byStream, config, now)
}

// Attach assigns a line to a track of a publication, or to no track if the publication is nil. outlet is the line's
// stream. It may be nil if the line exists.
func (u *Uplink) Attach(mid string, outlet Outlet, p *Publication, tile int, quality volumetric.Quality) {
	l := u.lines[mid]
	if l == nil {
		if outlet == nil {
			return
		}
		l = newLine(outlet)
		u.lines[mid] = l
	}
	if p == nil {
		l.release()
		return
	}
	l.carry(p, p.Track(tile, quality))
	u.planned = time.Time{}
	if !slices.Contains(u.publications, p) {
		u.publications = append(u.publications, p)
		slices.SortFunc(u.publications, func(a, b *Publication) int {
			return cmp.Compare(a.description.Name, b.description.Name)
		})
	}
}

// Detach frees the lines of a publication.
func (u *Uplink) Detach(p *Publication) {
	u.publications = slices.DeleteFunc(u.publications, func(other *Publication) bool { return other == p })
	for _, l := range u.lines {
		if l.publication == p {
			l.release()
		}
	}
}

// Want sets the qualities of each tile that the server wants. Tiles that are not named are not wanted.
func (u *Uplink) Want(p *Publication, tiles [][]volumetric.Quality, now time.Time) {
	wanted := make([]bool, len(p.tracks))
	for tile, qualities := range tiles {
		for _, quality := range qualities {
			if p.Has(tile, quality) {
				wanted[p.Track(tile, quality)] = true
			}
		}
	}
	for i := range p.tracks {
		t := &p.tracks[i]
		if wanted[i] != t.unwanted {
			continue
		}
		t.unwanted, t.restart = !wanted[i], restart{due: wanted[i]}
		u.reorder(p, i, now)
	}
	u.planned = time.Time{}
}

// Wanted reports whether frames of the track are sent. The call counts as the announcement to the program.
func (u *Uplink) Wanted(p *Publication, track int, now time.Time) bool {
	if t := &p.tracks[track]; t.unwanted || t.gaveUp {
		return false
	}
	if p.announce(track, now) {
		u.reorder(p, track, now)
	}
	return true
}

// Undecided reports whether Weigh has not decided yet which tracks are sent, since the last change of the wanted
// tracks.
func (u *Uplink) Undecided() bool { return u.planned.IsZero() && u.queue.estimates() }

// Measure measures a frame of a track, whether or not it is sent: its size on the wire in bytes, and its capture time.
func (u *Uplink) Measure(p *Publication, track int, capture time.Time, size int) {
	p.measure(track, capture, size)
}

// Takes reports whether a frame of a track is to be sent, and counts a frame that is not.
func (u *Uplink) Takes(p *Publication, track int) bool {
	switch t := &p.tracks[track]; {
	case t.gaveUp:
		u.counts.GivenUp++
	case t.unwanted:
		u.counts.Paused++
	default:
		return true
	}
	return false
}

// Frame is a frame of a negotiated track, in RTP payloads. The payloads must not change afterwards.
type Frame struct {
	Publication *Publication
	Track       int
	// Capture is the time of the capture by the system's clock.
	Capture  time.Time
	Payloads [][]byte
	// Spread is the time in which the frame leaves.
	Spread time.Duration
	// InTurn makes the frame leave after the queued frames of the same tile. Without InTurn, the first frame of a
	// quality that is wanted again leaves before the tile's other frames.
	InTurn bool
	// Times is nil if the frame is not traced.
	Times *frametrace.Sent
}

// Enqueue queues a frame.
func (u *Uplink) Enqueue(f Frame, now time.Time) {
	p, track := f.Publication, f.Track
	l := p.lines[track]
	u.lineBySSRC[l.outlet.SSRC()] = l
	restarted := p.tracks[track].restart.due
	p.tracks[track].restart = restart{}
	begin := now
	switch {
	case f.InTurn:
		free := &p.free[track/len(p.description.Qualities)]
		if free.After(begin) {
			begin = *free
		}
		*free = begin.Add(f.Spread)
	case !restarted:
		begin = p.awaitRestarted(track, now)
	}
	held := &heldFrame{
		line: l, publication: p, track: track, timestamp: p.Timestamp(f.Capture), capture: f.Capture,
		serverCapture: u.clock.ToServer(f.Capture), payloads: f.Payloads, times: f.Times,
		begin: begin, spread: f.Spread, budget: p.budget,
	}
	if !f.InTurn && begin.After(now) {
		u.queue.delay(held)
	} else {
		u.queue.add(held)
	}
	if restarted {
		u.reorder(p, track, now)
	}
}

// reorder makes the waiting frames of a track's tile leave after the frames in progress, once no quality is waited for.
func (u *Uplink) reorder(p *Publication, track int, now time.Time) {
	first, last := p.tile(track)
	u.queue.resume(p, first, last, p.awaited(track, now))
}

// Report processes a report of arrivals of the server, and reports whether the report had results. Reports in another
// form than the negotiated one are ignored. At most feedback.MaxReportRate reports are read in a second.
func (u *Uplink) Report(packet []byte, now time.Time) bool { return u.queue.reported(packet, now) }

// Repeat queues the packets that a NACK names, and reports whether the NACK is about a line.
func (u *Uplink) Repeat(nack *rtcp.TransportLayerNack, now time.Time, rtt time.Duration) bool {
	l := u.lineBySSRC[nack.MediaSSRC]
	if l != nil {
		u.queue.asked(l, nack, now, rtt)
	}
	return l != nil
}

// TrackOf returns the track on the line with an SSRC.
func (u *Uplink) TrackOf(ssrc uint32) (track signal.OwnTrack, ok bool) {
	l := u.lineBySSRC[ssrc]
	if l == nil || l.publication == nil {
		return track, false
	}
	return l.publication.own(l.track), true
}

// Estimates reports whether the rate of the uplink is estimated and Step has to be called.
func (u *Uplink) Estimates() bool { return u.queue.estimates() }

// Step steps the estimate, if that is due.
func (u *Uplink) Step(now time.Time) {
	if u.queue.stepDue(now) <= 0 {
		u.queue.sender.Suspend(u.queue.copies.suspended(now), now)
		u.queue.sender.Step(now)
	}
}

// StepDue returns the time until the estimate's next step, 0 or less if the step is due.
func (u *Uplink) StepDue(now time.Time) time.Duration { return u.queue.stepDue(now) }

// Depart appends the packets that leave now.
func (u *Uplink) Depart(now time.Time, packets []Outgoing) []Outgoing {
	return u.queue.depart(now, packets)
}

// ECN returns the codepoint with which the packets of the last Depart leave.
func (u *Uplink) ECN() ecn.Codepoint { return u.queue.sender.Stats().ECN }

// Due returns the time at which the next packet leaves. ok is false if no packet is queued and no probe is active.
func (u *Uplink) Due() (at time.Time, ok bool) { return u.queue.due() }

// CountDropped counts the frames that were dropped, and returns the tracks that need a key frame: tracks of real video.
func (u *Uplink) CountDropped() (tracks []signal.OwnTrack) {
	for _, d := range u.queue.dropped {
		u.counts.Dropped++
		if !d.publication.description.Codec.Is(volumetric.MIMEVolumetric) {
			tracks = append(tracks, d.publication.own(d.track))
		}
	}
	clear(u.queue.dropped)
	u.queue.dropped = u.queue.dropped[:0]
	return tracks
}

// AppendReports appends the sender reports of all lines.
func (u *Uplink) AppendReports(packets []rtcp.Packet, now time.Time) []rtcp.Packet {
	for _, l := range u.lines {
		l.history.Expire(now)
		if l.reports == nil || l.publication == nil {
			continue
		}
		if report, ok := l.reports.Report(now); ok {
			packets = append(packets, report)
		}
	}
	return packets
}

// Weigh decides which tracks are sent, and the rate to probe for. Weigh reports whether tracks were given up or
// restored, and returns the message for the server, nil for none.
func (u *Uplink) Weigh(now time.Time) (changed bool, message *signal.Uplink) {
	if now.Sub(u.planned) < PlanInterval {
		return false, nil
	}
	u.planned = now
	u.queue.consult(now)
	u.list()
	changed = u.plan.step(now, planShare*u.queue.limit(), u.tracks)
	total := 0.0
	for i, t := range u.tracks {
		ref := u.owners[i]
		ref.publication.tracks[ref.track].gaveUp = t.gaveUp
		if t.wanted || t.gaveUp {
			total += t.rate
		}
	}
	u.queue.sender.Want(volumetric.Bitrate(wantFactor*total), now)
	u.untold = u.untold || changed
	return changed, u.message(now)
}

// list lists all tracks, lower qualities first.
func (u *Uplink) list() {
	u.tracks, u.owners = u.tracks[:0], u.owners[:0]
	most := 0
	for _, p := range u.publications {
		most = max(most, len(p.description.Qualities))
	}
	for quality := range most {
		tiles := 0 // of the publications before p
		for i, p := range u.publications {
			first := tiles
			tiles += len(p.description.Tiles)
			if quality >= len(p.description.Qualities) {
				continue
			}
			for tile := range p.description.Tiles {
				track := p.Track(tile, volumetric.Quality(quality))
				state := &p.tracks[track]
				u.tracks = append(u.tracks, planTrack{
					publication: i,
					tile:        first + tile,
					alternative: p.description.Mode == volumetric.ModeAlternatives,
					rate:        p.rate(track),
					kept:        quality == 0 || p.description.Kind == volumetric.KindAudio,
					wanted:      !state.unwanted,
					gaveUp:      state.gaveUp,
				})
				u.owners = append(u.owners, ownTrack{p, track})
			}
		}
	}
}

// message returns the message about the uplink for the server, nil if none is due.
func (u *Uplink) message(now time.Time) *signal.Uplink {
	estimate := u.Estimate()
	since := now.Sub(u.told)
	moved := math.Abs(float64(estimate-u.toldEstimate)) > estimateChange*float64(u.toldEstimate)
	due := u.untold && since >= gaveUpInterval || moved && since >= estimateInterval
	if !due || len(u.publications) == 0 {
		return nil
	}
	gaveUp := u.GaveUp()
	if len(gaveUp) > signal.MaxGaveUp {
		gaveUp = gaveUp[:signal.MaxGaveUp]
	}
	u.untold, u.told, u.toldEstimate = false, now, estimate
	return &signal.Uplink{Estimate: min(estimate, signal.MaxBitrate), GaveUp: gaveUp}
}

// Resend makes the next message due, because the server may not have received the last one.
func (u *Uplink) Resend() { u.told, u.untold = time.Time{}, true }

// Estimate returns the estimated rate of the uplink, 0 until the server has reported.
func (u *Uplink) Estimate() volumetric.Bitrate { return u.queue.estimate() }

// Path returns the round-trip time of packets, and the share of packets that were lost over the last seconds.
func (u *Uplink) Path() (rtt time.Duration, loss float64) {
	path := u.queue.sender.Stats()
	return path.RTT, path.Loss
}

// GaveUp returns the tracks that are not sent because the uplink cannot carry them.
func (u *Uplink) GaveUp() []signal.OwnTrack {
	var list []signal.OwnTrack
	for _, p := range u.publications {
		for track := range p.tracks {
			if p.tracks[track].gaveUp {
				list = append(list, p.own(track))
			}
		}
	}
	return list
}

// Counts returns the counts since the beginning.
func (u *Uplink) Counts() Counts {
	counts := u.counts
	counts.ProbeBytes += u.queue.probeBytes
	counts.ReportsDropped += u.queue.reportsDropped
	return counts
}
