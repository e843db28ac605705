// Package downlink receives the streams of the server. It reassembles frames, requests missing packets, reports
// arrivals and reception, and counts frames by tile.
//
// A Receiver is pure: it has no goroutine, no socket and no timer. Time is an argument of the methods. The owner
// serialises all calls.
package downlink

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// settleInterval is the time between two passes that expire frames. Counts may therefore be updated a little later than
// the deadlines of their frames. The cost of a pass grows with the number of streams.
const settleInterval = 25 * time.Millisecond

// A step that comes later than stallTime after the step before follows a stall of the process. The packets that arrived
// meanwhile wait in the socket, and no frame expires and nothing is requested for backlogTime, in which the packets are
// read. Steps are 5 ms apart. A stall in that time begins it again: once, and then if the stall is more than twice as
// long as those before. On a machine that stalls always, frames therefore expire, and packets are requested at every
// third step.
const (
	stallTime   = 25 * time.Millisecond
	backlogTime = 25 * time.Millisecond
)

// backlog is the time in which the packets that have arrived during stalls of the process are read.
type backlog struct {
	// stepped is the time of the last step.
	stepped time.Time
	// until is the end of the time, zero if no packets wait.
	until time.Time
	// stalls is the number of stalls that have begun the time, longest is the longest of them.
	stalls  int
	longest time.Duration
}

// waits records a step, and reports whether packets may wait to be read.
func (b *backlog) waits(now time.Time) bool {
	stall := now.Sub(b.stepped)
	late := !b.stepped.IsZero() && stall > stallTime
	b.stepped = now
	if late && (b.stalls < 2 || stall > 2*b.longest) {
		b.until, b.stalls, b.longest = now.Add(backlogTime), b.stalls+1, max(b.longest, stall)
	}
	if now.Before(b.until) {
		return true
	}
	*b = backlog{stepped: now}
	return false
}

// Config limits the reception of frames.
type Config struct {
	// Deadline is the time after its first packet for which a frame is repaired. 0 follows the round-trip time.
	Deadline time.Duration
	// FrameBytes bounds one frame. 0 is payload.DefaultConfig.
	FrameBytes int
	// Keys decrypts encrypted publications. nil refuses them.
	Keys *e2ee.Keys
}

// Receiver receives all streams of one peer connection at a time. Counts outlive a connection.
type Receiver struct {
	config Config
	// ssrc is the sender of the RTCP packets.
	ssrc  uint32
	clock *hostclock.Clock
	nack  feedback.NACKConfig

	arrivals *feedback.ArrivalRecorder
	// codepoints counts the packets by ecn.Codepoint.
	codepoints [ecn.CE + 1]uint64
	paths      paths
	// extension identifies the header extension with the transport-wide number, 0 for none.
	extension uint8
	// streams are keyed by mid, and by the SSRCs of media and retransmissions.
	streams      map[string]*stream
	streamBySSRC map[uint32]*stream
	tiles        *tiles
	opening      *opening

	backlog backlog
	settled time.Time
	// late is the extra delay of packets when the counts were last updated.
	late time.Duration
	// The slices below are reused by the next step.
	ask, lost []int64
	givenUp   []payload.GivenUp
	blocks    []rtcp.ReceptionReport
}

// New returns a receiver without streams. ssrc is the sender of its RTCP packets. clock turns arrival times into the
// server's time.
func New(config Config, ssrc uint32, clock *hostclock.Clock) *Receiver {
	r := &Receiver{config: config, ssrc: ssrc, clock: clock, nack: feedback.DefaultConfig().NACK,
		opening: newOpening(config.Keys), tiles: new(tiles)}
	r.Reset()
	return r
}

// NewAfter returns a receiver for the connection to another server. Until End of the former receiver, both deliver
// frames, and each frame is delivered once. The counts are those of both.
func NewAfter(former *Receiver, ssrc uint32, clock *hostclock.Clock) *Receiver {
	r := New(former.config, ssrc, clock)
	r.opening, r.tiles, r.codepoints = former.opening, former.tiles, former.codepoints
	r.tiles.shared = true
	return r
}

// repeatTime is the time after End for which frames may come again: the longest deadline of a frame.
const repeatTime = 2 * time.Second

// End ends a receiver whose tiles another receiver has.
func (r *Receiver) End(now time.Time) {
	r.tiles.shared, r.tiles.until = false, now.Add(repeatTime)
	r.Reset()
}

// Restart records that a publication has begun or ended: later frames of the same name may have other numbers.
func (r *Receiver) Restart(publication volumetric.PublicationRef) {
	for track, t := range r.tiles.byName {
		if track.PublicationRef == publication {
			t.delivered, t.captured, t.renewed = delivered{}, time.Time{}, true
		}
	}
}

// Covers reports whether every tile that a former receiver has delivered within a second also comes here.
func (r *Receiver) Covers(former *Receiver, now time.Time) bool {
	come := make(map[*tile]bool, len(r.streams))
	for _, s := range r.streams {
		if !s.delivered.IsZero() {
			come[s.tile] = true
		}
	}
	for _, s := range former.streams {
		if s.tile != nil && now.Sub(s.delivered) < time.Second && !come[s.tile] {
			return false
		}
	}
	return true
}

// Reset removes the streams: the peer connection is replaced. The counts of the tiles remain.
func (r *Receiver) Reset() {
	for _, s := range r.streams {
		if s.tile != nil {
			s.leave()
			s.tile.source = nil
		}
	}
	r.streams, r.streamBySSRC = make(map[string]*stream), make(map[uint32]*stream)
	r.arrivals, r.extension = feedback.NewArrivalRecorder(feedback.DefaultConfig().Transport, r.ssrc), 0
	r.paths.recorder = nil
}

// Report sets the negotiated form of reports of arrivals: by SSRC and sequence number (RFC 8888), or by the
// transport-wide number in the header extension with the given identifier, 0 for none.
func (r *Receiver) Report(extension uint8, byStream bool) {
	r.extension = extension
	r.arrivals.ReportByStream(byStream)
}

// AddStream adds the stream of a slot, unless there is one already. ssrc is 0 if the line is not negotiated.
// retransmission is the SSRC of retransmissions, 0 for none.
func (r *Receiver) AddStream(mid string, kind volumetric.Kind, ssrc, retransmission uint32) {
	if r.streams[mid] != nil || ssrc == 0 {
		return
	}
	s := newStream(kind, ssrc, retransmission, r.config, r.opening, r.tiles)
	r.streams[mid] = s
	r.streamBySSRC[ssrc] = s
	if retransmission != 0 {
		r.streamBySSRC[retransmission] = s
	}
}

// Assign begins an assignment of a slot, and reports whether the slot is known. publication is nil for none. The
// packets of an assignment follow its acknowledgement, which leaves after now, by a round trip. On a slot that was in
// use, packets are those of former assignments for half of the shortest round trip. The other half is left for a path
// that has become shorter.
func (r *Receiver) Assign(a signal.Assignment, publication *volumetric.Publication, now time.Time) bool {
	s := r.streams[a.MID]
	if s == nil {
		return false
	}
	if s.generation == a.Generation {
		return true
	}
	var opens time.Time
	if guard := r.clock.Shortest() / 2; guard > 0 && s.generation > 0 {
		opens = now.Add(guard)
	}
	if a.Track == nil || publication == nil {
		s.assign(a.Generation, nil, volumetric.Publication{}, nil, opens)
		return true
	}
	track := volumetric.TrackRef{TileRef: *a.Track, Quality: volumetric.QualityOff}
	if a.Quality != nil {
		track.Quality = *a.Quality
	}
	s.assign(a.Generation, &track, *publication, r.tiles.assign(track, r.streams), opens)
	return true
}

// KeyFrameRequests returns requests for key frames on the slots that carry a tile.
func (r *Receiver) KeyFrameRequests(tile volumetric.TileRef) (packets []rtcp.Packet) {
	for _, s := range r.streams {
		if s.track != nil && s.track.TileRef == tile {
			packets = append(packets, &rtcp.PictureLossIndication{SenderSSRC: r.ssrc, MediaSSRC: s.ssrc})
		}
	}
	return packets
}

// Switched counts a change of the quality that a slot carries. Switched returns the slot's track, and reports whether
// the change is about the present assignment.
func (r *Receiver) Switched(change signal.SlotQuality, now time.Time) (track volumetric.TrackRef, ok bool) {
	s := r.streams[change.MID]
	if s == nil || s.track == nil || s.generation != change.Generation {
		return track, false
	}
	s.tile.ledger.switched(change.Quality == volumetric.QualityOff, now)
	if off := change.OffFrames; off != nil {
		s.tile.ledger.wasOff(s.tile.extend(off.First), int64(off.Count))
	}
	return *s.track, true
}

// Dropped counts frames that the server reported as dropped.
func (r *Receiver) Dropped(drops signal.SlotDrops) {
	if s := r.streams[drops.MID]; s != nil && s.tile != nil && s.generation == drops.Generation {
		s.tile.ledger.dropped(drops.Frames)
	}
}

// Arrived records the arrival of an RTP packet on a path with a codepoint, for the server's congestion control. No
// other path has delivered the packet before. The packet reached this host at the given time.
func (r *Receiver) Arrived(ssrc uint32, packet []byte, path uint8, codepoint ecn.Codepoint, at time.Time) {
	r.codepoints[codepoint]++
	r.arrivals.Received(ssrc, packet, r.extension, r.paths.codepoints.Reported(path, codepoint), at)
	r.arrivedOn(path, ssrc, packet, at)
}

// Codepoints returns the numbers of RTP packets by ecn.Codepoint, those of earlier peer connections included.
func (r *Receiver) Codepoints() [ecn.CE + 1]uint64 { return r.codepoints }

// RTP processes an RTP packet that arrived at now by the system's clock. The packet may be changed.
func (r *Receiver) RTP(ssrc uint32, packet []byte, now time.Time, stamp frametrace.KernelStamp) Arrival {
	s := r.streamBySSRC[ssrc]
	if s == nil {
		return Arrival{}
	}
	if ssrc == s.retransmission {
		n, err := feedback.UnpackRTX(packet, packet, s.ssrc, 0)
		if err != nil {
			return Arrival{}
		}
		packet = packet[:n]
	}
	n, err := s.header.Unmarshal(packet)
	if err != nil {
		return Arrival{}
	}
	s.stamps.Set(stamp)
	return s.take(&s.header, unpadded(&s.header, packet[n:]), ssrc == s.ssrc, now, r.clock)
}

// unpadded removes the padding of a packet. Nothing remains of a packet that claims more padding than there is.
func unpadded(header *rtp.Header, data []byte) []byte {
	if !header.Padding || len(data) == 0 {
		return data
	}
	return data[:max(0, len(data)-int(data[len(data)-1]))]
}

// SenderReport processes the server's sender report about a stream.
func (r *Receiver) SenderReport(report *rtcp.SenderReport, now time.Time) {
	if s := r.streamBySSRC[report.SSRC]; s != nil && s.captures != nil {
		s.captures.SenderReport(report)
		s.reception.SenderReport(report.NTPTime, now)
	}
}

// Step appends the requests for missing packets that are due, and expires frames after their deadline. After a stall of
// the process, Step waits until packets that have arrived meanwhile are read.
func (r *Receiver) Step(packets []rtcp.Packet, now time.Time, rtt time.Duration) []rtcp.Packet {
	if r.backlog.waits(now) {
		return packets
	}
	settle := now.Sub(r.settled) >= settleInterval
	if settle {
		r.settled, r.late = now, r.lateness()
	}
	_, deadline := r.nack.Repair(rtt, r.late)
	if r.config.Deadline > 0 {
		deadline = r.config.Deadline
	}
	for _, s := range r.streams {
		r.ask = r.ask[:0]
		if at := s.nacks.Next(); s.kind != volumetric.KindAudio && !at.IsZero() && !now.Before(at) {
			s.nacks.Late(r.late)
			r.ask, r.lost = s.nacks.Due(now, rtt, r.ask, r.lost[:0])
		}
		if len(r.ask) > 0 {
			packets = feedback.AppendNACKs(packets, r.ssrc, s.ssrc, r.ask)
		}
		if settle {
			s.frames.SetDeadline(deadline)
			r.givenUp = s.expire(now, deadline, r.givenUp)
		}
	}
	if settle {
		r.tiles.settle(now, deadline)
	}
	return packets
}

// lateness returns how much later packets arrive than before.
func (r *Receiver) lateness() time.Duration {
	longest := time.Duration(0)
	for _, s := range r.streams {
		if s.kind != volumetric.KindAudio && s.tile != nil && s.lateness != nil {
			longest = max(longest, s.lateness.Longest())
		}
	}
	return longest
}

// AppendReceiverReports appends the receiver reports of all streams.
func (r *Receiver) AppendReceiverReports(packets []rtcp.Packet, now time.Time) []rtcp.Packet {
	r.blocks = r.blocks[:0]
	for _, s := range r.streams {
		if s.reception == nil {
			continue
		}
		if block, ok := s.reception.Report(s.ssrc, now); ok {
			r.blocks = append(r.blocks, block)
		}
	}
	return feedback.AppendReceiverReports(packets, r.ssrc, r.blocks)
}

// ArrivalsDue returns the time of the next report of arrivals, or the zero time if there is nothing to report.
func (r *Receiver) ArrivalsDue() time.Time { return r.arrivals.Next() }

// AppendArrivals appends one report of arrivals, if one is due. The report is a separate compound packet.
func (r *Receiver) AppendArrivals(dst []byte, now time.Time) []byte {
	return r.arrivals.AppendReports(dst, now)
}
