package paper004

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/conversation"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/exposition"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper004/frames": experiment.Define(defaultFrames(), frameQuantities, runFrames),
		"paper004/probes": experiment.OnHosts(experiment.Define(defaultProbes(), probeQuantities, runProbes), "sender",
			"server", "receiver"),
	}}
}

// frames is a run of raw frames through the server.
type frames struct {
	// FPS is the frame rate; 0 selects the highest rate that this machine can carry.
	FPS float64 `yaml:"fps"`
	// Count is the largest number of measured frames.
	Count int `yaml:"count"`
	// Receivers is the number of receivers. The first receiver makes meshes of the frames.
	Receivers int `yaml:"receivers"`
	// Spread is the share of the frame interval over which the sender sends a frame, Down the share for the server.
	Spread float64 `yaml:"spread"`
	Down   float64 `yaml:"down"`
}

// defaultFrames are the paper's 300 frames at 30 per second, and the default plan.
func defaultFrames() frames {
	plan := conversation.DefaultPlan()
	return frames{FPS: 30, Count: 300, Receivers: plan.Receivers, Spread: plan.Spread, Down: plan.Down}
}

// plan returns the conversation of an iteration.
func (f *frames) plan(seed uint64) conversation.Plan {
	return conversation.Plan{Receivers: f.Receivers, Spread: f.Spread, Down: f.Down, Seed: seed}
}

// maxReceivers bounds the load.
const maxReceivers = 16

// Validate implements the optional interface of experiment.Define.
func (f frames) Validate() error {
	if f.FPS < 0 || f.FPS > 120 || f.Count < 10 || f.Receivers < 1 || f.Receivers > maxReceivers ||
		!(f.Spread > 0 && f.Spread <= 1) || !(f.Down > 0 && f.Down <= 1) {
		return fmt.Errorf("fps, count, receivers, spread, down: expected 0 to 120, 10 or more, 1 to %d, and "+
			"twice above 0 up to 1", maxReceivers)
	}
	return nil
}

// frameQuantities are the paper's figures, by the definitions of package frametimes. The server's hold is residence and
// pacing of the first packet. The server's distribution covers all receivers, from the first packet in to the last
// packet out.
var frameQuantities = []experiment.Quantity{
	{Name: "service", Unit: "ms", Label: "Service(L)"},
	{Name: "service_p99", Unit: "ms", Label: "Service(L), 99th percentile"},
	{Name: "app_tx", Unit: "ms", Label: "App(Tx)"},
	{Name: "frame", Unit: "ms", Label: "Frame(L)"},
	{Name: "frame_tx", Unit: "ms", Label: "Frame(Tx)"},
	{Name: "frame_rx", Unit: "ms", Label: "Frame(Rx)"},
	{Name: "network_up", Unit: "ms", Label: "Network(L) up"},
	{Name: "server_hold", Unit: "ms", Label: "server hold"},
	{Name: "network_down", Unit: "ms", Label: "Network(L) down"},
	{Name: "app_rx", Unit: "ms", Label: "App(Rx)"},
	{Name: "server_distribution", Unit: "ms", Label: "server distribution to all receivers"},
	{Name: "server_distribution_p99", Unit: "ms", Label: "server distribution to all receivers, 99th percentile"},
	{Name: "residence_p50", Unit: "ms", Label: "server residence, median"},
	{Name: "residence_p99", Unit: "ms", Label: "server residence, 99th percentile"},
	{Name: "protocol_up", Unit: "ms", Label: "Protocol(L) up"},
	{Name: "protocol_up_tx", Unit: "ms", Label: "Protocol(Tx) of the sender"},
	{Name: "protocol_up_network", Unit: "ms", Label: "Network(L) up, first packet"},
	{Name: "protocol_up_rx", Unit: "ms", Label: "Protocol(Rx) of the server"},
	{Name: "protocol_down", Unit: "ms", Label: "Protocol(L) down"},
	{Name: "protocol_down_tx", Unit: "ms", Label: "Protocol(Tx) of the server"},
	{Name: "protocol_down_network", Unit: "ms", Label: "Network(L) down, first packet"},
	{Name: "protocol_down_rx", Unit: "ms", Label: "Protocol(Rx) of the receiver"},
	{Name: "frames", Unit: "frames", Label: "frames measured"},
	{Name: "missing", Unit: "%", Label: "missing frames"},
	{Name: "missing_others", Unit: "%", Label: "missing frames of the other receivers"},
	{Name: "fps", Unit: "frames/s", Label: "frames sent"},
	{Name: "uplink", Unit: "Mbit/s", Label: "content from the sender"},
}

// layered are the figures that are layers of package frametimes.
var layered = map[string]frametimes.Layer{
	"service": frametimes.Service, "app_tx": frametimes.AppTx, "frame": frametimes.Frame,
	"frame_tx": frametimes.FrameTx, "frame_rx": frametimes.FrameRx,
	"network_up": frametimes.NetworkUp, "server_hold": frametimes.ServerHold, "network_down": frametimes.NetworkDown,
	"app_rx":      frametimes.AppRx,
	"protocol_up": frametimes.ProtocolUp, "protocol_up_tx": frametimes.ProtocolUpTx,
	"protocol_up_network": frametimes.ProtocolUpNetwork, "protocol_up_rx": frametimes.ProtocolUpRx,
	"protocol_down": frametimes.ProtocolDown, "protocol_down_tx": frametimes.ProtocolDownTx,
	"protocol_down_network": frametimes.ProtocolDownNetwork, "protocol_down_rx": frametimes.ProtocolDownRx,
}

// runFrames measures one iteration.
func runFrames(ctx context.Context, f frames, settings experiment.Settings) (*experiment.Outcome, error) {
	volsfu, err := settings.Program("volsfu")
	if err != nil {
		return nil, err
	}
	outcome := experiment.NewOutcome()
	rate := f.FPS
	if rate == 0 {
		if rate, err = f.knownRate(ctx, volsfu, &settings); err != nil {
			return nil, err
		}
		outcome.Note("The machine carries %g of the paper's 30 frames per second to %d receivers.", rate, f.Receivers)
	}
	plan := f.plan(settings.Seed)
	up, down := plan.Paced(rate)
	outcome.Note("At %g frames per second, frames are paced at %.2f Gbit/s to the server and at %.2f from it.", rate,
		float64(up)/1e9, float64(down)/1e9)
	c, err := plan.Run(ctx, volsfu, rate, min(settings.Duration,
		time.Duration(float64(f.Count)/rate*float64(time.Second))))
	if err != nil {
		return nil, err
	}
	outcome.Note("A frame is %d bytes of colour, %d of positions and %d of audio: %d segments of 65,000 bytes; the "+
		"paper counts 57, without audio.",
		conversation.ColourBytes, conversation.DepthBytes, conversation.AudioBytes,
		(conversation.FrameBytes+frametimes.SegmentBytes-1)/frametimes.SegmentBytes)
	outcome.Note("Sender, server and receivers share this machine and its loopback interface; the first receiver " +
		"makes meshes, the others only receive. Frames are not displayed: a frame counts as shown when its mesh is " +
		"made.")
	measureFrames(outcome, c)
	judge(outcome, c)
	return outcome, nil
}

// judge sets the validity of the run, by all receivers. Frames are lost here only if processors are too slow.
func judge(o *experiment.Outcome, c *conversation.Conversation) {
	wanted, done := c.Wanted(), c.All()
	o.Judge(experiment.Pace{Wanted: wanted, Done: done, DroppedByCPU: max(0, wanted-done), Busy: c.Busy})
}

// knownRate returns the carried rate, determined once for all cells and iterations of a run.
func (f *frames) knownRate(ctx context.Context, volsfu string, settings *experiment.Settings) (float64, error) {
	file := filepath.Join(settings.Shared, fmt.Sprintf("carried-rate-%d-%g-%g", f.Receivers, f.Spread, f.Down))
	if text, err := os.ReadFile(file); err == nil {
		return strconv.ParseFloat(string(text), 64)
	}
	rate, err := f.plan(settings.Seed).CarriedRate(ctx, volsfu)
	if err != nil {
		return 0, err
	}
	return rate, os.WriteFile(file, []byte(strconv.FormatFloat(rate, 'g', -1, 64)), 0o666)
}

// measureFrames computes the figures of records.
func measureFrames(o *experiment.Outcome, c *conversation.Conversation) {
	for name, layer := range layered {
		o.Sample(name, layerOf(c.Records, layer))
	}
	o.Set("service_p99", experiment.Quantile(layerOf(c.Records, frametimes.Service), 0.99))
	distributions := overDistributions(c.Distributions)
	o.Sample("server_distribution", values(distributions))
	o.Set("server_distribution_p99", experiment.Quantile(values(distributions), 0.99))
	o.Set("residence_p50", lab.Milliseconds(exposition.Quantile(c.Residence, 0.5)))
	o.Set("residence_p99", lab.Milliseconds(exposition.Quantile(c.Residence, 0.99)))
	o.Set("frames", float64(len(c.Records)))
	if c.Sent > 0 {
		o.Set("missing", 100*float64(max(0, c.Sent-len(c.Records)))/float64(c.Sent))
	}
	if all := c.Sent * len(c.Others); all > 0 {
		o.Set("missing_others", 100*float64(max(0, all+len(c.Records)-c.All()))/float64(all))
	}
	o.Set("fps", float64(c.Sent)/c.Took.Seconds())
	o.Set("uplink", 8*conversation.FrameBytes*float64(c.Sent)/c.Took.Seconds()/1e6)
	o.Series("server_distribution", "frame", "ms", distributions)
	for _, name := range []string{"service", "frame", "protocol_up", "protocol_down", "protocol_up_network",
		"protocol_down_network"} {
		o.Series(name, "frame", "ms", overFrames(c.Records, layered[name]))
	}
}

// overDistributions returns the milliseconds of distributions over the numbers of the frames, from the first on.
func overDistributions(all []conversation.Distribution) (points [][2]float64) {
	for _, d := range all {
		points = append(points, [2]float64{float64(d.Frame - all[0].Frame), lab.Milliseconds(d.Time)})
	}
	return points
}

// values returns the values of points.
func values(points [][2]float64) []float64 {
	list := make([]float64, len(points))
	for i, point := range points {
		list[i] = point[1]
	}
	return list
}

// layerOf returns the milliseconds of a layer for all frames that have the layer.
func layerOf(records []frametimes.Record, layer frametimes.Layer) []float64 {
	return values(overFrames(records, layer))
}

// overFrames returns a layer over the numbers of the frames, from the first on.
func overFrames(records []frametimes.Record, layer frametimes.Layer) (points [][2]float64) {
	for i := range records {
		layers := records[i].Layers()
		if d, known := layers.Get(layer); known {
			points = append(points, [2]float64{float64(records[i].Frame - records[0].Frame), lab.Milliseconds(d)})
		}
	}
	return points
}
