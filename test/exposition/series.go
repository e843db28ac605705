package exposition

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrNoMetric means that a server does not have a metric.
var ErrNoMetric = errors.New("no such metric")

// Series holds the values of a program's metrics at one time. The keys are names with labels in the text format:
// name{label="value",…}.
type Series map[string]float64

// Scrape reads all metrics from a URL in Prometheus's text format.
func Scrape(ctx context.Context, url string) (Series, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// A connection that stays open would be counted in the numbers of goroutines and descriptors.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s answers %s", url, response.Status)
	}
	return Parse(response.Body)
}

// Parse reads metrics in Prometheus's text format. Timestamps of samples are ignored.
func Parse(r io.Reader) (Series, error) {
	series := make(Series)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		// Label values may contain spaces. The text after the last brace contains none.
		end := strings.LastIndexByte(line, '}') + 1
		name, rest, found := strings.Cut(line[end:], " ")
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("metric %q: expected a name and a number", line)
		}
		series[line[:end]+name] = v
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return series, nil
}

// Value returns the value of one series. The error wraps ErrNoMetric if there is none.
func (s Series) Value(series string) (float64, error) {
	if v, ok := s[series]; ok {
		return v, nil
	}
	return 0, fmt.Errorf("%w: %s", ErrNoMetric, series)
}

// Sum returns the sum of all series of a metric that have all given labels, each written as label="value".
func (s Series) Sum(metric string, labels ...string) float64 {
	var sum float64
	for series, v := range s {
		name, set, _ := strings.Cut(series, "{")
		if name == metric && hasLabels(set, labels) {
			sum += v
		}
	}
	return sum
}

// hasLabels reports whether the text between braces contains all labels.
func hasLabels(set string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(","+strings.TrimSuffix(set, "}")+",", ","+label+",") {
			return false
		}
	}
	return true
}

// Add adds the differences of counters between two times.
func (s Series) Add(before, after Series) {
	for series, v := range after {
		s[series] += v - before[series]
	}
}

// Bucket is one bucket of a histogram: the number of durations above the previous bound and at most Bound.
type Bucket struct {
	Bound time.Duration
	Count float64
}

// Unbounded is the bound of the last bucket.
const Unbounded = time.Duration(math.MaxInt64)

// Histogram returns a histogram of seconds with buckets in ascending order, nil if there is none. Series with different
// labels are added.
func (s Series) Histogram(metric string) []Bucket {
	cumulative := make(map[time.Duration]float64)
	for series, v := range s {
		name, set, _ := strings.Cut(series, "{")
		_, bound, found := strings.Cut(set, `le="`)
		if name != metric+"_bucket" || !found {
			continue
		}
		bound, _, _ = strings.Cut(bound, `"`)
		if seconds, err := strconv.ParseFloat(bound, 64); err == nil {
			cumulative[boundOf(seconds)] += v
		}
	}
	return bucketsOf(cumulative)
}

func boundOf(seconds float64) time.Duration {
	if seconds >= Unbounded.Seconds() {
		return Unbounded
	}
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
