package duplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/duplicator"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

const (
	// publishedCount is the number of datagrams of each kind for the published filter, and publishedRate their rate per
	// second. The filter remembers an identification for a second.
	publishedCount = 64_000
	publishedRate  = 20_000
)

// published measures the share of the datagrams of each kind that the published filter of paper 003 drops although they
// are no copies. IPv6 has no identification.
func published(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	n, err := newWires(ctx, paths, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	pair, err := duplicator.Start(n.duplicated(0), n.duplicated(1))
	if err != nil {
		return nil, fmt.Errorf("the published system: %w", err)
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	pair.Fix(1<<paths - 1)
	count := publishedCount
	if b.short {
		count = 1280
	}
	dropped, all := 0.0, 0
	for i := range traffic.Kinds {
		k := &traffic.Kinds[i]
		if k.IPv6 {
			continue
		}
		got, err := k.Transfer(ctx, n.ends(0), traffic.Options{Size: 1000, Rate: publishedRate, Grace: time.Second},
			count, quiet)
		if err != nil {
			return lines, err
		}
		share := 1 - float64(got.Arrived)/float64(got.Sent)
		dropped += share * float64(k.Count)
		all += k.Count
		lines = append(lines, claim.Information("published filter: wrongly dropped, "+k.Name, 100*share, "%"))
	}
	return append(lines, claim.Stated("published filter: wrongly dropped of all kinds, in the proportions above",
		100*dropped/float64(all), "%")), nil
}

// duplicated returns a host for the published system.
func (r *routable) duplicated(host int) duplicator.Host {
	h := duplicator.Host{Address: inner(host, 0),
		Inside: func(f func() error) error { return r.Inside(hosts[host], f) }}
	for _, l := range r.links {
		h.Interfaces = append(h.Interfaces, l.Interfaces[host])
	}
	return h
}
