package frametimes

import (
	"fmt"
	"time"
)

// Layer is a part of a frame's latency: the time between two stamps.
type Layer uint8

// The layers, with the names used in the paper in parentheses. The parts of a whole are contiguous:
// the stages add up to Service exactly.
const (
	// Service is from capture to display, or to the decoded cloud if nothing is displayed: AppTx +
	// Frame + AppRx (Service(L)).
	Service Layer = iota
	// AppTx is from capture to the first packet sent (App(Tx)): Capture + TilingWait + Tiling +
	// EncoderWait + Encoding + SendWait.
	AppTx
	// Frame is from the first packet sent to the last packet received (Frame(L)): Network +
	// FrameRx, or with a server NetworkUp + ServerHold + NetworkDown + FrameRx.
	Frame
	// AppRx is from the last packet received to display (App(Rx)): Reassembly + DecoderWait +
	// Decoding + RenderWait + Rendering.
	AppRx

	Capture
	TilingWait
	Tiling
	EncoderWait
	Encoding
	SendWait

	// Network is from the first packet sent to the reception of the first segment (Network(L) of
	// frames).
	Network
	// NetworkUp is from the first packet sent to its reception by the server.
	NetworkUp
	// ServerHold is the time of the first packet in the server: processing and pacing.
	ServerHold
	// NetworkDown is from the first packet sent by the server to the reception of the first
	// segment.
	NetworkDown
	// FrameTx and FrameRx are from the first segment to the last (Frame(Tx), Frame(Rx)). They
	// overlap and must not be added.
	FrameTx
	FrameRx

	Reassembly
	DecoderWait
	Decoding
	RenderWait
	Rendering

	// ServerDistribution is from the first packet received by the server to the last packet that
	// the server sends to the record's receiver. The distribution to all receivers ends with the
	// latest of these packets.
	ServerDistribution

	// RelayHold and RelayNetwork are parts of NetworkUp if the frame passed from server to server:
	// the time of the last packet in the servers before that of the receiver, and on the networks
	// between servers, with repairs of lost packets.
	RelayHold
	RelayNetwork

	// Protocol layers are layers of packets, per hop: ProtocolUp = ProtocolUpNetwork + ProtocolUpRx
	// (Protocol(L) = Network(L) + Protocol(Rx)), and likewise down. Without a server Protocol =
	// ProtocolNetwork + ProtocolDownRx.
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

	// Network layers of the first packet below the program: in the sender's kernel (TX_SW) and
	// network card (TX_HW), between the kernels, from card to card (RX_HW), and from the receiver's
	// kernel to the program (RX_SW).
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
	// LayerCount is the number of layers.
	LayerCount int = iota
)

// span is the pair of stamps of a layer.
type span struct {
	name     string
	from, to Stamp
}

// spans contains the span of each layer. If nothing is displayed, spans that end with Shown end
// with Decoded instead.
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

	RelayHold:    {"relay_hold", RelayLastIn, RelayLastOut},
	RelayNetwork: {"relay_network", RelayLastOut, ServerLastIn},

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

// String returns the layer's name in records, metrics and summaries.
func (l Layer) String() string {
	if int(l) < LayerCount {
		return spans[l].name
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// Stages contains, in order, the layers that add up to Service with a server, DirectStages those
// without a server. If nothing is displayed, RenderWait and Rendering are not part of the sum.
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

// Layers contains the layers of one frame.
type Layers struct {
	durations     [LayerCount]time.Duration
	bounds        [LayerCount]time.Duration
	uncertainties [LayerCount]time.Duration
	known         [LayerCount]bool
	shown         bool
	direct        bool
}

// Get returns a layer's duration. The result is false if a stamp of the layer is missing. The error
// of a layer between two hosts is at most Bound, so that its duration may be negative.
func (l *Layers) Get(layer Layer) (time.Duration, bool) {
	return l.durations[layer], l.known[layer]
}

// Bound returns the maximum error of a layer for any network path: the sum of the bounds of the two
// hosts' clocks, 0 within one host.
func (l *Layers) Bound(layer Layer) time.Duration { return l.bounds[layer] }

// Uncertainty returns the maximum error of a layer if the paths between its hosts and the server
// have the same delay in both directions: the sum of the uncertainties of the clocks, 0 within one
// host.
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

// Sum returns the sum of the stages. complete is true if every stage is known; an unknown stage
// counts as 0.
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
