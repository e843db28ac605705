package frametimes

import (
	"fmt"
	"time"
)

// Layer is a part of a frame's latency: the time between two stamps.
type Layer uint8

// The layers. The names of the paper stand in parentheses. Parts of the same whole follow one upon the other: the stages add up to Service exactly.
const (
	// Service is from capture to display, or to the decoded cloud where nothing is displayed: AppTx + Frame + AppRx (Service(L)).
	Service Layer = iota
	// AppTx is from capture to the first packet sent (App(Tx)): Capture + TilingWait + Tiling + EncoderWait + Encoding + SendWait.
	AppTx
	// Frame is from the first packet sent to the last one received (Frame(L)): Network + FrameRx, and through a server NetworkUp + ServerHold + NetworkDown + FrameRx.
	Frame
	// AppRx is from the last packet received to display (App(Rx)): Reassembly + DecoderWait + Decoding + RenderWait + Rendering.
	AppRx

	Capture
	TilingWait
	Tiling
	EncoderWait
	Encoding
	SendWait

	// Network is from the first packet sent until the first segment is received (Network(L) of frames).
	Network
	// NetworkUp is from the first packet sent until the server has it.
	NetworkUp
	// ServerHold is how long the first packet stays in the server: residence, and what the pacer holds it for.
	ServerHold
	// NetworkDown is from the first packet leaving the server until the first segment is received.
	NetworkDown
	// FrameTx and FrameRx are from the first segment to the last (Frame(Tx), Frame(Rx)). They overlap, and are not summed.
	FrameTx
	FrameRx

	Reassembly
	DecoderWait
	Decoding
	RenderWait
	Rendering

	// ServerDistribution is from the first packet that the server has to the last one that it sends to the record's receiver. To all receivers it lasts until the latest of their ends.
	ServerDistribution

	// Protocol layers are those of packets, hop by hop: ProtocolUp = ProtocolUpNetwork + ProtocolUpRx (Protocol(L) = Network(L) + Protocol(Rx)), and down likewise;
	// without a server Protocol = ProtocolNetwork + ProtocolDownRx.
	Protocol
	ProtocolNetwork
	ProtocolUp
	ProtocolUpTx
	ProtocolUpNetwork
	ProtocolUpRx
	ProtocolDown
	ProtocolDownTx
	ProtocolDownNetwork
	ProtocolDownRx

	// Network layers are those of the first packet below the program: in the sender's kernel (TX_SW) and network card (TX_HW), between the kernels, from card to card
	// (RX_HW), and in the receiver's kernel until the program has read the packet (RX_SW).
	UpTxSoftware
	UpTxHardware
	UpWire
	UpRxHardware
	UpRxSoftware
	DownTxSoftware
	DownTxHardware
	DownWire
	DownRxHardware
	DownRxSoftware
	// LayerCount is how many there are.
	LayerCount int = iota
)

// span is a layer's two ends.
type span struct {
	name     string
	from, to Stamp
}

// spans are those of all layers. Those that end with Shown end with Decoded where nothing is shown.
var spans = [LayerCount]span{
	Service: {"service", Captured, Shown},
	AppTx:   {"app_tx", Captured, FirstSent},
	Frame:   {"frame", FirstSent, LastReceived},
	AppRx:   {"app_rx", LastReceived, Shown},

	Capture:     {"capture", Captured, Acquired},
	TilingWait:  {"tiling_wait", Acquired, TilingBegan},
	Tiling:      {"tiling", TilingBegan, Tiled},
	EncoderWait: {"encoder_wait", Tiled, EncodingBegan},
	Encoding:    {"encoding", EncodingBegan, Encoded},
	SendWait:    {"send_wait", Encoded, FirstSent},

	Network:     {"network", FirstSent, FirstSegmentReceived},
	NetworkUp:   {"network_up", FirstSent, ServerFirstIn},
	ServerHold:  {"server_hold", ServerFirstIn, ServerFirstOut},
	NetworkDown: {"network_down", ServerFirstOut, FirstSegmentReceived},
	FrameTx:     {"frame_tx", FirstSegmentSent, LastSent},
	FrameRx:     {"frame_rx", FirstSegmentReceived, LastReceived},

	Reassembly:  {"reassembly", LastReceived, Reassembled},
	DecoderWait: {"decoder_wait", Reassembled, DecodingBegan},
	Decoding:    {"decoding", DecodingBegan, Decoded},
	RenderWait:  {"render_wait", Decoded, RenderBegan},
	Rendering:   {"rendering", RenderBegan, Shown},

	ServerDistribution: {"server_distribution", ServerFirstIn, ServerLastOut},

	Protocol:            {"protocol", FirstSent, LastReceived},
	ProtocolNetwork:     {"protocol_network", FirstSent, FirstReceived},
	ProtocolUp:          {"protocol_up", FirstSent, ServerLastIn},
	ProtocolUpTx:        {"protocol_up_tx", FirstSent, LastSent},
	ProtocolUpNetwork:   {"protocol_up_network", FirstSent, ServerFirstIn},
	ProtocolUpRx:        {"protocol_up_rx", ServerFirstIn, ServerLastIn},
	ProtocolDown:        {"protocol_down", ServerFirstOut, LastReceived},
	ProtocolDownTx:      {"protocol_down_tx", ServerFirstOut, ServerLastOut},
	ProtocolDownNetwork: {"protocol_down_network", ServerFirstOut, FirstReceived},
	ProtocolDownRx:      {"protocol_down_rx", FirstReceived, LastReceived},

	UpTxSoftware:   {"up_tx_software", FirstSent, FirstSentKernel},
	UpTxHardware:   {"up_tx_hardware", FirstSentKernel, FirstSentHardware},
	UpWire:         {"up_wire", FirstSentKernel, ServerFirstInKernel},
	UpRxHardware:   {"up_rx_hardware", FirstSentHardware, ServerFirstInHardware},
	UpRxSoftware:   {"up_rx_software", ServerFirstInKernel, ServerFirstIn},
	DownTxSoftware: {"down_tx_software", ServerFirstOut, ServerFirstOutKernel},
	DownTxHardware: {"down_tx_hardware", ServerFirstOutKernel, ServerFirstOutHardware},
	DownWire:       {"down_wire", ServerFirstOutKernel, FirstReceivedKernel},
	DownRxHardware: {"down_rx_hardware", ServerFirstOutHardware, FirstReceivedHardware},
	DownRxSoftware: {"down_rx_software", FirstReceivedKernel, FirstReceived},
}

// String is the layer's name in records, metrics and summaries.
func (l Layer) String() string {
	if int(l) < LayerCount {
		return spans[l].name
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// Stages are the layers that add up to Service through a server, in their order, and DirectStages those without one. Layers of displaying are left out of the sum where
// nothing is displayed.
var (
	Stages = []Layer{
		Capture, TilingWait, Tiling, EncoderWait, Encoding, SendWait,
		NetworkUp, ServerHold, NetworkDown, FrameRx,
		Reassembly, DecoderWait, Decoding, RenderWait, Rendering,
	}
	DirectStages = []Layer{
		Capture, TilingWait, Tiling, EncoderWait, Encoding, SendWait,
		Network, FrameRx,
		Reassembly, DecoderWait, Decoding, RenderWait, Rendering,
	}
)

// Layers are those of one frame.
type Layers struct {
	durations     [LayerCount]time.Duration
	bounds        [LayerCount]time.Duration
	uncertainties [LayerCount]time.Duration
	known         [LayerCount]bool
	shown         bool
	direct        bool
}

// Get is a layer's duration; it is false where a stamp of it is missing. Layers between hosts are off by up to Bound, and may come out below 0.
func (l *Layers) Get(layer Layer) (time.Duration, bool) {
	return l.durations[layer], l.known[layer]
}

// Bound is how far a layer may be off, whatever the path: the bounds of the two hosts' clocks, 0 within one host.
func (l *Layers) Bound(layer Layer) time.Duration { return l.bounds[layer] }

// Uncertainty is how far a layer may be off if the paths between its two hosts and the server take equally long in both directions: the uncertainties of their clocks, 0 within one host.
func (l *Layers) Uncertainty(layer Layer) time.Duration { return l.uncertainties[layer] }

// Layers computes the layers from the stamps.
func (r *Record) Layers() Layers {
	l := Layers{shown: r.Has(Shown), direct: !r.Has(ServerFirstIn)}
	for i := range spans {
		from, to := spans[i].from, spans[i].to
		if to == Shown && !l.shown && Layer(i) != Rendering {
			to = Decoded
		}
		if !r.Has(from) || !r.Has(to) {
			continue
		}
		l.known[i] = true
		l.durations[i] = time.Duration(r.Times[to] - r.Times[from])
		if a, b := from.Host(), to.Host(); a != b {
			l.bounds[i] = r.Clocks[a].Bound + r.Clocks[b].Bound
			l.uncertainties[i] = r.Clocks[a].Uncertainty + r.Clocks[b].Uncertainty
		}
	}
	return l
}

// Sum adds the stages up. It is complete where every stage is known; a stage that is not known counts 0.
func (l *Layers) Sum() (sum time.Duration, complete bool) {
	stages := Stages
	if l.direct {
		stages = DirectStages
	}
	complete = true
	for _, stage := range stages {
		if !l.shown && (stage == RenderWait || stage == Rendering) {
			continue
		}
		sum += l.durations[stage]
		complete = complete && l.known[stage]
	}
	return sum, complete
}
