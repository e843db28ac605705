package payload

import (
	"testing"
	"time"
)

// FuzzReassembler pushes packets described by the input, eight bytes each. Most descriptors are
// valid, so that the fuzzer passes the checks; some are raw. For every input the memory stays
// within the limits and nothing panics.
func FuzzReassembler(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 0, 9, 1, 0, 1, 0, 1, 1, 0, 9, 1}, uint16(0))
	f.Add([]byte{1, 3, 0, 1, 0xff, 2, 9, 5, 1, 2, 0, 1, 0xff, 2, 9, 90, 1, 1, 0, 1, 0xff, 2, 9, 5}, uint16(3))
	f.Add(
		[]byte{2, 0, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		uint16(0),
	)
	f.Add([]byte("arbitrary bytes make arbitrary packets, again and again and again"), uint16(200))
	f.Fuzz(func(t *testing.T, script []byte, parity uint16) {
		cfg := Config{MaxFrameBytes: 1 << 20, MaxFrames: 4, MaxBytes: 6 * len(slab{}), Deadline: 50 * time.Millisecond}
		r := NewReassembler(cfg)
		now := start
		var data [FragmentSize]byte
		var frames, given uint64
		shared := &sharedPacket{}
		for len(script) >= 8 {
			step := script[:8]
			script = script[8:]
			now = now.Add(time.Duration(step[7]) * time.Millisecond / 8)
			length := uint32(step[4])<<uint(step[5]%13) | uint32(step[6])
			d := Descriptor{
				Prefixed: step[0]&1 != 0, Quality: step[0] >> 6, Index: uint16(step[1]), Parity: parity,
				Frame: uint32(
					step[2],
				)<<24 | uint32(
					step[3],
				), Length: length, Source: uint16(SourceFragments(int(length))),
			}
			size := 0
			if raw := step[0]&2 != 0; raw {
				d.Source, size = uint16(step[4])<<8|uint16(step[5]), int(step[6])
			} else if d.Packets() > 0 {
				d.Index = uint16(int(d.Index) % d.Packets())
				size = min(max(d.DataSize(), 0), FragmentSize)
			}
			var frame *Frame
			var err error
			if step[0]&8 != 0 {
				frame, err = r.PushShared(&d, data[:size], shared, now)
			} else {
				frame, err = r.Push(&d, data[:size], now)
			}
			if frame != nil {
				frames++
				length := 0
				for _, part := range frame.AppendParts(nil) {
					length += len(part)
				}
				if err != nil || length > cfg.MaxFrameBytes || length != frame.Length {
					t.Fatalf("frame of %d bytes, length %d, with error %v", length, frame.Length, err)
				}
				frame.Release()
			}
			if step[0]&4 != 0 {
				given += uint64(len(r.Expire(now, nil)))
			}
			if r.held > cfg.MaxBytes || len(r.partials) > cfg.MaxFrames || len(r.spare) > cfg.MaxFrames {
				t.Fatalf("%d bytes, %d incomplete and %d spare frames", r.held, len(r.partials), len(r.spare))
			}
		}
		given += uint64(len(r.Expire(now.Add(time.Second), nil)))
		stats := r.Stats()
		unreported := stats.GivenUp - given // evictions beyond the reports kept for Expire
		if r.held != 0 || shared.references != 0 || len(r.partials) != 0 || stats.Frames != frames ||
			unreported > 0 && stats.Evicted <= maxEvicted {
			t.Fatalf(
				"%d bytes and %d frames left, %d completed, %d given up, %+v",
				r.held,
				len(r.partials),
				frames,
				given,
				stats,
			)
		}
	})
}
