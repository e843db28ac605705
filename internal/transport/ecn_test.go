package transport

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/srtp"
)

// codepointRecorder is a sink that keeps the codepoints of packets by sequence number.
type codepointRecorder struct {
	NoOpSink
	mu   sync.Mutex
	by   map[uint16]ecn.Codepoint
	rtcp int
}

func (r *codepointRecorder) RTP(_ uint32, packet []byte, info *PacketInfo) {
	var p rtp.Packet
	if p.Unmarshal(packet) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[p.SequenceNumber] = info.ECN
}

func (r *codepointRecorder) RTCP([]byte, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rtcp++
}

func (r *codepointRecorder) count() (rtp, rtcp int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.by), r.rtcp
}

// TestCodepointsOfPackets changes the codepoint between the packets of a batch: each packet arrives with its own, and
// packets of one codepoint still leave in runs. Nothing but RTP has a codepoint.
func TestCodepointsOfPackets(t *testing.T) {
	needCodepoints(t)
	p := newPair(t)
	sink := &codepointRecorder{by: make(map[uint16]ecn.Codepoint)}
	p.receiveBy(sink)
	outlet, header := p.connectVideo()
	before := p.endpoints[1].Stats()
	want := make(map[uint16]ecn.Codepoint)
	payload := make([]byte, 1000)
	var counts [4]uint64
	for i, codepoint := range []ecn.Codepoint{ecn.NotECT, ecn.ECT1, ecn.ECT0, ecn.ECT1, ecn.NotECT} {
		if i > 0 {
			p.answers.SetECN(codepoint)
		}
		for range 6 {
			header.SequenceNumber++
			if err := outlet.Queue(&header, payload); err != nil {
				t.Fatal(err)
			}
			want[header.SequenceNumber] = codepoint
			counts[codepoint]++
		}
	}
	p.answers.Flush()
	p.until("all packets", func() bool {
		count, _ := sink.count()
		return count == len(want)
	})
	for number, codepoint := range want {
		if sink.by[number] != codepoint {
			t.Errorf("packet %d arrived as %v, expected %v", number, sink.by[number], codepoint)
		}
	}
	after := p.endpoints[1].Stats()
	if before.SentECN[ecn.NotECT] != before.Sent {
		t.Errorf("before media, %d of %d datagrams left as Not-ECT", before.SentECN[ecn.NotECT], before.Sent)
	}
	if after.SentECN[ecn.ECT1] != counts[ecn.ECT1] || after.SentECN[ecn.ECT0] != counts[ecn.ECT0] {
		t.Errorf("%v datagrams left by codepoint, expected those of packets, %v", after.SentECN, counts)
	}
	// STUN messages may leave meanwhile.
	if sent, runs := after.Sent-before.Sent, after.Runs-before.Runs; runs > sent/2 {
		t.Errorf("%d datagrams left in %d runs, expected less than half as many", sent, runs)
	}
}

// needCodepoints skips a test on systems whose sockets carry no codepoints.
func needCodepoints(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system's sockets carry no codepoints")
	}
}

// TestCodepointOfRTCP: RTCP leaves as ECT(1) while RTP of the remote peer arrives as ECT(1) or CE.
func TestCodepointOfRTCP(t *testing.T) {
	needCodepoints(t)
	p := newPair(t)
	sink := &codepointRecorder{by: make(map[uint16]ecn.Codepoint)}
	p.receiveBy(sink)
	outlet, header := p.connectVideo()
	for i, test := range []struct{ arrives, leaves ecn.Codepoint }{
		{ecn.NotECT, ecn.NotECT},
		{ecn.ECT1, ecn.ECT1},
		{ecn.CE, ecn.ECT1},
		{ecn.ECT0, ecn.NotECT},
		{ecn.CE, ecn.ECT1},
		{ecn.NotECT, ecn.NotECT},
	} {
		p.answers.SetECN(test.arrives)
		header.SequenceNumber++
		if err := outlet.WriteRTP(&header, []byte("x")); err != nil {
			t.Fatal(err)
		}
		p.until("the packet", func() bool {
			count, _ := sink.count()
			return count == i+1
		})
		sink.mu.Lock()
		arrived := sink.by[header.SequenceNumber]
		sink.mu.Unlock()
		if arrived != test.arrives {
			t.Fatalf("a packet arrived as %v, expected %v", arrived, test.arrives)
		}
		before := p.endpoints[0].Stats().SentECN
		report := &rtcp.TransportLayerNack{MediaSSRC: outlet.SSRC(), Nacks: []rtcp.NackPair{{PacketID: uint16(i)}}}
		if err := p.offers.WriteRTCP([]rtcp.Packet{report}); err != nil {
			t.Fatal(err)
		}
		after := p.endpoints[0].Stats().SentECN
		if after[test.leaves] == before[test.leaves] || after[ecn.CE] != 0 || after[ecn.ECT0] != 0 ||
			test.leaves == ecn.NotECT && after[ecn.ECT1] != before[ecn.ECT1] {
			t.Errorf("after RTP as %v: %v datagrams had left by codepoint, then %v, expected RTCP as %v", test.arrives,
				before, after, test.leaves)
		}
	}
	p.until("all reports", func() bool { return p.heard.reports(outlet.SSRC()) == 6 })
}

// TestEarlyPacketsKeepCodepoints: packets that arrive before the keys reach the sink with their codepoints.
func TestEarlyPacketsKeepCodepoints(t *testing.T) {
	length, err := srtp.KeyingMaterialLength(srtp.AES128GCM)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := srtp.ExtractKeys(srtp.AES128GCM, make([]byte, length))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := srtp.NewSealer(keys, true)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := srtp.NewOpener(keys, false, 64)
	if err != nil {
		t.Fatal(err)
	}
	sink := &codepointRecorder{by: make(map[uint16]ecn.Codepoint)}
	var told []ecn.Codepoint
	in := incoming{sink: sink, arrivedAs: func(c ecn.Codepoint) { told = append(told, c) }}
	sent := []ecn.Codepoint{ecn.ECT1, ecn.CE, ecn.CE, ecn.NotECT}
	for i, codepoint := range sent {
		sealed, err := sealer.Seal(make([]byte, 0, 100), &rtp.Header{Version: 2, SequenceNumber: uint16(i), SSRC: 1},
			[]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		in.info = PacketInfo{At: time.Now(), ECN: codepoint}
		in.receive(sealed)
	}
	in.open(opener)
	for i, codepoint := range sent {
		if sink.by[uint16(i)] != codepoint {
			t.Errorf("packet %d arrived as %v, expected %v", i, sink.by[uint16(i)], codepoint)
		}
	}
	if want := []ecn.Codepoint{ecn.ECT1, ecn.CE, ecn.NotECT}; !slices.Equal(told, want) {
		t.Errorf("the outbox was told %v, expected %v", told, want)
	}
}
