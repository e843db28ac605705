package conference

import "github.com/volsfu/volsfu/pkg/payload"

// rtpOverhead is what a packet has beside its payload, in bytes: 12 of RTP, 8 of its extension, 16 of SRTP's tag.
const rtpOverhead = 12 + 8 + 16

// wireBytes is what a frame of so many bytes takes, without parity and retransmissions.
func wireBytes(length int) int {
	length += payload.PrefixSize
	return length + payload.SourceFragments(length)*(payload.DescriptorSize+rtpOverhead)
}
