package transcode

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// BenchmarkDraco measures the time of one worker for a frame of 40,000 points on the surface of a body: up is from cwi0
// to Draco, down the reverse.
func BenchmarkDraco(b *testing.B) {
	if !draco.Available() {
		b.Skip("skipped: built without Draco")
	}
	c, err := codec.ByName("draco")
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	cloud := &pointcloud.Cloud{}
	for range 40_000 {
		turn, height := 2*math.Pi*random.Float64(), 1.8*random.Float64()
		position := [3]float32{float32(0.3 * math.Cos(turn)), float32(height), float32(0.2 * math.Sin(turn))}
		cloud.Append(position, [3]uint8{uint8(100 * height), uint8(20 * turn), 80})
	}
	raw, err := codec.CWI0.NewEncoder().Encode(nil, cloud, lossless(cloud.Bounds()))
	if err != nil {
		b.Fatal(err)
	}
	p, u := NewPacker(c), NewUnpacker()
	packed, err := p.Pack(nil, vr2gather.CodecRawPoints, raw)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("up", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if packed, err = p.Pack(packed[:0], vr2gather.CodecRawPoints, raw); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(8*len(packed))/float64(cloud.Len()), "bits/point")
	})
	var frame []byte
	b.Run("down", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if frame, err = u.Unpack(frame[:0], c.FourCC(), packed, capture); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSound measures the time for 20 ms of audio: up is from VR2Gather's format to Opus, down the reverse.
func BenchmarkSound(b *testing.B) {
	needAudio(b)
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		b.Fatal(err)
	}
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		b.Fatal(err)
	}
	voices, packets := newVoiceSource(b, vr2gather.CodecVoice), newOpusSource(b, began)
	var voiceFrames []VoiceFrame
	var opusPackets []voice.Packet
	for i := range 50 {
		voiceFrames = append(voiceFrames, voices.next(began.Add(time.Duration(i+1)*frameTime)))
		opusPackets = append(opusPackets, packets.next())
	}
	b.Run("up", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := voiceFrames[i%len(voiceFrames)]
			in.Number, in.End = uint32(i), began.Add(time.Duration(i)*frameTime)
			if err := toOpus.Push(in); err != nil {
				b.Fatal(err)
			}
			for _, ok := toOpus.Next(); ok; _, ok = toOpus.Next() {
				continue
			}
		}
	})
	b.Run("down", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := opusPackets[i%len(opusPackets)]
			in.Sequence, in.Timestamp = uint16(i), uint32(i*frameSamples)
			in.Capture = began.Add(time.Duration(i) * frameTime)
			toVoice.Push(in)
			for _, ok := toVoice.Next(in.Arrival, false); ok; _, ok = toVoice.Next(in.Arrival, false) {
				continue
			}
		}
	})
}
