package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// minSaved is the percentage by which frames with colours as JPEG must be smaller than frames with exact colours and
// the same loss, at the speed of volpeer's publishers.
const minSaved = 30

// Draco's fastest and smallest speeds.
const fastest, smallest = 10, 0

// colors compares two lossy encodings of colours.
type colors struct {
	progress lab.Progress
	data     string
	repeats  int
}

// row is a row of vollab codec --json, with the fields that the check needs. Color is null for lossless colours.
type row struct {
	Codec        string   `json:"codec"`
	Speed        int      `json:"speed"`
	Bytes        float64  `json:"bytes"`
	ColorQuality int      `json:"color_quality"`
	ColorBits    int      `json:"color_bits"`
	Color        *float64 `json:"ycbcr_psnr_db"`
}

func (c *colors) run(ctx context.Context) ([]claim.Line, error) {
	const name = "colours as JPEG"
	dir, why, err := recordingOf(c.data, "seated-human", "ply")
	if err != nil || why != "" {
		return skipped(name, why), err
	}
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	if why, err := p.lacksDraco(ctx); err != nil || why != "" {
		return skipped(name, why), err
	}
	c.progress.Say("  coding with colours of 3 to 8 bits, and as JPEG")
	program, err := lab.StartProgram("vollab codec", p.vollab, nil, "codec", "--source", "ply:"+dir, "--codecs",
		"draco,draco+jpeg", "--speeds",
		fmt.Sprintf("%d,%d", smallest, fastest), "--color-bits", "3,4,5,6,7,8", "--color-quality", "75,85,92",
		"--repeats", strconv.Itoa(c.repeats), "--json")
	if err != nil {
		return nil, err
	}
	if err := finish(ctx, program); err != nil {
		return nil, err
	}
	var report struct {
		Rows []row `json:"rows"`
	}
	if err := json.Unmarshal(program.Output(), &report); err != nil {
		return nil, fmt.Errorf("%w vollab codec: its rows cannot be read: %w", lab.ErrProgram, err)
	}
	return colorLines(report.Rows), nil
}

// colorLines returns the savings of JPEG at each of its qualities, compared with Draco's colours at the same loss, and
// with exact colours.
func colorLines(rows []row) (lines []claim.Line) {
	for _, speed := range []int{fastest, smallest} {
		curve, exact := curveOf(rows, speed)
		for _, r := range rows {
			if r.Codec != "draco+jpeg" || r.Speed != speed {
				continue
			}
			name := fmt.Sprintf("speed %d, JPEG of quality %d: ", speed, r.ColorQuality)
			theirs := notMeasured
			if r.Color != nil {
				theirs = curve.at(*r.Color)
				lines = append(lines, claim.Information(name+"colours", *r.Color, "dB"))
			}
			saved := 100 * (1 - r.Bytes/theirs)
			if speed == fastest {
				lines = append(lines, claim.AtLeast(name+"fewer bytes than Draco's colours at equal loss", saved, "%",
					minSaved))
			} else if math.IsNaN(saved) {
				lines = append(lines, claim.Fail(name+"fewer bytes than Draco's colours at equal loss",
					"Draco's colours were not coded with this loss"))
			} else {
				lines = append(lines, claim.Information(name+"fewer bytes than Draco's colours at equal loss", saved,
					"%"))
			}
			lines = append(lines, claim.Information(name+"fewer bytes than exact colours", 100*(1-r.Bytes/exact), "%"))
		}
	}
	return lines
}

// curve has sizes by loss, the highest loss first.
type curve []struct{ decibels, bytes float64 }

// curveOf returns Draco's frames at a speed, and the size of the lossless frame.
func curveOf(rows []row, speed int) (c curve, exact float64) {
	exact = notMeasured
	for _, r := range rows {
		switch {
		case r.Codec != "draco" || r.Speed != speed:
		case r.Color != nil:
			c = append(c, struct{ decibels, bytes float64 }{*r.Color, r.Bytes})
		case r.ColorBits == 8:
			exact = r.Bytes
		}
	}
	slices.SortFunc(c, func(a, b struct{ decibels, bytes float64 }) int { return cmp.Compare(a.decibels, b.decibels) })
	return c, exact
}

// at returns the size at a loss between two measured losses, because decibels are nearly linear in the logarithm of
// bytes. Outside of the measured range, at returns NaN.
func (c curve) at(decibels float64) float64 {
	for i := 1; i < len(c); i++ {
		a, b := c[i-1], c[i]
		if decibels < a.decibels || decibels > b.decibels || a.decibels == b.decibels {
			continue
		}
		part := (decibels - a.decibels) / (b.decibels - a.decibels)
		return a.bytes * math.Pow(b.bytes/a.bytes, part)
	}
	return notMeasured
}
