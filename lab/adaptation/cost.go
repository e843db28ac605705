package adaptation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/cpuprofile"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Cost has receivers of the SDK report on what they are sent, and tells by a profile of the server's processor time what adapting to them takes.
type Cost struct {
	Progress  lab.Progress
	Load      testbed.Load
	Receivers int
	// Window is how long the profile covers, Settle how long receivers are there before.
	Window, Settle time.Duration
	// Share is the bound.
	Share float64
}

// NewCost is the check as the claim has it, with the usual load of vollab forward. At 19 % of a core and 100 samples per second, 40 s are 760 samples: a share of
// a tenth is known to a hundredth.
func NewCost(progress lab.Progress) *Cost {
	return &Cost{
		Progress: progress, Load: testbed.Load{Name: "body", Tiles: 4, Qualities: 1, FrameBytes: 50_000_000 / 8 / 30 / 4, Rate: 30}, Receivers: 10,
		Window: 40 * time.Second, Settle: 5 * time.Second, Share: 0.1,
	}
}

// Name implements lab.Check.
func (c *Cost) Name() string {
	return fmt.Sprintf("what estimating, pacing and allocating take of the server: %d receivers of %d tracks that report", c.Receivers, c.Load.Tiles*c.Load.Qualities)
}

// Run implements lab.Check.
func (c *Cost) Run(ctx context.Context) ([]claim.Line, error) {
	path, err := lab.FindProgram("volsfu")
	if err != nil {
		return nil, err
	}
	server, err := lab.StartServer(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Stop() }()
	conference := testbed.Attend(server.URL())
	defer conference.Close()
	receivers, err := c.attend(ctx, conference)
	if err != nil {
		return nil, err
	}
	c.Progress.Say("a profile of %v", c.Window)
	notWhole := int64(0)
	for _, r := range receivers {
		notWhole -= broken(r)
	}
	taken, err := cpuprofile.Take(ctx, server.Admin, c.Window)
	if err != nil {
		return nil, err
	}
	estimated := 0
	for _, r := range receivers {
		if r.Bandwidth().Estimate > 0 {
			estimated++
		}
		notWhole += broken(r)
	}
	total := taken.Total()
	share := func(packages, files []string) float64 {
		return 100 * taken.Of(in(packages, files)).Seconds() / total.Seconds()
	}
	return []claim.Line{
		claim.AtMost("estimator, pacer and allocator, share of the server's time", share(adapting, driving), "%", 100*c.Share),
		claim.Information("with reading reports and numbering packets", share(slices.Concat(adapting, reading), slices.Concat(driving, hearing)), "%"),
		claim.Information("server CPU, share of a core", 100*total.Seconds()/c.Window.Seconds(), "%"),
		claim.Exactly("receivers with an estimate", int64(estimated), "", int64(c.Receivers)),
		claim.Exactly("frames not whole", notWhole, "", 0),
	}, nil
}

// attend brings the publisher and the receivers in, and waits until all are at work.
func (c *Cost) attend(ctx context.Context, conference *testbed.Conference) ([]*testbed.Peer, error) {
	if _, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: publisherName, Loads: []testbed.Load{c.Load}, MinUplink: testbed.Everything}); err != nil {
		return nil, err
	}
	var receivers []*testbed.Peer
	for i := range c.Receivers {
		r, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: fmt.Sprintf("receiver %d", i), Receive: true})
		if err != nil {
			return nil, err
		}
		receivers = append(receivers, r)
	}
	for _, r := range receivers {
		if err := awaitHighest(ctx, r, c.Load); err != nil {
			return nil, err
		}
	}
	return receivers, lab.Pause(ctx, c.Settle)
}

// What adapting takes is what the parts take that decide, with all that they call, and what drives them: the functions of the hot path that ask an estimator and a pacer and keep the order in which receivers are due,
// which would not be there if nothing were estimated or paced. They are in files of their own; what these call to number, write, encrypt and send a packet is in others, and would be there without them.
var (
	adapting = []string{"/internal/congestion", "/internal/allocate"}
	driving  = []string{"pacing.go", "probing.go", "path.go"}
	// Reading what receivers report, and numbering packets for that, is told apart.
	reading = []string{"/internal/feedback"}
	hearing = []string{"departures.go", "report_box.go"}
)

// hotPath is the package whose files driving and hearing name.
const hotPath = "/internal/forward/egress/"

// in counts what is in functions of packages with one of these in their names, with what they call, and in functions of these files of the hot path, with what they call outside of it.
func in(packages, files []string) func(cpuprofile.Stack) bool {
	return func(s cpuprofile.Stack) bool {
		return s.Through(packages...) || slices.Contains(files, s.Innermost(hotPath))
	}
}
