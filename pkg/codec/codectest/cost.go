package codectest

import (
	"errors"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// What decoding one frame may take. A frame of b bytes has 65,536 + 64·b points at most, and decoders take up to 40
// bytes for each: 15 in the cloud, 15 in the planes of a codec, and 10 of their own. A frame of a few bytes takes 2.6
// MB; 64 MiB are those of a frame of 25 kB. Longer frames may take more in proportion to their points.
const (
	mostBytes      = 64 << 20
	bytesPerPoint  = 40
	mostCPU        = 200 * time.Millisecond
	fuzzedSlowness = 10 // A fuzz test runs instrumented code beside other fuzz tests.
)

// Cost is what decoding took.
type Cost struct {
	// Heap is what was allocated on Go's heap, in bytes, whether it is still there or not.
	Heap uint64
	// Resident is by how many bytes the memory of the process, Go's and C's, was larger at its peak than before; 0
	// where the system does not tell.
	Resident uint64
	// CPU is the processor time of the calling thread; 0 where the system does not tell.
	CPU time.Duration
}

// Measure calls a function and returns what the call took. Processor time is that of this thread alone: neither the
// load of the machine nor Go's garbage collector counts.
func Measure(call func()) Cost {
	before := allocated()
	resident, cpu := measureThread(call)
	return Cost{Heap: allocated() - before, Resident: resident, CPU: cpu}
}

// allocated is what the process has allocated on Go's heap so far, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Decode decodes a frame, and fails the test where that takes more memory or time than a frame of its size may. It
// also fails the test for errors that are around neither codec.ErrMalformed nor codec.ErrUnknown, and for points
// beside an error. It returns the decoder's error.
func Decode(t testing.TB, decoder codec.Decoder, cloud *pointcloud.Cloud, data []byte) error {
	t.Helper()
	return decode(t, decoder, cloud, data, fuzzedSlowness)
}

// Within calls a function that decodes an input of so many bytes, and fails the test where that takes more memory or
// time than a frame of this size may.
func Within(t testing.TB, bytes int, call func()) {
	t.Helper()
	within(t, bytes, fuzzedSlowness, call)
}

func within(t testing.TB, bytes, slowness int, call func()) {
	t.Helper()
	cost := Measure(call)
	memory := max(mostBytes, bytesPerPoint*codec.MostPoints(bytes, codec.MaxPoints))
	cpu := mostCPU * time.Duration(memory) / mostBytes * time.Duration(slowness*instrumentedSlowness)
	resident := instrumentedMemory * memory
	if cost.Heap > uint64(memory) || cost.Resident > uint64(resident) || cost.CPU > cpu {
		t.Fatalf("decoding %d bytes took %d bytes of Go's heap, %d of memory and %v, expected at most %d, %d and %v",
			bytes, cost.Heap, cost.Resident, cost.CPU, memory, resident, cpu)
	}
}

func decode(t testing.TB, decoder codec.Decoder, cloud *pointcloud.Cloud, data []byte, slowness int) error {
	t.Helper()
	var err error
	within(t, len(data), slowness, func() { err = decoder.Decode(cloud, data) })
	switch {
	case err == nil:
	case !errors.Is(err, codec.ErrMalformed) && !errors.Is(err, codec.ErrUnknown):
		t.Fatalf("got %v, want ErrMalformed or ErrUnknown", err)
	case cloud.Len() != 0 || len(cloud.Colors) != 0:
		t.Fatalf("got %d points beside %v, want none", cloud.Len(), err)
	}
	return err
}
