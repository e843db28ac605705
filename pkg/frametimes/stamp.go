package frametimes

import "fmt"

// Host is one of the three that a frame passes.
type Host uint8

// The hosts, in the order in which a frame passes them.
const (
	Sender Host = iota
	Server
	Receiver
	// Hosts is how many there are.
	Hosts int = iota
)

var hostNames = [Hosts]string{"sender", "server", "receiver"}

// String is the name of the host in records.
func (h Host) String() string {
	if int(h) < Hosts {
		return hostNames[h]
	}
	return fmt.Sprintf("host %d", uint8(h))
}

// Stamp is a stage of one tile frame: the instant at which it is reached. The stamps stand in the order in which they come about, but that those of a frame's first
// packet in the kernel and in the network card may be later than the one of the program.
type Stamp uint8

// The stamps. Stamps of kernels and network cards are those of the frame's first packet.
const (
	// Captured is the instant that the frame shows.
	Captured Stamp = iota
	// Acquired: the source has given the cloud, which may have taken reading a camera and making points of its images.
	Acquired
	// TilingBegan: the frame has left the place where the newest capture waits, and is being cut into tiles.
	TilingBegan
	// Tiled: the tile is cut out, and waits for the encoder.
	Tiled
	// EncodingBegan: the tile has left the encoder's queue.
	EncodingBegan
	// Encoded: the encoded tile is handed over to be sent.
	Encoded
	// FirstSent: the first packet is handed to the socket.
	FirstSent
	// FirstSentKernel: the kernel has handed it to the network device.
	FirstSentKernel
	// FirstSentHardware: the network card has sent it.
	FirstSentHardware
	// FirstSegmentSent: the last packet of the frame's first SegmentBytes is handed to the socket.
	FirstSegmentSent
	// LastSent: the last packet is handed to the socket.
	LastSent
	// ServerFirstInHardware: the network card of the server has received the first packet.
	ServerFirstInHardware
	// ServerFirstInKernel: the kernel of the server has received it.
	ServerFirstInKernel
	// ServerFirstIn: the server has read it.
	ServerFirstIn
	// ServerLastIn: the server has read the last packet.
	ServerLastIn
	// ServerFirstOut: the server hands the first packet for this receiver to the socket.
	ServerFirstOut
	// ServerFirstOutKernel: the kernel of the server has handed it to the network device.
	ServerFirstOutKernel
	// ServerFirstOutHardware: the network card of the server has sent it.
	ServerFirstOutHardware
	// ServerLastOut: the server hands the last packet for this receiver to the socket.
	ServerLastOut
	// FirstReceivedHardware: the network card of the receiver has received the first packet.
	FirstReceivedHardware
	// FirstReceivedKernel: the kernel of the receiver has received it.
	FirstReceivedKernel
	// FirstReceived: the receiver has read it.
	FirstReceived
	// FirstSegmentReceived: all packets of the frame's first SegmentBytes are read.
	FirstSegmentReceived
	// LastReceived: the last packet that was needed is read.
	LastReceived
	// Reassembled: the frame is complete, and waits for the decoder.
	Reassembled
	// DecodingBegan: the frame has left the decoder's queue.
	DecodingBegan
	// Decoded: the cloud is there, and waits to be shown.
	Decoded
	// RenderBegan: the cloud is being drawn.
	RenderBegan
	// Shown: the picture is drawn.
	Shown
	// Stamps is how many there are.
	Stamps int = iota
)

// SegmentBytes is the size of the segments into which the paper's application divides a frame (section III-B). Here it is a measure only: frames are divided into
// packets, and the first segment is there when the packets are that hold its bytes.
const SegmentBytes = 65000

var stampNames = [Stamps]string{
	"captured", "acquired", "tiling_began", "tiled", "encoding_began", "encoded",
	"first_sent", "first_sent_kernel", "first_sent_hardware", "first_segment_sent", "last_sent",
	"server_first_in_hardware", "server_first_in_kernel", "server_first_in", "server_last_in",
	"server_first_out", "server_first_out_kernel", "server_first_out_hardware", "server_last_out",
	"first_received_hardware", "first_received_kernel", "first_received", "first_segment_received", "last_received",
	"reassembled", "decoding_began", "decoded", "render_began", "shown",
}

// byStampName finds stamps by their names.
var byStampName = func() map[string]Stamp {
	found := make(map[string]Stamp, Stamps)
	for i, name := range stampNames {
		found[name] = Stamp(i)
	}
	return found
}()

// String is the name of the stamp in records and messages.
func (s Stamp) String() string {
	if int(s) < Stamps {
		return stampNames[s]
	}
	return fmt.Sprintf("stamp %d", uint8(s))
}

// Host is where the stamp is taken.
func (s Stamp) Host() Host {
	switch {
	case s <= LastSent:
		return Sender
	case s <= ServerLastOut:
		return Server
	default:
		return Receiver
	}
}

// SenderStamps, ServerStamps and ReceiverStamps are those that each host takes, in order.
var (
	SenderStamps   = stampsOf(Sender)
	ServerStamps   = stampsOf(Server)
	ReceiverStamps = stampsOf(Receiver)
)

func stampsOf(h Host) (list []Stamp) {
	for s := range Stamp(Stamps) {
		if s.Host() == h {
			list = append(list, s)
		}
	}
	return list
}
