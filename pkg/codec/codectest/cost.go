package codectest

import (
	"errors"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Limits on the cost of decoding one frame. A frame of b bytes has at most 65,536 + 64·b points,
// and decoders use up to 40 bytes per point: 15 in the cloud, 15 in the planes of a codec, and 10
// of their own. A frame of a few bytes uses 2.6 MB; 64 MiB correspond to a frame of 25 kB. Longer
// frames may use more in proportion to their points.
const (
	mostBytes      = 64 << 20
	bytesPerPoint  = 40
	mostCPU        = 200 * time.Millisecond
	fuzzedSlowness = 10 // a fuzz test runs instrumented code next to other fuzz tests
)

// Cost is the cost of decoding.
type Cost struct {
	// Heap is the number of bytes allocated on Go's heap, including memory that was freed.
	Heap uint64
	// Resident is the increase of the peak memory of the process, of Go and C, in bytes; 0 if the
	// system does not report it.
	Resident uint64
	// CPU is the processor time of the calling thread; 0 if the system does not report it.
	CPU time.Duration
}

// Measure calls a function and returns the cost of the call. The processor time is that of this
// thread only: neither the load of the machine nor Go's garbage collector counts.
func Measure(call func()) Cost {
	before := allocated()
	resident, cpu := measureThread(call)
	return Cost{Heap: allocated() - before, Resident: resident, CPU: cpu}
}

// allocated returns the total number of bytes that the process has allocated on Go's heap.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Decode decodes a frame and fails the test if decoding uses more memory or time than is permitted for the size of the
// frame. Decode also fails the test if the error wraps neither codec.ErrMalformed nor codec.ErrUnknown, or if an error
// is returned together with points. Decode returns the decoder's error.
func Decode(t testing.TB, decoder codec.Decoder, cloud *pointcloud.Cloud, data []byte) error {
	t.Helper()
	return decode(t, decoder, cloud, data, fuzzedSlowness)
}

// Within calls a function that decodes an input of the given size in bytes, and fails the test if
// the call uses more memory or time than is permitted for a frame of this size.
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
