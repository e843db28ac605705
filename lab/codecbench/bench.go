// Package codecbench measures codecs on clouds: the size and time of a ladder of parameters, and the distance of
// decoded clouds from the captured ones. A Bench is used by one goroutine at a time; codecs may use as many threads as
// they state.
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

// ErrFrames is returned if there are no frames with points.
var ErrFrames = errors.New("no frames with points to measure")

// Setting is one combination of parameters for the encoding of a cloud.
type Setting struct {
	// Codec encodes on the number of threads in Threads. Name is the name of the single-threaded codec.
	Codec   codec.Codec `json:"-"`
	Name    string      `json:"codec"`
	Threads int         `json:"threads"`
	// Speed is codec.Params.Speed. Level is the compression level of the literature, 10 - Speed.
	Speed int `json:"speed"`
	Level int `json:"level"`
	Bits  int `json:"bits"`
	// Share is the share of the captured points that is encoded, in %.
	Share  float64 `json:"points_percent"`
	Colors bool    `json:"colors"`
	// ColorQuality is the quality of codecs with lossy colours, 0 for other codecs. ColorBits is the number of bits of
	// each channel that remain before other codecs encode the colours, 8 for all.
	ColorQuality int `json:"color_quality,omitempty"`
	ColorBits    int `json:"color_bits,omitempty"`
}

// Row is the result of a setting: means over the frames, except for times.
type Row struct {
	Setting
	Points int `json:"points"`
	Bytes  int `json:"bytes"`
	// BitsPerPoint is relative to the number of encoded points.
	BitsPerPoint float64 `json:"bits_per_point"`
	Encode       Times   `json:"encode_ms"`
	Decode       Times   `json:"decode_ms"`
	// PointToPoint and PointToPlane are the PSNR of the geometry (D1, D2). Luma and Color are the PSNR of the colours
	// (Y, and Y'CbCr weighted 6:1:1). All are in dB, and null without an error or without colours.
	PointToPoint *float64 `json:"d1_psnr_db"`
	PointToPlane *float64 `json:"d2_psnr_db"`
	Luma         *float64 `json:"y_psnr_db"`
	Color        *float64 `json:"ycbcr_psnr_db"`
	// PCQM and PointSSIM are nil unless Bench.Perceptual is set, and for frames without colours.
	PCQM      *float64    `json:"pcqm,omitempty"`
	PointSSIM *Similarity `json:"pointssim,omitempty"`
}

// Similarity is the structural similarity of each attribute; null if it is not defined at any point.
type Similarity struct {
	Color     *float64 `json:"color"`
	Geometry  *float64 `json:"geometry"`
	Normals   *float64 `json:"normals"`
	Curvature *float64 `json:"curvature"`
}

// Times are the times of a frame in milliseconds: the median and the minimum of all repetitions. The minimum is the
// least disturbed by other programs. Processor is the minimum of the processor time of all threads, which other
// programs hardly disturb; 0 if it is unknown.
type Times struct {
	Median    float64 `json:"median"`
	Least     float64 `json:"least"`
	Processor float64 `json:"processor"`
}

// Bench measures settings on the same frames.
type Bench struct {
	// Perceptual makes Run compute PCQM and PointSSIM, which take about two seconds of processor time for a decoded
	// cloud of 70,000 points.
	Perceptual bool

	box     volumetric.BoundingBox
	repeats int
	frames  []frame
	sampler pointcloud.Sampler
}

// frame is a captured cloud with the measures of its decoded versions by their fingerprint: lossless codecs decode the
// same cloud at every speed.
type frame struct {
	cloud     *pointcloud.Cloud
	reference *fidelity.Reference
	known     map[uint64]compared
}

// compared contains the measures of a decoded cloud. perceptual is zero unless Bench.Perceptual is set and the frame
// has colours.
type compared struct {
	measures   fidelity.Measures
	perceptual fidelity.Perceptual
}

// New returns a bench. All frames are quantised in the box and encoded repeats times.
func New(clouds []*pointcloud.Cloud, box volumetric.BoundingBox, repeats int) (*Bench, error) {
	b := &Bench{box: box, repeats: max(1, repeats)}
	for i, cloud := range clouds {
		reference, err := fidelity.NewReference(cloud)
		if err != nil {
			return nil, fmt.Errorf("%w: frame %d: %w", ErrFrames, i, err)
		}
		b.frames = append(b.frames, frame{cloud, reference, make(map[uint64]compared)})
	}
	if len(b.frames) == 0 {
		return nil, ErrFrames
	}
	return b, nil
}

// sums are totals over frames.
type sums struct {
	points, bytes       float64
	encode, decode      spent
	d1, d2, luma, color float64
	pcqm                float64
	similarity          fidelity.PointSSIM
}

// spent has the wall-clock time and the processor time of each repetition.
type spent struct{ clock, processor []time.Duration }

// instant is a time by both clocks.
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
	if s.Colors && b.Perceptual {
		row.PCQM = finite(sum.pcqm/n, 1e-6)
		row.PointSSIM = &Similarity{Color: finite(sum.similarity.Color/n, 1e-4),
			Geometry: finite(sum.similarity.Geometry/n, 1e-4), Normals: finite(sum.similarity.Normals/n, 1e-4),
			Curvature: finite(sum.similarity.Curvature/n, 1e-4)}
	}
	return row, nil
}

// params returns the parameters of the codec.
func (s *Setting) params(box volumetric.BoundingBox) codec.Params {
	return codec.Params{PositionBits: s.Bits, Speed: s.Speed, Box: box, NoColors: !s.Colors,
		ColorQuality: s.ColorQuality}
}

// measure encodes one frame repeatedly and adds the results to sum.
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
	c, err := f.compare(&decoded, s.Colors && b.Perceptual)
	if err != nil {
		return err
	}
	m, p := c.measures, c.perceptual
	sum.d1 += m.PointToPoint.PSNR
	sum.d2 += m.PointToPlane.PSNR
	sum.luma += m.Color.Y
	sum.color += m.Color.All
	sum.pcqm += p.PCQM.Score
	sum.similarity.Color += p.PointSSIM.Color
	sum.similarity.Geometry += p.PointSSIM.Geometry
	sum.similarity.Normals += p.PointSSIM.Normals
	sum.similarity.Curvature += p.PointSSIM.Curvature
	return nil
}

// compare measures a decoded cloud. The measures of a cloud with the same points are reused.
func (f *frame) compare(decoded *pointcloud.Cloud, perceptual bool) (compared, error) {
	key := fingerprint(decoded)
	if c, ok := f.known[key]; ok {
		return c, nil
	}
	var c compared
	var err error
	if c.measures, err = f.reference.Compare(decoded); err != nil {
		return c, err
	}
	if perceptual {
		if c.perceptual, err = f.reference.Perceptual(decoded); err != nil {
			return c, err
		}
	}
	f.known[key] = c
	return c, nil
}

// fingerprint returns a hash that does not depend on the order of the points: the sum of the hashes of all points. The
// hash of a point is FNV-1a with a final mix, because a sum would preserve a structure that the hashes share.
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

// cut reduces colours to their upper bits, as small numbers. restore converts these numbers to colours in the middle of
// their range.
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

// timesOf sorts the times and computes the statistics.
func timesOf(s spent) Times {
	slices.Sort(s.clock)
	ms := func(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }
	return Times{Median: ms(s.clock[len(s.clock)/2]), Least: ms(s.clock[0]), Processor: ms(slices.Min(s.processor))}
}

// decibels returns a ratio rounded to two decimal digits, or nil if there is no error.
func decibels(v float64) *float64 { return finite(v, 0.01) }

// finite returns a value rounded to a multiple of step, or nil if the value is not finite.
func finite(v, step float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	// The inverse of a step is an integer, so that the result prints without digits of rounding.
	inverse := math.Round(1 / step)
	v = math.Round(v*inverse) / inverse
	return &v
}

// rounded rounds to two decimal digits.
func rounded(v float64) float64 { return math.Round(v*100) / 100 }
