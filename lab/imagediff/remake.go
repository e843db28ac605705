package imagediff

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrOther is returned if a frame that was encoded again differs from the received frame: the source, the codec or the
// parameters differ from the run.
var ErrOther = errors.New("the frame differs from the received frame")

// Remaker encodes the frames of a log again.
type Remaker struct {
	decoded map[int64]*stages.Record
	last    int64

	codec   codec.Codec
	params  codec.Params
	encoder codec.Encoder
	decoder codec.Decoder
	sample  pointcloud.Cloud
	data    []byte
}

// NewRemaker returns a Remaker of a log, with the codec and the parameters of the run.
func NewRemaker(records []stages.Record, c codec.Codec, params codec.Params) *Remaker {
	r := &Remaker{decoded: make(map[int64]*stages.Record), last: -1, codec: c, params: params, encoder: c.NewEncoder(),
		decoder: c.NewDecoder()}
	for i := range records {
		if record := &records[i]; record.Outcome == stages.Intact && record.Decoded != 0 {
			r.decoded[record.SourceFrame] = record
			r.last = max(r.last, record.SourceFrame)
		}
	}
	return r
}

// Last implements Received.
func (r *Remaker) Last() int64 { return r.last }

// Has implements Received.
func (r *Remaker) Has(number int64) bool { return r.decoded[number] != nil }

// Make implements Received. The error wraps ErrOther if the bytes differ from those that the consumer received.
func (r *Remaker) Make(into *pointcloud.Cloud, number int64, captured *pointcloud.Cloud) error {
	record := r.decoded[number]
	cloud := captured
	if record.Points < captured.Len() {
		pointcloud.Stride(captured, &r.sample, record.Points)
		cloud = &r.sample
	}
	data, err := r.encoder.Encode(r.data[:0], cloud, r.params)
	if err != nil {
		return err
	}
	r.data = data
	if stages.Hash(data) != record.ReceivedHash {
		return fmt.Errorf("%w: frame %d has %d points in %d bytes by %s, received were %d", ErrOther, record.Sent.Frame,
			cloud.Len(), len(data), r.codec.Name(),
			record.ReceivedBytes)
	}
	if len(data) == 0 {
		into.Reset()
		return nil
	}
	return r.decoder.Decode(into, data)
}
