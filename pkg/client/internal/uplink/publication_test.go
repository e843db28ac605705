package uplink

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestTimestampsWrapAround(t *testing.T) {
	for _, mimeType := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpus} {
		p := NewPublication(described("body", mimeType, 1, 1), defaultSpread, 0)
		rate := uint64(p.description.Codec.ClockRate)
		// 32 bits at 90 kHz are 13 hours and 15 minutes.
		for _, seconds := range []uint64{0, 1, 3600, 47_721, 47_722, 86_400, 10 * 365 * 86_400} {
			got := p.Timestamp(epoch.Add(time.Duration(seconds)*time.Second)) - p.Timestamp(epoch)
			if want := uint32(seconds * rate); got != want {
				t.Errorf("%s: %d s later the timestamp is %d higher, want %d", mimeType, seconds, got, want)
			}
		}
		for frame := range 100 {
			got := int64(p.Timestamp(epoch.Add(time.Duration(frame)*time.Second/30)) - p.Timestamp(epoch))
			if want := int64(frame) * int64(rate) / 30; got < want-1 || got > want+1 {
				t.Errorf("%s: %d/30 s later the timestamp is %d higher, want %d", mimeType, frame, got, want)
			}
		}
	}
	p := NewPublication(described("body", volumetric.MIMEVolumetric, 1, 1), defaultSpread, 0)
	if far := time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC); p.Timestamp(far.Add(time.Second))-p.Timestamp(far) != 90000 {
		t.Error("timestamps of 2250 are wrong")
	}
}

func TestSlowPublicationsLeaveInTime(t *testing.T) {
	tests := []struct {
		rate, spread float64
		want         time.Duration
	}{
		{30, defaultSpread, 13_333_333},
		{30, 1, 33_333_333},
		{0, defaultSpread, 13_333_333},
		{90, 0.5, 5_555_555},
		{1, defaultSpread, maxSpread},
		{0.01, defaultSpread, maxSpread},
	}
	for _, test := range tests {
		description := described("body", volumetric.MIMEVolumetric, 1, 1)
		description.FrameRate = test.rate
		if got := NewPublication(description, test.spread, 0).spread; (got - test.want).Abs() > time.Microsecond {
			t.Errorf("%g frames per second and spread %g: frames take %v, want %v", test.rate, test.spread, got,
				test.want)
		}
	}
}

func TestSpreadOfFrames(t *testing.T) {
	tests := []struct {
		name    string
		rate    float64
		packets int
		want    time.Duration
	}{
		{"one packet leaves at once", 30, 1, 0},
		{"two stay together", 30, 2, packetGap},
		{"a usual frame takes 0.4 of its interval", 25, 130, 16 * time.Millisecond},
		{"one of a slow publication no longer than others", 1, 130, maxSpread},
		{"3.5 MB", 2, 3060, 3060 * packetTime},
		{"8 MB", 1, 6994, 6994 * packetTime},
		{"8 MB more often than they can leave", 10, 6994, 40 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			description := described("body", volumetric.MIMEVolumetric, 1, 1)
			description.FrameRate = test.rate
			p := NewPublication(description, defaultSpread, 0)
			if got := p.Spread(test.packets); (got - test.want).Abs() > time.Microsecond {
				t.Errorf("%d packets at %g frames per second take %v, want %v", test.packets, test.rate, got, test.want)
			}
		})
	}
	if wait := feedback.DefaultConfig().NACK.TailWait; 2*packetGap > wait {
		t.Errorf("packets are %v apart, which leaves less than half of the %v after which receivers ask for them",
			packetGap, wait)
	}
}

func TestMeasuredRates(t *testing.T) {
	description := described("body", volumetric.MIMEVolumetric, 1, 3)
	description.Qualities[1].Bitrate = 1160e3
	p := NewPublication(description, defaultSpread, 0)
	if unknown, nominal := p.rate(0), p.rate(1); unknown != 0 || nominal != (1160+64)*1e3 {
		t.Errorf("got %g and %g bit/s, want 0 and the nominal rate with what goes around it, 1.224 Mbit/s", unknown,
			nominal)
	}
	// 15 frames per second instead of 30, then a pause, which does not count as an interval.
	at := epoch
	for range 100 {
		p.measure(1, at, 10_000)
		p.measure(2, at, 5000)
		at = at.Add(time.Second / 15)
	}
	p.measure(1, at.Add(time.Minute), 10_000)
	// A track that has paused meanwhile changes nothing.
	p.measure(0, at.Add(time.Minute), 10_000)
	if got := p.rate(1); got < 1.19e6 || got > 1.21e6 {
		t.Errorf("10 kB 15 times per second are %g bit/s, want about 1.2 Mbit/s", got)
	}
	// A frame of 3,000 bytes has three packets: 32 bytes of prefix, and for each packet 16 of descriptor and 64 around
	// it.
	if got, want := FrameSize(3000, 0), 3000+3*(16+64); got != want {
		t.Errorf("a frame of 3000 bytes takes %d, want %d", got, want)
	}
	if got := PacketsSize([][]byte{make([]byte, 100), make([]byte, 50)}); got != 150+2*64 {
		t.Errorf("two packets take %d bytes, want 278", got)
	}
}

// TestParityCountsForTheUplink: the rate of a track includes the parity that its receivers need.
func TestParityCountsForTheUplink(t *testing.T) {
	rates := map[float64]float64{}
	for _, share := range []float64{0, 0.25} {
		u := newRig(t)
		p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
		p.SetParity(share)
		write(t, u, p, 0, 0, 7, 100_000)
		rates[share] = p.rate(0)
	}
	if ratio := rates[0.25] / rates[0]; ratio < 1.24 || ratio > 1.27 {
		t.Errorf("a quarter of parity makes the rate %v times as high", ratio)
	}
}
