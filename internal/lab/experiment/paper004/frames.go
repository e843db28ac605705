package paper004

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/experiment"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

//go:embed *.yaml
var files embed.FS

// Collection are the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper004/frames": experiment.Define(defaultFrames(), frameQuantities, runFrames),
		"paper004/probes": experiment.Define(defaultProbes(), probeQuantities, runProbes),
	}}
}

// frames is a run of raw frames through the server.
type frames struct {
	// FPS is how many a second; 0 is the most of the rates below that this machine carries.
	FPS float64 `yaml:"fps"`
	// Count is how many are measured at most.
	Count int `yaml:"count"`
	// Receivers is how many take the frames; the first one makes meshes of them.
	Receivers int `yaml:"receivers"`
	// Spread is the part of the frame interval over which the sender sends a frame, Down that over which the server does.
	Spread float64 `yaml:"spread"`
	Down   float64 `yaml:"down"`
}

// defaultFrames are the paper's 300 frames at 30 per second. A frame of 3.9 MB leaves the sender at 2 Gbit/s in 15.5 ms, 0.47 of the interval, and the server at 1.5 Gbit/s in 20.7 ms, 0.62 of it.
// Where the machine carries fewer frames, it sends them slower by as much.
func defaultFrames() frames {
	return frames{FPS: 30, Count: 300, Receivers: 2, Spread: 0.47, Down: 0.62}
}

// maxReceivers bounds the load.
const maxReceivers = 16

// Validate implements what experiment.Define asks for.
func (f frames) Validate() error {
	if f.FPS < 0 || f.FPS > 120 || f.Count < 10 || f.Receivers < 1 || f.Receivers > maxReceivers || !(f.Spread > 0 && f.Spread <= 1) || !(f.Down > 0 && f.Down <= 1) {
		return fmt.Errorf("fps, count, receivers, spread, down: expected 0 to 120, 10 or more, 1 to %d, and twice above 0 up to 1", maxReceivers)
	}
	return nil
}

// frameQuantities are the paper's, by the definitions of package frametimes. The server's hold is residence and pacing of the first packet, its distribution from the first packet in to the last one out.
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
	{Name: "server_distribution", Unit: "ms", Label: "server distribution"},
	{Name: "server_distribution_p99", Unit: "ms", Label: "server distribution, 99th percentile"},
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
	"service": frametimes.Service, "app_tx": frametimes.AppTx, "frame": frametimes.Frame, "frame_tx": frametimes.FrameTx, "frame_rx": frametimes.FrameRx,
	"network_up": frametimes.NetworkUp, "server_hold": frametimes.ServerHold, "network_down": frametimes.NetworkDown, "app_rx": frametimes.AppRx,
	"server_distribution": frametimes.ServerDistribution,
	"protocol_up":         frametimes.ProtocolUp, "protocol_up_tx": frametimes.ProtocolUpTx, "protocol_up_network": frametimes.ProtocolUpNetwork, "protocol_up_rx": frametimes.ProtocolUpRx,
	"protocol_down": frametimes.ProtocolDown, "protocol_down_tx": frametimes.ProtocolDownTx, "protocol_down_network": frametimes.ProtocolDownNetwork, "protocol_down_rx": frametimes.ProtocolDownRx,
}

// rates are the frame rates that are tried, the paper's first. The last one is taken whatever comes of it.
var rates = []float64{30, 20, 15, 10, 7.5, 5, 3}

// Trials of rates.
const (
	trial = 2 * time.Second
	// carried is the share of the frames that have to come for a rate to count as carried.
	carried = 0.98
)

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
	outcome.Note("At %g frames per second, frames are paced at %.2f Gbit/s to the server and at %.2f from it.", rate, 8*frameBytes*rate/f.Spread/1e9, 8*frameBytes*rate/f.Down/1e9)
	c, err := f.confer(ctx, volsfu, rate, min(settings.Duration, time.Duration(float64(f.Count)/rate*float64(time.Second))), settings.Seed)
	if err != nil {
		return nil, err
	}
	outcome.Note("A frame is %d bytes of colour, %d of places in space and %d of audio: %d segments of 65,000 bytes; the paper counts 57, without audio.",
		colourBytes, depthBytes, audioBytes, (frameBytes+frametimes.SegmentBytes-1)/frametimes.SegmentBytes)
	outcome.Note("Sender, server and receivers share this machine and its loopback interface; the first receiver makes meshes, the others only receive. Nothing is displayed: a frame is shown when its " +
		"mesh is there.")
	measureFrames(outcome, c)
	c.judge(outcome)
	return outcome, nil
}

// judge says what the run is worth, by all receivers. Nothing loses frames here but processors that do not get to them.
func (c *conversation) judge(o *experiment.Outcome) {
	wanted, done := c.due*(1+len(c.others)), c.all()
	o.Judge(experiment.Pace{Wanted: wanted, Done: done, DroppedByCPU: max(0, wanted-done), Busy: c.busy})
}

// knownRate is the carried rate, which is found once for all cells and iterations of a run.
func (f *frames) knownRate(ctx context.Context, volsfu string, settings *experiment.Settings) (float64, error) {
	file := filepath.Join(settings.Shared, fmt.Sprintf("carried-rate-%d-%g-%g", f.Receivers, f.Spread, f.Down))
	if text, err := os.ReadFile(file); err == nil {
		return strconv.ParseFloat(string(text), 64)
	}
	rate, err := f.carriedRate(ctx, volsfu, settings.Seed)
	if err != nil {
		return 0, err
	}
	return rate, os.WriteFile(file, []byte(strconv.FormatFloat(rate, 'g', -1, 64)), 0o666)
}

// carriedRate is the highest frame rate of which nearly all frames come.
func (f *frames) carriedRate(ctx context.Context, volsfu string, seed uint64) (float64, error) {
	for _, rate := range rates[:len(rates)-1] {
		c, err := f.confer(ctx, volsfu, rate, trial, seed)
		if errors.Is(err, errNothing) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if c.carries() {
			return rate, nil
		}
	}
	return rates[len(rates)-1], nil
}

// carries tells whether nearly all frames came to every receiver.
func (c *conversation) carries() bool { return float64(c.least()) >= carried*float64(c.due) }

// measureFrames turns records into figures.
func measureFrames(o *experiment.Outcome, c *conversation) {
	for name, layer := range layered {
		o.Sample(name, layerOf(c.records, layer))
	}
	o.Set("service_p99", experiment.Quantile(layerOf(c.records, frametimes.Service), 0.99))
	o.Set("server_distribution_p99", experiment.Quantile(layerOf(c.records, frametimes.ServerDistribution), 0.99))
	o.Set("residence_p50", lab.Milliseconds(lab.Quantile(c.residence, 0.5)))
	o.Set("residence_p99", lab.Milliseconds(lab.Quantile(c.residence, 0.99)))
	o.Set("frames", float64(len(c.records)))
	if c.sent > 0 {
		o.Set("missing", 100*float64(max(0, c.sent-len(c.records)))/float64(c.sent))
	}
	if all := c.sent * len(c.others); all > 0 {
		o.Set("missing_others", 100*float64(max(0, all+len(c.records)-c.all()))/float64(all))
	}
	o.Set("fps", float64(c.sent)/c.took.Seconds())
	o.Set("uplink", 8*frameBytes*float64(c.sent)/c.took.Seconds()/1e6)
	for _, name := range []string{"service", "frame", "server_distribution", "protocol_up", "protocol_down", "protocol_up_network", "protocol_down_network"} {
		o.Series(name, "frame", "ms", overFrames(c.records, layered[name]))
	}
}

// layerOf are the milliseconds of a layer of all frames that know it.
func layerOf(records []frametimes.Record, layer frametimes.Layer) (ms []float64) {
	for _, point := range overFrames(records, layer) {
		ms = append(ms, point[1])
	}
	return ms
}

// overFrames is a layer over the numbers of the frames, from the first on.
func overFrames(records []frametimes.Record, layer frametimes.Layer) (points [][2]float64) {
	for i := range records {
		layers := records[i].Layers()
		if d, known := layers.Get(layer); known {
			points = append(points, [2]float64{float64(records[i].Frame - records[0].Frame), lab.Milliseconds(d)})
		}
	}
	return points
}
