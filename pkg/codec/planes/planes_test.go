package planes

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
)

func compress(t testing.TB, planes []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(planes, nil)
}

// TestDecompress expects unchanged planes of any size in sequence, and an error unless the size is
// exact.
func TestDecompress(t *testing.T) {
	var d Decompressor
	for _, size := range []int{1000, 10, 100_000} {
		want := bytes.Repeat([]byte{1, 2, 3, 5}, size/4+1)[:size]
		data := compress(t, want)
		if got, err := d.Decompress(data, size); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		for name, test := range map[string]struct {
			data []byte
			size int
		}{"too many": {data, size - 1}, "too few": {data, size + 1}, "cut off": {data[:len(data)/2], size},
			"nothing": {nil, size}} {
			if _, err := d.Decompress(test.data, test.size); !errors.Is(err, codec.ErrMalformed) {
				t.Errorf("%d bytes, %s: got %v, want ErrMalformed", size, name, err)
			}
		}
	}
}

// FuzzDecompress expects for any data either the requested number of bytes or an error that wraps
// ErrMalformed.
func FuzzDecompress(f *testing.F) {
	f.Add(compress(f, []byte("planes")), uint16(6))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, uint16(9))
	var d Decompressor
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		var planes []byte
		var err error
		codectest.Within(t, len(data), func() { planes, err = d.Decompress(data, int(size)) })
		if err == nil && len(planes) != int(size) || err != nil && !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%d bytes of %d, %v", len(planes), size, err)
		}
	})
}
