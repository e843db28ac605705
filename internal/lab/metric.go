package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// ErrNoMetric says that a server does not have a metric.
var ErrNoMetric = errors.New("no such metric")

// Metric reads one series from the server's operators' listener, written as in the text format: name{label="value",…}, labels in the order of their
// names.
func (c *Conference) Metric(ctx context.Context, series string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Server.AdminAddress()+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	// A connection that is kept would show in counts of goroutines and descriptors.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return findSeries(response.Body, series)
}

// findSeries finds the value of a series in Prometheus's text format.
func findSeries(r io.Reader, series string) (float64, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("metric %s: %w", series, err)
			}
			return v, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	return 0, fmt.Errorf("%w: %s", ErrNoMetric, series)
}
