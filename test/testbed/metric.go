package testbed

import (
	"context"

	"github.com/volsfu/volsfu/test/exposition"
)

// Metric reads one series from the server's admin listener. series has the text format name{label="value",…}, with
// labels in the order of the names.
func (c *Conference) Metric(ctx context.Context, series string) (float64, error) {
	all, err := exposition.Scrape(ctx, "http://"+c.Server.AdminAddress()+"/metrics")
	if err != nil {
		return 0, err
	}
	return all.Value(series)
}
