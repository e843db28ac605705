package egress

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// hostileCache is the limit of the cache of one track in FuzzIngress, in bytes.
const hostileCache = 1 << 20

// mostSteps is the maximum number of steps of an input that are executed.
const mostSteps = 200

// FuzzIngress lets a publisher and a receiver act arbitrarily, while another publisher sends frames to another receiver
// through the same writer. An input is a sequence of steps: a byte for the action, and the bytes that the step
// consumes. The invariants:
//   - Each forwarded packet has the payload of a packet that arrived on one of the tracks, and no number is sent twice.
//   - Each retransmission is of a packet that arrived. If the packet was forwarded, timestamp and marker are the same.
//   - Each packet that arrives has exactly one outcome in the counters.
//   - The requests to the publisher stay within its budget, and request a key frame of one track at most once per
//     KeyFrameInterval.
//   - The caches stay within their limit, and are empty once the tracks are closed.
//   - The other receiver has every frame of the other publisher, in order.
func FuzzIngress(f *testing.F) {
	f.Add(fuzzTranscript(f))
	f.Add([]byte{stepMedia, 0, 1, 0x80, stepReceiver, 0, 2, 0x80, 200})
	for _, seed := range hostileSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		h := newHostile(t, input)
		for n := 0; len(h.input) > 0 && n < mostSteps; n++ {
			h.step()
			h.settle()
			if n%8 == 0 {
				h.innocent()
			}
		}
		h.innocent()
		h.r.pass(HousekeepingInterval)
		h.check()
	})
}

// hostile is the hostile publisher and receiver, and the innocent pair.
type hostile struct {
	t     *testing.T
	r     *rig
	began time.Time
	input []byte
	// ingress is the hostile publisher's, with a track of each kind. given are the payloads that arrived on each track.
	ingress *ingress.Ingress
	tracks  []*publisher
	given   []map[string]bool
	// held are packets that have not arrived, by track. latest is the last packet that has.
	held   [][][]byte
	latest [][]byte
	// receiver is the hostile receiver, with a slot for each track.
	receiver *subscriber
	outlets  []*fakeOutlet
	slots    []*Slot
	// calls counts RTP packets that arrived, asked the requests to the publisher.
	calls  uint64
	asked  int
	keyAsk map[uint32]time.Time

	other    *publisher
	others   *subscriber
	expected [][]byte
}

// hostileCodecs are the codecs of the tracks.
var hostileCodecs = []string{volumetric.MIMEVolumetric, volumetric.MIMEH264, volumetric.MIMEOpus}

func newHostile(t *testing.T, input []byte) *hostile {
	r := newRig(t, func(c *rigConfig) { c.TrackCacheBytes = hostileCache })
	h := &hostile{t: t, r: r, began: r.now, input: input, keyAsk: make(map[uint32]time.Time)}
	h.other = r.publish(r.ingress(&fakePeer{}), 500, volumetric.MIMEVolumetric)
	h.others = r.subscribe(2000, volumetric.KindVideo)
	h.others.slot.Select(h.other.track, 9, r.now)
	h.ingress = r.ingress(&fakePeer{extension: testExtension})
	h.receiver = &subscriber{peer: &fakePeer{}}
	h.receiver.receiver = r.engine.NewReceiver(h.receiver.peer, time.Hour)
	for n, mime := range hostileCodecs {
		p := r.publish(h.ingress, uint32(10*(n+1)), mime)
		p.Extension = testExtension
		kind := volumetric.KindVideo
		if mime == volumetric.MIMEOpus {
			kind = volumetric.KindAudio
		}
		outlet := newFakeOutlet(h.receiver.peer, uint32(1000+10*n))
		slot := h.receiver.receiver.AddSlot(outlet, kind)
		slot.Select(p.track, uint64(n+1), r.now)
		h.tracks, h.outlets, h.slots = append(h.tracks, p), append(h.outlets, outlet), append(h.slots, slot)
		h.given, h.held, h.latest = append(h.given, map[string]bool{}), append(h.held, nil), append(h.latest, nil)
	}
	h.tracks[0].Parity = 1
	h.receiver.peer.agree(testExtension)
	r.run()
	return h
}

// take consumes a byte of the input, 0 at the end.
func (h *hostile) take() byte {
	if len(h.input) == 0 {
		return 0
	}
	b := h.input[0]
	h.input = h.input[1:]
	return b
}

// raw consumes a number in two bytes and that many bytes of the input.
func (h *hostile) raw() []byte {
	size := int(binary.BigEndian.Uint16([]byte{h.take(), h.take()}))
	size = min(size, len(h.input))
	data := h.input[:size]
	h.input = h.input[size:]
	return data
}

// The steps. The steps of media and repairs have one value per track.
const (
	stepMedia       = 0 // any bytes as packets of track 0 to 2
	stepRepair      = 3 // any bytes as packets of their retransmissions
	stepReceiver    = 6 // any bytes as RTCP of the receiver
	stepPublisher   = 7 // any bytes as RTCP of the publisher
	stepFrame       = 8 // a frame without some packets, which are held
	stepHeld        = 9 // the held packets, late or as retransmissions
	stepCorrupted   = 10
	stepJump        = 11
	stepAsk         = 12
	stepSelect      = 13
	stepWait        = 14
	stepReplay      = 15
	stepBind        = 16
	stepLong        = 17
	stepKeyFrame    = 18
	stepsOfHostiles = 19
)

// step executes one step.
func (h *hostile) step() {
	kind := int(h.take()) % stepsOfHostiles
	switch kind {
	case stepMedia, stepMedia + 1, stepMedia + 2:
		h.come(kind-stepMedia, h.raw())
	case stepRepair, stepRepair + 1, stepRepair + 2:
		h.repaired(kind-stepRepair, h.raw())
	case stepReceiver:
		h.receiver.receiver.RTCP(h.raw(), h.r.now)
	case stepPublisher:
		h.ingress.RTCP(h.raw(), h.r.now)
	case stepFrame:
		h.frame(int(h.take()), h.take(), h.take())
	case stepHeld:
		track, asRepair := int(h.take()), h.take()
		n := track % len(h.tracks)
		for _, packet := range h.held[n] {
			if asRepair%2 == 1 {
				h.repaired(n, h.tracks[n].Retransmission(packet))
			} else {
				h.come(n, packet)
			}
		}
		h.held[n] = nil
	case stepCorrupted:
		n := int(h.take()) % len(h.tracks)
		at, value := int(h.take())<<2|int(h.take())&3, h.take()
		if packet := slices.Clone(h.latest[n]); len(packet) > 0 {
			packet[at%len(packet)] ^= value
			h.come(n, packet)
		}
	case stepJump:
		p := h.tracks[int(h.take())%len(h.tracks)]
		by := binary.BigEndian.Uint16([]byte{h.take(), h.take()})
		switch h.take() % 3 {
		case 0:
			p.Sequence += by
		case 1:
			p.Number += uint32(by) << 8
		default:
			p.Timestamp += uint32(by) << 12
		}
	case stepAsk:
		h.ask(int(h.take()), h.take(), binary.BigEndian.Uint16([]byte{h.take(), h.take()}))
	case stepSelect:
		slot, track := h.slots[int(h.take())%len(h.slots)], int(h.take())
		if track%4 == 3 {
			slot.Select(nil, 0, h.r.now)
		} else {
			slot.Select(h.tracks[track%4].track, uint64(h.take()%3), h.r.now)
		}
	case stepWait:
		h.r.now = h.r.now.Add(time.Duration(h.take()) * 4 * time.Millisecond)
	case stepReplay:
		n := int(h.take()) % len(h.tracks)
		for range h.take() % 16 {
			h.come(n, h.latest[n])
		}
	case stepBind:
		p := h.tracks[int(h.take())%len(h.tracks)]
		h.ingress.Unbind(p.track)
		h.ingress.Bind(p.SSRC, p.RTX, p.track)
	case stepLong:
		n := int(h.take()) % len(h.tracks)
		p := h.tracks[n]
		p.Next()
		h.come(n, p.Packet(bytes.Repeat([]byte{h.take()}, packetlog.MaxPayload-2+int(h.take())), true))
	case stepKeyFrame:
		outlet := h.outlets[int(h.take())%len(h.outlets)]
		h.receiver.rtcp(h.t, h.r.now, &rtcp.PictureLossIndication{MediaSSRC: outlet.ssrc})
	}
}

// The bounds of the requests of an ingress, and of the original packet of a retransmission.
const (
	requestRate  = 500
	requestBurst = 4096
	maxOriginal  = packetlog.MaxPayload + 512
)

// settle runs everything that is due after a step.
func (h *hostile) settle() {
	h.r.now = h.r.now.Add(time.Millisecond)
	h.r.run()
	packets, _ := step(h.ingress, h.r.now)
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.TransportLayerNack:
			for _, pair := range p.Nacks {
				h.asked += len(pair.PacketList())
			}
		case *rtcp.PictureLossIndication:
			last, before := h.keyAsk[p.MediaSSRC]
			if since := h.r.now.Sub(last); before && since < h.r.engine.cfg.KeyFrameInterval {
				h.t.Fatalf("a key frame of stream %d was asked for %v after the last request", p.MediaSSRC, since)
			}
			h.keyAsk[p.MediaSSRC] = h.r.now
		}
	}
	budget := requestBurst + int(h.calls) + int(h.r.now.Sub(h.began).Seconds()*requestRate) + 1
	if h.asked > budget {
		h.t.Fatalf("the publisher was asked for %d packets after %d, expected at most %d", h.asked, h.calls, budget)
	}
	if got := h.r.engine.Stats().CacheBytes; got > int64(len(h.tracks)+1)*hostileCache {
		h.t.Fatalf("the caches hold %d bytes, expected at most %d", got, int64(len(h.tracks)+1)*hostileCache)
	}
}

// come delivers bytes as a packet of a track.
func (h *hostile) come(n int, packet []byte) {
	var p rtp.Packet
	if p.Unmarshal(packet) == nil {
		h.given[n][string(p.Payload)] = true
	}
	h.calls++
	h.ingress.RTP(h.tracks[n].SSRC, packet, forwardtest.InfoAt(h.r.now))
	h.ingress.Flush()
}

// repaired delivers bytes as a packet of a track's retransmissions.
func (h *hostile) repaired(n int, packet []byte) {
	var original [maxOriginal]byte
	var p rtp.Packet
	if len(packet) <= maxOriginal {
		size, err := feedback.UnpackRTX(original[:], packet, h.tracks[n].SSRC, 0)
		if err == nil && p.Unmarshal(original[:size]) == nil {
			h.given[n][string(p.Payload)] = true
		}
	}
	h.calls++
	h.ingress.RTP(h.tracks[n].RTX, packet, forwardtest.InfoAt(h.r.now))
	h.ingress.Flush()
}

// frame sends the next frame of a track, without the packets in a mask.
func (h *hostile) frame(track int, size, lost byte) {
	n := track % len(h.tracks)
	p := h.tracks[n]
	p.Next()
	var packets [][]byte
	switch hostileCodecs[n] {
	case volumetric.MIMEVolumetric:
		packets = p.Packets(1 + 64*int(size))
	case volumetric.MIMEH264:
		packets = [][]byte{p.Packet(h264Key, false), p.Packet(append(slices.Clone(h264Delta), size), true)}
	default:
		packets = [][]byte{p.Packet([]byte{size, lost, byte(p.Number)}, false)}
	}
	for i, packet := range packets {
		if lost>>(i%8)&1 == 1 {
			h.held[n] = append(h.held[n], packet)
			continue
		}
		h.latest[n] = packet
		h.come(n, packet)
	}
}

// ask makes the receiver request a number of a slot, and the numbers after it in a mask.
func (h *hostile) ask(slot int, back byte, mask uint16) {
	outlet := h.outlets[slot%len(h.outlets)]
	sent := outlet.sent()
	number := uint16(back) << 8
	if len(sent) > 0 {
		number = sent[max(0, len(sent)-1-int(back))].SequenceNumber
	}
	h.receiver.rtcp(h.t, h.r.now, &rtcp.TransportLayerNack{
		MediaSSRC: outlet.ssrc, Nacks: []rtcp.NackPair{{PacketID: number, LostPackets: rtcp.PacketBitmap(mask)}},
	})
}

// innocent sends a frame of the innocent publisher.
func (h *hostile) innocent() {
	h.other.Next()
	packets := h.other.Packets(2500)
	for _, packet := range packets {
		h.expected = append(h.expected, packet[12:])
	}
	h.other.Send(h.r.now, packets...)
	h.r.run()
}

// check fails the test if an invariant does not hold at the end.
func (h *hostile) check() {
	h.t.Helper()
	given := map[string]bool{}
	for _, payloads := range h.given {
		for payload := range payloads {
			given[payload] = true
		}
	}
	for _, outlet := range h.outlets {
		h.checkSlot(outlet, given)
	}
	h.checkOutcomes()
	got := h.others.outlet.sent()
	if len(got) != len(h.expected) {
		h.t.Fatalf("the other receiver has %d packets, expected %d", len(got), len(h.expected))
	}
	for n, packet := range got {
		if !bytes.Equal(packet.Payload, h.expected[n]) {
			h.t.Fatalf("packet %d of the other receiver is not as it was sent", n)
		}
	}
	checkContinuous(h.t, got)
	for _, p := range append(h.tracks, h.other) {
		p.track.Close()
	}
	h.r.run()
	held, reserved := h.r.engine.Stats().CacheBytes, h.r.engine.budget.Used()
	if held != 0 || reserved != 0 {
		h.t.Fatalf("the caches of closed tracks hold %d bytes, and have reserved %d", held, reserved)
	}
}

// checkSlot checks the packets that a slot has sent. Numbers of 16 bits repeat after 65,536 packets.
func (h *hostile) checkSlot(outlet *fakeOutlet, given map[string]bool) {
	h.t.Helper()
	sent, extended := map[uint16][]rtp.Packet{}, map[int64]bool{}
	highest := int64(0)
	for n, p := range outlet.sent() {
		if n == 0 {
			highest = int64(p.SequenceNumber)
		}
		number := highest + int64(int16(p.SequenceNumber-uint16(highest)))
		highest = max(highest, number)
		if extended[number] {
			h.t.Fatalf("number %d was sent twice", p.SequenceNumber)
		}
		if !given[string(p.Payload)] {
			h.t.Fatalf("packet %d has a payload of %d bytes that did not come", p.SequenceNumber, len(p.Payload))
		}
		extended[number] = true
		sent[p.SequenceNumber] = append(sent[p.SequenceNumber], p)
	}
	for _, p := range outlet.repaired() {
		if len(p.Payload) < 2 {
			h.t.Fatalf("a retransmission has %d bytes", len(p.Payload))
		}
		originals := sent[binary.BigEndian.Uint16(p.Payload)]
		same := slices.ContainsFunc(originals, func(o rtp.Packet) bool {
			return bytes.Equal(p.Payload[2:], o.Payload) && p.Timestamp == o.Timestamp && p.Marker == o.Marker
		})
		// The receiver may request packets that were not sent in time, too.
		if len(originals) > 0 && !same || len(originals) == 0 && !given[string(p.Payload[2:])] {
			h.t.Fatalf("retransmission %d of %d bytes is not as the packet was sent, or did not come",
				p.SequenceNumber, len(p.Payload))
		}
	}
}

// checkOutcomes compares the counters with the number of packets that arrived.
func (h *hostile) checkOutcomes() {
	h.t.Helper()
	s := h.r.engine.Stats()
	received := &s.Received
	outcomes := received.Media.Packets + received.Parity.Packets + received.Audio.Packets + received.Probe.Packets +
		s.MalformedRTP + s.MalformedPayload + s.UnknownSSRC + s.Duplicates + s.Late
	if came := h.calls + uint64(len(h.expected)); outcomes != came {
		h.t.Fatalf("%d packets came, and have %d outcomes", came, outcomes)
	}
}

// hostileSeeds are inputs whose steps fit together.
func hostileSeeds() [][]byte {
	const framed, foreign, audio = 0, 1, 2
	return [][]byte{
		// Frames with losses that arrive late, as retransmissions, and never.
		{
			stepFrame, framed, 200, 0, stepFrame, framed, 200, 2, stepWait, 10, stepHeld, framed, 0,
			stepFrame, framed, 200, 4, stepWait, 10,
			stepHeld, framed, 1, stepFrame, framed, 200, 255, stepWait, 200, stepFrame, framed, 10, 0,
		},
		// Requests of the receiver, repeated and for packets that were not sent.
		{
			stepFrame, framed, 200, 0, stepFrame, foreign, 1, 0, stepAsk, framed, 0, 0xff, 0xff,
			stepAsk, framed, 9, 0xff, 0xff, stepWait, 20,
			stepAsk, framed, 9, 0xff, 0xff, stepAsk, foreign, 1, 0, 1, stepWait, 255, stepWait, 255,
			stepAsk, framed, 9, 0xff, 0xff,
		},
		// Jumps of sequence numbers, frame numbers and timestamps, in both directions.
		{
			stepFrame, framed, 50, 0, stepJump, framed, 0x40, 0, 0, stepFrame, framed, 50, 0, stepWait, 5,
			stepJump, framed, 0x80, 1, 0,
			stepFrame, framed, 50, 0, stepFrame, framed, 50, 0, stepJump, framed, 0xff, 0xff, 1,
			stepFrame, framed, 50, 0, stepWait, 20,
			stepJump, framed, 0xc0, 0, 0, stepFrame, framed, 50, 0, stepJump, framed, 0xff, 0, 2,
			stepFrame, framed, 50, 0,
		},
		// A flood of gaps: each frame jumps ahead by the maximum that counts as loss.
		slices.Repeat([]byte{stepJump, foreign, 0x1f, 0xff, 0, stepFrame, foreign, 1, 0, stepWait, 2}, 40),
		// Switches between tracks and groups, with late packets of the former track.
		{
			stepFrame, framed, 30, 2, stepSelect, framed, foreign, 1, stepFrame, foreign, 1, 0,
			stepHeld, framed, 0, stepSelect, framed, framed, 2,
			stepFrame, framed, 30, 0, stepSelect, framed, 3, stepFrame, framed, 30, 0,
			stepSelect, audio, audio, 0, stepFrame, audio, 1, 0,
		},
		// Replays, corrupted packets, payloads that are too long, and a new binding.
		{
			stepFrame, framed, 30, 0, stepReplay, framed, 9, stepCorrupted, framed, 3, 0, 1,
			stepCorrupted, framed, 0, 0, 0x40, stepLong, foreign, 7, 2,
			stepLong, foreign, 7, 3, stepLong, audio, 7, 9, stepBind, framed, stepFrame, framed, 30, 0,
			stepCorrupted, framed, 5, 0, 0xff,
		},
		// Endless key frame requests.
		slices.Concat([]byte{stepFrame, foreign, 1, 0}, slices.Repeat([]byte{stepKeyFrame, foreign, stepWait, 9}, 40)),
		// More than a cache holds, at once.
		slices.Repeat([]byte{stepFrame, framed, 255, 0}, 90),
	}
}

// fuzzTranscript returns input whose packets reach all parts.
func fuzzTranscript(f *testing.F) []byte {
	seed := newRig(f, nil)
	i := seed.ingress(&fakePeer{})
	framed := seed.publish(i, 10, volumetric.MIMEVolumetric)
	foreign, audio := seed.publish(i, 20, volumetric.MIMEH264), seed.publish(i, 30, volumetric.MIMEOpus)
	framed.Parity, framed.Extension = 1, testExtension
	var transcript []byte
	add := func(step byte, packets ...[]byte) {
		for _, p := range packets {
			transcript = append(binary.BigEndian.AppendUint16(append(transcript, step), uint16(len(p))), p...)
		}
	}
	for range 2 {
		framed.Next()
		packets := framed.Packets(3000)
		add(stepMedia, packets...)
		add(stepRepair, framed.Retransmission(packets[1]))
		foreign.Next()
		add(stepMedia+1, foreign.Packet(h264Key, false), foreign.Packet(h264Delta, true))
		add(stepMedia+2, audio.Packet([]byte("opus"), false))
	}
	for _, packet := range []rtcp.Packet{
		&rtcp.SenderReport{SSRC: 10, NTPTime: 1 << 62, RTPTime: 5, Reports: []rtcp.ReceptionReport{{SSRC: 1000}}},
		&rtcp.TransportLayerNack{MediaSSRC: 1000, Nacks: []rtcp.NackPair{{PacketID: 1, LostPackets: 0xffff}}},
		&rtcp.PictureLossIndication{MediaSSRC: 1000},
		&rtcp.FullIntraRequest{MediaSSRC: 1000, FIR: []rtcp.FIREntry{{SSRC: 1000}}},
		&rtcp.ReceiverReport{Reports: []rtcp.ReceptionReport{{SSRC: 1000, LastSenderReport: 1, Delay: 2}}},
	} {
		raw, err := packet.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		add(stepReceiver, raw)
		add(stepPublisher, raw)
	}
	add(stepReceiver, hostileReport(0, 24))
	return transcript
}
