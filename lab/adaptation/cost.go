package adaptation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/cpuprofile"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Cost connects receivers of the SDK, which send reports, and measures the share of adaptation in a profile of the
// server's processor time.
type Cost struct {
	Progress  lab.Progress
	Load      testbed.Load
	Receivers int
	// Window is the time covered by the profile; Settle is the time for which receivers are connected before.
	Window, Settle time.Duration
	// Share is the bound.
	Share float64
}

// NewCost returns the check of the claim, with the default load of vollab forward. At 19 % of a core and 100 samples
// per second, 40 s are 760 samples: a share of a tenth is measured to within a hundredth.
func NewCost(progress lab.Progress) *Cost {
	return &Cost{
		Progress: progress, Load: testbed.Load{Name: "body", Tiles: 4, Qualities: 1,
			FrameBytes: 50_000_000 / 8 / 30 / 4, Rate: 30}, Receivers: 10,
		Window: 40 * time.Second, Settle: 5 * time.Second, Share: 0.1,
	}
}

// Name implements lab.Check.
func (c *Cost) Name() string {
	return fmt.Sprintf("the cost of estimating, pacing and allocating in the server: %d reporting receivers of "+
		"%d tracks", c.Receivers, c.Load.Tiles*c.Load.Qualities)
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
	c.Progress.Say("recording a profile of %v", c.Window)
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
	share := func(counts func(cpuprofile.Stack) bool) float64 {
		return 100 * taken.Of(counts).Seconds() / total.Seconds()
	}
	return []claim.Line{
		claim.AtMost("estimator, pacer and allocator, share of the server's time", share(adapts), "%", 100*c.Share),
		claim.Information("with reading reports and numbering packets", share(func(s cpuprofile.Stack) bool {
			return adapts(s) || reads(s)
		}), "%"),
		claim.Information("server CPU, share of a core", 100*total.Seconds()/c.Window.Seconds(), "%"),
		claim.Exactly("receivers with an estimate", int64(estimated), "", int64(c.Receivers)),
		claim.Exactly("incomplete frames", notWhole, "", 0),
	}, nil
}

// attend joins the publisher and the receivers, and waits until all receivers get all tiles.
func (c *Cost) attend(ctx context.Context, conference *testbed.Conference) ([]*testbed.Peer, error) {
	if _, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: publisherName, Loads: []testbed.Load{c.Load},
		MinUplink: testbed.Everything}); err != nil {
		return nil, err
	}
	var receivers []*testbed.Peer
	for i := range c.Receivers {
		r, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: fmt.Sprintf("receiver %d", i),
			Receive: true})
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

// The cost of adaptation has two parts: the packages that decide, with all functions that they call, and the functions
// of the hot path that drive these packages. The driving functions consult an estimator and a pacer and keep the order
// in which receivers are due; they would not exist without estimating and pacing. Their files have no other functions
// than those and the reading ones. The functions that they call to number, write, encrypt and send a packet are counted
// by themselves.
var (
	adapting = []string{"/internal/congestion", "/internal/allocate"}
	driving  = []string{"pacing.go", "estimating.go", "path.go"}
	// Reading receivers' reports, and numbering packets for the reports, is counted separately. In driving files, the
	// methods read.
	reading        = []string{"/internal/feedback"}
	readingFiles   = []string{"departures.go", "report_box.go"}
	readingMethods = []string{"(*Receiver).number", "(*Receiver).agree", "(*Receiver).readReports",
		"(*Receiver).readPathReport", "(*path).number", "(*path).agree"}
)

// hotPath is the package of the files and methods.
const hotPath = "/internal/forward/egress"

// adapts reports whether a stack goes through a package that decides, or whether its innermost function of the hot path
// is a driving one.
func adapts(s cpuprofile.Stack) bool {
	file, method := innermost(s)
	return s.Through(adapting...) || slices.Contains(driving, file) && !slices.Contains(readingMethods, method)
}

// reads reports whether a stack goes through a package that reads reports, or whether its innermost function of the hot
// path is a reading one.
func reads(s cpuprofile.Stack) bool {
	file, method := innermost(s)
	return s.Through(reading...) || slices.Contains(readingFiles, file) || slices.Contains(readingMethods, method)
}

// innermost returns the file and the method of the innermost function of the hot path, or empty texts if there is none.
// Functions within a method belong to the method.
func innermost(s cpuprofile.Stack) (file, method string) {
	frame, _ := s.Innermost(hotPath + "/")
	_, file, _ = strings.Cut(frame.File, hotPath+"/")
	_, method, _ = strings.Cut(frame.Function, hotPath+".")
	method, _, _ = strings.Cut(method, ".func")
	return file, method
}
