package conference

import "github.com/volsfu/volsfu/pkg/payload"

// rtpOverhead is the size of a packet without its payload, in bytes: 12 of RTP, 8 of its extension, 16 of SRTP's tag.
const rtpOverhead = 12 + 8 + 16

// wireBytes returns the size of a frame of length bytes on the wire, without parity and retransmissions.
func wireBytes(length int) int {
	length += payload.PrefixSize
	return length + payload.SourceFragments(length)*(payload.DescriptorSize+rtpOverhead)
}
