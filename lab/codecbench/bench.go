// Package codecbench measures codecs on clouds: what a ladder of parameters takes in bytes and time, and how far
// decoded clouds are from what was captured. One goroutine uses a Bench at a time; codecs may use more, as many as they
// say.
package codecbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/pointcloud/fidelity"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrFrames says that there is nothing to measure on.
var ErrFrames = errors.New("no points to measure on")

// Setting is one way to code a cloud.
type Setting struct {
	// Codec codes on one thread, or on as many as Threads says; Name is that of one thread.
	Codec   codec.Codec `json:"-"`
	Name    string      `json:"codec"`
	Threads int         `json:"threads"`
	// Speed is codec.Params.Speed, Level what papers call it: 10 - Speed.
	Speed int `json:"speed"`
	Level int `json:"level"`
	Bits  int `json:"bits"`
	// Share is how much of the captured points is coded, in %.
	Share  float64 `json:"points_percent"`
	Colors bool    `json:"colors"`
	// ColorQuality is that of codecs that keep colours with loss, 0 for others. ColorBits is what is left of each
	// channel before others code it, 8 for everything.
	ColorQuality int `json:"color_quality,omitempty"`
	ColorBits    int `json:"color_bits,omitempty"`
}

// Row is what came of a setting, in the mean over the frames but for times.
type Row struct {
	Setting
	Points int `json:"points"`
	Bytes  int `json:"bytes"`
	// BitsPerPoint relates to the points that were coded.
	BitsPerPoint float64 `json:"bits_per_point"`
	Encode       Times   `json:"encode_ms"`
	Decode       Times   `json:"decode_ms"`
	// PointToPoint and PointToPlane are geometry's (D1, D2), Luma and Color those of colours (Y, and Y'CbCr weighted
	// 6:1:1), in dB. They are null where there is no error, or no colour.
	PointToPoint *float64 `json:"d1_psnr_db"`
	PointToPlane *float64 `json:"d2_psnr_db"`
	Luma         *float64 `json:"y_psnr_db"`
	Color        *float64 `json:"ycbcr_psnr_db"`
}

// Times are those of a frame in milliseconds: the median of all repetitions, and the least, which other programs
// disturb least. Processor is the least time of all processors together, which they hardly disturb, 0 where it is not
// known.
type Times struct {
	Median    float64 `json:"median"`
	Least     float64 `json:"least"`
	Processor float64 `json:"processor"`
}

// Bench measures settings on the same frames.
type Bench struct {
	box     volumetric.BoundingBox
	repeats int
	frames  []frame
	sampler pointcloud.Sampler
}

// frame is a captured cloud, and what was measured of its decoded versions, by what they hold: exact codecs decode the
// same at every speed.
type frame struct {
	cloud     *pointcloud.Cloud
	reference *fidelity.Reference
	known     map[uint64]fidelity.Measures
}

// New makes a bench. All frames are quantised in the box, and coded so many times.
func New(clouds []*pointcloud.Cloud, box volumetric.BoundingBox, repeats int) (*Bench, error) {
	b := &Bench{box: box, repeats: max(1, repeats)}
	for i, cloud := range clouds {
		reference, err := fidelity.NewReference(cloud)
		if err != nil {
			return nil, fmt.Errorf("%w: frame %d: %w", ErrFrames, i, err)
		}
		b.frames = append(b.frames, frame{cloud, reference, make(map[uint64]fidelity.Measures)})
	}
	if len(b.frames) == 0 {
		return nil, ErrFrames
	}
	return b, nil
}

// sums are added up over frames.
type sums struct {
	points, bytes       float64
	encode, decode      spent
	d1, d2, luma, color float64
}

// spent is what each repetition took, by the clock and of processors.
type spent struct{ clock, processor []time.Duration }

// instant is a time by both.
type instant struct {
	clock     time.Time
	processor time.Duration
}

func now() instant { return instant{time.Now(), processorTime()} }

// add adds the time from one instant to another.
func (s *spent) add(from, to instant) {
	s.clock = append(s.clock, to.clock.Sub(from.clock))
	s.processor = append(s.processor, to.processor-from.processor)
}

// Run measures one setting.
func (b *Bench) Run(ctx context.Context, s Setting) (Row, error) {
	row := Row{Setting: s}
	encoder, decoder := s.Codec.NewEncoder(), s.Codec.NewDecoder()
	var sum sums
	for i := range b.frames {
		if err := b.measure(ctx, &b.frames[i], s, encoder, decoder, &sum); err != nil {
			return row, fmt.Errorf("%s, level %d, frame %d: %w", s.Name, s.Level, i, err)
		}
	}
	n := float64(len(b.frames))
	row.Points, row.Bytes = int(math.Round(sum.points/n)), int(math.Round(sum.bytes/n))
	row.BitsPerPoint = rounded(8 * sum.bytes / sum.points)
	row.Encode, row.Decode = timesOf(sum.encode), timesOf(sum.decode)
	row.PointToPoint, row.PointToPlane = decibels(sum.d1/n), decibels(sum.d2/n)
	if s.Colors {
		row.Luma, row.Color = decibels(sum.luma/n), decibels(sum.color/n)
	}
	return row, nil
}

// params are the codec's.
func (s *Setting) params(box volumetric.BoundingBox) codec.Params {
	return codec.Params{PositionBits: s.Bits, Speed: s.Speed, Box: box, NoColors: !s.Colors,
		ColorQuality: s.ColorQuality}
}

// measure codes one frame.
func (b *Bench) measure(ctx context.Context, f *frame, s Setting, encoder codec.Encoder, decoder codec.Decoder,
	sum *sums) error {
	var part, decoded pointcloud.Cloud
	b.sampler.Sample(f.cloud, &part, f.cloud.Portion(s.Share/100))
	if s.ColorBits > 0 {
		cut(part.Colors, s.ColorBits)
	}
	var data []byte
	for range b.repeats {
		if err := ctx.Err(); err != nil {
			return err
		}
		begun := now()
		var err error
		if data, err = encoder.Encode(data[:0], &part, s.params(b.box)); err != nil {
			return err
		}
		encoded := now()
		if err := decoder.Decode(&decoded, data); err != nil {
			return err
		}
		sum.encode.add(begun, encoded)
		sum.decode.add(encoded, now())
	}
	sum.points += float64(part.Len())
	sum.bytes += float64(len(data))
	if s.ColorBits > 0 {
		restore(decoded.Colors, s.ColorBits)
	}
	m, err := f.compare(&decoded)
	if err != nil {
		return err
	}
	sum.d1 += m.PointToPoint.PSNR
	sum.d2 += m.PointToPlane.PSNR
	sum.luma += m.Color.Y
	sum.color += m.Color.All
	return nil
}

// compare measures a decoded cloud, unless one with the same points was measured before.
func (f *frame) compare(decoded *pointcloud.Cloud) (fidelity.Measures, error) {
	key := fingerprint(decoded)
	if m, ok := f.known[key]; ok {
		return m, nil
	}
	m, err := f.reference.Compare(decoded)
	if err == nil {
		f.known[key] = m
	}
	return m, err
}

// fingerprint is the same for the same points in any order: the sum of a hash of each (FNV-1a, with a final mix since
// sums keep what hashes have in common).
func fingerprint(cloud *pointcloud.Cloud) uint64 {
	total := uint64(cloud.Len())
	for i, p := range cloud.Positions {
		h := uint64(14695981039346656037)
		c := cloud.Colors[i]
		for _, v := range [4]uint32{math.Float32bits(p[0]), math.Float32bits(p[1]), math.Float32bits(p[2]),
			uint32(c[0]) | uint32(c[1])<<8 | uint32(c[2])<<16} {
			h = (h ^ uint64(v)) * 1099511628211
		}
		h ^= h >> 32
		h *= 0x9e3779b97f4a7c15
		total += h ^ h>>29
	}
	return total
}

// cut leaves the upper bits of colours, as small numbers; restore makes colours of these, in the middle of what they
// stand for.
func cut(colors [][3]uint8, bits int) {
	for i := range colors {
		for channel := range colors[i] {
			colors[i][channel] >>= 8 - bits
		}
	}
}

func restore(colors [][3]uint8, bits int) {
	for i := range colors {
		for channel := range colors[i] {
			colors[i][channel] = colors[i][channel]<<(8-bits) | 1<<(8-bits)>>1
		}
	}
}

// timesOf sorts and sums up.
func timesOf(s spent) Times {
	slices.Sort(s.clock)
	ms := func(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }
	return Times{Median: ms(s.clock[len(s.clock)/2]), Least: ms(s.clock[0]), Processor: ms(slices.Min(s.processor))}
}

func decibels(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	v = rounded(v)
	return &v
}

// rounded leaves two digits behind the point.
func rounded(v float64) float64 { return math.Round(v*100) / 100 }
