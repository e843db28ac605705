package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Errors of probing, wrapped with what was expected.
var (
	ErrProbe       = errors.New("invalid probe")
	ErrUnsupported = fmt.Errorf("%w: stamps of the kernel need Linux", errors.ErrUnsupported)
)

// Departure is when a packet left; times are nanoseconds since 1970, 0 where the system does not tell.
type Departure struct {
	Sequence uint32 `json:"sequence"`
	// Size is that of the IP packet.
	Size int `json:"size"`
	// Sent is when the program handed it over, Software when the kernel gave it to the network device, Hardware when the network card sent it.
	Sent     int64 `json:"sent_ns"`
	Software int64 `json:"tx_sw_ns"`
	Hardware int64 `json:"tx_hw_ns"`
}

// Arrival is when a packet came, likewise.
type Arrival struct {
	Sequence uint32 `json:"sequence"`
	Size     int    `json:"size"`
	// Hardware is when the network card received it, Software when the kernel took it from there, Received when the program had it.
	Hardware int64 `json:"rx_hw_ns"`
	Software int64 `json:"rx_sw_ns"`
	Received int64 `json:"received_ns"`
}

const (
	// headers are those of IPv4 and UDP.
	headers = 20 + 8
	// MinSize and MaxSize bound IP packets: there is room for the number, and nothing is fragmented on Ethernet.
	MinSize, MaxSize = headers + 4, 1500
	maxPackets       = 1_000_000
)

// Plan says what is sent.
type Plan struct {
	To netip.AddrPort
	// Size is that of the IP packets, Count how many there are, Interval the time between two.
	Size, Count int
	Interval    time.Duration
}

// Validate reports the first thing that is wrong, wrapped around ErrProbe.
func (p *Plan) Validate() error {
	switch {
	case !p.To.IsValid() || !p.To.Addr().Unmap().Is4():
		return fmt.Errorf("%w: to %v, expected an IPv4 address and a port: sizes are those of IPv4 packets", ErrProbe, p.To)
	case p.Size < MinSize || p.Size > MaxSize:
		return fmt.Errorf("%w: %d bytes, expected %d to %d", ErrProbe, p.Size, MinSize, MaxSize)
	case p.Count < 1 || p.Count > maxPackets || p.Interval < 0:
		return fmt.Errorf("%w: %d packets every %v, expected 1 to %d and no negative time", ErrProbe, p.Count, p.Interval, maxPackets)
	}
	return nil
}

// Passage is a packet that came, with the parts of its way in nanoseconds; -1 where a stamp is missing.
type Passage struct {
	// TxSoftware is from the program to the device, TxHardware from there to the wire, RxHardware from card to card with all switches between, RxSoftware from
	// the kernel to the program.
	TxSoftware, TxHardware, RxHardware, RxSoftware int64
	// Wire is from kernel to kernel, with both cards; Total from program to program.
	Wire, Total int64
}

// Match joins departures and arrivals of one sender. Packets that did not come are left out.
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
			TxSoftware: since(d.Sent, d.Software), TxHardware: since(d.Software, d.Hardware), RxHardware: since(d.Hardware, a.Hardware), RxSoftware: since(a.Software, a.Received),
			Wire: since(d.Software, a.Software), Total: since(d.Sent, a.Received),
		})
	}
	return passages
}

// since is the time between two stamps, -1 where one is missing.
func since(from, until int64) int64 {
	if from == 0 || until == 0 {
		return -1
	}
	return until - from
}

// payload is a packet's content: its number, and nothing else.
func payload(into []byte, sequence uint32, size int) []byte {
	into = into[:size-headers]
	binary.BigEndian.PutUint32(into, sequence)
	return into
}

// parsePayload reads a packet. It is false where it is no probe.
func parsePayload(data []byte) (sequence uint32, size int, ok bool) {
	if len(data) < MinSize-headers {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(data), len(data) + headers, true
}
