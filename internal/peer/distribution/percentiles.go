package distribution

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Percentiles has the percentiles of a distribution in milliseconds, rounded to microseconds; null if the distribution
// is empty.
type Percentiles struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// Percentiles returns the percentiles of the distribution.
func (d *Distribution) Percentiles() Percentiles {
	if d.Count() == 0 {
		return Percentiles{}
	}
	ms := func(v time.Duration) *float64 {
		rounded := math.Round(float64(v)/float64(time.Millisecond)*1000) / 1000
		return &rounded
	}
	return Percentiles{P50: ms(d.Quantile(0.5)), P95: ms(d.Quantile(0.95)), P99: ms(d.Quantile(0.99)), Max: ms(d.Max())}
}

// Text formats the percentiles as "median/95 %/99 %/largest" in milliseconds, or "-" if the distribution is empty.
func (p Percentiles) Text() string {
	if p.P50 == nil {
		return "-"
	}
	text := make([]string, 0, 4)
	for _, v := range []*float64{p.P50, p.P95, p.P99, p.Max} {
		text = append(text, strconv.FormatFloat(*v, 'f', 1, 64))
	}
	return strings.Join(text, "/")
}

// Text formats the median and the 95th percentile in milliseconds, or "-" if the distribution is empty.
func (d *Distribution) Text() string {
	if d.Count() == 0 {
		return "-"
	}
	ms := func(q float64) float64 { return float64(d.Quantile(q)) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f/%.1f", ms(0.5), ms(0.95))
}
