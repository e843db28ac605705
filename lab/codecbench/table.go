package codecbench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table writes rows as a Markdown table. Times are the minimum of all repetitions, in wall-clock time and in processor
// time. Rows with perceptual measures have two more columns.
func Table(w io.Writer, rows []Row) error {
	header := []string{"codec", "level", "speed", "bits", "points", "threads", "colours", "bytes", "bit/point",
		"encode ms", "cpu ms", "decode ms", "cpu ms", "D1 dB", "D2 dB", "Y dB", "Y'CbCr dB"}
	perceptual := slices.ContainsFunc(rows, func(r Row) bool { return r.PointSSIM != nil })
	if perceptual {
		header = append(header, "PCQM", "PointSSIM")
	}
	cells := [][]string{header}
	for _, r := range rows {
		line := []string{
			r.Name, fmt.Sprint(r.Level), fmt.Sprint(r.Speed), fmt.Sprint(r.Bits),
			fmt.Sprintf("%d (%g %%)", r.Points, r.Share), fmt.Sprint(r.Threads), r.colors(),
			fmt.Sprint(r.Bytes), fmt.Sprintf("%.2f", r.BitsPerPoint), fmt.Sprintf("%.2f", r.Encode.Least),
			fmt.Sprintf("%.2f", r.Encode.Processor),
			fmt.Sprintf("%.2f", r.Decode.Least), fmt.Sprintf("%.2f", r.Decode.Processor),
			ratio(r.PointToPoint, true), ratio(r.PointToPlane, true), ratio(r.Luma, r.Colors), ratio(r.Color, r.Colors),
		}
		if perceptual {
			line = append(line, r.perceptual()...)
		}
		cells = append(cells, line)
	}
	widths := make([]int, len(header))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for n, line := range cells {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				out.WriteString("| " + cell + pad)
			} else {
				out.WriteString(" | " + pad + cell)
			}
		}
		out.WriteString(" |\n")
		if n == 0 {
			for i, width := range widths {
				rule := strings.Repeat("-", width-1) + ":"
				if i == 0 {
					rule = "| " + strings.Repeat("-", width)
				} else {
					rule = " | " + rule
				}
				out.WriteString(rule)
			}
			out.WriteString(" |\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// colors describes the encoded colours.
func (s *Setting) colors() string {
	switch {
	case !s.Colors:
		return "none"
	case s.ColorQuality > 0:
		return fmt.Sprintf("quality %d", s.ColorQuality)
	case s.ColorBits > 0 && s.ColorBits < 8:
		return fmt.Sprintf("%d bits", s.ColorBits)
	}
	return "exact"
}

// perceptual formats PCQM and the PointSSIM of colours, "-" if there is no value.
func (r *Row) perceptual() []string {
	cells := []string{"-", "-"}
	if r.PCQM != nil {
		cells[0] = fmt.Sprintf("%.5f", *r.PCQM)
	}
	if r.PointSSIM != nil && r.PointSSIM.Color != nil {
		cells[1] = fmt.Sprintf("%.3f", *r.PointSSIM.Color)
	}
	return cells
}

// ratio formats decibels: "exact" if there is no error, "-" if there is no value.
func ratio(v *float64, there bool) string {
	switch {
	case v != nil:
		return fmt.Sprintf("%.1f", *v)
	case there:
		return "exact"
	}
	return "-"
}
