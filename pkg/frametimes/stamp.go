package frametimes

import "fmt"

// Host is one of the hosts that a frame passes.
type Host uint8

// The hosts. A frame passes the first three in this order. Relay is the sender's server, if it is not
// that of the receiver: the frame then passes from server to server.
const (
	Sender Host = iota
	Server
	Receiver
	Relay
	// Hosts is the number of hosts.
	Hosts int = iota
)

var hostNames = [Hosts]string{"sender", "server", "receiver", "relay"}

// String returns the name of the host in records.
func (h Host) String() string {
	if int(h) < Hosts {
		return hostNames[h]
	}
	return fmt.Sprintf("host %d", uint8(h))
}

// Stamp is a stage of one tile frame: the instant at which the frame reaches the stage. The stamps
// are in the order in which they occur, except for those of the relay, which follow. Only the stamps
// of a frame's first packet in the kernel and the network card may be later than the following stamp
// of the program.
type Stamp uint8

// The stamps. Stamps of kernels and network cards refer to the frame's first packet.
const (
	// Captured: the capture time of the frame.
	Captured Stamp = iota
	// Acquired: the source has returned the cloud, after reading a camera and converting its images
	// to points if necessary.
	Acquired
	// TilingBegan: the frame has left the place of the newest capture, and its division into tiles
	// begins.
	TilingBegan
	// Tiled: the tile is complete and waits for the encoder.
	Tiled
	// EncodingBegan: the tile has left the encoder's queue.
	EncodingBegan
	// Encoded: the encoded tile is passed on to be sent.
	Encoded
	// FirstSent: the first packet is passed to the socket.
	FirstSent
	// FirstSentKernel: the kernel has passed the first packet to the network device.
	FirstSentKernel
	// FirstSentHardware: the network card has sent the first packet.
	FirstSentHardware
	// FirstSegmentSent: the last packet of the frame's first SegmentBytes is passed to the socket.
	FirstSegmentSent
	// LastSent: the last packet is passed to the socket.
	LastSent
	// ServerFirstInHardware: the network card of the server has received the first packet.
	ServerFirstInHardware
	// ServerFirstInKernel: the kernel of the server has received the first packet.
	ServerFirstInKernel
	// ServerFirstIn: the server has read the first packet.
	ServerFirstIn
	// ServerLastIn: the server has read the last packet.
	ServerLastIn
	// ServerFirstOut: the server passes the first packet for this receiver to the socket.
	ServerFirstOut
	// ServerFirstOutKernel: the kernel of the server has passed the first packet to the network
	// device.
	ServerFirstOutKernel
	// ServerFirstOutHardware: the network card of the server has sent the first packet.
	ServerFirstOutHardware
	// ServerLastOut: the server passes the last packet for this receiver to the socket.
	ServerLastOut
	// FirstReceivedHardware: the network card of the receiver has received the first packet.
	FirstReceivedHardware
	// FirstReceivedKernel: the kernel of the receiver has received the first packet.
	FirstReceivedKernel
	// FirstReceived: the receiver has read the first packet.
	FirstReceived
	// FirstSegmentReceived: the receiver has read all packets of the frame's first SegmentBytes.
	FirstSegmentReceived
	// LastReceived: the receiver has read the last packet needed.
	LastReceived
	// Reassembled: the frame is complete and waits for the decoder.
	Reassembled
	// DecodingBegan: the frame has left the decoder's queue.
	DecodingBegan
	// Decoded: the cloud is decoded and waits to be shown.
	Decoded
	// RenderBegan: the cloud is being drawn.
	RenderBegan
	// Shown: the image is drawn.
	Shown
	// RelayLastIn: the sender's server has read the last packet.
	RelayLastIn
	// RelayLastOut: RelayLastIn, and the times for which the servers before that of the receiver have
	// held the last packet. If the sender's server is the only one before, the server passes the last
	// packet to the socket at this time.
	RelayLastOut
	// Stamps is the number of stamps.
	Stamps int = iota
)

// SegmentBytes is the size of the segments into which the paper's application divides a frame
// (section III-B). Here the segment is only a unit of measurement: frames are divided into packets,
// and the first segment has arrived when the packets that contain its bytes have arrived.
const SegmentBytes = 65000

var stampNames = [Stamps]string{
	"captured", "acquired", "tiling_began", "tiled", "encoding_began", "encoded",
	"first_sent", "first_sent_kernel", "first_sent_hardware", "first_segment_sent", "last_sent",
	"server_first_in_hardware", "server_first_in_kernel", "server_first_in", "server_last_in",
	"server_first_out", "server_first_out_kernel", "server_first_out_hardware", "server_last_out",
	"first_received_hardware", "first_received_kernel", "first_received", "first_segment_received", "last_received",
	"reassembled", "decoding_began", "decoded", "render_began", "shown", "relay_last_in", "relay_last_out",
}

// byStampName maps names to stamps.
var byStampName = func() map[string]Stamp {
	found := make(map[string]Stamp, Stamps)
	for i, name := range stampNames {
		found[name] = Stamp(i)
	}
	return found
}()

// String returns the name of the stamp in records and messages.
func (s Stamp) String() string {
	if int(s) < Stamps {
		return stampNames[s]
	}
	return fmt.Sprintf("stamp %d", uint8(s))
}

// Host returns the host that takes the stamp.
func (s Stamp) Host() Host {
	switch {
	case s <= LastSent:
		return Sender
	case s <= ServerLastOut:
		return Server
	case s <= Shown:
		return Receiver
	default:
		return Relay
	}
}

// SenderStamps, ServerStamps, ReceiverStamps and RelayStamps contain the stamps that each host takes,
// in order.
var (
	SenderStamps   = stampsOf(Sender)
	ServerStamps   = stampsOf(Server)
	ReceiverStamps = stampsOf(Receiver)
	RelayStamps    = stampsOf(Relay)
)

func stampsOf(h Host) (list []Stamp) {
	for s := range Stamp(Stamps) {
		if s.Host() == h {
			list = append(list, s)
		}
	}
	return list
}
