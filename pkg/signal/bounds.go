package signal

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// bound limits a message before it is decoded to Go values. Without this limit, three bytes of a
// list, as in "{},", become 152 bytes of a publication, so that 2 MiB of JSON would occupy 100 MB
// before Validate counts the entries.
type bound struct {
	// bytes is the maximum length of the message. entries is the maximum length of each list in the
	// message; 0 means that no Go values are made from lists.
	bytes, entries int
}

// bounds contains the bounds of the messages from clients that may be long. The lengths in the
// comments below are those of messages as real clients write them.
var bounds = map[Type]bound{
	// A session description has about 1 kB per media line, and receivers have hundreds of lines.
	TypeAnswer: {bytes: MaxMessageBytes},
	// Eight publications of 64 tiles take 59 kB, or 140 kB with the longest labels.
	TypeJoin: {512 << 10, volumetric.MaxTiles},
	// One publication of 256 tiles takes 30 kB, or 300 kB if all labels have the maximum length and
	// consist of characters that JSON writes as six.
	TypePublish: {512 << 10, volumetric.MaxTiles},
	// 4096 choices take 270 kB, or 900 kB with names of 80 bytes.
	TypeSetQuality: {1 << 20, MaxChoices},
	// 4096 slots take 140 kB.
	TypeAcknowledge: {512 << 10, MaxSlots},
	// 4096 tracks take 190 kB.
	TypeUplink: {512 << 10, MaxGaveUp},
	// 1024 frames take 160 kB, or 380 kB if each frame belongs to a different track and names have
	// the maximum length.
	TypeFrameTimes: {512 << 10, MaxFrameTimes},
	// 1024 objects take 200 kB, or 450 kB if names have the maximum length.
	TypeArrange: {512 << 10, MaxPlacements},
	// A payload of MaxDataBytes takes 96 KiB if JSON writes each byte as six.
	TypeData: {128 << 10, MaxRecipients},
	// A map of MaxAttributeBytes takes 25 kB if JSON writes each byte as six.
	TypeAttributes: {bytes: 32 << 10},
	TypeMetadata:   {bytes: 32 << 10},
	// 256 boxes take 36 kB with all digits of a float64.
	TypePose: {128 << 10, volumetric.MaxTiles},
}

// shortMessage is the maximum length in bytes of all other messages. A candidate and its mid of
// maximum length take 7 kB if they consist of characters that JSON writes as six.
const shortMessage = 16 << 10

// boundOf returns the bound of a message type.
func boundOf(t Type) bound {
	if b, ok := bounds[t]; ok {
		return b
	}
	return bound{bytes: shortMessage}
}

// MaxBytes returns the maximum length in bytes of a message of type t from a client.
func MaxBytes(t Type) int { return boundOf(t).bytes }

// withinBounds returns an error if the message is longer, or contains a longer list, than its type
// allows. data must be valid JSON.
func withinBounds(t Type, data []byte) error {
	b := boundOf(t)
	if len(data) > b.bytes {
		return fmt.Errorf(
			"%w: message of type %q has %d bytes, expected at most %d",
			ErrTooLarge,
			t,
			len(data),
			b.bytes,
		)
	}
	if b.entries == 0 {
		return nil
	}
	if n := longestList(data); n > b.entries {
		return fmt.Errorf("%w of type %q: a list has %d entries, expected at most %d", ErrInvalid, t, n, b.entries)
	}
	return nil
}

// longestList returns the number of entries of the longest list in valid JSON at any depth. An
// empty list counts as one entry.
func longestList(data []byte) int {
	// For each open list the number of entries so far, and -1 for each open object. encoding/json
	// rejects more than 10,000 levels.
	var shallow [64]int
	open, longest := shallow[:0], 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = closingQuote(data, i)
		case '{':
			open = append(open, -1)
		case '[':
			open = append(open, 1)
		case ',':
			if top := len(open) - 1; open[top] > 0 {
				open[top]++
			}
		case ']', '}':
			top := len(open) - 1
			longest = max(longest, open[top])
			open = open[:top]
		}
	}
	return longest
}

// closingQuote returns the index of the quote that closes the string opened at index at.
func closingQuote(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at
}
