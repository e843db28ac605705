package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
)

// Errors of probing, wrapped with the expected values.
var (
	ErrProbe       = errors.New("invalid probe")
	ErrUnsupported = fmt.Errorf("%w: timestamps of the kernel require Linux", errors.ErrUnsupported)
)

// Departure has the times of a sent packet, in nanoseconds since 1970; 0 if unknown.
type Departure struct {
	Sequence uint32 `json:"sequence"`
	// Size is the size of the IP packet.
	Size int `json:"size"`
	// Sent is the time at which the program passed the packet to the kernel, Software the time at which the kernel
	// passed it to the network device, Hardware the time of transmission by the network card.
	Sent     int64 `json:"sent_ns"`
	Software int64 `json:"tx_sw_ns"`
	Hardware int64 `json:"tx_hw_ns"`
}

// Arrival has the times of a received packet, likewise.
type Arrival struct {
	Sequence uint32 `json:"sequence"`
	Size     int    `json:"size"`
	// Hardware is the time at which the network card received the packet, Software the time at which the kernel
	// received it from the card, Received the time at which the program received it.
	Hardware int64 `json:"rx_hw_ns"`
	Software int64 `json:"rx_sw_ns"`
	Received int64 `json:"received_ns"`
}

const (
	// headers are the sizes of the headers of IPv4 and UDP.
	headers = 20 + 8
	// MinSize and MaxSize bound IP packets: there is room for the number, and Ethernet needs no fragments.
	MinSize, MaxSize = headers + 4, 1500
	maxPackets       = 1_000_000
)

// Plan describes the packets to send.
type Plan struct {
	To netip.AddrPort
	// Size is the size of the IP packets, Count their number, Interval the time between two packets.
	Size, Count int
	Interval    time.Duration
}

// Validate returns the first problem, wrapped in ErrProbe.
func (p *Plan) Validate() error {
	switch {
	case !p.To.IsValid() || !p.To.Addr().Unmap().Is4():
		return fmt.Errorf("%w: to %v, expected an IPv4 address and a port, because sizes include the IPv4 header",
			ErrProbe, p.To)
	case p.Size < MinSize || p.Size > MaxSize:
		return fmt.Errorf("%w: %d bytes, expected %d to %d", ErrProbe, p.Size, MinSize, MaxSize)
	case p.Count < 1 || p.Count > maxPackets || p.Interval < 0:
		return fmt.Errorf("%w: %d packets every %v, expected 1 to %d and no negative time", ErrProbe, p.Count,
			p.Interval, maxPackets)
	}
	return nil
}

// Missing stands for a time without one of its stamps. Times between two hosts may be negative, because of the error of
// their clocks.
const Missing = math.MinInt64

// Passage is a received packet with the parts of its path in nanoseconds, or Missing.
type Passage struct {
	// TxSoftware is from the program to the device, TxHardware from there to the wire, RxHardware from card to card
	// with all switches between, RxSoftware from the kernel to the program.
	TxSoftware, TxHardware, RxHardware, RxSoftware int64
	// Wire is from kernel to kernel, with both cards; Total from program to program.
	Wire, Total int64
}

// Match joins departures and arrivals of one sender. Lost packets are omitted.
func Match(departures []Departure, arrivals []Arrival) (passages []Passage) {
	came := make(map[uint32]*Arrival, len(arrivals))
	for i := range arrivals {
		came[arrivals[i].Sequence] = &arrivals[i]
	}
	for _, d := range departures {
		a := came[d.Sequence]
		if a == nil {
			continue
		}
		passages = append(passages, Passage{
			TxSoftware: since(d.Sent, d.Software), TxHardware: since(d.Software, d.Hardware),
			RxHardware: since(d.Hardware, a.Hardware), RxSoftware: since(a.Software, a.Received),
			Wire: since(d.Software, a.Software), Total: since(d.Sent, a.Received),
		})
	}
	return passages
}

// since returns the time between two stamps, Missing if a stamp is missing.
func since(from, until int64) int64 {
	if from == 0 || until == 0 {
		return Missing
	}
	return until - from
}

// shift adds the offset of the process's clock to known stamps of the system's clock.
func shift(stamps ...*int64) {
	for _, s := range stamps {
		if *s != 0 {
			*s += int64(wallclock.Shift())
		}
	}
}

// payload returns a packet's content, which is only the packet's number.
func payload(into []byte, sequence uint32, size int) []byte {
	into = into[:size-headers]
	binary.BigEndian.PutUint32(into, sequence)
	return into
}

// parsePayload reads a packet. It returns false for a packet that is not a probe.
func parsePayload(data []byte) (sequence uint32, size int, ok bool) {
	if len(data) < MinSize-headers {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(data), len(data) + headers, true
}
