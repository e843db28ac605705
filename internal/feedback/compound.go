package feedback

import "github.com/pion/rtcp"

// MaxCompound is the size of the largest RTCP compound, in bytes, before encryption. SRTCP adds 20 bytes, IPv6 and UDP
// 48: 1,268, below the 1,280 that every IPv6 link carries.
const MaxCompound = 1200

const (
	// maxNackPairs limits a NACK packet to 12 + 4 × 253 = 1,024 bytes. The RTCP library has the same limit.
	maxNackPairs = 253
	// maxReportBlocks is the maximum of the five-bit count of RFC 3550 section 6.4.
	maxReportBlocks = 31
	reportBlockSize = 24
	reportHeader    = 8
)

// AppendNACKs appends generic NACKs (RFC 4585 section 6.2.1) that request the given extended sequence numbers,
// ascending, of the stream media.
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

// AppendReceiverReports appends receiver reports with the given blocks, up to 31 each. Two reports, 49 blocks, fill a
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

// Compounds groups packets, in order, into compounds of at most MaxCompound bytes. A larger packet is a compound of its
// own. The compounds share the memory of packets; a compound that begins with feedback has reduced size (RFC 5506).
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
