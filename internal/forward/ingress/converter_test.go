package ingress

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// vr2GatherRig is a publication of VR2Gather with a converter for each of its tracks.
type vr2GatherRig struct {
	t          *testing.T
	rig        *rig
	converters map[string]*converter
	now        time.Time
}

func newVR2GatherRig(t *testing.T, tracks ...string) *vr2GatherRig {
	t.Helper()
	e := newRig(t, nil)
	r := &vr2GatherRig{t: t, rig: e, converters: make(map[string]*converter), now: time.Unix(1000, 0)}
	shared := &instants{}
	for i, name := range tracks {
		track := e.tracks.New(track.Config{
			Codec:   volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Quality: volumetric.Quality(i), Group: 1, VR2Gather: true,
		})
		r.converters[name] = newConverter(track, shared)
	}
	return r
}

// packets returns the packets of a frame as a peer splits it.
func (r *vr2GatherRig) packets(theirs uint32, size int, captured uint64) [][]byte {
	r.t.Helper()
	data := vr2gather.FrameHeader{FourCC: vr2gather.CodecOctree, Length: uint32(size),
		TimestampMS: captured}.Append(nil)
	for i := range size {
		data = append(data, byte(i))
	}
	var packets [][]byte
	for p := range vr2gather.Cut(vr2gather.Packet{Kind: volumetric.KindVideo, Client: 9, Frame: theirs, Tile: 4,
		Quality: 1}, data) {
		packet, err := p.Append(nil)
		if err != nil {
			r.t.Fatal(err)
		}
		packets = append(packets, packet)
	}
	return packets
}

// convert converts a packet, and returns the description of its frame.
func (r *vr2GatherRig) convert(track string, packet []byte) (d payload.Descriptor, data []byte, timestamp uint32) {
	r.t.Helper()
	h := rtp.Header{Timestamp: 77}
	body, err := r.converters[track].convert(&h, bytes.Clone(packet), r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	if data, err = d.Unmarshal(body); err != nil {
		r.t.Fatal(err)
	}
	return d, data, h.Timestamp
}

// TestConverterTranscript compares frame numbers and timestamps with a transcript: track, the peer's number and capture
// time in ms; then the server's number and the timestamp in ms.
func TestConverterTranscript(t *testing.T) {
	for _, transcript := range []struct{ name, lines string }{
		{"tracks that drift apart share numbers", `
			a 0 1000 = 0 1000
			b 0 1000 = 0 1000
			a 1 1033 = 1 1033
			a 2 1066 = 2 1066
			b 1 1066 = 2 1066
			b 2 1100 = 3 1100
			a 3 1100 = 3 1100`},
		{"a track that is late goes on with instants of others", `
			a 0 1000 = 0 1000
			a 1 1033 = 1 1033
			a 2 1066 = 2 1066
			b 0 1000 = 0 1000
			b 1 1033 = 1 1033`},
		{"an instant between those of others takes the next one", `
			a 0 1000 = 0 1000
			a 1 1066 = 1 1066
			b 0 1000 = 0 1000
			b 1 1033 = 1 1066
			b 2 1066 = 2 1066
			a 2 1100 = 3 1100`},
		{"a clock that is set back leaves numbers rising", `
			a 0 9000 = 0 9000
			a 1 1000 = 1 1000
			b 0 1000 = 0 9000
			b 1 1033 = 2 1033
			a 2 1033 = 2 1033`},
		{"the same time twice is two frames", `
			a 0 1000 = 0 1000
			a 1 1000 = 1 1000
			a 2 1001 = 2 1001`},
		{"a frame that names no time is an instant of its own", `
			a 0 1000 = 0 1000
			a 1 0 = 1 1001
			b 0 1000 = 0 1000
			b 1 1066 = 2 1066`},
	} {
		t.Run(transcript.name, func(t *testing.T) {
			r := newVR2GatherRig(t, "a", "b")
			for line := range strings.Lines(strings.TrimSpace(transcript.lines)) {
				var track string
				var theirs, number, ms uint32
				var captured uint64
				if _, err := fmt.Sscanf(line, "%s %d %d = %d %d", &track, &theirs, &captured, &number,
					&ms); err != nil {
					t.Fatal(err)
				}
				d, _, timestamp := r.convert(track, r.packets(theirs, 100, captured)[0])
				if d.Frame != number || timestamp != ms*videoTicks {
					t.Errorf("%s: got frame %d at %d ms", strings.TrimSpace(line), d.Frame, timestamp/videoTicks)
				}
			}
		})
	}
}

// TestConverterKeepsFrames reassembles frames from the converted packets of a peer, in any order.
func TestConverterKeepsFrames(t *testing.T) {
	r := newVR2GatherRig(t, "low", "high")
	for theirs, size := range []int{1, 1144 - 16, 1144 - 15, 5000} {
		packets := r.packets(uint32(theirs), size, uint64(1000+theirs))
		want := bytes.Join(func() (data [][]byte) {
			for _, p := range packets {
				data = append(data, p[vr2gather.VideoHeaderSize:])
			}
			return data
		}(), nil)
		got := make([]byte, len(want))
		for i := range packets {
			// The first packet arrives last: the frame is an instant of its own then.
			d, data, _ := r.convert("high", packets[(i+1)%len(packets)])
			if d.Frame != uint32(theirs) || d.Quality != 1 || int(d.Source) != len(packets) || d.Parity != 0 ||
				d.Prefixed {
				t.Fatalf("frame %d: %+v", theirs, d)
			}
			copy(got[int(d.Index)*payload.FragmentSize:], data)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("a frame of %d bytes changed", size)
		}
	}
	if codec, ok := r.converters["high"].track.FrameCodec(); !ok || codec != vr2gather.CodecOctree {
		t.Errorf("the codec is %v, %t", codec, ok)
	}
	if _, ok := r.converters["low"].track.FrameCodec(); ok {
		t.Error("a track on which nothing came has a codec")
	}
}

// keepingOutlet is an outlet that records its packets.
type keepingOutlet struct {
	egress.Outlet
	payloads [][]byte
}

func (o *keepingOutlet) Queue(_ *rtp.Header, body []byte) error {
	o.payloads = append(o.payloads, bytes.Clone(body))
	return nil
}

// numberedHeader returns a header of 20 bytes.
func numberedHeader() *rtp.Header {
	h := &rtp.Header{Version: 2}
	if err := h.SetExtension(1, []byte{0, 1}); err != nil {
		panic(err)
	}
	return h
}

// TestOutletRestoresPackets sends packets of one peer to another. They are the same except for the sender and the frame
// number.
func TestOutletRestoresPackets(t *testing.T) {
	r := newVR2GatherRig(t, "low", "high")
	kept := &keepingOutlet{}
	o := frames.NewVR2GatherOutlet(kept, vr2gather.Track{Kind: volumetric.KindVideo, Client: 9, Tile: 4}, 5)
	packets := r.packets(0, 5000, 1000)
	for _, packet := range packets {
		h := numberedHeader()
		body, err := r.converters["high"].convert(h, bytes.Clone(packet), r.now)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Queue(h, body); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range kept.payloads {
		if !bytes.Equal(got, packets[i]) {
			t.Errorf("packet %d:\n%x\n%x", i, got, packets[i])
		}
		if len(got) > 1172 {
			t.Errorf("packet %d has %d bytes", i, len(got))
		}
	}
	sound, err := (&vr2gather.Packet{Kind: volumetric.KindAudio, Client: 33, Frame: 6, Length: 3,
		Data: []byte("abc")}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	heard := &keepingOutlet{}
	if err := frames.NewVR2GatherOutlet(heard, vr2gather.Track{Kind: volumetric.KindAudio, Client: 9},
		6).Queue(numberedHeader(), sound); err != nil {
		t.Fatal(err)
	}
	p, err := vr2gather.ParsePacket(volumetric.KindAudio, heard.payloads[0])
	if err != nil || p.Client != 9 || p.Frame != 6 || string(p.Data) != "abc" {
		t.Errorf("sound is %+v, %v", p, err)
	}
}

// FuzzConverter checks that any packet on a track is refused, or converted into packets that another peer receives
// unchanged.
func FuzzConverter(f *testing.F) {
	seed, err := (&vr2gather.Packet{Kind: volumetric.KindVideo, Client: 1, Length: 20,
		Data: make([]byte, 20)}).Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, true)
	f.Add(seed, false)
	f.Add(seed[:27], true)
	f.Add([]byte{}, false)
	e := newRig(f, nil)
	f.Fuzz(func(t *testing.T, body []byte, video bool) {
		kind, mime := volumetric.KindAudio, "audio/pcm"
		if video {
			kind, mime = volumetric.KindVideo, volumetric.MIMEVolumetric
		}
		track := e.tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: 90000}, VR2Gather: true})
		defer track.Close()
		want, parseErr := vr2gather.ParsePacket(kind, bytes.Clone(body))
		h := numberedHeader()
		converted, err := newConverter(track, &instants{}).convert(h, bytes.Clone(body), time.Unix(1000, 0))
		if (parseErr != nil || err != nil) && !errors.Is(err, vr2gather.ErrPacket) {
			t.Fatalf("got %v, expected ErrPacket for %v", err, parseErr)
		}
		kept := &keepingOutlet{}
		if err != nil || frames.NewVR2GatherOutlet(kept, vr2gather.Track{Kind: kind, Client: want.Client}, 5).Queue(h,
			converted) != nil {
			return
		}
		got, err := vr2gather.ParsePacket(kind, kept.payloads[0])
		if err != nil || got.Offset != want.Offset || got.Length != want.Length || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%+v became %+v, %v", want, got, err)
		}
	})
}
