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

// ErrNoMetric says that a server does not have a metric.
var ErrNoMetric = errors.New("no such metric")

// Series are the metrics of a program at one time, by their names with labels as the text format has them:
// name{label="value",…}.
type Series map[string]float64

// Scrape reads all metrics from an address of Prometheus's text format.
func Scrape(ctx context.Context, url string) (Series, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// A connection that is kept would show in counts of goroutines and descriptors.
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

// Parse reads metrics in Prometheus's text format. Times of samples are passed over.
func Parse(r io.Reader) (Series, error) {
	series := make(Series)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		// Label values may contain spaces, but what follows the last brace may not contain a brace.
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

// Value is one series; the error wraps ErrNoMetric where there is none.
func (s Series) Value(series string) (float64, error) {
	if v, ok := s[series]; ok {
		return v, nil
	}
	return 0, fmt.Errorf("%w: %s", ErrNoMetric, series)
}

// Sum adds up all series of a metric that have all given labels, each written as label="value".
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

// hasLabels looks for labels in what stands between braces.
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

// Bucket is one bucket of a histogram: how many durations do not exceed the bound, beyond those of the bucket before.
type Bucket struct {
	Bound time.Duration
	Count float64
}

// Unbounded is the bound of the last bucket.
const Unbounded = time.Duration(math.MaxInt64)

// Histogram reads a histogram of seconds, its buckets in ascending order; nil where there is none. Labels are not told
// apart.
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
