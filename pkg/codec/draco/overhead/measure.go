//go:build cgo && !portable

package overhead

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// turnFrames is the number of frames per turn. With several frames the time to read the clock is
// negligible.
const turnFrames = 4

// Measure encodes and decodes the cloud for the given number of turns, after one turn that does not
// count.
func Measure(cloud *pointcloud.Cloud, params codec.Params, turns int) (encode, decode Measurement, err error) {
	if err := params.Check(cloud, draco.MaxPoints); err != nil {
		return encode, decode, err
	}
	if cloud.Len() == 0 || turns < 1 {
		return encode, decode, fmt.Errorf(
			"%w: %d points in %d turns, expected at least 1 of each",
			codec.ErrParams,
			cloud.Len(),
			turns,
		)
	}
	dracos, err := codec.ByName("draco")
	if err != nil {
		return encode, decode, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	encoder, decoder, core := dracos.NewEncoder(), dracos.NewDecoder(), draco.NewCore()
	var frame []byte
	encode, err = measure(turns, func() (err error) {
		frame, err = encoder.Encode(frame[:0], cloud, params)
		return err
	}, func() (time.Duration, error) { return core.TimeEncode(cloud, params, turnFrames) },
		func() (time.Duration, error) { return yardstick.TimeEncode(cloud, params, turnFrames) })
	if err != nil {
		return encode, decode, err
	}
	theirs, err := yardstick.Encode(cloud, params)
	if err != nil {
		return encode, decode, err
	}
	var into pointcloud.Cloud
	if err := decoder.Decode(&into, frame); err != nil {
		return encode, decode, err
	}
	decode, err = measure(turns, func() error { return decoder.Decode(&into, frame) },
		func() (time.Duration, error) { return core.TimeDecode(&into, frame, turnFrames) },
		func() (time.Duration, error) { return yardstick.TimeDecode(&into, theirs, params, turnFrames) })
	encode.Bytes, encode.DracoBytes = len(frame), len(theirs)
	decode.Bytes, decode.DracoBytes = len(frame), len(theirs)
	return encode, decode, err
}

// measure runs the three functions alternately.
func measure(turns int, step func() error, core, dracos func() (time.Duration, error)) (m Measurement, err error) {
	var before, after runtime.MemStats
	ours := func() (time.Duration, error) {
		runtime.ReadMemStats(&before)
		begin := yardstick.ThreadTime()
		for range turnFrames {
			if err := step(); err != nil {
				return 0, err
			}
		}
		took := yardstick.ThreadTime() - begin
		runtime.ReadMemStats(&after)
		m.Allocations += float64(after.Mallocs - before.Mallocs)
		m.AllocatedBytes += float64(after.TotalAlloc - before.TotalAlloc)
		return took / turnFrames, nil
	}
	var times [3][]time.Duration
	var ratios []float64
	for turn := range turns + 1 {
		if turn == 1 {
			m = Measurement{}
		}
		for i, run := range [...]func() (time.Duration, error){ours, core, dracos} {
			took, err := run()
			if err != nil {
				return m, err
			}
			if turn > 0 {
				times[i] = append(times[i], took)
			}
		}
		if turn > 0 {
			ratios = append(ratios, float64(times[0][turn-1])/float64(times[1][turn-1]))
		}
	}
	m.Allocations /= float64(turns * turnFrames)
	m.AllocatedBytes /= float64(turns * turnFrames)
	m.Overhead = median(ratios) - 1
	m.Codec, m.Core, m.Draco = median(times[0]), median(times[1]), median(times[2])
	return m, nil
}

func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
