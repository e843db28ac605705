package egress

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

const (
	// wifi and cellular are the numbers of a laptop's paths.
	wifi, cellular = 0, 1
	// checkInterval, lostChecks, takeoverAfter and returnAfter are those of internal/transport: a pair has failed after
	// lostChecks checks without an answer, another takes over if it has worked for takeoverAfter, and a better one
	// becomes the first path again after returnAfter.
	checkInterval = 250 * time.Millisecond
	lostChecks    = 4
	takeoverAfter = checkInterval
	returnAfter   = 2 * time.Second
	// frameDeadline is the time after its arrival at the server within which a frame must be complete.
	frameDeadline = 150 * time.Millisecond
	// messageSize is the size of a check and of a message with reports or requests.
	messageSize = 110
	checkNumber = 1 << 40
)

// laptop simulates a receiver with a WiFi and a cellular link in virtual time: both directions of each path, the checks
// that choose the first path, reports of arrivals and of paths, and requests for lost packets. The slots carry sound,
// two tiles of the lowest quality, and two tiles of a high quality, which give way to their lowest quality if the
// estimate is too low.
type laptop struct {
	*rig
	peer     *routedPeer
	receiver *Receiver
	links    [redundancy.Paths]struct{ there, back *netem.Link }
	pairs    [redundancy.Paths]pathCheck
	checked  time.Time
	streams  []*received
	sources  []*source
	adapted  time.Time
	// read is the number of packets of the peer that are on the links.
	read       int
	arrived    map[uint64]bool
	recorder   *redundancy.Recorder
	arrivals   *feedback.CongestionRecorder
	codepoints ecn.TwoPaths
	messages   [][]byte
	heard      map[uint64]bool
	all, most  int
}

// pathCheck is the state of a path at the server, by its checks.
type pathCheck struct {
	unanswered      int
	answered, since time.Time
}

func (p *pathCheck) works() bool { return !p.answered.IsZero() && p.unanswered < lostChecks }

// source is a published track.
type source struct {
	*forwardtest.Publisher
	track    *track.Track
	size     int
	interval time.Duration
	next     time.Time
}

// received has the packets that have arrived on one slot.
type received struct {
	slot    *Slot
	outlet  *fakeOutlet
	sources []*source
	chosen  int
	missing *feedback.NACKGenerator
	numbers map[uint16]bool
	begun   map[uint32]time.Time
	frames  map[uint32]map[uint16]bool
	done    map[uint32]time.Time
}

func newLaptop(t *testing.T, mode redundancy.Mode, seed uint64) *laptop {
	t.Helper()
	l := &laptop{rig: newPacedRig(t, pacing.Default, nil), peer: &routedPeer{second: true},
		arrived: map[uint64]bool{}, heard: map[uint64]bool{},
		arrivals: feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, 5)}
	l.peer.reportByStream(true)
	l.peer.rtt = 16 * time.Millisecond
	for i, config := range []netem.Config{wifiLink(), cellularLink()} {
		for n, link := range []**netem.Link{&l.links[i].there, &l.links[i].back} {
			made, err := netem.NewLink(config, 4*seed+uint64(2*i+n), nil)
			if err != nil {
				t.Fatal(err)
			}
			*link = made
		}
		l.pairs[i] = pathCheck{answered: l.now, since: l.now}
	}
	l.receiver = l.engine.NewReceiver(l.peer, time.Hour)
	l.receiver.SetRedundancy(mode)
	l.receiver.Want(12e6)
	i := l.ingress(&fakePeer{})
	random := rand.New(rand.NewPCG(seed, 1))
	l.add(i, volumetric.MIMEOpus, random, 100)
	for range 2 {
		l.add(i, volumetric.MIMEVolumetric, random, 4000)
	}
	for range 2 {
		l.add(i, volumetric.MIMEVolumetric, random, 14_000, 4000)
	}
	l.run()
	return l
}

func wifiLink() netem.Config {
	c := netem.DefaultConfig()
	c.Delay, c.Jitter, c.Loss, c.RateBPS = 8*time.Millisecond, 2*time.Millisecond, 0.005, 40_000_000
	c.QueueDelay = 300 * time.Millisecond
	return c
}

func cellularLink() netem.Config {
	c := netem.DefaultConfig()
	c.Delay, c.Jitter, c.RateBPS = 25*time.Millisecond, 4*time.Millisecond, 12_000_000
	c.QueueDelay = 300 * time.Millisecond
	return c
}

// add publishes a track for each size, of which the last has the lowest quality, and adds a slot for them.
func (l *laptop) add(i *ingress.Ingress, mime string, random *rand.Rand, sizes ...int) {
	n := uint32(len(l.streams) + 1)
	outlet := newFakeOutlet(&l.peer.fakePeer, 1000*n)
	s := &received{outlet: outlet, missing: feedback.NewNACKGenerator(feedback.DefaultConfig().NACK),
		numbers: map[uint16]bool{}, begun: map[uint32]time.Time{}, frames: map[uint32]map[uint16]bool{},
		done: map[uint32]time.Time{}}
	kind, clockRate, interval := volumetric.KindVideo, uint32(90000), frameInterval
	if mime == volumetric.MIMEOpus {
		kind, clockRate, interval = volumetric.KindAudio, 48000, 20*time.Millisecond
	}
	begins := l.now.Add(time.Duration(random.Int64N(int64(interval))))
	for q, size := range sizes {
		made := l.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: clockRate},
			Quality: volumetric.Quality(len(sizes) - 1 - q)})
		ssrc := 10*n + uint32(2*q)
		i.Bind(ssrc, ssrc+1, made)
		s.sources = append(s.sources, &source{Publisher: forwardtest.NewPublisher(l.t, i, ssrc), track: made,
			size: size, interval: interval, next: begins})
	}
	s.slot = l.receiver.AddSlot(routedOutlet{outlet, l.peer}, kind)
	s.slot.Select(s.sources[0].track, uint64(n), l.now)
	l.streams, l.sources = append(l.streams, s), append(l.sources, s.sources...)
}

// impair changes both directions of a path: all packets are lost, or few.
func (l *laptop) impair(path int, dead bool) {
	c := wifiLink()
	if path == cellular {
		c = cellularLink()
	}
	if dead {
		c.Loss = 1
	}
	for _, link := range []*netem.Link{l.links[path].there, l.links[path].back} {
		if err := link.Reconfigure(c, l.now); err != nil {
			l.t.Fatal(err)
		}
	}
}

// step advances the time by a millisecond.
func (l *laptop) step() {
	for _, s := range l.streams {
		l.produce(s)
	}
	l.choose()
	l.adapt()
	l.ticks(time.Millisecond)
	l.carry()
	for path := range l.links {
		for _, p := range l.links[path].there.Deliver(l.now) {
			if p.Number >= checkNumber {
				l.links[path].back.Send(&netem.Packet{Size: messageSize, Number: checkNumber}, l.now)
			} else {
				l.receive(uint8(path), p)
			}
		}
		for _, p := range l.links[path].back.Deliver(l.now) {
			l.hear(path, p.Number)
		}
	}
	l.report()
}

// produce passes the packets that are due to the server.
func (l *laptop) produce(s *received) {
	for _, source := range s.sources {
		if l.now.Before(source.next) {
			continue
		}
		source.next = source.next.Add(source.interval)
		source.Next()
		s.begun[source.Number] = l.now
		if s.slot.kind == volumetric.KindAudio {
			source.Send(l.now, source.Packet(binary.BigEndian.AppendUint32(make([]byte, 96), source.Number), true))
		} else {
			source.Send(l.now, source.Packets(source.size)...)
		}
	}
}

// choose checks both paths and chooses the first one, as internal/transport does.
func (l *laptop) choose() {
	if l.now.Sub(l.checked) < checkInterval {
		return
	}
	l.checked = l.now
	l.route()
	for path := range l.pairs {
		l.pairs[path].unanswered++
		l.links[path].there.Send(&netem.Packet{Size: messageSize, Number: checkNumber}, l.now)
	}
}

func (l *laptop) route() {
	first, other := &l.pairs[l.peer.primary], &l.pairs[1-l.peer.primary]
	worked := l.now.Sub(other.since)
	if other.works() && (!first.works() && worked >= takeoverAfter ||
		first.works() && l.peer.primary == cellular && worked >= returnAfter) {
		l.peer.primary = 1 - l.peer.primary
		first, other = other, first
	}
	l.peer.second = first.works() && other.works()
}

// adapt lets the tiles of high quality give way, and return after a second in which the estimate permits.
func (l *laptop) adapt() {
	path := l.receiver.Path()
	if l.now.Sub(l.adapted) < 100*time.Millisecond || !path.Known {
		return
	}
	const highRate, lowRate, fixed = 14_000 * 8 * 30 * 1.08, 4000 * 8 * 30 * 1.08, 2*4000*8*30*1.08 + 90_000
	for n, s := range l.streams {
		if len(s.sources) == 1 {
			continue
		}
		others := 0.0
		for m := 3; m < n; m++ {
			others += []float64{highRate, lowRate}[l.streams[m].chosen]
		}
		fits := 0.9*float64(path.Estimate) >= fixed+others+highRate+lowRate*float64(len(l.streams)-1-n)
		switch {
		case !fits && s.chosen == 0:
			s.chosen, l.adapted = 1, l.now
		case fits && s.chosen == 1 && l.now.Sub(l.adapted) >= time.Second:
			s.chosen, l.adapted = 0, l.now
		default:
			continue
		}
		s.slot.Select(s.sources[s.chosen].track, uint64(n+1), l.now)
	}
}

// carry puts the packets that the server has sent on the links.
func (l *laptop) carry() {
	for ; l.read < len(l.peer.sent); l.read++ {
		p := &l.peer.sent[l.read]
		size, times := congestion.PacketOverhead+len(p.body), 1
		if p.doubled {
			times = 2
		}
		for range times {
			l.most, l.all = l.most+size, l.all+size
			l.links[l.peer.primary].there.Send(
				&netem.Packet{Size: size, ECN: l.peer.codepoint, Number: uint64(l.read)}, l.now)
		}
		if p.copied && l.peer.second {
			l.all += size
			l.links[1-l.peer.primary].there.Send(&netem.Packet{Size: size, Number: uint64(l.read)}, l.now)
		}
	}
}

// receive processes an arrival at the receiver.
func (l *laptop) receive(path uint8, sent *netem.Packet) {
	p, at := l.peer.sent[sent.Number], sent.Arrival
	if l.recorder == nil && path == cellular {
		l.recorder = redundancy.NewRecorder(1, l.now)
	}
	if l.recorder != nil {
		l.recorder.Arrived(path, p.ssrc, p.sequence, at)
	}
	if l.arrived[sent.Number] {
		return
	}
	l.arrived[sent.Number] = true
	l.arrivals.Received(p.ssrc, p.sequence, sent.Size, l.codepoints.Reported(path, sent.ECN), at)
	for _, s := range l.streams {
		switch p.ssrc {
		case s.outlet.ssrc:
			s.receive(l, p.sequence, p.body, at)
		case s.outlet.rtx:
			s.receive(l, binary.BigEndian.Uint16(p.body), p.body[2:], at)
		}
	}
}

func (s *received) receive(l *laptop, number uint16, body []byte, at time.Time) {
	if s.numbers[number] {
		return
	}
	s.numbers[number] = true
	if s.slot.kind == volumetric.KindAudio {
		s.done[binary.BigEndian.Uint32(body[96:])] = at
		return
	}
	d := descriptorOf(l.t, rtp.Packet{Payload: body})
	s.missing.Received(int64(number), at)
	s.missing.Expect(int64(number)-int64(d.Index)+int64(d.Packets())-1, at)
	if s.frames[d.Frame] == nil {
		s.frames[d.Frame] = map[uint16]bool{}
	}
	s.frames[d.Frame][d.Index] = true
	if len(s.frames[d.Frame]) == d.Packets() {
		s.done[d.Frame] = at
	}
}

// report sends the receiver's reports and requests that are due.
func (l *laptop) report() {
	for _, report := range streamReports(l.arrivals, l.now) {
		l.tell(report)
	}
	if l.recorder != nil {
		if report := l.recorder.AppendReport(nil, l.now); report != nil {
			l.tell(report)
		}
	}
	for _, s := range l.streams {
		asked, _ := s.missing.Due(l.now, 16*time.Millisecond, nil, nil)
		if len(asked) == 0 {
			continue
		}
		numbers := make([]uint16, len(asked))
		for i, n := range asked {
			numbers[i] = uint16(n)
		}
		request, err := (&rtcp.TransportLayerNack{MediaSSRC: s.outlet.ssrc,
			Nacks: rtcp.NackPairsFromSequenceNumbers(numbers)}).Marshal()
		if err != nil {
			l.t.Fatal(err)
		}
		l.tell(request)
	}
}

// tell sends a message to the server on all paths.
func (l *laptop) tell(message []byte) {
	l.messages = append(l.messages, message)
	for path := range l.links {
		if path == wifi || l.recorder != nil {
			l.links[path].back.Send(&netem.Packet{Size: messageSize, Number: uint64(len(l.messages) - 1)}, l.now)
		}
	}
}

// hear processes a message at the server, or the answer to a check.
func (l *laptop) hear(path int, number uint64) {
	if number >= checkNumber {
		pair := &l.pairs[path]
		if !pair.works() {
			pair.since = l.now
		}
		pair.answered, pair.unanswered = l.now, 0
		if !l.peer.second {
			l.route()
		}
		return
	}
	if !l.heard[number] {
		l.heard[number] = true
		l.receiver.RTCP(l.messages[number], l.now)
	}
}

// lost returns the frames that begun from one time to another and were not complete in time, and the longest time
// between two that were.
func (s *received) lost(from, to time.Time) (lost []uint32, frames int, gap time.Duration) {
	var last time.Time
	for n := uint32(1); ; n++ {
		begun, there := s.begun[n]
		if !there || !begun.Before(to) {
			return lost, frames, gap
		}
		if begun.Before(from) {
			continue
		}
		frames++
		done, complete := s.done[n]
		if !complete || done.Sub(begun) > frameDeadline {
			lost = append(lost, n)
			continue
		}
		if !last.IsZero() {
			gap = max(gap, done.Sub(last))
		}
		if done.After(last) {
			last = done
		}
	}
}

// outagesOfWiFi are the times at which the WiFi loses all packets, in both directions.
var outagesOfWiFi = [][2]time.Duration{
	{10 * time.Second, 11 * time.Second},
	{18 * time.Second, 18300 * time.Millisecond},
	{18450 * time.Millisecond, 18700 * time.Millisecond},
	{24 * time.Second, 27 * time.Second},
	{34 * time.Second, 35 * time.Second},
}

// TestOutagesOfWiFi interrupts the WiFi of a laptop, for a second and for other times, and checks that no sound and no
// frame of the lowest quality is lost.
func TestOutagesOfWiFi(t *testing.T) {
	race.SkipSequential(t)
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			l := newLaptop(t, redundancy.Auto, seed)
			begin := l.now
			settled := begin.Add(5 * time.Second)
			for l.now.Before(begin.Add(40 * time.Second)) {
				for _, o := range outagesOfWiFi {
					switch l.now.Sub(begin) {
					case o[0]:
						l.impair(wifi, true)
					case o[1]:
						l.impair(wifi, false)
					}
				}
				l.step()
			}
			end := l.now.Add(-frameDeadline)
			l.verify(begin, settled, end)
		})
	}
}

// verify checks the sound and the tiles of the lowest quality.
func (l *laptop) verify(begin, from, to time.Time) {
	l.t.Helper()
	for n, s := range l.streams {
		lost, frames, gap := s.lost(from, to)
		at := make([]time.Duration, len(lost))
		for i, number := range lost {
			at[i] = s.begun[number].Sub(begin)
		}
		l.t.Logf("slot %d: %d of %d lost, longest gap %v, lost at %v", n, len(lost), frames, gap, at)
		if n <= 2 && (len(lost) > 0 || gap > 100*time.Millisecond) {
			l.t.Errorf("slot %d: %d of %d are lost, longest gap %v, expected none and 100 ms at most", n, len(lost),
				frames, gap)
		}
	}
	stats := l.engine.Stats()
	l.t.Logf("cost %.3f, %d outages, dropped: %d of the budget, %d late, %d expired, estimate %v, L4S %v, fallbacks %v",
		float64(l.all)/float64(l.most), stats.Outages, stats.DroppedBudget, stats.DroppedLate, stats.DroppedExpired,
		l.receiver.Path().Estimate, l.receiver.Path().L4S, stats.ECNFallbacks)
}
