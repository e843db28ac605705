package feedback

import "github.com/pion/rtcp"

// MaxCompound is the size of the largest RTCP compound, in bytes, before encryption. SRTCP adds 20 bytes, IPv6 and UDP 48: 1,268, below the 1,280 that
// every IPv6 link passes.
const MaxCompound = 1200

const (
	// maxNackPairs keeps a NACK packet at 12 + 4 × 253 = 1,024 bytes. It is also the most that the RTCP library writes.
	maxNackPairs = 253
	// maxReportBlocks is what fits the five-bit count of RFC 3550 section 6.4.
	maxReportBlocks = 31
	reportBlockSize = 24
	reportHeader    = 8
)

// AppendNACKs appends generic NACKs (RFC 4585 section 6.2.1) that ask for the given extended sequence numbers, ascending, of the stream media.
func AppendNACKs(dst []rtcp.Packet, sender, media uint32, sequences []int64) []rtcp.Packet {
	if len(sequences) == 0 {
		return dst
	}
	numbers := make([]uint16, len(sequences))
	for i, sequence := range sequences {
		numbers[i] = uint16(sequence)
	}
	pairs := rtcp.NackPairsFromSequenceNumbers(numbers)
	for len(pairs) > 0 {
		n := min(len(pairs), maxNackPairs)
		dst = append(dst, &rtcp.TransportLayerNack{SenderSSRC: sender, MediaSSRC: media, Nacks: pairs[:n:n]})
		pairs = pairs[n:]
	}
	return dst
}

// AppendReceiverReports appends receiver reports that carry the given blocks, up to 31 each. Their sizes are such that two of them, 49 blocks, fill a
// compound: 8 + 31 × 24 and 8 + 18 × 24 are 1,192 bytes.
func AppendReceiverReports(dst []rtcp.Packet, sender uint32, blocks []rtcp.ReceptionReport) []rtcp.Packet {
	const second = (MaxCompound - 2*reportHeader - maxReportBlocks*reportBlockSize) / reportBlockSize
	for size := maxReportBlocks; len(blocks) > 0; size = maxReportBlocks + second - size {
		n := min(len(blocks), size)
		dst = append(dst, &rtcp.ReceiverReport{SSRC: sender, Reports: blocks[:n:n]})
		blocks = blocks[n:]
	}
	return dst
}

// Compounds groups packets, in their order, into compounds of at most MaxCompound bytes. A packet larger than that travels alone. The compounds
// share the memory of packets; they are of reduced size (RFC 5506) where they begin with feedback.
func Compounds(packets []rtcp.Packet) [][]rtcp.Packet {
	var compounds [][]rtcp.Packet
	begin, size := 0, 0
	for i, packet := range packets {
		n := packet.MarshalSize()
		if i > begin && size+n > MaxCompound {
			compounds = append(compounds, packets[begin:i:i])
			begin, size = i, 0
		}
		size += n
	}
	if begin < len(packets) {
		compounds = append(compounds, packets[begin:])
	}
	return compounds
}
