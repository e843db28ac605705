package trust

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/gallery"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// leastGain is the least ratio of the allocator's value to that of equal shares.
const leastGain = 1.3

// downlinks measures ten webcams, two figures and a screen on one downlink: with the allocator and with fixed splits.
func downlinks(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	links := []volumetric.Bitrate{8e6, 20e6, 50e6}
	options := gallery.Options{Settle: 6 * time.Second, View: 5 * time.Second, Seed: 1}
	if b.short {
		links, options.Settle, options.View = links[1:2], 3*time.Second, time.Second
	}
	for _, link := range links {
		options.Link = link
		results := make(map[gallery.Split]gallery.Result)
		for _, split := range []gallery.Split{gallery.SplitAllocator, gallery.SplitEqual, gallery.SplitProportional} {
			b.progress.Say("  %v, %s", link, split)
			options.Split = split
			if results[split], err = gallery.Run(ctx, options); err != nil {
				return lines, fmt.Errorf("%v, %s: %w", link, split, err)
			}
		}
		named := func(what string) string { return fmt.Sprintf("%v: %s", link, what) }
		decided, equal := results[gallery.SplitAllocator], results[gallery.SplitEqual]
		proportional := results[gallery.SplitProportional]
		lines = append(lines,
			claim.AtLeast(named("value, relative to equal shares"), decided.Ahead/equal.Ahead, "times", leastGain),
			claim.Stated(named("the same, of the best decisions for 90 % of the link"),
				gallery.Optimum(gallery.SplitEqual, link), "times"),
			claim.Stated(named("the same, turned"), decided.Turned/equal.Turned, "times"),
			claim.Stated(named("value, relative to proportional shares"), decided.Ahead/proportional.Ahead, "times"),
			claim.Stated(named("the same, turned"), decided.Turned/proportional.Turned, "times"),
			claim.Exactly(named("freezes of more than a second"), int64(decided.Freezes), "", 0),
			claim.Information(named("value, relative to everything at the highest quality"), 100*decided.Ahead, "%"),
			claim.Information(named("freezes with equal shares"), float64(equal.Freezes), ""),
			claim.Information(named("rate received"), float64(decided.Received)/1e6, "Mbit/s"),
			claim.Information(named("estimate at the end"), float64(decided.Estimate)/1e6, "Mbit/s"))
	}
	return lines, nil
}
